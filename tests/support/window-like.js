/**
 * A transport like a window's: it can carry ports.
 * @param {MessagePort} port
 */
export function windowLike(port) {
  const transport = {
    carries: ['port', 'frames', 'liveness', 'streams'],
    post: (message, transfer = []) => port.postMessage(message, transfer),
    onMessage() {},
    close: () => port.close(),
  };
  port.onmessage = ({ data, ports }) => transport.onMessage(data, ports);
  return transport;
}
