/**
 * What an app remembers for agents that come back: what became of their calls, which the cores of their sessions know, and
 * what calls that have a key ended with. Loaded when an agent asks, gives a key, or has gone.
 *
 * How it is made: the cores of connections that have ended are kept here, so that there is no copy of what they know. A core has no
 * values, so `once.js` keeps what calls with a key returned, in memory or in the app's store (`sqlite.js`, `indexeddb.js`; what these
 * share is in `stored-keys.js`). A call with a key asks the store whether it may begin, runs, and what the core says became of it
 * is written. Meanwhile it has a place here. Others with its key wait there: a repeat is a call of its own, whose handler
 * waits for the first, and the core is told if it need not wait any more, or if the first has not begun.
 */
import * as abp from '../../../js/driver/abp-boundary.js';
import { AbpError, reasonText } from '../../../js/common/errors.js';
import { getOwn } from '../../../js/common/values.js';
import { unless } from '../../../js/common/waiting.js';
import { warn } from '../../../js/common/development.js';
import { OUTCOME } from '../../../js/wire/messages.js';
import { returnOf } from '../../../js/app/waits.js';
import { Keys } from './once.js';

/** @import { Connection } from '../../../js/app/connection.js' */
/** @import { Endpoint } from '../../../js/types/trace.js' */
/** @import { Call } from '../../../js/session/call.js' */
/** @typedef {{ report?: unknown, progress?: any }} Said What the handler of a call said of its work. */

/** @typedef {{ endpoint: Endpoint, owner: string, timer?: any }} Ended A connection that has ended. */

/** Connections that have ended and whose calls may be asked for. */
const MAX_ENDED = 16;
/** ms that the app's store of keys is waited for before agents are answered. */
const MAX_OPENING = 5000;

export class Memory {
  /** The oldest first. @type {Set<Ended>} */
  #ended = new Set();
  /** By the slots of the calls that the core remembers. @type {WeakMap<Endpoint, { call: abp.Handle, callId: string, said: Said }[]>} */
  #said = new WeakMap();
  #connections;
  #rememberFor;
  #keys;
  #store;

  /**
   * @param {ReadonlySet<Connection>} connections of the app
   * @param {number} [rememberFor] ms that anything is kept
   * @param {import('../types/store.js').KeyStore} [store] what keeps calls that have a key, also after the app has ended
   */
  constructor(connections, rememberFor = abp.DEFAULT_REMEMBER_MS, store = undefined) {
    this.#connections = connections;
    this.#rememberFor = rememberFor;
    this.#store = store;
    this.#keys = new Keys(this, rememberFor, store);
  }

  /**
   * Opens the app's store of keys. Where that fails, the app answers all the same, and no call with a key begins.
   * @param {(named: { id: string, rememberFor: number }) => void} tell takes what agents are told of it
   * @returns {Promise<void>} resolves when it is open, or not waited for any more
   */
  open(tell) {
    return new Promise((resolve) => {
      const fail = (/** @type {unknown} */ why) => {
        warn(`the store of keys cannot be used: ${reasonText(why)}`);
        resolve();
      };
      const timer = setTimeout(fail, MAX_OPENING, `it did not open within ${MAX_OPENING} ms`);
      (async () => this.#store?.open())()
        .then((named) => resolve(named && tell(named)), fail)
        .finally(() => clearTimeout(timer));
    });
  }

  /**
   * Keeps the calls of a connection that has ended.
   * @param {Endpoint} endpoint
   * @param {string} owner
   */
  add(endpoint, owner) {
    /** @type {Ended} */
    const ended = { endpoint, owner };
    ended.timer = setTimeout(() => this.#drop(ended), this.#rememberFor);
    ended.timer.unref?.();
    this.#ended.add(ended);
    if (this.#ended.size > MAX_ENDED) this.#drop([...this.#ended][0]);
  }

  /** @param {Ended} ended */
  #drop(ended) {
    clearTimeout(ended.timer);
    this.#ended.delete(ended);
    ended.endpoint.machine.forget();
  }

  /** The app was closed. */
  close() {
    for (const ended of this.#ended) this.#drop(ended);
    this.#keys.close();
  }

  /**
   * Keeps what the handler of a call said of its work.
   * @param {Endpoint} endpoint
   * @param {string} callId
   * @param {Said} said
   * @returns {Said} a copy of what was said, without members that were not
   */
  keep(endpoint, callId, { report, progress }) {
    const said = { ...(report !== undefined && { report }), ...(progress && { progress }) };
    const call = handleOf(endpoint, callId);
    const slots = this.#said.get(endpoint) ?? [];
    this.#said.set(endpoint, slots);
    if (call) slots[call & abp.SLOT_MASK] = { call, callId, said };
    return said;
  }

  /** What the handler of a call said of its work. @param {Endpoint} endpoint @param {string} callId */
  saidOf(endpoint, callId) {
    const call = handleOf(endpoint, callId);
    const kept = this.#said.get(endpoint)?.[call & abp.SLOT_MASK];
    // Handles begin again after 1,023 calls of a slot.
    return kept?.call === call && kept.callId === callId ? kept.said : undefined;
  }

  /**
   * What became of a call: at once, or when its handler has returned, and that of the call whose word it takes.
   * @param {Endpoint} endpoint
   * @param {string} callId
   * @param {boolean} settled whether to wait
   * @param {AbortSignal} [signal] ends the waiting
   * @returns {Promise<{ fate: abp.Fate, outcome: abp.Outcome }>} rejects with the reason of the signal
   */
  async became({ core, machine }, callId, settled, signal) {
    for (let last = 0; ;) {
      machine.advance(); // what is too old is forgotten
      if (machine.failed) return { fate: abp.FATE_UNKNOWN, outcome: abp.PENDING };
      const packed = core.x.became(core.pointer, core.writeId(callId));
      const { call } = core;
      const became = {
        fate: /** @type {abp.Fate} */ (packed & 255),
        outcome: /** @type {abp.Outcome} */ (packed >> 8),
      };
      if (!settled || !call || call === last) return became;
      last = call;
      const running = /** @type {Call | undefined} */ (machine.find((of) => of.handle === last));
      if (running) await unless(signal, returnOf(running));
    }
  }

  /**
   * Answers an agent that asks what became of a call, or runs a call that has a key.
   * @param {Connection} connection
   * @param {Call} call
   * @param {() => unknown} run runs its handler
   * @returns {unknown} what its handler returns, or a promise of that
   */
  recall(connection, call, run) {
    return call.name === OUTCOME
      ? this.#tell(connection, call)
      : this.#keys.once(connection, call, run);
  }

  /** @param {Connection} connection @param {Call} asking */
  async #tell({ endpoint, owner }, { params, signal }) {
    const callId = getOwn(params, 'callId');
    if (typeof callId !== 'string')
      throw new AbpError('INVALID_PARAMS', `${OUTCOME} needs a callId, a string`);
    const settled = getOwn(params, 'settled') === true;
    // An older connection of the agent may not know yet that it has ended.
    const others = [...this.#ended, ...this.#connections].filter(
      (other) => owner && other.owner === owner,
    );
    for (const asked of [endpoint, ...others.map((other) => other.endpoint).reverse()]) {
      const { fate } = await this.became(asked, callId, settled, signal);
      if (fate) return { outcome: abp.FATES[fate], ...this.saidOf(asked, callId) };
    }
    return { outcome: abp.FATES[abp.FATE_UNKNOWN] };
  }
}

/** The handle of a call that was received, 0 if the core does not remember it. @param {Endpoint} endpoint @param {string} callId */
const handleOf = ({ core, machine }, callId) =>
  machine.failed ? 0 : core.x.remembered(core.pointer, core.writeId(callId));
