// Calls that are cancelled: when they settle, and the outcome that is reported.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RpcError } from '@abp-bridge/rpc';
import { SOURCES } from '../../../tests/support/stopped-sources.js';
import { fired, gate, outcome } from '../../rpc/tests/support/rpc.js';
import { turn, hostAndView, agentOfView } from './support/hosts-and-views.js';

const OUTCOME = 'abp-bridge/outcome';

/** A view that calls what its server runs. */
async function viewOfServer(t, run, reportsOutcomes = true, view = {}) {
  const server = (_method, params, context) => run(params, context);
  const both = await hostAndView(t, { reportsOutcomes, host: { server }, view });
  return { ...both, call: (options) => both.view.callTool('x', {}, options) };
}

test('a cancelled call rejects when its handler has ended', async (t) => {
  const started = gate();
  const unwound = gate();
  const { call } = await viewOfServer(t, async (_params, { signal }) => {
    started.open();
    await fired(signal);
    await unwound.opened;
    throw new Error('stopped');
  });
  const controller = new AbortController();
  const calling = outcome(call({ signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  assert.equal(await Promise.race([calling, turn().then(() => 'no')]), 'no');
  unwound.open();
  const { err } = await calling;
  assert.deepEqual(
    [err.name, err.message, err.data],
    ['AbortError', 'enough', { outcome: 'failed' }],
  );
  assert.equal(err.cause.message, 'stopped');
});

test('a cancelled call whose handler returns resolves', async (t) => {
  const started = gate();
  const { call } = await viewOfServer(t, async (_params, { signal }) => {
    started.open();
    await fired(signal);
    return { content: [], structuredContent: { done: true } };
  });
  const controller = new AbortController();
  const calling = call({ signal: controller.signal });
  await started.opened;
  controller.abort();
  assert.deepEqual((await calling).structuredContent, { done: true });
});

test('a cancelled call that does not return in time has the outcome running', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const [started, ended] = [gate(), gate()];
  const run = async () => {
    started.open();
    await ended.opened;
    return { content: [] };
  };
  const { call, sent } = await viewOfServer(t, run, true, { limits: { grace: 3000 } });
  const controller = new AbortController();
  const calling = outcome(call({ signal: controller.signal }));
  await started.opened;
  controller.abort();
  while (!sent('host').some(({ result }) => result?.outcome === 'running')) await turn();
  t.mock.timers.tick(3000);
  assert.deepEqual((await calling).err.data, { outcome: 'running' });
  t.mock.timers.reset();
  ended.open();
});

test('an answer that crosses the cancel counts', async (t) => {
  const controller = new AbortController();
  const { call, sent } = await viewOfServer(t, () => ({ content: [], n: 1 }));
  const before = sent('host').length;
  const calling = call({ signal: controller.signal });
  // The other side has answered, and nobody has read it.
  while (sent('host').length === before) await turn();
  controller.abort();
  assert.equal((await outcome(calling)).ok?.n, 1);
});

test('a call that is cancelled before it begins has the outcome unstarted', async (t) => {
  let ran = false;
  const { call, sent } = await viewOfServer(t, () => (ran = true));
  const before = sent('view').length;
  const controller = new AbortController();
  const calling = outcome(call({ signal: controller.signal }));
  while (sent('view').length === before) await turn();
  const { err: never } = await outcome(call({ signal: AbortSignal.abort('never') }));
  assert.deepEqual(never.data, { outcome: 'unstarted' });
  controller.abort('enough');
  const { err, ok } = await calling;
  // Whichever was first.
  if (ok === undefined) assert.deepEqual([ran, err.data], [false, { outcome: 'unstarted' }]);
});

test('where the other side reports no outcomes, a cancelled call rejects at once as unknown', async (t) => {
  const started = gate();
  const run = () => (started.open(), new Promise(() => {}));
  const { call, sent } = await viewOfServer(t, run, false);
  const controller = new AbortController();
  const calling = outcome(call({ signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  const { err } = await calling;
  assert.deepEqual([err.name, err.data], ['AbortError', { outcome: 'unknown' }]);
  assert.ok(sent('view').every(({ method }) => method !== OUTCOME));
});

test('the outcome of a cancelled call at a foreign server is unknown, unless the error of its client has it', async (t) => {
  for (const [thrown, became] of [
    [new DOMException('stopped', 'AbortError'), { outcome: 'unknown' }],
    [new RpcError(-32800, 'stopped', { outcome: 'stopped' }), { outcome: 'stopped' }],
    [new Error('broken'), { outcome: 'failed' }],
  ]) {
    const started = gate();
    const server = {
      async request(method, _params, { signal } = {}) {
        if (method === 'tools/list') return { tools: [{ name: 'x' }] };
        started.open();
        await fired(signal);
        throw thrown;
      },
    };
    const { view } = await hostAndView(t, { host: { server } });
    const controller = new AbortController();
    const calling = outcome(view.callTool('x', {}, { signal: controller.signal }));
    await started.opened;
    controller.abort('enough');
    assert.deepEqual((await calling).err.data, became);
  }
});

test('a timeout cancels, and rejects with a TimeoutError', async (t) => {
  for (const reportsOutcomes of [true, false]) {
    const run = (_params, { signal }) => fired(signal).then(() => Promise.reject(signal.reason));
    const { call } = await viewOfServer(t, run, reportsOutcomes);
    const { err } = await outcome(call({ timeout: 1 }));
    assert.equal(err.name, 'TimeoutError');
    // A clock may be quicker than the other side.
    const known = reportsOutcomes ? ['stopped', 'unstarted'] : ['unknown'];
    assert.ok(known.includes(err.data.outcome), err.data.outcome);
  }
});

test('outcomes are reported as long as the core remembers their calls, and malformed questions get unknown', async (t) => {
  const server = async (_method, _params, { signal }) => {
    if (!signal.aborted) await fired(signal);
    return { content: [] };
  };
  const { view, host, sent } = await hostAndView(t, {
    host: { server, limits: { remembered: 64 } },
  });
  for (let i = 0; i < 100; i++) {
    const controller = new AbortController();
    const calling = outcome(view.request('tools/call', { name: 'x' }, controller));
    while (!host.counters.inFlightIn) await turn();
    controller.abort();
    await calling;
    while (host.counters.inFlightIn) await turn();
  }
  const ids = sent('view').flatMap(({ id, method }) => (method === 'tools/call' ? [id] : []));
  const unknown = { outcome: 'unknown' };
  assert.deepEqual(await view.request(OUTCOME, { id: ids[0] }), unknown);
  const expected = { outcome: 'finished', result: { content: [] } };
  for (const settled of [false, true])
    assert.deepEqual(await view.request(OUTCOME, { id: ids[99], settled }), expected);
  for (const odd of [undefined, 5, { id: `${ids[99]}` }, { id: '__proto__' }, { id: { a: 1 } }])
    assert.deepEqual(await view.request(OUTCOME, odd), unknown);
});

test('a result that was delivered is not kept', async (t) => {
  const { view, sent } = await viewOfServer(t, () => ({ content: [] }));
  await view.request('tools/call', { name: 'x' });
  const { id } = sent('view').find(({ method }) => method === 'tools/call');
  assert.deepEqual(await view.request(OUTCOME, { id }), { outcome: 'finished' });
});

test('calls to a view whose app was closed are answered as unstarted', async (t) => {
  const { client, exposed } = await agentOfView(t, { work: () => 'done' });
  assert.equal((await client.call('work')).data, 'done');
  exposed.close();
  const { error, metadata } = await client.call('work');
  assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unstarted']);
});

for (const reportsOutcomes of [true, false]) {
  test(`a cancel reaches the handler, and is answered truthfully (the view ${reportsOutcomes ? 'reports' : 'does not report'} outcomes)`, async (t) => {
    const started = gate();
    const stopped = gate();
    const capabilities = {
      async hang(_params, { signal }) {
        started.open();
        stopped.open((await fired(signal)).message);
        throw signal.reason;
      },
    };
    const { client } = await agentOfView(t, capabilities, { reportsOutcomes });
    const calling = client.call('hang', {}, { callId: 'c' });
    await started.opened;
    const answer = await client.cancel('c', 'enough');
    assert.equal(answer.cancelled, reportsOutcomes);
    const { success, cancelled, error, metadata } = await calling;
    assert.deepEqual([success, cancelled, error.code], [false, true, 'CANCELLED']);
    assert.equal(metadata.outcome, reportsOutcomes ? 'stopped' : 'unknown');
    await stopped.opened;
  });

  test(`a cancel after the end is refused (the view ${reportsOutcomes ? 'reports' : 'does not report'} outcomes)`, async (t) => {
    const { client } = await agentOfView(t, { echo: (params) => params }, { reportsOutcomes });
    await client.call('echo', { a: 1 }, { callId: 'c' });
    const answers = [await client.cancel('c'), await client.cancel('c'), await client.cancel('d')];
    assert.deepEqual(
      answers.map(({ cancelled, reason }) => [cancelled, reason]),
      [
        [false, 'Operation already completed'],
        [false, 'Operation already completed'],
        [false, 'Operation not found'],
      ],
    );
  });
}

for (const [source, { outcome: expected, make }] of Object.entries(SOURCES))
  test(`a call of a view that streams ${source}: ${expected}`, async (t) => {
    t.mock.method(console, 'error', () => {});
    const began = gate();
    const { client } = await agentOfView(t, {
      work: (_params, { signal }) => {
        setTimeout(began.open);
        return make(signal);
      },
    });
    const controller = new AbortController();
    const calling = client.call('work', {}, { signal: controller.signal });
    await began.opened;
    controller.abort('enough');
    const { cancelled, metadata } = await calling;
    assert.deepEqual([cancelled, metadata.outcome], [true, expected]);
  });

test('a call whose cancel was accepted never succeeds', async (t) => {
  const started = gate();
  const { client } = await agentOfView(t, {
    async finish(_params, { signal }) {
      started.open();
      await fired(signal);
      return 'done all the same';
    },
  });
  const calling = client.call('finish', {}, { callId: 'c' });
  await started.opened;
  assert.equal((await client.cancel('c')).cancelled, true);
  assert.equal((await calling).cancelled, true);
  assert.equal((await client.cancel('c')).cancelled, true, 'every time');
});

test('a host closes its view when running calls have stopped', async (t) => {
  const started = gate();
  const unwound = gate();
  const { client, host } = await agentOfView(t, {
    async hang(_params, { signal }) {
      started.open();
      await fired(signal);
      await unwound.opened;
    },
  });
  const calling = client.call('hang');
  await started.opened;
  const closing = host.close({ reason: 'going', timeout: 600_000 }).then(() => 'closed');
  assert.equal(await Promise.race([closing, host.request('ping').then(() => 'open')]), 'open');
  unwound.open();
  assert.equal(await closing, 'closed');
  const { error } = await calling;
  assert.deepEqual([error.code, error.message], ['CANCELLED', 'going']);
});
