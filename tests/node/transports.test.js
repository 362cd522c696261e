// The contract of transports (js/transports/transport.js), over each of them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, mock, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { createTaskServer, createTaskClient } from '../../packages/a2a/src/index.js';
import { createPeer } from '../../packages/rpc/src/index.js';
import { portTransport } from '../../js/transports/port.js';
import {
  extensionTransport,
  servePorts,
  webSocketTransport,
} from '../../parts/transports/index.js';
import { TRANSPORTS, emitterPort, extensionEvent, extensionPorts } from '../contracts/channels.js';
import { CONTRACT, listen, turns } from '../contracts/transports.js';
import { usePage } from '../support/page.js';

for (const { name, ends } of TRANSPORTS) {
  describe(name, () => {
    for (const [rule, holds] of Object.entries(CONTRACT)) {
      test(rule, async (t) => {
        const both = await ends();
        t.after(() => both.forEach((end) => end.close()));
        await holds(...both.map((end) => end.transport()));
      });
    }
  });
}

test('what waits for a listener is bounded: with more, the connection is given up and says so', async () => {
  const { port1, port2 } = new MessageChannel();
  const transport = portTransport(port1);
  for (let id = 0; id < 2000; id++) port2.postMessage(id);
  await once(
    port2.on('message', () => {}),
    'close',
  );
  const { reached } = listen(transport);
  const log = await reached(1025);
  assert.deepEqual(log[1023], ['message', 1023]);
  assert.deepEqual([log[1024][0], log[1024][1].code], ['closed', 'RATE_LIMITED']);
});

/**
 * A port, or a worker, that says what is asked of it: of an event target, or of an emitter by this
 * name for `off`.
 */
function listened(off) {
  const listeners = new Set();
  const posted = [];
  const key = (type, heard) => [...listeners].find((each) => each[0] === type && each[1] === heard);
  const add = (type, heard) => void listeners.add([type, heard]);
  const remove = (type, heard) => void listeners.delete(key(type, heard));
  return {
    listeners,
    posted,
    say: (type, event) => [...listeners].forEach(([of, heard]) => of === type && heard(event)),
    postMessage: (...given) => void posted.push(given),
    close: mock.fn(),
    ...(off ? { on: add, [off]: remove } : { addEventListener: add, removeEventListener: remove }),
  };
}

describe('a port and its worker', () => {
  for (const off of [undefined, 'off', 'removeListener']) {
    const form = off ? `emitters with ${off}` : 'event targets';
    test(`are listened to until the transport is closed, and then by nobody: ${form}`, () => {
      const [port, worker] = [listened(off), listened(off)];
      const closed = mock.fn();
      const transport = portTransport(port, closed, worker);
      const { log } = listen(transport);
      assert.deepEqual([...port.listeners].map(([type]) => type).sort(), [
        'close',
        'message',
        'messageerror',
      ]);
      assert.deepEqual([...worker.listeners].map(([type]) => type).sort(), ['error', 'exit']);
      const buffer = new ArrayBuffer(1);
      transport.post(1);
      transport.post(2, [buffer]);
      assert.deepEqual(port.posted, [[1], [2, [buffer]]]);
      port.say('messageerror');
      transport.close();
      assert.deepEqual([port.listeners.size, worker.listeners.size], [0, 0]);
      assert.deepEqual([closed.mock.callCount(), port.close.mock.callCount()], [1, 0]);
      transport.post(3);
      assert.equal(port.posted.length, 2);
      assert.deepEqual(log, [['unreadable', 'PARSE_ERROR']]);
    });
  }

  test('are given back by a transport that was given nothing else to do', () => {
    const port = listened();
    portTransport(port).close();
    assert.equal(port.close.mock.callCount(), 1);
  });

  test('end with a page’s worker that fails before it speaks, and not after', async () => {
    for (const [spoke, message, words] of [
      [false, 'no such file', /^no such file$/],
      [false, '', /script did not load; workers have no import map/],
      [true, 'of its own', undefined],
    ]) {
      const [port, worker] = [listened(), listened()];
      const { log, reached } = listen(portTransport(port, undefined, worker));
      if (spoke) port.say('message', { data: 'hello' });
      worker.say('error', { message });
      await reached(1);
      const closed = log.filter(([kind]) => kind === 'closed');
      assert.equal(closed.length, words ? 1 : 0);
      if (words) assert.match(closed[0][1].message, words);
      if (words) assert.equal(closed[0][1].code, 'TRANSPORT_ERROR');
    }
  });

  test('end with a worker of Node’s, whatever it has said: by its error, or by its exit', () => {
    for (const [type, event, words] of [
      ['error', new Error('thrown'), /^thrown$/],
      ['exit', 7, /exited with code 7/],
    ]) {
      const worker = listened('off');
      const { log } = listen(portTransport(worker, undefined, worker));
      worker.say('message', 'hello');
      worker.say(type, event);
      assert.deepEqual(log[0], ['message', 'hello']);
      assert.match(log[1][1].message, words);
    }
  });
});

describe('what comes before somebody listens', () => {
  test('is told in its order, whatever it is, and the end after it', async (t) => {
    const reported = [];
    globalThis.reportError = (error) => reported.push(error);
    t.after(() => delete globalThis.reportError);
    const port = listened();
    const transport = portTransport(port);
    port.say('message', { data: 1 });
    port.say('messageerror');
    port.say('message', { data: 2 });
    port.say('close');
    for (const type of ['message', 'messageerror', 'close']) port.say(type, { data: 'too late' });
    const log = [];
    const tell = (what) => (value) => {
      log.push([what, value?.code ?? value]);
      throw what;
    };
    transport.onMessage = tell('message');
    // Not at once: who listens may have more to set up.
    transport.onUnreadable = tell('unreadable');
    transport.onClose = tell('closed');
    await turns();
    assert.deepEqual(log, [
      ['message', 1],
      ['unreadable', 'PARSE_ERROR'],
      ['message', 2],
      ['closed', undefined],
    ]);
    assert.deepEqual(
      reported,
      log.map(([what]) => what),
    );
  });

  test('is followed by what comes while it is delivered', async () => {
    const port = listened();
    const transport = portTransport(port);
    port.say('message', { data: 1 });
    port.say('message', { data: 2 });
    const heard = [];
    transport.onMessage = (data) => {
      heard.push(data);
      if (data === 1) port.say('message', { data: 3 });
    };
    await turns();
    assert.deepEqual(heard, [1, 2, 3]);
  });

  test('is not told any more once the transport is closed', async () => {
    const port = listened();
    const transport = portTransport(port);
    port.say('message', { data: 'early' });
    port.say('close');
    transport.close();
    const { log } = listen(transport);
    await turns();
    assert.deepEqual(log, []);
  });

  test('of a socket is bounded in characters, too, those that have been heard not counted', async () => {
    const [, far] = socketPair();
    const transport = webSocketTransport(far);
    const say = (length) =>
      far.dispatchEvent(
        Object.assign(new Event('message'), { data: `"${'x'.repeat(length - 2)}"` }),
      );
    say(2 ** 24);
    const heard = new Promise((resolve) => (transport.onMessage = resolve));
    assert.equal((await heard).length, 2 ** 24 - 2);
    await turns();
    transport.onMessage = undefined;
    say(2 ** 24);
    say(2 ** 24);
    say(2);
    const { reached } = listen(transport);
    const [, , [what, error]] = await reached(3);
    assert.deepEqual([what, error.code], ['closed', 'RATE_LIMITED']);
  });
});

test('what cannot be read is null to who does not ask why', () => {
  const [port, [, socket]] = [listened(), socketPair()];
  for (const [transport, say] of [
    [portTransport(port), () => port.say('messageerror')],
    [
      webSocketTransport(socket),
      () => socket.dispatchEvent(Object.assign(new Event('message'), { data: '{' })),
    ],
  ]) {
    const heard = [];
    transport.onMessage = (...given) => heard.push(given);
    say();
    assert.deepEqual(heard, [[null, []]]);
  }
});

test('a socket is closed with its page, and a transport that was closed waits for no page', async (t) => {
  const page = usePage(t);
  const [near, far] = socketPair();
  const transport = webSocketTransport(near);
  webSocketTransport(far).close();
  const { reached } = listen(transport);
  assert.equal((await reached(1))[0][1].details.code, 1000);
  transport.close();
  assert.deepEqual(page.types(), []);
  const [open, other] = socketPair();
  const { reached: closed } = listen(webSocketTransport(open));
  page.say('pagehide', {});
  assert.match((await closed(1))[0][1].message, /^The page was closed/);
  assert.equal(other.readyState, 3);
});

describe('ports of other forms', () => {
  test('one that emits messages, as a worker of Node’s does, is taken at its word', async () => {
    const { port1, port2 } = new MessageChannel();
    const worker = {
      on: (type, listener) => type === 'message' && port1.on('message', listener),
      off: (type, listener) => port1.off(type, listener),
      postMessage: (message) => port1.postMessage(message),
    };
    const transport = portTransport(worker);
    const { reached } = listen(transport);
    port2.postMessage({ data: 'is a member of the message', ports: [] });
    assert.deepEqual(await reached(1), [
      ['message', { data: 'is a member of the message', ports: [] }],
    ]);
    transport.close();
    port1.close();
  });

  test('a session runs between an emitter’s port and an event target’s, and cancels', async () => {
    const { port1, port2 } = new MessageChannel();
    const exposed = expose(
      {
        app: { id: 'a.b', name: 'A', version: '1' },
        capabilities: {
          hang: (_params, { signal }) =>
            new Promise((_resolve, reject) =>
              signal.addEventListener('abort', () => reject(signal.reason)),
            ),
        },
      },
      { port: emitterPort(port1, 'removeListener') },
    );
    const client = await connect(emitterPort(port2), { agent: { name: 'x', version: '1' } });
    const controller = new AbortController();
    const hanging = client.call('hang', {}, { signal: controller.signal });
    controller.abort('enough');
    assert.deepEqual([(await hanging).cancelled, (await hanging).error.message], [true, 'enough']);
    client.close();
    exposed.close();
  });
});

/** A socket whose other side reads when the test says so. */
function socketPair() {
  const make = () => {
    const target = new EventTarget();
    return Object.assign(target, {
      readyState: 1,
      bufferedAmount: 0,
      sent: 0,
      send(text) {
        this.sent++;
        queueMicrotask(() =>
          this.other.dispatchEvent(Object.assign(new Event('message'), { data: text })),
        );
      },
      close(code, reason = '') {
        if (this.readyState > 1) return;
        for (const side of [this, this.other]) {
          side.readyState = 3;
          side.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
        }
      },
    });
  };
  const [near, far] = [make(), make()];
  near.other = far;
  far.other = near;
  return [near, far];
}
const MAX_UNSENT = 1000;
const slow = { maxUnsent: MAX_UNSENT };

describe('back-pressure of a WebSocket whose other side reads slowly', () => {
  test('ABP: calls are refused, progress is left out, a cancel goes', async (t) => {
    const [near, far] = socketPair();
    const heard = Promise.withResolvers?.() ?? {};
    heard.promise ??= new Promise((resolve) => (heard.resolve = resolve));
    const exposed = expose({
      app: { id: 'a.b', name: 'A', version: '1' },
      capabilities: {
        work: (_params, { progress, signal }) => {
          heard.resolve(progress);
          return new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          );
        },
      },
    });
    exposed.accept(webSocketTransport(far, slow));
    const client = await connect(() => webSocketTransport(near, slow), {
      agent: { name: 'x', version: '1' },
    });
    t.after(() => client.close());
    const reports = [];
    const controller = new AbortController();
    const working = client.call(
      'work',
      {},
      { signal: controller.signal, onProgress: ({ progress }) => reports.push(progress) },
    );
    const progress = await heard.promise;
    far.bufferedAmount = MAX_UNSENT + 1;
    progress({ progress: 1 });
    await new Promise(setImmediate);
    far.bufferedAmount = 0;
    progress({ progress: 2 });
    near.bufferedAmount = MAX_UNSENT + 1;
    const { error } = await client.call('work');
    assert.deepEqual([error.code, error.retryable], ['RATE_LIMITED', true]);
    controller.abort('enough');
    assert.equal((await working).cancelled, true);
    assert.deepEqual(reports, [2]);
  });

  for (const dialect of ['acp', 'lsp', 'mcp']) {
    test(`JSON-RPC, ${dialect}: requests are refused, progress is left out, a cancel goes`, async (t) => {
      const [near, far] = socketPair();
      const asks = createPeer(webSocketTransport(near, slow), { dialect });
      const answers = createPeer(webSocketTransport(far, slow), { dialect });
      t.after(() => (asks.close(), answers.close()));
      let report;
      const started = new Promise((resolve) => (report = resolve));
      let aborted;
      const stopped = new Promise((resolve) => (aborted = resolve));
      answers.handle('work', (_params, context) => {
        report(context);
        context.signal.addEventListener('abort', aborted);
        return new Promise((_resolve, reject) =>
          context.signal.addEventListener('abort', () => reject(context.signal.reason)),
        );
      });
      const reports = [];
      const controller = new AbortController();
      const working = asks.request(
        'work',
        {},
        {
          signal: controller.signal,
          onProgress: (info) => reports.push(info.progress ?? info.value),
        },
      );
      const { progress } = await started;
      const { sent } = far;
      far.bufferedAmount = MAX_UNSENT + 1;
      progress?.({ progress: 1 });
      await new Promise(setImmediate);
      assert.equal(far.sent, sent);
      far.bufferedAmount = 0;
      progress?.({ progress: 2 });
      if (dialect !== 'acp') assert.equal(far.sent, sent + 1);
      near.bufferedAmount = MAX_UNSENT + 1;
      await assert.rejects(asks.request('work'), ({ code, message, data }) => {
        assert.deepEqual([code, data.retryable], [-32005, true]);
        assert.ok(data.retryAfter > 0);
        return /reads too slowly/.test(message);
      });
      controller.abort();
      await assert.rejects(working, { name: 'AbortError' });
      await stopped;
    });
  }

  test('A2A: messages are refused as retryable, a cancel goes, updates are not left out', async (t) => {
    const [near, far] = socketPair();
    let started;
    const running = new Promise((resolve) => (started = resolve));
    const server = createTaskServer({
      card: { name: 'x' },
      async execute(context) {
        started(context);
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
        context.signal.throwIfAborted();
      },
    });
    server.serve(webSocketTransport(far, slow));
    const client = createTaskClient(webSocketTransport(near, slow), { version: '1.0' });
    t.after(() => client.close());
    const stream = client.subscribe('go');
    const seen = [];
    const read = (async () => {
      for await (const event of stream) seen.push(event);
    })();
    const {
      task: { id: taskId },
    } = await running;
    near.bufferedAmount = MAX_UNSENT + 1;
    far.bufferedAmount = MAX_UNSENT + 1;
    await assert.rejects(client.send('more'), { code: 'RATE_LIMITED', retryable: true });
    const task = await client.cancel(taskId);
    assert.equal(task.status.state, 'canceled');
    await read;
    assert.ok(seen.length > 0);
  });

  test('with four times as much, the connection is given up, whichever protocol', async () => {
    const [near] = socketPair();
    const transport = webSocketTransport(near, slow);
    const { reached } = listen(transport);
    near.bufferedAmount = 4 * MAX_UNSENT + 1;
    assert.throws(() => transport.post({}, undefined, 'request'), { code: 'RATE_LIMITED' });
    transport.post({}, undefined, 'droppable');
    assert.equal(near.sent, 0);
    transport.post({});
    const [[, cause]] = await reached(1);
    assert.deepEqual(cause.details.code, 4008);
    assert.match(cause.message, /reads too slowly/);
  });
});

test('why a socket closed is told: code and reason', async () => {
  const [near, far] = socketPair();
  const { reached } = listen(webSocketTransport(near));
  far.close(4321, 'because');
  const [[, cause]] = await reached(1);
  assert.deepEqual(cause.details, { code: 4321, reason: 'because' });
});

describe('ports of a browser extension', () => {
  /** The part of an extension that serves, and what connects to it from somewhere. */
  function extension(t) {
    const [onConnect, onConnectExternal] = [extensionEvent(), extensionEvent()];
    const runtime = { onConnect, onConnectExternal, getURL: () => 'https://own.example/' };
    globalThis.chrome = { runtime };
    t.after(() => delete globalThis.chrome);
    const connectFrom = (origin, { name = 'abp-bridge', event = onConnect } = {}) => {
      const [near, far] = extensionPorts();
      t.after(() => near.disconnect());
      event.tell(Object.assign(far, { name, sender: { origin } }));
      return { near, far, transport: () => extensionTransport(near) };
    };
    return { runtime, onConnectExternal, connectFrom };
  }
  const agent = { name: 'a', version: '1' };
  const serve = (t, sessions) => {
    const app = expose(
      { app: { id: 'a', name: 'A', version: '1' }, capabilities: { echo: (params) => params } },
      { onSession: ({ origin }) => sessions.push(origin) },
    );
    t.after(() => app.close());
    return app;
  };

  test('serve its own parts, or those that are named, and leave ports of other names alone', async (t) => {
    const { connectFrom, onConnectExternal } = extension(t);
    const sessions = [];
    const app = serve(t, sessions);
    const bytes = new Uint8Array([1, 2]).buffer;
    const isServed = async (from) => {
      const client = await connect(from.transport, { agent }).catch(({ code }) => code);
      if (typeof client === 'string') return client;
      const { data } = await client.call('echo', { content: bytes, mimeType: 'a/b' });
      client.close();
      return [...new Uint8Array(data.content)].join();
    };
    const stop = servePorts(app);
    assert.equal(await isServed(connectFrom('https://own.example')), '1,2');
    assert.equal(await isServed(connectFrom('https://site.example')), 'DISCONNECTED');
    assert.equal(await isServed(connectFrom(undefined)), 'DISCONNECTED');
    const other = connectFrom('https://own.example', { name: 'of others' });
    other.near.postMessage('still open');
    assert.equal((await listenOnce(other.far))[0], 'still open');
    stop();
    const unheard = connectFrom('https://own.example');
    unheard.near.postMessage('unheard');
    assert.equal((await listenOnce(unheard.far))[0], 'unheard');
    servePorts(app, { origins: ['https://site.example'], name: 'mine' });
    const more = { name: 'mine', event: onConnectExternal };
    assert.equal(await isServed(connectFrom('https://site.example', more)), '1,2');
    assert.equal(await isServed(connectFrom('https://own.example', more)), 'DISCONNECTED');
    assert.deepEqual(sessions, ['https://own.example', 'https://site.example']);
  });
  const listenOnce = ({ onMessage }) =>
    new Promise((resolve) => onMessage.addListener((...told) => resolve(told)));

  test('tell why they were closed, as far as the browser says it', async (t) => {
    const { runtime } = extension(t);
    for (const message of [undefined, 'Could not establish connection.']) {
      const [near] = extensionPorts();
      const { reached } = listen(extensionTransport(near));
      runtime.lastError = message && { message };
      near.onDisconnect.tell();
      const [[, cause]] = await reached(1);
      assert.equal(cause.code, 'TRANSPORT_ERROR');
      assert.ok(cause.message.includes(message ?? 'its other side is gone'), cause.message);
      near.disconnect();
    }
  });

  test('what is no port, and what is no extension, are refused with words', (t) => {
    for (const port of [undefined, {}, new MessageChannel().port1])
      assert.throws(() => extensionTransport(port), {
        code: 'INVALID_PARAMS',
        message: /chrome\.runtime\.connect/,
      });
    assert.throws(() => servePorts(serve(t, [])), { code: 'NOT_SUPPORTED' });
    extension(t);
    assert.throws(() => servePorts(serve(t, []), { origins: ['*'] }), { code: 'INVALID_PARAMS' });
  });
});
