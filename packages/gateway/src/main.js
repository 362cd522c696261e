#!/usr/bin/env node
/** The program: finds the command, reads its options, and reports errors. */
import { parseArgs } from 'node:util';
import { readFileSync } from 'node:fs';
import { COMMANDS, helpOf, overview } from './commands.js';
import { EXIT, UserError, usageError } from './errors.js';
import { printable } from './texts.js';

const about = new URL('../package.json', import.meta.url);
const { version, dependencies } = JSON.parse(readFileSync(about, 'utf8'));

/** @param {string[]} args of the command line, without node and script */
async function run([name = '--help', ...rest]) {
  if (name === '--version' || name === '-v') return print(version);
  if (name === '--help' || name === '-h' || name === 'help') return print(overview());
  if (!Object.hasOwn(COMMANDS, name))
    throw usageError(`There is no command ${JSON.stringify(name)}: try --help`);
  if (rest.includes('--help') || rest.includes('-h')) return print(helpOf(name));
  const { options, takes, usage, load } = COMMANDS[name];
  let read;
  try {
    read = parseArgs({ args: rest, options, allowPositionals: true });
  } catch (error) {
    throw usageError(`${/** @type {Error} */ (error).message}. See ${name} --help`);
  }
  const [least, most] = takes;
  const { positionals, values } = read;
  if (positionals.length < least || positionals.length > most)
    throw usageError(`Usage: abp-bridge-gateway ${name} ${usage}`);
  const { execute } = await load();
  return execute(positionals, values, { version, dependencies });
}

/** @param {string} text */
const print = (text) => void process.stdout.write(`${text}\n`);

// The reader may leave early, as `head` does.
process.stdout.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  process.exitCode = (await run(process.argv.slice(2))) ?? EXIT.OK;
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  process.stderr.write(`abp-bridge-gateway: ${printable(error.message)}\n`);
  process.exitCode = error.exitCode;
}
// Leftovers of a page or a driver must not keep the process alive.
process.stdout.write('', () => process.exit());
