/**
 * A word in memory that says whether a call is cancelled, for code that computes without returning
 * to the event loop. Messages do not reach such code, but it can read a word that another thread
 * sets.
 */
import { abortError } from './signals.js';

/**
 * True if threads can share memory: always in Node, and in pages that are cross-origin isolated.
 */
const isShareable = () =>
  typeof SharedArrayBuffer === 'function' && globalThis.crossOriginIsolated !== false;

/** Shows code that never returns to the event loop whether its call is cancelled. */
export class Token {
  /** This token's own word, and those bound to it. @type {Uint32Array[]} */
  #words;
  #onBind;

  /**
   * @param {Uint32Array} [word] the word of an existing token, received from another thread.
   *   Without it this is a new token, which other threads can see where memory can be shared
   * @param {(word: Uint32Array) => void} [onBind] called with each word that is bound, so that its
   *   owner can set it, too
   */
  constructor(word, onBind) {
    const isShared = isShareable();
    this.#words = [word ?? new Uint32Array(new (isShared ? SharedArrayBuffer : ArrayBuffer)(4))];
    this.#onBind = isShared ? onBind : undefined;
  }

  /** Post it to another thread and make the same token there. 0 means: not cancelled. */
  get word() {
    return this.#words[0];
  }

  /**
   * True if the call is cancelled. Reading it costs one read of memory, so a loop may check every
   * few hundred rounds.
   */
  get cancelled() {
    return Atomics.load(this.word, 0) !== 0;
  }

  /** Throws an `AbortError` if the call is cancelled. */
  throwIfCancelled() {
    if (this.cancelled) throw abortError();
  }

  /**
   * Binds a word in a WebAssembly module's shared memory to this token, for code that calls
   * `abp_token_cancelled` of abp_token.h or reads the word itself. The word is reset first.
   * @param {WebAssembly.Memory} memory made with `shared: true`: other threads cannot see any other
   *   memory
   * @param {number} address of the word in bytes, a multiple of 4
   */
  bind(memory, address) {
    if (memory.buffer instanceof ArrayBuffer) {
      throw new TypeError('token.bind needs shared memory');
    }
    const word = new Uint32Array(memory.buffer, address, 1);
    Atomics.store(word, 0, 0);
    this.add(word);
    this.#onBind?.(word);
  }

  /**
   * Adds a word to set.
   * @param {Uint32Array} word
   */
  add(word) {
    this.#words.push(word);
    if (this.cancelled) this.cancel();
  }

  /**
   * Sets the token. The bridge calls this when the core says that the call is cancelled. It cannot
   * be undone.
   */
  cancel() {
    for (const word of this.#words) Atomics.store(word, 0, 1);
  }
}
