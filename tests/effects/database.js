/**
 * Where handlers write their effects: a file that grows, beside the library. Threads of one process
 * may share it.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { turn } from './work.js';

/** @typedef {import('./work.js').Row} Row */

/**
 * Appends rows to a file.
 * @param {string} path
 */
export function appender(path) {
  const file = openSync(path, 'a');
  return {
    /** @param {Row} row */
    write: (row) => void writeSync(file, `${JSON.stringify(row)}\n`),
    close: () => closeSync(file),
  };
}

/**
 * Writes by another thread.
 * @param {string} path
 */
export function writerElsewhere(path) {
  const worker = new Worker(new URL('writer.js', import.meta.url), { workerData: path });
  worker.unref();
  /** @type {((value: unknown) => void)[]} */
  const waiting = [];
  worker.on('message', () => waiting.shift()?.(undefined));
  return {
    /**
     * @param {Row} row
     * @returns {Promise<unknown>}
     */
    write: (row) =>
      new Promise((resolve) => {
        waiting.push(resolve);
        worker.postMessage(row);
      }),
    close: () => worker.terminate(),
  };
}

export class Database {
  #folder = mkdtempSync(join(tmpdir(), 'effects-'));
  path = join(this.#folder, 'rows');
  #own = appender(this.path);
  #elsewhere = writerElsewhere(this.path);
  #file = openSync(this.path, 'r');
  #read = Buffer.alloc(2 ** 16);
  /** What has been read of the next row. */
  #rest = '';
  #count = 0;
  /** @type {Map<string, Row[]>} */
  #rows = new Map();

  write = this.#own.write;
  writeElsewhere = this.#elsewhere.write;

  /**
   * The rows of a call, in order.
   * @param {string} key
   */
  rows(key) {
    for (let length; (length = readSync(this.#file, this.#read));) {
      const lines = (this.#rest + this.#read.toString('latin1', 0, length)).split('\n');
      this.#rest = /** @type {string} */ (lines.pop());
      for (const line of lines) {
        const row = /** @type {Row} */ ({ ...JSON.parse(line), order: this.#count++ });
        const known = this.#rows.get(row.key);
        if (known) known.push(row);
        else this.#rows.set(row.key, [row]);
      }
    }
    return this.#rows.get(key) ?? [];
  }

  /**
   * Resolves when every handler that has begun has ended.
   * @param {string[]} keys
   */
  async quiet(keys) {
    const works = (/** @type {string} */ key) => {
      let running = 0;
      for (const { at, how } of this.rows(key)) {
        // Nobody tells a source that is open when it ends.
        if ((at === 'begin' && how !== 'open') || at === 'goes on') running++;
        if (at === 'end') running--;
      }
      return running > 0;
    };
    while (keys.some(works)) await turn();
  }

  close() {
    this.#own.close();
    closeSync(this.#file);
    rmSync(this.#folder, { recursive: true });
    return this.#elsewhere.close();
  }
}
