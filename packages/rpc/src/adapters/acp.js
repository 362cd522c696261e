/** Our transports for the ACP SDK, client and agent. */
import { Observed } from './observed.js';

/** @type {import('./observed.js').Dialect} */
const ACP = { cancel: '$/cancel_request', answers: true, ended: -32800 };

/** JSON-RPC's error for a message that cannot be parsed. */
const PARSE_ERROR = { code: -32700, message: 'Parse error' };

/**
 * Makes a `Stream` for `connect` of the SDK's client or agent.
 * @param {import('abp-bridge/driver').Transport} transport closed together
 *   with the result
 * @returns {{ readable: ReadableStream<any>, writable: WritableStream<any> }}
 */
export function acpStream(transport) {
  const observed = new Observed(transport, ACP);
  const close = () => observed.close();
  const readable = new ReadableStream({
    start(controller) {
      observed.onMessage = (message) => controller.enqueue(message);
      observed.onError = ({ code }) => {
        const error = PARSE_ERROR;
        if (code === 'PARSE_ERROR') observed.send({ jsonrpc: '2.0', id: null, error });
      };
      observed.onClose = () => controller.close();
      observed.start();
    },
    cancel() {
      // The reader has gone.
      observed.onMessage = () => {};
      observed.onClose = () => {};
      close();
    },
  });
  const writable = new WritableStream({
    write: (message) => observed.send(message),
    close,
    abort: close,
  });
  return { readable, writable };
}
