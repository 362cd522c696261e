/** The cores of calls, whose inputs cause actions. An action is one packed integer; its details are read from memory. */
import * as abp from './abp-boundary.js';
import { Core } from './core.js';

/**
 * @template {string} T
 * @typedef {import('./instance.js').Pointer<T>} Pointer
 */

/**
 * The exports that both modules have.
 * @template {string} T
 * @typedef {import('./core.js').CoreExports<T> & {
 *   action: () => number,
 *   next: (pointer: Pointer<T>) => number,
 *   advance: (pointer: Pointer<T>, now: number) => number,
 *   close: (pointer: Pointer<T>) => number,
 *   lost: (pointer: Pointer<T>) => number,
 *   cancel: (pointer: Pointer<T>, call: number, reason_length: number) => number,
 *   unsent: (pointer: Pointer<T>, call: number) => number,
 *   finish: (pointer: Pointer<T>, call: number, outcome: number) => number,
 *   number: (pointer: Pointer<T>, call: number) => number,
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

const { call: CALL, at: AT, text: TEXT, length: LENGTH, chunks: CHUNKS } = abp.ACTION;

/**
 * An endpoint or a peer, and the action that was just taken from it.
 * @template {string} T
 * @template {CallExports<T>} X
 * @extends {Core<T, X>}
 */
export class ActionReader extends Core {
  #action;

  /**
   * @param {import('./module.js').CoreModule<X>} module
   * @param {Record<string, number>} layout where the fields of its configuration lie
   * @param {import('./rpc-core.js').Limits} limits
   * @param {Record<string, unknown>} config what it has besides these, by the names of its fields
   * @param {import('./core.js').Tap<X>} [tap]
   */
  constructor(module, layout, limits, config, tap) {
    super(
      module,
      layout,
      {
        max_calls: limits.maxCalls,
        max_concurrent: limits.maxConcurrent,
        remembered: limits.remembered,
        remember_ms: limits.rememberFor,
        grace_ms: limits.grace,
        max_id: limits.maxIdLength,
        first_number: limits.firstNumber,
        ...config,
      },
      tap,
    );
    this.#action = this.x.action();
  }

  /** The call that the action is about. */
  get call() {
    return this.instance.u32[(this.#action + CALL) >> 2];
  }

  /** The time of a WAKE, in ms. */
  get at() {
    const { u32 } = this.instance;
    const at = (this.#action + AT) >> 2;
    return u32[at] + u32[at + 1] * 2 ** 32;
  }

  /** How much of a stream: chunks and bytes. @returns {[number, number]} */
  get amount() {
    return [this.instance.u32[(this.#action + CHUNKS) >> 2], this.at];
  }

  /** The reason of an ABORT or a cancel, or undefined. */
  get reason() {
    const { u32 } = this.instance;
    const length = u32[(this.#action + LENGTH) >> 2];
    return length ? this.instance.read(u32[(this.#action + TEXT) >> 2], length) : undefined;
  }

  /** The number of a call that has one, else 0. @param {number} call */
  number(call) {
    return this.x.number(this.pointer, call) >>> 0;
  }

  /** Whether a call whose handler has settled is still to be answered. @param {number} _call */
  isPending(_call) {
    return false;
  }

  /** What the core counts: calls in flight, and what it dropped. @returns {Record<string, number>} */
  counters() {
    return this.count(COUNTERS);
  }
}
