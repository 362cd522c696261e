// Results that flow: what a generator yields reaches its reader chunk by chunk, over every
// transport, and the call still has one outcome.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AbpError, connect, expose, transfer } from '../../parts/main/index.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { random } from '../differential/scripts.js';
import { drivenPage } from '../../packages/automation/tests/support/driven-page.js';
import { APP, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';
import { entriesOf } from '../support/frames.js';

/** What the handlers did. */
let did = [];
/** What had come late before anything was streamed. */
let before;
/** Settles when a generator has unwound. */
let unwound;

const deferred = () => {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

const CAPABILITIES = {
  async *parts() {
    yield new Blob(['blob']);
    yield new Uint8Array([1, 2]);
    yield 'text';
  },
  async *unreadable() {
    try {
      const arrayBuffer = () => Promise.reject(new Error('its file is gone'));
      yield Object.assign(Object.create({ [Symbol.toStringTag]: 'Blob' }), { arrayBuffer });
      for (;;) yield 'more';
    } finally {
      unwound.resolve();
    }
  },
  async *count({ to }) {
    try {
      for (let i = 0; i < to; i++) {
        did.push(i);
        yield i;
      }
      return `counted to ${to}`;
    } finally {
      did.push('end');
      unwound.resolve();
    }
  },
  async *pages() {
    yield { page: 1, rows: [[1, 'a']] };
    yield { page: 2, rows: [] };
  },
  readable: () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue('a');
        controller.enqueue('b');
        controller.close();
      },
      cancel: (reason) => void did.push(`cancel ${reason}`),
    }),
  endless: () =>
    new ReadableStream({
      pull: (controller) => controller.enqueue('x'),
      cancel: () => unwound.resolve(),
    }),
  iterable: () => ({
    left: 2,
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      return this.left ? { done: false, value: this.left-- } : { done: true, value: 'none left' };
    },
  }),
  async *breaks() {
    yield 1;
    throw Object.assign(new Error('half of it'), { code: 'OWN', retryable: true });
  },
  async *unsendable() {
    try {
      yield 'first';
      yield () => {};
      yield 'third';
      return 'done';
    } finally {
      unwound.resolve();
    }
  },
  async *hangs(_params, { signal }) {
    try {
      yield 'first';
      await new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
    } finally {
      unwound.resolve();
    }
  },
  async *deaf() {
    try {
      for (;;) yield 'more';
    } finally {
      unwound.resolve();
    }
  },
  moved() {
    const stream = new ReadableStream();
    return transfer(stream, [stream]);
  },
  plain: () => 42,
  refuses: { handler: async function* () {}, available: false },
};

/** Two of ours, over MessageChannel, the given transport, or a page that is driven. */
async function pair({ limits = {}, ...way } = {}) {
  did = [];
  unwound = deferred();
  const opened = await openPair(CAPABILITIES, {
    ...way,
    app: { limits: limits.app },
    agent: { limits: limits.agent },
  });
  // On a slow machine initialize is sent again, and the second answer comes late.
  await opened.client.call('plain');
  before = opened.client.counters.late;
  return opened;
}

async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

/** Nothing is left or was dropped at either side. */
function assertClean(client, exposed) {
  const { late, ...counted } = client.counters;
  assert.equal(late, before);
  for (const counters of [counted, ...exposed.counters]) {
    for (const [name, count] of Object.entries(counters))
      if (name !== 'remembered') assert.equal(count, 0, name);
  }
}

for (const { name, ...way } of [...TRANSPORTS, { name: 'a page that is driven', driven: true }]) {
  describe(`streams over ${name}`, () => {
    test('every chunk arrives in order, then what the generator returned', async () => {
      const { client, exposed } = await pair(way);
      assert.equal(client.features.streams, true);
      const stream = client.stream('count', { to: 500 });
      assert.deepEqual(await all(stream), [...Array(500).keys()]);
      const { success, data } = await stream.response;
      assert.deepEqual([success, data], [true, 'counted to 500']);
      assert.deepEqual(await all(client.stream('pages')), [
        { page: 1, rows: [[1, 'a']] },
        { page: 2, rows: [] },
      ]);
      assert.deepEqual(await all(client.stream('readable')), ['a', 'b']);
      assertClean(client, exposed);
    });

    test('leaving the loop cancels the call, and the generator unwinds', async () => {
      const { client } = await pair(way);
      const stream = client.stream('deaf');
      let read = 0;
      for await (const chunk of stream) {
        assert.equal(chunk, 'more');
        if (++read === 3) break;
      }
      await unwound.promise;
      const { success, cancelled } = await stream.response;
      assert.deepEqual([success, cancelled], [false, true]);
      assert.deepEqual((await client.call('plain')).data, 42);
    });

    test('a fast generator with a reader that does not read is held at the window', async () => {
      const limits = { agent: { streamChunks: 4 } };
      const { client, exposed } = await pair({ ...way, limits });
      const stream = client.stream('count', { to: 1000 });
      assert.deepEqual((await stream.next()).value, 0);
      // A round trip and another: what was sent has arrived, and another call is not held up.
      assert.equal((await client.call('plain')).data, 42);
      assert.equal((await client.call('plain')).data, 42);
      assert.ok(did.length <= 7, `${did.length} chunks were made`);
      assert.equal((await all(stream)).length, 999);
      assertClean(client, exposed);
    });

    test('a reader says how many bytes may come ahead of it, for one stream', async () => {
      const { client, exposed } = await pair(way);
      // Two numbers.
      const stream = client.stream('count', { to: 1000 }, { highWaterMark: 16 });
      assert.deepEqual((await stream.next()).value, 0);
      assert.equal((await client.call('plain')).data, 42);
      assert.equal((await client.call('plain')).data, 42);
      assert.ok(did.length <= 5, `${did.length} chunks were made`);
      assert.equal((await all(stream)).length, 999);
      assert.equal((await all(client.stream('count', { to: 100 }))).length, 100);
      assertClean(client, exposed);
    });
  });
}

describe('streams', () => {
  test('the window counts bytes, too, and the smaller one of the two sides', async () => {
    const limits = { agent: { streamBytes: 100 }, app: { streamChunks: 2 } };
    const { client } = await pair({ limits });
    const numbers = client.stream('count', { to: 100 });
    await numbers.next();
    await client.call('plain');
    await client.call('plain');
    assert.ok(did.length <= 5, `${did.length} chunks were made`);
    assert.equal((await all(numbers)).length, 99);
    assert.equal((await all(client.stream('count', { to: 100 }))).length, 100);
  });

  test('a highWaterMark may be of one byte, and more than the limits is what these allow', async () => {
    const { client } = await pair({ limits: { app: { streamBytes: 16 } } });
    for (const [highWaterMark, most] of [
      [1, 4],
      [17, 5],
      [2 ** 32 + 1, 5],
      [Infinity, 5],
      [undefined, 5],
    ]) {
      did = [];
      const stream = client.stream('count', { to: 100 }, { highWaterMark });
      await stream.next();
      await client.call('plain');
      await client.call('plain');
      assert.ok(did.length <= most, `${did.length} chunks were made at ${highWaterMark}`);
      assert.equal((await all(stream)).length, 99);
    }
  });

  test('a highWaterMark that is no number of bytes is refused, and nothing runs', async () => {
    const { client } = await pair();
    for (const highWaterMark of [0, -1, 1.5, NaN, -Infinity, null, false, '16', {}]) {
      const stream = client.stream('count', { to: 1 }, { highWaterMark });
      const is = { name: 'AbpError', code: 'INVALID_PARAMS', message: /highWaterMark/ };
      await assert.rejects(stream.next(), is);
      await assert.rejects(stream.response, is);
    }
    assert.deepEqual(did, []);
  });

  test('any async iterable streams', async () => {
    const { client } = await pair();
    const stream = client.stream('iterable');
    assert.deepEqual(await all(stream), [2, 1]);
    assert.equal((await stream.response).data, 'none left');
  });

  test('by hand: next gives the chunks, and at the end what was returned', async () => {
    const { client } = await pair();
    const stream = client.stream('count', { to: 2 });
    const asked = [stream.next(), stream.next(), stream.next(), stream.next()];
    assert.deepEqual(await Promise.all(asked), [
      { done: false, value: 0 },
      { done: false, value: 1 },
      { done: true, value: 'counted to 2' },
      { done: true, value: undefined },
    ]);
  });

  test('call collects: what was returned or, if that is nothing, every chunk', async () => {
    for (const upgrade of ['frames', 'port', 'none']) {
      const { client } = await pair({ upgrade });
      assert.equal((await client.call('count', { to: 3 })).data, 'counted to 3');
      const { data, metadata } = await client.call('readable');
      assert.deepEqual(data, ['a', 'b']);
      assert.equal(metadata.collected, true);
      assert.equal((await client.call('plain')).metadata.collected, undefined);
    }
  });

  test('a generator may return the protocol’s own response, and it is the outcome', async () => {
    const error = { code: 'OWN', message: 'No more', retryable: false };
    const { client } = await openPair({
      async *fails() {
        yield 1;
        return { success: false, error };
      },
      async *says() {
        yield 1;
        return { success: true, data: 'all' };
      },
      async *cancelled() {
        yield 1;
        return { success: false, cancelled: true, error: { ...error, code: 'CANCELLED' } };
      },
    });
    const failed = client.stream('fails');
    await assert.rejects(all(failed), { code: 'OWN' });
    assert.equal((await failed.response).success, false);
    assert.deepEqual((await client.call('fails')).error, error);
    assert.equal((await client.call('says')).data, 'all');
    assert.equal((await client.call('cancelled')).cancelled, true);
  });

  test('an iterator that has thrown is not told to return', async () => {
    const returned = [];
    const iterable = (next) => ({
      [Symbol.asyncIterator]: () => ({ next, return: (why) => returned.push(why) }),
    });
    const broken = () => Promise.reject(new AbpError('OWN', 'broken'));
    const { client } = await openPair({
      broken: () => iterable(broken),
      unsendable: () => iterable(async () => ({ done: false, value: () => {} })),
    });
    assert.equal((await client.call('broken')).error.code, 'OWN');
    await assert.rejects(all(client.stream('broken')), { code: 'OWN' });
    assert.equal(returned.length, 0);
    await assert.rejects(all(client.stream('unsendable')), { code: 'OPERATION_FAILED' });
    assert.equal(returned.length, 1);
  });

  test('over plain messages a stream has its chunks all at once', async () => {
    const { client } = await pair({ upgrade: 'none' });
    assert.equal(client.features.streams, false);
    assert.deepEqual(await all(client.stream('readable')), ['a', 'b']);
    const counted = client.stream('count', { to: 3 });
    assert.deepEqual(await all(counted), []);
    assert.equal((await counted.response).data, 'counted to 3');
  });

  test('over a port without frames chunks are messages', async () => {
    const { client, exposed } = await pair({ upgrade: 'port' });
    assert.equal(client.features.streams, true);
    assert.equal((await all(client.stream('count', { to: 300 }))).length, 300);
    assertClean(client, exposed);
  });

  test('a ReadableStream that is marked to be moved is moved, not read', async () => {
    const { client } = await pair();
    const { data } = await client.call('moved');
    assert.ok(data instanceof ReadableStream);
  });

  test('what does not stream has no chunks', async () => {
    const { client } = await pair();
    const stream = client.stream('plain');
    assert.deepEqual(await all(stream), []);
    assert.equal((await stream.response).data, 42);
  });

  test('a generator that throws: the chunks before it arrive, then its error', async () => {
    const { client } = await pair();
    const stream = client.stream('breaks');
    assert.equal((await stream.next()).value, 1);
    await assert.rejects(stream.next(), { name: 'AbpError', code: 'OWN', message: 'half of it' });
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    assert.equal((await stream.response).error.code, 'OWN');
  });

  test('a chunk that cannot be sent ends the stream with an error, and never with a success', async () => {
    for (const upgrade of ['frames', 'port']) {
      const { client } = await pair({ upgrade });
      const stream = client.stream('unsendable');
      const chunks = [];
      await assert.rejects(
        async () => {
          for await (const chunk of stream) chunks.push(chunk);
        },
        { code: 'OPERATION_FAILED', message: /A chunk cannot be sent/ },
      );
      assert.equal(chunks[0], 'first');
      assert.ok(!chunks.includes('done'));
      assert.equal((await stream.response).success, false);
      await unwound.promise;
    }
  });

  test('refused, it throws, and has sent nothing', async () => {
    const { client } = await pair();
    await assert.rejects(all(client.stream('refuses')), { code: 'CAPABILITY_UNAVAILABLE' });
    await assert.rejects(all(client.stream('nothing')), { code: 'UNKNOWN_CAPABILITY' });
    await assert.rejects(all(client.stream(7)), { code: 'INVALID_PARAMS' });
  });

  describe('end', () => {
    const cancelled = { name: 'AbortError', code: 'CANCELLED' };

    test('by a signal, also while the handler waits for something else', async () => {
      const { client } = await pair();
      const controller = new AbortController();
      const stream = client.stream('hangs', {}, { signal: controller.signal });
      assert.equal((await stream.next()).value, 'first');
      controller.abort('enough');
      await assert.rejects(stream.next(), { ...cancelled, message: 'enough' });
      await unwound.promise;
    });

    test('by a signal while the generator waits for room', async () => {
      const { client } = await pair({ limits: { agent: { streamChunks: 1 } } });
      const controller = new AbortController();
      const stream = client.stream('deaf', {}, { signal: controller.signal });
      await client.call('plain');
      await client.call('plain');
      controller.abort();
      await unwound.promise;
      // What had come is still there to be read.
      assert.equal((await stream.next()).value, 'more');
      await assert.rejects(all(stream), cancelled);
    });

    test('by a signal that was aborted already: nothing is sent', async () => {
      const { client } = await pair();
      const stream = client.stream('count', { to: 3 }, { signal: AbortSignal.abort('no') });
      await assert.rejects(all(stream), { ...cancelled, message: 'no' });
      assert.deepEqual(did, []);
    });

    test('by a timeout', async () => {
      const { client } = await pair();
      const stream = client.stream('hangs', {}, { timeout: 5 });
      await assert.rejects(all(stream), { code: 'TIMEOUT' });
    });

    test('by cancel(callId)', async () => {
      const { client } = await pair();
      const stream = client.stream('hangs', {}, { callId: 'mine' });
      assert.equal((await stream.next()).value, 'first');
      assert.equal((await client.cancel('mine')).cancelled, true);
      await assert.rejects(stream.next(), cancelled);
      await unwound.promise;
    });

    test('with the session: closed by the agent, closed by the app, lost', async () => {
      for (const end of [
        ({ client }) => client.close(),
        ({ exposed }) => exposed.close(),
        ({ app }) => app.close(),
      ]) {
        did = [];
        unwound = deferred();
        const { port1, port2 } = new MessageChannel();
        const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { port: port1 });
        const client = await connect(port2, { agent: { name: 'test', version: '1' } });
        const stream = client.stream('hangs');
        assert.equal((await stream.next()).value, 'first');
        end({ client, exposed, app: port1 });
        await assert.rejects(all(stream), (error) =>
          ['CANCELLED', 'DISCONNECTED'].includes(error.code),
        );
        await unwound.promise;
        client.close();
        exposed.close();
      }
    });

    test('a ReadableStream is cancelled', async () => {
      const { client } = await pair();
      for await (const chunk of client.stream('endless')) {
        assert.equal(chunk, 'x');
        break;
      }
      await unwound.promise;
    });

    test('after the result nothing more comes of it', async () => {
      const { client, exposed } = await pair();
      const stream = client.stream('count', { to: 10 });
      await stream.response;
      assert.equal((await all(stream)).length, 10);
      await stream.return();
      assert.deepEqual(await stream.next(), { done: true, value: undefined });
      assertClean(client, exposed);
    });
  });

  test('two streams, one unread, do not wait for each other', async () => {
    const { client } = await pair({ limits: { agent: { streamChunks: 2 } } });
    const unread = client.stream('deaf');
    assert.equal((await all(client.stream('count', { to: 200 }))).length, 200);
    await unread.return();
    assert.equal((await unread.response).cancelled, true);
  });
});

describe('streams of a page', () => {
  test('a Blob and bytes arrive as they are, and what comes after them after them', async () => {
    const { client } = await pair({ driven: true });
    const [blob, bytes, text] = await all(client.stream('parts'));
    assert.ok(blob instanceof Blob);
    assert.equal(await blob.text(), 'blob');
    assert.deepEqual(bytes, new Uint8Array([1, 2]));
    assert.equal(text, 'text');
  });

  test('a chunk that cannot be sent ends the stream', async () => {
    const { client } = await pair({ driven: true });
    await assert.rejects(all(client.stream('unsendable')), {
      code: 'OPERATION_FAILED',
      message: /A chunk cannot be sent/,
    });
    await unwound.promise;
  });

  test('a Blob that cannot be read ends its stream, and no other', async () => {
    const { client } = await pair({ driven: true });
    await assert.rejects(all(client.stream('unreadable')), {
      code: 'OPERATION_FAILED',
      message: 'A Blob cannot be read: its file is gone',
    });
    await unwound.promise;
    assert.equal((await all(client.stream('parts'))).length, 3);
    assert.equal((await client.call('plain')).data, 42);
  });

  test('an app that is not ours streams nothing, whatever it says', async () => {
    const abp = {
      initialize: async ({ features }) => ({
        sessionId: '1',
        app: APP,
        capabilities: [],
        features,
      }),
      call: async (_name, _params, { stream }) => ({ success: true, data: stream ?? 'no stream' }),
    };
    const client = await connectPage(drivenPage({ abp }), { agent: APP });
    closeAfter(() => client.close());
    assert.equal(client.features.streams, false);
    const stream = client.stream('any');
    assert.deepEqual(await all(stream), []);
    assert.equal((await stream.response).data, 'no stream');
  });
});

describe('streams of window.abp', () => {
  async function open(features) {
    did = [];
    unwound = deferred();
    const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { origins: [] });
    closeAfter(() => exposed.close());
    const said = await exposed.abp.initialize({ agent: APP, protocolVersion: '0.1', features });
    return { abp: exposed.abp, said };
  }

  test('call collects, also for a client that asks for chunks and cannot be sent any', async () => {
    const { abp, said } = await open({ 'bridge.streams': true, 'bridge.frames': true });
    assert.deepEqual(
      Object.keys(said.features).filter((name) => name.startsWith('bridge.')),
      [],
    );
    const stream = { chunks: 1, bytes: 1 };
    const { data, metadata } = await abp.call('readable', {}, { stream });
    assert.deepEqual([data, metadata.collected], [['a', 'b'], true]);
  });

  test('stream reads what is made, and no more is made than its window', async () => {
    const { abp } = await open();
    const stream = abp.stream('count', { to: 300 });
    assert.equal((await stream.next()).value, 0);
    await abp.call('plain');
    assert.ok(did.length < 70, `${did.length} chunks were made`);
    assert.deepEqual(await all(stream), [...Array(300).keys()].slice(1));
    assert.deepEqual(await all(abp.stream('readable')), ['a', 'b']);
    await assert.rejects(all(abp.stream('breaks')), { code: 'OWN' });
  });

  test('leaving the loop and a signal cancel the call', async () => {
    const { abp } = await open();
    for await (const chunk of abp.stream('deaf')) if (chunk === 'more') break;
    await unwound.promise;
    unwound = deferred();
    const controller = new AbortController();
    const stream = abp.stream('hangs', {}, { signal: controller.signal });
    await stream.next();
    controller.abort('enough');
    await assert.rejects(stream.next(), { name: 'AbortError', message: 'enough' });
    await unwound.promise;
  });

  test('of two streams with one callId the second is refused, and the first lives', async () => {
    const { abp } = await open();
    const first = abp.stream('count', { to: 3 }, { callId: 'same' });
    await first.next();
    const second = abp.stream('count', { to: 3 }, { callId: 'same' });
    await assert.rejects(second.next(), { code: 'INVALID_PARAMS' });
    assert.deepEqual(await all(first), [1, 2]);
  });
});

describe('a peer that means no good', () => {
  const FEATURES = { 'bridge.frames': true, 'bridge.streams': true };
  let channel, raw;

  /** The raw end's next frame that is not about the session. */
  async function frame() {
    for (;;) {
      const message = await raw.next();
      if (Array.isArray(message)) return message;
    }
  }

  test('credit that nobody owes opens no window: negative, beyond 2^53, no number, too much, of others', async () => {
    did = [];
    unwound = deferred();
    channel = new MessageChannel();
    const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { port: channel.port1 });
    raw = new Raw(channel.port2);
    closeAfter(() => channel.port2.close());
    closeAfter(() => exposed.close());
    await raw.ask('initialize', 'P', {
      agent: { name: 'raw', version: '1' },
      protocolVersion: '0.1',
      features: FEATURES,
    });
    channel.port2.postMessage([2, 1, 'count', [{ to: 100 }, 0, false, 2, 1000]]);
    const came = [];
    while (came.length < 2) {
      const entries = await frame();
      for (let i = 0; i < entries.length; i += 4) came.push(entries.slice(i, i + 4));
    }
    assert.deepEqual(came, [
      [8, 1, 8, 0],
      [8, 1, 8, 1],
    ]);
    const hostile = [
      ...[-1, 0, 3, 1e300, 2 ** 53 + 2, NaN, 1.5, '1', null, undefined, {}].map((n) => [n, 8]),
      ...[-1, 17, 1e300, NaN, '8'].map((n) => [1, n]),
    ];
    for (const [chunks, bytes] of hostile) channel.port2.postMessage([9, 1, chunks, bytes]);
    channel.port2.postMessage([9, 7, 1, 8]); // nobody's
    channel.port2.postMessage([8, 1, 8, 'x']); // of no question of the app's
    raw.send('bridge/credit', undefined, { callId: 'x', chunks: 1, bytes: 8 });
    channel.port2.postMessage([1, 2, 'plain', {}]);
    assert.deepEqual((await frame()).slice(0, 2), [3, 2], 'no chunk came, and others are answered');
    const { overrun, stray, malformed, inFlightIn } = exposed.counters[0];
    assert.deepEqual([overrun, stray, malformed, inFlightIn], [hostile.length, 3, 0, 1]);
    channel.port2.postMessage([9, 1, 2, 16]);
    assert.deepEqual((await frame()).slice(0, 4), [8, 1, 8, 2]);
    channel.port2.postMessage([7, 1, 'enough', undefined]);
    await unwound.promise;
  });

  /** Our client, and an app that a test plays by hand. */
  async function handmade({ limits = { streamChunks: 2 } } = {}) {
    channel = new MessageChannel();
    raw = new Raw(channel.port1);
    const connecting = connect(channel.port2, {
      agent: { name: 'test', version: '1' },
      limits,
    });
    const { id } = await raw.next();
    raw.send('initialize-result', id, {
      success: true,
      sessionId: 's',
      protocolVersion: '0.1',
      app: { id: 'a.b', name: 'A', version: '1' },
      capabilities: [],
      features: FEATURES,
    });
    const client = await connecting;
    closeAfter(() => channel.port1.close());
    closeAfter(() => client.close());
    return client;
  }

  test('a chunk without room, or of no size, ends its own stream with an error', async () => {
    for (const last of [8, -1, 2 ** 53 + 2, NaN, '8', undefined]) {
      const client = await handmade();
      const stream = client.stream('rows');
      const other = client.stream('others');
      const requests = await frame();
      assert.deepEqual(requests.slice(0, 4), [2, 1, 'rows', [{}, 0, false, 2, 1048576]]);
      channel.port1.postMessage([8, 2, 1, 'of the other', 8, 1, 8, 'a']);
      if (last === 8) channel.port1.postMessage([8, 1, 8, 'b', 8, 1, 8, 'too much']);
      else channel.port1.postMessage([8, 1, last, 'of no size']);
      channel.port1.postMessage([8, 1, 8, 'late', 3, 1, 5, 'a success']);
      const { success, cancelled, error } = await stream.response;
      assert.deepEqual([success, cancelled, error.code], [false, undefined, 'OPERATION_FAILED']);
      assert.match(error.message, /more than the stream's window allows/);
      await assert.rejects(all(stream), { code: 'OPERATION_FAILED' });
      assert.equal((await other.next()).value, 'of the other');
      channel.port1.postMessage([3, 2, 5, 'fine']);
      assert.equal((await other.response).data, 'fine');
      assert.equal(client.counters.overrun, 1);
      assert.equal(client.counters.late, 2);
      client.close();
    }
  });

  test('what a chunk is said to be is not believed beyond another window', async () => {
    const client = await handmade({ limits: { streamBytes: 1000 } });
    const small = client.stream('rows');
    await frame();
    // Less than it is, and within reason: counted otherwise, perhaps.
    channel.port1.postMessage([8, 1, 1, 'a'.repeat(900)]);
    assert.equal((await small.next()).value.length, 900);
    channel.port1.postMessage([8, 1, 1, 'b'.repeat(900)]);
    assert.equal((await small.next()).value.length, 900);
    assert.equal(client.counters.overrun, 0);
    const chunk = [8, 1, 1, 'c'.repeat(900)];
    channel.port1.postMessage([...chunk, ...chunk, ...chunk]);
    await assert.rejects(all(small), { code: 'OPERATION_FAILED' });
    assert.equal(client.counters.overrun, 1);
    const large = client.stream('rows');
    channel.port1.postMessage([8, 2, 8, new ArrayBuffer(2 ** 20)]);
    await assert.rejects(all(large), { code: 'OPERATION_FAILED' });
    client.close();
  });

  test('chunks of unknown calls, of calls that are no streams and of calls that have ended are counted', async () => {
    const client = await handmade();
    const plain = client.call('plain');
    await frame();
    channel.port1.postMessage([8, 1, 1, 'x', 8, 99, 1, 'x', 8, 'nobody', 1, 'x', 8, {}, 1, 'x']);
    raw.send('bridge/chunk', undefined, { callId: 'nobody', size: 1, chunk: 'x' });
    channel.port1.postMessage([9, 1, 1, 1]); // of nothing that was asked for
    channel.port1.postMessage([3, 1, 5, 'fine']);
    assert.equal((await plain).data, 'fine');
    const { stray, malformed, late } = client.counters;
    assert.deepEqual([stray, malformed, late], [6, 0, 0]);
    const stream = client.stream('rows');
    await frame();
    channel.port1.postMessage([8, 2, 1, 'a', 3, 2, 5, 'end', 8, 2, 1, 'late']);
    assert.deepEqual(await all(stream), ['a']);
    assert.equal((await stream.response).data, 'end');
    assert.equal(client.counters.late, 1);
  });
});

/** A stream over a channel of which each side's frames are counted: the entries of each. */
async function counted(rows) {
  const { port1, port2 } = new MessageChannel();
  const sent = [port1, port2].map((port) => {
    const frames = [];
    const post = port.postMessage.bind(port);
    port.postMessage = (message, transfer) => {
      if (Array.isArray(message) || typeof message === 'string') frames.push(entriesOf(message));
      return post(message, transfer);
    };
    return frames;
  });
  const exposed = expose(
    { app: { id: 'a.b', name: 'A', version: '1' }, capabilities: { rows: () => rows(sent[0]) } },
    { port: port1 },
  );
  const client = await connect(port2, { agent: { name: 'test', version: '1' } });
  let read = 0;
  const stream = client.stream('rows');
  while (!(await stream.next()).done) read++;
  client.close();
  exposed.close();
  return { read, frames: sent[0].length, credits: sent[1].length };
}

test('chunks that follow one another travel together, and so does their credit', async () => {
  const count = 2000;
  const { read, frames, credits } = await counted(async function* () {
    for (let i = 0; i < count; i++) yield 'token';
  });
  assert.equal(read, count);
  assert.ok(frames < count / 4, `${frames} frames for ${count} chunks`);
  assert.ok(credits < count / 4, `${credits} messages with credit for ${count} chunks`);
});

test('chunks that take their time are not held back', async () => {
  await counted(async function* (frames) {
    for (let i = 0; i < 10; i++) {
      const from = performance.now();
      while (performance.now() - from < 2);
      yield 'row';
      const sent = frames.flat().filter(([, , , chunk]) => chunk === 'row').length;
      assert.equal(sent, i + 1);
    }
  });
});

// STREAMS says how many.
test('streams that are cut off at random leave nothing behind', async () => {
  const count = Number(process.env.STREAMS ?? 200);
  const pick = random(Number(process.env.SEED ?? 1));
  let begun = 0;
  let ended = 0;
  const { port1, port2 } = new MessageChannel();
  const exposed = expose(
    {
      app: { id: 'a.b', name: 'A', version: '1' },
      capabilities: {
        async *rows({ rows, size, fails }) {
          begun++;
          try {
            for (let i = 0; i < rows; i++) yield { i, text: 'x'.repeat(size) };
            if (fails) throw new AbpError('OWN', 'as it was told to');
            return rows;
          } finally {
            ended++;
          }
        },
      },
    },
    { port: port1, limits: { streamChunks: 7, streamBytes: 300 } },
  );
  const client = await connect(port2, {
    agent: { name: 'test', version: '1' },
    limits: { streamChunks: 5, streamBytes: 500 },
  });
  const outcomes = {};
  async function one(n) {
    const [rows, cut] = [pick(40), pick(60)];
    const ending = ['break', 'abort', 'cancel', 'nothing'][pick(4)];
    const controller = new AbortController();
    const stream = client.stream(
      'rows',
      { rows, size: pick(100), fails: pick(4) === 0 },
      { signal: controller.signal, callId: `s${n}` },
    );
    let read = 0;
    try {
      for await (const { i } of stream) {
        assert.equal(i, read++);
        if (read <= cut) continue;
        if (ending === 'break') break;
        if (ending === 'abort') controller.abort();
        if (ending === 'cancel') void client.cancel(`s${n}`);
      }
    } catch (error) {
      assert.ok(['OWN', 'CANCELLED'].includes(error.code), error.message);
    }
    const { success, data, error } = await stream.response;
    if (success) assert.equal(data, rows);
    // What a success has sent has been read, unless its reader has left.
    if (success && ending !== 'break') assert.equal(read, rows);
    const outcome = success ? 'success' : error.code;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  for (let n = 0; n < count; n += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, i) => one(n + i)));
  }
  assert.ok(
    outcomes.success > 0 && outcomes.OWN > 0 && outcomes.CANCELLED > 0,
    'all of it happens',
  );
  assert.equal(ended, begun);
  const { inFlightIn, overrun: granted, stray: unknown } = exposed.counters[0];
  const { inFlightOut, overrun, stray, malformed } = client.counters;
  assert.deepEqual([inFlightIn, granted, unknown], [0, 0, 0]);
  assert.deepEqual([inFlightOut, overrun, stray, malformed], [0, 0, 0, 0]);
  client.close();
  exposed.close();
});
