/**
 * Calls that have a key: none of them runs twice. What became of them is kept in a store, which is in memory unless the app gives
 * one of its own. Loaded with memory.js.
 */
import * as abp from '../../../js/driver/abp-boundary.js';
import { copyOf } from '../../../js/common/copy.js';
import {
  AbpError,
  isErrorObject,
  reasonText,
  safely,
  toErrorObject,
} from '../../../js/common/errors.js';
import { keptReport } from '../../../js/common/report.js';
import { secret } from '../../../js/common/secret.js';
import { isStream } from '../../../js/common/transfer.js';
import { sizeOf } from '../../../js/common/value-size.js';
import { warn } from '../../../js/common/development.js';
import { isResponse, unstarted } from '../../../js/wire/messages.js';
import { beginAfter, returnOf } from '../../../js/app/waits.js';

/** @import { Connection } from '../../../js/app/connection.js' */
/** @import { Memory } from './memory.js' */
/** @import { Call } from '../../../js/session/call.js' */
/** @import { Endpoint } from '../../../js/types/trace.js' */
/** @import { KeyEnded, KeyFound, KeyStore } from '../types/store.js' */

/** How many calls with a key are kept in memory. One agent may have as many as there is still room for: it cannot take it all. */
const MAX_KEYED = 16_384;
/** Characters of a key. */
const MAX_KEY = 256;
/** Bytes of what a call with a key returned, and in memory of what all of them did. */
const MAX_BYTES = 4_194_304;
/** ms after which it is asked again whether a call that runs elsewhere has ended: at first, and at most. */
const PAUSES = [20, 1000];

/** What became of a call of which nothing is known. @type {KeyEnded} */
const LOST = { outcome: 'unknown', cancelled: false };
/** What is known of a call that was stopped before it began. @type {KeyEnded} */
const NEVER = { outcome: 'unstarted', cancelled: false, again: true };

/** Whose key it is. @param {string} name under which it is kept: [owner, capability, key] as JSON */
const ownerIn = (name) => JSON.parse(name)[0];

/** A store in memory. What is written there is not lost before the app is. */
class LocalStore {
  /** By when their calls ended, the oldest first. @type {Map<string, { at: number, ended: KeyEnded, size: number }>} */
  #ended = new Map();
  /** How many of them each agent has. @type {Map<string, number>} */
  #owned = new Map();
  #bytes = 0;
  #rememberFor;

  /** @param {number} rememberFor ms */
  constructor(rememberFor) {
    this.#rememberFor = rememberFor;
  }

  /** Finds a key, and forgets those that are too old. @param {string} key */
  find(key) {
    const now = performance.now();
    for (const [old, { at }] of this.#ended) {
      if (now - at <= this.#rememberFor) break;
      this.#delete(old);
    }
    return this.#ended.get(key)?.ended;
  }

  /** @param {string} key @returns {Promise<KeyFound>} */
  async begin(key) {
    const ended = this.find(key);
    if (ended && !ended.again) return { state: 'ended', ended };
    this.#delete(key);
    const [oldest] = this.#ended.values();
    const owned = this.#owned.get(ownerIn(key)) ?? 0;
    if (oldest && owned >= MAX_KEYED - this.#ended.size) {
      const why = 'Too many calls with an idempotencyKey are remembered';
      const retryAfter = Math.ceil(oldest.at + this.#rememberFor - performance.now()) + 1;
      throw new AbpError('RATE_LIMITED', why, { retryable: true, retryAfter });
    }
    return { state: 'begun', report: ended?.report };
  }

  /** @param {string} key @param {KeyEnded} ended */
  async end(key, ended) {
    this.#delete(key);
    const size = 'value' in ended ? sizeOf(ended.value, MAX_BYTES) : 0;
    this.#ended.set(key, { at: performance.now(), ended, size });
    this.#count(key, 1, size);
    for (const entry of this.#ended.values()) {
      if (this.#bytes <= MAX_BYTES) return;
      // That it has run is remembered all the same.
      entry.ended = { ...entry.ended };
      delete entry.ended.value;
      this.#bytes -= entry.size;
      entry.size = 0;
    }
  }

  clear() {
    for (const key of this.#ended.keys()) this.#delete(key);
  }

  /** @param {string} key */
  #delete(key) {
    const { size = 0 } = this.#ended.get(key) ?? {};
    if (this.#ended.delete(key)) this.#count(key, -1, -size);
  }

  /** @param {string} key @param {1 | -1} more @param {number} bytes */
  #count(key, more, bytes) {
    const owner = ownerIn(key);
    const owned = (this.#owned.get(owner) ?? 0) + more;
    if (owned) this.#owned.set(owner, owned);
    else this.#owned.delete(owner);
    this.#bytes += bytes;
  }
}

/**
 * What a call ended with that others have joined. `again`: one of these runs in its place.
 * @typedef {{ ended: KeyEnded, again?: boolean }} Joined
 */

/** The place of a call with a key, as long as it runs here. Others with this key wait there for what it ends with. */
class Place {
  /** @type {Call[]} */
  #joined = [];
  /** Tells them. @type {(joined: Joined) => void} */
  tell = () => {};
  /** @type {Promise<Joined>} */
  #told = new Promise((resolve) => (this.tell = resolve));

  /** @param {Call} first */
  constructor(first) {
    this.first = first;
  }

  /** @param {Call} call */
  join(call) {
    this.#joined.push(call);
    goOnWithout(call);
    return this.#told;
  }

  /** Tells the core that those who wait have not begun, either: so they end as `unstarted` if their app is closed. */
  postpone() {
    for (const call of this.#joined) call.postpone();
  }
}

export class Keys {
  /** @type {Map<string, Place>} */
  #places = new Map();
  /** What agents that do not say who they are are known by: their connections. @type {WeakMap<Connection, string>} */
  #strangers = new WeakMap();
  #closed = false;
  #memory;
  #local;
  #store;

  /**
   * @param {Memory} memory
   * @param {number} rememberFor ms that are remembered in memory
   * @param {KeyStore} [store] the app's own
   */
  constructor(memory, rememberFor, store) {
    this.#memory = memory;
    this.#local = new LocalStore(rememberFor);
    /** @type {Pick<KeyStore, 'begin' | 'end'>} */
    this.#store = store ?? this.#local;
  }

  /** The app is about to close its sessions. What runs elsewhere is not waited for any more. */
  close() {
    this.#closed = true;
    this.#local.clear();
    for (const place of this.#places.values()) {
      const { hasEnded, handle, endpoint } = place.first;
      const { core, machine } = endpoint;
      if (!hasEnded && !machine.failed && !core.x.has_begun(core.pointer, handle)) place.postpone();
    }
  }

  /**
   * Runs a call that has a key, unless one with this key runs or has run.
   * @param {Connection} connection
   * @param {Call} call
   * @param {() => unknown} run runs its handler
   * @returns {Promise<unknown>} what its handler returns
   */
  async once(connection, call, run) {
    const key = call.options.idempotencyKey;
    const isKey = typeof key === 'string' && key && key.length <= MAX_KEY;
    // Such texts do not survive every way.
    if (!isKey || /[\0\p{Surrogate}]/u.test(key)) {
      const why = `idempotencyKey must be a well-formed string of 1 to ${MAX_KEY} characters`;
      return unstarted(new AbpError('INVALID_PARAMS', why));
    }
    const stranger = this.#strangers.get(connection) ?? secret();
    this.#strangers.set(connection, stranger);
    const name = JSON.stringify([connection.owner ?? stranger, call.name, key]);
    for (let place; (place = this.#places.get(name));) {
      const { ended, again } = await place.join(call);
      if (!again || call.aborted) return this.#answer(call, ended);
    }
    const place = new Place(call);
    this.#places.set(name, place);
    let found;
    try {
      found = await this.#begin(name, call, place);
    } catch (error) {
      if (call.aborted) throw error;
      return unstarted(unwritten(error));
    }
    if (found.state !== 'begun') {
      const ended = found.state === 'ended' ? found.ended : LOST;
      this.#leave(name, place, { ended });
      return this.#answer(call, ended, found.state === 'running');
    }
    const { callId, endpoint, rare } = call; // its id is not known any more once it has ended
    rare.onStop = undefined;
    rare.earlier = found.report;
    // Until its handler gives another.
    if (found.report !== undefined) rare.report = keptReport(found.report, call.name);
    // What passes on a call that still runs does not say how that ends.
    /** @type {Partial<KeyEnded>} */
    let kept = {};
    endpoint.machine.kept++; // until it is written what became of it, also where the app is closed meanwhile
    void returnOf(call)
      .then(() => this.#end(name, place, callId, kept))
      .finally(() => endpoint.machine.forget());
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

  /** Gives a place away. @param {string} name @param {Place} place @param {Joined} joined what those who wait there are told */
  #leave(name, place, joined) {
    if (this.#places.get(name) === place) this.#places.delete(name);
    place.tell(joined);
  }

  /**
   * Asks the store whether a call may begin, until that is known.
   * @param {string} name
   * @param {Call} call
   * @param {Place} place
   * @returns {Promise<KeyFound>} rejects if it cannot begin
   */
  async #begin(name, call, place) {
    call.rare.onStop = undefined;
    for (let pause = 0; ; pause = Math.min(pause * 2 || PAUSES[0], PAUSES[1])) {
      if (pause) await delay(pause);
      if (pause && this.#closed) return { state: 'running' };
      const ended = this.#local.find(name);
      if (ended && !ended.again) return { state: 'ended', ended };
      const beginning = (async () => this.#store.begin(name))();
      // What was written for a call that does not begin is taken back.
      const undo = () =>
        beginning
          .then(async ({ state }) => {
            if (state !== 'begun') return LOST;
            await this.#store.end(name, NEVER);
            return NEVER;
          })
          .catch(() => LOST)
          .then((ended) => this.#leave(name, place, { ended, again: true }));
      /** @type {KeyFound} */
      let found;
      try {
        // As long as nothing is known, it has not begun. Then it waits for one that has.
        found = await (pause
          ? beginning
          : /** @type {Promise<KeyFound>} */ (beginAfter(call, beginning, (found) => found)));
      } catch (error) {
        if (pause) return { state: 'lost' };
        void undo();
        throw error;
      }
      if (found.state === 'begun' && call.aborted) {
        await undo();
        // What it had waited for may have run elsewhere.
        return pause ? { state: 'lost' } : { state: 'ended', ended: NEVER };
      }
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
    const { endpoint } = place.first;
    const became = await this.#memory.became(endpoint, callId, true);
    const { outcome } = became;
    // The core has no fate for a repeat that never ran, but knows that it has ended.
    const fate = became.fate || (outcome === abp.PENDING ? abp.FATE_UNKNOWN : abp.FATE_UNSTARTED);
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
      ...this.#memory.saidOf(endpoint, callId),
      ...(again && { again }),
    };
    // Those who wait are told of a failure: they may try again. What was stopped, or never ran, one of them runs.
    const isFree = again && fate !== abp.FATE_FAILED;
    if (isFree) place.postpone();
    // What may run again waits until that is written.
    if (!again) place.tell({ ended });
    try {
      await this.#store.end(name, ended);
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
    const said = this.#memory.keep(endpoint, callId, ended);
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
    return {
      ...response,
      error: { ...response.error, retryable },
      metadata: { ...said, outcome },
    };
  }
}

/** A call waits for another that has its key. If it is cancelled it waits no more, and the work goes on. @param {Call} call */
function goOnWithout(call) {
  const goOn = () => void call.tell((x, pointer, handle) => x.goes_on(pointer, handle));
  call.rare.onStop = goOn;
  if (call.aborted) goOn();
}

/** @param {number} ms */
const delay = (ms) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    /** @type {{ unref?: () => void }} */ (timer).unref?.();
  });

/** Why a call did not begin. @param {unknown} error of its store */
function unwritten(error) {
  if (isErrorObject(error)) return error;
  const why = `The app cannot write down that the call begins, so it did not: ${reasonText(error)} (docs/errors.md#keys_unavailable)`;
  return new AbpError('KEYS_UNAVAILABLE', why, { retryable: true });
}

/**
 * A copy of what a handler returned: some of it may move with its response.
 * @param {unknown} value
 * @returns {Partial<KeyEnded>} nothing if it is too much, or cannot be copied, as a stream
 */
function resultOf(value) {
  if (isStream(value) || sizeOf(value, MAX_BYTES) > MAX_BYTES) return {};
  return safely(() => ({ value: copyOf(value) }), {});
}
