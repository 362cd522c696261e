// What a handler gives may throw when it is read, and may say something else the next time: its
// call fails with an answer, and nobody else notices.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openPair } from '../support/pair.js';

const evil = () => {
  throw new Error('evil');
};
/** An object with a member that throws when it is read after so many times. */
function throwsAfter(times, object, key) {
  let reads = 0;
  return Object.defineProperty(object, key, {
    enumerable: true,
    get: () => (reads++ < times ? 'v' : evil()),
  });
}
/** Members that JSON would ask for their own form. */
class Asked {
  toJSON() {
    evil();
  }
}
const failure = (error, more) => ({
  success: false,
  error: { code: 'OWN', message: 'words', retryable: false, ...error },
  ...more,
});

/** What handlers give, and the code and the words that their callers are told. */
const GIVEN = {
  'an error with a member that throws': [
    () => ({ success: false, error: throwsAfter(0, { code: 'OWN', message: 'words' }, 'more') }),
    ['OPERATION_FAILED', /evil/],
  ],
  'an error with a member that throws the second time': [
    () => ({ success: false, error: throwsAfter(1, { code: 'OWN', message: 'words' }, 'more') }),
    ['OWN', /words/],
  ],
  'an error that is a proxy': [
    () => ({ success: false, error: new Proxy({}, { ownKeys: evil, get: evil }) }),
    ['OPERATION_FAILED', /evil|cannot be read/],
  ],
  'an error that is an Error': [
    () => ({ success: false, error: new Error('words') }),
    ['OPERATION_FAILED', /words/],
  ],
  'metadata with a member that throws': [
    () => failure({}, { metadata: throwsAfter(0, {}, 'report') }),
    ['OPERATION_FAILED', /evil/],
  ],
  'a success whose metadata throws': [
    () => ({ success: true, data: 1, metadata: throwsAfter(0, {}, 'cached') }),
    ['OPERATION_FAILED', /evil/],
  ],
  'data with a form of its own': [() => failure({}, { data: new Asked() }), ['OWN', /words/]],
  'an error with a function in it': [() => failure({ toJSON: evil }), ['OPERATION_FAILED', /sent/]],
  'details with a form of their own': [
    () => {
      throw Object.assign(new Error('words'), {
        code: 'OWN',
        retryable: false,
        details: new Asked(),
      });
    },
    ['OWN', /words/],
  ],
  'an error with too many members': [
    () => failure(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, 'v']))),
    ['OWN', /words/],
  ],
  'a thrown proxy': [
    () => {
      throw new Proxy({}, { get: evil, has: evil, getPrototypeOf: evil });
    },
    ['OPERATION_FAILED', /cannot be read/],
  ],
};

/** Texts that are longer than what the core is given. */
const LONG = {
  'an error with long words': () => failure({ message: 'x'.repeat(3000) }),
  'much metadata': () =>
    failure(
      {},
      { metadata: Object.fromEntries([...'abcdefgh'].map((key) => [key, 'x'.repeat(900)])) },
    ),
};

/** Values that JSON does not carry, in the place of a progress token. */
const TOKENS = { bigint: 1n, 'with a form of its own': new Asked(), symbol: Symbol('t') };

for (const upgrade of /** @type {const} */ (['frames', 'none'])) {
  describe(`with ${upgrade === 'frames' ? 'frames' : 'plain messages'}`, () => {
    const open = async (t, capabilities, options) => {
      t.mock.method(console, 'error', () => {});
      const { client } = await openPair(
        {
          ...capabilities,
          lasts: (_params, { signal }) =>
            new Promise((_resolve, reject) =>
              signal.addEventListener('abort', () => reject(signal.reason)),
            ),
        },
        { agent: { upgrade, ...options } },
      );
      return client;
    };

    for (const [what, [handler, [code, words]]] of Object.entries(GIVEN)) {
      test(what, async (t) => {
        const client = await open(t, { gives: handler });
        const stop = new AbortController();
        const other = client.call('lasts', {}, { signal: stop.signal });
        const { success, error, metadata } = await client.call('gives');
        assert.deepEqual([success, error.code, metadata.outcome], [false, code, 'failed']);
        assert.match(error.message, words);
        stop.abort();
        assert.equal((await other).metadata.outcome, 'stopped');
      });

      test(`answers a question: ${what}`, async (t) => {
        const asks = (_params, { elicit }) => elicit({ method: 'q', params: {} });
        const client = await open(t, { asks }, { onElicitation: handler });
        const { success, error } = await client.call('asks');
        assert.deepEqual([success, error?.code], [false, code]);
      });
    }

    for (const [what, handler] of Object.entries(LONG))
      for (const side of ['agent', 'app'])
        test(`${what}, and an ${side} whose core reads little`, async () => {
          const limits = { maxControlLength: 2048 };
          const { client } = await openPair(
            { gives: handler },
            { agent: { upgrade }, [side]: { upgrade, limits } },
          );
          const { error, metadata } = await client.call('gives');
          assert.deepEqual([error.code, metadata.outcome], ['OWN', 'failed']);
        });

    for (const [what, progressToken] of Object.entries(TOKENS)) {
      test(`a progress token, ${what}`, async (t) => {
        const reports = (_params, { progress }) => progress({ progress: 1 });
        const client = await open(t, { reports });
        const options = /** @type {any} */ ({ progressToken, onProgress() {} });
        const { success, error } = await client.call('reports', {}, options);
        if (!success) assert.equal(error.code, 'INVALID_PARAMS');
      });
    }
  });
}
