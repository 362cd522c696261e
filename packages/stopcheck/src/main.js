#!/usr/bin/env node
/** The program: checks an endpoint, and prints the report. */
import { readFileSync, writeFileSync } from 'node:fs';
import { argv, stderr, stdout } from 'node:process';
import { HELP, UsageError, isHere, readOptions } from './options.js';
import { pressesOf } from './presses.js';
import { pageOf } from './report/page.js';
import { dryRun, findingsOf, headOf, lineText, printable, summaryOf } from './report/terminal.js';
import { rulesOf } from './rules.js';
import { run } from './run.js';

const EXIT = { TRUE: 0, FINDINGS: 1, USAGE: 2, UNREACHABLE: 3 };

const about = new URL('../package.json', import.meta.url);
const { version } = JSON.parse(readFileSync(about, 'utf8'));

/** @param {string} text */
const print = (text) => void stdout.write(`${text}\n`);

/**
 * The clients, each of which is loaded when it is needed: how an endpoint is reached.
 * @type {Record<string, () => Promise<{
 *   reach(options: import('./options.js').Options): import('./checked.js').Way }>>}
 */
const CLIENTS = {
  mcp: () => import('./clients/mcp.js'),
  a2a: () => import('./clients/a2a.js'),
  acp: () => import('./clients/acp.js'),
  abp: () => import('./clients/page.js'),
  webmcp: () => import('./clients/page.js'),
};

/**
 * @param {string[]} args
 * @returns {Promise<number>} the exit code
 */
async function main(args) {
  const options = readOptions(args);
  const { protocol, address, endpoint, isProgram, isModern, input, isText, within, json } = options;
  if (!isHere(address) && !options['i-may'])
    throw new UsageError(
      `${address} is not on this machine, and its tools have effects: --i-may, if you may; --dry-run tells what would be sent`,
    );
  const byProcesses = options.processes === true;
  const rules = rulesOf(protocol, isModern, isProgram);
  const { reach } = await CLIENTS[protocol]();
  const report = await run({
    plan: { way: reach(options), input, isText, byProcesses },
    rules,
    presses: pressesOf(options.presses),
    within,
    quiet: options.quiet,
    tell(line, whole) {
      if (!json) print(line.press === 'none' ? headOf(whole, within) : lineText(line));
    },
  });
  const call = options.tool ? `${options.tool} ${input}` : input;
  const full = { stopcheck: version, protocol, endpoint, call, within, ...report };
  const findings = findingsOf(full, rules, options.again);
  print(json ? JSON.stringify({ ...full, findings }, undefined, 2) : summaryOf(full, findings));
  if (options.html) writeFileSync(options.html, pageOf(full, findings));
  return findings.some(({ isScored }) => isScored) ? EXIT.FINDINGS : EXIT.TRUE;
}

stdout.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
  if (error.code !== 'EPIPE') throw error;
});
// Advice of libraries to their users is not about what is checked.
console.warn = () => {};
// A server that breaks its own line must not end the check of it.
process.on('unhandledRejection', () => {});

try {
  const args = argv.slice(2);
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : undefined);
  if (own.includes('--version')) print(version);
  else if (own.includes('--help') || !own.length) print(HELP);
  else if (own.includes('--dry-run')) print(dryRun(readOptions(args)));
  else process.exitCode = await main(args);
} catch (error) {
  stderr.write(`stopcheck: ${printable(/** @type {Error} */ (error).message)}\n`);
  process.exitCode = error instanceof UsageError ? EXIT.USAGE : EXIT.UNREACHABLE;
}
// Leftovers of what was checked must not keep the process alive.
stdout.write('', () => process.exit());
