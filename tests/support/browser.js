/**
 * A real browser, and pages on two sites: the host on http://127.0.0.1:A, the app on
 * http://localhost:B.
 *
 * ENGINE chooses the browser (chromium, firefox, webkit); CORE=js serves the pages under the policy
 * of MCP Apps, which forbids WebAssembly.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { ENTRIES } from '../../scripts/entries.js';
import { bundleFolder } from './bundle.js';
import { launch as launchByWebDriver } from './webdriver.js';

export const ENGINE = process.env.ENGINE ?? 'chromium';
export const CORE = process.env.CORE ?? 'wasm';

// On a signal, end at once, together with the browsers.
process.once('SIGTERM', () => process.exit(143));

const root = fileURLToPath(new URL('../../', import.meta.url));
const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.html': 'text/html' };

/**
 * What modules import by the names of packages: sources, and what modules of keys need. Workers
 * have no import map that would say where it is.
 */
const NAMED = /(?<=(?:from |import\()['"])@?(?:abp-bridge|noble\/hashes)[\w/.-]*(?=['"])/g;
/** @param {string} name */
const pathOf = (name) =>
  name in ENTRIES ? `/${ENTRIES[name].source}` : name.replace(/^@noble/, '/node_modules/$&');

// In WebKit, a sandboxed frame's own site is not 'self'.
const OWN = ENGINE === 'webkit' ? ' http://localhost:*' : '';
const STRICT = `default-src 'none'; script-src 'self' 'unsafe-inline'${OWN}; connect-src `;
const policy = ({ pathname, search }) => {
  if (CORE === 'wasm')
    return "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' http://localhost:* http://*.localhost:*";
  // The policy of the host must allow its frames.
  const embeds = pathname.endsWith('host.html') || search.includes('embeds');
  // And its sockets.
  const strict = STRICT + (search.includes('dials') ? 'ws://127.0.0.1:*' : "'none'");
  return embeds ? `${strict}; frame-src *` : strict;
};

/** Pages that have these measure time in steps of 5 µs, not 100. */
const ISOLATED = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-resource-policy': 'cross-origin',
};

/** Folders whose scripts are served as bundles, made when one is first asked for. */
const bundles = new Map(
  [
    '/tests/browser/pages',
    '/tests/effects/pages',
    ...['rpc', 'inspector', 'mcp-apps', 'webmcp'].map(
      (name) => `/packages/${name}/tests/browser/pages`,
    ),
    '/packages/mcp-apps/tests/browser/pages/views',
    '/tests/browser/pages/frameworks',
    '/tests/browser/pages/frameworks/views',
    '/tests/browser/pages/keys',
    '/tests/support/workers',
  ].map((folder) => {
    let made;
    return [folder, () => (made ??= bundleFolder(folder))];
  }),
);

/** Serves the repository, on one port: /tests/browser/pages/host.html */
export function serve({ isolated = false } = {}) {
  const held = new Map();
  const counts = new Map();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    const { pathname } = url;
    counts.set(pathname, (counts.get(pathname) ?? 0) + 1);
    await held.get(pathname);
    const path = join(root, normalize(decodeURIComponent(pathname)));
    const bundled = (await bundles.get(dirname(pathname))?.())?.get(pathname);
    const served = bundled !== undefined || (path.startsWith(root) && existsSync(path));
    if (!served || !TYPES[extname(path)]) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      'content-type': TYPES[extname(path)],
      'cache-control': 'max-age=600',
      // A sandboxed frame's modules are fetched from the origin "null".
      'access-control-allow-origin': '*',
      'content-security-policy': policy(url),
      ...(isolated && ISOLATED),
      ...(url.searchParams.has('coop') && {
        'cross-origin-opener-policy': url.searchParams.get('coop'),
      }),
    });
    const source = bundled ?? readFileSync(path);
    response.end(extname(path) === '.js' ? source.toString().replace(NAMED, pathOf) : source);
  });
  return new Promise((resolve) => {
    server.listen(0, () =>
      resolve({
        port: server.address().port,
        /** Holds a file back. Returns what lets it go. */
        hold(pathname) {
          let release;
          held.set(pathname, new Promise((done) => (release = done)));
          return () => (held.delete(pathname), release());
        },
        /** Returns what tells how often a file has been asked for since. */
        count(pathname) {
          const now = () => counts.get(pathname) ?? 0;
          const before = now();
          return () => now() - before;
        },
        close() {
          server.close();
          server.closeAllConnections();
        },
      }),
    );
  });
}

/** What Chromium is started with. */
export const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-sync',
  '--disable-background-networking',
  '--disable-component-update',
  '--site-per-process',
];

/**
 * Ms that a busy machine may need for whatever a driver does, and no test waits for unless
 * something is wrong.
 */
export const LONG = 300_000;

/** @param {import('playwright-core').LaunchOptions} [options] */
export async function launch({ args = [], ...more } = {}) {
  const browser = await chromium.launch({
    executablePath,
    timeout: LONG,
    // Playwright turns it off, and then its tests would test nothing.
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
    args: [...ARGS, ...args],
    ...more,
  });
  return patient(browser);
}

/**
 * A browser of Playwright or Puppeteer whose pages do not give up after 30 s what the machine has
 * no time for.
 * @template {any} T
 * @param {T} browser
 * @returns {T}
 */
export function patient(browser) {
  for (const name of ['newContext', 'newPage']) {
    const make = browser[name]?.bind(browser);
    if (make)
      browser[name] = async (...options) => {
        const made = await make(...options);
        made.setDefaultTimeout(LONG);
        return made;
      };
  }
  return browser;
}

/** The browser of all `sites` of this process from now on. Returns what ends it. */
export function shareBrowser() {
  shared = launchEngine();
  return async () => (await shared).close();
}
let shared;
const launchEngine = () => (ENGINE === 'chromium' ? launch() : launchByWebDriver(ENGINE, LONG));

/** A browser with both sites up; `close` ends it all. */
export async function sites(options = {}) {
  const opened = shared ?? launchEngine();
  const [host, app, browser] = await Promise.all([serve(options), serve(options), opened]);
  const hostOrigin = `http://127.0.0.1:${host.port}`;
  const appOrigin = `http://localhost:${app.port}`;
  return {
    browser,
    hostOrigin,
    appOrigin,
    hostUrl: `${hostOrigin}/tests/browser/pages/host.html`,
    /** @param {Record<string, unknown>} options see pages/app.js */
    appUrl: (options, origin = appOrigin) =>
      `${origin}/tests/browser/pages/app.html?${encodeURIComponent(JSON.stringify({ origins: [hostOrigin], ...options }))}`,
    /** A port of the app's server, under any name that resolves to this machine. */
    appPort: app.port,
    hold: app.hold,
    count: app.count,
    async close() {
      await Promise.all(browser.contexts().map((context) => context.close()));
      if (!shared) await browser.close();
      host.close();
      app.close();
    },
  };
}

/** The frame of a page whose address is `url`, once it has a document. */
export async function frameAt(page, url) {
  for (;;) {
    for (const frame of page.frames().slice(1)) {
      const at = await frame.evaluate(() => location.href).catch(() => '');
      if (at === url) return frame;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * The processes in which a browser's pages run, with the seconds of CPU time that each has used.
 */
export async function renderers(browser) {
  if (browser.processes) return browser.processes();
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo.filter(({ type }) => type === 'renderer');
}

/**
 * The process of a frame. Nothing says which it is, so the frame is kept busy until one has clearly
 * worked more than any other. How long that takes is measured in work, not in time: on a busy
 * machine, a process that starts may do more in any time.
 */
export async function processOf(browser, frame) {
  const before = new Map((await renderers(browser)).map(({ id, cpuTime }) => [id, cpuTime]));
  for (;;) {
    await frame.evaluate(() => {
      for (let i = 0; i < 2_000_000; i++) performance.now();
    });
    const [first, second] = (await renderers(browser))
      .map(({ id, cpuTime }) => ({ id, used: cpuTime - (before.get(id) ?? 0) }))
      .sort((a, b) => b.used - a.used);
    if (first.used > 0.3 + 3 * (second?.used ?? 0)) return first.id;
  }
}
