/** An app that agents can call: the result of `expose`. */
import { ready } from '../driver/abp-core.js';
import { invokeReportingErrors, requireTexts } from '../common/errors.js';
import { mistyped, requireOptions } from '../common/check-options.js';
import { parts } from '../common/parts.js';
import { isInterface, windowAbp } from '../page/window-abp.js';
import { exactOrigin } from '../common/origins.js';
import { Observers } from '../session/observers.js';
import { listenToOwners } from '../transports/owners.js';
import { portTransport } from '../transports/port.js';
import { LIST_CHANGED } from '../wire/messages.js';
import { Connections } from './connections.js';
import { listenToWindows } from './listen.js';
import { Registry } from './registry.js';

/**
 * @typedef {object} Definition An app and its capabilities.
 * @property {import('../types/parts.js').Manifest['app']} app
 * @property {Record<string, import('./registry.js').Capability | import('./registry.js').Handler>}
 *   capabilities by name
 */

/**
 * @typedef {ServeOptions & import('../session/observers.js').ObserverOptions} ExposeOptions The
 *   options of `expose`.
 */

/**
 * @typedef {object} ServeOptions The agents that an app serves, and how.
 * @property {string[]} [origins] the origins that may connect by window messages: exact origins, no
 *   wildcards. Required in a page without a `port`. Elsewhere {@link Exposed#accept} adds agents; a
 *   worker serves its owner, a shared worker every page that connects to it
 * @property {MessagePort} [port] serves one agent over this port, instead of window messages
 * @property {boolean} [restart] whether a new `initialize` replaces the session of the same window
 *   (false: it is rejected with ALREADY_INITIALIZED until the old session has ended)
 * @property {'frames' | 'none'} [upgrade] `'none'` uses only the published protocol (`'frames'`)
 * @property {import('../driver/abp-core.js').Limits} [limits] for calls in flight, and for the
 *   length of messages
 * @property {(session: import('./connection.js').Session) => void} [onSession] called when a
 *   session begins
 * @property {(session: import('./connection.js').Session) => void} [onSessionEnd] called with the
 *   same object when the session has ended for any reason
 * @property {object} [keys] a store that remembers calls with an `idempotencyKey` after the app has
 *   ended: `indexedDBKeys()` or `sqliteKeys()` of abp-bridge/keys (default: in memory)
 * @property {import('../types/app.js').WebMcp} [webmcp] also offers the capabilities as WebMCP
 *   tools: the result of `webmcp()` of @abp-bridge/webmcp
 */

/**
 * A transport to an agent, and a function that converts results for it.
 * @typedef {import('../transports/transport.js').Transport
 *   & { prepare?: import('../transports/transport.js').Prepare }} AppTransport
 */

/**
 * A foreign app: an object with the protocol's interface, such as another `window.abp`.
 * @typedef {{ initialize: (params: any) => unknown, call: (...args: any[]) => unknown }} Interface
 */

/** @type {import('../common/check-options.js').Kinds<ExposeOptions>} */
const OPTIONS = {
  debug: 'a boolean',
  keys: 'an object',
  limits: 'an object of numbers',
  onSession: 'a function',
  onSessionEnd: 'a function',
  origins: 'an object',
  port: 'an object',
  recorder: 'an object',
  restart: 'a boolean',
  trace: 'a function',
  upgrade: '"frames" or "none"',
  webmcp: 'a function',
};

/** An app that agents can call: the result of `expose`. */
export class Exposed {
  #options;
  #registry;
  #connections;
  /** @type {(() => void) | undefined} */
  #stop;
  /** @type {ReturnType<import('../types/app.js').WebMcp> | undefined} */
  #webmcp;

  /**
   * Use `expose`.
   * @param {Definition | Interface} definition
   * @param {ExposeOptions} [options]
   */
  constructor(definition, options = {}) {
    const { origins, port } = options;
    const foreign = isInterface(definition) ? definition : undefined;
    const { app, capabilities } = /** @type {Definition} */ (definition ?? {});
    if (!foreign) {
      requireTexts('expose needs app', app, 'id', 'name', 'version');
      parts.requireJson('the app', app, 'app');
      requireOptions(
        'the definition',
        { ...definition },
        { app: 'anything', capabilities: 'anything' },
      );
    }
    if (origins ? !Array.isArray(origins) : !port && globalThis.window) {
      throw mistyped(
        'expose',
        'origins',
        'a list of the exact origins that may call (docs/errors.md#not-an-origin)',
      );
    }
    const allowed = new Set(origins?.map((origin) => exactOrigin(origin)));
    requireOptions('expose', options, OPTIONS);
    const registry = (this.#registry = new Registry(foreign ? {} : capabilities));
    const endpoints = () => [...this.#connections].map(({ endpoint }) => endpoint);
    /**
     * The options of its connections.
     * @type {import('./connections.js').ConnectionOptions & typeof options}
     */
    this.#options = { ...options, app, registry, observers: new Observers(options, endpoints) };
    const connections = (this.#connections = new Connections(this.#options));
    if (port) connections.accept(portTransport(port));
    if (allowed.size) this.#stop = listenToWindows(connections, allowed);
    else if (!port && !origins) this.#stop = listenToOwners(connections.accept);
    /**
     * The protocol's interface, also installed as `window.abp` if there is none yet: clients in
     * this page need no origin.
     */
    this.abp = foreign ?? windowAbp(this, app, !!origins);
    /** Resolves when the app can answer agents. @type {Promise<void>} */
    this.ready = this.#prepare(foreign);
    this.ready.catch(() => {});
    this.#webmcp = invokeReportingErrors(options.webmcp, {
      exposed: this,
      registry: foreign ? undefined : registry,
      origins: [...allowed],
    });
  }

  /**
   * Loads the code that is needed to answer agents.
   * @param {Interface | undefined} foreign
   */
  async #prepare(foreign) {
    const options = this.#options;
    try {
      await Promise.all([
        ready(),
        options.observers.ready,
        options.keys && this.#connections.memory(),
        // Loaded on demand: most apps are made with this library.
        foreign && parts.foreign().then(({ serveForeign }) => serveForeign(foreign, this, options)),
      ]);
    } catch (error) {
      console.error('abp-bridge: this app cannot answer agents:', error);
      // Waiting agents get the error, and nothing more is kept for them.
      this.close();
      throw error;
    } finally {
      this.#connections.begin();
    }
  }

  /**
   * Serves one more agent over its own transport, such as a socket, until that is closed.
   * @param {AppTransport} transport leads to one agent
   */
  accept(transport) {
    this.#connections.accept(transport);
  }

  /**
   * The current descriptions of the capabilities, as agents get them.
   * @returns {any[]}
   */
  get capabilities() {
    return this.#options.registry.list();
  }

  /** @internal The limits of its connections. */
  get limits() {
    return this.#options.limits;
  }

  /** The connections that have a session. */
  get sessions() {
    return [...this.#connections].filter((connection) => connection.ready);
  }

  /** Counters of calls in flight and of dropped messages for each connection, for debugging. */
  get counters() {
    return [...this.#connections].map(({ endpoint }) => endpoint.counters);
  }

  /**
   * Calls a listener with each event from now on, like the option `trace`, which starts with the
   * app.
   * @param {import('../types/trace.js').TraceListener} listener called with each event
   * @returns {Promise<() => void>} removes the listener
   */
  observe(listener) {
    return this.#options.observers.add(listener);
  }

  /**
   * Sends a notification to every agent that accepts them.
   * @param {string} event its name
   * @param {unknown} [data] a value that can be cloned
   */
  notify(event, data) {
    for (const connection of this.sessions) connection.notify(event, data);
  }

  /**
   * Adds or replaces a capability, and notifies the agents.
   * @param {string} name of the capability
   * @param {import('./registry.js').Capability | import('./registry.js').Handler} capability a
   *   handler, or an object that has one
   */
  set(name, capability) {
    const change = this.#registry.all.has(name) ? 'changed' : 'added';
    this.#registry.set(name, capability);
    this.#changed(change, name);
  }

  /**
   * Removes a capability, and notifies the agents. Running calls continue.
   * @param {string} name of the capability
   */
  delete(name) {
    if (this.#registry.all.delete(name)) this.#changed('removed', name);
  }

  /**
   * @param {'added' | 'removed' | 'changed'} change
   * @param {string} name
   */
  #changed(change, name) {
    for (const connection of this.#connections) connection.refresh();
    const shown = this.#registry.describe(name);
    const capabilities = shown ? [shown] : [];
    this.notify(LIST_CHANGED, {
      added: [],
      removed: [],
      changed: [],
      [change]: [name],
      capabilities,
    });
    this.#webmcp?.changed();
  }

  /**
   * The manifest of the app in its current state: see `manifestOf` of abp-bridge/discover.
   * @returns {Promise<import('../types/parts.js').Manifest>}
   */
  async manifest() {
    const { manifestOf } = await parts.manifest();
    return manifestOf({
      app: this.#options.app,
      capabilities: Object.fromEntries(this.#registry.all),
    });
  }

  /** Ends every session: running handlers are aborted, and agents are notified if possible. */
  close() {
    this.#stop?.();
    this.#stop = undefined; // later another app may serve its origins
    this.#webmcp?.close();
    this.#connections.close();
  }
}
