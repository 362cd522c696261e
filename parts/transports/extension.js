/**
 * Ports of browser extensions (`chrome.runtime.Port`) as transports: between an extension's worker,
 * its pages and its content scripts, and pages or other extensions that it lets in. Browsers send
 * JSON by them, so each message is sent as text, with bytes in base64.
 *
 * How it is made. A port is made to look like a socket, and the transport is that of sockets. A
 * port tells reliably that its other end is gone, but the protocol's signs of life are sent all the
 * same: a browser ends an extension's worker after 30 s without a message, also in the midst of a
 * call.
 */
import { AbpError } from '../../js/common/errors.js';
import { requireOptions } from '../../js/common/check-options.js';
import { warn } from '../../js/common/development.js';
import { exactOrigin } from '../../js/common/origins.js';
import { webSocketTransport } from './websocket.js';

/** @import { Prepare, Transport } from '../../js/transports/transport.js' */
/** @import { Socket } from './websocket.js' */

/**
 * @typedef {object} PortEvent An event of a port.
 * @property {(heard: (...told: any[]) => void) => void} addListener
 * @property {(heard: (...told: any[]) => void) => void} removeListener
 */

/**
 * @typedef {object} ExtensionPort What we use of a `chrome.runtime.Port`.
 * @property {string} name
 * @property {{ origin?: string }} [sender] who has connected, where this side has not
 * @property {(message: any) => void} postMessage
 * @property {() => void} disconnect
 * @property {PortEvent} onMessage
 * @property {PortEvent} onDisconnect
 */

/**
 * @typedef {object} ServePortsOptions Whom an app serves by ports.
 * @property {string[]} [origins] the exact origins of those who may connect: of web pages, for
 *   their content scripts, too, and of extensions (this extension's own, that is its pages and its
 *   worker)
 * @property {string} [name] that their ports have; other ports are left alone (`'abp-bridge'`)
 */

/** @type {import('../../js/common/check-options.js').Kinds<ServePortsOptions>} */
const SERVE_OPTIONS = { name: 'a string', origins: 'an object' };

/**
 * The browser's interface for extensions.
 * @returns {any}
 */
const runtime = () => /** @type {any} */ (globalThis).chrome?.runtime;

/**
 * A transport over a port, such as `chrome.runtime.connect({ name: 'abp-bridge' })` returns. For
 * `connect`, wrap it in a function, so that each session gets a port of its own, and a worker that
 * was ended is started again: `connect(() =>
 * extensionTransport(chrome.runtime.connect({ name: 'abp-bridge' })), options)`.
 * @param {ExtensionPort} port that nobody else uses
 * @param {import('./websocket.js').SocketOptions} [options] as those of a socket
 * @returns {Transport & { prepare: Prepare }} `prepare` is for apps
 */
export function extensionTransport(port, options) {
  if (!port?.onDisconnect)
    throw new AbpError(
      'INVALID_PARAMS',
      'extensionTransport needs a port, such as chrome.runtime.connect() returns',
    );
  /** @type {Socket} */
  const socket = {
    readyState: 1,
    bufferedAmount: 0,
    send: (text) => port.postMessage(text),
    close: () => port.disconnect(),
    addEventListener(type, heard) {
      if (type === 'message') port.onMessage.addListener((data) => heard({ data }));
      if (type === 'close')
        port.onDisconnect.addListener(() => {
          // The browser complains of an error that nobody has read.
          const why = runtime()?.lastError?.message ?? 'its other side is gone, or was ended';
          heard({ code: 1006, reason: why });
        });
    },
  };
  // The browser vouches for whom it says to have connected.
  return Object.assign(webSocketTransport(socket, options), { origin: port.sender?.origin });
}

/**
 * Serves those who connect to this part of an extension. Call it while the script begins: a worker
 * that is started by a connection hears of it only then.
 * @param {{ accept: (transport: Transport) => void }} app what `expose` returned
 * @param {ServePortsOptions} [options]
 * @returns {() => void} ends it; sessions that have begun go on
 */
export function servePorts(app, options = {}) {
  requireOptions('servePorts', options, SERVE_OPTIONS);
  const { onConnect, onConnectExternal } = runtime() ?? {};
  if (!onConnect)
    throw new AbpError('NOT_SUPPORTED', 'servePorts: this is no part of a browser extension');
  const { name = 'abp-bridge', origins = [new URL(runtime().getURL('')).origin] } = options;
  const allowed = new Set(origins.map((origin) => exactOrigin(origin)));
  const serve = (/** @type {ExtensionPort} */ port) => {
    if (port.name !== name) return;
    const origin = port.sender?.origin ?? '';
    if (allowed.has(origin)) return app.accept(extensionTransport(port));
    warn(`${origin || 'Who has no origin'} may not connect: add it to the origins of servePorts`);
    port.disconnect();
  };
  // Others than this extension's parts come by the second, where they may come at all.
  const events = [onConnect, onConnectExternal].filter(Boolean);
  for (const event of events) event.addListener(serve);
  return () => events.forEach((event) => event.removeListener(serve));
}
