/** The comparison with what a user would pick instead: peers/README.md says what is compared. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));
const NAMES =
  'raw-port raw-window abp-bridge comlink penpal birpc capnweb orpc mcp ext-apps vscode-jsonrpc'.split(
    ' ',
  );
/** What the ratios are to, in the same round. */
const FLOOR = 'raw-port';

const options = {
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  logLevel: 'error',
  // Loaded only where they are needed.
  external: ['@cfworker/json-schema', '*/abp-js.js'],
};

/** Bytes of both sides together, minified and gzipped. */
async function download(name) {
  const { outputFiles } = await build({
    ...options,
    entryPoints: [folder(`peers/${name}.js`)],
    write: false,
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const spread = (list) => ({
  median: median(list),
  low: Math.min(...list),
  high: Math.max(...list),
});

/** One library after the other, in an order that moves on each round. */
async function rounds(count, names, measure) {
  const ratios = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round <= count; round++) {
    const took = {};
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length];
      took[name] = await measure(name);
    }
    if (round === 0) continue; // cold
    for (const name of names) ratios[name].push(took[name] / took[FLOOR]);
  }
  return Object.fromEntries(names.map((name) => [name, spread(ratios[name])]));
}

/**
 * @param {Awaited<ReturnType<import('../support/browser.js').sites>>} site
 * @param {{ quick: boolean, only?: string[] }} how
 */
export async function compare(site, { quick, only }) {
  if (!existsSync(folder('node_modules'))) {
    execFileSync('npm', ['ci', '--legacy-peer-deps', '--no-audit', '--no-fund', '--silent'], {
      cwd: folder('.'),
    });
  }
  await build({
    ...options,
    entryPoints: [folder('pages/peers-host.js'), folder('pages/peers-app.js')],
    outdir: folder('../../build/bench'),
  });
  const names = NAMES.filter((name) => !only || only.includes(name) || name === FLOOR);
  const tables = {};
  for (const [where, appOrigin] of [
    ['across origins', site.appOrigin],
    ['same origin', site.hostOrigin],
  ]) {
    const context = await site.browser.newContext();
    const page = await context.newPage();
    await page.goto(`${site.hostOrigin}/tests/bench/pages/peers-host.html`);
    await page.waitForFunction(() => window.isReady);
    const appUrl = `${appOrigin}/tests/bench/pages/peers-app.html`;
    const open = (name) => page.evaluate(([n, url]) => window.open_(n, url), [name, appUrl]);
    const measure =
      (what, ...args) =>
      (name) =>
        page.evaluate(([w, n, more]) => window.measures[w](n, ...more), [what, name, args]);

    const table = {};
    const can = {};
    table.connect = await rounds(quick ? 1 : 7, names, async (name) => {
      can[name] = await open(name);
      await page.evaluate((n) => window.close_(n), name);
      return can[name].connect;
    });
    for (const name of names) await open(name);
    const n = quick ? 50 : 300;
    table.oneAtATime = await rounds(quick ? 2 : 11, names, measure('oneAtATime', n));
    table.inFlight = await rounds(quick ? 2 : 7, names, measure('inFlight', 1000));
    table.copy = await rounds(quick ? 2 : 9, names, measure('copy', 1 << 20));
    const moves = names.filter((name) => can[name].transfers);
    table.move = await rounds(quick ? 2 : 9, moves, measure('move', 1 << 20));
    const aborts = names.filter((name) => can[name].aborts);
    table.signal = await rounds(quick ? 2 : 9, aborts, measure('abort', quick ? 3 : 25, 'signal'));
    table.settled = await rounds(
      quick ? 2 : 9,
      aborts,
      measure('abort', quick ? 3 : 25, 'settled'),
    );
    if (where === 'across origins') {
      const sessions = [];
      for (const frame of page.frames()) {
        sessions.push(await context.newCDPSession(frame).catch(() => undefined));
      }
      const heap = async () => {
        let total = 0;
        for (const session of sessions.filter(Boolean)) {
          await session.send('HeapProfiler.collectGarbage');
          const { usedSize, backingStorageSize = 0 } = await session.send('Runtime.getHeapUsage');
          total += usedSize + backingStorageSize;
        }
        return total;
      };
      const pending = quick ? 2000 : 100_000;
      table.heap = {};
      for (const name of names) {
        const before = await heap();
        await page.evaluate(([w, count]) => window.pend(w, count), [name, pending]);
        table.heap[name] = ((await heap()) - before) / pending;
      }
    }
    tables[where] = table;
    await context.close();
  }
  const sizes = {};
  for (const name of names) sizes[name] = await download(name);
  return { names, tables, sizes };
}
