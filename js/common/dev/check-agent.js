/**
 * Checks what an agent gave `connect` and its calls. Loaded when something is wrong with it, or may
 * be.
 */
import { AbpError, requireTexts, safely } from '../errors.js';
import { getOwn, isObject } from '../values.js';
import { isStream } from '../transfer.js';
import { ENDING, isHighWaterMark, requireForm, requireOptions } from '../check-options.js';
import { badHighWaterMark } from '../value-size.js';
import { exactOrigin, originOf } from '../origins.js';

/** @import { Kinds } from '../check-options.js' */

/** The kinds of `Reconnecting` in js/agent/retry.js */
// prettier-ignore
const RECONNECTING = {
  attempts: 'a number', delay: 'a number', maxDelay: 'a number', reload: 'a boolean or a function',
};

/**
 * @param {unknown} url
 * @returns {string | undefined} its origin, if it has one
 */
const originIn = (url) => safely(() => originOf(new URL(String(url)).origin));

/**
 * @param {unknown} wrong
 * @param {string} why
 */
function refuseIf(wrong, why) {
  if (wrong) throw new AbpError('INVALID_PARAMS', why);
}

/**
 * @param {any} target
 * @param {any} options
 * @param {Kinds} kinds
 * @param {boolean} isTarget whether that leads to an app
 * @throws {AbpError} INVALID_PARAMS
 */
export function checkConnect(target, options, kinds, isTarget) {
  requireTexts('connect needs agent', options?.agent, 'name', 'version');
  const { origin } = options;
  // It may be misspelt.
  if (origin === undefined) requireOptions('connect', options, kinds);
  if (origin !== 'null' && safely(() => 'contentWindow' in target, false))
    exactOrigin(origin, [origin, target.src].map(originIn).find(Boolean));
  requireOptions('connect', options, kinds);
  if (isObject(options.reconnect)) requireOptions('reconnect', options.reconnect, RECONNECTING);
  const isWindow = safely(() => target.window === target, false);
  refuseIf(
    isWindow,
    'connect needs the iframe itself, not its contentWindow; windowTransport of abp-bridge/window leads to another window',
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
 * The signal of options in the place of one, as all else takes it.
 * @param {any} options
 * @returns {AbortSignal | undefined}
 * @throws {AbpError} INVALID_PARAMS
 */
export function signalOf(options) {
  requireOptions('reconnect()', options, { signal: 'an AbortSignal' });
  return options.signal;
}

/**
 * @param {unknown} name
 * @param {any} options of a call
 * @param {unknown} streams what reads its chunks, if something does
 * @param {Kinds} kinds
 * @param {unknown} [more] what stands behind the options
 * @returns {AbpError} why the call cannot be made, of one that cannot
 * @throws {AbpError} INVALID_PARAMS, where the program is wrong
 */
export function checkCall(name, options, streams, kinds, more) {
  try {
    return refusal(name, options, streams, kinds, more);
  } catch (error) {
    throw error instanceof AbpError ? AbpError.from(error, UNSTARTED) : error;
  }
}

/**
 * @param {string} who
 * @param {string} method
 * @param {unknown} name of the capability
 * @param {...unknown} rest what stands behind the params
 * @throws {AbpError} INVALID_PARAMS
 */
function checkForm(who, method, name, ...rest) {
  refuseIf(typeof name !== 'string', `${method} needs the name of a capability`);
  requireForm(who, `${method}(name, params, { signal })`, rest);
}

/**
 * Checks a call that a handler makes through its context.
 * @param {unknown} name
 * @param {unknown} options
 * @param {unknown} more what stands behind them
 */
export function checkNested(name, options, more) {
  checkForm('call', 'call', name, options, more);
  requireOptions('call', options, ENDING, true);
}

/** What callers are told of a call that is refused here. */
const UNSTARTED = { metadata: { outcome: /** @type {const} */ ('unstarted') } };

/** @type {typeof checkCall} */
function refusal(name, options, streams, kinds, more) {
  const { input, retry, transfer, idempotencyKey, highWaterMark } = options ?? {};
  checkForm('a call', streams ? 'stream' : 'call', name, options, more);
  refuseIf(
    input !== undefined && !isStream(input),
    'input of a call must be an async iterable or a ReadableStream',
  );
  if (!isHighWaterMark(highWaterMark)) throw badHighWaterMark();
  requireOptions('a call', options, kinds);
  refuseIf(
    idempotencyKey !== undefined && !idempotencyKey,
    'idempotencyKey of a call must be a string of 1 to 256 characters',
  );
  refuseIf(
    idempotencyKey && (input || streams),
    'a stream cannot have an idempotencyKey: what was streamed is not kept',
  );
  refuseIf(retry && input, 'a call with input cannot be retried: some of it may have been read');
  refuseIf(retry && streams, 'a stream cannot be retried: its chunks may have been read');
  refuseIf(retry && transfer, 'a call with transfer cannot be retried: its params were moved');
  return new AbpError(
    'NOT_SUPPORTED',
    'The app does not support idempotencyKey (docs/agents.md#again-safely)',
  );
}
