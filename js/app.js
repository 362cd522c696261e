/** The app's side: its capabilities, and one connection for each agent. */
import * as abp from '../dist/abp-constants.js';
import { Endpoint, carried } from './endpoint.js';
import { AbpError, callOut } from './errors.js';
import { milliseconds, own, progressInfo } from './messages.js';
import { portTransport } from './transports/port.js';

/**
 * @typedef {object} CallContext What a handler gets besides the params. It may be destructured.
 * @property {AbortSignal} signal aborts when the call is cancelled, times out, or its caller is gone
 * @property {import('./token.js').Token} token says the same in memory that other threads see: for workers and
 *   WebAssembly that compute without returning to the event loop; see docs/workers.md
 * @property {(info: { progress: number, total?: number, stage?: string, status?: string, estimatedRemaining?: number }) => void} progress
 *   reports progress, if the caller asked for it
 * @property {(request: { method: string, params?: any, timeout?: number }) => Promise<import('./client.js').Response>} elicit
 *   asks the agent a question; ends as cancelled when this call does
 * @property {(name: string, params?: any, options?: { signal?: AbortSignal, timeout?: number }) => Promise<import('./client.js').Response>} call
 *   calls another capability of this app as a part of this call
 * @property {string} callId
 */

/**
 * @callback Handler
 * @param {any} params
 * @param {CallContext} context
 * @returns {any} the data of the response, or a promise of it. Throw an AbpError to choose the code, anything
 *   else is OPERATION_FAILED; an AbortError says that the operation was cancelled
 */

/**
 * @typedef {object} Requirement
 * @property {'permission' | 'context' | 'gesture' | 'browser' | 'hardware' | 'state'} type
 * @property {string} description
 * @property {boolean | (() => boolean)} met
 * @property {string} [resolution]
 */

/**
 * @typedef {object} Capability
 * @property {Handler} handler
 * @property {string} [description]
 * @property {object} [inputSchema] JSON Schema of the params; enforced
 * @property {object} [outputSchema]
 * @property {boolean | (() => boolean)} [available] (true)
 * @property {Requirement[]} [requirements]
 * @property {Record<string, boolean>} [features]
 * @property {boolean} [experimental]
 * @property {boolean} [deprecated]
 * @property {string} [deprecationMessage]
 * @property {string[]} [alternatives]
 */

/** What the world may know of a capability. */
const PUBLISHED = /** @type {const} */ ([
  'description',
  'inputSchema',
  'outputSchema',
  'features',
  'experimental',
  'deprecated',
  'deprecationMessage',
  'alternatives',
]);

/** @param {boolean | (() => boolean) | undefined} value */
const holds = (value) => (typeof value === 'function' ? callOut(value) === true : value !== false);

/** The capabilities of an app. */
export class Registry {
  /** @type {Map<string, Capability & { validate?: Promise<(params: unknown) => void> }>} */
  #capabilities = new Map();

  /** @param {Record<string, Capability | Handler>} capabilities */
  constructor(capabilities) {
    for (const [name, capability] of Object.entries(capabilities ?? {})) this.set(name, capability);
  }

  /**
   * @param {string} name
   * @param {Capability | Handler} capability
   */
  set(name, capability) {
    /** @type {Capability & { validate?: Promise<(params: unknown) => void> }} */
    const entry = typeof capability === 'function' ? { handler: capability } : { ...capability };
    if (typeof entry.handler !== 'function') {
      throw new TypeError(`capability ${name} needs a handler: async (params, { signal }) => data`);
    }
    if (entry.inputSchema) {
      const { inputSchema } = entry;
      // Few apps have schemas, so what checks them is loaded with the first.
      entry.validate = import('./schema.js').then(({ validatorFor }) => validatorFor(inputSchema));
      // Calls await it and fail with what it says; until then it is nobody's unhandled rejection.
      entry.validate.catch(() => {});
    }
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
    /** @type {any} */
    const shown = { name, available: holds(capability.available) };
    for (const key of PUBLISHED) if (capability[key] !== undefined) shown[key] = capability[key];
    if (capability.requirements) {
      shown.requirements = capability.requirements.map((r) => ({ ...r, met: holds(r.met) }));
    }
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
   * What stands in the way of a call, as an `abp_error`, or 0.
   * @param {import('./messages.js').Request} request
   */
  fault({ name }) {
    const capability = this.#capabilities.get(/** @type {string} */ (name));
    if (!capability) return abp.UNKNOWN_CAPABILITY;
    if (!holds(capability.available)) return abp.CAPABILITY_UNAVAILABLE;
    if (capability.requirements?.some((r) => !holds(r.met))) return abp.REQUIREMENT_NOT_MET;
    return 0;
  }

  /**
   * Completes the error that refuses a call.
   * @param {import('./messages.js').Request} request
   * @param {number} code
   * @param {import('./errors.js').ErrorObject} error
   */
  explain({ name }, code, error) {
    const { alternatives, requirements } = this.describe(/** @type {string} */ (name)) ?? {};
    switch (code) {
      case abp.CAPABILITY_UNAVAILABLE:
        if (alternatives) error.alternatives = alternatives;
      // falls through
      case abp.UNKNOWN_CAPABILITY:
        error.message += `: ${`${name}`.slice(0, 200)}`;
        return;
      case abp.REQUIREMENT_NOT_MET: {
        const unmet = requirements.filter((/** @type {any} */ r) => !r.met);
        error.message += `: ${unmet.map((/** @type {any} */ r) => r.description).join(', ')}`;
        error.details = { requirements: unmet };
        return;
      }
      case abp.RATE_LIMITED:
        error.retryAfter = 1000;
    }
  }

  /**
   * @param {import('./messages.js').Request} request
   * @param {CallContext} context
   */
  run({ name, params }, context) {
    const capability = this.#capabilities.get(/** @type {string} */ (name));
    // It may have been taken away while the call waited for its turn.
    if (!capability) throw new AbpError('UNKNOWN_CAPABILITY', `Unknown capability: ${name}`);
    if (!capability.validate) return capability.handler(params, context);
    return capability.validate.then((validate) => {
      validate(params);
      return capability.handler(params, context);
    });
  }
}

/** One agent's connection to an app. */
export class Connection {
  /** @type {import('./endpoint.js').Transport | undefined} */
  #port;

  /**
   * @param {object} options
   * @param {{ id: string, name: string, version: string, description?: string }} options.app
   * @param {Registry} options.registry
   * @param {import('./endpoint.js').Transport} options.transport
   * @param {import('./core.js').Limits} [options.limits]
   * @param {boolean} [options.restart]
   * @param {boolean} [options.plain] nothing beyond the published protocol
   * @param {() => void} options.onEnd
   */
  constructor({ app, registry, transport, limits, restart, plain, onEnd }) {
    this.transport = transport;
    this.registry = registry;
    this.endpoint = new Endpoint({
      role: abp.APP,
      features:
        abp.NOTIFICATIONS |
        abp.PROGRESS |
        abp.ELICITATION |
        abp.DYNAMIC_CAPABILITIES |
        (plain ? 0 : carried(transport)),
      limits,
      restart,
      transport,
      callee: registry,
      side: {
        elicit: (request, parent) => this.elicit(request, parent),
        onHandshake: (message, via) => this.#answer(message, via),
        onSession: (state) => {
          if (state === abp.SESSION_CLOSED || state === abp.SESSION_LOST) this.#leavePort();
        },
        onEnd,
      },
    });
    this.endpoint.core.describe('app', app);
    this.refresh();
  }

  get ready() {
    return this.endpoint.ready;
  }

  /** Whether only its port counts, as it does from the offer on. */
  get onPort() {
    return this.#port !== undefined;
  }

  /** The capabilities have changed: the next handshake says so. */
  refresh() {
    this.endpoint.core.describe('capabilities', this.registry.list());
  }

  /**
   * Answers the handshake and offers a port with it: this document made it, so that whoever holds its other
   * end speaks to this document and no other.
   * @param {any} message
   * @param {import('./endpoint.js').Transport} via
   */
  #answer(message, via) {
    if (!this.endpoint.has(abp.PORT) || this.#port) return via.post(message);
    const { port1, port2 } = new MessageChannel();
    this.#port = portTransport(port1);
    this.endpoint.upgrade(this.#port);
    return via.post(message, [port2]);
  }

  #leavePort() {
    if (!this.#port) return;
    this.#port.close();
    this.#port = undefined;
    this.endpoint.upgrade(this.transport);
  }

  /**
   * @param {string} event
   * @param {any} [data]
   */
  notify(event, data) {
    this.#tell(abp.NOTIFICATIONS, 'notification', { event, data });
  }

  /** @param {any} info */
  notifyProgress(info) {
    this.#tell(abp.PROGRESS, 'progress', progressInfo(info));
  }

  /**
   * Says what nobody asked for, if the agent takes it.
   * @param {number} feature
   * @param {string} type
   * @param {object} payload
   */
  #tell(feature, type, payload) {
    if (this.endpoint.has(feature)) this.endpoint.send({ type, payload });
  }

  /**
   * @param {any} request
   * @param {number} [parent]
   */
  async elicit(request, parent) {
    const method = own(request, 'method');
    if (typeof method !== 'string') throw new TypeError('elicit needs { method, params }');
    if (this.ready && !this.endpoint.has(abp.ELICITATION)) {
      return this.endpoint.failure(abp.NOT_SUPPORTED, 'The agent takes no questions');
    }
    const timeout = milliseconds(request.timeout);
    return this.endpoint.request(method, request.params, { timeout }, parent);
  }
}
