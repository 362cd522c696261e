/** Work that a peer causes is split over turns of the event loop, so that timers and other connections get theirs. */

/** Messages that are processed before others have their turn. */
export const MAX_MESSAGES_PER_TURN = 1024;

/** Continues in a later turn of the event loop, after what is queued there. @param {() => void} act what to do then */
export function inLaterTurn(act) {
  const { setImmediate = setTimeout } = /** @type {any} */ (globalThis);
  setImmediate(act);
}
