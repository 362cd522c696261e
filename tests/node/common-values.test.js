// Values in js/common: which parts are moved, copied, counted or refused, to the very member.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { fromBase64, toBase64 } from '../../js/common/base64.js';
import { copyOf } from '../../js/common/copy.js';
import { jsonSchemaOf, standardOf } from '../../js/common/json-schema.js';
import { requireJson } from '../../js/common/require-json.js';
import { Token } from '../../js/common/token.js';
import { isStream, markedTransfer, transfer, transferOf } from '../../js/common/transfer.js';
import { reasonUnsent, uncloneablePart, warnUnsent } from '../../js/common/uncloneable.js';
import { sizeOf } from '../../js/common/value-size.js';
import { warnings } from '../../js/common/warnings.js';
import * as values from '../../js/common/values.js';

const nested = (levels, inner) => {
  let value = inner;
  for (let i = 0; i < levels; i++) value = { value };
  return value;
};
const listOf = (length) => Array.from({ length }, (_, i) => i);
const recordOf = (length) => Object.fromEntries(listOf(length).map((i) => [`m${i}`, i]));

describe('what comes from outside', () => {
  test('is an object, or not', () => {
    assert.deepEqual([{}, [], null, undefined, 'x', () => {}].map(values.isObject), [
      ...[true, true, false, false, false, false],
    ]);
  });

  test('is read only where it is its own', () => {
    assert.equal(values.getOwn({ a: 1 }, 'a'), 1);
    assert.equal(values.getOwn(Object.create({ a: 1 }), 'a'), undefined);
    assert.equal(values.getOwn('text', 'length'), undefined);
    assert.equal(values.getOwn(null, 'a'), undefined);
  });

  test('is text, or nothing', () => {
    assert.deepEqual(
      [values.textOf('x'), values.textOf(''), values.textOf(1)],
      ['x', '', undefined],
    );
  });

  test('is a plain object, with or without a prototype', () => {
    const plain = [{}, Object.create(null), Object.create(Object.create(null))];
    assert.deepEqual(plain.map(values.isRecord), [true, true, true]);
    const others = [[], new Map(), new Uint8Array(1), null, 'x', new (class {})()];
    for (const other of others) assert.equal(values.isRecord(other), false);
  });

  test('is copied if it is a plain object that can be read', () => {
    const given = { a: 1 };
    const copy = values.copyRecord(given);
    assert.deepEqual(copy, given);
    assert.notEqual(copy, given);
    assert.deepEqual(values.copyRecord([1]), {});
    const hostile = {
      get a() {
        throw new Error('no');
      },
    };
    assert.deepEqual(values.copyRecord(hostile), {});
  });

  test('is a list of which the first are taken', () => {
    assert.deepEqual(values.firstOf([1, 2, 3], 2), [1, 2]);
    assert.deepEqual(values.firstOf('abc', 2), []);
  });

  test('is a time that a timer can take, or none', () => {
    for (const none of [undefined, null, 0, -1, NaN, Infinity, '5', {}]) {
      assert.equal(values.milliseconds(none), 0);
    }
    assert.deepEqual([0.2, 1, 1.5].map(values.milliseconds), [1, 1, 2]);
    assert.equal(values.MAX_TIMER, 2147483647);
    assert.equal(values.milliseconds(2 ** 40), 2147483647);
  });

  test('is a limit that the core can take, or 0 or NaN', () => {
    assert.deepEqual([5, -5, Infinity, '7', undefined].map(values.limitOf), [
      ...[5, 0, 2147483647, 7, NaN],
    ]);
  });
});

describe('what a value counts as', () => {
  for (const [what, value, size] of [
    ['a text: its characters', 'four', 4],
    ['anything else that is no object: 8', 1, 8],
    ['null: 8', null, 8],
    ['nothing: 8', undefined, 8],
    ['bytes: as many as they are', new ArrayBuffer(100), 100],
    ['a view: as many as it shows', new Uint8Array(100).subarray(10), 90],
    ['a Blob: its size', new Blob(['12345']), 5],
    ['no bytes: nothing', new ArrayBuffer(0), 0],
    ['members: themselves and their names', { ab: 'cde', f: 1, g: [true] }, 2 + 3 + 1 + 8 + 1 + 8],
    ['as many values as 1024, itself included', listOf(1023), 1023 * 8],
    ['and of more only those', listOf(5000), 1023 * 8],
    ['a member that says it is of a negative length: as an object', { byteLength: -1 }, 10 + 8],
  ]) {
    test(what, () => assert.equal(sizeOf(value), size));
  }

  test('and there may be no Blobs', () => {
    const { Blob } = globalThis;
    delete globalThis.Blob;
    try {
      assert.equal(sizeOf({ a: 'b' }), 2);
    } finally {
      globalThis.Blob = Blob;
    }
  });
});

describe('what is moved', () => {
  const buffer = () => new ArrayBuffer(8);

  test('is what was marked, and else the buffers of BinaryData', () => {
    const content = buffer();
    const marked = transfer({ content, mimeType: 'a/b' }, []);
    assert.deepEqual(transferOf(marked), []);
    assert.deepEqual(markedTransfer(marked), []);
    assert.equal(markedTransfer({}), undefined);
    assert.equal(markedTransfer('x'), undefined);
    assert.equal(transferOf('x'), undefined);
    assert.equal(transferOf(null), undefined);
    assert.deepEqual(transferOf({ content, mimeType: 'a/b' }), [content]);
    assert.deepEqual(transferOf({ a: [{ content, mimeType: 'a/b' }] }), [content]);
  });

  test('is nothing that is not BinaryData, or was moved before', () => {
    const moved = buffer();
    structuredClone(moved, { transfer: [moved] });
    for (const value of [
      { content: buffer() },
      { content: buffer(), mimeType: 1 },
      { content: new Uint8Array(8), mimeType: 'a/b' },
      { content: 'text', mimeType: 'a/b' },
      { content: moved, mimeType: 'a/b' },
      { a: null, b: 'x', c: [null] },
    ]) {
      assert.equal(transferOf(value), undefined);
    }
  });

  test('stands up to three levels inside, once', () => {
    const binary = { content: buffer(), mimeType: 'a/b' };
    assert.deepEqual(transferOf(nested(3, binary)), [binary.content]);
    assert.equal(transferOf(nested(4, binary)), undefined);
    const other = { content: buffer(), mimeType: 'a/b' };
    assert.deepEqual(transferOf([binary, other, binary, { other }]), [
      ...[binary.content, other.content],
    ]);
    // What is inside BinaryData is not searched.
    assert.deepEqual(transferOf({ ...binary, more: other }), [binary.content]);
  });

  test('is among the first 64 members, of lists and of plain objects', () => {
    const binary = { content: buffer(), mimeType: 'a/b' };
    assert.deepEqual(transferOf([...listOf(63), binary]), [binary.content]);
    assert.equal(transferOf([...listOf(64), binary]), undefined);
    assert.deepEqual(transferOf({ ...recordOf(63), binary }), [binary.content]);
    assert.equal(transferOf({ ...recordOf(64), binary }), undefined);
    class Own {
      binary = binary;
    }
    assert.equal(transferOf(new Own()), undefined);
  });

  test('a stream is an async iterable or a ReadableStream that is not moved as a whole', () => {
    const { ReadableStream } = globalThis;
    const readable = new ReadableStream();
    assert.equal(isStream((async function* () {})()), true);
    assert.equal(isStream(readable), true);
    for (const other of [null, undefined, 'x', {}, [], { [Symbol.asyncIterator]: 1 }]) {
      assert.equal(isStream(other), false);
    }
    const whole = new ReadableStream();
    transfer(whole, [whole]);
    assert.equal(isStream(whole), false);
  });

  test('in browsers that cannot iterate a ReadableStream, or have none', () => {
    const { ReadableStream } = globalThis;
    const iterator = ReadableStream.prototype[Symbol.asyncIterator];
    const descriptor = Object.getOwnPropertyDescriptor(
      ReadableStream.prototype,
      Symbol.asyncIterator,
    );
    delete ReadableStream.prototype[Symbol.asyncIterator];
    try {
      assert.equal(isStream(new ReadableStream()), true);
      assert.equal(isStream({}), false);
      globalThis.ReadableStream = undefined;
      assert.equal(isStream({}), false);
    } finally {
      globalThis.ReadableStream = ReadableStream;
      Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, descriptor);
    }
    assert.equal(ReadableStream.prototype[Symbol.asyncIterator], iterator);
  });

  test('a copy moves what it is told to, and what is no object is itself', () => {
    const content = buffer();
    const copy = copyOf({ content }, [content]);
    assert.deepEqual([copy.content.byteLength, content.byteLength], [8, 0]);
    const given = { a: 1 };
    assert.notEqual(copyOf(given), given);
    assert.deepEqual(copyOf(given), given);
    const act = () => {};
    assert.equal(copyOf(act), act);
  });
});

describe('what cannot be sent', () => {
  test('is found by its path and its kind', () => {
    const act = () => {};
    class Own {
      inner = act;
    }
    assert.equal(uncloneablePart({ a: [1, { b: act }] }, 'params'), 'params.a[1].b (function)');
    assert.equal(uncloneablePart(act, 'params'), 'params (function)');
    assert.equal(uncloneablePart(Symbol('x'), 'params'), 'params (symbol)');
    assert.equal(uncloneablePart([new Own()], 'data'), 'data[0].inner (function)');
    assert.equal(uncloneablePart({ a: 1, p: Promise.resolve() }, 'data'), 'data.p (Promise)');
    assert.equal(uncloneablePart({ a: [1, { b: 2 }] }, 'params'), undefined);
    const unnamed = Object.assign(Object.create(null), { map: new WeakMap() });
    assert.equal(uncloneablePart(unnamed, 'data'), 'data.map (WeakMap)');
  });

  test('is searched for through 16 levels', () => {
    const act = () => {};
    assert.match(uncloneablePart(nested(16, act), 'x'), /^x(\.value){16} \(function\)$/);
    assert.match(uncloneablePart(nested(17, act), 'x'), /^x(\.value){16} \(Object\)$/);
  });

  test('may not be readable either', () => {
    const hostile = {
      get a() {
        throw new Error('no');
      },
      b: () => {},
    };
    assert.equal(uncloneablePart(hostile, 'x'), undefined);
    const unreadable = {
      get a() {
        throw {
          get name() {
            throw new Error('no');
          },
        };
      },
    };
    assert.equal(uncloneablePart(unreadable, 'x'), undefined);
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    assert.equal(uncloneablePart({ inner: revoked.proxy }, 'x'), 'x.inner (object)');
  });

  test('is said with what the browser says', () => {
    const error = new Error('it does not go');
    assert.equal(
      reasonUnsent('result', 'data', { a: () => {} }, error),
      'The result cannot be sent: data.a (function): it does not go (docs/errors.md#what-cannot-be-sent)',
    );
    assert.match(reasonUnsent('result', 'data', {}, error), /^The result cannot be sent: it does/);
  });

  test('is warned of', (t) => {
    const said = [];
    warnings((...words) => said.push(words));
    t.after(() => warnings(true));
    const error = new Error('it does not go');
    warnUnsent(error, { a: () => {} });
    warnUnsent(error, {});
    assert.match(said[0][0], /could not be sent: payload\.a \(function\) \(docs/);
    assert.match(said[1][0], /could not be sent: {2}\(docs/);
    assert.deepEqual([said[0][1], said[1][1]], [error, error]);
  });
});

describe('a description is JSON', () => {
  const check = (value) => requireJson('The app', value, 'app');

  test('of whatever JSON can say', () => {
    check({ a: [1, 'two', null, true, { three: undefined }] });
  });

  test('and of nothing else, which is named', () => {
    for (const [value, why] of [
      [{ a: [1n] }, 'app.a.0 is a bigint'],
      [{ a: () => {} }, 'app.a is a function'],
      [Symbol('x'), 'app is a symbol'],
    ]) {
      assert.throws(() => check(value), {
        code: 'INVALID_PARAMS',
        message: `The app must be JSON, but ${why}`,
      });
    }
  });

  test('56 levels deep at most', () => {
    check(nested(56, 1));
    assert.throws(
      () => check(nested(57, 1)),
      (error) => {
        const path = `app${'.value'.repeat(57)}`.slice(0, 200);
        return (
          error.message === `The app must be JSON, but ${path} is too deep, or contains a cycle`
        );
      },
    );
  });
});

describe('a schema as agents are told of it', () => {
  const standard = (more) => ({ '~standard': { version: 1, vendor: 'zod', ...more } });

  test('is itself where it is a JSON Schema', () => {
    const schema = { type: 'object' };
    for (const given of [schema, true, false, undefined]) {
      assert.equal(jsonSchemaOf('cap', 'inputSchema', given), given);
    }
    for (const given of [[], null, 'object', new Map()]) {
      assert.throws(() => jsonSchemaOf('cap', 'inputSchema', given), {
        code: 'INVALID_PARAMS',
        message: /^inputSchema of cap must be a JSON Schema/,
      });
    }
  });

  test('is what its library makes of it, of the side that is asked for', () => {
    const options = [];
    const jsonSchema = {
      input: (given) => (options.push(given), { type: 'string' }),
      output: (given) => (options.push(given), { type: 'number' }),
    };
    const schema = standard({ jsonSchema });
    assert.deepEqual(jsonSchemaOf('cap', 'inputSchema', schema), { type: 'string' });
    assert.deepEqual(jsonSchemaOf('cap', 'outputSchema', schema), { type: 'number' });
    const expected = {
      target: 'draft-2020-12',
      libraryOptions: { unrepresentable: 'any', errorMode: 'ignore' },
    };
    assert.deepEqual(options, [expected, expected]);
    assert.equal(standardOf(schema), schema['~standard']);
    assert.deepEqual([undefined, null, {}].map(standardOf), [undefined, undefined, undefined]);
  });

  test('is missing where its library cannot say it, which is told', () => {
    const refused = (schema) => {
      try {
        return jsonSchemaOf('cap', 'outputSchema', schema);
      } catch (error) {
        assert.equal(error.code, 'INVALID_PARAMS');
        return error.message;
      }
    };
    assert.equal(
      refused(standard()),
      'outputSchema of cap cannot be described to agents: zod does not convert it to JSON Schema (docs/errors.md#schemas)',
    );
    assert.match(refused(standard({ vendor: 'valibot' })), /JSON Schema: wrap it in toStandard/);
    const output = () => {
      throw new Error('no date');
    };
    assert.match(refused(standard({ jsonSchema: { output } })), /to agents: no date \(docs/);
  });
});

describe('a token', () => {
  test('says in all its words that it was cancelled, also in those that come later', () => {
    const token = new Token();
    assert.ok(token.word.buffer instanceof SharedArrayBuffer);
    assert.deepEqual([token.word.byteLength, token.cancelled], [4, false]);
    token.throwIfCancelled();
    const [early, late] = [new Uint32Array(1), new Uint32Array(1)];
    token.add(early);
    assert.equal(early[0], 0);
    token.cancel();
    assert.deepEqual([token.cancelled, early[0], late[0]], [true, 1, 0]);
    token.add(late);
    assert.equal(late[0], 1);
    assert.throws(() => token.throwIfCancelled(), { name: 'AbortError' });
  });

  test('is seen by other threads only where memory can be shared', async (t) => {
    const { SharedArrayBuffer } = globalThis;
    t.after(() => {
      globalThis.SharedArrayBuffer = SharedArrayBuffer;
      delete globalThis.crossOriginIsolated;
    });
    const isShared = async (name) => {
      const { Token: Fresh } = await import(`../../js/common/token.js?${name}`);
      const bound = mock.fn();
      const token = new Fresh(undefined, bound);
      token.bind({ buffer: new SharedArrayBuffer(4) }, 0);
      return [token.word.buffer instanceof SharedArrayBuffer, bound.mock.callCount() === 1];
    };
    globalThis.crossOriginIsolated = true;
    assert.deepEqual(await isShared('isolated'), [true, true]);
    globalThis.crossOriginIsolated = false;
    assert.deepEqual(await isShared('not-isolated'), [false, false]);
    delete globalThis.crossOriginIsolated;
    globalThis.SharedArrayBuffer = undefined;
    assert.deepEqual(await isShared('without'), [false, false]);
  });

  test('is the same in another thread', () => {
    const token = new Token();
    const there = new Token(token.word);
    assert.equal(there.word, token.word);
    token.cancel();
    assert.equal(there.cancelled, true);
  });

  test('is bound to a word of shared memory, which is reset and told', () => {
    const bound = [];
    const token = new Token(undefined, (word) => bound.push(word));
    const memory = { buffer: new SharedArrayBuffer(64) };
    const all = new Uint32Array(memory.buffer);
    all.fill(7, 0, 3);
    token.bind(memory, 4);
    assert.deepEqual([...all.subarray(0, 3)], [7, 0, 7]);
    assert.deepEqual(
      bound.map(({ byteOffset, length }) => [byteOffset, length]),
      [[4, 1]],
    );
    token.cancel();
    assert.deepEqual([...all.subarray(0, 3)], [7, 1, 7]);
    new Token().bind(memory, 8);
    const own = { buffer: new ArrayBuffer(64) };
    assert.throws(() => token.bind(own, 4), { name: 'TypeError', message: /needs shared memory/ });
  });
});

describe('base64', () => {
  test('is the engine’s own where it has it', () => {
    const bytes = new Uint8Array([1, 2]);
    bytes.toBase64 = mock.fn(function () {
      assert.equal(this, bytes);
      return 'own';
    });
    assert.equal(toBase64(bytes), 'own');
    const own = Object.getOwnPropertyDescriptor(Uint8Array, 'fromBase64');
    Uint8Array.fromBase64 = function (text) {
      assert.equal(this, Uint8Array);
      return `of ${text}`;
    };
    assert.equal(fromBase64('text'), 'of text');
    delete Uint8Array.fromBase64;
    assert.deepEqual(fromBase64('AQL/'), new Uint8Array([1, 2, 255]));
    if (own) Object.defineProperty(Uint8Array, 'fromBase64', own);
  });

  test('is made by Buffer, which is quicker, where there is one', () => {
    const { btoa } = globalThis;
    globalThis.btoa = undefined;
    const text = toBase64(new Uint8Array([1, 2, 255]));
    globalThis.btoa = btoa;
    assert.equal(text, 'AQL/');
  });

  test('of a view is that of the bytes that it shows', () => {
    const { Buffer } = globalThis;
    const bytes = Uint8Array.from(listOf(100)).subarray(10, 20);
    const expected = Buffer.from(bytes).toString('base64');
    for (const form of [Buffer, undefined, {}]) {
      globalThis.Buffer = form;
      const text = toBase64(bytes);
      globalThis.Buffer = Buffer;
      assert.equal(text, expected);
    }
  });
});
