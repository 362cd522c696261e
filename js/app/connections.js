/**
 * The connections of an app: when they are made, their greatest number, and the memory of those
 * that have ended.
 */
import { DEFAULT_REMEMBER_MS } from '../driver/abp-boundary.js';
import { invokeReportingErrors, loadOnce, loadPart } from '../common/errors.js';
import { parts } from '../common/parts.js';
import { Connection } from './connection.js';

/** @import { AppTransport, ServeOptions } from './expose.js' */

/** The most connections of windows, and of the pages of a shared worker, at once. */
const MAX_PEERS = 64;

/**
 * @typedef {Omit<ConstructorParameters<typeof Connection>[0], 'transport' | 'onEnd'>
 *   & ServeOptions} ConnectionOptions The options of each connection.
 */

/** @extends {Set<Connection>} */
export class Connections extends Set {
  /** True once the app was closed: no session begins any more, and nothing is kept. */
  closed = false;
  /**
   * Functions that wait until agents can be answered; undefined from then on.
   * @type {(() => void)[] | undefined}
   */
  #early = [];
  /**
   * The memory for agents that come back. Loaded on demand, since few agents use it.
   * @type {import('../types/parts.js').Memory | undefined}
   */
  #loaded;

  /** @param {ConnectionOptions} options may change until agents can be answered */
  constructor(options) {
    super();
    this.options = options;
    const rememberFor = options.limits?.rememberFor ?? DEFAULT_REMEMBER_MS;
    // Not a secret, but a new id each time. A store of keys has its own.
    if (!options.keys) options.named = { id: `${Math.random()}`, rememberFor };
  }

  /**
   * Calls a function as soon as agents can be answered.
   * @param {() => void} act
   */
  whenReady(act) {
    if (!this.#early?.push(act)) act();
  }

  /** From now on agents are answered, if only with the error that the app was closed. */
  begin() {
    // A call of `whenReady` within this loop adds to it.
    for (const act of /** @type {(() => void)[]} */ (this.#early)) invokeReportingErrors(act);
    this.#early = undefined;
  }

  /**
   * Connects an agent as soon as it can be answered.
   * @param {AppTransport} transport
   * @param {boolean} [isOneOfMany] as for `connect`
   */
  accept = (transport, isOneOfMany) => {
    let gone = false;
    /** @type {Connection | undefined} */
    let connection;
    transport.onMessage = (...args) => this.whenReady(() => connection?.endpoint.receive(...args));
    transport.onClose = () => (gone = true);
    this.whenReady(() => {
      if (gone || this.closed) transport.close();
      else connection = this.connect(transport, isOneOfMany);
    });
  };

  /**
   * Connects an agent, or closes its transport if there is no room.
   * @param {AppTransport} transport
   * @param {boolean} [isOneOfMany] whether it counts for {@link MAX_PEERS}
   */
  connect(transport, isOneOfMany) {
    if (isOneOfMany) {
      // Peers can vanish silently, so those without a session make room.
      for (const each of this) if (this.size >= MAX_PEERS && !each.ready) each.endpoint.dispose();
      if (this.size >= MAX_PEERS) return void transport.close();
    }
    /** @type {Connection | undefined} */
    let connection;
    try {
      connection = new Connection({
        ...this.options,
        transport,
        memory: this.memory,
        onEnd: (ended) => void this.#keep(ended),
      });
      this.add(connection);
      connection.refresh();
      return connection;
    } catch (error) {
      if (connection) connection.endpoint.dispose();
      else transport.close(); // there is no memory for another
      throw error;
    }
  }

  /**
   * Loads the memory for agents that come back. If the app has a store of keys, opens it and keeps
   * its description for agents.
   */
  memory = loadOnce(async () => {
    const { Memory } = await loadPart(parts.memory());
    const { options } = this;
    const memory = (this.#loaded = new Memory(this, options.limits?.rememberFor, options.keys));
    if (options.keys) await memory.open((named) => (options.named = named));
    return memory;
  });

  /**
   * Keeps a connection that has ended, if its agent may come back and ask for outcomes.
   * @param {Connection} ended
   */
  async #keep(ended) {
    this.delete(ended);
    const { owner, endpoint } = ended;
    const { counters } = endpoint;
    const isAsked = owner && !this.options.port && (counters.inFlightIn || counters.remembered);
    const memory = !this.closed && isAsked && (await this.memory().catch(() => {}));
    if (memory && !this.closed) memory.add(ended);
    else endpoint.forget();
  }

  close() {
    this.closed = true;
    this.#loaded?.close();
    for (const { endpoint } of this) endpoint.close('The app was closed');
  }
}
