// Two copies of the library in one page, in bundles of their own, as two teams would ship them: no
// call is answered twice.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { sites } from '../support/browser.js';

let site, page, frame, bundle;
before(async () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const { outputFiles } = await build({
    stdin: {
      contents: `export * from './parts/main/index.js'; export * from './packages/rpc/src/index.js';`,
      resolveDir: root,
    },
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'copy',
    define: { 'import.meta.url': 'document.baseURI' },
    external: ['node:*'],
    logLevel: 'error',
  });
  [{ text: bundle }] = outputFiles;
  site = await sites();
});
after(() => site.close());

const open = (options = {}) =>
  page.evaluate((o) => window.open_(o), {
    src: site.appUrl({}),
    origin: site.appOrigin,
    ...options,
  });
const call = (...args) =>
  page.evaluate(async (args) => {
    const { success, data, error } = await window.client.call(...args);
    return success ? data : error.code;
  }, args);
/**
 * Exposes an app by the second copy, whose calls say so.
 * @returns the code of the error that refuses it
 */
const exposeCopy = (origin) =>
  frame.evaluate((origin) => {
    try {
      window.second = window.copy.expose(
        {
          app: { id: 'second.app', name: 'Second', version: '1' },
          capabilities: { second: () => 'second' },
        },
        { origins: [origin] },
      );
    } catch (error) {
      return `${error.name} ${error.code}`;
    }
  }, origin);
/** Opens the app, loads the second copy there, and waits until both can answer. */
beforeEach(async () => {
  page ??= await site.browser.newPage();
  await page.goto(site.hostUrl);
  await page.waitForFunction(() => window.isReady);
  await open({ upgrade: 'none' });
  frame = page.frames()[1];
  await frame.evaluate((text) => {
    const script = document.createElement('script');
    script.textContent = text;
    document.head.append(script);
  }, bundle);
  await frame.waitForFunction(() => window.copy);
  // That there are two, and that each keeps its own to itself.
  assert.equal(await frame.evaluate(() => window.exposed instanceof window.copy.Exposed), false);
});

describe('an app of a second copy of the library', () => {
  test('is refused where the first one serves the origin: the call is answered once, by the first', async () => {
    assert.equal(await exposeCopy(site.hostOrigin), 'AbpError ALREADY_INITIALIZED');
    assert.equal(await call('echo', 'first'), 'first');
    assert.equal(await call('second'), 'UNKNOWN_CAPABILITY');
    await open({ upgrade: 'none' }).then(() => (frame = page.frames()[1]));
    assert.equal(await call('echo', 'again'), 'again');
  });

  test('serves another origin', async () => {
    assert.equal(await exposeCopy('https://another.example'), undefined);
    assert.equal(await call('echo', 'first'), 'first');
    // And none of its own twice.
    assert.equal(await exposeCopy('https://another.example'), 'AbpError ALREADY_INITIALIZED');
  });

  test('takes the origin once the first has closed, and gives it back', async () => {
    await frame.evaluate(() => window.exposed.close());
    assert.equal(await exposeCopy(site.hostOrigin), undefined);
    await frame.evaluate(() => window.second.ready);
    // What the first one had answered for agents that do not know that it was closed is the second
    // one's to say.
    const told = await page.evaluate(async () => {
      window.heardTypes = [];
      addEventListener('message', ({ data }) => window.heardTypes.push(data.type));
      const { error } = await window.client.call('echo', 1);
      await window.client.reconnect();
      return [error.code, window.heardTypes];
    });
    assert.deepEqual(told, ['NOT_INITIALIZED', ['capabilities/call-result', 'initialize-result']]);
    assert.equal(await call('second'), 'second');
    assert.equal(await frame.evaluate(() => window.abp === window.second.abp), true);
    await page.evaluate(() => window.client.close());
    const outcome = await frame.evaluate((origin) => {
      const again = () => window.expose_(origin);
      try {
        again();
      } catch (error) {
        window.second.close();
        window.third = again();
        return error.code;
      }
    }, site.hostOrigin);
    assert.equal(outcome, 'ALREADY_INITIALIZED');
    await page.evaluate(() => window.client.reconnect());
    assert.equal(await call('second'), 'UNKNOWN_CAPABILITY');
  });

  test('leaves no trace that a page lists or that a script can replace', async () => {
    const listed = await frame.evaluate(() => {
      const key = Symbol.for('abp-bridge.served');
      const { enumerable, writable, configurable } = Object.getOwnPropertyDescriptor(window, key);
      return [enumerable, writable, configurable];
    });
    assert.deepEqual(listed, [false, false, false]);
  });

  test('stands beside a JSON-RPC app of that copy, and beside frames of this one', async () => {
    await frame.evaluate((origin) => {
      const peer = window.copy.createPeer(window.copy.hostChannel({ origins: [origin] }), {
        dialect: 'mcp',
      });
      peer.handle('add', ({ a, b }) => a + b);
      // The page of an app may have frames, whose messages are not its agents'.
      const inner = document.createElement('iframe');
      inner.src = location.href;
      document.body.append(inner);
      return new Promise((resolve) => (inner.onload = resolve)).then(() => {});
    }, site.hostOrigin);
    const sum = await page.evaluate(
      ([origin, text]) => {
        const script = document.createElement('script');
        script.textContent = text;
        document.head.append(script);
        const channel = window.copy.windowChannel(window.iframe, { origin, loaded: true });
        return window.copy.createPeer(channel, { dialect: 'mcp' }).request('add', { a: 1, b: 2 });
      },
      [site.appOrigin, bundle],
    );
    assert.equal(sum, 3);
    assert.equal(await call('echo', 'first'), 'first');
  });
});
