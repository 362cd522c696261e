/** Composables for Vue: a connection and a call, which end with the scope of their component. */
import { computed, markRaw, onScopeDispose, shallowRef, toValue, unref, watch } from 'vue';
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
 * The members of a store's state as refs.
 * @template {object} T
 * @param {{ get: () => T, subscribe: (listener: (state: T) => void) => () => void }} store
 * @returns {{ [K in keyof T]: import('vue').ComputedRef<T[K]> }}
 */
function refsOf(store) {
  const state = shallowRef(store.get());
  onScopeDispose(store.subscribe((changed) => (state.value = changed)));
  const keys = /** @type {(keyof T)[]} */ (Object.keys(store.get()));
  const refs = keys.map((key) => [key, computed(() => state.value[key])]);
  return Object.fromEntries(refs);
}

/**
 * Connects to an app while the component is mounted, and reconnects automatically.
 * @example
 * const iframe = useTemplateRef('iframe');
 * const { client, status } = useConnection(iframe, { origin, agent });
 * @template [App=any] the type of the app; see `connect`
 * @param {Target | Readonly<import('vue').Ref<Target>>} target the iframe, or another target of
 *   `connect`
 * @param {ConnectOptions} options
 * @returns {{ [K in keyof ConnectionState<App>]: import('vue').ComputedRef<ConnectionState<App>[K]>
 *   }}
 */
export function useConnection(target, options) {
  const connection = new ConnectionStore(options);
  // A reactive proxy cannot be used in place of a client.
  connection.subscribe(({ client }) => client && markRaw(client));
  const refs = refsOf(connection);
  watch(
    () => unref(target),
    (value, _before, onCleanup) => onCleanup(connection.open(value)),
    { immediate: true, flush: 'post' },
  );
  return refs;
}

/**
 * Calls a capability. The call is cancelled when the component is unmounted, and by the next call.
 * @example
 * const { call, cancel, pending, progress, response } = useCall(client, 'export.pdf');
 * @template App the type of the app
 * @template {NameOf<App>} Name
 * @param {import('vue').MaybeRefOrGetter<Client<App> | undefined>} client the client of
 *   `useConnection`
 * @param {import('vue').MaybeRefOrGetter<Name>} name
 * @returns {{ [K in keyof CallState<App, Name>]: import('vue').ComputedRef<CallState<App,
 *   Name>[K]> } & Calling<App, Name>}
 */
export function useCall(client, name) {
  const calls = new Call();
  onScopeDispose(() => calls.cancel(UNMOUNTED));
  return /** @type {any} */ ({
    ...refsOf(calls),
    call: (/** @type {[unknown?, CallOptions?]} */ ...rest) =>
      calls.start(toValue(client), toValue(name), ...rest),
    cancel: calls.cancel,
  });
}
