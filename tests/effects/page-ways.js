/** The ways to an app in a page of a real browser. */
import { buildSingles } from '../../scripts/singles.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { sandboxFor } from '../../packages/mcp-apps/tests/support/mcp-apps.js';
import { toldOf } from './calls.js';

const PAGES = '/tests/effects/pages';
/** What a slow machine needs, in ms. */
const LONG = 3_600_000;
const AGENT = { name: 'a', version: '1' };
const CUTS = ['the frame is reloaded', 'the frame is removed', 'the host is reloaded'];

/**
 * @param {object} place
 * @param {import('playwright-core').Browser} place.browser with WebMCP
 * @param {string} place.hostOrigin
 * @param {string} place.appOrigin of another site
 * @param {import('./database.js').Database} place.database
 * @param {Awaited<ReturnType<typeof import('./database-server.js').serveDatabase>>} place.served the same
 * @returns {Promise<Record<string, import('./stops.js').Way>>}
 */
export async function pageWays({ browser, hostOrigin, appOrigin, database, served }) {
  const hostUrl = `${hostOrigin}${PAGES}/host.html`;
  const sandbox = sandboxFor({ appOrigin }, hostOrigin);
  const [host, page] = [await browser.newPage(), await browser.newPage()];
  for (const each of [host, page]) each.setDefaultTimeout(LONG);
  await host.goto(hostUrl);
  const [{ text: script }] = await buildSingles({
    view: new URL('pages/view.js', import.meta.url).pathname,
  });

  /** What pages are told of a session. @param {import('./stops.js').Settings} settings */
  function settingsOf({ name, grace, room, whenReleased }) {
    served.hold(name, whenReleased);
    return { database: served.url, name, limits: { grace, maxConcurrent: room } };
  }
  const appUrl = (settings) =>
    `${appOrigin}${PAGES}/app.html?${encodeURIComponent(JSON.stringify(settings))}`;
  const viewOf = (settings) =>
    `<!doctype html><title>view</title><script>settings = ${JSON.stringify(settings)}</script><script type="module">${script}</script>`;

  /** Calls that a page makes. Those of a page that was reloaded are told nothing. @param {import('playwright-core').Page} on */
  const makeIn = (on, isReloaded) => (plan) =>
    on
      .evaluate((each) => window.make(each), plan)
      .catch((error) => {
        if (!isReloaded()) throw error;
        database.write({ key: plan.key, at: 'told', how: 'unknown' });
        return { success: false, outcome: 'unknown' };
      });

  /** @param {'iframe' | 'view'} way @returns {import('./stops.js').Way} */
  const inFrame = (way) => ({
    costs: 10,
    reports: true,
    waits: way === 'view',
    async open(_handlers, settings) {
      const given = settingsOf(settings);
      await host.waitForFunction(() => window.isReady);
      await host.evaluate(
        ([way, all]) => window.begin(way, all),
        [
          way,
          {
            database: served.url,
            sandbox,
            html: viewOf(given),
            src: appUrl({ ...given, origins: [hostOrigin] }),
          },
        ],
      );
      let isReloaded = false;
      return {
        dies: true,
        make: makeIn(host, () => isReloaded),
        async cut(below) {
          const [how, count] = [CUTS[below(CUTS.length)], below(12)];
          isReloaded = how === 'the host is reloaded';
          const loaded = isReloaded && host.waitForEvent('load');
          await host
            .evaluate((args) => window.cut(...args), [how, count])
            .catch((error) => {
              if (!isReloaded) throw error;
            });
          await loaded;
        },
        async close() {
          await host.waitForFunction(() => window.isReady);
          await host.evaluate(() => window.end());
        },
      };
    },
  });

  /** A page that Playwright drives. @type {import('./stops.js').Way} */
  const driven = {
    costs: 10,
    reports: true,
    async open(_handlers, settings) {
      await page.goto(appUrl({ ...settingsOf(settings), origins: [] }));
      const client = await connectPage(page, {
        agent: AGENT,
        limits: { grace: LONG },
        timeout: LONG,
      });
      return {
        dies: true,
        pace: () => fetch(served.url),
        call: async (name, params, options) => toldOf(await client.call(name, params, options)),
        cut: () => page.reload(),
        close: () => client.close(),
      };
    },
  };

  /** Tools of WebMCP, called by a script of their page. @type {import('./stops.js').Way} */
  const tools = {
    costs: 10,
    reports: true,
    waits: true,
    async open(_handlers, settings) {
      await page.goto(appUrl({ ...settingsOf(settings), origins: [], tools: true }));
      await page.waitForFunction(() => window.isReady);
      let isReloaded = false;
      return {
        dies: true,
        pace: () => fetch(served.url),
        make: makeIn(page, () => isReloaded),
        cut() {
          isReloaded = true;
          return page.reload();
        },
        close() {},
      };
    },
  };

  return {
    'an iframe of another site': inFrame('iframe'),
    'a page that Playwright drives': driven,
    'the view of an MCP App, in a page': inFrame('view'),
    'WebMCP, in a page': tools,
  };
}
