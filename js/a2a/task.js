/** A task as its executor and the server see it. What happens to it is decided by the core. */
import { abortError } from '../signals.js';
import { ended } from './core.js';
import { readArtifact, readMessage, readState } from './dialects.js';
import { newId } from './ids.js';

/** @import { Artifact, Message, Part, State, Status, Task } from './dialects.js' */

/** The latest messages of a task; of a longer dialogue the earliest are let go. */
const LONGEST_HISTORY = 1000;

/**
 * What an executor gave, as JSON will have it: later changes to it are its own, and what cannot be printed throws
 * here and now.
 * @template T
 * @param {T} value
 * @returns {T}
 */
const plain = (value) => JSON.parse(JSON.stringify(value));

/**
 * Readers take what they can; an executor shall hear that what it gives is nothing that they could.
 * @param {any} given
 * @param {Part[]} parts as they will be told
 */
function checkParts(given, parts) {
  const isPart = (/** @type {Part} */ { text, data, url, raw }) =>
    [text, data, url, raw].some((content) => content !== undefined);
  if (!Array.isArray(given.parts) || !parts.every(isPart))
    throw new TypeError('`parts` is a list of { text }, { data }, { url } and { raw }');
}

/** What is stored of a task, in the form of js/a2a/dialects.js. */
export class StoredTask {
  /** @type {Artifact[]} */
  artifacts = [];
  /** @type {Message[]} */
  history = [];
  /** @type {Status} */
  status = { state: 'submitted', timestamp: new Date().toISOString() };

  /** @param {string} id @param {string} contextId */
  constructor(id, contextId) {
    this.id = id;
    this.contextId = contextId;
  }

  /** @returns {State} */
  get state() {
    return this.status.state;
  }

  /** Whether it has ended: nothing that is emitted from now on is stored or told. */
  get terminal() {
    return ended(readState(this.status.state));
  }

  /** @param {Message} message */
  remember(message) {
    this.history.push(message);
    if (this.history.length > LONGEST_HISTORY) this.history.shift();
  }
}

/**
 * What an executor is given. Its methods may be taken out of it: `execute({ signal, emitArtifact })`.
 */
export class ExecutorContext {
  #emit;
  #aborted = false;
  /** @type {string | undefined} */
  #reason;
  /** @type {AbortController | undefined} */
  #controller;

  /**
   * @param {StoredTask} task
   * @param {Message} message
   * @param {{ status: (state: number, status: Partial<Status>) => boolean,
   *   artifact: (artifact: Artifact, append: boolean, lastChunk: boolean) => boolean }} emit
   */
  constructor(task, message, emit) {
    /** The task: `id`, `contextId`, `state`, `terminal`, `history`, `artifacts`. To be read only. */
    this.task = task;
    /** The message that this run is to answer. */
    this.message = message;
    this.#emit = emit;
  }

  /** Aborted when the task is cancelled, or when another message has taken over. */
  get signal() {
    this.#controller ??= new AbortController();
    if (this.#aborted) this.#controller.abort(abortError(this.#reason));
    return this.#controller.signal;
  }

  /** @param {string} [reason] */
  abort(reason) {
    this.#aborted = true;
    this.#reason = reason;
    this.#controller?.abort(abortError(reason));
  }

  /**
   * Says which state the task is in. After a terminal state, whoever it came from, nothing is told any more.
   * @param {State} state `'working'`, `'input-required'`, `'completed'`, `'failed'`, …
   * @param {string | { parts: Part[], metadata?: any }} [message] what to tell the client with it
   * @returns {boolean} whether it was told
   */
  emitStatus = (state, message) => {
    const number = readState(state);
    if (!number) throw new TypeError(`"${state}" is not a state of a task`);
    const silent = message === undefined || message === null;
    return this.#emit.status(number, silent ? {} : statusOf(this.task, message));
  };

  /**
   * Adds an artifact, replaces the one with this id, or with `append` adds to its parts.
   * @param {{ artifactId?: string, parts: Part[], name?: string, description?: string, metadata?: any,
   *   extensions?: string[] }} artifact without an id it is a new one
   * @param {{ append?: boolean, lastChunk?: boolean }} [options] `lastChunk` says that this ends the artifact
   * @returns {boolean} whether it was told
   */
  emitArtifact = (artifact, { append = false, lastChunk = false } = {}) => {
    const given = plain({ ...artifact });
    const read = readArtifact(given);
    checkParts(given, read.parts);
    read.artifactId ||= newId();
    return this.#emit.artifact(read, append, lastChunk);
  };
}

/**
 * The part of a status that an agent's message is.
 * @param {StoredTask} task
 * @param {string | { parts: Part[] }} said
 * @returns {Partial<Status>}
 */
export function statusOf({ id: taskId, contextId }, said) {
  const given = typeof said === 'string' ? { parts: [{ text: said }] } : plain({ ...said });
  const message = readMessage({ role: 'agent', taskId, contextId, ...given });
  checkParts(given, message.parts);
  message.messageId ||= newId();
  return typeof said === 'string' ? { text: said, message } : { message };
}
