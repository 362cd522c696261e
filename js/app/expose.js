/** An app that agents can call, as `expose` returns it: what its program holds of it. */
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
 * @typedef {object} Definition What an app is and can do.
 * @property {import('../types/parts.js').Manifest['app']} app
 * @property {Record<string, import('./registry.js').Capability | import('./registry.js').Handler>}
 *   capabilities by name
 */

/**
 * @typedef {ServeOptions & import('../session/observers.js').ObserverOptions} ExposeOptions What
 *   `expose` may be given.
 */

/**
 * @typedef {object} ServeOptions Whom an app serves, and how.
 * @property {string[]} [origins] who may connect by window messages: exact origins, no wildcards.
 *   Required in a page without a `port`. Elsewhere {@link Exposed#accept} says who is served and,
 *   in a worker, its owner is, or every page that connects to it if it is a shared one
 * @property {MessagePort} [port] the one agent to speak to, instead of window messages
 * @property {boolean} [restart] whether a new `initialize` replaces the session of the same window
 *   (false: it is refused with ALREADY_INITIALIZED until the old session has ended)
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to the published protocol (`'frames'`)
 * @property {import('../driver/abp-core.js').Limits} [limits] of what may be in flight and how long
 *   messages may be
 * @property {(session: import('./connection.js').Session) => void} [onSession] called when a
 *   session begins
 * @property {(session: import('./connection.js').Session) => void} [onSessionEnd] called with the
 *   same object when it has ended, however it has
 * @property {object} [keys] where calls with an `idempotencyKey` are remembered after the app has
 *   ended: what `indexedDBKeys()` of abp-bridge/keys or `sqliteKeys()` of
 *   abp-bridge/keys returns (in memory)
 * @property {import('../types/app.js').WebMcp} [webmcp] makes the capabilities WebMCP tools, too:
 *   what `webmcp()` of @abp-bridge/webmcp returns
 */

/**
 * The way to an agent: a transport, and what makes results fit for it.
 * @typedef {import('../transports/transport.js').Transport
 *   & { prepare?: import('../transports/transport.js').Prepare }} AppTransport
 */

/**
 * An app that has the protocol's interface already, as `window.abp` has, whoever made it.
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

/** An app that agents can call, as `expose` returns it. */
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
     * What its connections are given.
     * @type {import('./connections.js').ConnectionOptions & typeof options}
     */
    this.#options = { ...options, app, registry, observers: new Observers(options, endpoints) };
    const connections = (this.#connections = new Connections(this.#options));
    if (port) connections.accept(portTransport(port));
    if (allowed.size) this.#stop = listenToWindows(connections, allowed);
    else if (!port && !origins) this.#stop = listenToOwners(connections.accept);
    /**
     * The protocol's interface, also installed as `window.abp` where that is free: clients in this
     * page need no origin.
     */
    this.abp = foreign ?? windowAbp(this, app, !!origins);
    /** Resolves when agents are answered. @type {Promise<void>} */
    this.ready = this.#prepare(foreign);
    this.ready.catch(() => {});
    this.#webmcp = invokeReportingErrors(options.webmcp, {
      exposed: this,
      registry: foreign ? undefined : registry,
      origins: [...allowed],
    });
  }

  /**
   * Loads what is needed to answer agents.
   * @param {Interface | undefined} foreign
   */
  async #prepare(foreign) {
    const options = this.#options;
    try {
      await Promise.all([
        ready(),
        options.observers.ready,
        options.keys && this.#connections.memory(),
        // Loaded on demand: most apps are made with this library and do not need it.
        foreign && parts.foreign().then(({ serveForeign }) => serveForeign(foreign, this, options)),
      ]);
    } catch (error) {
      console.error('abp-bridge: this app cannot answer agents:', error);
      // Agents that wait are told, and nothing more is kept for them.
      this.close();
      throw error;
    } finally {
      this.#connections.begin();
    }
  }

  /**
   * Serves one more agent over a transport of its own, such as a socket, until that is closed.
   * @param {AppTransport} transport to one agent
   */
  accept(transport) {
    this.#connections.accept(transport);
  }

  /**
   * The capabilities as agents are told of them, as they stand.
   * @returns {any[]}
   */
  get capabilities() {
    return this.#options.registry.list();
  }

  /** @internal What it was given for its connections. */
  get limits() {
    return this.#options.limits;
  }

  /** The connections that have a session. */
  get sessions() {
    return [...this.#connections].filter((connection) => connection.ready);
  }

  /** Counts of what each connection has in flight and has dropped, for debugging. */
  get counters() {
    return [...this.#connections].map(({ endpoint }) => endpoint.counters);
  }

  /**
   * Calls a listener with each event from now on, as the option `trace` does from the start.
   * @param {import('../types/trace.js').TraceListener} listener is called with each event
   * @returns {Promise<() => void>} what ends it
   */
  observe(listener) {
    return this.#options.observers.add(listener);
  }

  /**
   * Tells every agent that asked for notifications.
   * @param {string} event its name
   * @param {unknown} [data] what can be cloned
   */
  notify(event, data) {
    for (const connection of this.sessions) connection.notify(event, data);
  }

  /**
   * Adds or replaces a capability, and tells the agents.
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
   * Removes a capability, and tells the agents. Calls that run continue.
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
   * The manifest of this app as it stands: see `manifestOf` of abp-bridge/discover.
   * @returns {Promise<import('../types/parts.js').Manifest>}
   */
  async manifest() {
    const { manifestOf } = await parts.manifest();
    return manifestOf({
      app: this.#options.app,
      capabilities: Object.fromEntries(this.#registry.all),
    });
  }

  /** Ends every session: running handlers are aborted, agents are told where they can be. */
  close() {
    this.#stop?.();
    this.#stop = undefined; // another app may serve its origins by then
    this.#webmcp?.close();
    this.#connections.close();
  }
}
