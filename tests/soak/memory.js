/** Memory, sampled along a long run: what is kept of each thing makes a line that rises. */
import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');

/**
 * A turn of the event loop: what has arrived is read.
 * @returns {Promise<void>}
 */
export const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Collects what nobody has any more, and lets what waits for that have its turn. */
export async function collect() {
  await turn();
  gc();
  await turn();
}

export class MemorySamples {
  /** Bytes. @type {number[]} */
  #taken = [];
  #every;

  /**
   * @param {number} things that are made in the whole run
   * @param {number} samples
   */
  constructor(things, samples) {
    this.#every = things / samples;
  }

  /**
   * Whether it is time for a sample.
   * @param {number} made so many things were made
   */
  isDue(made) {
    return made >= this.#every * (this.#taken.length + 1);
  }

  /**
   * Takes a sample if it is time for one.
   * @param {number} made so many things were made
   * @returns {Promise<boolean>} whether it was
   */
  async take(made) {
    if (!this.isDue(made)) return false;
    await collect();
    const { heapUsed, arrayBuffers, external } = process.memoryUsage();
    this.#taken.push(heapUsed + arrayBuffers + external);
    return true;
  }

  /**
   * Fails if memory grew. The first sample does not count: the engine still compiles, and learns
   * shapes. A sample may fall just before a collection: the least of each third tells.
   * @param {number} [part] of what there was early, by which it may be more for what engines keep
   *   of code
   */
  assertFlat(part = 0) {
    const counted = this.#taken.slice(1);
    const third = Math.floor(counted.length / 3);
    const early = Math.min(...counted.slice(0, third));
    const late = Math.min(...counted.slice(-third));
    assert.ok(late < early * (1 + part) + 1e6, `${this}`);
  }

  toString() {
    return `${this.#taken.map((bytes) => (bytes / 1e6).toFixed(2)).join(' ')} MB`;
  }
}
