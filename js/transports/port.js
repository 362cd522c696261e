/** A MessagePort, or anything with its form: Node's MessagePort, a worker, a worker's own end. */

/**
 * @param {any} port
 * @param {() => void} [closed] what closing does besides: a port of our own is closed with it
 * @param {any} [worker] whose port it is
 * @returns {import('../endpoint.js').Transport}
 */
export function portTransport(port, closed = () => port.close(), worker) {
  /** @type {import('../endpoint.js').Transport} */
  const transport = {
    post: (message, transfer) =>
      transfer ? port.postMessage(message, transfer) : port.postMessage(message),
    onMessage() {},
    onClose: undefined,
    close() {
      stop();
      closed();
    },
  };
  const stop = hear(port, transport, worker);
  return transport;
}

/**
 * Listens to a port, and to the worker whose port it is.
 * @param {any} port
 * @param {Pick<import('../endpoint.js').Transport, 'onMessage' | 'onClose'>} listener
 * @param {any} [worker] a Worker or a SharedWorker of a page's, or a Worker of Node's
 * @returns {() => void} stops listening
 */
export function hear(port, listener, worker) {
  // Node's workers are no event targets, and tell more than a page's.
  const ofNode = !port.addEventListener;
  let spoke = false;
  /** @type {[any, string, (event: any) => void][]} */
  const listeners = [
    // Ports are only offered by window messages: any that come here are nobody's, and looking costs time.
    [
      port,
      'message',
      (message) => {
        spoke = true;
        listener.onMessage(ofNode ? message : message.data, []);
      },
    ],
    // What cannot be read here (shared memory of another site, say) counts as malformed.
    [port, 'messageerror', () => listener.onMessage(null, [])],
    // Node's ports say when the other end closes; no browser's do.
    [port, 'close', () => listener.onClose?.()],
    // Nobody tells that a page's worker was terminated or closed itself. It lives on after an error that nobody
    // caught, unless it was the script that failed.
    [worker, 'error', (error) => (ofNode || !spoke) && listener.onClose?.(error)],
    [worker, 'exit', (code) => listener.onClose?.(new Error(`it exited with code ${code}`))],
  ];
  for (const [target, type, heard] of listeners) {
    target?.[ofNode ? 'on' : 'addEventListener'](type, heard);
  }
  port.start?.(); // a worker's own scope has nothing to start
  return () => {
    for (const [target, type, heard] of listeners) {
      target?.[ofNode ? 'off' : 'removeEventListener'](type, heard);
    }
  };
}
