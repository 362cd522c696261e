// What is decided by values alone, without an app, a client or a browser: names, texts, plain data,
// progress, questions. What the program does with them is tried in the other files, by its commands
// and its clients.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { App } from '../src/app.js';
import { executor } from '../src/commands/a2a.js';
import { identify } from '../src/earlier.js';
import { browserPaths } from '../src/find-browser.js';
import { Gateway } from '../src/gateway.js';
import { taskOf } from '../src/mcp-methods.js';
import { McpServer } from '../src/mcp-server.js';
import { sentenceOf } from '../src/outcomes.js';
import { toPlain } from '../src/plain.js';
import { profileOf } from '../src/profile.js';
import { progressSender } from '../src/progress.js';
import { PATIENCE_WITH_CLIENTS, REMEMBERED, Run, Runs } from '../src/runs.js';
import { SchemaChecker } from '../src/schema-checker.js';
import { formOf, responseOf } from '../src/questions.js';
import { ResultFiles, makeTemporaryFolder, removeFolder } from '../src/files.js';
import { toolResult } from '../src/results.js';
import { progressView } from '../src/terminal.js';
import { cleanText } from '../src/texts.js';
import { ToolNames, prefixOf } from '../src/tools.js';
import { toolOf } from '../src/tools.js';

test('tool names are safe, at most 64 long, unique, and the same in whatever order', () => {
  const capabilities = [
    'a.b',
    'a-b',
    'a_b',
    `${'n'.repeat(200)}1`,
    `${'n'.repeat(200)}2`,
    'é',
    'call_wait',
  ];
  const named = (list) => {
    const target = { prefix: '' };
    const names = new ToolNames(['call_wait']);
    names.add(target, list);
    return Object.fromEntries(capabilities.map((name) => [name, names.of(target, name)]));
  };
  const names = named(capabilities);
  assert.deepEqual(named([...capabilities].reverse()), names);
  assert.equal(new Set(Object.values(names)).size, capabilities.length);
  for (const name of Object.values(names)) assert.match(name, /^[A-Za-z0-9_]{1,64}$/);
  assert.equal(names.a_b, 'a_b');
  assert.notEqual(names.call_wait, 'call_wait');
});

test('two apps never share a name, whatever their prefixes', () => {
  const [one, two] = [{ prefix: prefixOf('a') }, { prefix: prefixOf('a_b') }];
  const names = new ToolNames();
  names.add(one, ['b_c']);
  names.add(two, ['c']);
  assert.notEqual(names.of(one, 'b_c'), names.of(two, 'c'));
  assert.deepEqual(names.meaningOf(names.of(two, 'c')), { target: two, capability: 'c' });
});

test('the list of tools fits a message, and an app that says much costs the others nothing', async () => {
  const appWith = (host, count, length) => ({
    url: new URL(`ws://${host}/`),
    watchers: new Set(),
    listCapabilities: async () =>
      Array.from({ length: count }, (_, at) => ({
        name: `c${at}`,
        inputSchema: { type: 'object', description: 'x'.repeat(length) },
      })),
  });
  const logged = [];
  const gateway = new Gateway(
    [
      { app: appWith('large', 250, 60_000), prefix: 'large_' },
      { app: appWith('many', 300, 0), prefix: 'many_' },
    ],
    { patience: 1000, log: (line) => logged.push(line), name: 'test', version: '1' },
  );
  const tools = await gateway.listTools();
  assert.ok(JSON.stringify(tools).length <= 8 << 20);
  const counts = ['large_', 'many_'].map(
    (prefix) => tools.filter(({ name }) => name.startsWith(prefix)).length,
  );
  assert.ok(counts[0] > 50 && counts[0] < 250, `${counts}`);
  assert.equal(counts[1], 256);
  assert.deepEqual(logged.sort(), [
    `ws://large/ has 250 capabilities; ${counts[0]} are shown`,
    'ws://many/ has 300 capabilities; 256 are shown',
  ]);
});

test('a description is bounded, without control characters, and nothing that hides text', () => {
  const { description, title } = toolOf(
    { name: 'x', description: `\u001b[31mred\u202e\u{e0041}${'y'.repeat(1 << 20)}` },
    'x',
  );
  assert.equal(title, 'x');
  assert.ok(
    description.length <= 4096 && description.startsWith('[31mredyyy') && description.endsWith('…'),
  );
  assert.equal(cleanText({ toString: () => 'forged' }, 10), '');
});

test('a schema that is no object, or too long, is replaced by one that takes any object', () => {
  const schemaOf = (inputSchema) => toolOf({ name: 'x', inputSchema }, 'x').inputSchema;
  assert.deepEqual(schemaOf({ properties: {} }), { properties: {}, type: 'object' });
  for (const schema of [
    undefined,
    5,
    [],
    { type: 'string' },
    { description: 'y'.repeat(70_000) },
  ]) {
    assert.deepEqual(schemaOf(schema), { type: 'object' });
  }
});

test('results become what JSON can say, and their bytes are found wherever they are', async () => {
  const found = [];
  const plain = await toPlain(
    {
      big: 5n,
      nothing: undefined,
      not: NaN,
      when: new Date(0),
      set: new Set([1]),
      map: new Map([['k', 1]]),
      lone: '\ud800',
      deep: [
        {
          content: 'JSUl',
          encoding: 'base64',
          mimeType: 'application/pdf; v=1',
          filename: 'a.pdf',
        },
      ],
      bare: new Uint8Array([1, 2]),
      blob: new Blob(['hi'], { type: 'text/plain' }),
    },
    ({ bytes, mimeType }) => found.push([mimeType, bytes.length]),
  );
  assert.deepEqual(plain, {
    big: '5',
    not: null,
    when: '1970-01-01T00:00:00.000Z',
    set: [1],
    map: [['k', 1]],
    lone: '\ufffd',
    deep: [1],
    bare: 2,
    blob: 3,
  });
  assert.deepEqual(found, [
    ['application/pdf', 3],
    ['application/octet-stream', 2],
    ['text/plain', 2],
  ]);
});

test('progress rises, however the app reports it, and the last hundred per cent is the result itself', async () => {
  const sent = [];
  const { report, stop } = progressSender('t', async ({ progress }) => void sent.push(progress));
  for (const progress of [0, 5, 5, 3, NaN, 7]) report({ progress, total: 10 });
  report({ progress: 2, total: 10, status: 'again' });
  report({ progress: 10, total: 10 });
  report({ percentage: 90 });
  stop();
  report({ progress: 99, total: 100 });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(sent, [0, 5, 7, 7.001, 90]);
});

test('reports that come all at once arrive one by one; of more than a client reads, the last', async () => {
  const sent = [];
  const { report, stop } = progressSender('t', async ({ progress }) => void sent.push(progress));
  for (let progress = 0; progress < 100; progress++) report({ progress });
  while (sent.length < 100) await new Promise((resolve) => setImmediate(resolve));
  for (let progress = 100; progress < 5000; progress++) report({ progress });
  stop();
  while (sent.at(-1) !== 4999) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    sent.slice(0, 100),
    Array.from({ length: 100 }, (_, i) => i),
  );
  assert.ok(sent.length < 400, `${sent.length}`);
});

test('a call that is silent gives a sign of life each 20 s, which rises, and none after its end', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const sent = [];
  const { report, stop } = progressSender('t', async (params) => void sent.push(params));
  t.mock.timers.tick(19_999);
  assert.deepEqual(sent, []);
  t.mock.timers.tick(1);
  report({ progress: 4, total: 10, status: 'reading' });
  for (const ms of [19_999, 1]) t.mock.timers.tick(ms);
  stop();
  t.mock.timers.tick(60_000);
  await new Promise((resolve) => setImmediate(resolve));
  const last = { progressToken: 't', total: 10, message: 'reading' };
  assert.deepEqual(sent, [
    { progressToken: 't', progress: 0 },
    { ...last, progress: 4 },
    { ...last, progress: 4.001 },
  ]);
});

test('progress is a bar on a terminal, drawn over, and lines elsewhere', () => {
  const shown = (output) => {
    let written = '';
    const view = progressView({ ...output, write: (text) => (written += text) });
    view.show({ progress: 1, total: 4, stage: 'reading\u001b[2J' });
    view.show({ progress: 1, total: 4, stage: 'reading\u001b[2J' });
    view.show({ percentage: 50 });
    view.end();
    return written;
  };
  const [quarter, half] = [6, 12].map((filled) => '█'.repeat(filled) + '·'.repeat(24 - filled));
  const [over, clear] = ['\r', '\u001b[2K'];
  assert.equal(
    shown({ isTTY: true, columns: 80 }),
    `${over}${clear}${quarter}  25 %  reading[2J${over}${clear}${half}  50 %\n`,
  );
  assert.equal(shown({}), '25 %  reading[2J\n50 %\n');
});

test('what a form cannot ask is not asked, and a refusal is no consent', () => {
  assert.equal(formOf({ method: 'elicitation/resource', params: {} }), undefined);
  const nested = { type: 'object', properties: { a: { type: 'object' } } };
  assert.equal(formOf({ method: 'elicitation/input', params: { schema: nested } }), undefined);
  const form = formOf({ method: 'elicitation/confirm', params: { message: 'Really?' } });
  assert.deepEqual(responseOf(form, { action: 'accept', content: {} }).data, { confirmed: false });
  for (const said of [
    { action: 'decline' },
    { action: 'cancel' },
    undefined,
    { action: 'forged' },
  ]) {
    assert.deepEqual(responseOf(form, said), { success: false, cancelled: true });
  }
});

test('browsers are looked for where each system has them', () => {
  assert.deepEqual(browserPaths('linux', { PATH: '/a' })[0], '/a/google-chrome-stable');
  assert.match(browserPaths('darwin', { HOME: '/u' })[0], /^\/Applications\/Google Chrome\.app\//);
  assert.match(browserPaths('win32', { PROGRAMFILES: 'C:\\P' })[0], /^C:\\P\\Google\\Chrome/);
});

test('each origin has a profile of its own', () => {
  const profiles = ['https://a.example', 'http://a.example', 'https://a.example:8443'].map(
    profileOf,
  );
  assert.equal(new Set(profiles).size, 3);
});

test('an address on the web is a link; one on this machine is data', async () => {
  const types = async (downloadUrl) => {
    const data = { downloadUrl, mimeType: 'application/pdf', size: 5 };
    const result = await toolResult({ success: true, data }, { files: new ResultFiles() });
    return result.content.map(({ type }) => type);
  };
  assert.deepEqual(await types('https://files.example/1'), ['text', 'resource_link']);
  for (const url of ['file:///etc/passwd', 'javascript:alert(1)', 'data:,x', 5]) {
    assert.deepEqual(await types(url), ['text']);
  }
});

test('names of tools that an app has no more are forgotten, beyond a limit', () => {
  const target = { prefix: '' };
  const names = new ToolNames(['call_wait']);
  for (let round = 0; round < 50; round++) {
    names.add(target, ['stays', ...Array.from({ length: 200 }, (_, i) => `t${round}.${i}`)]);
  }
  const known = Array.from({ length: 50 * 200 }, (_, at) => `t${Math.floor(at / 200)}_${at % 200}`);
  assert.equal(known.filter((name) => names.meaningOf(name)).length, 1023);
  assert.deepEqual(names.meaningOf('stays'), { target, capability: 'stays' });
  assert.equal(names.meaningOf('t0_0'), undefined);
});

test('for a client that does not read, progress waits within bounds, and the last one wins', async () => {
  const sent = [];
  let read;
  const { report, drain, stop } = progressSender('t', async ({ progress }) => {
    sent.push(progress);
    await new Promise((resolve) => (read = resolve));
  });
  for (let progress = 0; progress < 100_000; progress++) report({ progress, total: 200_000 });
  assert.deepEqual(sent, [0]);
  stop();
  const drained = drain();
  while (sent.at(-1) !== 99_999) {
    read();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(sent.length < 300, `${sent.length}`);
  read();
  await drained;
});

/** A run whose app asks as often as it is told to, and stops when it is told to. */
function asking(runs, owner, identity = identify(undefined, undefined, 'x', {})) {
  let ask;
  const run = new Run(runs, {
    tool: 'x',
    owner,
    identity,
    canAsk: true,
    execute: (options) =>
      new Promise((resolve) => {
        options.signal.addEventListener('abort', ({ target }) => {
          const content = [{ type: 'text', text: target.reason }];
          const response = { success: false, cancelled: true };
          resolve({ response, result: { content, isError: true } });
        });
        ask = async () => {
          const answer = options.ask(
            { method: 'elicitation/confirm' },
            new AbortController().signal,
          );
          while (!run.question) await new Promise((settle) => setImmediate(settle));
          return { answer };
        };
      }),
  });
  return { run, ask: () => ask() };
}

const accept = { action: 'accept', content: { confirmed: true } };

test('a requestState that was superseded is refused, and does not end the call when its time is over', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const runs = new Runs();
  const { run, ask } = asking(runs);
  const { answer } = await ask();
  const old = run.suspend('b');
  const renewed = run.suspend('b');
  assert.throws(() => runs.resume(old, 'b'), /unknown, was used/);
  assert.throws(() => runs.resume(renewed, 'other'), /another request/);
  runs.resume(renewed, 'b', undefined, { [run.question.key]: accept });
  assert.throws(() => runs.resume(renewed, 'b'), /unknown, was used/);
  run.wait(1); // the request that has come back
  assert.deepEqual((await answer).data, { confirmed: true });
  t.mock.timers.tick(60 * 60_000);
  assert.equal(run.state, 'working');
});

test('a requestState is good for the session that got it, and for no other', async () => {
  const runs = new Runs();
  const [one, two] = [{}, {}];
  const { run, ask } = asking(runs, one);
  const { answer } = await ask();
  const state = run.suspend('b');
  const answers = { [run.question.key]: accept };
  for (const other of [two, undefined]) {
    assert.throws(() => runs.resume(state, 'b', other, answers), /unknown, was used/);
  }
  runs.resume(state, 'b', one, answers);
  assert.equal((await answer).success, true);
  run.isNamed = true;
  for (const other of [two, undefined]) {
    assert.throws(() => runs.find(run.id, other), /call is unknown/);
    assert.deepEqual(runs.named(other), []);
  }
  assert.deepEqual(runs.named(one), [run]);
  assert.equal(runs.find(run.id, one), run);
  run.abort('done');
  await run.ended;
});

test('a call that nobody asks for is cancelled, and its result is kept for an hour', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const runs = new Runs();
  const [left, awaited] = [asking(runs), asking(runs)].map(({ run }) => run);
  for (const run of [left, awaited]) run.touch();
  awaited.wait(1);
  t.mock.timers.tick(PATIENCE_WITH_CLIENTS + 10);
  await left.ended;
  assert.deepEqual([left.state, awaited.state], ['cancelled', 'working']);
  assert.equal(left.result.content[0].text, 'the client stopped asking for the result');
  assert.equal(runs.find(left.id), left);
  awaited.wait(-1); // its request had to answer without a result
  // The timers count from a clock that stands still.
  t.mock.timers.tick(2 * PATIENCE_WITH_CLIENTS + 10);
  await awaited.ended;
  assert.equal(awaited.state, 'cancelled');
  assert.equal(runs.find(left.id), left);
  t.mock.timers.tick(2 * REMEMBERED);
  assert.throws(() => runs.find(left.id), /no longer kept/);
});

test('a call whose question nobody answers is cancelled, with its reason', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const runs = new Runs();
  const { run, ask } = asking(runs);
  const { answer } = await ask();
  assert.equal(run.state, 'input_required');
  run.suspend('b');
  t.mock.timers.tick(PATIENCE_WITH_CLIENTS + 10);
  assert.deepEqual(await answer, { success: false, cancelled: true });
  await run.ended;
  assert.equal(run.state, 'cancelled');
  assert.equal(run.result.content[0].text, 'the question was not answered in time');
});

test('there is room for 1024 calls under way, and for as many results: the oldest gives way', async () => {
  const runs = new Runs();
  const fill = () => Array.from({ length: 1024 }, () => asking(runs).run);
  const first = fill();
  assert.throws(() => asking(runs), /Too many calls are in flight/);
  for (const run of first) run.abort('enough');
  await Promise.all(first.map(({ ended }) => ended));
  const [next] = fill();
  assert.equal(runs.find(first[0].id), first[0]);
  next.abort('enough');
  await next.ended;
  assert.throws(() => runs.find(first[0].id), /no longer kept/);
  assert.equal(runs.find(first[1].id), first[1]);
});

test('a call that was cancelled, and has finished all the same, has completed', async () => {
  let finish;
  const execute = () => new Promise((resolve) => (finish = resolve));
  const identity = identify(undefined, undefined, 'x', {});
  const run = new Run(new Runs(), { tool: 'x', identity, canAsk: false, execute });
  run.abort('enough');
  assert.equal(run.state, 'working'); // until the app has said what became of it
  finish({ response: { success: true }, result: { content: [] } });
  await run.ended;
  assert.equal(run.state, 'completed');
});

test('what is told with an answer that is not sent as a whole is told again, and with one that nobody reads not at all', async () => {
  const runs = new Runs();
  const owner = 'session';
  const identity = { reader: owner, key: undefined, work: 'w', shown: '{}' };
  const [stopped, asked] = [asking(runs, owner, identity), asking(runs, owner)].map(
    ({ run }) => run,
  );
  stopped.abort('the user pressed stop');
  runs.left(stopped);
  await stopped.ended;
  const gateway = { runs, patience: 1000, serverInfo: { name: 'g', version: '1' } };
  const tell = async (isWhole, isLost = false) => {
    const written = Promise.resolve(isWhole);
    const exchange = () => ({ written, isLost, brokenAfter: [] });
    const server = new McpServer(gateway, 'legacy', { owner, exchange });
    const ctx = { mcpReq: { signal: new AbortController().signal } };
    const { _meta } = server.tell({ content: [] }, asked, ctx, owner);
    await written;
    return _meta?.['abp-bridge/earlier'].calls.length ?? 0;
  };
  assert.equal(await tell(false, true), 0);
  assert.equal(await tell(false), 1);
  assert.equal(await tell(true), 1);
  assert.equal(await tell(true), 0);
  asked.abort('done');
});

test('a schema is checked by a thread that is ended when it takes too long, and begun again', async () => {
  const checker = new SchemaChecker();
  const text = (pattern) => ({ type: 'object', properties: { a: { type: 'string', pattern } } });
  const slow = checker.check({ a: `${'a'.repeat(40)}!` }, text('^(a+)+$'));
  assert.match(await slow, /could not be checked within 5000 ms/);
  // However slow the machine is: the thread begins anew until it is in time.
  const until = async (data, schema, wanted) => {
    for (;;) {
      const problem = await checker.check(data, schema);
      if (!/within/.test(problem)) return assert.match(problem, wanted);
    }
  };
  await until({ a: 'aa' }, text('^(a+)+$'), /^$/);
  await until({ a: 5 }, text('a'), /does not match.*string/);
  await until({}, { $ref: '#/nowhere' }, /cannot be used.*\$ref/);
  await checker.close();
});

test('nothing that the gateway runs is compiled of what an app says', () => {
  const sources = readdirSync(new URL('../src/', import.meta.url), { recursive: true });
  for (const name of sources.filter((each) => each.endsWith('.js'))) {
    const source = readFileSync(new URL(`../src/${name}`, import.meta.url), 'utf8');
    assert.doesNotMatch(source, /\bfromJsonSchema\b|new Function|\beval\(|\bajv\b/i, name);
  }
});

test('an app that could not be reached is announced once it is up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let up = false;
  const app = {
    url: new URL('ws://app/'),
    watchers: new Set(),
    listCapabilities: async () => {
      if (!up) throw new Error('down');
      return [{ name: 'x' }];
    },
  };
  const options = { patience: 1000, log() {}, name: 'test', version: '1' };
  const gateway = new Gateway([{ app, prefix: '' }], options);
  await assert.rejects(gateway.listTools(), /down/);
  const announced = new Promise((resolve) => gateway.listeners.add(resolve));
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  for (const ms of [5000, 10_000]) {
    t.mock.timers.tick(ms);
    await turn();
  }
  up = true;
  t.mock.timers.tick(20_000);
  await announced;
  assert.deepEqual(
    (await gateway.listTools()).map(({ name }) => name),
    ['x'],
  );
});

test('a model reads what mends a failure', async () => {
  const textFor = async (error) =>
    (await toolResult({ success: false, error }, { files: new ResultFiles() })).content[0].text;
  const message = 'x';
  assert.match(await textFor({ code: 'INVALID_PARAMS', message }), /\nCorrect the arguments/);
  const gone = await textFor({ code: 'DISCONNECTED', message, retryable: true });
  assert.match(gone, /\nThe work may or may not have been done/);
  assert.match(await textFor({ code: 'X', message }), /\nTrying again will not help/);
});

test('a gateway that closes while it takes its profile begins no browser', async () => {
  const home = await makeTemporaryFolder();
  const app = new App(
    'http://127.0.0.1:1/',
    { profile: home, browser: '/nowhere' },
    { version: '1' },
  );
  const opening = assert.rejects(app.open(), /The gateway is closing/);
  await app.close();
  await opening;
  await removeFolder(home);
});

test('a2a: a task whose app cannot be reached, or that is cancelled before, never began', async () => {
  const app = new App('ws://127.0.0.1:1/', {}, { version: '1' });
  const told = [];
  const emitStatus = (state, { parts, metadata }) =>
    told.push([state, metadata.outcome, parts[0].text]);
  const message = { parts: [{ data: { skill: 'x' } }] };
  for (const signal of [new AbortController().signal, AbortSignal.abort('enough')])
    await executor(app)({ task: { id: 't' }, message, signal, emitStatus });
  assert.deepEqual(told[0].slice(0, 2), ['failed', 'unstarted']);
  assert.match(told[0][2], /^DISCONNECTED: .*\nIt never began/s);
  assert.deepEqual(told[1].slice(0, 2), ['canceled', 'unstarted']);
  await app.close();
});

test("the blocks of a page's WebMCP tool are handed on as such, cleaned; others are data", async () => {
  const result = (content, isTool = true) =>
    toolResult({ success: true, data: { content }, isTool }, { files: new ResultFiles() });
  const blocks = [
    { type: 'text', text: 'a', forged: 1 },
    { type: 'image', data: 'iVBORw==', mimeType: 'image/png' },
  ];
  assert.deepEqual((await result(blocks)).content, [{ type: 'text', text: 'a' }, blocks[1]]);
  for (const [content, isTool] of [
    [blocks, false],
    [[{ type: 'resource_link', uri: 'file:///etc/passwd', name: 'x' }], true],
    [[{ type: 'image', data: '<svg>', mimeType: 'image/png' }], true],
    [[null], true],
    ['text', true],
  ]) {
    const made = await result(content, isTool);
    assert.deepEqual(made.structuredContent, { content });
  }
});

test('a page names no header that clients would have to send', () => {
  const inputSchema = { properties: { a: { type: 'string', 'x-mcp-header': 'Cookie' } } };
  const tool = toolOf({ name: 'x', inputSchema }, 'x');
  assert.deepEqual(tool.inputSchema.properties, { a: { type: 'string' } });
});

test('folders of gateways that were killed are cleared by the next; those of others stay', async (t) => {
  const before = process.env.TMPDIR;
  const folder = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  process.env.TMPDIR = folder;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    rmSync(folder, { recursive: true, force: true });
  });
  const { pid } = spawnSync(process.execPath, ['--version']);
  const [dead, alive, other] = [`${pid}-a`, `${process.pid}-b`, 'other'].map((name) =>
    join(folder, `abp-bridge-gateway-${name}`),
  );
  for (const path of [dead, alive, other]) {
    mkdirSync(path);
    writeFileSync(join(path, 'result.txt'), 'x');
  }
  const files = new ResultFiles();
  await files.keep({ bytes: new Uint8Array(1), mimeType: 'text/plain' });
  assert.deepEqual([dead, alive, other].map(existsSync), [false, true, true]);
  await files.close();
});

test('what became of a call is a sentence that says how far it came and what to do', () => {
  const report = { applied: 12, remaining: 28 };
  const progress = { progress: 12, total: 40, stage: 'pages' };
  for (const [became, sentence] of [
    [{}, ''],
    [{ outcome: 'cancelled' }, ''],
    [{ outcome: '__proto__' }, ''],
    [{ outcome: 'failed' }, ''],
    [
      { outcome: 'unstarted', report },
      'It never began, so nothing was done: it may be called again.',
    ],
    [{ outcome: 'stopped' }, 'It stopped before its end. What it had done stands.'],
    [
      { outcome: 'stopped', report, progress },
      'It stopped after 12 of 40 (pages). What it had done stands.',
    ],
    [
      {
        outcome: 'stopped',
        report: { applied: '12 of 40 pages', remaining: 'nothing of page 13 was written' },
      },
      'It stopped after 12 of 40 pages; remaining: nothing of page 13 was written. What it had done stands.',
    ],
    [
      { outcome: 'stopped', report: { applied: ['a', 'b'], remaining: ['c'] } },
      'It stopped after 2 of 3. What it had done stands.',
    ],
    [{ outcome: 'stopped', progress }, 'It stopped at 12 of 40 (pages). What it had done stands.'],
    [
      { outcome: 'running', progress: { percentage: 30.4 } },
      'It was told to stop and has not yet; it was last heard of at 30 %. It may still change something: look before you call it again.',
    ],
    [
      { outcome: 'unknown' },
      'Whether its work was done is not known: find out before you call it again.',
    ],
    [{ outcome: 'failed', report }, 'It failed after 12 of 40.'],
  ]) {
    assert.equal(sentenceOf(became), sentence);
  }
  assert.match(sentenceOf({ outcome: 'finished' }), /^It ran to its end.* Do not call it again\.$/);
  // What an app says is a stranger's.
  const odd = { applied: `a\u0007${'b'.repeat(5000)}`, remaining: { a: [null] } };
  const said = sentenceOf({ outcome: 'stopped', report: odd });
  assert.ok(
    said.length < 700 && said.includes('…; remaining: {"a":[null]}') && !said.includes('\u0007'),
  );
});

test('a result that is no success says what became of the work, for models and for programs', async () => {
  const report = { applied: 12, remaining: 28 };
  const response = {
    success: false,
    cancelled: true,
    error: { code: 'CANCELLED', message: 'enough', retryable: false },
    metadata: { outcome: 'stopped', report },
  };
  const { content, isError, _meta } = await toolResult(response, { files: new ResultFiles() });
  assert.equal(
    content[0].text,
    'CANCELLED: enough\nIt stopped after 12 of 40. What it had done stands.',
  );
  assert.deepEqual([isError, _meta['abp-bridge/outcome']], [true, { outcome: 'stopped', report }]);
});

test('how long a task is kept does not depend on the date, which may be set', (t) => {
  for (const hours of [-1, 1]) {
    const createdAt = new Date();
    const run = {
      id: 'r',
      state: 'working',
      createdAt,
      updatedAt: createdAt,
      began: performance.now(),
    };
    const later = Date.now() + hours * 3_600_000;
    t.mock.method(Date, 'now', () => later);
    const { ttl } = taskOf(run, false);
    assert.ok(ttl >= PATIENCE_WITH_CLIENTS && ttl < PATIENCE_WITH_CLIENTS + 60_000, `${ttl}`);
    assert.equal(taskOf(run, true).ttlMs >= PATIENCE_WITH_CLIENTS, true);
    t.mock.restoreAll();
  }
});
