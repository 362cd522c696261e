// What needs no browser: names, texts, plain data, progress, questions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserPaths } from '../src/find-browser.js';
import { Gateway } from '../src/gateway.js';
import { toPlain } from '../src/plain.js';
import { profileOf } from '../src/profile.js';
import { progressSender } from '../src/progress.js';
import { formOf, responseOf } from '../src/questions.js';
import { ResultFiles } from '../src/result-files.js';
import { toolResult } from '../src/results.js';
import { progressView } from '../src/terminal.js';
import { cleanText } from '../src/texts.js';
import { ToolNames, prefixOf } from '../src/tool-names.js';
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

test('progress rises, however the app reports it, and the last hundred per cent is the result itself', () => {
  const sent = [];
  const { report, stop } = progressSender('t', async ({ progress }) => void sent.push(progress));
  for (const progress of [0, 5, 5, 3, NaN, 7]) report({ progress, total: 10 });
  report({ progress: 2, total: 10, status: 'again' });
  report({ progress: 10, total: 10 });
  report({ percentage: 90 });
  stop();
  report({ progress: 99, total: 100 });
  assert.deepEqual(sent, [0, 5, 7, 7.001, 90]);
});

test('a call that is silent gives a sign of life each 20 s, which rises, and none after its end', (t) => {
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

test('data that breaks the promise of outputSchema is a failure: clients would refuse it', async () => {
  const schema = { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] };
  const files = new ResultFiles();
  const kept = await toolResult({ success: true, data: { count: 1 } }, schema, files);
  assert.deepEqual([kept.isError, kept.structuredContent], [undefined, { count: 1 }]);
  const broken = await toolResult({ success: true, data: { count: 'many' } }, schema, files);
  assert.equal(broken.isError, true);
  assert.match(
    broken.content[0].text,
    /^OPERATION_FAILED: .*does not fit the schema that it promises/,
  );
});

test('an address on the web is a link; one on this machine is data', async () => {
  const types = async (downloadUrl) => {
    const data = { downloadUrl, mimeType: 'application/pdf', size: 5 };
    const result = await toolResult({ success: true, data }, undefined, new ResultFiles());
    return result.content.map(({ type }) => type);
  };
  assert.deepEqual(await types('https://files.example/1'), ['text', 'resource_link']);
  for (const url of ['file:///etc/passwd', 'javascript:alert(1)', 'data:,x', 5]) {
    assert.deepEqual(await types(url), ['text']);
  }
});
