/**
 * The only place that listens to abort signals. The listener is the call's own record, so no
 * closure is needed.
 */

/** Set in Node, which warns of a leak when a signal has more than ten listeners. */
const { setMaxListeners } =
  /** @type {any} */ (globalThis).process?.getBuiltinModule?.('node:events') ?? {};

/**
 * Listens to a signal, once.
 * @param {AbortSignal | undefined} signal
 * @param {EventListenerObject} record its `handleEvent` is called when the signal fires
 */
export function onAbort(signal, record) {
  signal?.addEventListener('abort', record, { once: true });
  // Any number of calls may share a signal. Signals of jsdom, for example, are not Node's
  // EventTargets.
  if (setMaxListeners && signal instanceof EventTarget) setMaxListeners(0, signal);
}

/**
 * Stops listening.
 * @param {AbortSignal | undefined} signal
 * @param {EventListenerObject} record as given to `onAbort`
 */
export const offAbort = (signal, record) => signal?.removeEventListener('abort', record);

/**
 * Makes a controller that aborts when a signal does.
 * @param {AbortSignal | undefined} signal
 * @param {unknown} [reason] its reason (default: the signal's)
 * @returns {{ controller: AbortController, release: () => void }} `release` stops listening to the
 *   signal
 */
export function followSignal(signal, reason) {
  const controller = new AbortController();
  const record = { handleEvent: () => controller.abort(reason ?? signal?.reason) };
  if (signal?.aborted) record.handleEvent();
  else onAbort(signal, record);
  return { controller, release: () => offAbort(signal, record) };
}

/**
 * The key under which a pool puts a map into the realm, a `WeakMap<AbortSignal, { grace?: number
 * }>`. The map holds the signals of handlers, with the limits of their connections. A page may have
 * several copies of this library, and the signal of one may stop the pool of another. The format of
 * the map must not change: copies of other versions read it.
 */
export const LIMITS = Symbol.for('abp-bridge.limits');

/**
 * Makes the `signal.reason` of a handler: always an AbortError, with the reason of the other side.
 * @param {string} [reason] its message
 */
export const abortError = (reason) =>
  new DOMException(reason ?? 'The operation was cancelled', 'AbortError');
