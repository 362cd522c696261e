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
 * @param {(transport: import('./transport.js').Transport) => void} accept called for each connection; sets its `onMessage`
 * @param {() => boolean} hasRoom whether a shared worker takes one more page; a worker always takes its owner
 * @returns {() => void} stops it
 */
export function listenToOwners(accept, hasRoom) {
  if ('SharedWorkerGlobalScope' in globalThis) {
    const connected = (/** @type {any} */ { ports }) => {
      const transport = portTransport(ports[0]);
      if (hasRoom()) accept(transport);
      else transport.close();
    };
    addEventListener('connect', connected);
    return () => removeEventListener('connect', connected);
  }
  const port = ownerPort();
  let stopped = false;
  /** @type {import('./transport.js').Transport | undefined} */
  let waiting;
  // The owner has no other way to connect: when its connection has ended, the next one begins on the same port, with the
  // next message.
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
