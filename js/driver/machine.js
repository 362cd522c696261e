/**
 * Drives a core: passes an input to it, takes all actions that the input causes, and then performs
 * them. It also keeps the core's timer, abandons the core when it traps, and frees its memory at
 * the end. Nothing here decides what happens to a call.
 */
import { reportError } from '../common/errors.js';
import * as abp from './abp-boundary.js';

/** Offset, in words, of an action's call. */
const CALL = abp.ACTION_CALL >> 2;

/** Inputs within this time of each other share one time stamp, in ms. */
const CLOCK_STEP = 10;

/** The core's timer, its failure, and its end: common to the machines of all cores. */
export class CoreDriver {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #armedFor = 0;
  /** The number of calls that wait for the other side. */
  #waiting = 0;
  /** When a message was last read, in ms of `performance.now()`. */
  now = 0;
  /** When the core was last given the time. */
  #toldAt = 0;
  /** True once the core has trapped: it is not used any more. */
  failed = false;

  /**
   * Passes the time to the core.
   * @param {number} _now ms
   */
  advance(_now) {}

  /**
   * Called when the timer has fired.
   * @param {number} now ms
   */
  due(now) {
    this.advance(now);
  }

  /** Reads the clock, and passes the time to the core unless it was given within `CLOCK_STEP`. */
  tick() {
    this.now = performance.now();
    if (this.now - this.#toldAt < CLOCK_STEP) return;
    this.#toldAt = this.now;
    this.advance(this.now);
  }

  /**
   * Sets the timer.
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
    // In Node the timer keeps the process alive while a call waits. In browsers it is a number.
    const timer = /** @type {{ ref?: () => void, unref?: () => void } | undefined} */ (this.#timer);
    if (this.#waiting < 2) timer?.[this.#waiting > 0 ? 'ref' : 'unref']?.();
  }

  /**
   * Gives the core up when it has trapped, or memory is short. Other connections continue.
   * @param {{ abandon(): void }} core
   * @param {string} what the failure and its consequence, for the console
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
 * it. Protocols add further members.
 * @typedef {object} CallRecord
 * @property {abp.Handle} handle of the call; 0 before it begins and after its handler has settled
 */

/**
 * An action of the core.
 * @typedef {object} Action
 * @property {abp.Kind} kind
 * @property {any} arg its meaning depends on the kind
 * @property {abp.Fate} fate the fate of the call's work
 * @property {abp.Handle} call
 * @property {any} record the record of the call; set for each kind that needs it
 * @property {any} text the result of `Machine.read`
 * @property {Action | undefined} next the next action of the same input
 */

/**
 * The base class of endpoints and peers. Its records are those of the calls in flight.
 * @abstract
 * @template {import('./core.js').Core<any, import('./core.js').CallExports<any>, any>
 *   & { isPending?(call: abp.Handle): boolean }} C
 * @template {CallRecord} R
 */
export class Machine extends CoreDriver {
  /** The records of the calls in flight, by slot. @type {(R | undefined)[]} */
  #records = [];
  /**
   * The last counters, once the core's memory is freed.
   * @type {Record<string, number> | undefined}
   */
  #counters;
  /** True if no more input comes. */
  over = false;
  /**
   * The number of users that need the core's memory after the end, to ask for the outcomes of its
   * calls.
   */
  kept = 0;
  /**
   * Observes all events; usually undefined.
   * @type {import('../types/trace.js').Observe | undefined}
   */
  observe = undefined;

  /** @param {C} core */
  constructor(core) {
    super();
    this.core = core;
  }

  // --- For protocols to override -----------------------------------------------------------------

  /**
   * Reads the details of an action, before the next action is taken.
   * @abstract
   * @param {Action} _action
   * @param {unknown} _context the input's context
   * @returns {unknown} the action's `text`
   */
  read(_action, _context) {
    return undefined;
  }

  /**
   * Performs an action. If it throws, the error is reported, and other calls are not affected.
   * @abstract
   * @param {Action} _action
   * @param {any} _context the input's context
   */
  perform(_action, _context) {}

  /**
   * Called when the core has failed.
   * @abstract
   * @param {R[]} _records the records of the calls that were in flight
   */
  broke(_records) {}

  // --- Inputs ------------------------------------------------------------------------------------

  /**
   * Passes an input to the core and performs the actions that it causes.
   * @template {unknown[]} A
   * @param {(pointer: C['pointer'], ...args: A) => abp.Packed | abp.Status} input an export of the
   *   core, which returns the first action, packed, or a negative status. It must call only the
   *   core: if it throws, the core has failed
   * @param {unknown} context the subject of the input: the record of a call that begins, or the
   *   received message
   * @param {A} args of the export
   * @returns {abp.Status} `OK` or the status of the input; `E_MEMORY` if the core has failed, now
   *   or before
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
        // A defect of this library or a transport must not affect other calls.
        reportError(error);
      }
    }
    return abp.OK;
  }

  /**
   * Takes all actions after the first, before any is performed: performing them runs listeners and
   * handlers, which may make calls.
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
   * True if an action still has to be performed after the actions before it.
   * @param {Action} action
   */
  #begins({ kind, call }) {
    return kind !== abp.START || this.feed(this.core.x.begin, undefined, call) >= 0;
  }

  /**
   * Unpacks an action, and keeps the record of its call. This happens when the action is taken. The
   * actions before it are performed later and may make calls that reuse its slot, or settle calls
   * and so end their records.
   * @param {abp.Packed} packed
   * @param {any} context for a REQUEST, a QUEUED or a START: the record
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
        // JSON-RPC may send a call again.
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
        // At once: an action performed earlier may pass an input with an earlier time to the core.
        this.arm(core.at);
        break;
      default:
        if (kind === abp.SETTLE) this.wait(-1);
        // Either the call is over, or this is its answer after its handler has settled.
        if (packed & abp.RELEASED || !record?.handle) this.#records[slot] = undefined;
    }
    const arg = (packed >> abp.ARG_SHIFT) & 255;
    const fate = /** @type {abp.Fate} */ (packed >> abp.FATE_SHIFT);
    return { kind, arg, fate, call, record, text: undefined, next: undefined };
  }

  /**
   * Called when the core has trapped, or an action could not be read.
   * @param {unknown} error
   * @param {Action | undefined} first the first of the actions that were taken and will not be
   *   performed
   */
  #break(error, first) {
    this.giveUp(this.core, 'the connection failed and is closed', error);
    // Some of their records are no longer in `#records`.
    const records = new Set();
    for (let action = first; action; action = action.next) records.add(action.record);
    for (const record of this.#records) records.add(record);
    records.delete(undefined);
    this.#records = [];
    this.broke(/** @type {R[]} */ ([...records]));
  }

  /**
   * Passes the time to the core, and performs the actions that follow.
   * @override
   * @param {number} [now] ms
   */
  advance(now = performance.now()) {
    this.feed(this.core.x.advance, undefined, now);
  }

  /**
   * Cancels a call.
   * @param {abp.Handle} call its handle
   * @param {string | undefined} reason
   */
  cancel(call, reason) {
    const { core } = this;
    this.feed(core.x.cancel, undefined, call, core.writeReason(reason));
  }

  /**
   * Reports to the core that a call could not be sent.
   * @param {abp.Handle} call its handle
   * @param {unknown} answer the response for its caller
   */
  sendFailed(call, answer) {
    this.feed(this.core.x.unsent, answer, call);
  }

  /**
   * Reports to the core that a handler has settled.
   * @template {unknown[]} A
   * @param {R} record
   * @param {(pointer: C['pointer'], call: abp.Handle, ...args: A) => abp.Packed | abp.Status} input
   *   an export that takes the outcome
   * @param {A} args of the input
   */
  finish(record, input, ...args) {
    const { handle } = record;
    const status = this.feed(input, record, handle, ...args);
    if (this.failed) return;
    // The record is kept while its answer waits for other calls, and dropped if it was answered
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
   * Finds the first record that matches.
   * @param {(record: R) => unknown} matches returns whether a record matches
   */
  find(matches) {
    return this.#records.find((record) => record && matches(record));
  }

  // --- The end -----------------------------------------------------------------------------------

  /**
   * Ends the machine: no more input comes, and the core's memory is freed as soon as no handler
   * runs.
   */
  end() {
    this.over = true;
    this.arm(0);
    this.#release();
  }

  /** One user less needs the core's memory after the end: see `kept`. */
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
