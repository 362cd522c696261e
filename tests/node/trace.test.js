// What trace, debug and observe tell of a connection.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { useClock } from '../support/clock.js';
import { Raw } from '../support/raw.js';

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
  async 'asks.on'(_params, { elicit, signal }) {
    void elicit({ method: 'elicitation/input', params: 'on?', timeout: 60_000 });
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    signal.throwIfAborted();
  },
  async *flows() {
    yield 'chunk';
    return 'all';
  },
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
    onElicitation: ({ params }) => params !== 'on?' || new Promise(() => {}),
    trace,
    ...options,
  });
  return told;
}

/** The events of one capability in short. */
const eventsOf = (events, name) =>
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
      assert.deepEqual(eventsOf(agent, 'echo'), ['out call', 'out result completed']);
      assert.deepEqual(eventsOf(app, 'echo'), ['in call', 'in result completed']);
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
      assert.deepEqual(eventsOf(agent, 'hang'), ends('out'));
      assert.deepEqual(eventsOf(app, 'hang'), ends('in'));

      await client.call('fails');
      assert.deepEqual(eventsOf(app, 'fails'), ['in call', 'in result failed']);
      assert.equal(agent.at(-1).error.message, 'out of paper');
    });

    test('of calls that are refused, and why', async () => {
      const { agent, app } = await open({ upgrade, limits: { maxCalls: 1 } });
      await client.call('nothing');
      await client.call('closed');
      assert.deepEqual(eventsOf(app, 'nothing'), ['in refused UNKNOWN_CAPABILITY']);
      assert.deepEqual(eventsOf(app, 'closed'), ['in refused CAPABILITY_UNAVAILABLE']);
      const { callId } = app.find(({ name }) => name === 'closed');
      assert.equal(callId, agent.find(({ name }) => name === 'closed').callId);
      const [first, second] = [client.call('hang', {}, { timeout: 5 }), client.call('echo')];
      assert.equal((await second).error.code, 'RATE_LIMITED');
      assert.deepEqual(eventsOf(agent, 'echo'), ['out refused RATE_LIMITED']);
      await first;
      assert.deepEqual(eventsOf(agent, 'hang').at(-1), 'out result timed out');
    });

    test('of questions, and of the calls on whose behalf others are made', async () => {
      const { agent, app } = await open({ upgrade });
      await client.call('outer');
      const [outer, echo] = app.filter(({ type }) => type === 'call');
      assert.deepEqual(eventsOf(app, 'echo'), ['local call', 'local result completed']);
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

/**
 * Plays a bit of everything, and tells what messages each side has seen, without what each session
 * has of its own.
 */
async function seen(upgrade) {
  channel = new MessageChannel();
  // Each chunk is half of such a window, and granted.
  const { messages, agent } = await open({ upgrade, limits: { streamChunks: 1 } });
  const controller = new AbortController();
  await client.call('echo', { a: 1 }, { timeout: 60_000 });
  await client.call('steps', {}, { callId: 'mine', onProgress() {} });
  await client.call('fails');
  await client.call('asks');
  const stream = client.stream('flows');
  for await (const chunk of stream) assert.equal(chunk, 'chunk');
  const stopped = ['hang', 'asks.on'].map((name) =>
    client.call(name, {}, { signal: controller.signal }),
  );
  await client.call('echo');
  while (agent.filter(({ elicitation }) => elicitation).length < 3) await new Promise(setImmediate);
  controller.abort('enough');
  await Promise.all(stopped);
  const credit = { agent: 0, app: 0 };
  const shown = messages.flatMap(({ side, direction, message, frame }) => {
    const { type, id, payload } = message;
    // A frame does without the answer to a cancel, which has no id then.
    if (/^initialize|cancel-result$/.test(type)) return [];
    assert.equal(frame !== undefined, upgrade === 'frames', type);
    // How much of it goes together is a matter of time.
    if (type === 'bridge/credit') {
      credit[side] += payload.chunks;
      return [];
    }
    const words = JSON.stringify([
      side,
      direction,
      type,
      type.endsWith('/cancel') ? 0 : id,
      payload,
    ]);
    return words
      .replaceAll(client.sessionId, 'S')
      .replace(/"[0-9a-f]{20}-\d+(\.\d+)"/g, '"P$1"')
      .replace(/"duration":[\d.]+/g, '"duration":0');
  });
  exposed.close();
  client.close();
  return { shown: shown.sort(), credit };
}

test('frames are shown as the messages that would have travelled without them', async (t) => {
  t.mock.method(console, 'error', () => {}); // of what fails
  const [inFrames, alone] = [await seen('frames'), await seen('port')];
  assert.deepEqual(inFrames, alone);
  assert.deepEqual([...new Set(alone.shown.map((words) => JSON.parse(words)[2]))].sort(), [
    'bridge/cancel',
    'bridge/chunk',
    'capabilities/call',
    'capabilities/call-result',
    'capabilities/cancel',
    'elicitation/request',
    'elicitation/response',
    'progress',
  ]);
  assert.deepEqual(alone.credit, { agent: 1, app: 1 });
});

/** An app that is traced, and an agent that a test plays by hand. */
async function rawAgent(capabilities, trace) {
  exposed = expose({ app: APP, capabilities }, { port: channel.port1, trace });
  const raw = new Raw(channel.port2);
  const features = { 'bridge.frames': true, 'bridge.streams': true };
  await raw.ask('initialize', 'P', { agent: AGENT, protocolVersion: '0.1', features });
  return raw;
}

test('an entry of a frame that stands for nothing is shown as what it is, and part of one is not shown', async () => {
  const shown = [];
  const raw = await rawAgent(CAPABILITIES, ({ type, direction, frame, message }) => {
    if (type === 'message' && direction === 'in' && frame) shown.push([frame, message]);
  });
  raw.port.postMessage([99, 3, 'a', 'b', 1, 4, 'echo']);
  raw.port.postMessage([1, 5, 'echo']);
  raw.port.postMessage([1, 6, 'echo', {}]);
  await raw.next();
  assert.deepEqual(
    shown.map(([frame, { type, id, payload }]) => [frame, type, id, payload.params ?? payload]),
    [
      [1, 'entry 99 of a frame', 3, ['a', 'b']],
      // The third frame is the app's: what cannot be read has ended the session.
      [4, 'capabilities/call', 'P.6', {}],
    ],
  );
});

test('calls that wait for their turn say so, and when it has come', async () => {
  const { app } = await open({}, { limits: { maxConcurrent: 1 } });
  const controller = new AbortController();
  const first = client.call('hang', {}, { signal: controller.signal });
  const second = client.call('echo');
  while (!app.some(({ waiting }) => waiting)) await new Promise(setImmediate);
  controller.abort();
  await Promise.all([first, second]);
  assert.deepEqual(eventsOf(app, 'echo'), ['in call', 'in start', 'in result completed']);
});

test('sessions begin and end', async () => {
  const { agent, app } = await open();
  assert.deepEqual(
    app.filter(({ type }) => type === 'session').map(({ state }) => state),
    ['ready'],
  );
  client.close();
  assert.equal(agent.at(-1).state, 'closed');
});

test('what had no effect is told with its reason, and how often, when it was read', async () => {
  const told = [];
  const raw = new Raw(channel.port2);
  const connecting = connect(channel.port1, {
    agent: AGENT,
    limits: { streamChunks: 1 },
    trace: (event) => event.type === 'dropped' && told.push([event.reason, event.count]),
  });
  const features = { 'bridge.frames': true, 'bridge.streams': true };
  const session = { sessionId: 's', protocolVersion: '0.1', app: APP, capabilities: [], features };
  raw.send('initialize-result', (await raw.next()).id, session);
  client = await connecting;
  const called = client.call('x');
  const [, x] = await raw.next();
  const stream = client.stream('y');
  const [, y] = await raw.next();
  const chunk = [8, y, 1, 'chunk'];
  const result = [3, x, 0, 'data'];
  raw.port.postMessage(result);
  await called;
  for (const message of [
    [...result, ...result], // of a call that has ended
    [3, x + 100, 0, 'data'],
    7,
    { type: 'no/such' },
    [...chunk, ...chunk], // of which one has room
  ]) {
    raw.port.postMessage(message);
  }
  await assert.rejects(stream.response.then(({ error }) => Promise.reject(error)));
  assert.deepEqual(told, [
    ['late', 2],
    ['stray', 1],
    ['malformed', 1],
    ['unknown type', 1],
    ['overrun', 1],
  ]);
  client.close();
});

test('observe begins in the middle, with what is in flight, and ends', async () => {
  await open({ trace: undefined });
  const controller = new AbortController();
  const pending = client.call('hang', {}, { signal: controller.signal });
  const told = [];
  const stop = await client.observe((event) => event.type !== 'message' && told.push(event));
  assert.deepEqual(eventsOf(told, 'hang'), ['out call']);
  controller.abort();
  await pending;
  assert.deepEqual(eventsOf(told, 'hang').slice(-1), ['out result cancelled']);
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

test('who begins in the middle is told what the numbers in frames stand for, on either side', async () => {
  await open({ trace: undefined }, { trace: undefined });
  const controller = new AbortController();
  const pending = ['hang', 'asks.on'].map((name) =>
    client.call(name, {}, { signal: controller.signal }),
  );
  while (!exposed.counters[0].inFlightOut) await new Promise(setImmediate); // it has asked
  await client.call('echo');
  for (const side of [client, exposed]) {
    const told = [];
    const stop = await side.observe((event) => told.push(event));
    await client.call('asks');
    const ids = (types) =>
      told
        .filter(({ type, message }) => type === 'message' && types.includes(message.type))
        .map(({ message }) => message.id);
    const { callId } = told.findLast(({ type, name }) => type === 'call' && name === 'asks');
    const question = told.findLast(({ type, elicitation }) => type === 'call' && elicitation);
    assert.match(callId, /^[0-9a-f]{20}-1\.\d+$/);
    assert.deepEqual(ids(['capabilities/call', 'capabilities/call-result']), [callId, callId]);
    assert.match(question.callId, new RegExp(`^${client.sessionId}\\.\\d+$`));
    assert.deepEqual(ids(['elicitation/request', 'elicitation/response']), [
      question.callId,
      question.callId,
    ]);
    stop();
  }
  controller.abort();
  await Promise.all(pending);
});

test('each who observes is told until it stops, and each connection has a number', async () => {
  await open({ trace: undefined });
  const told = [[], []];
  const observe = (i) => client.observe((event) => told[i].push(event));
  const stopFirst = await observe(0);
  await client.call('echo');
  const stopSecond = await observe(1);
  const of = (events) => events.filter(({ name }) => name === 'echo').length;
  await client.call('echo');
  stopFirst();
  await client.call('echo');
  stopSecond();
  await client.call('echo');
  assert.deepEqual(told.map(of), [4, 4]);
  await observe(1);
  await client.call('echo');
  assert.equal(of(told[1]), 6);
  const { port1, port2 } = new MessageChannel();
  const numbers = new Set(told[0].map(({ connection }) => connection));
  const trace = ({ connection }) => numbers.add(connection);
  const another = expose({ app: APP, capabilities: {} }, { port: port1, trace });
  (await connect(port2, { agent: AGENT, trace })).close();
  another.close();
  assert.equal(numbers.size, 3);
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

test('a result tells how long its call took, and that its connection was lost', async (t) => {
  const { agent } = await open();
  const clock = useClock(t);
  const pending = client.call('hang');
  clock.advance(30);
  channel.port1.close();
  await pending;
  const { outcome, duration, error, response } = agent.find(({ type }) => type === 'result');
  assert.deepEqual([outcome, duration], ['disconnected', 30]);
  assert.deepEqual([error, error.code], [response.error, 'DISCONNECTED']);
});

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

test('whoever imports only the entry of driven pages can observe, too', () => {
  const entry = new URL('../../packages/automation/src/index.js', import.meta.url);
  const script = `import { Client } from '${entry}';
    const client = new Client(() => {}, { agent: ${JSON.stringify(AGENT)} });
    console.log(typeof (await client.observe(() => {})));`;
  const written = execFileSync(process.execPath, ['--input-type=module', '--eval', script]);
  assert.equal(String(written).trim(), 'function');
});

test('a trace that is no function is refused', async () => {
  await assert.rejects(connect(channel.port2, { agent: AGENT, trace: true }), /trace/);
  assert.throws(
    () => expose({ app: APP, capabilities: {} }, { port: channel.port1, trace: 'yes' }),
    /trace/,
  );
});

test('debug writes readable lines, with what is in them, and marks each call', async (t) => {
  const clock = useClock(t);
  const lines = [];
  t.mock.method(console, 'log', (...words) => lines.push(words));
  t.mock.method(console, 'error', (...words) => lines.push(words));
  performance.clearMeasures();
  const reports = [{ progress: 2, total: 8 }, { progress: 2, total: 0 }, { progress: 2 }];
  const capabilities = {
    ...CAPABILITIES,
    reports: (_params, { progress }) => reports.forEach(progress),
  };
  exposed = expose(
    { app: APP, capabilities },
    { port: channel.port1, debug: true, limits: { maxConcurrent: 1 } },
  );
  client = await connect(channel.port2, { agent: AGENT, debug: true, onElicitation: () => true });
  /** What was written since: the lines of each side, and what came after a line, by the line. */
  const written = () => {
    const sides = { agent: [], app: [] };
    for (const [line, ...values] of lines.splice(0)) {
      const [, side, words] = /^abp-bridge(?: (agent|app))?: (.*)$/.exec(line);
      sides[side ?? 'app'].push(values.length ? [words, ...values] : words);
    }
    return sides;
  };
  assert.deepEqual(written(), { agent: ['session ready'], app: ['session ready'] });

  const controller = new AbortController();
  const first = client.call('hang', 0, { callId: 'c1', signal: controller.signal });
  const second = client.call('echo', 1, { callId: 'c2' });
  while (!lines.some(([line]) => line.endsWith('c2: waits for its turn'))) {
    await new Promise(setImmediate);
  }
  clock.advance(12.34);
  controller.abort('enough');
  const results = await Promise.all([first, second]);
  const { agent, app } = written();
  assert.deepEqual(agent, [
    ['→ hang c1: called', 0],
    ['→ echo c2: called', 1],
    '→ hang c1: cancel: enough',
    ['→ hang c1: cancelled after 12.3 ms: CANCELLED: enough', results[0]],
    ['→ echo c2: completed after 12.3 ms', results[1]],
  ]);
  assert.deepEqual(
    app.map((line) => (typeof line === 'string' ? line : line[0])),
    [
      '← hang c1: called',
      '← echo c2: waits for its turn',
      '← hang c1: cancel: enough',
      '← hang c1: cancelled after 12.3 ms: CANCELLED: enough',
      '← echo c2: its turn has come',
      '← echo c2: completed after 12.3 ms',
    ],
  );

  await client.call('reports', {}, { callId: 'c3', onProgress() {} });
  const [, ...heard] = written().agent;
  assert.deepEqual(
    heard.map(([line]) => line),
    [
      '→ reports c3: progress 25%',
      '→ reports c3: progress 2',
      '→ reports c3: completed after 0 ms',
    ],
  );
  const about = { operationId: 'c3', ...reports[0], percentage: 25 };
  assert.deepEqual({ ...heard[0][1], ...about }, heard[0][1]);

  await client.call('outer', {}, { callId: 'c4' });
  assert.match(written().app[1][0], /^↻ echo \S+: called$/);
  await client.call('nothing', {}, { callId: 'c5' });
  assert.deepEqual(written().app, [
    '← nothing c5: refused: UNKNOWN_CAPABILITY: This app has no such capability: nothing',
  ]);
  channel.port2.postMessage({ type: 'no/such' });
  await client.call('fails', {}, { callId: 'c6' });
  const failed = written();
  assert.deepEqual(failed.app.slice(0, 2), ['dropped 1: unknown type', ['← fails c6: called', {}]]);
  assert.equal(failed.app[2][0], 'fails failed:');
  assert.equal(failed.agent[1][0], '→ fails c6: failed after 0 ms: OPERATION_FAILED: out of paper');
  client.close();
  assert.deepEqual(written().agent, ['session closed']);

  const marks = performance
    .getEntriesByType('measure')
    .filter(({ detail }) => detail.devtools.track === 'abp-bridge agent');
  assert.deepEqual(
    marks.map(({ name, duration, detail: { callId, outcome, devtools } }) => [
      name,
      Math.round(duration),
      callId,
      outcome,
      devtools.dataType,
    ]),
    [
      ['abp: hang', 12, 'c1', 'cancelled', 'track-entry'],
      ['abp: echo', 12, 'c2', 'completed', 'track-entry'],
      ['abp: reports', 0, 'c3', 'completed', 'track-entry'],
      ['abp: outer', 0, 'c4', 'completed', 'track-entry'],
      ['abp: nothing', 0, 'c5', 'failed', 'track-entry'],
      ['abp: fails', 0, 'c6', 'failed', 'track-entry'],
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

test('a message whose payload cannot be read is shown all the same', async (t) => {
  t.mock.method(console, 'error', () => {});
  const message = {
    type: 'notification',
    get payload() {
      throw new Error('no');
    },
  };
  const app = { app: APP, sessionId: 's', protocolVersion: '0.1', features: {}, capabilities: [] };
  const transport = {
    features: [],
    start() {},
    close() {},
    post: ({ type, id }) =>
      type === 'initialize' &&
      queueMicrotask(() => transport.onMessage({ type: 'initialize-result', id, payload: app })),
  };
  const told = [];
  const trace = (event) => told.push(event.message);
  const agent = await connect(transport, { agent: AGENT, trace });
  transport.onMessage(message);
  agent.close();
  assert.ok(told.includes(message));
});
