/**
 * The core: its endpoints, and how their actions are packed. What they mean is not known here;
 * wasm/boundary.c lists what crosses.
 */
import * as abp from '../dist/abp-constants.js';
import deflated from '../dist/abp-wasm.js';
import { Cells } from './cells.js';
import { Instance } from './instance.js';
import { controlText, limitOf } from './messages.js';
import { load } from './module.js';

/** @type {undefined | import('./module.js').Instantiate} */
let instantiate;

/** Resolves when cores can be made, with what they are made of: `'wasm'` or `'js'`. */
export const ready = load(deflated, () => import('../dist/abp-js.js')).then((module) => {
  instantiate = module.instantiate;
  return module.kind;
});
// Whoever needs a core awaits `ready`; a page that only imports us must not see an unhandled rejection.
ready.catch(() => {});

/**
 * @typedef {object} Limits Each is optional and has a default; see `abp_config` in src/abp.h.
 * @property {number} [maxCalls] calls in flight in each direction (4096)
 * @property {number} [maxConcurrent] handlers running at once; more calls wait their turn (maxCalls)
 * @property {number} [remembered] finished calls whose fate can still be asked for (1024)
 * @property {number} [rememberFor] and for how long, in ms (300000)
 * @property {number} [grace] how long a cancel waits for its call to end, in ms (app 3000, agent 5000)
 * @property {number} [maxIdLength] bytes of an id (256); no more than 256 characters
 * @property {number} [maxControlLength] bytes of a control message (1048576)
 * @property {number} [heartbeat] ms of silence after which the peer is asked for a sign of life (15000)
 */

/** Where endpoints are made. @type {Instance | undefined} */
let shared;

/**
 * One endpoint in the core. An input returns the first action, packed, or a negative `abp_status`.
 */
export class Core extends Cells {
  #instance;
  #longest;

  /**
   * @param {0 | 1} role
   * @param {number} features
   * @param {Limits} limits
   * @param {boolean} restart
   */
  constructor(role, features, limits, restart) {
    if (!instantiate) throw new Error('await `ready` before making a core');
    const instance = (shared ??= new Instance(instantiate));
    super(instance);
    this.#instance = instance;
    this.x = instance.x;
    instance.seed();
    const l = limits;
    this.#longest = l.maxControlLength ?? 1 << 20;
    this.ep = this.x.create(
      role,
      features,
      ...[l.maxCalls, l.maxConcurrent, l.remembered, l.rememberFor, l.grace, l.maxIdLength].map(
        limitOf,
      ),
      ...[l.maxControlLength, l.heartbeat, restart].map(limitOf),
      performance.now(),
    );
    if (!this.ep) throw new RangeError('not enough memory for a connection');
  }

  /** Gives the endpoint's memory back. What still comes for it finds no session and no call. */
  free() {
    this.ep = this.x.destroy(this.ep);
  }

  /** The instance has trapped: those who have it go on as long as they can, new endpoints get another. */
  abandon() {
    if (shared === this.#instance) shared = undefined;
  }

  /** Writes an id to the scratch. @param {unknown} id @returns {number} its length in bytes, 0 if it is none */
  id(id) {
    return this.#instance.id(id);
  }

  /**
   * Writes text to the scratch. Returns its length in bytes, or -1 when memory is short.
   * @param {string} text
   * @param {number} [offset]
   */
  text(text, offset) {
    return this.#instance.text(text, offset);
  }

  /**
   * Writes a control message. One beyond the limit is not even copied. Throws what cannot be text.
   * @param {unknown} message
   * @returns {number} its length in bytes, or -1
   */
  control(message) {
    const text = controlText(message, this.#longest);
    return text.length > this.#longest ? -1 : this.text(text);
  }

  /**
   * What this side says of itself in the handshake.
   * @param {string} member
   * @param {unknown} value
   */
  describe(member, value) {
    const length = this.text(JSON.stringify(value), 32);
    this.text(`${member}\0`);
    if (length < 0 || this.x.describe(this.ep, length) < 0) {
      throw new RangeError(`no memory for ${member}`);
    }
  }

  // --- The exports: what each means is in wasm/boundary.c and src/abp.h ----------------------------

  /** The next action, packed; 0 when nothing is left. */
  next() {
    return this.x.next(this.ep);
  }
  /** @param {number} timeout ms */
  connect(timeout) {
    return this.x.connect(this.ep, timeout);
  }
  close() {
    return this.x.close(this.ep);
  }
  lost() {
    return this.x.lost(this.ep);
  }
  /** @param {boolean} persisted */
  leave(persisted) {
    return this.x.leave(this.ep, persisted);
  }
  /** @param {number} now ms */
  advance(now) {
    return this.x.advance(this.ep, now);
  }
  /**
   * @param {number} idLength
   * @param {number} timeout
   * @param {number} flags
   * @param {number} parent
   */
  request(idLength, timeout, flags, parent) {
    return this.x.request(this.ep, idLength, timeout, flags, parent);
  }
  /**
   * @param {number} call
   * @param {number} reasonLength
   */
  cancel(call, reasonLength) {
    return this.x.cancel(this.ep, call, reasonLength);
  }
  /**
   * @param {number} idLength
   * @param {number} reasonLength
   */
  cancelById(idLength, reasonLength) {
    return this.x.cancel_by_id(this.ep, idLength, reasonLength);
  }
  /**
   * @param {number} idLength
   * @param {number} number
   * @param {number} outcome
   */
  resultReceived(idLength, number, outcome) {
    return this.x.result_received(this.ep, idLength, number, outcome);
  }
  /** @param {number} call */
  unsent(call) {
    return this.x.unsent(this.ep, call);
  }
  /**
   * @param {number} idLength
   * @param {number} number
   */
  progressReceived(idLength, number) {
    return this.x.progress_received(this.ep, idLength, number);
  }
  /** @param {number} call */
  progressWanted(call) {
    return this.x.progress_wanted(this.ep, call) === 1;
  }
  /**
   * @param {number} idLength
   * @param {number} number
   * @param {number} timeout
   * @param {number} flags
   * @param {number} fault
   */
  callReceived(idLength, number, timeout, flags, fault) {
    return this.x.call_received(this.ep, idLength, number, timeout, flags, fault);
  }
  /**
   * @param {number} idLength
   * @param {number} number
   * @param {number} reasonLength
   */
  cancelReceived(idLength, number, reasonLength) {
    return this.x.cancel_received(this.ep, idLength, number, reasonLength);
  }
  /**
   * @param {number} parent
   * @param {number} timeout
   * @param {number} fault
   */
  callLocal(parent, timeout, fault) {
    return this.x.call_local(this.ep, parent, timeout, fault);
  }
  /**
   * @param {number} call
   * @param {number} outcome
   */
  finish(call, outcome) {
    return this.x.finish(this.ep, call, outcome);
  }
  /** @param {number} length of the message in the scratch */
  receive(length) {
    return this.x.receive(this.ep, length);
  }
  /** @param {number} call @returns {number} */
  number(call) {
    return this.x.number(this.ep, call);
  }
  /** @returns {number} */
  features() {
    return this.x.features(this.ep);
  }
  /** @returns {number} */
  state() {
    return this.x.state(this.ep);
  }

  // --- What the action just taken says -------------------------------------------------------------

  /** The message of the SEND or REFUSE just taken. */
  get message() {
    const at = this.x.print(this.ep, Date.now());
    if (!at) throw new RangeError('no memory for a message');
    return JSON.parse(this.#instance.read(at, this.length));
  }

  /** @param {number} call */
  idText(call) {
    return this.#instance.readScratch(this.x.id_text(this.ep, call));
  }

  /**
   * The protocol's error for a code of the core.
   * @param {number} code
   * @returns {{ code: string, message: string, retryable: boolean }}
   */
  error(code) {
    return {
      code: this.#instance.readTerminated(this.x.error_name(code)),
      message: this.#instance.readTerminated(this.x.error_message(code)),
      retryable: this.x.error_retryable(code) === 1,
    };
  }

  /** What the core counts: calls in flight, and what it dropped. @returns {Record<string, number>} */
  counters() {
    const count = (/** @type {number} */ counter) => this.x.count(this.ep, counter);
    return {
      inFlightOut: count(abp.IN_FLIGHT_OUT),
      inFlightIn: count(abp.IN_FLIGHT_IN),
      remembered: count(abp.REMEMBERED),
      late: count(abp.LATE),
      stray: count(abp.STRAY),
      malformed: count(abp.MALFORMED),
      unknownType: count(abp.UNKNOWN_TYPE),
      refused: count(abp.REFUSED),
    };
  }
}
