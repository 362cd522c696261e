/** A host of MCP Apps: shows a view in a sandbox, serves what it asks, and calls its tools. */
import { RpcError, createPeer, saysCancelled, windowChannel } from '@abp-bridge/rpc';
import {
  AbpError,
  Receiver,
  copyRecord,
  firstOf,
  getOwn,
  inAnotherTurn,
  invokeReportingErrors,
  milliseconds,
  requireBounded,
  requireOptions,
  requireTexts,
  unless,
} from 'abp-bridge/driver';
import { callTool, progressOf, tellOutcomes } from './calls.js';
import { Frame } from './frame.js';
import * as mcp from './protocol.js';
import { GONE, ViewTransport } from './relay.js';

/** @import { IncomingRequest } from '@abp-bridge/rpc' */
/** @import { Transport } from 'abp-bridge/driver' */
/** @import { Peer, RequestOptions } from '@abp-bridge/rpc' */
/** @import { HostContext, Params } from './protocol.js' */

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
const SERVER_METHODS = 'resources/read resources/list resources/templates/list prompts/list';
/**
 * What else a view may ask: which option answers it, what that gets, and by what the view is told
 * that it may. Only what the last one returns is told to the view.
 * @type {Record<string, ['onOpenLink' | 'onMessage' | 'onModelContext' | 'onDownloadFile'
 *   | 'onCreateMessage', (params: Params) => any, object]>}
 */
const ASKED = {
  'ui/open-link': ['onOpenLink', ({ url }) => webAddress(url), { openLinks: {} }],
  'ui/message': ['onMessage', ({ content }) => content, { message: { text: {} } }],
  'ui/update-model-context': [
    'onModelContext',
    ({ content, structuredContent }) => mcp.defined({ content, structuredContent }),
    { updateModelContext: { text: {}, structuredContent: {} } },
  ],
  'ui/download-file': ['onDownloadFile', ({ contents }) => contents, { downloadFile: {} }],
  'sampling/createMessage': ['onCreateMessage', (params) => params, { sampling: {} }],
};
/** What is told of the server's call that the view is for: again to a view that begins again. */
const SHORT = ['tool-input-partial', 'tool-input', 'tool-result', 'tool-cancelled'];
const TOLD = SHORT.map(mcp.notification);
const [PARTIAL, INPUT, RESULT, STOPPED] = TOLD;

/**
 * @typedef {object} ServerContext What a request to the server comes with.
 * @property {AbortSignal} signal
 * @property {((info: unknown) => void) | undefined} progress
 */

/**
 * The server that the view is from: anything with `request`, as peers have it, or a function that
 * answers in its place.
 * @typedef {{ request: (method: string, params?: any, options?: RequestOptions) => Promise<any> }
 *   | ((method: string, params: any, context: ServerContext) => any)} Server
 */

/**
 * What `resources/read` gave for the view: one of its `contents`. `blob` is the text in base64,
 * `_meta.ui` has `csp` and `permissions`.
 * @typedef {{ mimeType?: string, text?: string, blob?: string, _meta?: any }} Resource
 */

/**
 * @typedef {object} HostOptions What a host of views may be given.
 * @property {{ name: string, version: string }} host who the host is
 * @property {string | ((server: Server | undefined) => string)} [sandbox] needed with an iframe:
 *   the address of the page between host and view, which calls `serveSandbox`, of another origin
 *   than this page's. Views have an opaque origin in it, unless this is a function: what that
 *   returns is an address whose origin they have, too, and which is for the views of one server
 *   alone
 * @property {Resource} [resource] needed with an iframe: the view
 * @property {{ _meta?: any }} [listed] what `resources/list` says of it; the resource's own
 *   metadata counts more
 * @property {HostContext} [context] what the view is told of the host: theme, locale, sizes,
 *   `toolInfo` and so on
 * @property {Server} [server] answers the view's calls of tools, and reads of resources
 * @property {boolean} [listChanged] whether `host.notify` passes on what the server says of changes
 *   of its lists, by `notifications/tools/list_changed` and so on (false)
 * @property {any} [state] what the view has kept when it was there before: `state` of the host that
 *   it had then
 * @property {(url: string, context: IncomingRequest) => unknown} [onOpenLink] gets addresses of the
 *   web only. This and the following refuse by throwing; without one of them, what it is for is
 *   refused
 * @property {(content: any, context: IncomingRequest) => any} [onMessage] takes a message that the
 *   view adds to the conversation
 * @property {(context: { content?: any, structuredContent?: any }) => any} [onModelContext] takes
 *   what the model is to know
 * @property {(contents: any, context: IncomingRequest) => any} [onDownloadFile] saves what the view
 *   offers for download
 * @property {(mode: 'inline' | 'fullscreen' | 'pip') => any} [onDisplayMode] returns the mode that
 *   holds now. It is asked for modes that the view has declared and, if the context has
 *   `availableDisplayModes`, that are among them
 * @property {(params: any, context: IncomingRequest) => any} [onCreateMessage] answers
 *   `sampling/createMessage`
 * @property {(params: any) => void} [onLog] called with what the view logs
 * @property {(size: { width?: number, height?: number }) => void} [onSize] in CSS pixels; without
 *   it the iframe follows the height
 * @property {() => void} [onRequestTeardown] the view asks to be removed
 * @property {(error: Error) => void} [onClose] the view's document is gone, and nobody here has
 *   closed it
 * @property {number} [timeout] ms that the view has to load and to answer (10000)
 * @property {AbortSignal} [signal] stops waiting for it
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to plain messages, also where the view is
 *   ours (`'frames'`)
 * @property {import('@abp-bridge/rpc').Limits} [limits] of requests that may be pending
 *   and how long messages may be
 */

/**
 * @typedef {HostOptions & Required<Pick<HostOptions, 'sandbox' | 'resource'>>} FrameOptions of a
 *   host with an iframe
 */

/**
 * Shows a view in an iframe that is in the document.
 * @overload
 * @param {HTMLIFrameElement} target whose `src`, `sandbox` and `allow` are set here
 * @param {FrameOptions} options
 * @returns {Promise<Host>} resolves when the view has begun; rejects with an AbpError when it does
 *   not
 */
/**
 * Serves a view that is shown by other means: in a test without a browser, or a host that is not in
 * the web. @overload
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

/** @type {import('abp-bridge/driver').Kinds<HostOptions>} */
const OPTIONS = {
  context: 'an object',
  host: 'an object',
  limits: 'an object of numbers',
  listChanged: 'a boolean',
  listed: 'an object',
  onClose: 'a function',
  onCreateMessage: 'a function',
  onDisplayMode: 'a function',
  onDownloadFile: 'a function',
  onLog: 'a function',
  onMessage: 'a function',
  onModelContext: 'a function',
  onOpenLink: 'a function',
  onRequestTeardown: 'a function',
  onSize: 'a function',
  resource: 'an object',
  sandbox: 'a string or a function',
  server: 'a function or an object',
  signal: 'an AbortSignal',
  state: 'anything',
  timeout: 'a number',
  upgrade: '"frames" or "none"',
};

/** The host of one view. */
export class Host {
  #options;
  /** Leads to the view, where that has no iframe. @type {Transport | undefined} */
  #target;
  /** @type {Frame | undefined} */
  #frame;
  /** Whether the sandbox has the view. */
  #isShown;
  /** @type {Transport} */
  #transport;
  /**
   * What the view's session has of the transport. A view begins more than once: React mounts
   * components twice, say.
   * @type {Receiver | undefined}
   */
  #session;
  /** That of the session. @type {Peer} */
  #peer;
  /** Whether the view has begun its session. */
  #initialized = false;
  /** Whether one ever has. */
  #hasBegun = false;
  #began = () => {};
  #closing = false;
  /** @type {Map<string, unknown>} */
  #told = new Map();
  /** How many requests wait until the view has begun. */
  #early = 0;
  /** What the view is told of its host. @type {HostContext} */
  #context;
  /** @type {Set<ViewTransport>} */
  #transports = new Set();
  /** The tools of the server that the view may call. @type {Promise<Set<unknown>> | undefined} */
  #callable;
  #resolveClosed = (/** @type {Error} */ _why) => {};
  /** Resolves when nothing is sent or heard any more, with why. @type {Promise<Error>} */
  closed = new Promise((resolve) => (this.#resolveClosed = resolve));
  /** Who the view is. @type {{ name?: string, version?: string }} */
  viewInfo = {};
  /** What the view can do. @type {Params} */
  viewCapabilities = {};

  /**
   * Use {@link createHost}.
   * @param {HTMLIFrameElement | Transport} target
   * @param {HostOptions} options
   */
  constructor(target, options) {
    requireTexts('createHost needs host', options?.host, 'name', 'version');
    requireOptions('createHost', options, OPTIONS);
    this.#options = options;
    this.#context = { ...options.context };
    /** What the view keeps, for the host that it has next. @type {any} */
    this.state = options.state;
    if ('post' in target) this.#target = target;
    else this.#frame = new Frame(target, options);
    this.#isShown = !this.#frame;
    this.#transport = this.#open(false);
    this.#peer = this.#beginSession();
    if (this.#frame) addEventListener('message', this.#hear);
    /**
     * Resolves when the view has begun. After it has begun again, it is another promise.
     * @type {Promise<void>}
     */
    this.ready = this.#begin();
    void this.closed.then((why) => this.#ended(why));
  }

  // --- Its sessions ------------------------------------------------------------------------------

  /** @param {boolean} loaded whether the sandbox is there */
  #open(loaded) {
    const frame = /** @type {Frame} */ (this.#frame);
    const { upgrade } = this.#options;
    const opened =
      this.#target ?? windowChannel(frame.iframe, { origin: frame.origin, upgrade, loaded });
    opened.onMessage = (message) => {
      // One that has not begun is asked nothing, so there is nothing to end.
      if (getOwn(message, 'method') === 'ui/initialize' && this.#initialized) this.#beginSession();
      this.#session?.receive(message);
    };
    opened.onUnreadable = (error) => this.#session?.receiveUnreadable(error);
    opened.onClose = (cause) => {
      const isThere = this.#frame?.isThere && !getOwn(this.#transport, 'isReplaced');
      if (!isThere) return this.#endSession(this.#session, cause);
      // The view has closed its end, or another has spoken in its document. It may begin again.
      this.#transport = this.#open(true);
      this.#beginSession(cause);
    };
    return opened;
  }

  /**
   * Begins a session, which takes the place of the one before, if there was one.
   * @param {unknown} [cause] why that ends
   */
  #beginSession(cause) {
    const before = this.#session;
    const transport = this.#transport;
    const session = Object.assign(new Receiver(), {
      /** @type {Transport['post']} */
      post: (...said) => session.stopped || transport.post(...said),
      end: () => session === this.#session && transport.close(),
    });
    this.#session = session;
    const peer = createPeer(session, { dialect: 'mcp', limits: this.#options.limits });
    this.#peer = peer;
    void peer.closed.then((why) => peer === this.#peer && this.#resolveClosed(why));
    peer.onNotification(`${mcp.SANDBOX}proxy-ready`, () => {
      if (!this.#isShown) peer.notify(`${mcp.SANDBOX}resource-ready`, this.#frame?.view);
      this.#isShown = true;
    });
    this.viewInfo = {};
    this.viewCapabilities = {};
    if (this.#initialized) {
      this.#initialized = false;
      this.ready = this.#nextSession();
      this.ready.catch(() => {});
      const why = 'The view was initialized again';
      this.#lose(new AbpError('DISCONNECTED', why, { retryable: true }));
    }
    this.#serve(peer);
    this.#endSession(before, cause);
    return peer;
  }

  /**
   * @param {Receiver | undefined} session
   * @param {unknown} cause none where the view has ended it in an orderly way
   */
  #endSession(session, cause) {
    session?.lose(cause);
    session?.stop();
  }

  /** What the sandbox says of the view's document counts also while the view speaks by a port. */
  #hear = (/** @type {MessageEvent} */ { isTrusted, origin, source, data }) => {
    const isSandbox = isTrusted && origin === this.#frame?.origin && source === this.#frame.window;
    if (isSandbox && getOwn(data, 'method') === mcp.VIEW_REPLACED) this.#peer.close();
  };

  /** Resolves when the view has begun. */
  #nextSession() {
    return new Promise((/** @type {(value?: undefined) => void} */ resolve, reject) => {
      this.#began = resolve;
      void this.closed.then((cause) =>
        reject(new AbpError('DISCONNECTED', 'The view was removed', { retryable: true, cause })),
      );
    });
  }

  async #begin() {
    const { timeout, signal } = this.#options;
    const ms = milliseconds(timeout ?? DEFAULT_TIMEOUT);
    const stop = AbortSignal.any([signal ?? [], ms ? AbortSignal.timeout(ms) : []].flat());
    try {
      await unless(stop, this.#nextSession());
    } catch (error) {
      this.#leave();
      if (!stop.aborted || error !== stop.reason || signal?.aborted) throw error;
      throw new AbpError('TIMEOUT', 'The view did not initialize in time', { retryable: true });
    }
  }

  // --- What a view says --------------------------------------------------------------------------

  /** @param {Peer} peer */
  #serve(peer) {
    const options = this.#options;
    const { host, server, listChanged, onLog, onRequestTeardown } = options;
    const told = listChanged ? { listChanged } : {};
    const listen = (/** @type {string} */ method, /** @type {(params: Params) => void} */ act) =>
      peer.onNotification(method, (params) => this.#initialized && act(copyRecord(params)));
    peer.onNotification(mcp.notification('initialized'), () => {
      if (this.viewInfo.name === undefined || this.#initialized) return;
      this.#initialized = true;
      this.#hasBegun = true;
      for (const [method, params] of this.#told) peer.notify(method, params);
      this.#began();
    });
    listen(mcp.notification('size-changed'), (size) => this.#resize(size));
    listen(mcp.notification('request-teardown'), () => onRequestTeardown?.());
    listen('notifications/message', (params) => onLog?.(params));
    listen('notifications/tools/list_changed', () => {
      for (const transport of this.#transports) void transport.refresh();
    });
    const offered = Object.values(ASKED).map(([name, , told]) => options[name] && told);
    /**
     * @param {string} method
     * @param {(params: Params, context: IncomingRequest) => unknown} handler
     */
    const serve = (method, handler) =>
      peer.handle(method, async (params, context) => {
        await this.#requireBegun(context);
        return (await handler(copyRecord(params), context)) ?? {};
      });
    for (const [method, [name, read]] of Object.entries(ASKED)) {
      if (!options[name]) continue;
      serve(method, async (params, context) => {
        const result = await options[name]?.(read(params), context);
        return name === 'onCreateMessage' ? result : {};
      });
    }
    serve('ui/request-display-mode', ({ mode }) => this.#changeMode(mode));
    // Gives the view what it keeps, which it may replace.
    serve(mcp.STATE, (params) => {
      if (Object.hasOwn(params, 'state')) {
        requireBounded(params.state, MAX_STATE);
        this.state = params.state;
      }
      return { state: this.state };
    });
    peer.handle('ui/initialize', (params) => {
      const { appInfo, appCapabilities } = copyRecord(params);
      this.viewInfo = { name: 'view', ...mcp.infoOf(appInfo) };
      this.viewCapabilities = copyRecord(appCapabilities);
      peer.keepsUnsent = mcp.knows(appCapabilities, mcp.OUTCOME);
      return {
        protocolVersion: mcp.VERSION,
        hostInfo: { name: host.name, version: host.version },
        hostCapabilities: {
          ...(server && { serverTools: told, serverResources: told }),
          ...(onLog && { logging: {} }),
          ...Object.assign({}, ...offered),
          sandbox: this.#frame?.granted ?? {},
          experimental: { [mcp.OUTCOME]: {}, [mcp.STATE]: {} },
        },
        hostContext: this.#context,
      };
    });
    if (!server) return;
    for (const method of SERVER_METHODS.split(' '))
      serve(method, (params, context) => this.#ask(method, params, context));
    serve('tools/call', async ({ name, arguments: args, _meta }, context) => {
      await this.#requireCallable(name);
      // What this connection needs is not the server's.
      const meta = copyRecord(_meta);
      delete meta.progressToken;
      const call = { name, arguments: args, ...(Object.keys(meta).length && { _meta: meta }) };
      return this.#ask('tools/call', call, context);
    });
    tellOutcomes(peer);
  }

  /** @param {Params} size as the view says it */
  #resize({ width, height }) {
    const isLength = (/** @type {any} */ value) => Number.isFinite(value) && value >= 0;
    const size = { ...(isLength(width) && { width }), ...(isLength(height) && { height }) };
    const { onSize } = this.#options;
    if (onSize) return onSize(size);
    const { height: fixed, maxHeight = MAX_HEIGHT } = copyRecord(this.#context.containerDimensions);
    if (size.height === undefined || fixed !== undefined || !this.#frame) return;
    this.#frame.iframe.style.height = `${Math.min(size.height, maxHeight)}px`;
  }

  /**
   * What comes between the handshake and its end waits for that.
   * @param {IncomingRequest} context
   */
  async #requireBegun({ signal }) {
    if (this.#initialized) return;
    if (this.viewInfo.name === undefined || this.#early === MAX_EARLY)
      throw new RpcError(mcp.INVALID_REQUEST, 'The view has not been initialized');
    this.#early++;
    await this.ready.finally(() => this.#early--);
    signal.throwIfAborted();
  }

  /**
   * Asks the server.
   * @param {string} method
   * @param {unknown} params
   * @param {IncomingRequest} context
   */
  async #ask(method, params, context) {
    const { server } = this.#options;
    const { signal } = context;
    const progress = progressOf(context);
    if (typeof server === 'function') return server(method, params, { signal, progress });
    try {
      return await server?.request(method, params, mcp.defined({ signal, onProgress: progress }));
    } catch (error) {
      if (!saysCancelled(error, mcp.CANCELLED)) throw error;
      // A server that is not ours does not say more.
      const data = { outcome: 'unknown', ...copyRecord(getOwn(error, 'data')) };
      throw new RpcError(mcp.CANCELLED, /** @type {Error} */ (error).message, data, {
        cause: error,
      });
    }
  }

  /**
   * A view may call what the server's tools say that it may. A function knows that itself.
   * @param {unknown} name
   */
  async #requireCallable(name) {
    const { server } = this.#options;
    if (!server || typeof server === 'function') return;
    const known = this.#callable;
    if ((await known)?.has(name)) return;
    // It may have been added since. Others may have asked meanwhile.
    if (this.#callable === known) this.#callable = undefined;
    const listing = (this.#callable ??= callableOf(server));
    listing.catch(() => this.#callable === listing && (this.#callable = undefined));
    if ((await listing).has(name)) return;
    const why = `The view may not call the tool ${String(name).slice(0, 200)}`;
    throw new RpcError(mcp.INVALID_PARAMS, why);
  }

  /**
   * A view is shown only in the ways that both sides know.
   * @param {unknown} mode
   */
  async #changeMode(mode) {
    const wanted = /** @type {import('./protocol.js').DisplayMode} */ (mode);
    if (!MODES.includes(wanted)) throw new RpcError(mcp.INVALID_PARAMS, 'Unknown display mode');
    const { displayMode: before = 'inline', availableDisplayModes: ours = MODES } = this.#context;
    const theirs = firstOf(this.viewCapabilities.availableDisplayModes, MODES.length);
    const isKnown = ours.includes(wanted) && theirs.includes(wanted);
    const now = (isKnown && (await this.#options.onDisplayMode?.(wanted))) || before;
    if (now !== before) this.setContext({ displayMode: now });
    return { mode: now };
  }

  // --- What a host says and asks -----------------------------------------------------------------

  /** Whether the view is gone, or was closed. */
  get ended() {
    return this.#peer.ended !== undefined;
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
    await this.#hasSession();
    return this.#peer.request(method, params, options);
  }

  /** Waits until the view has begun, if it is about to. */
  async #hasSession() {
    if (this.#hasBegun && this.viewInfo.name === undefined)
      throw new AbpError('DISCONNECTED', 'The view has ended its session', { retryable: true });
    await this.ready;
  }

  /**
   * Any notification to the view, such as `notifications/tools/list_changed` of the server. A view
   * that is gone is told nothing, and that is no error: see `ended`, `closed` and `onClose`. So it
   * is with all that follow.
   * @param {string} method
   * @param {unknown} [params]
   */
  notify(method, params = {}) {
    if (method === 'notifications/tools/list_changed') this.#callable = undefined;
    const isTold = TOLD.includes(method);
    // The protocol allows none once the arguments are complete.
    if (method === PARTIAL && this.#told.has(INPUT)) return;
    if (method === INPUT) this.#told.delete(PARTIAL);
    if (isTold) this.#told.set(method, params);
    if (this.#initialized) this.#peer.tell(method, params);
    // What a view does not know before it has been answered, it learns from the answer.
    else if (!isTold && this.viewInfo.name !== undefined)
      void this.ready.then(() => this.#peer.tell(method, params)).catch(() => {});
  }

  /**
   * The arguments of the call that the view is for.
   * @param {object} args
   */
  toolInput(args) {
    this.notify(INPUT, { arguments: args });
  }

  /**
   * The same, as far as they are known: before `toolInput`, not after.
   * @param {object} args
   */
  toolInputPartial(args) {
    this.notify(PARTIAL, { arguments: args });
  }

  /**
   * The result of that call.
   * @param {unknown} result
   */
  toolResult(result) {
    this.notify(RESULT, result);
  }

  /**
   * That call was cancelled.
   * @param {string} [reason]
   */
  toolCancelled(reason) {
    this.notify(STOPPED, mcp.defined({ reason }));
  }

  /**
   * Tells the view what has changed in its context.
   * @param {HostContext} changes
   */
  setContext(changes) {
    this.#context = { ...this.#context, ...changes };
    this.notify(mcp.notification('host-context-changed'), changes);
  }

  /**
   * Calls a tool of the view.
   * @param {string} name
   * @param {unknown} [args]
   * @param {import('./calls.js').ToolOptions} [options]
   * @returns {Promise<any>} MCP's result. Rejects with an {@link RpcError}; see `callTool` of a
   *   view
   */
  async callTool(name, args = {}, options = {}) {
    await this.#hasSession();
    const tells = mcp.knows(this.viewCapabilities, mcp.OUTCOME);
    return callTool(this.#peer, { name, arguments: args }, options, tells);
  }

  /**
   * The view's tools as an app: `connect(() => host.transport(), { agent })`.
   * @returns {Transport}
   */
  transport() {
    if (this.ended) throw new AbpError('DISCONNECTED', GONE);
    const transport = new ViewTransport(this, () => this.#transports.delete(transport));
    this.#transports.add(transport);
    return transport;
  }

  // --- The end -----------------------------------------------------------------------------------

  /**
   * Ends the view in order: it is asked to save what it has, then what runs on its behalf is
   * cancelled, then the iframe is emptied, unless another host has taken it.
   * @param {{ reason?: string, timeout?: number, remove?: boolean }} [options] `timeout` is what
   *   the view has for it, in ms (3000); `remove` takes the iframe out of its document (false)
   */
  async close({ reason, timeout = DEFAULT_TEARDOWN, remove = false } = {}) {
    if (this.#closing) return void (await this.closed);
    this.#closing = true;
    if (this.#initialized && !this.ended) {
      const ms = milliseconds(timeout);
      // A view that has nothing to save, or does not answer, is removed as well.
      await this.#peer
        .request('ui/resource-teardown', mcp.defined({ reason }), { timeout: ms })
        .catch(() => {});
      // What the view has answered is still told to agents: that takes no more than this turn.
      await new Promise((resolve) => inAnotherTurn(() => resolve(undefined)));
    }
    this.#leave(remove);
    await this.closed;
  }

  /** @param {boolean} [remove] */
  #leave(remove = false) {
    this.#closing = true;
    this.#peer.close();
    this.#frame?.leave(remove);
  }

  /**
   * What the agents of a session have is over.
   * @param {Error} why
   */
  #lose(why) {
    for (const transport of this.#transports) transport.lose(why);
  }

  /** @param {Error} why */
  #ended(why) {
    this.#lose(why);
    globalThis.removeEventListener?.('message', this.#hear);
    if (!this.#closing && this.#hasBegun) invokeReportingErrors(this.#options.onClose, why);
  }
}

/** @param {unknown} url */
function webAddress(url) {
  const known = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  if (known && /^https?:$/.test(known.protocol)) return known.href;
  throw new RpcError(mcp.REFUSED, 'Only http and https links can be opened');
}

/**
 * The names of the tools that a view may call.
 * @param {Exclude<Server, Function>} server
 */
async function callableOf(server) {
  const names = new Set();
  let cursor;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { tools, nextCursor } = await server.request('tools/list', cursor ? { cursor } : {});
    for (const tool of Array.isArray(tools) ? tools : []) {
      const visibility = getOwn(getOwn(getOwn(tool, '_meta'), 'ui'), 'visibility');
      if (!Array.isArray(visibility) || visibility.includes('app')) names.add(getOwn(tool, 'name'));
    }
    if (!(cursor = nextCursor)) break;
  }
  return names;
}
