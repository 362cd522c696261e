// The rules of the protocol in a real browser, to an app in an iframe of another site. Each other
// channel of a page plays one section: Node plays all of them over all transports
// (tests/node/transcripts.test.js).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sites } from '../support/browser.js';
import { remote } from '../support/remote.js';
import { CANCEL_AND_CALL, sections } from '../support/sections.js';

/** Features that are agreed on where an iframe has its best channel. */
const PORT_WITH_FRAMES = { port: true, frames: true };

/** How a section is played, and the features that must be agreed on, lest one test another. */
const OTHER_CHANNELS = [
  {
    name: 'window messages only',
    play: framed({ upgrade: 'none' }),
    agreed: { port: false, frames: false },
  },
  { name: 'port', play: framed({ upgrade: 'port' }), agreed: { port: true, frames: false } },
  { name: 'our agent, plain app', play: framed({ app: 'plain' }) },
  { name: 'plain agent, our app', play: framed({ agent: 'plain' }) },
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
function framed({ agent = 'ours', app = 'ours', upgrade = 'frames' } = {}) {
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

async function playAndCompare(section, play, agreed) {
  const { seen, expected, features } = await play(section);
  assert.deepEqual(seen, expected);
  if (agreed) assert.deepEqual({ ...features, ...agreed }, features);
}

describe('port with frames', () => {
  for (const section of sections())
    test(section.title, () => playAndCompare(section, framed(), PORT_WITH_FRAMES));
});

describe(`other channels: ${CANCEL_AND_CALL}`, () => {
  const section = sections().find(({ title }) => title === CANCEL_AND_CALL);
  for (const { name, play, agreed } of OTHER_CHANNELS)
    test(name, () => playAndCompare(section, play, agreed));
});
