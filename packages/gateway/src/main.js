#!/usr/bin/env node
/** The program: finds the command, reads its options, and tells what went wrong. */
import { parseArgs } from 'node:util';
import { readFileSync } from 'node:fs';
import { COMMANDS, helpOf, overview } from './commands.js';
import { EXIT, UserError, usageError } from './errors.js';
import { printable } from './texts.js';

const about = new URL('../package.json', import.meta.url);
const { version, dependencies } = JSON.parse(readFileSync(about, 'utf8'));

/** @param {string[]} args of the command line, without node and script */
async function run(args) {
  const [name = '--help', ...rest] = args;
  if (name === '--version' || name === '-v') return print(version);
  if (name === '--help' || name === '-h' || name === 'help') return print(overview());
  const command = COMMANDS[name];
  if (!command) {
    throw usageError(`There is no command ${JSON.stringify(name)}: try --help`);
  }
  if (rest.includes('--help') || rest.includes('-h')) return print(helpOf(name));
  const { values, positionals } = read(name, rest);
  const [least, most] = command.takes;
  if (positionals.length < least || positionals.length > most) {
    throw usageError(`Usage: abp-bridge-gateway ${name} ${command.usage}`);
  }
  const { execute } = await command.load();
  return execute(positionals, values, { version, dependencies });
}

/** @param {string} name @param {string[]} args */
function read(name, args) {
  try {
    return parseArgs({
      args,
      options: COMMANDS[name].options,
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    throw usageError(`${/** @type {Error} */ (error).message}. See ${name} --help`);
  }
}

/** @param {string} text */
const print = (text) => void process.stdout.write(`${text}\n`);

// Who reads may leave early, as `head` does.
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
