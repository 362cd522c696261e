/** Composables for Vue: a connection and a call, which end with the scope of their component. */
import { computed, markRaw, onScopeDispose, shallowRef, toValue, unref, watch } from 'vue';
import { Call, Connection, UNMOUNTED } from './stores.js';

/** @import { CallOptions, Client, ConnectOptions, Response } from '../agent/client.js' */
/** @typedef {import('./stores.js').CallState} CallState */
/** @typedef {import('./stores.js').ConnectionState} ConnectionState */
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
 * Connects to an app as long as the component is there, and reconnects by itself.
 *
 *   const iframe = useTemplateRef('iframe');
 *   const { client, status } = useConnection(iframe, { origin, agent });
 * @param {Target | Readonly<import('vue').Ref<Target>>} target the iframe, or what else `connect` takes
 * @param {ConnectOptions} options
 * @returns {{ [K in keyof ConnectionState]: import('vue').ComputedRef<ConnectionState[K]> }}
 */
export function useConnection(target, options) {
  const connection = new Connection(options);
  // A reactive proxy cannot be used in place of a client.
  connection.subscribe(({ client }) => client && markRaw(client));
  const refs = refsOf(connection);
  watch(
    () => unref(target),
    (there, _before, onCleanup) => onCleanup(connection.open(there)),
    { immediate: true, flush: 'post' },
  );
  return refs;
}

/**
 * Calls a capability. The call is cancelled when the component goes, and when another one is made.
 *
 *   const { call, cancel, pending, progress, response } = useCall(client, 'export.pdf');
 * @param {import('vue').MaybeRefOrGetter<Client | undefined>} client of `useConnection`
 * @param {import('vue').MaybeRefOrGetter<string>} name
 * @returns {{ [K in keyof CallState]: import('vue').ComputedRef<CallState[K]> } & {
 *   call: (params?: any, options?: CallOptions) => Promise<Response>, cancel: (reason?: unknown) => void
 * }}
 */
export function useCall(client, name) {
  const calls = new Call();
  onScopeDispose(() => calls.cancel(UNMOUNTED));
  return {
    ...refsOf(calls),
    call: (params, options) => calls.start(toValue(client), toValue(name), params, options),
    cancel: calls.cancel,
  };
}
