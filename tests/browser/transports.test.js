// The contract of transports between the windows and ports of a page: what
// tests/node/transports.test.js holds in Node.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CONTRACT } from '../contracts/transports.js';
import { sites } from '../support/browser.js';

const END = /^the end of the other side/;
/**
 * The ways of pages/contract.js. Not all of them tell that the other side has gone: that is what
 * the heartbeat is for.
 */
const TRANSPORT_PAIRS = {
  MessageChannel: (rule) => !END.test(rule),
  'an iframe’s window': (rule) => !END.test(rule),
  'a port of an iframe’s document': () => true,
};

let site, page;
before(async () => {
  site = await sites();
  page = await site.browser.newPage();
  await page.goto(`${site.hostUrl}?embeds`);
  await page.waitForFunction(() => window.isReady);
  await page.evaluate(() => import('/tests/browser/pages/contract.js').then(() => true));
});
after(() => site.close());

for (const [way, hasTo] of Object.entries(TRANSPORT_PAIRS)) {
  describe(way, () => {
    for (const rule of Object.keys(CONTRACT).filter(hasTo)) {
      test(rule, async () => {
        const held = ([by, what]) => window.hold(by, what).then(String, String);
        assert.equal(await page.evaluate(held, [way, rule]), 'undefined');
      });
    }
  });
}
