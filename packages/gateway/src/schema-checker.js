/**
 * Checks results by the schema that their app has promised. The schema is foreign, so a thread with
 * a deadline does it.
 */
import { Worker } from 'node:worker_threads';
import { cleanText } from './texts.js';

/** Ms that one check may take. */
const DEADLINE = 5000;
/** Memory of the thread, in MiB. */
const MAX_MEMORY = 256;

export class SchemaChecker {
  /** @type {Worker | undefined} */
  #worker;
  /** Checks run one after the other. @type {Promise<unknown>} */
  #last = Promise.resolve();

  /**
   * @param {unknown} data plain data
   * @param {unknown} schema of the app
   * @returns {Promise<string>} the error; empty if it fits
   */
  check(data, schema) {
    const checked = this.#last.then(() => this.#ask({ data, schema }));
    this.#last = checked;
    return checked;
  }

  /**
   * @param {{ data: unknown, schema: unknown }} question
   * @returns {Promise<string>}
   */
  #ask(question) {
    const worker = (this.#worker ??= this.#start());
    return new Promise((resolve) => {
      const settle = (/** @type {string} */ problem) => {
        clearTimeout(timer);
        worker.removeAllListeners('message').removeAllListeners('exit');
        resolve(cleanText(problem, 1000));
      };
      const end = () => {
        this.#worker = undefined;
        void worker.terminate();
        const why = `it could not be checked within ${DEADLINE} ms`;
        settle(`The app's outputSchema cannot be used: ${why}`);
      };
      const timer = setTimeout(end, DEADLINE);
      // It ends without an answer when it is out of memory, or was closed.
      worker.once('message', settle).once('exit', end).postMessage(question);
    });
  }

  #start() {
    const worker = new Worker(new URL('./schema-worker.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: MAX_MEMORY },
    });
    worker.on('error', () => {}).unref();
    return worker;
  }

  /** Ends the thread. */
  async close() {
    await this.#worker?.terminate();
  }
}
