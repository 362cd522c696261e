/** Waits for handlers: before they begin, and until they have returned. */

/** @import { Call } from '../session/call.js' */

/**
 * Waits for a promise before a handler begins. If that fails, or the call ends meanwhile, the
 * handler never ran.
 * @template T
 * @param {Call} call
 * @param {Promise<T>} needed
 * @param {(needed: T) => unknown} begin
 * @returns {Promise<unknown>} the result of `begin`
 */
export async function beginAfter(call, needed, begin) {
  call.postpone();
  const value = await needed;
  // The call has ended, so the result is not used.
  if (!call.beginWork()) throw call.signal.reason;
  return begin(value);
}

/**
 * Resolves when the handler of a call has returned, and the core knows of it.
 * @param {Call} call
 * @returns {Promise<void>}
 */
export function returnOf(call) {
  const extra = call.ensureExtra();
  return (extra.returned ??= new Promise((resolve) => {
    if (call.hasEnded) resolve();
    else extra.onReturn = resolve;
  }));
}
