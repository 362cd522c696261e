/** The only place that listens to abort signals. The listener is the call's own record, so no closure is made. */

/** Node's, which warns of a leak when a signal has more than ten listeners. */
const { setMaxListeners } =
  /** @type {any} */ (globalThis).process?.getBuiltinModule?.('node:events') ?? {};

/**
 * @param {AbortSignal | undefined} signal
 * @param {EventListenerObject} record
 */
export function listen(signal, record) {
  signal?.addEventListener('abort', record, { once: true });
  // Any number of calls may share a signal. Others' signals (jsdom's, say) are no EventTarget of Node's.
  if (setMaxListeners && signal instanceof EventTarget) setMaxListeners(0, signal);
}

/**
 * @param {AbortSignal | undefined} signal
 * @param {EventListenerObject} record
 */
export function unlisten(signal, record) {
  signal?.removeEventListener('abort', record);
}

/**
 * What a handler finds in `signal.reason`: always an AbortError, with the other side's words.
 * @param {string | undefined} reason
 */
export function abortError(reason) {
  return new DOMException(reason ?? 'The operation was cancelled', 'AbortError');
}
