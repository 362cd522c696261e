/** What an executor streams, as the chunks of artifacts. */
import { breathe } from '../common/breathe.js';
import { Iteration } from '../common/iteration.js';
import { offAbort, onAbort } from '../common/signals.js';
import { isObject } from '../common/values.js';
import { newId } from './ids.js';

/** In place of a last chunk: an artifact's update must have a part. */
const NOTHING = { parts: [{ text: '' }] };

/**
 * @param {import('./task.js').ExecutorContext} context of the run
 * @param {unknown} source what its executor returned
 * @returns {Promise<void>} settles when the source has ended; rejects as it does
 */
export const streamChunks = (context, source) => new Chunks(context, source).run();

class Chunks {
  #context;
  #iteration;
  /** The id of the artifact that chunks without an id belong to. */
  #id = newId();
  /** Ids of the artifacts that have begun, and whether more of them is to come. @type {Map<string, boolean>} */
  #artifacts = new Map();

  /**
   * @param {import('./task.js').ExecutorContext} context
   * @param {unknown} source
   */
  constructor(context, source) {
    this.#context = context;
    this.#iteration = new Iteration(source);
  }

  async run() {
    const { signal } = this.#context;
    if (signal.aborted) this.handleEvent();
    else onAbort(signal, this);
    try {
      const { returned, value } = await this.#iteration.run((chunk) => {
        // The task may have ended by what the executor said itself.
        if (!this.#emit(chunk)) this.#iteration.stop();
        return breathe();
      });
      // Of a task that was cancelled no artifact is complete.
      if (!returned || signal.aborted) return;
      if (value !== undefined && value !== null) this.#emit(value, true);
      for (const [artifactId, isOpen] of this.#artifacts)
        if (isOpen) this.#emit({ artifactId, ...NOTHING }, true);
    } finally {
      offAbort(signal, this);
    }
  }

  /**
   * @param {unknown} chunk
   * @param {boolean} [last]
   * @returns {boolean} whether it was told
   */
  #emit(chunk, last = false) {
    const { lastChunk = last, ...artifact } = readChunk(chunk);
    const artifactId = artifact.artifactId || this.#id;
    const append = this.#artifacts.has(artifactId);
    this.#artifacts.set(artifactId, !lastChunk);
    return this.#context.emitArtifact({ ...artifact, artifactId }, { append, lastChunk });
  }

  /** The run was cancelled. */
  handleEvent() {
    this.#iteration.stop(this.#context.signal.reason);
  }
}

/**
 * A chunk is a text, a part, or a piece of an artifact.
 * @param {unknown} chunk
 */
function readChunk(chunk) {
  if (typeof chunk === 'string') return { parts: [{ text: chunk }] };
  if (!isObject(chunk)) throw new TypeError('A chunk is a text, a part, or { parts }');
  return 'parts' in chunk ? /** @type {any} */ (chunk) : { parts: [chunk] };
}
