// A client that reconnects by itself begins a new session when its iframe is shown again, or has
// loaded its document again.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sites } from '../support/browser.js';

let site, page;
before(async () => {
  site = await sites();
});
after(() => site.close());
beforeEach(async () => {
  page ??= await site.browser.newPage();
  await page.goto(`${site.hostOrigin}/tests/browser/pages/frames.html`);
  await page.waitForFunction(() => window.isReady);
});

const LONG = 1e8; // ms that no test waits for
const keep = (options = {}, appOptions = {}) =>
  page.evaluate((o) => window.keep(o), {
    src: site.appUrl(appOptions),
    origin: site.appOrigin,
    ...options,
  });
/** What the client has reported of its sessions, once there are so many reports. */
const reports = async (count) => {
  await page.waitForFunction((count) => window.kept.told.length >= count, count);
  return page.evaluate(() => window.kept.told);
};
const echo = async () => (await page.evaluate(() => window.kept.client.call('echo', 'there'))).data;

const MOVES = {
  'after 300 ms': () => window.takeOut(300),
  'in another tree': () => window.takeOut(1, window.shadowIn(document.body, 'closed').root),
  'in the same turn': () => document.body.append(window.kept.iframe),
  'with the element around it': () => {
    const panel = document.createElement('div');
    document.body.append(panel);
    panel.append(window.kept.iframe);
    panel.remove();
    setTimeout(() => document.body.prepend(panel), 50);
  },
  'and goes again as soon as it has loaded': () => {
    window.kept.iframe.onload = () => {
      window.kept.iframe.onload = null;
      window.takeOut(10);
    };
    window.takeOut(1);
  },
  twice: () => {
    window.takeOut(10);
    setTimeout(() => window.takeOut(10), 20);
  },
};
/** Options of the client and of the app, and the moves that are tried. */
const KINDS = {
  'a plain app': [{}, { kind: 'plain' }, Object.keys(MOVES)],
  'an app': [{}, {}, ['after 300 ms', 'twice']],
  'a sandboxed app': [
    { origin: 'null', attributes: { sandbox: 'allow-scripts' } },
    {},
    ['after 300 ms', 'twice'],
  ],
};
for (const [kind, [options, appOptions, moves]] of Object.entries(KINDS)) {
  for (const how of moves) {
    test(`the frame of ${kind} comes back ${how}: the session begins again`, async () => {
      await keep(options, appOptions);
      await page.evaluate(MOVES[how]);
      await page.waitForFunction(() => window.kept.told.includes('again'));
      await page.waitForFunction(
        () => window.kept.client.connected && window.kept.told.at(-1) === 'again',
      );
      const all = await page.evaluate(() => window.kept.told);
      assert.deepEqual(new Set(all), new Set(['DISCONNECTED', 'again']));
      assert.equal(await echo(), 'there');
    });
  }
}

test('a frame that comes back again and again is asked as soon as it has loaded, however short its sessions were', async () => {
  await keep({ reconnect: { delay: LONG, maxDelay: LONG } });
  for (const count of [2, 4, 6]) {
    await page.evaluate(() => window.takeOut(1));
    await reports(count);
  }
  assert.deepEqual(await reports(6), Array(3).fill(['DISCONNECTED', 'again']).flat());
  assert.equal(await echo(), 'there');
});

test('a frame comes back when its client has given up: what waited was settled, and a session begins', async () => {
  await keep({ timeout: 2000 });
  await page.evaluate(() => {
    window.kept.pending = window.kept.client.call('hang', {}, { retry: true });
    window.kept.later = window.kept.client.outcome('nothing', { settled: true });
    window.takeOut();
  });
  const { error, metadata } = await page.evaluate(() => window.kept.pending);
  assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unknown']);
  assert.deepEqual(await page.evaluate(() => window.kept.later), { outcome: 'unknown' });
  const [, why] = await reports(2);
  assert.equal(
    why,
    'INVALID_PARAMS: The iframe is not in a document: append it first (given up: it was waited for 2000 ms)',
  );
  await page.evaluate(() => window.takeOut(1));
  assert.equal((await reports(3))[2], 'again');
  assert.equal(await echo(), 'there');
});

test('a frame comes back after its client was closed: no session begins', async () => {
  await keep();
  await page.evaluate(() => {
    window.takeOut();
    return new Promise((resolve) => setTimeout(resolve, 1)).then(() => window.kept.client.close());
  });
  await page.evaluate(() =>
    new Promise((resolve) => {
      window.kept.iframe.onload = resolve;
      window.takeOut(1);
    }).then(() => {}),
  );
  // One that asks finds it free.
  const answer = await page.evaluate(async (origin) => {
    const agent = { name: 'other', version: '1' };
    const client = await window.connect(window.kept.iframe, { origin, agent });
    return [(await client.call('echo', 'free')).data, window.kept.told];
  }, site.appOrigin);
  assert.deepEqual(answer, ['free', ['DISCONNECTED']]);
});

test('a document that comes back from another site is asked as soon as it has loaded, however long the pause is', async () => {
  const src = site.appUrl({});
  await keep({ timeout: 3000, reconnect: { delay: LONG, maxDelay: LONG } });
  await page.evaluate((src) => {
    window.kept.iframe.src = src;
  }, `http://other.localhost:${site.appPort}/tests/browser/pages/blank.html`);
  await page.waitForFunction(() => window.kept.told.includes('DISCONNECTED'));
  // By then the attempt that is made at once has failed. If it has not, it finds the app itself,
  // which is as well.
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 4000)).then(() => {}));
  await page.evaluate((src) => {
    window.kept.iframe.src = src;
  }, src);
  assert.deepEqual(await reports(2), ['DISCONNECTED', 'again']);
  assert.equal(await echo(), 'there');
});

// Engines differ in whether such a frame waits until it is seen. Either way it is asked when it
// has loaded.
test('a frame that loads lazily and comes back out of view begins a session when it has loaded', async () => {
  const lazy = { attributes: { loading: 'lazy' }, timeout: 2000 };
  await keep({ ...lazy, reconnect: { delay: LONG, maxDelay: LONG } });
  await page.evaluate(() => {
    const gap = document.createElement('div');
    gap.style.height = '50000px';
    document.body.append(gap, window.kept.iframe);
  });
  await reports(1);
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 3000)).then(() => {}));
  await page.evaluate(() => window.kept.iframe.scrollIntoView());
  assert.deepEqual(await reports(2), ['DISCONNECTED', 'again']);
  assert.equal(await echo(), 'there');
});

for (const [reload, reloads] of [
  [true, []],
  ['the test', [true, true]],
]) {
  test(`a document that went elsewhere is loaded again where the option asks for that (${reload})`, async () => {
    const attempts = reload === true ? undefined : 9;
    await keep({
      src: `${site.appUrl({})}#at/home`,
      timeout: 5000, // a document that is not there by then is loaded anew
      reconnect: { reload, delay: 1, ...(attempts && { attempts }) },
    });
    const elsewhere = `${site.appOrigin}/tests/browser/pages/blank.html`;
    const frame = page.frames()[1];
    await frame.evaluate((url) => void (location.href = url), elsewhere);
    await page.waitForFunction(() => window.kept.told.includes('again'));
    assert.equal(await echo(), 'there');
    const seen = await page.evaluate(() => window.kept.reloads);
    assert.deepEqual(seen.slice(0, reloads.length), reloads.slice(0, seen.length));
    assert.equal(seen.length > 0, reload !== true);
  });
}

for (const reload of ['throws', 'rejects', 'hangs'])
  test(`a function that is to load the document and ${reload} is not counted as a reload`, async () => {
    await keep({ timeout: 1000, reconnect: { reload, attempts: 3, delay: 1 } });
    const blank = `${site.appOrigin}/tests/browser/pages/blank.html`;
    await page.frames()[1].evaluate((url) => void (location.href = url), blank);
    const [, why] = await reports(2);
    assert.match(why, /^TIMEOUT: .* \(given up: 3 attempts were made\)$/);
  });

test('a client that gives up reports its attempts and reloads, and begins again when a document has loaded', async () => {
  await keep({ timeout: 1000, reconnect: { reload: true, attempts: 3, delay: 1 } });
  const release = site.hold('/tests/browser/pages/app.html');
  try {
    await page.evaluate(
      (src) => {
        window.kept.iframe.src = src;
        window.takeOut(1);
      },
      site.appUrl({ again: true }),
    );
    const [, why] = await reports(2);
    assert.match(
      why,
      /^TIMEOUT: The app did not answer .* \(given up: 3 attempts were made, its document was loaded again 2 times\)$/,
    );
  } finally {
    release();
  }
  assert.equal((await reports(3))[2], 'again');
  assert.equal(await echo(), 'there');
});
