/** Exposes an app: hears its agents, gives each a connection, and installs `window.abp`. */
import { Connection, Registry } from './app.js';
import { ready } from './core.js';
import { AbpError, requireTexts } from './errors.js';
import { own } from './messages.js';
import { exactOrigin } from './origins.js';
import { portTransport } from './transports/port.js';
import { listen, peerTransport } from './transports/window.js';
import { hearOwners } from './transports/worker.js';
import { createInterface, install } from './window-abp.js';

const LIST_CHANGED = 'notifications/capabilities/list_changed';
/** Agents that may hold a connection at once, where anybody of a given origin may come. */
const MOST_PEERS = 64;

/**
 * @typedef {object} Definition
 * @property {import('./manifest.js').Manifest['app']} app
 * @property {Record<string, import('./app.js').Capability | import('./app.js').Handler>} capabilities by name
 */

/**
 * @typedef {object} ExposeOptions
 * @property {string[]} [origins] who may connect by window messages: exact origins, no wildcards. Required in a
 *   page without a `port`. Elsewhere {@link Exposed#accept} says who is served and, in a worker, its owner is,
 *   or every page that connects to it if it is a shared one
 * @property {MessagePort} [port] the one agent to speak to, instead of window messages
 * @property {boolean} [restart] whether a new `initialize` replaces the session of the same window (false:
 *   it is refused with ALREADY_INITIALIZED until the old session has ended)
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to the published protocol (`'frames'`)
 * @property {import('./core.js').Limits} [limits]
 */

/**
 * Makes an app's capabilities callable.
 * @param {Definition} definition
 * @param {ExposeOptions} [options]
 * @returns {Exposed}
 */
export function expose(definition, options) {
  return new Exposed(definition, options);
}

export class Exposed {
  /** @type {Set<Connection>} */
  #connections = new Set();
  #app;
  #registry;
  #options;
  #stop = () => {};
  #closed = false;
  #isReady = false;
  /** What waits for the core to be ready. @type {(() => void)[]} */
  #early = [];

  /**
   * Use {@link expose}.
   * @param {Definition} definition
   * @param {ExposeOptions} [options]
   */
  constructor({ app, capabilities }, options = {}) {
    const { origins, port } = options;
    requireTexts('expose needs app', app, 'id', 'name', 'version');
    if (!port && !origins && globalThis.window) {
      throw new AbpError(
        'INVALID_PARAMS',
        'expose needs origins: the exact origins of the pages that may call this app',
      );
    }
    this.#app = app;
    this.#options = options;
    this.#registry = new Registry(capabilities);
    const allowed = new Set(origins?.map(exactOrigin));
    /** The protocol's interface, also installed as `window.abp` where that is free. */
    this.abp = createInterface(app, {
      exposed: this,
      registry: this.#registry,
      open: (transport) => (this.#closed ? undefined : this.#connect(transport, true)),
    });
    if (allowed.size) {
      this.#stop = listen(allowed, (source, origin, data, ports) =>
        this.#whenReady(() => this.#heard(source, origin, data, ports)),
      );
      addEventListener('pagehide', this.#onHide);
    }
    // Clients of this page itself need no origin.
    if (origins) install(this.abp);
    /** Resolves when agents are answered. @type {Promise<void>} */
    this.ready = ready.then(() => {
      this.#isReady = true;
      for (const act of this.#early.splice(0)) act();
    });
    this.ready.catch((error) => console.error('abp-bridge: this app answers nobody:', error));
    if (port) this.accept(portTransport(port));
    else if (!origins)
      this.#stop = hearOwners((transport) =>
        this.#room() ? this.accept(transport) : transport.close(),
      );
  }

  /** What comes before the core is ready is kept until it is. @param {() => void} act */
  #whenReady(act) {
    if (this.#isReady) act();
    else this.#early.push(act);
  }

  /**
   * Serves one more agent, over a way of its own: the other end of a socket, say. It is served until that is
   * closed.
   * @param {import('./endpoint.js').Transport} transport
   */
  accept(transport) {
    let gone = false;
    /** @type {Connection | undefined} */
    let connection;
    transport.onMessage = (data, ports) =>
      this.#whenReady(() => connection?.endpoint.receive(data, ports));
    transport.onClose = () => (gone = true);
    this.#whenReady(() => {
      if (gone || this.#closed) transport.close();
      else connection = this.#connect(transport);
    });
  }

  /** Whether one more can be served. Who is gone may not have said so: those without a session give way. */
  #room() {
    for (const { ready, endpoint } of this.#connections) {
      if (this.#connections.size < MOST_PEERS) break;
      if (!ready) endpoint.dispose();
    }
    return this.#connections.size < MOST_PEERS;
  }

  /**
   * @param {import('./endpoint.js').Transport} transport
   * @param {boolean} [plain]
   */
  #connect(transport, plain = this.#options.upgrade === 'none') {
    const connection = new Connection({
      ...this.#options,
      app: this.#app,
      registry: this.#registry,
      transport,
      plain,
      onEnd: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
    return connection;
  }

  /**
   * @param {MessageEventSource} source
   * @param {string} origin
   * @param {unknown} data
   * @param {readonly MessagePort[]} ports
   */
  #heard(source, origin, data, ports) {
    if (this.#closed) return;
    for (const port of ports) port.close();
    const type = own(data, 'type');
    // Other traffic is none of ours, and is never answered.
    if (typeof type !== 'string') return;
    let connection = [...this.#connections].find(
      ({ transport }) => transport.target === source && transport.origin === origin,
    );
    if (!connection) {
      if (!/^(initialize|capabilities\/(call|cancel))$/.test(type) || !this.#room()) return;
      connection = this.#connect(peerTransport(source, origin));
    }
    if (connection.onPort && type !== 'initialize') return;
    connection.endpoint.receive(data, [], connection.transport);
  }

  #onHide = (/** @type {PageTransitionEvent} */ event) => {
    for (const { endpoint } of this.#connections) endpoint.leave(event.persisted);
  };

  /** The connections that have a session. */
  get sessions() {
    return [...this.#connections].filter((connection) => connection.ready);
  }

  /** What each connection has in flight, and what it dropped; for people who debug. */
  get counters() {
    return [...this.#connections].map(({ endpoint }) => endpoint.counters);
  }

  /**
   * Tells every agent that asked for notifications.
   * @param {string} event
   * @param {any} [data]
   */
  notify(event, data) {
    for (const connection of this.sessions) connection.notify(event, data);
  }

  /**
   * Adds or replaces a capability, and tells the agents.
   * @param {string} name
   * @param {import('./app.js').Capability | import('./app.js').Handler} capability
   */
  set(name, capability) {
    const had = this.#registry.has(name);
    this.#registry.set(name, capability);
    this.#changed({ added: had ? [] : [name], removed: [], changed: had ? [name] : [] });
  }

  /**
   * Takes a capability away, and tells the agents. Calls that run go on.
   * @param {string} name
   */
  delete(name) {
    if (this.#registry.delete(name)) this.#changed({ added: [], removed: [name], changed: [] });
  }

  /** @param {{ added: string[], removed: string[], changed: string[] }} changes */
  #changed(changes) {
    for (const connection of this.#connections) connection.refresh();
    const capabilities = [...changes.added, ...changes.changed].map((name) =>
      this.#registry.describe(name),
    );
    this.notify(LIST_CHANGED, { ...changes, capabilities });
  }

  /**
   * The manifest of this app as it stands: see `manifestOf` of abp-bridge/discover.
   * @returns {Promise<import('./manifest.js').Manifest>}
   */
  async manifest() {
    // Few pages need it, so it is not a part of what all of them load.
    const { manifestOf } = await import('./manifest.js');
    return manifestOf({ app: this.#app, capabilities: this.#registry.definitions });
  }

  /** Ends every session: running handlers are aborted, agents are told where they can be. */
  close() {
    this.#closed = true;
    this.#stop();
    globalThis.removeEventListener?.('pagehide', this.#onHide);
    for (const { endpoint } of this.#connections) endpoint.close();
    this.#connections.clear();
  }
}
