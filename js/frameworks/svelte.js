/** Stores for Svelte 4 and 5: a connection and a call, which end with the component that makes them. */
import { onDestroy } from 'svelte';
import { Call, Connection, UNMOUNTED } from './stores.js';

/** @import { CallOptions, Client, ConnectOptions, Response } from '../agent/client.js' */
/** @typedef {import('./stores.js').CallState} CallState */
/** @typedef {import('./stores.js').ConnectionState} ConnectionState */
/** @typedef {import('./stores.js').Target} Target */

/**
 * @template T
 * @typedef {(run: (state: T) => void) => () => void} Subscribe a store's, as Svelte takes it: `run` is called at once, too
 */

/**
 * @template T
 * @param {{ get: () => T, subscribe: Subscribe<T> }} store
 * @returns {Subscribe<T>}
 */
const subscribeTo = (store) => (run) => {
  run(store.get());
  return store.subscribe(run);
};

/**
 * A connection to an app, which reconnects by itself. Made while a component is initialised; it is an action for the
 * iframe, and a store of the connection's state:
 *
 *   const writer = connection({ origin, agent });
 *   <iframe use:writer {src}></iframe> {$writer.status}
 * @param {ConnectOptions} options
 * @param {Target} [target] where the app is, if it is not in an iframe that uses the action
 * @returns {((iframe: HTMLIFrameElement) => { destroy: () => void }) & { subscribe: Subscribe<ConnectionState> }}
 */
export function connection(options, target) {
  const store = new Connection(options);
  let close = store.open(target);
  onDestroy(() => close());
  const action = (/** @type {HTMLIFrameElement} */ iframe) => {
    const destroy = (close = store.open(iframe));
    return { destroy };
  };
  return Object.assign(action, { subscribe: subscribeTo(store) });
}

/**
 * Calls of a capability, as a store of the last one's state. A call is cancelled when the component goes, and when another
 * one is made.
 *
 *   const pdf = calls(writer, 'export.pdf');
 *   <button onclick={() => pdf.call({ title })}>{$pdf.pending}</button>
 * @param {{ subscribe: Subscribe<ConnectionState> }} connection
 * @param {string} name
 * @returns {{ subscribe: Subscribe<CallState>, cancel: (reason?: unknown) => void,
 *   call: (params?: any, options?: CallOptions) => Promise<Response> }}
 */
export function calls(connection, name) {
  const store = new Call();
  /** @type {Client | undefined} */
  let client;
  const unsubscribe = connection.subscribe((state) => (client = state.client));
  onDestroy(() => {
    unsubscribe();
    store.cancel(UNMOUNTED);
  });
  return {
    subscribe: subscribeTo(store),
    call: (params, options) => store.start(client, name, params, options),
    cancel: store.cancel,
  };
}
