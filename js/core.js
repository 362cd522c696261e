/**
 * The core: its endpoints, and how their actions are packed. What they mean is not known here;
 * wasm/boundary.c lists what crosses.
 */
import * as abp from '../dist/abp-constants.js';
import deflated from '../dist/abp-wasm.js';
import { Boundary } from './boundary.js';
import { LONGEST_REASON } from './errors.js';
import { Instance } from './instance.js';
import { controlText, limitOf } from './messages.js';
import { load } from './module.js';

/** What cores are made by, once `ready` has resolved. @type {import('./module.js').Instantiate} */
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

const outOfMemory = () => new RangeError('not enough memory');

const COUNTERS = {
  inFlightOut: abp.IN_FLIGHT_OUT,
  inFlightIn: abp.IN_FLIGHT_IN,
  remembered: abp.REMEMBERED,
  late: abp.LATE,
  stray: abp.STRAY,
  malformed: abp.MALFORMED,
  unknownType: abp.UNKNOWN_TYPE,
  refused: abp.REFUSED,
};

/**
 * One endpoint in the core. Its inputs are the exports of the module as they are, `x.NAME(ep, …)`: what each means
 * is in wasm/boundary.c and src/abp.h. They return the first action, packed, or a negative `abp_status`.
 */
export class Core extends Boundary {
  #longest;

  /**
   * @param {0 | 1} role
   * @param {number} features
   * @param {Limits} limits
   * @param {boolean} restart
   */
  constructor(role, features, limits, restart) {
    const instance = (shared ??= new Instance(instantiate));
    super(instance);
    instance.seed();
    const l = limits;
    this.#longest = l.maxControlLength ?? 1 << 20;
    this.ep = this.x.create(
      role,
      features,
      ...[
        ...[l.maxCalls, l.maxConcurrent, l.remembered, l.rememberFor, l.grace],
        ...[l.maxIdLength, l.maxControlLength, l.heartbeat, restart],
      ].map(limitOf),
      performance.now(),
    );
    if (!this.ep) throw outOfMemory();
  }

  /** Gives the endpoint's memory back. What still comes for it finds no session and no call. */
  free() {
    this.ep = this.x.destroy(this.ep);
  }

  /** The instance has trapped: those who have it go on as long as they can, new endpoints get another. */
  abandon() {
    if (shared === this.instance) shared = undefined;
  }

  // --- Texts on their way in: each says how many bytes of the scratch it takes ----------------------

  /** An id; 0 if it is none. @param {unknown} id */
  id(id) {
    return this.instance.id(id);
  }

  /**
   * A reason, as far as it is carried; 0 if it is none, or memory is short.
   * @param {unknown} reason
   * @param {number} [offset] what is in front of it
   */
  why(reason, offset) {
    if (typeof reason !== 'string') return 0;
    return Math.max(this.instance.text(reason.slice(0, LONGEST_REASON), offset), 0);
  }

  /**
   * A control message; 0, which is as malformed as can be, for one beyond the limit, too deep, cyclic or not JSON
   * at all.
   * @param {unknown} message
   */
  control(message) {
    try {
      const text = controlText(message, this.#longest);
      return text.length > this.#longest ? 0 : Math.max(this.instance.text(text), 0);
    } catch {
      return 0;
    }
  }

  /**
   * What this side says of itself in the handshake, if it does.
   * @param {string} member
   * @param {unknown} value
   */
  describe(member, value) {
    if (value === undefined) return;
    const length = this.instance.text(JSON.stringify(value), 32);
    this.instance.text(`${member}\0`);
    if (length < 0 || this.x.describe(this.ep, length) < 0) {
      throw outOfMemory();
    }
  }

  // --- Texts on their way out -----------------------------------------------------------------------

  /** The message of the SEND or REFUSE just taken. */
  get message() {
    const at = this.x.print(this.ep, Date.now());
    if (!at) throw outOfMemory();
    return JSON.parse(this.instance.readTerminated(at));
  }

  /** @param {number} call */
  idText(call) {
    return this.instance.readScratch(this.x.id_text(this.ep, call));
  }

  /**
   * The protocol's error for a code of the core.
   * @param {number} code
   * @returns {{ code: string, message: string, retryable: boolean }}
   */
  error(code) {
    return {
      code: this.instance.readTerminated(this.x.error_name(code)),
      message: this.instance.readTerminated(this.x.error_message(code)),
      retryable: this.x.error_retryable(code) === 1,
    };
  }

  /** What the core counts: calls in flight, and what it dropped. @returns {Record<string, number>} */
  counters() {
    const count = (/** @type {[string, number]} */ [name, counter]) => [
      name,
      this.x.count(this.ep, counter),
    ];
    return Object.fromEntries(Object.entries(COUNTERS).map(count));
  }
}
