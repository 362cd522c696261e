/**
 * A token: a word in memory that says whether a call is cancelled, for code that computes without returning
 * to the event loop. No message reaches such code, but a word that another thread sets does.
 */
import { abortError } from './signals.js';

/** Whether threads can share memory: in Node they can, in pages that are cross-origin isolated, too. */
const shareable =
  typeof SharedArrayBuffer === 'function' && globalThis.crossOriginIsolated !== false;

export class Token {
  /** This token's own word, and those bound to it. @type {Uint32Array[]} */
  #words;
  #onBind;

  /**
   * @param {Uint32Array} [word] of the token that this is to be another view of, as it came from another
   *   thread. Without it this is a new token, which other threads can see where memory can be shared
   * @param {(word: Uint32Array) => void} [onBind] gets each word that is bound, for who sets the token
   */
  constructor(word, onBind) {
    this.#words = [
      word ?? new Uint32Array(shareable ? new SharedArrayBuffer(4) : new ArrayBuffer(4)),
    ];
    this.#onBind = shareable ? onBind : undefined;
  }

  /** What makes the same token in another thread: post it there. 0 is not cancelled. */
  get word() {
    return this.#words[0];
  }

  /** Whether the call is cancelled. It costs a read of memory, so a loop may ask every few hundred rounds. */
  get cancelled() {
    return Atomics.load(this.#words[0], 0) !== 0;
  }

  /** Throws an `AbortError` if the call is cancelled. */
  throwIfCancelled() {
    if (this.cancelled) throw abortError(undefined);
  }

  /**
   * Lets a word of a WebAssembly module's own shared memory say the same, for code that asks with
   * `abp_token_cancelled` of abp_token.h, or loads it. What it said before is forgotten.
   * @param {WebAssembly.Memory} memory made with `shared: true`: no other thread sees any other memory
   * @param {number} address of the word in bytes, a multiple of 4
   */
  bind(memory, address) {
    if (memory.buffer instanceof ArrayBuffer) {
      throw new TypeError('bind needs shared memory');
    }
    const word = new Uint32Array(memory.buffer, address, 1);
    Atomics.store(word, 0, 0);
    this.add(word);
    this.#onBind?.(word);
  }

  /** One more word to set. @param {Uint32Array} word */
  add(word) {
    this.#words.push(word);
    if (this.cancelled) this.cancel();
  }

  /** Sets it, which is what the bridge does with the core's verdict. There is no way back. */
  cancel() {
    for (const word of this.#words) Atomics.store(word, 0, 1);
  }
}
