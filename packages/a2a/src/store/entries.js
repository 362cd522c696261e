/**
 * What the index knows of tasks: their tenants, contexts, states, times and users. It is derived from their logs, and written
 * after them: until then, and where a process ends in between until another one has taken the task over, a list that is
 * limited to a state shows the task as the index has it. What ends a task is never taken back, so an entry that says so is right.
 */
import { safely } from '../../../../js/common/errors.js';
import { printCursor, requireEntry, stateIn } from '../backends/backend.js';

/** @import { Backend, IndexEntry, Place } from '../backends/backend.js' */
/** @import { Filter, Listed } from '../lists.js' */
/** @import { Origin } from './records.js' */
/** @import { Replica } from './replica.js' */

const TASKS = 'task:';
/** Characters of a user that the index has; of a longer one it knows nothing. */
const MAX_USER = 1024;

export class TaskEntries {
  /** Tasks whose entries are behind their logs, and are to be written. @type {Set<string>} */
  due = new Set();
  /** Those that are being written. @type {Set<string>} */
  #writing = new Set();
  /** Called when one was written, or could not be. @type {Map<string, Set<() => void>>} */
  #waiting = new Map();
  #backend;

  /** @param {Backend} backend */
  constructor(backend) {
    this.#backend = backend;
  }

  /** Enters a task that is to have its first record. @param {string} id @param {Origin} origin */
  begin(id, { tenant, contextId, user }) {
    return this.#note(id, { tenant, contextId, user, time: Date.now() }, 0);
  }

  /** Enters a task as its log has it. @param {Replica} replica */
  async write({ id, seq, entry }) {
    if (!entry) return;
    const { tenant, contextId, user, state, status } = entry.task;
    const time = Date.parse(status.timestamp ?? '') || Date.now();
    this.#writing.add(id);
    try {
      await this.#note(id, { tenant, contextId, user, state, time }, seq);
    } finally {
      this.#writing.delete(id);
      this.#tell(id);
    }
  }

  /** Nothing more is written of a task. @param {string} id */
  rest(id) {
    this.due.delete(id);
    this.#tell(id);
  }

  /** @param {string} id */
  #tell(id) {
    for (const resume of this.#waiting.get(id) ?? []) resume();
    this.#waiting.delete(id);
  }

  /**
   * @param {string} id
   * @param {{ tenant?: string, contextId: string, user: unknown, state?: string, time: number }} about
   * @param {number} seq
   */
  #note(id, { tenant = '', contextId: context, user, state, time }, seq) {
    const by = user === undefined ? [] : [user];
    const known = JSON.stringify(by).length <= MAX_USER;
    // `state` is for processes of the version before.
    const data = JSON.stringify({ state, by: known ? by : undefined });
    return this.#backend.note(id, { tenant: TASKS + tenant, context, time, state, data }, seq);
  }

  /** Deletes what is left of a task that has no log any more. @param {string} id */
  async forget(id) {
    await this.#backend.forget(id).catch(() => {});
  }

  /** Enters the user, where a process of the version before has entered the task. @param {Replica} replica @param {Listed} listed */
  async complete(replica, { state, by }) {
    const user = replica.entry?.task.user ?? '';
    if (!state || by || JSON.stringify(user).length > MAX_USER - 2) return;
    await this.write(replica).catch(() => {});
  }

  /**
   * Tasks, those that were changed last first. What this process has stored is among them.
   * @param {Filter} filter
   * @param {Place | undefined} after
   * @param {number} limit
   * @returns {Promise<{ tasks: Listed[], next?: Place }>} and where the next ones begin, if there are more
   */
  async page(filter, after, limit) {
    if (!after) await this.#written();
    const cursor = after && printCursor(after);
    const found = await this.#backend.list({ ...within(filter), limit, cursor });
    const { state, since = -Infinity } = filter;
    // A backend that does not count knows no states.
    const tasks = found.tasks
      .map((entry) => readEntry(entry, this.#backend.count ? entry.state : stateIn(entry.data, 1)))
      .filter((task) => (!state || task.state === state) && task.time >= since);
    return { tasks, next: found.cursor === undefined ? undefined : found.tasks.at(-1) };
  }

  /** How many tasks there are. @param {Filter} filter @returns {Promise<number | undefined>} undefined if nobody counts them */
  async count(filter) {
    await this.#written();
    return this.#backend.count?.(within(filter));
  }

  /** Resolves when what is stored by now is entered. Where that fails twice, nobody waits for it. */
  async #written() {
    const isBehind = (/** @type {string} */ id) => this.due.has(id) || this.#writing.has(id);
    const behind = new Set([...this.due, ...this.#writing]);
    const written = [...behind].map(async (id) => {
      for (let attempt = 1; attempt <= 2 && isBehind(id); attempt++)
        await new Promise((resolve) => {
          const waiting = this.#waiting.get(id) ?? new Set();
          this.#waiting.set(
            id,
            waiting.add(() => resolve(undefined)),
          );
        });
    });
    await Promise.all(written);
  }
}

/** Throws unless an index can have what is asked for. @param {Filter} filter */
function within({ tenant: name, ...rest }) {
  const tenant = TASKS + name;
  requireEntry({ tenant, context: rest.context ?? '', time: 0, data: '' });
  return { ...rest, tenant };
}

/** @param {IndexEntry & { task: string }} entry @param {string | undefined} state @returns {Listed} */
function readEntry({ task, context: contextId, time, data }, state) {
  const by = safely(() => JSON.parse(data).by, undefined);
  return { task, contextId, time, state, by: Array.isArray(by) ? by : undefined };
}
