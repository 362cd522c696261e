/** What the bridge costs by itself: rows, as ratios within this run where that makes sense. */
import { inOneFile } from '../../scripts/size.js';
import { spread } from './peers.js';

/**
 * @typedef {{ what: string, value: number, low?: number, high?: number, target: number, more?: string }} Row
 * @param {Awaited<ReturnType<import('../support/browser.js').sites>>} site
 * @param {boolean} quick
 * @returns {Promise<Row[]>}
 */
export async function ours(site, quick) {
  const page = await site.browser.newPage();
  await page.goto(`${site.hostOrigin}/tests/bench/pages/bench.html`);
  await page.waitForFunction(() => window.isReady);
  const appUrl = `${site.appOrigin}/tests/bench/pages/echo.html?${encodeURIComponent(site.hostOrigin)}`;
  await page.evaluate((src) => window.open_(src), appUrl);

  const rows = [];
  const row = (what, value, target, more = {}) => rows.push({ what, value, target, ...more });
  const rowOfRatios = (what, ratios, target) => {
    const { median, low, high } = spread(ratios);
    row(what, median, target, { low, high });
  };

  /** The ratios of rounds to their floor. */
  async function compare(what, target, rounds, round) {
    await round();
    const ratios = [];
    for (let i = 0; i < (quick ? 3 : rounds); i++) {
      const [mine, floor] = await round();
      ratios.push(mine / floor);
    }
    rowOfRatios(what, ratios, target);
  }

  await compare('one call at a time / bare MessagePort echo', 1.05, 15, () =>
    page.evaluate((n) => window.oneAtATime(n), quick ? 100 : 500),
  );
  await compare('1,000 in flight / bare MessagePort echo', 0.1, 11, () =>
    page.evaluate(() => window.inFlight(1000, 3)),
  );
  await compare('100 MiB ArrayBuffer by transfer / bare', 1.2, 15, () =>
    page.evaluate(() => window.transfer(100 << 20)),
  );
  // Before any memory is there to be used again.
  const [caller, callee] = await page.evaluate((n) => window.corePending(n), 100_000);
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
    rowOfRatios(`core, ${label} in flight, text ids / JS Map`, text, 0.8);
    rowOfRatios(`core, ${label} in flight, call numbers / JS Map`, numbers, 0.35);
  }
  row("core, bytes a pending call, caller's side, 100,000 pending", caller, 100);
  row("core, bytes a pending call, callee's side, 100,000 pending", callee, 100);
  row('download of both sides, KB gzipped', (await inOneFile('both')) / 1000, 14);

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
    { more: `${(early / 1e6).toFixed(1)} MB, ${(late / 1e6).toFixed(1)} MB` },
  );
  await page.close();
  return rows;
}
