/**
 * One task, as its log has it. Events are sent to clients when their record is read here, at the
 * owner, too.
 */
import { AbpError, abp, invokeReportingErrors } from 'abp-bridge/driver';
import * as core from '../tasks-boundary.js';
import { MAX_HISTORY_MESSAGES } from '../task.js';
import { newId } from '../ids.js';
import { RETRY } from '../pause.js';
import { reused } from '../repeats.js';
import { unavailable } from './backends/backend.js';
import { fetchEvent, printNumber, printRecord, readRecord, requireKinds } from './records.js';

/** @import { LogRecord } from './backends/backend.js' */
/** @import { Entry } from '../shown-tasks.js' */
/** @import { Mark } from '../repeats.js' */
/** @import { Message } from '../dialects.js' */
/** @import { TaskEvent, TaskRecord } from './records.js' */

/**
 * The name of a mark for a message that was stored without one.
 * @param {Message} message
 */
const nameless = ({ messageId }) => `id ${messageId}`;

/** Attempts to store a record against other writers before the owner is asked to. */
const ATTEMPTS = 2;
/**
 * Attempts with an unknown result before the caller gets the error that the backend is away.
 */
const MAX_DOUBTS = 5;

const RUNNING = abp.FATES[abp.FATE_RUNNING];

export class Replica {
  /** The number of the latest record that was read. */
  seq = 0;
  /** Number of times the task was taken, and the last process that took it. */
  epoch = 0;
  by = '';
  /** True if a cancel is stored. */
  wished = false;
  /** True if the task waits for input and its executor has returned. */
  rested = false;
  /** The latest run. @type {TaskEvent & { k: 'run' } | undefined} */
  run;
  /**
   * The message that the latest run answers; the record of a repeated attempt does not have it.
   * @type {Message | undefined}
   */
  prompt;
  /**
   * True if the log has a record of a later version, or this replica was abandoned: the further
   * state is unknown.
   */
  blind = false;
  /** The task as it is shown, once the first record was read. @type {Entry | undefined} */
  entry;
  /** @type {import('./owner.js').Owner | undefined} */
  owner;
  /** Number of requests that use it. */
  pins = 0;
  /**
   * Digests of the messages that it has accepted, by the names of their marks, the earliest first.
   * @type {Map<string, string | undefined>}
   */
  #taken = new Map();
  /** @type {LogRecord[]} */
  #inbox = [];
  #busy = false;
  /** @type {Promise<void> | undefined} */
  #reading;
  /** @type {(() => void) | undefined} */
  #unwatch;
  /**
   * Watches again, after an object could not be read.
   * @type {ReturnType<typeof setTimeout> | undefined}
   */
  #again;
  #logs;

  /**
   * @param {import('./store.js').TaskLogs} logs
   * @param {string} id of the task
   */
  constructor(logs, id) {
    this.#logs = logs;
    this.id = id;
  }

  get ended() {
    return this.entry?.task.terminal ?? false;
  }

  /** True if the task will not change any more. */
  get settled() {
    return this.ended && this.entry?.task.status.message?.metadata?.outcome !== RUNNING;
  }

  /** True if the task waits for input, so that no process owns it. */
  get asks() {
    return this.entry?.task.state === 'input-required';
  }

  /** True if it is not in use. */
  get idle() {
    const { entry } = this;
    const read = entry && (entry.streams.size > 0 || entry.waiting.size > 0);
    return !this.pins && !this.owner && !read;
  }

  /**
   * True if the task has accepted a message; throws if it has accepted another with the same id.
   * @param {Mark} mark
   * @param {Message} message
   */
  took({ name, digest }, message) {
    const known = this.#taken.get(name);
    if (known !== undefined && known !== digest) throw reused();
    return known !== undefined || this.#taken.has(nameless(message));
  }

  // --- Writing, for a task of another process ----------------------------------------------------

  /**
   * Stores an event of a task that another process may own.
   * @param {TaskEvent} event
   * @param {() => boolean} isOver whether it was stored, as far as this process has read, or need
   *   not be
   */
  async append(event, isOver) {
    let doubts = 0;
    for (let attempt = 1; !isOver(); attempt++) {
      const passed = await this.#store([event]);
      if (!passed) continue;
      if (passed.code === 'UNACKNOWLEDGED' && ++doubts === MAX_DOUBTS)
        throw unavailable(`The backend does not say what it stores of task ${this.id}`, passed);
      await this.catchUp();
      if (this.blind) throw unreadableOf(this.id);
      // A busy owner always wins.
      if (attempt % (ATTEMPTS + 1) === ATTEMPTS && !isOver()) {
        const text = JSON.stringify({ task: this.id, event });
        await this.#logs.backend.ask(this.by, text).catch(() => {});
      }
    }
  }

  /**
   * Stores a record without events, so that records which a process that is gone may still send are
   * rejected. False if another record came first, or the result is unknown.
   */
  async fence() {
    return !(await this.#store([]));
  }

  /**
   * @param {TaskEvent[]} events
   * @returns {Promise<AbpError | undefined>} the reason why it is not known to be stored: another
   *   record came first, or the result is unknown
   */
  async #store(events) {
    const { backend, lease } = this.#logs;
    const data = printRecord({ id: newId(), by: lease.name, epoch: 0, events });
    try {
      const seq = await backend.append(this.id, data, this.seq);
      await this.receive({ seq, data });
      return undefined;
    } catch (thrown) {
      const error = /** @type {AbpError} */ (thrown);
      if (!['CONFLICT', 'UNACKNOWLEDGED'].includes(error.code)) throw error;
      return error;
    }
  }

  // --- Reading -----------------------------------------------------------------------------------

  /** Receives records as they are stored. */
  watch() {
    clearTimeout(this.#again);
    if (this.ended || this.blind) return;
    const take = (/** @type {LogRecord} */ record) => void this.receive(record);
    this.#unwatch ??= this.#logs.backend.watch(this.id, this.seq, take);
  }

  /** Stops reading: another replica may be made. */
  abandon() {
    this.blind = true;
  }

  stop() {
    clearTimeout(this.#again);
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  /** Reads everything stored so far. Rejects if the backend is away. */
  async catchUp() {
    const records = await this.#logs.backend.read(this.id, this.seq);
    for (const record of records) void this.receive(record);
    await this.#reading;
  }

  /**
   * Receives a record. They come from several sources, each complete and in order.
   * @param {LogRecord} record
   * @returns {Promise<void> | undefined} resolves when it was read; rejects if an object of it
   *   cannot be read now
   */
  receive(record) {
    this.#inbox.push(record);
    if (!this.#busy) {
      this.#reading = this.#read();
      // The callers that wait for it get the error.
      this.#reading.catch(() => {});
    }
    return this.#reading;
  }

  /** Does not wait unless an event is an object. */
  async #read() {
    this.#busy = true;
    for (let record; (record = this.#inbox[0]); this.#inbox.shift()) {
      if (record.seq <= this.seq || this.blind) continue;
      const sent = this.owner?.sent;
      let own = false;
      /** @type {TaskRecord} */
      let content;
      /** @type {TaskEvent[]} */
      let events;
      try {
        content = sent?.text === record.data ? sent : readRecord(record.data);
        own = sent?.id === content.id;
        const whole = sent && own ? sent.events : this.wholeEvents(content.events);
        events = whole instanceof Promise ? await whole : whole;
        requireKinds(events);
      } catch (error) {
        // After any other error, a later version may read it.
        if (/** @type {AbpError} */ (error).code === 'UNAVAILABLE') {
          this.#leaveOff();
          throw error;
        }
        this.#close(error);
        continue;
      }
      this.seq = record.seq;
      // A defect here must not end the reading of the log.
      invokeReportingErrors(() => this.#apply(content, events, own));
    }
    this.#busy = false;
  }

  /**
   * Stops reading since an object cannot be read now: the record is read again when the task is
   * requested, or watched.
   */
  #leaveOff() {
    this.#busy = false;
    this.#inbox = [];
    this.#reading = undefined;
    if (!this.#unwatch) return;
    this.stop();
    this.#again = setTimeout(() => {
      try {
        this.watch();
      } catch {
        // The backend is closed.
      }
    }, RETRY);
  }

  /** @param {unknown} error */
  #close(error) {
    this.blind = true;
    this.stop();
    this.owner?.lose();
    this.#logs.unreadable(this, error);
  }

  /**
   * Loads the events that are stored beside the log.
   * @param {TaskRecord['events']} events
   * @returns {TaskEvent[] | Promise<TaskEvent[]>}
   */
  wholeEvents(events) {
    if (events.every(({ k }) => k !== 'object')) return /** @type {TaskEvent[]} */ (events);
    return Promise.all(
      events.map(async (event) =>
        event.k === 'object' ? fetchEvent(this.#logs.backend, event.name) : event,
      ),
    );
  }

  /**
   * @param {TaskRecord} record
   * @param {TaskEvent[]} events
   * @param {boolean} own
   */
  #apply({ by, epoch }, events, own) {
    const { owner } = this;
    owner?.passed(own);
    const outcome = events.some(({ k }) => k === 'outcome');
    const what = (own ? core.RECORD_OWN : 0) | (outcome ? core.RECORD_OUTCOME : 0);
    const verdict = this.#logs.table.read(owner?.handle ?? 0, this.epoch, epoch, what);
    if (verdict & core.TASK_FORGET) owner?.lose();
    if (verdict & core.TASK_TAKEN) {
      this.epoch = epoch;
      this.by = by;
    }
    events.forEach((event, place) => {
      // No reader can resume after an event that is stored nowhere.
      const number = this.#logs.backend.alone ? undefined : printNumber(this.seq, place);
      invokeReportingErrors(() => this.#applyEvent(event, number));
      if (this.entry) this.entry.number = number;
    });
    for (const event of own ? events : []) {
      if (this.entry && isState(event)) this.#logs.notify(this.entry, event.status);
      this.owner?.committed(event);
    }
    if (events.some(isState)) this.#logs.entries.changed(this);
    if (this.ended) this.stop();
  }

  /**
   * @param {TaskEvent} event
   * @param {string} [number]
   */
  #applyEvent(event, number) {
    const { shown } = this.#logs.parts;
    if (event.k === 'new')
      try {
        this.entry = shown.adopt(this, event.origin);
      } catch (error) {
        // Its owner gets the error.
        this.owner?.lose(/** @type {AbpError} */ (error));
        throw error;
      }
    const { entry } = this;
    if (!entry) return;
    switch (event.k) {
      case 'run':
        this.run = event;
        this.rested = false;
        if (event.message) {
          this.prompt = event.message;
          this.#taken.set(event.mark?.name ?? nameless(event.message), event.mark?.digest);
          if (this.#taken.size > MAX_HISTORY_MESSAGES)
            this.#taken.delete(this.#taken.keys().next().value ?? '');
          entry.task.remember(event.message);
        }
        // From here on, the sender of the message follows the task.
        shown.status(entry, event.status, number, this.owner?.begun);
        break;
      case 'status':
        shown.status(entry, event.status, number);
        break;
      case 'rest':
        this.rested = true;
        break;
      case 'outcome':
        if (!this.settled) shown.learn(entry, event.metadata);
        break;
      case 'artifact':
        shown.artifact(entry, event, number);
        break;
      case 'push':
        entry.pushes.set(event.config.id, event.config);
        break;
      case 'unpush':
        entry.pushes.delete(event.id);
        break;
      case 'wish':
        this.wished = true;
        this.owner?.wish(event.reason);
    }
  }
}

/**
 * @param {TaskEvent} event
 * @returns {event is TaskEvent & { k: 'run' | 'status' }}
 */
const isState = (event) => event.k === 'run' || event.k === 'status';

/** @param {string} id of a task */
export const unreadableOf = (id) =>
  new AbpError('NOT_SUPPORTED', `Task ${id} was stored by a later version of the agent`);
