// The extension for the developer tools: Chromium takes it, and its panel shows what a page and its
// frames do. The developer tools themselves are stood in for: what the panel asks them, the
// inspected page answers.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, sites } from '../../../../tests/support/browser.js';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
let site, page, panel;
before(async () => {
  execFileSync('npm', ['run', '--silent', 'extension'], { cwd: root });
  site = await sites();
  const context = await site.browser.newContext();
  page = await context.newPage();
  await page.goto(`${site.hostOrigin}/packages/inspector/tests/browser/pages/inspector.html`);
  await page.waitForFunction(() => window.isReady);
  panel = await context.newPage();
  const frameAt = (url) => page.frames().find((frame) => frame.url() === url);
  await panel.exposeFunction('evaluate', (code, url) =>
    (url ? frameAt(url) : page.mainFrame()).evaluate(code),
  );
  await panel.exposeFunction('resources', () =>
    page.frames().map((frame) => ({ type: 'document', url: frame.url() })),
  );
  await panel.addInitScript(() => {
    const answer = (promise, tell) => promise.then(tell, (error) => tell(undefined, error));
    const inspectedWindow = {
      eval: (code, { frameURL }, tell) => answer(window.evaluate(code, frameURL), tell),
      getResources: (tell) => answer(window.resources(), tell),
    };
    window.chrome = { devtools: { inspectedWindow } };
  });
  await panel.goto(`${site.hostOrigin}/build/extension/panel.html`);
});
after(() => site.close());

const row = (text) => panel.locator('summary', { hasText: text });

test('the panel shows both sides of a page with debug, and nothing of one without', async () => {
  const open = (debug, src) =>
    page.evaluate(
      ([src, origin, debug]) => window.open_(src, origin, { debug }),
      [src, site.appOrigin, debug],
    );
  await open(false, site.appUrl({}));
  await page.evaluate(() => window.client.call('echo', 'unseen'));
  await open(true, site.appUrl({ debug: true }));
  const isFound = () =>
    [...window.__abpDebug].every((found) => window.__abpPanel?.known.has(found.deref()));
  // The page is behind the panel, so that it paints no frames in which to look.
  for (const frame of [page.mainFrame(), page.frames().at(-1)]) {
    await frame.waitForFunction(isFound, undefined, { polling: 50 });
  }
  // A frame that says what is no answer, and then what are no events, costs itself alone.
  for (const lie of [
    '}',
    'null',
    '5,{"type":7}',
    '{"type":"message","time":"x","connection":{}}',
  ]) {
    await page
      .frames()
      .at(-1)
      .evaluate((text) => window.__abpPanel.queue.push(text), lie);
    await page
      .frames()
      .at(-1)
      .waitForFunction(() => !window.__abpPanel.queue.length, undefined, { polling: 50 });
  }
  await page.evaluate(async () => {
    await window.client.call('echo', { bytes: new ArrayBuffer(8), big: 1n });
    await window.client.call('echo', 'x'.repeat(200_000));
    await window.client.call('echo', { text: 'seen' });
  });
  await row('echo: completed').nth(5).waitFor();
  const content = async (at) => {
    await row('echo: call').nth(at).click();
    const opened = panel.locator('abp-inspector details', { has: row('echo: call') }).nth(at);
    return opened.locator('pre').textContent();
  };
  const calls = await row('echo: call').count();
  assert.equal(calls, 6);
  assert.match(await content(calls - 1), /"text": "seen"/);
  assert.match(await content(0), /"bytes": "\(8 bytes\)"/);
  await panel.getByRole('searchbox').fill('unseen');
  await panel.getByText('No message matches.').waitFor();
  await panel.getByRole('searchbox').fill('');
  await panel.getByRole('tab', { name: 'Counters' }).click();
  await panel.locator('abp-inspector dt', { hasText: 'Late' }).waitFor();
});

test('Chromium loads the extension', async () => {
  const browser = await launch({ args: ['--enable-unsafe-extension-debugging'] });
  try {
    const session = await browser.newBrowserCDPSession();
    const { id } = await session.send('Extensions.loadUnpacked', {
      path: `${root}build/extension`,
    });
    assert.match(id, /^[a-p]{32}$/);
  } finally {
    await browser.close();
  }
});
