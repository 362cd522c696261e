/** What an agent streams to the handler of its call. */
import { AbpError } from '../common/errors.js';
import { iteratorOf } from '../common/iterator-of.js';

/** The input of a call. It is read once, when the handler asks for it, and not after the call has ended. */
export class Input {
  /** Whether the handler has asked for it. */
  taken = false;
  #iterator;
  /** Ends the wait for the next chunk. @type {undefined | ((error: unknown) => void)} */
  #reject;
  /** Once nothing more is read: settles when the source has ended. @type {Promise<unknown> | undefined} */
  #returned;

  /** @param {unknown} source an async iterable or a `ReadableStream` that nobody reads */
  constructor(source) {
    this.#iterator = iteratorOf(source);
  }

  [Symbol.asyncIterator]() {
    this.taken = true;
    return this;
  }

  /** @returns {Promise<IteratorResult<unknown>>} rejects if the source fails, and when the call has ended */
  next() {
    return new Promise((resolve, reject) => {
      if (this.#returned) return reject(ended());
      this.#reject = reject;
      Promise.resolve(this.#iterator.next()).then(resolve, reject);
    });
  }

  /** Lets the source's `finally` run. @param {unknown} [reason] */
  return(reason) {
    return (this.#returned ??= Promise.resolve()
      .then(() => this.#iterator.return?.(reason))
      .catch((error) => console.error("abp-bridge: an input's cleanup failed:", error)));
  }

  /** The call has ended: what was not read will not be. */
  close() {
    this.#reject?.(ended());
    void this.return();
  }
}

const ended = () => new AbpError('CANCELLED', 'The call has ended');
