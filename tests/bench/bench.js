// npm run bench: what the bridge costs in a real Chromium, by itself and next to what a user would
// pick instead, as ratios within this run.
//
//   --check     fails where a row of ours is worse than results.json says; such rows are measured
//               twice again before
//   --quick     a smoke run: its numbers mean nothing
//   --write     writes the results to results.json, from which the site's page is made
//   --ours      the bridge by itself only
//   --peers[=name,…]  the comparison only, of all or some
//   --streams   the comparison of streams only; with --write, only their results are replaced
//   --growth    only the cost of many pending calls and connections, likewise
import { execFileSync } from 'node:child_process';
import { sites } from '../support/browser.js';
import { describe, worseEachTime } from './check.js';
import { growth } from './growth.js';
import { ours } from './ours.js';
import { compare, prepare } from './peers.js';
import { print, readRows, rowsOf, write } from './report.js';
import { OURS } from './shared.js';
import { compareStreams } from './streams.js';

const flag = (name) => process.argv.find((arg) => arg.split('=')[0] === `--${name}`);
const quick = Boolean(flag('quick'));
const only = flag('peers')?.split('=')[1]?.split(',');
if (flag('write') && (quick || flag('ours') || flag('peers')))
  throw new Error('--write is for whole runs');
const began = performance.now();
const log = (line) =>
  console.error(`${((performance.now() - began) / 1000).toFixed(0).padStart(4)} s  ${line}`);

const PARTS = { peers: compare, streams: compareStreams, ours };
const parts = [...Object.keys(PARTS), 'growth'].filter(flag);
const wantsPart = (part) => !parts.length || parts.includes(part);

await prepare();
const site = await sites({ isolated: true });
async function measure(how) {
  const tables = {};
  for (const [part, measurePart] of Object.entries(PARTS))
    if (wantsPart(part)) Object.assign(tables, await measurePart(site, { quick, log, ...how }));
  return tables;
}

const version = (await site.browser.version()).split('.')[0];
const results = {
  where: `Chromium ${version}, Node ${process.versions.node.split('.')[0]}, ${`${execFileSync('nproc')}`.trim()} cores`,
  tables: await measure({ only, wants: () => true }),
  growth: wantsPart('growth') ? await growth(site, { quick, log }) : undefined,
};
print(results);
if (flag('write')) await write(results);
if (flag('check')) {
  const again = async (rows) => {
    for (const [table, names] of Object.entries(rows))
      log(`again, of ${table}: ${Object.keys(names).join('; ')}`);
    const wants = (table, row) => Boolean(row ? rows[table]?.[row] : rows[table]);
    return rowsOf(await measure({ only: [OURS], wants }));
  };
  const found = await worseEachTime(readRows(), rowsOf(results.tables), again);
  for (const row of found) console.error(`WORSE: ${describe(row)}`);
  if (!found.length) console.error('No row is worse than tests/bench/results.json says.');
  process.exitCode = found.length ? 1 : 0;
}
await site.close();
