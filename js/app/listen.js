/**
 * Accepts window messages for an app. A message counts only if the browser made the event, its
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
 * The key for the origins served in this window. Only one app may answer an agent, or each call
 * would run twice. A page may have several copies of this library, in separate bundles, so the
 * window itself holds the map, under a key that all copies know. The map gives the page's scripts
 * no new abilities. Its format must not change: copies of other versions read it.
 */
const SERVED = Symbol.for('abp-bridge.served');

/**
 * Connects the windows of these origins for as long as the page exists.
 * @param {Connections} connections of the app
 * @param {Set<string>} origins exact ones
 * @returns {() => void} stops that. Agents that do not know it yet are then answered that they have
 *   no session, until another app serves their origin
 * @throws {AbpError} ALREADY_INITIALIZED if another app of this window serves one of them
 */
export function listenToWindows(connections, origins) {
  const realm = /** @type {any} */ (globalThis);
  /**
   * By origin: undefined while it is served; later a function that ends the answers.
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
  const onMessage = (/** @type {MessageEvent} */ event) => {
    const { origin, source } = event;
    // A message from the same window is an echo or a forgery: this library sends none to its own
    // window.
    if (!event.isTrusted || !source || source === realm.window) return;
    if (origins.has(origin))
      connections.whenReady(() => receive(connections, source, origin, event.data));
    else if (!connections.closed && getOwn(event.data, 'type') === abp.TYPE_INITIALIZE)
      // So that the app's author notices.
      tell((dev) => dev.tellRefused(connections.options, origin));
  };
  const onPagehide = (/** @type {PageTransitionEvent} */ { persisted }) => {
    for (const { endpoint } of connections) endpoint.leave(persisted);
  };
  const stop = listen([[realm, 'message', onMessage]]);
  const stopLeaving = listen([[realm, 'pagehide', onPagehide]]);
  return () => {
    stopLeaving();
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
 * @param {unknown} data the message
 */
function receive(connections, source, origin, data) {
  const type = getOwn(data, 'type');
  // Other messages to this window belong to other code, and are never answered.
  if (typeof type !== 'string') return;
  const isInitialize = type === abp.TYPE_INITIALIZE;
  // Without a session a request is answered, too, with the error that there is none.
  const isAnswered = isInitialize ? !connections.closed : type.startsWith('capabilities/');
  let connection = [...connections].find(
    ({ first }) => first.target === source && first.origin === origin,
  );
  if (!connection && isAnswered)
    connection = connections.connect(peerTransport(source, origin), true);
  // Once a port was offered, only that port counts.
  if (!connection || (connection.endpoint.transport !== connection.first && !isInitialize)) return;
  // A second agent of the same window is rejected while the first has its session.
  const isOther = isInitialize && connection.ready && getOwn(data, 'id') !== connection.hello;
  if (isOther && !connections.options.restart) tell((dev) => dev.tellBusy(connection));
  connection.endpoint.receive(data, [], connection.first);
  if (connections.closed) connection.endpoint.dispose();
}
