/**
 * The observers of the endpoints of a client or an app. An endpoint has three hooks for them:
 * `observe` receives events (js/types/trace.ts), `prepare` converts results and chunks for the
 * transport, `run` wraps its core.
 */
import { loadOnce } from '../common/errors.js';
import { parts } from '../common/parts.js';

/** @import { TraceListener } from '../types/trace.js' */

/**
 * @typedef {object} ObserverOptions The observers of a client or an app.
 * @property {TraceListener} [trace] called with each event: calls, progress, cancels, results,
 *   refusals, messages. See docs/tracing.md
 * @property {boolean} [debug] writes these events to the console, and marks each call with
 *   `performance.measure`; the extension for the developer tools finds it
 * @property {{ tap: unknown, note: TraceListener }} [recorder] records the inputs of the core: see
 *   @abp-bridge/inspector/recorder
 */

export class Observers {
  /**
   * Makes the events, once there is a listener.
   * @type {import('../types/parts.js').Tracing | undefined}
   */
  tracing;
  #load;

  /**
   * @param {ObserverOptions} options
   * @param {() => import('./endpoint.js').Endpoint[]} endpoints returns the existing endpoints
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
    /** Settles when the observers in the options are active. */
    this.ready = trace || debug || recorder ? this.#load() : undefined;
    this.ready?.catch(() => {}); // Those who await it get the error.
  }

  /**
   * @param {TraceListener} listener called with each event from now on
   * @returns {Promise<() => void>} removes the listener
   */
  async add(listener) {
    return (await this.#load()).add(listener);
  }
}
