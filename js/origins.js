/** Origins, exact ones: no wildcard, no pattern, nothing but what `event.origin` can be equal to. */
import { AbpError } from './errors.js';

/**
 * An origin as `event.origin` reads. Takes what `URL` takes, if it names an origin and nothing beyond it.
 * @param {unknown} text
 * @returns {string}
 */
export function exactOrigin(text) {
  if (typeof text === 'string' && URL.canParse(text)) {
    const { origin, href, hostname } = new URL(text);
    if (href === `${origin}/` && !hostname.endsWith('.')) return origin;
  }
  throw new AbpError(
    'INVALID_PARAMS',
    `${JSON.stringify(text)} is not an origin, such as "https://app.example:8443"`,
  );
}
