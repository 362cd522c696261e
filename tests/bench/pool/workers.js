// npm run bench:workers: what it takes to stop work that never yields, by its token and by ending
// its worker, in round trips to a worker, and what asking costs. --quick is a smoke run: its
// numbers mean nothing.
import { Worker } from 'node:worker_threads';
import { sites } from '../../support/browser.js';
import { measure } from './workers/measure.js';

const quick = process.argv.includes('--quick');
const script = new URL('./workers/worker.js', import.meta.url);

async function inPage() {
  const site = await sites({ isolated: true });
  try {
    const page = await site.browser.newPage();
    await page.goto(`${site.hostOrigin}/tests/browser/pages/blank.html`);
    return await page.evaluate(async (brief) => {
      const { measure } = await import('/tests/bench/pool/workers/measure.js');
      const start = () => new Worker('/tests/bench/pool/workers/worker.js', { type: 'module' });
      return measure(start, brief);
    }, quick);
  } finally {
    await site.close();
  }
}

function print(where, { unit, rows, asking }) {
  console.log(`\n${where}: one round trip to a worker is 1 (${unit.toFixed(3)} ms here)`);
  console.table(
    Object.entries(rows).map(([what, ms]) => ({
      what,
      'round trips': Number((ms / unit).toPrecision(3)),
      'ms here': Number(ms.toPrecision(3)),
    })),
  );
  console.table(
    asking.map(({ every, ratio, ns }) => ({
      'asks every': every,
      'of a loop that never asks': Number(ratio.toFixed(3)),
      'ns a round here': Number(ns.toFixed(3)),
    })),
  );
}

print('Node', await measure(() => new Worker(script), quick));
print('Chromium', await inPage());
