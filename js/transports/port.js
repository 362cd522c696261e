/** A MessagePort, or anything with its form: Node's MessagePort, a Worker's own end. */

/**
 * @param {any} port
 * @param {() => void} [closed] what closing does besides: a port of our own is closed with it
 * @returns {import('../endpoint.js').Transport}
 */
export function portTransport(port, closed = () => port.close()) {
  // Ports are only offered by window messages: any that come here are nobody's, and looking costs time.
  const receive = (/** @type {MessageEvent} */ event) => transport.onMessage(event.data, []);
  // What cannot be read here (shared memory of another site, say) counts as malformed.
  const unreadable = () => transport.onMessage(null, []);
  const lost = () => transport.onClose?.();
  const transport = {
    /**
     * @param {unknown} message
     * @param {Transferable[]} [transfer]
     */
    post: (message, transfer) =>
      transfer ? port.postMessage(message, transfer) : port.postMessage(message),
    /** @type {(message: unknown, ports: readonly MessagePort[]) => void} */
    onMessage() {},
    /** @type {undefined | (() => void)} */
    onClose: undefined,
    close() {
      port.removeEventListener('message', receive);
      port.removeEventListener('messageerror', unreadable);
      port.removeEventListener('close', lost);
      closed();
    },
  };
  port.addEventListener('message', receive);
  port.addEventListener('messageerror', unreadable);
  // Node's ports say when the other end closes; no browser's do.
  port.addEventListener('close', lost);
  port.start?.(); // a worker's own scope has nothing to start
  return transport;
}
