/** A host of MCP Apps: shows a view in a sandbox, serves its requests, and calls its tools. */
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
import { callTool, progressOf, serveOutcomes } from './calls.js';
import { Frame } from './frame.js';
import * as mcp from './protocol.js';
import { GONE, ViewTransport } from './relay.js';

/** @import { IncomingRequest } from '@abp-bridge/rpc' */
/** @import { Transport } from 'abp-bridge/driver' */
/** @import { Peer, RequestOptions } from '@abp-bridge/rpc' */
/** @import { HostContext, Params } from './protocol.js' */

const DEFAULT_TIMEOUT = 10_000;
/** Ms that a view may take to save its data. */
const DEFAULT_TEARDOWN = 3000;
/** Pages of the server's list of tools that are read, to find those that the view may call. */
const MAX_PAGES = 16;
/** Maximum height to which a view may set its iframe if its context has none, in CSS pixels. */
const MAX_HEIGHT = 4096;
/** Limits of a view's state. */
const MAX_STATE = { maxValues: 2 ** 16, maxCharacters: 2 ** 20 };
/** Requests of a view that may wait until its session has begun. */
const MAX_EARLY = 64;
/** @type {import('./protocol.js').DisplayMode[]} */
const MODES = ['inline', 'fullscreen', 'pip'];

/** Methods that a view may call at the server behind its host. */
const SERVER_METHODS = 'resources/read resources/list resources/templates/list prompts/list';
/**
 * Other methods of a view: the option that answers, its argument, and the capability that the view
 * gets. Only the members in that capability's result are sent to the view.
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
/** Notifications on the server's call that the view is for, repeated when a view begins again. */
const SHORT = ['tool-input-partial', 'tool-input', 'tool-result', 'tool-cancelled'];
const TOLD = SHORT.map(mcp.notification);
const [PARTIAL, INPUT, RESULT, STOPPED] = TOLD;

/**
 * @typedef {object} ServerContext The context of a request to the server.
 * @property {AbortSignal} signal
 * @property {((info: unknown) => void) | undefined} progress
 */

/**
 * The server of the view: any object with `request`, such as a peer, or a function that answers
 * instead.
 * @typedef {{ request: (method: string, params?: any, options?: RequestOptions) => Promise<any> }
 *   | ((method: string, params: any, context: ServerContext) => any)} Server
 */

/**
 * The result of `resources/read` for the view: one of its `contents`. `blob` is the text in base64,
 * `_meta.ui` has `csp` and `permissions`.
 * @typedef {{ mimeType?: string, text?: string, blob?: string, _meta?: any }} Resource
 */

/**
 * @typedef {object} HostOptions Options of a host of views.
 * @property {{ name: string, version: string }} host the host's name
 * @property {string | ((server: Server | undefined) => string)} [sandbox] required with an iframe:
 *   the address of the page between host and view, which calls `serveSandbox`, of another origin
 *   than this page's. Views have an opaque origin in it. If this is a function, it returns the
 *   address for the views of one server alone, and they have the origin of that address
 * @property {Resource} [resource] required with an iframe: the view
 * @property {{ _meta?: any }} [listed] its entry in `resources/list`; the resource's own metadata
 *   take precedence
 * @property {HostContext} [context] data on the host for the view: theme, locale, sizes, `toolInfo`
 *   and so on
 * @property {Server} [server] answers the view's calls of tools, and reads of resources
 * @property {boolean} [listChanged] whether `host.notify` passes on the server's notifications of
 *   changed lists, `notifications/tools/list_changed` and so on (false)
 * @property {any} [state] saved state of the view: `state` of its previous host
 * @property {(url: string, context: IncomingRequest) => unknown} [onOpenLink] gets addresses of the
 *   web only. This and the following callbacks refuse by throwing; without a callback, its request
 *   is refused
 * @property {(content: any, context: IncomingRequest) => any} [onMessage] takes a message that the
 *   view adds to the conversation
 * @property {(context: { content?: any, structuredContent?: any }) => any} [onModelContext] takes
 *   the view's context for the model
 * @property {(contents: any, context: IncomingRequest) => any} [onDownloadFile] saves what the view
 *   offers for download
 * @property {(mode: 'inline' | 'fullscreen' | 'pip') => any} [onDisplayMode] returns the new mode.
 *   It is called for modes that the view has declared and, if the context has
 *   `availableDisplayModes`, that are among them
 * @property {(params: any, context: IncomingRequest) => any} [onCreateMessage] answers
 *   `sampling/createMessage`
 * @property {(params: any) => void} [onLog] called with the view's log messages
 * @property {(size: { width?: number, height?: number }) => void} [onSize] in CSS pixels; without
 *   it the iframe follows the height
 * @property {() => void} [onRequestTeardown] called when the view requests its removal
 * @property {(error: Error) => void} [onClose] called when the view's document is gone without
 *   `close`
 * @property {number} [timeout] ms for the view to load and to answer (10000)
 * @property {AbortSignal} [signal] stops waiting for it
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to plain messages, also with a view of
 *   this library (`'frames'`)
 * @property {import('@abp-bridge/rpc').Limits} [limits] of pending requests and of the length of
 *   messages
 */

/**
 * @typedef {HostOptions & Required<Pick<HostOptions, 'sandbox' | 'resource'>>} FrameOptions of a
 *   host with an iframe
 */

/**
 * Shows a view in an iframe that is in the document.
 * @overload
 * @param {HTMLIFrameElement} target its `src`, `sandbox` and `allow` are set
 * @param {FrameOptions} options
 * @returns {Promise<Host>} resolves when the view has begun; rejects with an AbpError if it does
 *   not
 */
/**
 * Serves a view that is shown by other means: in a test without a browser, or by a host that is not
 * in the web.
 * @overload
 * @param {Transport} target connects to the view
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
  /** Connects to the view, if that has no iframe. @type {Transport | undefined} */
  #target;
  /** @type {Frame | undefined} */
  #frame;
  /** True if the sandbox has the view. */
  #isShown;
  /** @type {Transport} */
  #transport;
  /**
   * The part of the transport for the view's session. A view may begin more than once: for example,
   * React mounts components twice.
   * @type {Receiver | undefined}
   */
  #session;
  /** The peer of the session. @type {Peer} */
  #peer;
  /** True if the view has begun its session. */
  #initialized = false;
  /** True if any session has begun. */
  #hasBegun = false;
  #began = () => {};
  #closing = false;
  /** @type {Map<string, unknown>} */
  #notifications = new Map();
  /** Number of requests that wait until the view has begun. */
  #early = 0;
  /** The view's data on its host. @type {HostContext} */
  #context;
  /** @type {Set<ViewTransport>} */
  #transports = new Set();
  /** The tools of the server that the view may call. @type {Promise<Set<unknown>> | undefined} */
  #callable;
  #resolveClosed = (/** @type {Error} */ _why) => {};
  /** Resolves when the connection has ended, with the reason. @type {Promise<Error>} */
  closed = new Promise((resolve) => (this.#resolveClosed = resolve));
  /** The view's name. @type {{ name?: string, version?: string }} */
  viewInfo = {};
  /** The view's capabilities. @type {Params} */
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
    /** The view's saved state, for its next host. @type {any} */
    this.state = options.state;
    if ('post' in target) this.#target = target;
    else this.#frame = new Frame(target, options);
    this.#isShown = !this.#frame;
    this.#transport = this.#open(false);
    this.#peer = this.#beginSession();
    if (this.#frame) addEventListener('message', this.#onWindowMessage);
    /**
     * Resolves when the view has begun. After it has begun again, it is another promise.
     * @type {Promise<void>}
     */
    this.ready = this.#begin();
    void this.closed.then((why) => this.#ended(why));
  }

  // --- Its sessions ------------------------------------------------------------------------------

  /** @param {boolean} loaded whether the sandbox has loaded */
  #open(loaded) {
    const frame = /** @type {Frame} */ (this.#frame);
    const { upgrade } = this.#options;
    const opened =
      this.#target ?? windowChannel(frame.iframe, { origin: frame.origin, upgrade, loaded });
    opened.onMessage = (message) => {
      // A session that has not begun has nothing to end.
      if (getOwn(message, 'method') === 'ui/initialize' && this.#initialized) this.#beginSession();
      this.#session?.receive(message);
    };
    opened.onUnreadable = (error) => this.#session?.receiveUnreadable(error);
    opened.onClose = (cause) => {
      const isThere = this.#frame?.isThere && !getOwn(this.#transport, 'isReplaced');
      if (!isThere) return this.#endSession(this.#session, cause);
      // The view has closed its end, or another has begun in its document. It may begin again.
      this.#transport = this.#open(true);
      this.#beginSession(cause);
    };
    return opened;
  }

  /**
   * Begins a session, which replaces the one before, if any.
   * @param {unknown} [cause] why the previous one ends
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
   * @param {unknown} cause undefined if the view has ended it in an orderly way
   */
  #endSession(session, cause) {
    session?.lose(cause);
    session?.stop();
  }

  /** Receives the sandbox's messages on the view's document, also while the view uses a port. */
  #onWindowMessage = (/** @type {MessageEvent} */ { isTrusted, origin, source, data }) => {
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

  // --- Requests of a view ------------------------------------------------------------------------

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
      for (const [method, params] of this.#notifications) peer.notify(method, params);
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
    // Returns the view's state, which the view may replace.
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
      // This connection's own metadata are not for the server.
      const meta = copyRecord(_meta);
      delete meta.progressToken;
      const call = { name, arguments: args, ...(Object.keys(meta).length && { _meta: meta }) };
      return this.#ask('tools/call', call, context);
    });
    serveOutcomes(peer);
  }

  /** @param {Params} size from the view */
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
   * Requests during the handshake wait for its end.
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
   * Sends a request to the server.
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
      // A foreign server has no further information.
      const data = { outcome: 'unknown', ...copyRecord(getOwn(error, 'data')) };
      throw new RpcError(mcp.CANCELLED, /** @type {Error} */ (error).message, data, {
        cause: error,
      });
    }
  }

  /**
   * A view may call the tools that the server's list permits. A function checks that itself.
   * @param {unknown} name
   */
  async #requireCallable(name) {
    const { server } = this.#options;
    if (!server || typeof server === 'function') return;
    const known = this.#callable;
    if ((await known)?.has(name)) return;
    // The tool may have been added since. Another call may have updated the list meanwhile.
    if (this.#callable === known) this.#callable = undefined;
    const listing = (this.#callable ??= callableOf(server));
    listing.catch(() => this.#callable === listing && (this.#callable = undefined));
    if ((await listing).has(name)) return;
    const why = `The view may not call the tool ${String(name).slice(0, 200)}`;
    throw new RpcError(mcp.INVALID_PARAMS, why);
  }

  /**
   * A view is shown only in modes that both sides know.
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

  // --- Requests and notifications of a host ------------------------------------------------------

  /** True if the view is gone, or was closed. */
  get ended() {
    return this.#peer.ended !== undefined;
  }

  /** Counters of pending and dropped messages, for debugging. */
  get counters() {
    return this.#peer.counters;
  }

  /**
   * Sends any request to the view.
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
   * Sends any notification to the view, such as `notifications/tools/list_changed` of the server.
   * If the view is gone, nothing is sent, and there is no error: see `ended`, `closed` and
   * `onClose`. The same holds for the following methods.
   * @param {string} method
   * @param {unknown} [params]
   */
  notify(method, params = {}) {
    if (method === 'notifications/tools/list_changed') this.#callable = undefined;
    const isTold = TOLD.includes(method);
    // The protocol allows no partial input after the complete one.
    if (method === PARTIAL && this.#notifications.has(INPUT)) return;
    if (method === INPUT) this.#notifications.delete(PARTIAL);
    if (isTold) this.#notifications.set(method, params);
    if (this.#initialized) this.#peer.tell(method, params);
    // Before its handshake is answered, a view learns the state from the answer.
    else if (!isTold && this.viewInfo.name !== undefined)
      void this.ready.then(() => this.#peer.tell(method, params)).catch(() => {});
  }

  /**
   * Sends the arguments of the call that the view is for.
   * @param {object} args
   */
  toolInput(args) {
    this.notify(INPUT, { arguments: args });
  }

  /**
   * Sends partial arguments: before `toolInput`, not after.
   * @param {object} args
   */
  toolInputPartial(args) {
    this.notify(PARTIAL, { arguments: args });
  }

  /**
   * Sends the result of that call.
   * @param {unknown} result
   */
  toolResult(result) {
    this.notify(RESULT, result);
  }

  /**
   * Reports that the call was cancelled.
   * @param {string} [reason]
   */
  toolCancelled(reason) {
    this.notify(STOPPED, mcp.defined({ reason }));
  }

  /**
   * Sends changes of the context to the view.
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
   * Ends the view in order: the view saves its data, then the calls on its behalf are cancelled,
   * then the iframe is emptied, unless another host has taken it.
   * @param {{ reason?: string, timeout?: number, remove?: boolean }} [options] `timeout`: ms for
   *   the view to save its data (3000); `remove` takes the iframe out of its document (false)
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
      // The view's last answers still reach agents, within this turn.
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
   * Ends the connections of a session's agents.
   * @param {Error} why
   */
  #lose(why) {
    for (const transport of this.#transports) transport.lose(why);
  }

  /** @param {Error} why */
  #ended(why) {
    this.#lose(why);
    globalThis.removeEventListener?.('message', this.#onWindowMessage);
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
