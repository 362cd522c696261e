/**
 * Long work that can be cancelled: gives the event loop a turn now and then, which is when a cancel comes
 * in, and stops as soon as one has.
 * @param {AbortSignal} signal
 * @param {number} [every] ms of work between two turns
 * @returns {() => Promise<void> | undefined} to be awaited in the work's inner loop
 */
export function breather(signal, every = 8) {
  let until = performance.now() + every;
  return () => {
    signal.throwIfAborted();
    if (performance.now() < until) return undefined;
    // A message of our own: timers that nest are slowed down, messages are not.
    return new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        until = performance.now() + every;
        resolve(undefined);
      };
      port2.postMessage(0);
    }).then(() => signal.throwIfAborted());
  };
}
