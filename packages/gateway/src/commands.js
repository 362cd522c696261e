/** The commands: what each takes, in the words of `parseArgs`, and what its help says. */

/**
 * @typedef {object} Context What the program's package.json says.
 * @property {string} version
 * @property {Record<string, string>} [dependencies] none where they are bundled
 */

/**
 * The options of the commands, as `parseArgs` reads them; which of them a command has, is said below.
 * @typedef {Partial<Record<'browser' | 'profile' | 'cdp' | 'connect-timeout' | 'http' | 'token' | 'patience' | 'timeout' | 'out', string>>
 *   & Partial<Record<'headed' | 'temporary' | 'json', boolean>>
 *   & Partial<Record<'origin' | 'browser-arg' | 'allow-origin' | 'allow-host', string[]>>} Values
 */

/**
 * @typedef {object} Option
 * @property {'string' | 'boolean'} type
 * @property {boolean} [multiple]
 * @property {string} [value] what help calls its value
 * @property {string} help
 */

/**
 * @typedef {object} Command
 * @property {string} summary
 * @property {string} usage
 * @property {[number, number]} takes how many arguments at least and at most
 * @property {Record<string, Option>} options
 * @property {() => Promise<{ execute: (positionals: any, values: Values, context: Context) => Promise<number | void> }>} load
 */

/** @type {Record<string, Option>} */
const BROWSER = {
  browser: {
    type: 'string',
    value: 'PATH',
    help: 'the browser to run; else the first of Chrome, Chromium, Edge and Brave that is installed',
  },
};

/** How to get to the app. @type {Record<string, Option>} */
const WAY = {
  ...BROWSER,
  headed: { type: 'boolean', help: "shows the browser's window" },
  profile: {
    type: 'string',
    value: 'DIR',
    help: "the browser's profile, in place of the app's own",
  },
  temporary: { type: 'boolean', help: 'takes a profile that is thrown away at the end' },
  cdp: {
    type: 'string',
    value: 'URL',
    help: 'attaches to a running browser, such as http://127.0.0.1:9222',
  },
  origin: {
    type: 'string',
    multiple: true,
    value: 'ORIGIN',
    help: "an origin, besides the address's own, that the page may go to (repeatable)",
  },
  'connect-timeout': {
    type: 'string',
    value: 'SECONDS',
    help: 'for the page to load, and for its app to answer (30)',
  },
  'browser-arg': {
    type: 'string',
    multiple: true,
    value: 'ARG',
    help: 'one more argument for the browser (repeatable): --browser-arg=--lang=de',
  },
};

/** A server over HTTP. @type {Record<string, Option>} */
const HTTP = {
  http: {
    type: 'string',
    value: 'HOST:PORT',
    help: 'serves HTTP there, such as 127.0.0.1:8808',
  },
  token: {
    type: 'string',
    value: 'TEXT',
    help: 'the token HTTP clients must send; else $ABP_GATEWAY_TOKEN, else one is generated and printed',
  },
  'allow-host': {
    type: 'string',
    multiple: true,
    value: 'HOST',
    help: 'a name by which clients reach the server, besides its own (repeatable); needed with 0.0.0.0',
  },
  'allow-origin': {
    type: 'string',
    multiple: true,
    value: 'ORIGIN',
    help: 'an origin whose pages may be HTTP clients (repeatable; none)',
  },
};

/** @type {Record<string, Command>} */
export const COMMANDS = {
  mcp: {
    summary: 'serves apps to MCP clients, on stdio, or over HTTP with --http',
    usage: '[name=]<url>... [options]',
    takes: [1, 32],
    options: {
      ...HTTP,
      patience: {
        type: 'string',
        value: 'SECONDS',
        help: 'answers a call that takes longer with a task or a handle (45; 0 is never)',
      },
      out: { type: 'string', value: 'DIR', help: 'keeps large results there' },
      ...WAY,
    },
    load: () => import('./commands/mcp.js'),
  },
  call: {
    summary: 'calls a capability once and prints the result; Ctrl-C cancels, a second one leaves',
    usage: '<url> <capability> [json | @file | -] [options]',
    takes: [2, 3],
    options: {
      timeout: { type: 'string', value: 'SECONDS', help: 'cancels the call after so long (never)' },
      out: { type: 'string', value: 'PATH', help: 'saves bytes to this file, or into this folder' },
      json: { type: 'boolean', help: 'prints the whole response as one line of JSON' },
      ...WAY,
    },
    load: () => import('./commands/call.js'),
  },
  list: {
    summary: "lists an app's capabilities with their schemas, and why one is not available",
    usage: '<url> [options]',
    takes: [1, 1],
    options: {
      json: { type: 'boolean', help: 'prints all of it as JSON' },
      ...WAY,
    },
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
    options: { ...BROWSER },
    load: () => import('./commands/doctor.js'),
  },
};

/** The program's own help. */
export function overview() {
  const names = Object.keys(COMMANDS);
  const width = Math.max(...names.map((name) => name.length)) + 2;
  return [
    'Makes any app that speaks the Agentic Browser Protocol usable from MCP clients, A2A clients and the shell.',
    '',
    'Usage: abp-bridge-gateway COMMAND [options]',
    '',
    ...names.map((name) => `  ${name.padEnd(width)}${COMMANDS[name].summary}`),
    '',
    'Each command has --help. Exit codes: 0 done, 1 the app reported a failure, 2 wrong usage,',
    '3 the app cannot be reached, 124 timed out, 130 cancelled.',
  ].join('\n');
}

/** @param {string} name */
export function helpOf(name) {
  const { summary, usage, options } = COMMANDS[name];
  const rows = Object.entries(options).map(([option, { value, help }]) => [
    `--${option}${value ? ` ${value}` : ''}`,
    help,
  ]);
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return [
    `abp-bridge-gateway ${name} ${usage}`,
    '',
    `${summary[0].toUpperCase()}${summary.slice(1)}.`,
    '',
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`),
  ].join('\n');
}
