/**
 * JSON-RPC's errors: the class with which peers reject, and error objects made from thrown values.
 */
import { getOwn, safely, toErrorObject as readThrown } from 'abp-bridge/driver';

export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;

/**
 * The one error class of JSON-RPC peers. Throw one from a handler to choose the error that the
 * other side gets. `name` is `AbortError` when this side cancelled the request, `TimeoutError` when
 * its timeout did; `cause` is then the error in the answer to the request, if there was one.
 */
export class RpcError extends Error {
  /**
   * @param {number} code
   * @param {string} message
   * @param {unknown} [data]
   * @param {{ name?: string, cause?: unknown }} [more]
   */
  constructor(code, message, data, { name = 'RpcError', cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = name;
    this.code = code;
    if (data !== undefined) this.data = data;
  }

  /**
   * The error of a response. An unreadable one becomes an error for an invalid response.
   * @param {unknown} error
   */
  static from(error) {
    const unreadable = (/** @type {unknown} */ data = undefined) =>
      new RpcError(INVALID_REQUEST, 'The response has neither a result nor a readable error', data);
    const read = () => {
      const code = /** @type {number} */ (getOwn(error, 'code'));
      const message = getOwn(error, 'message');
      if (!Number.isInteger(code) || typeof message !== 'string') return unreadable(error);
      return new RpcError(code, message, getOwn(error, 'data'));
    };
    return safely(read) ?? unreadable();
  }
}

/**
 * The error object for any value that a handler threw: its own code, if it has one of JSON-RPC's
 * kind, else an internal error with its message.
 * @param {any} thrown
 * @returns {{ code: number, message: string, data?: unknown }}
 */
export function toErrorObject(thrown) {
  const { message } = readThrown(thrown);
  return safely(
    () => {
      // A DOMException's code is a number, too, and means something else.
      if (!Number.isInteger(thrown?.code) || thrown instanceof DOMException) {
        // An outcome that the thrower does not know, for example since a pool's worker died, is not
        // known to the core, either.
        const unknown = thrown?.outcome === 'unknown' && { data: { outcome: 'unknown' } };
        return { code: INTERNAL_ERROR, message, ...unknown };
      }
      const { code, data } = thrown;
      return { code, message, ...(data !== undefined && { data }) };
    },
    { code: INTERNAL_ERROR, message },
  );
}

/**
 * True if a thrown value means that the request was cancelled.
 * @param {any} thrown
 * @param {number} cancelled the dialect's code for it
 */
export const saysCancelled = (thrown, cancelled) =>
  safely(
    () => thrown.name === 'AbortError' || [cancelled, 'ABORT_ERR'].includes(thrown.code),
    false,
  );
