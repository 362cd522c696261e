// Views and hosts of MCP Apps in React's StrictMode, which mounts everything twice, and in the next
// render after a close.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { sandboxFor } from '../../packages/mcp-apps/tests/support/mcp-apps.js';
import { sites } from '../support/browser.js';

let site, page;
before(async () => {
  site = await sites();
});
after(() => site.close());
beforeEach(async () => {
  page = await site.browser.newPage();
  await page.goto(`${site.hostOrigin}/tests/browser/pages/frameworks/apps.html`);
  await page.waitForFunction(() => window.isReady);
});
afterEach(() => page.close());

/**
 * As React is in development, a view is too large to be one document: its policy lets it load the
 * file.
 */
const show = (view, number = 1) => {
  const src = `${site.appOrigin}/tests/browser/pages/frameworks/views/${view}.js`;
  const html = `<!doctype html><body><script type="module" src="${src}"></script></body>`;
  const sandbox = sandboxFor(site, site.hostOrigin);
  const csp = { resourceDomains: [site.appOrigin] };
  return page.evaluate((props) => window.render(props), { sandbox, html, csp, number });
};
const say = (message) => page.evaluate((m) => window.say(m), message);
const echo = (params) => page.evaluate((p) => window.callEcho(p), params);
const log = () => page.evaluate(() => window.log);
const logged = (...lines) =>
  page.waitForFunction((wanted) => wanted.every((line) => window.log.includes(line)), lines);
const assertQuiet = async () =>
  assert.deepEqual(
    (await log()).filter((line) => /^(error|warn|closed)/.test(line)),
    [],
  );

for (const way of ['signal', 'close']) {
  describe(`a view that ends with its component, by ${way}`, () => {
    test('begins though it is mounted twice, and is told what its call is', async () => {
      await show('view');
      await logged('loaded');
      await say({ render: [way, 1] });
      await logged('begun 1', 'host 1', 'input {"of":1} 1');
      assert.deepEqual(await echo({ a: 1 }), { a: 1 });
      await assertQuiet();
    });

    test('begins though its core is loaded later than its host has answered', async () => {
      const answered = page.evaluate(
        () =>
          new Promise((resolve) =>
            addEventListener('message', ({ data }) => data['abp-bridge'] === 'moved' && resolve()),
          ),
      );
      await page.route('**/dist/*-wasm.js', async (route) => {
        if (route.request().frame() !== page.mainFrame()) await answered;
        await route.continue();
      });
      await show('view');
      await logged('loaded');
      await say({ render: [way, 1] });
      await logged('begun 1', 'host 1', 'input {"of":1} 1');
      assert.deepEqual(await echo({ a: 1 }), { a: 1 });
      await assertQuiet();
    });

    test('begins again in the next render', async () => {
      await show('view');
      await logged('loaded');
      await say({ render: [way, 1] });
      await logged('begun 1', 'host 1');
      assert.deepEqual(await echo({ a: 1 }), { a: 1 });
      await say({ render: [way, 2] });
      await logged('begun 2', 'input {"of":1} 2', 'agent lost');
      assert.deepEqual(await echo({ a: 2 }), { a: 2 });
      await assertQuiet();
    });

    test('may come back later: until then the host’s calls fail', async () => {
      await show('view');
      await logged('loaded');
      await say({ render: [way, 1] });
      await logged('begun 1', 'host 1');
      assert.deepEqual(await echo({ a: 1 }), { a: 1 });
      await say({ render: [way] });
      await logged('agent lost');
      const code = await page.evaluate(() =>
        window.host.callTool('echo', {}).catch((error) => error.code),
      );
      assert.equal(code, 'DISCONNECTED');
      await say({ render: [way, 2] });
      await logged('begun 2');
      assert.deepEqual(await echo({ a: 2 }), { a: 2 });
      await assertQuiet();
    });
  });
}

describe('the hooks of a view', () => {
  test('begin it, follow its host’s theme, tell what its call is, and end it with the component', async () => {
    await show('view');
    await logged('loaded');
    await say({ render: ['hooks', 1] });
    await logged('begun 1', 'host 1', 'theme light', 'input [1,{"of":1}]');
    assert.deepEqual(await echo({ a: 1 }), { a: 1 });
    await page.evaluate(() => window.host.setContext({ theme: 'dark' }));
    await logged('theme dark');
    await say({ render: ['hooks', 2] });
    await logged('agent lost', 'begun 2', 'input [2,{"of":1}]');
    await say({ render: ['hooks'] });
    await page.waitForFunction(() =>
      window.host.callTool('echo', {}).then(
        () => false,
        (error) => error.code === 'DISCONNECTED',
      ),
    );
    assert.deepEqual(
      (await log()).filter((line) => line.startsWith('failed')),
      [],
    );
    await assertQuiet();
  });
});

describe('a view of ext-apps that begins twice', () => {
  test('is answered twice, and has one session', async () => {
    await show('twice');
    await logged('host 1', 'begun 1', 'input {"of":1}');
    assert.deepEqual(await echo({ a: 1 }), { a: 1 });
    await say({ again: true });
    await logged('agent lost', 'again');
    assert.deepEqual(await echo({ a: 2 }), { a: 2 });
    await assertQuiet();
  });
});

describe('a host that ends with its component', () => {
  const begin = async () => {
    await page.evaluate(() => (window.log.length = 0));
    await show('view');
    await logged('loaded');
    await say({ render: ['signal', 1] });
    await logged('begun 1', 'host 1');
  };

  test('shows its view though it is mounted twice, and keeps React’s iframe', async () => {
    await begin();
    assert.deepEqual(await echo({ a: 1 }), { a: 1 });
    await page.evaluate(() => void (window.first = window.frame()));
    await show('view', 2);
    await logged('loaded');
    await page.waitForFunction(() => window.log.filter((line) => line === 'loaded').length === 2);
    await say({ render: ['signal', 2] });
    await logged('begun 2', 'host 2', 'input {"of":2} 2');
    assert.deepEqual(await echo({ a: 2 }), { a: 2 });
    assert.equal(await page.evaluate(() => window.first === window.frame()), true);
    await assertQuiet();
  });

  test('goes with its component, and comes again', async () => {
    await begin();
    await page.evaluate(() => window.render(undefined));
    await page.waitForFunction(() => !window.frame() && window.host.ended);
    await begin();
    assert.deepEqual(await echo({ a: 1 }), { a: 1 });
    await assertQuiet();
  });

  test('that is closed leaves an empty iframe, and removes it where it is asked to', async () => {
    await begin();
    await page.evaluate(() => window.host.close());
    const left = () => page.evaluate(() => window.frame()?.contentDocument?.URL ?? 'none');
    assert.equal(await left(), 'about:blank');
    await show('view', 2);
    await page.waitForFunction(() => window.log.filter((line) => line === 'loaded').length === 2);
    await say({ render: ['signal', 2] });
    await logged('host 2');
    await page.evaluate(() => window.host.close({ remove: true }));
    assert.equal(await left(), 'none');
  });
});
