/** Exact origins: no wildcards and no patterns, only what `event.origin` can be equal to. */
import { AbpError } from './errors.js';

/**
 * Normalises an origin to the form of `event.origin`. Takes whatever `URL` takes that names an origin and nothing more.
 * @param {unknown} text such as `'https://app.example:8443'`
 * @returns {string} the origin; throws INVALID_PARAMS if the text is not one
 */
export function exactOrigin(text) {
  if (typeof text === 'string' && URL.canParse(text)) {
    const { origin, href, hostname } = new URL(text);
    if (href === `${origin}/` && !/\*|\.$/.test(hostname)) return origin;
  }
  throw new AbpError(
    'INVALID_PARAMS',
    `${JSON.stringify(text)} is not an origin, such as "https://app.example:8443"`,
  );
}
