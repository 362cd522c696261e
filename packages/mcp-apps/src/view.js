/** A view of MCP Apps: its offers to its host, and its requests. */
import { AppChannel, RpcError, createPeer } from '@abp-bridge/rpc';
import {
  AbpError,
  copyRecord,
  getOwn,
  inAnotherTurn,
  invokeReportingErrors,
  milliseconds,
  requireOf,
  requireOptions,
  requireTexts,
  textOf,
  whenAborted,
} from 'abp-bridge/driver';
import { callTool, progressOf, serveOutcomes } from './calls.js';
import * as mcp from './protocol.js';

/** @import { Transport } from 'abp-bridge/driver' */
/** @import { RequestOptions } from '@abp-bridge/rpc' */
/** @import { DisplayMode, HostContext } from './protocol.js' */

const DEFAULT_TIMEOUT = 10_000;
/** Members of the host's context that are kept; further members are dropped. */
const MAX_CONTEXT = 256;

/** The callbacks for the host's notifications, by the short names of these. */
const EVENTS = /** @type {const} */ ({
  'tool-input': 'onToolInput',
  'tool-input-partial': 'onToolInputPartial',
  'tool-result': 'onToolResult',
  'tool-cancelled': 'onToolCancelled',
});

/** @type {import('abp-bridge/driver').Kinds<ViewOptions>} */
const OPTIONS = {
  app: 'an object',
  autoResize: 'a boolean',
  displayModes: 'an object',
  limits: 'an object of numbers',
  onContextChange: 'a function',
  onNotification: 'a function',
  onTeardown: 'a function',
  onToolCancelled: 'a function',
  onToolInput: 'a function',
  onToolInputPartial: 'a function',
  onToolResult: 'a function',
  origins: 'an object',
  signal: 'an AbortSignal',
  stateKey: 'a string',
  timeout: 'a number',
  tools: 'an object',
  transport: 'an object',
  upgrade: '"frames" or "none"',
};

/**
 * @typedef {object} ViewOptions Options of a view.
 * @property {{ name: string, version: string }} app the view's name
 * @property {import('./tools.js').Tools} [tools] offered to its host, such as `toolsOf(expose(…))`
 * @property {DisplayMode[]} [displayModes] that the view supports
 * @property {(params: { arguments?: any }) => void} [onToolInput] called with the arguments of the
 *   tool's call that the view is for. Set all callbacks that you need here: notifications right
 *   after the handshake are sent once
 * @property {(params: { arguments?: any }) => void} [onToolInputPartial] called with partial
 *   arguments
 * @property {(result: any) => void} [onToolResult] called with the result of that call
 * @property {(params: { reason?: string }) => void} [onToolCancelled] called when that call was
 *   cancelled
 * @property {(changes: HostContext, context: HostContext) => void} [onContextChange] called when
 *   the host's theme, size or language has changed
 * @property {(params: { reason?: string }) => unknown} [onTeardown] called before the host removes
 *   the view; the host waits for the result
 * @property {(method: string, params: any) => void} [onNotification] called with other
 *   notifications, such as `notifications/tools/list_changed` of the server
 * @property {boolean} [autoResize] whether the document's size is sent to the host (true)
 * @property {string} [stateKey] names the saved state; by default `_meta.viewUUID` of the tool's
 *   result does
 * @property {string[]} [origins] exact allowed origins of the page that embeds the view (any).
 *   Hosts in the web put a page of their own in between, of another origin
 * @property {number} [timeout] ms for the host to answer (10000)
 * @property {Transport} [transport] connects to the host, instead of the window that embeds this
 *   page: for tests without a browser, and hosts that are not in the web. The view owns it from
 *   then on
 * @property {AbortSignal} [signal] closes the view, also while it waits for the host
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to plain messages, also with a host of
 *   this library (`'frames'`)
 * @property {import('@abp-bridge/rpc').Limits} [limits] of pending requests and of the length of
 *   messages
 */

/**
 * Begins the conversation with the host that embeds this page. A page has one at a time: a second
 * call closes the first view.
 * @param {ViewOptions} options
 * @returns {Promise<View>} rejects with an AbpError: TIMEOUT if no host of MCP Apps answers,
 *   DISCONNECTED if the view was closed meanwhile; with the signal's reason if the signal has
 *   closed it
 */
export async function createView(options) {
  const view = new View(options);
  await view.ready;
  return view;
}

/**
 * The listeners for `view.on`.
 * @typedef {Required<Pick<ViewOptions, typeof EVENTS[keyof typeof EVENTS] | 'onContextChange'
 *   | 'onNotification'>>} Listeners
 */

/** The view of this page; a new one replaces it. @type {View | undefined} */
let current;

/** A view, as `createView` returns it: its offers to its host, and its requests. */
export class View {
  #peer;
  #options;
  #stopSize = () => {};
  /** @type {Map<string, Set<Function>>} */
  #listeners = new Map();
  /** The host's notifications on the call that the view is for. @type {Map<string, unknown>} */
  #notifications = new Map();
  /**
   * Closes the view before running calls are stopped with the page: for the host, the view has
   * gone, and was not cancelled.
   */
  #leave = (/** @type {PageTransitionEvent} */ { persisted }) => void (persisted || this.close());
  /** @type {string | undefined} */
  #key;
  /** The host's name. @type {{ name?: string, version?: string }} */
  hostInfo = {};
  /** The host's capabilities. @type {import('./protocol.js').Params} */
  hostCapabilities = {};
  /**
   * The host's data on itself and on this view: theme, locale, sizes and so on.
   * @type {HostContext}
   */
  context = {};

  /**
   * Use {@link createView}.
   * @param {ViewOptions} options
   */
  constructor(options) {
    requireTexts('createView needs app', options?.app, 'name', 'version');
    requireOptions('createView', options, OPTIONS);
    const { transport } = options;
    if (!transport && (globalThis.window === undefined || parent === window)) {
      throw new AbpError('NOT_SUPPORTED', 'createView: this page is not in an iframe');
    }
    const { origins, upgrade, limits, stateKey, signal } = options;
    signal?.throwIfAborted();
    if (!transport) {
      current?.close();
      current = this;
    }
    this.#options = options;
    this.#key = stateKey;
    const opened = transport ?? new AppChannel({ origins, upgrade });
    this.#peer = createPeer(opened, { dialect: 'mcp', limits });
    /** Resolves when the connection has ended, with the reason. */
    this.closed = this.#peer.closed;
    void this.closed.then(() => this.#ended());
    void this.closed.then(whenAborted(signal, () => this.close()));
    globalThis.addEventListener?.('pagehide', this.#leave);
    this.#listen();
    this.ready = this.#shakeHands();
  }

  #listen() {
    const peer = this.#peer;
    const { tools, onTeardown } = this.#options;
    for (const [name, callback] of Object.entries(EVENTS)) {
      peer.onNotification(mcp.notification(name), (said) => {
        const params = copyRecord(said);
        if (name === 'tool-result') this.#key ??= textOf(getOwn(params._meta, 'viewUUID'));
        if (name === 'tool-input') this.#notifications.delete('onToolInputPartial');
        this.#notifications.set(callback, params);
        this.#notifyListeners(callback, params);
      });
    }
    peer.onNotification(mcp.notification('host-context-changed'), (params) => {
      const changes = copyRecord(params);
      const merged = { ...this.context, ...changes };
      if (Object.keys(merged).length > MAX_CONTEXT) return;
      this.context = merged;
      this.#notifyListeners('onContextChange', changes, merged);
    });
    peer.onNotification('*', (params, { method }) =>
      this.#notifyListeners('onNotification', method, params),
    );
    peer.handle('ui/resource-teardown', async (params) => {
      this.#stopSize();
      const why = textOf(getOwn(params, 'reason')) ?? 'The host removed the view';
      // Running calls are stopped while the view saves its data. The host waits for both, whether
      // they succeed or not.
      const saved = invokeReportingErrors(onTeardown, copyRecord(params));
      await Promise.allSettled([tools?.close(why), saved]);
      // The calls' answers go before this one, after which the host receives nothing.
      await new Promise((resolve) => inAnotherTurn(() => resolve(undefined)));
      return {};
    });
    if (!tools) return;
    peer.handle('tools/list', () => ({ tools: tools.list() }));
    serveOutcomes(peer);
    peer.handle('tools/call', (params, context) => {
      const { signal } = context;
      const asked = { signal, whole: this.isOurs, progress: progressOf(context) };
      return tools.call(copyRecord(params), asked);
    });
  }

  async #shakeHands() {
    const { app, tools, displayModes, timeout, autoResize = true } = this.#options;
    const params = {
      protocolVersion: mcp.VERSION,
      appInfo: { name: app.name, version: app.version },
      appCapabilities: mcp.defined({
        tools: tools ? { listChanged: true } : undefined,
        availableDisplayModes: displayModes ?? undefined,
        experimental: { [mcp.OUTCOME]: {} },
      }),
    };
    const ms = milliseconds(timeout ?? DEFAULT_TIMEOUT);
    let answer;
    try {
      answer = await this.#peer.request('ui/initialize', params, { timeout: ms });
    } catch (cause) {
      if (this.#peer.ended) {
        this.#options.signal?.throwIfAborted();
        const why = 'The view was closed before its host had answered';
        throw new AbpError('DISCONNECTED', why, { cause });
      }
      this.close();
      if (getOwn(cause, 'name') !== 'TimeoutError') throw cause;
      const why = `No MCP Apps host answered within ${ms} ms: the embedding page may not be one`;
      throw new AbpError('TIMEOUT', why, { retryable: true, cause });
    }
    this.hostInfo = mcp.infoOf(getOwn(answer, 'hostInfo'));
    this.hostCapabilities = copyRecord(getOwn(answer, 'hostCapabilities'));
    this.context = { ...copyRecord(getOwn(answer, 'hostContext')), ...this.context };
    this.#peer.keepsUnsent = this.isOurs;
    tools?.open(this.hostInfo, () => this.toolsChanged());
    this.#peer.notify(mcp.notification('initialized'));
    if (autoResize && globalThis.document)
      this.#stopSize = observeSize((size) => this.resize(size));
  }

  #ended() {
    this.#stopSize();
    globalThis.removeEventListener?.('pagehide', this.#leave);
    void this.#options.tools?.close('The host disconnected');
  }

  /**
   * True if the host is of this library: it reports what becomes of a cancelled call, and keeps
   * state.
   */
  get isOurs() {
    return mcp.knows(this.hostCapabilities, mcp.OUTCOME);
  }

  /** Counters of pending and dropped messages, for debugging. */
  get counters() {
    return this.#peer.counters;
  }

  /**
   * Adds a listener for the host's notifications, beside those of the options and others.
   * @template {keyof Listeners} E
   * @param {E} event a name as in the options, such as `'onToolResult'`. Earlier notifications on
   *   the view's call are repeated for this listener
   * @param {Listeners[E]} listener
   * @returns {() => void} removes it
   */
  on(event, listener) {
    requireOf('view.on', 'listener', 'a function', listener);
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
    const tellAgain = () =>
      listeners.has(listener) &&
      invokeReportingErrors(/** @type {any} */ (listener), this.#notifications.get(event));
    if (this.#notifications.has(event)) queueMicrotask(tellAgain);
    return () => void listeners.delete(listener);
  }

  /**
   * @param {keyof Listeners} event
   * @param {unknown[]} told
   */
  #notifyListeners(event, ...told) {
    for (const listener of [this.#options[event], ...(this.#listeners.get(event) ?? [])])
      invokeReportingErrors(/** @type {any} */ (listener), ...told);
  }

  /** Applies the host's present theme, variables and fonts to the document. */
  applyStyles() {
    applyStyles(this.context);
  }

  // --- Requests of a view ------------------------------------------------------------------------

  /**
   * Sends any request.
   * @param {string} method
   * @param {unknown} [params]
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  request(method, params = {}, options = {}) {
    return this.#peer.request(method, params, options);
  }

  /**
   * Sends any notification. If the host is gone, nothing is sent, and there is no error.
   * @param {string} method
   * @param {unknown} [params]
   */
  notify(method, params = {}) {
    this.#peer.tell(method, params);
  }

  /**
   * Calls a tool of the view's server.
   * @param {string} name
   * @param {object} [args]
   * @param {import('./calls.js').ToolOptions} [options]
   * @returns {Promise<any>} MCP's result: that of a tool that failed has `isError`. Rejects with an
   *   {@link RpcError} when the call was rejected, or cancelled: then its name is `AbortError` or
   *   `TimeoutError`, and `data` is what became of the work, `{ outcome, report }`: `'unknown'` if
   *   the host does not report it
   */
  callTool(name, args = {}, options = {}) {
    return callTool(this.#peer, { name, arguments: args }, options, this.isOurs);
  }

  /**
   * Reads a resource of the server.
   * @param {string} uri
   * @param {RequestOptions} [options]
   * @returns {Promise<any>} `{ contents }`
   */
  readResource(uri, options) {
    return this.request('resources/read', { uri }, options);
  }

  /**
   * Adds a message to the conversation, as the user.
   * @param {string | unknown[]} content a text, or MCP's blocks
   * @param {RequestOptions} [options]
   */
  sendMessage(content, options) {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    return this.#ask('ui/message', { role: 'user', content: blocks }, options);
  }

  /**
   * Opens a link outside of the view.
   * @param {string} url
   * @param {RequestOptions} [options]
   */
  openLink(url, options) {
    return this.#ask('ui/open-link', { url }, options);
  }

  /**
   * Offers files to the user for download.
   * @param {unknown[]} contents MCP's blocks: `resource` or `resource_link`
   * @param {RequestOptions} [options]
   */
  downloadFile(contents, options) {
    return this.#ask('ui/download-file', { contents }, options);
  }

  /**
   * Replaces the view's context for the model's next turn.
   * @param {{ content?: unknown[], structuredContent?: object }} context
   * @param {RequestOptions} [options]
   */
  updateModelContext(context, options) {
    return this.#ask('ui/update-model-context', context, options);
  }

  /**
   * Sends a request without a result. The host may refuse by an error or in a result.
   * @param {string} method
   * @param {object} params
   * @param {RequestOptions} [options]
   */
  async #ask(method, params, options) {
    const result = await this.request(method, params, options);
    if (getOwn(result, 'isError') !== true) return;
    throw new AbpError('PERMISSION_DENIED', mcp.textsOf(result).join('\n') || 'The host refused');
  }

  /**
   * Requests another display mode. If the host has listed its modes, no other is requested.
   * @param {DisplayMode} mode
   * @param {RequestOptions} [options]
   * @returns {Promise<DisplayMode>} the new mode, which may be another
   */
  async requestDisplayMode(mode, options) {
    const { displayMode = 'inline', availableDisplayModes: theirs } = this.context;
    if (Array.isArray(theirs) && !theirs.includes(mode)) return displayMode;
    const answer = await this.request('ui/request-display-mode', { mode }, options);
    return /** @type {DisplayMode} */ (getOwn(answer, 'mode'));
  }

  /**
   * Sends a request to the host's model.
   * @param {unknown} params of MCP's `sampling/createMessage`
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async createMessage(params, options) {
    if (getOwn(this.hostCapabilities, 'sampling') === undefined) {
      throw new RpcError(mcp.METHOD_NOT_FOUND, 'The host does not support sampling');
    }
    return this.request('sampling/createMessage', params, options);
  }

  /**
   * Writes to the host's log.
   * @param {'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency'}
   *   level
   * @param {unknown} data
   * @param {string} [logger]
   */
  log(level, data, logger) {
    this.notify('notifications/message', { level, data, ...(logger && { logger }) });
  }

  /**
   * Sends the size of the view to the host.
   * @param {{ width?: number, height?: number }} size in CSS pixels
   */
  resize(size) {
    this.notify(mcp.notification('size-changed'), size);
  }

  /** Asks the host to remove the view, which it may ignore. */
  requestTeardown() {
    this.notify(mcp.notification('request-teardown'));
  }

  /**
   * Asks the host to read the list of tools again, after some have become available or unavailable.
   */
  toolsChanged() {
    this.notify('notifications/tools/list_changed');
  }

  // --- State that outlives the view --------------------------------------------------------------

  /**
   * The value of the last `saveState`, also of an earlier view.
   * @returns {Promise<any>} undefined if nothing was saved
   */
  async loadState() {
    if (mcp.knows(this.hostCapabilities, mcp.STATE))
      return getOwn(await this.request(mcp.STATE), 'state');
    const text = localStorage.getItem(this.#storageKey());
    return text === null ? undefined : JSON.parse(text);
  }

  /**
   * Saves a value until the view is opened again: with a host of this library, or else in the
   * browser's storage, which many hosts keep for a view for as long as the conversation lasts.
   * @param {unknown} state
   * @returns {Promise<void>} rejects if nothing can be saved
   */
  async saveState(state) {
    if (mcp.knows(this.hostCapabilities, mcp.STATE)) await this.request(mcp.STATE, { state });
    else localStorage.setItem(this.#storageKey(), JSON.stringify(state));
  }

  #storageKey() {
    if (this.#key !== undefined) return `abp-bridge/view/${this.#key}`;
    const why = "give createView a stateKey, or set _meta.viewUUID in the tool's result";
    throw new AbpError('PRECONDITION_FAILED', `The state needs a name: ${why}`);
  }

  /** Ends the conversation: pending requests reject, and running calls are stopped. */
  close() {
    this.#peer.close();
  }
}

/**
 * Applies the host's theme, variables and fonts to a document.
 * @param {HostContext} context of a view
 * @param {Document} [page]
 */
export function applyStyles(context, page = document) {
  const { documentElement: root } = page;
  const theme = getOwn(context, 'theme');
  if (theme === 'light' || theme === 'dark') {
    root.dataset.theme = theme;
    root.style.colorScheme = theme;
  }
  const styles = getOwn(context, 'styles');
  for (const [name, value] of Object.entries(copyRecord(getOwn(styles, 'variables')))) {
    if (name.startsWith('--') && typeof value === 'string') root.style.setProperty(name, value);
  }
  const fonts = getOwn(getOwn(styles, 'css'), 'fonts');
  if (typeof fonts !== 'string') return;
  const id = 'abp-bridge-host-fonts';
  const style = page.getElementById(id) ?? page.createElement('style');
  style.id = id;
  style.textContent = fonts;
  page.head.append(style);
}

/**
 * Calls `tell` with the size of the document, at first and after each change.
 * @param {(size: { width: number, height: number }) => void} tell
 * @returns {() => void} stops it
 */
function observeSize(tell) {
  const { documentElement: root } = document;
  let told = '';
  let request = 0;
  const measure = () => {
    request = 0;
    // Measure the height without that of the frame: a frame that has grown would never shrink
    // again.
    const { height: before } = root.style;
    root.style.height = 'max-content';
    const { height } = root.getBoundingClientRect();
    root.style.height = before;
    const size = { width: Math.ceil(innerWidth), height: Math.ceil(height) };
    const text = `${size.width} ${size.height}`;
    if (text === told) return;
    told = text;
    tell(size);
  };
  const soon = () => (request ||= requestAnimationFrame(measure));
  const observer = new ResizeObserver(soon);
  observer.observe(root);
  if (document.body) observer.observe(document.body);
  return () => {
    observer.disconnect();
    cancelAnimationFrame(request);
  };
}
