/**
 * An app's memory for agents that come back: the outcomes of their calls, which the cores of their
 * sessions know, and the results of calls that have a key. Loaded when an agent asks, uses a key,
 * or has gone.
 *
 * The memory keeps the cores of connections that have ended, so there is no copy of their data. A
 * core has no values, so the results of calls with a key are in a store: in memory
 * (`local-store.js`), or a store of the app (`stored-keys.js` has the rules, `sqlite.js` and
 * `indexeddb.js` the tables). A call with a key asks the store whether it may begin, runs, and its
 * outcome in the core is written to the store. While it runs it has a place here, where other calls
 * with its key wait. Such a repeat is a call of its own, whose handler waits for the first; the
 * core is notified when it no longer waits, or when the first has not begun. A key belongs to the
 * digest of its params: a call with other params is rejected, here or by the store.
 */
import * as abp from '../../js/driver/abp-boundary.js';
import { copyOf } from '../../js/common/copy.js';
import { warn } from '../../js/common/development.js';
import {
  AbpError,
  isErrorObject,
  reasonText,
  safely,
  toErrorObject,
} from '../../js/common/errors.js';
import { keptReport } from '../../js/common/report.js';
import { secret } from '../../js/common/secret.js';
import { isStream } from '../../js/common/transfer.js';
import { sizeOf } from '../../js/common/value-size.js';
import { getOwn } from '../../js/common/values.js';
import { unless } from '../../js/common/waiting.js';
import { OUTCOME, isResponse, unstarted } from '../../js/wire/messages.js';
import { returnOf } from '../../js/app/waits.js';
import { digestOf } from '../../js/binary/digest.js';
import { LocalStore, MAX_BYTES } from './local-store.js';

/** @import { Connection } from '../../js/app/connection.js' */
/** @import { Endpoint } from '../../js/types/trace.js' */
/** @import { Call } from '../../js/session/call.js' */
/** @import { KeyEnded, KeyFound, KeyStore } from './store.js' */
/**
 * @typedef {{ report?: unknown, progress?: any }} Reports The last report and progress of a call.
 */
/**
 * @typedef {object} Joined The outcome of a call for the calls that wait for it. `again`: one of
 *   them runs in its place.
 * @property {KeyEnded} ended
 * @property {boolean} [again]
 */

/** The most connections that have ended and whose calls can be asked for. */
const MAX_ENDED = 16;
/** The longest wait for the app's store of keys before agents are answered, in ms. */
const MAX_OPENING = 5000;
/** The most characters of a key. */
const MAX_KEY = 256;
/**
 * The first and the longest pause, in ms, before asking again whether a call that runs elsewhere
 * has ended.
 */
const PAUSES = [20, 1000];

/** The outcome of a call of which nothing is known. @type {KeyEnded} */
const LOST = { outcome: 'unknown', cancelled: false };
/** The outcome of a call that was stopped before it began. @type {KeyEnded} */
const NEVER = { outcome: 'unstarted', cancelled: false, again: true };

/** The place of a call with a key, while it runs here. */
class Place {
  /** The calls with its key that wait for its outcome. @type {Call[]} */
  #joined = [];
  /** True if one of them may run once the outcome is written. */
  #isFree = false;
  /** Passes the outcome to them. @type {(joined: Joined) => void} */
  tell = () => {};
  /** @type {Promise<Joined>} */
  told = new Promise((resolve) => (this.tell = resolve));

  /**
   * @param {Call} first
   * @param {string} digest the digest of its params
   */
  constructor(first, digest) {
    this.first = first;
    this.handle = first.handle;
    this.digest = digest;
  }

  /** @param {Call} call */
  join(call) {
    this.#joined.push(call);
    if (this.#isFree) call.postpone();
    else call.beginWork();
    goOnWithout(call);
  }

  /**
   * Tells the core that the waiting calls have not begun: they end as `unstarted` if their app is
   * closed.
   */
  free() {
    this.#isFree = true;
    for (const call of this.#joined) if (!call.hasEnded) call.postpone();
  }
}

export class Memory {
  /**
   * Connections that have ended, the oldest first, each with the timer that removes it.
   * @type {Map<Connection, any>}
   */
  #ended = new Map();
  /**
   * Reports and progress, by the slots of the calls that the core remembers.
   * @type {WeakMap<Endpoint, { call: abp.Handle, callId: string, said: Reports }[]>}
   */
  #said = new WeakMap();
  /** @type {Map<string, Place>} */
  #places = new Map();
  /**
   * Ids for agents without a secret, by their connections.
   * @type {WeakMap<Connection, string>}
   */
  #strangers = new WeakMap();
  #closed = false;
  #connections;
  #rememberFor;
  #local;
  /** The store of calls that have a key. @type {Pick<KeyStore, 'begin' | 'end'>} */
  #keys;

  /**
   * @param {ReadonlySet<Connection>} connections of the app
   * @param {number} [rememberFor] ms for which calls are kept
   * @param {KeyStore} [store] a store that keeps calls with a key after the app has ended
   */
  constructor(connections, rememberFor = abp.DEFAULT_REMEMBER_MS, store = undefined) {
    this.#connections = connections;
    this.#rememberFor = rememberFor;
    this.#local = new LocalStore(rememberFor);
    this.#keys = store ?? this.#local;
  }

  /**
   * Opens the app's store of keys. If that fails, the app still answers, but calls with a key do
   * not begin.
   * @type {import('../../js/types/parts.js').Memory['open']}
   */
  open(tell) {
    return new Promise((resolve) => {
      const fail = (/** @type {unknown} */ why) => {
        warn(`the store of keys cannot be used: ${reasonText(why)}`);
        resolve();
      };
      const timer = setTimeout(fail, MAX_OPENING, `it did not open within ${MAX_OPENING} ms`);
      (async () => /** @type {KeyStore} */ (this.#keys).open())()
        .then((named) => resolve(named && tell(named)), fail)
        .finally(() => clearTimeout(timer));
    });
  }

  /**
   * Keeps the calls of a connection that has ended.
   * @param {Connection} ended
   */
  add(ended) {
    const timer = /** @type {any} */ (setTimeout(() => this.#drop(ended), this.#rememberFor));
    timer.unref?.();
    this.#ended.set(ended, timer);
    if (this.#ended.size > MAX_ENDED) this.#drop([...this.#ended.keys()][0]);
  }

  /** @param {Connection} ended */
  #drop(ended) {
    clearTimeout(this.#ended.get(ended));
    this.#ended.delete(ended);
    ended.endpoint.forget();
  }

  /** The app is about to close its sessions. Calls no longer wait for those that run elsewhere. */
  close() {
    for (const ended of this.#ended.keys()) this.#drop(ended);
    this.#closed = true;
    this.#local.clear();
    for (const place of this.#places.values()) {
      const { core, failed } = place.first.endpoint;
      if (!failed && !core.x.has_begun(core.pointer, place.handle)) place.free();
    }
  }

  // --- Outcomes of calls -------------------------------------------------------------------------

  /**
   * Keeps the report and progress of a call's handler. Returns a copy without absent members.
   * @param {Endpoint} endpoint
   * @param {string} callId
   * @param {Reports} reports
   */
  keep(endpoint, callId, { report, progress }) {
    /** @type {Reports} */
    const reports = { ...(report !== undefined && { report }), ...(progress && { progress }) };
    const call = handleOf(endpoint, callId);
    const slots = this.#said.get(endpoint) ?? [];
    this.#said.set(endpoint, slots);
    if (call) slots[call & abp.SLOT_MASK] = { call, callId, said: reports };
    return reports;
  }

  /**
   * The kept report and progress of a call.
   * @param {Endpoint} endpoint
   * @param {abp.Handle} call
   * @param {string} callId
   */
  #saidOf(endpoint, call, callId) {
    const kept = this.#said.get(endpoint)?.[call & abp.SLOT_MASK];
    // Handles repeat after 1,023 calls of a slot.
    return kept?.call === call && kept.callId === callId ? kept.said : undefined;
  }

  /**
   * The outcome of a call: at once or, if it must be `settled`, when its handler has returned, and
   * that of the call whose fate it takes over.
   * @param {Endpoint} endpoint
   * @param {abp.Handle} asked
   * @param {boolean} settled
   * @param {AbortSignal} [signal] ends the wait
   * @returns {Promise<{ fate: abp.Fate, outcome: abp.Outcome }>}
   */
  async #became(endpoint, asked, settled, signal) {
    const { core } = endpoint;
    endpoint.kept++; // until the outcome is known
    try {
      for (let last = 0; core.pointer;) {
        if (endpoint.failed) return { fate: abp.FATE_UNKNOWN, outcome: abp.PENDING };
        const packed = core.x.became(core.pointer, asked);
        const { call } = core;
        if (!settled || !call || call === last)
          return {
            fate: /** @type {abp.Fate} */ (packed & 255),
            outcome: /** @type {abp.Outcome} */ (packed >> 8),
          };
        last = call;
        const running = /** @type {Call | undefined} */ (endpoint.find((of) => of.handle === last));
        if (running) await unless(signal, returnOf(running));
      }
      return { fate: abp.FATE_NONE, outcome: abp.PENDING };
    } finally {
      endpoint.forget();
    }
  }

  /**
   * Answers an agent that asks for the outcome of a call, or runs a call that has a key.
   * @type {import('../../js/types/parts.js').Memory['recall']}
   */
  recall(connection, call, run) {
    return call.name === OUTCOME ? this.#tell(connection, call) : this.#once(connection, call, run);
  }

  /**
   * @param {Connection} connection
   * @param {Call} asking
   */
  async #tell({ endpoint, owner }, { params, signal }) {
    const callId = getOwn(params, 'callId');
    if (typeof callId !== 'string')
      throw new AbpError('INVALID_PARAMS', `${OUTCOME} needs a callId, a string`);
    const settled = getOwn(params, 'settled') === true;
    // The connection that the agent has used last comes first: an older one may not know yet that
    // it has ended.
    const others = [...this.#ended.keys(), ...this.#connections]
      .filter((other) => owner && other.owner === owner)
      .map((other) => other.endpoint)
      .sort((a, b) => a.now - b.now);
    for (const asked of [endpoint, ...others.reverse()]) {
      if (asked.core.pointer) asked.advance(); // forgets calls that are too old
      const handle = handleOf(asked, callId);
      const { fate } = await this.#became(asked, handle, settled, signal);
      if (fate) return { outcome: abp.FATES[fate], ...this.#saidOf(asked, handle, callId) };
    }
    return { outcome: abp.FATES[abp.FATE_UNKNOWN] };
  }

  // --- Calls that have a key: none of them runs twice --------------------------------------------

  /**
   * Runs a call that has a key, unless a call with this key runs or has run.
   * @param {Connection} connection
   * @param {Call} call
   * @param {() => unknown} run
   */
  async #once(connection, call, run) {
    const key = call.options.idempotencyKey;
    const isKey = typeof key === 'string' && key && key.length <= MAX_KEY;
    // Such texts do not survive every transport.
    if (!isKey || /[\0\p{Surrogate}]/u.test(key)) {
      const why = `idempotencyKey must be a well-formed string of 1 to ${MAX_KEY} characters`;
      return unstarted(new AbpError('INVALID_PARAMS', why));
    }
    if (call.options.input) {
      const why =
        'A call with an idempotencyKey cannot have input: what is streamed is not compared';
      return unstarted(new AbpError('INVALID_PARAMS', why));
    }
    let digest;
    try {
      // The digest of the original params: the handler may change them.
      const digesting = digestOf(call.params, 'params');
      if (typeof digesting === 'string') digest = digesting;
      else {
        call.postpone();
        digest = await digesting;
        if (call.aborted) throw call.signal.reason;
      }
    } catch (error) {
      if (call.aborted) throw error;
      const why = `The params of a call with an idempotencyKey are compared with those of its repeats: ${reasonText(error)} (docs/errors.md#key_reused)`;
      return unstarted(new AbpError('INVALID_PARAMS', why));
    }
    const stranger = this.#strangers.get(connection) ?? secret();
    this.#strangers.set(connection, stranger);
    const name = JSON.stringify([connection.owner ?? stranger, call.name, key]);
    for (let place; (place = this.#places.get(name));) {
      if (place.digest !== digest) return reused(key);
      place.join(call);
      const { ended, again } = await place.told;
      if (!again || call.aborted) return this.#answer(call, ended);
    }
    const place = new Place(call, digest);
    this.#places.set(name, place);
    let found;
    try {
      found = await this.#begin(name, call, digest);
    } catch (error) {
      this.#leave(name, place, { ended: LOST, again: true });
      if (call.aborted) throw error;
      if (isErrorObject(error)) return unstarted(error);
      const why = `The app cannot write down that the call begins, so it did not: ${reasonText(error)} (docs/errors.md#keys_unavailable)`;
      return unstarted(new AbpError('KEYS_UNAVAILABLE', why, { retryable: true }));
    }
    if (found.state === 'reused') {
      this.#leave(name, place, { ended: NEVER, again: true });
      return reused(key);
    }
    if (found.state === 'begun' && !call.beginWork()) {
      // Takes back the entry that was written for this call, which does not begin.
      await (async () => this.#keys.end(name, NEVER))().catch(() => {});
      this.#leave(name, place, { ended: NEVER, again: true });
      // A call for which it has waited may have run elsewhere.
      return this.#answer(call, call.hasEnded ? NEVER : LOST);
    }
    if (found.state !== 'begun') {
      const ended = found.state === 'ended' ? found.ended : LOST;
      this.#leave(name, place, { ended });
      return this.#answer(call, ended, found.state === 'running');
    }
    const { callId, endpoint } = call; // its id is lost once it has ended
    const extra = call.ensureExtra();
    extra.onStop = undefined;
    extra.earlier = keptReport(found.report);
    // A handler that passes on a call that still runs does not know the result.
    /** @type {Partial<KeyEnded>} */
    let kept = {};
    // Keeps the core's memory until the outcome is written, even if the app is closed meanwhile.
    endpoint.kept++;
    void returnOf(call)
      .then(() => this.#end(name, place, callId, kept))
      .finally(() => endpoint.forget());
    try {
      const value = await run();
      if (!isResponse(value) || value.metadata?.outcome !== 'running') kept = resultOf(value);
      return value;
    } catch (error) {
      const runs = safely(() => /** @type {any} */ (error).outcome === 'running');
      if (!runs) kept = { error: toErrorObject(error) };
      throw error;
    }
  }

  /**
   * Removes a place.
   * @param {string} name
   * @param {Place} place
   * @param {Joined} joined the outcome for the calls that wait there
   */
  #leave(name, place, joined) {
    if (joined.again) place.free();
    this.#places.delete(name);
    place.tell(joined);
  }

  /**
   * Asks the store until it is known whether a call may begin. Until then the call has not begun;
   * it begins with its handler.
   * @param {string} name
   * @param {Call} call
   * @param {string} digest the digest of its params
   * @returns {Promise<KeyFound>}
   */
  async #begin(name, call, digest) {
    for (let pause = 0; ; pause = Math.min(pause * 2 || PAUSES[0], PAUSES[1])) {
      if (pause) await delay(pause);
      if (pause && this.#closed) return { state: 'running' };
      const kept = this.#local.find(name, digest);
      if (kept) return kept;
      if (!pause) call.postpone();
      /** @type {KeyFound} */
      let found;
      try {
        found = await this.#keys.begin(name, digest);
      } catch (error) {
        if (pause) return { state: 'lost' };
        throw error;
      }
      if (found.state === 'begun') {
        if (pause) call.postpone();
        return found;
      }
      // Without an answer the call has not begun. From here on it waits for another that has.
      if (!pause && !call.beginWork()) throw call.signal.reason;
      if (found.state !== 'running') return found;
      goOnWithout(call);
    }
  }

  /**
   * Writes the outcome of a call whose handler has returned.
   * @param {string} name
   * @param {Place} place
   * @param {string} callId
   * @param {Partial<KeyEnded>} kept its result or error
   */
  async #end(name, place, callId, kept) {
    const { handle, first } = place; // a repeat in a later session may have the same id
    const { endpoint } = first;
    const { fate: known, outcome } = await this.#became(endpoint, handle, true);
    // The core has no fate for a repeat that never ran, but it has an outcome.
    const fate = known || (outcome === abp.PENDING ? abp.FATE_UNKNOWN : abp.FATE_UNSTARTED);
    const error = isResponse(kept.value) ? kept.value.error : kept.error;
    const isStopped = fate === abp.FATE_STOPPED;
    const again =
      fate === abp.FATE_UNSTARTED ||
      (fate === abp.FATE_FAILED && toErrorObject(error).retryable) ||
      // It was not cancelled on request: its agent was gone, or this app was closing.
      (isStopped && outcome === abp.DISCONNECTED);
    /** @type {KeyEnded} */
    const ended = {
      ...kept,
      outcome: /** @type {KeyEnded['outcome']} */ (abp.FATES[fate]),
      cancelled: outcome === abp.CANCELLED || outcome === abp.TIMED_OUT || isStopped,
      ...this.#saidOf(endpoint, handle, callId),
      // A call that never ran leaves the key to calls with any params.
      ...(fate !== abp.FATE_UNSTARTED && { digest: place.digest }),
      ...(again && { again }),
    };
    // The waiting calls get a failure at once: their callers may try again. If the call was
    // stopped, or never ran, one of the waiting calls runs.
    const isFree = again && fate !== abp.FATE_FAILED;
    if (isFree) place.free();
    // A call that may run again waits until that is written.
    if (!again) place.tell({ ended });
    try {
      await this.#keys.end(name, ended);
    } catch (error) {
      const what = 'what became of a call with an idempotencyKey could not be written';
      warn(`${what}, and is not known after a restart: ${reasonText(error)}`);
      await this.#local.end(name, ended);
    }
    this.#leave(name, place, { ended, again: isFree });
  }

  /**
   * Answers a call with the outcome of an earlier one that had its key.
   * @param {Call} call
   * @param {KeyEnded} ended
   * @param {boolean} [running] whether the earlier one still runs
   */
  #answer(call, ended, running) {
    const { endpoint, aborted, callId } = call;
    const { cancelled, error, again } = ended;
    // Later questions about this call are answered with the other's report.
    const reports = this.keep(endpoint, callId, ended);
    if (!cancelled && !aborted && 'value' in ended) return copyOf(ended.value);
    const outcome = running ? 'running' : ended.outcome;
    const isCancelled = aborted || cancelled;
    const became = cancelled
      ? 'was cancelled'
      : ended.outcome === 'unknown'
        ? 'began, and what became of it is not known: its app has ended since'
        : 'has run, and its result is not kept';
    const why = aborted ? undefined : `The call with this idempotencyKey ${became}`;
    const response =
      error && !isCancelled
        ? { success: false, error }
        : endpoint.refusal(isCancelled ? abp.CANCELLED_ERROR : abp.OPERATION_FAILED, why);
    const retryable = response.error.retryable && (again || outcome === 'unstarted');
    const metadata = { ...reports, outcome };
    return { ...response, error: { ...response.error, retryable }, metadata };
  }
}

/**
 * The response to a call whose key belongs to another.
 * @param {string} key
 */
const reused = (key) =>
  unstarted(
    new AbpError(
      'KEY_REUSED',
      `The idempotencyKey ${JSON.stringify(key)} belongs to a call with other params: give this one a key of its own (docs/errors.md#key_reused)`,
    ),
  );

/**
 * Lets a call wait for another that has its key. After a cancel it no longer waits, and the work
 * goes on.
 * @param {Call} call
 */
function goOnWithout(call) {
  const goOn = () => void call.feed(call.endpoint.core.x.goes_on);
  call.ensureExtra().onStop = goOn;
  if (call.aborted) goOn();
}

/** @param {number} ms */
const delay = (ms) =>
  new Promise((resolve) => /** @type {any} */ (setTimeout(resolve, ms)).unref?.());

/**
 * A copy, since parts of the value may move with its response; empty if the value is too large, or
 * cannot be copied.
 * @param {unknown} value
 * @returns {Partial<KeyEnded>}
 */
function resultOf(value) {
  if (isStream(value) || sizeOf(value, MAX_BYTES) > MAX_BYTES) return {};
  return safely(() => ({ value: copyOf(value) }), {});
}

/**
 * The handle of a received call; 0 if the core does not remember it.
 * @param {Endpoint} endpoint
 * @param {string} callId
 */
const handleOf = ({ core, failed }, callId) =>
  failed || !core.pointer ? 0 : core.x.remembered(core.pointer, core.writeId(callId));
