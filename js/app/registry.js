/** The app's side: its capabilities, and one connection for each agent. */
import * as abp from '../core/abp-boundary.js';
import { AbpError, invokeReportingErrors, requireJson, toErrorObject } from '../common/errors.js';
import { nearestOf } from '../common/nearest.js';
import { jsonSchemaOf, standardOf } from '../common/json-schema.js';
import { markedTransfer, transfer } from '../common/transfer.js';
import { isObject, isRecord } from '../common/values.js';
import { isResponse } from '../wire/messages.js';

/**
 * @typedef {object} CallContext What a handler gets besides the params. It may be destructured.
 * @property {AbortSignal} signal aborts when the call is cancelled, times out, or its caller is gone
 * @property {import('../common/token.js').Token} token the same in memory that other threads can read, for workers and
 *   WebAssembly that compute without returning to the event loop; see docs/workers.md
 * @property {(info: { progress: number, total?: number, stage?: string, status?: string, estimatedRemaining?: number }) => void} progress
 *   reports progress, if the caller asked for it
 * @property {(request: { method: string, params?: any, timeout?: number }) => Promise<import('../agent/client.js').Response>} elicit
 *   asks the agent a question; ends as cancelled when this call does
 * @property {(name: string, params?: any, options?: { signal?: AbortSignal, timeout?: number }) => Promise<import('../agent/client.js').Response>} call
 *   calls another capability of this app as a part of this call
 * @property {string} callId
 * @property {AsyncIterableIterator<any>} [input] what the agent streams to this call, to be read by `for await`; undefined if it
 *   streams nothing. See docs/streams.md
 * @property {unknown} progressToken the token that the caller gave for progress; undefined if it wants none
 * @property {() => Promise<void> | undefined} breathe for a loop that computes: `await breathe()` lets messages in when
 *   8 ms have passed, and throws the signal's reason once the call is cancelled
 */

/**
 * @callback Handler
 * @param {any} params
 * @param {CallContext} context
 * @returns {any} the data of the response, or a promise of it; or the protocol's response itself: an object with a
 *   boolean `success` that has no members but `success`, `data`, `error`, `cancelled` and `metadata`. Throw an AbpError
 *   to choose the code, anything else is OPERATION_FAILED; an AbortError says that the operation was cancelled
 */

/**
 * @typedef {object} Requirement
 * @property {'permission' | 'context' | 'gesture' | 'browser' | 'hardware' | 'state'} type
 * @property {string} description
 * @property {boolean | (() => boolean)} met
 * @property {string} [resolution]
 */

/**
 * @typedef {object} Described What can be said of a capability, besides its handler and schemas.
 * @property {string} [description]
 * @property {object} [annotations] hints for MCP clients: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`
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
 * @typedef {object} Implemented
 * @property {Handler} handler
 * @property {import('../types/app.js').Schema} [inputSchema] of the params; enforced
 * @property {import('../types/app.js').Schema} [outputSchema] of the data; a handler that breaks it has failed
 */

/** @typedef {Described & Implemented} Capability */

/** The members of a capability that agents may see. */
const PUBLISHED = /** @type {const} */ ([
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
  'features',
  'experimental',
  'deprecated',
  'deprecationMessage',
  'alternatives',
  'browserRequirement',
]);

/** @param {boolean | (() => boolean) | undefined} value */
const holds = (value) =>
  typeof value === 'function' ? invokeReportingErrors(value) === true : value !== false;

/**
 * What a connection needs of an app's capabilities.
 * @typedef {import('../session/endpoint.js').Callee & { list(): unknown[], app?: any }} Capabilities
 */

/**
 * Its schemas are JSON Schemas.
 * @typedef {Capability & { input?: Promise<Checker>, output?: Promise<Checker> }} Entry
 * @typedef {(value: unknown) => import('./schema.js').Checked | Promise<import('./schema.js').Checked>} Checker
 */

/**
 * Loads the validator for a schema of a capability.
 * @param {string} name
 * @param {'inputSchema' | 'outputSchema'} member
 * @param {any} schema
 * @returns {Promise<Checker> | undefined}
 */
function checkerOf(name, member, schema) {
  if (schema === undefined || schema === true) return undefined;
  const what = member === 'inputSchema' ? 'params' : 'data';
  const standard = standardOf(schema);
  // Few apps have schemas, so the validator is loaded with the first one.
  /** @type {Promise<Checker>} */
  const loading = standard
    ? import('./standard-schema.js').then((m) => m.standardCheckerFor(standard, what))
    : import('./schema.js').then((m) => m.checkerFor(schema, what));
  const checker = loading.catch((error) => {
    const why = `${member} of ${name} cannot be used: ${toErrorObject(error).message} (docs/errors.md#schemas)`;
    console.error(`abp-bridge: ${why}`);
    throw new AbpError('INTERNAL_ERROR', why, { cause: error });
  });
  // Calls await it and fail with its error; until then it must not be an unhandled rejection.
  checker.catch(() => {});
  return checker;
}

/** The capabilities of an app. */
export class Registry {
  /** @type {Map<string, Entry>} */
  #capabilities = new Map();

  /** @param {Record<string, Capability | Handler>} capabilities */
  constructor(capabilities) {
    if (capabilities !== undefined && !isRecord(capabilities)) {
      throw new AbpError(
        'INVALID_PARAMS',
        "expose needs capabilities: an object of handlers by name, { 'text.echo': (params) => params }",
      );
    }
    for (const [name, capability] of Object.entries(capabilities ?? {})) this.set(name, capability);
  }

  /**
   * @param {string} name
   * @param {Capability | Handler} capability
   */
  set(name, capability) {
    /** @type {Entry} */
    const entry = typeof capability === 'function' ? { handler: capability } : { ...capability };
    if (typeof entry.handler !== 'function') {
      throw new TypeError(`capability ${name} needs a handler: async (params, { signal }) => data`);
    }
    const { inputSchema, outputSchema } = entry;
    entry.inputSchema = jsonSchemaOf(name, 'inputSchema', inputSchema);
    entry.outputSchema = jsonSchemaOf(name, 'outputSchema', outputSchema);
    entry.input = checkerOf(name, 'inputSchema', inputSchema);
    entry.output = checkerOf(name, 'outputSchema', outputSchema);
    const what = `capability ${name}`;
    const requirements = /** @type {Requirement[]} */ (entry.requirements ?? []);
    if (!Array.isArray(requirements) || !requirements.every(isRecord)) {
      throw new AbpError('INVALID_PARAMS', `requirements of ${what} must be a list of objects`);
    }
    // Agents are shown all this when they connect.
    for (const key of PUBLISHED) requireJson(what, entry[key], key);
    requirements.forEach(({ met: _met, ...shown }, i) =>
      requireJson(what, shown, `requirements.${i}`),
    );
    this.#capabilities.set(name, entry);
  }

  /** @param {string} name */
  delete(name) {
    return this.#capabilities.delete(name);
  }

  /** @param {string} name */
  has(name) {
    return this.#capabilities.has(name);
  }

  /**
   * @param {string} name
   * @returns {any} as the protocol shows it, or null
   */
  describe(name) {
    const capability = this.#capabilities.get(name);
    if (!capability) return null;
    const requirements = (capability.requirements ?? []).map((r) => ({ ...r, met: holds(r.met) }));
    const available = holds(capability.available) && requirements.every(({ met }) => met);
    /** @type {any} */
    const shown = { name, available, requirements, features: {} };
    for (const key of PUBLISHED) if (capability[key] !== undefined) shown[key] = capability[key];
    return shown;
  }

  /** @returns {Record<string, Capability>} */
  get definitions() {
    return Object.fromEntries(this.#capabilities);
  }

  list() {
    return [...this.#capabilities.keys()].map((name) => this.describe(name));
  }

  /**
   * The `abp_error` with which a call is refused, or 0.
   * @param {import('../wire/messages.js').Request} request
   */
  rejectionFor({ name }) {
    const capability = this.#capabilities.get(/** @type {string} */ (name));
    if (!capability) return abp.UNKNOWN_CAPABILITY;
    if (!holds(capability.available)) return abp.CAPABILITY_UNAVAILABLE;
    if (capability.requirements?.some((r) => !holds(r.met))) return abp.REQUIREMENT_NOT_MET;
    return 0;
  }

  /**
   * Completes the error that refuses a call.
   * @param {import('../wire/messages.js').Request} request
   * @param {number} code
   * @param {import('../common/errors.js').ErrorObject} error
   */
  explain({ name }, code, error) {
    const { alternatives, requirements } = this.describe(/** @type {string} */ (name)) ?? {};
    const shown = `${name}`.slice(0, 200);
    switch (code) {
      case abp.CAPABILITY_UNAVAILABLE:
        if (alternatives) error.alternatives = alternatives;
        error.message += `: ${shown}`;
        return;
      case abp.UNKNOWN_CAPABILITY: {
        const near = nearestOf(shown, [...this.#capabilities.keys()]);
        error.message += `: ${shown}${near === undefined ? '' : `. Did you mean ${near}?`}`;
        if (near !== undefined) error.alternatives = [near];
        return;
      }
      case abp.REQUIREMENT_NOT_MET: {
        const unmet = requirements.filter((/** @type {Requirement} */ r) => !r.met);
        error.message += `: ${unmet.map((/** @type {Requirement} */ r) => r.description).join(', ')}`;
        error.details = { requirements: unmet };
        return;
      }
      case abp.RATE_LIMITED:
        error.retryAfter = 1000;
    }
  }

  /**
   * @param {import('../wire/messages.js').Request} request
   * @param {CallContext} context
   */
  run({ name, params }, context) {
    const capability = this.#capabilities.get(/** @type {string} */ (name));
    // It may have been removed while the call waited for its turn.
    if (!capability) throw new AbpError('UNKNOWN_CAPABILITY', `Unknown capability: ${name}`);
    const { handler, input, output } = capability;
    return input || output ? checked(capability, params, context) : handler(params, context);
  }
}

/**
 * Runs a handler, and checks its params before and its result afterwards.
 * @param {Entry} capability
 * @param {unknown} params
 * @param {CallContext} context
 */
async function checked({ handler, input, output }, params, context) {
  const taken = (await (await input)?.(params)) ?? { value: params };
  if (taken.problem) throw new AbpError('INVALID_PARAMS', taken.problem.message, taken.problem);
  const returned = await handler(taken.value, context);
  const responds = isResponse(returned);
  if (!output || (responds && !returned.success)) return returned;
  if (isObject(returned) && Symbol.asyncIterator in returned)
    return checkedStream(/** @type {AsyncGenerator<unknown, unknown>} */ (returned), output);
  const data = responds ? returned.data : returned;
  const { value, problem } = await (await output)(data);
  // The caller cannot do anything about it; the handler's author finds it in the console.
  if (problem) throw new TypeError(`The result breaks the outputSchema: ${problem.message}`);
  if (value === data) return returned;
  const result = responds ? { ...returned, data: value } : value;
  const moved = markedTransfer(returned) ?? markedTransfer(data);
  return moved && isObject(result) ? transfer(result, moved) : result;
}

/**
 * What a stream returns is its call's data. If that is nothing, a schema says nothing of its chunks.
 * @param {AsyncGenerator<unknown, unknown>} source
 * @param {Promise<Checker>} output
 */
async function* checkedStream(source, output) {
  const data = yield* source;
  if (data === undefined) return data;
  const { value, problem } = await (await output)(data);
  if (problem) throw new TypeError(`The result breaks the outputSchema: ${problem.message}`);
  return value;
}
