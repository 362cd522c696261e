/** What the bridge costs by itself: rows, as ratios within this run where that makes sense. */
import { inOneFile } from '../../scripts/size.js';
import { hostPage, weigher } from './peers.js';
import { ACROSS, BY_ITSELF, OURS, spread } from './shared.js';

export const DOWNLOAD = 'KB to download, both sides in one page';

const SIDES = ["caller's side", "callee's side"].map(
  (side) => `core, bytes a pending call, 100,000 pending, ${side}`,
);
const MOVED = `100 MiB moved, ${ACROSS}`;
const SIZES = [10, 1000, 100_000, 1_000_000];
const textRow = (inFlight) => `core, ${inFlight.toLocaleString('en')} in flight, text ids / JS Map`;
const numberRow = (inFlight) =>
  `core, ${inFlight.toLocaleString('en')} in flight, call numbers / JS Map of numbers`;
const GROWN = 'memory after many calls, a tenth cancelled / after the first tenth';

/** What these are to be at most. */
export const TARGETS = {
  [MOVED]: 1.2,
  ...Object.fromEntries(SIDES.map((side) => [side, 100])),
  ...Object.fromEntries(SIZES.map((size) => [textRow(size), 0.8])),
  [GROWN]: 1.05,
};

/**
 * By row: what was measured.
 * @param {Awaited<ReturnType<import('../support/browser.js').sites>>} site
 * @param {import('./peers.js').How} how
 */
export async function ours(site, { quick, wants, log }) {
  const table = {};
  if (!wants(BY_ITSELF)) return {};
  const { context, page, ask, open } = await hostPage(site, site.appOrigin);
  await open('raw-port');
  await open(OURS);
  const row = (what, entry) => (table[what] = { [OURS]: entry });

  if (wants(BY_ITSELF, MOVED)) {
    const ratios = [];
    for (let i = 0; i < (quick ? 2 : 9); i++) {
      const [[mine], [floor]] = await ask('pair', OURS, 'move', [100 << 20, 1], 1);
      if (i) ratios.push(mine / floor); // the first was cold
    }
    row(MOVED, spread(ratios));
    log('100 MiB');
  }

  // Before any memory is there to be used again.
  if (SIDES.some((side) => wants(BY_ITSELF, side))) {
    const bytes = await ask('corePending', 100_000);
    SIDES.forEach((side, i) => row(side, { median: bytes[i] }));
  }
  for (const size of quick ? SIZES.slice(0, 2) : SIZES) {
    const titles = [textRow(size), numberRow(size)];
    if (!titles.some((title) => wants(BY_ITSELF, title))) continue;
    const ratios = [[], []];
    // Engines compile what is hot while it runs: neither side is measured cold.
    await ask('core', 10, 200_000);
    for (let i = 0; i < (quick ? 1 : 3); i++) {
      const [text, texts, number, numbers] = await ask('core', size, quick ? 20_000 : 200_000);
      ratios[0].push(text / texts);
      ratios[1].push(number / numbers);
    }
    titles.forEach((title, i) => row(title, spread(ratios[i])));
  }
  log('core');

  // As tests/size has it, whose budget is the target: without the code that the comparison has for
  // each library.
  if (wants(BY_ITSELF, DOWNLOAD)) row(DOWNLOAD, { median: (await inOneFile('both')) / 1000 });

  const calls = quick ? 20_000 : 300_000;
  if (wants(BY_ITSELF, GROWN)) {
    const weigh = await weigher(context, page);
    const sum = async () => (await weigh()).reduce((a, b) => a + b);
    await ask('many', OURS, calls / 10);
    const early = await sum();
    await ask('many', OURS, (calls / 10) * 9);
    row(GROWN, { median: (await sum()) / early });
    log('memory');
  }
  await context.close();
  return { [BY_ITSELF]: table };
}
