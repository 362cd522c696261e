/** The input of a call, which an agent streams to the handler. */
import * as abp from '../driver/abp-boundary.js';
import { AbpError } from '../common/errors.js';
import { iteratorOf } from '../common/iterator-of.js';
import { getOwn } from '../common/values.js';
import { Call } from './call.js';

/**
 * The input of a call. It is read once, when the handler requests it, and not after the call has
 * ended.
 */
class Input {
  /** True if the handler has requested it. */
  taken = false;
  #iterator;
  /** Ends the wait for the next chunk. @type {undefined | ((error: unknown) => void)} */
  #reject;
  /**
   * Set once nothing more is read; settles when the source has ended.
   * @type {Promise<unknown> | undefined}
   */
  #returned;

  /**
   * @param {unknown} source an async iterable or a `ReadableStream` without another reader
   */
  constructor(source) {
    this.#iterator = iteratorOf(source);
  }

  [Symbol.asyncIterator]() {
    this.taken = true;
    return this;
  }

  /**
   * @returns {Promise<IteratorResult<unknown>>} rejects if the source fails, and when the call has
   *   ended
   */
  next() {
    return new Promise((resolve, reject) => {
      if (this.#returned) return reject(ended());
      this.#reject = reject;
      Promise.resolve(this.#iterator.next()).then(resolve, reject);
    });
  }

  /**
   * Lets the source's `finally` run.
   * @param {unknown} [reason]
   */
  return(reason) {
    return (this.#returned ??= Promise.resolve()
      .then(() => this.#iterator.return?.(reason))
      .catch((error) => console.error("abp-bridge: an input's cleanup failed:", error)));
  }

  /** Ends the input with its call: unread chunks are not read any more. */
  close() {
    this.#reject?.(ended());
    void this.return();
  }
}

const LACKING = 'The app does not support input streams (docs/streams.md#input)';

const ended = () => new AbpError('CANCELLED', 'The call has ended');

/**
 * Makes a call with an input, which ends with the call.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {unknown} source of the input, if there is one
 * @param {(input: Input | undefined) => Promise<any>} call makes the call
 * @returns {Promise<any>} rejects if the input has another reader
 */
export async function withInput(endpoint, source, call) {
  const input = source ? new Input(source) : undefined;
  try {
    return input && endpoint.ready && !endpoint.has(abp.STREAMS)
      ? endpoint.refusal(abp.NOT_SUPPORTED, LACKING)
      : await call(input);
  } finally {
    input?.close();
  }
}

/**
 * Finds the input that the app requests, by its pending call.
 * @param {Call} asked
 */
export function inputOf({ endpoint, params }) {
  const callId = getOwn(params, 'callId');
  const call = endpoint.find(
    (record) => record instanceof Call && record.options.input && record.callId === callId,
  );
  return /** @type {Call | undefined} */ (call)?.options.input;
}
