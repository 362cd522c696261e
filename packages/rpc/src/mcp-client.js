/** A client of MCP: finds out which era its server is of, and speaks so. */
import {
  ENDING,
  requireOf,
  requireOptions,
  requireValues,
} from '../../../js/common/check-options.js';
import { invokeReportingErrors } from '../../../js/common/errors.js';
import { abortError, followSignal } from '../../../js/common/signals.js';
import { getOwn, isObject, textOf } from '../../../js/common/values.js';
import { RpcError } from './errors.js';
import * as mcp from './mcp-protocol.js';

/** @typedef {import('./peer.js').Peer} Peer */
/** @typedef {import('./peer.js').RequestOptions} RequestOptions */

/** Errors that only servers of the second era give. */
const MODERN_ERRORS = [mcp.HEADER_MISMATCH, mcp.MISSING_CAPABILITY, mcp.UNSUPPORTED_VERSION];
/** ms that a server has to answer `server/discover`: some of the first era say nothing to what they don't know. */
const DEFAULT_DISCOVERY_TIMEOUT = 5000;

/**
 * @typedef {object} ClientOptions What an MCP client may be given.
 * @property {{ name: string, version: string }} clientInfo the name and version of this client
 * @property {Record<string, unknown>} [capabilities] what servers may ask: `elicitation`, `sampling`, `roots`
 * @property {'legacy' | 'modern'} [era] speaks as up to 2025-11-25, beginning with `initialize`, or as from 2026-07-28 on. By
 *   default it is found out, by a first request that a few old servers do not survive
 * @property {number} [discoveryTimeout] ms to wait for an answer to `server/discover` before `initialize` is tried (5000)
 * @property {AbortSignal} [signal] ends the attempt
 * @property {number} [timeout] ms that each request of the attempt may take; 0 or absent is for ever
 */

/** @type {import('../../../js/common/check-options.js').Kinds<ClientOptions>} */
// prettier-ignore
const OPTIONS = {
  capabilities: 'an object', clientInfo: 'an object', discoveryTimeout: 'a number', era: '"legacy" or "modern"',
  signal: 'an AbortSignal', timeout: 'a number',
};

/**
 * @typedef {object} InputContext What a handler of a client gets, in either era.
 * @property {string} method
 * @property {AbortSignal} signal fires when the request that needs it has ended
 */

/** @typedef {(params: any, context: InputContext) => unknown} InputHandler Answers a server's question. */

/**
 * A client's side: finds out which era the server is of, and speaks so.
 * @param {Peer} peer of the dialect `mcp`
 * @param {ClientOptions} options
 * @returns {Promise<McpClient>} rejects with an {@link RpcError} when they have no version in common, with an `AbortError`
 *   when the signal fires, and with an `AbpError` of code `mcp.INVALID_PARAMS` when an option is wrong
 */
export async function connectMcp(peer, options) {
  requireOf('connectMcp', 'clientInfo', 'an object', options?.clientInfo);
  requireOptions('connectMcp', options, OPTIONS);
  requireValues('connectMcp', options, OPTIONS);
  requireOf('connectMcp', 'capabilities', 'an object', options.capabilities ?? {});
  const { clientInfo, capabilities = {}, era, signal, timeout } = options;
  const { discoveryTimeout = DEFAULT_DISCOVERY_TIMEOUT } = options;
  const envelope = (/** @type {string} */ version) => ({
    [mcp.VERSION]: version,
    [mcp.CLIENT_INFO]: clientInfo,
    [mcp.CLIENT_CAPABILITIES]: capabilities,
  });
  let offered = mcp.LEGACY[0];
  if (era !== 'legacy') {
    const patience = era ? timeout : discoveryTimeout;
    const found = await discover(peer, envelope(mcp.MODERN[0]), { signal, timeout: patience }, era);
    const theirs = getOwn(found, 'supportedVersions') ?? getOwn(found, 'supported');
    const modern = mcp.sharedVersion(mcp.MODERN, theirs);
    if (modern) return new McpClient(peer, modern, found, capabilities, envelope(modern));
    // A server that has told its versions is spoken to in one of them.
    const legacy = era ? undefined : found ? mcp.sharedVersion(mcp.LEGACY, theirs) : offered;
    if (!legacy) {
      const why = 'No protocol version in common with the server';
      throw new RpcError(mcp.UNSUPPORTED_VERSION, why, found);
    }
    offered = legacy;
  }
  const params = { protocolVersion: offered, capabilities, clientInfo };
  const server = await peer.request('initialize', params, { signal, timeout });
  const protocolVersion = getOwn(server, 'protocolVersion');
  const version = mcp.sharedVersion(mcp.LEGACY, [protocolVersion]);
  if (version === undefined) {
    const why = 'The server chose an unsupported protocol version';
    throw new RpcError(mcp.UNSUPPORTED_VERSION, why, { protocolVersion });
  }
  peer.notify('notifications/initialized');
  return new McpClient(peer, version, server, capabilities);
}

/**
 * What a server of the second era says of itself; undefined is one of the first.
 * @param {Peer} peer @param {object} envelope @param {RequestOptions} options @param {'modern' | undefined} era `'modern'` if it must be of that
 * @returns {Promise<unknown>}
 */
async function discover(peer, envelope, options, era) {
  try {
    return await peer.request('server/discover', { _meta: envelope }, options);
  } catch (error) {
    const { name, code, data } = /** @type {RpcError} */ (error);
    const isModern = name === 'RpcError' && MODERN_ERRORS.includes(code);
    if (isModern && code === mcp.UNSUPPORTED_VERSION) return data;
    if (isModern || era || peer.ended || options.signal?.aborted) throw error;
    return undefined;
  }
}

/**
 * @typedef {object} Changes What to be told of, from 2026-07-28 on. A server leaves out what it does not offer.
 * @property {boolean} [toolsListChanged]
 * @property {boolean} [promptsListChanged]
 * @property {boolean} [resourcesListChanged]
 * @property {string[]} [resourceSubscriptions] URIs of resources
 */

/**
 * @typedef {object} Subscription What tells of the changes of a server, until it is closed.
 * @property {Changes} notifications what the server will tell of, as it has acknowledged
 * @property {Promise<void>} ended settles when it is over; rejects when neither side has ended it
 * @property {() => void} close ends it
 */

/** A client of an MCP server. */
export class McpClient {
  #peer;
  /** What every request says; absent in the first era. */
  #envelope;
  #capabilities;
  /** @type {Map<unknown, InputHandler>} */
  #handlers = new Map();

  /**
   * Use {@link connectMcp}.
   * @param {Peer} peer
   * @param {string} version
   * @param {unknown} server what it says of itself
   * @param {object} capabilities this client's
   * @param {object} [envelope]
   */
  constructor(peer, version, server, capabilities, envelope) {
    this.#peer = peer;
    this.#capabilities = capabilities;
    this.#envelope = envelope;
    peer.envelope = envelope;
    this.version = version;
    const info = getOwn(server, 'serverInfo') ?? getOwn(getOwn(server, '_meta'), mcp.SERVER_INFO);
    /** Its name and version, as it gave them. @type {Record<string, unknown> | undefined} */
    this.serverInfo = isObject(info) ? mcp.objectOf(info) : undefined;
    this.serverCapabilities = mcp.objectOf(getOwn(server, 'capabilities'));
    this.instructions = textOf(getOwn(server, 'instructions'));
  }

  /**
   * Answers what servers ask: `elicitation/create`, `sampling/createMessage`, `roots/list`, as far as the client has
   * declared the capability.
   * @param {string} method
   * @param {InputHandler} handler
   */
  handle(method, handler) {
    this.#peer.handle(method, (params, { signal }) => this.#answer(method, params, signal));
    this.#handlers.set(method, handler);
    return this;
  }

  /** Answers what a server asks. @param {unknown} method @param {unknown} params @param {AbortSignal} signal */
  #answer(method, params, signal) {
    const handler = this.#handlers.get(method);
    const lacked = mcp.INPUTS.includes(method)
      ? mcp.lackedCapabilities(this.#capabilities, method, params)
      : undefined;
    const isDeclared = (/** @type {string} */ key) => isObject(getOwn(this.#capabilities, key));
    if (!handler || !Object.keys(lacked ?? {}).every(isDeclared)) {
      const why = 'There is no handler for the input that the server requires';
      throw new RpcError(mcp.METHOD_NOT_FOUND, why, { method });
    }
    if (lacked) {
      const data = { requiredCapabilities: lacked };
      throw new RpcError(mcp.INVALID_PARAMS, 'The client did not declare support for this', data);
    }
    return handler(params, { method: /** @type {string} */ (method), signal });
  }

  /**
   * Makes a request; what the server needs for it is asked of the handlers. The options are those of the request as a
   * whole, in however many rounds it is made.
   * @param {string} method
   * @param {any} [params]
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async request(method, params, options = {}) {
    if (!this.#envelope) return this.#peer.request(method, params, options);
    const _meta = { ...mcp.objectOf(getOwn(params, '_meta')), ...this.#envelope };
    const asked = { ...params, _meta };
    const controller = new AbortController();
    let rounds = 0;
    const onInputRequired = async (/** @type {unknown} */ needed) => {
      if (++rounds === mcp.MAX_ROUNDS) throw mcp.tooManyRounds('The server');
      const more = await mcp.gatherInput(needed, controller, async (what, input) =>
        this.#answer(what, input, controller.signal),
      );
      return { ...asked, ...more };
    };
    try {
      const result = await this.#peer.request(method, asked, { ...options, onInputRequired });
      if (mcp.isKnownResult(result, this.#capabilities)) return result;
      const data = { resultType: getOwn(result, 'resultType') };
      throw new RpcError(mcp.INVALID_REQUEST, 'The result has an unknown type', data);
    } catch (error) {
      // Whatever has ended the request, nobody needs input for it any more.
      const { message } = /** @type {Error} */ (error);
      controller.abort(abortError(textOf(message), error));
      throw error;
    }
  }

  /**
   * Listens to changes on the server. Each subscription is told of those that it asked for, and of no others.
   * @param {Changes} notifications
   * @param {(params: any, context: { method: string }) => void} onChange called with each change: its method is
   *   `notifications/tools/list_changed`, …
   * @param {{ signal?: AbortSignal }} [options] ends the subscription, or the attempt
   * @returns {Promise<Subscription>} when the server has acknowledged it; rejects with an {@link RpcError} if it does not. A
   *   server of the first era has no subscriptions, and tells of all changes unasked: see `onNotification` of the peer
   */
  async listen(notifications, onChange, { signal } = {}) {
    requireOf('listen', 'notifications', 'an object', notifications);
    requireOf('listen', 'onChange', 'a function', onChange);
    requireOptions('listen', { signal }, ENDING, true);
    if (!this.#envelope) {
      throw new RpcError(mcp.METHOD_NOT_FOUND, `MCP ${this.version} has no subscriptions`);
    }
    signal?.throwIfAborted();
    const { controller, release } = followSignal(signal);
    const close = () => controller.abort();
    return new Promise((resolve, reject) => {
      /** @type {RequestOptions['onTagged']} */
      const onTagged = ({ method, params }) => {
        if (method !== mcp.ACKNOWLEDGED) invokeReportingErrors(onChange, params, { method });
        else
          resolve({ notifications: mcp.objectOf(getOwn(params, 'notifications')), ended, close });
      };
      const options = { signal: controller.signal, onTagged };
      const request = this.request(mcp.LISTEN, { notifications }, options).finally(release);
      const ended = request.then(
        () => {},
        (error) => {
          if (!controller.signal.aborted) throw error;
        },
      );
      // Whoever does not look at its end need not.
      ended.catch(() => {});
      const why = 'The server did not acknowledge the subscription';
      request.then(() => reject(new RpcError(mcp.INVALID_REQUEST, why)), reject);
    });
  }
}
