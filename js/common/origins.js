/** Exact origins: no wildcards and no patterns, only values that `event.origin` can have. */
import { AbpError } from './errors.js';

/**
 * Normalises an origin to the form of `event.origin`. Accepts any URL that consists of an origin
 * only.
 * @param {unknown} text such as `'https://app.example:8443'`
 * @returns {string | undefined} undefined if the text is not an origin
 */
export function originOf(text) {
  if (typeof text !== 'string' || !URL.canParse(text)) return undefined;
  const { origin, href, hostname } = new URL(text);
  const isExact = href === `${origin}/` && origin !== 'null' && !/\*|\.$/.test(hostname);
  return isExact ? origin : undefined;
}

/**
 * The same, for a text that must be an origin.
 * @param {unknown} text
 * @param {string} [meant] an example for the error's message
 * @returns {string} the origin; throws INVALID_PARAMS if the text is not an origin
 */
export function exactOrigin(text, meant = 'https://app.example') {
  const origin = originOf(text);
  if (origin) return origin;
  const why = `${JSON.stringify(text)} is not an origin, such as "${meant}" (docs/errors.md#not-an-origin)`;
  throw new AbpError('INVALID_PARAMS', why);
}
