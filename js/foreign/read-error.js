/** Reads the errors that peers send. */
import { safely } from '../common/errors.js';
import { copyRecord, getOwn, textOf } from '../common/values.js';

/**
 * Reads an error from a peer.
 * @param {unknown} received any value
 * @returns {import('../common/errors.js').ErrorObject} in the protocol's form, with missing members
 *   filled in
 */
export const readError = (received) =>
  safely(
    () => {
      const [code, message] = ['code', 'message'].map((key) => textOf(getOwn(received, key)));
      return {
        ...copyRecord(received),
        code: code ?? 'OPERATION_FAILED',
        message:
          message || textOf(received) || code || 'The operation failed, and no reason was given',
        retryable: getOwn(received, 'retryable') === true,
      };
    },
    { code: 'OPERATION_FAILED', message: 'The error cannot be read', retryable: false },
  );
