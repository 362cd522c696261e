/** What waits for a handler: before it begins, and until it has returned. */

/** @import { Call } from '../session/call.js' */

/**
 * Waits for what a handler needs before it begins. If that fails, or the call ends meanwhile, it
 * never ran.
 * @template T
 * @param {Call} call
 * @param {Promise<T>} needed
 * @param {(needed: T) => unknown} begin
 * @returns {Promise<unknown>} what `begin` returns
 */
export async function beginAfter(call, needed, begin) {
  call.postpone();
  const value = await needed;
  // Then it has ended, and nobody waits for this.
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
