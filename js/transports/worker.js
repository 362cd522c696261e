/** Workers, from their owner's side and from their own: those of pages, and those of Node. */
import { portTransport } from './port.js';

/**
 * To a port or a worker; what is a transport already is taken as it is.
 * @param {any} target
 * @param {boolean} made whether it was made for this: then closing ends it, too
 * @returns {import('../endpoint.js').Transport}
 */
export function transportTo(target, made) {
  if (typeof target?.post === 'function') return target;
  const worker = (target?.port || target?.terminate) && target;
  if (!worker) return portTransport(target);
  return portTransport(worker.port ?? worker, () => made && end(worker), worker);
}

/**
 * Ends a worker. A shared one may be others', too: it only loses its port.
 * @param {any} worker
 * @returns {Promise<unknown> | undefined} Node's says when it has ended
 */
export function end(worker) {
  // What it still throws is nobody's any more, which Node takes for an error of the whole process.
  worker.on?.('error', () => {});
  return worker.port ? worker.port.close() : worker.terminate();
}

/** What a worker speaks to its owner through, if this is one that has one: a page's or Node's. */
export function ownerPort() {
  const scope = /** @type {any} */ (globalThis);
  return scope.DedicatedWorkerGlobalScope
    ? scope
    : (scope.process?.getBuiltinModule?.('node:worker_threads').parentPort ?? undefined);
}

/**
 * Hears those whom this worker serves: its owner or, if it is a shared one, every page that connects.
 * Outside workers it does nothing.
 * @param {(transport: import('../endpoint.js').Transport) => void} accept
 * @returns {() => void} stops it
 */
export function hearOwners(accept) {
  if ('SharedWorkerGlobalScope' in globalThis) {
    const connected = (/** @type {any} */ { ports }) => accept(portTransport(ports[0]));
    addEventListener('connect', connected);
    return () => removeEventListener('connect', connected);
  }
  let stopped = false;
  const port = ownerPort();
  // The owner has no other way in: when a session is lost, the next one begins here.
  const hearOwner = () => accept(portTransport(port, () => stopped || hearOwner()));
  if (port) hearOwner();
  return () => (stopped = true);
}
