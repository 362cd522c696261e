/**
 * Watches the cores that are made while a test runs, from the driver (js/driver/instance.js): what
 * memory their instance takes, whether they have given theirs back, and what becomes of one that
 * traps.
 */
import { Instance } from '../../js/driver/instance.js';

/** @typedef {{ instance: any, pointer: number, isFree: boolean }} Watched */

/**
 * @param {import('node:test').TestContext} t
 * @returns {Watched[]} each core, in the order in which they are made
 */
export function watchCores(t) {
  /** @type {Watched[]} */
  const cores = [];
  /** Those that live, by their pointers. @type {Map<unknown, Map<number, Watched>>} */
  const living = new Map();
  /** @param {any} instance */
  const watch = (instance) => {
    const { x } = instance;
    const { create, destroy } = x;
    const here = new Map();
    living.set(instance, here);
    x.create = (/** @type {number} */ now) => {
      const core = { instance, pointer: create(now), isFree: false };
      cores.push(core);
      here.set(core.pointer, core);
      return core.pointer;
    };
    x.destroy = (/** @type {number} */ pointer) => {
      if (here.has(pointer)) here.get(pointer).isFree = true;
      return destroy(pointer);
    };
  };
  // Not a mock: what that keeps of each call would keep the core's owner, too.
  const { configure } = Instance.prototype;
  t.after(() => (Instance.prototype.configure = configure));
  Instance.prototype.configure = function (...given) {
    if (!living.has(this)) watch(this);
    return configure.apply(this, given);
  };
  return cores;
}

/**
 * Makes an input of one core trap, as a module does that fails.
 * @param {Watched} core
 * @param {string} input
 */
export function trap({ instance: { x }, pointer }, input) {
  const { [input]: whole } = x;
  x[input] = (/** @type {number} */ at, /** @type {any[]} */ ...given) => {
    // As WebAssembly's RuntimeError, where the core is JavaScript.
    if (at === pointer) throw new RangeError('unreachable');
    return whole(at, ...given);
  };
}
