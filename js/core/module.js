/** A module of the core, and its instance, which all endpoints of this page share. */
import { Instance } from './instance.js';
import { load } from './load.js';

/** @template {import('./instance.js').BaseExports} X the module's exports */
export class CoreModule {
  #abi;
  /** @type {import('./load.js').Instantiate | undefined} */
  #instantiate;
  /** @type {Instance<X> | undefined} */
  #shared;

  /**
   * @param {string} deflated the WebAssembly, deflated and in base64
   * @param {() => Promise<{ default: import('./load.js').Instantiate }>} fallback imports the same core as JavaScript
   * @param {number} abi the number that the module must return, which proves that it was built for this shim
   */
  constructor(deflated, fallback, abi) {
    this.#abi = abi;
    /**
     * Resolves when cores can be made, with their form. Rejects when the module was built from other
     * sources than js/ has. @type {Promise<'wasm' | 'js'>}
     */
    this.ready = load(deflated, fallback).then(({ kind, instantiate }) => {
      this.#instantiate = instantiate;
      this.instance();
      return kind;
    });
    // Code that needs a core awaits `ready`. A page that only imports us must not see an unhandled rejection.
    this.ready.catch(() => {});
  }

  /** The instance in which cores are made. */
  instance() {
    if (!this.#instantiate) throw new Error('await `ready` before making a core');
    return (this.#shared ??= new Instance(this.#instantiate, this.#abi));
  }

  /**
   * An instance has trapped: cores that use it continue as long as they can, and new cores get a new one.
   * @param {Instance<X>} instance
   */
  abandon(instance) {
    if (this.#shared === instance) this.#shared = undefined;
  }
}
