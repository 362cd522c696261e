/**
 * Takes over the tasks of processes that are gone. Each process has a list of its duties, the tasks
 * that it is responsible for, so the cost of finding them depends on their number only. Also
 * watches unanswered questions.
 *
 * By these rules every task of a process that is gone is found, whatever fails, hangs or is late:
 * - A process enlists before it stores that a task is its own, and stores nothing under a lease
 *   that is not valid.
 * - A duty is over only when the log has a record that came after its process was gone: one by
 *   which another process takes the task, or a fence, a record without events. Records that the
 *   process may still have in flight expect another record to be the last one, and are rejected.
 * - A question has no owner: the duty to watch it goes to the process that finds it.
 * - A failure with one task, or one process, does not stop the others.
 *
 * packages/a2a-store/tests/membership.test.js explores it together with membership.js.
 */
import { abp } from 'abp-bridge/driver';
import * as core from '../tasks-boundary.js';
import { outcomeOf } from '../outcome.js';
import { requestInfo } from '../requests.js';
import { isUnreadable } from './records.js';

/** @import { Lease, Membership } from './membership.js' */
/** @import { Replica } from './replica.js' */

/** Tasks of a process that are taken over at once. */
const BATCH = 64;

const DUTIES = 'duties:';

/**
 * @param {string} name of a process
 * @param {string} id of a task
 */
const dutyOf = (name, id) => `${name}/${id}`;

export class Takeover {
  /** Tasks that wait for input, and when they are canceled. @type {Map<string, number>} */
  #questions = new Map();
  /** Duties that this process is giving up. @type {Map<string, Promise<void>>} */
  #delisting = new Map();
  /**
   * Duties of other processes that wait: for notifications of a task's end, or for a later version
   * that can read the task.
   * @type {Set<string>}
   */
  #waiting = new Set();
  /** @type {Promise<void> | undefined} */
  #scanning;
  #logs;
  #backend;
  #membership;

  /**
   * @param {import('./store.js').TaskLogs} logs
   * @param {Membership} membership
   */
  constructor(logs, membership) {
    this.#logs = logs;
    this.#backend = logs.backend;
    this.#membership = membership;
  }

  // --- Duties ------------------------------------------------------------------------------------

  /**
   * Makes a process responsible for a task.
   * @param {Lease} lease
   * @param {string} id
   * @param {number} epoch
   */
  async enlist({ name }, id, epoch) {
    if (this.#backend.alone) return; // no other process takes its tasks
    await this.#delisting.get(id);
    const entry = { tenant: DUTIES + name, context: '', time: 0, data: id };
    await this.#backend.note(dutyOf(name, id), entry, epoch);
  }

  /**
   * Ends the responsibility of a process for a task.
   * @param {string} name
   * @param {string} id
   */
  async delist(name, id) {
    if (!this.#backend.alone) await this.#backend.forget(dutyOf(name, id));
  }

  // --- Processes that are gone -------------------------------------------------------------------

  /**
   * Takes over the tasks of processes that are gone, and ends unanswered questions. Resolves when
   * done.
   */
  scan() {
    return (this.#scanning ??= this.#scan()
      .catch(() => {})
      .finally(() => (this.#scanning = undefined)));
  }

  /** Resolves when nothing is being taken. */
  async rest() {
    await this.#scanning;
  }

  get #stopped() {
    return !this.#membership.lease.valid || this.#membership.closed;
  }

  async #scan() {
    if (this.#stopped) return;
    for (const [id, deadline] of this.#questions)
      if (deadline <= Date.now())
        await this.#expire(id).catch((error) => {
          // A later version may read it. Everything else is tried again.
          if (isUnreadable(error)) this.#questions.delete(id);
        });
    const gone = new Set();
    for await (const name of this.#membership.gone()) {
      gone.add(name);
      // The next scan continues.
      await this.#takeAll(name).catch(() => {});
      if (this.#stopped) return;
    }
    for (const duty of this.#waiting)
      if (!gone.has(duty.slice(0, duty.indexOf('/')))) this.#waiting.delete(duty);
  }

  /** @param {string} name of a process that is gone */
  async #takeAll(name) {
    let over = true;
    let cursor;
    do {
      const page = await this.#backend.list({ tenant: DUTIES + name, limit: BATCH, cursor });
      const taken = page.tasks.map(({ data }) => this.#takeOver(data, name));
      for (const result of await Promise.allSettled(taken))
        if (result.status === 'rejected' || !result.value) over = false;
      if (this.#stopped) return;
      ({ cursor } = page);
    } while (cursor);
    if (!over) return;
    // More may have been stored late.
    const { tasks } = await this.#backend.list({ tenant: DUTIES + name, limit: 1 });
    if (tasks.length === 0) await this.#membership.forget(name);
  }

  /**
   * @param {string} id of a task
   * @param {string} name of a process that is gone
   * @returns {Promise<boolean>} whether that duty is over
   */
  async #takeOver(id, name) {
    const duty = dutyOf(name, id);
    if (this.#waiting.has(duty)) return false;
    try {
      if (!(await this.#settle(id, name))) return false;
    } catch (error) {
      if (isUnreadable(error)) this.#waiting.add(duty);
      throw error;
    }
    await this.delist(name, id);
    return true;
  }

  /**
   * @param {string} id
   * @param {string} name
   * @returns {Promise<boolean>} whether the duty is over; if not, the next scan continues
   */
  async #settle(id, name) {
    const logs = this.#logs;
    const replica = await logs.look(id);
    if (!replica) return true;
    try {
      const { ended, asks, by, wished } = replica;
      if (ended && by !== name) return true;
      if (ended) await this.#finish(replica, name);
      else if (asks && !wished) return await this.#watch(replica);
      else if (by !== name) return await this.#fence(replica);
      else {
        await this.take(replica);
        return replica.by !== name;
      }
      return false;
    } finally {
      logs.leave(replica);
    }
  }

  /**
   * Makes the log reject what a process that is gone may still store of a task.
   * @param {Replica} replica
   * @returns {Promise<boolean>} false if another record came first, or the result is unknown
   */
  async #fence(replica) {
    await this.#logs.living();
    if (!(await replica.fence())) return false;
    // Without a task, the log is deleted later, and begun if the message is sent again.
    if (!replica.entry) await this.#logs.entries.noteEnd(replica.id, 0);
    return true;
  }

  /**
   * Finishes the duties for an ended task whose owner is gone: sends the notifications of its end,
   * which may take time, and then ends the duty.
   * @param {Replica} replica
   * @param {string} name of the owner
   */
  async #finish(replica, name) {
    const logs = this.#logs;
    const { id, entry } = replica;
    if (!entry) return;
    await logs.entries.write(replica);
    // Work that was in progress when the task was canceled is gone.
    const metadata = outcomeOf(abp.FATE_UNKNOWN);
    await replica.append({ k: 'outcome', metadata }, () => replica.settled);
    logs.notify(entry, entry.task.status);
    const duty = dutyOf(name, id);
    this.#waiting.add(duty);
    void logs
      .delivered(entry)
      .then((all) => (all ? this.delist(name, id) : undefined))
      .catch(() => {})
      .finally(() => this.#waiting.delete(duty));
  }

  /**
   * Takes a task: cancels it if a cancel is stored, runs it again if possible, otherwise fails it.
   * Resolves when that is stored, or another process has taken it.
   * @param {Replica} replica
   */
  async take(replica) {
    const logs = this.#logs;
    const state = replica.asks ? core.TASK_INPUT_REQUIRED : core.TASK_SUBMITTED;
    const mayTake = () => !replica.owner && !replica.ended && !replica.blind;
    await logs.claim(replica, state, mayTake, (owner) => {
      const { prompt, run } = replica;
      const stored = owner.stored();
      if (replica.wished) owner.wish();
      else if (logs.options.onOrphan === 'rerun' && prompt && run?.saved) {
        const { saved, attempt, trace } = run;
        const { user, tenant } = replica.entry?.task ?? {};
        const headers = /** @type {Record<string, string>} */ (trace ? { traceparent: trace } : {});
        // Members of its request that were not saved are not known.
        const known = requestInfo({ headers, user, extensions: [] }, { tenant }, []);
        const info = { ...known, ...saved };
        owner.start({ prompt, info }, { saved, attempt: attempt + 1, trace })?.catch(() => {});
      } else owner.fail('The process that worked on the task is gone');
      return stored.catch(() => {});
    });
  }

  // --- Questions ---------------------------------------------------------------------------------

  /**
   * Call this when a task asks for input; it is canceled if there is no answer.
   * @param {Replica} replica
   */
  question({ id, entry }) {
    this.#questions.set(id, this.#logs.deadline(entry));
  }

  /**
   * Makes this process watch a question.
   * @param {Replica} replica
   * @returns {Promise<boolean>} false if another record came first
   */
  async #watch(replica) {
    const lease = await this.#membership.living();
    // Of several processes that find it, one continues.
    if (!(await this.#fence(replica))) return false;
    await this.enlist(lease, replica.id, replica.epoch + 1);
    if (!lease.valid) return false;
    this.question(replica);
    await this.#logs.entries.write(replica);
    return true;
  }

  /**
   * Call this when the time for an answer is over.
   * @param {string} id
   */
  async #expire(id) {
    const logs = this.#logs;
    const { name } = this.#membership.lease;
    const replica = await logs.look(id);
    if (!replica) return;
    try {
      const { asks, entry } = replica;
      if (asks && logs.deadline(entry) > Date.now()) return this.question(replica);
      if (asks) await logs.cancel(replica, 'Nobody answered');
      // Another process has it, unless this one is about to take it.
      else if (replica.by !== name && !replica.owner && replica.pins === 1) {
        const delisting = this.delist(name, id).finally(() => this.#delisting.delete(id));
        this.#delisting.set(
          id,
          delisting.catch(() => {}),
        );
        await delisting;
      }
      this.#questions.delete(id);
    } finally {
      logs.leave(replica);
    }
  }
}
