// To whom window messages are posted: what goes to an iframe is read by whatever document is in it
// then. And what is noticed of that document's end. What engines do is in
// tests/browser/frames.test.js.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { useClock } from '../support/clock.js';
import { FramedApp, ORIGIN } from '../support/page.js';
import { closeAfter } from '../support/pair.js';

/**
 * The trees that are observed now; `changed` says that something in them has changed. There is one
 * observer for all frames.
 */
const observed = { roots: [], changed() {} };
class MutationObserver {
  constructor(changed) {
    observed.changed = changed;
  }
  observe(root, options) {
    assert.deepEqual(options, { childList: true, subtree: true });
    observed.roots.push(root);
  }
  disconnect() {
    observed.roots = [];
  }
}

/**
 * An app in an iframe; `posted` has the type of each message that was posted to it, its target and
 * what was moved.
 */
function framed(t, frame) {
  const app = new FramedApp(t, frame, { MutationObserver });
  const posted = [];
  const { contentWindow } = app.iframe;
  const { postMessage } = contentWindow;
  let hello;
  contentWindow.postMessage = (message, { targetOrigin, transfer }) => {
    // It is sent again until it is answered.
    if (message.type === 'initialize' && message.id === hello) return;
    if (message.type === 'initialize') hello = message.id;
    posted.push([message.type, targetOrigin, transfer]);
    postMessage(message);
  };
  return { app, posted };
}

test('a document of an exact origin is posted to there, with what is moved', async (t) => {
  const { app, posted } = framed(t);
  const connecting = app.connect();
  await app.answer({});
  const client = await connecting;
  closeAfter(() => client.close());
  const content = new ArrayBuffer(8);
  void client.call('x', { content }, { transfer: [content] });
  await app.next();
  assert.deepEqual(posted, [
    ['initialize', ORIGIN, undefined],
    ['capabilities/call', ORIGIN, [content]],
  ]);
});

test('a document without an origin is greeted, and nothing else is posted to whoever is there', async (t) => {
  const { app, posted } = framed(t, { sandbox: 'allow-scripts', origin: 'null' });
  const connecting = app.connect();
  await app.answer({});
  await assert.rejects(connecting, { code: 'NOT_SUPPORTED' });
  const { port1, port2 } = new MessageChannel();
  closeAfter(() => port1.close());
  const again = app.connect();
  await app.answer({ 'bridge.port': true }, [port1]);
  const client = await again;
  const heard = new Promise((resolve) => port2.once('message', resolve));
  void client.call('x');
  assert.equal((await heard).type, 'capabilities/call');
  client.close();
  assert.deepEqual(posted, [
    ['initialize', '*', undefined],
    ['initialize', '*', undefined],
  ]);
});

test('a frame that shows a document of the page’s own origin is not greeted before the app is there', async (t) => {
  const clock = useClock(t);
  let origin = 'https://agent.example';
  const { app, posted } = framed(t, {
    shows: {
      get origin() {
        if (origin === ORIGIN) throw new Error('of another site');
        return origin;
      },
    },
  });
  const connecting = app.connect();
  for (let i = 0; i < 20; i++) {
    await new Promise(setImmediate);
    clock.advance(100);
  }
  assert.deepEqual(posted, []);
  origin = ORIGIN;
  app.iframe.dispatchEvent(new Event('load'));
  clock.advance(10_000);
  await app.answer({});
  const client = await connecting;
  closeAfter(() => client.close());
  assert.deepEqual(
    [...new Set(posted.map(([type, target]) => `${type} ${target}`))],
    [`initialize ${ORIGIN}`],
  );
});

describe('a frame whose session lasts', () => {
  const view = new EventTarget();
  const document = { getRootNode: () => document, defaultView: view };
  const tree = { host: { getRootNode: () => document } };
  const hide = (persisted) =>
    view.dispatchEvent(Object.assign(new Event('pagehide'), { persisted }));
  async function open(t) {
    const { app } = framed(t);
    Object.assign(app.iframe, { ownerDocument: document, getRootNode: () => tree });
    const connecting = app.connect();
    await app.answer({ 'bridge.liveness': true });
    const client = await connecting;
    closeAfter(() => client.close());
    const ended = client.call('x').then(({ error }) => error.code);
    await app.next();
    return { app, client, ended };
  }

  test('is looked for in all trees that it is in, until it is over', async (t) => {
    const { client } = await open(t);
    assert.deepEqual(observed.roots, [tree, document]);
    observed.changed();
    assert.deepEqual([observed.roots, client.connected], [[tree, document], true]);
    client.close();
    assert.deepEqual(observed.roots, []);
  });

  for (const [what, happens] of [
    ['that is removed', (iframe) => (iframe.contentWindow = null)],
    ['that is inserted elsewhere', (iframe) => (iframe.contentWindow = {})],
  ]) {
    test(`${what} has lost it`, async (t) => {
      const { app, ended } = await open(t);
      happens(app.iframe);
      observed.changed();
      assert.equal(await ended, 'DISCONNECTED');
    });
  }

  test('in a document that goes before this page has lost it, and not if that may come back', async (t) => {
    const { client, ended } = await open(t);
    hide(true);
    assert.equal(client.connected, true);
    hide(false);
    assert.equal(await ended, 'DISCONNECTED');
  });

  test('that has loaded is asked whether it is the same', async (t) => {
    const { app } = await open(t);
    app.iframe.dispatchEvent(new Event('load'));
    assert.equal((await app.next()).type, 'bridge/ping');
  });
});
