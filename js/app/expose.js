/** Exposes an app: hears its agents, gives each a connection, and installs `window.abp`. */
import { Connection } from './connection.js';
import { Registry } from './registry.js';
import * as abp from '../driver/abp-boundary.js';
import { ready } from '../driver/abp-core.js';
import { invokeReportingErrors, loadOnce, loadPart, requireTexts } from '../common/errors.js';
import { mistyped, requireOptions } from '../common/check-options.js';
import { tell } from '../common/development.js';
import { parts } from '../common/parts.js';
import { getOwn } from '../common/values.js';
import { exactOrigin } from '../common/origins.js';
import { Observers } from '../session/observers.js';
import { listen } from '../transports/listen.js';
import { portTransport } from '../transports/port.js';
import { peerTransport } from '../transports/window.js';
import { listenToOwners } from '../transports/owners.js';
import { LIST_CHANGED } from '../wire/messages.js';
import { serveWindow } from './served.js';

/** Connections that agents of the given origins may have at once. */
const MAX_PEERS = 64;

const nothing = () => {};

/**
 * @typedef {object} Definition What an app is and can do.
 * @property {import('../types/parts.js').Manifest['app']} app
 * @property {Record<string, import('./registry.js').Capability | import('./registry.js').Handler>} capabilities by name
 */

/** @typedef {ServeOptions & import('../session/observers.js').ObserverOptions} ExposeOptions What `expose` may be given. */

/**
 * @typedef {object} ServeOptions Whom an app serves, and how.
 * @property {string[]} [origins] who may connect by window messages: exact origins, no wildcards. Required in a
 *   page without a `port`. Elsewhere {@link Exposed#accept} says who is served and, in a worker, its owner is,
 *   or every page that connects to it if it is a shared one
 * @property {MessagePort} [port] the one agent to speak to, instead of window messages
 * @property {boolean} [restart] whether a new `initialize` replaces the session of the same window (false:
 *   it is refused with ALREADY_INITIALIZED until the old session has ended)
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to the published protocol (`'frames'`)
 * @property {import('../driver/abp-core.js').Limits} [limits] of what may be in flight and how long messages may be
 * @property {(session: import('./connection.js').Session) => void} [onSession] called when a session begins
 * @property {(session: import('./connection.js').Session) => void} [onSessionEnd] called with the same object when it has
 *   ended, however it has
 * @property {object} [keys] where calls with an `idempotencyKey` are remembered after the app has ended: what
 *   `indexedDBKeys()` of abp-bridge/keys-indexeddb or `sqliteKeys()` of abp-bridge/keys-sqlite returns (in memory)
 * @property {import('../types/app.js').WebMcp} [webmcp] makes the capabilities WebMCP tools, too: what `webmcp()` of
 *   abp-bridge/webmcp returns
 */

/**
 * The way to an agent: a transport, and what makes results fit for it.
 * @typedef {import('../transports/transport.js').Transport & { prepare?: import('../transports/transport.js').Prepare }} AppTransport
 */

/**
 * An app that has the protocol's interface already, as `window.abp` has, whoever made it.
 * @typedef {{ initialize: (params: any) => unknown, call: (...args: any[]) => unknown }} Interface
 */

/** @param {any} definition @returns {definition is Interface} */
export const isInterface = (definition) =>
  typeof definition?.initialize === 'function' && typeof definition.call === 'function';

/** @type {import('../common/check-options.js').Kinds<ExposeOptions>} */
// prettier-ignore
const OPTIONS = {
  debug: 'a boolean', keys: 'an object', limits: 'an object of numbers', onSession: 'a function', onSessionEnd: 'a function',
  origins: 'an object', port: 'an object', recorder: 'an object', restart: 'a boolean', trace: 'a function',
  upgrade: '"frames" or "none"', webmcp: 'a function',
};

/** An app that agents can call, as `expose` returns it. */
export class Exposed {
  /** @type {Set<Connection>} */
  #connections = new Set();
  #app;
  #registry;
  #options;
  #observers;
  #stop = nothing;
  /** @type {ReturnType<import('../types/app.js').WebMcp> | undefined} */
  #webmcp;
  #closed = false;
  /**
   * What agents are told of and call: the registry, or an app of others' making once that is loaded.
   * @type {import('./registry.js').Capabilities & { end?(): unknown }}
   */
  #served;
  #isReady = false;
  /** What is remembered for agents that come back. Most agents ask for nothing. @type {import('../types/parts.js').Memory | undefined} */
  #memory;
  /** What agents are told of the memory of keys. @type {{ id: string, rememberFor: number } | undefined} */
  #named;

  /** Use `expose`. @param {Definition | Interface} definition @param {ExposeOptions} [options] */
  constructor(definition, options = {}) {
    const { origins, port, keys, limits } = options;
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
    this.#app = app;
    this.#options = options;
    const { rememberFor = abp.DEFAULT_REMEMBER_MS } = limits ?? {};
    // It is no secret, only another one each time.
    if (!keys) this.#named = { id: String(Math.random()), rememberFor };
    this.#observers = new Observers(options, () => [...this.#connections].map(({ endpoint }) => endpoint));
    this.#registry = new Registry(foreign ? {} : capabilities);
    this.#served = this.#registry;
    if (allowed.size) this.#stop = this.#serve(allowed);
    /** The protocol's interface, also installed as `window.abp` where that is free: clients in this page need no origin. */
    this.abp = foreign ?? parts.windowAbp(this, app, !!origins);
    /** Resolves when agents are answered. @type {Promise<void>} */
    this.ready = this.#prepare(foreign);
    this.ready.catch(nothing);
    this.#webmcp = invokeReportingErrors(options.webmcp, {
      exposed: this,
      registry: foreign ? undefined : this.#registry,
      origins: [...allowed],
    });
    if (port) this.accept(portTransport(port));
    else if (!origins)
      this.#stop = listenToOwners((transport, isOneOfMany) => {
        if (isOneOfMany && !this.#room()) transport.close();
        else this.accept(transport);
      });
  }

  /** Serves the pages of these origins. @param {Set<string>} origins @returns {() => void} what ends it */
  #serve(origins) {
    const stop = serveWindow(
      origins,
      (...heard) => this.#whenReady(() => this.#heard(...heard)),
      (origin, event) => {
        // So that the app's author finds out.
        if (getOwn(event.data, 'type') === abp.TYPE_INITIALIZE)
          tell((dev) => dev.tellRefused(/** @type {string[]} */ (this.#options.origins), origin));
      },
    );
    const hide = (/** @type {PageTransitionEvent} */ { persisted }) => {
      for (const connection of this.#connections) connection.endpoint.leave(persisted);
    };
    const stay = listen([[globalThis, 'pagehide', hide]]);
    return () => {
      stay();
      stop();
    };
  }

  /** Loads what is needed to answer agents. @param {Interface | undefined} foreign */
  async #prepare(foreign) {
    try {
      await Promise.all([
        ready(),
        this.#observers.ready,
        this.#options.keys &&
          this.#remembering().then((memory) => memory.open((named) => (this.#named = named))),
        // Loaded on demand: most apps are made with this library and do not need it.
        foreign &&
          parts.foreign().then(({ foreignCapabilities }) => {
            this.#served = foreignCapabilities(foreign, this);
          }),
      ]);
    } catch (error) {
      console.error('abp-bridge: this app cannot answer agents:', error);
      // Agents that wait are told, and nothing more is kept for them.
      this.close();
      throw error;
    } finally {
      this.#isReady = true;
    }
  }

  /** Does something as soon as the core is ready. @param {() => void} act */
  #whenReady(act) {
    if (this.#isReady) return act();
    const reporting = () => invokeReportingErrors(act);
    return void this.ready.then(reporting, reporting);
  }

  /** Serves one more agent over a transport of its own, such as a socket, until that is closed. @param {AppTransport} transport to one agent */
  accept(transport) {
    let gone = false;
    /** @type {Connection | undefined} */
    let connection;
    transport.onMessage = (...heard) => this.#whenReady(() => connection?.endpoint.receive(...heard));
    transport.onClose = () => (gone = true);
    this.#whenReady(() => {
      if (gone || this.#closed) transport.close();
      else connection = this.#connect(transport);
    });
  }

  /** Whether there is room for one more connection. Peers can vanish silently, so connections without a session are evicted. */
  #room() {
    for (const connection of this.#connections) {
      if (this.#connections.size < MAX_PEERS) break;
      if (!connection.ready) connection.endpoint.dispose();
    }
    return this.#connections.size < MAX_PEERS;
  }

  /** @param {AppTransport} transport */
  #connect(transport) {
    /** @type {Connection | undefined} */
    let connection;
    try {
      connection = new Connection({
        ...this.#options,
        app: this.#app,
        registry: this.#served,
        transport,
        observers: this.#observers,
        onSessionEnd: (session) => {
          invokeReportingErrors(this.#options.onSessionEnd, session);
          if (!this.sessions.length) void this.#served.end?.();
        },
        onEnd: (ended) => this.#keep(ended),
        memory: this.#remembering,
        named: this.#named,
      });
      this.#connections.add(connection);
      connection.refresh();
      return connection;
    } catch (error) {
      if (connection) connection.endpoint.dispose();
      else transport.close(); // there is no memory for another
      throw error;
    }
  }

  #remembering = loadOnce(async () => {
    const { Memory } = await loadPart(parts.memory());
    const { limits, keys } = this.#options;
    return (this.#memory = new Memory(this.#connections, limits?.rememberFor, keys));
  });

  /** A connection has ended. Its agent may come back, and ask what became of its calls. @param {Connection} connection */
  #keep(connection) {
    this.#connections.delete(connection);
    const { owner, endpoint } = connection;
    const { counters } = endpoint;
    const forget = () => endpoint.forget();
    const isAsked = owner && !this.#options.port && (counters.inFlightIn || counters.remembered);
    if (this.#closed || !isAsked) return forget();
    this.#remembering().then(
      (memory) => (this.#closed ? forget() : memory.add(connection)),
      forget,
    );
  }

  /** @param {MessageEventSource} source @param {string} origin @param {unknown} data */
  #heard(source, origin, data) {
    const type = getOwn(data, 'type');
    // Other messages on this window are not ours, and are never answered.
    if (typeof type !== 'string') return;
    const begins = type === abp.TYPE_INITIALIZE;
    let connection = [...this.#connections].find(
      ({ first }) => first.target === source && first.origin === origin,
    );
    if (!connection) {
      // Without a session a request is answered, too: that there is none.
      const isAnswered = begins ? !this.#closed : type.startsWith('capabilities/');
      if (!isAnswered || !this.#room()) return;
      connection = this.#connect(peerTransport(source, origin));
    }
    // From the offer of a port on only that port counts.
    if (connection.endpoint.transport !== connection.first && !begins) return;
    // A second agent of the same window is refused as long as the first has its session.
    const isOther = begins && connection.ready && getOwn(data, 'id') !== connection.hello;
    if (isOther && !this.#options.restart) tell((dev) => dev.tellBusy(connection));
    connection.endpoint.receive(data, [], connection.first);
    if (this.#closed) connection.endpoint.dispose();
  }

  /** The capabilities as agents are told of them, as they stand. @returns {any[]} */
  get capabilities() {
    return this.#served.list();
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
    return this.#observers.add(listener);
  }

  /** Tells every agent that asked for notifications. @param {string} event its name @param {unknown} [data] what can be cloned */
  notify(event, data) {
    for (const connection of this.sessions) connection.notify(event, data);
  }

  /**
   * Adds or replaces a capability, and tells the agents.
   * @param {string} name of the capability
   * @param {import('./registry.js').Capability | import('./registry.js').Handler} capability a handler, or an object that has one
   */
  set(name, capability) {
    const change = this.#registry.all.has(name) ? 'changed' : 'added';
    this.#registry.set(name, capability);
    this.#changed(change, name);
  }

  /** Removes a capability, and tells the agents. Calls that run continue. @param {string} name of the capability */
  delete(name) {
    if (this.#registry.all.delete(name)) this.#changed('removed', name);
  }

  /** @param {'added' | 'removed' | 'changed'} change @param {string} name */
  #changed(change, name) {
    for (const connection of this.#connections) connection.refresh();
    const changes = { added: [], removed: [], changed: [], [change]: [name] };
    const shown = this.#registry.describe(name);
    this.notify(LIST_CHANGED, { ...changes, capabilities: shown ? [shown] : [] });
    this.#webmcp?.changed();
  }

  /** The manifest of this app as it stands: see `manifestOf` of abp-bridge/discover. @returns {Promise<import('../types/parts.js').Manifest>} */
  async manifest() {
    const { manifestOf } = await parts.manifest();
    return manifestOf({ app: this.#app, capabilities: Object.fromEntries(this.#registry.all) });
  }

  /** Ends every session: running handlers are aborted, agents are told where they can be. */
  close() {
    this.#closed = true;
    this.#stop();
    this.#stop = nothing; // another app may serve its origins by then
    this.#webmcp?.close();
    this.#memory?.close();
    for (const connection of this.#connections) connection.endpoint.close('The app was closed');
  }
}
