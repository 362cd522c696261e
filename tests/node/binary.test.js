// Bytes in results and params where only text can be sent: what is on the wire, what comes out of
// it, and what is stored elsewhere.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { expose } from '../../parts/main/index.js';
import { APP, closeAfter, openPair } from '../support/pair.js';
import { overSockets, socketPair } from '../support/sockets.js';

const filled = (size) => Uint8Array.from({ length: size }, (_, i) => (i * 31) % 256);
const OCTETS = 'application/octet-stream';

/** An app whose handlers are given, and what it said last, as it was on the wire. */
async function open(capabilities, options) {
  const sockets = socketPair();
  const pair = await openPair(capabilities, { ends: overSockets(sockets, options) });
  const said = (end) => JSON.parse(sockets[end].sent.at(-1)).payload;
  return { ...pair, sockets, saidByApp: () => said(1).data, saidByAgent: () => said(0).params };
}
const echo = (params) => params;
/** Without what pages do not have. */
async function asInAPage(act) {
  const { Buffer } = globalThis;
  delete globalThis.Buffer;
  try {
    return await act();
  } finally {
    globalThis.Buffer = Buffer;
  }
}

describe('over text', () => {
  test('bytes of any length are the base64 that others write and read', async () => {
    const { client, saidByAgent, saidByApp } = await open({ echo });
    for (const size of [0, 1, 2, 3, 4, 24575, 24576, 24577, 300_000]) {
      const bytes = filled(size);
      const content = Buffer.from(bytes).toString('base64');
      const call = () => client.call('echo', { content: bytes, mimeType: 'a/b' });
      for (const { data } of [await call(), await asInAPage(call)]) {
        assert.ok(data.content instanceof ArrayBuffer);
        assert.deepEqual(new Uint8Array(data.content), bytes);
        for (const said of [saidByAgent(), saidByApp()])
          assert.deepEqual(said, { content, mimeType: 'a/b', encoding: 'base64', size });
      }
    }
  });

  test('bytes in any form go out with their encoding and size, and come in as an ArrayBuffer', async () => {
    const { client, saidByAgent } = await open({ echo });
    const bytes = filled(1000);
    const shared = new SharedArrayBuffer(1000);
    new Uint8Array(shared).set(bytes);
    const part = filled(1200).subarray(0, 1000);
    const forms = [
      bytes.buffer,
      shared,
      bytes,
      Buffer.from(bytes),
      new DataView(bytes.buffer),
      part,
    ];
    const content = Buffer.from(bytes).toString('base64');
    const about = { mimeType: 'application/pdf', filename: 'a.pdf' };
    for (const form of forms) {
      const { data } = await client.call('echo', { pdf: { content: form, ...about } });
      assert.deepEqual(saidByAgent().pdf, { content, ...about, encoding: 'base64', size: 1000 });
      assert.deepEqual(data, { pdf: { content: bytes.buffer, ...about, size: 1000 } });
    }
    // Bare bytes become BinaryData, as the whole value and in a list.
    for (const form of forms) {
      const { data } = await client.call('echo', [form]);
      assert.deepEqual(data, [{ content: bytes.buffer, mimeType: OCTETS, size: 1000 }]);
      assert.equal((await client.call('echo', form)).data.mimeType, OCTETS);
    }
  });

  test('text stays text, whoever wrote it, and what is inherited is not sent', async () => {
    const { client } = await open({ echo });
    const values = [
      { content: 'aGk=', mimeType: 'text/plain', encoding: 'utf-8' },
      { content: 'no base64 at all!', mimeType: 'a/b', encoding: 'base64' },
      { content: 'aGk=', encoding: 'base64' },
      { content: 'aGk=' },
      { content: 1234, mimeType: 'a/b', encoding: 'base64' },
      { content: null, nested: [1, 'two', null, { three: true }] },
    ];
    assert.deepEqual((await client.call('echo', values)).data, values);
    const heir = Object.create({ content: filled(3), mimeType: 'a/b' });
    assert.deepEqual((await client.call('echo', heir)).data, {});
  });

  test('what text cannot hold is refused: a Blob in params, and what is too deep to be read', async () => {
    const { client, exposed, sockets } = await open({ echo });
    const blob = new Blob(['x']);
    for (const params of [{ content: blob, mimeType: 'a/b' }, { file: blob }, blob]) {
      const { error } = await client.call('echo', params);
      assert.equal(error.code, 'INVALID_PARAMS');
      assert.match(error.message, /read it first/);
    }
    sockets[0].send(`"base64"${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`);
    sockets[0].send(`{"base64":${'['.repeat(200_000)}${']'.repeat(200_000)}}`);
    assert.equal((await client.call('echo', 1)).data, 1);
    assert.equal(exposed.counters[0].malformed, 2);
  });
});

describe('bytes in a result are stored', () => {
  const store = (data) => ({ downloadUrl: `u${data.size}`, expiresAt: 5, own: 1 });

  test('above a size, which is that of the bytes or, of text, its characters', async () => {
    const whole = (content, more) => ({ content, mimeType: 'a/b', ...more });
    const base64 = { encoding: 'base64' };
    for (const [result, size, mimeType = 'a/b'] of [
      [whole(filled(6).buffer), 6],
      [whole(filled(6)), 6],
      [whole(new DataView(filled(6).buffer)), 6],
      [whole(filled(10).subarray(2, 6)), 4],
      [whole(new Blob(['12345'])), 5],
      [whole('text'), 4],
      [whole('AQIDBAUG', base64), 6],
      [whole('AQIDBAU=', base64), 5],
      [whole('AQIDBA==', base64), 4],
      [filled(3), 3, OCTETS],
      [new Blob(['12']), 2, OCTETS],
      [new Blob(['12'], { type: 'c/d' }), 2, 'c/d'],
    ])
      for (const isLarge of [false, true]) {
        const storeAbove = isLarge ? size - 1 : size;
        const stores = mock.fn(store);
        const { client, saidByApp } = await open(
          { get: () => result },
          { store: stores, storeAbove },
        );
        assert.ok((await client.call('get')).success);
        assert.equal(stores.mock.callCount(), Number(isLarge), `${storeAbove} of ${size}`);
        if (isLarge)
          assert.deepEqual(saidByApp(), { downloadUrl: `u${size}`, mimeType, size, expiresAt: 5 });
      }
    // What is neither is no data at all. Of wide text the bytes are stored.
    const stores = mock.fn(store);
    const results = [whole(5), whole('text', { mimeType: 5 }), whole('é')];
    const { client } = await open({ get: (i) => results[i] }, { store: stores, storeAbove: 0 });
    for (const i of results.keys()) await client.call('get', i);
    assert.deepEqual(
      stores.mock.calls.map(({ arguments: [{ size, content }] }) => [size, content.byteLength]),
      [[2, 2]],
    );
  });

  test('each once, however often it stands there; all else is as it was', async () => {
    const stores = mock.fn(store);
    const large = { content: filled(11), mimeType: 'a/b', filename: 'f' };
    const small = { content: filled(10), mimeType: 'a/b' };
    const result = { small, list: [large, { again: large }, 'last'], none: null };
    const { client } = await open({ get: () => result }, { store: stores, storeAbove: 10 });
    const { data } = await client.call('get');
    const sent = { downloadUrl: 'u11', mimeType: 'a/b', size: 11, filename: 'f', expiresAt: 5 };
    assert.deepEqual(data.list, [sent, { again: sent }, 'last']);
    assert.deepEqual(new Uint8Array(data.small.content), filled(10));
    assert.equal(data.none, null);
    assert.equal(stores.mock.callCount(), 1);
    assert.deepEqual(Object.keys(stores.mock.calls[0].arguments[0]), [
      'content',
      'mimeType',
      'filename',
      'size',
    ]);
    assert.equal(result.list[0], large);
  });

  test('and when they cannot be, the call fails and says why', async () => {
    for (const [fails, why] of [
      [() => ({}), 'store gave no downloadUrl'],
      [() => Promise.reject(new Error('full')), 'full'],
    ]) {
      const { client } = await open({ get: () => filled(2) }, { store: fails, storeAbove: 1 });
      const { error } = await client.call('get');
      assert.deepEqual(
        [error.code, error.message],
        ['OPERATION_FAILED', `The result could not be stored: ${why}`],
      );
    }
  });
});

test('window.abp answers in base64, Blobs as well, and what has no bytes as it is', async () => {
  const value = { a: [1] };
  const mixed = {
    bytes: { content: filled(3), mimeType: 'a/b', own: 1 },
    none: { content: new ArrayBuffer(0), mimeType: 'a/b' },
    text: { content: 'x', mimeType: 'a/b' },
    number: { content: 5, mimeType: 'a/b' },
    blob: new Blob(['12'], { type: 'c/d' }),
  };
  const capabilities = { value: () => value, mixed: () => mixed };
  const exposed = expose({ app: APP, capabilities }, { origins: [] });
  closeAfter(() => exposed.close());
  await exposed.abp.initialize({ agent: { name: 'a', version: '1' } });
  assert.deepEqual((await exposed.abp.call('value')).data, value);
  const { data } = await exposed.abp.call('mixed');
  const base64 = { encoding: 'base64' };
  assert.deepEqual(data, {
    text: mixed.text,
    number: mixed.number,
    bytes: { content: 'AB8+', mimeType: 'a/b', own: 1, ...base64, size: 3 },
    none: { content: '', mimeType: 'a/b', ...base64, size: 0 },
    blob: { content: 'MTI=', mimeType: 'c/d', ...base64, size: 2 },
  });
});
