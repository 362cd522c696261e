// What a tracer makes of frames and of the core's actions, and what is printed of an event. The endpoints are the test's own.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { Observers } from '../../js/session/observers.js';
import { Tracer, announce, lineOf, print } from '../../js/session/trace.js';
import { useClock } from '../support/clock.js';

/** As much of an endpoint as its observers use. The id of a call is its handle. @param {abp.Role} role @param {object[]} [records] */
const endpointOf = (role, records = []) => ({
  role,
  core: { x: { count: () => 0 }, pointer: 0, idText: (handle) => `${handle}` },
  machine: { find: (matches) => records.find(matches) },
  closing: undefined,
  observer: undefined,
  observe(observer) {
    this.observer = observer;
  },
});
const made = (name, handle, more) => ({ name, params: {}, timeout: 0, handle, ...more });
const received = (name, handle, key, more) => ({
  request: { name, params: {}, timeout: 0, key },
  handle,
  isLocal: false,
  ...more,
});

let told;
beforeEach(() => (told = []));
/** Observes an endpoint; what is told of it is kept, without when and where. */
function trace(role, records) {
  const listener = ({ time: _time, connection: _connection, side: _side, ...event }) =>
    told.push(event);
  return new Tracer(endpointOf(role, records), new Set([listener]));
}

const GREETING = { type: 'initialize', id: 'P', payload: {} };
const WELCOME = { type: 'initialize-result', id: 'P', payload: { sessionId: 'S' } };

describe('an entry of a frame is shown as the message that it stands for', () => {
  /** By who sends them: entries and messages. */
  const ENTRIES = {
    agent: [
      [
        [1, 3, 'x', { a: 1 }],
        {
          type: 'capabilities/call',
          id: 'P.3',
          payload: {
            capability: 'x',
            params: { a: 1 },
            callId: 'P.3',
            options: { callId: 'P.3' },
          },
        },
      ],
      [
        [4, 2, undefined, { success: true }],
        { type: 'elicitation/response', id: 'S.2', payload: { success: true } },
      ],
      [
        [7, 'mine', 'enough', 0],
        { type: 'capabilities/cancel', payload: { callId: 'mine', reason: 'enough' } },
      ],
      [
        [8, 2, 5, 'chunk'],
        { type: 'bridge/chunk', payload: { callId: 'S.2', size: 5, chunk: 'chunk' } },
      ],
      [[9, 3, 2, 10], { type: 'bridge/credit', payload: { callId: 'P.3', chunks: 2, bytes: 10 } }],
    ],
    app: [
      [
        [2, 1, 'ask', ['sure?', 50]],
        {
          type: 'elicitation/request',
          id: 'S.1',
          payload: { method: 'ask', params: 'sure?', timeout: 50 },
        },
      ],
      [
        [3, 3, 12, 'data'],
        {
          type: 'capabilities/call-result',
          id: 'P.3',
          payload: { success: true, data: 'data', metadata: { duration: 12 } },
        },
      ],
      [
        [5, 3, undefined, { progress: 1 }],
        { type: 'progress', payload: { progress: 1, operationId: 'P.3' } },
      ],
      [
        [7, 1, 'enough', 0],
        { type: 'bridge/cancel', payload: { callId: 'S.1', reason: 'enough' } },
      ],
      [
        [8, 3, 5, 'chunk'],
        { type: 'bridge/chunk', payload: { callId: 'P.3', size: 5, chunk: 'chunk' } },
      ],
      [[6, 0, undefined, { type: 'other' }], { type: 'other' }],
      [[99, 3, 'a', 'b'], { type: 'entry 99 of a frame', id: 3, payload: ['a', 'b'] }],
    ],
  };

  for (const [sender, entries] of Object.entries(ENTRIES)) {
    for (const side of ['agent', 'app']) {
      test(`sent by the ${sender}, and seen by the ${side}`, () => {
        const tracer = trace(side === 'agent' ? abp.AGENT : abp.APP);
        tracer.message(side === 'agent', GREETING);
        tracer.message(side === 'app', WELCOME);
        tracer.message(side === 'app', { type: 'notification', id: 'Q', payload: {} });
        told.splice(0);
        tracer.message(
          side === sender,
          entries.flatMap(([entry]) => entry),
        );
        assert.deepEqual(
          told,
          entries.map(([, message]) => ({
            type: 'message',
            direction: side === sender ? 'out' : 'in',
            frame: 1,
            message,
          })),
        );
      });
    }
  }

  test('frames are numbered, and of a part of an entry nothing is shown', () => {
    const tracer = trace(abp.AGENT);
    tracer.message(true, [1, 1, 'x', {}]);
    tracer.message(true, [1, 2, 'x', {}, 1, 3, 'x']);
    tracer.message(true, [1, 4, 'x']);
    assert.deepEqual(
      told.map(({ frame, message }) => [frame, message.id]),
      [
        [1, '.1'],
        [2, '.2'],
      ],
    );
  });

  test('with the ids of a handshake that says none', () => {
    const tracer = trace(abp.AGENT);
    tracer.message(true, { type: 'initialize', id: 7 });
    tracer.message(false, { type: 'initialize-result' });
    tracer.message(true, [...[1, 1, 'x', {}], ...[4, 2, undefined, {}]]);
    assert.deepEqual(
      told.slice(2).map(({ message }) => message.id),
      ['.1', '.2'],
    );
  });
});

describe('who begins in the middle', () => {
  test('is told of the calls in flight, and of nothing else that the core keeps', () => {
    trace(abp.AGENT, [
      made('first', 1),
      made('ended', 0),
      { handle: 2, callId: 'cancelled by its id' },
      received('ask', 'S-1.3', 3),
    ]);
    assert.deepEqual(told, [
      { type: 'call', direction: 'out', name: 'first', callId: '1', params: {} },
      {
        type: 'call',
        direction: 'in',
        name: 'ask',
        elicitation: true,
        callId: 'S-1.3',
        params: {},
      },
    ]);
  });

  for (const [role, sent] of [
    [abp.AGENT, true],
    [abp.APP, false],
  ]) {
    test(`learns from them what the numbers in frames stand for (role ${role})`, () => {
      const call = sent ? made('x', 'P-1.1') : received('x', 'P-1.1', 1);
      const question = sent ? received('ask', 'S-1.2', 2) : made('ask', 'S-1.2');
      const own = received('own', 'other.3', undefined, { isLocal: true });
      const named = sent
        ? made('named', 'named.4', { callId: 'mine' })
        : received('named', 'named.4', 'mine');
      const tracer = trace(role, [...(sent ? [] : [own]), named, call, question]);
      told.splice(0);
      tracer.message(sent, [...[1, 5, 'x', {}], ...[4, 6, undefined, {}]]);
      assert.deepEqual(
        told.map(({ message }) => message.id),
        ['P-1.5', 'S-1.6'],
      );
    });
  }
});

test('what had no effect is told with its reason, and how often, once it has been read', () => {
  const counts = { [abp.LATE]: 3 };
  const endpoint = endpointOf(abp.APP);
  endpoint.core.x.count = (_pointer, counter) => counts[counter] ?? 0;
  const tracer = new Tracer(endpoint, new Set([(event) => told.push(event)]));
  tracer.read();
  for (const counter of [abp.LATE, abp.STRAY, abp.MALFORMED, abp.UNKNOWN_TYPE, abp.OVERRUN]) {
    counts[counter] = (counts[counter] ?? 0) + 2;
    tracer.read();
  }
  tracer.read();
  assert.deepEqual(
    told.map(({ type, reason, count }) => [type, reason, count]),
    ['late', 'stray', 'malformed', 'unknown type', 'overrun'].map((why) => ['dropped', why, 2]),
  );
});

describe('of a call', () => {
  test('that waited for its turn the start is told, and no second call', () => {
    const tracer = trace(abp.APP);
    const call = received('x', 'P.1', 1);
    tracer.action(abp.QUEUED, 0, call, call, undefined);
    tracer.action(abp.START, 0, call, call, undefined);
    const about = { direction: 'in', name: 'x', callId: 'P.1' };
    assert.deepEqual(told, [
      { type: 'call', ...about, params: {}, waiting: true },
      { type: 'start', ...about },
    ]);
  });

  test('is told on whose behalf it is made', () => {
    const outer = received('outer', 'P.1', 1);
    const other = received('other', 'P.2', 2);
    const tracer = trace(abp.APP, [outer, other]);
    told.splice(0);
    const inner = received('inner', 'P.3', undefined, { isLocal: true });
    tracer.begin(inner, 'P.1');
    tracer.action(abp.START, 0, inner, inner, undefined);
    const question = made('ask', 'S.1', { timeout: 5 });
    tracer.begin(question, 0);
    tracer.action(abp.REQUEST, 0, question, question, undefined);
    assert.deepEqual(told, [
      {
        type: 'call',
        direction: 'local',
        name: 'inner',
        callId: 'P.3',
        parent: 'P.1',
        params: {},
      },
      {
        type: 'call',
        direction: 'out',
        name: 'ask',
        elicitation: true,
        callId: 'S.1',
        params: {},
        timeout: 5,
      },
    ]);
  });

  test('that is refused the id is told as in its message, if it is one', () => {
    const tracer = trace(abp.APP);
    tracer.message(false, GREETING);
    told.splice(0);
    for (const key of [7, 'mine', { no: 'id' }, undefined]) tracer.end(received('x', 0, key), {});
    assert.deepEqual(
      told.map(({ type, callId }) => [type, callId]),
      [
        ['refused', 'P.7'],
        ['refused', 'mine'],
        ['refused', undefined],
        ['refused', undefined],
      ],
    );
  });

  test('is told how long it took, and how it ended', (t) => {
    const clock = useClock(t);
    const OUTCOMES = [
      ['completed', { success: true }],
      ['failed', { success: false, error: { code: 'OWN' } }],
      ['cancelled', { success: false, cancelled: true, error: { code: 'CANCELLED' } }],
      ['timed out', { success: false, cancelled: true, error: { code: 'TIMEOUT' } }],
      ['disconnected', { success: false, error: { code: 'DISCONNECTED' } }],
    ];
    const tracer = trace(abp.AGENT);
    for (const [i, [outcome, response]] of OUTCOMES.entries()) {
      const call = made('x', i + 1);
      tracer.action(abp.REQUEST, 0, call, call, undefined);
      clock.advance(30);
      tracer.end(call, response);
      const about = { type: 'result', direction: 'out', name: 'x', callId: `${i + 1}` };
      const { error } = response;
      assert.deepEqual(told.at(-1), {
        ...about,
        outcome,
        duration: 30,
        response,
        ...(error && { error }),
      });
    }
  });

  test('a cancel is told by its reason, whatever has caused it', () => {
    const call = made('x', 1, { reason: 'enough' });
    const tracer = trace(abp.AGENT, [call]);
    told.splice(0);
    for (const context of [undefined, { type: 'shutdown' }]) {
      tracer.action(abp.SEND, abp.MSG_CANCEL, call, context, undefined);
    }
    const about = { direction: 'out', name: 'x', callId: '1' };
    const event = { type: 'cancel', ...about, reason: 'enough' };
    assert.deepEqual(told, [event, event]);
  });

  test('that is not known here progress is told all the same', () => {
    trace(abp.AGENT).action(abp.REPORT, 0, undefined, { progress: 1 }, undefined);
    assert.deepEqual(told, [{ type: 'progress', progress: { progress: 1 } }]);
  });
});

test('each connection has a number of its own', () => {
  const numbers = new Set();
  const listeners = new Set([({ connection }) => numbers.add(connection)]);
  for (const role of [abp.AGENT, abp.APP]) {
    new Tracer(endpointOf(role), listeners).message(true, GREETING);
  }
  const [first, second] = numbers;
  assert.equal(second, first + 1);
});

describe('an event as a line', () => {
  const about = { direction: 'in', name: 'print', callId: 'c1' };
  const error = { code: 'OWN', message: 'no paper' };
  for (const [event, line] of [
    [{ type: 'call', ...about }, '← print c1: called'],
    [{ type: 'call', ...about, waiting: true }, '← print c1: waits for its turn'],
    [{ type: 'start', ...about }, '← print c1: its turn has come'],
    [{ type: 'progress', ...about, progress: { percentage: 12.4 } }, '← print c1: progress 12%'],
    [
      { type: 'progress', ...about, progress: { progress: 2, total: 8 } },
      '← print c1: progress 2 of 8',
    ],
    [{ type: 'progress', ...about, progress: { progress: 2, total: 0 } }, '← print c1: progress 2'],
    [{ type: 'progress', ...about, progress: { progress: 2 } }, '← print c1: progress 2'],
    [{ type: 'progress', ...about }, '← print c1: progress '],
    [{ type: 'cancel', ...about }, '← print c1: cancel'],
    [{ type: 'cancel', ...about, reason: 'enough' }, '← print c1: cancel: enough'],
    [
      { type: 'result', ...about, outcome: 'completed', duration: 12.34 },
      '← print c1: completed after 12.3 ms',
    ],
    [
      { type: 'result', ...about, outcome: 'failed', duration: 1, error },
      '← print c1: failed after 1 ms: OWN: no paper',
    ],
    [{ type: 'refused', ...about, error }, '← print c1: refused: OWN: no paper'],
    [{ type: 'refused', direction: 'out' }, '→: refused: undefined: undefined'],
    [{ type: 'message', direction: 'out', message: { type: 'shutdown', id: 'm' } }, '→ shutdown m'],
    [{ type: 'message', direction: 'out', message: { type: 'progress' } }, '→ progress'],
    [{ type: 'dropped', reason: 'late', count: 2 }, 'dropped 2: late'],
    [{ type: 'session', state: 'ready' }, 'session ready'],
  ]) {
    test(line, () => assert.equal(lineOf(event), line));
  }
});

describe('print', () => {
  const CALL = { side: 'app', direction: 'local', name: 'x', callId: 'c' };

  test('shows what is in an event, where something is', (t) => {
    const log = t.mock.method(console, 'log', () => {});
    for (const event of [
      { type: 'call', ...CALL, params: 0 },
      { type: 'cancel', ...CALL, params: 1 },
      { type: 'progress', ...CALL, progress: { percentage: 5 } },
      { type: 'message', message: {} },
      { type: 'result', ...CALL, outcome: 'completed', time: 1, duration: 1, response: 'all' },
    ]) {
      print(event);
    }
    assert.deepEqual(
      log.mock.calls.map((call) => call.arguments),
      [
        ['abp-bridge app: ↻ x c: called', 0],
        ['abp-bridge app: ↻ x c: cancel'],
        ['abp-bridge app: ↻ x c: progress 5%', { percentage: 5 }],
        ['abp-bridge app: ↻ x c: completed after 1 ms', 'all'],
      ],
    );
  });

  test('marks a call that has ended, from its beginning, on the track of its side', (t) => {
    t.mock.method(console, 'log', () => {});
    performance.clearMeasures();
    const event = { type: 'result', ...CALL, outcome: 'completed', time: 30 };
    for (const duration of [40, 10]) print({ ...event, duration });
    assert.deepEqual(
      performance
        .getEntriesByName('abp: x')
        .map(({ startTime, duration, detail }) => [startTime, duration, detail]),
      [0, 20].map((start) => [
        start,
        30 - start,
        {
          callId: 'c',
          outcome: 'completed',
          devtools: { dataType: 'track-entry', track: 'abp-bridge app' },
        },
      ]),
    );
  });
});

describe('observers', () => {
  let endpoint, observers;
  beforeEach(() => {
    endpoint = endpointOf(abp.AGENT);
    observers = new Observers({}, () => [endpoint]);
  });

  test('are not loaded for nobody', () => {
    assert.equal(observers.ready, undefined);
    observers.follow(endpoint);
    assert.equal(endpoint.observer, undefined);
  });

  test('share one tracer, which ends with the last of them', async () => {
    const stops = [await observers.add(() => {})];
    const { observer } = endpoint;
    assert.ok(observer instanceof Tracer);
    stops.push(await observers.add(() => {}));
    assert.equal(endpoint.observer, observer);
    stops[0]();
    assert.equal(endpoint.observer, observer);
    stops[1]();
    assert.equal(endpoint.observer, undefined);
    observers.follow(endpoint);
    assert.equal(endpoint.observer, undefined);
  });

  test('a recorder notes what happens', async () => {
    const given = new Observers(
      { recorder: { tap: 'tap', note: (event) => told.push(event) } },
      () => [],
    );
    await given.ready;
    given.follow(endpoint);
    endpoint.observer.message(true, GREETING);
    assert.deepEqual([given.tap, told[0].message], ['tap', GREETING]);
  });
});

test('who debugs is announced to the developer tools, as long as it lives', (t) => {
  const [gone, other] = [{ deref: () => undefined }, { deref: () => ({}) }];
  globalThis.__abpDebug = new Set([gone, other]);
  t.after(() => delete globalThis.__abpDebug);
  const observers = {};
  announce(observers);
  const [first, second, ...more] = globalThis.__abpDebug;
  assert.equal(first, other);
  assert.equal(second.deref(), observers);
  assert.deepEqual(more, []);
});
