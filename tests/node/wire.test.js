// The wire as a peer sees it: what a message and an entry of a frame mean when they come, what
// goes, and what is made of what is no message of the protocol. The peer is played by hand, at the
// other end of a port.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose, transfer } from '../../parts/main/index.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const FEATURES = {
  notifications: true,
  progress: true,
  elicitation: true,
  'bridge.streams': true,
  'bridge.outcomes': true,
};
/** Both forms in which things are said, by what was agreed on. */
const FORMS = { messages: FEATURES, frames: { ...FEATURES, 'bridge.frames': true } };

/**
 * What is said next: the type and the payload of a message, or an entry; without what is measured.
 */
async function heard(raw) {
  const said = await raw.next();
  if (!Array.isArray(said)) return [said.type, withoutTime(said.payload)];
  const [kind, key, a, b] = said;
  assert.equal(said.length, 4);
  if (kind === 6) return [b.type, withoutTime(b.payload)];
  return kind === 3 ? [kind, key, Number.isInteger(a), b] : [kind, key, a, withoutTime(b)];
}
function withoutTime(payload) {
  if (payload?.metadata) delete payload.metadata.duration;
  return payload;
}

/** Our app, and an agent by hand. */
async function rawAgent(capabilities, features) {
  const { port1, port2 } = new MessageChannel();
  const exposed = expose({ app: APP, capabilities }, { port: port1 });
  const raw = new Raw(port2);
  closeAfter(() => (exposed.close(), port2.close()));
  await raw.ask('initialize', 'P', { agent: AGENT, protocolVersion: '0.1', features });
  return { raw, exposed };
}
/** Our agent, and an app by hand. */
async function rawApp(features, options) {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port2);
  const connecting = connect(port1, { agent: AGENT, ...options });
  const { id } = await raw.next();
  const session = { sessionId: 'S', protocolVersion: '0.1', app: APP, capabilities: [] };
  raw.send('initialize-result', id, { ...session, features });
  const client = await connecting;
  closeAfter(() => (client.close(), port2.close()));
  return { raw, client, id };
}

for (const [form, features] of Object.entries(FORMS)) {
  const inFrames = form === 'frames';

  describe(`a call that comes in ${form}`, () => {
    const CAPABILITIES = {
      shows: (params, { callId, input }) => ({ params, callId, input: Boolean(input) }),
      reports: (_params, { progress }) => progress({ progress: 1 }),
      *counts() {
        yield* [1, 2];
        return 'counted';
      },
      cached: () => ({ success: true, data: 1, metadata: { cached: false } }),
      broken: () => ({
        success: false,
        error: { code: 'OWN', message: 'm' },
        metadata: { own: 1 },
      }),
    };
    const open = async () => (await rawAgent(CAPABILITIES, features)).raw;
    /** @param {Record<string, any>} asked params and options */
    function call(raw, key, capability, { params, timeout, progress, window, input } = {}) {
      if (inFrames) {
        const options = [params, timeout, progress, ...(window ?? [0, 0]), input];
        return raw.port.postMessage([2, key, capability, options]);
      }
      const [chunks, bytes] = window ?? [];
      const stream = window && { chunks, bytes };
      const options = { callId: key, timeout, progressToken: progress, stream, input };
      raw.send('capabilities/call', 'm', { capability, params, options });
    }
    const answer = (key, data) =>
      inFrames
        ? [3, key, true, data]
        : ['capabilities/call-result', { success: true, data, metadata: {} }];

    test('has its params, and input only if it says so', async () => {
      const raw = await open();
      for (const [asked, params, input = false] of [
        [{}, {}],
        [{ params: null }, {}],
        [{ params: 0 }, 0],
        [{ params: '' }, ''],
        [{ params: [1] }, [1]],
        [{ timeout: 1.5e9 }, {}],
        [{ input: 1 }, {}],
        [{ input: true }, {}, true],
      ]) {
        call(raw, 'c', 'shows', asked);
        assert.deepEqual(await heard(raw), answer('c', { params, callId: 'c', input }));
      }
    });

    test('hears of its progress by the token that it gave', async () => {
      const raw = await open();
      for (const progress of ['token', 7, 0, '']) {
        call(raw, 'c', 'reports', { progress });
        assert.deepEqual(await heard(raw), ['progress', { progress: 1, operationId: progress }]);
        await raw.next();
      }
      for (const progress of [undefined, null, false]) {
        call(raw, 'c', 'reports', { progress });
        assert.deepEqual(await heard(raw), answer('c', undefined));
      }
      if (!inFrames) return;
      call(raw, 5, 'reports', { progress: true });
      assert.deepEqual(await heard(raw), [5, 5, undefined, { progress: 1 }]);
    });

    test('has its chunks one by one if it opens a window, and else together', async () => {
      const raw = await open();
      call(raw, 'c', 'counts', { window: [4, 1000] });
      for (const chunk of [1, 2]) {
        const [type, said, size, last] = await heard(raw);
        if (inFrames) assert.deepEqual([type, said, last], [8, 'c', chunk]);
        else assert.deepEqual([type, said.callId, said.chunk], ['bridge/chunk', 'c', chunk]);
        assert.ok((inFrames ? size : said.size) > 0);
      }
      assert.deepEqual(await heard(raw), answer('c', 'counted'));
      for (const window of [
        [0, 5],
        ['1', 5],
        [true, 5],
        [-1, 5],
        [NaN, 5],
        [{}, {}],
      ]) {
        call(raw, 'c', 'counts', { window });
        assert.deepEqual(await heard(raw), answer('c', 'counted'), String(window));
      }
    });

    test('is answered with a whole response where that says more than data', async () => {
      const raw = await open();
      const error = { code: 'OWN', message: 'm', retryable: false };
      const failed = { success: false, error, metadata: { own: 1, outcome: 'failed' } };
      for (const [name, response] of [
        ['cached', { success: true, data: 1, metadata: { cached: false } }],
        ['broken', failed],
      ]) {
        call(raw, 'c', name);
        const expected = inFrames ? [4, 'c', undefined] : ['capabilities/call-result'];
        assert.deepEqual(await heard(raw), [...expected, response]);
      }
    });
  });

  describe(`a call that goes in ${form}`, () => {
    test('says what was asked, and nothing else', async () => {
      const { raw, client, id } = await rawApp(features);
      let number = 0;
      for (const [asked, options, entry] of [
        [{}, {}, undefined],
        [{ timeout: 1e8 }, { timeout: 1e8 }, [1e8, false]],
        [{ onProgress() {} }, { progressToken: 'id' }, [0, true]],
        [{ progressToken: 'token' }, { progressToken: 'token' }, [0, 'token']],
        [{ progressToken: 0 }, { progressToken: 0 }, [0, 0]],
        [{ idempotencyKey: 'k' }, { idempotencyKey: 'k' }, [0, false, 0, 0, false, 'k']],
        [{ callId: 'own' }, {}, undefined],
      ]) {
        number++;
        void client.call('x', { a: 1 }, asked);
        const callId = asked.callId ?? `${id}.${number}`;
        if (options.progressToken === 'id') options.progressToken = callId;
        const expected = {
          capability: 'x',
          params: { a: 1 },
          callId,
          options: { callId, ...options },
        };
        const key = asked.callId ?? number;
        assert.deepEqual(
          await heard(raw),
          !inFrames
            ? ['capabilities/call', expected]
            : entry
              ? [2, key, 'x', [{ a: 1 }, ...entry]]
              : [1, key, 'x', { a: 1 }],
        );
      }
    });

    test('moves what was marked, and says why it cannot be sent', async () => {
      const { raw, client } = await rawApp(features);
      const moved = new ArrayBuffer(1);
      void client.call('x', { moved }, { transfer: [moved] });
      await raw.next();
      assert.equal(moved.byteLength, 0);
      for (const options of [{}, { timeout: 1e8 }]) {
        const { error } = await client.call('x', { act() {} }, options);
        assert.equal(error.code, 'INVALID_PARAMS');
        assert.match(error.message, /cannot be sent: params.act \(function\)/);
      }
    });
  });

  describe(`an answer that comes in ${form}`, () => {
    const NONE = 'The operation failed, and no reason was given';
    const failed = (error) => ({ success: false, error, metadata: { outcome: 'failed' } });
    /** What our agent's call returns if it is answered so. */
    async function answered({ raw, client }, response) {
      const pending = client.call('x');
      const said = await raw.next();
      if (inFrames) raw.port.postMessage([4, said[1], undefined, response]);
      else raw.send('capabilities/call-result', said.id, response);
      return pending;
    }

    test('is a success, has failed, was cancelled or timed out', async () => {
      const app = await rawApp(features);
      for (const [response, success, cancelled, code] of [
        [{ success: true }, true],
        [{ success: true, cancelled: 1 }, true],
        [{ success: true, cancelled: true }, false, true, 'CANCELLED'],
        [{ success: false, cancelled: true }, false, true, 'CANCELLED'],
        [{ success: false, cancelled: 1 }, false, undefined, 'OPERATION_FAILED'],
        [{ success: false, error: { code: 'CANCELLED' } }, false, true, 'CANCELLED'],
        [{ success: false, error: { code: 'TIMEOUT' } }, false, undefined, 'TIMEOUT'],
        [{ success: false, cancelled: true, error: { code: 'TIMEOUT' } }, false, true, 'TIMEOUT'],
        [{ success: 1 }, false, undefined, 'OPERATION_FAILED'],
      ]) {
        const got = await answered(app, response);
        const what = JSON.stringify(response);
        assert.deepEqual([got.success, got.error?.code], [success, code], what);
        assert.equal(got.cancelled === true || undefined, cancelled, what);
      }
    });

    test('has an error with a code, words and retryable, and keeps what else it says', async () => {
      const app = await rawApp(features);
      const known = { code: 'OPERATION_FAILED', retryable: false };
      for (const [error, expected] of [
        ['why', { ...known, message: 'why' }],
        ['', { ...known, message: NONE }],
        [null, { ...known, message: NONE }],
        [{ code: 'X' }, { code: 'X', message: 'X', retryable: false }],
        [
          { code: 'X', message: '' },
          { code: 'X', message: 'X', retryable: false },
        ],
        [
          { code: 5, message: 'm', own: 1 },
          { ...known, message: 'm', own: 1 },
        ],
        [
          { code: 'X', message: 'm', retryable: 1 },
          { code: 'X', message: 'm', retryable: false },
        ],
        [
          { code: 'X', message: 'm', own: 1 },
          { code: 'X', message: 'm', retryable: false, own: 1 },
        ],
      ])
        assert.deepEqual(await answered(app, { success: false, error }), failed(expected));
      const own = await answered(app, { success: false, own: 1 });
      assert.deepEqual(own, { ...failed({ ...known, message: NONE }), own: 1 });
    });
  });
}

describe('a frame', () => {
  test('brings a result as its value, progress by number, and messages', async () => {
    const notified = [];
    const onNotification = (...given) => notified.push(given);
    const { raw, client } = await rawApp(FORMS.frames, { onNotification });
    const told = [];
    const pending = client.call('x', {}, { onProgress: (info) => told.push(info) });
    const [, key] = await raw.next();
    const note = { type: 'notification', payload: { event: 'e', data: 1 } };
    raw.port.postMessage([
      5,
      key,
      undefined,
      { progress: 1, total: 2 },
      6,
      0,
      undefined,
      note,
      3,
      key,
      12,
      { d: 1 },
    ]);
    const expected = { success: true, data: { d: 1 }, metadata: { duration: 12 } };
    assert.deepEqual(await pending, expected);
    assert.deepEqual(
      told.map(({ progress, percentage }) => [progress, percentage]),
      [[1, 50]],
    );
    assert.deepEqual(notified, [['e', 1]]);
  });

  test('is sent in parts if one of its calls cannot be sent: that fails, and the others arrive', async () => {
    const { raw, client } = await rawApp(FORMS.frames);
    const [first, moved] = [new ArrayBuffer(1), new ArrayBuffer(1)];
    const calls = [0, { act() {} }, { moved }, 3].map((params) =>
      client.call('x', params, params.moved ? { transfer: [moved] } : {}),
    );
    const arrived = [];
    while (arrived.length < 3) arrived.push(...(await raw.next()).filter((_, i) => i % 4 === 3));
    assert.deepEqual(arrived, [0, { moved: first }, 3]);
    assert.equal((await calls[1]).error.code, 'INVALID_PARAMS');
    assert.equal(moved.byteLength, 0);
  });

  test('of several calls is answered by the first result at once and one frame of the others', async () => {
    const { raw } = await rawAgent({ echo: (x) => x, later: async (x) => x }, FORMS.frames);
    const calls = ['echo', 'later', 'echo', 'later', 'echo'];
    raw.port.postMessage(calls.flatMap((name, i) => [1, i + 1, name, i]));
    const [first, rest] = [await raw.next(), await raw.next()];
    const answers = [...first, ...rest].filter((_, i) => i % 4 === 3);
    assert.deepEqual([first.length, answers.sort()], [4, [0, 1, 2, 3, 4]]);
  });
});

test('a question names the call that it is about, and its timeout', async () => {
  const asks = (params, { elicit }) => elicit({ method: 'm', params: 1, ...params });
  for (const [form, features] of Object.entries(FORMS)) {
    const { raw } = await rawAgent({ asks }, features);
    for (const [timeout, more] of [
      [undefined, {}],
      [1e8, { timeout: 1e8 }],
    ]) {
      raw.send('capabilities/call', 'c', { capability: 'asks', params: { timeout } });
      const said = await raw.next();
      if (form === 'frames') {
        assert.deepEqual(said, [2, said[1], 'm', [1, timeout ?? 0, false, 0, 0, 'c']]);
        raw.port.postMessage([3, said[1], 0, 'answer']);
      } else {
        assert.equal(said.type, 'elicitation/request');
        assert.deepEqual(said.payload, { method: 'm', params: 1, callId: 'c', ...more });
        raw.send('elicitation/response', said.id, { success: true, data: 'answer' });
      }
      const [, { data }] = await heard(raw);
      assert.equal(data, 'answer');
    }
  }
});

test('progress has numbers and texts where they belong, and a percentage where there is a total', async () => {
  const told = [];
  const { raw, client } = await rawApp(FEATURES, { onProgress: (info) => told.push(info) });
  const whole = { progress: 1, total: 4, percentage: 30, estimatedRemaining: 5 };
  const texts = { status: 's', stage: 't', own: true };
  const odd = { progress: '1', total: NaN, percentage: Infinity, estimatedRemaining: null };
  const cases = [
    [
      { ...whole, ...texts },
      { ...whole, ...texts },
    ],
    [
      { progress: 1, total: 4 },
      { progress: 1, total: 4, percentage: 25 },
    ],
    [
      { progress: 5, total: 4 },
      { progress: 5, total: 4, percentage: 100 },
    ],
    [
      { progress: 1, total: 0 },
      { progress: 1, total: 0 },
    ],
    [
      { progress: 1, total: -1 },
      { progress: 1, total: -1 },
    ],
    [{ ...odd, status: 1, stage: {} }, { progress: 0 }],
    [{}, { progress: 0 }],
  ];
  for (const [said] of cases) raw.send('progress', undefined, { operationId: 'o', ...said });
  const pending = client.call('x');
  raw.send('capabilities/call-result', (await raw.next()).id, { success: true });
  await pending;
  assert.deepEqual(
    told,
    cases.map(([, expected]) => ({ operationId: 'o', ...expected })),
  );
});

test('a notification may name its event and data as JSON-RPC does', async () => {
  const told = [];
  const { raw, client } = await rawApp(FEATURES, {
    onNotification: (...given) => told.push(given),
  });
  raw.send('notification', undefined, { event: 'e', data: 'd', method: 'm', params: 'p' });
  raw.send('notification', undefined, { method: 'm', params: 'p' });
  const pending = client.call('x');
  raw.send('call-result', (await raw.next()).id, { success: true });
  await pending;
  assert.deepEqual(told, [
    ['e', 'd'],
    ['m', 'p'],
  ]);
});

test('a cancel counts, whatever stands beside what it says', async () => {
  const stopped = (_params, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    );
  const { raw } = await rawAgent({ stopped }, FEATURES);
  const bytes = new Uint8Array(1 << 20);
  const more = {
    bytes,
    big: 1n,
    boxed: Object(1n),
    list: [1, 'x\0'],
    fine: 'ü😀',
    reason: 'enough',
  };
  for (const payload of [
    { callId: 'c', ...more },
    { callId: 'c', reason: 'enough', nested: { callId: 'a\0b' } },
  ]) {
    raw.send('capabilities/call', 'c', { capability: 'stopped' });
    raw.send('capabilities/cancel', 'k', payload);
    assert.deepEqual(await heard(raw), [
      'capabilities/cancel-result',
      { callId: 'c', cancelled: true },
    ]);
    const [, { cancelled, error }] = await heard(raw);
    assert.deepEqual([cancelled, error.message], [true, 'enough']);
  }
});

test('what cannot be moved is copied, and a result that cannot be sent says why', async () => {
  const capabilities = {
    immovable: () => transfer({ d: 1 }, [/** @type {any} */ ({})]),
    unsendable: () => transfer({ act() {} }, []),
  };
  const message = /^The result cannot be sent: data.act \(function\): .* could not be cloned/;
  for (const features of Object.values(FORMS)) {
    const { raw } = await rawAgent(capabilities, features);
    const asks = { message: (name) => raw.send('capabilities/call', 'c', { capability: name }) };
    if (features['bridge.frames']) asks.entry = (name) => raw.port.postMessage([1, 'c', name, 0]);
    for (const [how, ask] of Object.entries(asks)) {
      ask('immovable');
      const copied = await heard(raw);
      assert.deepEqual(how === 'entry' ? copied[3] : copied[1].data, { d: 1 });
      ask('unsendable');
      const { success, error } = (await heard(raw)).at(-1);
      assert.deepEqual([success, error.code], [false, 'OPERATION_FAILED']);
      assert.match(error.message, message);
    }
  }
});
