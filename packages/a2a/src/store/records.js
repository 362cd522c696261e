/**
 * The records of a task's log. Each is written by one process and has events in order. `id` lets
 * its writer recognise it, and `epoch` counts how often the task was taken, the last time by `by`.
 * An event that is too long for a record is stored beside the log, as an object.
 */
import { AbpError, isObject, reportError, safely } from 'abp-bridge/driver';
import { objectNotFound } from './backends/backend.js';

/** @import { Backend } from './backends/backend.js' */
/** @import { Artifact, Dialect, Message } from '../dialects.js' */
/** @import { Mark } from '../repeats.js' */
/** @import { Metadata, Status } from '../dialects.js' */

/**
 * The version of a record. A process reads its own version and earlier ones, and leaves later ones
 * alone.
 */
const VERSION = 1;

/**
 * @typedef {object} Origin the owner of a task, and the version of the message that began it
 * @property {string} contextId
 * @property {string} [tenant]
 * @property {unknown} [user]
 * @property {Dialect['name']} dialect
 * @typedef {{ k: 'new', origin: Origin }
 *   | { k: 'run', status: Status, message?: Message, mark?: Mark,
 *     saved?: object, attempt: number, trace?: string }
 *   | { k: 'status', status: Status }
 *   | { k: 'rest' }
 *   | { k: 'outcome', metadata: Metadata }
 *   | { k: 'artifact', artifact: Artifact, append: boolean, last: boolean, size: number }
 *   | { k: 'wish', reason?: string }
 *   | { k: 'push', config: import('./push.js').PushConfig }
 *   | { k: 'unpush', id: string }} TaskEvent a message for a run, a state, the return of the
 *   executor after a question, the outcome of its work if that is known after the end, an artifact,
 *   a cancel, and a destination of the task's states
 * @typedef {{ k: 'object', name: string }} ObjectRef an event that is too long for a record
 * @typedef {object} TaskRecord
 * @property {string} id
 * @property {string} by a process
 * @property {number} epoch 0 for a cancel, which any process may store
 * @property {(TaskEvent | ObjectRef)[]} events
 */

/**
 * The kinds of events. A record with another kind is of a later version, whatever its `v`.
 * @type {Record<TaskEvent['k'], true>}
 */
const KINDS = {
  new: true,
  run: true,
  status: true,
  rest: true,
  outcome: true,
  artifact: true,
  wish: true,
  push: true,
  unpush: true,
};

/**
 * The number of an event, in every process: that of its record, and its index there. It is the `id`
 * of an event of a stream.
 * @param {number} seq
 * @param {number} place
 */
export const printNumber = (seq, place) => `${seq}.${place}`;

/**
 * @param {string} text
 * @returns {{ seq: number, place: number } | undefined} undefined for one that was never issued
 */
export function readNumber(text) {
  const found = /^([1-9]\d{0,14})\.(\d{1,4})$/.exec(text);
  return found ? { seq: Number(found[1]), place: Number(found[2]) } : undefined;
}

/** @param {TaskRecord} record */
export const printRecord = ({ id, by, epoch, events }) =>
  JSON.stringify({ v: VERSION, id, by, epoch, e: events });

/**
 * @param {string} text
 * @returns {TaskRecord} throws `NOT_SUPPORTED` for one of a later version
 */
export function readRecord(text) {
  const { v, id, by, epoch, e: events } = JSON.parse(text);
  if (v <= VERSION && Array.isArray(events) && !events.some((one) => !isObject(one)))
    return { id, by, epoch, events };
  throw new AbpError('NOT_SUPPORTED', `A record of the task is none of version ${VERSION}: ${v}`);
}

/**
 * Throws `NOT_SUPPORTED` if an event is of a later version.
 * @param {TaskEvent[]} events
 */
export function requireKinds(events) {
  for (const { k } of events)
    if (!Object.hasOwn(KINDS, k))
      throw new AbpError('NOT_SUPPORTED', `A record of the task has an event of kind ${k}`);
}

/**
 * True if a log has something that only a later version can read.
 * @param {unknown} error
 */
export const isUnreadable = (error) => /** @type {AbpError} */ (error)?.code === 'NOT_SUPPORTED';

/**
 * True if a record has no events: it only takes the place that another one expected.
 * @param {string} data
 */
export const isFence = (data) => safely(() => readRecord(data).events.length === 0, false);

/**
 * An event that is stored beside its log; if it is gone, an artifact that says so. Rejects if the
 * backend is away.
 * @param {Backend} backend
 * @param {string} name
 * @returns {Promise<TaskEvent>}
 */
export async function fetchEvent(backend, name) {
  try {
    return JSON.parse(new TextDecoder().decode(await backend.get(name)));
  } catch (error) {
    if (/** @type {AbpError} */ (error).code === 'UNAVAILABLE') throw error;
    reportError(error);
    const artifact = { artifactId: name, parts: [{ text: objectNotFound(name).message }] };
    return { k: 'artifact', artifact, append: false, last: true, size: 0 };
  }
}
