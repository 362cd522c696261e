/** The ways to an app in a page of a real browser. */
import { build } from 'esbuild';
import { connectPage } from '../../packages/automation/src/index.js';
import { sandboxFor } from '../../packages/mcp-apps/tests/support/mcp-apps.js';
import { launch, serve } from '../support/browser.js';
import { AGENT, callsBy, onElicitationBy, outcomeTold } from './calls.js';
import { serveDatabase } from './database-server.js';
import { addressWith } from './pages/place.js';

const PAGES = '/tests/effects/pages';
/** What a slow machine needs, in ms. */
const LONG = 3_600_000;
/** How lines are cut. */
const CUTS = {
  iframe: [
    'the frame is reloaded',
    'the frame is removed',
    'what has the frame is removed',
    'the frame is moved',
    'the frame goes elsewhere, and back',
    'the host is reloaded',
  ],
  view: ['the frame is reloaded', 'the frame is removed', 'the host is reloaded'],
  worker: ['the host is reloaded'],
  pool: ['the host is reloaded'],
};

/**
 * Opens a browser with WebMCP, and serves pages.
 * @param {import('./database.js').Database} database
 * @returns {Promise<{ connections: Record<string, import('./stops.js').Connection>, close: ()
 *   => Promise<void> }>}
 */
export async function openPageConnections(database) {
  const browser = await launch({ args: ['--enable-features=WebMCP,WebMCPTesting'] });
  const [ofHost, ofApp, served] = await Promise.all([serve(), serve(), serveDatabase(database)]);
  const hostOrigin = `http://127.0.0.1:${ofHost.port}`;
  const appOrigin = `http://localhost:${ofApp.port}`; // of another site
  const sandbox = sandboxFor({ appOrigin }, hostOrigin);
  const [host, page] = [await browser.newPage(), await browser.newPage()];
  for (const each of [host, page]) each.setDefaultTimeout(LONG);
  await host.goto(`${hostOrigin}${PAGES}/host.html`);
  const { outputFiles } = await build({
    entryPoints: [new URL('pages/view.js', import.meta.url).pathname],
    bundle: true,
    format: 'esm',
    write: false,
  });
  const script = outputFiles[0].text;

  /**
   * What pages are told of a session.
   * @param {import('./stops.js').Settings} settings
   */
  function settingsOf({ name, grace, room, whenReleased }) {
    served.hold(name, whenReleased);
    return { database: served.url, name, limits: { grace, maxConcurrent: room } };
  }
  const appUrl = (settings) => addressWith(`${appOrigin}${PAGES}/app.html`, settings);
  const viewOf = (settings) =>
    `<!doctype html><title>view</title><script>settings = ${JSON.stringify(settings)}</script><script type="module">${script}</script>`;

  /**
   * Calls that a page makes. Those of a page that was reloaded are told nothing.
   * @param {import('playwright-core').Page} on
   */
  const makeIn = (on, isReloaded) => (plan) =>
    on
      .evaluate((each) => window.make(each), plan)
      .catch((error) => {
        if (!isReloaded()) throw error;
        database.write({ key: plan.key, at: 'told', how: 'unknown' });
        return { success: false, outcome: 'unknown' };
      });

  /**
   * @param {'iframe' | 'view' | 'worker' | 'pool'} how
   * @param {Partial<import('./stops.js').Connection>} its
   */
  const inHost = (how, { lacks, ...its }) => ({
    costs: 10,
    reports: true,
    lacks,
    ...its,
    async open(_handlers, settings) {
      const { trouble, returns } = settings;
      const given = settingsOf(settings);
      await host.waitForFunction(() => window.isReady);
      const inShadow = settings.room === 2;
      const all = {
        given,
        returns,
        lacks,
        inShadow,
        sandbox,
        html: viewOf(given),
        src: appUrl({ ...given, origins: [hostOrigin] }),
      };
      await host.evaluate(([way, all]) => window.begin(way, all), [how, all]);
      let isReloaded = false;
      const isCut = trouble === 'the line is cut';
      // A worker is terminated with its session.
      const isLost = isCut || trouble === 'the app closes' || (how === 'worker' && trouble);
      return {
        dies: isLost || returns,
        make: makeIn(host, () => isReloaded),
        // Nobody is there to ask, or to be asked.
        ...(!isLost && {
          ask: (...args) => host.evaluate((args) => window.ask(...args), args),
          again: (...args) => host.evaluate((args) => window.again(...args), args),
          back: () => host.evaluate(() => window.back()),
        }),
        async trouble(below) {
          if (trouble === 'the app closes' && how !== 'pool') {
            const close = (frame) => frame.evaluate(() => window.exposed?.close());
            return Promise.all(host.frames().slice(1).map(close));
          }
          const count = below(12);
          const cuts = CUTS[how];
          const cut = isCut ? cuts[below(cuts.length)] : returns ? cuts[0] : trouble;
          isReloaded = cut === 'the host is reloaded';
          const loaded = isReloaded && host.waitForEvent('load');
          await host
            .evaluate((args) => window.cut(...args), [cut, count])
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

  /** A page that Playwright drives. @type {import('./stops.js').Connection} */
  const driven = {
    costs: 10,
    reports: true,
    troubles: ['the line is cut', 'the app closes', 'the agent closes'],
    async open(_handlers, settings) {
      const { trouble, caller } = settings;
      await page.goto(appUrl({ ...settingsOf(settings), origins: [] }));
      const client = await connectPage(page, {
        agent: AGENT,
        limits: { grace: LONG },
        timeout: LONG,
        onElicitation: onElicitationBy(caller),
      });
      const pace = () => fetch(served.url);
      const call = callsBy(() => client, pace);
      return {
        dies: trouble === 'the line is cut',
        pace,
        call: async (...given) => outcomeTold(await call(...given)),
        trouble() {
          if (trouble === 'the agent closes') return client.close();
          if (trouble === 'the app closes') return page.evaluate(() => window.exposed.close());
          return page.reload();
        },
        close: () => client.close(),
      };
    },
  };

  /** Tools of WebMCP, called by a script of their page. @type {import('./stops.js').Connection} */
  const tools = {
    costs: 10,
    reports: true,
    waits: true,
    lacks: ['chunks', 'input', 'questions', 'cancel'],
    async open(_handlers, settings) {
      const { lacks } = tools;
      await page.goto(appUrl({ ...settingsOf(settings), origins: [], tools: true, lacks }));
      await page.waitForFunction(() => window.isReady);
      let isReloaded = false;
      return {
        dies: true,
        pace: () => fetch(served.url),
        make: makeIn(page, () => isReloaded),
        trouble() {
          isReloaded = true;
          return page.reload();
        },
        close() {},
      };
    },
  };

  const troubles = ['the line is cut', 'the app closes', 'the agent closes'];
  return {
    connections: {
      'an iframe of another site': inHost('iframe', {
        troubles: [...troubles, 'the app restarts'],
      }),
      'a page that Playwright drives': driven,
      'the view of an MCP App, in a page': inHost('view', {
        waits: true,
        lacks: ['input', 'questions', 'keys', 'asking later'],
        troubles,
      }),
      'a worker in a page': inHost('worker', { troubles: ['the line is cut', 'the agent closes'] }),
      'a pool in a page': inHost('pool', {
        reports: false,
        lacks: ['input', 'questions', 'inner calls'],
        troubles: ['the line is cut', 'the app closes'],
      }),
      'WebMCP, in a page': tools,
    },
    async close() {
      await browser.close();
      for (const each of [ofHost, ofApp, served]) each.close();
    },
  };
}
