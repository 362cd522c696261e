// Iframes in every place that a page has for them: no call waits for a frame that is gone.
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

/**
 * A plain app says nothing of its end. The iframe of any app is watched in the same way: the others
 * are tried where a plain app cannot be, and once in a tree.
 */
const IN_A_TREE = { 'an open shadow tree': ['goes with its host'] };
const APPS = {
  'a plain app': ['abp', { kind: 'plain' }, HERE],
  'an app': ['abp', {}, { ...IN_A_TREE, ...ELSEWHERE }],
  'a JSON-RPC app': [
    'rpc',
    { kind: 'json-rpc' },
    { ...IN_A_TREE, 'another frame of this origin': ['goes with that frame'] },
  ],
};

for (const [app, [way, appOptions, places]] of Object.entries(APPS)) {
  describe(`the frame of ${app} whose call is under way`, () => {
    for (const [place, endings] of Object.entries(places)) {
      for (const how of endings) {
        test(`in ${place} ${how}: the call ends`, async () => {
          const src = site.appUrl(appOptions);
          await page.evaluate((o) => window.put(o), { src, place, way, origin: site.appOrigin });
          const outcome = await page.evaluate((how) => window.end(how), how);
          assert.deepEqual(outcome, [way === 'rpc' ? -32000 : 'DISCONNECTED', 'unknown']);
        });
      }
    }
  });
}

for (const name of ['form', 'iframe', 'img'])
  test(`in a page whose document has a ${name} that is called host, frames are watched as elsewhere`, async () => {
    const src = site.appUrl({});
    const outcome = await page.evaluate(
      async ({ name, src, origin }) => {
        // Documents have their named elements as properties.
        document.body.append(Object.assign(document.createElement(name), { name: 'host' }));
        if (!document.host) return 'it is no property';
        await window.put({ src, place: 'the page', way: 'abp', origin });
        return window.end('is removed');
      },
      { name, src, origin: site.appOrigin },
    );
    assert.deepEqual(outcome, ['DISCONNECTED', 'unknown']);
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
