/** JSON-RPC as objects, between a page and its iframe and over MessagePorts: what it adds to the transports. */
import { PortChannel } from './port-channel.js';
import { AppChannel, HostChannel } from './window-channel.js';

/** @typedef {import('../../../js/transports/transport.js').Transport} Transport */

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
export const portChannel = (port, closed) => new PortChannel(port, closed);

/**
 * From a host page to the app in its iframe, or in a window that it opened.
 *
 * What is posted before the app has spoken or loaded waits, since a document that loads hears nothing. An iframe
 * that is reloaded, navigated or removed closes the channel: a new document needs a new one.
 * @param {HTMLIFrameElement | Window} target
 * @param {import('./window-channel.js').HostOptions} options
 * @returns {Transport & { readonly isReplaced: boolean }} `isReplaced`: it ended because another document was loaded
 */
export const windowChannel = (target, options) => new HostChannel(target, options);

/**
 * From an app to the page that embeds it, or that opened it.
 * @param {import('./window-channel.js').AppOptions & { origins: readonly string[] }} options
 * @returns {Transport}
 */
export const hostChannel = (options) => new AppChannel(options);

/**
 * From a view to the page that embeds it, which may be anybody's: its origin is found out.
 * @param {Omit<import('./window-channel.js').AppOptions, 'host'>} options
 * @returns {Transport}
 */
export const embedderChannel = (options) => new AppChannel(options);
