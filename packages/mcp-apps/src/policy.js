/** The permissions of a view: from the metadata of its resource to policies of the browser. */
import { firstOf, getOwn, isRecord } from 'abp-bridge/driver';

/**
 * The `sandbox` of a view's frame, with a unique origin of its own, or with its sandbox's.
 * `allow-forms` is needed for `submit` events; the policy forbids the sending of forms.
 */
export const OPAQUE_ORIGIN = 'allow-scripts allow-forms';
export const OWN_ORIGIN = `${OPAQUE_ORIGIN} allow-same-origin`;

/** Sources in one list that are read. */
const MAX_SOURCES = 64;
/**
 * An origin, also with all subdomains, maybe with a path; or bytes inside the document. No
 * character ends a directive.
 */
const SOURCE =
  /^(?:(?:https?|wss?):\/\/(?:\*\.)?[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?(?:\/[\w./~%-]*)?|data:|blob:)$/;

/** The permissions that a view may ask for, and their names in browsers. */
const FEATURES = {
  camera: 'camera',
  microphone: 'microphone',
  geolocation: 'geolocation',
  clipboardWrite: 'clipboard-write',
};

/**
 * The valid sources of a list.
 * @param {unknown} list
 * @param {(what: unknown) => void} [drop] called with invalid ones
 */
const sourcesOf = (list, drop) =>
  firstOf(list, MAX_SOURCES).filter(
    (source) => (typeof source === 'string' && SOURCE.test(source)) || drop?.(source),
  );

/**
 * The part of the requested permissions that a view is granted.
 * @param {unknown} csp `_meta.ui.csp`
 * @param {unknown} permissions `_meta.ui.permissions`
 * @returns {{ csp?: Record<string, string[]>, permissions?: Record<string, {}>,
 *   dropped: string[] }} `dropped` describes invalid sources and unknown permissions, for people
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
 * @param {unknown} csp `_meta.ui.csp` of its resource; invalid sources are omitted
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
 * True if a policy lets a view show foreign pages.
 * @param {unknown} csp as above
 */
export const hasFrames = (csp) => !policyOf(csp).includes("frame-src 'none'");

/**
 * The permissions of a view, as the attribute `allow` of its frame.
 * @param {unknown} permissions `_meta.ui.permissions` of its resource
 * @param {string} [origin] of the frame, if it differs
 */
export const allowOf = (permissions, origin = '*') =>
  Object.entries(FEATURES)
    .filter(([key]) => getOwn(permissions, key) !== undefined)
    .map(([, feature]) => `${feature} ${origin}`)
    .join('; ');
