// Walks over large values in js/common: what is visited, copied and counted, to the very member.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requireBounded, walkBounded } from '../../js/common/bounds.js';
import { LARGE, snapshot } from '../../js/common/snapshot.js';

const nested = (levels, inner) => {
  let value = inner;
  for (let i = 0; i < levels; i++) value = { value };
  return value;
};
const listOf = (length) => Array.from({ length }, (_, i) => i);
const recordOf = (length) => Object.fromEntries(listOf(length).map((i) => [`m${i}`, i]));

describe('a snapshot', () => {
  test('is a copy of what is small and plain', () => {
    const given = { a: [1, 'two', null, { three: undefined }], b: true };
    const copy = snapshot(given);
    assert.deepEqual(copy, given);
    assert.notEqual(copy, given);
    assert.notEqual(copy.a, given.a);
    assert.notEqual(copy.a[3], given.a[3]);
    assert.ok(Object.hasOwn(copy.a[3], 'three'));
    assert.deepEqual(
      [snapshot(1), snapshot('x'), snapshot(null), snapshot([])],
      [1, 'x', null, []],
    );
  });

  test('has 64 members at most, counted through all levels', () => {
    assert.deepEqual(snapshot(listOf(64)), listOf(64));
    assert.equal(snapshot(listOf(65)), LARGE);
    assert.deepEqual(snapshot(recordOf(64)), recordOf(64));
    assert.equal(snapshot(recordOf(65)), LARGE);
    assert.deepEqual(snapshot([listOf(63)]), [listOf(63)]);
    assert.equal(snapshot([listOf(64)]), LARGE);
  });

  test('is not made of what only a clone keeps as it is', () => {
    const shared = { a: 1 };
    const holes = [1, 2];
    holes.length = 3;
    for (const value of [
      new Map(),
      new Date(0),
      new Uint8Array(2),
      { bytes: new Uint8Array(2) },
      [shared, shared],
      { a: shared, b: [shared] },
      holes,
      Object.assign([1], { extra: 1 }),
      JSON.parse('{"__proto__":1}'),
    ]) {
      assert.equal(snapshot(value), LARGE);
    }
  });

  test('of a cycle ends', () => {
    const cycle = { inner: {} };
    cycle.inner.inner = cycle.inner;
    assert.equal(snapshot(cycle), LARGE);
    const list = [];
    list.push(list);
    assert.equal(snapshot(list), LARGE);
  });

  test('is refused of more than 1000 levels, also beside much else', () => {
    assert.equal(snapshot(nested(1000, 1)), LARGE);
    assert.equal(snapshot(nested(1000, {})), LARGE);
    assert.throws(() => snapshot(nested(1001, {})), { name: 'RangeError', message: /1000 levels/ });
    assert.throws(() => snapshot([listOf(100), nested(1001, {})]), RangeError);
    const few = nested(60, {});
    assert.deepEqual(snapshot(few), few);
  });

  test('looks at a million members, and bytes are none', () => {
    const deep = nested(1000, {});
    assert.throws(() => snapshot([listOf(2 ** 20 - 1001), deep]), RangeError);
    assert.equal(snapshot([listOf(2 ** 20 - 1000), deep]), LARGE);
    assert.throws(() => snapshot([new Uint8Array(2 ** 21), deep]), RangeError);
  });

  test('reads what is shared once', () => {
    let reads = 0;
    const shared = {
      get a() {
        reads++;
        return 1;
      },
    };
    snapshot([shared, shared, shared]);
    assert.equal(reads, 1);
  });
});

describe('a walk', () => {
  /** What a walk meets, in order. */
  const walked = (value, bounds = {}, more = {}) => {
    const met = [];
    const copy = walkBounded(value, bounds, {
      leaf: (part) => (met.push(part), part),
      name: (name) => (met.push(`.${name}`), name),
      leave: (_object, count) => void met.push(count),
      exceed: (limit, what) => `${limit} ${what}`,
      ...more,
    });
    return { met, copy };
  };

  test('meets each part, counts what it leaves, and copies only if it is to', () => {
    const value = { a: [1, 'x'], b: new Map([['k', { c: null }]]), d: new Set([2]) };
    const { met, copy } = walked(value);
    assert.deepEqual(met, ['.a', 1, 'x', 3, '.b', 'k', '.c', null, 2, 4, '.d', 2, 2, 10]);
    assert.equal(copy, value);
    const made = walked(value, {}, { copies: true });
    assert.deepEqual(made.met, met);
    assert.deepEqual(made.copy, value);
    for (const key of ['a', 'b', 'd']) assert.notEqual(made.copy[key], value[key]);
    for (const kind of [[1], new Map([[1, 2]]), new Set([1])]) {
      assert.equal(walked(kind).copy, kind);
      assert.notEqual(walked(kind, {}, { copies: true }).copy, kind);
    }
  });

  test('takes what its visitor gives in place of a part, a name and a leaf', () => {
    const { copy } = walked(
      { a: 1, b: { c: 2 }, d: { e: 3 } },
      {},
      {
        copies: true,
        leaf: (part) => part + 1,
        name: (name) => name.toUpperCase(),
        replace: (part) => (Object.hasOwn(part, 'c') ? 'replaced' : undefined),
      },
    );
    assert.deepEqual(copy, { A: 2, B: 'replaced', D: { E: 4 } });
    const bytes = new Uint8Array(5);
    assert.equal(walked([bytes], {}, { copies: true }).copy[0], bytes);
  });

  test('makes members that are its own, whatever they are called', () => {
    const { copy } = walked(JSON.parse('{"__proto__":{"x":1}}'), {}, { copies: true });
    assert.deepEqual(Object.getOwnPropertyDescriptor(copy, '__proto__'), {
      ...{ value: { x: 1 }, writable: true, enumerable: true, configurable: true },
    });
    assert.equal(Object.getPrototypeOf(copy), Object.prototype);
  });

  test('puts what its visitor gives where a limit is reached, and goes no further there', () => {
    const copied = (value, bounds) => walked(value, bounds, { copies: true }).copy;
    assert.deepEqual(copied([1, 2, 3], { maxValues: 3 }), [1, 2, '3 values']);
    assert.deepEqual(copied([[1], 2, 3], { maxValues: 4 }), [[1], 2, '4 values']);
    assert.deepEqual(copied({ a: 1, b: 2, c: 3 }, { maxValues: 3 }), {
      ...{ a: 1, b: 2, c: '3 values' },
    });
    assert.deepEqual(copied({ ab: 1, cd: 2, ef: 3 }, { maxCharacters: 3 }), {
      ...{ ab: 1, cd: '3 characters' },
    });
    assert.equal(copied('abcd', { maxCharacters: 3 }), '3 characters');
    assert.equal(copied('abc', { maxCharacters: 3 }), 'abc');
    assert.equal(copied(1, { maxValues: 0 }), '0 values');
    assert.deepEqual(copied(new Map([[1, 2]]), { maxValues: 3 }), new Map([[1, 2]]));
    assert.deepEqual(copied(new Set([1, 2, 3]), { maxValues: 3 }), new Set([1, 2]));
    assert.equal(copied(4n, { maxBigIntBits: 3 }), '3 bits');
    assert.equal(copied(3n, { maxBigIntBits: 3 }), 3n);
    assert.deepEqual(copied({ a: { b: { c: 1 } } }, { maxDepth: 2 }), { a: { b: '2 levels' } });
    assert.deepEqual(copied({ a: 1, b: 2, c: 3, d: 4 }, { maxValues: 3 }), {
      ...{ a: 1, b: 2, c: '3 values' },
    });
    assert.deepEqual(copied({ ab: 1 }, { maxCharacters: 2 }), { ab: 1 });
    assert.deepEqual(walked(Object.create({ inherited: 1 })).met, [1]);
    const cycle = {};
    cycle.self = cycle;
    assert.deepEqual(copied(cycle), { self: '0 cycles' });
    assert.deepEqual(walked(cycle, { maxDepth: 3 }).met, [...Array(3).fill('.self'), 2, 3, 4]);
  });

  test('has limits of its own where it is given none', () => {
    const limits = (value) => {
      try {
        requireBounded(value);
        return 'fits';
      } catch (error) {
        return error.message.split(': ')[1];
      }
    };
    assert.equal(limits(new Array(2 ** 20 - 1)), 'fits');
    assert.equal(limits(new Array(2 ** 20)), 'the limit is 1048576');
    const half = 'x'.repeat(2 ** 25);
    assert.equal(limits([half, half]), 'fits');
    assert.equal(limits([half, half, 'x']), 'the limit is 67108864');
    assert.equal(limits(nested(1000, 1)), 'fits');
    assert.equal(limits(nested(1001, 1)), 'the limit is 1000');
  });

  test('tells a cycle from what is too deep, and looks neither into what is too long nor into what writes itself', () => {
    const cycle = {};
    cycle.self = cycle;
    assert.throws(() => requireBounded(cycle), { name: 'TypeError', message: /contains a cycle/ });
    const looked = [];
    const list = new Proxy(new Array(11), {
      get: (target, key) => (looked.push(key), target[key]),
    });
    assert.throws(() => requireBounded(list, { maxValues: 10 }), {
      name: 'RangeError',
      message: 'The value has too many values: the limit is 10',
    });
    assert.ok(!looked.includes('0'));
    requireBounded({ own: { toJSON: () => 1, more: listOf(20) } }, { maxValues: 3 });
    assert.throws(() => requireBounded({ own: { toJSON: 1, more: 1 } }, { maxValues: 3 }));
  });
});
