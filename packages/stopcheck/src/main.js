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
 * The client for an endpoint. Each is loaded when it is needed.
 * @param {import('./options.js').Options} options
 * @returns {Promise<import('./checked.js').Way>}
 */
async function wayOf(options) {
  const { protocol, address = '', command, isProgram, tool, headers } = options;
  const [program, ...args] = command;
  switch (protocol) {
    case 'mcp': {
      const { openMcp } = await import('./clients/mcp.js');
      const { sdk, isModern } = options;
      const url = isProgram ? undefined : address;
      return { open: () => openMcp({ url, command: program, args, headers, tool, sdk, isModern }) };
    }
    case 'a2a': {
      const { openA2a } = await import('./clients/a2a.js');
      const inputEnds = options['input-ends'] === true;
      return { open: () => openA2a({ url: address, headers, inputEnds }) };
    }
    case 'acp': {
      const { openAcp } = await import('./clients/acp.js');
      return { open: () => openAcp({ command: program, args }) };
    }
    default: {
      const { reachPage } = await import('./clients/page.js');
      const { browser, 'browser-arg': browserArgs } = options;
      return reachPage({ address, webmcp: protocol === 'webmcp', tool, browser, browserArgs });
    }
  }
}

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
  const report = await run({
    plan: { way: await wayOf(options), input, isText, byProcesses },
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
