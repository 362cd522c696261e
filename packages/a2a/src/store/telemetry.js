/**
 * Metrics and traces by the user's OpenTelemetry API. Each run of an executor is a span with an
 * event at its start: a span is exported when it ends, and a process that is killed ends none.
 */
import { AbpError } from 'abp-bridge/driver';

/** @import { RequestInfo, StoredTask } from '../task.js' */

/**
 * Reports to OpenTelemetry for an agent: the option `telemetry` of `createTaskServer`.
 * @typedef {object} Telemetry
 * @property {(counters: never) => unknown} attach called by the agent
 */

/** The name of the tracer and the meter. */
const NAME = '@abp-bridge/a2a';

/**
 * Metrics and traces, for the option `telemetry` of `createTaskServer`.
 * @param {any} api the module `@opentelemetry/api` 1
 * @returns {Telemetry}
 */
export function openTelemetry(api) {
  if (typeof api?.trace?.getTracer !== 'function' || typeof api.metrics?.getMeter !== 'function')
    throw new AbpError('INVALID_PARAMS', 'openTelemetry needs the module @opentelemetry/api');
  return {
    attach: (/** @type {() => Record<string, number | undefined>} */ counters) =>
      new Reports(api, counters),
  };
}

export class Reports {
  #api;
  #tracer;

  /**
   * @param {any} api
   * @param {() => Record<string, number | undefined>} counters
   */
  constructor(api, counters) {
    this.#api = api;
    this.#tracer = api.trace.getTracer(NAME);
    const meter = api.metrics.getMeter(NAME);
    const counter = (/** @type {string} */ name, /** @type {string} */ description) =>
      meter.createCounter(name, { description });
    const states = counter('a2a.tasks', 'states of tasks that were told');
    /** @param {string} state that was sent */
    this.told = (state) => states.add(1, { 'a2a.task.state': state });
    const losses = counter('a2a.lease.losses', 'leases that this process did not renew in time');
    this.leaseLost = () => losses.add(1);
    const met = 'times that a task was met that a later version has stored';
    const meetings = counter('a2a.tasks.unreadable', met);
    this.unreadable = () => meetings.add(1);
    const description = 'from a cancel to its answer';
    const cancels = meter.createHistogram('a2a.cancel.duration', { unit: 'ms', description });
    /**
     * @param {number} ms
     * @param {string} state of the task when it was to be cancelled
     */
    this.cancelled = (ms, state) => cancels.record(ms, { 'a2a.task.state': state });
    for (const [name, of, description] of [
      ['a2a.tasks.live', 'live', 'tasks that have not ended'],
      ['a2a.streams', 'streams', 'open streams'],
      ['a2a.outbox', 'outbox', 'events that wait to be stored'],
    ])
      meter
        .createObservableGauge(name, { description })
        .addCallback((/** @type {any} */ result) => result.observe(counters()[of] ?? 0));
  }

  /**
   * Begins the span of a run, which continues the client's trace.
   * @param {StoredTask} task
   * @param {RequestInfo} request
   * @param {number} attempt
   */
  begin(task, request, attempt) {
    const { context, propagation, trace } = this.#api;
    const parent = propagation.extract(context.active(), request.headers);
    const attributes = {
      'a2a.task.id': task.id,
      'a2a.context.id': task.contextId,
      'a2a.attempt': attempt,
    };
    this.#tracer.startSpan('a2a.execute.begin', { attributes }, parent).end();
    const span = this.#tracer.startSpan('a2a.execute', { attributes }, parent);
    return {
      /**
       * @template T
       * @param {() => Promise<T>} execute
       * @returns {Promise<T>}
       */
      run: (execute) => context.with(trace.setSpan(parent, span), execute),
      failed: (/** @type {unknown} */ error) => span.recordException(error),
      /** Call this when the task has the state that results from the run. */
      end: () => {
        span.setAttribute('a2a.task.state', task.state);
        span.end();
      },
    };
  }
}
