/**
 * Calls that have a key: none of them runs twice. What became of them is kept in a store, which is in memory unless the app gives
 * one of its own. Loaded with memory.js.
 */
import * as abp from '../core/abp-boundary.js';
import { copyOf } from '../common/copy.js';
import { AbpError, isErrorObject, reasonText, safely, toErrorObject } from '../common/errors.js';
import { secret } from '../common/secret.js';
import { isStream } from '../common/transfer.js';
import { sizeOf } from '../common/value-size.js';
import { warn } from '../common/warn.js';
import { CALL, isResponse } from '../wire/messages.js';
import { neverRan } from './never-ran.js';

/** @import { Connection } from './connection.js' */
/** @import { Memory } from './memory.js' */
/** @import { Invocation } from '../session/invocation.js' */
/** @import { KeyEnded, KeyFound, KeyStore } from '../types/keys.js' */

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

/**
 * The name under which a key is kept.
 * @param {string} owner whose key it is
 * @param {unknown} capability its name
 * @param {string} key
 */
const nameOf = (owner, capability, key) => JSON.stringify([owner, capability, key]);

/** Whose key it is. @param {string} name */
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

  /** @param {string} key @returns {KeyEnded | undefined} */
  find(key) {
    this.#forgetOld();
    return this.#ended.get(key)?.ended;
  }

  /**
   * @param {string} key
   * @returns {Promise<KeyFound>}
   */
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
    const { value } = ended;
    const size = 'value' in ended ? sizeOf(value, MAX_BYTES) : 0;
    this.#ended.set(key, { at: performance.now(), ended, size });
    this.#count(key, 1);
    this.#bytes += size;
    for (const entry of this.#ended.values()) {
      if (this.#bytes <= MAX_BYTES) return;
      // That it has run is remembered all the same.
      entry.ended = { ...entry.ended };
      delete entry.ended.value;
      this.#bytes -= entry.size;
      entry.size = 0;
    }
  }

  /** @param {string} key */
  #delete(key) {
    this.#bytes -= this.#ended.get(key)?.size ?? 0;
    if (this.#ended.delete(key)) this.#count(key, -1);
  }

  /** @param {string} key @param {1 | -1} more */
  #count(key, more) {
    const owner = ownerIn(key);
    const owned = (this.#owned.get(owner) ?? 0) + more;
    if (owned) this.#owned.set(owner, owned);
    else this.#owned.delete(owner);
  }

  clear() {
    this.#ended.clear();
    this.#owned.clear();
    this.#bytes = 0;
  }

  #forgetOld() {
    const now = performance.now();
    for (const [key, { at }] of this.#ended) {
      if (now - at <= this.#rememberFor) return;
      this.#delete(key);
    }
  }
}

/** What a call that others have joined ended with. @typedef {{ ended: KeyEnded, again?: boolean }} Joined */

export class Keys {
  /** What calls with these keys will have ended with, as long as one runs here. @type {Map<string, Promise<Joined>>} */
  #running = new Map();
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

  /** The app was closed: what runs elsewhere is not waited for any more. */
  close() {
    this.#closed = true;
    this.#local.clear();
  }

  /**
   * Runs a call that has a key, unless one with this key runs or has run.
   * @param {Connection} connection
   * @param {Invocation} call
   * @param {unknown} key
   * @param {() => unknown} run runs its handler
   * @returns {Promise<unknown>} what its handler returns
   */
  async once(connection, call, key, run) {
    if (typeof key !== 'string' || !key || key.length > MAX_KEY) {
      const why = `idempotencyKey must be a string of 1 to ${MAX_KEY} characters`;
      return neverRan(new AbpError('INVALID_PARAMS', why));
    }
    const name = nameOf(this.#ownerOf(connection), call.request.name, key);
    for (let joined; (joined = this.#running.get(name));) {
      join(call, connection);
      const { ended, again } = await joined;
      if (!again || call.aborted) return this.#answer(connection, call, ended);
    }
    /** @type {(joined: Joined) => void} */
    let tell = () => {};
    /** @type {Promise<Joined>} */
    const place = new Promise((resolve) => (tell = resolve));
    this.#running.set(name, place);
    /** @param {Joined} joined */
    const leave = (joined) => {
      if (this.#running.get(name) === place) this.#running.delete(name);
      tell(joined);
    };
    let found;
    try {
      found = await this.#begin(name, connection, call, leave);
    } catch (error) {
      if (call.aborted) throw error;
      return neverRan(unwritten(error));
    }
    if (found.state !== 'begun') {
      const ended = found.state === 'ended' ? found.ended : LOST;
      leave({ ended });
      return this.#answer(connection, call, ended, found.state === 'running');
    }
    call.onStop = undefined;
    call.earlier = found.report;
    // Until its handler gives another.
    if (found.report !== undefined) call.report(found.report);
    // What passes on a call that still runs does not say how that ends.
    /** @type {Partial<KeyEnded>} */
    let kept = {};
    const { callId } = call; // which is not known any more once it has ended
    const { machine } = connection.endpoint;
    machine.kept++; // until it is written what became of it, also where the app is closed meanwhile
    void call.returned
      .then(() => this.#end(name, connection, callId, kept, leave, tell))
      .finally(() => machine.forget());
    try {
      const value = await run();
      if (!isResponse(value) || value.metadata?.outcome !== 'running') kept = resultOf(value);
      return value;
    } catch (error) {
      const runs = safely(() => /** @type {any} */ (error).outcome === 'running', false);
      if (!runs) kept = { error: toErrorObject(error) };
      throw error;
    }
  }

  /**
   * Asks the store whether a call may begin, until that is known.
   * @param {string} name
   * @param {Connection} connection
   * @param {Invocation} call
   * @param {(joined: Joined) => void} leave takes the key's place away from this call
   * @returns {Promise<KeyFound>} rejects if it cannot begin
   */
  async #begin(name, connection, call, leave) {
    call.onStop = undefined;
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
          .then((ended) => leave({ ended, again: true }));
      /** @type {KeyFound} */
      let found;
      try {
        // As long as nothing is known, it has not begun. Then it waits for one that has.
        found = await (pause
          ? beginning
          : /** @type {Promise<KeyFound>} */ (call.beginAfter(beginning, (found) => found)));
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
      join(call, connection);
    }
  }

  /** Whose keys these are. @param {Connection} connection */
  #ownerOf(connection) {
    const { owner } = connection;
    if (owner !== undefined) return owner;
    const known = this.#strangers.get(connection) ?? secret();
    this.#strangers.set(connection, known);
    return known;
  }

  /**
   * The handler has returned.
   * @param {string} name
   * @param {Connection} connection
   * @param {string} callId
   * @param {Partial<KeyEnded>} kept what it returned or threw
   * @param {(joined: Joined) => void} leave
   * @param {(joined: Joined) => void} tell
   */
  async #end(name, { endpoint }, callId, kept, leave, tell) {
    const { fate: said, outcome } = await this.#memory.ended(endpoint, callId);
    // The core has no fate for a repeat that never ran, but knows that it has ended.
    const fate = said || (outcome === abp.PENDING ? abp.FATE_UNKNOWN : abp.FATE_UNSTARTED);
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
    // What may run again waits until that is written.
    if (!again) tell({ ended });
    try {
      await this.#store.end(name, ended);
    } catch (error) {
      const what = 'what became of a call with an idempotencyKey could not be written';
      warn(`${what}, and is not known after a restart: ${reasonText(error)}`);
      await this.#local.end(name, ended);
    }
    // Those who wait are told of a failure: they may try again. What was stopped, or never ran, one of them runs.
    leave({ ended, again: again && fate !== abp.FATE_FAILED });
  }

  /**
   * Answers a call with what became of an earlier one that had its key.
   * @param {Connection} connection
   * @param {Invocation} call
   * @param {KeyEnded} ended
   * @param {boolean} [running] whether that still runs
   */
  #answer(connection, call, ended, running) {
    const { endpoint } = connection;
    const { outcome, cancelled, error, report, progress, again } = ended;
    const said = {
      ...(report !== undefined && { report }),
      ...(progress !== undefined && { progress }),
    };
    const fate = running
      ? abp.FATE_RUNNING
      : /** @type {abp.Fate} */ (Math.max(abp.FATES.indexOf(outcome), 0));
    // Those who ask later what became of this call are told of the other.
    if (report !== undefined || progress !== undefined)
      this.#memory.keep(connection, call.callId, said);
    if (!cancelled && !call.aborted && 'value' in ended) return copyOf(ended.value);
    let response;
    if (call.aborted) response = endpoint.failure(abp.CANCELLED_ERROR);
    else if (cancelled) {
      const why = 'The call with this idempotencyKey was cancelled';
      response = endpoint.failure(abp.CANCELLED_ERROR, why);
    } else if (error) response = { success: false, error };
    else {
      const why =
        outcome === 'unknown'
          ? 'The call with this idempotencyKey began, and what became of it is not known: its app has ended since'
          : 'The call with this idempotencyKey has run, and its result is not kept';
      response = endpoint.failure(abp.OPERATION_FAILED, why);
    }
    return CALL.became(response, fate, again, said);
  }
}

/**
 * From now on a call waits for another that has its key. If it is cancelled it waits no more, and the work goes on.
 * @param {Invocation} call
 * @param {Connection} connection
 */
function join(call, { endpoint: { machine } }) {
  const goOn = () => void machine.feed((x, pointer) => x.goes_on(pointer, call.handle));
  call.onStop = goOn;
  if (call.aborted) goOn();
}

/** @param {number} ms */
const delay = (ms) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    /** @type {{ unref?: () => void }} */ (timer).unref?.();
  });

/** Why a call did not begin. @param {unknown} error of its store */
const unwritten = (error) =>
  isErrorObject(error)
    ? error
    : new AbpError(
        'KEYS_UNAVAILABLE',
        `The app cannot write down that the call begins, so it did not: ${reasonText(error)} (docs/errors.md#keys_unavailable)`,
        { retryable: true },
      );

/**
 * A copy of what a handler returned: some of it may move with its response.
 * @param {unknown} value
 * @returns {Partial<KeyEnded>} nothing if it is too much, or cannot be copied, as a stream
 */
function resultOf(value) {
  const size = isStream(value) ? Infinity : sizeOf(value, MAX_BYTES);
  if (size > MAX_BYTES) return {};
  return safely(
    /** @returns {Partial<KeyEnded>} */
    () => ({ value: copyOf(value) }),
    {},
  );
}
