/** The cores of calls, whose inputs cause actions. An action is one packed integer; its details are read from memory. */
import * as abp from './abp-boundary.js';
import { Core } from './core.js';

/**
 * @template {string} T
 * @typedef {import('./instance.js').Pointer<T>} Pointer
 */

/** @import { CallNumber, Counter, Fate, Handle, Outcome, Packed } from './abp-boundary.js' */

/**
 * The exports that both modules have.
 * @template {string} T
 * @typedef {import('./core.js').CoreExports<T> & {
 *   action: () => number,
 *   next: (pointer: Pointer<T>) => Packed,
 *   advance: (pointer: Pointer<T>, now: number) => Packed,
 *   close: (pointer: Pointer<T>) => Packed,
 *   lost: (pointer: Pointer<T>) => Packed,
 *   cancel: (pointer: Pointer<T>, call: Handle, reason_length: number) => Packed,
 *   unsent: (pointer: Pointer<T>, call: Handle) => Packed,
 *   finish(pointer: Pointer<T>, call: Handle, outcome: number, fate: Fate): Packed,
 *   number: (pointer: Pointer<T>, call: Handle) => CallNumber,
 *   count: (pointer: Pointer<T>, counter: Counter) => number,
 * }} CallExports
 */

/** What both cores count, by the numbers that they have in common. */
const COUNTERS = {
  inFlightOut: abp.IN_FLIGHT_OUT,
  inFlightIn: abp.IN_FLIGHT_IN,
  remembered: abp.REMEMBERED,
  late: abp.LATE,
  stray: abp.STRAY,
  malformed: abp.MALFORMED,
  refused: abp.REFUSED,
};

/**
 * What both configurations have.
 * @param {import('./rpc-core.js').Limits} limits
 * @returns {Pick<abp.Config, keyof abp.Config & keyof import('./rpc-boundary.js').Config>}
 */
export const callLimits = (limits) => ({
  max_calls: limits.maxCalls,
  max_concurrent: limits.maxConcurrent,
  remembered: limits.remembered,
  remember_ms: limits.rememberFor,
  grace_ms: limits.grace,
  max_id: limits.maxIdLength,
  first_number: limits.firstNumber,
});

/**
 * An endpoint or a peer, and the action that was just taken from it.
 * @template {string} T
 * @template {CallExports<T>} X
 * @template {object} C its configuration
 * @extends {Core<T, X, C>}
 */
export class ActionReader extends Core {
  #action;

  /**
   * @param {import('./module.js').CoreModule<X>} module
   * @param {Record<keyof C | 'seed', number>} layout where the fields of its configuration lie
   * @param {C} config
   * @param {import('./core.js').Tap<X>} [tap]
   */
  constructor(module, layout, config, tap) {
    super(module, layout, config, tap);
    this.#action = this.x.action();
  }

  /** The call that the action is about. */
  get call() {
    return /** @type {Handle} */ (this.instance.u32[(this.#action + abp.ACTION_CALL) >> 2]);
  }

  /** The time of a WAKE, in ms. */
  get at() {
    const { u32 } = this.instance;
    const at = (this.#action + abp.ACTION_AT) >> 2;
    return u32[at] + u32[at + 1] * 2 ** 32;
  }

  /** How much of a stream: chunks and bytes. @returns {[number, number]} */
  get amount() {
    return [this.instance.u32[(this.#action + abp.ACTION_CHUNKS) >> 2], this.at];
  }

  /** The reason of an ABORT or a cancel, or undefined. */
  get reason() {
    const { u32 } = this.instance;
    const length = u32[(this.#action + abp.ACTION_LENGTH) >> 2];
    return length
      ? this.instance.read(u32[(this.#action + abp.ACTION_TEXT) >> 2], length)
      : undefined;
  }

  /** The number of a call that has one, else 0. @param {Handle} call */
  number(call) {
    return /** @type {CallNumber} */ (this.x.number(this.pointer, call) >>> 0);
  }

  /** Whether a call whose handler has settled is still to be answered. @param {Handle} _call */
  isPending(_call) {
    return false;
  }

  /** What the core counts: calls in flight, and what it dropped. @returns {Record<string, number>} */
  counters() {
    return this.count(COUNTERS);
  }
}
