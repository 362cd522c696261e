// A peer that speaks raw messages and means no good, against either side over a MessagePort. Each
// attack is followed by an honest call, which must notice nothing.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { fromOrigins } from '../../parts/transports/index.js';
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
      raw.send('nobody knows', 'x', new Array(1 << 24));
      raw.send(
        'nobody knows',
        'x',
        Array.from({ length: 256 }, () => new Array(1 << 16)),
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

describe('an app that means no good', () => {
  const RESULT = {
    sessionId: 's',
    protocolVersion: '0.1',
    app: { id: 'a', name: 'A', version: '1' },
    capabilities: [{ name: 'echo' }, { name: 7 }, null, 'x', { name: '__proto__' }],
    features: { progress: true, notifications: true, elicitation: true },
  };
  let client;
  async function open(options = {}) {
    raw = new Raw(channel.port2);
    const connecting = connect(channel.port1, {
      agent: { name: 'a', version: '1' },
      onElicitation: ({ params }) => params,
      ...options,
    });
    const { id, type } = await raw.next();
    assert.equal(type, 'initialize');
    raw.send('initialize-result', id, options.result ?? RESULT);
    client = await connecting;
  }
  async function calls(n) {
    const pending = Array.from({ length: n }, () => client.call('echo', 'x'));
    const ids = [];
    for (let i = 0; i < n; i++) ids.push((await raw.next()).id);
    return [pending, ids];
  }

  test('its list of capabilities is read as data', async () => {
    await open();
    const names = (await client.listCapabilities()).map(({ name }) => name);
    assert.deepEqual(names, ['echo', '__proto__']);
    assert.equal((await client.supports('constructor')).supported, false);
  });

  test('results for guessed ids settle nothing, and each call settles once, by the first', async () => {
    await open();
    const [[first, second], [id1, id2]] = await calls(2);
    for (let i = 0; i < 1000; i++)
      raw.send('capabilities/call-result', `${i}`, { success: true, data: 'forged' });
    for (let i = 0; i < 1000; i++)
      raw.send('capabilities/call-result', i, { success: true, data: 'forged' });
    raw.send('capabilities/call-result', id1, { success: true, data: 1 });
    raw.send('capabilities/call-result', id1, { success: true, data: 2 });
    raw.send('capabilities/call-result', id2, { success: true, data: 3 });
    assert.deepEqual([(await first).data, (await second).data], [1, 3]);
    assert.equal(client.counters.stray, 2000);
    assert.equal(client.counters.late, 1);
  });

  test('ids cannot be described from one another’s', async () => {
    await open();
    const [, ids] = await calls(1);
    assert.match(ids[0], /^[0-9a-f]{20}-1\.\d+$/);
  });

  test('its cancel-result does not settle the call, nor its call-result the cancel', async () => {
    await open();
    const [[pending], [id]] = await calls(1);
    const cancelling = client.cancel(id, 'why');
    const cancel = await raw.next();
    assert.deepEqual([cancel.type, cancel.payload.callId], ['capabilities/cancel', id]);
    assert.notEqual(cancel.id, id);
    raw.send('capabilities/cancel-result', id, { cancelled: true });
    raw.send('capabilities/call-result', cancel.id, { success: true });
    raw.send('capabilities/cancel-result', cancel.id, {
      callId: '',
      cancelled: false,
      reason: 'no',
    });
    assert.deepEqual(await cancelling, { callId: id, cancelled: false, reason: 'no' });
    raw.send('capabilities/call-result', id, { success: true, data: 'still' });
    assert.equal((await pending).data, 'still');
  });

  test('an app that answers no cancel: the call settles as cancelled after the grace period', async () => {
    await open({ limits: { grace: 30 } });
    const controller = new AbortController();
    const pending = client.call('echo', {}, { signal: controller.signal });
    const { id } = await raw.next();
    controller.abort('enough');
    const { success, cancelled, error } = await pending;
    assert.deepEqual(
      [success, cancelled, error.code, error.message],
      [false, true, 'CANCELLED', 'enough'],
    );
    raw.send('capabilities/call-result', id, { success: true, data: 'late' });
    const answer = await client.cancel('x');
    assert.deepEqual([answer.cancelled, answer.error.code], [false, 'TIMEOUT']);
    while (!client.counters.late) await new Promise(setImmediate);
  });

  test('a result that comes in spite of the cancel is delivered as it is', async () => {
    await open();
    const controller = new AbortController();
    const pending = client.call('echo', {}, { signal: controller.signal });
    const { id } = await raw.next();
    controller.abort();
    raw.send('capabilities/call-result', id, { success: true, data: 'done' });
    assert.deepEqual(await pending, { success: true, data: 'done' });
  });

  describe('a result that comes after the app has accepted the cancel settles as cancelled:', () => {
    const error = { code: 'OPERATION_FAILED', message: 'fetch failed', retryable: true };
    const RESULTS = {
      'a success': { success: true, data: 'done' },
      'a failure': { success: false, error },
    };
    for (const [what, payload] of Object.entries(RESULTS)) {
      const accept = ({ id }, cancelled = true) =>
        raw.send('capabilities/cancel-result', id, { callId: '', cancelled });
      const metadata = { outcome: payload.success ? 'finished' : 'failed' };
      const settled = (message, code = 'CANCELLED') => ({
        success: false,
        error: { code, message, retryable: false },
        cancelled: true,
        metadata,
      });

      test(`${what}, with the signal's own reason`, async () => {
        await open();
        for (const [reason, expected] of [
          ['enough', settled('enough')],
          [new DOMException('too slow', 'TimeoutError'), settled('too slow', 'TIMEOUT')],
        ]) {
          const controller = new AbortController();
          const pending = client.call('echo', {}, { signal: controller.signal });
          const { id } = await raw.next();
          controller.abort(reason);
          accept(await raw.next());
          raw.send('capabilities/call-result', id, payload);
          assert.deepEqual(await pending, expected);
        }
      });

      test(`${what}, with the app's words if no signal fired`, async () => {
        await open();
        const [[pending], [id]] = await calls(1);
        const cancelling = client.cancel(id);
        accept(await raw.next());
        assert.equal((await cancelling).cancelled, true);
        raw.send('capabilities/call-result', id, payload);
        const { message } = payload.error ?? { message: 'The operation was cancelled' };
        assert.deepEqual(await pending, settled(message));
      });

      test(`${what}, unless the cancel was refused`, async () => {
        await open();
        const controller = new AbortController();
        const pending = client.call('echo', {}, { signal: controller.signal });
        const { id } = await raw.next();
        controller.abort();
        accept(await raw.next(), false);
        raw.send('capabilities/call-result', id, payload);
        const expected = payload.success ? payload : { ...payload, metadata };
        assert.deepEqual(await pending, expected);
      });
    }
  });

  test('both shapes of a cancelled response are one to the caller', async () => {
    await open();
    for (const payload of [
      { success: false, cancelled: true },
      { success: false, error: { code: 'CANCELLED', message: 'm', retryable: false } },
    ]) {
      const [[pending], [id]] = await calls(1);
      raw.send('capabilities/call-result', id, payload);
      const { success, cancelled, error } = await pending;
      assert.deepEqual([success, cancelled, error.code], [false, true, 'CANCELLED']);
    }
  });

  test('what is no response fails its call, and what was said is kept', async () => {
    await open();
    const shapes = [undefined, null, 1, 'x', {}, [], { success: 'yes' }, { error: 'x' }];
    const list = Object.assign([], { success: true });
    for (const shape of [...shapes, list]) {
      const [[pending], [id]] = await calls(1);
      raw.send('capabilities/call-result', id, shape);
      const { success, error } = await pending;
      assert.deepEqual([success, error.code], [false, 'OPERATION_FAILED']);
      assert.deepEqual(error.details, shape);
    }
  });

  test('a response that failed has an error with a code, words and retryable, whatever it came with', async () => {
    await open();
    const failed = { code: 'OPERATION_FAILED', retryable: false };
    for (const [error, expected] of [
      ['boom', { ...failed, message: 'boom' }],
      [undefined, { ...failed, message: 'The operation failed, and no reason was given' }],
      [
        { code: 7, message: { toString: 1 } },
        { ...failed, message: 'The operation failed, and no reason was given' },
      ],
      [
        { code: 'OWN', details: 1 },
        { code: 'OWN', message: 'OWN', retryable: false, details: 1 },
      ],
    ]) {
      const [[pending], [id]] = await calls(1);
      raw.send('capabilities/call-result', id, { success: false, error });
      const metadata = { outcome: 'failed' };
      assert.deepEqual(await pending, { success: false, error: expected, metadata });
    }
  });

  test('a code that is the name of what every object inherits is a code like any other', async () => {
    await open();
    for (const code of ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty']) {
      const [[pending], [id]] = await calls(1);
      const invoked = client.invoke('echo').catch((error) => error);
      const { id: other } = await raw.next();
      for (const to of [id, other])
        raw.send('capabilities/call-result', to, { success: false, error: { code } });
      assert.deepEqual(await pending, {
        success: false,
        error: { code, message: code, retryable: false },
        metadata: { outcome: 'failed' },
      });
      const error = await invoked;
      assert.ok(error instanceof AbpError);
      assert.deepEqual([error.code, error.message, error.retryable], [code, code, false]);
    }
  });

  describe('says something that cannot be calculated with or read as text', () => {
    const odd = { valueOf: 1, toString: 1 };
    const ODD = {
      'a BigInt': 5n,
      'a BigInt of many digits': 1n << 100_000n,
      'a BigInt that is an object': Object(5n),
      'an object that is no number and no text': odd,
      'a list': [1],
      'no finite number': NaN,
    };
    for (const [what, value] of Object.entries(ODD)) {
      test(`${what}, in progress: the rest of it is reported`, async () => {
        await open();
        const heard = [];
        client.onProgress = (info) => heard.push(info);
        raw.send('progress', undefined, { operationId: 'o', progress: 1, total: value });
        raw.send('progress', undefined, {
          operationId: 'o',
          progress: value,
          total: 4,
          stage: 's',
        });
        raw.send('progress', undefined, { operationId: 'o', percentage: value, status: value });
        raw.send('progress', undefined, [value]);
        const [[pending], [id]] = await calls(1);
        raw.send('capabilities/call-result', id, { success: true });
        await pending;
        assert.deepEqual(heard, [
          { operationId: 'o', progress: 1 },
          { operationId: 'o', progress: 0, total: 4, percentage: 0, stage: 's' },
          { operationId: 'o', progress: 0 },
          { progress: 0 },
        ]);
      });

      test(`${what}, as the words of an answer to a cancel: it is settled`, async () => {
        await open();
        const settled = client.cancel('x');
        const { id } = await raw.next();
        const payload = {
          callId: 'x',
          cancelled: false,
          code: 'OWN',
          message: value,
          reason: value,
        };
        raw.send('capabilities/cancel-result', id, payload);
        const { cancelled, reason, error } = await settled;
        assert.deepEqual([cancelled, reason], [false, undefined]);
        assert.deepEqual(error, { code: 'OWN', message: 'OWN', retryable: false });
      });
    }
  });

  describe('says a list of 2^32 - 1 places, which takes minutes to walk', () => {
    const endless = () => Object.assign([], { length: 2 ** 32 - 1 });

    test('that have changed: only the first are looked at', async () => {
      await open();
      const changes = new Promise((resolve) => (client.onCapabilitiesChanged = resolve));
      const data = { added: endless(), removed: endless(), changed: endless() };
      data.added[0] = 'new';
      const event = 'notifications/capabilities/list_changed';
      raw.send('notification', undefined, { event, data: { ...data, capabilities: endless() } });
      assert.deepEqual(await changes, { added: ['new'], removed: [], changed: [] });
    });

    test('of what a capability requires: supports is answered', async () => {
      await open();
      const capabilities = [{ name: 'new', requirements: endless() }];
      const event = 'notifications/capabilities/list_changed';
      const heard = new Promise((resolve) => (client.onNotification = resolve));
      raw.send('notification', undefined, { event, data: { added: ['new'], capabilities } });
      await heard;
      assert.equal((await client.supports('new')).available, true);
    });
  });

  test('that adds capabilities without end is known for some of them only', async () => {
    await open();
    const event = 'notifications/capabilities/list_changed';
    let heard;
    for (let i = 0; i < 10; i++) {
      heard = new Promise((resolve) => (client.onNotification = resolve));
      const added = Array.from({ length: 1000 }, (_, j) => `c${i}.${j}`);
      raw.send('notification', undefined, { event, data: { added: [...added, 'x'.repeat(1e6)] } });
      await heard;
    }
    const names = (await client.listCapabilities()).map(({ name }) => name);
    assert.equal(names.length, 4096);
    assert.ok(names.every((name) => name.length < 10));
  });

  test('short type names are taken only for what is pending', async () => {
    await open();
    const [[pending], [id]] = await calls(1);
    raw.send('call-result', 'other', { success: true, data: 'forged' });
    raw.send('call-result', id, { success: true, data: 'short' });
    assert.equal((await pending).data, 'short');
  });

  test('questions of every shape are answered, and only allowed ones are put to the user', async () => {
    await open({ allowedRequests: ['elicitation/input'] });
    const answer = async (payload, id = 'q') =>
      (await raw.ask('elicitation/request', id, payload)).payload;
    assert.deepEqual(await answer({ method: 'elicitation/input', params: 5 }), {
      success: true,
      data: 5,
    });
    assert.equal((await answer({ method: 'sampling/create' })).error.code, 'NOT_SUPPORTED');
    assert.equal((await answer({ method: 7 })).error.code, 'INVALID_PARAMS');
    assert.equal((await answer({}, 'x'.repeat(10_000))).error.code, 'INVALID_PARAMS');
  });

  test('one that sends back whatever it gets is no app', async () => {
    let sent = 0;
    channel.port2.onmessage = ({ data }) => {
      sent++;
      channel.port2.postMessage(data);
    };
    const agent = { name: 'a', version: '1' };
    await assert.rejects(connect(channel.port1, { agent, timeout: 200 }), { code: 'TIMEOUT' });
    assert.ok(sent > 1 && sent < 10, `${sent} messages: no loop`);
  });

  test('it cannot call the agent', async () => {
    await open();
    raw.send('capabilities/call', 'x', { capability: 'echo' });
    raw.send('capabilities/cancel', 'x', { callId: 'x' });
    raw.send('shutdown');
    const [[pending], [id]] = await calls(1);
    raw.send('capabilities/call-result', id, { success: true, data: 1 });
    assert.equal((await pending).data, 1);
    assert.equal(client.counters.unknownType, 3);
  });

  test('a refused handshake rejects with the app’s error', async () => {
    const error = { code: 'PERMISSION_DENIED', message: 'not you', retryable: false };
    await assert.rejects(open({ result: { success: false, error } }), (thrown) => {
      assert.ok(thrown instanceof AbpError);
      assert.deepEqual([thrown.code, thrown.message], ['PERMISSION_DENIED', 'not you']);
      return true;
    });
  });

  test('a refusal that cannot be read rejects the handshake, too', async () => {
    const error = { code: { toString: 1 }, message: { toString: null } };
    await assert.rejects(open({ result: { success: false, error } }), { name: 'AbpError' });
  });

  test('requirements of any shape are read as data', async () => {
    const capabilities = [5, 'x', [null], [{ met: false, description: 'd' }]].map(
      (requirements, i) => ({ name: `${i}`, requirements }),
    );
    await open({ result: { ...RESULT, capabilities } });
    const available = await Promise.all(
      capabilities.map(async ({ name }) => (await client.supports(name)).available),
    );
    assert.deepEqual(available, [true, true, true, false]);
  });

  test('a port that closes settles what is pending', async () => {
    await open();
    const [[pending]] = await calls(1);
    channel.port2.close();
    assert.equal((await pending).error.code, 'DISCONNECTED');
  });
});

describe('configuration', () => {
  const app = { id: 'a', name: 'A', version: '1' };
  const bad = [
    '*',
    '',
    'null',
    'localhost.',
    'x@y',
    'https://a.example/path',
    'https://u@a.example',
    'https://a.example.',
    'file:///x',
    7,
    null,
    /a/,
  ];
  for (const origin of bad) {
    test(`${String(origin)} is no origin`, () => {
      assert.throws(() => expose({ app, capabilities: {} }, { origins: [origin] }), {
        name: 'AbpError',
        code: 'INVALID_PARAMS',
      });
    });
  }
  test('an origin is taken in every form that browsers read, and compared in theirs', () => {
    const forms = {
      'HTTPS://A.Example': 'https://a.example',
      'https://a.example/': 'https://a.example',
      'https://a.example:443': 'https://a.example',
      'http://a.example:8080/': 'http://a.example:8080',
      'https://bücher.example': 'https://xn--bcher-kva.example',
      'http://127.1': 'http://127.0.0.1',
    };
    for (const [given, compared] of Object.entries(forms)) {
      const allowed = fromOrigins([given]);
      const of = (origin) => allowed({ headers: { origin } });
      assert.deepEqual([of(compared), of(given)], [true, given === compared], given);
    }
  });

  test('an app in a page, without origins, exposes itself to nobody, and says so', () => {
    globalThis.window = globalThis;
    try {
      assert.throws(() => expose({ app, capabilities: {} }), /origins/);
    } finally {
      delete globalThis.window;
    }
  });
  test('what cannot be exposed or connected is named', async () => {
    assert.throws(
      () => expose({ app, capabilities: { x: {} } }, { port: channel.port1 }),
      /handler/,
    );
    assert.throws(() => expose({ app: {}, capabilities: {} }, { port: channel.port1 }), /app/);
  });
  test('an agent says who it is', async () => {
    await assert.rejects(connect(channel.port1, {}), /agent/);
    // null is what querySelector finds where there is no iframe yet.
    for (const target of [undefined, null, 'x', {}]) {
      await assert.rejects(connect(target, { agent: { name: 'a', version: '1' } }), {
        code: 'INVALID_PARAMS',
        message: /iframe, a port, a worker or a function/,
      });
    }
  });
});
