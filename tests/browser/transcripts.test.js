// The rules of the protocol in a real browser, over every channel: to an app on another site, with
// both sides ours and with plain peers, over WebSockets to and from Node, and to apps in workers.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sites } from '../support/browser.js';
import { remote } from '../support/remote.js';
import { sections } from '../support/sections.js';

/**
 * A line each: how a section is played, and what must have been agreed on, lest one test another.
 */
const CHANNELS = [
  {
    name: 'window messages only',
    play: framed({ upgrade: 'none' }),
    agreed: { port: false, frames: false },
  },
  { name: 'port', play: framed({ upgrade: 'port' }), agreed: { port: true, frames: false } },
  {
    name: 'port with frames',
    play: framed({ upgrade: 'frames' }),
    agreed: { port: true, frames: true },
  },
  { name: 'our agent, plain app', play: framed({ app: 'plain' }), plain: true },
  { name: 'plain agent, our app', play: framed({ agent: 'plain' }), plain: true },
  {
    name: 'WebSocket to an app in Node',
    play: socket('app'),
    agreed: { port: false, frames: false },
  },
  { name: 'WebSocket to an agent in Node', play: socket('agent') },
  { name: 'worker', play: inWorker('Worker'), agreed: { port: false, frames: true } },
  { name: 'shared worker', play: inWorker('SharedWorker'), agreed: { port: false, frames: true } },
];

let site, page, node;
let serial = 0;
before(async () => {
  [site, node] = await Promise.all([sites(), remote()]);
  page = await site.browser.newPage();
  await page.goto(`${site.hostUrl}?dials`);
  await page.waitForFunction(() => window.isReady);
});
after(() => {
  node.close();
  return site.close();
});

/** In an iframe. */
function framed({ agent = 'ours', app = 'ours', upgrade = 'frames' }) {
  return (section) => {
    const src = site.appUrl({ kind: app, limits: section.limits.app, serial: ++serial });
    const options = { src, origin: site.appOrigin, kind: agent, upgrade };
    return page.evaluate(([script, how]) => window.play(script, how), [section, options]);
  };
}

/** With one side in Node. */
function socket(side) {
  return (section) =>
    page.evaluate(
      ([script, how]) => window.playSocket(script, how),
      [section, { url: node.url, serial: ++serial, side }],
    );
}

/** With the app in a worker of the page. */
function inWorker(kind) {
  return (section) =>
    page.evaluate(
      ([script, how]) => window.playWorker(script, how),
      [section, { kind, control: `worker-${++serial}` }],
    );
}

for (const { name, play, agreed, plain } of CHANNELS) {
  describe(name, () => {
    for (const section of sections().filter(({ ours }) => !plain || !ours)) {
      test(section.title, async () => {
        const { seen, expected, features } = await play(section);
        assert.deepEqual(seen, expected);
        if (agreed) assert.deepEqual({ ...features, ...agreed }, features);
      });
    }
  });
}
