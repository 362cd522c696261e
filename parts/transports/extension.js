/**
 * Ports of browser extensions (`chrome.runtime.Port`) as transports: between an extension's worker,
 * its pages and its content scripts, and pages or other extensions that it allows. Browsers send
 * JSON over these ports, so each message is sent as text, with bytes in base64.
 *
 * A port is adapted to the interface of a socket, and uses the transport of sockets. A port reports
 * reliably that its other end is gone. The protocol's signs of life are sent all the same, because
 * a browser ends an extension's worker after 30 s without a message, even during a call.
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
 * @property {(listener: (...args: any[]) => void) => void} addListener
 * @property {(listener: (...args: any[]) => void) => void} removeListener
 */

/**
 * @typedef {object} ExtensionPort The parts of a `chrome.runtime.Port` that are used here.
 * @property {string} name
 * @property {{ origin?: string }} [sender] the other side, if that has connected
 * @property {(message: any) => void} postMessage
 * @property {() => void} disconnect
 * @property {PortEvent} onMessage
 * @property {PortEvent} onDisconnect
 */

/**
 * @typedef {object} ServePortsOptions The options of `servePorts`.
 * @property {string[]} [origins] the exact origins that may connect: of web pages, also for their
 *   content scripts, and of extensions (default: this extension's own, for its pages and its
 *   worker)
 * @property {string} [name] the name of the ports to serve; other ports are ignored
 *   (`'abp-bridge'`)
 */

/** @type {import('../../js/common/check-options.js').Kinds<ServePortsOptions>} */
const SERVE_OPTIONS = { name: 'a string', origins: 'an object' };

/**
 * The browser's interface for extensions.
 * @returns {any}
 */
const runtime = () => /** @type {any} */ (globalThis).chrome?.runtime;

/**
 * A transport over a port, such as the result of `chrome.runtime.connect({ name: 'abp-bridge' })`.
 * For `connect`, wrap it in a function, so that each session gets a port of its own, and a worker
 * that was ended is started again: `connect(() => extensionTransport(chrome.runtime.connect({ name:
 * 'abp-bridge' })), options)`.
 * @param {ExtensionPort} port a port without other users
 * @param {import('./websocket.js').SocketOptions} [options] the options of a socket
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
    addEventListener(type, listener) {
      if (type === 'message') port.onMessage.addListener((data) => listener({ data }));
      if (type === 'close')
        port.onDisconnect.addListener(() => {
          // Reading `lastError` keeps the browser from logging it.
          const why = runtime()?.lastError?.message ?? 'its other side is gone, or was ended';
          listener({ code: 1006, reason: why });
        });
    },
  };
  // The browser guarantees the sender's origin.
  return Object.assign(webSocketTransport(socket, options), { origin: port.sender?.origin });
}

/**
 * Serves agents that connect to this part of an extension. Call it while the script starts: a
 * worker that was started by a connection gets that event only then.
 * @param {{ accept: (transport: Transport) => void }} app the result of `expose`
 * @param {ServePortsOptions} [options]
 * @returns {() => void} stops serving new connections; open sessions continue
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
  // `onConnectExternal` is for connections from outside of this extension, if they are allowed.
  const events = [onConnect, onConnectExternal].filter(Boolean);
  for (const event of events) event.addListener(serve);
  return () => events.forEach((event) => event.removeListener(serve));
}
