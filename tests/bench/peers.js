/** The comparison with what a user would pick instead: peers/README.md says what is compared. */
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { withoutLazy } from '../../scripts/size.js';

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));
export const NAMES =
  'raw-port raw-window abp-bridge comlink penpal birpc capnweb orpc mcp ext-apps vscode-jsonrpc'.split(
    ' ',
  );
/** What the ratios are to. */
export const FLOOR = 'raw-port';

const options = {
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  logLevel: 'error',
  plugins: [withoutLazy],
};

/** The libraries, in a folder of their own: whoever works on the bridge does not need them. */
function install() {
  const age = (path) => (existsSync(folder(path)) ? statSync(folder(path)).mtimeMs : 0);
  if (age('node_modules/.package-lock.json') >= age('package-lock.json')) return;
  const args = ['ci', '--legacy-peer-deps', '--no-audit', '--no-fund', '--silent'];
  execFileSync('npm', args, { cwd: folder('.') });
}

/** Bytes, minified and gzipped, of a bundle with both sides and of one bundle for each page. */
async function download(name) {
  const size = async (sides) => {
    const contents = `export { ${sides} } from './peers/${name}.js'`;
    const stdin = { contents, resolveDir: folder('.') };
    const { outputFiles } = await build({ ...options, stdin, write: false });
    return gzipSync(outputFiles[0].contents, { level: 9 }).length;
  };
  return { together: await size('host, app'), apart: (await size('host')) + (await size('app')) };
}

/** The median of a list, its ends, and the middle half. */
export function spread(list) {
  const sorted = [...list].sort((a, b) => a - b);
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
  return { median: at(0.5), low: sorted[0], high: sorted.at(-1), from: at(0.25), to: at(0.75) };
}

/** Installs the libraries, and makes the pages. */
export async function prepare() {
  install();
  await build({
    ...options,
    // What is loaded on demand is loaded before anything is timed.
    plugins: [],
    splitting: true,
    entryPoints: [folder('pages/peers-host.js'), folder('pages/peers-app.js')],
    outdir: folder('../../build/bench'),
  });
}

/**
 * @param {Awaited<ReturnType<import('../support/browser.js').sites>>} site
 * @param {{ quick: boolean, only?: string[], log?: (line: string) => void }} how
 */
export async function compare(site, { quick, only, log = () => {} }) {
  await prepare();
  const names = NAMES.filter((name) => !only || only.includes(name) || name === FLOOR);
  const tables = {};
  for (const [where, appOrigin] of [
    ['across origins', site.appOrigin],
    ['same origin', site.hostOrigin],
  ]) {
    tables[where] = await timings(site, appOrigin, names, quick, (line) =>
      log(`${where}: ${line}`),
    );
  }
  const heap = {};
  const bytes = {};
  for (const name of names) {
    heap[name] = await heapPerCall(site, name, quick ? 2000 : 100_000);
    bytes[name] = await download(name);
  }
  log('heap and download');
  return { names, tables, heap, bytes };
}

export async function hostPage(site, appOrigin) {
  const context = await site.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${site.hostOrigin}/tests/bench/pages/peers-host.html`);
  await page.waitForFunction(() => window.comparison);
  const appUrl = `${appOrigin}/tests/bench/pages/peers-app.html`;
  const ask = (what, ...args) =>
    page.evaluate(([w, a]) => window.comparison[w](...a), [what, args]);
  const open = (name) => ask('open', name, appUrl);
  return { context, page, appUrl, ask, open };
}

/**
 * One library after the other, in an order that moves on each round. `slices`: how often each is timed in
 * a round, in turn with the floor. Returns a column for each time measured.
 */
export async function rounds(ask, { count, slices, log }, who, what, ...args) {
  const taken = Object.fromEntries(who.map((name) => [name, []]));
  for (let round = 0; round <= count; round++) {
    for (let i = 0; i < who.length; i++) {
      const name = who[(i + round) % who.length];
      const pair = await ask('pair', name, what, args, slices);
      if (round > 0) taken[name].push(pair); // the first was cold
    }
  }
  log(what);
  const column = (at) => (name) => {
    const ratios = taken[name].map(([times, floor]) => times[at] / floor[at]);
    const { median: ms } = spread(taken[name].map(([times]) => times[at]));
    return [name, { ...spread(ratios), ms }];
  };
  const width = taken[who[0]][0][0].length;
  return Array.from({ length: width }, (_, at) => Object.fromEntries(who.map(column(at))));
}

/** By measure and library: what the ratios to the floor were. */
async function timings(site, appOrigin, names, quick, log) {
  const { context, appUrl, ask, open } = await hostPage(site, appOrigin);
  const can = {};

  const timed = (count, slices, who, what, ...args) =>
    rounds(ask, { count: quick ? 2 : count, slices: quick ? 1 : slices, log }, who, what, ...args);

  const table = {};
  [table.connect] = await timed(5, 3, names, 'connect', appUrl);
  for (const name of names) can[name] = await open(name);
  const { ahead, roundTrip } = await ask('skew');
  const us = (ms) => Math.round(ms * 1000);
  log(`the app's clock is ${us(ahead)} µs ahead, by a round trip of ${us(roundTrip)} µs`);
  [table.oneAtATime] = await timed(11, 8, names, 'oneAtATime', 50);
  [table.inFlight] = await timed(9, 3, names, 'inFlight', 1000);
  [table.copy] = await timed(9, 5, names, 'copy', 1 << 20, 1);
  const moving = names.filter((name) => can[name].moves);
  [table.move] = await timed(9, 7, moving, 'move', 1 << 20, 4);
  const aborting = names.filter((name) => can[name].aborts);
  [table.signal, table.settled] = await timed(11, 15, aborting, 'abort');
  for (const name of aborting) table.settled[name].early = can[name].early;
  await context.close();
  return table;
}

/** Bytes that a pending call keeps in the host's process and in the app's, both after a collection. */
async function heapPerCall(site, name, pending) {
  const { context, page, ask, open } = await hostPage(site, site.appOrigin);
  await open(name);
  const sessions = [];
  for (const frame of page.frames()) sessions.push(await context.newCDPSession(frame));
  const heap = () =>
    Promise.all(
      sessions.map(async (session) => {
        await session.send('HeapProfiler.collectGarbage');
        const usage = await session.send('Runtime.getHeapUsage');
        return usage.usedSize + usage.embedderHeapUsedSize + usage.backingStorageSize;
      }),
    );
  // The first calls make tables and compile.
  await ask('pend', name, 1000);
  const before = await heap();
  await ask('pend', name, pending);
  const after = await heap();
  await context.close();
  const [host, app] = after.map((bytes, i) => (bytes - before[i]) / pending);
  return { host, app, both: host + app };
}
