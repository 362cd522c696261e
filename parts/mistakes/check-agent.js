/**
 * Checks the arguments of `connect` and of calls. Loaded when something is wrong with them, or may
 * be.
 */
import { AbpError, requireTexts, safely } from '../../js/common/errors.js';
import { getOwn, isObject } from '../../js/common/values.js';
import {
  ENDING,
  formError,
  misfit,
  mistyped,
  requireForm,
  requireOptions,
} from '../../js/common/check-options.js';
import { badHighWaterMark } from '../../js/common/value-size.js';
import { exactOrigin, originOf } from '../../js/common/origins.js';
import { warnOfUnread } from './unread-options.js';

/** @import { Kinds } from '../../js/common/check-options.js' */

/** The kinds of `Reconnecting` in parts/retry/retry.js */
const RECONNECTING = {
  attempts: 'a number',
  delay: 'a number',
  maxDelay: 'a number',
  reload: 'a boolean or a function',
};

/**
 * @param {unknown} url
 * @returns {string | undefined} its origin, if it has one
 */
const originIn = (url) => safely(() => originOf(new URL(String(url)).origin));

/** @param {string} why */
const invalid = (why) => new AbpError('INVALID_PARAMS', why);

/**
 * @param {unknown} wrong
 * @param {string} why
 */
function refuseIf(wrong, why) {
  if (wrong) throw invalid(why);
}

/**
 * @param {any} target
 * @param {any} options
 * @param {Kinds} kinds
 * @param {boolean} isTarget whether `target` is a valid target
 * @throws {AbpError} INVALID_PARAMS
 */
export function checkConnect(target, options, kinds, isTarget) {
  requireTexts('connect needs agent', options?.agent, 'name', 'version');
  const { origin } = options;
  // `origin` may be misspelt.
  if (origin === undefined) requireOptions('connect', options, kinds);
  if (origin !== 'null' && safely(() => 'contentWindow' in target, false))
    exactOrigin(origin, [origin, target.src].map(originIn).find(Boolean));
  requireOptions('connect', options, kinds);
  if (isObject(options.reconnect)) requireOptions('reconnect', options.reconnect, RECONNECTING);
  const isWindow = safely(() => target.window === target, false);
  refuseIf(
    isWindow,
    'connect needs the iframe itself, not its contentWindow; windowTransport of abp-bridge/transports leads to another window',
  );
  const place = typeof target === 'function' ? target.iframe : target;
  const reloads = getOwn(options.reconnect, 'reload') && !('contentWindow' in Object(place));
  refuseIf(reloads, 'reload of reconnect needs an iframe');
  refuseIf(
    !isTarget,
    'connect needs an iframe, a port, a worker or a function that opens a transport',
  );
}

/**
 * The signal in an options object that was passed instead of a signal.
 * @param {any} options
 * @returns {AbortSignal | undefined}
 * @throws {AbpError} INVALID_PARAMS
 */
export function signalOf(options) {
  requireOptions('reconnect()', options, { signal: 'an AbortSignal' });
  return options.signal;
}

/** @param {string} method */
const formOf = (method) => `${method}(name, params, { signal })`;

/** @param {string} method */
const nameError = (method) => invalid(`${method} needs the name of a capability`);

/**
 * Finds the mistake of a call. If there is none, warns about unknown options.
 * @param {unknown[]} mistakes the client's checks (js/agent/client.js), in order: truthy if the
 *   call has the mistake
 * @param {any} options of the call
 * @param {unknown} stream the reader of its chunks, if any
 * @param {Kinds} kinds
 * @returns {AbpError | undefined} why the app does not support the call
 * @throws {AbpError} INVALID_PARAMS, if the program is wrong
 */
export function checkCall(mistakes, options, stream, kinds) {
  const mistake = mistakes.findIndex(Boolean);
  if (mistake < 0) return void warnOfUnread('a call', options, kinds);
  const method = stream ? 'stream' : 'call';
  const form = formOf(method);
  const name = misfit(options, kinds, 'anything') ?? '';
  const errors = [
    nameError(method),
    formError('a call', form, true),
    invalid('input of a call must be an async iterable or a ReadableStream'),
    badHighWaterMark(),
    name === 'options'
      ? formError('a call', form, false)
      : mistyped('a call', name, `${kinds[name]}`),
    invalid('idempotencyKey of a call must be a string of 1 to 256 characters'),
    invalid('a stream cannot have an idempotencyKey: what was streamed is not kept'),
    invalid(
      'a stream, or a call with input or transfer cannot be retried: what was read or moved is gone',
    ),
    new AbpError(
      'NOT_SUPPORTED',
      'The app does not support idempotencyKey (docs/agents.md#again-safely)',
    ),
  ];
  const error = errors[mistake];
  if (error.code === 'NOT_SUPPORTED') return error;
  throw AbpError.from(error, { metadata: { outcome: 'unstarted' } });
}

/**
 * Checks a call that a handler makes through its context.
 * @param {unknown} name
 * @param {unknown} options
 * @param {unknown} more a further argument
 */
export function checkNested(name, options, more) {
  if (typeof name !== 'string') throw nameError('call');
  requireForm('call', formOf('call'), [options, more]);
  requireOptions('call', options, ENDING, true);
}
