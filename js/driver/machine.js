/**
 * Drives a core: feeds it an input, takes every action that this causes, and then performs them. It also keeps the core's timer,
 * abandons the core when it traps, and frees its memory at the end. Nothing here decides what happens to a call.
 */
import { reportError } from '../common/errors.js';
import * as abp from './abp-boundary.js';

/** Inputs that come within this time of each other share one time stamp, in ms. */
const CLOCK_STEP = 10;

/** The core's timer, its failure, and its end: what a machine for any of the cores needs. */
export class CoreDriver {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #armedFor = 0;
  /** How many calls wait for the other side. */
  #waiting = 0;
  /** When it was told that last, before a message was read. */
  tickedAt = 0;
  /** The core has trapped and is not used any more. */
  failed = false;

  /** Tells the core the time. @param {number} _now ms */
  advance(_now) {}

  /** The timer has fired. @param {number} now ms */
  due(now) {
    this.advance(now);
  }

  /** Tells the core the time, unless hardly any has passed. @returns {number} now, in ms */
  tick() {
    const now = performance.now();
    if (now - this.tickedAt >= CLOCK_STEP) {
      this.tickedAt = now;
      this.advance(now);
    }
    return now;
  }

  /** Sets the one timer. @param {number} at ms of `performance.now()`, 0 for none */
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
    this.#hold();
  }

  /** Counts the calls that wait for the other side. @param {1 | -1} more 1 when a call begins to wait, -1 when it ends */
  wait(more) {
    this.#waiting += more;
    if (this.#waiting < 2) this.#hold();
  }

  /** The timer keeps a Node process alive as long as a call waits. */
  #hold() {
    // In browsers it is a number.
    const timer = /** @type {{ ref?: () => void, unref?: () => void } | undefined} */ (this.#timer);
    timer?.[this.#waiting > 0 ? 'ref' : 'unref']?.();
  }

  /**
   * The core has trapped, or memory is short: this connection is over, and others continue.
   * @param {{ abandon(): void }} core @param {string} what has failed, and what follows from it, for the console @param {unknown} error
   */
  giveUp(core, what, error) {
    this.failed = true;
    core.abandon();
    this.arm(0);
    console.error(`abp-bridge: ${what}:`, error);
  }
}

/**
 * The JavaScript side's record of a call, kept by slot from the action that begins the call until the one that ends it.
 * It has the methods that the actions of its kind of call ask for. `context` is what the input was about.
 * @typedef {object} CallRecord
 * @property {abp.Handle} handle of the call; 0 before it begins and after its handler has settled
 * @property {(outcome: abp.Outcome, context: any, limit: number | undefined, fate: abp.Fate) => void} [settle] of a call made
 *   here: called when it has ended. `limit` is the timeout that passed, in ms (JSON-RPC); `fate` is what became of its work
 * @property {() => unknown} [start] of a call received: runs its handler
 * @property {(reason: string | undefined, fate: abp.Fate) => void} [abort] of a call received: fires its signal; with what became
 *   of its work, if that is decided
 * @property {unknown} [stream] of a call made here: reads its chunks
 * @property {(context: unknown, size: number) => void} [chunk] of a stream: sends the chunk, or hands it to its reader
 * @property {(amount: [number, number]) => void} [credit] of a stream made here: tells the other side what was read
 * @property {() => void} [resume] of a stream that was received: there is room for a chunk that had to wait
 * @property {(outcome: abp.Outcome, fate: abp.Fate) => void} [answer] of a call received: sends its result, and what became of its
 *   work
 */

/**
 * @template {CallRecord} Made @template {CallRecord} Received
 * @typedef {Made & Received & Required<CallRecord>} Kept A record as the core's actions find it: it has what they ask for.
 */

/**
 * How a protocol performs the actions. The context is what the protocol's input was about: a record, or what was
 * received.
 * @template {CallRecord} Made the records of calls made here
 * @template {CallRecord} Received those of calls received
 * @template Text what `read` returns
 * @template {number} Code the type of the codes with which the core refuses a call
 * @typedef {object} Acts
 * @property {(action: abp.Packed, call: abp.Handle, record: Made | undefined, context: unknown) => Text} read
 *   reads what a SEND or a REFUSE says, before the next action is taken
 * @property {(record: Made, call: abp.Handle, window?: [number, number]) => void} sendRequest `window` is its stream's
 * @property {(message: abp.Message, record: Made, text: Text) => void} send
 * @property {(code: Code, context: any, text: Text) => void} refuse
 * @property {(record: Made, context: any, call: abp.Handle) => void} report for a call of 0 there is no record
 * @property {(counter: abp.Counter) => void} [drop] what was received has no effect
 * @property {(text: any, context: any) => void} [notified] a notification has come; `text` is what `read` returned
 * @property {() => void} [queued] a received call waits to be started
 * @property {(state: abp.Session, context: unknown) => void} [session]
 * @property {(records: (Made | Received)[]) => void} failed the core has failed while these calls were in flight
 */

/** The kind of a packed action. @param {abp.Packed} action as the core gave it */
export const kindOf = (action) => /** @type {abp.Kind} */ (action & 255);
/** The argument of a packed action: its kind says what it is. @param {abp.Packed} action as the core gave it */
export const argOf = (action) => (action >> abp.ARG_SHIFT) & 255;
/** @param {abp.Packed} action */
const fateOf = (action) => /** @type {abp.Fate} */ (action >> abp.FATE_SHIFT);

/**
 * Drives an endpoint or a peer. Its records are those of the calls in flight.
 * @template {import('./core.js').Core<any, import('./core.js').CallExports<any>, any> & { isPending?(call: abp.Handle): boolean }} C
 * @template {CallRecord} Made the records of calls made here
 * @template {CallRecord} Received those of calls received
 * @template Text what `Acts.read` returns
 * @template {number} Code the type of the codes with which the core refuses a call
 */
export class Machine extends CoreDriver {
  /** The records of the calls in flight, by slot. @type {(Kept<Made, Received> | undefined)[]} */
  #records = [];
  /** The last counters, once the core's memory is free. @type {Record<string, number> | undefined} */
  #counters;
  /** Whether no more input comes. */
  over = false;
  /** How many keep the core's memory after the end: somebody may ask what became of its calls, or has to write it down. */
  kept = 0;
  #acts;
  /** Is told what happens: almost always nobody. @type {import('../types/trace.js').Observe | undefined} */
  observe = undefined;

  /** @param {C} core @param {Acts<Made, Received, Text, Code>} acts */
  constructor(core, acts) {
    super();
    this.core = core;
    this.#acts = acts;
  }

  // --- Inputs ----------------------------------------------------------------------------------------

  /**
   * Gives the core an input and performs the actions that it causes. The input must call nothing but the core: if it
   * throws, the core has failed.
   * @param {(x: C['x'], pointer: C['pointer']) => abp.Packed | abp.Status} input returns the first action, packed, or a negative status
   * @param {unknown} [context] what the input is about; the acts get it
   * @returns {abp.Status} `OK` or what the input returned; `E_MEMORY` if the core has failed, with it or before
   */
  feed(input, context) {
    if (this.failed) return abp.E_MEMORY;
    const { core } = this;
    /** The actions, four elements each: if the core traps, they say which records were taken. @type {any[]} */
    const taken = [];
    try {
      let action = /** @type {abp.Packed} */ (input(core.x, core.pointer));
      if (action <= 0) return /** @type {abp.Status} */ (/** @type {number} */ (action));
      // Performing an action runs listeners and handlers, which may make calls: so take all of them first.
      for (;;) {
        const { call } = core;
        const record = this.#keep(action, call, context);
        const at = taken.push(action, call, record, undefined);
        taken[at - 1] = this.#read(action, call, record, context);
        if (!(action & abp.MORE)) break;
        action = core.x.next(core.pointer);
      }
      // A call whose start waits for other actions has not begun: they may still end it.
      for (let i = 4; i < taken.length; i += 4)
        if (kindOf(taken[i]) === abp.START) core.x.postpone(core.pointer, taken[i + 1]);
    } catch (error) {
      this.giveUp(core, 'the connection failed and is closed', error);
      // Some of those whose actions were taken, and will not be performed, are not kept any more.
      const records = new Set([...taken.filter((_, i) => i % 4 === 2), ...this.#records]);
      records.delete(undefined);
      this.#records = [];
      this.#acts.failed([...records]);
      return abp.E_MEMORY;
    }
    for (let i = 0; i < taken.length; i += 4) {
      const call = taken[i + 1];
      const waited = i && kindOf(taken[i]) === abp.START;
      if (waited && this.feed((x, at) => x.begin(at, call)) < 0) continue;
      this.#act(taken[i], call, taken[i + 2], taken[i + 3], context);
    }
    return abp.OK;
  }

  /**
   * Keeps the records of calls as actions are taken, before any is performed: a listener or a handler may make calls,
   * which get the slots that a later action has given back, or settle, which ends its record.
   * @param {abp.Packed} action
   * @param {abp.Handle} call
   * @param {any} context of a REQUEST, a QUEUED or a START: the record
   * @returns {Kept<Made, Received>} the record of the call that the action is about: an action that needs one has one
   */
  #keep(action, call, context) {
    const slot = call & abp.SLOT_MASK;
    const record = /** @type {Kept<Made, Received>} */ (this.#records[slot]);
    switch (kindOf(action)) {
      case abp.REQUEST:
        // JSON-RPC may send one again.
        if (record !== context) this.expect(context, call);
        return context;
      case abp.QUEUED:
      case abp.START: {
        // A call that waited has a record; the record of one that starts at once is the context.
        const begun = record?.handle === call ? record : context;
        this.#records[slot] = begun;
        begun.handle = call;
        return begun;
      }
    }
    // Nothing is left to answer, or this is its answer after its handler has settled.
    if (action & abp.RELEASED || !record?.handle) this.#records[slot] = undefined;
    return record;
  }

  /** What an action says besides its call. @param {abp.Packed} action @param {abp.Handle} call @param {Made} record @param {unknown} context */
  #read(action, call, record, context) {
    const { core } = this;
    switch (kindOf(action)) {
      case abp.REQUEST:
        return record.stream && core.amount;
      case abp.ABORT:
        return core.reason;
      case abp.SETTLE:
        this.wait(-1);
        return core.at;
      case abp.WAKE:
        // At once: what is performed before it may give the core an input that has an earlier time.
        return this.arm(core.at);
      case abp.CHUNK:
        return core.at;
      case abp.CREDIT:
        return core.amount;
      case abp.SEND:
      case abp.REFUSE:
      case abp.NOTIFY:
        return this.#acts.read(action, call, record, context);
    }
    return undefined;
  }

  /** @override @param {number} [now] ms */
  advance(now = performance.now()) {
    this.feed((x, pointer) => x.advance(pointer, now));
  }

  /** Asks a call to stop. @param {abp.Handle} call its handle @param {string | undefined} reason */
  cancel(call, reason) {
    this.feed((x, pointer) => x.cancel(pointer, call, this.core.writeReason(reason)));
  }

  /** A call could not be sent. @param {abp.Handle} call its handle @param {unknown} answer what its caller gets */
  sendFailed(call, answer) {
    this.feed((x, pointer) => x.unsent(pointer, call), answer);
  }

  /**
   * A handler has settled.
   * @param {Received} record
   * @param {Parameters<C['x']['finish']>[2]} how
   * @param {(x: C['x'], pointer: C['pointer']) => abp.Packed | abp.Status} [input] says more of it
   */
  finish(record, how, input) {
    const { handle } = record;
    input ??= (x, pointer) => x.finish(pointer, handle, how, abp.FATE_NONE);
    const status = this.feed(input, record);
    if (this.failed) return;
    // A record is kept while its answer waits for other calls, and dropped if it was answered already.
    const slot = handle & abp.SLOT_MASK;
    const isOwed = status === abp.FOLLOWS || this.core.isPending?.(handle);
    if (this.#records[slot] === record && !isOwed) this.#records[slot] = undefined;
    record.handle = 0;
    this.#release();
  }

  // --- Actions ---------------------------------------------------------------------------------------

  /**
   * Performs an action.
   * @param {abp.Packed} action @param {abp.Handle} call @param {Kept<Made, Received>} record
   * @param {any} text what `#read` read of this kind of action @param {unknown} context what this kind of action comes of
   */
  #act(action, call, record, text, context) {
    const acts = this.#acts;
    const kind = kindOf(action);
    /** What it is, the kind says. @type {any} */
    const arg = argOf(action);
    const fate = fateOf(action);
    try {
      this.observe?.('action', kind, arg, record, context, text);
      switch (kind) {
        case abp.REQUEST:
          return acts.sendRequest(record, call, text);
        case abp.SETTLE:
          return record.settle(arg, context, text, fate);
        case abp.REPORT:
          return acts.report(record, context, call);
        case abp.QUEUED:
          return acts.queued?.();
        case abp.START:
          return void record.start();
        case abp.ABORT:
          return record.abort(text, fate);
        case abp.RESULT:
          return (record ?? context).answer(arg, fate);
        case abp.REFUSE:
          return acts.refuse(arg, context, text);
        case abp.SEND:
          return acts.send(arg, record, text);
        case abp.DROP:
          return acts.drop?.(arg);
        case abp.CHUNK:
          return record.chunk(context, text);
        case abp.CREDIT:
          return record.credit(text);
        case abp.RESUME:
          return record.resume();
        case abp.NOTIFY:
          return acts.notified?.(text, context);
        case abp.SESSION:
          return acts.session?.(arg, context);
      }
    } catch (error) {
      // A defect of ours or of a transport: it must not affect other calls.
      reportError(error);
    }
  }

  /** Keeps a record until the core settles its call. @param {CallRecord} record @param {abp.Handle} call its handle */
  expect(record, call) {
    this.#records[call & abp.SLOT_MASK] = /** @type {Kept<Made, Received>} */ (record);
    record.handle = call;
    this.wait(1);
  }

  /** The first record that matches. @param {(record: Made | Received) => unknown} matches tells whether one does */
  find(matches) {
    return this.#records.find((record) => record && matches(record));
  }

  // --- The end ---------------------------------------------------------------------------------------

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
