/**
 * The common part of all cores: an object in the module's memory, writing text to it, and reading
 * actions.
 */
import * as abp from './abp-boundary.js';
import { AbpError, MAX_REASON_LENGTH } from '../common/errors.js';
import { limitOf } from '../common/values.js';

/** @import { CallNumber, Counter, Fate, Handle, Packed } from './abp-boundary.js' */
/** @import { BaseExports, Instance, Pointer } from './instance.js' */
/** @import { CoreModule } from './module.js' */

export const outOfMemory = () =>
  new AbpError('INTERNAL_ERROR', 'not enough memory', { retryable: true });

/**
 * The exports of each module for its kind of object.
 * @template {string} T the object's type in C
 * @typedef {BaseExports & {
 *   create: (now: number) => Pointer<T>,
 *   destroy: (pointer: Pointer<T>) => Pointer<T>,
 *   count(pointer: Pointer<T>, counter: number): number,
 *   action?: () => number,
 * }} CoreExports
 */

/**
 * The exports of a module of calls.
 * @template {string} T
 * @typedef {CoreExports<T> & {
 *   next: (pointer: Pointer<T>) => Packed,
 *   advance: (pointer: Pointer<T>, now: number) => Packed,
 *   close: (pointer: Pointer<T>) => Packed,
 *   lost: (pointer: Pointer<T>) => Packed,
 *   cancel: (pointer: Pointer<T>, call: Handle, reason_length: number) => Packed,
 *   postpone: (pointer: Pointer<T>, call: Handle) => Packed,
 *   begin: (pointer: Pointer<T>, call: Handle) => Packed,
 *   unsent: (pointer: Pointer<T>, call: Handle) => Packed,
 *   finish(pointer: Pointer<T>, call: Handle, outcome: number, fate: Fate): Packed,
 *   count: (pointer: Pointer<T>, counter: Counter) => number,
 * }} CallExports
 */

/**
 * Records the inputs of a core: returns exports that behave like those of the instance.
 * @template {BaseExports} X
 * @callback Tap
 * @param {Instance<X>} instance
 * @returns {X}
 */

/** The counters that all cores of calls have, by name. */
const COUNTERS = {
  inFlightOut: abp.IN_FLIGHT_OUT,
  inFlightIn: abp.IN_FLIGHT_IN,
  remembered: abp.REMEMBERED,
  late: abp.LATE,
  stray: abp.STRAY,
  malformed: abp.MALFORMED,
  unknownType: abp.UNKNOWN_TYPE,
  refused: abp.REFUSED,
  overrun: abp.OVERRUN,
};

/**
 * An object of a core, such as an endpoint. Inputs are called directly as exports of the module,
 * `core.x.NAME(core.pointer, …)`; the headers in src/ describe them. A core of calls also has the
 * action that was last taken from it: one packed integer, with details in memory.
 * @template {string} T
 * @template {CoreExports<T>} X
 * @template {object} C its configuration
 */
export class Core {
  #module;

  /**
   * @param {CoreModule<X>} module
   * @param {Record<keyof C | 'seed', number>} layout the offsets of the fields of its
   *   configuration, in bytes
   * @param {C} config values of these fields, by name; an absent one is the default
   * @param {Tap<X>} [tap]
   */
  constructor(module, layout, config, tap) {
    this.#module = module;
    this.instance = module.instance();
    this.x = tap?.(this.instance) ?? this.instance.x;
    const fields = Object.entries(layout).map(([name, offset]) => [
      offset,
      limitOf(/** @type {any} */ (config)[name]),
    ]);
    this.instance.configure(layout.seed, fields);
    /** The object's address, the first argument of the exports. @type {Pointer<T>} */
    this.pointer = this.x.create(performance.now());
    if (!this.pointer) throw outOfMemory();
    /** Where the details of its action are, in words. */
    this.action = (this.x.action?.() ?? 0) >> 2;
  }

  /** Frees its memory. Later inputs have no effect. */
  free() {
    this.pointer = this.x.destroy(this.pointer);
  }

  /** Abandons its instance, which has trapped: new cores get a new instance. */
  abandon() {
    this.#module.abandon(this.instance);
  }

  /**
   * Writes an id to the scratch.
   * @param {unknown} id
   * @returns {number} its length in bytes; 0 if it cannot be an id
   */
  writeId(id) {
    return this.instance.writeId(id);
  }

  /**
   * Writes a text to the scratch.
   * @param {string} [text]
   * @param {number} [offset] where in the scratch it begins, in bytes
   * @returns {number} its length in bytes; 0 if there is no text, or memory is short
   */
  write(text = '', offset) {
    return Math.max(this.instance.write(text, offset), 0);
  }

  /**
   * Writes a reason as `write` does, cut to `MAX_REASON_LENGTH`; 0 unless it is a string.
   * @param {unknown} reason
   * @param {number} [offset]
   */
  writeReason(reason, offset) {
    if (typeof reason !== 'string') return 0;
    return Math.max(this.instance.write(reason.slice(0, MAX_REASON_LENGTH), offset), 0);
  }

  /**
   * Reads a word of the action.
   * @param {number} field its offset, in bytes
   */
  #word(field) {
    return this.instance.u32[this.action + (field >> 2)];
  }

  /** The call that the action is about. */
  get call() {
    return /** @type {Handle} */ (this.#word(abp.ACTION_CALL));
  }

  /** The time of a WAKE, in ms. */
  get at() {
    return this.#word(abp.ACTION_AT) + this.#word(abp.ACTION_AT + 4) * 2 ** 32;
  }

  /**
   * The amount of a stream: chunks and bytes.
   * @returns {[number, number]}
   */
  get amount() {
    return [this.#word(abp.ACTION_CHUNKS), this.at];
  }

  /** The reason of an ABORT or a cancel, or undefined. */
  get reason() {
    const length = this.#word(abp.ACTION_LENGTH);
    return length ? this.instance.read(this.#word(abp.ACTION_TEXT), length) : undefined;
  }

  /** The number of the call that the action is about; 0 if its id is text. */
  get callNumber() {
    return /** @type {CallNumber} */ (this.instance.u32[this.action + (abp.ACTION_NUMBER >> 2)]);
  }

  /**
   * The counters: for calls, the number in flight, and of dropped messages.
   * @param {Record<string, number>} [counters] the core's counters, by name
   * @returns {Record<string, number>}
   */
  counters(counters = COUNTERS) {
    /** @type {Record<string, number>} */
    const counted = {};
    for (const name in counters) counted[name] = this.x.count(this.pointer, counters[name]);
    return counted;
  }
}
