/**
 * Who observes the endpoints of a client or an app. An endpoint has three hooks for what stands
 * beside it: `observe` is told what happens (js/types/trace.ts), `prepare` makes
 * results and chunks fit for the transport, `run` stands around its core.
 */
import { loadOnce } from '../common/errors.js';
import { parts } from '../common/parts.js';

/** @import { TraceListener } from '../types/trace.js' */

/**
 * @typedef {object} ObserverOptions Who is shown what goes on.
 * @property {TraceListener} [trace] called with each event: calls, progress, cancels, results,
 *   refusals, messages. See docs/tracing.md
 * @property {boolean} [debug] writes these events to the console, and marks each call with
 *   `performance.measure`; the extension for the developer tools finds it
 * @property {{ tap: unknown, note: TraceListener }} [recorder] writes down what goes into the core:
 *   see @abp-bridge/inspector/recorder
 */

export class Observers {
  /**
   * What makes events, once somebody wants some.
   * @type {import('../types/parts.js').Tracing | undefined}
   */
  tracing;
  #load;

  /**
   * @param {ObserverOptions} options
   * @param {() => import('./endpoint.js').Endpoint[]} endpoints those that exist
   */
  constructor(options, endpoints) {
    const { trace, debug, recorder } = options;
    this.#load = loadOnce(() =>
      parts.trace().then(({ Tracing }) => (this.tracing = new Tracing(options, endpoints))),
    );
    /**
     * @type {import('../driver/core.js').Tap<import('../driver/abp-boundary.js').Exports>
     *   | undefined}
     */
    this.run = /** @type {any} */ (recorder)?.tap;
    /** Settles when the observers that were given as options observe. */
    this.ready = trace || debug || recorder ? this.#load() : undefined;
    this.ready?.catch(() => {}); // Those who await it are told.
  }

  /**
   * @param {TraceListener} listener called with each event from now on
   * @returns {Promise<() => void>} what ends it
   */
  async add(listener) {
    return (await this.#load()).add(listener);
  }
}
