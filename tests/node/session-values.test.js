// What arrives is the value as it was when it was given, whatever becomes of it afterwards: over
// every way, in both directions, for all that is sent.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { APP, closeAfter, openPair } from '../support/pair.js';

const MANY = 5;
const NUMBERS = [...Array(MANY).keys()];

/** Objects that are used again and again: how to make one, set it to a number, and read that. */
const REUSED = {
  'an object': [() => ({ n: 0 }), (value, n) => (value.n = n), ({ n }) => n],
  'a nested list': [
    () => ({ of: [[0]] }),
    (value, n) => (value.of[0][0] = n),
    ({ of: [[n]] }) => n,
  ],
  'many values': [
    () => Array(100).fill(0),
    (value, n) => value.fill(n),
    (value) => (new Set(value).size === 1 ? value[99] : NaN),
  ],
  bytes: [
    () => ({ content: new Uint8Array(8), mimeType: 'application/octet-stream' }),
    ({ content }, n) => content.fill(n),
    ({ content }) => {
      if (typeof content === 'string') return Buffer.from(content, 'base64')[7];
      return (content instanceof ArrayBuffer ? new Uint8Array(content) : content)[7];
    },
  ],
};

/** A source that uses one object for all that it gives. */
async function* refilling(kind) {
  const [make, set] = REUSED[kind];
  const value = make();
  for (const n of NUMBERS) {
    set(value, n);
    yield value;
  }
}

/** Results of calls that are made together share one object. @type {Map<string, any>} */
const shared = new Map();

const CAPABILITIES = {
  stream: ({ kind }) => refilling(kind),
  // Gives its result so many microtasks after the one before: in the same turn, but when that was
  // taken.
  async result({ kind, n, microtasks }) {
    const [make, set] = REUSED[kind];
    if (!shared.has(kind)) shared.set(kind, make());
    for (let i = 0; i < n * microtasks; i++) await null;
    set(shared.get(kind), n);
    return shared.get(kind);
  },
  read: ({ kind, value }) => REUSED[kind][2](value),
  async collects({ kind }, { input }) {
    const values = [];
    for await (const value of input) values.push(value);
    return values.map(REUSED[kind][2]);
  },
  async reports(_params, { progress }) {
    const info = { progress: 0, at: { n: 0 } };
    for (const n of NUMBERS) {
      info.at.n = n;
      progress(info);
    }
  },
  async asks({ kind }, { elicit }) {
    const [make, set] = REUSED[kind];
    const params = make();
    const answers = NUMBERS.map((n) => {
      set(params, n);
      return elicit({ method: 'elicitation/input', params });
    });
    return (await Promise.all(answers)).map(({ data }) => data);
  },
};

async function collected(stream) {
  const chunks = [];
  // The reader is slower than the source.
  for await (const chunk of stream) {
    await new Promise(setImmediate);
    chunks.push(chunk);
  }
  return chunks;
}

const CONNECTIONS = [
  ...TRANSPORTS,
  { name: 'a port without frames', upgrade: 'port' },
  { name: 'plain messages', upgrade: 'none' },
  { name: 'a page that is driven', driven: true },
];

for (const { name, ...connection } of CONNECTIONS) {
  describe(`what is used again, over ${name}`, () => {
    for (const [kind, [make, set, read]] of Object.entries(REUSED)) {
      test(kind, async () => {
        shared.clear();
        const asked = [];
        const onElicitation = ({ params }) => {
          asked.push(read(params));
          return read(params);
        };
        const { client, exposed } = await openPair(CAPABILITIES, {
          ...connection,
          agent: { onElicitation },
        });
        const params = { kind };

        assert.deepEqual((await collected(client.stream('stream', params))).map(read), NUMBERS);
        assert.deepEqual((await client.call('stream', params)).data.map(read), NUMBERS);
        for (let microtasks = 4; microtasks < 10; microtasks++) {
          const results = await Promise.all(
            NUMBERS.map((n) => client.call('result', { kind, n, microtasks })),
          );
          const numbers = results.map(({ data }) => read(data));
          assert.deepEqual(numbers, NUMBERS, `results, ${microtasks} microtasks apart`);
        }

        const value = make();
        const calls = NUMBERS.map((n) => {
          set(value, n);
          return client.call('read', { kind, value });
        });
        const got = await Promise.all(calls);
        assert.deepEqual(
          got.map(({ data }) => data),
          NUMBERS,
          'params',
        );

        if (client.features.streams) {
          const { data } = await client.call('collects', params, { input: refilling(kind) });
          assert.deepEqual(data, NUMBERS, 'input');
        }
        assert.deepEqual((await client.call('asks', params)).data, NUMBERS, 'questions');

        const told = [];
        client.onNotification = (_event, data) => told.push(read(data));
        for (const n of NUMBERS) {
          set(value, n);
          exposed.notify('changed', value);
        }
        await client.call('read', { kind, value });
        assert.deepEqual(told, NUMBERS, 'notify');
        const progress = [];
        await client.call('reports', {}, { onProgress: ({ at }) => progress.push(at.n) });
        // In one turn, of which the first and the last are told.
        assert.deepEqual([progress[0], progress.at(-1)], [NUMBERS[0], NUMBERS.at(-1)], 'progress');
      });
    }
  });
}

test('what is used again, by window.abp.stream and window.abp.call', async () => {
  const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { origins: [] });
  closeAfter(() => exposed.close());
  await exposed.abp.initialize({ agent: { name: 'a', version: '1' } });
  for (const [kind, [, , read]] of Object.entries(REUSED)) {
    const chunks = await collected(exposed.abp.stream('stream', { kind }));
    assert.deepEqual(chunks.map(read), NUMBERS);
    const { data } = await exposed.abp.call('stream', { kind });
    assert.deepEqual(data.map(read), NUMBERS);
  }
});

/** Objects in objects. */
const nested = (levels) => {
  let value = 'the end';
  for (let i = 0; i < levels; i++) value = i % 2 ? { in: value } : [value];
  return value;
};

for (const upgrade of ['frames', 'port', 'none']) {
  test(`what is deeper than 1,000 levels is refused where it is sent: ${upgrade}`, async () => {
    const handlers = {
      deep: ({ levels }) => nested(levels),
      moved: ({ levels }) => ({ mimeType: 'a/b', content: new ArrayBuffer(8), at: nested(levels) }),
      async *chunks({ levels }) {
        yield 1;
        yield nested(levels);
      },
      fails: () => ({
        success: false,
        error: { code: 'OWN', message: 'No', details: nested(3000) },
      }),
      take: (value) => typeof value,
    };
    const { client } = await openPair(handlers, { upgrade });
    assert.equal((await client.call('deep', { levels: 990 })).success, true);
    for (const name of ['deep', 'moved', 'chunks', 'fails']) {
      const { success, error } = await client.call(name, { levels: 3000 });
      assert.deepEqual([success, error.code], [false, 'OPERATION_FAILED'], name);
      assert.match(error.message, /cannot be sent: /, name);
      if (name !== 'chunks') assert.match(error.message, /It has more than 1000 levels/, name);
    }
    const stream = client.stream('chunks', { levels: 3000 });
    await assert.rejects(collected(stream), { code: 'OPERATION_FAILED' });
    const { error } = await client.call('take', nested(3000));
    assert.equal(error.code, 'INVALID_PARAMS');
    assert.match(error.message, /parameters cannot be sent: It has more than 1000 levels/);
    assert.equal((await client.call('take', {})).data, 'object');
  });
}

test('what contains itself, or a part many times, arrives as it was', async () => {
  const { client } = await openPair({
    circle() {
      const value = { list: [] };
      value.list.push(value, { back: value });
      return value;
    },
    tree() {
      let value = { leaf: true };
      for (let i = 0; i < 40; i++) value = [value, value];
      return value;
    },
    odd: () => Object.assign([1, , 3], { more: 4 }), // eslint-disable-line no-sparse-arrays
    proto: () => JSON.parse('{ "__proto__": { "a": 1 }, "b": 2 }'),
    first: () => 1,
  });
  // Only the first entry of a turn is never copied.
  const names = ['first', 'circle', 'tree', 'odd', 'proto'];
  const results = await Promise.all(names.map((name) => client.call(name)));
  const [, circle, tree, odd, proto] = results.map(({ data }) => data);
  assert.equal(circle.list[0], circle);
  assert.equal(circle.list[1].back, circle);
  assert.equal(tree[0], tree[1]);
  assert.deepEqual(Object.entries(odd), Object.entries({ 0: 1, 2: 3, more: 4 }));
  assert.deepEqual(Object.keys(proto), ['__proto__', 'b']);
});

/** Two ends, the agent's frames as they are posted, and calls of one turn with the values. */
async function framesOf(values, handlers = { take: () => 1 }) {
  const frames = [];
  const ends = async () => {
    const { port1, port2 } = new MessageChannel();
    const transports = [port1, port2].map((port) => portTransport(port));
    const { post } = transports[0];
    transports[0].post = function (message, ...rest) {
      frames.push(structuredClone(message));
      return post.call(this, message, ...rest);
    };
    return transports.map((transport) => ({
      transport: () => transport,
      close: () => transport.close(),
    }));
  };
  const { client } = await openPair(handlers, { ends });
  frames.length = 0;
  const answers = await Promise.all(values.map((value) => client.call('take', value)));
  return { frames, answers };
}
/** How many entries a frame has. */
const lengthOf = (frame) => (typeof frame === 'string' ? JSON.parse(frame) : frame).length / 4;

test('small values wait for others in one frame, and larger ones send it', async () => {
  const small = { at: [1, 'a', null] };
  const odd = { at: undefined };
  const large = new Uint8Array(1);
  const { frames } = await framesOf([small, small, odd, small, large, odd, odd]);
  // What waits as text is one entry beside others.
  assert.deepEqual(frames.map(lengthOf), [1, 4, 2]);
  const plain = await framesOf([small, small, 'x'.repeat(1000), small]);
  assert.deepEqual(
    plain.frames.map((frame) => [typeof frame, lengthOf(frame)]),
    [
      // The first one of a turn does not wait, and so need not be text.
      ['object', 1],
      ['string', 3],
    ],
  );
});

test('what JSON would change is no text, and arrives as it was, in its turn', async () => {
  const part = { x: 1 };
  const sparse = [1, , 3]; // eslint-disable-line no-sparse-arrays
  let reads = 0;
  const VALUES = [
    { a: undefined },
    [undefined],
    { a: NaN },
    [-0],
    -0,
    [Infinity],
    { a: 1n },
    new Date(5),
    { a: new Map([[1, { b: 2 }]]) },
    new Set([1]),
    { a: new Uint8Array([1]) },
    new Uint8Array([1]).buffer,
    /x/g,
    new RangeError('no'),
    sparse,
    Object.assign([1, 2], { more: 3 }),
    [part, part],
    { toJSON: 1 },
    Object.assign(Object.create({ toJSON: () => 'other' }), { a: 1 }),
    new (class {
      a = 1;
      toJSON() {
        return 'other';
      }
    })(),
    new (class extends Array {
      b = 2;
    })(),
    new Number(5),
    new Boolean(false),
    new String('text'),
  ];
  // And what it would not.
  const bare = Object.create(null);
  const SAME = [
    [null],
    'text "quoted" \u2028 \ud800 \0 é \u{1f600}',
    0,
    5e-324,
    -1.7976931348623157e308,
    true,
    [],
    {},
    bare,
    JSON.parse('{ "__proto__": { "polluted": 1 }, "constructor": null }'),
    { 2: 'b', 1: 'a', z: [[[{ deep: [null] }]]] },
    Array(300).fill(0),
    Array(100).fill('x'.repeat(100)),
    Array.from({ length: 40 }, (_, i) => ({ i })),
    {
      get read() {
        return ++reads;
      },
    },
  ];
  // Each of them beside text, before it and after it.
  const values = [...VALUES, ...SAME].flatMap((value, i) => [value, { i }]);
  const { answers, frames } = await framesOf(['first', ...values], { take: (value) => value });
  assert.ok(frames.some((frame) => typeof frame === 'string'));
  const got = answers.slice(1).map(({ success, data, error }) => (success ? data : error));
  for (const [i, value] of values.entries()) {
    if (typeof value === 'object' && Object.hasOwn(value ?? {}, 'read')) continue;
    assert.deepEqual(got[i], structuredClone(value), `value ${i}`);
  }
  const twice = got[VALUES.findIndex((value) => value[0] === part) * 2];
  assert.equal(twice[0], twice[1]);
  assert.equal(got[VALUES.indexOf(-0) * 2], -0);
  assert.equal(Object.getPrototypeOf(got[values.indexOf(bare)]), Object.prototype);
});

test('a method on all objects that JSON would call changes nothing', async () => {
  /** @type {any} */ (Object.prototype).toJSON = () => 'other';
  try {
    const values = [{ a: 1 }, { a: 1 }, [{ a: 1 }]];
    const { answers } = await framesOf(values, { take: (value) => value });
    assert.deepEqual(
      answers.map(({ data }) => data.a ?? data[0].a),
      [1, 1, 1],
    );
  } finally {
    delete (/** @type {any} */ (Object.prototype).toJSON);
  }
});

test('a getter that makes a call, or throws, spoils no other value', async () => {
  let client;
  const inner = [];
  const values = [
    { a: 1 },
    {
      b: 2,
      get calls() {
        inner.push(client.call('echo', { inner: inner.length }));
        return { c: [3] };
      },
      d: { e: 4 },
    },
    {
      get throws() {
        throw new Error('no');
      },
    },
    { f: 5 },
  ];
  ({ client } = await openPair({ echo: (value) => value }));
  const answers = await Promise.all(values.map((value) => client.call('echo', value)));
  assert.deepEqual(
    answers.map(({ data, error }) => data ?? error.code),
    [{ a: 1 }, { b: 2, calls: { c: [3] }, d: { e: 4 } }, 'INVALID_PARAMS', { f: 5 }],
  );
  assert.ok(inner.length);
  for (const [i, answer] of inner.entries()) assert.deepEqual((await answer).data, { inner: i });
});
