// A key belongs to the params of its call: with others it is refused, and nobody is told of work
// that was never asked for. What was told is compared with what the handler has done.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';
import { LINES, deferred, siteOf } from '../support/site.js';

const KEY = { idempotencyKey: 'pay order 17' };
const ANN = { to: 'ann', amount: 5 };
const BOB = { to: 'bob', amount: 7 };

/** The data, or the error code, whether that is retryable, and the outcome. */
const resultOf = ({ success, data, error, metadata }) =>
  success ? data : [error.code, error.retryable, metadata.outcome];
const REUSED = ['KEY_REUSED', false, 'unstarted'];
const REFUSED = ['INVALID_PARAMS', false, 'unstarted'];

/**
 * Handlers that write down whom they have paid. `gate` holds `waits` back, and `began` tells that
 * it has begun.
 */
function payments() {
  const paid = [];
  const gate = deferred();
  const began = deferred();
  const pay = (params) => {
    const { to } = params;
    paid.push(to);
    // It does as it likes with its params.
    for (const name of Object.keys(params)) delete params[name];
    return { receipt: to };
  };
  const waits = async (params, { signal }) => {
    began.resolve();
    await Promise.race([
      gate.promise,
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
    ]);
    return pay(params);
  };
  /** Compares its params itself. */
  const takes = (params) => void paid.push(params);
  return { paid, gate, began, capabilities: { pay, waits, takes } };
}

/** The ways to an app: each makes a function that calls it, as one agent. */
const CONNECTIONS = {
  ...Object.fromEntries(
    Object.keys(LINES).flatMap((line) =>
      ['frames', 'port'].map((upgrade) => [
        `${line}, ${upgrade}`,
        async (capabilities) => {
          const client = await siteOf({ line, capabilities }).client({ upgrade });
          return { call: (...given) => client.call(...given), client };
        },
      ]),
    ),
  ),
  async 'window.abp'(capabilities) {
    const app = expose({ app: APP, capabilities }, { origins: [] });
    const { abp } = app;
    closeAfter(() => app.close());
    await abp.initialize({ agent: AGENT, protocolVersion: '0.1', features: {} });
    // It is given params as they are, and handlers may change them.
    return { call: (name, params, ...rest) => abp.call(name, structuredClone(params), ...rest) };
  },
};

for (const [connection, open] of Object.entries(CONNECTIONS)) {
  describe(`over ${connection}, a key`, () => {
    test('that comes with other params is refused after its call has ended, and serves a repeat', async () => {
      const { paid, capabilities } = payments();
      const { call } = await open(capabilities);
      assert.deepEqual(resultOf(await call('pay', ANN, KEY)), { receipt: 'ann' });
      const reused = await call('pay', { ...BOB }, KEY);
      assert.deepEqual(resultOf(reused), REUSED);
      assert.match(reused.error.message, /"pay order 17" .*docs\/errors\.md#key_reused/);
      assert.deepEqual(resultOf(await call('pay', { amount: 5, to: 'ann' }, KEY)), {
        receipt: 'ann',
      });
      assert.deepEqual(resultOf(await call('pay', { ...ANN, note: undefined }, KEY)), {
        receipt: 'ann',
      });
      assert.deepEqual(resultOf(await call('pay', undefined, KEY)), REUSED);
      assert.deepEqual(paid, ['ann']);
      // Of another capability it is another key.
      assert.equal((await call('takes', { to: 'bob' }, KEY)).success, true);
      assert.deepEqual(paid, ['ann', { to: 'bob' }]);
    });

    test('that comes with other params at once, or while its call runs, is refused', async () => {
      const { paid, gate, began, capabilities } = payments();
      const { call } = await open(capabilities);
      const first = call('waits', ANN, KEY);
      const second = call('waits', BOB, { ...KEY, timeout: 30_000 });
      assert.deepEqual(resultOf(await second), REUSED);
      await began.promise;
      const joined = call('waits', ANN, KEY);
      assert.deepEqual(resultOf(await call('waits', BOB, { ...KEY, timeout: 30_000 })), REUSED);
      gate.resolve();
      for (const response of await Promise.all([first, joined]))
        assert.deepEqual(resultOf(response), { receipt: 'ann' });
      assert.deepEqual(paid, ['ann']);
    });

    test('of a call that was stopped still belongs to its params; that of one that never ran to nobody', async () => {
      const { paid, began, capabilities } = payments();
      const checked = {
        inputSchema: { type: 'object', properties: { amount: { type: 'number' } } },
        handler: capabilities.pay,
      };
      const { call } = await open({ ...capabilities, checked });
      const controller = new AbortController();
      const stopped = call('waits', ANN, { ...KEY, signal: controller.signal });
      await began.promise;
      controller.abort();
      assert.equal((await stopped).metadata.outcome, 'stopped');
      assert.deepEqual(resultOf(await call('waits', BOB, KEY)), REUSED);
      assert.deepEqual(resultOf(await call('waits', ANN, KEY)), ['CANCELLED', false, 'stopped']);
      assert.deepEqual(resultOf(await call('checked', { ...ANN, amount: '5' }, KEY)), REFUSED);
      assert.deepEqual(resultOf(await call('checked', ANN, KEY)), { receipt: 'ann' });
      assert.deepEqual(resultOf(await call('checked', BOB, KEY)), REUSED);
      assert.deepEqual(paid, ['ann']);
    });

    test('tells bytes apart by their content', async () => {
      const { paid, capabilities } = payments();
      const { call } = await open(capabilities);
      const bytes = (last, size = 4) => Uint8Array.from({ length: size }, (_, i) => i || last);
      const file = (last, size) => ({ content: bytes(last, size), mimeType: 'image/png' });
      const pairs = [
        [bytes(1), bytes(1).buffer, bytes(2)],
        [{ file: file(1) }, { file: { ...file(1), content: bytes(1).buffer } }, { file: file(2) }],
        [
          { file: file(1) },
          { file: { mimeType: 'image/png', encoding: 'base64', content: 'AQECAw==' } },
          { file: { ...file(1), mimeType: 'image/gif' } },
        ],
        [bytes(1, 300_000), bytes(1, 300_000), bytes(2, 300_000)],
      ];
      for (const [i, [first, same, other]] of pairs.entries()) {
        const key = { idempotencyKey: `${i}` };
        for (const [params, expected] of [
          [{ of: first }, undefined],
          [{ of: same }, undefined],
          [{ of: other }, REUSED],
        ])
          assert.deepEqual(resultOf(await call('takes', params, key)), expected, `pair ${i}`);
        assert.equal(paid.length, i + 1);
      }
    });
  });
}

describe('a key', () => {
  /** An app that is called over ports, which carry most. */
  const opened = async () => {
    const all = payments();
    const { client } = await CONNECTIONS['ports, frames'](all.capabilities);
    return { ...all, client };
  };

  test('tells apart what JSON writes alike, or not at all', async () => {
    const { client, paid } = await opened();
    const cycle = (of) => Object.assign(of, { self: of });
    const deep = (of, levels) => {
      for (let i = 0; i < levels; i++) of = { of };
      return of;
    };
    const shared = { street: 'a'.repeat(100) };
    const different = [
      null,
      0,
      1n,
      1,
      '1',
      NaN,
      Infinity,
      -Infinity,
      true,
      [],
      {},
      [undefined],
      [null],
      '',
      new Date(0),
      new Date(1),
      new Date(0).toJSON(),
      new Date(NaN),
      new Map(),
      new Set(),
      new Map([[1, 2]]),
      new Map([[2, 1]]),
      new Set([1, 2]),
      new Set([[1, 2]]),
      [[1], 2],
      [1, [2]],
      Object.assign(new Array(2), { 1: 1 }),
      [1, undefined],
      { 0: 1 },
      [1],
      /a/g,
      /a/i,
      '/a/g',
      new Error('a'),
      new TypeError('a'),
      '"',
      '\\"',
      '\ud800',
      '\ud801',
      '\ufffd',
      { a: 'b', c: 'd' },
      { a: 'b","c":"d' },
      cycle({ a: 1 }),
      cycle({ a: 2 }),
      { a: 1, self: cycle({ a: 1 }) },
      Object.assign([1], { a: 1 }),
      deep(1, 500),
      deep(1, 501),
      [shared, shared],
      [shared, { ...shared, of: 1 }],
      new Uint8Array([1]),
      new Uint8Array([1, 0]),
      new Blob(['a']),
      new Blob(['a'], { type: 'a/b' }),
      new Blob(['b']),
    ];
    for (const [i, first] of different.entries()) {
      const key = { idempotencyKey: `${i}` };
      const before = paid.length;
      assert.equal(resultOf(await client.call('takes', { of: first }, key)), undefined, `${i}`);
      assert.equal(
        resultOf(await client.call('takes', { of: first }, key)),
        undefined,
        `${i} again`,
      );
      assert.equal(paid.length, before + 1);
      for (const [j, other] of different.entries())
        if (i !== j)
          assert.deepEqual(
            resultOf(await client.call('takes', { of: other }, key)),
            REUSED,
            `${i}, ${j}`,
          );
    }
    assert.equal(paid.length, different.length);
  });

  test('takes for the same what differs by the order of members, shares parts or not, or is absent', async () => {
    const { client, paid } = await opened();
    const at = { street: 'a'.repeat(100), no: 1 };
    const same = [
      { a: 1, b: { c: [1, 2], d: at }, e: at },
      { e: { no: 1, street: at.street }, b: { d: { ...at }, c: [1, 2] }, a: 1, f: undefined },
    ];
    for (const params of [...same, structuredClone(same[0])])
      assert.equal((await client.call('takes', params, KEY)).success, true);
    for (const zero of [0, -0])
      assert.equal(
        (await client.call('takes', { zero }, { idempotencyKey: 'zero' })).success,
        true,
      );
    // What is read in pieces, too.
    const text = 'a'.repeat(300_000);
    const options = { idempotencyKey: 'blob' };
    for (const [parts, expected] of [
      [[text, 'b'], undefined],
      [['a', text.slice(1), 'b'], undefined],
      [[text, 'c'], REUSED],
      [[text], REUSED],
    ])
      assert.deepEqual(
        resultOf(await client.call('takes', { of: new Blob(parts) }, options)),
        expected,
      );
    assert.equal(paid.length, 3);
  });

  test('is refused with params that cannot be compared, in words, and with those that are too much, at once', async () => {
    const { client, paid } = await opened();
    const { port1, port2 } = new MessageChannel();
    closeAfter(() => port1.close());
    let deep = {};
    for (let i = 0; i < 1100; i++) deep = { deep };
    let wide = {};
    for (let i = 0; i < 800; i++) wide = { a: wide, b: wide };
    for (const [params, why, transfer] of [
      [{ file: { port: port2 } }, /params\.file\.port \(MessagePort\) cannot be compared/, [port2]],
      [{ list: ['a'.repeat(2 ** 26)] }, /params\.list\.0 is too much/],
      [{ of: wide }, /params\.of\.a\..* is too much/],
      [{ n: Object(1) }, /params\.n \(Number\) cannot be compared/],
      [{ map: new Map([[1, deep]]) }, /params\.map.*\.deep.* is too deep/],
    ]) {
      const response = await client.call('takes', params, { ...KEY, transfer });
      assert.deepEqual(resultOf(response), REFUSED);
      assert.match(response.error.message, why);
      assert.match(response.error.message, /docs\/errors\.md#key_reused/);
      assert.ok(response.error.message.length < 400);
    }
    assert.deepEqual(paid, []);
    for (const of of [1n << 20_000n, new Array(2 ** 32 - 1)])
      assert.equal(
        (await client.call('takes', { of }, { idempotencyKey: typeof of })).success,
        true,
      );
    assert.equal(paid.length, 2);
    // Who has been refused has not used the key.
    assert.equal((await client.call('takes', ANN, KEY)).success, true);
  });

  test('is refused with what is streamed to the handler, which is not compared', async () => {
    const { paid, capabilities } = payments();
    const { port1, port2 } = new MessageChannel();
    const app = expose({ app: APP, capabilities }, { port: port1 });
    closeAfter(() => app.close());
    const agent = portTransport(port2);
    // This library's client does not send both.
    const post = agent.post.bind(agent);
    agent.post = (message, ...rest) => {
      if (message.type === 'capabilities/call') Object.assign(message.payload.options, KEY);
      return post(message, ...rest);
    };
    const client = await connect(agent, { agent: AGENT, upgrade: 'port' });
    closeAfter(() => client.close());
    const response = await client.call('takes', ANN, { input: new Blob(['a']).stream() });
    assert.deepEqual(resultOf(response), REFUSED);
    assert.match(response.error.message, /cannot have input/);
    assert.deepEqual(paid, []);
  });

  for (const how of ['stopped', 'closed', 'unreadable'])
    test(`whose call is ${how} while its params are read never ran, and leaves it free`, async () => {
      const { paid, capabilities } = payments();
      const app = expose({ app: APP, capabilities }, { origins: [] });
      closeAfter(() => app.close());
      await app.abp.initialize({ agent: AGENT, protocolVersion: '0.1', features: {} });
      const reads = deferred();
      const content = deferred();
      const arrayBuffer = () => {
        reads.resolve();
        return content.promise;
      };
      // In its own page an app is given params as they are.
      const of = Object.assign(new Blob(['a']), { slice: () => ({ arrayBuffer }) });
      const controller = new AbortController();
      const options = { ...KEY, signal: controller.signal };
      const pending = app.abp.call('takes', { of }, options);
      await reads.promise;
      if (how === 'stopped') controller.abort();
      else if (how === 'closed') app.close();
      else content.resolve(Promise.reject(new Error('its file has changed')));
      const { error, metadata } = await pending;
      assert.equal(metadata.outcome, 'unstarted');
      if (how === 'unreadable') assert.match(error.message, /its file has changed/);
      content.resolve(new ArrayBuffer(1));
      if (how !== 'closed') assert.equal((await app.abp.call('takes', ANN, KEY)).success, true);
      assert.deepEqual(paid, how === 'closed' ? [] : [ANN]);
    });

  test('of another agent, or under another owner, is another key', async () => {
    const { paid, capabilities } = payments();
    const site = siteOf({ capabilities });
    const clients = [await site.client({ owner: 'a' }), await site.client({ owner: 'b' })];
    const again = await site.client({ owner: 'a' });
    for (const [client, params, expected] of [
      [clients[0], ANN, { receipt: 'ann' }],
      [clients[1], BOB, { receipt: 'bob' }],
      [again, BOB, REUSED],
      [again, ANN, { receipt: 'ann' }],
    ])
      assert.deepEqual(resultOf(await client.call('pay', { ...params }, KEY)), expected);
    assert.deepEqual(paid, ['ann', 'bob']);
  });

  test('that was refused is not tried again by retry, and is told later as what never ran', async () => {
    const { client, paid } = await opened();
    await client.call('pay', { ...ANN }, KEY);
    const options = { ...KEY, retry: { delay: 1e9 }, callId: 'bob' };
    assert.deepEqual(resultOf(await client.call('pay', { ...BOB }, options)), REUSED);
    assert.deepEqual(await client.outcome('bob'), { outcome: 'unstarted' });
    await assert.rejects(client.invoke('pay', { ...BOB }, KEY), {
      code: 'KEY_REUSED',
      outcome: 'unstarted',
    });
    assert.deepEqual(paid, ['ann']);
  });

  test('holds after the app was restarted with its store, in the session after it, and at its time is free', async () => {
    const { paid, capabilities } = payments();
    const site = siteOf({ capabilities, options: { limits: { rememberFor: 50 } } });
    const client = await site.client({ reconnect: { delay: 1 } });
    await client.call('pay', { ...ANN }, KEY);
    const back = new Promise((resolve) => (client.onReconnect = resolve));
    site.cut();
    await back;
    const again = [];
    // It is refused for as long as the app remembers.
    do again.push(resultOf(await client.call('pay', { ...BOB }, KEY)));
    while (Array.isArray(again.at(-1)));
    for (const each of again.slice(0, -1)) assert.deepEqual(each, REUSED);
    assert.deepEqual(again.at(-1), { receipt: 'bob' });
    assert.deepEqual(paid, ['ann', 'bob']);
  });
});
