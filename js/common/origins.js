/** Exact origins: no wildcards and no patterns, only what `event.origin` can be equal to. */
import { AbpError, safely } from './errors.js';

/**
 * Normalises an origin to the form of `event.origin`. Takes whatever `URL` takes that names an origin and nothing more.
 * @param {unknown} text such as `'https://app.example:8443'`
 * @param {string} [address] whose origin may be meant, for the error's message
 * @returns {string} the origin; throws INVALID_PARAMS if the text is not one
 */
export function exactOrigin(text, address) {
  if (typeof text === 'string' && URL.canParse(text)) {
    const { origin, href, hostname } = new URL(text);
    if (!/\*|\.$/.test(hostname) && origin !== 'null') {
      if (href === `${origin}/`) return origin;
      address = href;
    }
  }
  const meant = safely(() => new URL(address ?? '').origin, 'null');
  const hint = meant === 'null' ? 'https://app.example:8443' : meant;
  throw new AbpError(
    'INVALID_PARAMS',
    `${JSON.stringify(text)} is not an origin, such as "${hint}" (docs/errors.md#not-an-origin)`,
  );
}
