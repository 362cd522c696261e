/**
 * The backend of an agent that is given none: tasks end with their process. Who writes a record is the only one to read it, at
 * once; so records are counted, not kept, and what an agent shows of a task is all there is of it.
 */
import { conflict } from './backend.js';
import { LocalBackend } from './local.js';
import { Memory } from './memory.js';

export class ProcessBackend extends LocalBackend {
  alone = true;
  maxRecord = Infinity;
  /** How many records each task has. @type {Map<string, number>} */
  #counts = new Map();

  constructor() {
    super(new Memory(Infinity));
  }

  /** @override @param {string} task @param {string} _data @param {number} expected @returns {any} the number, at once */
  append(task, _data, expected) {
    const count = this.#counts.get(task) ?? 0;
    if (count !== expected) throw conflict(task);
    this.#counts.set(task, count + 1);
    return count + 1;
  }

  /** @override */
  async read() {
    return [];
  }

  /** @override */
  watch() {
    return () => {};
  }

  /** @override @param {string} task */
  async forget(task) {
    this.#counts.delete(task);
    await super.forget(task);
  }
}
