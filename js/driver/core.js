/** What the three cores have in common: an object in the module's memory, and writing text into it. */
import { AbpError, MAX_REASON_LENGTH } from '../common/errors.js';
import { limitOf } from '../common/values.js';

export const outOfMemory = () =>
  new AbpError('INTERNAL_ERROR', 'not enough memory', { retryable: true });

/**
 * The exports that each module has for its kind of object.
 * @template {string} T the object's type in C
 * @typedef {import('./instance.js').BaseExports & {
 *   create: (now: number) => import('./instance.js').Pointer<T>,
 *   destroy: (pointer: import('./instance.js').Pointer<T>) => import('./instance.js').Pointer<T>,
 *   count(pointer: import('./instance.js').Pointer<T>, counter: number): number,
 * }} CoreExports
 */

/**
 * Stands between a core and who uses it, to record what goes in: returns exports that do as the instance's do.
 * @template {import('./instance.js').BaseExports} X
 * @callback Tap
 * @param {import('./instance.js').Instance<X>} instance
 * @returns {X}
 */

/**
 * One object of a core: an endpoint, a peer or a table of tasks. Inputs are called directly as exports of the module,
 * `core.x.NAME(core.pointer, …)`; the headers in src/ say what each means.
 * @template {string} T
 * @template {CoreExports<T>} X
 * @template {object} C its configuration
 */
export class Core {
  #module;

  /**
   * @param {import('./module.js').CoreModule<X>} module
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
    /** Its address, the first argument of the exports. @type {import('./instance.js').Pointer<T>} */
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
