/** What a view may load and use: from the metadata of its resource to the browser's own words. */
import { firstOf, getOwn } from '../common/values.js';

/** Sources that one list may name. */
const MAX_SOURCES = 64;
/** An origin, also of all subdomains, maybe with a path; or bytes that stand in the document. Nothing ends a directive. */
const SOURCE =
  /^(?:(?:https?|wss?):\/\/(?:\*\.)?[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?(?:\/[\w./~%-]*)?|data:|blob:)$/;

/**
 * The Content Security Policy of a view.
 * @param {unknown} csp `_meta.ui.csp` of its resource; what is no source is left out
 */
export function policyOf(csp) {
  const sources = (/** @type {string} */ key) =>
    firstOf(getOwn(csp, key), MAX_SOURCES)
      .filter((source) => typeof source === 'string' && SOURCE.test(source))
      .map((source) => ` ${source}`)
      .join('');
  const resources = sources('resourceDomains');
  const connect = sources('connectDomains');
  return [
    "default-src 'none'",
    `script-src 'self' 'unsafe-inline'${resources}`,
    `style-src 'self' 'unsafe-inline'${resources}`,
    `img-src 'self' data:${resources}`,
    `font-src 'self' data:${resources}`,
    `media-src 'self' data:${resources}`,
    `connect-src${connect ? ` 'self'${connect}` : " 'none'"}`,
    `frame-src${sources('frameDomains') || " 'none'"}`,
    `base-uri${sources('baseUriDomains') || " 'self'"}`,
    "object-src 'none'",
    "form-action 'none'",
  ].join('; ');
}

/** The permissions that a view may ask for, and the browser's names of them. */
const FEATURES = {
  camera: 'camera',
  microphone: 'microphone',
  geolocation: 'geolocation',
  clipboardWrite: 'clipboard-write',
};

/**
 * The permissions of a view, as the attribute `allow` of its frame.
 * @param {unknown} permissions `_meta.ui.permissions` of its resource
 * @param {string} [origin] of the frame, where it is another's
 */
export const allowOf = (permissions, origin = '*') =>
  Object.entries(FEATURES)
    .filter(([key]) => getOwn(permissions, key) !== undefined)
    .map(([, feature]) => `${feature} ${origin}`)
    .join('; ');
