/** Workers of pages and of Node, from the inside. */
import { listen } from './listen.js';
import { portTransport } from './port.js';

/**
 * The port from a worker to its owner, or undefined outside of workers.
 * @returns {unknown} of a page's worker or of Node's
 */
export function ownerPort() {
  const scope = /** @type {any} */ (globalThis);
  return scope.DedicatedWorkerGlobalScope
    ? scope
    : scope.process?.getBuiltinModule?.('node:worker_threads').parentPort;
}

/**
 * Accepts connections to this worker: from its owner or, in a shared worker, from every page that
 * connects. Outside of workers it does nothing.
 * @param {(transport: import('./transport.js').Transport, isOneOfMany?: boolean) => void} accept
 *   called for each connection; sets its `onMessage`, or closes it, for example because a shared
 *   worker has too many
 * @returns {() => void} stops accepting
 */
export function listenToOwners(accept) {
  if ('SharedWorkerGlobalScope' in globalThis) {
    const connected = (/** @type {any} */ { ports }) => accept(portTransport(ports[0]), true);
    return listen([[globalThis, 'connect', connected]]);
  }
  const port = ownerPort();
  let stopped = false;
  /** @type {import('./transport.js').Transport | undefined} */
  let waiting;
  // The owner has only this port: when its connection has ended, the next one begins on the same
  // port, with the next message.
  const hearOwner = () => {
    const transport = portTransport(port, () => stopped || hearOwner());
    transport.onMessage = (message, ports) => {
      waiting = undefined;
      accept(transport);
      transport.onMessage(message, ports);
    };
    waiting = transport;
  };
  if (port) hearOwner();
  return () => {
    stopped = true;
    waiting?.close();
  };
}
