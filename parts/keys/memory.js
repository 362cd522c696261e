/**
 * What an app remembers for agents that come back: what became of their calls, which the cores of
 * their sessions know, and what calls that have a key ended with. Loaded when an agent asks, gives
 * a key, or has gone.
 *
 * How it is made: the cores of connections that have ended are kept here, so that there is no copy
 * of what they know. A core has no values, so what calls with a key returned is in a store: in
 * memory (`local-store.js`), or one of the app's own (`stored-keys.js` has the rules, `sqlite.js`
 * and `indexeddb.js` the tables). A call with a key asks the store whether it may begin, runs, and
 * what the core says became of it is written. Meanwhile it has a place here. Others with its key
 * wait there: a repeat is a call of its own, whose handler waits for the first, and the core is
 * told if it need not wait any more, or if the first has not begun. A key belongs to the digest of
 * its params: a call with others is refused, here or by the store.
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
 * @typedef {{ report?: unknown, progress?: any }} Said What the handler of a call said of its work.
 */
/**
 * @typedef {object} Joined What a call ended with that others wait for. `again`: one of these runs
 *   in its place.
 * @property {KeyEnded} ended
 * @property {boolean} [again]
 */

/** Connections that have ended and whose calls may be asked for. */
const MAX_ENDED = 16;
/** ms that the app's store of keys is waited for before agents are answered. */
const MAX_OPENING = 5000;
/** Characters of a key. */
const MAX_KEY = 256;
/**
 * ms after which it is asked again whether a call that runs elsewhere has ended: at first, and at
 * most.
 */
const PAUSES = [20, 1000];

/** What became of a call of which nothing is known. @type {KeyEnded} */
const LOST = { outcome: 'unknown', cancelled: false };
/** Of one that was stopped before it began. @type {KeyEnded} */
const NEVER = { outcome: 'unstarted', cancelled: false, again: true };

/** The place of a call with a key, as long as it runs here. */
class Place {
  /** The calls with its key that wait for what it ends with. @type {Call[]} */
  #joined = [];
  /** Whether one of them may run, once that is written. */
  #isFree = false;
  /** Tells them. @type {(joined: Joined) => void} */
  tell = () => {};
  /** @type {Promise<Joined>} */
  told = new Promise((resolve) => (this.tell = resolve));

  /**
   * @param {Call} first
   * @param {string} digest of its params
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
   * Tells the core that those who wait have not begun, either: so they end as `unstarted` if their
   * app is closed.
   */
  free() {
    this.#isFree = true;
    for (const call of this.#joined) if (!call.hasEnded) call.postpone();
  }
}

export class Memory {
  /**
   * Connections that have ended, each until a timer fires: the oldest first.
   * @type {Map<Connection, any>}
   */
  #ended = new Map();
  /**
   * By the slots of the calls that the core remembers.
   * @type {WeakMap<Endpoint, { call: abp.Handle, callId: string, said: Said }[]>}
   */
  #said = new WeakMap();
  /** @type {Map<string, Place>} */
  #places = new Map();
  /**
   * What agents that do not say who they are are known by: their connections.
   * @type {WeakMap<Connection, string>}
   */
  #strangers = new WeakMap();
  #closed = false;
  #connections;
  #rememberFor;
  #local;
  /** What keeps calls that have a key. @type {Pick<KeyStore, 'begin' | 'end'>} */
  #keys;

  /**
   * @param {ReadonlySet<Connection>} connections of the app
   * @param {number} [rememberFor] ms that anything is kept
   * @param {KeyStore} [store] what keeps calls that have a key, also after the app has ended
   */
  constructor(connections, rememberFor = abp.DEFAULT_REMEMBER_MS, store = undefined) {
    this.#connections = connections;
    this.#rememberFor = rememberFor;
    this.#local = new LocalStore(rememberFor);
    this.#keys = store ?? this.#local;
  }

  /**
   * Opens the app's store of keys. Where that fails, the app answers all the same, and no call with
   * a key begins.
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

  /** The app is about to close its sessions. What runs elsewhere is not waited for any more. */
  close() {
    for (const ended of this.#ended.keys()) this.#drop(ended);
    this.#closed = true;
    this.#local.clear();
    for (const place of this.#places.values()) {
      const { core, failed } = place.first.endpoint;
      if (!failed && !core.x.has_begun(core.pointer, place.handle)) place.free();
    }
  }

  // --- What became of a call ---------------------------------------------------------------------

  /**
   * Keeps what the handler of a call said of its work, and returns a copy without what it did not
   * say.
   * @param {Endpoint} endpoint
   * @param {string} callId
   * @param {Said} said
   */
  keep(endpoint, callId, { report, progress }) {
    /** @type {Said} */
    const said = { ...(report !== undefined && { report }), ...(progress && { progress }) };
    const call = handleOf(endpoint, callId);
    const slots = this.#said.get(endpoint) ?? [];
    this.#said.set(endpoint, slots);
    if (call) slots[call & abp.SLOT_MASK] = { call, callId, said };
    return said;
  }

  /**
   * What the handler of a call said of its work.
   * @param {Endpoint} endpoint
   * @param {abp.Handle} call
   * @param {string} callId
   */
  #saidOf(endpoint, call, callId) {
    const kept = this.#said.get(endpoint)?.[call & abp.SLOT_MASK];
    // Handles begin again after 1,023 calls of a slot.
    return kept?.call === call && kept.callId === callId ? kept.said : undefined;
  }

  /**
   * What became of a call: at once or, if it shall be `settled`, when its handler has returned, and
   * that of the call whose word it takes.
   * @param {Endpoint} endpoint
   * @param {abp.Handle} asked
   * @param {boolean} settled
   * @param {AbortSignal} [signal] ends the waiting
   * @returns {Promise<{ fate: abp.Fate, outcome: abp.Outcome }>}
   */
  async #became(endpoint, asked, settled, signal) {
    const { core } = endpoint;
    endpoint.kept++; // until it is known
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
   * Answers an agent that asks what became of a call, or runs a call that has a key.
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
    // That which the agent has used last comes first: an older one may not know yet that it has
    // ended.
    const others = [...this.#ended.keys(), ...this.#connections]
      .filter((other) => owner && other.owner === owner)
      .map((other) => other.endpoint)
      .sort((a, b) => a.now - b.now);
    for (const asked of [endpoint, ...others.reverse()]) {
      if (asked.core.pointer) asked.advance(); // what is too old is forgotten
      const handle = handleOf(asked, callId);
      const { fate } = await this.#became(asked, handle, settled, signal);
      if (fate) return { outcome: abp.FATES[fate], ...this.#saidOf(asked, handle, callId) };
    }
    return { outcome: abp.FATES[abp.FATE_UNKNOWN] };
  }

  // --- Calls that have a key: none of them runs twice --------------------------------------------

  /**
   * Runs a call that has a key, unless one with this key runs or has run.
   * @param {Connection} connection
   * @param {Call} call
   * @param {() => unknown} run
   */
  async #once(connection, call, run) {
    const key = call.options.idempotencyKey;
    const isKey = typeof key === 'string' && key && key.length <= MAX_KEY;
    // Such texts do not survive every way.
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
      // Of the params as they came: the handler may change them.
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
      // What was written for a call that does not begin is taken back.
      await (async () => this.#keys.end(name, NEVER))().catch(() => {});
      this.#leave(name, place, { ended: NEVER, again: true });
      // What it had waited for may have run elsewhere.
      return this.#answer(call, call.hasEnded ? NEVER : LOST);
    }
    if (found.state !== 'begun') {
      const ended = found.state === 'ended' ? found.ended : LOST;
      this.#leave(name, place, { ended });
      return this.#answer(call, ended, found.state === 'running');
    }
    const { callId, endpoint } = call; // its id is not known any more once it has ended
    const extra = call.ensureExtra();
    extra.onStop = undefined;
    extra.earlier = keptReport(found.report);
    // What passes on a call that still runs does not say how that ends.
    /** @type {Partial<KeyEnded>} */
    let kept = {};
    // Until it is written what became of it, also where the app is closed meanwhile.
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
   * Gives a place away.
   * @param {string} name
   * @param {Place} place
   * @param {Joined} joined what those who wait there are told
   */
  #leave(name, place, joined) {
    if (joined.again) place.free();
    this.#places.delete(name);
    place.tell(joined);
  }

  /**
   * Asks the store, until it is known whether a call may begin. It has not begun then, and does
   * with its handler.
   * @param {string} name
   * @param {Call} call
   * @param {string} digest of its params
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
      // As long as nothing is known, it has not begun. Then it waits for one that has.
      if (!pause && !call.beginWork()) throw call.signal.reason;
      if (found.state !== 'running') return found;
      goOnWithout(call);
    }
  }

  /**
   * The handler has returned.
   * @param {string} name
   * @param {Place} place
   * @param {string} callId
   * @param {Partial<KeyEnded>} kept what it returned or threw
   */
  async #end(name, place, callId, kept) {
    const { handle, first } = place; // a repeat in a later session may have the same id
    const { endpoint } = first;
    const { fate: known, outcome } = await this.#became(endpoint, handle, true);
    // The core has no fate for a repeat that never ran, but knows that it has ended.
    const fate = known || (outcome === abp.PENDING ? abp.FATE_UNKNOWN : abp.FATE_UNSTARTED);
    const error = isResponse(kept.value) ? kept.value.error : kept.error;
    const isStopped = fate === abp.FATE_STOPPED;
    const again =
      fate === abp.FATE_UNSTARTED ||
      (fate === abp.FATE_FAILED && toErrorObject(error).retryable) ||
      // Nobody wanted it to stop: its agent was gone, or this app was going.
      (isStopped && outcome === abp.DISCONNECTED);
    /** @type {KeyEnded} */
    const ended = {
      ...kept,
      outcome: /** @type {KeyEnded['outcome']} */ (abp.FATES[fate]),
      cancelled: outcome === abp.CANCELLED || outcome === abp.TIMED_OUT || isStopped,
      ...this.#saidOf(endpoint, handle, callId),
      // What never ran leaves the key to others.
      ...(fate !== abp.FATE_UNSTARTED && { digest: place.digest }),
      ...(again && { again }),
    };
    // Those who wait are told of a failure: they may try again. What was stopped, or never ran, one
    // of them runs.
    const isFree = again && fate !== abp.FATE_FAILED;
    if (isFree) place.free();
    // What may run again waits until that is written.
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
   * Answers a call with what became of an earlier one that had its key.
   * @param {Call} call
   * @param {KeyEnded} ended
   * @param {boolean} [running] whether that still runs
   */
  #answer(call, ended, running) {
    const { endpoint, aborted, callId } = call;
    const { cancelled, error, again } = ended;
    // Those who ask later what became of this call are told of the other.
    const said = this.keep(endpoint, callId, ended);
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
    const metadata = { ...said, outcome };
    return { ...response, error: { ...response.error, retryable }, metadata };
  }
}

/**
 * The response to a call whose key is that of another.
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
 * A call waits for another that has its key. If it is cancelled it waits no more, and the work goes
 * on.
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
 * A copy, since some of it may move with its response; nothing if it is too much, or cannot be
 * copied.
 * @param {unknown} value
 * @returns {Partial<KeyEnded>}
 */
function resultOf(value) {
  if (isStream(value) || sizeOf(value, MAX_BYTES) > MAX_BYTES) return {};
  return safely(() => ({ value: copyOf(value) }), {});
}

/**
 * The handle of a call that was received, 0 if the core does not remember it.
 * @param {Endpoint} endpoint
 * @param {string} callId
 */
const handleOf = ({ core, failed }, callId) =>
  failed || !core.pointer ? 0 : core.x.remembered(core.pointer, core.writeId(callId));
