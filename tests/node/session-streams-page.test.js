// Streams of a page that is driven, and of window.abp in the app's own page.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { expose } from '../../parts/main/index.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { drivenPage } from '../../packages/automation/tests/support/driven-page.js';
import { APP, closeAfter } from '../support/pair.js';
import { deferred } from '../support/site.js';
import { CAPABILITIES, all, handlers, pair } from '../support/streams.js';

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
    await handlers.unwound.promise;
  });

  test('a Blob that cannot be read ends its stream, and no other', async () => {
    const { client } = await pair({ driven: true });
    await assert.rejects(all(client.stream('unreadable')), {
      code: 'OPERATION_FAILED',
      message: 'A Blob cannot be read: its file is gone',
    });
    await handlers.unwound.promise;
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
    handlers.log = [];
    handlers.unwound = deferred();
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
    assert.ok(handlers.log.length < 70, `${handlers.log.length} chunks were made`);
    assert.deepEqual(await all(stream), [...Array(300).keys()].slice(1));
    assert.deepEqual(await all(abp.stream('readable')), ['a', 'b']);
    await assert.rejects(all(abp.stream('breaks')), { code: 'OWN' });
  });

  test('leaving the loop and a signal cancel the call', async () => {
    const { abp } = await open();
    for await (const chunk of abp.stream('deaf')) if (chunk === 'more') break;
    await handlers.unwound.promise;
    handlers.unwound = deferred();
    const controller = new AbortController();
    const stream = abp.stream('hangs', {}, { signal: controller.signal });
    await stream.next();
    controller.abort('enough');
    await assert.rejects(stream.next(), { name: 'AbortError', message: 'enough' });
    await handlers.unwound.promise;
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
