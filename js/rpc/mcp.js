/**
 * MCP in its two eras, over a peer of the dialect `mcp`. Up to 2025-11-25 a connection begins with `initialize`, and
 * either side asks the other. From 2026-07-28 on there is no handshake: every request says its version and what its
 * client can do, only the client asks, and a server that needs something answers so (`input_required`), upon which
 * the client makes the request again with what was asked for.
 *
 * Handlers are written once, for either era: what a handler returns as `input_required` becomes requests where the
 * client is of the first, and what a server of the second needs is asked of the handlers that serve the first.
 */
import { copyRecord, getOwn, isObject, textOf } from '../common/values.js';
import { RpcError } from './errors.js';

/** @typedef {import('./peer.js').Peer} Peer */
/** @typedef {import('./peer.js').RequestOptions} RequestOptions */

const MODERN = ['2026-07-28'];
const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

const PREFIX = 'io.modelcontextprotocol/';
const VERSION = `${PREFIX}protocolVersion`;
const CLIENT_INFO = `${PREFIX}clientInfo`;
const CLIENT_CAPABILITIES = `${PREFIX}clientCapabilities`;
const SERVER_INFO = `${PREFIX}serverInfo`;

const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;
const MISSING_CAPABILITY = -32021;
const UNSUPPORTED_VERSION = -32022;
/** Errors that only servers of the second era give. */
const MODERN_ERRORS = [-32020, MISSING_CAPABILITY, UNSUPPORTED_VERSION];

/** How often a server may need something more for one request. */
const MAX_ROUNDS = 10;
/** What a server may need at once. */
const MAX_INPUTS = 64;
/** ms that a server has to answer `server/discover`: some of the first era say nothing to what they don't know. */
const DEFAULT_DISCOVERY_TIMEOUT = 5000;

/** What a client must be able to do to be asked this. @type {Map<unknown, string>} */
const NEEDED = new Map([
  ['elicitation/create', 'elicitation'],
  ['sampling/createMessage', 'sampling'],
  ['roots/list', 'roots'],
]);

/** @param {unknown} value @returns {Record<string, any>} the value, if it is an object */
const objectOf = (value) => (isObject(value) ? value : {});
/** The version of a list that was named. @param {string[]} versions @param {unknown} named */
const versionIn = (versions, named) => versions.find((version) => version === named);

/** @param {unknown} result */
const needsInput = (result) => getOwn(result, 'resultType') === 'input_required';

/**
 * What a server needs, answered one by one.
 * @param {unknown} result its `input_required`
 * @param {(method: unknown, params: unknown) => unknown} ask
 * @returns {Promise<object>} what goes with the request when it is made again
 */
async function inputFor(result, ask) {
  const inputs = Object.entries(copyRecord(getOwn(result, 'inputRequests')));
  if (inputs.length > MAX_INPUTS) throw new RpcError(INVALID_PARAMS, 'Too much input is required');
  const answers = inputs.map(async ([key, input]) => [
    key,
    await ask(getOwn(input, 'method'), getOwn(input, 'params')),
  ]);
  const requestState = getOwn(result, 'requestState');
  return {
    ...(inputs.length && { inputResponses: Object.fromEntries(await Promise.all(answers)) }),
    ...(requestState !== undefined && { requestState }),
  };
}

/**
 * @typedef {object} ClientOptions
 * @property {{ name: string, version: string }} clientInfo
 * @property {Record<string, any>} [capabilities] what servers may ask: `elicitation`, `sampling`, `roots`
 * @property {number} [discoveryTimeout] ms to wait for an answer to `server/discover` before `initialize` is tried (5000)
 */

/**
 * @typedef {object} InputContext What a handler of a client gets, in either era.
 * @property {string} method
 * @property {AbortSignal} signal fires when the request that needs it is cancelled
 */

/** @typedef {(params: any, context: InputContext) => unknown} InputHandler */

/**
 * A client's side: finds out which era the server is of, and speaks so.
 * @param {Peer} peer of the dialect `mcp`
 * @param {ClientOptions} options
 * @returns {Promise<McpClient>} rejects with an {@link RpcError} when they have no version in common
 */
export async function connectMcp(peer, options) {
  const { clientInfo, capabilities = {}, discoveryTimeout = DEFAULT_DISCOVERY_TIMEOUT } = options;
  const envelope = (/** @type {string} */ version) => ({
    [VERSION]: version,
    [CLIENT_INFO]: clientInfo,
    [CLIENT_CAPABILITIES]: capabilities,
  });
  const found = await discover(peer, envelope(MODERN[0]), discoveryTimeout);
  if (found) {
    const supported = getOwn(found, 'supportedVersions') ?? getOwn(found, 'supported');
    const version = MODERN.find((ours) => Array.isArray(supported) && supported.includes(ours));
    if (version) return new McpClient(peer, version, found, envelope(version));
    throw new RpcError(UNSUPPORTED_VERSION, 'The server speaks no version that we do', found);
  }
  const [protocolVersion] = LEGACY;
  const params = { protocolVersion, capabilities, clientInfo };
  const server = await peer.request('initialize', params);
  const named = getOwn(server, 'protocolVersion');
  const version = versionIn(LEGACY, named);
  if (version === undefined) {
    throw new RpcError(UNSUPPORTED_VERSION, 'The server speaks a version that we do not', {
      protocolVersion: named,
    });
  }
  peer.notify('notifications/initialized');
  return new McpClient(peer, version, server);
}

/**
 * What a server of the second era says of itself; undefined is one of the first.
 * @param {Peer} peer
 * @param {object} envelope
 * @param {number} timeout ms
 * @returns {Promise<unknown>}
 */
async function discover(peer, envelope, timeout) {
  try {
    return await peer.request('server/discover', { _meta: envelope }, { timeout });
  } catch (error) {
    const { name, code, data } = /** @type {RpcError} */ (error);
    if (name !== 'RpcError' || !MODERN_ERRORS.includes(code)) {
      if (peer.ended) throw error;
      return undefined;
    }
    if (code !== UNSUPPORTED_VERSION) throw error;
    return data;
  }
}

export class McpClient {
  #peer;
  /** What every request says; absent in the first era. */
  #envelope;
  /** @type {Map<unknown, InputHandler>} */
  #handlers = new Map();

  /**
   * Use {@link connectMcp}.
   * @param {Peer} peer
   * @param {string} version
   * @param {unknown} server what it says of itself
   * @param {object} [envelope]
   */
  constructor(peer, version, server, envelope) {
    this.#peer = peer;
    this.#envelope = envelope;
    this.version = version;
    /** Its name and version, as it gave them. @type {any} */
    this.serverInfo = getOwn(server, 'serverInfo') ?? getOwn(getOwn(server, '_meta'), SERVER_INFO);
    /** @type {Record<string, unknown>} */
    this.serverCapabilities = objectOf(getOwn(server, 'capabilities'));
    this.instructions = textOf(getOwn(server, 'instructions'));
  }

  /**
   * Answers what servers ask: `elicitation/create`, `sampling/createMessage`, `roots/list`.
   * @param {string} method
   * @param {InputHandler} handler
   */
  handle(method, handler) {
    this.#handlers.set(method, handler);
    this.#peer.handle(method, handler);
    return this;
  }

  /**
   * Makes a request; what the server needs for it is asked of the handlers.
   * @param {string} method
   * @param {any} [params]
   * @param {RequestOptions} [options] of every round
   * @returns {Promise<any>}
   */
  async request(method, params, options = {}) {
    if (!this.#envelope) return this.#peer.request(method, params, options);
    const _meta = { ...objectOf(getOwn(params, '_meta')), ...this.#envelope };
    const { signal = new AbortController().signal } = options;
    let more = {};
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const result = await this.#peer.request(method, { ...params, ...more, _meta }, options);
      if (!needsInput(result)) return result;
      more = await inputFor(result, (asked, input) => {
        const handler = this.#handlers.get(asked);
        if (!handler)
          throw new RpcError(METHOD_NOT_FOUND, 'Nothing here answers that', { method: asked });
        return handler(input, { method: /** @type {string} */ (asked), signal });
      });
    }
    throw new RpcError(INVALID_PARAMS, `The server needed something ${MAX_ROUNDS} times`);
  }
}

/**
 * @typedef {object} ServerOptions
 * @property {{ name: string, version: string }} serverInfo
 * @property {Record<string, any>} [capabilities]
 * @property {string} [instructions]
 */

/**
 * @typedef {object} McpCaller Who made a request.
 * @property {string | undefined} version
 * @property {any} clientInfo
 * @property {Record<string, any>} capabilities
 */

/** @typedef {import('./incoming-request.js').IncomingRequest} IncomingRequest */
/** @typedef {(params: any, context: IncomingRequest, caller: McpCaller) => unknown} McpHandler */

/**
 * A server's side: takes both eras, each request as what it says that it is.
 * @param {Peer} peer of the dialect `mcp`
 * @param {ServerOptions} options
 */
export const serveMcp = (peer, options) => new McpServer(peer, options);

export class McpServer {
  #peer;
  /** The client that has sent `initialize`. @type {McpCaller} */
  #client = { version: undefined, clientInfo: undefined, capabilities: {} };

  /**
   * Use {@link serveMcp}.
   * @param {Peer} peer
   * @param {ServerOptions} options
   */
  constructor(peer, { serverInfo, capabilities = {}, instructions }) {
    this.#peer = peer;
    const self = { capabilities, ...(instructions !== undefined && { instructions }) };
    peer.handle('initialize', (params) => {
      const version = versionIn(LEGACY, getOwn(params, 'protocolVersion')) ?? LEGACY[0];
      this.#client = {
        version,
        clientInfo: getOwn(params, 'clientInfo'),
        capabilities: objectOf(getOwn(params, 'capabilities')),
      };
      return { protocolVersion: version, serverInfo, ...self };
    });
    this.handle('server/discover', () => ({
      supportedVersions: MODERN,
      ...self,
      ttlMs: 0,
      cacheScope: 'private',
      _meta: { [SERVER_INFO]: serverInfo },
    }));
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
   * @param {McpHandler} handler
   * @param {unknown} params
   * @param {IncomingRequest} context
   * @param {McpCaller} caller
   */
  async #answerModern(handler, params, context, caller) {
    // A server of this era asks nothing by itself.
    const refuse = () => Promise.reject(new RpcError(METHOD_NOT_FOUND, 'Return input_required'));
    Object.defineProperty(context, 'request', { value: refuse });
    const result = await context.resultOf(await handler(params, context, caller));
    if (needsInput(result)) {
      for (const input of Object.values(objectOf(getOwn(result, 'inputRequests')))) {
        requireCapability(caller, getOwn(input, 'method'));
      }
    }
    return isObject(result) || result === undefined
      ? { resultType: 'complete', ...result }
      : result;
  }

  /**
   * @param {McpHandler} handler
   * @param {unknown} params
   * @param {IncomingRequest} context
   */
  async #answerLegacy(handler, params, context) {
    let more = {};
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const asked = Object.assign(copyRecord(params), more);
      const result = await context.resultOf(await handler(asked, context, this.#client));
      if (!needsInput(result)) return result;
      more = await inputFor(result, (method, input) => {
        requireCapability(this.#client, method);
        return context.request(/** @type {string} */ (method), input);
      });
    }
    throw new RpcError(INVALID_PARAMS, `The handler needed something ${MAX_ROUNDS} times`);
  }
}

/**
 * Who makes a request of the second era; undefined is one of the first.
 * @param {unknown} params
 * @returns {McpCaller | undefined}
 */
function modernCaller(params) {
  const meta = getOwn(params, '_meta');
  const requested = getOwn(meta, VERSION);
  if (requested === undefined) return undefined;
  const version = versionIn(MODERN, requested);
  if (version === undefined) {
    const data = { supported: MODERN, requested };
    throw new RpcError(UNSUPPORTED_VERSION, 'Unsupported protocol version', data);
  }
  const capabilities = getOwn(meta, CLIENT_CAPABILITIES);
  if (!isObject(capabilities)) {
    throw new RpcError(INVALID_PARAMS, `_meta lacks ${CLIENT_CAPABILITIES}`);
  }
  return { version, clientInfo: getOwn(meta, CLIENT_INFO), capabilities };
}

/**
 * @param {McpCaller} caller
 * @param {unknown} method
 */
function requireCapability({ capabilities }, method) {
  const needed = NEEDED.get(method);
  if (needed && getOwn(capabilities, needed) !== undefined) return;
  const requiredCapabilities = needed ? { [needed]: {} } : {};
  throw new RpcError(MISSING_CAPABILITY, `The client cannot be asked ${method}`, {
    requiredCapabilities,
  });
}
