// What becomes of the values that a call carries: what is moved, what a chunk counts as, what a
// handler's error and a caller's reason are on the other side.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { AbpError, transfer } from '../../parts/main/index.js';
import { openPair } from '../support/pair.js';

const nested = (levels, inner) => {
  let value = inner;
  for (let i = 0; i < levels; i++) value = { value };
  return value;
};
const listOf = (length) => Array.from({ length }, (_, i) => i);
const recordOf = (length) => Object.fromEntries(listOf(length).map((i) => [`m${i}`, i]));
/** What a getter throws. */
const unreadable = new Proxy(
  {},
  {
    get() {
      throw new Error('no');
    },
  },
);

describe('bytes of a result', () => {
  const binary = (content, more) => ({ content, mimeType: 'a/b', ...more });
  class Own {
    constructor(content) {
      this.binary = binary(content);
    }
  }
  /** A value with bytes in it, and whether they are moved. */
  const MOVED = {
    'within BinaryData': [binary, true],
    'within BinaryData in a list': [(content) => ({ a: [binary(content)] }), true],
    'three levels inside': [(content) => nested(3, binary(content)), true],
    'four levels inside': [(content) => nested(4, binary(content)), false],
    'twice in a list': [(content) => [binary(content), binary(content)], true],
    'among 64 elements': [(content) => [...listOf(63), binary(content)], true],
    'after 64 elements': [(content) => [...listOf(64), binary(content)], false],
    'among 64 members': [(content) => ({ ...recordOf(63), a: binary(content) }), true],
    'after 64 members': [(content) => ({ ...recordOf(64), a: binary(content) }), false],
    'in an object of a class': [(content) => new Own(content), false],
    'within BinaryData that has others inside': [
      (content) => binary(new ArrayBuffer(4), { more: binary(content) }),
      false,
    ],
    'without a type': [(content) => ({ content }), false],
    'whose type is no text': [(content) => ({ content, mimeType: 1 }), false],
    'shown by a view': [(content) => binary(new Uint8Array(content)), false],
    'that are marked': [(content) => transfer({ content }, [content]), true],
    'of BinaryData of which nothing is marked': [(content) => transfer(binary(content), []), false],
  };
  for (const [where, [make, isMoved]] of Object.entries(MOVED)) {
    test(`are ${isMoved ? 'moved' : 'copied'}: ${where}`, async () => {
      const content = new ArrayBuffer(8);
      const { client } = await openPair({ get: () => make(content) });
      assert.equal((await client.call('get')).success, true);
      assert.equal(content.byteLength, isMoved ? 0 : 8);
    });
  }

  test('that stand twice in it are listed once: browsers refuse a list that names them twice', async (t) => {
    const lists = [];
    const { postMessage } = MessagePort.prototype;
    t.mock.method(MessagePort.prototype, 'postMessage', function (message, list) {
      if (list?.length) lists.push(list);
      return postMessage.call(this, message, list);
    });
    const content = new ArrayBuffer(8);
    const { client } = await openPair(
      { get: () => [binary(content), binary(content)] },
      { upgrade: 'none' },
    );
    await client.call('get');
    assert.deepEqual(lists, [[content]]);
  });

  test('that were moved before are not sent as if there were none', async () => {
    const content = new ArrayBuffer(8);
    const { client } = await openPair({ get: () => binary(content) });
    await client.call('get');
    const { error } = await client.call('get');
    assert.equal(error.code, 'OPERATION_FAILED');
    assert.match(error.message, /^The result cannot be sent: data\.content \(ArrayBuffer\): /);
  });
});

test('a ReadableStream is read as one, also where it cannot be iterated', async (t) => {
  const iterates = Object.getOwnPropertyDescriptor(ReadableStream.prototype, Symbol.asyncIterator);
  delete ReadableStream.prototype[Symbol.asyncIterator];
  t.after(() => Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, iterates));
  let leave;
  const left = new Promise((resolve) => (leave = resolve));
  const { client } = await openPair({
    reads: () =>
      new ReadableStream({
        start: (controller) => ['a', 'b'].forEach((chunk) => controller.enqueue(chunk)),
        cancel: () => leave('cancelled'),
      }),
  });
  const stream = client.stream('reads');
  assert.deepEqual([(await stream.next()).value, (await stream.next()).value], ['a', 'b']);
  await stream.return();
  assert.equal(await left, 'cancelled');
});

test('a chunk counts as its bytes, its characters, the names of its members, and 8 for any other value', async () => {
  const CHUNKS = [
    ['four', 4],
    [1, 8],
    [null, 8],
    [undefined, 8],
    [new ArrayBuffer(100), 100],
    [new Uint8Array(100).subarray(10), 90],
    [new Blob(['12345']), 5],
    [new ArrayBuffer(0), 0],
    [{ ab: 'cde', f: 1, g: [true] }, 2 + 3 + 1 + 8 + 1 + 8],
    // Of more than 1,024 values, itself among them, only those.
    [listOf(1023), 1023 * 8],
    [listOf(5000), 1023 * 8],
    [{ byteLength: -1 }, 10 + 8],
  ];
  const sizes = [];
  const trace = ({ type, message }) =>
    type === 'message' && message.type === 'bridge/chunk' && sizes.push(message.payload.size);
  const { client } = await openPair(
    {
      async *chunks() {
        for (const [chunk] of CHUNKS) yield chunk;
      },
    },
    { upgrade: 'port', agent: { trace } },
  );
  const chunks = [];
  for await (const chunk of client.stream('chunks')) chunks.push(chunk);
  assert.equal(chunks.length, CHUNKS.length);
  assert.deepEqual(
    sizes,
    CHUNKS.map(([, size]) => size),
  );
});

describe('what a handler throws is the error of its call:', () => {
  const own = { code: 'OWN', message: 'm', retryable: true, retryAfter: 0, details: null };
  const failed = (message) => ({ code: 'OPERATION_FAILED', message, retryable: false });
  // The same object in very many places, an object that contains itself, and an error that does.
  let shared = [];
  for (let i = 0; i < 40; i++) shared = [shared, shared];
  shared = { shared };
  const circular = {};
  circular.self = circular;
  const endless = new AggregateError([], 'endless');
  endless.errors.push(endless);
  const THROWN = [
    [new Error('words'), failed('words')],
    ['text', failed('text')],
    [undefined, failed('The operation failed')],
    [null, failed('The operation failed')],
    [{ message: '' }, failed('{"message":""}')],
    [new TypeError(''), failed('TypeError')],
    [{ status: 404, body: { id: 7 } }, failed('{"status":404,"body":{"id":7}}')],
    [Object.assign(Object.create(null), { a: 1 }), failed('{"a":1}')],
    [{ message: { why: 'no seat' } }, failed('{"why":"no seat"}')],
    [{ text: 'x'.repeat(2000) }, failed(`{"text":"${'x'.repeat(1015)}`)],
    [shared, failed(/^{"shared":\[\[\[/)],
    [{ at: 1, list: Object.assign([], { length: 2 ** 32 - 1 }) }, failed('{"at":1}')],
    [
      { message: Object.assign([], { length: 2 ** 32 - 1 }) },
      failed('The thrown value cannot be read'),
    ],
    [circular, failed('The thrown value cannot be read')],
    [new AggregateError([new Error('a'), 'b', { c: 1 }], 'all'), failed('all: a; b; {"c":1}')],
    [new AggregateError([new Error('a')]), failed('AggregateError: a')],
    [new AggregateError('1234567'.split(''), 'all'), failed('all: 1; 2; 3; 4; 5; …')],
    [
      new AggregateError([new AggregateError(['deep'], 'inner')], 'outer'),
      failed('outer: inner: deep'),
    ],
    [endless, failed('endless: endless: endless: endless')],
    [new AbpError('OWN', 'm', { details: 1 }), { ...failed('m'), code: 'OWN', details: 1 }],
    [
      new DOMException('no', 'NotAllowedError'),
      { code: 'PERMISSION_DENIED', message: 'no', retryable: true },
    ],
    [
      new DOMException('no', 'SecurityError'),
      { code: 'PERMISSION_REQUIRED', message: 'no', retryable: true },
    ],
    // An error of the protocol has a code and says whether it may be tried again; an object that is
    // no error may be silent of that.
    [
      { code: 'OWN', message: 'm' },
      { ...failed('m'), code: 'OWN' },
    ],
    [{ code: 'OWN' }, { ...failed('{"code":"OWN"}'), code: 'OWN' }],
    [Object.assign(new Error('m'), { code: 'ENOENT' }), failed('m')],
    [{ code: 5, message: 'm', retryable: true }, failed('m')],
    [{ ...own, alternatives: undefined, more: 1 }, own],
    [new AbpError('OWN', 'm', { retryable: true, retryAfter: 0, details: null }), own],
    [unreadable, failed('The thrown value cannot be read')],
  ];
  const CANCELLED = [
    new DOMException('', 'AbortError'),
    { name: 'AbortError' },
    { code: 'CANCELLED', message: 'm', retryable: false },
  ];
  for (const [i, [thrown, expected]] of THROWN.entries()) {
    test(`${i + 1}. ${expected.code}: ${expected.message}`, async (t) => {
      t.mock.method(console, 'error', () => {});
      const { client } = await openPair({ fails: () => Promise.reject(thrown) });
      const { error, cancelled } = await client.call('fails');
      if (expected.message instanceof RegExp) assert.match(error.message, expected.message);
      else assert.deepEqual([error, cancelled], [expected, undefined]);
    });
  }
  for (const [i, thrown] of CANCELLED.entries()) {
    test(`${i + 1}. that it was cancelled`, async () => {
      const { client } = await openPair({ stops: () => Promise.reject(thrown) });
      const { error, cancelled } = await client.call('stops');
      assert.deepEqual([error.code, cancelled], ['CANCELLED', true]);
    });
  }
});

describe('the reason of a signal is the words of the AbortError that the handler gets:', () => {
  const long = 'x'.repeat(1025);
  const REASONS = [
    ['a text', 'why', 'why'],
    ['an error', new Error('why'), 'why'],
    ['a long text', long, long.slice(1)],
    ['long words of an error', { message: long }, long.slice(1)],
    ...[null, 5, {}, { message: 5 }, unreadable].map((reason, i) => [
      `none that is text, ${i + 1}`,
      reason,
      'The operation was cancelled',
    ]),
  ];
  for (const [what, reason, words] of REASONS) {
    test(what, async () => {
      let begun;
      const running = new Promise((resolve) => (begun = resolve));
      const { client } = await openPair({
        hang: (_params, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
            begun(signal);
          }),
      });
      const controller = new AbortController();
      const pending = client.call('hang', {}, { signal: controller.signal });
      const signal = await running;
      controller.abort(reason);
      assert.equal((await pending).cancelled, true);
      assert.deepEqual([signal.reason.name, signal.reason.message], ['AbortError', words]);
    });
  }
});

test('a signal may be of a library: what it has of a signal is all that is used', async () => {
  const { client } = await openPair({
    echo: (params) => params,
    hang: (_params, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  });
  const listeners = new Set();
  const signal = {
    aborted: false,
    addEventListener: mock.fn((_type, listener) => listeners.add(listener)),
    removeEventListener: (_type, listener) => listeners.delete(listener),
  };
  assert.equal((await client.call('echo', 1, { signal })).data, 1);
  assert.equal(listeners.size, 0);
  const pending = client.call('hang', {}, { signal });
  assert.deepEqual(signal.addEventListener.mock.calls[0].arguments[0], 'abort');
  Object.assign(signal, { aborted: true, reason: 'enough' });
  for (const listener of listeners)
    (listener.handleEvent ?? listener).call(listener, { type: 'abort' });
  assert.deepEqual([(await pending).cancelled, (await pending).error.message], [true, 'enough']);
});
