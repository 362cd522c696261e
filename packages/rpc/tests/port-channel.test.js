// The object channel over MessagePorts: frames, and what they must not do to each other.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { hostChannel, portChannel } from '../src/index.js';

/** Two ends, and what each was told. */
function ends() {
  const { port1, port2 } = new MessageChannel();
  const frames = [];
  const { postMessage } = port1;
  port1.postMessage = (frame, transfer) => {
    postMessage.call(port1, frame, transfer);
    frames.push(frame);
  };
  return { near: end(port1), far: end(port2), frames, port1, port2 };
}
function end(port) {
  const channel = portChannel(port);
  const log = [];
  let wake = () => {};
  channel.onClose = () => {
    log.push('closed');
    wake();
  };
  channel.onMessage = (message) => {
    log.push(message);
    wake();
  };
  const reached = async (count) => {
    while (log.length < count) await new Promise((resolve) => (wake = resolve));
    return log;
  };
  return { channel, log, reached };
}
const request = (id, params) => ({ jsonrpc: '2.0', id, method: 'm', params });

test('the messages of a turn go together, in order, and the first of them at once', async () => {
  const { near, far, frames } = ends();
  const messages = Array.from({ length: 100 }, (_, id) => request(id));
  for (const message of messages) near.channel.post(message);
  assert.equal(frames.length, 1);
  assert.deepEqual(await far.reached(100), messages);
  assert.equal(frames.length, 2);
  near.channel.close();
});

test('what a frame cannot hold goes in another', async () => {
  const { near, far } = ends();
  for (let id = 0; id < 10_000; id++) near.channel.post(request(id));
  const log = await far.reached(10_000);
  assert.deepEqual(
    log.map(({ id }) => id),
    Array.from({ length: 10_000 }, (_, id) => id),
  );
  near.channel.close();
});

test('what cannot be cloned is answered in its place, and harms no other', async () => {
  const { near, far } = ends();
  const f = () => 1;
  near.channel.post(request(0));
  near.channel.post(request(1));
  near.channel.post(request(2, { f }));
  near.channel.post({ jsonrpc: '2.0', method: 'notification', params: { f } });
  near.channel.post({ jsonrpc: '2.0', id: 'theirs', result: { f } });
  near.channel.post({ jsonrpc: '2.0', id: f, result: 1 });
  near.channel.post(request(3));
  const [, , answer] = await far.reached(4);
  assert.deepEqual(
    far.log.map(({ id }) => id),
    [0, 1, 'theirs', 3],
  );
  assert.equal(answer.error.code, -32603);
  assert.match(answer.error.message, /could not be cloned/);
  const [own] = await near.reached(1);
  assert.deepEqual([own.id, own.error.code], [2, -32603]);
  near.channel.close();
});

test('buffers are moved, each of its own message', async () => {
  const { near, far } = ends();
  const [a, b] = [new ArrayBuffer(8), new ArrayBuffer(16)];
  near.channel.post(request(0));
  near.channel.post(request(1, a), [a]);
  near.channel.post(request(2, b), [b]);
  const log = await far.reached(3);
  assert.deepEqual(
    log.slice(1).map(({ params }) => params.byteLength),
    [8, 16],
  );
  assert.deepEqual([a.byteLength, b.byteLength], [0, 0]);
  near.channel.close();
});

test('what cannot be moved is copied', async () => {
  const { near, far } = ends();
  // What is no buffer and no port cannot be moved.
  const unmovable = [/** @type {any} */ ({})];
  near.channel.post(request(0, 'alone'), unmovable);
  near.channel.post(request(1, 'with others'), unmovable);
  near.channel.post(request(2));
  const log = await far.reached(3);
  assert.deepEqual(log.map(({ id }) => id).sort(), [0, 1, 2]);
  near.channel.close();
});

test('why a port is lost is told, and that it was closed in an orderly way by nothing', async () => {
  const { near, far } = ends();
  const causes = [];
  far.channel.onClose = (...args) => causes.push(args);
  near.channel.close();
  while (!causes.length) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(causes, [[undefined]]);
});

describe('between windows', () => {
  /** A window as an app in an iframe sees it. */
  function appWindow(t) {
    const listeners = new Set();
    const host = { postMessage: (...args) => host.heard.push(args), heard: [] };
    globalThis.addEventListener = (_type, listener) => listeners.add(listener);
    globalThis.removeEventListener = (_type, listener) => listeners.delete(listener);
    t.after(() => {
      delete globalThis.addEventListener;
      delete globalThis.removeEventListener;
    });
    const say = (data, more) => {
      const event = { origin: 'https://host.example', isTrusted: true, source: host, data };
      for (const listener of listeners) listener({ ports: [], ...event, ...more });
    };
    return { host, say };
  }

  test('ports that nobody asked for are closed, and those of messages for others are left alone', async (t) => {
    const { host, say } = appWindow(t);
    const channel = hostChannel({ origins: ['https://host.example'], host });
    channel.onMessage = () => {};
    for (const data of [
      request(1),
      { 'abp-bridge': 'hello', to: 'x' },
      { 'abp-bridge': 'offer' },
    ]) {
      const { port1, port2 } = new MessageChannel();
      const closed = once(
        port1.on('message', () => {}),
        'close',
      );
      say(data, { ports: [port2] });
      await closed;
    }
    const { port1, port2 } = new MessageChannel();
    say({ type: 'initialize-result' }, { ports: [port2] });
    const answered = once(port1, 'message');
    port2.postMessage('still open');
    assert.deepEqual((await answered)[0], 'still open');
    port1.close();
    channel.close();
  });

  test('only the host of an allowed origin, by the browser’s word, is heard; nothing is posted to any other', (t) => {
    const { host, say } = appWindow(t);
    const channel = hostChannel({
      origins: ['https://host.example', 'https://other.example'],
      host,
      upgrade: 'none',
    });
    const heard = [];
    channel.onMessage = ({ id }) => heard.push(id);
    say(request(1), { origin: 'https://host.example.evil' });
    say(request(2), { origin: 'null' });
    say(request(3), { source: {} });
    say(request(4), { isTrusted: false });
    say({ type: 'other traffic' });
    say(request(5));
    say(request(6), { origin: 'https://other.example' });
    assert.deepEqual(heard, [5]);
    host.heard.length = 0;
    channel.post(request(7));
    assert.deepEqual(
      host.heard.map(([, { targetOrigin }]) => targetOrigin),
      ['https://host.example'],
    );
    channel.close();
  });
});

test('closing says so after all that was said', async () => {
  const { near, far } = ends();
  for (let id = 0; id < 3; id++) near.channel.post(request(id));
  near.channel.close();
  assert.deepEqual(await far.reached(4), [request(0), request(1), request(2), 'closed']);
  near.channel.post(request(4));
  far.channel.post(request(5));
  far.channel.close();
  near.channel.close();
  assert.deepEqual([near.log, far.log.length], [[], 4]);
});

test('the end of the other port is the end', async () => {
  const { near, port2 } = ends();
  port2.close();
  assert.deepEqual(await near.reached(1), ['closed']);
});

test('nothing is read before somebody listens', async () => {
  const { port1, port2 } = new MessageChannel();
  const near = portChannel(port1);
  const far = portChannel(port2);
  near.post(request(0));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await new Promise((resolve) => (far.onMessage = resolve)), request(0));
  near.close();
});

test('a listener that throws does not keep the rest from being delivered', async () => {
  const { near, far } = ends();
  const thrown = new Promise((resolve) => (globalThis.reportError = resolve));
  const { onMessage } = far.channel;
  far.channel.onMessage = (message) => {
    onMessage(message);
    if (message.id === 1) throw new Error('its own');
  };
  for (let id = 0; id < 3; id++) near.channel.post(request(id));
  await far.reached(3);
  assert.equal((await thrown).message, 'its own');
  delete globalThis.reportError;
  near.channel.close();
});

test('frames that are none are passed over', async () => {
  const { near, far, port1 } = ends();
  const hostile = [null, 1, 'x', {}, [], ['a'], [99, 0, 0, 0], [[[]]]];
  hostile.push(new Array(2 ** 32 - 1));
  for (const data of hostile) port1.postMessage(data);
  near.channel.post(request(0));
  assert.deepEqual(await far.reached(1), [request(0)]);
  near.channel.close();
});

test('a worker of Node’s is spoken to as a page’s is, and its end is noticed', async () => {
  const { href } = new URL('../src/index.js', import.meta.url);
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
    import(${JSON.stringify(href)}).then(({ portChannel }) => {
      const channel = portChannel(parentPort);
      channel.onMessage = (message) => {
        if (message === 'exit') process.exit(3);
        channel.post({ said: message });
      };
    });`,
    { eval: true },
  );
  const { channel, reached } = end(worker);
  channel.post('hello');
  assert.deepEqual(await reached(1), [{ said: 'hello' }]);
  channel.post('exit');
  assert.deepEqual(await reached(2), [{ said: 'hello' }, 'closed']);
});

test('plain data behind a proxy is read, and what no clone takes is refused', async () => {
  const { near, far } = ends();
  const params = new Proxy({ rows: [1, { at: new Proxy([2], {}) }], date: new Date(5) }, {});
  for (const id of [1, 2]) near.channel.post(request(id, params));
  const plain = { rows: [1, { at: [2] }], date: new Date(5) };
  assert.deepEqual(await far.reached(2), [request(1, plain), request(2, plain)]);
  near.channel.post(request(3, new Proxy(new Map(), {})));
  assert.equal((await near.reached(1))[0].id, 3);
  near.channel.close();
});

test('a frame that cannot be read closes the channel on both sides', async () => {
  for (const frame of [[6, 0, undefined], [1], Array(20_000).fill(6)]) {
    const { near, far, port1 } = ends();
    port1.postMessage(frame);
    assert.deepEqual(await far.reached(1), ['closed']);
    assert.deepEqual(await near.reached(1), ['closed']);
  }
});
