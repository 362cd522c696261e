/**
 * Limits the bytes that may wait for all the readers of an agent together. Above the limit, the
 * reader that has not read for the longest time is cut off; readers that do read are not affected.
 */

/**
 * @typedef {object} Reader
 * @property {() => number} unread bytes that wait for it now
 * @property {() => void} cut disconnects the reader; nothing waits for it from then on
 */

export class Backlog {
  /**
   * Bytes that waited for each reader when it was last checked, longest wait first.
   * @type {Map<Reader, number>}
   */
  #sizes = new Map();
  #total = 0;
  #limit;

  /** @param {number} limit bytes */
  constructor(limit) {
    this.#limit = limit;
  }

  /**
   * Call this after writing to a reader, and after it has read.
   * @param {Reader} reader
   */
  update(reader) {
    this.#set(reader, reader.unread());
    while (this.#total > this.#limit) {
      const [[slowest, before]] = this.#sizes;
      // It has read since then, so it is not the slowest.
      if (this.#set(slowest, slowest.unread()) < before) continue;
      this.remove(slowest);
      slowest.cut();
    }
  }

  /**
   * Forgets a reader that is gone.
   * @param {Reader} reader
   */
  remove(reader) {
    this.#set(reader, 0);
  }

  /**
   * @param {Reader} reader
   * @param {number} size
   */
  #set(reader, size) {
    const before = this.#sizes.get(reader) ?? 0;
    this.#total += size - before;
    if (size < before || size === 0) this.#sizes.delete(reader);
    if (size > 0) this.#sizes.set(reader, size);
    return size;
  }
}
