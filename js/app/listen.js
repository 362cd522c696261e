/**
 * Who speaks to an app from other windows. A message counts only if the browser made the event, the
 * origin is exactly right, and it comes from a window. Read `event.origin` before `event.data`: in
 * the other order, Chromium takes milliseconds for large messages from other sites.
 */
import * as abp from '../driver/abp-boundary.js';
import { tell } from '../common/development.js';
import { AbpError } from '../common/errors.js';
import { getOwn } from '../common/values.js';
import { listen } from '../transports/listen.js';
import { peerTransport } from '../transports/window.js';

/** @import { Connections } from './connections.js' */

/**
 * Which origins are served in this window. Only one app may answer an agent, or each call would run
 * twice. A page may have several copies of this library, in bundles of their own, so the window
 * itself keeps it, under a key that all copies know. It gives a script of the page nothing that it
 * does not have anyway. What the map holds must not change: copies of other versions read it.
 */
const SERVED = Symbol.for('abp-bridge.served');

/**
 * Connects the windows of some origins, as long as this page is there.
 * @param {Connections} connections of the app
 * @param {Set<string>} origins exact ones
 * @returns {() => void} ends that. Agents that do not know it yet are told that they have no
 *   session any more, until another app serves their origin
 * @throws {AbpError} ALREADY_INITIALIZED if another app of this window serves one of them
 */
export function listenToWindows(connections, origins) {
  const realm = /** @type {any} */ (globalThis);
  /**
   * By origin: undefined as long as it is served, afterwards what ends the answers.
   * @type {Map<string, undefined | (() => void)>}
   */
  const served = realm[SERVED] ?? new Map();
  Object.defineProperty(realm, SERVED, { value: served });
  for (const origin of origins)
    if (served.has(origin) && !served.get(origin))
      throw new AbpError(
        'ALREADY_INITIALIZED',
        `Another app in this page already serves ${origin} (docs/errors.md#exposed-twice)`,
      );
  for (const origin of origins) {
    served.get(origin)?.();
    served.set(origin, undefined);
  }
  const hear = (/** @type {MessageEvent} */ event) => {
    const { origin, source } = event;
    // Messages from our own window are an echo or a forgery: we send nothing to ourselves.
    if (!event.isTrusted || !source || source === realm.window) return;
    if (origins.has(origin))
      connections.whenReady(() => receive(connections, source, origin, event.data));
    else if (!connections.closed && getOwn(event.data, 'type') === abp.TYPE_INITIALIZE)
      // So that the app's author finds out.
      tell((dev) => dev.tellRefused(connections.options, origin));
  };
  const hide = (/** @type {PageTransitionEvent} */ { persisted }) => {
    for (const { endpoint } of connections) endpoint.leave(persisted);
  };
  const stop = listen([[realm, 'message', hear]]);
  const stay = listen([[realm, 'pagehide', hide]]);
  return () => {
    stay();
    for (const origin of origins)
      served.set(origin, () => {
        origins.delete(origin);
        if (!origins.size) stop();
      });
  };
}

/**
 * @param {Connections} connections
 * @param {MessageEventSource} source
 * @param {string} origin
 * @param {unknown} data what that window says
 */
function receive(connections, source, origin, data) {
  const type = getOwn(data, 'type');
  // Other messages on this window are not ours, and are never answered.
  if (typeof type !== 'string') return;
  const begins = type === abp.TYPE_INITIALIZE;
  // Without a session a request is answered, too: that there is none.
  const isAnswered = begins ? !connections.closed : type.startsWith('capabilities/');
  let connection = [...connections].find(
    ({ first }) => first.target === source && first.origin === origin,
  );
  if (!connection && isAnswered)
    connection = connections.connect(peerTransport(source, origin), true);
  // From the offer of a port on only that port counts.
  if (!connection || (connection.endpoint.transport !== connection.first && !begins)) return;
  // A second agent of the same window is refused as long as the first has its session.
  const isOther = begins && connection.ready && getOwn(data, 'id') !== connection.hello;
  if (isOther && !connections.options.restart) tell((dev) => dev.tellBusy(connection));
  connection.endpoint.receive(data, [], connection.first);
  if (connections.closed) connection.endpoint.dispose();
}
