/** A host of MCP Apps: shows a view in a sandbox, serves what it asks, and calls its tools. */
import { fromBase64 } from '../common/base64.js';
import { requireBounded } from '../common/bounds.js';
import {
  AbpError,
  invokeReportingErrors,
  requireFunctions,
  requireTexts,
} from '../common/errors.js';
import { onAbort } from '../common/signals.js';
import { getOwn, isObject, milliseconds } from '../common/values.js';
import { windowChannel } from '../rpc/channels.js';
import { RpcError } from '../rpc/errors.js';
import { createPeer } from '../rpc/peer.js';
import { callTool, serveCalls } from './outcome.js';
import { allowOf } from './policy.js';
import {
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
import { ViewTransport } from './relay.js';

/** @typedef {import('../rpc/incoming-request.js').IncomingRequest} IncomingRequest */
/** @typedef {import('../rpc/peer.js').RequestOptions} RequestOptions */

const DEFAULT_TIMEOUT = 10_000;
/** How long a view may take to save what it has, in ms. */
const DEFAULT_TEARDOWN = 3000;
/** Tools of the server that are looked at, to see which the view may call. */
const MAX_PAGES = 16;
/** How high a view may make its iframe where its context does not say, in CSS pixels. */
const MAX_HEIGHT = 4096;
/** What a view may keep. */
const MAX_STATE = { maxValues: 2 ** 16, maxCharacters: 2 ** 20 };
const MODES = ['inline', 'fullscreen', 'pip'];

/** What a view may ask of the server behind its host. */
const SERVER_METHODS = [
  ...['resources/read', 'resources/list', 'resources/templates/list', 'prompts/list'],
];

/**
 * @typedef {{ signal: AbortSignal, progress: ((info: any) => void) | undefined }} ServerContext
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
 * @typedef {object} HostOptions
 * @property {{ name: string, version: string }} host who the host is
 * @property {string} sandbox the address of the page between host and view, which calls `serveSandbox`. Its origin must not
 *   be this page's
 * @property {Resource} resource the view
 * @property {{ _meta?: any }} [listed] what `resources/list` says of it; the resource's own metadata counts more
 * @property {Record<string, any>} [context] what the view is told of the host: theme, locale, sizes, `toolInfo` and so on
 * @property {Server} [server] answers the view's calls of tools, and reads of resources
 * @property {any} [state] what the view has kept when it was there before: `state` of the host that it had then
 * @property {(url: string, context: IncomingRequest) => any} [onOpenLink] gets addresses of the web only. This and the
 *   following refuse by throwing; without one of them, what it is for is refused
 * @property {(content: any, context: IncomingRequest) => any} [onMessage]
 * @property {(context: { content?: any, structuredContent?: any }) => any} [onModelContext]
 * @property {(contents: any, context: IncomingRequest) => any} [onDownloadFile]
 * @property {(mode: 'inline' | 'fullscreen' | 'pip') => any} [onDisplayMode] returns the mode that holds now
 * @property {(params: any, context: IncomingRequest) => any} [onCreateMessage] answers `sampling/createMessage`
 * @property {(params: any) => void} [onLog]
 * @property {(size: { width?: number, height?: number }) => void} [onSize] in CSS pixels; without it the iframe follows the
 *   view's height
 * @property {() => void} [onRequestTeardown] the view asks to be removed
 * @property {(error: Error) => void} [onClose] the view is gone, and nobody here has closed it
 * @property {number} [timeout] ms that the view has to load and to answer (10000)
 * @property {AbortSignal} [signal] stops waiting for it
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to plain messages, also where the view is ours (`'frames'`)
 * @property {import('../core/rpc-core.js').Limits} [limits]
 */

/**
 * Shows a view in an iframe that is in the document.
 * @param {HTMLIFrameElement} iframe its `src`, `sandbox` and `allow` are set here
 * @param {HostOptions} options
 * @returns {Promise<Host>} resolves when the view has begun; rejects with an AbpError when it does not
 */
export async function createHost(iframe, options) {
  const host = new Host(iframe, options);
  await host.ready;
  return host;
}

const CALLBACKS = [
  ...['onOpenLink', 'onMessage', 'onModelContext', 'onDownloadFile', 'onDisplayMode'],
  ...['onCreateMessage', 'onLog', 'onSize', 'onRequestTeardown', 'onClose'],
];

export class Host {
  #peer;
  #iframe;
  #options;
  #initialized = false;
  #began = () => {};
  #closing = false;
  /** What the view is told of its host. @type {Record<string, any>} */
  #context;
  /** @type {Set<ViewTransport>} */
  #transports = new Set();
  /** The tools of the server that the view may call. @type {Promise<Set<string>> | undefined} */
  #callable;

  /**
   * Use {@link createHost}.
   * @param {HTMLIFrameElement} iframe
   * @param {HostOptions} options
   */
  constructor(iframe, options) {
    requireTexts('createHost needs host', options?.host, 'name', 'version');
    requireFunctions('createHost', options, ...CALLBACKS);
    const { sandbox, resource, listed, context = {}, state, upgrade, limits } = options;
    const { href, origin } = new URL(sandbox, location.href);
    if (origin === location.origin) {
      throw new AbpError('INVALID_PARAMS', 'The sandbox must be of another origin than this page');
    }
    const html = htmlOf(resource);
    const ui = { ...metadataOf(listed), ...metadataOf(resource) };
    this.#iframe = iframe;
    this.#options = options;
    this.#context = { ...context };
    /** Who the view is. @type {{ name?: string, version?: string }} */
    this.viewInfo = {};
    /** What the view can do. @type {Record<string, any>} */
    this.viewCapabilities = {};
    /** What the view keeps, for the host that it has next. @type {any} */
    this.state = state;
    const { csp, permissions } = ui;
    iframe.setAttribute('sandbox', 'allow-scripts allow-same-origin allow-forms');
    iframe.allow = allowOf(permissions, origin);
    // Before the channel is made: what the iframe held is none of its documents.
    iframe.src = href;
    this.#peer = createPeer(windowChannel(iframe, { origin, upgrade }), { dialect: 'mcp', limits });
    this.#peer.onNotification(`${SANDBOX}proxy-ready`, () => {
      this.#peer.removeListener(`${SANDBOX}proxy-ready`);
      this.#peer.notify(`${SANDBOX}resource-ready`, { html, csp, permissions });
    });
    this.#peer.onNotification(`${SANDBOX}view-replaced`, () => this.#lost());
    this.#listen();
    this.#serve();
    /** Resolves when nothing is sent or heard any more, with why. */
    this.closed = this.#peer.closed;
    /** Resolves when the view has begun. @type {Promise<void>} */
    this.ready = this.#begin();
    void this.closed.then((why) => this.#ended(why));
  }

  async #begin() {
    const { timeout, signal } = this.#options;
    const ms = milliseconds(timeout ?? DEFAULT_TIMEOUT);
    /** @type {AbortSignal[]} */
    const signals = [];
    if (signal) signals.push(signal);
    if (ms) signals.push(AbortSignal.timeout(ms));
    const stop = AbortSignal.any(signals);
    try {
      await new Promise((resolve, reject) => {
        this.#began = () => resolve(undefined);
        const give = () =>
          reject(
            signal?.aborted
              ? signal.reason
              : new AbpError('TIMEOUT', 'The view has not begun in time', { retryable: true }),
          );
        if (stop.aborted) give();
        onAbort(stop, { handleEvent: give });
        void this.closed.then((cause) =>
          reject(new AbpError('DISCONNECTED', 'The view is gone', { retryable: true, cause })),
        );
      });
    } catch (error) {
      this.#remove();
      throw error;
    }
  }

  // --- What a view says ------------------------------------------------------------------------------

  #listen() {
    const { onLog, onRequestTeardown } = this.#options;
    const listen = (/** @type {string} */ method, /** @type {(params: any) => void} */ act) =>
      this.#peer.onNotification(method, (params) => this.#initialized && act(recordOf(params)));
    this.#peer.onNotification(notification('initialized'), () => {
      if (this.viewInfo.name === undefined) return;
      this.#initialized = true;
      this.#began();
    });
    listen(notification('size-changed'), (size) => this.#resize(size));
    listen(notification('request-teardown'), () => onRequestTeardown?.());
    listen('notifications/message', (params) => onLog?.(params));
    listen('notifications/tools/list_changed', () => {
      for (const transport of this.#transports) void transport.refresh();
    });
  }

  /** @param {Record<string, any>} size as the view says it */
  #resize({ width, height }) {
    const size = {
      ...(isLength(width) && { width }),
      ...(isLength(height) && { height }),
    };
    const { onSize } = this.#options;
    if (onSize) return onSize(size);
    const { height: fixed, maxHeight = MAX_HEIGHT } = recordOf(this.#context.containerDimensions);
    if (size.height === undefined || fixed !== undefined) return;
    this.#iframe.style.height = `${Math.min(size.height, maxHeight)}px`;
  }

  #serve() {
    const peer = this.#peer;
    const options = this.#options;
    const { server } = options;
    peer.handle('ui/initialize', (params) => this.#initialize(recordOf(params)));
    /**
     * @param {string} method
     * @param {unknown} served whether it is
     * @param {(params: Record<string, any>, context: IncomingRequest) => any} handler
     */
    const serve = (method, served, handler) => {
      if (!served) return;
      peer.handle(method, async (params, context) => {
        this.#requireBegun();
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
      this.#requireBegun();
      await this.#requireCallable(server, params.name);
      // What this connection needs is not the server's.
      const _meta = { ...recordOf(params._meta) };
      for (const key of [OUTCOME, 'progressToken']) delete _meta[key];
      const { name, arguments: args } = params;
      const asked = { name, arguments: args, ...(Object.keys(_meta).length && { _meta }) };
      return this.#ask(server, 'tools/call', asked, context);
    });
  }

  #requireBegun() {
    if (!this.#initialized) throw new RpcError(INVALID_REQUEST, 'The view has not begun');
  }

  /**
   * @param {Server} server
   * @param {string} method
   * @param {any} params
   * @param {IncomingRequest} context
   */
  #ask(server, method, params, context) {
    const { signal } = context;
    const asks = getOwn(getOwn(context.params, '_meta'), 'progressToken') !== undefined;
    const progress = asks ? context.progress : undefined;
    if (typeof server === 'function') return server(method, params, { signal, progress });
    return server.request(method, params, { signal, ...(progress && { onProgress: progress }) });
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

  /** @param {Record<string, any>} params */
  #initialize({ appInfo, appCapabilities }) {
    if (this.viewInfo.name !== undefined) {
      // Another document is there, and the one that this host speaks to has gone.
      queueMicrotask(() => this.#lost());
      throw new RpcError(INVALID_REQUEST, 'The view has begun already');
    }
    const { name = 'view', version } = infoOf(appInfo);
    this.viewInfo = { name, ...(version !== undefined && { version }) };
    this.viewCapabilities = recordOf(appCapabilities);
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
    const { onCreateMessage, onLog, listed, resource } = this.#options;
    const { csp, permissions } = { ...metadataOf(listed), ...metadataOf(resource) };
    return {
      ...(server && { serverTools: { listChanged: true }, serverResources: { listChanged: true } }),
      ...(onOpenLink && { openLinks: {} }),
      ...(onDownloadFile && { downloadFile: {} }),
      ...(onMessage && { message: { text: {} } }),
      ...(onModelContext && { updateModelContext: { text: {}, structuredContent: {} } }),
      ...(onCreateMessage && { sampling: {} }),
      ...(onLog && { logging: {} }),
      sandbox: { ...(csp && { csp }), ...(permissions && { permissions }) },
      experimental: { [OUTCOME]: {}, [STATE]: {} },
    };
  }

  /** @param {unknown} mode */
  async #changeMode(mode) {
    if (!MODES.includes(/** @type {string} */ (mode))) {
      throw new RpcError(INVALID_PARAMS, 'There is no such display mode');
    }
    const now = await this.#options.onDisplayMode?.(/** @type {any} */ (mode));
    return { mode: now ?? this.#context.displayMode ?? 'inline' };
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
   * @param {any} [params]
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async request(method, params = {}, options = {}) {
    await this.ready;
    return this.#peer.request(method, params, options);
  }

  /**
   * Any notification to the view, such as `notifications/tools/list_changed` of the server.
   * @param {string} method
   * @param {any} [params]
   */
  notify(method, params = {}) {
    if (method === 'notifications/tools/list_changed') this.#callable = undefined;
    this.#peer.notify(method, params);
  }

  /** The arguments of the call that the view is for. @param {Record<string, any>} args */
  toolInput(args) {
    this.notify(notification('tool-input'), { arguments: args });
  }

  /** The same, as far as they are known. @param {Record<string, any>} args */
  toolInputPartial(args) {
    this.notify(notification('tool-input-partial'), { arguments: args });
  }

  /** The result of that call. @param {any} result */
  toolResult(result) {
    this.notify(notification('tool-result'), result);
  }

  /** That call was cancelled. @param {string} [reason] */
  toolCancelled(reason) {
    this.notify(notification('tool-cancelled'), reason === undefined ? {} : { reason });
  }

  /** Tells the view what has changed in its context. @param {Record<string, any>} changes */
  setContext(changes) {
    this.#context = { ...this.#context, ...changes };
    this.notify(notification('host-context-changed'), changes);
  }

  /**
   * Calls a tool of the view.
   * @param {string} name
   * @param {any} [args]
   * @param {import('./outcome.js').ToolOptions} [options]
   * @returns {Promise<any>} MCP's result. Rejects with an {@link RpcError}; see `callTool` of a view
   */
  async callTool(name, args = {}, options = {}) {
    await this.ready;
    const tells = knows(this.viewCapabilities, OUTCOME);
    return callTool(this.#peer, { name, arguments: args }, options, tells);
  }

  /**
   * The view's tools as an app: `connect(() => host.transport(), { agent })`.
   * @returns {import('../transports/transport.js').Transport}
   */
  transport() {
    if (this.ended) throw new AbpError('DISCONNECTED', 'The view is gone', { retryable: true });
    const transport = new ViewTransport(this, () => this.#transports.delete(transport));
    this.#transports.add(transport);
    return transport;
  }

  // --- The end -------------------------------------------------------------------------------------

  /**
   * Ends the view in order: it is asked to save what it has, then what runs on its behalf is cancelled, then the iframe is
   * removed.
   * @param {{ reason?: string, timeout?: number }} [options] `timeout` is what the view has for it, in ms (3000)
   */
  async close({ reason, timeout = DEFAULT_TEARDOWN } = {}) {
    if (this.#closing) return void (await this.closed);
    this.#closing = true;
    if (this.#initialized && !this.ended) {
      const params = reason === undefined ? {} : { reason };
      // A view that has nothing to save, or does not answer, is removed as well.
      await this.#peer
        .request('ui/resource-teardown', params, { timeout: milliseconds(timeout) })
        .catch(() => {});
    }
    this.#remove();
    await this.closed;
  }

  #remove() {
    this.#closing = true;
    this.#peer.close();
    this.#iframe.remove();
  }

  /** The view's document has gone. */
  #lost() {
    this.#peer.close();
  }

  /** @param {Error} why */
  #ended(why) {
    for (const transport of this.#transports) transport.lose(why);
    if (!this.#closing && this.#initialized) invokeReportingErrors(this.#options.onClose, why);
  }
}

/** @param {unknown} value */
const isLength = (value) => Number.isFinite(value) && /** @type {number} */ (value) >= 0;

/** What a host does for a view has no result but that it was done. @param {any} done */
const quietly = async (done) => {
  await done;
  return {};
};

/** @param {unknown} url */
function webAddress(url) {
  const known = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  if (known && /^https?:$/.test(known.protocol)) return known.href;
  throw new RpcError(REFUSED, 'Only addresses of the web are opened');
}

/** @param {unknown} described */
const metadataOf = (described) => recordOf(getOwn(getOwn(described, '_meta'), 'ui'));

/** @param {Resource} resource */
function htmlOf({ mimeType, text, blob }) {
  if (mimeType !== undefined && mimeType.replace(/\s/g, '') !== MIME_TYPE) {
    throw new AbpError('INVALID_PARAMS', `The resource is no view: ${mimeType}`);
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
