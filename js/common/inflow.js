/** The reader's side of a stream: the unread chunks, and the end. */

/**
 * A chunk, its size, and the next chunk.
 * @typedef {{ value?: any, size?: any, next?: Chunk }} Chunk
 */

/** The result of reads after the end. @type {() => IteratorResult<any>} */
const over = () => ({ done: true, value: undefined });

/**
 * An iterator over chunks that arrive one by one.
 * @template [T=any]
 * @implements {AsyncIterableIterator<T>}
 */
export class Inflow {
  /** The last chunk that was read; the unread ones follow it. @type {Chunk} */
  #read = {};
  /** The last chunk that has arrived. */
  #last = this.#read;
  /**
   * The readers that wait for the next chunk.
   * @type {((result: IteratorResult<T> | Promise<IteratorResult<T>>) => void)[]}
   */
  #readers = [];
  /**
   * After the last chunk: returns or throws the result for the next reader.
   * @type {undefined | (() => IteratorResult<T>)}
   */
  #end;
  /**
   * True if the reader has left.
   * @protected
   */
  left = false;

  /**
   * Called when a chunk was read.
   * @protected
   * @param {number} _size
   */
  onRead(_size) {}

  /**
   * Called when the reader has left.
   * @protected
   */
  onLeave() {}

  /**
   * Adds a chunk that has arrived.
   * @param {unknown} value
   * @param {number} size its size as the sender counts it
   */
  push(value, size) {
    if (this.left) return;
    this.#last = this.#last.next = { value, size };
    this.#readers.shift()?.(this.#take());
  }

  /**
   * Ends the stream.
   * @protected
   * @param {() => IteratorResult<T>} end returns the last result, or throws
   */
  finish(end) {
    if (this.left) return;
    this.#end = end;
    for (const reader of this.#readers.splice(0)) reader(this.#take());
  }

  /** @returns {IteratorResult<T> | Promise<IteratorResult<T>>} */
  #take() {
    const chunk = this.#read.next;
    if (!chunk) {
      const end = this.#end ?? over;
      // The end is reported once.
      this.#end = over;
      return new Promise((resolve) => resolve(end()));
    }
    this.#read = chunk;
    const { value, size } = chunk;
    chunk.value = undefined;
    this.onRead(size);
    return { done: false, value };
  }

  /**
   * The next chunk; at the end the return value of the other side's generator.
   * @returns {Promise<IteratorResult<T>>} if the stream failed, rejects once, after the chunks
   *   before the failure have been read
   */
  next() {
    if (this.#read.next || this.#end) return Promise.resolve(this.#take());
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /**
   * Leaves the stream, as `break` does: its call is cancelled if it still runs.
   * @param {any} [value]
   * @returns {Promise<IteratorResult<T>>}
   */
  async return(value) {
    this.#read = {};
    this.finish(over);
    this.left = true;
    this.onLeave();
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}
