// The rules of the protocol in a real Chromium, across two sites, in every combination of channels and peers.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { frameAt, sites } from '../support/browser.js';
import { Log, play, sections } from '../support/transcript.js';

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

for (const mode of MODES) {
  describe(mode.name, () => {
    let site, page, log;
    before(async () => {
      site = await sites();
      page = await site.browser.newPage();
      await page.exposeFunction('record', (line) => log.add(line));
      await page.goto(site.hostUrl);
      await page.waitForFunction(() => window.isReady);
    });
    after(() => site.close());

    const both = mode.agent === 'ours' && mode.app === 'ours';
    let serial = 0;
    for (const section of sections().filter(({ ours }) => both || !ours)) {
      test(section.title, async () => {
        log = new Log();
        const src = site.appUrl({ kind: mode.app, limits: section.limits.app, serial: ++serial });
        const features = await page.evaluate((options) => window.open_(options), {
          src,
          origin: site.appOrigin,
          kind: mode.agent,
          upgrade: mode.upgrade,
          limits: section.limits.agent,
        });
        if (both) {
          const { port, frames } = features;
          assert.deepEqual({ port, frames }, AGREED[mode.upgrade]);
        }
        const frame = await frameAt(page, src);
        await play(
          section,
          {
            log,
            do: (side, ...words) =>
              (side === 'agent' ? page : frame).evaluate(
                (all) => void window.driver.do(...all),
                words,
              ),
            settle: () => page.evaluate(() => void window.client.call('barrier')),
          },
          assert,
        );
      });
    }
  });
}
