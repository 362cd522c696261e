/**
 * What stops a request besides its dialect's cancel, and what ends with it: two ends over a port,
 * and what was told beside what was done.
 */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { RpcError } from '../src/index.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';

const request = (id, method, params) => ({ jsonrpc: '2.0', id, method, params });
const note = (method, params) => ({ jsonrpc: '2.0', method, params });
const prompt = (id, sessionId = 's') => request(id, 'session/prompt', { sessionId, prompt: [] });
const stop = (sessionId = 's') => note('session/cancel', { sessionId });
const STOPPED = { stopReason: 'cancelled' };
const TOKEN = 'window/workDoneProgress/cancel';

/** Lets the event loop go round. */
const aTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A pair whose second peer works until its signal fires, and writes down what it did. */
function agents(t, dialect, method = 'session/prompt', options = {}) {
  const pair = peerPair(dialect, options);
  t.after(() => {
    pair.a.close();
    pair.b.close();
  });
  const done = [];
  const began = [];
  const waiting = [];
  pair.b.handle(method, async (params, { signal, id }) => {
    began.push(id);
    for (const look of waiting.splice(0)) look();
    await fired(signal);
    done.push(id);
    throw signal.reason;
  });
  const running = async (count) => {
    while (began.length < count) await new Promise((look) => waiting.push(look));
  };
  return { ...pair, done, began, running };
}

// --- ACP: `session/cancel` -----------------------------------------------------------------------

test('acp: session/cancel stops the prompts of its session, and of no other', async (t) => {
  const { a, b, done, running } = agents(t, 'acp');
  const listened = [];
  b.onNotification('session/cancel', (params) => listened.push(params));
  const ask = (sessionId) => a.request('session/prompt', { sessionId, prompt: [] });
  const [first, second, other] = [ask('s'), ask('s'), ask('other')];
  await running(3);
  a.notify('session/cancel', { sessionId: 'unknown' });
  a.notify('session/cancel');
  a.notify('session/cancel', { sessionId: { s: 1 } });
  a.notify('session/cancel', { sessionId: 's' });
  a.notify('session/cancel', { sessionId: 's' });
  assert.deepEqual(await Promise.all([first, second]), [STOPPED, STOPPED]);
  assert.deepEqual(done.toSorted(), [1, 2]);
  assert.equal(listened.length, 5);
  a.notify('session/cancel', { sessionId: 'other' });
  assert.deepEqual(await other, STOPPED);
});

test('acp: a prompt whose cancel was read together with it never runs', async (t) => {
  const { peer, post, quiet } = scriptedPeer('acp');
  t.after(() => peer.close());
  const ran = [];
  peer.handle('session/prompt', (_params, { id }) => void ran.push(id));
  await quiet();
  post(stop(), prompt(1), stop('other'), prompt(2), prompt(3, 'other'), stop());
  const heard = await quiet();
  assert.deepEqual(
    heard.map(({ id, result }) => [id, result]).toSorted(([a], [b]) => a - b),
    [
      [1, STOPPED],
      [2, STOPPED],
      [3, null],
    ],
  );
  assert.deepEqual(ran, [3]);
});

test('acp: who says both is answered once, and after the answer nothing happens', async (t) => {
  const { peer, post, quiet, heard } = scriptedPeer('acp');
  t.after(() => peer.close());
  peer.handle('session/prompt', async (_params, { signal }) => {
    throw await fired(signal);
  });
  await quiet();
  post(prompt(1));
  await quiet();
  post(stop(), note('$/cancel_request', { requestId: 1 }), stop());
  await quiet();
  post(stop(), note('$/cancel_request', { requestId: 1 }));
  await quiet();
  assert.deepEqual(heard, [{ jsonrpc: '2.0', id: 1, result: STOPPED }]);
});

for (const [how, end] of [
  ['an error of its own', () => new Error('on fire')],
  ["the dialect's error", () => new RpcError(-32800, 'Request cancelled')],
  ['the reason', (signal) => signal.reason],
])
  test(`acp: a stopped prompt that throws ${how} has stopReason cancelled`, async (t) => {
    const { a, b } = agents(t, 'acp');
    const began = gate();
    b.handle('session/prompt', async (_params, { signal }) => {
      began.open();
      await fired(signal);
      throw end(signal);
    });
    const answer = a.request('session/prompt', { sessionId: 's', prompt: [] });
    await began.opened;
    a.notify('session/cancel', { sessionId: 's' });
    assert.deepEqual(await answer, STOPPED);
  });

test('acp: what the handler returns in spite of it stands, and what it reported is told', async (t) => {
  const { a, b } = agents(t, 'acp');
  const began = gate();
  b.handle('session/prompt', async ({ prompt: [deaf] }, { signal, report, progress }) => {
    began.open();
    report({ applied: 3 });
    progress({ progress: 3 });
    await fired(signal);
    if (deaf) return { stopReason: 'end_turn' };
    throw signal.reason;
  });
  const deaf = a.request('session/prompt', { sessionId: 's', prompt: ['deaf'] });
  const reporting = a.request('session/prompt', { sessionId: 's', prompt: [] });
  await began.opened;
  a.notify('session/cancel', { sessionId: 's' });
  assert.deepEqual(await deaf, { stopReason: 'end_turn' });
  const _meta = { outcome: 'stopped', report: { applied: 3 }, progress: { progress: 3 } };
  assert.deepEqual(await reporting, { ...STOPPED, _meta });
});

test('acp: $/cancel_request alone, an AbortError unasked and the end are errors, as before', async () => {
  const { peer, post, quiet, heard } = scriptedPeer('acp');
  peer.handle('session/prompt', async ({ sessionId }, { signal }) => {
    if (sessionId === 'mine') throw new DOMException('Enough', 'AbortError');
    throw await fired(signal);
  });
  await quiet();
  post(prompt(1), prompt(2, 'mine'), prompt(3, 'open'));
  await quiet();
  post(note('$/cancel_request', { requestId: 1 }));
  await quiet();
  peer.close();
  await aTurn();
  assert.deepEqual(
    heard.map(({ id, error }) => [id, error?.code]),
    [
      [2, -32800],
      [1, -32800],
      [3, -32800],
    ],
  );
});

test('acp: a listener that throws is no reason not to stop', async (t) => {
  const { a, b, running } = agents(t, 'acp');
  const error = t.mock.method(console, 'error', () => {});
  b.onNotification('*', () => {
    throw new Error('no');
  });
  const answer = a.request('session/prompt', { sessionId: 's', prompt: [] });
  await running(1);
  a.notify('session/cancel', { sessionId: 's' });
  assert.deepEqual(await answer, STOPPED);
  assert.ok(error);
});

test('acp: cancelling a prompt sends session/cancel beside the cancel', async (t) => {
  const { a, running, sent, done } = agents(t, 'acp');
  const controller = new AbortController();
  const { signal } = controller;
  const answer = a.request('session/prompt', { sessionId: 's', prompt: [] }, { signal });
  await running(1);
  controller.abort();
  assert.deepEqual(await answer, STOPPED);
  assert.deepEqual(done, [1]);
  assert.deepEqual(sent('a2b').slice(1), [stop(), note('$/cancel_request', { requestId: 1 })]);
  assert.equal(sent('b2a').length, 1);
});

test('acp: an agent that knows only session/cancel stops, also when the clock or the end wants it', async () => {
  for (const end of ['signal', 'timeout', 'close', 'wait: false']) {
    const { peer, post, said, heard } = scriptedPeer('acp');
    const controller = new AbortController();
    const answer = outcome(
      peer.request(
        'session/prompt',
        { sessionId: 's', prompt: [] },
        {
          ...(end === 'timeout' ? { timeout: 1 } : { signal: controller.signal }),
          ...(end === 'wait: false' && { wait: false }),
        },
      ),
    );
    await said(1);
    if (end === 'close') peer.close();
    else if (end !== 'timeout') controller.abort();
    await said(3);
    assert.deepEqual(heard[1], stop(), end);
    post({ jsonrpc: '2.0', id: 1, result: STOPPED });
    const { ok, err } = await answer;
    if (end === 'signal') assert.deepEqual(ok, STOPPED);
    else assert.match(err.name, { timeout: /Timeout/, close: /Rpc/, 'wait: false': /Abort/ }[end]);
    peer.close();
    assert.equal(heard.length, 3, end);
  }
});

for (const [what, result, outcome] of [
  ['that the agent stops', STOPPED, 'stopped'],
  ['that the agent stops, and says more of', { ...STOPPED, usage: { tokens: 3 } }, 'stopped'],
  ['that the agent ends in spite of it', { stopReason: 'end_turn' }, 'finished'],
])
  test(`acp: a prompt whose time is over, and ${what}, is told as that`, async (t) => {
    const { peer, post, said } = scriptedPeer('acp');
    t.after(() => peer.close());
    const answer = peer.request('session/prompt', { sessionId: 's', prompt: [] }, { timeout: 1 });
    await said(3);
    post({ jsonrpc: '2.0', id: 1, result });
    await assert.rejects(answer, { name: 'TimeoutError', data: { timeout: 1, outcome } });
  });

test('acp: what the handler of such a prompt has reported is told, too', async (t) => {
  const { a, b } = agents(t, 'acp');
  b.handle('session/prompt', async (_params, { signal, report }) => {
    report({ applied: 3 });
    throw await fired(signal);
  });
  const answer = a.request('session/prompt', { sessionId: 's', prompt: [] }, { timeout: 1 });
  const data = { timeout: 1, outcome: 'stopped', report: { applied: 3 } };
  await assert.rejects(answer, { name: 'TimeoutError', data });
});

test('acp: of two prompts of a session the other is not stopped', async (t) => {
  const { a, running, sent, done } = agents(t, 'acp');
  const [first, second] = [new AbortController(), new AbortController()];
  const ask = ({ signal }) =>
    outcome(a.request('session/prompt', { sessionId: 's', prompt: [] }, { signal }));
  const answers = [ask(first), ask(second)];
  await running(2);
  first.abort();
  assert.equal((await answers[0]).err.name, 'AbortError');
  assert.deepEqual(done, [1]);
  second.abort();
  assert.deepEqual((await answers[1]).ok, STOPPED);
  const stops = sent('a2b').filter(({ method }) => method === 'session/cancel');
  assert.equal(stops.length, 1);
});

test('acp: other requests of the session are not its prompts', async (t) => {
  const { a, b, running, sent } = agents(t, 'acp');
  const began = gate();
  b.handle('session/load', async (_params, { signal }) => {
    began.open();
    throw await fired(signal);
  });
  const controller = new AbortController();
  const { signal } = controller;
  const load = outcome(a.request('session/load', { sessionId: 's' }, { signal }));
  const answer = a.request('session/prompt', { sessionId: 's', prompt: [] });
  await Promise.all([began.opened, running(1)]);
  a.notify('session/cancel', { sessionId: 's' });
  assert.deepEqual(await answer, STOPPED);
  assert.equal(a.counters.inFlightOut, 1);
  controller.abort();
  assert.equal((await load).err.code, -32800);
  assert.equal(sent('a2b').filter(({ method }) => method === 'session/cancel').length, 1);
});

for (const how of ['its signal', 'a notification of its own'])
  test(`acp: a client that stops a prompt by ${how} answers what asks for permission`, async (t) => {
    const { a, b, sent } = agents(t, 'acp');
    const opened = [];
    const closed = [];
    const allowed = [];
    const user = gate();
    const two = gate();
    // A dialog that closes, and one whose user says yes later.
    a.handle('session/request_permission', async ({ sessionId, deaf }, { signal }) => {
      opened.push(sessionId);
      if (opened.length === 3) two.open();
      if (!deaf) closed.push(await fired(signal));
      else await user.opened;
      return { outcome: { outcome: 'selected', optionId: 'yes' } };
    });
    const ask = (sessionId, deaf, context) =>
      context.request('session/request_permission', { sessionId, deaf, options: [] });
    b.handle('session/prompt', async ({ sessionId }, context) => {
      const answers = [ask(sessionId, false, context), ask(sessionId, true, context)];
      for (const answer of answers) answer.then((said) => allowed.push(said)).catch(() => {});
      await Promise.all(answers);
      allowed.push('worked');
    });
    const other = outcome(ask('other', true, b));
    const controller = new AbortController();
    const { signal } = controller;
    const answer = a.request('session/prompt', { sessionId: 's', prompt: [] }, { signal });
    await two.opened;
    if (how === 'its signal') controller.abort();
    else a.notify('session/cancel', { sessionId: 's' });
    assert.deepEqual(await answer, STOPPED);
    user.open();
    assert.deepEqual((await other).ok, { outcome: { outcome: 'selected', optionId: 'yes' } });
    await aTurn();
    assert.deepEqual(allowed, []);
    assert.equal(closed.length, 1);
    const answers = sent('a2b').filter(({ result }) => result?.outcome?.outcome === 'cancelled');
    assert.equal(answers.length, 2);
    const answered = sent('a2b').filter(({ method }) => method === undefined);
    assert.equal(answered.length, 3, 'each is answered once');
  });

test('acp: notifications that are sent before the core is loaded keep their order', async (t) => {
  const { a, sent, running } = agents(t, 'acp');
  const answer = a.request('session/prompt', { sessionId: 's', prompt: [] });
  a.notify('session/cancel', { sessionId: 's' });
  assert.deepEqual(await answer, STOPPED);
  assert.deepEqual(
    sent('a2b').map(({ method }) => method),
    ['session/prompt', 'session/cancel'],
  );
  assert.ok(running);
});

// --- LSP: `window/workDoneProgress/cancel` -------------------------------------------------------

test('lsp: the token of a request stops it, whatever its method; other tokens do not', async (t) => {
  const { a, b, done, running } = agents(t, 'lsp', 'workspace/symbol');
  const listened = [];
  b.onNotification(TOKEN, (params) => listened.push(params.token));
  const ask = (workDoneToken) =>
    outcome(a.request('workspace/symbol', { query: '', workDoneToken }));
  const [text, zero, digit] = [ask('t'), ask(0), ask('0')];
  await running(3);
  for (const token of ['unknown', 't', 0]) a.notify(TOKEN, { token });
  for (const stopped of [text, zero]) {
    const { err } = await stopped;
    assert.deepEqual([err.code, err.data.outcome], [-32800, 'stopped']);
  }
  assert.deepEqual(done, [1, 2]);
  assert.deepEqual(listened, ['unknown', 't', 0]);
  a.notify(TOKEN, { token: '0' });
  assert.equal((await digit).err.code, -32800);
});

test('lsp: so does a token that was created on its behalf, and no other', async (t) => {
  const { a, b } = agents(t, 'lsp', 'unused');
  const created = gate();
  const stopped = [];
  a.handle('window/workDoneProgress/create', () => null);
  b.handle('build', async ({ token }, { signal, request: ask }) => {
    await ask('window/workDoneProgress/create', { token });
    if (token === 2) created.open();
    await fired(signal);
    stopped.push(token);
    return { built: token };
  });
  const [first, second] = [1, 2].map((token) => a.request('build', { token }));
  await created.opened;
  a.notify(TOKEN, { token: 2 });
  assert.deepEqual(await second, { built: 2 });
  assert.deepEqual(stopped, [2]);
  a.notify(TOKEN, { token: 1 });
  assert.deepEqual(await first, { built: 1 });
});

test('lsp: cancelling a request that has a token sends its cancel beside; one without sends none', async (t) => {
  const { a, running, sent, done } = agents(t, 'lsp', 'work');
  for (const [at, [params, options]] of [
    [{ workDoneToken: 'mine' }, {}],
    [{}, { onProgress() {} }],
    [{}, {}],
  ].entries()) {
    const controller = new AbortController();
    const { signal } = controller;
    const answer = outcome(a.request('work', params, { ...options, signal }));
    await running(at + 1);
    controller.abort();
    const { err } = await answer;
    assert.deepEqual([err.name, err.data.outcome], ['AbortError', 'stopped']);
  }
  assert.deepEqual(done, [1, 2, 3]);
  const tokens = sent('a2b').filter(({ method }) => method === TOKEN);
  assert.deepEqual(
    tokens.map(({ params }) => params.token),
    ['mine', 'abp-bridge.work.2'],
  );
  assert.equal(sent('a2b').filter(({ method }) => method === '$/cancelRequest').length, 3);
});

// --- What a handler asks ends with its request ---------------------------------------------------

for (const dialect of ['acp', 'lsp', 'mcp']) {
  for (const waits of [undefined, true, false])
    test(`${dialect}: a permission granted after Stop is not acted on (wait: ${waits})`, async (t) => {
      const { a, b, sent } = agents(t, dialect, 'unused');
      const asked = gate();
      const granted = gate();
      const acts = [];
      const withdrawn = gate();
      const ended = gate();
      a.handle('ask', async (_params, { signal }) => {
        asked.open();
        void fired(signal).then(withdrawn.open);
        await granted.opened;
        return { granted: true };
      });
      b.handle('work', async (_params, { request: ask, signal }) => {
        const permission = await outcome(ask('ask', {}, { wait: waits }));
        ended.open([permission.err?.name, signal.aborted]);
        if (permission.ok) acts.push('deleted the files');
        if (permission.err) throw permission.err;
        return { done: true };
      });
      const controller = new AbortController();
      const { signal } = controller;
      const work = outcome(a.request('work', {}, { signal, wait: dialect !== 'mcp' }));
      await asked.opened;
      controller.abort();
      assert.deepEqual(await ended.opened, ['AbortError', true]);
      await withdrawn.opened; // it is cancelled at its peer, too
      granted.open();
      assert.equal((await work).err.name, 'AbortError');
      await b.request('ask', {});
      assert.deepEqual(acts, []);
      if (waits !== false && dialect !== 'mcp') assert.equal(b.counters.late, 1);
      assert.equal(sent('b2a').filter(({ method }) => method === 'ask').length, 2);
    });

  test(`${dialect}: a grant that crosses the cancel is not acted on`, async (t) => {
    const { peer, post, said, quiet } = scriptedPeer(dialect);
    t.after(() => peer.close());
    const acts = [];
    peer.handle('work', async (_params, { request: ask }) => {
      await ask('ask', {}, { wait: true });
      acts.push('worked');
      return {};
    });
    post(request('r', 'work', {}));
    const [{ id }] = await said(1);
    const cancel = {
      acp: '$/cancel_request',
      lsp: '$/cancelRequest',
      mcp: 'notifications/cancelled',
    };
    const params = dialect === 'lsp' ? { id: 'r' } : { requestId: 'r' };
    post(note(cancel[dialect], params), { jsonrpc: '2.0', id, result: { granted: true } });
    const heard = await quiet();
    assert.deepEqual(acts, []);
    assert.deepEqual(
      heard.slice(1).map(({ method, error }) => method ?? error?.code),
      dialect === 'mcp' ? [cancel.mcp] : [cancel[dialect], -32800],
    );
  });

  test(`${dialect}: what was granted before is, and a question asked after Stop is refused`, async (t) => {
    const { a, b } = agents(t, dialect, 'unused');
    const began = gate();
    const refused = gate();
    a.handle('ask', () => ({ granted: true }));
    b.handle('work', async (_params, { request: ask, signal }) => {
      assert.deepEqual(await ask('ask', {}), { granted: true });
      began.open();
      await fired(signal);
      refused.open((await outcome(ask('ask', {}))).err?.name);
    });
    const controller = new AbortController();
    const work = outcome(a.request('work', {}, { signal: controller.signal }));
    await began.opened;
    controller.abort();
    assert.equal(await refused.opened, 'AbortError');
    await work;
  });
}

for (const dialect of ['acp', 'lsp'])
  test(`${dialect}: a tree of requests is told at once, and answered from below`, async (t) => {
    const { a, b, sent } = agents(t, dialect, 'unused');
    const deep = gate();
    const failures = [];
    const ask =
      (name) =>
      async (_params, { request: inner }) => {
        const { err } = await outcome(inner(name, {}));
        failures.push([name, err?.name]);
        throw err;
      };
    b.handle('one', ask('two'));
    a.handle('two', ask('three'));
    b.handle('three', async (_params, { signal }) => {
      deep.open();
      throw await fired(signal);
    });
    const controller = new AbortController();
    const one = outcome(a.request('one', {}, { signal: controller.signal }));
    await deep.opened;
    controller.abort();
    assert.equal((await one).err.name, 'AbortError');
    assert.deepEqual(failures, [
      ['two', 'AbortError'],
      ['three', 'AbortError'],
    ]);
    assert.deepEqual(
      sent('b2a')
        .filter(({ error }) => error)
        .map(({ id }) => id),
      [2, 1],
    );
  });

test('lsp: parts and progress of a question that was stopped are late', async (t) => {
  const { peer, post, said, quiet } = scriptedPeer('lsp');
  t.after(() => peer.close());
  const seen = [];
  peer.handle('work', async (_params, { request: ask }) => {
    const onProgress = (info) => seen.push(info);
    await ask('ask', {}, { onProgress, onPartialResult: onProgress });
  });
  post(request('r', 'work', {}));
  const [{ params }] = await said(1);
  post(note('$/cancelRequest', { id: 'r' }));
  await quiet();
  for (const token of [params.workDoneToken, params.partialResultToken])
    post(note('$/progress', { token, value: { kind: 'report' } }));
  await quiet();
  assert.deepEqual(seen, []);
  assert.equal(peer.counters.late, 2);
});

// --- MCP: `tasks/cancel` -------------------------------------------------------------------------

/** A server whose `tools/call` is answered with a task that works until its signal fires. */
function taskServer(t, { answer = (taskId) => ({ task: { taskId, status: 'working' } }) } = {}) {
  const pair = peerPair('mcp');
  t.after(() => {
    pair.a.close();
    pair.b.close();
  });
  const tasks = new Map();
  const acts = [];
  let serial = 0;
  pair.b.handle('tools/call', (params, context) => {
    const taskId = `t${++serial}`;
    const task = { status: 'working', context };
    task.over = fired(context.signal).then(() => {
      task.status = 'cancelled';
      acts.push(`${taskId} stopped`);
    });
    tasks.set(taskId, task);
    return answer(taskId);
  });
  const taskOf = (taskId) => ({ taskId, status: tasks.get(taskId).status });
  pair.b.handle('tasks/get', ({ taskId }) => taskOf(taskId));
  pair.b.handle('tasks/cancel', async ({ taskId }) => {
    await tasks.get(taskId).over;
    return taskOf(taskId);
  });
  const cancels = () => pair.sent('a2b').filter(({ method }) => method === 'tasks/cancel');
  return { ...pair, tasks, acts, cancels };
}

test('mcp: tasks/cancel fires the signal of the request that was answered with the task', async (t) => {
  const { a, acts } = taskServer(t);
  await a.request('tools/call', {});
  await a.request('tools/call', {});
  assert.deepEqual(await a.request('tasks/cancel', { taskId: 't2' }), {
    taskId: 't2',
    status: 'cancelled',
  });
  assert.deepEqual(acts, ['t2 stopped']);
  await outcome(a.request('tasks/cancel', { taskId: 'unknown' }));
  await outcome(a.request('tasks/cancel'));
  assert.deepEqual(acts, ['t2 stopped']);
});

test('mcp: the signal of a request that was answered with a task stops the task, until it ends', async (t) => {
  for (const answer of [undefined, (taskId) => ({ resultType: 'task', taskId })]) {
    const { a, acts, cancels, tasks } = taskServer(t, { answer });
    const [stopped, ended] = [new AbortController(), new AbortController()];
    await a.request('tools/call', {}, { signal: stopped.signal });
    await a.request('tools/call', {}, { signal: ended.signal });
    tasks.get('t2').status = 'completed';
    await a.request('tasks/get', { taskId: 't2' });
    ended.abort();
    stopped.abort();
    stopped.abort();
    await tasks.get('t1').over;
    await a.request('tasks/get', { taskId: 't1' });
    assert.deepEqual(acts, ['t1 stopped']);
    assert.deepEqual(
      cancels().map(({ params }) => params),
      [{ taskId: 't1' }],
    );
  }
});

test('mcp: a task that is made in the moment of the cancel is stopped, since nobody knows of it', async (t) => {
  const { peer, post, said, quiet } = scriptedPeer('mcp');
  t.after(() => peer.close());
  const controller = new AbortController();
  const { signal } = controller;
  const answer = outcome(peer.request('tools/call', {}, { signal }));
  const kept = peer.request('tools/call', {});
  const [first, second] = await said(2);
  const made = (id, taskId) => ({ jsonrpc: '2.0', id, result: { task: { taskId } } });
  post(made(second.id, 'kept'));
  await kept;
  controller.abort();
  assert.equal((await answer).err.name, 'AbortError');
  // An answer that comes twice is no reason to stop what its caller follows.
  post(made(first.id, 'made'), made(second.id, 'kept'));
  const heard = (await quiet()).slice(2);
  assert.deepEqual(
    heard.map(({ method, params }) => [method, params.taskId]),
    [
      ['notifications/cancelled', undefined],
      ['tasks/cancel', 'made'],
    ],
  );
});

test('mcp: what a task asks for with something other than options is refused', async (t) => {
  const { a, tasks } = taskServer(t);
  await a.request('tools/call', {});
  const { context } = tasks.get('t1');
  for (const options of [new AbortController().signal, 5, null]) {
    const { err } = await outcome(context.request('ping', {}, options));
    assert.equal(err.code, 'INVALID_PARAMS', String(options));
  }
});

test('mcp: a peer that has closed leaves no listener on the signals of its tasks', async (t) => {
  const { signal } = new AbortController();
  for (const side of ['a', 'b']) {
    const pair = taskServer(t);
    await pair.a.request('tools/call', {}, { signal });
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    pair[side].close();
    await pair.a.closed;
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  }
});

test('mcp: what a task asked for ends with it, and it asks nothing more', async (t) => {
  const { a, tasks } = taskServer(t);
  const asked = gate();
  const user = gate();
  a.handle('elicitation/create', async () => {
    asked.open();
    await user.opened;
    return { action: 'accept' };
  });
  await a.request('tools/call', {});
  const { context } = tasks.get('t1');
  const question = outcome(context.request('elicitation/create', {}));
  await asked.opened;
  await a.request('tasks/cancel', { taskId: 't1' });
  user.open();
  assert.equal((await question).err.name, 'AbortError');
  assert.equal((await outcome(context.request('elicitation/create', {}))).err.name, 'AbortError');
});

test('what a request waited for before it began still comes, when its place has been that of a thousand others, and ends none of them', async (t) => {
  const { a, b } = peerPair('lsp', { b: { limits: { remembered: 1 } } });
  t.after(() => {
    a.close();
    b.close();
  });
  let accept;
  const verdict = new Promise((resolve) => (accept = resolve));
  let ran = 0;
  // As a pool has a task wait for its turn.
  const later = async (_params, call) => {
    call.postpone();
    await verdict;
    if (!call.beginWork()) throw call.signal.reason;
    return ++ran;
  };
  b.handle(
    'slow',
    Object.assign(() => {}, { later }),
  );
  b.handle('echo', (params) => params);
  b.handle('hangs', () => new Promise(() => {}));
  for (let i = 0; i < 32; i++) {
    const controller = new AbortController();
    const call = a.request('slow', {}, { signal: controller.signal });
    await a.request('echo', {});
    controller.abort();
    await assert.rejects(call, { name: 'AbortError' });
  }
  // A place has 1,023 handles, one after the other, and two places take turns.
  for (let i = 0; i < 2 * 1023 - 16; i++) await a.request('echo', {});
  const ended = [];
  for (let i = 0; i < 2; i++) {
    const end = (answer) => void ended.push(answer);
    a.request('hangs', {}).then(end, end);
  }
  await a.request('echo', {});
  accept();
  await a.request('echo', {});
  assert.deepEqual([ran, ended, b.counters.inFlightIn], [0, [], 2]);
});
