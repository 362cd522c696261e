// The entries for React, Vue and Svelte, in components of each: the same tests for all.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sites } from '../support/browser.js';

let site, page;
before(async () => {
  site = await sites();
  page = await site.browser.newPage();
});
after(() => site.close());

for (const framework of ['react', 'vue', 'svelte']) {
  describe(framework, () => {
    const mount = async (name, origin = site.appOrigin, options = {}) => {
      await page.goto(`${site.hostOrigin}/tests/browser/pages/frameworks/page.html?${framework}`);
      await page.waitForFunction(() => window.isReady);
      const { late, ...more } = options;
      // One that was not loaded before comes from the server.
      const src = site.appUrl({ ...(late && { late: framework }) });
      const props = { src, origin, name, options: more };
      await page.evaluate((props) => window.mount(props), props);
    };
    const hasStatus = (status) =>
      page.waitForFunction(
        (status) => document.querySelector('#status').textContent === status,
        status,
      );
    const app = () => page.frames()[1];
    const press = (id) => page.evaluate((id) => document.querySelector(id).click(), `#${id}`);
    /** The state of the call, once it has settled. */
    const settled = async () => {
      const read = () => {
        const state = JSON.parse(document.querySelector('#call-state').textContent);
        return !state.pending && state.response && state;
      };
      await page.waitForFunction(read);
      return page.evaluate(read);
    };

    test('connects when the iframe is there, calls, and shows what came of it', async () => {
      await mount('echo');
      await hasStatus('connected');
      await press('call');
      const { response } = await settled();
      assert.deepEqual([response.success, response.data], [true, { n: 1 }]);
      await app().evaluate(() => window.exposed.notify('saved'));
      await page.waitForFunction(() => window.events?.length === 1);
    });

    test('cancels by its own cancel, and by another call', async () => {
      await mount('hang');
      await hasStatus('connected');
      await press('call');
      await app().waitForFunction(() => window.calls === 1);
      await press('call');
      await app().waitForFunction(() => window.calls === 2);
      await app().waitForFunction(() => window.aborted?.length === 1);
      await press('cancel');
      const { response } = await settled();
      assert.deepEqual([response.cancelled, response.error.message], [true, 'the button']);
      const reasons = await app().evaluate(() => window.aborted);
      assert.deepEqual(reasons, ['A newer call replaced it', 'the button']);
    });

    test('cancels when the component of the call goes', async () => {
      await mount('hang');
      await hasStatus('connected');
      await press('call');
      await app().waitForFunction(() => window.calls === 1);
      await page.evaluate(() => window.toggle());
      await app().waitForFunction(() => window.aborted?.length === 1);
      assert.deepEqual(await app().evaluate(() => window.aborted), ['The component was unmounted']);
      assert.equal(await page.evaluate(() => window.client.connected), true);
    });

    test('closes when the component of the connection goes', async () => {
      await mount('echo');
      await hasStatus('connected');
      await page.evaluate(() => {
        const { client } = window;
        window.unmount();
        window.kept = client;
      });
      await page.waitForFunction(() => !window.kept.connected);
      const { error } = await page.evaluate(() => window.kept.call('echo', 1));
      assert.match(error.message, /The client was closed/);
    });

    test('connects again when the frame is reloaded', async () => {
      await mount('echo');
      await hasStatus('connected');
      const before = await page.evaluate(() => window.client.sessionId);
      await app().evaluate(() => void location.reload());
      await page.waitForFunction(
        (before) =>
          window.client.sessionId !== before &&
          document.querySelector('#status').textContent === 'connected',
        before,
      );
      await press('call');
      assert.equal((await settled()).response.success, true);
    });

    test('connects when the frame comes late, and again when it was away', async () => {
      const release = site.hold('/tests/browser/pages/app.html');
      try {
        await mount('echo', site.appOrigin, { timeout: 2000, late: true });
        await hasStatus('connecting');
        // The first session has not come in time, which is said, and waited for.
        await page.waitForFunction(
          () => document.querySelector('#error').textContent === 'TIMEOUT',
        );
        await hasStatus('connecting');
      } finally {
        release();
      }
      await hasStatus('connected');
      await press('call');
      assert.equal((await settled()).response.success, true);

      // Somebody takes the frame out and puts it back, as what drags a panel does.
      await page.evaluate(() => {
        const status = () => document.querySelector('#status').textContent;
        window.seen = new Set();
        new MutationObserver(() => window.seen.add(status())).observe(document, {
          subtree: true,
          childList: true,
          characterData: true,
        });
        const iframe = document.querySelector('iframe');
        const { parentNode, nextSibling } = iframe;
        iframe.remove();
        setTimeout(() => parentNode.insertBefore(iframe, nextSibling), 300);
      });
      await page.waitForFunction(() => window.seen.has('reconnecting'));
      await hasStatus('connected');

      // And for so long that the client gives up.
      await page.evaluate(() => {
        const iframe = document.querySelector('iframe');
        const { parentNode, nextSibling } = iframe;
        window.back = () => parentNode.insertBefore(iframe, nextSibling);
        iframe.remove();
      });
      await hasStatus('failed');
      await page.evaluate(() => void window.back());
      await hasStatus('connected');
      assert.equal(await page.evaluate(() => document.querySelector('#error').textContent), '');
      await press('call');
      assert.equal((await settled()).response.success, true);
    });

    if (framework !== 'svelte') {
      test('connects again when its component is hidden, and shown again', async () => {
        await mount('echo');
        await hasStatus('connected');
        const before = await page.evaluate(() => window.client.sessionId);
        await page.evaluate(() => void window.show(false));
        await page.waitForFunction(() => !document.querySelector('iframe')?.checkVisibility());
        await page.evaluate(() => void window.show(true));
        await page.waitForFunction(
          (before) =>
            window.client?.sessionId !== before &&
            document.querySelector('#status')?.textContent === 'connected',
          before,
        );
        await press('call');
        assert.equal((await settled()).response.success, true);
      });
    }

    test('says what keeps it from connecting, and answers calls all the same', async () => {
      await mount('echo', '*');
      await hasStatus('failed');
      assert.equal(
        await page.evaluate(() => document.querySelector('#error').textContent),
        'INVALID_PARAMS',
      );
      await press('call');
      assert.equal((await settled()).response.error.code, 'NOT_INITIALIZED');
    });
  });
}
