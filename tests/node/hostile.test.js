// An agent that speaks raw messages and means no good, against our app over a MessagePort. Each
// attack is followed by an honest call, which must notice nothing.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { Raw } from '../support/raw.js';

const HELLO = { agent: { name: 'raw', version: '1' }, protocolVersion: '0.1', features: {} };

const FEATURES = { ...HELLO, features: { 'bridge.frames': true, progress: true } };

let channel, exposed, raw;

beforeEach(() => (channel = new MessageChannel()));

afterEach(() => {
  channel.port1.close();
  channel.port2.close();
});

describe('an agent that means no good', () => {
  let ran;
  beforeEach(async () => {
    ran = 0;
    exposed = expose(
      {
        app: { id: 'a.b', name: 'A', version: '1' },
        capabilities: {
          echo: (params) => (ran++, params),
          hang: (_params, { signal }) =>
            new Promise((_resolve, reject) => {
              ran++;
              signal.addEventListener('abort', () => reject(signal.reason));
            }),
          gone: { handler: () => 1, available: false, alternatives: ['echo'] },
          locked: {
            handler: () => 1,
            requirements: [{ type: 'permission', description: 'a key', met: () => false }],
          },
          needs: {
            handler: (params) => (ran++, params),
            inputSchema: {
              type: 'object',
              properties: { deep: { type: 'object', properties: { n: { type: 'integer' } } } },
              required: ['deep'],
              additionalProperties: false,
            },
          },
        },
      },
      { port: channel.port1, limits: { maxCalls: 8, grace: 600_000 } },
    );
    raw = new Raw(channel.port2);
  });
  const hello = () => raw.ask('initialize', 'P', HELLO);
  const call = async (capability, more = {}, id = 'x') =>
    (await raw.ask('capabilities/call', id, { capability, ...more })).payload;
  async function honest() {
    assert.deepEqual((await call('echo', { params: 'fine' }, 'honest')).data, 'fine');
  }

  test('calls before initialize are refused, and so are cancels', async () => {
    assert.equal((await call('echo')).error.code, 'NOT_INITIALIZED');
    const { type, payload } = await raw.ask('capabilities/cancel', 'c', { callId: 'x' });
    assert.equal(type, 'capabilities/cancel-result');
    assert.equal(payload.error.code, 'NOT_INITIALIZED');
    assert.equal(payload.cancelled, false);
    assert.equal(ran, 0);
  });

  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '', 'échec']) {
    test(`a capability called ${JSON.stringify(name)} is unknown`, async () => {
      await hello();
      assert.equal((await call(name)).error.code, 'UNKNOWN_CAPABILITY');
      await honest();
    });
  }

  for (const name of [undefined, null, 7, {}, ['echo'], 1n]) {
    test(`a capability that is no string is invalid: ${typeof name} ${name}`, async () => {
      await hello();
      assert.equal((await call(name)).error.code, 'INVALID_PARAMS');
      await honest();
    });
  }

  const IDS = {
    '10 KB long': 'x'.repeat(10_000),
    empty: '',
    'half a surrogate': '\ud800',
    'with NUL': 'a\u0000b',
    'a number': 7,
    'an object': { toString: 1 },
    'an array': ['a'],
    null: null,
    'a bigint': 1n,
  };
  for (const [what, callId] of Object.entries(IDS)) {
    test(`a callId that is ${what} is refused, and nothing runs`, async () => {
      await hello();
      const { error } = await call('echo', { options: { callId } });
      // null is as good as absent: the message's own id is taken.
      if (callId === null) assert.equal(error, undefined);
      else assert.equal(error.code, 'INVALID_PARAMS');
      assert.equal(ran, callId === null ? 1 : 0);
      await honest();
    });
  }

  test('ids that JSON and UTF-8 confuse are kept apart', async () => {
    await hello();
    const ids = ['1', 'é', 'e\u0301', '1 ', '__proto__', 'constructor'];
    for (const callId of ids)
      raw.send('capabilities/call', callId, { capability: 'hang', options: { callId } });
    for (const callId of ids) {
      const answer = await raw.ask('capabilities/cancel', `c-${callId}`, { callId });
      assert.deepEqual(
        [answer.id, answer.payload.cancelled, answer.payload.callId],
        [`c-${callId}`, true, callId],
      );
      const { id, payload } = await raw.next();
      assert.deepEqual([id, payload.cancelled], [callId, true]);
    }
    await honest();
  });

  test('a numeric id is echoed as a number', async () => {
    await hello();
    const { id } = await raw.ask('capabilities/call', 7, { capability: 'echo' });
    assert.equal(id, 7);
    assert.equal((await raw.ask('capabilities/cancel', 8, { callId: '7' })).id, 8);
  });

  test('the callId may stand in options, in the payload, or be the message’s id', async () => {
    await hello();
    const places = [
      ['o', { options: { callId: 'o' } }, 'm1'],
      ['p', { callId: 'p' }, 'm2'],
      ['m3', {}, 'm3'],
    ];
    for (const [callId, more, id] of places) {
      raw.send('capabilities/call', id, { capability: 'hang', ...more });
      const answer = await raw.ask('capabilities/cancel', 'c', { callId });
      assert.equal(answer.payload.cancelled, true);
      assert.equal((await raw.next()).id, id);
    }
  });

  test('own __proto__ keys are data, and pollute nothing', async () => {
    await hello();
    const params = JSON.parse(
      '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}',
    );
    const { data } = await call('echo', { params });
    assert.deepEqual(Object.keys(data), ['__proto__', 'constructor']);
    assert.equal({}.polluted, undefined);
    await honest();
  });

  test('what is inherited is not read, not even from a polluted prototype', async () => {
    await hello();
    Object.prototype.callId = 'x';
    Object.prototype.timeout = 1;
    try {
      raw.send('capabilities/call', 'm', { capability: 'hang' });
      const answer = await raw.ask(
        'capabilities/cancel',
        'c',
        Object.assign(Object.create(null), { callId: 'm' }),
      );
      assert.equal(answer.payload.cancelled, true);
      assert.equal((await raw.next()).payload.error.code, 'CANCELLED');
    } finally {
      delete Object.prototype.callId;
      delete Object.prototype.timeout;
    }
    await honest();
  });

  test('control messages that are too long, too deep or cyclic are dropped and counted', async () => {
    await hello();
    let deep = 1;
    for (let i = 0; i < 1000; i++) deep = { deep };
    const cyclic = {};
    cyclic.self = cyclic;
    const hostile = ['x'.repeat(10 << 20), deep, cyclic];
    for (const reason of hostile) raw.send('capabilities/cancel', 'c', { callId: 'x', reason });
    await honest();
    assert.equal(exposed.counters[0].malformed, hostile.length);
  });

  test('a control message of 10 MB takes no memory of the core', async () => {
    await hello();
    const [{ endpoint }] = exposed.sessions;
    const before = endpoint.core.x.memory.buffer.byteLength;
    raw.send('capabilities/cancel', 'c', { callId: 'x', reason: 'long'.repeat(2_500_000) });
    await honest();
    assert.equal(endpoint.core.x.memory.buffer.byteLength, before);
    assert.equal(exposed.counters[0].malformed, 1);
  });

  test('what is sent in no time takes none to be dropped: buffers and sparse arrays', async () => {
    await hello();
    const writes = [];
    const { stringify } = JSON;
    JSON.stringify = (...args) => {
      const text = stringify(...args);
      writes.push(text.length);
      return text;
    };
    try {
      raw.send('nobody knows', 'x', { bytes: new Uint8Array(1 << 24) });
      raw.send('nobody knows', 'x', new Array(1 << 21));
      raw.send(
        'nobody knows',
        'x',
        Array.from({ length: 32 }, () => new Array(1 << 16)),
      );
      await honest();
    } finally {
      JSON.stringify = stringify;
    }
    assert.ok(writes.every((length) => length < 1000));
    const { unknownType, malformed } = exposed.counters[0];
    assert.deepEqual([unknownType, malformed], [1, 2]);
  });

  test('however long ids may be, the core writes no further than its scratch', async () => {
    const wide = new MessageChannel();
    expose(
      {
        app: { id: 'a', name: 'A', version: '1' },
        capabilities: { who: (_p, { callId }) => callId },
      },
      { port: wide.port1, limits: { maxIdLength: 60_000 } },
    );
    const other = new Raw(wide.port2);
    const refused = await other.ask('initialize', 'P'.repeat(2000), FEATURES);
    assert.equal(refused.payload.error.code, 'INVALID_PARAMS');
    await other.ask('initialize', 'P'.repeat(700), FEATURES);
    wide.port2.postMessage([1, 7, 'who', {}]);
    assert.equal((await other.next())[3], `${'P'.repeat(700)}.7`);
    wide.port1.close();
    wide.port2.close();
  });

  test('messages that are no messages are dropped', async () => {
    await hello();
    const nothing = [
      null,
      1,
      'initialize',
      [],
      [[]],
      [1, 2, 3],
      {},
      { type: 7 },
      new Map(),
      new ArrayBuffer(8),
      new Date(),
    ];
    for (const message of nothing) channel.port2.postMessage(message);
    await honest();
  });

  test('unknown types, and those of the other direction, are counted and not answered', async () => {
    await hello();
    for (const type of [
      'x',
      'capabilities/call-result',
      'initialize-result',
      'progress',
      'toString',
    ]) {
      raw.send(type, 'honest', { success: true });
    }
    await honest();
    assert.equal(exposed.counters[0].unknownType, 5);
  });

  test('results of questions that were never asked settle nothing', async () => {
    await hello();
    for (let i = 0; i < 1000; i++) raw.send('elicitation/response', `${i}`, { success: true });
    await honest();
    assert.equal(exposed.counters[0].stray, 1000);
  });

  test('params are held to the schema: where and why', async () => {
    await hello();
    const wrong = [{}, { deep: { n: 1.5 } }, { deep: {}, more: 1 }, [], 'x', null];
    for (const params of wrong) {
      const { error } = await call('needs', { params });
      assert.equal(error.code, 'INVALID_PARAMS', JSON.stringify(params));
      assert.ok(error.details[0].path.startsWith('params'));
    }
    assert.match(
      (await call('needs', { params: { deep: { n: 1.5 } } })).error.message,
      /params\/deep\/n/,
    );
    assert.equal(ran, 0);
    assert.deepEqual((await call('needs', { params: { deep: { n: 1 } } })).data, {
      deep: { n: 1 },
    });
  });

  test('params that JSON has no form of are held to the schema as JSON would have them', async () => {
    await hello();
    const response = await call('needs', { params: { deep: { n: undefined }, more: undefined } });
    assert.deepEqual(response.data, { deep: { n: undefined }, more: undefined });
    const wrong = [{ deep: undefined }, { deep: { n: 1n } }, { deep: new Array(2 ** 32 - 1) }];
    for (const params of wrong) {
      assert.equal((await call('needs', { params })).error.code, 'INVALID_PARAMS');
    }
    assert.equal(ran, 1);
  });

  test('what is not available, or lacks a requirement, says so', async () => {
    await hello();
    const gone = (await call('gone')).error;
    assert.equal(gone.code, 'CAPABILITY_UNAVAILABLE');
    assert.deepEqual(gone.alternatives, ['echo']);
    const locked = (await call('locked')).error;
    assert.equal(locked.code, 'REQUIREMENT_NOT_MET');
    assert.match(locked.message, /a key/);
  });

  test('call-and-cancel floods start no more handlers than there are places', async () => {
    await hello();
    exposed.set('stubborn', () => new Promise(() => void ran++));
    const codes = {};
    for (let i = 0; i < 1000; i++) {
      raw.send('capabilities/call', `${i}`, { capability: 'stubborn' });
      raw.send('capabilities/cancel', `c${i}`, { callId: `${i}` });
    }
    for (let i = 0; i < 1000 + 992; i++) {
      const { type, payload } = await raw.next();
      const code = payload.error?.code ?? (payload.cancelled ? 'cancelled' : payload.reason);
      codes[`${type} ${code}`] = (codes[`${type} ${code}`] ?? 0) + 1;
    }
    assert.equal(ran, 8);
    assert.deepEqual(codes, {
      'capabilities/cancel-result cancelled': 8,
      'capabilities/call-result RATE_LIMITED': 992,
      'capabilities/cancel-result Operation not found': 992,
    });
  });

  // FLOOD=1000000 is for before a release.
  const FLOOD = Number(process.env.FLOOD ?? 10_000);
  test(`${FLOOD} calls at once: each is answered, few run, and another agent notices nothing`, async (t) => {
    const fair = new MessageChannel();
    t.after(() => fair.port1.close());
    const app = { app: { id: 'b', name: 'B', version: '1' }, capabilities: { echo: (x) => x } };
    // Both share this thread: silence is not what is tested here.
    const limits = { heartbeat: 600_000 };
    expose(app, { port: fair.port1, limits });
    const options = { agent: { name: 'fair', version: '1' }, limits };
    const other = await connect(fair.port2, options);
    await hello();
    const codes = {};
    let answers = 0;
    const done = new Promise((resolve) => {
      channel.port2.onmessage = ({ data: { type, payload } }) => {
        if (type !== 'capabilities/call-result') return;
        codes[payload.error.code] = (codes[payload.error.code] ?? 0) + 1;
        if (++answers === FLOOD - 8) resolve();
      };
    });
    for (let i = 0; i < FLOOD; i++) raw.send('capabilities/call', `${i}`, { capability: 'hang' });
    assert.equal((await other.call('echo', 'honest')).data, 'honest');
    await done;
    assert.deepEqual([ran, codes], [8, { RATE_LIMITED: FLOOD - 8 }]);
    other.close();
  });

  test('timeouts that no timer takes are no timeouts, or the longest there is', async () => {
    await hello();
    for (const timeout of [-1, 0, NaN, Infinity, '5', 2 ** 31, 2 ** 53, {}]) {
      raw.send('capabilities/call', 'm', { capability: 'hang', options: { timeout } });
      await honest();
      await raw.ask('capabilities/cancel', 'c', { callId: 'm' });
      assert.equal((await raw.next()).payload.error.code, 'CANCELLED');
    }
  });

  test('frames of any shape are taken for what they are', async () => {
    const { payload } = await raw.ask('initialize', 'P', FEATURES);
    assert.equal(payload.features['bridge.frames'], true);
    const hostile = [
      [99, 1, 'echo', 1],
      [1, -1, 'echo', 1],
      [1, 0, 'echo', 1],
      [1, 1.5, 'echo', 1],
      [1, NaN, 'echo', 1],
      [1, 2 ** 32, 'echo', 1],
      [1, null, 'echo', 1],
      [1, [1], 'echo', 1],
      [1, {}, 'echo', 1],
      [1, 'x'.repeat(10_000), 'echo', 1],
      [2, 1, 'echo', null],
      [2, 2, 'echo', 'text'],
      [3, 1, 0, 'forged'],
      [4, 1, 0, { success: true }],
      [5, 1, 0, {}],
      [6, 0, 0, null],
      [6, 0, 0, [[[]]]],
      [7, 1, 'of nobody', 0],
      [7, 'x'.repeat(10_000), 'why', 0],
      [7, {}, 'why', 0],
      [7, null, null, 0],
    ];
    for (const frame of hostile) channel.port2.postMessage(frame);
    channel.port2.postMessage([1, 77, 'echo', 'honest']);
    const values = [];
    for (let frame; !values.includes(77);) {
      frame = await raw.next();
      for (let i = 0; i < frame.length; i += 4) if (frame[i] === 3) values.push(frame[i + 1]);
    }
    // Keys 1 and 2 of the well-formed ones ran; no other key did.
    assert.deepEqual(values.sort(), [1, 2, 77]);
  });

  test('text of any shape is a frame or one malformed message', async () => {
    await raw.ask('initialize', 'P', FEATURES);
    /** A text in a text in a text. */
    let nested = '[1,5,"echo",5]';
    for (let i = 0; i < 12; i++) nested = JSON.stringify([10, 0, null, nested]);
    const malformed = [
      '',
      '[',
      '{}',
      'null',
      '7',
      '"[1,1,\\"echo\\",1]"',
      '[10,0,null,[]]',
      '[10,0,null,null]',
      '[99,1,"echo",1]',
      '[6,0,0,null]',
      `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
    ];
    for (const text of malformed) channel.port2.postMessage(text);
    channel.port2.postMessage(nested);
    channel.port2.postMessage('[1,77,"echo","honest"]');
    const values = [];
    while (values.length < 2) {
      const frame = await raw.next();
      for (let i = 0; i < frame.length; i += 4) if (frame[i] === 3) values.push(frame[i + 1]);
    }
    assert.deepEqual(values, [5, 77]);
    assert.equal(exposed.counters[0].malformed, malformed.length);
  });

  test('what is no message in a frame is counted as malformed, as it is by itself', async () => {
    await raw.ask('initialize', 'P', FEATURES);
    for (const entry of [[6, 0, 0, null], [99, 1, 0, 0], 'text']) channel.port2.postMessage(entry);
    await honest();
    assert.equal(exposed.counters[0].malformed, 3);
  });

  test('a cancel in a frame stops its call, whatever its reason is, and only the result answers it', async () => {
    await raw.ask('initialize', 'P', FEATURES);
    const reasons = ['stop', 'x'.repeat(1 << 20), '\ud800', '', 7, { message: 'm' }, undefined];
    for (const [i, reason] of reasons.entries()) {
      for (const key of [i + 1, `ключ ${i}`]) {
        channel.port2.postMessage([1, key, 'hang', {}, 7, key, reason, 0]);
        const [kind, of, , response] = await raw.next();
        assert.deepEqual([kind, of, response.cancelled], [4, key, true]);
        const said =
          typeof reason === 'string' && reason !== '' ? reason.slice(0, 1024) : undefined;
        assert.equal(
          response.error.message,
          said?.replace('\ud800', '\ufffd') ?? 'The operation was cancelled',
        );
      }
    }
    await honest();
  });

  for (const features of [{}, FEATURES.features]) {
    test(`an id that cannot be sent back is answered to nobody: ${Object.keys(features)}`, async (t) => {
      t.mock.method(console, 'warn', () => {});
      await raw.ask('initialize', 'P', { ...HELLO, features });
      const { port1: id } = new MessageChannel();
      channel.port2.postMessage({ type: 'capabilities/call', id, payload: {} }, [id]);
      const { port1: key } = new MessageChannel();
      channel.port2.postMessage([1, key, 'echo', 1], [key]);
      await honest();
    });
  }

  test('a second initialize is refused, the same one is answered again, and shutdown makes room', async () => {
    const first = await hello();
    const again = await hello();
    assert.deepEqual(again.payload, first.payload);
    const other = await raw.ask('initialize', 'Q', HELLO);
    assert.equal(other.payload.error.code, 'ALREADY_INITIALIZED');
    raw.send('shutdown');
    const next = await raw.ask('initialize', 'Q', HELLO);
    assert.notEqual(next.payload.sessionId, first.payload.sessionId);
    await honest();
  });
});

test('with restart, a new initialize replaces the session, and what ran is answered first', async () => {
  exposed = expose(
    {
      app: { id: 'a', name: 'A', version: '1' },
      capabilities: { hang: () => new Promise(() => {}), echo: (params) => params },
    },
    { port: channel.port1, restart: true },
  );
  raw = new Raw(channel.port2);
  const first = await raw.ask('initialize', 'P', HELLO);
  raw.send('capabilities/call', 'old', { capability: 'hang' });
  const answer = await raw.ask('initialize', 'Q', HELLO);
  assert.deepEqual([answer.id, answer.payload.cancelled], ['old', true]);
  const second = await raw.next();
  assert.equal(second.id, 'Q');
  assert.notEqual(second.payload.sessionId, first.payload.sessionId);
  const cancel = await raw.ask('capabilities/cancel', 'c', { callId: 'old' });
  assert.equal(cancel.payload.reason, 'Operation not found');
});

test('an app that is closed before its core is ready answers nobody', async () => {
  exposed = expose(
    { app: { id: 'a', name: 'A', version: '1' }, capabilities: {} },
    { port: channel.port1 },
  );
  exposed.close();
  await exposed.ready;
  assert.equal(exposed.counters.length, 0);
});
