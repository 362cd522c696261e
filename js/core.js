/**
 * The core: one instance of the module is one endpoint. This file moves text and numbers
 * across the boundary (wasm/boundary.c lists it) and knows nothing of what they mean.
 */
import * as abp from '../dist/abp-constants.js';
import deflated from '../dist/abp-wasm.js';
import { load } from './module.js';

/** Bits of a packed action. */
export const MORE = 1 << 16;
export const RELEASED = 1 << 17;
/** The part of a handle that says where the call's slot is. */
export const SLOT = (1 << 20) - 1;

/** Offsets of the cells, in 32-bit words. */
const AT = 0;
const CALL = 2;
const TEXT = 3;
const LENGTH = 4;
const LONGEST_ID = 1024;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

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

/** One endpoint in the core. Its inputs return the first action, packed, or a negative `abp_status`. */
export class Core {
  #u8 = new Uint8Array();
  #u32 = new Uint32Array();
  #f64 = new Float64Array();
  #cells = 0;
  #scratch = 0;
  #room = 0;
  #longest;

  /**
   * @param {0 | 1} role
   * @param {number} features
   * @param {Limits} limits
   * @param {boolean} restart
   */
  constructor(role, features, limits, restart) {
    if (!instantiate) throw new Error('await `ready` before making a core');
    /**
     * The module's exports: wasm/boundary.c. As a copy, since engines look names up in the original slowly.
     * @type {any}
     */
    this.x = { ...instantiate({ emscripten_notify_memory_growth: () => this.#look() }) };
    this.x._initialize();
    this.#cells = this.x.cells() >> 2;
    this.#look();
    this.#reserve(LONGEST_ID);
    this.#u8.set(crypto.getRandomValues(new Uint8Array(16)), this.#scratch);
    const l = limits;
    this.#longest = l.maxControlLength ?? 1 << 20;
    const status = this.x.create(
      role,
      features,
      ...[l.maxCalls, l.maxConcurrent, l.remembered, l.rememberFor, l.grace, l.maxIdLength].map(
        Number,
      ),
      ...[l.maxControlLength, l.heartbeat, restart].map(Number),
      performance.now(),
    );
    if (status < 0) throw new RangeError('not enough memory for a connection');
  }

  /** Growing the memory detaches every view of it. */
  #look() {
    const { buffer } = this.x?.memory ?? { buffer: new ArrayBuffer(0) };
    this.#u8 = new Uint8Array(buffer);
    this.#u32 = new Uint32Array(buffer);
    this.#f64 = new Float64Array(buffer);
  }

  /** @param {number} size */
  #reserve(size) {
    if (size <= this.#room) return true;
    const at = this.x.scratch(size);
    if (!at) return false;
    this.#scratch = at;
    this.#room = size;
    return true;
  }

  /**
   * Writes an id. A `charCodeAt` loop is several times faster than `encodeInto` for texts this short.
   * What cannot be an id (too long, not well-formed, not a string) is given as the empty one, which the
   * core refuses.
   * @param {unknown} id
   * @returns {number} its length in bytes
   */
  id(id) {
    if (typeof id !== 'string' || id.length > LONGEST_ID / 4) return 0;
    const u8 = this.#u8;
    const at = this.#scratch;
    for (let i = 0; i < id.length; i++) {
      const code = id.charCodeAt(i);
      if (code > 127) return this.#wideId(id);
      u8[at + i] = code;
    }
    return id.length;
  }

  /** @param {string} id */
  #wideId(id) {
    // Lone surrogates would all become the same bytes: two ids could be one.
    if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(id)) return 0;
    return encoder.encodeInto(id, this.#u8.subarray(this.#scratch, this.#scratch + LONGEST_ID))
      .written;
  }

  /**
   * Writes text to the scratch, from `offset` on. Returns its length in bytes, or -1 when memory is short.
   * @param {string} text
   * @param {number} [offset]
   */
  text(text, offset = 0) {
    if (!this.#reserve(offset + text.length * 3)) return -1;
    const from = this.#scratch + offset;
    return encoder.encodeInto(text, this.#u8.subarray(from, from + text.length * 3)).written;
  }

  /**
   * Writes a control message. One beyond the limit is not even copied.
   * @param {string} text
   * @returns {number} its length in bytes, or -1
   */
  control(text) {
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
    if (length < 0 || this.x.describe(length) < 0) throw new RangeError(`no memory for ${member}`);
  }

  /** The call that the action just taken is about. */
  get call() {
    return this.#u32[this.#cells + CALL];
  }

  /** The time of the WAKE just taken. */
  get at() {
    return this.#f64[(this.#cells + AT) >> 1];
  }

  /** The text of the action just taken, or undefined. */
  get reason() {
    const length = this.#u32[this.#cells + LENGTH];
    return length ? this.#read(this.#u32[this.#cells + TEXT], length) : undefined;
  }

  /** The message of the SEND or REFUSE just taken. */
  get message() {
    const at = this.x.print(Date.now());
    if (!at) throw new RangeError('no memory for a message');
    return JSON.parse(this.#read(at, this.#u32[this.#cells + LENGTH]));
  }

  /** @param {number} call */
  idText(call) {
    const length = this.x.id_text(call);
    this.#scratch = this.x.scratch(0);
    return this.#read(this.#scratch, length);
  }

  /**
   * @param {number} at
   * @param {number} length
   */
  #read(at, length) {
    return decoder.decode(this.#u8.subarray(at, at + length));
  }

  /**
   * The protocol's error for a code of the core.
   * @param {number} code
   * @returns {{ code: string, message: string, retryable: boolean }}
   */
  error(code) {
    /** @param {number} at */
    const terminated = (at) => this.#read(at, this.#u8.indexOf(0, at) - at);
    return {
      code: terminated(this.x.error_name(code)),
      message: terminated(this.x.error_message(code)),
      retryable: this.x.error_retryable(code) === 1,
    };
  }

  /** What the core counts: calls in flight, and what it dropped. @returns {Record<string, number>} */
  counters() {
    const { count } = this.x;
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
