// What a handler is given and what becomes of what it returns, over every way alike.
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { transfer } from '../../parts/main/index.js';
import { CONNECTIONS } from '../support/connections.js';

let pair;
afterEach(() => pair?.close());

const withoutMetadata = ({ metadata: _metadata, ...response }) => response;

/** What a handler returns, and the response that it makes. */
const error = { code: 'OWN', message: 'not today', retryable: true };
const CANCELLED = { code: 'CANCELLED', message: 'declined', retryable: false };
const RETURNED = {
  data: [{ a: 1 }, { success: true, data: { a: 1 } }],
  'a response with data': [
    { success: true, data: { a: 1 } },
    { success: true, data: { a: 1 } },
  ],
  'a response without data': [{ success: true }, { success: true, data: undefined }],
  'a response that failed': [
    { success: false, error },
    { success: false, error },
  ],
  'a response that failed, with a text': [
    { success: false, error: 'boom' },
    { success: false, error: { code: 'OPERATION_FAILED', message: 'boom', retryable: false } },
  ],
  'a response that says cancelled': [
    { success: false, cancelled: true, error: CANCELLED },
    { success: false, cancelled: true, error: CANCELLED },
  ],
  'a response that says cancelled in words of its own': [
    { success: false, cancelled: true, error },
    { success: false, cancelled: true, error },
  ],
  'data of the same form, in a response': [
    { success: true, data: { success: false } },
    { success: true, data: { success: false } },
  ],
  'data with a success and more': [
    { success: false, reason: 'of its own' },
    { success: true, data: { success: false, reason: 'of its own' } },
  ],
  'data with a success that is no boolean': [
    { success: 1 },
    { success: true, data: { success: 1 } },
  ],
};

// The others take progress otherwise.
for (const connection of ['a port with frames', 'a port with messages', 'a WebSocket'])
  test(`over ${connection}, of progress in a loop the first and the last of each turn are told, the last before its end`, async () => {
    pair = await CONNECTIONS[connection]({
      async work(_params, { progress }) {
        for (let i = 1; i <= 99; i++) progress({ progress: i });
        await new Promise((resolve) => setTimeout(resolve));
        for (let i = 100; i <= 200; i++) progress({ progress: i });
      },
    });
    const seen = [];
    await pair.call('work', {}, { onProgress: ({ progress }) => seen.push(progress) });
    // A turn that takes very long tells of one now and then.
    assert.ok(seen.length < 200 && seen[0] === 1 && seen.includes(99), seen.join());
    assert.equal(seen.at(-1), 200);
  });

for (const [connection, open] of Object.entries(CONNECTIONS)) {
  describe(`over ${connection}, a handler`, () => {
    for (const [what, [value, expected]] of Object.entries(RETURNED)) {
      test(`that returns ${what}`, async () => {
        pair = await open({ work: async () => value });
        const response = withoutMetadata(await pair.call('work'));
        assert.deepEqual({ data: undefined, ...response }, { data: undefined, ...expected });
      });
    }

    test('that spreads its context into another keeps all of it', async () => {
      const aborted = [];
      pair = await open({
        work: (_params, context) => {
          const { signal, progress, elicit, call, callId, breathe, token } = { ...context };
          for (const member of [progress, elicit, call, breathe])
            assert.equal(typeof member, 'function');
          assert.deepEqual([typeof callId, token.cancelled], ['string', false]);
          return new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => {
              aborted.push(token.cancelled);
              reject(signal.reason);
            }),
          );
        },
      });
      const controller = new AbortController();
      const pending = pair.call('work', {}, { signal: controller.signal });
      setImmediate(() => controller.abort('stop'));
      assert.equal((await pending).cancelled, true);
      assert.deepEqual(aborted, [true]);
    });

    test('that computes without end and breathes hears of its cancel', async () => {
      let rows = 0;
      pair = await open({
        work: async (_params, { breathe }) => {
          for (;;) {
            if (++rows === 1000) controller.abort('seen enough');
            await breathe();
          }
        },
      });
      const controller = new AbortController();
      const { cancelled, error } = await pair.call('work', {}, { signal: controller.signal });
      assert.deepEqual([cancelled, error.message], [true, 'seen enough']);
    });

    for (const already of [true, false]) {
      test(`whose caller’s signal says that time ran out (${already ? 'before' : 'after'} the call) has timed out`, async () => {
        const controller = new AbortController();
        const abort = () => controller.abort(new DOMException('Too late', 'TimeoutError'));
        if (already) abort();
        pair = await open({
          work: (_params, { signal }) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => reject(new Error('fetch failed')));
              abort();
            }),
        });
        const response = await pair.call('work', {}, { signal: controller.signal });
        assert.deepEqual(withoutMetadata(response), {
          success: false,
          cancelled: true,
          error: { code: 'TIMEOUT', message: 'Too late', retryable: already }, // it never ran
        });
      });
    }

    if (!/handler|window/.test(connection)) {
      for (const progressToken of ['a token', 7]) {
        test(`knows the name that its caller gave to its progress, which comes by it (${progressToken})`, async () => {
          pair = await open({
            work: (_params, context) => {
              context.progress({ progress: 1 });
              return context.progressToken;
            },
          });
          const heard = [];
          const onProgress = ({ operationId }) => heard.push(operationId);
          assert.equal(
            (await pair.call('work', {}, { progressToken, onProgress })).data,
            progressToken,
          );
          const options = { callId: 'own', onProgress };
          assert.equal((await pair.call('work', {}, options)).data, 'own');
          assert.equal((await pair.call('work')).data, undefined);
          assert.deepEqual(heard, [progressToken, 'own']);
        });
      }
    }

    test('that says a result is cached says so to its caller', async () => {
      pair = await open({
        work: () => ({ success: true, data: 1, metadata: { cached: true } }),
      });
      const { data, metadata } = await pair.call('work');
      assert.deepEqual([data, metadata.cached], [1, true]);
    });
  });
}

test('what a response marks to be moved is moved', async () => {
  const pixels = new Uint8Array(8);
  pair = await CONNECTIONS['a port with frames']({
    work: () => transfer({ success: true, data: { pixels } }, [pixels.buffer]),
  });
  assert.equal((await pair.call('work')).data.pixels.length, 8);
  assert.equal(pixels.length, 0);
});

test('a question whose answer a handler returns is unwrapped, whoever answers it', async () => {
  for (const [connection, open] of Object.entries(CONNECTIONS)) {
    for (const [answer, expected] of [
      [{ confirmed: true }, { success: true, data: { confirmed: true } }],
      [
        { success: true, data: 1 },
        { success: true, data: 1 },
      ],
      [
        { success: false, error },
        { success: false, error },
      ],
    ]) {
      pair = await open(
        { work: (_params, { elicit }) => elicit({ method: 'elicitation/input' }) },
        { options: { onElicitation: () => answer } },
      );
      assert.deepEqual(withoutMetadata(await pair.call('work')), expected, connection);
      pair.close();
    }
  }
});
