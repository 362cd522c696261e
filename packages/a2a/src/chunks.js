/** Turns what an executor returns or streams into artifacts and their chunks. */
import {
  Iteration,
  breathe,
  getOwn,
  isObject,
  isStream,
  offAbort,
  onAbort,
} from 'abp-bridge/driver';
import { newId } from './ids.js';

/**
 * @typedef {Parameters<import('./runs.js').ExecutorContext['emitArtifact']>[0]
 *   & { lastChunk?: boolean }} Chunk
 */

/** The update that stands for a missing last chunk: an update of an artifact must have a part. */
const NOTHING = { parts: [{ text: '' }] };

/**
 * Emits what an executor returned.
 * @param {import('./runs.js').ExecutorContext} context of the run
 * @param {unknown} given a text, a part, a list of these, a piece of an artifact, or a stream of
 *   these
 * @returns {Promise<void>} settles when everything is emitted; rejects as a stream does, and with a
 *   `TypeError` for anything else
 */
export async function emitReturned(context, given) {
  if (isStream(given)) await emitChunks(context, given);
  else if (isIterator(given)) await emitChunks(context, delegate(given));
  else {
    const { lastChunk = true, ...artifact } = readChunk(given);
    context.emitArtifact(/** @type {Chunk} */ (artifact), { lastChunk });
  }
}

/**
 * @param {unknown} value
 * @returns {value is Iterator<unknown> & Iterable<unknown>} whether it is a synchronous generator
 */
const isIterator = (value) =>
  isObject(value) &&
  typeof (/** @type {Partial<Iterator<unknown>>} */ (value).next) === 'function' &&
  typeof (/** @type {Partial<Iterable<unknown>>} */ (value)[Symbol.iterator]) === 'function';

/** @param {Iterable<unknown>} source */
async function* delegate(source) {
  return yield* source;
}

/**
 * @param {import('./runs.js').ExecutorContext} context
 * @param {unknown} source
 */
async function emitChunks(context, source) {
  const { signal } = context;
  const iteration = new Iteration(source);
  /** The id of the artifact that chunks without an id belong to. */
  const id = newId();
  /**
   * The artifacts that have begun, by id, and whether more of each is to come.
   * @type {Map<string, boolean>}
   */
  const artifacts = new Map();
  /**
   * @param {unknown} chunk
   * @param {boolean} [last]
   * @returns {Promise<boolean>} whether it was emitted
   */
  const emit = async (chunk, last = false) => {
    const { lastChunk = last, ...artifact } = readChunk(chunk);
    const artifactId = artifact.artifactId || id;
    const append = artifacts.has(artifactId);
    artifacts.set(artifactId, !lastChunk);
    for (;;) {
      try {
        return context.emitArtifact({ ...artifact, artifactId }, { append, lastChunk });
      } catch (error) {
        // Too much waits to be stored, so the source waits, too.
        if (getOwn(error, 'code') !== 'RATE_LIMITED') throw error;
        await context.flushed();
      }
    }
  };
  const cancel = { handleEvent: () => iteration.stop(signal.reason) };
  if (signal.aborted) cancel.handleEvent();
  else onAbort(signal, cancel);
  try {
    const { returned, value } = await iteration.run(async (chunk) => {
      // The executor may have ended the task through its context.
      if (!(await emit(chunk))) iteration.stop();
      return breathe();
    });
    if (!returned && signal.aborted) throw signal.reason;
    // A cancelled task has no complete artifact.
    if (!returned || signal.aborted) return;
    if (value !== undefined && value !== null) await emit(value, true);
    for (const [artifactId, isOpen] of artifacts)
      if (isOpen) await emit({ artifactId, ...NOTHING }, true);
  } finally {
    offAbort(signal, cancel);
  }
}

/**
 * A chunk is a text, a part, a list of these, or a piece of an artifact.
 * @param {unknown} chunk
 * @returns {Chunk}
 */
function readChunk(chunk) {
  if (typeof chunk === 'string' || Array.isArray(chunk)) {
    const parts = [chunk].flat().map((part) => (typeof part === 'string' ? { text: part } : part));
    return { parts };
  }
  if (!isObject(chunk))
    throw new TypeError('An executor must return or yield strings, parts or { parts }');
  return 'parts' in chunk ? /** @type {Chunk} */ (chunk) : { parts: [chunk] };
}
