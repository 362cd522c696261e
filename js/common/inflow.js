/** The reader's side of a stream: the chunks that have come and were not read, and the end. */

/**
 * Chunks that are read one by one, as they come.
 * @template [T=any]
 * @implements {AsyncIterableIterator<T>}
 */
export class Inflow {
  /** Chunks and their sizes, one after the other. @type {any[]} */
  #chunks = [];
  /** The first in `#chunks` that was not read. */
  #at = 0;
  /** Who waits for the next chunk. @type {((result: IteratorResult<T> | Promise<IteratorResult<T>>) => void)[]} */
  #readers = [];
  /** What the last reader gets, or what it throws, until it was told. @type {undefined | (() => IteratorResult<T>)} */
  #end;
  #ended = false;
  #left = false;

  /** A chunk was read. @protected @param {number} _size */
  onRead(_size) {}

  /** The reader has left. @protected */
  onLeave() {}

  /** Whether the reader has left. @protected */
  get left() {
    return this.#left;
  }

  /** A chunk has come. @param {unknown} chunk @param {number} size what it counts as */
  push(chunk, size) {
    if (this.#left) return;
    this.#chunks.push(chunk, size);
    this.#readers.shift()?.(this.#take());
  }

  /** Nothing more comes. @protected @param {() => IteratorResult<T>} end gives the last result, or throws */
  finish(end) {
    this.#ended = true;
    this.#end = end;
    const [first, ...others] = this.#readers.splice(0);
    if (first) first(this.#take());
    for (const reader of others) reader(this.#take());
  }

  /** @returns {IteratorResult<T> | Promise<IteratorResult<T>>} */
  #take() {
    if (this.#at < this.#chunks.length) {
      const value = this.#chunks[this.#at];
      const size = this.#chunks[this.#at + 1];
      this.#chunks[this.#at] = undefined;
      this.#at += 2;
      // Now and then, as long lists are slow to shorten.
      if (this.#at * 2 >= this.#chunks.length) {
        this.#chunks.splice(0, this.#at);
        this.#at = 0;
      }
      this.onRead(size);
      return { done: false, value };
    }
    const end = this.#end;
    this.#end = undefined;
    if (!end || this.#left) return { done: true, value: undefined };
    return new Promise((resolve) => resolve(end()));
  }

  /**
   * The next chunk; at the end what the other side's generator returned.
   * @returns {Promise<IteratorResult<T>>} rejects once if it failed, when what came before has been read
   */
  async next() {
    if (this.#at < this.#chunks.length || this.#ended || this.#left) return this.#take();
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /**
   * Leaves the stream, as `break` does: what is still under way is cancelled.
   * @param {unknown} [value]
   * @returns {Promise<IteratorResult<T>>}
   */
  async return(value) {
    this.#left = true;
    this.#chunks = [];
    this.#at = 0;
    this.onLeave();
    for (const reader of this.#readers.splice(0)) reader({ done: true, value: undefined });
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}
