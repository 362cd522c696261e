/**
 * Watches windows that a page opened, or was opened by. No event reports that a window is gone, so
 * it is polled.
 */
import { AbpError } from '../common/errors.js';

/** The interval of the polls, in ms. */
const PERIOD = 250;

/** Browsers do not show a page which of the two it was. */
const gone = () =>
  new AbpError(
    'DISCONNECTED',
    'The window was closed, or is cut off: a Cross-Origin-Opener-Policy of its page or of this one does that (docs/transports.md#popups)',
    { retryable: false },
  );

/**
 * @param {any} target
 * @throws {AbpError} if it is not a window, or is gone
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
 * Reports when a window is gone.
 * @param {Window} target
 * @param {(why: AbpError) => void} lost called once, asynchronously
 * @returns {() => void} stops watching
 */
export function watchWindow(target, lost) {
  const timer = setInterval(() => {
    if (!target.closed) return;
    clearInterval(timer);
    lost(gone());
  }, PERIOD);
  // So that a test in Node, without real windows, can end.
  /** @type {any} */ (timer).unref?.();
  return () => clearInterval(timer);
}
