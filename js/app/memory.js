/**
 * What an app remembers for agents that come back: what became of their calls, which the cores of their sessions know, and
 * what calls that have a key ended with. Loaded when an agent asks, gives a key, or has gone.
 */
import * as abp from '../driver/abp-boundary.js';
import { AbpError, reasonText } from '../common/errors.js';
import { onAbort, offAbort } from '../common/signals.js';
import { getOwn } from '../common/values.js';
import { warn } from '../common/development.js';
import { OUTCOME } from '../wire/messages.js';
import { Keys } from './keys.js';

/** @import { Connection } from './connection.js' */
/** @import { Endpoint } from '../session/endpoint.js' */
/** @import { Call } from '../session/call.js' */

/** The handle of no call. */
const NONE = /** @type {abp.Handle} */ (0);

/** Connections that have ended and whose calls may be asked for. */
const MAX_ENDED = 16;
/** Calls of a connection of which what their handlers said is kept. */
const MAX_SAID = 1024;
/** ms that the app's store of keys is waited for before agents are answered. */
const MAX_OPENING = 5000;

export class Memory {
  /** @type {{ endpoint: Endpoint, owner: string, timer: ReturnType<typeof setTimeout> }[]} */
  #ended = [];
  /** What handlers said of their work, by the id of the call. @type {WeakMap<Endpoint, Map<string, object>>} */
  #said = new WeakMap();
  #connections;
  #rememberFor;
  #keys;
  #store;

  /**
   * @param {ReadonlySet<Connection>} connections of the app
   * @param {number} [rememberFor] ms that anything is kept
   * @param {import('../types/keys.js').KeyStore} [store] what keeps calls that have a key, also after the app has ended
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
        .then((named) => {
          if (named) tell(named);
          resolve();
        }, fail)
        .finally(() => clearTimeout(timer));
    });
  }

  /**
   * Keeps the calls of a connection that has ended.
   * @param {Endpoint} endpoint
   * @param {string} owner
   * @param {() => boolean} isClosed whether the app is
   */
  add(endpoint, owner, isClosed) {
    if (isClosed()) return endpoint.machine.forget();
    const timer = setTimeout(() => this.#drop(endpoint), this.#rememberFor);
    /** @type {{ unref?: () => void }} */ (timer).unref?.();
    this.#ended.push({ endpoint, owner, timer });
    if (this.#ended.length > MAX_ENDED) this.#drop(this.#ended[0].endpoint);
  }

  /** @param {Endpoint} endpoint */
  #drop(endpoint) {
    const at = this.#ended.findIndex((ended) => ended.endpoint === endpoint);
    if (at < 0) return;
    clearTimeout(this.#ended[at].timer);
    this.#ended.splice(at, 1);
    endpoint.machine.forget();
  }

  /** The app was closed. */
  close() {
    for (const { endpoint } of [...this.#ended]) this.#drop(endpoint);
    this.#keys.close();
  }

  /**
   * Keeps what the handler of a call said of its work.
   * @param {Connection} connection
   * @param {string} callId
   * @param {{ report?: unknown, progress?: object }} said
   */
  keep({ endpoint }, callId, { report, progress }) {
    let calls = this.#said.get(endpoint);
    if (!calls) this.#said.set(endpoint, (calls = new Map()));
    calls.delete(callId);
    calls.set(callId, { ...(report !== undefined && { report }), ...(progress && { progress }) });
    if (calls.size > MAX_SAID) calls.delete(/** @type {string} */ (calls.keys().next().value));
  }

  /** What the handler of a call said of its work. @param {Endpoint} endpoint @param {string} callId */
  saidOf(endpoint, callId) {
    return this.#said.get(endpoint)?.get(callId);
  }

  /**
   * @param {Endpoint} endpoint
   * @param {string} callId
   */
  became({ machine, core }, callId) {
    machine.advance(); // what is too old is forgotten
    return machine.failed
      ? { fate: abp.FATE_UNKNOWN, outcome: abp.PENDING, call: NONE }
      : core.became(callId);
  }

  /**
   * The same when its handler has returned, and that of the call whose word it takes; or when nobody asks any more.
   * @param {Endpoint} endpoint
   * @param {string} callId
   * @param {Call} [asking]
   */
  async ended(endpoint, callId, asking) {
    let became = this.became(endpoint, callId);
    for (let last = NONE; became.call && became.call !== last;) {
      last = became.call;
      await returnOf(endpoint, last, asking);
      became = this.became(endpoint, callId);
    }
    return became;
  }

  /**
   * Answers an agent that asks what became of a call, or runs a call that has a key.
   * @param {Connection} connection
   * @param {Call} call
   * @param {() => unknown} run runs its handler
   * @returns {unknown} what its handler returns, or a promise of that
   */
  recall(connection, call, run) {
    const { name, params, options } = call;
    return name === OUTCOME
      ? this.#tell(connection, params, call)
      : this.#keys.once(connection, call, options.idempotencyKey, run);
  }

  /**
   * @param {Connection} connection
   * @param {unknown} params
   * @param {Call} asking
   */
  async #tell({ endpoint, owner }, params, asking) {
    const callId = getOwn(params, 'callId');
    if (typeof callId !== 'string') {
      throw new AbpError('INVALID_PARAMS', `${OUTCOME} needs a callId, a string`);
    }
    // An older connection of the agent may not know yet that it has ended.
    const others = [...this.#ended, ...this.#connections].filter(
      (of) => owner && of.owner === owner,
    );
    for (const asked of [endpoint, ...others.map((other) => other.endpoint).reverse()]) {
      const { fate } =
        getOwn(params, 'settled') === true
          ? await this.ended(asked, callId, asking)
          : this.became(asked, callId);
      const said = this.saidOf(asked, callId);
      if (fate) return { outcome: abp.FATES[fate], ...said };
    }
    return { outcome: abp.FATES[abp.FATE_UNKNOWN] };
  }
}

/**
 * Waits until the handler of a call has returned, or nobody asks any more.
 * @param {Endpoint} endpoint
 * @param {abp.Handle} handle
 * @param {Call} [asking]
 */
async function returnOf({ machine }, handle, asking) {
  const call = /** @type {Call | undefined} */ (machine.find((record) => record.handle === handle));
  if (call) await (asking ? unless(asking, call.returned) : call.returned);
}

/**
 * Waits for something as long as a call is not aborted.
 * @param {Call} call
 * @param {Promise<unknown>} promise
 * @returns {Promise<void>} rejects with the reason of the call's signal
 */
function unless({ signal }, promise) {
  return new Promise((resolve, reject) => {
    const record = { handleEvent: () => reject(signal.reason) };
    onAbort(signal, record);
    if (signal.aborted) record.handleEvent();
    void promise.then(() => {
      offAbort(signal, record);
      resolve();
    });
  });
}
