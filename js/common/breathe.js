/**
 * Keeps long work responsive. A loop that awaits only promises never returns to the event loop, so
 * no cancel reaches it. In Chromium `scheduler.yield()` does not help either. Posting a message to
 * the own thread does.
 */
import { tell } from './development.js';

/** The longest slice of work before a thread returns to the event loop, in ms. */
const SLICE = 8;
/** Messages of one peer that are processed before timers and other connections get their turn. */
export const MAX_MESSAGES_PER_TURN = 1024;

/** When the next turn is due, in ms of `performance.now()`. */
export let due = 0;
/** The pending turn, shared by all callers in this thread. @type {Promise<void> | undefined} */
let turn;

const { setImmediate } = /** @type {{ setImmediate?: (callback: () => void) => void }} */ (
  globalThis
);

/**
 * Calls a function later, without the delay of timers.
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
 * Makes the `breathe` of a handler or a task: it returns to the event loop when a turn is due.
 * @param {string} name of the handler or task, for a warning if it does not await the promise
 * @param {() => void} stop throws once the work must stop
 */
export const breatherOf = (name, stop) => () => {
  stop();
  /** @type {unknown} */
  let isAwaited;
  const pause = breathe()?.then(() =>
    isAwaited ? stop() : tell((dev) => dev.warnOfHandler(name, 'hasty')),
  );
  // `await` and `Promise.resolve` read `constructor` of a promise.
  const get = () => (isAwaited = Promise);
  return pause && Object.defineProperty(pause, 'constructor', { get });
};
