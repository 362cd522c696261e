/** What cores have in common: an object in the module's memory, text that is written there, and actions that are read. */
import * as abp from './abp-boundary.js';
import { AbpError, MAX_REASON_LENGTH } from '../common/errors.js';
import { limitOf } from '../common/values.js';

/** @import { CallNumber, Counter, Fate, Handle, Packed } from './abp-boundary.js' */
/** @import { BaseExports, Instance, Pointer } from './instance.js' */
/** @import { CoreModule } from './module.js' */

export const outOfMemory = () =>
  new AbpError('INTERNAL_ERROR', 'not enough memory', { retryable: true });

/**
 * The exports that each module has for its kind of object.
 * @template {string} T the object's type in C
 * @typedef {BaseExports & {
 *   create: (now: number) => Pointer<T>,
 *   destroy: (pointer: Pointer<T>) => Pointer<T>,
 *   count(pointer: Pointer<T>, counter: number): number,
 * }} CoreExports
 */

/**
 * Stands between a core and who uses it, to record what goes in: returns exports that do as the instance's do.
 * @template {BaseExports} X
 * @callback Tap
 * @param {Instance<X>} instance
 * @returns {X}
 */

/**
 * One object of a core, such as an endpoint. Inputs are called directly as exports of the module,
 * `core.x.NAME(core.pointer, …)`; the headers in src/ say what each means.
 * @template {string} T
 * @template {CoreExports<T>} X
 * @template {object} C its configuration
 */
export class Core {
  #module;

  /**
   * @param {CoreModule<X>} module
   * @param {Record<keyof C | 'seed', number>} layout the offsets of the fields of its configuration, in bytes
   * @param {C} config values of these fields, by name; an absent one is the default
   * @param {Tap<X>} [tap]
   */
  constructor(module, layout, config, tap) {
    this.#module = module;
    this.instance = module.instance();
    this.x = tap ? tap(this.instance) : this.instance.x;
    const fields = Object.entries(config).map(([name, value]) => {
      const offset = layout[/** @type {keyof C} */ (name)];
      if (!(offset >= 0)) throw new TypeError(`the core's configuration has no field ${name}`);
      return [offset, limitOf(value)];
    });
    this.instance.configure(layout.seed, fields);
    /** Its address, the first argument of the exports. @type {Pointer<T>} */
    this.pointer = this.x.create(performance.now());
    if (!this.pointer) throw outOfMemory();
  }

  /** Gives its memory back. Inputs that come later find nothing. */
  free() {
    this.pointer = this.x.destroy(this.pointer);
  }

  /** Its instance has trapped: new cores get a new instance. */
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
   * Writes a reason to the scratch, cut to `MAX_REASON_LENGTH`.
   * @param {unknown} reason only a string is a reason
   * @param {number} [offset] where in the scratch it begins, in bytes
   * @returns {number} its length in bytes; 0 if there is none, or memory is short
   */
  writeReason(reason, offset) {
    if (typeof reason !== 'string') return 0;
    return Math.max(this.instance.write(reason.slice(0, MAX_REASON_LENGTH), offset), 0);
  }

  /**
   * Reads counters.
   * @param {Record<string, Parameters<X['count']>[1]>} counters their numbers in the core, by name
   * @returns {Record<string, number>}
   */
  count(counters) {
    const read = (/** @type {[string, Parameters<X['count']>[1]]} */ [name, counter]) => [
      name,
      this.x.count(this.pointer, counter),
    ];
    return Object.fromEntries(Object.entries(counters).map(read));
  }
}

/**
 * The exports of a module of calls.
 * @template {string} T
 * @typedef {CoreExports<T> & {
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

/** What cores of calls count, by the numbers that they have in common. */
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
 * What the configurations of calls have in common.
 * @param {Pick<import('./abp-core.js').Limits, 'maxCalls' | 'maxConcurrent' | 'remembered' | 'rememberFor' | 'grace' | 'maxIdLength' |
 *   'firstNumber'>} limits
 * @returns {Partial<abp.Config>}
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
 * One that makes and receives calls, and the action that was just taken from it. An action is one packed integer; its details are
 * read from memory.
 * @template {string} T
 * @template {CallExports<T>} X
 * @template {object} C its configuration
 * @extends {Core<T, X, C>}
 */
export class ActionReader extends Core {
  /** Where the core keeps the details of its action. */
  #action = this.x.action();

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
