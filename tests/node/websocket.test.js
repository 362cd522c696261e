// WebSockets between an agent and an app, with a real server: what crosses, what is refused, and
// what becomes of everybody when a socket fails. Raw peers speak the protocol by hand and share no
// code with js/.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { WebSocket, WebSocketServer } from 'ws';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { createPeer } from '../../packages/rpc/src/index.js';
import {
  fromOrigins,
  messageToText,
  textToMessage,
  webSocketTransport,
} from '../../parts/transports/index.js';
import { useClock } from '../support/clock.js';
import { Peer } from '../support/raw.js';

const AGENT = { agent: { name: 'test', version: '1' } };
const APP = { app: { id: 'test.app', name: 'Test', version: '1' } };
const MIB = 1 << 20;

/** A handler that runs until its signal fires, and what was seen of it. */
function hanging() {
  const seen = { running: 0, aborted: [] };
  const waiting = [];
  const hang = (_params, { signal }) =>
    new Promise((_resolve, reject) => {
      seen.running++;
      waiting.splice(0).forEach((told) => told());
      signal.addEventListener('abort', () => {
        seen.aborted.push(signal.reason.message);
        reject(signal.reason);
        waiting.splice(0).forEach((told) => told());
      });
    });
  /** Resolves once something is true of `seen`. */
  const when = async (isTrue) => {
    while (!isTrue(seen)) await new Promise((told) => waiting.push(told));
  };
  return { hang, seen, when };
}

/** Listens for sockets until the test is over. */
async function listen(t, options = {}) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', ...options });
  await once(server, 'listening');
  t.after(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return { server, url: `ws://127.0.0.1:${server.address().port}` };
}

/** An app that serves every socket. */
async function serve(t, capabilities, { socket = {}, server: serverOptions, ...options } = {}) {
  const { server, url } = await listen(t, serverOptions);
  const exposed = expose({ ...APP, capabilities: { echo: (p) => p, ...capabilities } }, options);
  server.on('connection', (accepted) => exposed.accept(webSocketTransport(accepted, socket)));
  return { server, url, exposed };
}

/** Our agent, which dials. */
async function dial(t, url, { socket = {}, ...options } = {}) {
  const sockets = [];
  const open = () => {
    sockets.push(new WebSocket(url));
    return webSocketTransport(sockets.at(-1), socket);
  };
  const client = await connect(open, { ...AGENT, ...options });
  t.after(() => client.close());
  return { client, sockets };
}

/** A peer by hand: envelopes as JSON text over a bare socket. */
class Raw extends Peer {
  #asked = false;
  /** Answers a handshake, as an app. */
  #welcome;

  constructor(socket) {
    super();
    this.socket = socket;
    socket.on('message', (data, isBinary) => {
      assert.equal(isBinary, false);
      const message = JSON.parse(data);
      // What took long to answer is asked again.
      const hello = message.type === 'initialize';
      if (hello && this.#asked) return this.#welcome?.(message);
      this.#asked ||= hello;
      this.arrived(message);
    });
    socket.on('error', () => {});
    this.closed = once(socket, 'close').then(([code, reason]) => [code, String(reason)]);
  }

  static async dial(url, options) {
    const socket = new WebSocket(url, options);
    await once(socket, 'open');
    return new Raw(socket);
  }

  send(type, id, payload) {
    this.socket.send(JSON.stringify({ type, id, timestamp: Date.now(), payload }));
  }

  /** Begins a session as an agent. */
  async initialize(features = {}) {
    const { agent } = AGENT;
    return this.ask('initialize', 'hello', { agent, protocolVersion: '0.1', features });
  }

  async call(capability, params, id = 'call') {
    const answer = await this.ask('capabilities/call', id, { capability, params });
    assert.deepEqual([answer.type, answer.id], ['capabilities/call-result', id]);
    return answer.payload;
  }

  /** Waits for a handshake and answers it, as an app. */
  async welcome(features = {}) {
    const { app } = APP;
    const session = { sessionId: 's', protocolVersion: '0.1', app, capabilities: [], features };
    const message = await this.next();
    assert.equal(message.type, 'initialize');
    this.#welcome = ({ id }) => this.send('initialize-result', id, session);
    this.#welcome(message);
  }
}

/** Our agent, and a raw app that it has shaken hands with. */
async function rawApp(t, { features, ...options } = {}) {
  const { server, url } = await listen(t, options.server);
  const connected = once(server, 'connection');
  const dialled = dial(t, url, options);
  const raw = new Raw((await connected)[0]);
  await raw.welcome(features);
  return { raw, server, url, ...(await dialled) };
}

/** A raw agent, and our app that it has shaken hands with. */
async function rawAgent(t, capabilities, options = {}) {
  const app = await serve(t, capabilities, options);
  const raw = await Raw.dial(app.url, options.dial);
  await raw.initialize(options.features);
  return { ...app, raw };
}

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

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

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

describe('messages that are too long', () => {
  test('one that goes out fails its own call alone, on either side', async (t) => {
    const { hang, when } = hanging();
    const socket = { maxLength: 10_000 };
    const { url } = await serve(t, { hang, long: () => 'x'.repeat(10_000) }, { socket });
    const { client } = await dial(t, url, { socket });
    const other = client.call('hang', {}, { callId: 'other' });
    await when(({ running }) => running === 1);
    const sent = await client.call('echo', 'x'.repeat(10_000));
    assert.equal(sent.error.code, 'INVALID_PARAMS');
    assert.match(sent.error.message, /the limit is 10000/);
    const received = await client.call('long');
    assert.equal(received.error.code, 'OPERATION_FAILED');
    assert.match(received.error.message, /the limit is 10000/);
    assert.equal((await client.call('echo', 1)).data, 1);
    assert.equal((await client.cancel('other')).cancelled, true);
    assert.equal((await other).cancelled, true);
  });

  test('one that comes in ends the session, with 4009: its call would wait for ever', async (t) => {
    const { hang, when, seen } = hanging();
    const { raw, exposed } = await rawAgent(t, { hang }, { socket: { maxLength: 1000 } });
    raw.send('capabilities/call', 'A', { capability: 'hang' });
    await when(({ running }) => running === 1);
    raw.send('capabilities/call', 'B', { capability: 'echo', params: 'x'.repeat(1000) });
    const [code, reason] = await raw.closed;
    assert.equal(code, 4009);
    assert.match(reason, /the limit is 1000/);
    await when(({ aborted }) => aborted.length === 1);
    assert.equal(seen.running, 1);
    assert.deepEqual(exposed.counters, []);
  });

  test('an app that sends one is left, and the agent learns why', async (t) => {
    const lost = deferred();
    const { raw, client } = await rawApp(t, {
      socket: { maxLength: 1000 },
      onDisconnect: lost.resolve,
    });
    const call = client.call('echo');
    await raw.next();
    raw.send('capabilities/call-result', 'x', { success: true, data: 'x'.repeat(1000) });
    const { error } = await call;
    assert.deepEqual([error.code, error.retryable], ['DISCONNECTED', false]);
    assert.match(error.message, /characters was received; the limit is 1000/);
    const reported = await lost.promise;
    assert.ok(reported instanceof AbpError);
    assert.equal(reported.message, error.message);
    assert.equal((await raw.closed)[0], 4009);
  });

  test('a server that allows less closes with 1009, which is told', async (t) => {
    const { url } = await serve(t, {}, { server: { maxPayload: 1000 } });
    const { client } = await dial(t, url);
    const { error } = await client.call('echo', 'x'.repeat(2000));
    assert.equal(error.code, 'DISCONNECTED');
    assert.match(error.message, /1009/);
  });

  test('a server that inflates is not blown up by little that becomes much', async (t) => {
    const { hang, when } = hanging();
    const { raw } = await rawAgent(
      t,
      { hang },
      { server: { maxPayload: MIB, perMessageDeflate: true }, dial: { perMessageDeflate: true } },
    );
    assert.equal(raw.socket.extensions, 'permessage-deflate');
    raw.send('capabilities/call', 'A', { capability: 'hang' });
    await when(({ running }) => running === 1);
    const before = raw.socket._socket.bytesWritten;
    raw.send('capabilities/call', 'B', { capability: 'echo', params: 'x'.repeat(16 * MIB) });
    assert.equal((await raw.closed)[0], 1009);
    // It was fired: sixteen times what is allowed, in few bytes.
    assert.ok(raw.socket._socket === null || raw.socket._socket.bytesWritten - before < MIB / 8);
    await when(({ aborted }) => aborted.length === 1);
  });
});

describe('frames that are no messages', () => {
  const frames = {
    'text that is not JSON': ['{"type":', false],
    'no text at all': ['', false],
    'JSON that is no object': ['[1, 2, 3, 4]', false],
    'a number': ['7', false],
    null: ['null', false],
    'two messages in one': ['{}{}', false],
    'JSON after a byte order mark': ['\ufeff{"type":"initialize"}', false],
    'a million brackets': ['['.repeat(MIB), false],
    'a control message of ten thousand levels': [
      `{"type":"capabilities/cancel","payload":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_001)}`,
      false,
    ],
    'bytes in the deep': [
      `{"type":"shutdown","payload":${'['.repeat(1e5)}"base64"${']'.repeat(1e5)}}`,
      false,
    ],
    'a binary frame': [Buffer.from('{"type":"initialize"}'), true],
    'an empty binary frame': [Buffer.alloc(0), true],
  };
  for (const [what, [data, binary]] of Object.entries(frames)) {
    test(`${what} is counted, and nobody notices, in an app`, async (t) => {
      const { raw, exposed } = await rawAgent(t);
      raw.socket.send(data, { binary });
      assert.equal((await raw.call('echo', 'fine')).data, 'fine');
      assert.equal(exposed.counters[0].malformed, 1);
    });

    test(`${what} is counted, and nobody notices, in an agent`, async (t) => {
      const { raw, client } = await rawApp(t);
      const call = client.call('echo');
      const { id } = await raw.next();
      raw.socket.send(data, { binary });
      raw.send('capabilities/call-result', id, { success: true, data: 'fine' });
      assert.equal((await call).data, 'fine');
      assert.equal(client.counters.malformed, 1);
    });
  }

  test('a call in thousands of fragments is one call', async (t) => {
    const { raw } = await rawAgent(t);
    const text = JSON.stringify({
      type: 'capabilities/call',
      id: 'x',
      payload: { capability: 'echo', params: 'y'.repeat(4000) },
    });
    for (const [i, letter] of [...text].entries()) {
      raw.socket.send(letter, { fin: i === text.length - 1 });
    }
    assert.equal((await raw.next()).payload.data.length, 4000);
  });

  test('fragments without an end are no message: their sender is left, and others are served', async (t) => {
    const { hang, when } = hanging();
    const options = { server: { maxPayload: MIB, maxFragments: 1000 } };
    const { raw, url } = await rawAgent(t, { hang }, options);
    raw.send('capabilities/call', 'A', { capability: 'hang' });
    await when(({ running }) => running === 1);
    for (let i = 0; i < 2000; i++) raw.socket.send('x', { fin: false });
    assert.equal((await raw.closed)[0], 1008);
    await when(({ aborted }) => aborted.length === 1);
    assert.equal((await (await dial(t, url)).client.call('echo', 1)).data, 1);
  });

  const violations = {
    'an unknown opcode': [0x8b, 0x80, 0, 0, 0, 0],
    'text that is not UTF-8': [0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28],
    'a frame of 2^63 bytes': [0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    'a frame without its mask': [0x81, 0x02, 0x7b, 0x7d],
  };
  for (const [what, octets] of Object.entries(violations)) {
    test(`${what} breaks the WebSocket: its session ends, the process lives`, async (t) => {
      const { hang, when } = hanging();
      const { raw, url, exposed } = await rawAgent(t, { hang });
      raw.send('capabilities/call', 'A', { capability: 'hang' });
      await when(({ running }) => running === 1);
      raw.socket._socket.write(Buffer.from(octets));
      assert.ok([1002, 1006, 1007, 1009].includes((await raw.closed)[0]));
      await when(({ aborted }) => aborted.length === 1);
      assert.deepEqual(exposed.counters, []);
      assert.equal((await (await dial(t, url)).client.call('echo', 1)).data, 1);
    });
  }
});

describe('a socket that fails', () => {
  for (const side of ['agent', 'app']) {
    test(`it dies on the ${side}’s side, mid-call: pending calls settle, handlers are aborted`, async (t) => {
      const { hang, when, seen } = hanging();
      const { url, server, exposed } = await serve(t, { hang });
      const lost = deferred();
      const { client, sockets } = await dial(t, url, { onDisconnect: lost.resolve });
      const calls = Array.from({ length: 10 }, () => client.call('hang'));
      await when(({ running }) => running === 10);
      if (side === 'agent') sockets[0].terminate();
      else [...server.clients][0].terminate();
      for (const { error } of await Promise.all(calls)) {
        assert.deepEqual([error.code, error.retryable], ['DISCONNECTED', false]);
        assert.match(error.message, /connection was closed: 1006/);
      }
      assert.equal((await lost.promise).code, 'DISCONNECTED');
      await when(({ aborted }) => aborted.length === 10);
      assert.equal(seen.running, 10);
      assert.equal((await client.call('echo')).error.code, 'DISCONNECTED');
      assert.equal(client.connected, false);
      assert.deepEqual(exposed.counters, []);
    });
  }

  test('reconnecting begins a new session; what was pending was settled', async (t) => {
    const { hang, when } = hanging();
    const { url, server } = await serve(t, { hang });
    const { client, sockets } = await dial(t, url);
    const { sessionId } = client;
    const old = client.call('hang', {}, { callId: 'A' });
    await when(({ running }) => running === 1);
    [...server.clients][0].terminate();
    assert.equal((await old).error.code, 'DISCONNECTED');
    await client.reconnect();
    assert.equal(sockets.length, 2);
    assert.notEqual(client.sessionId, sessionId);
    assert.equal((await client.call('echo', 1)).data, 1);
    const answer = await client.cancel('A');
    assert.deepEqual([answer.cancelled, answer.reason], [false, 'Operation not found']);
  });

  test('reconnecting while a session lasts closes it first', async (t) => {
    const { hang, when } = hanging();
    const { url, exposed } = await serve(t, { hang });
    const { client, sockets } = await dial(t, url);
    const old = client.call('hang');
    await when(({ running }) => running === 1);
    await client.reconnect();
    assert.equal((await old).cancelled, true);
    await when(({ aborted }) => aborted.length === 1);
    if (sockets[0].readyState !== WebSocket.CLOSED) await once(sockets[0], 'close');
    assert.equal((await client.call('echo', 1)).data, 1);
    assert.equal(exposed.sessions.length, 1);
  });

  test('what is said before a socket is open is said when it is, and nothing after it is closed', async (t) => {
    const { server, url } = await listen(t);
    const connected = once(server, 'connection');
    const transport = webSocketTransport(new WebSocket(url));
    transport.onMessage = transport.onClose = () => assert.fail('it is closed');
    transport.post({ type: 'early' });
    const raw = new Raw((await connected)[0]);
    assert.equal((await raw.next()).type, 'early');
    raw.send('too', 'late', {});
    transport.close();
    transport.post({ type: 'late' });
    assert.equal((await raw.closed)[0], 1000);
    await new Promise(setImmediate);
  });

  test('all that is said before a socket is open is said in its order, also before what is said as it opens', async (t) => {
    const { server, url } = await listen(t);
    const connected = once(server, 'connection');
    const socket = new WebSocket(url);
    socket.addEventListener('open', () => transport.post({ type: 'last' }));
    const transport = webSocketTransport(socket);
    for (let n = 0; n < 100; n++) transport.post({ type: 'early', n });
    const raw = new Raw((await connected)[0]);
    for (let n = 0; n < 100; n++) assert.equal((await raw.next()).n, n);
    assert.equal((await raw.next()).type, 'last');
    transport.close();
  });

  test('what waits for a socket to open is bounded: with more it is given up, and says so', async (t) => {
    // It accepts, and says nothing: the socket is connecting for as long as we look.
    const silent = createServer().listen(0, '127.0.0.1');
    t.after(() => silent.close());
    silent.on('connection', (socket) => t.after(() => socket.destroy()));
    await once(silent, 'listening');
    const socket = new WebSocket(`ws://127.0.0.1:${silent.address().port}`);
    const transport = webSocketTransport(socket, { maxUnsent: 1000 });
    const lost = new Promise((told) => (transport.onClose = told));
    let sent = 0;
    for (; socket.readyState === WebSocket.CONNECTING; sent++) {
      assert.ok(sent < 100, 'it takes what it is given for ever');
      transport.post({ type: 'early', text: 'x'.repeat(100) });
    }
    assert.ok(sent > 20, `given up after ${sent}`);
    assert.match((await lost).message, /reads too slowly/);
  });

  test('one socket serves one session: the next is refused at once', async (t) => {
    const { url } = await serve(t);
    const socket = new WebSocket(url);
    const client = await connect(() => webSocketTransport(socket), AGENT);
    client.close();
    await once(socket, 'close');
    await assert.rejects(client.reconnect(), { code: 'DISCONNECTED', message: /its own socket/ });
  });

  test('a socket that had died before it was served costs nothing', async (t) => {
    const { server, url } = await listen(t);
    const exposed = expose({ ...APP, capabilities: {} });
    const connected = once(server, 'connection');
    new WebSocket(url)
      .on('error', () => {})
      .on('open', function () {
        this.terminate();
      });
    const [socket] = await connected;
    await once(socket, 'close');
    exposed.accept(webSocketTransport(socket));
    await exposed.ready;
    assert.deepEqual(exposed.counters, []);
  });

  test('nobody listens: connect rejects, and says so', async (t) => {
    const { server, url } = await listen(t);
    server.close();
    await once(server, 'close');
    await assert.rejects(dial(t, url), (error) => {
      assert.ok(error instanceof AbpError);
      assert.deepEqual([error.code, error.retryable], ['DISCONNECTED', true]);
      assert.match(error.message, /ECONNREFUSED/);
      return true;
    });
  });

  test('who listens is no WebSocket server: connect rejects', async (t) => {
    const server = createHttpServer((_request, response) => response.writeHead(404).end());
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    await assert.rejects(dial(t, `ws://127.0.0.1:${server.address().port}`), {
      code: 'DISCONNECTED',
      message: /404/,
    });
  });

  for (const [what, answer] of [
    ['takes the connection and says nothing', () => {}],
    ['opens the WebSocket and says nothing', upgrade],
  ]) {
    test(`a server that ${what}: the handshake ends with TIMEOUT`, async (t) => {
      const { url } = await bareServer(t, answer);
      await assert.rejects(dial(t, url, { timeout: 60 }), { code: 'TIMEOUT' });
    });
  }

  test('there is no WebSocket: connect says what to do', async () => {
    const own = Object.getOwnPropertyDescriptor(globalThis, 'WebSocket');
    delete globalThis.WebSocket;
    try {
      await assert.rejects(
        connect(() => webSocketTransport('ws://127.0.0.1:1'), AGENT),
        { code: 'NOT_SUPPORTED', message: /package ws/ },
      );
    } finally {
      if (own) Object.defineProperty(globalThis, 'WebSocket', own);
    }
  });
});

describe('a peer that never reads', () => {
  const LARGE = 'x'.repeat(MIB);
  const socket = { maxUnsent: MIB };

  test('new calls fail with RATE_LIMITED, retryable; when it reads again, all is well', async (t) => {
    const { raw, client, sockets } = await rawApp(t, { socket });
    raw.socket.pause();
    const calls = [];
    // The system takes some of it first.
    while (sockets[0].bufferedAmount <= MIB) calls.push(client.call('echo', LARGE));
    assert.ok(calls.length < 100);
    const { error } = await client.call('echo', 'one more');
    assert.deepEqual([error.code, error.retryable], ['RATE_LIMITED', true]);
    assert.match(error.message, /reads too slowly: \d{7} bytes/);
    assert.ok(error.retryAfter > 0);
    // A cancel is no new call: it goes out behind the rest.
    const cancel = client.cancel('unknown');
    raw.socket.resume();
    for (let i = 0; i < calls.length; i++) {
      const { id, type } = await raw.next();
      assert.equal(type, 'capabilities/call');
      raw.send('capabilities/call-result', id, { success: true, data: 'done' });
    }
    for (const { data } of await Promise.all(calls)) assert.equal(data, 'done');
    const { id, type } = await raw.next();
    assert.equal(type, 'capabilities/cancel');
    raw.send('capabilities/cancel-result', id, { callId: 'unknown', cancelled: false });
    assert.equal((await cancel).cancelled, false);
    const again = client.call('echo', LARGE);
    raw.send('capabilities/call-result', (await raw.next()).id, { success: true, data: 1 });
    assert.equal((await again).data, 1);
  });

  test('and still asks: at four times that its socket is ended, its handlers are aborted', async (t) => {
    const { hang, when } = hanging();
    const { server, exposed, raw } = await rawAgent(t, { hang, large: () => LARGE }, { socket });
    const [served] = server.clients;
    let most = 0;
    const { send } = served;
    served.send = (...args) => {
      send.apply(served, args);
      most = Math.max(most, served.bufferedAmount);
    };
    const closed = once(served, 'close');
    raw.send('capabilities/call', 'hang', { capability: 'hang' });
    await when(({ running }) => running === 1);
    raw.socket.pause();
    for (let i = 0; i < 100; i++) raw.send('capabilities/call', `${i}`, { capability: 'large' });
    assert.equal((await closed)[0], 1006);
    await when(({ aborted }) => aborted.length === 1);
    assert.deepEqual(exposed.counters, []);
    // Bounded: one message more than the limit, and what its head takes.
    assert.ok(most > 4 * MIB && most < 5.1 * MIB, `${most}`);
  });

  test('is spared the progress that it would not read', async (t) => {
    const { server, raw } = await rawAgent(
      t,
      {
        report: async (_params, { progress }) => {
          for (let i = 1; i <= 100; i++) progress({ progress: i, total: 100, status: LARGE });
        },
      },
      { socket, features: { progress: true } },
    );
    const [served] = server.clients;
    raw.socket.pause();
    const options = { callId: 'A', progressToken: 'A' };
    raw.send('capabilities/call', 'A', { capability: 'report', options });
    while (served.bufferedAmount <= MIB) await new Promise(setImmediate);
    raw.socket.resume();
    let reports = 0;
    let message;
    while ((message = await raw.next()).type === 'progress') reports++;
    assert.equal(message.type, 'capabilities/call-result');
    assert.equal(message.payload.success, true);
    assert.ok(reports > 0 && reports < 100, `${reports}`);
  });

  test('is noticed by its heartbeat', async (t) => {
    const clock = useClock(t);
    const features = { 'bridge.liveness': true, notifications: true };
    const { raw, client } = await rawApp(t, { features, limits: { heartbeat: 30_000 } });
    let heard = () => {};
    client.onNotification = () => heard();
    const call = client.call('echo');
    assert.equal((await raw.next()).type, 'capabilities/call');
    for (let i = 0; i < 3; i++) {
      clock.advance(30_000);
      assert.equal((await raw.next()).type, 'bridge/ping');
      const answered = new Promise((resolve) => (heard = resolve));
      raw.send('bridge/pong', undefined, {});
      raw.send('notification', undefined, { event: 'after the pong' });
      await answered;
    }
    assert.equal(client.connected, true);
    raw.socket.pause();
    for (let i = 0; i < 3; i++) clock.advance(30_000);
    const { error } = await call;
    assert.deepEqual([error.code, error.retryable], ['DISCONNECTED', false]);
    assert.equal(client.connected, false);
  });
});

describe('a closing handshake that never ends', () => {
  /** An app by hand that answers the handshake and ignores what a WebSocket says of closing. */
  const stubborn = (t) => {
    const heard = [];
    const closing = deferred();
    const server = bareServer(t, (connection) =>
      upgrade(connection, (opcode, text, reply) => {
        if (opcode === 8) return closing.resolve();
        const { type, id } = JSON.parse(text);
        // What took long to answer is asked again.
        if (!heard.some((message) => message.id === id)) heard.push({ type, id, connection });
        if (type === 'initialize') {
          const app = { id: 'a', name: 'A', version: '1' };
          const payload = { sessionId: id, protocolVersion: '0.1', app, capabilities: [] };
          reply({ type: 'initialize-result', id, payload: { ...payload, features: {} } });
        }
      }),
    );
    return server.then(({ url }) => ({ url, heard, closing: closing.promise }));
  };

  test('begun here: what is pending settles at once, and a new session needs not wait', async (t) => {
    const { url, heard, closing } = await stubborn(t);
    const { client, sockets } = await dial(t, url);
    const call = client.call('echo');
    const { sessionId } = client;
    client.close();
    assert.equal((await call).cancelled, true);
    await closing;
    assert.equal(sockets[0].readyState, WebSocket.CLOSING);
    await client.reconnect();
    assert.notEqual(client.sessionId, sessionId);
    assert.deepEqual(
      heard.map(({ type }) => type),
      ['initialize', 'capabilities/call', 'shutdown', 'initialize'],
    );
    sockets.forEach((socket) => socket.terminate());
  });

  test('begun there: the next call settles, and so does what was pending', async (t) => {
    const { url, heard } = await stubborn(t);
    const { client, sockets } = await dial(t, url);
    const pending = client.call('echo');
    heard[0].connection.write(Buffer.from([0x88, 0x02, 0x03, 0xe8]));
    while (sockets[0].readyState === WebSocket.OPEN) await new Promise(setImmediate);
    assert.equal((await client.call('echo')).error.code, 'DISCONNECTED');
    assert.equal((await pending).error.code, 'DISCONNECTED');
    sockets[0].terminate();
  });
});

describe('who may open a socket', () => {
  const allowed = fromOrigins(['https://agent.example', 'HTTP://Agent.Example:8080/']);
  const origins = {
    'https://agent.example': true,
    'http://agent.example:8080': true,
    'https://evil.example': false,
    'http://agent.example': false,
    'https://agent.example:444': false,
    'https://agent.example.evil.example': false,
    'https://evil-agent.example': false,
    'https://agent.example.': false,
    null: false,
    '': false,
  };
  for (const [origin, expected] of Object.entries(origins)) {
    test(`a page of ${JSON.stringify(origin)} ${expected ? 'may' : 'may not'}`, async (t) => {
      let asked;
      const verifyClient = ({ req }) => {
        asked = req.headers.origin;
        return allowed(req);
      };
      const { url, exposed } = await serve(t, {}, { server: { verifyClient } });
      const socket = new WebSocket(url, { headers: { origin } });
      const [what] = await Promise.race([
        once(socket, 'open').then(() => [true]),
        once(socket, 'unexpected-response').then(([, { statusCode }]) => [statusCode]),
      ]);
      assert.equal(asked, origin);
      assert.equal(what, expected || 401);
      assert.equal(exposed.counters.length, expected ? 1 : 0);
      socket.on('error', () => {}).terminate();
    });
  }

  test('what sends no Origin is no page, and may not', () => {
    assert.equal(allowed({ headers: {} }), false);
  });

  test('an origin that is none is a mistake of ours, and is told', () => {
    for (const origin of ['*', 'null', 'agent.example', 'https://agent.example/path']) {
      assert.throws(() => fromOrigins([origin]), { code: 'INVALID_PARAMS' });
    }
  });
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

test('two hundred agents come and go, and nothing is left', async (t) => {
  const { url, server, exposed } = await serve(t);
  for (let i = 0; i < 20; i++) {
    const clients = await Promise.all(
      Array.from({ length: 10 }, async () => (await dial(t, url)).client),
    );
    assert.equal(exposed.sessions.length, 10);
    const gone = [...server.clients].map((socket) => once(socket, 'close'));
    for (const client of clients) assert.equal((await client.call('echo', 1)).data, 1);
    for (const client of clients) client.close();
    await Promise.all(gone);
  }
  assert.deepEqual(exposed.counters, []);
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

/** A server that does what it is told with each connection, and never ends one. */
async function bareServer(t, answer) {
  const connections = new Set();
  const server = createServer({ allowHalfOpen: true }, (connection) => {
    connections.add(connection);
    connection.on('error', () => {});
    answer(connection);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const connection of connections) connection.destroy();
    server.close();
  });
  return { url: `ws://127.0.0.1:${server.address().port}` };
}

/** Makes a connection a WebSocket by hand. `heard` gets each text that comes in. */
function upgrade(connection, heard) {
  let buffer = Buffer.alloc(0);
  let open = false;
  connection.on('data', (data) => {
    buffer = Buffer.concat([buffer, data]);
    if (!open) {
      const end = buffer.indexOf('\r\n\r\n');
      if (end < 0) return;
      const key = /^sec-websocket-key: *(.*)$/im.exec(buffer.subarray(0, end).toString())[1].trim();
      const accept = createHash('sha1')
        .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest('base64');
      connection.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      buffer = buffer.subarray(end + 4);
      open = true;
    }
    for (;;) {
      if (buffer.length < 6) return;
      const short = buffer[1] & 127;
      const head = short === 126 ? 8 : 6;
      const length = short === 126 ? buffer.readUInt16BE(2) : short;
      if (buffer.length < head + length) return;
      const mask = buffer.subarray(head - 4, head);
      const text = buffer.subarray(head, head + length).map((octet, i) => octet ^ mask[i % 4]);
      const opcode = buffer[0] & 15;
      buffer = buffer.subarray(head + length);
      heard?.(opcode, Buffer.from(text).toString(), (reply) => {
        const payload = Buffer.from(JSON.stringify(reply));
        const size = Buffer.alloc(2);
        size.writeUInt16BE(payload.length);
        connection.write(Buffer.concat([Buffer.from([0x81, 126]), size, payload]));
      });
    }
  });
}
