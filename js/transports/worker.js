/** Workers of pages and of Node, from the side of their owner. */
import { portTransport } from './port.js';

/**
 * Makes a transport to a port or a worker. A transport is returned unchanged.
 * @param {any} target a MessagePort, a worker of a page or of Node, or a transport
 * @param {boolean} made whether the worker was made for this transport: then closing it terminates
 *   the worker
 * @returns {import('./transport.js').Transport}
 */
export function transportTo(target, made) {
  if (typeof target?.post === 'function') return target;
  const isWorker = target?.port || target?.terminate;
  const closed = isWorker ? () => made && void end(target) : undefined;
  return portTransport(target?.port ?? target, closed, target);
}

/**
 * Terminates a worker. A shared worker may serve others, too: only its port is closed.
 * @param {any} worker of a page or of Node
 * @returns {Promise<unknown> | undefined} in Node, settles when it has ended
 */
export function end(worker) {
  // The worker may still throw. Without a listener Node would treat that as an error of the whole
  // process.
  worker.on?.('error', () => {});
  return worker.port ? worker.port.close() : worker.terminate();
}
