/**
 * Tasks that outlive their process, on a backend. docs/design.md has the rules;
 * tests/core/explore_fleet.c shows what fails without each of them.
 *
 * The backend's index has three kinds of entries, distinguished by their names: tasks, under their
 * tenants; the duties of each process, that is, the tasks to take over when it is gone; and the
 * tasks that have ended, by the hour.
 */
import { AbpError, reportError } from 'abp-bridge/driver';
import * as core from '../tasks-boundary.js';
import { TaskTable } from '../tasks-core.js';
import { away, refusal } from '../refusals.js';
import { readState } from '../dialects.js';
import { timeOf } from '../requests.js';
import { conflict, unavailable } from './backends/backend.js';
import { TaskEntries } from './entries.js';
import { Membership } from './membership.js';
import { Owner } from './owner.js';
import { Replay } from './replay.js';
import { Replica, unreadableOf } from './replica.js';
import { Retention } from './retention.js';
import { Takeover } from './takeover.js';

/** @import { Backend } from './backends/backend.js' */
/** @import { Entry } from '../shown-tasks.js' */
/** @import { Mark } from '../repeats.js' */
/** @import { Message } from '../dialects.js' */
/** @import { Parts } from '../server.js' */
/** @import { RequestInfo } from '../task.js' */
/** @import { Status } from '../dialects.js' */
/** @import { Origin, TaskEvent } from './records.js' */
/** @import { TaskStoreOptions } from './index.js' */

/** Number of times in a term that a lease is renewed, and other processes are checked. */
const RENEWALS = 5;
/** Tasks for which the warning "cannot be read" is remembered. */
const MAX_WARNED = 1000;

/**
 * A message that a run answers: a later run gets what `saveRequest` kept of its request. `mark` is
 * set if the message may be sent again.
 * @typedef {object} Sent
 * @property {Message} message
 * @property {RequestInfo} info
 * @property {(entry: Entry) => void} begun
 * @property {Mark} [mark]
 */

export class TaskLogs {
  /** Tasks that are known here. @type {Map<string, Replica>} */
  #replicas = new Map();
  /** @type {Map<string, Promise<Replica | undefined>>} */
  #loading = new Map();
  /** By their handles in the table. @type {Map<core.Task, Owner>} */
  #owners = new Map();
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  /** Unreadable tasks with a warning. @type {Set<string>} */
  #warned = new Set();
  /** @type {Promise<void> | undefined} */
  #closing;
  #membership;
  #retention;
  /** Characters that wait to be stored, and callbacks for when they are fewer. */
  #outbox = 0;
  /** @type {Set<() => void>} */
  #waiting = new Set();

  /**
   * @param {Parts} parts of the agent whose tasks it keeps
   * @param {Required<Omit<TaskStoreOptions, 'saveRequest'>> & Pick<TaskStoreOptions,
   *   'saveRequest'>} options
   */
  constructor(parts, options) {
    this.parts = parts;
    this.options = options;
    /** @type {Backend} */
    this.backend = options.backend;
    this.entries = new TaskEntries(this);
    this.#membership = new Membership(this.backend, {
      term: options.term,
      answer: (text) => {
        const { task, event } = JSON.parse(text);
        return this.#replicas.get(task)?.owner?.push(event) ? 'yes' : 'no';
      },
      onLose: (lost) => {
        if (lost) parts.reports?.leaseLost();
        for (const owner of [...this.#owners.values()]) owner.lose();
      },
    });
    this.takeover = new Takeover(this, this.#membership);
    this.#retention = new Retention(this);
    this.table = this.#newTable();
  }

  get lease() {
    return this.#membership.lease;
  }

  #newTable() {
    return new TaskTable(this.parts.limits, {
      commits: true,
      onDue: (task, verdict) => this.#owners.get(task)?.act(verdict),
      onFailure: () => {
        this.loseAll();
        this.table = this.#newTable();
      },
    });
  }

  /** Number of tasks that this process owns, and that it shows. */
  get counters() {
    const owners = [...this.#owners.values()];
    const outbox = owners.reduce((sum, { waiting }) => sum + waiting, 0);
    return { owned: this.#owners.size, known: this.#replicas.size, outbox };
  }

  // --- The outbox --------------------------------------------------------------------------------

  /** @param {number} by characters */
  wait(by) {
    this.#outbox += by;
    if (this.full) return;
    for (const resume of this.#waiting) resume();
    this.#waiting.clear();
  }

  /** True if nothing may be added. */
  get full() {
    return this.#outbox >= this.options.maxOutbox;
  }

  /** Throws if nothing may be added. */
  requireRoom() {
    if (!this.full) return;
    const message = `${this.options.maxOutbox} characters wait to be stored: await ctx.flushed()`;
    throw new AbpError('RATE_LIMITED', message, { retryable: true });
  }

  /** Resolves when something may be added. */
  async room() {
    while (this.full) await new Promise((resolve) => this.#waiting.add(() => resolve(undefined)));
  }

  // --- The process -------------------------------------------------------------------------------

  /** Rejects if the backend is away; the process still enters when it is back. */
  async open() {
    const { term } = this.options;
    // A lease that no other process sees need not be renewed.
    if (term < Infinity) this.#timer ??= setInterval(() => void this.#tick(), term / RENEWALS);
    /** @type {{ unref?: () => void } | undefined} */ (this.#timer)?.unref?.();
    await refusing(this.#membership.enter());
    void this.takeover.scan();
  }

  async #tick() {
    for (const replica of [...this.#replicas.values()]) this.#release(replica);
    await this.#membership.tick();
    await this.takeover.scan();
    this.#retention.sweep();
  }

  /**
   * Releases the tasks that this process owned: the process that takes one owns it. This one
   * continues under another name.
   */
  loseAll() {
    this.#membership.lose();
  }

  /**
   * A log has a record that this version cannot read, or lacks one that it should have.
   * @param {Replica} replica
   * @param {unknown} why
   */
  unreadable({ id, entry }, why) {
    this.parts.reports?.unreadable();
    if (this.#warned.size < MAX_WARNED && !this.#warned.has(id)) {
      this.#warned.add(id);
      reportError(why);
    }
    if (!entry) return;
    for (const stream of entry.streams) stream.end();
    const waiting = [...entry.waiting.values()];
    entry.waiting.clear();
    for (const fail of waiting) fail(unreadableOf(id));
  }

  /**
   * Stops showing tasks that have ended and were deleted.
   * @param {(time: number) => boolean} hasExpired
   */
  dropEnded(hasExpired) {
    for (const replica of [...this.#replicas.values()]) {
      const { entry, ended, idle } = replica;
      if (ended && idle && hasExpired(Date.parse(entry?.task.status.timestamp ?? '')))
        this.#discard(replica);
    }
  }

  /** Ends all shown tasks as lost. */
  reset() {
    for (const replica of this.#replicas.values()) {
      replica.owner?.lose();
      replica.stop();
    }
    this.#replicas.clear();
    this.loseAll();
  }

  /** The lease under which work may begin. */
  async living() {
    if (this.#closing) throw away();
    return refusing(this.#membership.living());
  }

  /**
   * Cancels the tasks that this process works on.
   * @param {string} reason
   */
  endAll(reason) {
    for (const owner of [...this.#owners.values()]) owner.end(reason);
  }

  /** Releases all tasks, and leaves. Resolves when other processes can take them. */
  close() {
    return (this.#closing ??= this.#close());
  }

  async #close() {
    clearInterval(this.#timer);
    const { name } = this.lease;
    this.#membership.closed = true;
    const owners = [...this.#owners.values()];
    for (const owner of owners) if (owner.context) owner.lose();
    // Decisions are stored as long as the lease holds.
    await Promise.allSettled(owners.map((owner) => owner.flushed()));
    for (const owner of [...this.#owners.values()]) owner.lose();
    for (const replica of this.#replicas.values()) replica.stop();
    this.table.rest();
    const busy = [this.takeover.rest(), this.#retention.close(), this.entries.rest()];
    await Promise.allSettled(busy);
    this.#replicas.clear();
    await this.#membership.leave(name);
  }

  // --- Tasks -------------------------------------------------------------------------------------

  /**
   * The task in its latest stored state; call `leave` when it is no longer in use.
   * @param {unknown} id
   * @returns {Promise<Replica | undefined>}
   */
  async load(id) {
    if (typeof id !== 'string' || id === '' || id.length > 256) return undefined;
    const replica = await this.look(id);
    if (replica && !replica.entry) this.leave(replica);
    return replica?.entry && replica;
  }

  /**
   * The same, also if the log has no task.
   * @param {string} id
   * @returns {Promise<Replica | undefined>} undefined for an id that no task can have
   */
  async look(id) {
    const known = this.#replicas.get(id);
    if (!known) {
      const loading = this.#loading.get(id) ?? this.#read(id);
      this.#loading.set(id, loading);
      const replica = await loading;
      if (replica) replica.pins++;
      return replica;
    }
    known.pins++;
    try {
      if (!known.settled && !(known.owner && this.lease.valid)) await known.catchUp();
      if (known.blind) throw unreadableOf(id);
    } catch (error) {
      this.leave(known);
      throw error;
    }
    return known;
  }

  /** @param {string} id */
  async #read(id) {
    const replica = new Replica(this, id);
    try {
      await replica.catchUp();
      if (replica.blind) throw unreadableOf(id);
    } catch (error) {
      this.#discard(replica);
      // A name that no backend accepts is no task's.
      if (/** @type {AbpError} */ (error).code === 'INVALID_PARAMS') return undefined;
      throw error;
    } finally {
      this.#loading.delete(id);
    }
    if (replica.entry) this.#replicas.set(id, replica);
    else if (replica.epoch > 0) throw refusal();
    return replica;
  }

  /** @param {Replica} replica */
  leave(replica) {
    replica.pins--;
    this.#release(replica);
  }

  /**
   * Releases a working task that is not in use: its log has everything.
   * @param {Replica} replica
   */
  #release(replica) {
    if (replica.idle && !replica.ended) this.#discard(replica);
  }

  /** @param {Replica} replica */
  #discard(replica) {
    this.forget(replica);
    if (replica.entry) this.parts.shown.drop(replica.entry);
  }

  /**
   * Stops showing the task.
   * @param {Replica} replica
   */
  forget(replica) {
    replica.stop();
    if (this.#replicas.get(replica.id) === replica) this.#replicas.delete(replica.id);
    this.#forgetLog(replica);
  }

  /**
   * A task of an agent without a store is deleted when it is no longer shown.
   * @param {Replica} replica
   */
  #forgetLog({ id, owner }) {
    if (this.backend.alone && !owner && !this.#replicas.has(id)) this.entries.forget(id);
  }

  /**
   * Begins a new task. Resolves when its first record is stored; `begun` was called before.
   * @param {string} id
   * @param {Origin} origin
   * @param {Sent} sent
   */
  async begin(id, origin, sent) {
    if (this.full) throw refusal();
    const replica = new Replica(this, id);
    replica.pins++;
    const mayTake = () => {
      if ((this.#replicas.get(id) ?? replica) !== replica) throw conflict(id);
      this.#replicas.set(id, replica);
      return true;
    };
    try {
      const begin = this.#starter(sent, { k: 'new', origin });
      const enter = () => this.entries.begin(id, origin);
      // Another process may have begun it.
      if (!(await this.claim(replica, core.TASK_SUBMITTED, mayTake, begin, enter)))
        throw conflict(id);
    } catch (error) {
      // Its record may still be stored: then it is read anew at the next request.
      if (replica.seq === 0 || !replica.entry) {
        replica.abandon();
        this.forget(replica);
      }
      throw error;
    } finally {
      this.leave(replica);
    }
  }

  /**
   * Answers a task that has asked for input: the process that receives the answer takes the task.
   * Resolves as `begin` does.
   * @param {Replica} replica
   * @param {Sent} sent
   */
  async answer(replica, sent) {
    if (this.full) throw refusal();
    const { entry } = replica;
    const state = readState(entry?.task.state);
    // For a task of another process, the table of shown tasks knows whether it needs input.
    const asks = () =>
      replica.owner || (entry && entry.table.subscribe(entry.handle, true) & core.TASK_SETTLE);
    const mayTake = () => !replica.wished && !replica.blind && !!asks();
    if (await this.claim(replica, state, mayTake, this.#starter(sent))) return;
    const why = `Task ${replica.id} does not accept a message now`;
    throw new AbpError('UNSUPPORTED_OPERATION', why);
  }

  /**
   * Takes a task, if it may be taken, and still may after the preparations. The owner begins in the
   * same turn, since other processes prepare the same.
   * @param {Replica} replica
   * @param {core.TaskState} state
   * @param {() => boolean} mayTake
   * @param {(owner: Owner) => Promise<unknown> | undefined} begin
   *   undefined if there is nothing to do
   * @param {() => Promise<void>} [enter] writes the entries by which others find the task
   * @returns {Promise<boolean>} resolves when it is stored, with whether it has begun
   */
  async claim(replica, state, mayTake, begin, enter) {
    const lease = await this.living();
    if (!mayTake()) return false;
    const { id, epoch } = replica;
    await refusing(Promise.all([enter?.(), this.takeover.enlist(lease, id, epoch + 1)]));
    // Nothing begins under a lease that ran out meanwhile, or after its process has begun to leave.
    if (this.#closing) throw away();
    if (!lease.valid) throw unavailable('The lease of this process has run out: try again');
    // Another process may have taken it.
    if (replica.epoch !== epoch || !mayTake()) return false;
    const known = replica.owner;
    const owner = known ?? this.#own(replica, state, lease);
    const begun = begin(owner);
    if (!begun && !known) owner.lose();
    await begun;
    return begun !== undefined;
  }

  /**
   * @param {Replica} replica
   * @param {core.TaskState} state
   * @param {import('./membership.js').Lease} lease
   */
  #own(replica, state, lease) {
    const handle = this.table.add(replica.id, state);
    if (handle <= 0) throw refusal(handle);
    const owner = new Owner(this, replica, /** @type {core.Task} */ (handle), lease);
    this.#owners.set(owner.handle, owner);
    replica.watch();
    return owner;
  }

  /**
   * Has an owner begin the run for a message.
   * @param {Sent} sent
   * @param {TaskEvent} [first] the event before it in the log
   */
  #starter({ message, info, begun, mark }, first) {
    const given = this.options.saveRequest?.(info) ?? undefined;
    const saved = given && JSON.parse(JSON.stringify(given));
    const run = { message, mark, saved, attempt: 1, trace: info.headers.traceparent };
    return (/** @type {Owner} */ owner) =>
      owner.start({ prompt: message, info }, run, begun, first);
  }

  /**
   * @param {Replica} replica
   * @param {core.Task} handle
   */
  released(replica, handle) {
    this.#owners.delete(handle);
    const { entry } = replica;
    if (this.backend.alone && entry && !replica.ended) this.parts.shown.lost(entry);
    if (replica.asks) this.takeover.question(replica);
    this.entries.changed(replica);
    this.#forgetLog(replica);
  }

  // --- Cancels -----------------------------------------------------------------------------------

  /**
   * Stores a cancel of the task. Resolves when it is stored, or when the task has ended.
   * @param {Replica} replica
   * @param {string} [reason]
   */
  async cancel(replica, reason) {
    replica.pins++;
    try {
      replica.watch();
      if (replica.owner && this.lease.valid) {
        replica.owner.push({ k: 'wish', reason });
        return;
      }
      await replica.append({ k: 'wish', reason }, () => replica.ended || replica.wished);
      // A task that waits for input has no owner: the process that cancels it takes it.
      if (replica.asks && !replica.owner) await this.takeover.take(replica);
    } finally {
      this.leave(replica);
    }
  }

  /**
   * Changes the destinations of a task's states.
   * @param {Replica} replica
   * @param {TaskEvent & { k: 'push' | 'unpush' }} event
   */
  async change(replica, event) {
    const { owner, entry } = replica;
    const isStored = () =>
      event.k === 'push'
        ? JSON.stringify(entry?.pushes.get(event.config.id)) === JSON.stringify(event.config)
        : !entry?.pushes.has(event.id);
    if (!owner) return replica.append(event, () => replica.ended || isStored());
    if (this.full) throw refusal();
    owner.push(event);
    await owner.flushed();
  }

  // --- Readers and notifications -----------------------------------------------------------------

  /**
   * The events that a reader of a stream has missed.
   * @param {Replica} replica
   * @param {string} number of the reader's last event
   */
  replay(replica, number) {
    return Replay.after(this.backend, replica, number);
  }

  /**
   * Sends a state to the task's push addresses.
   * @param {Entry} entry
   * @param {Status} status
   */
  notify(entry, status) {
    this.parts.reports?.told(status.state);
    this.parts.pushes?.notify(entry, status);
  }

  /**
   * Resolves when all were sent or given up; with false if the process ends first.
   * @param {Entry} entry
   */
  async delivered(entry) {
    return this.parts.pushes?.delivered(entry) ?? true;
  }

  /**
   * The time when an unanswered question is canceled.
   * @param {Entry | undefined} entry
   */
  deadline(entry) {
    const since = entry ? Date.parse(timeOf(entry.task)) : Date.now();
    return since + (this.parts.limits.rememberFor ?? core.TASKS_DEFAULT_REMEMBER_MS);
  }

  // --- Lists -------------------------------------------------------------------------------------

  /**
   * True if something of a task is shown here.
   * @param {string} id
   */
  shows(id) {
    return this.#replicas.has(id);
  }

  /**
   * The task, if this process has all of its stored records.
   * @param {string} id
   */
  known(id) {
    const { entry, settled, owner } = this.#replicas.get(id) ?? {};
    return settled || (owner && this.lease.valid) ? entry?.task : undefined;
  }
}

/**
 * Rejects with an error that says that nothing has begun: entries are written before the record
 * that begins something.
 * @template T
 * @param {Promise<T>} written
 */
const refusing = (written) =>
  written.catch((error) => {
    throw error.code === 'UNACKNOWLEDGED' ? unavailable(error.message, error) : error;
  });
