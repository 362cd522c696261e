// npm run bench: what the bridge costs in a real Chromium, by itself and next to what a user would pick
// instead, as ratios within this run.
//
//   --check     fails where a target is missed
//   --quick     a smoke run: its numbers mean nothing
//   --write     writes the results to docs/benchmarks.md and docs/bench.svg
//   --ours      the bridge by itself only
//   --peers[=name,…]  the comparison only, of all or some
//   --streams   the comparison of streams only; with --write, only their table is replaced
import { execFileSync } from 'node:child_process';
import { sites } from '../support/browser.js';
import { ours } from './ours.js';
import { compare } from './peers.js';
import { print, printStreams, write } from './report.js';
import { compareStreams } from './streams.js';

const flag = (name) => process.argv.find((arg) => arg.split('=')[0] === `--${name}`);
const quick = Boolean(flag('quick'));
const [, only] = flag('peers')?.split('=') ?? [];
if (flag('write') && (quick || flag('ours') || flag('peers'))) {
  throw new Error('--write is for whole runs');
}

const parts = ['ours', 'peers', 'streams'].filter(flag);
const wants = (part) => !parts.length || parts.includes(part);

const site = await sites({ isolated: true });
const version = (await site.browser.version()).split('.')[0];
const results = {
  where: `Chromium ${version}, Node ${process.versions.node.split('.')[0]}, ${`${execFileSync('nproc')}`.trim()} cores`,
  rows: wants('ours') ? await ours(site, quick) : [],
  comparison: wants('peers')
    ? await compare(site, { quick, only: only?.split(','), log: console.error })
    : undefined,
  streams: wants('streams') ? await compareStreams(site, { quick, log: console.error }) : undefined,
};
await site.close();
const missed = print(results);
if (results.streams) printStreams(results.streams);
if (flag('write')) await write(results);
process.exitCode = flag('check') && missed ? 1 : 0;
