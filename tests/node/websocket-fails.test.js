// A WebSocket that fails, does not open or does not close: what is pending settles, and a new
// session can begin.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { WebSocket } from 'ws';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { AGENT, APP, hanging, listen, serve, dial, Raw, deferred } from '../support/websocket.js';

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
