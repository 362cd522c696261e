/**
 * The index of tasks: their tenants, contexts, states, times and users, and the hours in which they
 * ended. It is derived from their logs, and written after them. Until then (after the end of a
 * process, until another one has taken the task over) a list filtered by state shows the task as
 * the index has it. The end of a task is final, so an entry with an end is right. The index of a
 * backend with one user is written when it is read.
 */
import { safely } from 'abp-bridge/driver';
import { printCursor, requireEntry } from './backends/backend.js';
import { pause, RETRY } from '../pause.js';
import { isUnreadable } from './records.js';

/** @import { IndexEntry, ListFilter, Place } from './backends/backend.js' */
/** @import { Listed } from '../lists.js' */
/** @import { StoredTask } from '../task.js' */
/** @import { Origin } from './records.js' */
/** @import { Replica } from './replica.js' */

const TASKS = 'task:';
/** The tenant of tasks that have ended, by the hour. */
export const ENDED = 'ended';
const HOUR = 3_600_000;
/** Characters of a user in the index; longer ones are not entered. */
const MAX_USER = 1024;

/** @param {number} ms since 1970 */
export const hourOf = (ms) => Math.floor(ms / HOUR);

export class TaskEntries {
  /**
   * Tasks whose entries are behind their logs, and must be written.
   * @type {Map<string, Replica>}
   */
  #due = new Map();
  /** The writes in progress, by task. @type {Map<string, Promise<void>>} */
  #noting = new Map();
  /** Entries that are being written. @type {Set<Promise<void>>} */
  #writing = new Set();
  #logs;
  #backend;

  /** @param {import('./store.js').TaskLogs} logs */
  constructor(logs) {
    this.#logs = logs;
    this.#backend = logs.backend;
  }

  // --- Writing -----------------------------------------------------------------------------------

  /**
   * Enters a task before its first record.
   * @param {string} id
   * @param {Origin} origin
   */
  async begin(id, origin) {
    if (this.#backend.alone) within({ tenant: origin.tenant ?? '', context: origin.contextId });
    else await this.#backend.note(id, entryOf({ ...origin, time: Date.now() }), 0);
  }

  /**
   * Call this when a state of the task was stored: writes its entry, and ends its duty when nothing
   * remains to be done.
   * @param {Replica} replica
   */
  changed(replica) {
    const { id } = replica;
    if (!this.#isMine(replica)) return;
    this.#due.set(id, replica);
    if (this.#backend.alone || this.#noting.has(id)) return;
    const noting = this.#writeDue(replica).finally(() => {
      this.#noting.delete(id);
      if (this.#due.has(id) && this.#logs.lease.valid && this.#isMine(replica))
        this.changed(replica);
      else this.#due.delete(id);
    });
    this.#noting.set(id, noting);
  }

  /**
   * Removes a task that is gone.
   * @param {string} id
   */
  forget(id) {
    this.#due.delete(id);
    this.#backend.forget(id).catch(() => {});
  }

  /** Resolves when nothing is being written. */
  async rest() {
    await Promise.allSettled(this.#noting.values());
  }

  /** @param {Replica} replica */
  #isMine = (replica) => replica.by === this.#logs.lease.name;

  /** @param {Replica} replica */
  async #writeDue(replica) {
    const { id } = replica;
    const { lease, takeover } = this.#logs;
    // Further changes in the same turn go into the same entry.
    await Promise.resolve();
    while (this.#due.delete(id)) {
      try {
        await this.write(replica);
        // A process that finds this one gone sends the end of the task again.
        if (!replica.settled || replica.owner || !replica.entry) continue;
        if (await this.#logs.delivered(replica.entry)) await takeover.delist(lease.name, id);
      } catch {
        // The process that takes over does it.
        if (!this.#logs.lease.valid) return;
        this.#due.set(id, replica);
        await pause(RETRY);
      }
    }
  }

  /**
   * Enters a task in the state that its log has.
   * @param {Replica} replica
   */
  async write({ id, seq, entry, ended }) {
    if (!entry) return;
    const { tenant, contextId, user, state, status } = entry.task;
    const time = Date.parse(status.timestamp ?? '') || Date.now();
    const one = entryOf({ tenant, contextId, user, state, time });
    const written = this.#backend.note(id, one, seq);
    this.#writing.add(written);
    await written.finally(() => this.#writing.delete(written));
    if (ended) await this.noteEnd(id, 1);
  }

  /**
   * Notes that a task has ended, or that a log has no task, unless one begins there later.
   * @param {string} id
   * @param {0 | 1} seq 0 if the log has no task
   */
  async noteEnd(id, seq) {
    if (!this.#logs.options.retention) return;
    const time = Date.now();
    const hour = { tenant: ENDED, context: `${hourOf(time)}`, time, data: id };
    await this.#backend.note(`${ENDED}/${id}`, hour, seq);
  }

  // --- Lists -------------------------------------------------------------------------------------

  /**
   * The next tasks of a list, and the last place that was checked if there are more.
   * @param {ListFilter} filter
   * @param {Place | undefined} after
   * @param {number} limit
   */
  async page(filter, after, limit) {
    if (!after) await this.#written();
    const cursor = after && printCursor(after);
    const found = await this.#backend.list({ ...within(filter), limit, cursor });
    const tasks = found.tasks.map(({ task, context: contextId, time, state, data }) => {
      const by = safely(() => JSON.parse(data).by, undefined);
      return { task, contextId, time, state, by, whole: this.#logs.known(task) };
    });
    return { tasks, next: found.cursor === undefined ? undefined : found.tasks.at(-1) };
  }

  /** @param {ListFilter} filter */
  async count(filter) {
    await this.#written();
    return this.#backend.count(within(filter));
  }

  /**
   * @param {Listed} listed
   * @returns {Promise<StoredTask | undefined>}
   */
  async read({ task: id, state }) {
    const replica = await this.#logs.load(id).catch((error) => {
      // Its log is of a later version: other processes show it.
      if (isUnreadable(error)) return null;
      throw error;
    });
    // The remains of a task whose log is deleted.
    if (replica === undefined && state) await this.#backend.forget(id).catch(() => {});
    if (replica) this.#logs.leave(replica);
    return replica?.entry?.task;
  }

  /** Resolves when everything stored so far is entered, or has failed to be. */
  async #written() {
    const due = [...this.#due.values()].filter(({ id }) => this.#logs.shows(id));
    if (this.#backend.alone) this.#due.clear();
    await Promise.allSettled([...this.#writing, ...due.map((replica) => this.write(replica))]);
  }
}

/**
 * An entry of the index.
 * @param {{ tenant?: string, contextId: string, user?: unknown, state?: string, time: number }}
 *   about
 * @returns {IndexEntry}
 */
function entryOf({ tenant = '', contextId: context, user, state, time }) {
  const by = user === undefined ? [] : [user];
  const data = JSON.stringify({ by: JSON.stringify(by).length <= MAX_USER ? by : undefined });
  return { tenant: TASKS + tenant, context, time, state, data };
}

/**
 * Throws unless the filter fits the limits of an index.
 * @param {ListFilter} filter
 */
function within({ tenant: name, ...rest }) {
  const tenant = TASKS + name;
  requireEntry({ tenant, context: rest.context ?? '', time: 0, data: '' });
  return { ...rest, tenant };
}
