/**
 * A MessagePort, or anything with the same interface: Node's MessagePort, a worker, a worker's end
 * of it, and ports that are event emitters, such as Electron's MessagePortMain.
 */
import { development } from '../common/development.js';
import { AbpError } from '../common/errors.js';
import { listen } from './listen.js';
import { Receiver } from './receiver.js';

/**
 * The features that a transport over windows carries: `port` is a better channel, which the app's
 * document can offer.
 * @type {readonly import('./transport.js').Feature[]}
 */
export const UPGRADABLE = ['port', 'frames', 'liveness', 'streams'];

/**
 * Makes a transport over a port.
 * @param {any} port a MessagePort, or anything with the same interface
 * @param {() => void} [closed] called when the transport closes, instead of closing the port
 * @param {unknown} [worker] the worker that the port belongs to
 * @returns {import('./transport.js').Transport}
 */
export function portTransport(port, closed = () => port.close?.(), worker = undefined) {
  if (typeof port?.postMessage !== 'function')
    throw new AbpError('INVALID_PARAMS', 'A port must have postMessage()');
  const transport = new Receiver();
  const stop = listenToPort(port, transport, worker);
  return Object.assign(transport, {
    /**
     * @param {unknown} message
     * @param {Transferable[]} [transfer]
     */
    post(message, transfer) {
      if (transport.stopped) return;
      if (transfer) port.postMessage(message, transfer);
      else port.postMessage(message);
    },
    end() {
      stop();
      closed();
    },
  });
}

/**
 * Listens to a port, and to the worker that it belongs to.
 * @param {any} port a MessagePort, or anything with the same interface
 * @param {Pick<Receiver, 'receive' | 'receiveUnreadable' | 'lose'>} listener
 * @param {unknown} [worker] a page's Worker or SharedWorker, or Node's Worker
 * @returns {() => void} stops listening
 */
export function listenToPort(port, listener, worker) {
  // Event emitters: ports, which have `start`, emit event objects like an EventTarget. Node's
  // workers emit the message itself, and report more events than a page's workers.
  const emits = !port.addEventListener;
  const emitsMessages = emits && !port.start;
  let hasReceived = false;
  /**
   * Only window messages offer ports. Ports in other messages are ignored: reading `ports` takes
   * time.
   * @param {any} message
   */
  const onMessage = (message) => {
    hasReceived = true;
    listener.receive(emitsMessages ? message : message.data);
  };
  /**
   * A worker survives an uncaught error, unless its script failed to load.
   * @param {any} error
   */
  const onError = (error) => {
    const lose = listener.lose.bind(listener);
    if (emits) lose(error);
    else if (!hasReceived) void development().then((dev) => lose(dev.startError(error)), lose);
  };
  /** For a message that cannot be deserialised here, such as shared memory of another site. */
  const onMessageError = () =>
    listener.receiveUnreadable(new AbpError('PARSE_ERROR', 'A message could not be deserialized'));
  /** @type {[any, string, (event: any) => void][]} */
  const listeners = [
    [port, 'message', onMessage],
    [port, 'messageerror', onMessageError],
    // Ports of Node and Electron report when the other end closes; those of browsers do not.
    [port, 'close', () => listener.lose()],
    // No event reports that a page's worker was terminated or closed itself.
    [worker, 'error', onError],
    [worker, 'exit', (code) => listener.lose(new Error(`it exited with code ${code}`))],
  ];
  const stop = emits
    ? listen(listeners, 'on', port.off ? 'off' : 'removeListener')
    : listen(listeners);
  port.start?.(); // a worker's own scope has nothing to start
  return stop;
}
