/**
 * The context of a handler: a proxy of its call that shows only these members. Spreading copies
 * them, unlike the getters of a class, and a proxy is cheaper to make than an object with getters.
 */
import * as abp from '../driver/abp-boundary.js';
import { breatherOf } from '../common/breathe.js';
import { ENDING, misfit } from '../common/check-options.js';
import { development } from '../common/development.js';
import { latestOf } from '../common/latest.js';
import { keptReport } from '../common/report.js';
import { onAbort } from '../common/signals.js';
import { Token } from '../common/token.js';
import { milliseconds } from '../common/values.js';
import { unless } from '../common/waiting.js';
import { Call, ENDED } from '../session/call.js';
import { checkedProgress } from '../wire/messages.js';

/** A function of the call for each member. @type {Record<PropertyKey, any>} */
const MEMBERS = {
  __proto__: null,

  signal: (/** @type {Call} */ call) => call.signal,

  /**
   * The signal's state for code that events do not reach. It is set before the signal fires.
   * @param {Call} call
   */
  token(call) {
    const token = (call.ensureExtra().token ??= new Token());
    if (call.aborted) token.cancel();
    return token;
  },

  /**
   * Sends progress if the caller asked for it, and not after a cancel.
   * @param {Call} call
   */
  progress: (call) => (/** @type {unknown} */ info) => {
    const checked = checkedProgress(call.name, info, call.extra.progress);
    if (!checked) return;
    const extra = call.ensureExtra();
    extra.progress = checked;
    extra.reports ??= latestOf((last) => {
      const { endpoint, handle } = call;
      const { x, pointer } = endpoint.core;
      if (endpoint.failed || !x.progress_wanted(pointer, handle)) return;
      endpoint.observe?.('progress', call, last);
      endpoint.line.progress(last, call.options.progress, call);
    });
    extra.reports.add(checked);
  },

  /**
   * Asks the agent a question. The question ends as `cancelled` if this call is cancelled first.
   * @param {Call} call
   */
  elicit: (call) => (/** @type {unknown} */ request) =>
    call.endpoint.owner.question?.(request, call.handle || ENDED, aboutOf(call)),

  /**
   * Calls another capability of this app on behalf of this call: a cancel of this call cancels that
   * one, too.
   * @param {Call} parent
   */
  call:
    (parent) =>
    async (
      /** @type {string} */ name,
      /** @type {unknown} */ params = {},
      /** @type {{ signal?: AbortSignal, timeout?: number }} */ options = {},
      /** @type {unknown} */ more = undefined,
    ) => {
      if (typeof name !== 'string' || more !== undefined || misfit(options, ENDING, 'anything'))
        (await development()).checkNested(name, options, more);
      return new Promise((resolve) => callLocally(parent, name, params, options, resolve));
    },

  callId: (/** @type {Call} */ call) => call.callId,

  /**
   * The input that the agent streams; undefined if there is none. It is requested when it is first
   * read.
   * @param {Call} call
   */
  input(call) {
    if (!call.options.input || !call.endpoint.has(abp.STREAMS)) return undefined;
    return (call.ensureExtra().input ??= call.endpoint.stream(
      ({ InputStream }) => new InputStream(call),
      (loading) => unless(call.signal, loading),
    ));
  },

  /**
   * The token that the caller gave for progress; undefined if it wants no progress.
   * @param {Call} call
   */
  progressToken(call) {
    const { progress } = call.options;
    return progress === true ? call.callId : progress;
  },

  /**
   * For a loop that computes: `await breathe()`. It returns to the event loop every few ms, so that
   * a cancel can arrive, and throws the signal's reason once the call is cancelled. It is cheap
   * enough to call for every row.
   * @param {Call} call
   */
  breathe: (call) =>
    breatherOf(call.name, () => void (call.aborted && call.signal.throwIfAborted())),

  /**
   * Keeps the handler's report on its work, for a call that does not succeed.
   * @param {Call} call
   */
  report: (call) => (/** @type {unknown} */ report) => {
    call.ensureExtra().report = keptReport(report, call.name);
  },

  /**
   * The last report of an earlier run of this work that was stopped, if there was one.
   * @param {Call} call
   */
  earlier: (call) => call.extra.earlier,
};

/** @type {ProxyHandler<Call>} */
const handler = {
  get: (call, key) => MEMBERS[key]?.(call),
  has: (_call, key) => key in MEMBERS,
  ownKeys: () => Object.keys(MEMBERS),
  getOwnPropertyDescriptor: (call, key) =>
    key in MEMBERS
      ? { value: MEMBERS[key](call), enumerable: true, configurable: true }
      : undefined,
};

/**
 * Calls a capability of this app.
 * @param {Call} parent the call on whose behalf this one is made
 * @param {string} name
 * @param {unknown} params
 * @param {{ signal?: AbortSignal, timeout?: number }} options
 * @param {(response: unknown) => void} resolve
 */
function callLocally(parent, name, params, options, resolve) {
  const { endpoint } = parent;
  const timeout = milliseconds(options?.timeout);
  const signal = options?.signal;
  const call = new Call(endpoint, name, params, { timeout });
  call.extra = { about: aboutOf(parent), parent };
  call.resolve = resolve;
  call.callerSignal = signal;
  if (signal?.aborted) return call.answer(abp.CANCELLED, abp.FATE_UNSTARTED);
  const fault = endpoint.owner.accepts(call);
  // If the call above has ended or is ending, the new one is cancelled with it.
  const above = parent.handle || ENDED;
  endpoint.observe?.('begin', call, above);
  const { x } = endpoint.core;
  const status = endpoint.feed(x.call_local, call, parent.handle, timeout, fault);
  if (status < 0) endpoint.reject(call, status, above, abp.REFUSE);
  if (!call.handle || !signal) return;
  if (signal.aborted) call.handleEvent();
  else onAbort(signal, call);
}

/**
 * The callId of the agent's call on whose behalf this call runs.
 * @param {Call} call
 * @returns {string}
 */
export const aboutOf = (call) => call.extra.about ?? call.callId;

/** @param {Call} call */
export const contextOf = (call) => /** @type {any} */ (new Proxy(call, handler));
