/**
 * The transport to an app in another window, for the page that opened it or was opened by it. An
 * app needs none: `expose` listens to the windows of its `origins`.
 *
 * Messages are sent as to an iframe (js/transports/iframe.js). The element of an iframe reports its
 * end; a window has to be polled (watch.js), until the app's document has offered a port, which
 * reports its own end.
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
