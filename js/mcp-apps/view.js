/** A view of MCP Apps: what it offers to its host, and what it asks of it. */
import {
  AbpError,
  invokeReportingErrors,
  requireFunctions,
  requireTexts,
} from '../common/errors.js';
import { getOwn, milliseconds } from '../common/values.js';
import { embedderChannel } from '../rpc/channels.js';
import { RpcError } from '../rpc/errors.js';
import { createPeer } from '../rpc/peer.js';
import { callTool, serveCalls } from './outcome.js';
import {
  METHOD_NOT_FOUND,
  OUTCOME,
  STATE,
  VERSION,
  infoOf,
  knows,
  notification,
  recordOf,
  textsOf,
} from './protocol.js';
import { observeSize } from './size.js';

/** @typedef {import('../rpc/peer.js').RequestOptions} RequestOptions */
/** @typedef {'inline' | 'fullscreen' | 'pip'} DisplayMode */

const DEFAULT_TIMEOUT = 10_000;
/** Members of the host's context that are kept; with more, what the host adds is left out. */
const MAX_CONTEXT = 256;

/** The callbacks for what a host tells, by the notifications' short names. */
const EVENTS = /** @type {const} */ ({
  'tool-input': 'onToolInput',
  'tool-input-partial': 'onToolInputPartial',
  'tool-result': 'onToolResult',
  'tool-cancelled': 'onToolCancelled',
});

/**
 * @typedef {object} ViewOptions
 * @property {{ name: string, version: string }} app who the view is
 * @property {import('./tools.js').Tools} [tools] what it offers to its host, such as `toolsOf(expose(…))`
 * @property {DisplayMode[]} [displayModes] those that it can be shown in
 * @property {(params: { arguments?: any }) => void} [onToolInput] the arguments of the tool's call that the view is for.
 *   Register all that you need here: what a host tells right after the handshake is told once
 * @property {(params: { arguments?: any }) => void} [onToolInputPartial] the same, as far as they are known
 * @property {(result: any) => void} [onToolResult] the result of that call
 * @property {(params: { reason?: string }) => void} [onToolCancelled] that call was cancelled
 * @property {(changes: Record<string, any>, context: Record<string, any>) => void} [onContextChange]
 * @property {(params: { reason?: string }) => unknown} [onTeardown] the host is about to remove the view, and waits for this
 * @property {(method: string, params: any) => void} [onNotification] others, such as `notifications/tools/list_changed` of
 *   the host's server
 * @property {boolean} [autoResize] whether the host is told the document's size (true)
 * @property {string} [stateKey] names what the view keeps; without it `_meta.viewUUID` of the tool's result does
 * @property {string[]} [origins] the exact origins that the page which embeds the view may have (any). Hosts in the web put
 *   a page of their own in between, of another origin
 * @property {number} [timeout] ms that the host has to answer (10000)
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to plain messages, also where the host is ours (`'frames'`)
 * @property {import('../core/rpc-core.js').Limits} [limits]
 */

/**
 * Begins the conversation with the host that has opened this page.
 * @param {ViewOptions} options
 * @returns {Promise<View>} rejects with an AbpError of code TIMEOUT where no host of MCP Apps answers
 */
export async function createView(options) {
  const view = new View(options);
  await view.ready;
  return view;
}

export class View {
  #peer;
  #options;
  #stopSize = () => {};
  /** @type {string | undefined} */
  #key;

  /**
   * Use {@link createView}.
   * @param {ViewOptions} options
   */
  constructor(options) {
    requireTexts('createView needs app', options?.app, 'name', 'version');
    requireFunctions('createView', options, ...Object.values(EVENTS));
    requireFunctions('createView', options, 'onContextChange', 'onTeardown', 'onNotification');
    if (globalThis.window === undefined || parent === window) {
      throw new AbpError('NOT_SUPPORTED', 'createView: no page embeds this one');
    }
    const { origins, upgrade, limits, tools, stateKey } = options;
    this.#options = options;
    this.#key = stateKey;
    /** Who the host is. @type {{ name?: string, version?: string }} */
    this.hostInfo = {};
    /** What the host can do. @type {Record<string, any>} */
    this.hostCapabilities = {};
    /** What the host says of itself and of this view: theme, locale, sizes and so on. @type {Record<string, any>} */
    this.context = {};
    this.#peer = createPeer(embedderChannel({ origins, upgrade }), { dialect: 'mcp', limits });
    /** Resolves when nothing is sent or heard any more, with why. */
    this.closed = this.#peer.closed;
    void this.closed.then(() => this.#ended());
    this.#listen();
    if (tools) this.#offer(tools);
    this.ready = this.#shakeHands();
  }

  #listen() {
    const peer = this.#peer;
    const options = this.#options;
    for (const [name, callback] of Object.entries(EVENTS)) {
      peer.onNotification(notification(name), (params) => {
        if (name === 'tool-result') this.#learnKey(params);
        return options[callback]?.(recordOf(params));
      });
    }
    peer.onNotification(notification('host-context-changed'), (params) => {
      const changes = recordOf(params);
      const merged = { ...this.context, ...changes };
      if (Object.keys(merged).length > MAX_CONTEXT) return;
      this.context = merged;
      options.onContextChange?.(changes, merged);
    });
    if (options.onNotification) {
      peer.onNotification('*', (params, { method }) => options.onNotification?.(method, params));
    }
    peer.handle('ui/resource-teardown', async (params) => {
      this.#stopSize();
      const { reason } = recordOf(params);
      const why = typeof reason === 'string' ? reason : 'The host removes the view';
      // What runs is stopped while the view saves what it has. The host waits for both, whatever they come to.
      const saved = invokeReportingErrors(options.onTeardown, recordOf(params));
      await Promise.allSettled([options.tools?.close(why), saved]);
      return {};
    });
  }

  /** @param {import('./tools.js').Tools} tools */
  #offer(tools) {
    const peer = this.#peer;
    peer.handle('tools/list', () => ({ tools: tools.list() }));
    serveCalls(peer, (params, context) => {
      const asks = getOwn(getOwn(params, '_meta'), 'progressToken') !== undefined;
      const progress = asks ? context.progress : undefined;
      return tools.call(params, { signal: context.signal, whole: this.isOurs, progress });
    });
  }

  async #shakeHands() {
    const { app, tools, displayModes, timeout, autoResize = true } = this.#options;
    const params = {
      protocolVersion: VERSION,
      appInfo: { name: app.name, version: app.version },
      appCapabilities: {
        ...(tools && { tools: { listChanged: true } }),
        ...(displayModes && { availableDisplayModes: displayModes }),
        experimental: { [OUTCOME]: {} },
      },
    };
    const ms = milliseconds(timeout ?? DEFAULT_TIMEOUT);
    let said;
    try {
      said = await this.#peer.request('ui/initialize', params, { timeout: ms });
    } catch (cause) {
      this.close();
      if (getOwn(cause, 'name') !== 'TimeoutError') throw cause;
      const why = `No host of MCP Apps has answered within ${ms} ms: the page around this one may be none`;
      throw new AbpError('TIMEOUT', why, { retryable: true, cause });
    }
    this.hostInfo = infoOf(getOwn(said, 'hostInfo'));
    this.hostCapabilities = recordOf(getOwn(said, 'hostCapabilities'));
    this.context = { ...recordOf(getOwn(said, 'hostContext')), ...this.context };
    tools?.open(this.hostInfo, () => this.toolsChanged());
    this.#peer.notify(notification('initialized'));
    if (autoResize) this.#stopSize = observeSize((size) => this.resize(size));
  }

  #ended() {
    this.#stopSize();
    void this.#options.tools?.close('The host is gone');
  }

  /** Whether the host is made with this library: it tells what becomes of a cancelled call, and keeps state. */
  get isOurs() {
    return knows(this.hostCapabilities, OUTCOME);
  }

  /** Counts of what is pending and what was dropped, for debugging. */
  get counters() {
    return this.#peer.counters;
  }

  // --- What a view asks of its host ----------------------------------------------------------------

  /**
   * Any request.
   * @param {string} method
   * @param {unknown} [params]
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  request(method, params = {}, options = {}) {
    return this.#peer.request(method, params, options);
  }

  /**
   * Any notification.
   * @param {string} method
   * @param {unknown} [params]
   */
  notify(method, params = {}) {
    this.#peer.notify(method, params);
  }

  /**
   * Calls a tool of the server that the view is from.
   * @param {string} name
   * @param {Record<string, any>} [args]
   * @param {import('./outcome.js').ToolOptions} [options]
   * @returns {Promise<any>} MCP's result: a tool that failed says `isError`. Rejects with an {@link RpcError} when the call
   *   was refused, or cancelled: then its name is `AbortError` or `TimeoutError`, and `data.outcome` is `'cancelled'` where
   *   the host tells that the call has stopped, else `'unknown'`
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
   * Says something in the conversation, as the user.
   * @param {string | any[]} content a text, or MCP's blocks
   * @param {RequestOptions} [options]
   */
  async sendMessage(content, options) {
    const params = { role: 'user', content: blocksOf(content) };
    granted(await this.request('ui/message', params, options));
  }

  /**
   * Opens a link outside of the view.
   * @param {string} url
   * @param {RequestOptions} [options]
   */
  async openLink(url, options) {
    granted(await this.request('ui/open-link', { url }, options));
  }

  /**
   * Hands files to the user.
   * @param {unknown[]} contents MCP's blocks: `resource` or `resource_link`
   * @param {RequestOptions} [options]
   */
  async downloadFile(contents, options) {
    granted(await this.request('ui/download-file', { contents }, options));
  }

  /**
   * Replaces what the model knows of the view at its next turn.
   * @param {{ content?: any[], structuredContent?: Record<string, any> }} context
   * @param {RequestOptions} [options]
   */
  async updateModelContext(context, options) {
    granted(await this.request('ui/update-model-context', context, options));
  }

  /**
   * Asks to be shown in another way.
   * @param {DisplayMode} mode
   * @param {RequestOptions} [options]
   * @returns {Promise<DisplayMode>} the one that holds now, which may be another
   */
  async requestDisplayMode(mode, options) {
    const said = await this.request('ui/request-display-mode', { mode }, options);
    return /** @type {DisplayMode} */ (getOwn(said, 'mode'));
  }

  /**
   * Asks the host's model.
   * @param {unknown} params of MCP's `sampling/createMessage`
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async createMessage(params, options) {
    if (getOwn(this.hostCapabilities, 'sampling') === undefined) {
      throw new RpcError(METHOD_NOT_FOUND, 'The host lends no model');
    }
    return this.request('sampling/createMessage', params, options);
  }

  /**
   * Writes to the host's log.
   * @param {'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency'} level
   * @param {unknown} data
   * @param {string} [logger]
   */
  log(level, data, logger) {
    this.notify('notifications/message', { level, data, ...(logger && { logger }) });
  }

  /** Tells the host the size of the view. @param {{ width?: number, height?: number }} size in CSS pixels */
  resize(size) {
    this.notify(notification('size-changed'), size);
  }

  /** Asks the host to remove the view, which it may ignore. */
  requestTeardown() {
    this.notify(notification('request-teardown'));
  }

  /** Tells the host to read the list of tools again: some have become available, or are not any more. */
  toolsChanged() {
    if (!this.#peer.ended) this.notify('notifications/tools/list_changed');
  }

  // --- What outlives the view -----------------------------------------------------------------------

  /**
   * What `saveState` was given when the view was there before.
   * @returns {Promise<any>} undefined if nothing was saved
   */
  async loadState() {
    if (knows(this.hostCapabilities, STATE)) return getOwn(await this.request(STATE), 'state');
    const text = localStorage.getItem(this.#storageKey());
    return text === null ? undefined : JSON.parse(text);
  }

  /**
   * Keeps something until the view is there again: with the host, where that is ours, or else in the browser's storage, which
   * many hosts give to a view for as long as the conversation lasts.
   * @param {unknown} state
   * @returns {Promise<void>} rejects where nothing can be kept
   */
  async saveState(state) {
    if (knows(this.hostCapabilities, STATE)) await this.request(STATE, { state });
    else localStorage.setItem(this.#storageKey(), JSON.stringify(state));
  }

  #storageKey() {
    if (this.#key !== undefined) return `abp-bridge/view/${this.#key}`;
    throw new AbpError(
      'PRECONDITION_FAILED',
      'Nothing names the state: give createView a stateKey, or let the tool’s result have _meta.viewUUID',
    );
  }

  /** @param {unknown} result of the tool's call */
  #learnKey(result) {
    const uuid = getOwn(getOwn(result, '_meta'), 'viewUUID');
    if (typeof uuid === 'string') this.#key ??= uuid;
  }

  /** Ends the conversation: what is pending rejects, and what runs is stopped. */
  close() {
    this.#peer.close();
  }
}

/** @param {string | any[]} content */
const blocksOf = (content) =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** Throws if the host has refused: it may say so by an error or in a result. @param {unknown} result */
function granted(result) {
  if (getOwn(result, 'isError') !== true) return;
  throw new AbpError('PERMISSION_DENIED', textsOf(result).join('\n') || 'The host has refused');
}

/**
 * Applies the host's theme, variables and fonts to a document.
 * @param {Record<string, any>} context of a view
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
  for (const [name, value] of Object.entries(recordOf(getOwn(styles, 'variables')))) {
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
