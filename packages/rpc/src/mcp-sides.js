/** The two sides of MCP, and what both must know of its eras; mcp.js says how they are made. */
import {
  ENDING,
  mistyped,
  requireOf,
  requireOptions,
  requireValues,
} from '../../../js/common/check-options.js';
import { invokeReportingErrors } from '../../../js/common/errors.js';
import { abortError, followSignal } from '../../../js/common/signals.js';
import { markedTransfer, transfer } from '../../../js/common/transfer.js';
import {
  copyRecord,
  firstOf,
  getOwn,
  isObject,
  isRecord,
  textOf,
} from '../../../js/common/values.js';
import { unless } from '../../../js/common/waiting.js';
import { SUBSCRIPTION_ID, needsInput } from './dialects.js';
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  RpcError,
} from './errors.js';

/** @import { Listener, Peer, RequestOptions } from './peer.js' */
/** @import { ReceivedCall } from './received-call.js' */

/** Versions without a handshake: each request says which it is of. */
const MODERN = ['2026-07-28'];
/** Versions that begin with `initialize`. */
const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

const PREFIX = 'io.modelcontextprotocol/';
const VERSION = `${PREFIX}protocolVersion`;
const CLIENT_INFO = `${PREFIX}clientInfo`;
const CLIENT_CAPABILITIES = `${PREFIX}clientCapabilities`;
const SERVER_INFO = `${PREFIX}serverInfo`;

const HEADER_MISMATCH = -32020;
const MISSING_CAPABILITY = -32021;
const UNSUPPORTED_VERSION = -32022;

/** The request that a subscription is. */
const LISTEN = 'subscriptions/listen';
/** What a server says of a subscription first: what it will tell. */
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** How often a server may need something more for one request. */
const MAX_ROUNDS = 10;
/** What a server may need at once. */
const MAX_INPUTS = 64;

/** The first of our versions that the other side has, too. @param {string[]} ours @param {unknown} theirs */
const sharedVersion = (ours, theirs) =>
  ours.find((version) => Array.isArray(theirs) && theirs.includes(version));

/**
 * Whether a client may take a result for what was asked: it is complete, or of a kind that an extension of its own defines.
 * @param {unknown} result
 * @param {unknown} capabilities
 */
function isKnownResult(result, capabilities) {
  const type = getOwn(result, 'resultType') ?? 'complete';
  const extensions = getOwn(capabilities, 'extensions');
  return type === 'complete' || (isObject(extensions) && Object.keys(extensions).length > 0);
}

/** What a client may be asked. @type {unknown[]} */
const INPUTS = ['elicitation/create', 'sampling/createMessage', 'roots/list'];

/**
 * The capabilities that a client would have to declare to be asked something; undefined if it has.
 * @param {unknown} declared @param {unknown} method @param {unknown} params
 * @returns {object | undefined} `{}` for a method that no client can be asked
 */
function lackedCapabilities(declared, method, params) {
  switch (method) {
    case 'elicitation/create': {
      const elicitation = getOwn(declared, 'elicitation');
      const mode = getOwn(params, 'mode') ?? 'form';
      if (mode !== 'form' && mode !== 'url') return { elicitation: {} };
      if (!isObject(elicitation)) return { elicitation: mode === 'url' ? { url: {} } : {} };
      // A declaration without modes is that of forms.
      const isDefault = mode === 'form' && getOwn(elicitation, 'url') === undefined;
      const has = getOwn(elicitation, mode) !== undefined || isDefault;
      return has ? undefined : { elicitation: { [mode]: {} } };
    }
    case 'sampling/createMessage': {
      const sampling = getOwn(declared, 'sampling');
      const tools = ['tools', 'toolChoice'].some((key) => getOwn(params, key) !== undefined);
      const has = isObject(sampling) && (!tools || getOwn(sampling, 'tools') !== undefined);
      return has ? undefined : { sampling: tools ? { tools: {} } : {} };
    }
    case 'roots/list':
      return isObject(getOwn(declared, 'roots')) ? undefined : { roots: {} };
  }
  return {};
}

/**
 * What goes with a request when it is made again. When one of the answers fails, the others are not wanted any more.
 * @param {unknown} result that needs input @param {AbortController} controller whose signal those who answer get
 * @param {(method: unknown, params: unknown) => unknown} ask
 */
async function gatherInput(result, controller, ask) {
  const inputs = Object.entries(copyRecord(getOwn(result, 'inputRequests')));
  if (inputs.length > MAX_INPUTS)
    throw new RpcError(INVALID_PARAMS, 'The server asked for too many inputs at once');
  const answers = inputs.map(async ([key, input]) => [
    key,
    await ask(getOwn(input, 'method'), getOwn(input, 'params')),
  ]);
  const requestState = getOwn(result, 'requestState');
  try {
    return {
      ...(inputs.length && { inputResponses: Object.fromEntries(await Promise.all(answers)) }),
      ...(requestState !== undefined && { requestState }),
    };
  } catch (error) {
    controller.abort(abortError('Another input that was needed at the same time failed', error));
    throw error;
  }
}

/** @param {string} who */
const tooManyRounds = (who) =>
  new RpcError(INVALID_PARAMS, `${who} asked for input ${MAX_ROUNDS} times`);

// --- A client ---

/** Errors that only servers of the second era give. */
const MODERN_ERRORS = [HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION];
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
const CLIENT_OPTIONS = {
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
  requireOptions('connectMcp', options, CLIENT_OPTIONS);
  requireValues('connectMcp', options, CLIENT_OPTIONS);
  requireOf('connectMcp', 'capabilities', 'an object', options.capabilities ?? {});
  const { clientInfo, capabilities = {}, era, signal, timeout } = options;
  const { discoveryTimeout = DEFAULT_DISCOVERY_TIMEOUT } = options;
  const envelope = (/** @type {string} */ version) => ({
    [VERSION]: version,
    [CLIENT_INFO]: clientInfo,
    [CLIENT_CAPABILITIES]: capabilities,
  });
  const unsupported = (/** @type {string} */ why, /** @type {unknown} */ data) =>
    new RpcError(UNSUPPORTED_VERSION, why, data);
  let offered = LEGACY[0];
  if (era !== 'legacy') {
    const patience = era ? timeout : discoveryTimeout;
    const found = await discover(peer, envelope(MODERN[0]), { signal, timeout: patience }, era);
    const theirs = getOwn(found, 'supportedVersions') ?? getOwn(found, 'supported');
    const modern = sharedVersion(MODERN, theirs);
    if (modern) return new McpClient(peer, modern, found, capabilities, envelope(modern));
    // A server that has told its versions is spoken to in one of them.
    const legacy = era ? undefined : found ? sharedVersion(LEGACY, theirs) : offered;
    if (!legacy) throw unsupported('No protocol version in common with the server', found);
    offered = legacy;
  }
  const params = { protocolVersion: offered, capabilities, clientInfo };
  const server = await peer.request('initialize', params, { signal, timeout });
  const protocolVersion = getOwn(server, 'protocolVersion');
  const version = sharedVersion(LEGACY, [protocolVersion]);
  if (!version)
    throw unsupported('The server chose an unsupported protocol version', { protocolVersion });
  peer.notify('notifications/initialized');
  return new McpClient(peer, version, server, capabilities);
}

/**
 * What a server of the second era says of itself; undefined is one of the first.
 * @param {Peer} peer @param {object} envelope @param {RequestOptions} options @param {'modern' | undefined} era if it must be of that
 */
async function discover(peer, envelope, options, era) {
  try {
    return await peer.request('server/discover', { _meta: envelope }, options);
  } catch (error) {
    const { name, code, data } = /** @type {RpcError} */ (error);
    const isModern = name === 'RpcError' && MODERN_ERRORS.includes(code);
    if (isModern && code === UNSUPPORTED_VERSION) return data;
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
    const info = getOwn(server, 'serverInfo') ?? getOwn(getOwn(server, '_meta'), SERVER_INFO);
    /** Its name and version, as it gave them. @type {Record<string, unknown> | undefined} */
    this.serverInfo = isObject(info) ? copyRecord(info) : undefined;
    /** What it can do, as it said. @type {Record<string, unknown>} */
    this.serverCapabilities = copyRecord(getOwn(server, 'capabilities'));
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

  /** @param {unknown} method @param {unknown} params @param {AbortSignal} signal */
  #answer(method, params, signal) {
    const handler = this.#handlers.get(method);
    const lacked = INPUTS.includes(method)
      ? lackedCapabilities(this.#capabilities, method, params)
      : undefined;
    const isDeclared = (/** @type {string} */ key) => isObject(getOwn(this.#capabilities, key));
    if (!handler || !Object.keys(lacked ?? {}).every(isDeclared)) {
      const why = 'There is no handler for the input that the server requires';
      throw new RpcError(METHOD_NOT_FOUND, why, { method });
    }
    if (lacked) {
      const data = { requiredCapabilities: lacked };
      throw new RpcError(INVALID_PARAMS, 'The client did not declare support for this', data);
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
    const _meta = { .../** @type {object} */ (getOwn(params, '_meta')), ...this.#envelope };
    const asked = { ...params, _meta };
    const controller = new AbortController();
    const answer = async (/** @type {unknown} */ what, /** @type {unknown} */ input) =>
      this.#answer(what, input, controller.signal);
    let rounds = 0;
    const onInputRequired = async (/** @type {unknown} */ needed) => {
      if (++rounds === MAX_ROUNDS) throw tooManyRounds('The server');
      return { ...asked, ...(await gatherInput(needed, controller, answer)) };
    };
    try {
      const result = await this.#peer.request(method, asked, { ...options, onInputRequired });
      if (isKnownResult(result, this.#capabilities)) return result;
      const data = { resultType: getOwn(result, 'resultType') };
      throw new RpcError(INVALID_REQUEST, 'The result has an unknown type', data);
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
   *   server of the first era tells of its lists unasked, and of no resources
   */
  async listen(notifications, onChange, { signal } = {}) {
    requireOf('listen', 'notifications', 'an object', notifications);
    requireOf('listen', 'onChange', 'a function', onChange);
    requireOptions('listen', { signal }, ENDING, true);
    signal?.throwIfAborted();
    const { controller, release } = followSignal(signal);
    const close = () => controller.abort();
    if (!this.#envelope) {
      // A server of the first era tells unasked. What it tells of a resource has to be asked for.
      const told = offered(notifications, this.serverCapabilities);
      delete told.resourceSubscriptions;
      /** @type {Listener} */
      const listener = (params, { method }) =>
        Object.keys(told).some((key) => CHANGES[key].method === method) &&
        invokeReportingErrors(onChange, params, { method });
      this.#peer.overhearing.add(listener);
      const over = () => {
        this.#peer.overhearing.delete(listener);
        release();
      };
      const ended = unless(controller.signal, this.#peer.closed).then(over, over);
      return { notifications: told, ended, close };
    }
    return new Promise((resolve, reject) => {
      /** @type {RequestOptions['onTagged']} */
      const onTagged = ({ method, params }) => {
        if (method !== ACKNOWLEDGED) invokeReportingErrors(onChange, params, { method });
        else resolve({ notifications: copyRecord(getOwn(params, 'notifications')), ended, close });
      };
      const options = { signal: controller.signal, onTagged };
      const request = this.request(LISTEN, { notifications }, options).finally(release);
      const ended = request
        .catch((error) => {
          if (!controller.signal.aborted) throw error;
        })
        .then(() => {});
      // Nobody has to look at its end.
      ended.catch(() => {});
      const why = 'The server did not acknowledge the subscription';
      request.then(() => reject(new RpcError(INVALID_REQUEST, why)), reject);
    });
  }
}

// --- A server ---

/** Results that say how long they may be kept: not at all, unless a handler knows better. */
const CACHEABLE =
  /^((tools|prompts|resources|resources\/templates)\/list|resources\/read|server\/discover)$/;
/** Requests that the second era has no more. */
const ONLY_LEGACY = /^(initialize|ping|logging\/setLevel|resources\/(un)?subscribe)$/;
/** Requests that only the second era has. */
const ONLY_MODERN = ['server/discover', LISTEN];

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

/** The changes that are told of those that a client asked for. @param {unknown} asked @param {unknown} capabilities the server's */
function offered(asked, capabilities) {
  /** @type {Record<string, any>} */
  const filter = {};
  for (const [key, { capability, needs }] of Object.entries(CHANGES)) {
    if (getOwn(getOwn(capabilities, capability), needs) !== true) continue;
    const wanted = getOwn(asked, key);
    if (wanted === true && needs !== 'subscribe') filter[key] = true;
    else if (needs === 'subscribe' && Array.isArray(wanted)) {
      filter[key] = firstOf(wanted, MAX_RESOURCES).filter((uri) => typeof uri === 'string');
    }
  }
  return filter;
}

/**
 * @typedef {object} ServerOptions What `serveMcp` may be given.
 * @property {{ name: string, version: string }} serverInfo the name and version of this server
 * @property {Record<string, unknown>} [capabilities] `listChanged` and `subscribe` in them let clients subscribe to changes
 * @property {string} [instructions] says to the model what the server is for
 */

/** @type {import('../../../js/common/check-options.js').Kinds<ServerOptions>} */
// prettier-ignore
const SERVER_OPTIONS = {
  capabilities: 'an object', instructions: 'a string', serverInfo: 'an object',
};

/**
 * @typedef {object} McpCaller Who made a request.
 * @property {string | undefined} version
 * @property {Record<string, unknown>} clientInfo its name and version, as it gave them
 * @property {Record<string, unknown>} capabilities
 */

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

  /** @param {Peer} peer @param {ServerOptions} options */
  constructor(peer, options) {
    requireOf('serveMcp', 'serverInfo', 'an object', options?.serverInfo);
    requireOptions('serveMcp', options, SERVER_OPTIONS);
    requireOf('serveMcp', 'capabilities', 'an object', options.capabilities ?? {});
    const { serverInfo, capabilities = {}, instructions } = options;
    this.#peer = peer;
    this.#info = serverInfo;
    this.#capabilities = capabilities;
    const self = { capabilities, ...(instructions !== undefined && { instructions }) };
    peer.screen = requireEra;
    peer.handle('initialize', (params) => {
      const version = sharedVersion(LEGACY, [getOwn(params, 'protocolVersion')]) ?? LEGACY[0];
      this.#client = {
        version,
        clientInfo: copyRecord(getOwn(params, 'clientInfo')),
        capabilities: copyRecord(getOwn(params, 'capabilities')),
      };
      return { protocolVersion: version, serverInfo, ...self };
    });
    this.handle('server/discover', () => ({ supportedVersions: MODERN, ...self }));
    this.handle(LISTEN, (params, context) => this.#subscribe(params, context));
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
    if (this.#client.version) this.#peer.tell(method, params);
    for (const { id, filter } of this.#peer.running(LISTEN)) {
      const wanted = filter?.[key];
      const wants = Array.isArray(wanted) ? wanted.includes(getOwn(params, 'uri')) : wanted;
      if (wants) this.#peer.notify(method, { ...params, ...tagged(id, getOwn(params, '_meta')) });
    }
  }

  /** @param {unknown} params @param {ReceivedCall} context */
  #subscribe(params, context) {
    const asked = getOwn(params, 'notifications');
    if (!isRecord(asked))
      throw new RpcError(INVALID_PARAMS, '`notifications` must say what to listen to');
    const filter = offered(asked, this.#capabilities);
    const { id, signal } = context;
    context.atClose = this.#modernResult(LISTEN, tagged(id));
    context.notify(ACKNOWLEDGED, { notifications: filter, ...tagged(id) });
    context.filter = filter;
    // It ends when its client or this side ends it.
    return unless(signal, new Promise(() => {}));
  }

  /** @param {McpHandler} handler @param {unknown} params @param {ReceivedCall} context @param {McpCaller} caller */
  async #answerModern(handler, params, context, caller) {
    // A server of this era asks nothing by itself.
    const why = 'A server of this version cannot send requests: return input_required';
    const refuse = () => Promise.reject(new RpcError(METHOD_NOT_FOUND, why));
    Object.defineProperty(context, 'request', { value: refuse });
    const result = await context.resultOf(await handler(params, context, caller));
    if (needsInput(result)) requireCapabilities(caller, result);
    else if (!isKnownResult(result, caller.capabilities)) {
      throw new RpcError(INTERNAL_ERROR, `${context.method} returned a result of an unknown type`);
    }
    return this.#modernResult(context.method, result);
  }

  /**
   * A result with all that the second era wants of it; what a handler says itself stands.
   * @param {string} method
   * @param {unknown} [result]
   */
  #modernResult(method, result = {}) {
    requireResult(method, result);
    const { ...filled } = /** @type {Record<string, unknown>} */ (result);
    filled.resultType ??= 'complete';
    if (CACHEABLE.test(method) && filled.resultType === 'complete') {
      filled.ttlMs ??= 0;
      filled.cacheScope ??= 'private';
    }
    filled._meta = { [SERVER_INFO]: this.#info, ...copyRecord(filled._meta) };
    const moved = markedTransfer(result);
    return moved ? transfer(filled, moved) : filled;
  }

  /** @param {McpHandler} handler @param {unknown} params @param {ReceivedCall} context */
  async #answerLegacy(handler, params, context) {
    let more = {};
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const asked = Object.assign(copyRecord(params), more);
      const result = await context.resultOf(await handler(asked, context, this.#client));
      if (!needsInput(result)) return requireResult(context.method, result);
      requireCapabilities(this.#client, result);
      const controller = new AbortController();
      const { signal } = controller;
      more = await gatherInput(result, controller, (method, input) =>
        context.request(/** @type {string} */ (method), input, { signal }),
      );
    }
    throw tooManyRounds('The handler');
  }
}

/** Names the subscription that a message belongs to. @param {unknown} id of its request @param {unknown} [_meta] what else it says */
const tagged = (id, _meta) => ({ _meta: { ...copyRecord(_meta), [SUBSCRIPTION_ID]: id } });

/** Throws unless a value can be a result. @template T @param {string} method @param {T} result */
function requireResult(method, result) {
  if (result === undefined || (isObject(result) && !Array.isArray(result))) return result;
  throw new RpcError(INTERNAL_ERROR, `The result of ${method} must be an object`);
}

/** Throws unless the version that a request names has its method. @param {string} method @param {unknown} params */
function requireEra(method, params) {
  const isModern = modernCaller(params) !== undefined;
  if (!isModern && ONLY_MODERN.includes(method))
    throw new RpcError(INVALID_PARAMS, `_meta lacks ${VERSION}`);
  if (isModern && ONLY_LEGACY.test(method))
    throw new RpcError(METHOD_NOT_FOUND, 'Method not found', { method });
}

/** Who makes a request of the second era; undefined is one of the first. @param {unknown} params @returns {McpCaller | undefined} */
function modernCaller(params) {
  const meta = getOwn(params, '_meta');
  const requested = getOwn(meta, VERSION);
  if (requested === undefined) return undefined;
  const version = sharedVersion(MODERN, [requested]);
  if (version === undefined) {
    const data = { supported: MODERN, requested };
    throw new RpcError(UNSUPPORTED_VERSION, 'Unsupported protocol version', data);
  }
  const capabilities = getOwn(meta, CLIENT_CAPABILITIES);
  if (!isObject(capabilities))
    throw new RpcError(INVALID_PARAMS, `_meta lacks ${CLIENT_CAPABILITIES}`);
  const clientInfo = copyRecord(getOwn(meta, CLIENT_INFO));
  return { version, clientInfo, capabilities: copyRecord(capabilities) };
}

/** Throws unless a client can be asked all that a handler needs. @param {McpCaller} caller @param {unknown} result the handler's */
function requireCapabilities({ capabilities }, result) {
  for (const input of Object.values(copyRecord(getOwn(result, 'inputRequests')))) {
    const method = getOwn(input, 'method');
    const requiredCapabilities = lackedCapabilities(capabilities, method, getOwn(input, 'params'));
    const why = `The client does not support ${method}`;
    if (requiredCapabilities) throw new RpcError(MISSING_CAPABILITY, why, { requiredCapabilities });
  }
}
