/**
 * What an app remembers for agents that come back: what became of their calls, which the cores of their sessions know, and
 * what calls that have a key ended with. Loaded when an agent asks, gives a key, or has gone.
 */
import * as abp from '../core/abp-boundary.js';
import { copyOf } from '../common/copy.js';
import { AbpError, safely, toErrorObject } from '../common/errors.js';
import { onAbort, offAbort } from '../common/signals.js';
import { isStream } from '../common/transfer.js';
import { sizeOf } from '../common/value-size.js';
import { getOwn } from '../common/values.js';
import { CALL, OUTCOME, isResponse } from '../wire/messages.js';
import { neverRan } from './never-ran.js';

/** @import { Connection } from './connection.js' */
/** @import { Endpoint } from '../session/endpoint.js' */
/** @import { Invocation } from '../session/invocation.js' */

/** The handle of no call. */
const NONE = /** @type {abp.Handle} */ (0);

/** Connections that have ended and whose calls may be asked for. */
const MAX_ENDED = 16;
/** Calls of a connection of which what their handlers said is kept. */
const MAX_SAID = 1024;
/** Calls with a key that are kept. */
const MAX_KEYED = 1024;
/** Characters of a key. */
const MAX_KEY = 256;
/** Bytes of what calls with a key returned, all together. */
const MAX_BYTES = 4_194_304;

/**
 * A call that has a key.
 * @typedef {object} Keyed
 * @property {Promise<void>} ended resolves when its handler has returned
 * @property {number} [at] when that was, in ms
 * @property {abp.Outcome} [outcome] how it ended, and the next what became of its work
 * @property {abp.Fate} [fate]
 * @property {{ value?: unknown, error?: unknown, size: number }} [result] what its handler returned or threw, while there is room
 * @property {object} [said] what its handler said of its work
 */

export class Memory {
  /** @type {{ endpoint: Endpoint, owner: string, timer: ReturnType<typeof setTimeout> }[]} */
  #ended = [];
  /** What handlers said of their work, by the id of the call. @type {WeakMap<Endpoint, Map<string, object>>} */
  #said = new WeakMap();
  /** @type {Map<string, Keyed>} */
  #keyed = new Map();
  #bytes = 0;
  /** Numbers of agents that do not say who they are: each is known by its connection alone. @type {WeakMap<Connection, number>} */
  #strangers = new WeakMap();
  #stranger = 0;
  #connections;
  #rememberFor;

  /**
   * @param {ReadonlySet<Connection>} connections of the app
   * @param {number} [rememberFor] ms that anything is kept
   */
  constructor(connections, rememberFor = abp.DEFAULT_REMEMBER_MS) {
    this.#connections = connections;
    this.#rememberFor = rememberFor;
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
    this.#keyed.clear();
    this.#bytes = 0;
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

  /**
   * Answers an agent that asks what became of a call, or runs a call that has a key.
   * @param {Connection} connection
   * @param {Invocation} call
   * @param {() => unknown} run runs its handler
   * @returns {unknown} what its handler returns, or a promise of that
   */
  recall(connection, call, run) {
    const { name, params, idempotencyKey } = call.request;
    return name === OUTCOME
      ? this.#tell(connection, params, call)
      : this.#once(connection, call, idempotencyKey, run);
  }

  /**
   * @param {Connection} connection
   * @param {unknown} params
   * @param {Invocation} asking
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
      let { fate, call } = became(asked, callId);
      if (call && getOwn(params, 'settled') === true) {
        await returnOf(asked, call, asking);
        ({ fate } = became(asked, callId));
      }
      const said = this.#said.get(asked)?.get(callId);
      if (fate) return { outcome: abp.FATES[fate], ...said };
    }
    return { outcome: abp.FATES[abp.FATE_UNKNOWN] };
  }

  /**
   * Runs a call that has a key, unless one with this key runs or has run.
   * @param {Connection} connection
   * @param {Invocation} call
   * @param {unknown} key
   * @param {() => unknown} run
   */
  async #once(connection, call, key, run) {
    const { endpoint } = connection;
    if (typeof key !== 'string' || !key || key.length > MAX_KEY) {
      const why = `idempotencyKey must be a string of 1 to ${MAX_KEY} characters`;
      return neverRan(new AbpError('INVALID_PARAMS', why));
    }
    const name = JSON.stringify([this.#ownerOf(connection), call.request.name, key]);
    this.#forgetOld();
    const known = this.#keyed.get(name);
    if (known) return repeat(known, call, endpoint);
    const { callId } = call;
    /** @type {Keyed} */
    const keyed = { ended: call.returned.then(() => this.#end(name, keyed, endpoint, callId)) };
    this.#keyed.set(name, keyed);
    try {
      const value = await run();
      keyed.result = resultOf(value);
      return value;
    } catch (error) {
      keyed.result = { error, size: 0 };
      throw error;
    }
  }

  /** Whose keys these are. @param {Connection} connection */
  #ownerOf(connection) {
    const { owner } = connection;
    if (owner === undefined && !this.#strangers.has(connection))
      this.#strangers.set(connection, ++this.#stranger);
    return owner ?? this.#strangers.get(connection);
  }

  /**
   * @param {string} name
   * @param {Keyed} keyed
   * @param {Endpoint} endpoint
   * @param {string} callId
   */
  #end(name, keyed, endpoint, callId) {
    const { fate, outcome } = became(endpoint, callId);
    const { result } = keyed;
    keyed.at = performance.now();
    keyed.fate = fate || abp.FATE_UNKNOWN;
    keyed.outcome = outcome;
    keyed.said = this.#said.get(endpoint)?.get(callId);
    const error = isResponse(result?.value) ? result.value.error : result?.error;
    // It may be tried again.
    const mayRun = fate === abp.FATE_FAILED && toErrorObject(error).retryable;
    if (fate === abp.FATE_UNSTARTED || mayRun) this.#keyed.delete(name);
    else this.#bytes += result?.size ?? 0;
    this.#forgetOld();
  }

  #forgetOld() {
    const now = performance.now();
    for (const [name, { at, result }] of this.#keyed) {
      if (at === undefined) continue;
      const isOld = now - at > this.#rememberFor;
      if (!isOld && this.#keyed.size <= MAX_KEYED && this.#bytes <= MAX_BYTES) return;
      this.#keyed.delete(name);
      this.#bytes -= result?.size ?? 0;
    }
  }
}

/**
 * A copy of what a handler returned: some of it may move with its response.
 * @param {unknown} value
 * @returns {{ value: unknown, size: number } | undefined} undefined if it is too much, or cannot be copied, as a stream
 */
function resultOf(value) {
  const size = isStream(value) ? Infinity : sizeOf(value, MAX_BYTES);
  return size > MAX_BYTES ? undefined : safely(() => ({ value: copyOf(value), size }), undefined);
}

/**
 * @param {Endpoint} endpoint
 * @param {string} callId
 */
function became({ machine, core }, callId) {
  machine.advance(); // what is too old is forgotten
  return machine.failed
    ? { fate: abp.FATE_UNKNOWN, outcome: abp.PENDING, call: NONE }
    : core.became(callId);
}

/**
 * Waits until the handler of a call has returned, or nobody asks any more.
 * @param {Endpoint} endpoint
 * @param {abp.Handle} handle
 * @param {Invocation} asking
 */
async function returnOf({ machine }, handle, asking) {
  const call = /** @type {Invocation | undefined} */ (
    machine.find((record) => record.handle === handle)
  );
  if (call) await unless(asking, call.returned);
}

/**
 * Waits for something as long as a call is not aborted.
 * @param {Invocation} call
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

/**
 * Answers a call with what became of an earlier one that had its key.
 * @param {Keyed} keyed
 * @param {Invocation} call
 * @param {Endpoint} endpoint
 */
async function repeat(keyed, call, endpoint) {
  try {
    await unless(call, keyed.ended);
  } catch {
    // This one waits no more. The work goes on.
    return CALL.became(endpoint.failure(abp.CANCELLED_ERROR), abp.FATE_RUNNING);
  }
  const { outcome, fate = abp.FATE_UNKNOWN, result, said } = keyed;
  const wasStopped =
    outcome === abp.CANCELLED || outcome === abp.TIMED_OUT || fate === abp.FATE_STOPPED;
  if (!wasStopped && result && 'value' in result) return result.value;
  let response;
  if (wasStopped) {
    const why = 'The call with this idempotencyKey was cancelled';
    response = endpoint.failure(abp.CANCELLED_ERROR, why);
  } else if (result) response = { success: false, error: toErrorObject(result.error) };
  else {
    const why = 'The call with this idempotencyKey has run, and its result is not kept';
    response = endpoint.failure(abp.OPERATION_FAILED, why);
  }
  return CALL.became(response, fate, false, said);
}
