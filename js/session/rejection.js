import { AbpError } from '../common/errors.js';

/**
 * The error of a failed call, for methods that throw it.
 * @param {import('../wire/messages.js').Failure} response
 * @param {AbortSignal | undefined} signal the caller's
 */
export function rejectionOf(response, signal) {
  const error = AbpError.from(
    response.error ?? { code: 'CANCELLED', message: 'The operation was cancelled' },
    response,
  );
  if (response.cancelled && error.code !== 'TIMEOUT') error.name = 'AbortError';
  if (signal?.aborted) error.cause = signal.reason;
  return error;
}
