/**
 * Which origins are served in this window. Only one app may answer an agent, or each call would run twice. A page may have
 * several copies of this library, in bundles of their own, so the window itself keeps it, under a key that all copies know.
 * It gives a script of the page nothing that it does not have anyway.
 */
import { AbpError } from '../common/errors.js';
import { listenToWindow } from '../transports/window.js';

/** What the map holds must not change: copies of other versions read it. */
const SERVED = Symbol.for('abp-bridge.served');

/**
 * Serves the pages of these origins.
 * @param {ReadonlySet<string>} origins exact ones
 * @param {Parameters<typeof listenToWindow>[1]} heard called for each message, also once it is stopped: agents that do not know it
 *   yet are told that they have no session any more, until another app serves their origin
 * @param {Parameters<typeof listenToWindow>[2]} refused called for messages from other origins
 * @returns {() => void} stops it
 * @throws {AbpError} ALREADY_INITIALIZED if another app of this window serves one of them
 */
export function serveWindow(origins, heard, refused) {
  const realm = /** @type {any} */ (globalThis);
  /** By origin: undefined as long as it is served, afterwards what ends the answers. @type {Map<string, undefined | (() => void)>} */
  const served = realm[SERVED] ?? new Map();
  Object.defineProperty(realm, SERVED, { value: served });
  for (const origin of origins) {
    if (!served.has(origin) || served.get(origin)) continue;
    throw new AbpError(
      'ALREADY_INITIALIZED',
      `Another app in this page already serves ${origin} (docs/errors.md#exposed-twice)`,
    );
  }
  for (const origin of origins) {
    served.get(origin)?.();
    served.set(origin, undefined);
  }
  const stop = listenToWindow(origins, heard, refused);
  return () => {
    stop();
    for (const origin of origins) served.set(origin, listenToWindow(new Set([origin]), heard));
  };
}
