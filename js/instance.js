/** An instance of a module of the core: its exports, and text and numbers on their way in and out. */

/** Bytes that an id may take in the scratch. */
const LONGEST_ID = 1024;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Every endpoint of a module lives in one instance: a page has room for about a hundred memories. */
export class Instance {
  u8 = new Uint8Array();
  u32 = new Uint32Array();
  #scratch = 0;
  #room = 0;

  /** @param {import('./module.js').Instantiate} instantiate */
  constructor(instantiate) {
    /**
     * The module's exports: what a boundary in wasm/ lists. As a copy, since engines look names up in the
     * original slowly.
     * @type {any}
     */
    this.x = { ...instantiate({ emscripten_notify_memory_growth: () => this.#look() }) };
    this.x._initialize();
    this.#look();
    this.#reserve(LONGEST_ID);
  }

  /** Growing the memory detaches every view of it. */
  #look() {
    const { buffer } = this.x.memory;
    this.u8 = new Uint8Array(buffer);
    this.u32 = new Uint32Array(buffer);
  }

  /** @param {number} size */
  #reserve(size) {
    if (size <= this.#room) return true;
    const at = this.x.scratch(size);
    if (!at) return false;
    this.#scratch = at;
    this.#room = size;
    return true;
  }

  /** Writes what secrets are made of: 16 random bytes. */
  seed() {
    this.u8.set(crypto.getRandomValues(new Uint8Array(16)), this.#scratch);
  }

  /**
   * Writes an id. A `charCodeAt` loop is several times faster than `encodeInto` for texts this short.
   * What cannot be an id (too long, not well-formed, not a string) is given as the empty one, which the
   * core refuses.
   * @param {unknown} id
   * @returns {number} its length in bytes
   */
  id(id) {
    if (typeof id !== 'string' || id.length > LONGEST_ID / 4) return 0;
    const u8 = this.u8;
    const at = this.#scratch;
    for (let i = 0; i < id.length; i++) {
      const code = id.charCodeAt(i);
      if (code > 127) return this.#wideId(id);
      u8[at + i] = code;
    }
    return id.length;
  }

  /** @param {string} id */
  #wideId(id) {
    // Lone surrogates would all become the same bytes: two ids could be one.
    if (/\p{Surrogate}/u.test(id)) return 0;
    return encoder.encodeInto(id, this.u8.subarray(this.#scratch, this.#scratch + LONGEST_ID))
      .written;
  }

  /**
   * Writes text to the scratch, from `offset` on. Returns its length in bytes, or -1 when memory is short.
   * @param {string} text
   * @param {number} [offset]
   */
  text(text, offset = 0) {
    if (!this.#reserve(offset + text.length * 3)) return -1;
    const from = this.#scratch + offset;
    return encoder.encodeInto(text, this.u8.subarray(from, from + text.length * 3)).written;
  }

  /**
   * @param {number} at
   * @param {number} length
   */
  read(at, length) {
    return decoder.decode(this.u8.subarray(at, at + length));
  }

  /** Reads text from the scratch. @param {number} length */
  readScratch(length) {
    return this.read(this.#scratch, length);
  }

  /** Reads text that ends with a zero. @param {number} at */
  readTerminated(at) {
    return this.read(at, this.u8.indexOf(0, at) - at);
  }
}
