/**
 * What is kept of a task, and the messages of its agent. What happens to it is decided by the core.
 */
import { ended } from './tasks-core.js';
import { readMessage, readState } from './dialects.js';
import { newId } from './ids.js';
import { outcomeOf } from './outcome.js';

/** @import { Artifact, Message, Metadata, Part, State, Status, Task } from './dialects.js' */

/** The latest messages of a task; of a longer dialogue the earliest are let go. */
export const MAX_HISTORY_MESSAGES = 1000;

/**
 * @typedef {string | { parts: Part[], metadata?: Metadata, extensions?: string[] }} Said text, or
 *   the parts of a message
 */

/**
 * What is known of a request.
 * @typedef {object} RequestInfo
 * @property {string} [version] the `A2A-Version` that it named
 * @property {Record<string, string>} headers of HTTP, by their names in lower case
 * @property {unknown} user who asks, as whoever authenticated the request left it
 * @property {string} [tenant] that the request is for
 * @property {string[]} extensions URIs that the client declares and the agent's card has
 * @property {any} metadata of the request, as the client gave it
 * @property {string[]} acceptedOutputModes media types that the client takes; none is all of the
 *   agent's
 */

/**
 * What an executor gave, as JSON will have it, and how many characters that takes: later changes to
 * it are its own, and what cannot be printed throws here and now.
 * @param {object} value
 * @returns {{ value: any, size: number }}
 */
export function plain(value) {
  const text = JSON.stringify(value);
  return { value: JSON.parse(text), size: text.length };
}

/**
 * Readers take what they can; an executor shall hear that what it gives is nothing that they could.
 * @param {any} given
 * @param {Part[]} parts as they will be told
 */
export function checkParts(given, parts) {
  const isPart = (/** @type {Part} */ { text, data, url, raw }) =>
    [text, data, url, raw].some((content) => content !== undefined);
  if (!Array.isArray(given.parts) || !parts.every(isPart))
    throw new TypeError('`parts` must be a list of { text }, { data }, { url } and { raw }');
}

/**
 * Characters of a message, but for its ids, which are those of its task.
 * @param {Message} message
 */
const lengthOf = ({ taskId: _task, contextId: _context, ...message }) =>
  JSON.stringify(message).length;

/** What is stored of a task, in the form of packages/a2a/src/dialects.js. */
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
   * @param {number} limit characters of all of it: of a longer dialogue the earliest messages are
   *   let go
   * @param {{ user: unknown, tenant?: string }} by who began it
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

  /** Whether it has ended: nothing that is emitted from now on is stored or told. */
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
   * What became of its work is known only after it has ended.
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
   * By how much an artifact makes it longer.
   * @param {string} id
   * @param {number} size
   * @param {boolean} append
   */
  growth(id, size, append) {
    return append ? size : size - (this.#sizes.get(id) ?? 0);
  }

  /**
   * Adds an artifact, or what comes to one.
   * @internal
   * @param {Artifact} artifact
   * @param {number} place among the task's artifacts
   * @param {boolean} append whether its parts come to those that are there
   * @param {number} grows characters
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
 * The part of a status that an agent's message is.
 * @param {StoredTask} task
 * @param {Said} content
 * @returns {Partial<Status>}
 */
export function statusOf(task, content) {
  const message = messageOf(aboutOf(task), content);
  return typeof content === 'string' ? { text: content, message } : { message };
}

/**
 * What a status says that ends a task, where nobody gave it a message.
 * @type {Partial<Record<State, string>>}
 */
const ENDS = {
  canceled: 'The task was canceled',
  failed: 'The task has failed',
  rejected: 'The task was rejected',
};

/**
 * The status that ends a task, with what became of its work. If its message says so itself, that
 * stands: an executor may pass on what it was told.
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
 * @param {object} about what the message is about
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
