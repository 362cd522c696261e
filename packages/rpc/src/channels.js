/** JSON-RPC as objects, between a page and its iframe and over MessagePorts: what it adds to the transports. */
import { reasonText } from '../../../js/common/errors.js';
import { getOwn } from '../../../js/common/values.js';
import { PortChannel } from './port-channel.js';
import { AppChannel, HostChannel } from './window-channel.js';
import { warn } from '../../../js/common/development.js';

/** @typedef {import('../../../js/transports/transport.js').Transport} Transport */

/** JSON-RPC's internal error: a message of ours could not be sent. */
const INTERNAL_ERROR = -32603;

/** @type {import('./window-channel.js').Protocol} */
const JSON_RPC = {
  // Or a batch of them.
  isMessage: (data) => getOwn(Array.isArray(data) ? data[0] : data, 'jsonrpc') === '2.0',
  // A request is answered in the other side's place, an answer replaced by an error.
  onUnsent(message, cause, transport) {
    const id = getOwn(message, 'id');
    const why = `The message cannot be sent: ${reasonText(cause)}`;
    const answer = { jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message: why } };
    if (typeof id !== 'string' && typeof id !== 'number') warn(why);
    else if (getOwn(message, 'method') === undefined) transport.post(answer);
    else queueMicrotask(() => transport.receive(answer));
  },
};

/**
 * @typedef {object} NodeWorker What we use of `worker_threads.Worker`, and of `parentPort` in it.
 * @property {(message: any, transfer?: any) => void} postMessage
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} on
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} off
 */

/**
 * A port to another of ours, or what has a port's form: the messages of a turn go together, and either side hears
 * when the other's document goes. (A port to anybody else is `portTransport`'s.)
 * @param {MessagePort | Worker | NodeWorker | typeof globalThis} port in a worker, its own scope or Node's `parentPort`
 * @param {() => void} [closed] called when it closes, in place of closing the port
 * @returns {Transport}
 */
export const portChannel = (port, closed) => new PortChannel(port, closed, JSON_RPC.onUnsent);

/**
 * From a host page to the app in its iframe, or in a window that it opened.
 *
 * What is posted before the app has spoken or loaded waits, since a document that loads hears nothing. An iframe
 * that is reloaded, navigated or removed closes the channel: a new document needs a new one.
 * @param {HTMLIFrameElement | Window} target
 * @param {import('./window-channel.js').HostOptions} options
 * @returns {Transport & { readonly isReplaced: boolean }} `isReplaced`: it ended because another document was loaded
 */
export const windowChannel = (target, options) => new HostChannel(target, options, JSON_RPC);

/**
 * From an app to the page that embeds it, or that opened it.
 * @param {import('./window-channel.js').AppOptions & { origins: readonly string[] }} options
 * @returns {Transport}
 */
export const hostChannel = (options) => new AppChannel(options, JSON_RPC);

/**
 * From a view to the page that embeds it, which may be anybody's: its origin is found out.
 * @param {Omit<import('./window-channel.js').AppOptions, 'host'>} options
 * @returns {Transport}
 */
export const embedderChannel = (options) => new AppChannel(options, JSON_RPC);
