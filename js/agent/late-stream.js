/** The first stream of a page, until the code for streams is loaded. */

/**
 * Reads a stream that is still to begin.
 * @implements {AsyncIterableIterator<unknown>}
 */
export class LateStream {
  #stream;

  /**
   * @param {Promise<import('./call-stream.js').CallStream>} stream
   * @param {(error: unknown) => unknown} failed makes the response if there is none
   */
  constructor(stream, failed) {
    this.#stream = stream;
    this.response = stream.then(({ response }) => response, failed);
    // Whoever awaits it is told of a mistake in the call; others are not.
    this.response.catch(() => {});
  }

  async next() {
    return (await this.#stream).next();
  }

  /** @param {unknown} [value] */
  async return(value) {
    return (await this.#stream).return(value);
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}
