// An app in an iframe, as its agent sees it: what is lacking before anything is sent, and what the
// app offers with its answer.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FramedApp } from '../support/page.js';
import { closeAfter } from '../support/pair.js';

/**
 * So many ports to send, each with its other end, which tells when it is closed.
 * @param {number} count
 */
function portsOf(count) {
  return Array.from({ length: count }, () => {
    const { port1, port2 } = new MessageChannel();
    closeAfter(() => port1.close());
    port2.on('message', () => {}); // what is not read keeps a port open
    return { port: port1, other: port2, closed: new Promise((end) => port2.once('close', end)) };
  });
}

describe('an iframe is refused at once that', () => {
  for (const [what, attributes, lacking] of [
    ['may not run scripts', { sandbox: 'allow-same-origin' }, 'allow-scripts'],
    [
      'may not run scripts, whatever its origin',
      { sandbox: 'allow-forms', origin: 'null' },
      'allow-scripts',
    ],
    ['has no origin, though one was named', { sandbox: 'allow-scripts' }, 'allow-same-origin'],
  ])
    test(what, async (t) => {
      const app = new FramedApp(t, attributes);
      await assert.rejects(app.connect(), {
        code: 'INVALID_PARAMS',
        message: new RegExp(`^The iframe's sandbox lacks ${lacking}: add it`),
      });
      assert.deepEqual(app.page.types(), []);
    });

  test('is in no document', async (t) => {
    const app = new FramedApp(t);
    app.iframe.contentWindow = null;
    await assert.rejects(app.connect(), {
      code: 'INVALID_PARAMS',
      message: 'The iframe is not in a document: append it first',
    });
  });
});

describe('an app in an iframe', () => {
  for (const [what, attributes] of [
    ['without a sandbox', {}],
    ['whose sandbox lets it', { sandbox: 'allow-scripts allow-same-origin' }],
  ])
    test(`${what} is spoken to by window messages`, async (t) => {
      const app = new FramedApp(t, attributes);
      const connecting = app.connect();
      await app.answer({});
      const client = await connecting;
      closeAfter(() => client.close());
      assert.deepEqual([client.sessionId, client.features.port], ['s', false]);
      assert.deepEqual(await client.listCapabilities(), [{ name: 'x' }]);
      assert.deepEqual(app.page.types().toSorted(), ['message', 'pagehide']);
      client.close();
      assert.deepEqual(app.page.types(), []);
    });

  test('whose document loads while it is greeted is greeted at once, by the same message', async (t) => {
    const app = new FramedApp(t);
    const sent = [];
    const { postMessage } = app.iframe.contentWindow;
    app.iframe.contentWindow.postMessage = (message) => {
      sent.push(message);
      postMessage(message);
    };
    const connecting = app.connect();
    await app.next();
    const before = sent.length;
    app.iframe.dispatchEvent(new Event('load'));
    assert.equal(sent.length, before + 1);
    const [{ id }] = sent;
    assert.deepEqual([sent.at(-1).type, sent.at(-1).id], ['initialize', id]);
    const about = { app: { id: 'a.b', name: 'A', version: '1' }, sessionId: 's', features: {} };
    app.say({ type: 'initialize-result', id, payload: { ...about, capabilities: [] } });
    const client = await connecting;
    closeAfter(() => client.close());
    const after = sent.length;
    app.iframe.dispatchEvent(new Event('load'));
    assert.deepEqual(
      sent.slice(after).filter(({ type }) => type === 'initialize'),
      [],
    );
  });

  test('that only looks like one, without attributes, has no sandbox', async (t) => {
    const app = new FramedApp(t);
    delete app.iframe.getAttribute;
    const connecting = app.connect();
    await app.answer({});
    const client = await connecting;
    closeAfter(() => client.close());
    assert.equal(client.connected, true);
  });

  test('that offers a port is spoken to by that alone', async (t) => {
    const app = new FramedApp(t);
    const [{ port, other }] = portsOf(1);
    const connecting = app.connect();
    await app.answer({ 'bridge.port': true }, [port]);
    const client = await connecting;
    closeAfter(() => client.close());
    assert.equal(client.features.port, true);
    assert.deepEqual(app.page.types(), ['pagehide']);
    const heard = new Promise((resolve) => other.once('message', resolve));
    void client.call('x', {}, { callId: 'c' });
    assert.deepEqual([(await heard).type, (await heard).id], ['capabilities/call', 'c']);
    client.close();
  });

  for (const count of [0, 2])
    test(`that agrees to a port and sends ${count} is refused, and the ports are closed`, async (t) => {
      const app = new FramedApp(t);
      const ports = portsOf(count);
      const connecting = app.connect();
      await app.answer(
        { 'bridge.port': true },
        ports.map(({ port }) => port),
      );
      await assert.rejects(connecting, {
        code: 'TRANSPORT_ERROR',
        message: `The app agreed to a port but sent ${count}`,
      });
      assert.equal((await app.next()).type, 'shutdown');
      await Promise.all(ports.map(({ closed }) => closed));
      assert.deepEqual(app.page.types(), []);
    });

  test('that sends a port without an agreement keeps its session, and the port is closed', async (t) => {
    const app = new FramedApp(t);
    const ports = portsOf(1);
    const connecting = app.connect();
    await app.answer({}, [ports[0].port]);
    const client = await connecting;
    closeAfter(() => client.close());
    await ports[0].closed;
    assert.deepEqual([client.connected, client.features.port], [true, false]);
  });

  test('without an origin must offer a port: nothing else identifies its document', async (t) => {
    const given = { sandbox: 'allow-scripts', origin: 'null' };
    const app = new FramedApp(t, given);
    const connecting = app.connect();
    await app.answer({});
    await assert.rejects(connecting, {
      code: 'NOT_SUPPORTED',
      message: /^A sandboxed app must use a port/,
    });
    const [{ port }] = portsOf(1);
    const again = app.connect();
    await app.answer({ 'bridge.port': true }, [port]);
    const client = await again;
    closeAfter(() => client.close());
    assert.equal(client.connected, true);
  });

  test('is watched as long as its session lasts', async (t) => {
    const app = new FramedApp(t);
    const connecting = app.connect();
    await app.answer({});
    const client = await connecting;
    app.page.say('pagehide', { persisted: false });
    assert.equal((await app.next()).type, 'shutdown');
    assert.equal(client.connected, false);
    assert.deepEqual(app.page.types(), []);
  });
});
