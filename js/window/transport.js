/**
 * The way to an app in another window, from the page that opened it or the other way round. An app
 * needs none of it: `expose` hears the windows of its `origins`.
 *
 * How it is made. Messages go as to an iframe (js/transports/iframe.js). An iframe's element tells
 * what becomes of it; a window is looked at (watch.js), until the app's document has offered a
 * port, which says goodbye itself.
 */
import { exactOrigin } from '../common/origins.js';
import { iframeTransport } from '../transports/iframe.js';
import { requireWindow, watchWindow } from './watch.js';

/** @import { AbpError } from '../common/errors.js' */
/** @import { Transport } from '../transports/transport.js' */

/**
 * A transport to the app in a window: a popup of this page, or its `opener`. For `connect`, wrap it
 * in a function, so that each session gets its own:
 * `connect(() => windowTransport(popup, { origin }), options)`.
 * @param {Window | null} target what `window.open` returned, or `opener`
 * @param {{ origin: string }} options the exact origin of the app's page
 * @returns {Transport}
 * @throws {AbpError} INVALID_PARAMS if there is no window, DISCONNECTED if it is gone; see
 *   docs/transports.md#popups
 */
export function windowTransport(target, options) {
  const origin = exactOrigin(options?.origin);
  requireWindow(target);
  const transport = /** @type {any} */ (
    iframeTransport(/** @type {any} */ ({ contentWindow: target }), origin)
  );
  const stop = watchWindow(/** @type {Window} */ (target), (why) => transport.lose(why));
  const { end } = transport;
  transport.end = () => (stop(), end());
  return transport;
}
