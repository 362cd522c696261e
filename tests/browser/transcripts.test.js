// The rules of the protocol in a real browser, across two sites, in every combination of channels and peers.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sites } from '../support/browser.js';
import { sections } from '../support/sections.js';

const MODES = [
  { name: 'window messages only', agent: 'ours', app: 'ours', upgrade: 'none' },
  { name: 'port', agent: 'ours', app: 'ours', upgrade: 'port' },
  { name: 'port with frames', agent: 'ours', app: 'ours', upgrade: 'frames' },
  { name: 'our agent, plain app', agent: 'ours', app: 'plain', upgrade: 'frames' },
  { name: 'plain agent, our app', agent: 'plain', app: 'ours', upgrade: 'frames' },
];
/** What must have been agreed on, lest a combination test another. */
const AGREED = {
  none: { port: false, frames: false },
  port: { port: true, frames: false },
  frames: { port: true, frames: true },
};

let site, page;
before(async () => {
  site = await sites();
  page = await site.browser.newPage();
  await page.goto(site.hostUrl);
  await page.waitForFunction(() => window.isReady);
});
after(() => site.close());

for (const mode of MODES) {
  describe(mode.name, () => {
    const both = mode.agent === 'ours' && mode.app === 'ours';
    let serial = 0;
    for (const section of sections().filter(({ ours }) => both || !ours)) {
      test(section.title, async () => {
        const src = site.appUrl({ kind: mode.app, limits: section.limits.app, serial: ++serial });
        const options = { src, origin: site.appOrigin, kind: mode.agent, upgrade: mode.upgrade };
        const { seen, expected, features } = await page.evaluate(
          ([script, how]) => window.play(script, how),
          [section, options],
        );
        assert.deepEqual(seen, expected);
        if (both) {
          const { port, frames } = features;
          assert.deepEqual({ port, frames }, AGREED[mode.upgrade]);
        }
      });
    }
  });
}
