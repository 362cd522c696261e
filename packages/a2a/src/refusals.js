/** Why an agent does not do what a request asks for. */
import { E_LIMIT, AbpError } from 'abp-bridge/driver';

/** @import { StoredTask } from './task.js' */

/** ms after which a client that was refused may try again. */
export const BUSY_FOR = 1000;

/** Nothing has been done, and somewhere else, or later, it can be. */
export const away = () => new AbpError('UNAVAILABLE', 'The agent is closing', { retryable: true });

/** @param {AbpError} error */
export const isAway = ({ code }) => code === 'UNAVAILABLE';

/** It may have been taken, and comes again without harm. */
export const again = () =>
  new AbpError('UNAVAILABLE', 'Nobody knows yet whether the message was taken: send it again', {
    retryable: true,
  });

/**
 * Why no task is taken.
 * @param {number} [status] of the core, if it has refused it
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
 * @param {string} what cannot be done with it now
 */
export const unsupported = ({ id, state, terminal }, what) =>
  new AbpError(
    'UNSUPPORTED_OPERATION',
    terminal
      ? `Task ${id} is in a terminal state (${state}) and cannot be ${what}.`
      : `Task ${id} is ${state} and accepts messages only when it asks for one.`,
  );

/**
 * Whatever was thrown, as the client is told.
 * @param {unknown} error
 */
export function asError(error) {
  if (error instanceof AbpError) return error;
  console.error('abp-bridge: answering a request failed:', error);
  return new AbpError('INTERNAL_ERROR', 'The agent failed to answer');
}
