/**
 * An instance of a module of the core: its exports, and text and numbers written to and read from
 * its memory.
 */

import { MAX_ID_BYTES, SCRATCH_BYTES } from './abp-boundary.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * A number type of its own, such as that of outcomes: other numbers are not assignable to it.
 * @template {string} T its type in C
 * @typedef {number & { readonly is: T }} Brand
 */

/**
 * The address of an object in a module's memory.
 * @template {string} T its type in C
 * @typedef {number & { readonly pointsTo: T }} Pointer
 */

/**
 * The exports of every module.
 * @typedef {object} BaseExports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {() => number} abi
 * @property {() => number} config
 * @property {(size: number) => number} scratch
 */

/**
 * All endpoints of a module share one instance, because a page has room for about a hundred
 * memories.
 * @template {BaseExports} X the module's exports
 */
export class Instance {
  u8 = new Uint8Array();
  u32 = new Uint32Array();
  #scratch = 0;
  #room = 0;

  /**
   * @param {import('./load.js').Instantiate} instantiate
   * @param {number} abi the number that the module must have
   */
  constructor(instantiate, abi) {
    /**
     * The module's exports, as listed in wasm/*_boundary.c. A copy, because engines are slow to
     * look names up in the original.
     * @type {X}
     */
    this.x = { ...instantiate({ emscripten_notify_memory_growth: () => this.#look() }) };
    if (this.x.abi?.() !== abi) {
      throw new Error('dist/ does not match js/: npm run build');
    }
    this.x._initialize();
    this.#look();
    // Makes room for a scratch of this size.
    this.write('', SCRATCH_BYTES);
  }

  /** Makes new views of the memory: growing it detaches the old ones. */
  #look() {
    const { buffer } = this.x.memory;
    this.u8 = new Uint8Array(buffer);
    this.u32 = new Uint32Array(buffer);
  }

  /**
   * Writes a configuration. An absent field, or 0, takes its default.
   * @param {number} seed offset of the 16 random bytes from which the core derives its secrets
   * @param {number[][]} fields `[offset, value]` of each
   */
  configure(seed, fields) {
    const at = this.x.config();
    for (const [offset, value] of fields) this.u32[(at + offset) >> 2] = value;
    crypto.getRandomValues(this.u8.subarray(at + seed, at + seed + 16));
  }

  /**
   * Writes an id. A `charCodeAt` loop is several times faster than `encodeInto` for texts this
   * short. A value that cannot be an id (too long, not well-formed, not a string) becomes the empty
   * id, which the core rejects.
   * @param {unknown} id
   * @returns {number} its length in bytes
   */
  writeId(id) {
    if (typeof id !== 'string' || id.length * 3 > MAX_ID_BYTES) return 0;
    const u8 = this.u8;
    const at = this.#scratch;
    for (let i = 0; i < id.length; i++) {
      const code = id.charCodeAt(i);
      // Lone surrogates would all become the same bytes: two ids would be equal.
      if (code > 127) return /\p{Surrogate}/u.test(id) ? 0 : this.write(id);
      u8[at + i] = code;
    }
    return id.length;
  }

  /**
   * Writes text to the scratch.
   * @param {string} text
   * @param {number} [offset] where in the scratch, in bytes
   * @returns {number} its length in bytes; -1 when memory is short
   */
  write(text, offset = 0) {
    const size = offset + text.length * 3;
    if (size > this.#room) {
      const at = this.x.scratch(size);
      if (!at) return -1;
      this.#scratch = at;
      this.#room = size;
    }
    return encoder.encodeInto(text, this.u8.subarray(this.#scratch + offset)).written;
  }

  /**
   * Reads text from the module's memory.
   * @param {number} at its address
   * @param {number} length bytes
   */
  read(at, length) {
    return decoder.decode(this.u8.subarray(at, at + length));
  }

  /**
   * Reads text from the scratch.
   * @param {number} length bytes
   * @param {number} [offset] where in the scratch, in bytes
   */
  readScratch(length, offset = 0) {
    return this.read(this.#scratch + offset, length);
  }

  /**
   * Reads text that ends with a zero byte.
   * @param {number} at its address
   */
  readTerminated(at) {
    return this.read(at, this.u8.indexOf(0, at) - at);
  }
}
