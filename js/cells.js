/** An action of the core as it crosses: one packed integer, and cells with the rest (wasm/boundary.h). */

/** Bits of a packed action. */
export const MORE = 1 << 16;
export const RELEASED = 1 << 17;
/** The part of a handle that says where the call's slot is. */
export const SLOT = (1 << 20) - 1;

/** Offsets of the cells, in 32-bit words. */
const AT = 0;
const CALL = 2;
const TEXT = 3;
const LENGTH = 4;

/** What the action just taken says beside its packed part. */
export class Cells {
  #at;

  /** @param {import('./instance.js').Instance} instance */
  constructor(instance) {
    this.instance = instance;
    this.x = instance.x;
    this.#at = instance.x.cells() >> 2;
  }

  /** The call that it is about. */
  get call() {
    return this.instance.u32[this.#at + CALL];
  }

  /** The time of a WAKE. */
  get at() {
    return this.instance.f64[(this.#at + AT) >> 1];
  }

  /** How long its text is, in bytes. */
  get length() {
    return this.instance.u32[this.#at + LENGTH];
  }

  /** Its text, or undefined. */
  get reason() {
    const { length } = this;
    const at = this.instance.u32[this.#at + TEXT];
    return length ? this.instance.read(at, length) : undefined;
  }
}
