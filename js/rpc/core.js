/**
 * JSON-RPC's core: its peers, and how their actions are packed. What they mean is not known here;
 * wasm/rpc_boundary.c lists what crosses.
 */
import * as abp from '../../dist/abp-constants.js';
import * as rpc from '../../dist/rpc-constants.js';
import deflated from '../../dist/rpc-wasm.js';
import { Boundary } from '../boundary.js';
import { LONGEST_REASON } from '../errors.js';
import { Instance } from '../instance.js';
import { limitOf } from '../messages.js';
import { load } from '../module.js';

/** @type {undefined | import('../module.js').Instantiate} */
let instantiate;

/** Resolves when cores can be made, with what they are made of: `'wasm'` or `'js'`. */
export const ready = load(deflated, () => import('../../dist/rpc-js.js')).then((module) => {
  instantiate = module.instantiate;
  return module.kind;
});
// Peers that wait for it say so themselves; a page that only imports us must not see an unhandled rejection.
ready.catch(() => {});

/**
 * @typedef {object} Limits Each is optional and has a default; see `abp_peer_config` in src/abp_rpc.h.
 * @property {number} [maxCalls] requests in flight in each direction (4096)
 * @property {number} [maxConcurrent] handlers running at once; more requests wait their turn (maxCalls)
 * @property {number} [remembered] ended requests whose late answers are known for what they are (1024)
 * @property {number} [rememberFor] and for how long, in ms (300000)
 * @property {number} [grace] how long a cancelled request is waited for, in ms (5000)
 * @property {number} [maxIdLength] bytes of an id that is a text (256); no more than 256 characters
 */

/** What the core is told of a text that is too long for an id, or not well-formed. */
const NO_TEXT = 2 ** 32 - 1;

/** Where peers are made. @type {Instance | undefined} */
let shared;

/** One peer in the core. An input returns the first action, packed, or a negative `abp_status`. */
export class PeerCore extends Boundary {
  /**
   * @param {number} dialect
   * @param {Limits} limits
   */
  constructor(dialect, limits) {
    if (!instantiate) throw new Error('await `ready` before making a core');
    const instance = (shared ??= new Instance(instantiate));
    super(instance);
    instance.seed();
    const { maxCalls, maxConcurrent, remembered, rememberFor, grace, maxIdLength } = limits;
    this.peer = this.x.create(
      dialect,
      ...[maxCalls, maxConcurrent, remembered, rememberFor, grace, maxIdLength].map(limitOf),
      performance.now(),
    );
    if (!this.peer) throw new RangeError('not enough memory for a connection');
    const word = (/** @type {string} */ name) => instance.readTerminated(this.x[name](this.peer));
    /** The dialect's words. @type {string} */
    this.cancelMethod = word('cancel_method');
    /** @type {string} */
    this.cancelKey = word('cancel_key');
    /** @type {string} */
    this.handshake = word('handshake');
    /** Whether messages without `jsonrpc: "2.0"` are taken. */
    this.unversioned = this.x.unversioned(this.peer) === 1;
  }

  /** Gives the peer's memory back. Nothing comes of what is still said of it. */
  free() {
    this.peer = this.x.destroy(this.peer);
  }

  /** The instance has trapped: those who have it go on as long as they can, new peers get another. */
  abandon() {
    if (shared === this.instance) shared = undefined;
  }

  /**
   * An id as the core takes it, a text by way of the scratch.
   * @param {unknown} id
   * @returns {[number, number]} its type and its value
   */
  #id(id) {
    if (typeof id === 'number') return [rpc.ID_NUMBER, id];
    if (typeof id === 'string') return [rpc.ID_TEXT, this.instance.id(id) || (id && NO_TEXT) || 0];
    return [id === null ? rpc.ID_NULL : rpc.ID_OTHER, 0];
  }

  // --- The exports: what each means is in wasm/rpc_boundary.c and src/abp_rpc.h ------------------------

  /** The next action, packed; 0 when nothing is left. */
  next() {
    return this.x.next(this.peer);
  }
  /** @param {number} now ms */
  advance(now) {
    return this.x.advance(this.peer, now);
  }
  /** @param {number} fault an `abp_rpc_error` */
  malformed(fault) {
    return this.x.malformed(this.peer, fault);
  }
  close() {
    return this.x.close(this.peer);
  }
  lost() {
    return this.x.lost(this.peer);
  }
  /**
   * @param {number} timeout ms
   * @param {number} longest ms
   * @param {number} flags `abp_request_flag`
   * @param {number} parent
   */
  request(timeout, longest, flags, parent) {
    return this.x.request(this.peer, timeout, longest, flags, parent);
  }
  /** @param {number} call @returns {number} */
  number(call) {
    return this.x.number(this.peer, call);
  }
  /**
   * @param {number} call
   * @param {string | undefined} reason
   */
  cancel(call, reason) {
    const length = reason ? this.instance.text(reason) : 0;
    return this.x.cancel(this.peer, call, Math.max(length, 0));
  }
  /** @param {number} call */
  unsent(call) {
    return this.x.unsent(this.peer, call);
  }
  /**
   * @param {unknown} id
   * @param {boolean} isError
   */
  response(id, isError) {
    return this.x.response(this.peer, ...this.#id(id), isError);
  }
  /** @param {unknown} token */
  progress(token) {
    return this.x.progress(this.peer, ...this.#id(token));
  }
  /**
   * @param {unknown} id
   * @param {number} fault
   */
  received(id, fault) {
    return this.x.received(this.peer, ...this.#id(id), fault);
  }
  start() {
    return this.x.start(this.peer);
  }
  /**
   * @param {unknown} id
   * @param {unknown} reason
   */
  cancelReceived(id, reason) {
    const [type, value] = this.#id(id);
    const at = type === rpc.ID_TEXT && value !== NO_TEXT ? value : 0;
    const text = typeof reason === 'string' ? reason.slice(0, LONGEST_REASON) : '';
    const length = text ? Math.max(this.instance.text(text, at), 0) : 0;
    const readable = reason === undefined || typeof reason === 'string';
    return this.x.cancel_received(this.peer, type, value, at, length, readable);
  }
  /**
   * @param {number} call
   * @param {number} ending `abp_ending`
   */
  finish(call, ending) {
    return this.x.finish(this.peer, call, ending);
  }
  /** Whether a received request has not ended. @param {number} call */
  pending(call) {
    return this.x.pending(this.peer, call) === 1;
  }
  /** Whether its handler works and nobody has asked it to stop. @param {number} call */
  running(call) {
    return this.x.running(this.peer, call) === 1;
  }

  /**
   * The error on the wire for a code of the core.
   * @param {number} error `abp_rpc_error`
   * @returns {{ code: number, message: string }}
   */
  error(error) {
    const message = this.instance.readTerminated(this.x.error_message(error));
    return { code: this.x.error_code(this.peer, error), message };
  }

  /** Whether an error is answered with `id: null`. @param {number} error */
  hasNoId(error) {
    return this.x.error_has_no_id(error) === 1;
  }

  /** What the core counts: requests in flight, and what it dropped. @returns {Record<string, number>} */
  counters() {
    const count = (/** @type {number} */ counter) => this.x.count(this.peer, counter);
    return {
      inFlightOut: count(abp.IN_FLIGHT_OUT),
      inFlightIn: count(abp.IN_FLIGHT_IN),
      remembered: count(abp.REMEMBERED),
      late: count(abp.LATE),
      stray: count(abp.STRAY),
      malformed: count(abp.MALFORMED),
      refused: count(abp.REFUSED),
    };
  }
}
