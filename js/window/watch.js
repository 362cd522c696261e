/**
 * Windows that a page opened, or was opened by. No event tells that one is gone: it is looked at.
 */
import { AbpError } from '../common/errors.js';

/** How often, in ms. */
const PERIOD = 250;

/** A browser shows both alike, so that a page does not learn which it was. */
const gone = () =>
  new AbpError(
    'DISCONNECTED',
    'The window was closed, or is cut off: a Cross-Origin-Opener-Policy of its page or of this one does that (docs/transports.md#popups)',
    { retryable: false },
  );

/**
 * @param {any} target
 * @throws {AbpError} if it is no window, or one that is gone
 */
export function requireWindow(target) {
  if (typeof target?.postMessage !== 'function')
    throw new AbpError(
      'INVALID_PARAMS',
      'There is no window: window.open() gives none if the browser blocks it, as it does without a click, or for noopener. A page has no opener for noopener, or where a Cross-Origin-Opener-Policy cuts it off (docs/transports.md#popups)',
    );
  if (target.closed) throw gone();
}

/**
 * Tells when a window is gone.
 * @param {Window} target
 * @param {(why: AbpError) => void} lost called once, in a turn of its own
 * @returns {() => void} stops watching
 */
export function watchWindow(target, lost) {
  const timer = setInterval(() => {
    if (!target.closed) return;
    clearInterval(timer);
    lost(gone());
  }, PERIOD);
  // A test in Node, whose windows are not real ones, ends all the same.
  /** @type {any} */ (timer).unref?.();
  return () => clearInterval(timer);
}
