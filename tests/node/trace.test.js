// What trace, debug and observe tell of a connection.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, expose } from '../../js/index.js';
import { portTransport } from '../../js/transports/port.js';
import { useClock } from '../support/clock.js';

const APP = { id: 'a.b', name: 'A', version: '1' };
const AGENT = { name: 'a', version: '1' };
const hang = (_params, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
const CAPABILITIES = {
  hang,
  echo: (params) => params,
  steps(_params, { progress }) {
    progress({ progress: 1, total: 4 });
    return 'done';
  },
  fails() {
    throw new Error('out of paper');
  },
  outer: async (_params, { call }) => (await call('echo', 1)).data,
  asks: (_params, { elicit }) => elicit({ method: 'elicitation/confirm', params: 'sure?' }),
  closed: { handler: () => 1, available: false },
};

let channel, exposed, client;
beforeEach(() => (channel = new MessageChannel()));
afterEach(() => {
  channel.port1.close();
  channel.port2.close();
});

/** Opens both sides; what each is told is kept, except for messages, by side. */
async function open(options = {}, exposeOptions = {}) {
  const told = { agent: [], app: [], messages: [] };
  const trace = (event) => told[event.type === 'message' ? 'messages' : event.side].push(event);
  exposed = expose(
    { app: APP, capabilities: CAPABILITIES },
    { port: channel.port1, trace, ...exposeOptions },
  );
  client = await connect(channel.port2, {
    agent: AGENT,
    onElicitation: () => true,
    trace,
    ...options,
  });
  return told;
}

/** The events of one capability in short. */
const short = (events, name) =>
  events
    .filter((event) => event.name === name)
    .map(({ type, direction, outcome, error, reason }) =>
      [direction, type, outcome ?? error?.code ?? reason].filter(Boolean).join(' '),
    );

for (const upgrade of ['frames', 'none']) {
  describe(`with ${upgrade === 'none' ? 'messages' : 'frames'}, both sides are told`, () => {
    test('of a call and its result, with params, response and duration', async () => {
      const { agent, app } = await open({ upgrade });
      await client.call('echo', { a: 1 }, { timeout: 60_000 });
      assert.deepEqual(short(agent, 'echo'), ['out call', 'out result completed']);
      assert.deepEqual(short(app, 'echo'), ['in call', 'in result completed']);
      for (const events of [agent, app]) {
        const [call, result] = events.filter(({ name }) => name === 'echo');
        assert.deepEqual([call.params, call.timeout], [{ a: 1 }, 60_000]);
        assert.deepEqual(result.response.data, { a: 1 });
        assert.ok(result.duration >= 0 && result.time >= call.time);
        assert.equal(call.callId, result.callId);
      }
      assert.equal(agent.at(-1).callId, app.at(-1).callId);
      assert.match(agent.at(-1).callId, /\.\d+$/);
    });

    test('of progress, a cancel with its reason, and a failure', async () => {
      const { agent, app } = await open({ upgrade });
      await client.call('steps', {}, { onProgress() {} });
      assert.equal(app.find(({ type }) => type === 'progress').progress.percentage, 25);
      assert.equal(agent.find(({ type }) => type === 'progress').progress.total, 4);

      const controller = new AbortController();
      const pending = client.call('hang', {}, { signal: controller.signal });
      await client.call('echo');
      controller.abort('changed my mind');
      await pending;
      const ends = (side) => [
        `${side} call`,
        `${side} cancel changed my mind`,
        `${side} result cancelled`,
      ];
      assert.deepEqual(short(agent, 'hang'), ends('out'));
      assert.deepEqual(short(app, 'hang'), ends('in'));

      await client.call('fails');
      assert.deepEqual(short(app, 'fails'), ['in call', 'in result failed']);
      assert.equal(agent.at(-1).error.message, 'out of paper');
    });

    test('of calls that are refused, and why', async () => {
      const { agent, app } = await open({ upgrade, limits: { maxCalls: 1 } });
      await client.call('nothing');
      await client.call('closed');
      assert.deepEqual(short(app, 'nothing'), ['in refused UNKNOWN_CAPABILITY']);
      assert.deepEqual(short(app, 'closed'), ['in refused CAPABILITY_UNAVAILABLE']);
      const { callId } = app.find(({ name }) => name === 'closed');
      assert.equal(callId, agent.find(({ name }) => name === 'closed').callId);
      const [first, second] = [client.call('hang', {}, { timeout: 5 }), client.call('echo')];
      assert.equal((await second).error.code, 'RATE_LIMITED');
      assert.deepEqual(short(agent, 'echo'), ['out refused RATE_LIMITED']);
      await first;
      assert.deepEqual(short(agent, 'hang').at(-1), 'out result timed out');
    });

    test('of questions, and of the calls on whose behalf others are made', async () => {
      const { agent, app } = await open({ upgrade });
      await client.call('outer');
      const [outer, echo] = app.filter(({ type }) => type === 'call');
      assert.deepEqual(short(app, 'echo'), ['local call', 'local result completed']);
      assert.equal(echo.parent, outer.callId);
      await client.call('asks');
      const [asked] = agent.filter(({ elicitation }) => elicitation);
      assert.deepEqual([asked.direction, asked.params], ['in', 'sure?']);
      const [asks, question] = app.filter(({ type }) => type === 'call').slice(-2);
      assert.deepEqual([question.elicitation, question.parent], [true, asks.callId]);
    });

    test('of every message: what travels in a frame is shown as the message that it stands for', async (t) => {
      useClock(t); // On a slow machine initialize would be sent again.
      const { messages } = await open({ upgrade });
      messages.length = 0;
      await client.call('echo', { a: 1 }, { callId: 'mine', onProgress() {} });
      const said = messages.map(({ side, direction, message }) => [
        side,
        direction,
        message.type,
        message.payload.params ?? message.payload.data,
      ]);
      assert.deepEqual(said, [
        ['agent', 'out', 'capabilities/call', { a: 1 }],
        ['app', 'in', 'capabilities/call', { a: 1 }],
        ['app', 'out', 'capabilities/call-result', { a: 1 }],
        ['agent', 'in', 'capabilities/call-result', { a: 1 }],
      ]);
      assert.ok(messages.every(({ frame }) => (frame !== undefined) === (upgrade === 'frames')));
    });
  });
}

test('calls that wait for their turn say so, and when it has come', async () => {
  const { app } = await open({}, { limits: { maxConcurrent: 1 } });
  const controller = new AbortController();
  const first = client.call('hang', {}, { signal: controller.signal });
  const second = client.call('echo');
  while (!app.some(({ waiting }) => waiting)) await new Promise(setImmediate);
  controller.abort();
  await Promise.all([first, second]);
  assert.deepEqual(short(app, 'echo'), ['in call', 'in start', 'in result completed']);
});

test('sessions begin and end, and what had no effect is told with its reason', async (t) => {
  useClock(t);
  const { agent, app } = await open();
  assert.deepEqual(
    app.filter(({ type }) => type === 'session').map(({ state }) => state),
    ['ready'],
  );
  const via = portTransport(channel.port2);
  for (const message of [{ type: 'no/such' }, 7, { type: 'capabilities/cancel-result', id: 'x' }]) {
    via.post(message);
  }
  while (app.filter(({ type }) => type === 'dropped').length < 3) {
    await new Promise(setImmediate);
  }
  const reasons = app.filter(({ type }) => type === 'dropped').map(({ reason }) => reason);
  assert.deepEqual(reasons, ['unknown type', 'malformed', 'unknown type']);
  client.close();
  assert.equal(agent.at(-1).state, 'closed');
});

test('observe begins in the middle, with what is in flight, and ends', async () => {
  await open({ trace: undefined });
  const controller = new AbortController();
  const pending = client.call('hang', {}, { signal: controller.signal });
  const told = [];
  const stop = await client.observe((event) => event.type !== 'message' && told.push(event));
  assert.deepEqual(short(told, 'hang'), ['out call']);
  controller.abort();
  await pending;
  assert.deepEqual(short(told, 'hang').slice(-1), ['out result cancelled']);
  stop();
  const { length } = told;
  await client.call('echo');
  assert.equal(told.length, length);
});

test('observe begins with every call that is in flight', async () => {
  await open({ trace: undefined });
  const controller = new AbortController();
  const calls = ['first', 'second'].map((callId) =>
    client.call('hang', {}, { callId, signal: controller.signal }),
  );
  const told = [];
  await client.observe((event) => event.type === 'call' && told.push(event.callId));
  assert.deepEqual(told.sort(), ['first', 'second']);
  controller.abort();
  await Promise.all(calls);
});

for (const upgrade of ['frames', 'none']) {
  test(`a cancel by an id names that and no call (${upgrade})`, async () => {
    const { agent } = await open({ upgrade });
    const called = client.call('hang', {}, { callId: 'mine' });
    await client.cancel('mine');
    await client.cancel('of nobody');
    await called;
    const cancels = agent.filter(({ type }) => type === 'cancel');
    assert.deepEqual(
      cancels.map(({ direction, name, callId }) => [direction, name, callId]),
      [
        ['out', undefined, 'mine'],
        ['out', undefined, 'of nobody'],
      ],
    );
  });

  test(`messages have the ids of their calls (${upgrade})`, async (t) => {
    useClock(t);
    const { messages } = await open({ upgrade });
    messages.length = 0;
    const { callId } = await new Promise((resolve) => {
      const stop = client.observe((event) => event.type === 'call' && resolve(event));
      void stop.then(() => client.call('steps', {}, { onProgress() {} }));
    });
    while (
      !messages.some(
        ({ side, message }) =>
          side === 'agent' && message.id === callId && message.type === 'capabilities/call-result',
      )
    )
      await new Promise(setImmediate);
    for (const side of ['agent', 'app']) {
      const ids = messages
        .filter((each) => each.side === side && /call/.test(each.message.type))
        .map(({ message }) => message.id);
      assert.deepEqual(ids, [callId, callId]);
    }
  });
}

test('a listener that throws is reported and costs nobody anything', async (t) => {
  const reported = t.mock.method(console, 'error', () => {});
  const trace = () => {
    throw new Error('mine');
  };
  await open({ trace }, { trace });
  assert.equal((await client.call('echo', 1)).data, 1);
  client.close();
  exposed.close();
  assert.ok(reported.mock.callCount() > 0);
});

test('what a peer gives as a name or an id is told only if it is text', async () => {
  const { app } = await open({ upgrade: 'none' });
  const payload = { capability: { no: 'name' }, callId: { no: 'id' } };
  channel.port2.postMessage({ type: 'capabilities/call', payload });
  await client.call('echo', 1);
  const { type, name, callId, params } = app.find((event) => event.type === 'refused');
  assert.deepEqual([type, name, callId, params], ['refused', undefined, undefined, {}]);
});

test('a trace that is no function is refused', async () => {
  await assert.rejects(connect(channel.port2, { agent: AGENT, trace: true }), /trace/);
  assert.throws(
    () => expose({ app: APP, capabilities: {} }, { port: channel.port1, trace: 'yes' }),
    /trace/,
  );
});

test('debug writes readable lines and marks each call', async (t) => {
  useClock(t);
  const lines = [];
  t.mock.method(console, 'log', (line) => lines.push(line));
  t.mock.method(console, 'error', (line) => lines.push(line));
  performance.clearMeasures();
  await open({ trace: undefined, debug: true }, { trace: undefined });
  await client.call('steps', { a: 1 }, { callId: 'c1', onProgress() {} });
  await client.call('fails', {}, { callId: 'c2' });
  client.close();
  assert.deepEqual(
    lines.map((line) => line.replace(/[\d.]+ ms/, '… ms')),
    [
      'abp-bridge agent: session ready',
      'abp-bridge agent: → steps c1: called',
      'abp-bridge agent: → steps c1: progress 25%',
      'abp-bridge agent: → steps c1: completed after … ms',
      'abp-bridge agent: → fails c2: called',
      'abp-bridge: fails failed:',
      'abp-bridge agent: → fails c2: failed after … ms: OPERATION_FAILED: out of paper',
      'abp-bridge agent: session closed',
    ],
  );
  const marks = performance.getEntriesByType('measure');
  assert.deepEqual(
    marks.map(({ name, detail }) => [name, detail.callId, detail.outcome]),
    [
      ['abp: steps', 'c1', 'completed'],
      ['abp: fails', 'c2', 'failed'],
    ],
  );
});

test('a handler that throws shows its stack in the console of the app', async (t) => {
  const error = t.mock.method(console, 'error', () => {});
  await open();
  await client.call('fails');
  const [line, thrown] = error.mock.calls[0].arguments;
  assert.equal(line, 'abp-bridge: fails failed:');
  assert.match(thrown.stack, /trace\.test\.js:\d+/);
});
