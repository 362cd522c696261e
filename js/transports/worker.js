/** Workers of pages and of Node, from the side of their owner and from inside. */
import { portTransport } from './port.js';

/**
 * Makes a transport to a port or a worker. A transport is returned unchanged.
 * @param {any} target a MessagePort, a worker of a page or of Node, or a transport
 * @param {boolean} made whether the worker was made for this: then closing terminates it, too
 * @returns {import('./transport.js').Transport}
 */
export function transportTo(target, made) {
  if (typeof target?.post === 'function') return target;
  const worker = (target?.port || target?.terminate) && target;
  if (!worker) return portTransport(target);
  return portTransport(worker.port ?? worker, () => made && void end(worker), worker);
}

/**
 * Terminates a worker. A shared worker may serve others, too: only its port is closed.
 * @param {any} worker of a page or of Node
 * @returns {Promise<unknown> | undefined} in Node, settles when it has ended
 */
export function end(worker) {
  // Nobody handles what it still throws, and Node would take that for an error of the whole process.
  worker.on?.('error', () => {});
  return worker.port ? worker.port.close() : worker.terminate();
}

/** The port from a worker to its owner, or undefined outside of workers. @returns {unknown} of a page's worker or of Node's */
export function ownerPort() {
  const scope = /** @type {any} */ (globalThis);
  return scope.DedicatedWorkerGlobalScope
    ? scope
    : (scope.process?.getBuiltinModule?.('node:worker_threads').parentPort ?? undefined);
}

/**
 * Accepts connections to this worker: from its owner or, in a shared worker, from every page that connects.
 * Outside of workers it does nothing.
 * @param {(transport: import('./transport.js').Transport) => void} accept called for each connection
 * @returns {() => void} stops it
 */
export function listenToOwners(accept) {
  if ('SharedWorkerGlobalScope' in globalThis) {
    const connected = (/** @type {any} */ { ports }) => accept(portTransport(ports[0]));
    addEventListener('connect', connected);
    return () => removeEventListener('connect', connected);
  }
  let stopped = false;
  const port = ownerPort();
  // The owner has no other way to connect: when a session is lost, the next one begins on the same port.
  const hearOwner = () => accept(portTransport(port, () => stopped || hearOwner()));
  if (port) hearOwner();
  return () => (stopped = true);
}
