// The parts of transports, by themselves: what a receiver keeps and tells, what counts of a window, and what a socket is asked to do.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, mock, test } from 'node:test';
import { AbpError } from '../../js/common/errors.js';
import { EmbedderTransport } from '../../js/transports/embedder.js';
import { watchIframe, watchPage } from '../../js/transports/iframe-watcher.js';
import { OPAQUE, iframeTransport, visibleOrigin } from '../../js/transports/iframe.js';
import { listenToOwners, ownerPort } from '../../js/transports/owners.js';
import { listenToPort } from '../../js/transports/port.js';
import { Receiver } from '../../js/transports/receiver.js';
import { fromOrigins, webSocketTransport } from '../../js/transports/websocket.js';
import { listenToWindow, peerTransport } from '../../js/transports/window.js';
import { end, transportTo } from '../../js/transports/worker.js';
import { usePage, windowOf } from '../support/page.js';

const microtasks = () => new Promise(setImmediate);

/** What a transport tells, in order. */
function listen(transport, log = []) {
  transport.onClose = (cause) => log.push(['closed', cause]);
  transport.onUnreadable = (error) => log.push(['unreadable', error]);
  transport.onMessage = (message, ports) => log.push(['message', message, ports]);
  return log;
}

describe('a receiver', () => {
  class Source extends Receiver {
    calls = [];
    listen() {
      this.calls.push('listen');
    }
    end() {
      this.calls.push('end');
    }
  }
  const unreadable = new AbpError('PARSE_ERROR', 'x');

  test('delivers at once to who listens, with the ports that came', () => {
    const source = new Source();
    const log = listen(source);
    const ports = [{}];
    source.receive(1);
    source.receive(2, ports);
    source.receiveUnreadable(unreadable);
    assert.deepEqual(log, [
      ['message', 1, []],
      ['message', 2, ports],
      ['unreadable', unreadable],
    ]);
    assert.equal(log[1][2], ports);
    assert.deepEqual(source.calls, ['listen']);
  });

  test('has a listener to call, and says who it is', () => {
    const source = new Source();
    assert.equal(source.onMessage(1), undefined);
    assert.equal(source.onClose, undefined);
    const [heard, closed] = [() => {}, () => {}];
    Object.assign(source, { onMessage: heard, onClose: closed });
    assert.deepEqual([source.onMessage, source.onClose], [heard, closed]);
  });

  test('keeps what comes early, of all kinds, in order, and not before a listener is set up', async () => {
    const source = new Source();
    source.receive(1, [], 10);
    source.receiveUnreadable(unreadable);
    source.receiveEnd();
    source.lose('gone');
    source.receive('too late');
    source.receiveUnreadable(unreadable);
    source.receiveEnd();
    source.lose('again');
    const log = [];
    source.onEnd = () => log.push(['end']);
    listen(source, log);
    assert.deepEqual(log, []);
    await microtasks();
    assert.deepEqual(log, [
      ['message', 1, []],
      ['unreadable', unreadable],
      ['end'],
      ['closed', 'gone'],
    ]);
  });

  test('puts what comes while early messages are delivered after them', async () => {
    const source = new Source();
    const heard = [];
    source.receive(1);
    source.receive(2);
    source.onMessage = (message) => {
      heard.push(message);
      if (message !== 1) return;
      source.receive(3);
      source.onUnreadable = (error) => heard.push(error.code);
      source.receiveUnreadable(unreadable);
      source.onEnd = () => heard.push('end');
      source.receiveEnd();
    };
    await microtasks();
    assert.deepEqual(heard, [1, 2, 3, 'PARSE_ERROR', 'end']);
    source.receive(4);
    assert.equal(heard.at(-1), 4);
  });

  test('gives null for what cannot be read, and the end for half an end, where nobody asks for more', () => {
    const source = new Source();
    const log = [];
    source.onMessage = (...given) => log.push(given);
    source.onClose = (...given) => log.push(['closed', ...given]);
    source.receiveUnreadable(unreadable);
    source.receiveEnd();
    source.receiveEnd();
    assert.deepEqual(log, [
      [null, []],
      ['closed', undefined],
    ]);
  });

  test('tells the end when somebody asks, once', async () => {
    const source = new Source();
    source.onMessage = () => {};
    source.lose('gone');
    await microtasks();
    const closed = mock.fn();
    source.onClose = closed;
    await microtasks();
    source.onClose = closed;
    source.onMessage = () => {};
    await microtasks();
    assert.deepEqual(
      closed.mock.calls.map(({ arguments: [cause] }) => cause),
      ['gone'],
    );
    // It is lost, and not closed by us.
    assert.equal(source.stopped, false);
  });

  test('tells an end without a cause', () => {
    const source = new Source();
    const log = listen(source);
    source.lose();
    assert.deepEqual(log, [['closed', undefined]]);
  });

  test('tells nothing after it was closed, and ends once', async () => {
    const source = new Source();
    source.receive('early');
    source.lose('gone');
    source.close();
    const log = listen(source);
    source.onEnd = () => log.push(['end']);
    source.receive(1);
    source.receiveUnreadable(unreadable);
    source.receiveEnd();
    source.lose('again');
    source.close();
    source.stop();
    await microtasks();
    assert.deepEqual(log, []);
    assert.deepEqual(
      source.calls.filter((call) => call === 'end'),
      ['end'],
    );
    assert.equal(source.stopped, true);
  });

  test('closed in the middle delivers no more of what was early', async () => {
    const source = new Source();
    const heard = [];
    source.receive(1);
    source.receive(2);
    source.onMessage = (message) => {
      heard.push(message);
      source.close();
    };
    await microtasks();
    assert.deepEqual(heard, [1]);
  });

  test('that is stopped delivers what has come, and ends once', async () => {
    const source = new Source();
    source.receive(1);
    source.stop();
    source.stop();
    source.close();
    assert.deepEqual(source.calls, ['end']);
    const other = new Source();
    other.receive(1);
    other.stop();
    const log = listen(other);
    await microtasks();
    assert.deepEqual(log, [['message', 1, []]]);
  });

  test('keeps 1024 messages and 32 million characters, and is lost with more', async () => {
    for (const [count, length] of [
      [1024, 0],
      [2, 2 ** 24],
    ]) {
      const source = new Source();
      for (let i = 0; i < count; i++) source.receive(i, undefined, length);
      assert.equal(source.stopped, false);
      source.receive('one more', undefined, length && 1);
      assert.equal(source.stopped, true);
      const log = listen(source);
      await microtasks();
      assert.equal(log.length, count + 1);
      assert.equal(log.at(-2)[1], count - 1);
      const [what, error] = log.at(-1);
      assert.deepEqual([what, error.code], ['closed', 'RATE_LIMITED']);
    }
  });

  test('counts characters anew when nothing waits any more, and not before', async () => {
    const source = new Source();
    const half = 2 ** 24;
    source.receive(1, undefined, half);
    let given = 0;
    source.onMessage = () => {
      // While the first is delivered it counts still.
      if (!given++) source.receive(2, undefined, half);
    };
    await microtasks();
    source.onMessage = undefined;
    source.receive(3, undefined, 2 * half);
    assert.deepEqual([given, source.stopped], [2, false]);
    source.receive(4, undefined, 1);
    assert.equal(source.stopped, true);
  });

  test('counts what still waits when its listener is taken away', async () => {
    const source = new Source();
    source.receive(1, undefined, 1);
    source.receive(2, undefined, 2 ** 25 - 1);
    source.onMessage = () => (source.onMessage = undefined);
    await microtasks();
    assert.equal(source.stopped, false);
    source.receive(3, undefined, 2);
    assert.equal(source.stopped, true);
  });

  test('of a listener that is taken away keeps what comes', async () => {
    const source = new Source();
    const log = listen(source);
    source.onMessage = undefined;
    source.receive(1);
    source.receiveUnreadable(unreadable);
    source.lose('gone');
    await microtasks();
    assert.deepEqual(log, []);
    source.onMessage = (message) => log.push(['message', message]);
    await microtasks();
    assert.deepEqual(log, [
      ['message', 1],
      ['unreadable', unreadable],
      ['closed', 'gone'],
    ]);
  });

  test('reports what its listeners throw', async (t) => {
    const reported = [];
    globalThis.reportError = (error) => reported.push(error);
    t.after(() => delete globalThis.reportError);
    const source = new Source();
    source.receive('early');
    source.receiveUnreadable(unreadable);
    source.receiveEnd();
    source.lose('gone');
    for (const name of ['onUnreadable', 'onEnd', 'onClose', 'onMessage']) {
      source[name] = () => {
        throw name;
      };
    }
    await microtasks();
    assert.deepEqual(reported, ['onMessage', 'onUnreadable', 'onEnd', 'onClose']);
  });
});

const HERE = 'https://app.example';

describe('a window of an app’s host', () => {
  test('is posted to at its origin only', () => {
    const source = windowOf();
    const transport = peerTransport(source, HERE);
    transport.post('x', ['moved']);
    assert.deepEqual(source.posted, [['x', { targetOrigin: HERE, transfer: ['moved'] }]]);
    assert.deepEqual([transport.target, transport.origin], [source, HERE]);
    assert.deepEqual(transport.carries, ['port', 'frames', 'liveness', 'streams']);
    assert.deepEqual([transport.onMessage(), transport.close()], [undefined, undefined]);
  });

  test('is heard if the browser says so, from the right origin, and not ourselves', (t) => {
    const { post, types } = usePage(t, { window: 'this window' });
    const heard = [];
    const refused = [];
    const stop = listenToWindow(
      new Set([HERE]),
      (...given) => heard.push(given),
      (origin, { data }) => refused.push([origin, data]),
    );
    const source = windowOf();
    post(source, HERE, 1);
    post(source, 'https://other.example', 2);
    post(source, HERE, 3, { isTrusted: false });
    post(null, HERE, 4);
    post('this window', HERE, 5);
    post(source, 'https://other.example', 6, { isTrusted: false });
    assert.deepEqual(heard, [[source, HERE, 1, ['its ports']]]);
    assert.deepEqual(refused, [['https://other.example', 2]]);
    stop();
    assert.deepEqual(types(), []);
    const unheard = listenToWindow(new Set(), () => heard.push('never'));
    post(source, HERE, 7);
    unheard();
    assert.equal(heard.length, 1);
  });
});

describe('an iframe', () => {
  const frame = (more) => ({ contentWindow: windowOf(more) });

  test('is posted to at its origin, and hears only it', (t) => {
    const { post, types } = usePage(t);
    const iframe = frame();
    const transport = iframeTransport(iframe, HERE);
    const log = listen(transport);
    transport.post('x', ['moved']);
    transport.post('hello', undefined, 'greeting');
    assert.deepEqual(iframe.contentWindow.posted, [
      ['x', { targetOrigin: HERE, transfer: ['moved'] }],
      ['hello', { targetOrigin: HERE, transfer: undefined }],
    ]);
    assert.deepEqual(transport.carries, ['port', 'frames', 'liveness', 'streams']);
    post(iframe.contentWindow, HERE, 1);
    post(iframe.contentWindow, HERE, 2, { isTrusted: false });
    post(windowOf(), HERE, 3);
    post(null, HERE, 4);
    assert.deepEqual(log, [['message', 1, ['its ports']]]);
    assert.equal(transport.stranger, undefined);
    post(windowOf(), 'https://elsewhere.example', 5);
    assert.equal(transport.stranger, undefined);
    post(null, 'https://elsewhere.example', 5);
    post(iframe.contentWindow, 'https://elsewhere.example', 6, { isTrusted: false });
    assert.equal(transport.stranger, undefined);
    post(iframe.contentWindow, 'https://elsewhere.example', 7);
    assert.equal(transport.stranger, 'https://elsewhere.example');
    assert.equal(log.length, 1);
    transport.close();
    assert.deepEqual(types(), []);
    transport.post('never');
    assert.equal(iframe.contentWindow.posted.length, 2);
  });

  test('without a window counts nobody’s messages as its own', (t) => {
    const { post } = usePage(t);
    const transport = iframeTransport({ contentWindow: null }, HERE);
    const log = listen(transport);
    post(null, HERE, 1);
    post(null, 'https://elsewhere.example', 1);
    transport.post('x');
    transport.post('x', undefined, 'greeting');
    assert.deepEqual([log, transport.stranger], [[], undefined]);
    transport.close();
  });

  test('of an opaque origin is only greeted', (t) => {
    usePage(t);
    const iframe = frame({ origin: 'https://visible.example' });
    const transport = iframeTransport(iframe, OPAQUE);
    transport.post('hello', undefined, 'greeting');
    transport.post('data');
    transport.post('call', undefined, 'request');
    assert.deepEqual(iframe.contentWindow.posted, [
      ['hello', { targetOrigin: '*', transfer: undefined }],
    ]);
    assert.equal(OPAQUE, 'null');
  });

  test('that still shows a document of ours is not greeted, and may be posted to', (t) => {
    usePage(t);
    const iframe = frame({ origin: 'https://agent.example' });
    const transport = iframeTransport(iframe, HERE);
    transport.post('hello', undefined, 'greeting');
    assert.deepEqual(iframe.contentWindow.posted, []);
    transport.post('data');
    assert.equal(iframe.contentWindow.posted.length, 1);
    iframe.contentWindow.origin = HERE;
    transport.post('hello', undefined, 'greeting');
    assert.equal(iframe.contentWindow.posted.length, 2);
  });

  test('shows its origin to those who may see it', () => {
    const other = {
      get origin() {
        throw new Error('of another site');
      },
    };
    assert.deepEqual([{ origin: HERE }, other, null].map(visibleOrigin), [
      ...[HERE, undefined, undefined],
    ]);
  });

  test('is watched: its window, the trees that it is in, their window, and this page', async (t) => {
    const told = [];
    const observers = [];
    const view = new EventTarget();
    const tree = { host: { getRootNode: () => 'the document' } };
    const { say, types } = usePage(t, {
      MutationObserver: class {
        constructor(changed) {
          Object.assign(this, { changed, observed: [] });
          observers.push(this);
        }
        observe(...given) {
          this.observed.push(given);
        }
        disconnect() {
          this.observed = [];
        }
      },
    });
    const iframe = Object.assign(new EventTarget(), {
      contentWindow: windowOf(),
      ownerDocument: { defaultView: view },
      getRootNode: () => tree,
    });
    const hide = (persisted) =>
      view.dispatchEvent(Object.assign(new Event('pagehide'), { persisted }));
    const unwatch = watchIframe(iframe, {
      lost: () => told.push('lost'),
      suspect: () => told.push('suspect'),
      leave: (persisted) => told.push(`leave ${persisted}`),
      close: () => told.push('close'),
    });
    const [observer] = observers;
    const all = { childList: true, subtree: true };
    const everywhere = [
      [tree, all],
      ['the document', all],
    ];
    assert.deepEqual(observer.observed, everywhere);
    observer.changed();
    assert.deepEqual([observer.observed, told], [everywhere, []]);
    iframe.dispatchEvent(new Event('load'));
    say('pagehide', { persisted: true });
    say('pagehide', { persisted: false });
    assert.deepEqual(told.splice(0), ['suspect', 'leave true', 'close']);
    hide(true);
    assert.deepEqual(told, []);
    hide(false);
    assert.deepEqual(told.splice(0), ['lost']);
    iframe.contentWindow = null;
    observer.changed();
    await undefined;
    assert.deepEqual([told.splice(0), observer.observed], [['lost'], []]);
    observer.changed();
    unwatch();
    await undefined;
    iframe.dispatchEvent(new Event('load'));
    hide(false);
    assert.deepEqual([told, types(), observer.observed], [[], [], []]);
  });

  test('that is gone before it is watched is lost', async (t) => {
    usePage(t, { MutationObserver: class {} });
    const told = [];
    const iframe = Object.assign(new EventTarget(), { contentWindow: null, ownerDocument: {} });
    const unwatch = watchIframe(iframe, { lost: () => told.push('lost') });
    assert.deepEqual(told, []);
    await undefined;
    assert.deepEqual(told, ['lost']);
    unwatch();
  });

  test('may be watched where there is no page', (t) => {
    usePage(t, { addEventListener: undefined, removeEventListener: undefined });
    watchPage({ leave() {}, close() {} })();
  });
});

describe('a page that embeds this one', () => {
  test('is heard and posted to by its origin, once that is known', (t) => {
    const { post, types } = usePage(t, { location: {} });
    const embedder = windowOf();
    const transport = new EmbedderTransport(embedder);
    const log = listen(transport);
    transport.post('hello', ['moved']);
    post(windowOf(), HERE, 'from another window');
    post(embedder, HERE, 'forged', { isTrusted: false });
    post(embedder, HERE, 1);
    transport.post('x');
    post(embedder, 'https://other.example', 2);
    post(embedder, HERE, 3);
    assert.deepEqual(log, [
      ['message', 1, ['its ports']],
      ['message', 3, ['its ports']],
    ]);
    assert.deepEqual(embedder.posted, [
      ['hello', { targetOrigin: '*', transfer: ['moved'] }],
      ['x', { targetOrigin: HERE, transfer: undefined }],
    ]);
    transport.close();
    transport.post('never');
    assert.deepEqual([embedder.posted.length, types()], [2, []]);
  });

  test('may show its origin, or the browser tells it', (t) => {
    const location = { ancestorOrigins: [HERE, 'https://top.example'] };
    usePage(t, { location });
    for (const [embedder, origin] of [
      [windowOf({ origin: 'https://same.example' }), 'https://same.example'],
      [windowOf(), HERE],
      [windowOf({ origin: OPAQUE }), '*'],
    ]) {
      new EmbedderTransport(embedder).post('x');
      assert.equal(embedder.posted[0][1].targetOrigin, origin);
    }
  });

  test('whose origin may not be read is told by the browser', (t) => {
    usePage(t, { location: { ancestorOrigins: [HERE] } });
    const posted = [];
    const embedder = {
      get origin() {
        throw new Error('of another site');
      },
      postMessage: (_message, { targetOrigin }) => posted.push(targetOrigin),
    };
    new EmbedderTransport(embedder).post('x');
    assert.deepEqual(posted, [HERE]);
  });
});

/** A port, or a worker of a page: who listens, what it was asked. */
const portOf = (more) => {
  const port = Object.assign(new EventTarget(), {
    posted: [],
    postMessage: (message) => port.posted.push(message),
    ...more,
  });
  return port;
};
const say = (target, type, more) => target.dispatchEvent(Object.assign(new Event(type), more));

test('a port may be listened to by who does not ask what cannot be read', () => {
  const port = new EventEmitter();
  const stop = listenToPort(port, { onMessage() {}, onClose() {} });
  port.emit('messageerror', {});
  stop();
  assert.deepEqual(port.eventNames(), []);
});

describe('a worker', () => {
  test('is terminated with its transport if it was made for it, and else left', () => {
    for (const made of [true, false]) {
      const worker = portOf({ terminate: mock.fn() });
      const transport = transportTo(worker, made);
      transport.post(1);
      assert.deepEqual(worker.posted, [1]);
      const log = listen(transport);
      say(worker, 'error', { message: 'no such file' });
      assert.equal(log[0][0], 'closed');
      transport.close();
      assert.equal(worker.terminate.mock.callCount(), made ? 1 : 0);
    }
  });

  test('that others share is reached by its port, which alone is closed', () => {
    for (const made of [true, false]) {
      const port = portOf({ close: mock.fn(), start: mock.fn() });
      const worker = Object.assign(new EventTarget(), { port, terminate: mock.fn() });
      const transport = transportTo(worker, made);
      transport.post(1);
      assert.deepEqual([port.posted, port.start.mock.callCount()], [[1], 1]);
      const log = listen(transport);
      say(worker, 'error', { message: 'no such file' });
      assert.equal(log[0][0], 'closed');
      transport.close();
      assert.equal(port.close.mock.callCount(), made ? 1 : 0);
      assert.equal(worker.terminate.mock.callCount(), 0);
    }
  });

  test('of Node’s may throw to the last: nobody is told', () => {
    const worker = { on: mock.fn(), terminate: () => 'its promise' };
    assert.equal(end(worker), 'its promise');
    const [type, heard] = worker.on.mock.calls[0].arguments;
    assert.deepEqual([type, heard(new Error('late'))], ['error', undefined]);
  });

  test('is not what a port is, nor a transport, which is itself', () => {
    const transport = { post() {} };
    assert.equal(transportTo(transport, true), transport);
    const port = portOf({ close: mock.fn() });
    transportTo(port, true).close();
    assert.equal(port.close.mock.callCount(), 1);
    assert.throws(() => transportTo(undefined, true), TypeError);
  });
});

describe('from inside a worker', () => {
  test('its owner is the scope of a page’s, the port of Node’s, or nobody', (t) => {
    assert.equal(ownerPort(), undefined);
    const { process } = globalThis;
    usePage(t, { DedicatedWorkerGlobalScope: class {} });
    assert.equal(ownerPort(), globalThis);
    globalThis.DedicatedWorkerGlobalScope = undefined;
    for (const [other, port] of [
      [undefined, undefined],
      [{}, undefined],
      [{ getBuiltinModule: () => ({ parentPort: 'its port' }) }, 'its port'],
      [{ getBuiltinModule: () => ({ parentPort: null }) }, undefined],
    ]) {
      globalThis.process = other;
      const found = ownerPort();
      globalThis.process = process;
      assert.equal(found, port);
    }
  });

  test('its owner connects with a message, again after each end, until that is stopped', (t) => {
    const scope = usePage(t, { DedicatedWorkerGlobalScope: class {}, postMessage: mock.fn() });
    const accepted = [];
    const heard = [];
    const stop = listenToOwners(
      (transport) => {
        accepted.push(transport);
        transport.onMessage = (message) => heard.push([accepted.length, message]);
      },
      () => false,
    );
    assert.deepEqual(accepted, []);
    scope.say('message', { data: 'a' });
    scope.say('message', { data: 'b' });
    assert.deepEqual(heard, [
      [1, 'a'],
      [1, 'b'],
    ]);
    accepted[0].close();
    scope.say('message', { data: 'c' });
    assert.deepEqual(heard.at(-1), [2, 'c']);
    stop();
    // What it has accepted goes on, and nothing is accepted after it.
    scope.say('message', { data: 'd' });
    assert.deepEqual(heard.at(-1), [2, 'd']);
    accepted[1].close();
    assert.deepEqual(scope.types(), []);
    assert.equal(accepted.length, 2);
  });

  test('that nobody has connected to stops at once', (t) => {
    const scope = usePage(t, { DedicatedWorkerGlobalScope: class {} });
    const accept = mock.fn();
    const stop = listenToOwners(accept, () => true);
    assert.ok(scope.types().includes('message'));
    stop();
    assert.deepEqual(scope.types(), []);
    assert.equal(accept.mock.callCount(), 0);
  });

  test('is nowhere, outside of one', () => {
    listenToOwners(
      () => assert.fail(),
      () => true,
    )();
  });

  test('a shared one takes each page that connects, while it has room', (t) => {
    const scope = usePage(t, { SharedWorkerGlobalScope: class {} });
    const accepted = [];
    const stop = listenToOwners(
      (transport) => accepted.push(transport),
      () => accepted.length < 1,
    );
    const ports = [1, 2].map(() => portOf({ close: mock.fn() }));
    for (const port of ports) scope.say('connect', { ports: [port] });
    assert.equal(accepted.length, 1);
    assert.deepEqual(
      ports.map(({ close }) => close.mock.callCount()),
      [0, 1],
    );
    accepted[0].post('x');
    assert.deepEqual(ports[0].posted, ['x']);
    stop();
    assert.deepEqual(scope.types(), []);
  });
});

describe('a socket', () => {
  /** A socket that does nothing by itself. */
  const socketOf = (more) => {
    const socket = Object.assign(new EventTarget(), {
      readyState: 1,
      bufferedAmount: 0,
      sent: [],
      send: (text) => void socket.sent.push(text),
      close: mock.fn(),
      ...more,
    });
    return socket;
  };
  const closing = ({ close }) => close.mock.calls.map(({ arguments: given }) => given);
  const lost = async (log) => {
    await microtasks();
    const closed = log.filter(([what]) => what === 'closed');
    assert.equal(closed.length, 1);
    const [, error] = closed[0];
    assert.deepEqual([error.code, error.retryable], ['TRANSPORT_ERROR', true]);
    return error;
  };

  test('is sent text, and what it says is read', () => {
    const socket = socketOf();
    const transport = webSocketTransport(socket);
    const log = listen(transport);
    transport.post({ a: 1 });
    assert.deepEqual(socket.sent, ['{"a":1}']);
    assert.deepEqual(transport.carries, ['liveness', 'streams']);
    say(socket, 'message', { data: '{"b":2}' });
    say(socket, 'message', {
      data: '{"content":"AQI=","encoding":"base64","mimeType":"a/b"}',
    });
    assert.deepEqual(log[0], ['message', { b: 2 }, []]);
    assert.ok(log[1][1].content instanceof ArrayBuffer);
  });

  test('is given what waited for it to open, in order, once', () => {
    const socket = socketOf({ readyState: 0 });
    const transport = webSocketTransport(socket, { maxUnsent: 10 });
    transport.post('one');
    transport.post('two');
    assert.deepEqual(socket.sent, []);
    // Ten characters wait, with their quotes: that is allowed, and one more is not.
    transport.post(1, undefined, 'request');
    assert.throws(() => transport.post(2, undefined, 'request'), {
      code: 'RATE_LIMITED',
      message: 'The other side reads too slowly: 11 bytes wait to be sent',
    });
    socket.readyState = 1;
    transport.post('three');
    assert.deepEqual(socket.sent, []);
    say(socket, 'open');
    assert.deepEqual(socket.sent, ['"one"', '"two"', '1', '"three"']);
    say(socket, 'open');
    transport.post(4, undefined, 'request');
    assert.deepEqual(socket.sent.slice(4), ['4']);
  });

  test('that is read slowly refuses requests, leaves out what may be, and at four times that is given up', async () => {
    const socket = socketOf({ terminate: mock.fn() });
    const transport = webSocketTransport(socket, { maxUnsent: 100 });
    const log = listen(transport);
    socket.bufferedAmount = 100;
    transport.post(1, undefined, 'request');
    transport.post(2, undefined, 'droppable');
    socket.bufferedAmount = 101;
    assert.throws(() => transport.post(3, undefined, 'request'), {
      ...{ code: 'RATE_LIMITED', retryable: true, retryAfter: 1000 },
    });
    transport.post(4, undefined, 'droppable');
    transport.post(5);
    socket.bufferedAmount = 400;
    transport.post(6);
    assert.deepEqual(socket.sent, ['1', '2', '5', '6']);
    assert.deepEqual([closing(socket), socket.terminate.mock.callCount()], [[], 0]);
    socket.bufferedAmount = 401;
    transport.post(7);
    const reason = 'The other side reads too slowly: 401 bytes wait to be sent';
    assert.deepEqual(closing(socket), [[4008, reason]]);
    assert.equal(socket.terminate.mock.callCount(), 1);
    assert.equal(socket.sent.length, 4);
    const error = await lost(log);
    assert.deepEqual([error.message, error.details], [reason, { code: 4008, reason }]);
  });

  test('of a page cannot be terminated', () => {
    const socket = socketOf({ bufferedAmount: 5 });
    webSocketTransport(socket, { maxUnsent: 1 }).post(1);
    assert.equal(closing(socket)[0][0], 4008);
  });

  test('takes no message that is too long, either way', async () => {
    const socket = socketOf();
    const transport = webSocketTransport(socket, { maxLength: 10 });
    const log = listen(transport);
    transport.post('x'.repeat(8));
    assert.throws(() => transport.post('x'.repeat(9)), RangeError);
    say(socket, 'message', { data: `"${'y'.repeat(8)}"` });
    assert.equal(log.length, 1);
    say(socket, 'message', { data: `"${'y'.repeat(9)}"` });
    const reason = 'A message of 11 characters was received; the limit is 10';
    assert.deepEqual(closing(socket), [[4009, reason]]);
    assert.equal((await lost(log)).message, reason);
    assert.equal(log.length, 2);
  });

  test('has limits of its own', async () => {
    const socket = socketOf({ bufferedAmount: 16777216 });
    const transport = webSocketTransport(socket);
    transport.post(1, undefined, 'request');
    socket.bufferedAmount++;
    assert.throws(() => transport.post(1, undefined, 'request'), { code: 'RATE_LIMITED' });
    const text = 'x'.repeat(33554430);
    const log = listen(transport);
    say(socket, 'message', { data: `"${text}"` });
    assert.equal(log.length, 1);
    say(socket, 'message', { data: `"${text}x"` });
    await lost(log);
    const call = { signal: new AbortController().signal, callId: 'c' };
    const store = mock.fn(() => ({ downloadUrl: 'https://store.example/x' }));
    const storing = webSocketTransport(socketOf(), { store });
    const stored = (length) =>
      storing.prepare({ content: new ArrayBuffer(length), mimeType: 'a/b' }, call);
    assert.ok((await stored(10485760)).content);
    assert.equal(store.mock.callCount(), 0);
    assert.ok((await stored(10485761)).downloadUrl);
  });

  test('counts the characters that come before somebody listens', async () => {
    const socket = socketOf();
    const transport = webSocketTransport(socket);
    const data = `"${'x'.repeat(2 ** 24 - 2)}"`;
    say(socket, 'message', { data });
    say(socket, 'message', { data });
    say(socket, 'message', { data: '1' });
    assert.equal(transport.stopped, true);
  });

  test('may say what is no message', () => {
    const socket = socketOf();
    const log = listen(webSocketTransport(socket, { maxLength: 10 }));
    say(socket, 'message', { data: '{' });
    say(socket, 'message', { data: Buffer.alloc(20) });
    assert.deepEqual(
      log.map(([what, { code }]) => [what, code]),
      [
        ['unreadable', 'PARSE_ERROR'],
        ['unreadable', 'PARSE_ERROR'],
      ],
    );
    assert.match(log[0][1].message, /^The message is not JSON: .*JSON/);
    assert.ok(log[0][1].cause instanceof SyntaxError);
    assert.equal(log[1][1].message, 'The message is not JSON: the frame is binary');
  });

  test('that fails or is closed says why, once, and when what was being done is done', async () => {
    const cause = new Error('no route');
    for (const [happens, message, details, from] of [
      [
        ['error', { message: 'refused', error: cause }],
        'The socket failed: refused',
        undefined,
        cause,
      ],
      [['error', {}], 'The socket failed', undefined, undefined],
      [
        ['close', { code: 1006, reason: '' }],
        'The socket was closed: 1006',
        { code: 1006, reason: '' },
      ],
      [
        ['close', { code: 4000, reason: 'enough' }],
        'The socket was closed: 4000 enough',
        { code: 4000, reason: 'enough' },
      ],
    ]) {
      const socket = socketOf();
      const transport = webSocketTransport(socket);
      const log = listen(transport);
      say(socket, ...happens);
      say(socket, 'close', { code: 1000, reason: 'another' });
      assert.deepEqual(log, []);
      const error = await lost(log);
      assert.deepEqual([error.message, error.details, error.cause], [message, details, from]);
      transport.post('never');
      assert.deepEqual(socket.sent, []);
    }
  });

  test('that is closing is sent nothing', async () => {
    const socket = socketOf();
    const transport = webSocketTransport(socket);
    const log = listen(transport);
    socket.readyState = 2;
    transport.post(1);
    assert.equal((await lost(log)).message, 'The socket is closing');
    assert.deepEqual(socket.sent, []);
    for (const readyState of [2, 3]) {
      const dead = listen(webSocketTransport(socketOf({ readyState })));
      const words = 'The socket is closed: each session needs its own socket';
      assert.equal((await lost(dead)).message, words);
    }
  });

  test('is closed with its transport, and then says nothing any more', async () => {
    const socket = socketOf();
    const transport = webSocketTransport(socket);
    const log = listen(transport);
    transport.close();
    assert.deepEqual(closing(socket), [[1000]]);
    transport.post('never');
    say(socket, 'message', { data: '1' });
    say(socket, 'message', { data: 'x'.repeat(2 ** 25 + 1) });
    say(socket, 'close', { code: 1000, reason: '' });
    await microtasks();
    assert.deepEqual([log, socket.sent, closing(socket).length], [[], [], 1]);
  });

  test('is closed when its page goes away', async (t) => {
    const { say: happens, types } = usePage(t);
    const socket = socketOf();
    const transport = webSocketTransport(socket);
    const log = listen(transport);
    happens('pagehide');
    assert.deepEqual(closing(socket), [[1000, 'The page was closed']]);
    assert.equal((await lost(log)).message, 'The page was closed');
    transport.close();
    assert.deepEqual(types(), []);
  });

  test('is made of an address, if there are WebSockets', (t) => {
    const dialled = [];
    usePage(t, {
      WebSocket: class {
        constructor(url) {
          dialled.push(url);
          return socketOf({ readyState: 0 });
        }
      },
    });
    const url = new URL('wss://app.example');
    webSocketTransport('wss://app.example/x');
    webSocketTransport(url);
    assert.deepEqual(dialled, ['wss://app.example/x', url]);
    globalThis.WebSocket = undefined;
    assert.throws(() => webSocketTransport(url), { code: 'NOT_SUPPORTED' });
  });

  test('is opened to the pages of the origins that are named', () => {
    const mayOpen = fromOrigins([HERE, 'https://other.example:444']);
    const asked = [HERE, 'https://other.example:444', 'https://other.example', '', undefined];
    assert.deepEqual(
      asked.map((origin) => mayOpen({ headers: { origin } })),
      [true, true, false, false, false],
    );
  });
});
