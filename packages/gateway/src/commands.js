/** The commands: their arguments, as `parseArgs` takes them, and their help. */

/**
 * All options of the commands, as `parseArgs` returns them; each command below has some of them.
 * @typedef {Partial<Record<'browser' | 'profile' | 'cdp' | 'connect-timeout' | 'http' | 'token'
 *   | 'keep-alive' | 'patience' | 'timeout' | 'out', string>>
 *   & Partial<Record<'headed' | 'temporary' | 'json', boolean>>
 *   & Partial<Record<'origin' | 'browser-arg' | 'allow-origin' | 'allow-host', string[]>>} Values
 * @typedef {object} Context The program's package.json; without dependencies in the bundle.
 * @property {string} version
 * @property {Record<string, string>} [dependencies]
 * @typedef {(positionals: any, values: Values, context: Context) => Promise<number | void>} Execute
 *   Returns the exit code.
 * @typedef {object} Option `value`: its name in the help.
 * @property {'string' | 'boolean'} type
 * @property {boolean} [multiple]
 * @property {string} [value]
 * @property {string} help
 * @typedef {object} Command
 * @property {string} summary
 * @property {string} usage
 * @property {[number, number]} takes minimum and maximum number of arguments
 * @property {Record<string, Option>} options
 * @property {() => Promise<{ execute: Execute }>} load
 */

/**
 * @param {string} help
 * @returns {Option}
 */
const flag = (help) => ({ type: 'boolean', help });
/**
 * @param {string} value
 * @param {string} help
 * @returns {Option}
 */
const text = (value, help) => ({ type: 'string', value, help });
/**
 * @param {string} value
 * @param {string} help
 * @returns {Option}
 */
const texts = (value, help) => ({ type: 'string', multiple: true, value, help });

const BROWSER = {
  browser: text(
    'PATH',
    'the browser to run; else the first of Chrome, Chromium, Edge and Brave that is installed',
  ),
};

/** Options of the connection to the app. */
const WAY = {
  ...BROWSER,
  headed: flag("shows the browser's window"),
  profile: text('DIR', "the browser's profile, in place of the app's own"),
  temporary: flag('takes a profile that is thrown away at the end'),
  cdp: text('URL', 'attaches to a running browser, such as http://127.0.0.1:9222'),
  origin: texts(
    'ORIGIN',
    "an origin, besides the address's own, that the page may go to (repeatable)",
  ),
  'connect-timeout': text('SECONDS', 'for the page to load, and for its app to answer (30)'),
  'browser-arg': texts(
    'ARG',
    'one more argument for the browser (repeatable): --browser-arg=--lang=de',
  ),
};

/** Options of a server over HTTP. */
const HTTP = {
  http: text('HOST:PORT', 'serves HTTP there, such as 127.0.0.1:8808'),
  token: text(
    'TEXT',
    'the token HTTP clients must send; else $ABP_GATEWAY_TOKEN, else one is generated and printed',
  ),
  'keep-alive': text(
    'SECONDS',
    'shows a sign of life in an answer that is silent so long (15; 0 is never)',
  ),
  'allow-host': texts(
    'HOST',
    'a name by which clients reach the server, besides its own (repeatable); needed with 0.0.0.0',
  ),
  'allow-origin': texts('ORIGIN', 'an origin whose pages may be HTTP clients (repeatable; none)'),
};

/** @type {Record<string, Command>} */
export const COMMANDS = {
  mcp: {
    summary: 'serves apps to MCP clients, on stdio, or over HTTP with --http',
    usage: '[name=]<url>... [options]',
    takes: [1, 32],
    options: {
      ...HTTP,
      patience: text(
        'SECONDS',
        'answers a call that takes longer with a task or a handle (45; 0 is never)',
      ),
      out: text('DIR', 'keeps large results there'),
      ...WAY,
    },
    load: () => import('./commands/mcp.js'),
  },
  call: {
    summary: 'calls a capability once and prints the result; Ctrl-C cancels, a second one leaves',
    usage: '<url> <capability> [json | @file | -] [options]',
    takes: [2, 3],
    options: {
      timeout: text('SECONDS', 'cancels the call after so long (never)'),
      out: text('PATH', 'saves bytes to this file, or into this folder'),
      json: flag('prints the whole response as one line of JSON'),
      ...WAY,
    },
    load: () => import('./commands/call.js'),
  },
  list: {
    summary: "lists an app's capabilities with their schemas, and why one is not available",
    usage: '<url> [options]',
    takes: [1, 1],
    options: { json: flag('prints all of it as JSON'), ...WAY },
    load: () => import('./commands/list.js'),
  },
  login: {
    summary: "opens a visible window on the app's own profile, for a person to log in",
    usage: '<url> [options]',
    takes: [1, 1],
    options: { ...BROWSER, profile: WAY.profile, 'browser-arg': WAY['browser-arg'] },
    load: () => import('./commands/login.js'),
  },
  a2a: {
    summary: 'serves an app as an A2A agent, one skill a capability',
    usage: '<url> [options]',
    takes: [1, 1],
    options: { ...HTTP, ...WAY },
    load: () => import('./commands/a2a.js'),
  },
  doctor: {
    summary: 'checks the browser and versions, and tells how to fix what is missing',
    usage: '[options]',
    takes: [0, 0],
    options: BROWSER,
    load: () => import('./commands/doctor.js'),
  },
};

/** @param {string[][]} rows */
function table(rows) {
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`);
}

/** The program's own help. */
export const overview = () =>
  [
    'Makes any app that speaks the Agentic Browser Protocol usable from MCP clients, A2A clients and the shell.',
    '',
    'Usage: abp-bridge-gateway COMMAND [options]',
    '',
    ...table(Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary])),
    '',
    'Each command has --help. Exit codes: 0 done, 1 the app reported a failure, 2 wrong usage,',
    '3 the app cannot be reached, 124 timed out, 130 cancelled.',
  ].join('\n');

/** @param {string} name */
export function helpOf(name) {
  const { summary, usage, options } = COMMANDS[name];
  const rows = Object.entries(options).map(([option, { value, help }]) => [
    `--${option}${value ? ` ${value}` : ''}`,
    help,
  ]);
  return [
    `abp-bridge-gateway ${name} ${usage}`,
    '',
    `${summary[0].toUpperCase()}${summary.slice(1)}.`,
    '',
    ...table(rows),
  ].join('\n');
}
