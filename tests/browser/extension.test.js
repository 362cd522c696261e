// Extensions in Chromium whose parts call each other by ports: the one that the documents quote,
// with its worker ended in the midst of a call, and one that says who may connect.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { build } from 'esbuild';
import { ARGS, LONG, executablePath, patient, serve } from '../support/browser.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
let context, cdp, host, app, hostOrigin, appOrigin;

before(async () => {
  [host, app] = await Promise.all([serve(), serve()]);
  [hostOrigin, appOrigin] = [`http://127.0.0.1:${host.port}`, `http://localhost:${app.port}`];
  context = await chromium.launchPersistentContext('', {
    executablePath,
    timeout: LONG,
    ignoreDefaultArgs: ['--disable-extensions'],
    args: [...ARGS, '--enable-unsafe-extension-debugging'],
  });
  patient(context);
  cdp = await context.browser().newBrowserCDPSession();
});
after(async () => {
  await context?.close();
  for (const server of [host, app]) server.close();
});

/** Builds an extension, as its documents say, and has the browser load it. */
async function load(folder, name) {
  const outdir = `${root}build/extensions/${name}`;
  await build({
    entryPoints: [`${root}${folder}/*`],
    loader: { '.html': 'copy', '.json': 'copy' },
    outdir,
    bundle: true,
    minify: true,
    format: 'esm',
    logLevel: 'error',
    define: { 'globalThis.HOST': JSON.stringify(hostOrigin) },
  });
  const { id } = await cdp.send('Extensions.loadUnpacked', { path: outdir });
  const own = `chrome-extension://${id}`;
  const isIts = (url) => url.startsWith(own);
  return {
    id,
    own,
    /** Has the worker that runs evaluate something. */
    async inWorker(act, arg) {
      const isIt = (worker) => isIts(worker.url());
      const worker =
        context.serviceWorkers().find(isIt) ?? (await context.waitForEvent('serviceworker', isIt));
      return worker.evaluate(act, arg);
    },
    async open(url) {
      const page = await context.newPage();
      await page.goto(url);
      return page;
    },
    /** Ends the worker, as the browser does when nothing has happened for a while. */
    async endWorker() {
      const { targetInfos } = await cdp.send('Target.getTargets');
      const isIt = ({ type, url }) => type === 'service_worker' && isIts(url);
      await cdp.send('Target.closeTarget', { targetId: targetInfos.find(isIt).targetId });
    },
  };
}

describe('the example', () => {
  let example, panel;
  before(async () => {
    example = await load('demo/examples/extension', 'example');
    panel = await example.open(`${example.own}/panel.html`);
    // It is connected when its button does something.
    await panel.waitForFunction(() => document.getElementById('count').onclick);
  });
  const said = (text) =>
    panel.waitForFunction((t) => document.getElementById('said').value === t, text);
  /** Begins a call, and returns when it runs. */
  const run = async () => {
    await panel.evaluate(() => (document.getElementById('bar').value = 0));
    await panel.click('#count');
    await panel.waitForFunction(() => document.getElementById('bar').value > 0);
  };

  test('a call is cancelled, and told as stopped', async () => {
    await run();
    await panel.click('#stop');
    await said('Cancelled: stopped');
  });

  test('the worker is ended in a call, whose outcome is unknown; it comes back for the next one', async () => {
    for (let i = 0; i < 2; i++) {
      await run();
      const began = await example.inWorker(() => performance.timeOrigin);
      await example.endWorker();
      await said('DISCONNECTED: unknown');
      await panel.waitForFunction(() => window.worker.connected);
      assert.ok((await example.inWorker(() => performance.timeOrigin)) > began);
      await run();
      await panel.click('#stop');
      await said('Cancelled: stopped');
    }
  });

  test('the app in the page that the user looks at is called', async () => {
    const page = await example.open(`${hostOrigin}/tests/browser/pages/blank.html`);
    await page.evaluate(() => (document.body.textContent = 'three words here'));
    await page.bringToFront();
    await panel.evaluate(() => document.getElementById('words').click());
    await said('3 words');
  });
});

describe('who may connect', () => {
  let extension, page;
  before(async () => {
    extension = await load('tests/browser/extension', 'tests');
    page = await extension.open(`${extension.own}/page.html`);
  });
  test('bytes, Blobs and streams cross, in both directions', async () => {
    const all = await page.evaluate(async () => {
      const client = await window.open_();
      const content = new Uint8Array([1, 2, 255]).buffer;
      const echoed = await client.call('echo', { content, mimeType: 'a/b' });
      const blob = await client.call('blob');
      const chunks = [];
      for await (const chunk of client.stream('count', { to: 100 })) chunks.push(chunk);
      client.close();
      return [
        [...new Uint8Array(echoed.data.content)],
        new TextDecoder().decode(blob.data.content),
        chunks.length,
      ];
    });
    assert.deepEqual(all, [[1, 2, 255], 'é', 100]);
    assert.equal(await extension.inWorker(() => globalThis.sessions.at(-1)), extension.own);
  });

  for (const [who, origin, isLetIn] of [
    ['a page that is named, and its content script', () => hostOrigin, true],
    ['another page, and its content script', () => appOrigin, false],
  ])
    test(`${who}: ${isLetIn ? 'served' : 'refused'}`, async () => {
      const site = await extension.open(`${origin()}/tests/browser/pages/blank.html`);
      await site.waitForFunction(() => document.documentElement.dataset.told);
      const told = await site.evaluate(() => document.documentElement.dataset.told);
      await site.addScriptTag({ path: `${root}build/extensions/tests/page.js`, type: 'module' });
      await site.waitForFunction(() => window.open_);
      const outcome = await site.evaluate(async (id) => {
        const client = await window.open_(id);
        return client.call ? (await client.call('echo', { a: 1 })).data : client;
      }, extension.id);
      if (isLetIn) {
        assert.deepEqual([told, outcome], ['é', { a: 1 }]);
        assert.deepEqual(await extension.inWorker(() => globalThis.sessions.slice(-2)), [
          origin(),
          origin(),
        ]);
      } else {
        assert.match(told, /^DISCONNECTED/);
        assert.equal(outcome.code, 'DISCONNECTED');
      }
    });

  test('the worker calls the app in a page, which knows by whom it is called', async () => {
    const href = `${appOrigin}/tests/browser/pages/blank.html?asked`;
    await extension.open(href);
    const told = await extension.inWorker(async (url) => {
      const tabs = await chrome.tabs.query({});
      for (const { id } of tabs.reverse()) {
        const data = await globalThis.askPage(id).catch(() => undefined);
        if (data?.href === url) return data;
      }
    }, href);
    assert.deepEqual(told.sessions, [extension.own]);
  });

  test('whose port goes is told what became of the call', async () => {
    await page.evaluate(async () => (window.client = await window.open_()));
    const waiting = page.evaluate(() => window.client.call('hang'));
    await page.waitForFunction(() => window.client.counters.inFlightOut === 1);
    await extension.endWorker();
    const { error, metadata } = await waiting;
    assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unknown']);
  });
});
