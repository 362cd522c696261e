/** A server of MCP: takes both eras, each request as what it says that it is. */
import { mistyped, requireOf, requireOptions } from '../../../js/common/check-options.js';
import { markedTransfer, transfer } from '../../../js/common/transfer.js';
import { copyRecord, firstOf, getOwn, isObject, isRecord } from '../../../js/common/values.js';
import { SUBSCRIPTION_ID } from './dialects.js';
import { RpcError } from './errors.js';
import * as mcp from './mcp-protocol.js';

/** @typedef {import('./peer.js').Peer} Peer */

/** Results that say how long they may be kept: not at all, unless a handler knows better. */
const CACHEABLE = [
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'server/discover',
];
/** Requests that the second era has no more. */
const ONLY_LEGACY = [
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
];
/** Requests that only the second era has. */
const ONLY_MODERN = ['server/discover', mcp.LISTEN];

/** @param {string} method @param {string} capability that offers it @param {string} [needs] its member that says so */
const change = (method, capability, needs = 'listChanged') => ({ method, capability, needs });
/** What a subscription's filter may ask for. @type {Record<string, ReturnType<typeof change>>} */
const CHANGES = {
  toolsListChanged: change('notifications/tools/list_changed', 'tools'),
  promptsListChanged: change('notifications/prompts/list_changed', 'prompts'),
  resourcesListChanged: change('notifications/resources/list_changed', 'resources'),
  resourceSubscriptions: change('notifications/resources/updated', 'resources', 'subscribe'),
};
/** Resources that one subscription may name. */
const MAX_RESOURCES = 1024;

/**
 * @typedef {object} ServerOptions What `serveMcp` may be given.
 * @property {{ name: string, version: string }} serverInfo the name and version of this server
 * @property {Record<string, unknown>} [capabilities] `listChanged` and `subscribe` in them let clients subscribe to changes
 * @property {string} [instructions] says to the model what the server is for
 */

/** @type {import('../../../js/common/check-options.js').Kinds<ServerOptions>} */
// prettier-ignore
const OPTIONS = {
  capabilities: 'an object', instructions: 'a string', serverInfo: 'an object',
};

/**
 * @typedef {object} McpCaller Who made a request.
 * @property {string | undefined} version
 * @property {Record<string, unknown>} clientInfo its name and version, as it gave them
 * @property {Record<string, unknown>} capabilities
 */

/** @typedef {import('./received-call.js').ReceivedCall} ReceivedCall */
/** @typedef {(params: any, context: ReceivedCall, caller: McpCaller) => unknown} McpHandler Answers a request. */

/**
 * A server's side: takes both eras, each request as what it says that it is.
 * @param {Peer} peer of the dialect `mcp`
 * @param {ServerOptions} options
 */
export const serveMcp = (peer, options) => new McpServer(peer, options);

/** A server of MCP, on a peer. */
export class McpServer {
  #peer;
  #info;
  /** The client that has sent `initialize`. @type {McpCaller} */
  #client = { version: undefined, clientInfo: {}, capabilities: {} };
  #capabilities;

  /** Use {@link serveMcp}. @param {Peer} peer @param {ServerOptions} options */
  constructor(peer, options) {
    requireOf('serveMcp', 'serverInfo', 'an object', options?.serverInfo);
    requireOptions('serveMcp', options, OPTIONS);
    requireOf('serveMcp', 'capabilities', 'an object', options.capabilities ?? {});
    const { serverInfo, capabilities = {}, instructions } = options;
    this.#peer = peer;
    this.#info = serverInfo;
    this.#capabilities = capabilities;
    const self = { capabilities, ...(instructions !== undefined && { instructions }) };
    peer.screen = refusalOf;
    peer.handle('initialize', (params) => {
      const version =
        mcp.sharedVersion(mcp.LEGACY, [getOwn(params, 'protocolVersion')]) ?? mcp.LEGACY[0];
      this.#client = {
        version,
        clientInfo: mcp.objectOf(getOwn(params, 'clientInfo')),
        capabilities: mcp.objectOf(getOwn(params, 'capabilities')),
      };
      return { protocolVersion: version, serverInfo, ...self };
    });
    this.handle('server/discover', () => ({ supportedVersions: mcp.MODERN, ...self }));
    this.handle(mcp.LISTEN, (params, context) => this.#subscribe(params, context));
  }

  /**
   * Answers the requests of a method. A handler that needs something of the client returns `{ resultType:
   * 'input_required', inputRequests, requestState }`, and is called again with `params.inputResponses`.
   * @param {string} method
   * @param {McpHandler} handler
   */
  handle(method, handler) {
    this.#peer.handle(method, (params, context) => {
      const caller = modernCaller(params);
      return caller
        ? this.#answerModern(handler, params, context, caller)
        : this.#answerLegacy(handler, params, context);
    });
    return this;
  }

  /**
   * Tells the client of a change: the subscriptions that asked for it, and a client of the first era, which is told of
   * all. `notifications/tools/list_changed`, and likewise of prompts and resources; `notifications/resources/updated`
   * with `{ uri }`.
   * @param {string} method
   * @param {object} [params]
   */
  notifyChange(method, params) {
    const key = Object.keys(CHANGES).find((name) => CHANGES[name].method === method);
    if (key === undefined) {
      const known = Object.values(CHANGES).map((change) => change.method);
      throw mistyped('notifyChange', 'method', `one of ${known.join(', ')}`);
    }
    if (this.#client.version) this.#peer.notify(method, params);
    for (const { id, filter } of this.#peer.running(mcp.LISTEN)) {
      const wanted = filter?.[key];
      const wants = Array.isArray(wanted) ? wanted.includes(getOwn(params, 'uri')) : wanted;
      if (wants) this.#peer.notify(method, { ...params, ...tagged(id, getOwn(params, '_meta')) });
    }
  }

  /** @param {unknown} params @param {ReceivedCall} context */
  #subscribe(params, context) {
    const asked = getOwn(params, 'notifications');
    if (!isRecord(asked)) {
      throw new RpcError(mcp.INVALID_PARAMS, '`notifications` must say what to listen to');
    }
    /** @type {Record<string, unknown>} */
    const filter = {};
    for (const [key, { capability, needs }] of Object.entries(CHANGES)) {
      if (getOwn(getOwn(this.#capabilities, capability), needs) !== true) continue;
      const wanted = getOwn(asked, key);
      if (wanted === true && needs !== 'subscribe') filter[key] = true;
      else if (needs === 'subscribe' && Array.isArray(wanted)) {
        filter[key] = firstOf(wanted, MAX_RESOURCES).filter((uri) => typeof uri === 'string');
      }
    }
    const { id, signal } = context;
    context.atClose = this.#modernResult(mcp.LISTEN, tagged(id));
    context.notify(mcp.ACKNOWLEDGED, { notifications: filter, ...tagged(id) });
    context.filter = filter;
    // It ends when its client or this side ends it.
    return new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    );
  }

  /** @param {McpHandler} handler @param {unknown} params @param {ReceivedCall} context @param {McpCaller} caller */
  async #answerModern(handler, params, context, caller) {
    // A server of this era asks nothing by itself.
    const why = 'A server of this version cannot send requests: return input_required';
    const refuse = () => Promise.reject(new RpcError(mcp.METHOD_NOT_FOUND, why));
    Object.defineProperty(context, 'request', { value: refuse });
    const result = await context.resultOf(await handler(params, context, caller));
    if (mcp.needsInput(result)) requireCapabilities(caller, result);
    else if (!mcp.isKnownResult(result, caller.capabilities)) {
      throw new RpcError(
        mcp.INTERNAL_ERROR,
        `${context.method} returned a result of an unknown type`,
      );
    }
    return this.#modernResult(context.method, result);
  }

  /** A result with all that the second era wants of it; what a handler says itself stands. @param {string} method @param {unknown} [result] */
  #modernResult(method, result = {}) {
    requireResult(method, result);
    const { ...filled } = /** @type {Record<string, unknown>} */ (result);
    filled.resultType ??= 'complete';
    if (CACHEABLE.includes(method) && filled.resultType === 'complete') {
      filled.ttlMs ??= 0;
      filled.cacheScope ??= 'private';
    }
    filled._meta = { [mcp.SERVER_INFO]: this.#info, ...copyRecord(filled._meta) };
    const moved = markedTransfer(result);
    return moved ? transfer(filled, moved) : filled;
  }

  /** @param {McpHandler} handler @param {unknown} params @param {ReceivedCall} context */
  async #answerLegacy(handler, params, context) {
    let more = {};
    for (let round = 0; round < mcp.MAX_ROUNDS; round++) {
      const asked = Object.assign(copyRecord(params), more);
      const result = await context.resultOf(await handler(asked, context, this.#client));
      if (!mcp.needsInput(result)) return requireResult(context.method, result);
      requireCapabilities(this.#client, result);
      const controller = new AbortController();
      const { signal } = controller;
      more = await mcp.gatherInput(result, controller, (method, input) =>
        context.request(/** @type {string} */ (method), input, { signal }),
      );
    }
    throw mcp.tooManyRounds('The handler');
  }
}

/** Names the subscription that a message belongs to. @param {unknown} id of its request @param {unknown} [_meta] what else it says */
const tagged = (id, _meta) => ({ _meta: { ...copyRecord(_meta), [SUBSCRIPTION_ID]: id } });

/** Throws unless a value can be a result. @template T @param {string} method @param {T} result */
function requireResult(method, result) {
  if (result === undefined || (isObject(result) && !Array.isArray(result))) return result;
  throw new RpcError(mcp.INTERNAL_ERROR, `The result of ${method} must be an object`);
}

/** What is wrong with a request, whatever its method: it is not one of the version that it names. @param {string} method @param {unknown} params */
function refusalOf(method, params) {
  try {
    const isModern = modernCaller(params) !== undefined;
    if (isModern && ONLY_LEGACY.includes(method)) {
      return new RpcError(mcp.METHOD_NOT_FOUND, 'Method not found', { method });
    }
    if (isModern || !ONLY_MODERN.includes(method)) return undefined;
    return new RpcError(mcp.INVALID_PARAMS, `_meta lacks ${mcp.VERSION}`);
  } catch (error) {
    return /** @type {RpcError} */ (error);
  }
}

/** Who makes a request of the second era; undefined is one of the first. @param {unknown} params @returns {McpCaller | undefined} */
function modernCaller(params) {
  const meta = getOwn(params, '_meta');
  const requested = getOwn(meta, mcp.VERSION);
  if (requested === undefined) return undefined;
  const version = mcp.sharedVersion(mcp.MODERN, [requested]);
  if (version === undefined) {
    const data = { supported: mcp.MODERN, requested };
    throw new RpcError(mcp.UNSUPPORTED_VERSION, 'Unsupported protocol version', data);
  }
  const capabilities = getOwn(meta, mcp.CLIENT_CAPABILITIES);
  if (!isObject(capabilities)) {
    throw new RpcError(mcp.INVALID_PARAMS, `_meta lacks ${mcp.CLIENT_CAPABILITIES}`);
  }
  const clientInfo = mcp.objectOf(getOwn(meta, mcp.CLIENT_INFO));
  return { version, clientInfo, capabilities: mcp.objectOf(capabilities) };
}

/** Throws unless a client can be asked all that a handler needs. @param {McpCaller} caller @param {unknown} result the handler's */
function requireCapabilities({ capabilities }, result) {
  for (const input of Object.values(copyRecord(getOwn(result, 'inputRequests')))) {
    const method = getOwn(input, 'method');
    const requiredCapabilities = mcp.lackedCapabilities(
      capabilities,
      method,
      getOwn(input, 'params'),
    );
    if (!requiredCapabilities) continue;
    throw new RpcError(mcp.MISSING_CAPABILITY, `The client does not support ${method}`, {
      requiredCapabilities,
    });
  }
}
