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
  if (!target?.port && !target?.terminate) return portTransport(target);
  return workerTransport(target, () => made && end(target));
}

/**
 * To a worker, of a page's or of Node's.
 * @param {any} worker
 * @param {() => void} closed what closing does besides
 * @returns {import('../endpoint.js').Transport}
 */
export function workerTransport(worker, closed) {
  const port = worker.port ?? worker;
  const stop = hear(
    worker,
    (data) => transport.onMessage(data, []),
    (error) => transport.onClose?.(error),
  );
  /** @type {import('../endpoint.js').Transport} */
  const transport = {
    post: (message, transfer) => port.postMessage(message, transfer ?? []),
    onMessage() {},
    onClose: undefined,
    close() {
      stop();
      closed();
    },
  };
  return transport;
}

/**
 * Listens to a worker.
 * @param {any} worker a Worker or a SharedWorker of a page's, or a Worker of Node's
 * @param {(data: any) => void} heard
 * @param {(error: any) => void} ended it has ended or never ran. Nobody tells that a page's worker was
 *   terminated or closed itself; `error` is what is known of the cause
 * @returns {() => void} stops listening
 */
export function hear(worker, heard, ended) {
  const port = worker.port ?? worker;
  // Node's workers tell more than a page's, in a form of their own.
  const ofNode = !worker.addEventListener;
  let spoke = false;
  const receive = (/** @type {any} */ message) => {
    spoke = true;
    heard(ofNode ? message : message.data);
  };
  const unreadable = () => heard(null);
  const failed = (/** @type {any} */ error) => {
    // A page's worker lives on after an error that nobody caught, unless it was the script that failed.
    if (ofNode || !spoke) ended(error);
  };
  const exited = (/** @type {number} */ code) => ended(new Error(`it exited with code ${code}`));
  /** @type {[any, string, (event: any) => void][]} */
  const listeners = [
    [port, 'message', receive],
    [port, 'messageerror', unreadable],
    [worker, 'error', failed],
    [worker, 'exit', exited],
  ];
  for (const [target, type, listener] of listeners) {
    target[ofNode ? 'on' : 'addEventListener'](type, listener);
  }
  port.start?.();
  return () => {
    for (const [target, type, listener] of listeners) {
      target[ofNode ? 'off' : 'removeEventListener'](type, listener);
    }
  };
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
