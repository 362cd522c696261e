/** Our transports for vscode-jsonrpc, which speaks LSP, on either side. */
import { invokeReportingErrors } from '../../../../js/common/errors.js';
import { Observed } from './observed.js';

/** @type {import('./observed.js').Dialect} */
const LSP = {
  cancel: '$/cancelRequest',
  idKey: 'id',
  answers: true,
  ended: -32097,
  abandons: true,
};

/** An event in the form of vscode-jsonrpc. @template T */
class Emitter {
  /** @type {Set<(value: T) => void>} */
  #listeners = new Set();

  /** Subscribes. @param {(value: T) => void} listener @param {unknown} [thisArg] @param {{ dispose(): void }[]} [disposables] */
  event = (listener, thisArg, disposables) => {
    const call = (/** @type {T} */ value) => listener.call(thisArg, value);
    this.#listeners.add(call);
    const disposable = { dispose: () => void this.#listeners.delete(call) };
    disposables?.push(disposable);
    return disposable;
  };

  /** @param {T} value */
  fire(value) {
    for (const listener of this.#listeners) invokeReportingErrors(listener, value);
  }
}

/**
 * Makes a `MessageReader` and a `MessageWriter` for `createMessageConnection`.
 * @param {import('../../../../js/transports/transport.js').Transport} transport closed together with the result
 */
export function readerAndWriter(transport) {
  const observed = new Observed(transport, LSP);
  const close = () => observed.close();
  /** @type {Emitter<Error>} */
  const readError = new Emitter();
  /** @type {Emitter<[Error, any, number | undefined]>} */
  const writeError = new Emitter();
  /** @type {Emitter<void>} */
  const closed = new Emitter();
  observed.onError = (error) => readError.fire(error);
  observed.onClose = () => closed.fire(undefined);
  const reader = {
    onError: readError.event,
    onClose: closed.event,
    /** Never fires: messages arrive whole. */
    onPartialMessage: new Emitter().event,
    /** @param {(message: any) => void} callback */
    listen(callback) {
      observed.onMessage = callback;
      observed.start();
      return { dispose: close };
    },
    dispose: close,
  };
  const writer = {
    onError: writeError.event,
    onClose: closed.event,
    /** @param {unknown} message */
    async write(message) {
      try {
        observed.send(message);
      } catch (error) {
        writeError.fire([/** @type {Error} */ (error), message, undefined]);
        throw error;
      }
    },
    end: close,
    dispose: close,
  };
  return { reader, writer };
}
