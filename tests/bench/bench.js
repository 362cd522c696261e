// npm run bench: what the bridge costs in a real Chromium, as ratios within this run. `--check` fails where
// a target is missed; `--quick` is a smoke run.
import { execFileSync } from 'node:child_process';
import { sites } from '../support/browser.js';
import { bundleSize } from '../support/bundle.js';

const quick = process.argv.includes('--quick');
const site = await sites();
const page = await site.browser.newPage();
await page.goto(`${site.hostOrigin}/tests/bench/pages/bench.html`);
await page.waitForFunction(() => window.isReady);
const appUrl = `${site.appOrigin}/tests/bench/pages/echo.html?${encodeURIComponent(site.hostOrigin)}`;
await page.evaluate((src) => window.open_(src), appUrl);

const rows = [];
const row = (what, value, target, more = '') =>
  rows.push({
    what,
    value: Number(value.toFixed(2)),
    target,
    ok: value <= target ? '' : 'MISSED',
    more,
  });
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

/** The median over rounds of ours/theirs. */
async function compare(what, target, rounds, round) {
  await round();
  const ratios = [];
  for (let i = 0; i < (quick ? 3 : rounds); i++) {
    const [ours, theirs] = await round();
    ratios.push(ours / theirs);
  }
  row(what, median(ratios), target);
}

await compare('one call at a time / bare MessagePort echo', 1.1, 15, () =>
  page.evaluate((n) => window.oneAtATime(n), quick ? 100 : 500),
);
await compare('1,000 in flight / bare MessagePort echo', 0.2, 11, () =>
  page.evaluate(() => window.inFlight(1000, 3)),
);
await compare('100 MiB ArrayBuffer by transfer / bare', 1.2, 15, () =>
  page.evaluate(() => window.transfer(100 << 20)),
);
for (const inFlight of quick ? [10, 1000] : [10, 1000, 100_000, 1_000_000]) {
  const text = [];
  const numbers = [];
  // Engines compile what is hot while it runs: neither side is measured cold.
  await page.evaluate(() => window.core(10, 200_000));
  for (let i = 0; i < (quick ? 1 : inFlight > 1e5 ? 3 : 5); i++) {
    const [a, b, map] = await page.evaluate(
      ([n, calls]) => window.core(n, calls),
      [inFlight, quick ? 20_000 : 300_000],
    );
    text.push(a / map);
    numbers.push(b / map);
  }
  const label = inFlight.toLocaleString('en');
  row(`core, ${label} in flight, text ids / JS Map`, median(text), 0.8);
  row(`core, ${label} in flight, call numbers / JS Map`, median(numbers), 0.35);
}

const size = await bundleSize();
row('download of both sides, KB gzipped', size / 1000, 20);

// Memory after the first tenth and at the end, in both documents, after a forced collection.
const sessions = [
  await page.context().newCDPSession(page),
  await page.context().newCDPSession(page.frames()[1]),
];
async function heap() {
  let total = 0;
  for (const session of sessions) {
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize, backingStorageSize = 0 } = await session.send('Runtime.getHeapUsage');
    total += usedSize + backingStorageSize;
  }
  return total;
}
const calls = quick ? 20_000 : 1_000_000;
await page.evaluate((n) => window.many(n), calls / 10);
const early = await heap();
await page.evaluate((n) => window.many(n), (calls / 10) * 9);
const late = await heap();
row(
  `memory after ${calls.toLocaleString('en')} calls, a tenth cancelled / after the first tenth`,
  late / early,
  1.05,
  `${(early / 1e6).toFixed(1)} MB, ${(late / 1e6).toFixed(1)} MB`,
);

const version = (await site.browser.version()).split('.')[0];
console.log(`Chromium ${version}, Node ${process.versions.node}, ${execFileSync('nproc')}`.trim());
console.table(rows);
await site.close();
process.exitCode = process.argv.includes('--check') && rows.some(({ ok }) => ok) ? 1 : 0;
