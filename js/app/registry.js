/** An app's capabilities. */
import * as abp from '../driver/abp-boundary.js';
import { invokeReportingErrors } from '../common/errors.js';
import { mistyped, requireOptions } from '../common/check-options.js';
import { development } from '../common/development.js';
import { parts } from '../common/parts.js';
import { isRepeatable } from '../wire/messages.js';
import { isGenerator } from '../common/transfer.js';
import { isRecord } from '../common/values.js';

/**
 * @typedef {object} CallContext The second argument of a handler. It may be destructured.
 * @property {AbortSignal} signal aborts when the call is cancelled, times out, or its caller is
 *   gone
 * @property {import('../common/token.js').Token} token the signal's state in memory that other
 *   threads can read, for workers and WebAssembly that compute without returning to the event loop;
 *   see docs/workers.md
 * @property {(info: { progress: number, total?: number, stage?: string, status?: string,
 *   estimatedRemaining?: number }) => void} progress reports progress, if the caller asked for it
 * @property {(request: { method: string, params?: any, timeout?: number })
 *   => Promise<import('../wire/messages.js').Response>} elicit asks the agent a question; ends as
 *   cancelled when this call does
 * @property {(name: string, params?: any, options?: { signal?: AbortSignal, timeout?: number })
 *   => Promise<import('../wire/messages.js').Response>} call calls another capability of this app
 *   as part of this call
 * @property {string} callId the id of the call
 * @property {AsyncIterableIterator<any> & { highWaterMark?: number }} [input] the agent's stream to
 *   this call, to be read by `for await`; undefined if there is none. Set `highWaterMark` before
 *   the first read. See docs/streams.md#input
 * @property {unknown} progressToken the token that the caller gave for progress; undefined if it
 *   wants no progress
 * @property {(report: { applied?: unknown, remaining?: unknown, [more: string]: unknown }) => void}
 *   report reports what the handler has applied and what remains, in JSON of at most 4 KB. The
 *   latest report is kept, and sent if the call does not succeed: as `metadata.report` of its
 *   response
 * @property {unknown} [earlier] for a call with a key: the last report of an earlier run of this
 *   work that was stopped because its agent was lost; undefined if there was none
 * @property {() => Promise<void> | undefined} breathe for a loop that computes: `await breathe()`
 *   returns to the event loop when 8 ms have passed, and throws the signal's reason once the call
 *   is cancelled
 */

/**
 * @callback Handler Answers a call. It returns the data, streams them by being an async generator,
 *   or throws.
 * @param {any} params
 * @param {CallContext} context
 * @returns {any} the data of the response, or a promise of it; or the protocol's response itself:
 *   an object with a boolean `success` and no members other than `success`, `data`, `error`,
 *   `cancelled` and `metadata`. Throw an AbpError to choose the code; other errors become
 *   OPERATION_FAILED, and an AbortError means that the operation was cancelled
 */

/**
 * @typedef {object} Requirement A condition for calling a capability.
 * @property {'permission' | 'context' | 'gesture' | 'browser' | 'hardware' | 'state'} type
 * @property {string} description
 * @property {boolean | (() => boolean)} met
 * @property {string} [resolution]
 */

/**
 * @typedef {object} Described The description of a capability, besides its handler and schemas.
 * @property {string} [description]
 * @property {object} [annotations] hints for MCP clients: `readOnlyHint`, `destructiveHint`,
 *   `idempotentHint`, `openWorldHint`
 * @property {boolean} [readOnly] whether it changes nothing, so that it may run twice; sets the
 *   hint, too
 * @property {boolean} [idempotent] whether running it twice has the effect of running it once; sets
 *   the hint, too
 * @property {boolean | (() => boolean)} [available] (true)
 * @property {readonly Requirement[]} [requirements]
 * @property {Record<string, boolean>} [features]
 * @property {boolean} [experimental]
 * @property {boolean} [deprecated]
 * @property {string} [deprecationMessage]
 * @property {readonly string[]} [alternatives]
 * @property {any} [browserRequirement] which browsers support it, in the protocol's form
 */

/**
 * @typedef {object} Implemented The code of a capability.
 * @property {Handler} handler
 * @property {import('../types/app.js').Schema} [inputSchema] of the params; enforced
 * @property {import('../types/app.js').Schema} [outputSchema] of the data; a call whose data does
 *   not match has failed
 */

/**
 * @typedef {Described & Implemented} Capability A capability: its description for agents, and its
 *   handler.
 */

const any = 'anything';
/** Members of a capability that are not part of its description as they are. */
const OWN = { handler: any, available: any, requirements: any, readOnly: any, idempotent: any };
/**
 * The members of its description.
 * @type {Record<Exclude<keyof Capability, keyof typeof OWN>, string>}
 */
const SHOWN = {
  description: any,
  inputSchema: any,
  outputSchema: any,
  annotations: any,
  features: any,
  experimental: any,
  deprecated: any,
  deprecationMessage: any,
  alternatives: any,
  browserRequirement: any,
};
const shownNames = () => /** @type {(keyof typeof SHOWN)[]} */ (Object.keys(SHOWN));

/** @param {boolean | (() => boolean) | undefined} value */
const holds = (value) =>
  typeof value === 'function' ? invokeReportingErrors(value) === true : value !== false;

/** @import { Call } from '../session/call.js' */

/**
 * The capabilities of an app, as its connections use them.
 * @typedef {import('../session/endpoint.js').Known & Callable} Capabilities
 */

/**
 * @typedef {object} Callable
 * @property {any} [app] the description of the app for agents, if not that passed to `expose`
 * @property {() => unknown[]} list their descriptions for agents
 * @property {(call: Call) => abp.ErrorCode} rejectionFor the code with which to reject a call, or
 *   `NO_ERROR`
 * @property {(call: Call, context: any) => unknown} run runs the handler of a call
 * @property {(connection: import('./connection.js').Connection) => void} [attend] for a foreign
 *   app, whose session begins before that of an agent
 */

/** @typedef {(params: any, context: CallContext, call: Call) => unknown} Run */

/**
 * A capability in the registry. Its schemas are JSON Schemas. A handler with `later` waits for its
 * turn: `later` gets the call, postpones it, and begins it.
 * @typedef {Capability & { run: Run, handler: Handler & { later?: Run } }} Entry `run` runs its
 *   handler, and checks params and result by its schemas, if there are any. No line of a generator
 *   runs before its first chunk is taken
 */

/**
 * Rejections that wait for the code that explains them, and their maximum; further ones are sent
 * without an explanation.
 */
let unexplained = 0;
const MAX_UNEXPLAINED = 256;
/** Codes of rejections that `explain` adds details to. @type {abp.ErrorCode[]} */
const EXPLAINED = [abp.CAPABILITY_UNAVAILABLE, abp.UNKNOWN_CAPABILITY, abp.REQUIREMENT_NOT_MET];

/** The capabilities of an app. */
export class Registry {
  /** The capabilities by name. @type {Map<string, Entry>} */
  all = new Map();

  /** @param {Record<string, Capability | Handler>} [capabilities] */
  constructor(capabilities = {}) {
    if (!isRecord(capabilities)) {
      throw mistyped('expose', 'capabilities', 'an object of handlers by name');
    }
    for (const [name, capability] of Object.entries(capabilities)) this.set(name, capability);
  }

  /**
   * Adds or replaces a capability.
   * @param {string} name
   * @param {Capability | Handler} capability
   */
  set(name, capability) {
    const entry = /** @type {Entry} */ (
      typeof capability === 'function' ? { handler: capability } : { ...capability }
    );
    const { handler, readOnly, idempotent } = entry;
    requireOptions(`capability ${name}`, { ...entry }, { ...OWN, ...SHOWN });
    if (typeof handler !== 'function') {
      throw new TypeError(`capability ${name} needs a handler`);
    }
    const isLazy = isGenerator(handler);
    entry.run = (params, context, call) => {
      if (isLazy) call.postpone();
      return handler.later?.(params, context, call) ?? handler(params, context);
    };
    if (readOnly) entry.annotations = { ...entry.annotations, readOnlyHint: true };
    if (idempotent) entry.annotations = { ...entry.annotations, idempotentHint: true };
    parts.describe(name, entry, shownNames());
    this.all.set(name, entry);
  }

  /**
   * @param {unknown} name
   * @returns {any} the description in the protocol's form, or null
   */
  describe(name) {
    const capability = this.all.get(/** @type {string} */ (name));
    if (!capability) return null;
    const requirements = (capability.requirements ?? []).map((r) => ({ ...r, met: holds(r.met) }));
    const available = holds(capability.available) && requirements.every(({ met }) => met);
    /** @type {Record<string, unknown>} */
    const shown = { name, available, requirements, features: {} };
    for (const key of shownNames()) if (capability[key] !== undefined) shown[key] = capability[key];
    return shown;
  }

  /**
   * True if a capability may run twice.
   * @param {unknown} name
   */
  repeatable(name) {
    return isRepeatable(this.all.get(/** @type {string} */ (name))?.annotations);
  }

  /** The descriptions of all capabilities for agents. */
  list() {
    return [...this.all.keys()].map((name) => this.describe(name));
  }

  /**
   * The code with which to reject a call, or `NO_ERROR`.
   * @param {Call} call
   */
  rejectionFor({ name }) {
    const capability = this.all.get(name);
    if (!capability) return abp.UNKNOWN_CAPABILITY;
    const { available, requirements } = capability;
    if (available !== undefined && !holds(available)) return abp.CAPABILITY_UNAVAILABLE;
    if (requirements?.some((r) => !holds(r.met))) return abp.REQUIREMENT_NOT_MET;
    return abp.NO_ERROR;
  }

  /**
   * Adds details to the error of a rejected call.
   * @param {Call} call
   * @param {abp.ErrorCode} code
   * @param {import('../common/errors.js').ErrorObject} error
   * @returns {Promise<void> | void} a promise if that takes time
   */
  explain(call, code, error) {
    if (code === abp.RATE_LIMITED) error.retryAfter = 1000;
    if (!EXPLAINED.includes(code) || unexplained >= MAX_UNEXPLAINED) return undefined;
    const shown = this.describe(call.name);
    unexplained++;
    return development()
      .then(({ explain }) => explain(call.name, shown, this.all, error))
      .catch(() => {})
      .finally(() => unexplained--);
  }

  /**
   * Runs the handler of a call.
   * @param {Call} call
   * @param {CallContext} context
   */
  run(call, context) {
    const { name, params, endpoint } = call;
    call.params = undefined; // From now on they belong to the handler.
    const capability = this.all.get(name);
    if (capability) return capability.run(params, context, call);
    // It was removed while the call waited for its turn.
    call.postpone();
    return endpoint.core.response(abp.REFUSE, abp.UNKNOWN_CAPABILITY, abp.FATE_UNSTARTED);
  }
}
