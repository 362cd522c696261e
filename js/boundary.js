/** An action of the core as it crosses: one packed integer, and the rest where it lies (wasm/boundary.h). */

/** Bits of a packed action. */
export const MORE = 1 << 16;
export const RELEASED = 1 << 17;
/** The part of a handle that says where the call's slot is. */
export const SLOT = (1 << 20) - 1;

/** Offsets in `abp_action`, in 32-bit words. */
const CALL = 2;
const AT = 4;
const TEXT = 6;
const LENGTH = 7;

/** What the action just taken says beside its packed part. */
export class Boundary {
  #at;

  /** @param {import('./instance.js').Instance} instance */
  constructor(instance) {
    this.instance = instance;
    this.x = instance.x;
    this.#at = instance.x.action() >> 2;
  }

  /** The call that it is about. */
  get call() {
    return this.instance.u32[this.#at + CALL];
  }

  /** The time of a WAKE. */
  get at() {
    const { u32 } = this.instance;
    return u32[this.#at + AT] + u32[this.#at + AT + 1] * 2 ** 32;
  }

  /** Its text, or undefined. */
  get reason() {
    const { u32 } = this.instance;
    const length = u32[this.#at + LENGTH];
    return length ? this.instance.read(u32[this.#at + TEXT], length) : undefined;
  }
}
