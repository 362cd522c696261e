/** The caller's side of a stream: the chunks that have come and were not read, and the end. */
import { rejectionOf } from './rejection.js';

/**
 * A call whose result is read while it is made: `for await (const chunk of client.stream(…))`. What has not been read
 * waits here, within the limits `streamChunks` and `streamBytes`; the app waits when they are reached.
 * @template [T=any] its chunks
 * @template [Answer=any] its response
 * @implements {AsyncIterableIterator<T>}
 */
export class CallStream {
  /** Chunks and their sizes, one after the other. @type {any[]} */
  #chunks = [];
  /** Who waits for the next chunk. @type {((result: any) => void)[]} */
  #readers = [];
  /** The response, or what the call threw, until it was told to the reader. @type {undefined | (() => IteratorResult<T>)} */
  #end;
  #ended = false;
  #left = false;
  /** The call. @type {import('../session/pending-call.js').PendingCall | undefined} */
  #pending;

  /** @param {(stream: CallStream) => Promise<any>} begin makes the call */
  constructor(begin) {
    /**
     * The protocol's response, as of a call: its data is what the app's generator returned. It never rejects for what
     * happens to the call, whether the chunks are read or not.
     * @type {Promise<Answer>}
     */
    this.response = begin(this);
    this.response.then(
      (response) => this.#settle(/** @type {any} */ (response)),
      (error) =>
        this.#finish(() => {
          throw error;
        }),
    );
  }

  /** @param {import('./client.js').Response} response */
  #settle(response) {
    const { success, data, metadata } = response;
    // An app that sends no chunks to us has collected them.
    const collected = success && metadata?.collected === true && Array.isArray(data);
    for (const chunk of collected ? data : []) this.push(chunk, 0);
    const signal = this.#pending?.signal;
    this.#finish(() => {
      if (!response.success) throw rejectionOf(response, signal);
      return { done: true, value: collected ? undefined : response.data };
    });
  }

  /** @param {() => IteratorResult<T>} end */
  #finish(end) {
    this.#ended = true;
    this.#end = end;
    this.#pending = undefined;
    const [first, ...others] = this.#readers.splice(0);
    if (first) first(this.#next());
    for (const reader of others) reader(this.#next());
  }

  /** @param {import('../session/pending-call.js').PendingCall} pending the call, as soon as it is made */
  attach(pending) {
    this.#pending = pending;
  }

  /** A chunk has come. @param {any} chunk @param {number} size as its sender says */
  push(chunk, size) {
    if (this.#left) return;
    this.#chunks.push(chunk, size);
    this.#readers.shift()?.(this.#next());
  }

  /** @returns {Promise<IteratorResult<T>>} */
  async #next() {
    if (this.#chunks.length) {
      const [value, size] = this.#chunks.splice(0, 2);
      this.#pending?.read(size);
      return { done: false, value };
    }
    const end = this.#end;
    this.#end = undefined;
    return end && !this.#left ? end() : { done: true, value: undefined };
  }

  /**
   * The next chunk; at the end what the app's generator returned.
   * @returns {Promise<IteratorResult<T>>} rejects if the call failed: with an AbpError, whose name is `AbortError` if it
   *   was cancelled
   */
  next() {
    if (this.#chunks.length || this.#ended || this.#left) return this.#next();
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /**
   * Leaves the stream, as `break` does: the call is cancelled if it still runs. How it ended, `response` tells.
   * @param {any} [value]
   * @returns {Promise<IteratorResult<T>>}
   */
  async return(value) {
    this.#left = true;
    this.#chunks = [];
    this.#pending?.leave();
    for (const reader of this.#readers.splice(0)) reader({ done: true, value: undefined });
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}
