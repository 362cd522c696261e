/** A module of the core, and its instance, shared by all endpoints of this page. */
import { loadOnce, loadPart } from '../common/errors.js';
import { Instance } from './instance.js';
import { load } from './load.js';

/** @template {import('./instance.js').BaseExports} X the module's exports */
export class CoreModule {
  /** @type {Instance<X> | undefined} */
  #shared;
  /** Set when `load` has resolved. */
  #make = /** @type {() => Instance<X>} */ (/** @type {unknown} */ (undefined));

  /**
   * @param {() => Promise<{ default: string }>} wasm imports the WebAssembly, deflated and in
   *   base64: a file of its own, since code and WebAssembly compress badly together
   * @param {() => Promise<{ default: import('./load.js').Instantiate }>} fallback imports the same
   *   core as JavaScript
   * @param {number} abi the number that the module must return, which proves that it was built for
   *   this shim
   */
  constructor(wasm, fallback, abi) {
    /**
     * Loads the module, once. After a failure the next call tries again, and a page that only
     * imports the library sees no unhandled rejection. Resolves when cores can be made, with their
     * form. Rejects with an `AbpError` when a file does not load, and with an `Error` when the
     * module was built from other sources than js/.
     */
    this.load = loadOnce(async () => {
      const { default: deflated } = await loadPart(wasm());
      return load(deflated, fallback, (instantiate) => {
        this.#make = () => new Instance(instantiate, abi);
        this.instance();
      });
    });
  }

  /**
   * The instance in which cores are made.
   * @returns {Instance<X>}
   */
  instance() {
    return (this.#shared ??= this.#make());
  }

  /**
   * Abandons an instance that has trapped: its cores continue as long as they can, and new cores
   * get a new instance.
   * @param {Instance<X>} instance
   */
  abandon(instance) {
    if (this.#shared === instance) this.#shared = undefined;
  }
}
