// Values of every kind, for fast-check: what structured clone can carry, and what it cannot.
import fc from 'fast-check';

const cyclic = () => {
  const object = { list: [] };
  object.self = object.list[0] = object;
  return object;
};
const detached = (View) => {
  const view = new View(8);
  structuredClone(view.buffer, { transfer: [view.buffer] });
  return view;
};
const deep = (levels) => {
  let value = 1;
  for (let i = 0; i < levels; i++) value = i % 2 ? [value] : { value };
  return value;
};
/** Made anew each time, since some can be sent only once. */
const made = (...makers) => fc.constantFrom(...makers).map((make) => make());

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    '\ud800',
    'a\u0000b',
    '__proto__',
    'toString',
    '00000000000000000000-1.1',
    'x'.repeat(300),
    'é'.repeat(100_000),
  ),
);

/** An arbitrary value that structured clone can carry. */
export const cloneable = fc.oneof(
  { weight: 4, arbitrary: text },
  {
    weight: 6,
    arbitrary: fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withSparseArray: true,
      withNullPrototype: true,
    }),
  },
  {
    weight: 2,
    arbitrary: made(
      cyclic,
      () => deep(200),
      () => new Error('one', { cause: cyclic() }),
      () => /x/gu,
      () => new ArrayBuffer(16),
      () => new SharedArrayBuffer(16),
      () => new Blob(['x']),
      () => JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {}}}'),
      () => ({ toString: 1, valueOf: null }),
      () => ({ code: { toString: 1 }, message: { toString: null }, retryable: true }),
      () => Object.assign([], { 3: 'sparse', extra: 1 }),
      () => NaN,
      () => -0,
      () => 2 ** 32,
      () => 2 ** 53,
      () => -1,
      () => Infinity,
    ),
  },
);

/** What can be sent once, by moving it, and never be sent back. */
export const movable = made(
  () => new MessageChannel().port1,
  () => ({ port: new MessageChannel().port1 }),
);

/**
 * Anything at all, most of it not to be cloned, some of it not even to be looked at: so this is a
 * function that makes it.
 */
export const anything = fc.oneof(
  { weight: 3, arbitrary: cloneable.map((value) => () => value) },
  { weight: 1, arbitrary: movable.map((value) => () => value) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      () => () => 1,
      () => Symbol('one'),
      () => ({ nested: [() => 1] }),
      () => detached(Uint8Array),
      () => detached(Float64Array),
      () => ({ content: new ArrayBuffer(8), mimeType: 'x/y' }),
      () => ({ content: detached(Uint8Array).buffer, mimeType: 'x/y' }),
      () =>
        new (class Own {
          #hidden = 1;
          get shown() {
            return this.#hidden;
          }
        })(),
      () => new Proxy({}, {}),
      () =>
        new Proxy(
          {},
          {
            get() {
              throw new Error('trap');
            },
            ownKeys() {
              throw new Error('trap');
            },
          },
        ),
      () => {
        const { proxy, revoke } = Proxy.revocable({}, {});
        revoke();
        return proxy;
      },
      () => ({
        get any() {
          throw new Error('getter');
        },
      }),
      () => ({
        get any() {
          throw Object.create(null);
        },
      }),
      () => ({
        get message() {
          throw new RangeError('getter');
        },
      }),
      () => ({
        get name() {
          throw null;
        },
        get code() {
          throw null;
        },
      }),
      () => Object.assign(Object.create(null), { code: 1 }),
      () => ({ message: Object.create(null) }),
      () => ({ code: 'X', message: 'm', retryable: true, details: () => 1 }),
      () => Object.assign(new Error('aborted'), { name: 'AbortError' }),
      () => new DOMException('no', 'NotAllowedError'),
      () => new WeakMap(),
      () => new Promise(() => {}),
    ),
  },
);

/** What to replace in a message, and by what: for `alter`. */
export const changes = (values) => fc.array(fc.tuple(fc.nat(), values), { maxLength: 3 });

/** A copy of a valid message with some of its parts, at any depth, replaced. */
export function alter(message, replacements) {
  const copy = structuredClone(message);
  for (const [where, value] of replacements) {
    const places = placesIn(copy);
    const [holder, key] = places[where % places.length];
    Reflect.set(holder, key, value); // not of a boxed string's characters
  }
  return copy;
}

function placesIn(value, seen = new Set()) {
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  if (ArrayBuffer.isView(value)) return [];
  seen.add(value);
  return Object.keys(value).flatMap((key) => [[value, key], ...placesIn(value[key], seen)]);
}

/**
 * Frames: entries of four, any of whose places may hold anything, and now and then of another
 * length.
 */
export const frames = (values, names) => {
  const key = fc.oneof(fc.integer({ min: 0, max: 5 }), text, values);
  const entry = fc.tuple(
    fc.oneof(fc.integer({ min: 0, max: 8 }), values),
    key,
    fc.oneof(fc.constantFrom(...names), values),
    values,
  );
  return fc
    .tuple(fc.array(entry, { maxLength: 6 }), fc.integer({ min: 0, max: 24 }))
    .map(([entries, cut]) => (cut % 6 ? entries.flat() : entries.flat().slice(0, cut)));
};
