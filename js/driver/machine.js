/**
 * Drives a core: feeds it an input, takes every action that this causes, and then performs them. It
 * also keeps the core's timer, abandons the core when it traps, and frees its memory at the end.
 * Nothing here decides what happens to a call.
 */
import { reportError } from '../common/errors.js';
import * as abp from './abp-boundary.js';

/** Where an action says what it is about, in words. */
const CALL = abp.ACTION_CALL >> 2;

/** Inputs that come within this time of each other share one time stamp, in ms. */
const CLOCK_STEP = 10;

/** The core's timer, its failure, and its end: what a machine for any of the cores needs. */
export class CoreDriver {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #armedFor = 0;
  /** How many calls wait for the other side. */
  #waiting = 0;
  /** When a message was read last, in ms of `performance.now()`. */
  now = 0;
  /** When the core was told it. */
  #toldAt = 0;
  /** The core has trapped and is not used any more. */
  failed = false;

  /**
   * Tells the core the time.
   * @param {number} _now ms
   */
  advance(_now) {}

  /**
   * The timer has fired.
   * @param {number} now ms
   */
  due(now) {
    this.advance(now);
  }

  /** Reads the clock, and tells the core the time, unless hardly any has passed. */
  tick() {
    this.now = performance.now();
    if (this.now - this.#toldAt < CLOCK_STEP) return;
    this.#toldAt = this.now;
    this.advance(this.now);
  }

  /**
   * Sets the one timer.
   * @param {number} at ms of `performance.now()`, 0 for none
   */
  arm(at) {
    if (at === this.#armedFor) return;
    clearTimeout(this.#timer);
    this.#armedFor = at;
    if (!at) return;
    const fire = () => {
      this.#armedFor = 0;
      // Timers may fire a fraction of a millisecond early.
      this.due(Math.max(at, performance.now()));
    };
    this.#timer = setTimeout(fire, Math.max(0, Math.ceil(at - performance.now())));
    if (this.#waiting <= 0) /** @type {{ unref?: () => void }} */ (this.#timer).unref?.();
  }

  /**
   * Counts the calls that wait for the other side.
   * @param {1 | -1} more 1 when a call begins to wait, -1 when it ends
   */
  wait(more) {
    this.#waiting += more;
    // The timer keeps a Node process alive as long as a call waits. In browsers it is a number.
    const timer = /** @type {{ ref?: () => void, unref?: () => void } | undefined} */ (this.#timer);
    if (this.#waiting < 2) timer?.[this.#waiting > 0 ? 'ref' : 'unref']?.();
  }

  /**
   * The core has trapped, or memory is short: this connection is over, and others continue.
   * @param {{ abandon(): void }} core
   * @param {string} what has failed, and what follows from it, for the console
   * @param {unknown} error
   */
  giveUp(core, what, error) {
    this.failed = true;
    core.abandon();
    this.arm(0);
    console.error(`abp-bridge: ${what}:`, error);
  }
}

/**
 * The record of a call, kept by slot from the action that begins the call until the one that ends
 * it. What else it has is its protocol's.
 * @typedef {object} CallRecord
 * @property {abp.Handle} handle of the call; 0 before it begins and after its handler has settled
 */

/**
 * What the core wants done, as it was taken.
 * @typedef {object} Action
 * @property {abp.Kind} kind
 * @property {any} arg the kind says what it is
 * @property {abp.Fate} fate what became of the call's work
 * @property {abp.Handle} call
 * @property {any} record of the call. An action that needs one has one
 * @property {any} text what `Machine.read` read
 * @property {Action | undefined} next that which the same input caused after it
 */

/**
 * Drives an endpoint or a peer, which extend it. Its records are those of the calls in flight.
 * @abstract
 * @template {import('./core.js').Core<any, import('./core.js').CallExports<any>, any>
 *   & { isPending?(call: abp.Handle): boolean }} C
 * @template {CallRecord} R
 */
export class Machine extends CoreDriver {
  /** The records of the calls in flight, by slot. @type {(R | undefined)[]} */
  #records = [];
  /**
   * The last counters, once the core's memory is free.
   * @type {Record<string, number> | undefined}
   */
  #counters;
  /** Whether no more input comes. */
  over = false;
  /** How many need the core's memory after the end, to ask what became of its calls. */
  kept = 0;
  /**
   * Is told what happens: almost always nobody.
   * @type {import('../types/trace.js').Observe | undefined}
   */
  observe = undefined;

  /** @param {C} core */
  constructor(core) {
    super();
    this.core = core;
  }

  // --- What a protocol adds ----------------------------------------------------------------------

  /**
   * Reads what an action says besides its call, before the next one is taken.
   * @abstract
   * @param {Action} _action
   * @param {unknown} _context what the input is about
   * @returns {unknown} the action's `text`
   */
  read(_action, _context) {
    return undefined;
  }

  /**
   * Performs an action. What this throws is reported, and affects no other call.
   * @abstract
   * @param {Action} _action
   * @param {any} _context what the input is about
   */
  perform(_action, _context) {}

  /**
   * The core has failed.
   * @abstract
   * @param {R[]} _records of the calls that were in flight
   */
  broke(_records) {}

  // --- Inputs ------------------------------------------------------------------------------------

  /**
   * Gives the core an input and performs the actions that it causes.
   * @template {unknown[]} A
   * @param {(pointer: C['pointer'], ...args: A) => abp.Packed | abp.Status} input an export of the
   *   core, which returns the first action, packed, or a negative status. It must call nothing but
   *   the core: if it throws, the core has failed
   * @param {unknown} context what the input is about: the record of a call that begins, or what has
   *   come
   * @param {A} args of the export
   * @returns {abp.Status} `OK` or what the input returned; `E_MEMORY` if the core has failed, with
   *   it or before
   */
  feed(input, context, ...args) {
    if (this.failed) return abp.E_MEMORY;
    const { core } = this;
    /** @type {Action | undefined} */
    let first;
    try {
      const packed = /** @type {abp.Packed} */ (input(core.pointer, ...args));
      if (packed <= 0) return /** @type {abp.Status} */ (/** @type {number} */ (packed));
      first = this.#keep(packed, context);
      first.text = this.read(first, context);
      if (packed & abp.MORE) this.#takeRest(first, context);
    } catch (error) {
      this.#break(error, first);
      return abp.E_MEMORY;
    }
    for (let action = /** @type {Action | undefined} */ (first); action; action = action.next) {
      if (action !== first && !this.#begins(action)) continue;
      try {
        this.perform(action, context);
      } catch (error) {
        // A defect of ours or of a transport: it must not affect other calls.
        reportError(error);
      }
    }
    return abp.OK;
  }

  /**
   * Takes all actions after the first, before any is performed: that runs listeners and handlers,
   * which may make calls.
   * @param {Action} first
   * @param {unknown} context
   */
  #takeRest(first, context) {
    const { x, pointer } = this.core;
    /** @type {abp.Packed} */
    let packed;
    let last = first;
    do {
      packed = x.next(pointer);
      last = last.next = this.#keep(packed, context);
      last.text = this.read(last, context);
    } while (packed & abp.MORE);
    // A call whose start waits for other actions has not begun: they may still end it.
    for (let { next } = first; next; next = next.next)
      if (next.kind === abp.START) x.postpone(pointer, next.call);
  }

  /**
   * Whether an action is still to be performed after others.
   * @param {Action} action
   */
  #begins({ kind, call }) {
    return kind !== abp.START || this.feed(this.core.x.begin, undefined, call) >= 0;
  }

  /**
   * Unpacks an action, and keeps the record of its call: when it is taken, since what is performed
   * before it may make calls, which get the slots that it has given back, or settle, which ends its
   * record.
   * @param {abp.Packed} packed
   * @param {any} context of a REQUEST, a QUEUED or a START: the record
   * @returns {Action}
   */
  #keep(packed, context) {
    const { core } = this;
    const call = /** @type {abp.Handle} */ (core.instance.u32[core.action + CALL]);
    const kind = /** @type {abp.Kind} */ (packed & 255);
    const slot = call & abp.SLOT_MASK;
    /** @type {R | undefined} */
    let record = this.#records[slot];
    switch (kind) {
      case abp.REQUEST:
        record = /** @type {R} */ (context);
        // JSON-RPC may send one again.
        if (this.#records[slot] === record) break;
        this.#records[slot] = record;
        record.handle = call;
        this.wait(1);
        break;
      case abp.QUEUED:
      case abp.START:
        // A call that waited has a record; the record of one that starts at once is the context.
        if (record?.handle !== call) record = /** @type {R} */ (context);
        this.#records[slot] = record;
        record.handle = call;
        break;
      case abp.WAKE:
        // At once: what is performed before it may give the core an input that has an earlier time.
        this.arm(core.at);
        break;
      default:
        if (kind === abp.SETTLE) this.wait(-1);
        // Nothing is left to answer, or this is its answer after its handler has settled.
        if (packed & abp.RELEASED || !record?.handle) this.#records[slot] = undefined;
    }
    const arg = (packed >> abp.ARG_SHIFT) & 255;
    const fate = /** @type {abp.Fate} */ (packed >> abp.FATE_SHIFT);
    return { kind, arg, fate, call, record, text: undefined, next: undefined };
  }

  /**
   * The core has trapped, or an action could not be read.
   * @param {unknown} error
   * @param {Action | undefined} first of those that were taken, and will not be performed
   */
  #break(error, first) {
    this.giveUp(this.core, 'the connection failed and is closed', error);
    // Some of their records are not kept any more.
    const records = new Set();
    for (let action = first; action; action = action.next) records.add(action.record);
    for (const record of this.#records) records.add(record);
    records.delete(undefined);
    this.#records = [];
    this.broke(/** @type {R[]} */ ([...records]));
  }

  /**
   * Tells the core the time, and performs what it asks for.
   * @override
   * @param {number} [now] ms
   */
  advance(now = performance.now()) {
    this.feed(this.core.x.advance, undefined, now);
  }

  /**
   * Asks a call to stop.
   * @param {abp.Handle} call its handle
   * @param {string | undefined} reason
   */
  cancel(call, reason) {
    const { core } = this;
    this.feed(core.x.cancel, undefined, call, core.writeReason(reason));
  }

  /**
   * A call could not be sent.
   * @param {abp.Handle} call its handle
   * @param {unknown} answer what its caller gets
   */
  sendFailed(call, answer) {
    this.feed(this.core.x.unsent, answer, call);
  }

  /**
   * A handler has settled.
   * @template {unknown[]} A
   * @param {R} record
   * @param {(pointer: C['pointer'], call: abp.Handle, ...args: A) => abp.Packed | abp.Status} input
   *   says how
   * @param {A} args of the input
   */
  finish(record, input, ...args) {
    const { handle } = record;
    const status = this.feed(input, record, handle, ...args);
    if (this.failed) return;
    // A record is kept while its answer waits for other calls, and dropped if it was answered
    // already.
    const slot = handle & abp.SLOT_MASK;
    const isOwed = status === abp.FOLLOWS || this.core.isPending?.(handle);
    if (this.#records[slot] === record && !isOwed) this.#records[slot] = undefined;
    record.handle = 0;
    if (this.over) this.#release();
  }

  /**
   * Keeps a record until the core settles its call.
   * @param {R} record
   * @param {abp.Handle} call its handle
   */
  expect(record, call) {
    this.#records[call & abp.SLOT_MASK] = record;
    record.handle = call;
    this.wait(1);
  }

  /**
   * The first record that matches.
   * @param {(record: R) => unknown} matches tells whether one does
   */
  find(matches) {
    return this.#records.find((record) => record && matches(record));
  }

  // --- The end -----------------------------------------------------------------------------------

  /** No more input comes: frees the core's memory as soon as no handler runs. */
  end() {
    this.over = true;
    this.arm(0);
    this.#release();
  }

  /** One of those that keep the core's memory does not ask any more what became of its calls. */
  forget() {
    this.kept--;
    this.#release();
  }

  #release() {
    if (!this.over || this.failed || this.#counters || this.kept) return;
    const counters = this.core.counters();
    if (counters.inFlightIn) return;
    this.#counters = counters;
    this.arm(0);
    this.core.free();
  }

  /** Counts of what is pending and what was dropped, for debugging. */
  get counters() {
    return this.#counters ?? this.core.counters();
  }
}
