// Several apps, hostile ones, long calls, and questions in the newer version.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connectClient } from './support/clients.js';
import { runGateway, withTimeFor } from './support/program.js';
import { startRaw } from './support/raw-client.js';
import { startSite } from './support/site.js';

const TASKS = 'io.modelcontextprotocol/tasks';
const textOf = ({ content }) => content.find(({ type }) => type === 'text').text;
let site;
before(async () => (site = await startSite()));
after(() => site.close());

/** @param {Awaited<ReturnType<typeof startRaw>>} raw */
async function end(raw) {
  raw.child.stdin.end();
  await raw.closed;
}

test('two apps serve one client at once, each behind its prefix', async () => {
  const mcp = await connectClient('1.x', {
    args: [
      'mcp',
      `one=${site.url({ name: 'one' })}`,
      `two=${site.url({ name: 'two' })}`,
      '--temporary',
    ],
  });
  const { tools } = await mcp.client.listTools();
  const names = tools.map(({ name }) => name);
  assert.ok(names.includes('one_text_echo') && names.includes('two_text_echo'));
  const stop = new AbortController();
  const from = site.lines.length;
  const hanging = mcp.call('one_work_hang', {}, { signal: stop.signal });
  await site.logged(/^one hang started/, from);
  assert.equal(textOf(await mcp.call('two_number_add', { a: 1, b: 2 })), '3');
  stop.abort('enough of one');
  await assert.rejects(hanging);
  assert.equal(await site.logged(/hang aborted/, from), 'one hang aborted: enough of one');
  await mcp.close();
});

test('a manifest serves the first tools/list while the browser starts', async () => {
  const capabilities = [{ name: 'number.add', description: 'from the manifest' }];
  const manifest = { abp: '0.1', app: { id: 'a', name: 'A', version: '1' }, capabilities };
  site.extra.set('/abp.json', { type: 'application/json', body: JSON.stringify(manifest) });
  site.extra.set('/with-manifest', {
    type: 'text/html',
    body: '<!doctype html><head><link rel="abp-manifest" href="/abp.json"></head>',
  });
  // This page has no app at all: what is listed can only be the manifest's.
  const answered = /^DISCONNECTED: .*has no app that answered/;
  const said = await withTimeFor(answered, async (seconds) => {
    const url = `${site.origin}/with-manifest`;
    const raw = await startRaw(['mcp', url, '--temporary', '--connect-timeout', seconds]);
    const { result } = await raw.request('tools/list');
    const tool = result.tools.find(({ name }) => name === 'number_add');
    assert.equal(tool.description, 'from the manifest');
    const called = await raw.answerTo(raw.call('number_add', { a: 1, b: 1 }));
    await end(raw);
    return called.result.content[0].text;
  });
  assert.match(said, answered);
});

test('nothing is started before it is needed', async () => {
  const from = site.lines.length;
  const raw = await startRaw(['mcp', site.url({ name: 'lazy' }), '--temporary']);
  await raw.request('resources/list');
  await raw.request('ping');
  assert.ok(!site.lines.slice(from).includes('lazy loaded'));
  await raw.request('tools/list');
  assert.ok(site.lines.slice(from).includes('lazy loaded'));
  await end(raw);
});

test('a hostile app: colliding names, a megabyte of description, and renames in the midst of a call', async () => {
  const changed = [];
  let heard = () => {};
  const mcp = await connectClient('2.x', {
    args: ['mcp', site.url({ name: 'hostile', hostile: 1_000_000 }), '--temporary'],
    onListChanged: () => (changed.push(true), heard()),
  });
  const { tools } = await mcp.client.listTools();
  const names = tools.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.ok(names.every((name) => /^[A-Za-z0-9_]{1,64}$/.test(name)));
  const toolFor = (title) => tools.find((tool) => tool.title === title);
  for (const [title, says] of [
    ['a.b', 'dot'],
    ['a-b', 'dash'],
    ['a_b', 'underscore'],
  ]) {
    assert.equal(textOf(await mcp.call(toolFor(title).name)), says);
  }
  assert.ok(toolFor('long.description').description.length <= 4096);
  assert.ok(!toolFor('long.description').description.includes('\u001b'));
  const listed = new Promise((resolve) => (heard = resolve));
  const renamed = await mcp.call('page_rename');
  assert.deepEqual(renamed.structuredContent, { renamed: true });
  await listed;
  const now = (await mcp.client.listTools()).tools.map(({ name }) => name);
  assert.ok(now.includes('number_plus') && !now.includes('number_add'));
  assert.equal(textOf(await mcp.call('number_plus', { a: 3, b: 4 })), '7');
  assert.match(textOf(await mcp.call('number_add', { a: 3, b: 4 })), /^UNKNOWN_CAPABILITY/);
  await mcp.close();
});

test('an app that says more of itself than 8 MiB is told so', async () => {
  const url = site.url({ name: 'endless', hostile: 9_000_000 });
  const tooLong = /longer than limits.* may have at most 8388608 bytes: shorten its descriptions/;
  const said = await withTimeFor(
    tooLong,
    async (seconds) => {
      const args = ['list', url, '--temporary', '--connect-timeout', seconds];
      const { code, stderr } = await runGateway(args);
      assert.equal(code, 3);
      return stderr;
    },
    4,
  );
  assert.match(said, tooLong);
});

test('text beyond the limit is a file, with its beginning in the message', async () => {
  const raw = await startRaw(['mcp', site.url(), '--temporary']);
  const { result } = await raw.answerTo(raw.call('text_long', { length: 2 << 20 }));
  const link = result.content.find(({ type }) => type === 'resource_link');
  assert.ok(JSON.stringify(result).length < 10_000);
  assert.match(result.content[0].text, /^The result has \d+ bytes and is in a file/);
  const read = await raw.request('resources/read', { uri: link.uri });
  assert.equal(JSON.parse(read.result.contents[0].text).text.length, 2 << 20);
  await end(raw);
});

test('a client that shows no forms is asked nothing, and the app learns it', async () => {
  for (const modern of [false, true]) {
    const raw = await startRaw(['mcp', site.url(), '--temporary'], { modern });
    const { result } = await raw.answerTo(raw.call('ask_confirm'));
    assert.equal(result.structuredContent.answer.error.code, 'NOT_SUPPORTED');
    await end(raw);
  }
});

describe('questions in the newer version', () => {
  let raw;
  before(async () => {
    const capabilities = { elicitation: { form: {} } };
    raw = await startRaw(['mcp', site.url(), '--temporary'], { modern: true, capabilities });
  });
  after(() => end(raw));
  const ask = async () => (await raw.answerTo(raw.call('ask_input'))).result;
  const answered = (result) => ({
    requestState: result.requestState,
    inputResponses: {
      [Object.keys(result.inputRequests)[0]]: { action: 'accept', content: { name: 'Ann' } },
    },
  });

  test('input_required carries the question, and its requestState brings the answer home, once', async () => {
    const asked = await ask();
    assert.equal(asked.resultType, 'input_required');
    const more = answered(asked);
    const { result } = await raw.answerTo(raw.call('ask_input', {}, more));
    assert.deepEqual(result.structuredContent.answer.data, { value: { name: 'Ann' } });
    const again = await raw.answerTo(raw.call('ask_input', {}, more));
    assert.match(again.error.message, /requestState is unknown, was used/);
  });

  test('a requestState that is forged, or of another request, is refused, and spoils nothing', async () => {
    const asked = await ask();
    const more = answered(asked);
    const forged = { ...more, requestState: `${more.requestState.slice(0, -1)}!` };
    assert.equal((await raw.answerTo(raw.call('ask_input', {}, forged))).error.code, -32602);
    const other = await raw.answerTo(raw.call('ask_confirm', {}, more));
    assert.equal(other.error.code, -32602);
    const { result } = await raw.answerTo(raw.call('ask_input', {}, more));
    assert.equal(result.structuredContent.answer.success, true);
  });

  test('an answer that is missing is asked for again', async () => {
    const { requestState } = await ask();
    const { result } = await raw.answerTo(raw.call('ask_input', {}, { requestState }));
    assert.equal(result.resultType, 'input_required');
    assert.notEqual(result.requestState, requestState);
    const done = await raw.answerTo(raw.call('ask_input', {}, answered(result)));
    assert.equal(done.result.structuredContent.answer.success, true);
  });
});

test('a call whose cancel comes while the user is asked takes its question back', async () => {
  const raw = await startRaw(['mcp', site.url(), '--temporary'], {
    capabilities: { elicitation: {} },
  });
  const from = site.lines.length;
  const id = raw.call('ask_input');
  const question = await raw.seen(({ method }) => method === 'elicitation/create');
  raw.cancel(id, 'never mind');
  await site.logged(/ask aborted: never mind/, from);
  await raw.seen(
    ({ method, params }) =>
      method === 'notifications/cancelled' && params.requestId === question.id,
  );
  await end(raw);
});

describe('calls that outlast patience', () => {
  const args = () => ['mcp', site.url(), '--temporary', '--patience', '0.3'];

  test('are answered with a handle, which is waited for, asked for and cancelled', async () => {
    const raw = await startRaw(args());
    const start = async (tool, params) => {
      const { result } = await raw.answerTo(raw.call(tool, params));
      return result._meta['abp-bridge/call'].handle;
    };
    const handle = await start('work_count', { wait: true });
    assert.match(textOf(await raw.use('call_status', handle)), /^work_count still runs/);
    assert.match(textOf(await raw.use('call_wait', handle)), /^work_count still runs/);
    await raw.answerTo(raw.call('work_finish'));
    const { structuredContent } = await raw.ended('call_wait', handle);
    assert.deepEqual(structuredContent, { counted: 100 });
    // Who cancels too late learns the truth.
    assert.deepEqual((await raw.use('call_cancel', handle)).structuredContent, { counted: 100 });
    const from = site.lines.length;
    const slow = await start('work_slow', { ms: 60_000 });
    assert.match(
      textOf(await raw.ended('call_cancel', slow)),
      /^CANCELLED: the client cancelled.*\nIt stopped .*What it had done stands\.$/,
    );
    await site.logged(/slow aborted: the client cancelled/, from);
    // Who waits hears of progress, who only asks does not.
    const hanging = (await raw.answerTo(raw.call('work_hang'))).result._meta['abp-bridge/call'];
    const ask = async (tool) => {
      const _meta = { progressToken: tool };
      const call = raw.call(tool, { handle: hanging.handle }, { _meta });
      return textOf((await raw.answerTo(call)).result);
    };
    let text;
    do text = await ask('call_status');
    while (!/^work_hang still runs \(.*begun\)/.test(text));
    await ask('call_wait');
    const progress = raw.messages.filter(({ method }) => method === 'notifications/progress');
    assert.deepEqual(
      progress.map(({ params }) => params),
      [{ progressToken: 'call_wait', progress: 1, total: 10, message: 'begun' }],
    );
    const unknown = await raw.answerTo(raw.call('call_wait', { handle: 'guessed' }));
    assert.equal(unknown.error.code, -32602);
    await end(raw);
  });

  test('are cancelled when their client goes away', async () => {
    const raw = await startRaw(args());
    const from = site.lines.length;
    await raw.answerTo(raw.call('work_slow', { ms: 60_000 }));
    await end(raw);
    assert.match(await site.logged(/slow aborted/, from), /the client disconnected/);
  });

  test('are tasks of 2025-11-25 where the client wants one', async () => {
    const raw = await startRaw(args());
    const task = { ttl: 60_000 };
    const begun = await raw.answerTo(raw.call('work_slow', { ms: 500 }, { task }));
    const { taskId, status } = begun.result.task;
    assert.equal(status, 'working');
    const { result } = await raw.request('tasks/result', { taskId });
    assert.deepEqual(result.structuredContent, { took: 500 });
    assert.equal((await raw.request('tasks/get', { taskId })).result.status, 'completed');
    assert.equal((await raw.request('tasks/cancel', { taskId })).error.code, -32602);
    const { error } = await raw.request('tasks/get', { taskId: 5 });
    assert.deepEqual([error.code, error.message], [-32602, 'taskId must be a string']);
    const from = site.lines.length;
    const long = await raw.answerTo(raw.call('work_slow', { ms: 60_000 }, { task }));
    await site.logged(/slow started/, from);
    const id = long.result.task.taskId;
    const cancelled = await raw.request('tasks/cancel', { taskId: id });
    assert.equal(cancelled.result.status, 'cancelled');
    assert.equal(cancelled.result._meta['abp-bridge/outcome'].outcome, 'stopped');
    await site.logged(/slow aborted: the client cancelled the task/, from);
    const { tasks } = (await raw.request('tasks/list')).result;
    assert.deepEqual(tasks.map(({ status }) => status).sort(), ['cancelled', 'completed']);
    await end(raw);
  });

  test('as tasks of 2025-11-25 ask their questions while their result is waited for', async () => {
    const raw = await startRaw(args(), { capabilities: { elicitation: {} } });
    const begun = await raw.answerTo(raw.call('ask_confirm', {}, { task: {} }));
    const { taskId } = begun.result.task;
    let status;
    do ({ status } = (await raw.request('tasks/get', { taskId })).result);
    while (status === 'working');
    assert.equal(status, 'input_required');
    assert.ok(!raw.messages.some(({ method }) => method === 'elicitation/create'));
    const id = raw.begin('tasks/result', { taskId });
    const asked = await raw.seen(({ method }) => method === 'elicitation/create');
    assert.equal(asked.params.message, 'Really?');
    const related = { 'io.modelcontextprotocol/related-task': { taskId } };
    assert.deepEqual(asked.params._meta, related);
    raw.write({ id: asked.id, result: { action: 'accept', content: { confirmed: true } } });
    const { result } = await raw.answerTo(id);
    assert.deepEqual(result.structuredContent.answer.data, { confirmed: true });
    assert.deepEqual(result._meta, related);
    assert.equal((await raw.request('tasks/get', { taskId })).result.status, 'completed');
    await end(raw);
  });

  test('are tasks of 2026-07-28 where the client knows them, and tasks/get tells what a cancel came to', async () => {
    const capabilities = { extensions: { [TASKS]: {} }, elicitation: { form: {} } };
    const raw = await startRaw(args(), { modern: true, capabilities });
    const task = async (name, params) => (await raw.answerTo(raw.call(name, params))).result;
    const get = async (taskId) => (await raw.request('tasks/get', { taskId })).result;
    const until = async (taskId, wanted) => {
      for (;;) {
        const found = await get(taskId);
        if (found.status === wanted) return found;
        assert.equal(found.status, 'working');
      }
    };
    const begun = await task('work_slow', { ms: 1500 });
    assert.deepEqual([begun.resultType, begun.status], ['task', 'working']);
    const done = await until(begun.taskId, 'completed');
    assert.deepEqual(done.result.structuredContent, { took: 1500 });
    // A cancel that comes too late is acknowledged, and changes nothing.
    const late = await raw.request('tasks/cancel', { taskId: begun.taskId });
    assert.equal(late.result.resultType, 'complete');
    assert.equal((await get(begun.taskId)).status, 'completed');
    const from = site.lines.length;
    const long = await task('work_slow', { ms: 60_000 });
    await raw.request('tasks/cancel', { taskId: long.taskId });
    await site.logged(/slow aborted: the client cancelled the task/, from);
    const { statusMessage, result } = await until(long.taskId, 'cancelled');
    assert.match(statusMessage, /^CANCELLED/);
    assert.equal(result, undefined);
    assert.equal((await raw.request('tasks/get', { taskId: 'guessed' })).error.code, -32602);
    await end(raw);
  });

  test('a question of a call that is a handle is put to the user while somebody waits for it', async () => {
    const raw = await startRaw(args(), { capabilities: { elicitation: {} } });
    const begun = await raw.answerTo(raw.call('ask_later', { ms: 1500 }));
    const { handle } = begun.result._meta['abp-bridge/call'];
    const asked = raw
      .seen(({ method }) => method === 'elicitation/create')
      .then(({ id }) => {
        raw.write({ id, result: { action: 'accept', content: { confirmed: true } } });
      });
    let result;
    do ({ result } = await raw.answerTo(raw.call('call_wait', { handle })));
    while (result._meta?.['abp-bridge/call']);
    await asked;
    assert.deepEqual(result.structuredContent.answer.data, { confirmed: true });
    await end(raw);
  });

  test('tasks/update answers the question of a task, by its key alone', async () => {
    const capabilities = { extensions: { [TASKS]: {} }, elicitation: { form: {} } };
    const raw = await startRaw(args(), { modern: true, capabilities });
    const begun = await raw.answerTo(raw.call('ask_later', { ms: 1500 }));
    const { taskId } = begun.result;
    const until = async (wanted) => {
      for (;;) {
        const { result } = await raw.request('tasks/get', { taskId });
        if (result.status === wanted) return result;
        assert.equal(result.status, 'working');
      }
    };
    const { inputRequests } = await until('input_required');
    const [[key, request]] = Object.entries(inputRequests);
    assert.deepEqual([request.method, request.params.message], ['elicitation/create', 'Still?']);
    const answer = { action: 'accept', content: { confirmed: true } };
    const update = (name) =>
      raw.request('tasks/update', { taskId, inputResponses: { [name]: answer } });
    assert.equal((await update('another')).error, undefined);
    assert.equal((await raw.request('tasks/get', { taskId })).result.status, 'input_required');
    await update(key);
    const { result } = await until('completed');
    assert.deepEqual(result.structuredContent.answer.data, { confirmed: true });
    await end(raw);
  });

  test('a client without the extension gets no task, and no tasks/get', async () => {
    const raw = await startRaw(args(), { modern: true });
    const { result } = await raw.answerTo(raw.call('work_slow', { ms: 1000 }));
    assert.equal(result.resultType, 'complete');
    const { handle } = result._meta['abp-bridge/call'];
    assert.equal((await raw.request('tasks/get', { taskId: handle })).error.code, -32021);
    await end(raw);
  });
});
