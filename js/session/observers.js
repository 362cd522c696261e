/**
 * Who observes the endpoints of a client or an app. What decodes the events is loaded with the first observer, so that
 * nobody else downloads or runs anything of it.
 */

/** @import { TraceListener } from './trace.js' */

/** @typedef {import('./pending-call.js').PendingCall | import('./invocation.js').Invocation} AnyCall made here, or received */

/**
 * What an endpoint tells its observer, as it happens. An observer changes nothing.
 * @typedef {object} Observer
 * @property {(sent: boolean, data: unknown) => void} message a message or a frame is about to be sent or read
 * @property {() => void} read the message has been read, and all that it caused has been done
 * @property {(record: object, parent: import('../driver/abp-boundary.js').Handle) => void} begin a call or a `PendingCancel` is about to be made, on behalf of
 *   the call `parent`, if that is not 0
 * @property {(kind: import('../driver/abp-boundary.js').Kind, arg: number, record: AnyCall, context: unknown, text: unknown) => void} action the core's action
 *   is about to be performed
 * @property {(record: AnyCall, response: unknown) => void} end this is what becomes of a call
 * @property {(record: AnyCall, info: unknown) => void} progress progress is about to be sent
 */

/**
 * @typedef {object} ObserverOptions Who is shown what goes on.
 * @property {TraceListener} [trace] called with each event: calls, progress, cancels, results, refusals, messages. See docs/tracing.md
 * @property {boolean} [debug] writes these events to the console, and marks each call with `performance.measure`;
 *   the extension for the developer tools finds it
 * @property {{ tap: unknown, note: TraceListener }} [recorder] writes down what goes into the core: see abp-bridge/recorder
 */

/** The types of {@link ObserverOptions}. */
export const OBSERVER_OPTIONS = {
  trace: 'a function',
  debug: 'a boolean',
  recorder: 'an object',
};

export class Observers {
  /** @type {Set<TraceListener>} */
  #listeners = new Set();
  #endpoints;
  /** @type {typeof import('./trace.js').Tracer | undefined} */
  #Tracer;

  /**
   * @param {ObserverOptions} options
   * @param {() => import('./endpoint.js').Endpoint[]} endpoints those that exist
   */
  constructor({ trace, debug, recorder }, endpoints) {
    this.#endpoints = endpoints;
    /**
     * Stands between an endpoint and its core.
     * @type {import('../driver/core.js').Tap<import('../driver/abp-boundary.js').Exports> | undefined}
     */
    this.tap = /** @type {any} */ (recorder)?.tap;
    if (recorder) this.#listeners.add(recorder.note);
    if (trace) this.#listeners.add(trace);
    /** Settles when the observers that were given as options observe. */
    this.ready = trace || debug || recorder ? this.#load(debug) : undefined;
    this.ready?.catch(() => {}); // Those who await it are told.
  }

  /** @param {boolean} [debug] */
  async #load(debug) {
    const { Tracer, announce, print } = await import('./trace.js');
    this.#Tracer = Tracer;
    if (!debug) return;
    this.#listeners.add(print);
    announce(this);
  }

  /**
   * @param {TraceListener} listener called with each event from now on
   * @returns {Promise<() => void>} what ends it
   */
  async add(listener) {
    await this.#load();
    this.#listeners.add(listener);
    for (const endpoint of this.#endpoints()) if (!endpoint.observer) this.follow(endpoint);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size) return;
      for (const endpoint of this.#endpoints()) endpoint.observe(undefined);
    };
  }

  /** Observes an endpoint if somebody listens. @param {import('./endpoint.js').Endpoint} endpoint */
  follow(endpoint) {
    if (!this.#Tracer || !this.#listeners.size) return;
    endpoint.observe(new this.#Tracer(endpoint, this.#listeners));
  }
}
