/** Hooks for React: a connection and a call, which end with their component. StrictMode may mount it twice. */
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import { Call, Connection, UNMOUNTED } from './stores.js';

/** @import { CallOptions, Client, ConnectOptions, Opener, Response } from '../agent/client.js' */
/** @typedef {import('./stores.js').CallState} CallState */
/** @typedef {import('./stores.js').ConnectionState} ConnectionState */
/** @typedef {import('./stores.js').Target} Target */

/**
 * Connects to an app as long as the component is mounted, and reconnects by itself.
 *
 *   const [iframe, setIframe] = useState(null);
 *   const { client, status } = useConnection(iframe, { origin, agent });
 *   return <iframe ref={setIframe} src={src} />;
 * @param {Target | { current: Target }} target the iframe, or what else `connect` takes; a ref is read when the component
 *   has been mounted. Of a function, the first one is used
 * @param {ConnectOptions} options the callbacks may change; another `origin` is connected to anew
 * @returns {ConnectionState}
 */
export function useConnection(target, options) {
  const [connection] = useState(() => new Connection(options));
  useEffect(() => {
    connection.options = options;
  });
  const opens = typeof target === 'function' && 'a function';
  useEffect(() => {
    const there = target && 'current' in target ? target.current : target;
    return connection.open(/** @type {Target} */ (there));
    // A function is made anew with each rendering.
  }, [connection, opens || target, options.origin]);
  return useSyncExternalStore(connection.subscribe, connection.get, connection.get);
}

/**
 * Calls a capability. The call is cancelled when the component goes, and when another one is made.
 *
 *   const { call, cancel, pending, progress, response } = useCall(client, 'export.pdf');
 * @param {Client | undefined} client of `useConnection`
 * @param {string} name
 * @returns {CallState & {
 *   call: (params?: any, options?: CallOptions) => Promise<Response>, cancel: (reason?: unknown) => void
 * }}
 */
export function useCall(client, name) {
  const [calls] = useState(() => new Call());
  useEffect(() => () => calls.cancel(UNMOUNTED), [calls]);
  const state = useSyncExternalStore(calls.subscribe, calls.get, calls.get);
  const call = useCallback(
    (/** @type {unknown} */ params, /** @type {CallOptions | undefined} */ options) =>
      calls.start(client, name, params, options),
    [calls, client, name],
  );
  return { ...state, call, cancel: calls.cancel };
}
