/** What a view may load and use: from the metadata of its resource to the browser's own words. */
import { firstOf, getOwn, isRecord } from 'abp-bridge/driver';

/**
 * What a view's frame may do, with an origin of its own making that is nobody else's, or with its
 * sandbox's. Forms need it to tell scripts that they are sent; none goes anywhere.
 */
export const OPAQUE_ORIGIN = 'allow-scripts allow-forms';
export const OWN_ORIGIN = `${OPAQUE_ORIGIN} allow-same-origin`;

/** Sources that one list may name. */
const MAX_SOURCES = 64;
/**
 * An origin, also of all subdomains, maybe with a path; or bytes that stand in the document.
 * Nothing ends a directive.
 */
const SOURCE =
  /^(?:(?:https?|wss?):\/\/(?:\*\.)?[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?(?:\/[\w./~%-]*)?|data:|blob:)$/;

/** The permissions that a view may ask for, and the browser's names of them. */
const FEATURES = {
  camera: 'camera',
  microphone: 'microphone',
  geolocation: 'geolocation',
  clipboardWrite: 'clipboard-write',
};

/**
 * What is a source in a list.
 * @param {unknown} list
 * @param {(what: unknown) => void} [drop] gets what is none
 */
const sourcesOf = (list, drop) =>
  firstOf(list, MAX_SOURCES).filter(
    (source) => (typeof source === 'string' && SOURCE.test(source)) || drop?.(source),
  );

/**
 * What a view is granted of what its resource's metadata asks for.
 * @param {unknown} csp `_meta.ui.csp`
 * @param {unknown} permissions `_meta.ui.permissions`
 * @returns {{ csp?: Record<string, string[]>, permissions?: Record<string, {}>,
 *   dropped: string[] }} `dropped` describes what is no source or no permission that there is, for
 *   people
 */
export function grantedOf(csp, permissions) {
  /** @type {string[]} */
  const dropped = [];
  const drop = (/** @type {string} */ where, /** @type {unknown} */ what) =>
    void dropped.push(`${where} ${String(what).slice(0, 100)}`);
  /** @type {Record<string, string[]>} */
  const lists = {};
  for (const key of ['connectDomains', 'resourceDomains', 'frameDomains', 'baseUriDomains']) {
    const list = getOwn(csp, key);
    if (list === undefined) continue;
    if (!Array.isArray(list)) drop(key, typeof list);
    else if (list.length > MAX_SOURCES) drop(key, `beyond the first ${MAX_SOURCES}`);
    lists[key] = sourcesOf(list, (source) => drop(key, source));
  }
  const known = (isRecord(permissions) ? Object.keys(permissions) : []).filter(
    (key) => Object.hasOwn(FEATURES, key) || drop('permissions', key),
  );
  return {
    csp: csp === undefined ? undefined : lists,
    permissions:
      permissions === undefined ? undefined : Object.fromEntries(known.map((key) => [key, {}])),
    dropped,
  };
}

/**
 * The Content Security Policy of a view.
 * @param {unknown} csp `_meta.ui.csp` of its resource; what is no source is left out
 */
export function policyOf(csp) {
  const sources = (/** @type {string} */ key) =>
    sourcesOf(getOwn(csp, key))
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

/**
 * Whether a policy lets a view show pages of others.
 * @param {unknown} csp as above
 */
export const hasFrames = (csp) => !policyOf(csp).includes("frame-src 'none'");

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
