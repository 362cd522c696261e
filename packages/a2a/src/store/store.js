/**
 * Tasks that outlive their process, on a backend. docs/design.md says by which rules;
 * tests/core/explore_fleet.c has what goes wrong without each of them.
 *
 * In the backend's index there are three kinds of entries, told apart by their names: tasks, under
 * their tenants; of each process the tasks that it has to see to, so that whoever finds it gone
 * knows what to take; and the tasks that have ended, by the hour.
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

/** How often in a term a lease is renewed, and processes are looked at. */
const RENEWALS = 5;
/** Tasks of which it is said that they cannot be read. */
const MAX_WARNED = 1000;

/**
 * A message that a run is to answer: a later run gets of its request what `saveRequest` says.
 * `mark` is there if it may come again.
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
  /** Tasks that cannot be read, of which that was said. @type {Set<string>} */
  #warned = new Set();
  /** @type {Promise<void> | undefined} */
  #closing;
  #membership;
  #retention;
  /** Characters that wait to be stored, and who waits until they are fewer. */
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

  /** Tasks that this process owns, and that it shows. */
  get counters() {
    const owners = [...this.#owners.values()];
    const outbox = owners.reduce((sum, { waiting }) => sum + waiting, 0);
    return { owned: this.#owners.size, known: this.#replicas.size, outbox };
  }

  // --- What waits to be stored -------------------------------------------------------------------

  /** @param {number} by characters */
  wait(by) {
    this.#outbox += by;
    if (this.full) return;
    for (const resume of this.#waiting) resume();
    this.#waiting.clear();
  }

  /** Whether nothing may be added. */
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

  /** Rejects if the backend is away; when it is back, the process enters nevertheless. */
  async open() {
    const { term } = this.options;
    // A lease that nobody else sees need not be renewed.
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
   * What this process owned belongs to the process that takes it. This one goes on under another
   * name.
   */
  loseAll() {
    this.#membership.lose();
  }

  /**
   * A log has a record that this version cannot read, or does not have what it should have.
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
   * Tasks that have ended, and were deleted, are shown no more.
   * @param {(time: number) => boolean} hasExpired
   */
  dropEnded(hasExpired) {
    for (const replica of [...this.#replicas.values()]) {
      const { entry, ended, idle } = replica;
      if (ended && idle && hasExpired(Date.parse(entry?.task.status.timestamp ?? '')))
        this.#discard(replica);
    }
  }

  /** What is shown of the tasks is lost. */
  reset() {
    for (const replica of this.#replicas.values()) {
      replica.owner?.lose();
      replica.stop();
    }
    this.#replicas.clear();
    this.loseAll();
  }

  /** The lease under which something may begin. */
  async living() {
    if (this.#closing) throw away();
    return refusing(this.#membership.living());
  }

  /**
   * Cancels what this process works on.
   * @param {string} reason
   */
  endAll(reason) {
    for (const owner of [...this.#owners.values()]) owner.end(reason);
  }

  /** Gives all tasks away, and goes. Resolves when they can be taken. */
  close() {
    return (this.#closing ??= this.#close());
  }

  async #close() {
    clearInterval(this.#timer);
    const { name } = this.lease;
    this.#membership.closed = true;
    const owners = [...this.#owners.values()];
    for (const owner of owners) if (owner.context) owner.lose();
    // What has been decided is stored, for as long as the lease holds.
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
   * The task as it is stored by now; call `leave` when it is no longer looked at.
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
   * The same, also where the log has no task.
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
      // A name that no backend can have is that of no task.
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
   * Lets go of a task that works, and that nobody looks at: its log has all of it.
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
   * The task is shown no more.
   * @param {Replica} replica
   */
  forget(replica) {
    replica.stop();
    if (this.#replicas.get(replica.id) === replica) this.#replicas.delete(replica.id);
    this.#forgetLog(replica);
  }

  /**
   * What is not shown any more is nowhere else.
   * @param {Replica} replica
   */
  #forgetLog({ id, owner }) {
    if (this.backend.alone && !owner && !this.#replicas.has(id)) this.entries.forget(id);
  }

  /**
   * A new task. Resolves when its first record is stored; `begun` was called before.
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
      // Its record may still be stored: then it is read anew, by whoever asks.
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
   * An answer to a task that asked for one: whoever gets it takes the task. Resolves as `begin`
   * does.
   * @param {Replica} replica
   * @param {Sent} sent
   */
  async answer(replica, sent) {
    if (this.full) throw refusal();
    const { entry } = replica;
    const state = readState(entry?.task.state);
    // Of a task that others work on, the table of what is told knows whether it needs somebody.
    const asks = () =>
      replica.owner || (entry && entry.table.subscribe(entry.handle, true) & core.TASK_SETTLE);
    const mayTake = () => !replica.wished && !replica.blind && !!asks();
    if (await this.claim(replica, state, mayTake, this.#starter(sent))) return;
    const why = `Task ${replica.id} does not accept a message now`;
    throw new AbpError('UNSUPPORTED_OPERATION', why);
  }

  /**
   * Takes a task, if it may be taken, and still may when that is prepared. Whoever owns it begins
   * in the same turn: others prepare the same.
   * @param {Replica} replica
   * @param {core.TaskState} state
   * @param {() => boolean} mayTake
   * @param {(owner: Owner) => Promise<unknown> | undefined} begin
   *   undefined if there is nothing to do
   * @param {() => Promise<void>} [enter] writes what others find the task by
   * @returns {Promise<boolean>} whether it has begun, when that is stored
   */
  async claim(replica, state, mayTake, begin, enter) {
    const lease = await this.living();
    if (!mayTake()) return false;
    const { id, epoch } = replica;
    await refusing(Promise.all([enter?.(), this.takeover.enlist(lease, id, epoch + 1)]));
    // Nothing begins under a lease that ran out meanwhile, or after its process has begun to go.
    if (this.#closing) throw away();
    if (!lease.valid) throw unavailable('The lease of this process has run out: try again');
    // Others may have taken it.
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
   * @param {TaskEvent} [first] what comes before it in the log
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
   * Stores that somebody wants the task to be cancelled. Resolves when it is, or when the task has
   * ended.
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
      // What waits for input is nobody's: whoever cancels it takes it.
      if (replica.asks && !replica.owner) await this.takeover.take(replica);
    } finally {
      this.leave(replica);
    }
  }

  /**
   * Changes where a task's states are sent.
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

  // --- What clients are told, and when -----------------------------------------------------------

  /**
   * What a reader of a stream has missed.
   * @param {Replica} replica
   * @param {string} number of the last event that it has
   */
  replay(replica, number) {
    return Replay.after(this.backend, replica, number);
  }

  /**
   * Sends a state to those who want to be told of it.
   * @param {Entry} entry
   * @param {Status} status
   */
  notify(entry, status) {
    this.parts.reports?.told(status.state);
    this.parts.pushes?.notify(entry, status);
  }

  /**
   * Whether all was sent, or given up; false if the process ends first.
   * @param {Entry} entry
   */
  async delivered(entry) {
    return this.parts.pushes?.delivered(entry) ?? true;
  }

  /**
   * When a question that nobody answers is canceled.
   * @param {Entry | undefined} entry
   */
  deadline(entry) {
    const since = entry ? Date.parse(timeOf(entry.task)) : Date.now();
    return since + (this.parts.limits.rememberFor ?? core.TASKS_DEFAULT_REMEMBER_MS);
  }

  // --- Lists -------------------------------------------------------------------------------------

  /**
   * Whether something of a task is shown here.
   * @param {string} id
   */
  shows(id) {
    return this.#replicas.has(id);
  }

  /**
   * A task of which this process has all that is stored.
   * @param {string} id
   */
  known(id) {
    const { entry, settled, owner } = this.#replicas.get(id) ?? {};
    return settled || (owner && this.lease.valid) ? entry?.task : undefined;
  }
}

/**
 * What is written before a record that begins something: whether it was stored or not, nothing has
 * begun.
 * @template T
 * @param {Promise<T>} written
 */
const refusing = (written) =>
  written.catch((error) => {
    throw error.code === 'UNACKNOWLEDGED' ? unavailable(error.message, error) : error;
  });
