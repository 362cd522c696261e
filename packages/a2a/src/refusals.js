/** Reasons why an agent rejects a request. */
import { E_LIMIT, AbpError } from 'abp-bridge/driver';

/** @import { StoredTask } from './task.js' */

/** ms after which a client that was rejected may try again. */
export const BUSY_FOR = 1000;

/** Nothing was done; the request can succeed elsewhere, or later. */
export const away = () => new AbpError('UNAVAILABLE', 'The agent is closing', { retryable: true });

/** @param {AbpError} error */
export const isAway = ({ code }) => code === 'UNAVAILABLE';

/** The message may have been accepted; sending it again does no harm. */
export const again = () =>
  new AbpError('UNAVAILABLE', 'Nobody knows yet whether the message was taken: send it again', {
    retryable: true,
  });

/**
 * Why no task is accepted.
 * @param {number} [status] of the core, if it rejected the task
 */
export const refusal = (status = E_LIMIT) =>
  status === E_LIMIT
    ? new AbpError('RATE_LIMITED', 'Too many tasks are in flight: try again later', {
        retryable: true,
        retryAfter: BUSY_FOR,
      })
    : new AbpError('INTERNAL_ERROR', 'Out of memory');

/**
 * @param {StoredTask} task
 * @param {string} what the operation that is impossible in its state
 */
export const unsupported = ({ id, state, terminal }, what) =>
  new AbpError(
    'UNSUPPORTED_OPERATION',
    terminal
      ? `Task ${id} is in a terminal state (${state}) and cannot be ${what}.`
      : `Task ${id} is ${state} and accepts messages only when it asks for one.`,
  );

/**
 * The error to send to the client for any thrown value.
 * @param {unknown} error
 */
export function asError(error) {
  if (error instanceof AbpError) return error;
  console.error('abp-bridge: answering a request failed:', error);
  return new AbpError('INTERNAL_ERROR', 'The agent failed to answer');
}
