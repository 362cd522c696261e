/**
 * Which origins are served in this window. Only one app may answer an agent, or each call would run twice. A page may have
 * several copies of this library, in bundles of their own, so the window itself keeps it, under a key that all copies know.
 * It gives a script of the page nothing that it does not have anyway.
 */
import { AbpError } from '../common/errors.js';

/** What the map holds must not change: copies of other versions read it. */
const SERVED = Symbol.for('abp-bridge.served');

/**
 * Takes origins for an app.
 * @param {ReadonlySet<string>} origins exact ones
 * @returns {(retire: (origin: string) => () => void) => void} gives them back. `retire` begins to answer the agents of the app that
 *   was closed, and returns what ends that: it is called when another app takes the origin
 * @throws {AbpError} ALREADY_INITIALIZED if another app of this window serves one of them
 */
export function takeOrigins(origins) {
  const realm = /** @type {any} */ (globalThis);
  /** By origin: undefined as long as it is served, afterwards what ends the answers. @type {Map<string, undefined | (() => void)>} */
  const served =
    realm[SERVED] ?? Object.defineProperty(realm, SERVED, { value: new Map() })[SERVED];
  for (const origin of origins) {
    if (!served.has(origin) || served.get(origin)) continue;
    throw new AbpError(
      'ALREADY_INITIALIZED',
      `Another app in this page already serves ${origin}: close() that one, or set() its capabilities (docs/errors.md#exposed-twice)`,
    );
  }
  for (const origin of origins) {
    served.get(origin)?.();
    served.set(origin, undefined);
  }
  return (retire) => origins.forEach((origin) => served.set(origin, retire(origin)));
}
