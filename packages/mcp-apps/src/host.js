/** A host of MCP Apps: shows a view in a sandbox, serves what it asks, and calls its tools. */
import { fromBase64 } from '../../binary/src/base64.js';
import { requireBounded } from '../../untrusted/src/bounds.js';
import { AbpError, invokeReportingErrors, requireTexts } from '../../../js/common/errors.js';
import { requireOptions } from '../../../js/common/check-options.js';
import { whenAborted } from '../../../js/common/waiting.js';
import { firstOf, getOwn, isObject, milliseconds } from '../../../js/common/values.js';
import { RpcError, saysCancelled } from '../../rpc/src/errors.js';
import { Conversation } from './conversation.js';
import { callTool, serveCalls } from './calls.js';
import { OPAQUE_ORIGIN, OWN_ORIGIN, allowOf, grantedOf } from './policy.js';
import {
  CANCELLED,
  INVALID_PARAMS,
  INVALID_REQUEST,
  MIME_TYPE,
  OUTCOME,
  REFUSED,
  SANDBOX,
  STATE,
  VERSION,
  infoOf,
  knows,
  notification,
  recordOf,
} from './protocol.js';
import { GONE, ViewTransport } from './relay.js';
import { warn } from '../../../js/common/development.js';

/** @typedef {import('../../rpc/src/incoming-request.js').IncomingRequest} IncomingRequest */
/** @typedef {import('../../../js/transports/transport.js').Transport} Transport */
/** @typedef {import('../../rpc/src/peer.js').Peer} Peer */
/** @typedef {import('./protocol.js').HostContext} HostContext */
/** @typedef {import('./protocol.js').Params} Params */
/** @typedef {import('../../rpc/src/peer.js').RequestOptions} RequestOptions */

const DEFAULT_TIMEOUT = 10_000;
/** How long a view may take to save what it has, in ms. */
const DEFAULT_TEARDOWN = 3000;
/** Tools of the server that are looked at, to see which the view may call. */
const MAX_PAGES = 16;
/** How high a view may make its iframe where its context does not say, in CSS pixels. */
const MAX_HEIGHT = 4096;
/** What a view may keep. */
const MAX_STATE = { maxValues: 2 ** 16, maxCharacters: 2 ** 20 };
/** Requests of a view that wait until it has begun. */
const MAX_EARLY = 64;
/** @type {import('./protocol.js').DisplayMode[]} */
const MODES = ['inline', 'fullscreen', 'pip'];

/** What a view may ask of the server behind its host. */
const SERVER_METHODS = [
  ...['resources/read', 'resources/list', 'resources/templates/list', 'prompts/list'],
];

/**
 * @typedef {{ signal: AbortSignal, progress: ((info: unknown) => void) | undefined }} ServerContext What a request to the server comes with.
 */

/**
 * The server that the view is from: anything with `request`, as the clients of `abp-bridge/mcp` and peers have it, or a
 * function that answers in its place.
 * @typedef {{ request: (method: string, params?: any, options?: RequestOptions) => Promise<any> }
 *   | ((method: string, params: any, context: ServerContext) => any)} Server
 */

/**
 * @typedef {object} Resource What `resources/read` gave for the view: one of its `contents`.
 * @property {string} [mimeType]
 * @property {string} [text]
 * @property {string} [blob] the same in base64
 * @property {any} [_meta] `ui` has `csp` and `permissions`
 */

/**
 * @typedef {object} HostOptions What a host of views may be given.
 * @property {{ name: string, version: string }} host who the host is
 * @property {string | ((server: Server | undefined) => string)} [sandbox] needed with an iframe: the address of the page
 *   between host and view, which calls `serveSandbox`. Its origin must not be this page's. Views have an opaque origin in it, unless this is a function:
 *   what that returns is the address of an origin for the views of one server alone, which they have, too
 * @property {Resource} [resource] needed with an iframe: the view
 * @property {{ _meta?: any }} [listed] what `resources/list` says of it; the resource's own metadata counts more
 * @property {HostContext} [context] what the view is told of the host: theme, locale, sizes, `toolInfo` and so on
 * @property {Server} [server] answers the view's calls of tools, and reads of resources
 * @property {boolean} [listChanged] whether `host.notify` tells the view what the server says of changes of its lists, by
 *   `notifications/tools/list_changed` and `notifications/resources/list_changed` (false)
 * @property {any} [state] what the view has kept when it was there before: `state` of the host that it had then
 * @property {(url: string, context: IncomingRequest) => unknown} [onOpenLink] gets addresses of the web only. This and the
 *   following refuse by throwing; without one of them, what it is for is refused
 * @property {(content: any, context: IncomingRequest) => any} [onMessage] takes a message that the view adds to the conversation
 * @property {(context: { content?: any, structuredContent?: any }) => any} [onModelContext] takes what the view wants the model to know
 * @property {(contents: any, context: IncomingRequest) => any} [onDownloadFile] saves what the view offers for download
 * @property {(mode: 'inline' | 'fullscreen' | 'pip') => any} [onDisplayMode] returns the mode that holds now. It is asked for
 *   modes that the view has declared and, if the context has `availableDisplayModes`, that are among them
 * @property {(params: any, context: IncomingRequest) => any} [onCreateMessage] answers `sampling/createMessage`
 * @property {(params: any) => void} [onLog] called with what the view logs
 * @property {(size: { width?: number, height?: number }) => void} [onSize] in CSS pixels; without it the iframe follows the
 *   view's height
 * @property {() => void} [onRequestTeardown] the view asks to be removed
 * @property {(error: Error) => void} [onClose] the view's document is gone, and nobody here has closed it
 * @property {number} [timeout] ms that the view has to load and to answer (10000)
 * @property {AbortSignal} [signal] stops waiting for it
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to plain messages, also where the view is ours (`'frames'`)
 * @property {import('../../rpc/src/rpc-core.js').Limits} [limits] of requests that may be pending and how long messages may be
 */

/** @typedef {HostOptions & Required<Pick<HostOptions, 'sandbox' | 'resource'>>} FrameOptions of a host with an iframe */

/**
 * Shows a view in an iframe that is in the document.
 * @overload
 * @param {HTMLIFrameElement} target whose `src`, `sandbox` and `allow` are set here
 * @param {FrameOptions} options
 * @returns {Promise<Host>} resolves when the view has begun; rejects with an AbpError when it does not
 */
/**
 * Serves a view that is shown by other means: in a test without a browser, or a host that is not in the web.
 * @overload
 * @param {Transport} target leads to the view
 * @param {HostOptions} options
 * @returns {Promise<Host>} as above
 */
/**
 * @param {HTMLIFrameElement | Transport} target
 * @param {HostOptions} options
 * @returns {Promise<Host>}
 */
export async function createHost(target, options) {
  const host = new Host(target, options);
  await host.ready;
  return host;
}

/** @type {import('../../../js/common/check-options.js').Kinds<HostOptions>} */
// prettier-ignore
const OPTIONS = {
  context: 'an object', host: 'an object', limits: 'an object of numbers', listChanged: 'a boolean', listed: 'an object',
  onClose: 'a function', onCreateMessage: 'a function', onDisplayMode: 'a function', onDownloadFile: 'a function',
  onLog: 'a function', onMessage: 'a function', onModelContext: 'a function', onOpenLink: 'a function',
  onRequestTeardown: 'a function', onSize: 'a function', resource: 'an object', sandbox: 'a string or a function',
  server: 'a function or an object', signal: 'an AbortSignal', state: 'anything', timeout: 'a number',
  upgrade: '"frames" or "none"',
};

/** Which host each iframe shows a view of. @type {WeakMap<HTMLIFrameElement, Host>} */
const owners = new WeakMap();

/**
 * What shows a view: its iframe, the sandbox's origin, whether the view has that origin, too, and whose it is.
 * @typedef {{ iframe: HTMLIFrameElement, window: Window | null, origin: string, own: boolean, owner: unknown }} Claim
 */

/** @type {Set<Claim>} */
const claims = new Set();

/**
 * A view that has the origin of its sandbox reaches all other sandboxes of this origin, and so their views.
 * @param {HTMLIFrameElement} iframe
 * @param {string} origin
 * @param {boolean} own whether the view has the origin
 * @param {unknown} [server]
 */
function claim(iframe, origin, own, server) {
  const owner = server ?? iframe;
  for (const other of claims) {
    if (other.iframe.contentWindow !== other.window) claims.delete(other);
    else if (other.origin === origin && (own || other.own) && other.owner !== owner) {
      throw new AbpError(
        'INVALID_PARAMS',
        `The sandbox's origin ${origin} is in use for another server: give the views of each server an origin of their own`,
      );
    }
  }
  const made = { iframe, window: iframe.contentWindow, origin, own, owner };
  claims.add(made);
  return made;
}

/** What is told of the server's call that the view is for: again to a view that begins again. */
const TOLD = ['tool-input-partial', 'tool-input', 'tool-result', 'tool-cancelled'].map(
  notification,
);

/** The host of one view. */
export class Host {
  /** @type {Claim | undefined} */
  #claim;
  #granted = {};
  #conversation;
  #iframe;
  #options;
  /** Whether the view has begun its session. */
  #initialized = false;
  /** Whether one ever has. */
  #hasBegun = false;
  #began = () => {};
  #closing = false;
  /** @type {Map<string, unknown>} */
  #told = new Map();
  /** What else waits until the view that is about to begin has begun. @type {[method: string, params: unknown][]} */
  #waiting = [];
  /** How many requests wait until the view has begun. */
  #early = 0;
  /** What the view is told of its host. @type {HostContext} */
  #context;
  /** @type {Set<ViewTransport>} */
  #transports = new Set();
  /** The tools of the server that the view may call. @type {Promise<Set<string>> | undefined} */
  #callable;

  /**
   * Use {@link createHost}.
   * @param {HTMLIFrameElement | Transport} target
   * @param {HostOptions} options
   */
  constructor(target, options) {
    requireTexts('createHost needs host', options?.host, 'name', 'version');
    requireOptions('createHost', options, OPTIONS);
    const { context = {}, state, upgrade, limits } = options;
    this.#options = options;
    this.#context = { ...context };
    /** Who the view is. @type {{ name?: string, version?: string }} */
    this.viewInfo = {};
    /** What the view can do. @type {Params} */
    this.viewCapabilities = {};
    /** What the view keeps, for the host that it has next. @type {any} */
    this.state = state;
    const transport = 'post' in target ? target : undefined;
    this.#iframe = 'post' in target ? undefined : target;
    const shown = this.#iframe && this.#show(this.#iframe);
    let isShown = false;
    this.#conversation = new Conversation(this.#iframe, {
      ...{ transport, origin: shown?.origin ?? '', upgrade, limits },
      isBegun: () => this.#initialized,
      onSession: (peer) => {
        peer.onNotification(`${SANDBOX}proxy-ready`, () => {
          if (!isShown && shown) peer.notify(`${SANDBOX}resource-ready`, shown.resource);
          isShown = true;
        });
        this.#forget();
        this.#listen(peer);
        this.#serve(peer);
      },
    });
    /** Resolves when nothing is sent or heard any more, with why. */
    this.closed = this.#conversation.closed;
    /** Resolves when the view has begun. After it has begun again, it is another promise. @type {Promise<void>} */
    this.ready = this.#begin();
    void this.closed.then((why) => this.#ended(why));
  }

  /**
   * Loads the sandbox.
   * @param {HTMLIFrameElement} iframe
   * @returns its origin, and what it is told of the view
   */
  #show(iframe) {
    const { sandbox, server, resource, listed } = this.#options;
    if (!sandbox || !resource) {
      throw new AbpError('INVALID_PARAMS', 'createHost with an iframe needs sandbox and resource');
    }
    const own = typeof sandbox === 'function';
    const { href, origin } = new URL(own ? sandbox(server) : sandbox, location.href);
    if (origin === location.origin) {
      throw new AbpError(
        'INVALID_PARAMS',
        'The sandbox must have a different origin than this page',
      );
    }
    const html = htmlOf(resource);
    const ui = { ...metadataOf(listed), ...metadataOf(resource) };
    const { csp, permissions, dropped } = grantedOf(ui.csp, ui.permissions);
    if (dropped.length) {
      warn(`not granted to the view, although its metadata asks for it: ${dropped.join(', ')}`);
    }
    this.#granted = { ...(csp && { csp }), ...(permissions && { permissions }) };
    iframe.setAttribute('sandbox', 'allow-scripts allow-same-origin allow-forms');
    iframe.allow = allowOf(permissions, origin);
    // What the host before it showed must not be taken for this one's.
    if (owners.has(iframe)) blank(iframe);
    this.#claim = claim(iframe, origin, own, server);
    owners.set(iframe, this);
    // Before the channel is made: what the iframe held is none of its documents.
    iframe.src = href;
    const tokens = own ? OWN_ORIGIN : OPAQUE_ORIGIN;
    return { origin, resource: { html, csp, permissions, sandbox: tokens } };
  }

  get #peer() {
    return this.#conversation.peer;
  }

  /** Another session takes the place of the one before, if there was one. */
  #forget() {
    this.viewInfo = {};
    this.viewCapabilities = {};
    this.#waiting = [];
    if (!this.#initialized) return;
    this.#initialized = false;
    this.ready = this.#nextSession();
    this.ready.catch(() => {});
    this.#lose(new AbpError('DISCONNECTED', 'The view was initialized again', { retryable: true }));
  }

  #nextSession() {
    return new Promise((resolve, reject) => {
      this.#began = () => resolve(undefined);
      void this.closed.then((cause) => reject(removed(cause)));
    });
  }

  async #begin() {
    const { timeout, signal } = this.#options;
    const ms = milliseconds(timeout ?? DEFAULT_TIMEOUT);
    /** @type {AbortSignal[]} */
    const signals = [];
    if (signal) signals.push(signal);
    if (ms) signals.push(AbortSignal.timeout(ms));
    const stop = AbortSignal.any(signals);
    let release = () => {};
    try {
      await new Promise((resolve, reject) => {
        this.#began = () => resolve(undefined);
        const give = () =>
          reject(
            signal?.aborted
              ? signal.reason
              : new AbpError('TIMEOUT', 'The view did not initialize in time', { retryable: true }),
          );
        release = whenAborted(stop, give);
        void this.closed.then((cause) => reject(removed(cause)));
      });
    } catch (error) {
      this.#leave();
      throw error;
    } finally {
      // A signal that follows others is kept, with all that listens, until one of them fires.
      release();
    }
  }

  // --- What a view says ------------------------------------------------------------------------------

  /** @param {Peer} peer */
  #listen(peer) {
    const { onLog, onRequestTeardown } = this.#options;
    const listen = (/** @type {string} */ method, /** @type {(params: Params) => void} */ act) =>
      peer.onNotification(method, (params) => this.#initialized && act(recordOf(params)));
    peer.onNotification(notification('initialized'), () => {
      if (this.viewInfo.name === undefined || this.#initialized) return;
      this.#initialized = true;
      this.#hasBegun = true;
      for (const [method, params] of [...this.#told, ...this.#waiting]) peer.notify(method, params);
      this.#waiting = [];
      this.#began();
    });
    listen(notification('size-changed'), (size) => this.#resize(size));
    listen(notification('request-teardown'), () => onRequestTeardown?.());
    listen('notifications/message', (params) => onLog?.(params));
    listen('notifications/tools/list_changed', () => {
      for (const transport of this.#transports) void transport.refresh();
    });
  }

  /** @param {Params} size as the view says it */
  #resize({ width, height }) {
    const size = {
      ...(isLength(width) && { width }),
      ...(isLength(height) && { height }),
    };
    const { onSize } = this.#options;
    if (onSize) return onSize(size);
    const { height: fixed, maxHeight = MAX_HEIGHT } = recordOf(this.#context.containerDimensions);
    if (size.height === undefined || fixed !== undefined || !this.#iframe) return;
    this.#iframe.style.height = `${Math.min(size.height, maxHeight)}px`;
  }

  /** @param {Peer} peer */
  #serve(peer) {
    const options = this.#options;
    const { server } = options;
    peer.handle('ui/initialize', (params) => this.#initialize(recordOf(params)));
    /**
     * @param {string} method
     * @param {unknown} served whether it is
     * @param {(params: Params, context: IncomingRequest) => unknown} handler
     */
    const serve = (method, served, handler) => {
      if (!served) return;
      peer.handle(method, async (params, context) => {
        await this.#requireBegun(context);
        return (await handler(recordOf(params), context)) ?? {};
      });
    };
    serve('ui/open-link', options.onOpenLink, ({ url }, context) =>
      quietly(options.onOpenLink?.(webAddress(url), context)),
    );
    serve('ui/message', options.onMessage, ({ content }, context) =>
      quietly(options.onMessage?.(content, context)),
    );
    serve('ui/update-model-context', options.onModelContext, ({ content, structuredContent }) =>
      quietly(
        options.onModelContext?.({
          ...(content !== undefined && { content }),
          ...(structuredContent !== undefined && { structuredContent }),
        }),
      ),
    );
    serve('ui/download-file', options.onDownloadFile, ({ contents }, context) =>
      quietly(options.onDownloadFile?.(contents, context)),
    );
    serve('ui/request-display-mode', true, (params) => this.#changeMode(params.mode));
    serve('sampling/createMessage', options.onCreateMessage, (params, context) =>
      options.onCreateMessage?.(params, context),
    );
    serve(STATE, true, (params) => {
      if (Object.hasOwn(params, 'state')) {
        requireBounded(params.state, MAX_STATE);
        this.state = params.state;
      }
      return { state: this.state };
    });
    if (!server) return;
    for (const method of SERVER_METHODS) {
      serve(method, true, (params, context) => this.#ask(server, method, params, context));
    }
    serveCalls(peer, async (params, context) => {
      await this.#requireBegun(context);
      await this.#requireCallable(server, params.name);
      // What this connection needs is not the server's.
      const _meta = { ...recordOf(params._meta) };
      delete _meta.progressToken;
      const { name, arguments: args } = params;
      const asked = { name, arguments: args, ...(Object.keys(_meta).length && { _meta }) };
      return this.#ask(server, 'tools/call', asked, context);
    });
  }

  /** What comes between the handshake and its end waits for that. @param {IncomingRequest} context */
  async #requireBegun({ signal }) {
    if (this.#initialized) return;
    if (this.viewInfo.name === undefined || this.#early === MAX_EARLY) {
      throw new RpcError(INVALID_REQUEST, 'The view has not been initialized');
    }
    this.#early++;
    try {
      await this.ready;
    } finally {
      this.#early--;
    }
    signal.throwIfAborted();
  }

  /**
   * @param {Server} server
   * @param {string} method
   * @param {unknown} params
   * @param {IncomingRequest} context
   */
  async #ask(server, method, params, context) {
    const { signal } = context;
    const asks = getOwn(getOwn(context.params, '_meta'), 'progressToken') !== undefined;
    const progress = asks ? context.progress : undefined;
    if (typeof server === 'function') return server(method, params, { signal, progress });
    try {
      return await server.request(method, params, {
        signal,
        ...(progress && { onProgress: progress }),
      });
    } catch (error) {
      if (!saysCancelled(error, CANCELLED)) throw error;
      // A server that is not ours does not say more.
      const data = { outcome: 'unknown', ...recordOf(getOwn(error, 'data')) };
      throw new RpcError(CANCELLED, /** @type {Error} */ (error).message, data, { cause: error });
    }
  }

  /**
   * A view may call what the server's tools say that it may. A function knows that itself.
   * @param {Server} server
   * @param {unknown} name
   */
  async #requireCallable(server, name) {
    if (typeof server === 'function') return;
    const listing = (this.#callable ??= callableOf(server));
    const callable = await listing.catch((error) => {
      this.#callable = undefined;
      throw error;
    });
    if (callable.has(/** @type {string} */ (name))) return;
    throw new RpcError(
      INVALID_PARAMS,
      `The view may not call the tool ${String(name).slice(0, 200)}`,
    );
  }

  /** @param {Params} params */
  #initialize({ appInfo, appCapabilities }) {
    const { name = 'view', version } = infoOf(appInfo);
    this.viewInfo = { name, ...(version !== undefined && { version }) };
    this.viewCapabilities = recordOf(appCapabilities);
    this.#peer.keepsUnsent = knows(appCapabilities, OUTCOME);
    const { host } = this.#options;
    return {
      protocolVersion: VERSION,
      hostInfo: { name: host.name, version: host.version },
      hostCapabilities: this.#capabilities,
      hostContext: this.#context,
    };
  }

  /** What this host can do, as it is told to views. */
  get #capabilities() {
    const { server, onOpenLink, onDownloadFile, onMessage, onModelContext } = this.#options;
    const { onCreateMessage, onLog, listChanged } = this.#options;
    const lists = listChanged ? { listChanged } : {};
    return {
      ...(server && { serverTools: lists, serverResources: lists }),
      ...(onOpenLink && { openLinks: {} }),
      ...(onDownloadFile && { downloadFile: {} }),
      ...(onMessage && { message: { text: {} } }),
      ...(onModelContext && { updateModelContext: { text: {}, structuredContent: {} } }),
      ...(onCreateMessage && { sampling: {} }),
      ...(onLog && { logging: {} }),
      sandbox: this.#granted,
      experimental: { [OUTCOME]: {}, [STATE]: {} },
    };
  }

  /** A view is shown only in the ways that both sides know. @param {unknown} mode */
  async #changeMode(mode) {
    const wanted = /** @type {import('./protocol.js').DisplayMode} */ (mode);
    if (!MODES.includes(wanted)) throw new RpcError(INVALID_PARAMS, 'Unknown display mode');
    const { displayMode: before = 'inline', availableDisplayModes: ours = MODES } = this.#context;
    const theirs = firstOf(this.viewCapabilities.availableDisplayModes, MODES.length);
    const isKnown = ours.includes(wanted) && theirs.includes(wanted);
    const now = (isKnown && (await this.#options.onDisplayMode?.(wanted))) || before;
    if (now !== before) this.setContext({ displayMode: now });
    return { mode: now };
  }

  // --- What a host says and asks -------------------------------------------------------------------

  /** Whether the view is gone, or was closed. */
  get ended() {
    return this.#peer.ended !== undefined;
  }

  /** Whether the view has tools. */
  get offersTools() {
    return isObject(getOwn(this.viewCapabilities, 'tools'));
  }

  /** Counts of what is pending and what was dropped, for debugging. */
  get counters() {
    return this.#peer.counters;
  }

  /**
   * Any request to the view.
   * @param {string} method
   * @param {unknown} [params]
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async request(method, params = {}, options = {}) {
    await this.#session();
    return this.#peer.request(method, params, options);
  }

  /** Waits until the view has begun, if it is about to. */
  async #session() {
    if (this.#hasBegun && this.viewInfo.name === undefined) {
      throw new AbpError('DISCONNECTED', 'The view has ended its session', { retryable: true });
    }
    await this.ready;
  }

  /**
   * Any notification to the view, such as `notifications/tools/list_changed` of the server.
   * @param {string} method
   * @param {unknown} [params]
   */
  notify(method, params = {}) {
    if (method === 'notifications/tools/list_changed') this.#callable = undefined;
    const isTold = TOLD.includes(method);
    // The protocol allows none once the arguments are complete.
    if (method === TOLD[0] && this.#told.has(TOLD[1])) return;
    if (isTold) {
      if (method === TOLD[1]) this.#told.delete(TOLD[0]);
      this.#told.set(method, params);
    }
    if (this.#initialized || this.ended) this.#peer.notify(method, params);
    // What a view does not know before it has been answered, it learns from the answer.
    else if (!isTold && this.viewInfo.name !== undefined) this.#waiting.push([method, params]);
  }

  /** The arguments of the call that the view is for. @param {object} args */
  toolInput(args) {
    this.notify(notification('tool-input'), { arguments: args });
  }

  /** The same, as far as they are known: before `toolInput`, not after. @param {object} args */
  toolInputPartial(args) {
    this.notify(notification('tool-input-partial'), { arguments: args });
  }

  /** The result of that call. @param {unknown} result */
  toolResult(result) {
    this.notify(notification('tool-result'), result);
  }

  /** That call was cancelled. @param {string} [reason] */
  toolCancelled(reason) {
    this.notify(notification('tool-cancelled'), reason === undefined ? {} : { reason });
  }

  /** Tells the view what has changed in its context. @param {HostContext} changes */
  setContext(changes) {
    this.#context = { ...this.#context, ...changes };
    this.notify(notification('host-context-changed'), changes);
  }

  /**
   * Calls a tool of the view.
   * @param {string} name
   * @param {unknown} [args]
   * @param {import('./calls.js').ToolOptions} [options]
   * @returns {Promise<any>} MCP's result. Rejects with an {@link RpcError}; see `callTool` of a view
   */
  async callTool(name, args = {}, options = {}) {
    await this.#session();
    const tells = knows(this.viewCapabilities, OUTCOME);
    return callTool(this.#peer, { name, arguments: args }, options, tells);
  }

  /**
   * The view's tools as an app: `connect(() => host.transport(), { agent })`.
   * @returns {import('../../../js/transports/transport.js').Transport}
   */
  transport() {
    if (this.ended) throw new AbpError('DISCONNECTED', GONE);
    const transport = new ViewTransport(this, () => this.#transports.delete(transport));
    this.#transports.add(transport);
    return transport;
  }

  // --- The end -------------------------------------------------------------------------------------

  /**
   * Ends the view in order: it is asked to save what it has, then what runs on its behalf is cancelled, then the iframe is
   * emptied, unless another host has taken it.
   * @param {{ reason?: string, timeout?: number, remove?: boolean }} [options] `timeout` is what the view has for it, in ms
   *   (3000); `remove` takes the iframe out of its document (false)
   */
  async close({ reason, timeout = DEFAULT_TEARDOWN, remove = false } = {}) {
    if (this.#closing) return void (await this.closed);
    this.#closing = true;
    if (this.#initialized && !this.ended) {
      const params = reason === undefined ? {} : { reason };
      // A view that has nothing to save, or does not answer, is removed as well.
      await this.#peer
        .request('ui/resource-teardown', params, { timeout: milliseconds(timeout) })
        .catch(() => {});
      await Promise.all([...this.#transports].map((transport) => transport.told()));
    }
    this.#leave(remove);
    await this.closed;
  }

  /** @param {boolean} [remove] */
  #leave(remove = false) {
    this.#closing = true;
    this.#peer.close();
    if (this.#claim) claims.delete(this.#claim);
    const iframe = this.#iframe;
    if (!iframe || owners.get(iframe) !== this) return;
    owners.delete(iframe);
    if (remove) iframe.remove();
    else blank(iframe);
  }

  /** What the agents of a session have is over. @param {Error} why */
  #lose(why) {
    for (const transport of this.#transports) transport.lose(why);
  }

  /** @param {Error} why */
  #ended(why) {
    this.#lose(why);
    if (!this.#closing && this.#hasBegun) invokeReportingErrors(this.#options.onClose, why);
  }
}

/** @param {Error} cause */
const removed = (cause) =>
  new AbpError('DISCONNECTED', 'The view was removed', { retryable: true, cause });

/**
 * Gives an iframe a new window, which is empty: nothing of what it held is heard any more, nor does the user meet it in the
 * history. Whoever made the iframe keeps it.
 * @param {HTMLIFrameElement} iframe
 */
function blank(iframe) {
  const { parentNode, nextSibling } = iframe;
  iframe.remove();
  iframe.removeAttribute('src');
  parentNode?.insertBefore(iframe, nextSibling);
}

/** @param {unknown} value */
const isLength = (value) => Number.isFinite(value) && /** @type {number} */ (value) >= 0;

/** What a host does for a view has no result but that it was done. @param {unknown} done */
const quietly = async (done) => {
  await done;
  return {};
};

/** @param {unknown} url */
function webAddress(url) {
  const known = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  if (known && /^https?:$/.test(known.protocol)) return known.href;
  throw new RpcError(REFUSED, 'Only http and https links can be opened');
}

/** @param {unknown} described */
const metadataOf = (described) => recordOf(getOwn(getOwn(described, '_meta'), 'ui'));

/** @param {Resource} resource */
function htmlOf({ mimeType, text, blob }) {
  if (mimeType !== undefined && mimeType.replace(/\s/g, '') !== MIME_TYPE) {
    throw new AbpError('INVALID_PARAMS', `The resource is not a view: its type is ${mimeType}`);
  }
  if (typeof text === 'string') return text;
  if (typeof blob === 'string') return new TextDecoder().decode(fromBase64(blob));
  throw new AbpError('INVALID_PARAMS', 'The resource has neither text nor blob');
}

/**
 * The names of the tools that a view may call.
 * @param {Exclude<Server, Function>} server
 */
async function callableOf(server) {
  /** @type {Set<string>} */
  const names = new Set();
  let cursor;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { tools, nextCursor } = await server.request('tools/list', cursor ? { cursor } : {});
    for (const tool of Array.isArray(tools) ? tools : []) {
      const visibility = getOwn(getOwn(getOwn(tool, '_meta'), 'ui'), 'visibility');
      if (!Array.isArray(visibility) || visibility.includes('app')) {
        names.add(/** @type {string} */ (getOwn(tool, 'name')));
      }
    }
    if (!(cursor = nextCursor)) break;
  }
  return names;
}
