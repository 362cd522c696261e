/**
 * The tasks that an agent shows: sends the stored events of a task to all of its streams. The
 * core's table decides what is sent, and how long a task that has ended is remembered; if all tasks
 * together take too much room, it is forgotten earlier.
 */
import { abp } from 'abp-bridge/driver';
import * as core from './tasks-boundary.js';
import { DIALECTS, readState } from './dialects.js';
import { outcomeOf } from './outcome.js';
import { refusal } from './refusals.js';
import { PrintedEvent } from './reply.js';
import { StoredTask, aboutOf, statusOf } from './task.js';
import { TaskTable, ended } from './tasks-core.js';

/** @import { Event, Metadata, Status } from './dialects.js' */
/** @import { Parts } from './server.js' */
/** @import { Origin, TaskEvent } from './store/records.js' */
/** @import { PushConfig } from './store/push.js' */
/** @import { Replica } from './store/replica.js' */

/** The verdict on a lost task, if the core returns none. */
const LOST = core.TASK_TELL | core.TASK_SETTLE | core.TASK_END;

/**
 * A task and its readers.
 * @typedef {object} Entry
 * @property {TaskTable} table
 * @property {core.Task} handle
 * @property {StoredTask} task
 * @property {Replica} replica reads its log
 * @property {import('./dialects.js').Dialect} dialect of the message that began it
 * @property {Set<import('./reply.js').Stream>} streams
 * @property {Map<() => void, (error: unknown) => void>} waiting callbacks for when the task
 *   settles, each with the one for an error if it will not settle here
 * @property {Map<string, PushConfig>} pushes destinations of its states, by the ids that clients
 *   gave
 * @property {number} counted the task's characters when it was last measured
 * @property {string} [number] of the latest event that was sent, if a reader can resume after it
 */

/**
 * Ends all streams of a task.
 * @param {Entry} entry
 */
export function endStreams({ streams }) {
  for (const stream of streams) stream.end();
  streams.clear();
}

export class ShownTasks {
  /** @type {Map<number, Entry>} */
  #entries = new Map();
  /** Tasks that have ended, the earliest first. @type {Set<Entry>} */
  #finished = new Set();
  #size = 0;
  #parts;

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
    this.table = this.#newTable();
  }

  #newTable() {
    return new TaskTable(this.#parts.limits, {
      onDue: (task, verdict) => {
        const entry = this.#entries.get(task);
        if (entry) this.#act(entry, verdict);
      },
      onFailure: () => {
        const entries = [...this];
        this.table = this.#newTable();
        this.#parts.logs.reset();
        for (const entry of entries) {
          // A reader of a stored task resumes elsewhere.
          endStreams(entry);
          this.drop(entry);
        }
      },
    });
  }

  [Symbol.iterator]() {
    return this.#entries.values();
  }

  /** @param {unknown} id */
  find(id) {
    return this.#entries.get(this.table.find(id));
  }

  // --- Events of a log ---------------------------------------------------------------------------

  /**
   * Shows a task.
   * @param {Replica} replica
   * @param {Origin} origin
   * @returns {Entry}
   */
  adopt(replica, { contextId, tenant, user, dialect }) {
    const { table } = this;
    const { id } = replica;
    const handle = table.add(id, core.TASK_UNKNOWN);
    if (handle <= 0) throw refusal(handle);
    const task = new StoredTask(id, contextId, this.#parts.limits.maxTask, { user, tenant });
    /** @type {Entry} */
    const entry = {
      table,
      handle: /** @type {core.Task} */ (handle),
      task,
      replica,
      counted: 0,
      dialect: DIALECTS[dialect],
      streams: new Set(),
      waiting: new Map(),
      pushes: new Map(),
    };
    this.#entries.set(handle, entry);
    this.update(entry);
    return entry;
  }

  /**
   * Applies a state, and sends it to the streams.
   * @param {Entry} entry
   * @param {Status} status
   * @param {string} [number] of the event
   * @param {(entry: Entry) => void} [before] called when the task has the state and no stream was
   *   sent it yet
   */
  status(entry, status, number, before) {
    const verdict = entry.table.says(entry.handle, 0, readState(status.state), core.TASK_NEWS);
    before?.(entry);
    this.#act(entry, verdict, status, number);
  }

  /**
   * Applies an artifact, and sends it to the streams.
   * @param {Entry} entry
   * @param {TaskEvent & { k: 'artifact' }} event
   * @param {string} [number]
   */
  artifact(entry, event, number) {
    const { task } = entry;
    const { artifact, size, append } = event;
    const { artifactId } = artifact;
    const verdict = entry.table.artifact(entry.handle, 0, artifactId, append);
    const how = verdict & 3;
    if (verdict < 0 || how === core.ARTIFACT_DROP) return;
    const grows = task.growth(artifactId, size, append);
    task.take(artifact, verdict >> 2, how === core.ARTIFACT_APPEND, grows);
    this.update(entry);
    this.#send(entry, artifactEvent(task, event), number);
  }

  /**
   * Adds the outcome of the work of a task that has ended.
   * @param {Entry} entry
   * @param {Metadata} metadata
   */
  learn(entry, metadata) {
    entry.task.learn(metadata);
    this.update(entry);
  }

  /**
   * Fails a task that no process can continue.
   * @param {Entry} entry
   */
  lost(entry) {
    const { task } = entry;
    const metadata = outcomeOf(abp.FATE_UNKNOWN);
    const message = { parts: [{ text: 'The agent lost the task' }], metadata };
    /** @type {Status} */
    const status = {
      state: 'failed',
      timestamp: new Date().toISOString(),
      ...statusOf(task, message),
    };
    const { table, handle } = entry;
    const verdict = table.says(handle, 0, core.TASK_FAILED, core.TASK_NEWS) || LOST;
    this.#act(entry, verdict, status);
    this.#parts.logs.notify(entry, status);
    this.drop(entry);
  }

  /**
   * Carries out a verdict of the core.
   * @param {Entry} entry
   * @param {number} verdict
   * @param {Status} [status]
   * @param {string} [number]
   */
  #act(entry, verdict, status, number) {
    if (verdict <= 0) return;
    const { task, streams, waiting } = entry;
    const end = (verdict & core.TASK_END) !== 0;
    const park = (verdict & core.TASK_PARK) !== 0;
    if (verdict & core.TASK_TELL && status) {
      task.status = status;
      if (status.message) task.remember(status.message);
      this.update(entry);
      this.#send(entry, statusEvent(task, status, end || park), number);
    }
    if (verdict & core.TASK_SETTLE) {
      const settling = [...waiting.keys()];
      waiting.clear();
      for (const settle of settling) settle();
    }
    for (const stream of streams)
      if (end || (park && !stream.lasting)) {
        stream.end();
        streams.delete(stream);
      }
    if (verdict & core.TASK_FORGET) this.#delete(entry);
  }

  /**
   * @param {Entry} entry
   * @param {Event} event
   * @param {string} [number]
   */
  #send({ streams }, event, number) {
    if (streams.size === 0) return;
    const printed = new PrintedEvent(event, number);
    for (const stream of streams) if (!stream.send(printed)) streams.delete(stream);
  }

  // --- Room --------------------------------------------------------------------------------------

  /**
   * Call this after a task has grown, or ended.
   * @param {Entry} entry
   */
  update(entry) {
    if (this.#entries.get(entry.handle) !== entry) return;
    this.#size += entry.task.size - entry.counted;
    entry.counted = entry.task.size;
    if (entry.task.terminal) this.#finished.add(entry);
    this.makeRoom(0);
  }

  /**
   * Forgets finished tasks until there is room.
   * @param {number} size characters needed
   * @returns {boolean} whether there is
   */
  makeRoom(size) {
    const { maxStored } = this.#parts.limits;
    for (const entry of this.#finished) {
      if (this.#size + size <= maxStored) break;
      // Not while its executor runs.
      if (!entry.replica.owner?.context) this.drop(entry);
    }
    return this.#size + size <= maxStored;
  }

  /**
   * Stops showing a task.
   * @param {Entry} entry
   */
  drop(entry) {
    entry.table.forget(entry.handle);
    this.#delete(entry);
  }

  /** @param {Entry} entry */
  #delete(entry) {
    if (this.#entries.get(entry.handle) !== entry) return;
    this.#entries.delete(entry.handle);
    this.#finished.delete(entry);
    this.#size -= entry.counted;
    this.#parts.logs.forget(entry.replica);
  }
}

/**
 * @param {StoredTask} task
 * @param {Status} status
 * @param {boolean} final
 * @returns {Event}
 */
const statusEvent = (task, status, final) => ({ kind: 'status', ...aboutOf(task), status, final });

/**
 * @param {StoredTask} task
 * @param {TaskEvent & { k: 'artifact' }} event
 * @returns {Event}
 */
const artifactEvent = (task, { artifact, append, last: lastChunk }) => ({
  kind: 'artifact',
  ...aboutOf(task),
  artifact,
  append,
  lastChunk,
});

/**
 * The events that streams were sent for an event of a task's log: one or none.
 * @param {StoredTask} task
 * @param {import('./store/replay.js').Numbered} one
 */
export function eventsOf(task, { event, number }) {
  if (event.k === 'artifact') return [new PrintedEvent(artifactEvent(task, event), number)];
  if (event.k !== 'run' && event.k !== 'status') return [];
  const state = readState(event.status.state);
  const final = ended(state) || state === core.TASK_INPUT_REQUIRED;
  return [new PrintedEvent(statusEvent(task, event.status, final), number)];
}
