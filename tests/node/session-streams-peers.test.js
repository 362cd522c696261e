// Peers that break the rules of streams: credit and chunks that nobody owes.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { APP, closeAfter } from '../support/pair.js';
import { Raw } from '../support/raw.js';
import { deferred } from '../support/site.js';
import { CAPABILITIES, all, handlers } from '../support/streams.js';

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
    handlers.log = [];
    handlers.unwound = deferred();
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
    await handlers.unwound.promise;
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
