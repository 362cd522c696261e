/** What the options of several commands stand for. */
import { appUrl, App } from './app.js';
import { usageError } from './errors.js';
import { printable } from './texts.js';

/**
 * The options of the commands, as `parseArgs` reads them; which of them a command has, commands.js says.
 * @typedef {Partial<Record<'browser' | 'profile' | 'cdp' | 'connect-timeout' | 'http' | 'token' | 'patience' | 'timeout' | 'out', string>>
 *   & Partial<Record<'headed' | 'temporary' | 'json', boolean>>
 *   & Partial<Record<'origin' | 'browser-arg' | 'allow-origin' | 'allow-host', string[]>>} Values
 */

/**
 * @param {string | undefined} text
 * @param {string} name of the option, for the error
 * @returns {number | undefined} ms
 */
export function seconds(text, name) {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value < 2 ** 31 / 1000) return value * 1000;
  throw usageError(`--${name} takes seconds, such as 30 or 0.5, not ${JSON.stringify(text)}`);
}

/** @param {string} line */
export const log = (line) => void process.stderr.write(`abp-bridge-gateway: ${printable(line)}\n`);

/**
 * The app of an address, by the options that all commands share.
 * @param {string} address
 * @param {Values} values of the options
 * @param {{ version: string, headed?: boolean }} context
 * @returns {App}
 */
export function appOf(address, values, { version, headed = values.headed }) {
  return new App(appUrl(address), {
    agent: { name: 'abp-bridge-gateway', version },
    page: pageOptions(values, headed),
  });
}

/**
 * @param {Values} values of the options
 * @param {boolean} [headed]
 * @returns {import('./page-way.js').PageOptions}
 */
export const pageOptions = (values, headed) => ({
  origins: values.origin,
  browser: values.browser,
  headed,
  profile: values.profile,
  temporary: values.temporary,
  cdp: values.cdp,
  browserArgs: values['browser-arg'],
  timeout: seconds(values['connect-timeout'], 'connect-timeout'),
  log,
});
