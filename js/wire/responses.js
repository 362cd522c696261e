/** Reads what becomes of a call: responses, and the errors in them. An app loads it with the first that its handlers return. */
import { safely } from '../common/errors.js';
import { copyRecord, getOwn, isRecord } from '../common/values.js';

const NO_RESPONSE = "The other side's answer is not an ABP response: { success, data, error }";

/**
 * Reads the response to a call or a question, and makes sure that it has `success` and, if it failed, `error.code`.
 * @param {unknown} received what the peer sent
 * @returns {import('./messages.js').Response} what was said, if it is a response
 */
export function readResponse(received) {
  try {
    if (!isRecord(received) || typeof getOwn(received, 'success') !== 'boolean') {
      const details = received !== undefined && { details: received };
      return { success: false, error: { ...readError(NO_RESPONSE), ...details } };
    }
    const response = /** @type {import('./messages.js').Response} */ (received);
    // Most calls end here.
    if (response.success) return response;
    const error = getOwn(received, 'error');
    // A cancelled response needs no error.
    if (error === undefined && response.cancelled === true) return response;
    const read = readError(error);
    return read === error ? response : { ...response, error: read };
  } catch {
    return { success: false, error: readError(NO_RESPONSE) };
  }
}

/**
 * Reads an error that a peer sent.
 * @param {unknown} received any value
 * @returns {import('../common/errors.js').ErrorObject} what was said, if it has the protocol's form
 */
export function readError(received) {
  return safely(
    () => {
      const [code, message, retryable] = ['code', 'message', 'retryable'].map((key) =>
        getOwn(received, key),
      );
      const words = [message, received].find((text) => typeof text === 'string' && text !== '');
      const whole = typeof code === 'string' && words === message && typeof retryable === 'boolean';
      if (whole && isRecord(received)) return /** @type {unknown} */ (received);
      return {
        ...copyRecord(received),
        code: typeof code === 'string' ? code : 'OPERATION_FAILED',
        message:
          words ??
          (typeof code === 'string' ? code : 'The operation failed, and no reason was given'),
        retryable: retryable === true,
      };
    },
    { code: 'OPERATION_FAILED', message: 'The error cannot be read', retryable: false },
  );
}
