// Iframes wherever a page may have them, and what becomes of them: no call waits for a frame that
// is gone.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { ENGINE, sites } from '../support/browser.js';

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

/** What an app may be that says nothing of its end, and one that does. */
const APPS = {
  'a plain app': ['abp', { kind: 'plain' }],
  'an app': ['abp', {}],
  'a JSON-RPC app': ['rpc', { kind: 'json-rpc' }],
};
const HERE = {
  'an open shadow tree': [
    'is removed',
    'is written over',
    'goes with its host',
    'is put elsewhere in its tree',
    'is taken out and put back at once',
    'goes with its host into a fragment',
  ],
  'a closed shadow tree': ['is removed', 'is written over', 'goes with its host'],
  'a shadow tree within others': [
    'is removed',
    'goes with the inner host',
    'goes with the middle host',
    'goes with the outer host',
  ],
  'a slot': [
    'is removed',
    'goes with the element that has the slot',
    'goes with the tree around that',
  ],
  'the page': [
    'is removed',
    'moves into a shadow tree',
    'is adopted by a document without a window',
  ],
};
/** There it is not this page that embeds the app, so a plain one does not listen to it. */
const ELSEWHERE = {
  'another frame of this origin': [
    'is removed',
    'goes with that frame',
    'goes with the document of that frame',
    'is adopted by this document',
    'is written over with its document',
  ],
  'a frame within a frame of this origin': ['goes with the outer one'],
  // The drivers of the others do not let a page open one.
  ...(ENGINE === 'chromium' && { 'another window': ['is removed', 'goes with that window'] }),
};

for (const [app, [way, appOptions]] of Object.entries(APPS)) {
  describe(`the frame of ${app} whose call is under way`, () => {
    const places = { ...HERE, ...(appOptions.kind !== 'plain' && ELSEWHERE) };
    for (const [place, endings] of Object.entries(places)) {
      for (const how of endings) {
        test(`in ${place} ${how}: the call ends`, async () => {
          const src = site.appUrl(appOptions);
          await page.evaluate((o) => window.put(o), { src, place, way, origin: site.appOrigin });
          const told = await page.evaluate((how) => window.end(how), how);
          assert.deepEqual(told, [way === 'rpc' ? -32000 : 'DISCONNECTED', 'unknown']);
        });
      }
    }
  });
}

for (const name of ['form', 'iframe', 'img'])
  test(`in a page whose document has a ${name} that is called host, frames are watched as elsewhere`, async () => {
    const src = site.appUrl({});
    const told = await page.evaluate(
      async ({ name, src, origin }) => {
        // Documents have their named elements as properties.
        document.body.append(Object.assign(document.createElement(name), { name: 'host' }));
        if (!document.host) return 'it is no property';
        await window.put({ src, place: 'the page', way: 'abp', origin });
        return window.end('is removed');
      },
      { name, src, origin: site.appOrigin },
    );
    assert.deepEqual(told, ['DISCONNECTED', 'unknown']);
  });

// Only there a frame can move without losing its document.
if (ENGINE !== 'webkit') {
  test('a frame that is carried to another tree with its document keeps its call, and is watched there', async () => {
    const src = site.appUrl({ kind: 'plain' });
    await page.evaluate((o) => window.put(o), {
      src,
      place: 'the page',
      way: 'abp',
      origin: site.appOrigin,
    });
    const carriesTrees = ENGINE === 'chromium';
    const outcome = await page.evaluate(async (carriesTrees) => {
      const { iframe, client } = window.kept;
      const trees = ['open', 'closed'].map((mode) => window.shadowIn(document.body, mode));
      const echoes = [];
      for (const { root } of trees) {
        root.moveBefore(iframe, null);
        echoes.push((await client.call('echo', 'here')).data);
      }
      // The tree itself, with its host: Firefox loads the frame anew then.
      if (carriesTrees) {
        trees[0].root.moveBefore(trees[1].host, null);
        echoes.push((await client.call('echo', 'here')).data);
      }
      const end = carriesTrees ? trees[0] : trees[1];
      end.root.innerHTML = '';
      return [...echoes, await window.kept.pending];
    }, carriesTrees);
    const echoes = carriesTrees ? ['here', 'here', 'here'] : ['here', 'here'];
    assert.deepEqual(outcome, [...echoes, ['DISCONNECTED', 'unknown']]);
  });
}

test('a hundred frames are one observer of the page, which ends with the last of them', async () => {
  const src = site.appUrl({ kind: 'plain' });
  const outcome = await page.evaluate(
    async ({ src, origin }) => {
      const { observe, disconnect } = MutationObserver.prototype;
      const observed = new Map();
      MutationObserver.prototype.observe = function (node, options) {
        observed.set(this, (observed.get(this) ?? new Set()).add(node));
        return observe.call(this, node, options);
      };
      MutationObserver.prototype.disconnect = function () {
        observed.delete(this);
        return disconnect.call(this);
      };
      const { root } = window.shadowIn(document.body);
      const lost = [];
      // One document, which is quick: what is counted is in this page.
      const iframe = document.createElement('iframe');
      iframe.src = src;
      root.append(iframe);
      const channels = Array.from({ length: 100 }, (_, i) => {
        const channel = window.windowChannel(iframe, { origin });
        channel.onClose = () => lost.push(i);
        return channel;
      });
      const counts = () => [...observed.values()].map((nodes) => nodes.size);
      const all = counts();
      for (const channel of channels.splice(1)) channel.close();
      const one = counts();
      channels[0].close();
      const none = counts();
      Object.assign(MutationObserver.prototype, { observe, disconnect });
      return { all, one, none, lost };
    },
    { src, origin: site.appOrigin },
  );
  assert.deepEqual(outcome, { all: [2], one: [2], none: [], lost: [] });
});

describe('a frame that comes back, to a client that reconnects by itself', () => {
  const LONG = 1e8; // ms that no test waits for
  const keep = (options = {}, appOptions = {}) =>
    page.evaluate((o) => window.keep(o), {
      src: site.appUrl(appOptions),
      origin: site.appOrigin,
      ...options,
    });
  const told = async (count) => {
    await page.waitForFunction((count) => window.kept.told.length >= count, count);
    return page.evaluate(() => window.kept.told);
  };
  const echo = async () =>
    (await page.evaluate(() => window.kept.client.call('echo', 'there'))).data;

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
  const KINDS = {
    'an app': [{}, {}],
    'a plain app': [{}, { kind: 'plain' }],
    'a sandboxed app': [{ origin: 'null', attributes: { sandbox: 'allow-scripts' } }, {}],
  };
  for (const [kind, [options, appOptions]] of Object.entries(KINDS)) {
    for (const [how, move] of Object.entries(MOVES)) {
      test(`${how}, of ${kind}: the session begins again`, async () => {
        await keep(options, appOptions);
        await page.evaluate(move);
        await page.waitForFunction(() => window.kept.told.includes('again'));
        await page.waitForFunction(
          () => window.kept.client.connected && window.kept.told.at(-1) === 'again',
        );
        const said = await page.evaluate(() => window.kept.told);
        assert.deepEqual(new Set(said), new Set(['DISCONNECTED', 'again']));
        assert.equal(await echo(), 'there');
      });
    }
  }

  for (const [kind, appOptions] of [
    ['an app', {}],
    ['a plain app', { kind: 'plain' }],
  ])
    test(`again and again, of ${kind}: it is asked as soon as it has loaded, however short its sessions were`, async () => {
      await keep({ reconnect: { delay: LONG, maxDelay: LONG } }, appOptions);
      for (const count of [2, 4, 6]) {
        await page.evaluate(() => window.takeOut(1));
        await told(count);
      }
      assert.deepEqual(await told(6), Array(3).fill(['DISCONNECTED', 'again']).flat());
      assert.equal(await echo(), 'there');
    });

  test('when the client has given up already: what waited for it was told, and it begins again all the same', async () => {
    await keep({ timeout: 2000 });
    await page.evaluate(() => {
      window.kept.pending = window.kept.client.call('hang', {}, { retry: true });
      window.kept.later = window.kept.client.outcome('nothing', { settled: true });
      window.takeOut();
    });
    const { error, metadata } = await page.evaluate(() => window.kept.pending);
    assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unknown']);
    assert.deepEqual(await page.evaluate(() => window.kept.later), { outcome: 'unknown' });
    const [, why] = await told(2);
    assert.equal(
      why,
      'INVALID_PARAMS: The iframe is not in a document: append it first (given up: it was waited for 2000 ms)',
    );
    await page.evaluate(() => window.takeOut(1));
    assert.equal((await told(3))[2], 'again');
    assert.equal(await echo(), 'there');
  });

  test('after the client was closed: nothing begins', async () => {
    await keep();
    await page.evaluate(() => {
      window.takeOut();
      return new Promise((resolve) => setTimeout(resolve, 1)).then(() =>
        window.kept.client.close(),
      );
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

  test('from another site: it is asked as soon as it has loaded, however long the pause is', async () => {
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
    assert.deepEqual(await told(2), ['DISCONNECTED', 'again']);
    assert.equal(await echo(), 'there');
  });

  // Engines differ in whether such a frame waits until it is seen. Either way it is asked when it
  // has loaded.
  test('out of view, where it loads lazily', async () => {
    const lazy = { attributes: { loading: 'lazy' }, timeout: 2000 };
    await keep({ ...lazy, reconnect: { delay: LONG, maxDelay: LONG } });
    await page.evaluate(() => {
      const gap = document.createElement('div');
      gap.style.height = '50000px';
      document.body.append(gap, window.kept.iframe);
    });
    await told(1);
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 3000)).then(() => {}));
    await page.evaluate(() => window.kept.iframe.scrollIntoView());
    assert.deepEqual(await told(2), ['DISCONNECTED', 'again']);
    assert.equal(await echo(), 'there');
  });

  for (const [reload, reloads] of [
    [true, []],
    ['the test', [true, true]],
  ]) {
    test(`whose document is loaded again where that is asked for (${reload})`, async () => {
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
    test(`or not, since what is to do that ${reload}: nothing is told that was not done`, async () => {
      await keep({ timeout: 1000, reconnect: { reload, attempts: 3, delay: 1 } });
      const blank = `${site.appOrigin}/tests/browser/pages/blank.html`;
      await page.frames()[1].evaluate((url) => void (location.href = url), blank);
      const [, why] = await told(2);
      assert.match(why, /^TIMEOUT: .* \(given up: 3 attempts were made\)$/);
    });

  test('or not: it is given up with words, until it has loaded a document again', async () => {
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
      const [, why] = await told(2);
      assert.match(
        why,
        /^TIMEOUT: The app did not answer .* \(given up: 3 attempts were made, its document was loaded again 2 times\)$/,
      );
    } finally {
      release();
    }
    assert.equal((await told(3))[2], 'again');
    assert.equal(await echo(), 'there');
  });
});
