// Apps and agents in windows that opened each other, of two sites: what is told when one goes, and
// where the browser cuts them off.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sites } from '../support/browser.js';

let site, page;
const PAGE = '/tests/browser/pages/windows.html';
/**
 * The address of a page that serves the other one.
 * @param {string} at its origin
 * @param {string} [coop] its policy
 */
const addressOf = (at, coop, more = '') => {
  const other = at === site.hostOrigin ? site.appOrigin : site.hostOrigin;
  const policy = coop ? `&coop=${coop}` : '';
  return `${at}${PAGE}?origin=${encodeURIComponent(other)}${policy}${more}`;
};
before(async () => {
  site = await sites();
});
after(() => site.close());

/** Opens the page, and a window from it. */
async function open({ openerCoop, coop, more, features } = {}) {
  page = await site.browser.newPage();
  await page.goto(addressOf(site.hostOrigin, openerCoop));
  await page.waitForFunction(() => window.isReady);
  const opened = page.context().waitForEvent('page');
  const src = addressOf(site.appOrigin, coop, more);
  await page.evaluate(
    ([url, how]) => void (window.popup = window.open(url, '', how)),
    [src, features],
  );
  return opened;
}
const dial = (from, target, origin, more) =>
  from.evaluate((a) => window.dial(...a), [target, origin, more]);
const isReady = (popup) => popup.waitForFunction(() => window.isReady);
/** Begins a call, and returns its outcome when it has one. */
async function hanging(agent, app) {
  const outcome = agent.evaluate(async () => {
    const response = await window.client.call('hang');
    const { error, metadata } = response;
    // The page that goes says so, which is no response.
    const stray = ['persisted' in response && 'persisted', 'details' in error && 'details'];
    return [error.code, metadata.outcome, ...stray.filter(Boolean)];
  });
  await app.waitForFunction(() => window.calls === 1);
  return { outcome };
}

describe('a window and its opener', () => {
  let popup;
  beforeEach(async () => (popup = await open()));

  test('the app in the popup is called, from before it has loaded', async () => {
    assert.equal((await dial(page, 'popup', site.appOrigin)).port, true);
    const { data } = await page.evaluate(() => window.client.call('echo', { a: 'é' }));
    assert.deepEqual(data, { a: 'é' });
    const cancelled = page.evaluate(async () => {
      const controller = new AbortController();
      const call = window.client.call('hang', {}, controller);
      await window.client.call('echo');
      controller.abort();
      const { cancelled, metadata } = await call;
      return [cancelled, metadata.outcome];
    });
    assert.deepEqual(await cancelled, [true, 'stopped']);
  });

  test('the app in the opener is called by the popup', async () => {
    await isReady(popup);
    assert.equal((await dial(popup, 'opener', site.hostOrigin)).port, true);
    const { data } = await popup.evaluate(() => window.client.call('echo', { a: 1 }));
    assert.deepEqual(data, { a: 1 });
    await page.evaluate(() => (window.calls = 0));
    const { outcome } = await hanging(popup, page);
    await page.goto(`${site.hostOrigin}/tests/browser/pages/blank.html`);
    assert.deepEqual(await outcome, ['DISCONNECTED', 'unknown']);
  });

  for (const upgrade of ['frames', 'none'])
    test(`a popup that is closed in a call: ${upgrade}`, async () => {
      await dial(page, 'popup', site.appOrigin, { upgrade });
      const { outcome } = await hanging(page, popup);
      await popup.close();
      assert.deepEqual(await outcome, ['DISCONNECTED', 'unknown']);
      // Whoever comes back is told why that is of no use.
      const { code, message } = await dial(page, 'popup', site.appOrigin);
      assert.equal(code, 'DISCONNECTED');
      assert.match(message, /was closed, or is cut off/);
    });

  test('a popup that is loaded again', async () => {
    await dial(page, 'popup', site.appOrigin, { reconnect: { delay: 1 } });
    const { outcome } = await hanging(page, popup);
    await popup.reload();
    assert.deepEqual(await outcome, ['DISCONNECTED', 'unknown']);
    await page.waitForFunction(() => window.client.connected);
    const { data } = await page.evaluate(() => window.client.call('echo', 'again'));
    assert.equal(data, 'again');
  });

  test('a popup that goes elsewhere is not spoken to', async () => {
    await dial(page, 'popup', site.appOrigin, { reconnect: { delay: 1 } });
    const { outcome } = await hanging(page, popup);
    await popup.goto(`${site.hostOrigin}${PAGE}?origin=${encodeURIComponent(site.hostOrigin)}`);
    assert.deepEqual(await outcome, ['DISCONNECTED', 'unknown']);
    await isReady(popup);
    const { code } = await dial(page, 'popup', site.appOrigin, { timeout: 500 });
    assert.deepEqual([code, await popup.evaluate(() => window.calls)], ['TIMEOUT', 0]);
  });
});

test('who speaks from another origin than was named is not heard, and the error says so', async () => {
  const popup = await open({ more: '&chats' });
  await isReady(popup);
  const { code, message } = await dial(page, 'popup', 'https://other.example', { timeout: 3000 });
  assert.equal(code, 'TIMEOUT');
  assert.ok(message.includes(`its messages come from ${site.appOrigin}`), message);
});

test('what is no window is refused with words', async () => {
  const popup = await open({ features: 'noopener' });
  await isReady(popup);
  for (const [from, target] of [
    [page, 'popup'],
    [popup, 'opener'],
  ]) {
    const { code, message } = await dial(from, target, site.appOrigin);
    assert.equal(code, 'INVALID_PARAMS');
    assert.match(message, /noopener/);
  }
  for (const channel of ['windowChannel', 'hostChannel']) {
    const thrown = await popup.evaluate(
      ([name, origin]) => {
        try {
          if (name === 'hostChannel') window.CHANNELS[name]({ origins: [origin], host: opener });
          else window.CHANNELS[name](opener, { origin });
        } catch ({ code, message }) {
          return `${code} ${message}`;
        }
      },
      [channel, site.hostOrigin],
    );
    assert.match(thrown, /^INVALID_PARAMS .*noopener/, channel);
  }
});

describe('Cross-Origin-Opener-Policy', () => {
  for (const [openerCoop, coop] of [
    ['same-origin', undefined],
    [undefined, 'same-origin'],
    [undefined, 'same-origin-allow-popups'],
  ])
    test(`${openerCoop} of the opener, ${coop} of the popup: cut off, which both are told`, async () => {
      const popup = await open({ openerCoop, coop });
      const { code, message } = await dial(page, 'popup', site.appOrigin, { timeout: 0 });
      assert.equal(code, 'DISCONNECTED');
      assert.match(message, /Cross-Origin-Opener-Policy/);
      await isReady(popup);
      const other = await dial(popup, 'opener', site.hostOrigin);
      assert.equal(other.code, 'INVALID_PARAMS');
      assert.match(other.message, /Cross-Origin-Opener-Policy/);
    });

  test('same-origin-allow-popups of the opener lets a popup without a policy stay', async () => {
    const popup = await open({ openerCoop: 'same-origin-allow-popups' });
    assert.equal((await dial(page, 'popup', site.appOrigin)).port, true);
    await isReady(popup);
    assert.equal((await dial(popup, 'opener', site.hostOrigin)).port, true);
  });
});

test('a JSON-RPC peer is told that a window has gone, though nothing in it says so', async () => {
  const popup = await open();
  await isReady(popup);
  const closed = page.evaluate((origin) => {
    const channel = window.CHANNELS.windowChannel(window.popup, { origin, loaded: true });
    return new Promise((resolve) => (channel.onClose = ({ message }) => resolve(message)));
  }, site.appOrigin);
  await popup.close();
  assert.match(await closed, /was closed, or is cut off/);
});

test('the same where the opener goes to a page whose policy cuts the popup off', async () => {
  const popup = await open();
  await isReady(popup);
  const closed = popup.evaluate((origin) => {
    const channel = window.CHANNELS.hostChannel({ origins: [origin], host: opener });
    return new Promise((resolve) => (channel.onClose = ({ message }) => resolve(message)));
  }, site.hostOrigin);
  await page.goto(addressOf(site.hostOrigin, 'same-origin'));
  assert.match(await closed, /was closed, or is cut off/);
});
