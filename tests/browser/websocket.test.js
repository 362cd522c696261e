// WebSockets of a real browser: between a page and a server in Node, which fails in every way that
// a server can.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { WebSocketServer } from 'ws';
import { connect, expose } from '../../parts/main/index.js';
import { fromOrigins, webSocketTransport } from '../../parts/transports/index.js';
import { ENGINE, sites } from '../support/browser.js';

const MIB = 1 << 20;
const APP = { app: { id: 'test.app', name: 'Test', version: '1' } };
const AGENT = { agent: { name: 'test', version: '1' } };

let site, page;
before(async () => {
  site = await sites();
  page = await site.browser.newPage();
});
after(() => site.close());
beforeEach(async () => {
  await page.goto(`${site.hostUrl}?dials`);
  await page.waitForFunction(() => window.isReady);
  await page.evaluate(() => {
    /** Connects to a server, and keeps what becomes of it. */
    window.dial = async (url, { socket, ...options } = {}) => {
      const open = () => window.webSocketTransport(url, socket);
      window.client = await window.connect(open, {
        agent: { name: 'page', version: '1' },
        onDisconnect: ({ code, message }) => (window.lost = { code, message }),
        ...options,
      });
    };
  });
});
const dial = (url, options) => page.evaluate(([u, o]) => window.dial(u, o), [url, options ?? {}]);

/** A server, and what it was asked. */
async function listen(t, options = {}) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', ...options });
  await once(server, 'listening');
  t.after(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return { server, url: `ws://127.0.0.1:${server.address().port}` };
}

/** An app of ours behind it. */
async function serve(t, options) {
  const { server, url } = await listen(t, options);
  const seen = { started: deferred(), aborted: deferred(), running: 0 };
  const exposed = expose({
    ...APP,
    capabilities: {
      echo: (params) => params,
      hang: (_params, { signal }) =>
        new Promise((_resolve, reject) => {
          seen.running++;
          seen.started.resolve();
          signal.addEventListener('abort', () => {
            seen.aborted.resolve(signal.reason.message);
            reject(signal.reason);
          });
        }),
      bytes: ({ size }) => ({ content: new ArrayBuffer(size), mimeType: 'a/b' }),
    },
  });
  server.on('connection', (socket) => exposed.accept(webSocketTransport(socket)));
  return { server, url, exposed, seen };
}

/** An app by hand, which does nothing after the handshake but what the test says. */
async function raw(t, options) {
  const { server, url } = await listen(t, options);
  const queue = [];
  const waiting = [];
  server.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.on('message', (data) => {
      const message = JSON.parse(data);
      if (message.type === 'initialize') {
        const payload = { sessionId: 's', protocolVersion: '0.1', app: APP.app, capabilities: [] };
        const features = { 'bridge.liveness': true };
        const reply = { type: 'initialize-result', id: message.id, payload };
        socket.send(JSON.stringify({ ...reply, payload: { ...payload, features } }));
      } else if (message.type === 'bridge/ping') {
        socket.send(JSON.stringify({ type: 'bridge/pong', id: message.id, payload: {} }));
      } else {
        queue.push({ socket, message });
        waiting.shift()?.();
      }
    });
  });
  const next = async () => {
    while (!queue.length) await new Promise((resolve) => waiting.push(resolve));
    return queue.shift();
  };
  return { server, url, next };
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

describe('an agent in a page', () => {
  test('sends bytes and gets bytes', async (t) => {
    const { url } = await serve(t);
    await dial(url);
    const outcome = await page.evaluate(async () => {
      const content = crypto.getRandomValues(new Uint8Array(60_000)).buffer;
      const { data } = await window.client.call('echo', { file: { content, mimeType: 'a/b' } });
      const same = new Uint8Array(data.file.content).every(
        (byte, i) => byte === new Uint8Array(content)[i],
      );
      const large = (await window.client.call('bytes', { size: 3e6 })).data.content;
      return [content.byteLength, data.file.content.constructor.name, same, large.byteLength];
    });
    assert.deepEqual(outcome, [60_000, 'ArrayBuffer', true, 3e6]);
  });

  test('says of which origin it is, so that a server can refuse others', async (t) => {
    const asked = [];
    const check = (allowed) => ({
      verifyClient: ({ req }) => {
        asked.push(req.headers.origin);
        return allowed(req);
      },
    });
    const open = await serve(t, check(fromOrigins([site.hostOrigin])));
    await dial(open.url);
    assert.equal(await page.evaluate(async () => (await window.client.call('echo', 1)).data), 1);
    const closed = await serve(t, check(fromOrigins([site.appOrigin])));
    const refused = await page.evaluate((u) => window.dial(u).catch((e) => e.code), closed.url);
    assert.equal(refused, 'DISCONNECTED');
    assert.deepEqual(asked, [site.hostOrigin, site.hostOrigin]);
    assert.deepEqual(closed.exposed.counters, []);
  });

  test('settles what is pending when its socket dies, and begins a new session', async (t) => {
    const { url, server, seen } = await serve(t);
    await dial(url);
    const before = await page.evaluate(() => {
      window.pending = window.client.call('hang');
      return window.client.sessionId;
    });
    await seen.started.promise;
    for (const socket of server.clients) socket.terminate();
    const outcome = await page.evaluate(async () => {
      const { error } = await window.pending;
      const { lost } = window;
      await window.client.reconnect();
      const { data } = await window.client.call('echo', 'again');
      return { error, lost, data, sessionId: window.client.sessionId };
    });
    // It had begun, so it is not known whether it may be made again.
    assert.deepEqual([outcome.error.code, outcome.error.retryable], ['DISCONNECTED', false]);
    assert.match(outcome.error.message, /1006|failed/);
    assert.equal(outcome.lost.code, 'DISCONNECTED');
    assert.equal(outcome.data, 'again');
    assert.notEqual(outcome.sessionId, before);
    await seen.aborted.promise;
  });

  test('that goes elsewhere aborts what its app runs', async (t) => {
    const { url, exposed, seen } = await serve(t);
    await dial(url);
    await page.evaluate(() => void window.client.call('hang'));
    await seen.started.promise;
    await page.goto('about:blank');
    await seen.aborted.promise;
    assert.deepEqual(exposed.counters, []);
  });

  test('that comes back from the back-forward cache has settled its calls, and begins a new session', async (t) => {
    const { url, seen } = await serve(t);
    await dial(url);
    await page.evaluate(() => void (window.pending = window.client.call('hang')));
    await seen.started.promise;
    await page.goto(site.appUrl({}));
    await seen.aborted.promise;
    await (ENGINE === 'chromium' ? page.goBack({ waitUntil: 'commit' }) : page.back());
    await page.waitForFunction(() => window.isReady);
    // Engines that do not keep a page with an open socket have made a new one.
    const kept = await page.evaluate(() => window.pending !== undefined);
    assert.equal(kept, ENGINE !== 'firefox');
    if (!kept) return;
    const outcome = await page.evaluate(async () => {
      const { error } = await window.pending;
      await window.client.reconnect();
      return [error.code, (await window.client.call('echo', 1)).data];
    });
    assert.deepEqual(outcome, ['DISCONNECTED', 1]);
  });

  for (const [what, data, binary] of [
    ['text that is not JSON', '{"type":', false],
    ['a binary frame', Buffer.from('{"type":"bridge/bye","payload":{}}'), true],
    ['a million brackets', '['.repeat(MIB), false],
    ['a hundred thousand levels', `${'['.repeat(1e5)}"base64"${']'.repeat(1e5)}`, false],
  ]) {
    test(`counts ${what}, and goes on`, async (t) => {
      const { url, next } = await raw(t);
      await dial(url);
      await page.evaluate(() => void (window.pending = window.client.call('echo')));
      const { socket, message } = await next();
      socket.send(data, { binary });
      const payload = { success: true, data: 'fine' };
      socket.send(JSON.stringify({ type: 'capabilities/call-result', id: message.id, payload }));
      const outcome = await page.evaluate(async () => [
        (await window.pending).data,
        window.client.counters.malformed,
      ]);
      assert.deepEqual(outcome, ['fine', 1]);
    });
  }

  test('leaves a server whose message is too long, with 4009', async (t) => {
    const { url, next } = await raw(t);
    await dial(url, { socket: { maxLength: 1000 } });
    await page.evaluate(() => void (window.pending = window.client.call('echo')));
    const { socket } = await next();
    const closed = once(socket, 'close');
    socket.send(JSON.stringify('x'.repeat(1000)));
    const { code, message } = await page.evaluate(async () => (await window.pending).error);
    assert.equal(code, 'DISCONNECTED');
    assert.match(message, /1002 characters was received; the limit is 1000/);
    const [status, reason] = await closed;
    assert.deepEqual([status, String(reason)], [4009, message]);
  });

  test('fails one call alone when that is too long to be sent', async (t) => {
    const { url } = await serve(t);
    await dial(url, { socket: { maxLength: 1000 } });
    const outcome = await page.evaluate(async () => [
      (await window.client.call('echo', 'x'.repeat(1000))).error.code,
      (await window.client.call('echo', 'short')).data,
    ]);
    assert.deepEqual(outcome, ['INVALID_PARAMS', 'short']);
  });

  test('notices a server that reads no more: new calls are refused, then its heartbeat is missed', async (t) => {
    const { url, server } = await raw(t);
    await dial(url, { socket: { maxUnsent: MIB }, limits: { heartbeat: 1000 } });
    for (const socket of server.clients) socket.pause();
    const { codes, retryable } = await page.evaluate(async () => {
      const large = 'x'.repeat(1 << 20);
      // What is said in one turn waits in every engine; what was said before that, in WebKit does
      // not.
      const errors = [];
      const note = ({ error }) => errors.push(error);
      const calls = Array.from({ length: 40 }, () => window.client.call('echo', large).then(note));
      await Promise.all(calls);
      return {
        codes: [...new Set(errors.map(({ code }) => code))].sort(),
        // Whether a call that was under way ran is not known.
        retryable: errors.every(({ code, retryable }) => retryable === (code === 'RATE_LIMITED')),
      };
    });
    assert.equal(retryable, true);
    assert.deepEqual(codes, ['DISCONNECTED', 'RATE_LIMITED']);
  });

  test('hears that nobody listens, or that the browser blocks the port', async (t) => {
    const { server, url } = await listen(t);
    server.close();
    await once(server, 'close');
    for (const nobody of [url, 'ws://127.0.0.1:6000']) {
      const error = await page.evaluate(
        (u) => window.dial(u).catch(({ name, code, retryable }) => ({ name, code, retryable })),
        nobody,
      );
      assert.deepEqual(error, { name: 'AbpError', code: 'DISCONNECTED', retryable: true });
    }
  });

  test('does not wait for a closing handshake that never ends', async (t) => {
    const { url, server } = await raw(t);
    await dial(url);
    const [first] = server.clients;
    // It hears nothing more, and so does not answer the closing.
    first.pause();
    const outcome = await page.evaluate(async () => {
      const pending = window.client.call('echo');
      window.client.close();
      const { cancelled } = await pending;
      await window.client.reconnect();
      return [cancelled, window.client.connected];
    });
    assert.deepEqual(outcome, [true, true]);
    assert.equal(first.readyState, first.OPEN);
    assert.equal(server.clients.size, 2);
  });

  test('gives a server up that says nothing', async (t) => {
    const server = createServer();
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const open = [];
    server.on('connection', (connection) => open.push(connection));
    t.after(() => {
      for (const connection of open) connection.destroy();
      server.close();
    });
    // A busy browser may not have come so far within the first of them.
    for (let timeout = 200; open.length === 0; timeout *= 2) {
      const code = await page.evaluate(
        ([u, timeout]) => window.dial(u, { timeout }).catch((error) => error.code),
        [`ws://127.0.0.1:${server.address().port}`, timeout],
      );
      assert.equal(code, 'TIMEOUT');
    }
  });
});

describe('an app in a page', () => {
  test('that dials its agent is called, cancelled and asked for bytes', async (t) => {
    const { server, url } = await listen(t);
    const connected = once(server, 'connection');
    await page.evaluate((u) => {
      window.exposed = window.expose(
        {
          app: { id: 'page.app', name: 'Page', version: '1' },
          capabilities: {
            hang: (_params, { signal }) =>
              new Promise((_resolve, reject) =>
                signal.addEventListener('abort', () => {
                  window.aborted = signal.reason.message;
                  reject(signal.reason);
                }),
              ),
            blob: () => ({ content: new Blob(['hello']), mimeType: 'text/plain' }),
            large: () => ({ content: new Blob(['x'.repeat(5000)]), mimeType: 'text/plain' }),
          },
        },
        { origins: [] },
      );
      const store = ({ size }, { callId }) => ({
        downloadUrl: `https://x.example/${callId}/${size}`,
      });
      window.exposed.accept(window.webSocketTransport(u, { store, storeAbove: 1000 }));
    }, url);
    const [socket] = await connected;
    const client = await connect(() => webSocketTransport(socket), AGENT);
    t.after(() => client.close());
    const { data } = await client.call('blob');
    assert.equal(Buffer.from(data.content).toString(), 'hello');
    const large = await client.call('large', {}, { callId: 'L' });
    assert.deepEqual(large.data, {
      downloadUrl: 'https://x.example/L/5000',
      mimeType: 'text/plain',
      size: 5000,
    });
    const controller = new AbortController();
    const hanging = client.call('hang', {}, { signal: controller.signal });
    controller.abort('enough');
    assert.equal((await hanging).cancelled, true);
    assert.equal(await page.evaluate(() => window.aborted), 'enough');
    const pending = client.call('hang');
    await page.goto('about:blank');
    assert.equal((await pending).error.code, 'DISCONNECTED');
  });
});
