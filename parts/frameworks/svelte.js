/**
 * Stores for Svelte 4 and 5: a connection and a call, which end with the component that makes them.
 */
import { onDestroy } from 'svelte';
import { Call, ConnectionStore, UNMOUNTED } from './stores.js';

/** @import { CallOptions, Client, ConnectOptions } from '../../js/agent/client.js' */
/** @import { NameOf } from '../../js/types/app.js' */
/**
 * @template [App=any]
 * @typedef {import('./stores.js').ConnectionState<App>} ConnectionState The state of a connection,
 *   for a component.
 */
/**
 * @template [App=any]
 * @template {NameOf<App>} [Name=NameOf<App>]
 * @typedef {import('./stores.js').CallState<App, Name>} CallState The state of a call, for a
 *   component.
 */
/**
 * @template App
 * @template {NameOf<App>} Name
 * @typedef {import('./stores.js').Calling<App, Name>} Calling Functions that make and cancel a call
 *   of one capability.
 */
/** @typedef {import('./stores.js').Target} Target */

/**
 * @template T
 * @typedef {(run: (state: T) => void) => () => void} Subscribe `subscribe` of a store in Svelte's
 *   form: `run` is also called at once
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
 * A connection to an app, which reconnects automatically. Make it while a component is initialised.
 * The result is an action for the iframe, and a store of the connection's state:
 * @example
 * const writer = connection({ origin, agent });
 * <iframe use:writer {src}></iframe> {$writer.status}
 * @template [App=any] the type of the app; see `connect`
 * @param {ConnectOptions} options
 * @param {Target} [target] the target of `connect`, if no iframe uses the action
 * @returns {((iframe: HTMLIFrameElement) => { destroy: () => void })
 *   & { subscribe: Subscribe<ConnectionState<App>> }}
 */
export function connection(options, target) {
  const store = new ConnectionStore(options);
  let close = store.open(target);
  onDestroy(() => close());
  const action = (/** @type {HTMLIFrameElement} */ iframe) => ({
    destroy: (close = store.open(iframe)),
  });
  return Object.assign(action, { subscribe: subscribeTo(store) });
}

/**
 * Calls of a capability, as a store of the last call's state. A call is cancelled when the
 * component is destroyed, and by the next call.
 * @example
 * const pdf = calls(writer, 'export.pdf');
 * <button onclick={() => pdf.call({ title })}>{$pdf.pending}</button>
 * @template App the type of the app
 * @template {NameOf<App>} Name
 * @param {{ subscribe: Subscribe<ConnectionState<App>> }} connection
 * @param {Name} name
 * @returns {{ subscribe: Subscribe<CallState<App, Name>> } & Calling<App, Name>}
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
  return /** @type {any} */ ({
    subscribe: subscribeTo(store),
    call: (/** @type {[unknown?, CallOptions?]} */ ...rest) => store.start(client, name, ...rest),
    cancel: store.cancel,
  });
}
