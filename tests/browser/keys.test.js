// Keys in IndexedDB: what a store has to do, and whether work is done twice, or told wrongly, when
// its page is reloaded, its tab closed or its process ended between any two steps.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { launch, serve } from '../support/browser.js';
import { CONTRACT } from '../contracts/key-store.js';

let server, hosts, browser, context;
before(async () => {
  [server, hosts, browser] = await Promise.all([serve(), serve(), launch()]);
  context = await browser.newContext();
  await context.exposeBinding('effect', (_source, order) => void effects.push(order));
  await context.exposeBinding('reached', async (source, point) => {
    const end = points.get(point);
    points.delete(point);
    if (!end) return;
    await end(source);
    await new Promise(() => {}); // it does not go on
  });
});
after(async () => {
  await browser?.close();
  hosts?.close();
  server?.close();
});
const PAGES = 'tests/browser/pages/keys';
/**
 * Of the app's site, so that a browser that blocks storage in frames of other sites gives it some.
 */
const hostOrigin = () => `http://localhost:${hosts.port}`;
const foreignOrigin = () => `http://127.0.0.1:${hosts.port}`;
/** @param {boolean} [forgets] whether its keys are in memory */
const appUrl = (forgets) =>
  `http://localhost:${server.port}/${PAGES}/app.html?${encodeURIComponent(JSON.stringify({ origins: [hostOrigin(), foreignOrigin()], options: { name }, forgets }))}`;

/** What the app has done; and what is done where it reaches a point. */
let effects, points;
let tests = 0;
let name;
beforeEach(() => {
  effects = [];
  points = new Map();
  name = `test ${++tests}`;
});
afterEach(() => Promise.all(context.pages().map((page) => page.close())));

/** A tab with the agent and its app. */
async function tab(options, origin = hostOrigin(), forgets = false) {
  const page = await context.newPage();
  await page.goto(`${origin}/${PAGES}/host.html`);
  await page.waitForFunction(() => window.begin);
  const memory = await page.evaluate(
    ([url, more]) => window.begin(url, more),
    [appUrl(forgets), options],
  );
  const pay = (order, more) =>
    page.evaluate(([params, given]) => window.pay(params, given), [order, more]);
  return { page, memory, pay };
}
const outcomeOf = (response) => (response.success ? 'success' : response.metadata.outcome);

describe('a store in IndexedDB', () => {
  for (const what of Object.keys(CONTRACT)) {
    test(what, async () => {
      const page = await context.newPage();
      await page.goto(appUrl());
      await page.waitForFunction(() => window.contract);
      await page.evaluate((name) => window.contract(name), what);
    });
  }
});

/** How a page ends; each resolves when the page is on its way out. */
const ENDS = {
  'its page is reloaded': ({ frame }) =>
    void frame.evaluate(() => location.reload()).catch(() => {}),
  'its tab is closed': ({ page }) => void page.close(),
  'its process ends': async ({ page }) => {
    const session = await context.newCDPSession(page);
    void session.send('Page.crash').catch(() => {});
  },
};

describe('an app in a page that ends', () => {
  for (const [point, done, told, may = told] of [
    ['before it begins', 1, 'success'],
    ['once it is written that it begins', 0, 'unknown'],
    ['before its effect', 0, 'unknown'],
    ['after its effect', 1, 'unknown'],
    ['once its handler has returned', 1, 'unknown', 'success'],
    ['once it is written what became of it', 1, 'success'],
  ]) {
    for (const [how, end] of Object.entries(ENDS)) {
      test(`${point}, because ${how}: work is done ${done} times, and told: ${told}`, async () => {
        const key = { idempotencyKey: 'pay 17' };
        const first = await tab({ reconnect: { delay: 1 } });
        let ended;
        const over = new Promise((resolve) => (ended = resolve));
        points.set(point, async (source) => {
          await end(source);
          ended();
        });
        const pending = first.pay(17, { ...key, retry: { delay: 1 } }).catch(() => undefined);
        await over;
        let response;
        if (how === 'its page is reloaded') {
          response = await pending;
          assert.deepEqual(await first.page.evaluate(() => window.memory()), first.memory);
        } else {
          const second = await tab();
          assert.deepEqual(second.memory, first.memory);
          response = await second.pay(17, key);
        }
        assert.ok([told, may].includes(outcomeOf(response)), JSON.stringify(response));
        assert.equal(effects.length, done);
        const last = await tab();
        assert.ok([told, may].includes(outcomeOf(await last.pay(17, key))));
        assert.equal(effects.length, done);
      });
    }
  }

  test('and has no store: what may have run is not asked for again', async () => {
    const { page, memory, pay } = await tab({ reconnect: { delay: 1 } }, hostOrigin(), true);
    points.set('after its effect', ENDS['its page is reloaded']);
    const { error, metadata } = await pay(17, { retry: { delay: 1 } });
    assert.deepEqual(
      [error.code, metadata.outcome, error.retryable],
      ['DISCONNECTED', 'unknown', false],
    );
    assert.notEqual((await page.evaluate(() => window.memory())).id, memory.id);
    assert.deepEqual(effects, [17]);
  });

  test('is waited for in another tab as long as it lives', async () => {
    const [one, two] = [await tab(), await tab()];
    assert.deepEqual(one.memory, two.memory);
    let go;
    const held = new Promise((resolve) => (go = resolve));
    let begun;
    const began = new Promise((resolve) => (begun = resolve));
    points.set('after its effect', () => {
      begun();
      return held;
    });
    const key = { idempotencyKey: 'k' };
    void one.pay(1, key).catch(() => {});
    await began;
    const stopped = await two.pay(1, { ...key, timeout: 3000 });
    assert.deepEqual([stopped.error.code, stopped.metadata.outcome], ['TIMEOUT', 'running']);
    const joined = two.pay(1, key);
    await one.page.close();
    go();
    const response = await joined;
    assert.deepEqual([outcomeOf(response), response.error.retryable], ['unknown', false]);
    assert.deepEqual(effects, [1]);
  });

  test('keeps a key for its params: others are refused, after a reload too', async () => {
    const key = { idempotencyKey: 'k' };
    const one = await tab();
    assert.equal(outcomeOf(await one.pay(1, key)), 'success');
    const two = await tab();
    for (const { pay } of [one, two]) {
      const { error, metadata } = await pay(2, key);
      assert.deepEqual([error.code, error.retryable], ['KEY_REUSED', false]);
      assert.equal(metadata.outcome, 'unstarted');
    }
    assert.equal(outcomeOf(await two.pay(1, key)), 'success');
    assert.deepEqual(effects, [1]);
  });

  test('does not begin what cannot be written, and says so', async () => {
    // In frames of other sites this browser gives no storage.
    const { memory, pay } = await tab({}, foreignOrigin());
    assert.equal(memory, undefined);
    const { error, metadata } = await pay(1, { idempotencyKey: 'k' });
    assert.deepEqual([error.code, error.retryable], ['KEYS_UNAVAILABLE', true]);
    assert.equal(metadata.outcome, 'unstarted');
    assert.deepEqual(effects, []);
    assert.equal(outcomeOf(await pay(2)), 'success');
    assert.deepEqual(effects, [2]);
  });

  test('whose store was deleted begins nothing more until it is reloaded', async () => {
    const { page, pay } = await tab();
    assert.equal(outcomeOf(await pay(1, { idempotencyKey: 'a' })), 'success');
    const [, frame] = page.frames();
    await frame.evaluate(
      (name) =>
        new Promise((resolve, reject) => {
          const request = indexedDB.deleteDatabase(name);
          request.onsuccess = resolve;
          request.onerror = reject;
        }),
      name,
    );
    const { error, metadata } = await pay(1, { idempotencyKey: 'a' });
    assert.deepEqual([error.code, metadata.outcome], ['KEYS_UNAVAILABLE', 'unstarted']);
    assert.deepEqual(effects, [1]);
  });
});
