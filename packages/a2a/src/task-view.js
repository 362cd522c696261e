/**
 * A task as one stream of it shows it. Whether an event still counts is the core's to say; here its status and its
 * artifacts are kept.
 */
import { E_LIMIT } from '../../../js/driver/abp-boundary.js';
import * as core from './tasks-boundary.js';
import { AbpError } from '../../../js/common/errors.js';
import { readState } from './dialects.js';
import { MAX_HISTORY_MESSAGES } from './task.js';

/** @import { Artifact, Event, Message, Metadata, Part, Status, Task } from './dialects.js' */

/** Two streams of a task carry the same parts, so each has a view of its own. */
export class TaskView {
  /** @type {Task | undefined} */
  task;
  /** What the agent answered instead of a task. @type {Message | undefined} */
  message;
  #room;
  /** Characters of the history. */
  #historySize = 0;

  /**
   * @param {import('./remote-agent.js').RemoteAgent} agent
   * @param {string} name nobody else's in its table
   * @param {number} room characters of artifacts and messages that are kept
   */
  constructor(agent, name, room) {
    this.agent = agent;
    this.table = agent.table;
    this.#room = room;
    const handle = this.table.add(name, core.TASK_UNKNOWN);
    if (handle < 0)
      throw new AbpError('RATE_LIMITED', 'Too many tasks at once', { retryable: true });
    /** The task in the table. */
    this.handle = /** @type {core.Task} */ (handle);
  }

  /** @param {Event} event @returns {number} the core's verdict, 0 for an event that comes too late */
  apply(event) {
    if (event.kind === 'message') {
      this.message = event.message;
      return this.table.watch_replied(this.handle);
    }
    const id = event.kind === 'task' ? event.task.id : event.taskId;
    const { contextId } = event.kind === 'task' ? event.task : event;
    const status = /** @type {const} */ ({ state: 'unknown' });
    const task = (this.task ??= { id, contextId, status, artifacts: [], history: [] });
    if (event.kind === 'artifact')
      return this.#artifact(task, event.artifact, event.append) ? core.TASK_TELL : 0;
    if (event.kind === 'status') {
      const verdict = this.#status(task, event.status, core.TASK_NEWS);
      // As agents keep it: what they said with a status is a part of the dialogue.
      if (verdict & core.TASK_TELL && event.status.message)
        this.#remember(task, event.status.message);
      return verdict;
    }
    const { artifacts, history, metadata } = event.task;
    task.history = [];
    this.#room += this.#historySize;
    this.#historySize = 0;
    for (const message of history) this.#remember(task, message);
    // The last snapshot of a task may come with artifacts that no event brought.
    for (const artifact of artifacts) this.#artifact(task, artifact, false);
    return this.#status(task, event.task.status, core.TASK_NEWS | core.TASK_SNAPSHOT, metadata);
  }

  /** Keeps a message; of a longer dialogue the earliest are let go. @param {Task} task @param {Message} message */
  #remember({ history }, message) {
    const count = (/** @type {number} */ size) => {
      this.#historySize += size;
      this.#room -= size;
    };
    history.push(message);
    count(sizeOf(message.parts));
    while (history.length > MAX_HISTORY_MESSAGES || (this.#room < 0 && history.length > 1))
      count(-sizeOf(/** @type {Message} */ (history.shift()).parts));
  }

  /** @param {Task} task @param {Status} status @param {number} what @param {Metadata} [metadata] */
  #status(task, status, what, metadata) {
    const verdict = this.table.says(this.handle, 0, readState(status.state), what);
    if (verdict & core.TASK_TELL) Object.assign(task, { status, ...(metadata && { metadata }) });
    return verdict;
  }

  /** @param {Task} task @param {Artifact} artifact @param {boolean} append @returns {number} 0 if it came too late */
  #artifact({ artifacts }, artifact, append) {
    const verdict = this.table.artifact(this.handle, 0, artifact.artifactId, append);
    if (verdict < 0) {
      const code = verdict === E_LIMIT ? 'TOO_LARGE' : 'INVALID_AGENT_RESPONSE';
      throw new AbpError(code, `The artifact "${artifact.artifactId}" cannot be kept`);
    }
    const [what, place] = [verdict & 3, verdict >> 2];
    const { parts } = artifact;
    if (what === core.ARTIFACT_DROP) return 0;
    if (what === core.ARTIFACT_APPEND) artifacts[place].parts.push(...parts);
    else {
      this.#room += sizeOf(artifacts[place]?.parts ?? []);
      // The parts that may follow are ours to add; the event stays as it came.
      artifacts[place] = { ...artifact, parts: [...parts] };
    }
    this.#room -= sizeOf(parts);
    if (this.#room >= 0) return verdict;
    throw new AbpError('TOO_LARGE', 'The artifacts of the task are larger than the limit');
  }
}

/** @param {Part[]} parts */
function sizeOf(parts) {
  let size = 0;
  for (const { text, raw, data } of parts) {
    size += 64 + (text?.length ?? 0) + (raw?.length ?? 0);
    if (data !== undefined) size += JSON.stringify(data).length;
  }
  return size;
}
