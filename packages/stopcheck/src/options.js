/** The command line: what is checked, and how. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export class UsageError extends Error {}

const text = /** @type {const} */ ({ type: 'string' });
const texts = /** @type {const} */ ({ type: 'string', multiple: true });
const flag = /** @type {const} */ ({ type: 'boolean' });
const OPTIONS = {
  tool: text,
  args: text,
  text,
  press: texts,
  within: text,
  quiet: text,
  processes: flag,
  'input-ends': flag,
  sdk: text,
  revision: text,
  header: texts,
  browser: text,
  'browser-arg': texts,
  json: flag,
  html: text,
  'dry-run': flag,
  'i-may': flag,
  help: flag,
  version: flag,
};

/** The latest revision of MCP, where the end of a stream is the stop. */
const MODERN = '2026-07-28';
const REVISIONS = ['2025-11-25', MODERN];
const PROTOCOLS = ['mcp', 'a2a', 'acp', 'abp', 'webmcp'];

export const HELP = `Presses stop on an agent or a tool server, watches the work, and scores what is said of it.

  stopcheck mcp    --tool NAME --args JSON  -- COMMAND [ARG…]     an MCP server on stdio
  stopcheck mcp    --tool NAME --args JSON  URL                   an MCP server over HTTP
  stopcheck a2a    --text TEXT  URL                               an A2A agent
  stopcheck acp    --text TEXT  -- COMMAND [ARG…]                 an ACP agent
  stopcheck abp    --tool NAME --args JSON  FILE | URL            an app in a page, or behind ws:
  stopcheck webmcp --tool NAME --args JSON  FILE | URL            the WebMCP tools of a page

How the work is seen: by placeholders in the arguments or the text, or by its processes.
  {witness}         an address: each request to it is an effect of the work
  {witness:2000}    an address whose answer takes 2,000 ms: who reads it works so long
  {file}            the path of a file: each line in it is an effect
  {key}             a word that is another one for each call, such as for the name of a process
  --processes       the processes that the program starts for a call (Linux)
Take work of two seconds or more. If nothing sees it, only words are compared.

  --press NAME      makes this press alone (repeatable): see --dry-run for the names
  --within MS       in which work must end after a stop (500)
  --quiet MS        without a sign, after which work has ended (three times its longest pause; 500 at least)
  --input-ends      for A2A agents whose turn ends in the state input-required, without a question
  --sdk 1|2         the client of MCP (2)
  --revision REV    of MCP: 2025-11-25, or 2026-07-28 (2025-11-25)
  --header H: V     sent with each request over HTTP (repeatable)
  --browser PATH    the browser for pages (CHROME_PATH, or Chrome); --browser-arg=ARG adds an argument
  --json            prints the report as JSON
  --html FILE       writes the report as a page, with a picture of each press
  --dry-run         tells what would be sent, and sends nothing
  --i-may           is needed for what is not on this machine: its tools have effects

Exit code: 0 all is true, 1 there are findings, 2 the command is wrong, 3 the call could not be made.`;

/** @typedef {ReturnType<typeof readOptions>} Options */

/**
 * @param {string[]} args
 * @throws {UsageError}
 */
export function readOptions([protocol, ...rest]) {
  if (!PROTOCOLS.includes(protocol))
    throw new UsageError(`The protocol comes first: ${PROTOCOLS.join(', ')}`);
  const end = rest.includes('--') ? rest.indexOf('--') : rest.length;
  const command = rest.slice(end + 1);
  let read;
  try {
    read = parseArgs({ args: rest.slice(0, end), options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message, { cause: error });
  }
  const { values, positionals } = read;
  const { tool = '', text: said, args = '{}', press = [], header = [], sdk = '2' } = values;
  const isText = protocol === 'a2a' || protocol === 'acp';
  const [address] = positionals;
  const isProgram = command.length > 0;
  if (positionals.length + Number(isProgram) !== 1)
    throw new UsageError('Name what is checked: its address, or its command after --');
  if (isProgram ? protocol !== 'mcp' && protocol !== 'acp' : protocol === 'acp')
    throw new UsageError(`${protocol} takes ${isProgram ? 'an address' : 'a command after --'}`);
  if (!isText && !tool) throw new UsageError('Name the tool: --tool NAME');
  if (isText && said === undefined) throw new UsageError('Say what is asked: --text TEXT');
  if (!isText) checkJson(args);
  if (sdk !== '1' && sdk !== '2') throw new UsageError('--sdk is 1 or 2');
  if (values.revision && !REVISIONS.includes(values.revision))
    throw new UsageError(`--revision is ${REVISIONS.join(' or ')}`);
  return {
    ...values,
    protocol,
    tool,
    input: isText ? String(said) : args,
    isText,
    address: isProgram ? undefined : addressOf(protocol, address),
    command,
    isProgram,
    browser: values.browser ?? process.env.CHROME_PATH,
    endpoint: isProgram ? command.join(' ') : address,
    isModern: values.revision === MODERN,
    sdk: /** @type {'1' | '2'} */ (sdk),
    within: milliseconds(values.within, 'within') ?? 500,
    quiet: milliseconds(values.quiet, 'quiet'),
    presses: press.flatMap((names) => names.split(',')),
    headers: Object.fromEntries(header.map(headerOf)),
    /**
     * The command that makes one press alone.
     * @param {string} name
     */
    again(name) {
      const kept = Object.entries(values).filter(([option]) => !OTHERS.includes(option));
      const given = kept.flatMap(([option, value]) =>
        [value].flat().map((each) => (each === true ? `--${option}` : `--${option}=${each}`)),
      );
      const place = isProgram ? ['--', ...command] : [address];
      return [
        'npx stopcheck',
        protocol,
        ...[`--press=${name}`, ...given, ...place].map(quoted),
      ].join(' ');
    },
  };
}

/** Options that name presses, or are about the report. */
const OTHERS = ['press', 'html', 'json'];

/** @param {string} arg of a shell */
const quoted = (arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`);

/** @param {string} json */
function checkJson(json) {
  try {
    const value = JSON.parse(json);
    if (Object(value) === value) return;
  } catch {
    // It is told below.
  }
  throw new UsageError(`--args takes an object as JSON, not ${json}`);
}

/**
 * An address, or the path of a page.
 * @param {string} protocol
 * @param {string} given
 */
function addressOf(protocol, given) {
  const [, scheme] = /^(\w+):\/\//.exec(given) ?? [];
  const inPages = protocol === 'abp' || protocol === 'webmcp';
  const known = protocol === 'abp' ? ['http', 'https', 'ws', 'wss'] : ['http', 'https'];
  if (scheme ? !known.includes(scheme) || !URL.canParse(given) : !inPages)
    throw new UsageError(`${given} is no address of ${protocol}`);
  if (!scheme && !existsSync(given)) throw new UsageError(`There is no file ${given}`);
  return scheme ? given : resolve(given);
}

/**
 * @param {string | undefined} given
 * @param {string} name
 */
function milliseconds(given, name) {
  if (given === undefined) return undefined;
  const ms = Number(given);
  if (given.trim() && ms >= 0 && ms < 2 ** 31) return ms;
  throw new UsageError(`--${name} takes milliseconds, not ${JSON.stringify(given)}`);
}

/** @param {string} line */
function headerOf(line) {
  const at = line.indexOf(':');
  if (at < 1) throw new UsageError(`--header takes "Name: value", not ${JSON.stringify(line)}`);
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

/**
 * Whether an address is on this machine.
 * @param {string | undefined} address
 */
export function isHere(address) {
  if (!address || !URL.canParse(address)) return true;
  const { hostname } = new URL(address);
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname) || hostname.endsWith('.localhost');
}
