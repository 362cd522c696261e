/**
 * The stored data of a task, and the messages of its agent. The core decides what happens to it.
 */
import { ended } from './tasks-core.js';
import { readMessage, readState } from './dialects.js';
import { newId } from './ids.js';
import { outcomeOf } from './outcome.js';

/** @import { Artifact, Message, Metadata, Part, State, Status, Task } from './dialects.js' */

/** Number of a task's messages that are kept, the latest ones. */
export const MAX_HISTORY_MESSAGES = 1000;

/**
 * @typedef {string | { parts: Part[], metadata?: Metadata, extensions?: string[] }} Said text, or
 *   the parts of a message
 */

/**
 * The known facts of a request.
 * @typedef {object} RequestInfo
 * @property {string} [version] the `A2A-Version` that it named
 * @property {Record<string, string>} headers of HTTP, by their names in lower case
 * @property {unknown} user the sender, as set by the authentication
 * @property {string} [tenant] that the request is for
 * @property {string[]} extensions URIs that the client declares and the agent's card has
 * @property {any} metadata of the request, as the client gave it
 * @property {string[]} acceptedOutputModes media types that the client accepts; empty for all of
 *   the agent's
 */

/**
 * A copy of an executor's value, as it will be in JSON, and its length in characters. Throws if it
 * cannot be printed.
 * @param {object} value
 * @returns {{ value: any, size: number }}
 */
export function plain(value) {
  const text = JSON.stringify(value);
  return { value: JSON.parse(text), size: text.length };
}

/**
 * Throws if parts have no content that a reader could use.
 * @param {any} given
 * @param {Part[]} parts as they will be sent
 */
export function checkParts(given, parts) {
  const isPart = (/** @type {Part} */ { text, data, url, raw }) =>
    [text, data, url, raw].some((content) => content !== undefined);
  if (!Array.isArray(given.parts) || !parts.every(isPart))
    throw new TypeError('`parts` must be a list of { text }, { data }, { url } and { raw }');
}

/**
 * Characters of a message without its ids, which are those of its task.
 * @param {Message} message
 */
const lengthOf = ({ taskId: _task, contextId: _context, ...message }) =>
  JSON.stringify(message).length;

/** The stored data of a task, in the form of packages/a2a/src/dialects.js. */
export class StoredTask {
  /** @type {Artifact[]} */
  artifacts = [];
  /** @type {Message[]} */
  history = [];
  /** @type {Status} */
  status = { state: 'submitted', timestamp: new Date().toISOString() };

  /** Characters of its artifacts and its messages, as JSON. */
  size = 0;
  artifactsSize = 0;
  /** Sizes of artifacts, by id. @type {Map<string, number>} */
  #sizes = new Map();
  /** Sizes of the messages in `history`. @type {number[]} */
  #lengths = [];
  #limit;

  /**
   * @param {string} id
   * @param {string} contextId
   * @param {number} limit characters of the task: the earliest messages of a longer dialogue are
   *   dropped
   * @param {{ user: unknown, tenant?: string }} by the user who began it
   */
  constructor(id, contextId, limit, { user, tenant }) {
    this.id = id;
    this.contextId = contextId;
    this.user = user;
    /** Tasks of other tenants do not exist for a request. */
    this.tenant = tenant;
    this.#limit = limit;
  }

  /** @returns {State} */
  get state() {
    return this.status.state;
  }

  /** True if it has ended: nothing emitted from now on is stored or sent. */
  get terminal() {
    return ended(readState(this.status.state));
  }

  /**
   * @internal
   * @param {Message} message
   */
  remember(message) {
    const size = lengthOf(message);
    this.history.push(message);
    this.#lengths.push(size);
    this.size += size;
    while (
      this.history.length > MAX_HISTORY_MESSAGES ||
      (this.size > this.#limit && this.history.length > 1)
    ) {
      this.history.shift();
      this.size -= this.#lengths.shift() ?? 0;
    }
  }

  /**
   * Adds the outcome of its work, which is known only after the end.
   * @internal
   * @param {Metadata} metadata
   */
  learn(metadata) {
    const { message } = this.status;
    if (!message || message !== this.history.at(-1)) return;
    const before = lengthOf(message);
    message.metadata = { ...message.metadata, ...metadata };
    const grows = lengthOf(message) - before;
    this.#lengths[this.#lengths.length - 1] += grows;
    this.size += grows;
  }

  /**
   * The characters that an artifact adds.
   * @param {string} id
   * @param {number} size
   * @param {boolean} append
   */
  growth(id, size, append) {
    return append ? size : size - (this.#sizes.get(id) ?? 0);
  }

  /**
   * Adds an artifact, or parts of one.
   * @internal
   * @param {Artifact} artifact
   * @param {number} place index among the task's artifacts
   * @param {boolean} append whether its parts are added to the existing ones
   * @param {number} grows additional characters
   */
  take(artifact, place, append, grows) {
    const { artifactId, parts, metadata, ...rest } = artifact;
    const stored = this.artifacts[place];
    if (append) {
      Object.assign(stored, rest);
      stored.parts.push(...parts);
      if (metadata) stored.metadata = { ...stored.metadata, ...metadata };
    } else this.artifacts[place] = { ...artifact, parts: [...parts] };
    this.#sizes.set(artifactId, (this.#sizes.get(artifactId) ?? 0) + grows);
    this.artifactsSize += grows;
    this.size += grows;
  }
}

/**
 * The member of a status for a message of the agent.
 * @param {StoredTask} task
 * @param {Said} content
 * @returns {Partial<Status>}
 */
export function statusOf(task, content) {
  const message = messageOf(aboutOf(task), content);
  return typeof content === 'string' ? { text: content, message } : { message };
}

/**
 * Default messages of statuses that end a task.
 * @type {Partial<Record<State, string>>}
 */
const ENDS = {
  canceled: 'The task was canceled',
  failed: 'The task has failed',
  rejected: 'The task was rejected',
};

/**
 * The status that ends a task, with the outcome of its work. An outcome in its message takes
 * precedence: an executor may pass on one that it received.
 * @param {StoredTask} task
 * @param {Status} status
 * @param {import('abp-bridge/driver').Fate} fate
 * @param {import('./outcome.js').Said} [said] by its executor
 * @returns {Status}
 */
export function withOutcome(task, status, fate, said) {
  const text = ENDS[status.state];
  if (!text || !fate) return status;
  const { message = messageOf(aboutOf(task), { parts: [{ text }] }) } = status;
  const metadata = { ...outcomeOf(fate, said), ...message.metadata };
  return { ...status, message: { ...message, metadata } };
}

/** @param {StoredTask} task */
export const aboutOf = ({ id: taskId, contextId }) => ({ taskId, contextId });

/**
 * @param {object} about the task that the message is about
 * @param {Said} content
 * @returns {Message}
 */
export function messageOf(about, content) {
  const given =
    typeof content === 'string' ? { parts: [{ text: content }] } : plain({ ...content }).value;
  const message = readMessage({ ...about, ...given, role: 'agent' });
  checkParts(given, message.parts);
  message.messageId ||= newId();
  return message;
}
