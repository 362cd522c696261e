/**
 * One task, as its log has it. Whatever is told of the task is told when its record is read here,
 * at its owner, too.
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
 * In place of a mark's name, for a message that was stored without.
 * @param {Message} message
 */
const nameless = ({ messageId }) => `id ${messageId}`;

/** Times that a record is stored against others, before the owner is asked to. */
const ATTEMPTS = 2;
/**
 * Times that nobody says whether it was stored, before who wants it is told that the backend is
 * away.
 */
const MAX_DOUBTS = 5;

const RUNNING = abp.FATES[abp.FATE_RUNNING];

export class Replica {
  /** The number of the latest record that was read. */
  seq = 0;
  /** How often the task was taken, and by whom last. */
  epoch = 0;
  by = '';
  /** A cancel is stored. */
  wished = false;
  /** The task waits for input, and its executor has returned. */
  rested = false;
  /** The latest run. @type {TaskEvent & { k: 'run' } | undefined} */
  run;
  /**
   * The message that it answers; one that is tried again does not name it.
   * @type {Message | undefined}
   */
  prompt;
  /**
   * A record of a later version is in the log, or this was abandoned: nothing is known of the task
   * from there on.
   */
  blind = false;
  /** The task as it is shown; there when the first record was read. @type {Entry | undefined} */
  entry;
  /** @type {import('./owner.js').Owner | undefined} */
  owner;
  /** Requests that look at it. */
  pins = 0;
  /**
   * Digests of the messages that it has taken, by the names of their marks, the earliest first.
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
   * Watches again, after what was told could not be read.
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

  /** Whether nothing more can be known of it. */
  get settled() {
    return this.ended && this.entry?.task.status.message?.metadata?.outcome !== RUNNING;
  }

  /** Whether the task waits for input, so that nobody owns it. */
  get asks() {
    return this.entry?.task.state === 'input-required';
  }

  /** Whether nobody looks at it. */
  get idle() {
    const { entry } = this;
    const read = entry && (entry.streams.size > 0 || entry.waiting.size > 0);
    return !this.pins && !this.owner && !read;
  }

  /**
   * Whether the task has taken a message; throws if it has taken another under its id.
   * @param {Mark} mark
   * @param {Message} message
   */
  took({ name, digest }, message) {
    const known = this.#taken.get(name);
    if (known !== undefined && known !== digest) throw reused();
    return known !== undefined || this.#taken.has(nameless(message));
  }

  // --- Writing, of who does not own it -----------------------------------------------------------

  /**
   * Stores an event of a task that another process may own.
   * @param {TaskEvent} event
   * @param {() => boolean} isOver whether it was, as far as this process has read, or need not be
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
      // A busy owner is always first.
      if (attempt % (ATTEMPTS + 1) === ATTEMPTS && !isOver()) {
        const text = JSON.stringify({ task: this.id, event });
        await this.#logs.backend.ask(this.by, text).catch(() => {});
      }
    }
  }

  /**
   * Stores a record that says nothing: what a process that is gone may still store expects another
   * one to be the last, and is refused. False if another record came first, or nobody knows.
   */
  async fence() {
    return !(await this.#store([]));
  }

  /**
   * @param {TaskEvent[]} events
   * @returns {Promise<AbpError | undefined>} why it is not known to be stored: another record came
   *   first, or nobody knows
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

  /** Hears of records as they are stored. */
  watch() {
    clearTimeout(this.#again);
    if (this.ended || this.blind) return;
    const take = (/** @type {LogRecord} */ record) => void this.receive(record);
    this.#unwatch ??= this.#logs.backend.watch(this.id, this.seq, take);
  }

  /** Reads nothing any more: another replica may. */
  abandon() {
    this.blind = true;
  }

  stop() {
    clearTimeout(this.#again);
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  /** Reads what is stored by now. Rejects if the backend is away. */
  async catchUp() {
    const records = await this.#logs.backend.read(this.id, this.seq);
    for (const record of records) void this.receive(record);
    await this.#reading;
  }

  /**
   * Records come from several sources, each of which has them all, in order.
   * @param {LogRecord} record
   * @returns {Promise<void> | undefined} resolves when it was read; rejects if what it refers to
   *   cannot be read now
   */
  receive(record) {
    this.#inbox.push(record);
    if (!this.#busy) {
      this.#reading = this.#read();
      // Who waits for it is told.
      this.#reading.catch(() => {});
    }
    return this.#reading;
  }

  /** Waits for nothing unless an event is an object. */
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
        // Whatever else it is, a later version may read it.
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
   * What a record refers to cannot be read now: the record is read again when somebody asks for the
   * task, or watches it.
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
   * With what is kept beside the log.
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
      // Nobody can go on behind an event that is kept nowhere.
      const number = this.#logs.backend.alone ? undefined : printNumber(this.seq, place);
      invokeReportingErrors(() => this.#tell(event, number));
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
  #tell(event, number) {
    const { shown } = this.#logs.parts;
    if (event.k === 'new')
      try {
        this.entry = shown.adopt(this, event.origin);
      } catch (error) {
        // Who has begun it is told so.
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
        // Whoever sent the message follows the task from here on.
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
