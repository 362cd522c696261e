// A browser that runs already (--cdp), and a page of it that crashes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { startRaw } from './support/raw-client.js';
import { startSite } from './support/site.js';

let site, browser;
before(async () => {
  site = await startSite();
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    timeout: 300_000, // a busy machine is slow
    args: ['--no-sandbox', '--disable-gpu'],
  });
});
after(async () => {
  await browser.close();
  site.close();
});

const attach = (endpoint = browser.wsEndpoint()) =>
  startRaw(['mcp', site.url(), '--cdp', endpoint]);
const appPages = async () => (await browser.pages()).filter((page) => page.url() === site.url());
/** @param {Awaited<ReturnType<typeof startRaw>>} raw */
async function end(raw) {
  raw.child.stdin.end();
  assert.deepEqual(await raw.closed, [0, null]);
}

test('--cdp takes a tab of a browser that runs, and closes that tab alone', async () => {
  const others = (await browser.pages()).length;
  const endpoint = browser.wsEndpoint();
  // The second finds the browser that the first has left running.
  for (const address of [`http://${new URL(endpoint).host}`, endpoint]) {
    const raw = await attach(address);
    const { result } = await raw.answerTo(raw.call('number_add', { a: 40, b: 2 }));
    assert.equal(result.content[0].text, '42');
    const [page] = await appPages();
    const closed = new Promise((resolve) => page.once('close', resolve));
    await end(raw);
    await closed;
  }
  assert.equal(browser.connected, true);
  assert.equal((await browser.pages()).length, others);
});

for (const [what, take] of Object.entries({
  'a page that crashes': async (page) => {
    const session = await page.createCDPSession();
    // A page that crashes does not answer.
    session.send('Page.crash').catch(() => {});
  },
  'a tab that is closed': (page) => page.close(),
})) {
  test(`${what} in the midst of a call settles it as DISCONNECTED, and is opened again for the next`, async () => {
    const raw = await attach();
    const from = site.lines.length;
    const id = raw.call('work_hang');
    await site.logged(/hang started/, from);
    const [page] = await appPages();
    await take(page);
    const { result } = await raw.answerTo(id);
    assert.match(result.content[0].text, /^DISCONNECTED: /);
    const again = await raw.answerTo(raw.call('number_add', { a: 20, b: 22 }));
    assert.equal(again.result.content[0].text, '42');
    await end(raw);
  });
}

test('a tab that is closed before its app answers is opened again for the same call', async () => {
  // It has an app when it is opened again.
  const script = `if (localStorage.seen) location.replace(${JSON.stringify(site.url())});
    else fetch('/log', { method: 'POST', body: (localStorage.seen = 'seen once') });`;
  const body = `<!doctype html><script>${script}</script>`;
  site.extra.set('/late', { type: 'text/html', body });
  const url = `${site.origin}/late`;
  const raw = await startRaw(['mcp', url, '--cdp', browser.wsEndpoint()]);
  const id = raw.call('number_add', { a: 40, b: 2 });
  await site.logged(/seen once/);
  const page = (await browser.pages()).find((each) => each.url() === url);
  await page.close();
  const { result } = await raw.answerTo(id);
  assert.equal(result.content[0].text, '42');
  await end(raw);
});

test('a browser that does not run is told plainly', async () => {
  const raw = await startRaw(['mcp', site.url(), '--cdp', 'http://127.0.0.1:9']);
  const { error } = await raw.request('tools/list');
  assert.match(error.message, /^No browser answers at .*--remote-debugging-port/);
  await end(raw);
});
