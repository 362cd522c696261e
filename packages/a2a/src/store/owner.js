/**
 * A task that this process owns: the core decides, its decisions are stored in the task's log, and
 * stored events are sent to clients. One record is in flight at a time, and the log accepts it only
 * where this process expects it.
 */
import { AbpError, limitOf } from 'abp-bridge/driver';
import * as core from '../tasks-boundary.js';
import { ended } from '../tasks-core.js';
import { newId } from '../ids.js';
import { outcomeOf } from '../outcome.js';
import { pause, RETRY } from '../pause.js';
import { readState, STATES } from '../dialects.js';
import { statusOf, withOutcome } from '../task.js';
import { printRecord } from './records.js';

/** @import { Entry } from '../shown-tasks.js' */
/** @import { ExecutorContext } from '../runs.js' */
/** @import { Mark } from '../repeats.js' */
/** @import { Message } from '../dialects.js' */
/** @import { RequestInfo } from '../task.js' */
/** @import { Said } from '../outcome.js' */
/** @import { Status } from '../dialects.js' */
/** @import { TaskEvent, TaskRecord } from './records.js' */

/** Events of a record, and bytes reserved for its other members. */
const MAX_EVENTS = 256;
const OVERHEAD = 1024;
/** Characters that are counted for an event besides its own. */
const WAITING = 128;

/**
 * @typedef {object} Queued `name` is that of its object, if it is too long for a record
 * @property {TaskEvent} event
 * @property {string} text
 * @property {string} [name]
 */
/** @typedef {{ prompt?: Message, info?: RequestInfo }} Prompt the message that a run answers */

export class Owner {
  /** Events to be stored, in order. @type {Queued[]} */
  #queue = [];
  /** Characters of the queue. */
  pending = 0;
  /**
   * The record in flight.
   * @type {TaskRecord & { text: string, expected: number, events: TaskEvent[] } | undefined}
   */
  sent;
  #sending = false;
  #gone = false;
  #over = false;
  /** The prompt of the next run. @type {Prompt} */
  #next = {};
  /** The run that works on it. @type {ExecutorContext | undefined} */
  context;
  /** The latest run's statement on its work. @type {Said | undefined} */
  said;
  /**
   * Called when the record that begins a run is read; undefined afterwards.
   * @type {((entry: Entry) => void) | undefined}
   */
  begun;
  /**
   * Callbacks for when a state is stored, and for when everything is: with an error if this process
   * no longer owns the task.
   * @type {Waiting}
   */
  #storing = [];
  /** @type {Waiting} */
  #flushing = [];
  #logs;
  #replica;
  #lease;

  /**
   * @param {import('./store.js').TaskLogs} logs
   * @param {import('./replica.js').Replica} replica
   * @param {core.Task} handle in the table of tasks that this process owns
   * @param {import('./membership.js').Lease} lease under which the process enlisted: its records
   *   have that name
   */
  constructor(logs, replica, handle, lease) {
    this.#logs = logs;
    this.#replica = replica;
    this.table = logs.table;
    this.handle = handle;
    this.#lease = lease;
    this.epoch = replica.epoch + 1;
    // Another process may be at work, unless the last run has asked a question and returned.
    this.table.own(handle, this.epoch, replica.run !== undefined && !replica.rested);
    replica.owner = this;
  }

  /** Number of events that wait to be stored. */
  get waiting() {
    return this.#queue.length;
  }

  // --- Decisions ---------------------------------------------------------------------------------

  /**
   * Starts a run of the executor for a message.
   * @param {Prompt} prompt
   * @param {{ message?: Message, mark?: Mark, saved?: object,
   *   attempt: number, trace?: string }} run
   * @param {(entry: Entry) => void} [begun] called when it is stored
   * @param {TaskEvent} [first] the event before it in the log
   * @returns {Promise<void> | undefined} resolves when it is stored, rejects if it never will be;
   *   undefined if the task accepts no message now
   */
  start(prompt, run, begun, first) {
    const verdict = this.table.start(this.handle);
    if (!(verdict & core.TASK_COMMIT)) return undefined;
    this.#next = prompt;
    this.begun = (entry) => {
      this.begun = undefined;
      begun?.(entry);
    };
    if (first) this.#enqueue(first);
    const stored = this.stored();
    if (this.context) this.context.replaced = true;
    this.act(verdict, { run });
    return stored;
  }

  /** Resolves when a state is stored. Rejects when this process no longer owns the task. */
  stored() {
    return settled(this.#storing);
  }

  /**
   * Resolves when every decision so far is stored. Rejects when this process no longer owns the
   * task.
   */
  flushed() {
    if (this.#queue.length === 0) return Promise.resolve();
    return this.#gone ? Promise.reject(lostError()) : settled(this.#flushing);
  }

  /**
   * Carries out a verdict of the core.
   * @param {number} verdict
   * @param {{ reported?: number, status?: Partial<Status>, reason?: string, run?: object }} [about]
   */
  act(verdict, { reported, status, reason, run } = {}) {
    if (verdict <= 0) return;
    if (verdict & core.TASK_ABORT) this.context?.abort(reason);
    const { id, entry } = this.#replica;
    if (verdict & core.TASK_REPLACE) {
      const end = this.#queue.findLast(({ event }) => event.k === 'status');
      this.#keep((one) => one !== end && one.event.k !== 'outcome');
    }
    if (verdict & core.TASK_COMMIT) {
      const state = verdict >> core.TASK_STATE_SHIFT;
      let shown = /** @type {Status} */ ({
        state: STATES[state],
        timestamp: new Date().toISOString(),
        ...(reported === state && status),
      });
      if (entry && ended(/** @type {core.TaskState} */ (state)))
        shown = withOutcome(entry.task, shown, this.table.became(id), this.said);
      const event = run ? { k: 'run', status: shown, ...run } : { k: 'status', status: shown };
      this.#enqueue(/** @type {TaskEvent} */ (event));
    }
    if (verdict & core.TASK_LEARN)
      this.#enqueue({ k: 'outcome', metadata: outcomeOf(this.table.became(id), this.said) });
    if (verdict & core.TASK_START) {
      // After a pause the process checks its lease first: nothing begins under one that has run
      // out.
      const { parts } = this.#logs;
      const { prompt, info } = this.#next;
      if (!this.#lease.valid) this.#logs.loseAll();
      else if (entry && prompt && info) void parts.runs.run(entry, this, { prompt, info });
    }
    if (verdict & core.TASK_FORGET) this.#release();
    void this.#send();
  }

  /**
   * @param {TaskEvent} event
   * @returns {boolean} whether it will be stored, or need not be
   */
  push(event) {
    if (this.#gone || this.#over) return false;
    // Repeated cancels are stored once.
    if (event.k === 'wish' && this.#queue.some(({ event: { k } }) => k === 'wish')) return true;
    if (event.k !== 'wish' && this.#logs.full) return false;
    this.#push(event);
    return true;
  }

  /** @param {TaskEvent} event */
  #push(event) {
    this.#enqueue(event);
    void this.#send();
  }

  /** @param {TaskEvent} event */
  #enqueue(event) {
    // An unprinted record has no length to count.
    const one = { event, text: this.#logs.backend.alone ? '' : JSON.stringify(event) };
    this.#grow(sizeOf(one));
    this.#queue.push(one);
  }

  /** @param {number} by */
  #grow(by) {
    this.pending += by;
    this.#logs.wait(by);
  }

  /**
   * Drops the queued events for which `which` returns false.
   * @param {(one: Queued) => boolean} which
   */
  #keep(which) {
    for (const one of this.#queue) if (!which(one)) this.#grow(-sizeOf(one));
    this.#queue = this.#queue.filter(which);
  }

  // --- The log -----------------------------------------------------------------------------------

  /**
   * Does not wait if the backend answers at once: then a decision is sent before its caller goes
   * on.
   */
  async #send() {
    if (this.#sending) return;
    this.#sending = true;
    const { backend } = this.#logs;
    let doubt = false;
    while (this.#queue.length > 0 && !this.#gone) {
      if (this.#lease.lost) {
        this.#logs.loseAll();
        break;
      }
      try {
        const [first] = this.#queue;
        if (!this.sent && !first.name && this.#isLong(first)) {
          // Objects are stored before the record that refers to them.
          const name = `${this.#replica.id}/${this.epoch}/${newId()}`;
          await backend.put(name, new TextEncoder().encode(first.text));
          first.name = name;
          continue;
        }
        const sent = (this.sent ??= this.#build());
        const appended = backend.append(this.#replica.id, sent.text, sent.expected);
        const seq = typeof appended === 'number' ? appended : await appended;
        const read = this.#replica.receive({ seq, data: sent.text });
        if (this.#replica.seq < seq) await read;
      } catch (error) {
        const { code } = /** @type {AbpError} */ (error);
        doubt ||= code === 'UNACKNOWLEDGED';
        // A message that cannot be stored is rejected, unless work in progress would be lost with
        // it.
        const begins = this.#replica.seq === 0 || (this.begun && !this.context);
        if (begins && !doubt && code !== 'CONFLICT') {
          this.lose(/** @type {AbpError} */ (error));
          break;
        }
        // The log knows what became of the record: it is kept until it, or another in its place,
        // was read.
        const read = await this.#replica.catchUp().then(
          () => true,
          () => false,
        );
        // The backend accepts less than it did: the queue is divided again.
        if (read && code === 'TOO_LARGE') this.sent = undefined;
        if (!read || code !== 'CONFLICT') await pause(RETRY);
      }
    }
    this.#sending = false;
  }

  /**
   * True if it is too long for a record.
   * @param {Queued} one
   */
  #isLong({ text }) {
    const { maxRecord } = this.#logs.backend;
    return maxRecord < Infinity && bytesOf(text) > maxRecord - OVERHEAD;
  }

  /** Makes the next record from the queue. */
  #build() {
    /** @type {TaskRecord['events']} */
    const events = [];
    const whole = [];
    let room = this.#logs.backend.maxRecord - OVERHEAD;
    for (const { event, text, name } of this.#queue) {
      const alone = event.k === 'wish';
      if ((alone && whole.length > 0) || whole.length === MAX_EVENTS) break;
      /** @type {TaskRecord['events'][number]} */
      const stored = name ? { k: 'object', name } : event;
      if (room < Infinity) room -= bytesOf(name ? JSON.stringify(stored) : text) + 1;
      if (room < 0) break;
      events.push(stored);
      whole.push(event);
      if (alone) break;
    }
    const id = newId();
    const { name: by } = this.#lease;
    const epoch = events[0].k === 'wish' ? 0 : this.epoch;
    const text = this.#logs.backend.alone ? '' : printRecord({ id, by, epoch, events });
    return { id, by, epoch, text, expected: this.#replica.seq, events: whole };
  }

  /**
   * Call this when a record was read in the place that the one in flight expected.
   * @param {boolean} own whether it is the one in flight
   */
  passed(own) {
    if (own)
      for (const one of this.#queue.splice(0, this.sent?.events.length)) this.#grow(-sizeOf(one));
    this.sent = undefined;
  }

  /**
   * Call this when an event of this process is stored and sent.
   * @param {TaskEvent} event
   */
  committed(event) {
    if (this.#gone) return;
    if (event.k === 'run' || event.k === 'status') {
      const verdict = this.table.committed(this.handle, readState(event.status.state));
      if (verdict > 0 && verdict & core.TASK_END) {
        this.#over = true;
        this.#keep((one) => one.event.k === 'outcome');
      }
      this.act(verdict & ~core.TASK_TELL);
      settle(this.#storing);
    }
    this.rest();
  }

  /**
   * Call this when a cancel is stored.
   * @param {string} [reason]
   */
  wish(reason) {
    if (this.#gone || this.#over) return;
    this.act(this.table.wish(this.handle, limitOf(this.#logs.parts.grace)), { reason });
  }

  /**
   * Call this when an executor has returned.
   * @param {ExecutorContext} context
   * @param {number} run
   * @param {core.TaskReturn} how
   * @param {{ reported: number, status: Partial<Status> }} [failure] the state of its task, unless
   *   it has set one
   */
  returned(context, run, how, failure) {
    if (this.context === context) this.context = undefined;
    this.act(this.table.returns(this.handle, run, how), failure);
    this.rest();
  }

  /**
   * Call this when the executor has returned, or a record was stored: releases a task that waits
   * for input.
   */
  rest() {
    if (this.#queue.length === 0) settle(this.#flushing);
    if (this.#gone || this.context || this.#queue.length > 0) return;
    if (this.#over || this.#replica.rested) this.lose();
    // So the process that takes the task knows that no executor works on it. A task that no other
    // process can take is kept.
    else if (this.#replica.asks && !this.#logs.backend.alone) this.#push({ k: 'rest' });
  }

  /**
   * The agent ends, and the task with it.
   * @param {string} reason
   */
  end(reason) {
    this.act(this.table.cancel(this.handle, 0, true), { reason });
  }

  /**
   * Call this when another process owns the task, or none does.
   * @param {AbpError} [why]
   */
  lose(why) {
    if (this.#gone) return;
    // The task is released even if the core has failed, and returns no verdict.
    const verdict = this.table.lost(this.handle) || core.TASK_ABORT | core.TASK_FORGET;
    this.act(verdict, { reason: why?.message ?? LOST });
    settle(this.#storing, why ?? lostError);
  }

  #release() {
    this.#gone = true;
    this.#grow(-this.pending);
    this.sent = undefined;
    if (this.#replica.owner === this) this.#replica.owner = undefined;
    settle(this.#flushing, lostError);
    this.#logs.released(this.#replica, this.handle);
    const wish = this.#queue.find(({ event }) => event.k === 'wish')?.event;
    // A cancel is stored, whichever process owns the task.
    if (wish?.k === 'wish') void this.#logs.cancel(this.#replica, wish.reason).catch(() => {});
  }

  /**
   * Fails the task, as a process that takes it over would.
   * @param {string} why
   */
  fail(why) {
    const { entry } = this.#replica;
    const status = entry && statusOf(entry.task, why);
    const reported = core.TASK_FAILED;
    this.act(this.table.says(this.handle, 0, reported, 0), { reported, status });
  }
}

const LOST = 'This process does not own the task any more';
const lostError = () => new AbpError('ABORTED', LOST, { retryable: true });

/**
 * @typedef {((error?: AbpError) => void)[]} Waiting callbacks for an event, or for an error instead
 */

/**
 * @param {Waiting} waiting
 * @returns {Promise<void>}
 */
const settled = (waiting) =>
  new Promise((resolve, reject) => waiting.push((error) => (error ? reject(error) : resolve())));

/**
 * Makes an error only if something waits.
 * @param {Waiting} waiting
 * @param {AbpError | (() => AbpError)} [why]
 */
function settle(waiting, why) {
  for (const one of waiting.splice(0)) one(typeof why === 'function' ? why() : why);
}

/**
 * Characters that it takes while it waits.
 * @param {Queued} one
 */
const sizeOf = ({ text }) => text.length + WAITING;

/** @param {string} text */
const bytesOf = (text) => new TextEncoder().encode(text).length;
