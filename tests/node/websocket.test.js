// What crosses a WebSocket between an agent and an app: calls, bytes as base64, Blobs and results
// that are stored elsewhere.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { WebSocket } from 'ws';
import { connect, expose } from '../../parts/main/index.js';
import { createPeer } from '../../packages/rpc/src/index.js';
import { messageToText, textToMessage, webSocketTransport } from '../../parts/transports/index.js';
import {
  AGENT,
  APP,
  hanging,
  listen,
  serve,
  dial,
  Raw,
  rawApp,
  rawAgent,
  deferred,
} from '../support/websocket.js';

/** Whether a promise is still pending when all that has arrived was worked on. */
const outcome = ({ success, cancelled, error }) => ({ success, cancelled, code: error?.code });

const bytes = (size) => Uint8Array.from({ length: size }, (_, i) => i * 7).buffer;

const base64 = (buffer) => Buffer.from(buffer).toString('base64');

describe('what crosses', () => {
  test('bytes of BinaryData cross as base64, and are bytes again', async (t) => {
    let came;
    const { url } = await serve(t, {
      turn: ({ file }) => {
        came = file;
        return { pages: [{ content: file.content, mimeType: 'image/png', filename: 'a.png' }] };
      },
    });
    const { client } = await dial(t, url);
    // More than the arguments that a function can take.
    const content = bytes(200_000);
    const { data } = await client.call('turn', { file: { content, mimeType: 'image/png' } });
    assert.ok(came.content instanceof ArrayBuffer);
    assert.deepEqual(came.content, content);
    assert.equal(came.encoding, undefined);
    assert.deepEqual(data.pages[0].content, content);
    assert.equal(data.pages[0].filename, 'a.png');
    assert.equal(content.byteLength, 200_000);
  });

  test('a raw agent gets base64 with its encoding, and may send it', async (t) => {
    const content = bytes(10);
    const { raw } = await rawAgent(t, {
      get: () => ({ content, mimeType: 'a/b' }),
      size: ({ file }) => file.content.byteLength,
      text: ({ file }) => file.content,
    });
    const { data } = await raw.call('get');
    assert.deepEqual(
      [data.content, data.encoding, data.mimeType],
      [base64(content), 'base64', 'a/b'],
    );
    const file = { content: base64(content), encoding: 'base64', mimeType: 'a/b' };
    assert.equal((await raw.call('size', { file })).data, 10);
    // Text stays text, and so does what is no base64.
    const text = { content: 'aGk', encoding: 'utf-8', mimeType: 'text/plain' };
    assert.equal((await raw.call('text', { file: text })).data, 'aGk');
    const broken = { ...file, content: 'not base64!' };
    assert.equal((await raw.call('text', { file: broken })).data, 'not base64!');
  });

  test('our agent speaks to a raw app: a call, its cancel, the reason, the result', async (t) => {
    const { raw, client } = await rawApp(t);
    const controller = new AbortController();
    const call = client.call('echo', { a: 1 }, { signal: controller.signal, callId: 'A' });
    const message = await raw.next();
    assert.equal(message.type, 'capabilities/call');
    assert.equal(typeof message.timestamp, 'number');
    assert.deepEqual(message.payload.params, { a: 1 });
    assert.equal(message.payload.options.callId, 'A');
    controller.abort('no more');
    const cancel = await raw.next();
    assert.equal(cancel.type, 'capabilities/cancel');
    assert.deepEqual(cancel.payload, { callId: 'A', reason: 'no more' });
    raw.send('capabilities/cancel-result', cancel.id, { callId: 'A', cancelled: true });
    raw.send('capabilities/call-result', message.id, { success: false, cancelled: true });
    const response = await call;
    assert.deepEqual(outcome(response), { success: false, cancelled: true, code: 'CANCELLED' });
    assert.equal(response.error.message, 'no more');
    client.close();
    assert.equal((await raw.next()).type, 'shutdown');
    assert.equal((await raw.closed)[0], 1000);
  });

  test('an app dials its agent, which serves it', async (t) => {
    const { server, url } = await listen(t);
    const connected = once(server, 'connection');
    const exposed = expose({ ...APP, capabilities: { echo: (p) => p } });
    exposed.accept(webSocketTransport(new WebSocket(url)));
    const [socket] = await connected;
    const client = await connect(() => webSocketTransport(socket), AGENT);
    assert.equal((await client.call('echo', 1)).data, 1);
    client.close();
    assert.equal((await once(socket, 'close'))[0], 1000);
    assert.deepEqual(exposed.counters, []);
  });

  test('questions and notifications cross', async (t) => {
    const { url, exposed } = await serve(t, {
      ask: (params, { elicit }) => elicit({ method: 'elicitation/input', params }),
    });
    const { promise, resolve } = Promise.withResolvers?.() ?? deferred();
    const { client } = await dial(t, url, {
      onElicitation: ({ params }) => ({ value: params.prompt.toUpperCase() }),
      onNotification: (event, data) => resolve([event, data]),
    });
    const { data } = await client.call('ask', { prompt: 'name?' });
    assert.deepEqual(data, { value: 'NAME?' });
    exposed.notify('notifications/error', { code: 'X' });
    assert.deepEqual(await promise, ['notifications/error', { code: 'X' }]);
  });

  test('no frames and no ports are agreed on, only signs of life', async (t) => {
    const { url } = await serve(t);
    const { client } = await dial(t, url);
    const { port, frames, liveness } = client.features;
    assert.deepEqual({ port, frames, liveness }, { port: false, frames: false, liveness: true });
  });

  test('what JSON cannot say fails its own call alone', async (t) => {
    const cyclic = {};
    cyclic.self = cyclic;
    const { url } = await serve(t, { cycle: () => cyclic, big: () => 1n });
    const { client } = await dial(t, url);
    for (const params of [cyclic, { n: 1n }]) {
      assert.equal((await client.call('echo', params)).error.code, 'INVALID_PARAMS');
    }
    for (const name of ['cycle', 'big']) {
      const { error } = await client.call(name);
      assert.equal(error.code, 'OPERATION_FAILED');
      assert.match(error.message, /^The result cannot be sent: /);
    }
    assert.equal((await client.call('echo', 1)).data, 1);
  });

  test('bytes cross a transport of your own that carries text, as they cross a socket', async (t) => {
    const told = [];
    t.mock.method(console, 'warn', (message) => told.push(message));
    const over = (send) => ({
      carries: ['liveness', 'streams'],
      post: (message) => send(messageToText(message)),
      onMessage() {},
      close() {},
    });
    const [a, b] = [over((text) => hear(b, text)), over((text) => hear(a, text))];
    const hear = (other, text) => queueMicrotask(() => other.onMessage(textToMessage(text)));
    const app = { id: 'a', name: 'A', version: '1' };
    const echo = ({ bytes, map }) => ({
      bytes,
      map,
      isBuffer: bytes.content instanceof ArrayBuffer,
    });
    const exposed = expose({ app, capabilities: { echo } }, { origins: [] });
    exposed.accept(a);
    const client = await connect(b, { agent: { name: 'a', version: '1' } });
    t.after(() => (client.close(), exposed.close()));
    const { data } = await client.call('echo', {
      bytes: new Uint8Array([1, 2, 3]),
      map: new Map([[1, 2]]),
    });
    assert.deepEqual([...new Uint8Array(data.bytes.content)], [1, 2, 3]);
    assert.deepEqual([data.isBuffer, data.map], [true, {}]);
    while (!told.length) await new Promise(setImmediate);
    assert.deepEqual(told, [
      'abp-bridge: map is a Map or a Set, of which JSON carries nothing: send a list or an object',
    ]);
    assert.throws(() => messageToText('x'.repeat(9), 8), RangeError);
  });

  test('own __proto__ keys are data, also around bytes', async (t) => {
    const { raw } = await rawAgent(t, { keys: (p) => [Object.keys(p), p.content.byteLength] });
    const params =
      '{"__proto__":{"polluted":1},"content":"AAAA","encoding":"base64","mimeType":"a/b"}';
    raw.socket.send(
      `{"type":"capabilities/call","id":"x","payload":{"capability":"keys","params":${params}}}`,
    );
    const { data } = (await raw.next()).payload;
    assert.deepEqual(data[0].sort(), ['__proto__', 'content', 'mimeType']);
    assert.equal(data[1], 3);
    assert.equal({}.polluted, undefined);
  });
});

describe('results that are Blobs or large', () => {
  test('a Blob is read, within BinaryData and by itself', async (t) => {
    const { url } = await serve(t, {
      both: () => [
        { content: new Blob(['abc']), mimeType: 'text/x' },
        new Blob(['de'], { type: 'text/y' }),
      ],
    });
    const { data } = await (await dial(t, url)).client.call('both');
    assert.deepEqual(
      data.map(({ content, mimeType }) => [Buffer.from(content).toString(), mimeType]),
      [
        ['abc', 'text/x'],
        ['de', 'text/y'],
      ],
    );
  });

  test('what stands in several places is in all of them, and the handler’s own stays as it is', async (t) => {
    const page = { file: new Blob(['abc']) };
    class Picture {
      file = page.file;
      toJSON() {
        return 'a picture';
      }
    }
    const book = { first: page, last: [page], cover: new Picture() };
    const { url } = await serve(t, {
      read: () => book,
      part: async (_params, { call }) => (await call('read')).data === book,
    });
    const { client } = await dial(t, url);
    const { data } = await client.call('read');
    for (const { file } of [data.first, ...data.last]) {
      assert.deepEqual(Buffer.from(file.content).toString(), 'abc');
    }
    // What says itself how it is written is taken at its word.
    assert.equal(data.cover, 'a picture');
    assert.ok(book.last[0].file instanceof Blob);
    // A call within the app crosses nothing.
    assert.equal((await client.call('part')).data, true);
  });

  /** An app that stores what has more than ten bytes. */
  const storing = (t, store, capabilities) =>
    serve(t, capabilities, { socket: { store, storeAbove: 10 } });

  test('what is above the threshold is stored, and its reference crosses', async (t) => {
    const kept = [];
    const expiresAt = Date.now() + 3_600_000;
    const store = (data) => {
      kept.push(data);
      return { downloadUrl: 'https://files.example/1', expiresAt, auth: { type: 'bearer' } };
    };
    const text = 'z'.repeat(11);
    const forms = [
      bytes(11),
      new Uint8Array(bytes(13)).subarray(1, 12),
      new Blob([bytes(11)]),
      base64(bytes(11)),
      text,
    ];
    const { url } = await storing(t, store, {
      make: ({ form }) => ({
        small: [
          { content: bytes(10), mimeType: 'a/b' },
          { content: base64(bytes(10)), encoding: 'base64', mimeType: 'a/b' },
        ],
        large: {
          content: forms[form],
          mimeType: 'c/d',
          filename: 'f',
          ...(typeof forms[form] === 'string' && { encoding: form === 4 ? 'utf-8' : 'base64' }),
        },
      }),
    });
    const { client } = await dial(t, url);
    for (let form = 0; form < forms.length; form++) {
      const { data } = await client.call('make', { form });
      for (const { content } of data.small) assert.deepEqual(content, bytes(10));
      assert.deepEqual(data.large, {
        downloadUrl: 'https://files.example/1',
        mimeType: 'c/d',
        size: 11,
        filename: 'f',
        expiresAt,
        auth: { type: 'bearer' },
      });
      assert.equal(kept[form].size, 11);
      assert.ok(kept[form].content instanceof ArrayBuffer);
      assert.deepEqual(
        Buffer.from(kept[form].content),
        [Buffer.from(bytes(11)), Buffer.from(bytes(13)).subarray(1, 12)][form] ??
          (form === 4 ? Buffer.from(text) : Buffer.from(bytes(11))),
      );
    }
    assert.equal(kept.length, forms.length);
  });

  test('a cancel that comes before nothing is stored', async (t) => {
    const { hang, when } = hanging();
    let stored = 0;
    const { url } = await storing(t, () => stored++, {
      // Ignores its signal, and has something in the end.
      make: (params, context) => hang(params, context).catch(() => new Blob([bytes(20)])),
    });
    const { client } = await dial(t, url);
    const controller = new AbortController();
    const call = client.call('make', {}, { signal: controller.signal });
    await when(({ running }) => running === 1);
    controller.abort('not any more');
    assert.equal((await call).cancelled, true);
    assert.equal((await client.call('echo', 1)).data, 1);
    assert.equal(stored, 0);
  });

  test('a cancel while it is stored fires the signal, and the result says cancelled', async (t) => {
    const begun = deferred();
    const aborted = deferred();
    const store = (_data, { signal, callId }) =>
      new Promise((resolve) => {
        begun.resolve(callId);
        signal.addEventListener('abort', () => {
          aborted.resolve(signal.reason.message);
          resolve({ downloadUrl: 'https://files.example/late' });
        });
      });
    const { url } = await storing(t, store, { make: () => new Blob([bytes(20)]) });
    const { client } = await dial(t, url);
    const controller = new AbortController();
    const call = client.call('make', {}, { signal: controller.signal, callId: 'A' });
    assert.equal(await begun.promise, 'A');
    controller.abort('enough');
    assert.equal(await aborted.promise, 'enough');
    const response = await call;
    assert.deepEqual(outcome(response), { success: false, cancelled: true, code: 'CANCELLED' });
    assert.equal(response.data, undefined);
  });

  const failures = {
    throws: () => {
      throw new Error('disk full');
    },
    'says that it was aborted': () => Promise.reject(new DOMException('disk full', 'AbortError')),
    'gives no address': () => ({}),
    'gives nothing': () => undefined,
  };
  for (const [what, store] of Object.entries(failures)) {
    test(`a store that ${what} fails its call: OPERATION_FAILED`, async (t) => {
      const { url } = await storing(t, store, { make: () => new Blob([bytes(20)]) });
      const { client } = await dial(t, url);
      const response = await client.call('make');
      assert.equal(response.error.code, 'OPERATION_FAILED');
      assert.equal(response.cancelled, undefined);
      assert.match(response.error.message, /could not be stored/);
      assert.equal((await client.call('echo', 1)).data, 1);
    });
  }
});

describe('JSON-RPC peers', () => {
  /** Our peer that dials, and the socket at the other end. */
  async function dialling(t, dialect) {
    const { server, url } = await listen(t);
    const accepted = once(server, 'connection');
    const peer = createPeer(webSocketTransport(new WebSocket(url)), { dialect });
    t.after(() => peer.close());
    return { peer, accepted };
  }

  for (const dialect of ['acp', 'lsp', 'mcp']) {
    test(`${dialect}: may speak while their socket is connecting; all arrives, in order`, async (t) => {
      const { peer, accepted } = await dialling(t, dialect);
      const requests = ['one', 'two', 'three'].map((method) => peer.request(method));
      const [socket] = await accepted;
      const served = createPeer(webSocketTransport(socket), { dialect });
      t.after(() => served.close());
      const heard = [];
      served.handle('*', (_params, { method }) => heard.push(method));
      assert.deepEqual(await Promise.all(requests), [1, 2, 3]);
      assert.deepEqual(heard, ['one', 'two', 'three']);
    });
  }

  test('acp: text that is no JSON is answered with a parse error', async (t) => {
    const { peer, accepted } = await dialling(t, 'acp');
    const [socket] = await accepted;
    const answers = [];
    const answered = new Promise((told) =>
      socket.on('message', (data) => answers.push(JSON.parse(data)) === 3 && told()),
    );
    for (const text of ['{"jsonrpc"', 'null', '[]']) socket.send(text);
    await answered;
    assert.deepEqual(
      answers.map(({ id, error }) => [id, error.code]),
      [
        [null, -32700],
        [null, -32600],
        [null, -32600],
      ],
    );
    assert.equal(peer.counters.refused, 3);
  });
});

test('agents that share a server share no ids', async (t) => {
  const { hang, when } = hanging();
  const { url } = await serve(t, { hang });
  const [a, b] = [await Raw.dial(url), await Raw.dial(url)];
  for (const raw of [a, b]) {
    await raw.initialize();
    raw.send('capabilities/call', 'same', { capability: 'hang' });
  }
  await when(({ running }) => running === 2);
  const { payload } = await a.ask('capabilities/cancel', 'c', { callId: 'same' });
  assert.equal(payload.cancelled, true);
  assert.equal((await a.next()).payload.cancelled, true);
  assert.equal((await b.call('echo', 'untouched', 'other')).data, 'untouched');
});

test('Node’s own WebSocket serves as well', async (t) => {
  const { url } = await serve(t, {
    hang: (_params, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  });
  const script = `
    import { connect } from '${new URL('../../parts/main/index.js', import.meta.url)}';
    import { webSocketTransport } from '${new URL('../../parts/transports/index.js', import.meta.url)}';
    const client = await connect(() => webSocketTransport('${url}'), ${JSON.stringify(AGENT)});
    const { data } = await client.call('echo', { content: new Uint8Array([1, 2]).buffer, mimeType: 'a/b' });
    const controller = new AbortController();
    const hanging = client.call('hang', {}, { signal: controller.signal });
    controller.abort('enough');
    const { cancelled, error } = await hanging;
    await client.reconnect();
    const again = (await client.call('echo', 1)).data;
    client.close();
    const refused = await connect(() => webSocketTransport('ws://127.0.0.1:1'), ${JSON.stringify(AGENT)}).catch((e) => e.code);
    const failed = await connect(async () => {
      const socket = new WebSocket('ws://127.0.0.1:1');
      const transport = webSocketTransport(socket);
      await new Promise((resolve) => socket.addEventListener('error', resolve));
      return transport;
    }, ${JSON.stringify(AGENT)}).catch((e) => e.code);
    console.log(JSON.stringify([data.content.byteLength, cancelled, error.message, again, refused, failed]));
  `;
  const args = ['--experimental-websocket', '--no-warnings', '--input-type=module', '-e', script];
  // It needs WebAssembly for itself, which some runs of these tests do without.
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  assert.deepEqual(JSON.parse(stdout), [2, true, 'enough', 1, 'DISCONNECTED', 'DISCONNECTED']);
});
