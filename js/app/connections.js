/**
 * The connections of an app: when one is made, how many there may be, and what is kept of those
 * that have ended.
 */
import { DEFAULT_REMEMBER_MS } from '../driver/abp-boundary.js';
import { invokeReportingErrors, loadOnce, loadPart } from '../common/errors.js';
import { parts } from '../common/parts.js';
import { Connection } from './connection.js';

/** @import { AppTransport, ServeOptions } from './expose.js' */

/** Connections that windows, and the pages of a shared worker, may have at once. */
const MAX_PEERS = 64;

/**
 * @typedef {Omit<ConstructorParameters<typeof Connection>[0], 'transport' | 'onEnd'>
 *   & ServeOptions} ConnectionOptions What each is given.
 */

/** @extends {Set<Connection>} */
export class Connections extends Set {
  /** Whether the app was closed: no session begins any more, and nothing is kept. */
  closed = false;
  /**
   * What waits until agents can be answered; undefined from then on.
   * @type {(() => void)[] | undefined}
   */
  #early = [];
  /**
   * What is remembered for agents that come back. Most agents ask for nothing.
   * @type {import('../types/parts.js').Memory | undefined}
   */
  #loaded;

  /** @param {ConnectionOptions} options may change until agents can be answered */
  constructor(options) {
    super();
    this.options = options;
    const rememberFor = options.limits?.rememberFor ?? DEFAULT_REMEMBER_MS;
    // It is no secret, only another one each time. A store of keys has its own.
    if (!options.keys) options.named = { id: `${Math.random()}`, rememberFor };
  }

  /**
   * Does something as soon as agents can be answered.
   * @param {() => void} act
   */
  whenReady(act) {
    if (!this.#early?.push(act)) act();
  }

  /** From now on agents are answered, or told that the app was closed. */
  begin() {
    // What comes meanwhile waits its turn.
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
    transport.onMessage = (...heard) =>
      this.whenReady(() => connection?.endpoint.receive(...heard));
    transport.onClose = () => (gone = true);
    this.whenReady(() => {
      if (gone || this.closed) transport.close();
      else connection = this.connect(transport, isOneOfMany);
    });
  };

  /**
   * Connects an agent, or closes its transport if there is no room.
   * @param {AppTransport} transport
   * @param {boolean} [isOneOfMany] whether there is room for {@link MAX_PEERS} only
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
   * Loads what is remembered, and opens the app's store of keys, of which agents are told, if it
   * has one.
   */
  memory = loadOnce(async () => {
    const { Memory } = await loadPart(parts.memory());
    const { options } = this;
    const memory = (this.#loaded = new Memory(this, options.limits?.rememberFor, options.keys));
    if (options.keys) await memory.open((named) => (options.named = named));
    return memory;
  });

  /**
   * One has ended. Its agent may come back, and ask what became of its calls.
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
