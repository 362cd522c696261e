/**
 * Lets messages in during long work. A loop that awaits only promises never returns to the event
 * loop, so it sees no cancel. In Chromium `scheduler.yield()` does not help either. Posting a
 * message to ourselves does.
 */
import { tell } from './development.js';

/** How long a thread works before it returns to the event loop, in ms. */
const SLICE = 8;
/** Messages of a peer that are processed before timers and other connections get their turn. */
export const MAX_MESSAGES_PER_TURN = 1024;

/** When the next turn is due, in ms of `performance.now()`. */
export let due = 0;
/** The turn that everyone in this thread waits for, if any. @type {Promise<void> | undefined} */
let turn;

const { setImmediate } = /** @type {{ setImmediate?: (callback: () => void) => void }} */ (
  globalThis
);

/**
 * Calls something later, without the delay of timers.
 * @param {() => void} callback called in a later turn of the event loop, after the messages that
 *   are queued
 */
export function inAnotherTurn(callback) {
  if (setImmediate) return setImmediate(callback);
  // Browsers slow nested timers down, but not messages.
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(0);
}

/**
 * Returns to the event loop if the current slice of work is over.
 * @returns {Promise<void> | undefined} a promise to await, or undefined if no turn is due, which
 *   only costs reading the clock
 */
export function breathe() {
  if (performance.now() < due) return undefined;
  return (turn ??= new Promise((resolve) =>
    inAnotherTurn(() => {
      turn = undefined;
      due = performance.now() + SLICE;
      resolve();
    }),
  ));
}

/**
 * What handlers and tasks have as `breathe`: it returns to the event loop when a turn is due.
 * @param {string} name whose it is, to warn of one that does not await it
 * @param {() => void} stop throws once the work is to stop
 */
export const breatherOf = (name, stop) => () => {
  stop();
  /** @type {unknown} */
  let isAwaited;
  const pause = breathe()?.then(() =>
    isAwaited ? stop() : tell((dev) => dev.warnOfHandler(name, 'hasty')),
  );
  // Whoever awaits a promise, or hands it on, reads this of it.
  const get = () => (isAwaited = Promise);
  return pause && Object.defineProperty(pause, 'constructor', { get });
};
