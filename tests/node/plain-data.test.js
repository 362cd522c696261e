// What may be sent is decided by the shape of a value, never by its length, by what stands beside
// it, or by the way that it goes: plain data is read, also behind a proxy, and what a clone refuses
// is refused. The proxies are Vue's and some that are made here.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { reactive, readonly, ref, shallowReactive } from 'vue';
import { CONNECTIONS } from '../support/connections.js';
import { openPair } from '../support/pair.js';

const wrapped = (target) => new Proxy(target, {});
/** A proxy at every level, which has nothing of what it shows. */
const virtual = (value) =>
  typeof value === 'object' && value !== null
    ? new Proxy(Array.isArray(value) ? [] : {}, {
        get: (target, key) =>
          key in value && Object.hasOwn(value, key) ? virtual(value[key]) : target[key],
        has: (_target, key) => key in value,
        ownKeys: (target) => (Array.isArray(target) ? Reflect.ownKeys(value) : Object.keys(value)),
        getOwnPropertyDescriptor: (target, key) =>
          Object.getOwnPropertyDescriptor(target, key) ?? {
            value: virtual(value[key]),
            enumerable: true,
            configurable: true,
          },
      })
    : value;
const rows = (length) =>
  Array.from({ length }, (_, id) => ({ id, name: `row ${id}`, tags: ['a'] }));
/**
 * Lengths: as text in a frame, as a copy in a frame, at once, and beyond what a window of a stream
 * has at a time.
 */
const LENGTHS = [1, 20, 300];
const PROXIES = {
  'of Vue': reactive,
  'that is read only': readonly,
  'made here': wrapped,
  virtual,
};

/** Plain data of a length, as it is and behind proxies. */
const PLAIN = {
  ...Object.fromEntries(
    Object.entries(PROXIES).map(([name, make]) => [`a list ${name}`, (n) => make(rows(n))]),
  ),
  'a proxy as a member': (n) => ({ some: { rows: wrapped(rows(n)) }, n: 1 }),
  'a ref of Vue in a state': (n) => reactive({ rows: ref(rows(n)) }),
  'a shallow state': (n) => shallowReactive({ rows: rows(n) }),
  'an object without a prototype': (n) =>
    wrapped(Object.assign(Object.create(null), { rows: rows(n) })),
  'a member that is undefined': (n) => wrapped({ rows: rows(n), none: undefined }),
};
/** What the same looks like without proxies. */
const raw = (value) =>
  Array.isArray(value)
    ? value.map(raw)
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(Object.keys(value).map((key) => [key, raw(value[key])]))
      : value;

class Store {
  rows = rows(1);
}
/** What is no plain data behind its proxy, and what no clone takes. */
const REFUSED = {
  'a Map of Vue': (n) => reactive(new Map(rows(n).map((row) => [row.id, row]))),
  'a proxy of a Date': () => wrapped(new Date(5)),
  'a proxy of a store': () => wrapped(new Store()),
  'a function': () => () => 1,
  'a proxy of a function': () => wrapped(() => 1),
  'a state with a method': (n) => reactive({ rows: rows(n), act() {} }),
  'a symbol': () => Symbol('s'),
  'a promise': () => Promise.resolve(1),
  'a form of its own': () => ({ a: 1, toJSON: () => 'other' }),
};

/**
 * Calls in each place where a value goes.
 * @type {Record<string, (opened: any, make: () => any) => Promise<any>>}
 */
const PLACES = {
  params: async ({ call }, make) => call('echo', make()),
  result: async ({ call, give }, make) => (give(make), call('gives')),
  'params, not the first of its turn': async ({ call }, make) => {
    const first = call('echo', 'first');
    const response = call('echo', { in: make() });
    await first;
    const { data, ...rest } = await response;
    return { data: data?.in, ...rest };
  },
  'result, with a time limit and progress': async ({ call, give }, make) => {
    give(make);
    return call('gives', {}, { timeout: 1e8, progressToken: 't', onProgress() {} });
  },
};
const CAPABILITIES = { echo: (params) => params };

const bySession = (way) => async (capabilities) => {
  const pair = await openPair(capabilities, way);
  return { ...pair, call: pair.client.call.bind(pair.client), close() {} };
};
for (const [connection, open] of Object.entries({
  ...CONNECTIONS,
  'a port without frames': bySession({ upgrade: 'port' }),
  'a driven page': bySession({ driven: true }),
}))
  describe(`over ${connection}`, () => {
    const opened = async () => {
      let make;
      const pair = await open({ ...CAPABILITIES, gives: () => make() });
      return { ...pair, give: (made) => (make = made) };
    };
    for (const [place, send] of Object.entries(PLACES)) {
      test(`${place}: plain data arrives, of whatever length`, async () => {
        const pair = await opened();
        for (const [what, make] of Object.entries(PLAIN))
          for (const n of LENGTHS) {
            const { success, data, error } = await send(pair, () => make(n));
            assert.equal(success, true, `${what}, ${n}: ${error?.message}`);
            const expected = raw(make(n));
            // Text has nothing for it.
            if (connection === 'a WebSocket' || connection === 'a driven page')
              delete expected.none;
            assert.deepEqual(raw(data), expected, `${what}, ${n}`);
          }
        pair.close();
      });

      // Between handlers and in the app's own page nothing is sent.
      if (!/handler|window/.test(connection))
        test(`${place}: what is no plain data is refused, of whatever length`, async (t) => {
          t.mock.method(console, 'error', () => {});
          const pair = await opened();
          for (const [what, make] of Object.entries(REFUSED))
            for (const n of LENGTHS)
              for (const value of [() => [make(n)], () => ({ in: make(n), at: rows(n) })]) {
                const { success, error } = await send(pair, value);
                assert.deepEqual([what, n, success], [what, n, false]);
                assert.match(error.message, /cannot be sent: /, what);
              }
          pair.close();
        });
    }
  });

describe('what else carries a value', () => {
  const CARRIES = {
    chunks: async ({ client }) => {
      const chunks = [];
      for await (const chunk of client.stream('chunks')) chunks.push(chunk);
      return chunks;
    },
    'chunks that are collected': async ({ client }) => (await client.call('chunks')).data,
    input: async ({ client, source }) =>
      (await client.call('collects', {}, { input: source() })).data,
    'a question and its answer': async ({ client }) => (await client.call('asks')).data,
    report: async ({ client }) => [(await client.call('reports')).metadata.report.rows],
    progress: async ({ client }) => {
      const told = [];
      await client.call('goesOn', {}, { onProgress: ({ rows }) => told.push(rows) });
      return told;
    },
    details: async ({ client }) => [(await client.call('reports')).error.details],
    notification: async ({ client, exposed }) => {
      const told = new Promise(
        (resolve) => (client.onNotification = (_event, data) => resolve(data)),
      );
      exposed.notify('changed', reactive(rows(40)));
      return [await told];
    },
  };
  for (const upgrade of ['frames', 'none'])
    for (const [what, send] of Object.entries(CARRIES))
      test(`${what}, ${upgrade}`, async (t) => {
        t.mock.method(console, 'error', () => {});
        const state = () => reactive(rows(40));
        async function* source() {
          yield* [state(), { at: new Date(5), rows: state() }];
        }
        if (upgrade === 'none' && /input|chunks$/.test(what)) return;
        const { client, exposed } = await openPair(
          {
            chunks: source,
            collects: (_params, { input }) => Array.fromAsync?.(input) ?? collected(input),
            asks: async (_params, { elicit }) => {
              const { data } = await elicit({ method: 'q', params: state() });
              return [data];
            },
            reports(_params, { report }) {
              report({ rows: state() });
              throw Object.assign(new Error('no'), {
                code: 'OWN',
                retryable: false,
                details: state(),
              });
            },
            goesOn: (_params, { progress }) => progress({ progress: 1, rows: state() }),
          },
          { upgrade, agent: { onElicitation: ({ params }) => reactive(params) } },
        );
        const [first, second] = await send({ client, exposed, source });
        assert.deepEqual(first, rows(40));
        if (second) assert.deepEqual(second, { at: new Date(5), rows: rows(40) });
      });

  test('a report that is no plain data is not kept, and the console says so', async (t) => {
    const said = t.mock.method(console, 'error', () => {});
    const { client } = await openPair({
      reports(_params, { report }) {
        report({ act() {} });
        throw new Error('no');
      },
    });
    const { metadata } = await client.call('reports');
    assert.equal(metadata.report, undefined);
    assert.match(String(said.mock.calls[0].arguments[0]), /reports: a report is JSON/);
  });
});
async function collected(input) {
  const chunks = [];
  for await (const chunk of input) chunks.push(chunk);
  return chunks;
}

describe('behind a proxy', () => {
  const open = async (upgrade) =>
    (await openPair({ echo: (params) => params, size: (p) => p.bytes.byteLength }, { upgrade }))
      .client;
  for (const upgrade of ['frames', 'none']) {
    test(`what is there twice, or contains itself, arrives so: ${upgrade}`, async () => {
      const client = await open(upgrade);
      const part = rows(40);
      const state = reactive({ first: part, second: part, list: [] });
      state.list.push(state);
      const { data } = await client.call('echo', state);
      assert.equal(data.first, data.second);
      assert.equal(data.list[0], data);
      const sparse = wrapped([...rows(40), , 1, ,]); // eslint-disable-line no-sparse-arrays
      const { data: holes } = await client.call('echo', sparse);
      assert.deepEqual([holes.length, Object.keys(holes).length, 40 in holes], [43, 41, false]);
      const own = wrapped(JSON.parse('{ "__proto__": { "a": 1 }, "at": 1 }'));
      const { data: proto } = await client.call('echo', { own, at: new Date(1) });
      assert.deepEqual(Object.keys(proto.own), ['__proto__', 'at']);
    });

    test(`what is to be moved is moved, and what else is no plain data is cloned: ${upgrade}`, async () => {
      const client = await open(upgrade);
      const bytes = new ArrayBuffer(8);
      const params = reactive({ bytes, rows: rows(40), at: new Map([[1, new Date(2)]]) });
      delete params.at;
      assert.equal((await client.call('size', params, { transfer: [bytes] })).data, 8);
      assert.equal(bytes.byteLength, 0);
    });

    test(`what throws, or never ends, is refused, and the next call is not: ${upgrade}`, async () => {
      const client = await open(upgrade);
      const throwing = new Proxy({}, { ownKeys: () => assert.fail('not to be read') });
      const endless = () => new Proxy({ a: 1, b: 1 }, { get: () => endless() });
      const lying = new Proxy([], { get: (list, key) => (key === 'length' ? -1 : list[key]) });
      const revoked = Proxy.revocable([], {});
      revoked.revoke();
      for (const value of [throwing, endless(), lying, revoked.proxy]) {
        const { error } = await client.call('echo', { at: new Date(1), value });
        assert.equal(error?.code, 'INVALID_PARAMS');
        assert.match(error.message, /The parameters cannot be sent: /);
      }
      assert.equal((await client.call('echo', 1)).data, 1);
    });

    test(`the part that is no plain data is named: ${upgrade}`, async () => {
      const client = await open(upgrade);
      const { error } = await client.call('echo', reactive({ rows: rows(40), on: { act() {} } }));
      assert.match(error.message, /cannot be sent: params\.on\.act \(function\): /);
    });
  }
});
