/** Exposes an app: hears its agents, gives each a connection, and installs `window.abp`. */
import { Connection, Registry } from './app.js';
import { ready } from './core.js';
import { AbpError } from './errors.js';
import { own } from './messages.js';
import { exactOrigin } from './origins.js';
import { portTransport } from './transports/port.js';
import { listen, peerTransport } from './transports/window.js';
import { hearOwners } from './transports/worker.js';
import { createInterface, install } from './window-abp.js';

const LIST_CHANGED = 'notifications/capabilities/list_changed';
/** Windows, or pages of a shared worker, that may hold a connection at once. */
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
  /** By window, then by origin. @type {Map<MessageEventSource, Map<string, Connection>>} */
  #peers = new Map();
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
    if (![app?.id, app?.name, app?.version].every((text) => typeof text === 'string')) {
      throw new AbpError('INVALID_PARAMS', 'expose needs app: { id, name, version }');
    }
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
    else if (!origins) this.#stop = hearOwners((transport) => this.#joined(transport));
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
    /** @type {[unknown, readonly MessagePort[]][]} */
    const waiting = [];
    transport.onMessage = (data, ports) => waiting.push([data, ports]);
    let gone = false;
    transport.onClose = () => (gone = true);
    this.#whenReady(() => {
      if (gone || this.#closed) return transport.close();
      const { endpoint } = this.#connect(transport, this.#options.upgrade === 'none');
      for (const [data, ports] of waiting) endpoint.receive(data, ports);
    });
  }

  /**
   * The owner of this worker, or one more page where that is shared. A page does not say when it is gone, so
   * those without a session give way.
   * @param {import('./endpoint.js').Transport} transport
   */
  #joined(transport) {
    for (const { ready, endpoint } of this.#connections) {
      if (this.#connections.size < MOST_PEERS) break;
      if (!ready) endpoint.dispose();
    }
    if (this.#connections.size < MOST_PEERS) this.accept(transport);
    else transport.close();
  }

  /**
   * @param {import('./endpoint.js').Transport} transport
   * @param {boolean} plain
   */
  #connect(transport, plain) {
    const connection = new Connection({
      app: this.#app,
      registry: this.#registry,
      transport,
      plain,
      limits: this.#options.limits,
      restart: this.#options.restart,
      onEnd: (ended) => this.#connections.delete(ended),
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
    let connection = this.#peers.get(source)?.get(origin);
    // One that failed has ended: the same window may begin anew.
    if (!connection || !this.#connections.has(connection)) {
      if (!/^(initialize|capabilities\/(call|cancel))$/.test(type) || !this.#room()) return;
      const transport = peerTransport(source, origin);
      connection = this.#connect(transport, this.#options.upgrade === 'none');
      const byOrigin = this.#peers.get(source) ?? new Map();
      this.#peers.set(source, byOrigin.set(origin, connection));
    }
    if (connection.onPort && type !== 'initialize') return;
    connection.endpoint.receive(data, [], connection.transport);
  }

  /** Whether one more window can be served: those without a session give way. */
  #room() {
    for (const [source, byOrigin] of this.#peers) {
      if (this.#connections.size < MOST_PEERS) break;
      if ([...byOrigin.values()].some((connection) => connection.ready)) continue;
      for (const { endpoint } of byOrigin.values()) endpoint.dispose();
      this.#peers.delete(source);
    }
    return this.#connections.size < MOST_PEERS;
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
    const capabilities = this.#registry.list().map((capability) => [capability.name, capability]);
    return manifestOf({ app: this.#app, capabilities: Object.fromEntries(capabilities) });
  }

  /** Ends every session: running handlers are aborted, agents are told where they can be. */
  close() {
    this.#closed = true;
    this.#stop();
    globalThis.removeEventListener?.('pagehide', this.#onHide);
    for (const { endpoint } of this.#connections) endpoint.close();
    this.#connections.clear();
    this.#peers.clear();
  }
}
