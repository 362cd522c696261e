/** The comparison with what a user would pick instead: peers/README.md says what is compared. */
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { build } from 'esbuild';
import {
  ACROSS,
  BOUND,
  FLOOR,
  HEAP,
  NAMES,
  OURS,
  SAME,
  bundling,
  folder,
  spread,
} from './shared.js';
import { visits } from './visits.js';

/** The libraries, in a folder of their own: whoever works on the bridge does not need them. */
function install() {
  const age = (path) => (existsSync(folder(path)) ? statSync(folder(path)).mtimeMs : 0);
  if (age('node_modules/.package-lock.json') >= age('package-lock.json')) return;
  const args = ['ci', '--legacy-peer-deps', '--no-audit', '--no-fund', '--silent'];
  execFileSync('npm', args, { cwd: folder('.') });
}

/** Installs the libraries, and makes the pages. */
export async function prepare() {
  install();
  const entryPoints = [folder('pages/peers-host.js'), folder('pages/peers-app.js')];
  await build({ ...bundling, entryPoints, outdir: folder('../../build/bench') });
}

/**
 * @typedef {object} How
 * @property {boolean} quick
 * @property {string[]} [only] of these libraries
 * @property {(place: string, title?: string) => boolean} wants whether a column is measured;
 *   without a title, whether any of a table is
 * @property {(line: string) => void} log
 */

/**
 * By table, column and library: the ratios to the floor, or what else is measured.
 * @param {Awaited<ReturnType<import('../support/browser.js').sites>>} site
 * @param {How} how
 */
export async function compare(site, { quick, only, wants, log }) {
  const names = NAMES.filter((name) => !only || only.includes(name) || name === FLOOR);
  const tables = {};
  for (const [place, appOrigin] of [
    [ACROSS, site.appOrigin],
    [SAME, site.hostOrigin],
  ]) {
    if (!wants(place)) continue;
    tables[place] = await timings(site, appOrigin, names, {
      quick,
      wants: (title) => wants(place, title),
      log: (line) => log(`${place}: ${line}`),
    });
  }
  const across = tables[ACROSS];
  const ofVisits = ['connect, first visit', 'connect, later visit', 'KB to download'];
  if (ofVisits.some((title) => wants(ACROSS, title)))
    Object.assign(across, await visits(names, { quick, log }));
  if (wants(ACROSS, HEAP)) {
    across[HEAP] = {};
    for (const name of names)
      across[HEAP][name] = await heapPerCall(site, name, quick ? 2000 : 25_000);
    log('heap');
  }
  return tables;
}

export async function hostPage(site, appOrigin) {
  const context = await site.browser.newContext();
  const page = await context.newPage();
  // Else what fails in a page is waited for.
  page.on('pageerror', (error) => void Promise.reject(error));
  await page.addInitScript(countWasm);
  await page.goto(`${site.hostOrigin}/tests/bench/pages/peers-host.html`);
  await page.waitForFunction(() => window.comparison);
  const appUrl = `${appOrigin}/tests/bench/pages/peers-app.html`;
  const ask = (what, ...args) =>
    page.evaluate(([w, a]) => window.comparison[w](...a), [what, args]);
  const open = (name) => ask('open', name, appUrl);
  return { context, page, appUrl, ask, open };
}

/** In a page: what WebAssembly keeps, which Chromium does not count as heap. */
function countWasm() {
  const memories = [];
  const { Instance } = WebAssembly;
  WebAssembly.Instance = class extends Instance {
    constructor(...given) {
      super(...given);
      if (this.exports.memory) memories.push(this.exports.memory);
    }
  };
  window.wasmBytes = () => memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
}

/**
 * Returns what tells the bytes that each heap of a page keeps, after a collection: that of the
 * host, and that of the frames, unless they are of its own site. Frames of one site share a heap,
 * which is counted once.
 */
export async function weigher(context, page) {
  const heaps = new Map();
  for (const frame of page.frames()) {
    const session = await context.newCDPSession(frame);
    const { id } = await session.send('Runtime.getIsolateId');
    if (!heaps.has(id)) heaps.set(id, { session, frames: [] });
    heaps.get(id).frames.push(frame);
  }
  return () =>
    Promise.all(
      [...heaps.values()].map(async ({ session, frames }) => {
        await session.send('HeapProfiler.collectGarbage');
        const usage = await session.send('Runtime.getHeapUsage');
        let bytes = usage.usedSize + usage.embedderHeapUsedSize + usage.backingStorageSize;
        for (const frame of frames) bytes += await frame.evaluate(() => window.wasmBytes());
        return bytes;
      }),
    );
}

/** Rounds after which a library need not be measured any more. */
const ENOUGH = 5;

/**
 * One library after the other, in an order that moves on each round. `slices`: how often each is
 * timed in a round, in turn with the floor. Returns a column for each time measured.
 *
 * After a few rounds only those go on whose next rounds may change what the table tells: not one
 * whose rounds agree to a few parts in a hundred, nor one that is far behind the first.
 */
export async function rounds(ask, { count, slices, log }, who, what, ...args) {
  const taken = Object.fromEntries(who.map((name) => [name, []]));
  const ratios = (name, at) => taken[name].map(([times, floor]) => times[at] / floor[at]);
  const isOpen = (name, first) => {
    const { median, from, to } = spread(ratios(name, 0));
    return name === OURS || (to - from > 0.05 * median && from < 2 * first);
  };
  let open = who;
  for (let round = 0; round <= count; round++) {
    if (round > ENOUGH) {
      const first = Math.min(...who.map((name) => spread(ratios(name, 0)).median));
      open = who.filter((name) => isOpen(name, first));
    }
    for (let i = 0; i < open.length; i++) {
      const name = open[(i + round) % open.length];
      const pair = await ask('pair', name, what, args, slices);
      if (round > 0) taken[name].push(pair); // the first was cold
    }
  }
  log(what);
  const column = (at) => (name) => {
    const { median: ms } = spread(taken[name].map(([times]) => times[at]));
    return [name, { ...spread(ratios(name, at)), ms }];
  };
  const width = taken[who[0]][0][0].length;
  return Array.from({ length: width }, (_, at) => Object.fromEntries(who.map(column(at))));
}

/** By measure and library: what the ratios to the floor were. */
async function timings(site, appOrigin, names, { quick, wants, log }) {
  const { context, appUrl, ask, open } = await hostPage(site, appOrigin);
  const can = {};
  const table = {};
  const timed = async (titles, count, slices, who, what, ...args) => {
    if (!titles.some(wants)) return;
    const how = { count: quick ? 2 : count, slices: quick ? 1 : slices, log };
    const columns = await rounds(ask, how, who, what, ...args);
    titles.forEach((title, i) => (table[title] = columns[i]));
  };

  // Across origins, visits tell what a connection costs.
  if (appOrigin === site.hostOrigin)
    await timed(['connect, page open'], 5, 1, names, 'connect', appUrl);
  for (const name of [...names, 'json-text']) can[name] = await open(name);
  const { ahead, roundTrip } = await ask('skew');
  const us = (ms) => Math.round(ms * 1000);
  log(`the app's clock is ${us(ahead)} µs ahead, by a round trip of ${us(roundTrip)} µs`);
  await timed(['one at a time'], 9, 5, names, 'oneAtATime', 50);
  await timed(['1,000 in flight'], 6, 2, names, 'inFlight', 1000);
  await timed([BOUND], 6, 2, ['json-text'], 'inFlight', 1000);
  await timed(['1 MiB copied'], 7, 5, names, 'copy', 1 << 20, 1);
  const moving = names.filter((name) => can[name].moves);
  await timed(['1 MiB moved'], 9, 7, moving, 'move', 1 << 20, 4);
  const aborting = names.filter((name) => can[name].aborts);
  await timed(['abort to signal', 'abort to settled'], 11, 15, aborting, 'abort');
  for (const name of aborting)
    if (table['abort to settled']) table['abort to settled'][name].early = can[name].early;
  await context.close();
  return table;
}

/**
 * Bytes that a pending call keeps in the host's process and in the app's, both after a collection.
 */
async function heapPerCall(site, name, pending) {
  const { context, page, ask, open } = await hostPage(site, site.appOrigin);
  await open(name);
  const weigh = await weigher(context, page);
  // The first calls make tables and compile.
  await ask('pend', name, 1000);
  const before = await weigh();
  await ask('pend', name, pending);
  const after = await weigh();
  await context.close();
  const [host, app] = after.map((bytes, i) => (bytes - before[i]) / pending);
  return { median: host + app, sides: [host, app] };
}
