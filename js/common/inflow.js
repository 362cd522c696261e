/** The reader's side of a stream: the chunks that have come and were not read, and the end. */

/**
 * A chunk, what it counts as, and the one that came after it.
 * @typedef {{ value?: any, size?: any, next?: Chunk }} Chunk
 */

/** What is read after the end. @type {() => IteratorResult<any>} */
const over = () => ({ done: true, value: undefined });

/**
 * Chunks that are read one by one, as they come.
 * @template [T=any]
 * @implements {AsyncIterableIterator<T>}
 */
export class Inflow {
  /** The last chunk that was read: those that were not follow it. @type {Chunk} */
  #read = {};
  /** The last one that has come. */
  #last = this.#read;
  /**
   * Who waits for the next chunk.
   * @type {((result: IteratorResult<T> | Promise<IteratorResult<T>>) => void)[]}
   */
  #readers = [];
  /**
   * Once nothing more comes: what the next reader gets, or what it throws.
   * @type {undefined | (() => IteratorResult<T>)}
   */
  #end;
  /**
   * Whether the reader has left.
   * @protected
   */
  left = false;

  /**
   * A chunk was read.
   * @protected
   * @param {number} _size
   */
  onRead(_size) {}

  /**
   * The reader has left.
   * @protected
   */
  onLeave() {}

  /**
   * A chunk has come.
   * @param {unknown} value
   * @param {number} size what it counts as
   */
  push(value, size) {
    if (this.left) return;
    this.#last = this.#last.next = { value, size };
    this.#readers.shift()?.(this.#take());
  }

  /**
   * Nothing more comes.
   * @protected
   * @param {() => IteratorResult<T>} end gives the last result, or throws
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
      // It is told once.
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
   * The next chunk; at the end what the other side's generator returned.
   * @returns {Promise<IteratorResult<T>>} rejects once if it failed, when what came before has been
   *   read
   */
  next() {
    if (this.#read.next || this.#end) return Promise.resolve(this.#take());
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /**
   * Leaves the stream, as `break` does: what is still under way is cancelled.
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
