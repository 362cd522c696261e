/**
 * Index entries in the order of a list, so that the cost of a page depends on its length, not on
 * the number of entries.
 */
import { isBefore } from './backend.js';

/** @import { Indexed, ListFilter, Place } from './backend.js' */

/** Entries that are contiguous in memory: an insertion moves this many at most. */
const MAX_BLOCK = 128;

class OrderedEntries {
  /**
   * Each is in order, follows the previous one, and is not empty. No two entries have the same
   * place.
   * @type {Indexed[][]}
   */
  #blocks = [];

  /**
   * The block of a place, and the number of its entries before that place.
   * @param {Place} place
   */
  #find(place) {
    const blocks = this.#blocks;
    const after = partition(blocks.length, (i) => !isBefore(place, blocks[i][0]));
    const at = Math.max(after - 1, 0);
    const block = blocks[at] ?? [];
    return { at, index: partition(block.length, (i) => isBefore(block[i], place)) };
  }

  get empty() {
    return this.#blocks.length === 0;
  }

  /** @param {Indexed} entry */
  add(entry) {
    const { at, index } = this.#find(entry);
    const block = (this.#blocks[at] ??= []);
    block.splice(index, 0, entry);
    if (block.length > MAX_BLOCK) this.#blocks.splice(at + 1, 0, block.splice(MAX_BLOCK / 2));
  }

  /** @param {Indexed} entry that was added */
  remove(entry) {
    const { at, index } = this.#find(entry);
    const block = this.#blocks[at];
    block.splice(index, 1);
    if (block.length === 0) this.#blocks.splice(at, 1);
  }

  /**
   * The entries that come after a place, or all.
   * @param {Place | undefined} place
   */
  *after(place) {
    let { at, index } = place ? this.#find(place) : { at: 0, index: 0 };
    for (let block; (block = this.#blocks[at]); at++, index = 0)
      for (; index < block.length; index++)
        if (!place || isBefore(place, block[index])) yield block[index];
  }

  /**
   * Number of entries that are not older.
   * @param {number} since
   */
  count(since) {
    let count = 0;
    for (const block of this.#blocks) {
      if (block[block.length - 1].time >= since) count += block.length;
      else return count + partition(block.length, (i) => block[i].time >= since);
    }
    return count;
  }
}

/**
 * Names of the lists of all tasks of a tenant or of one of its contexts, in any state or in one.
 * NUL is in no other name.
 */
const ofContext = (/** @type {string} */ tenant, /** @type {string} */ context) =>
  `${tenant}\0c${context}`;
const ofState = (/** @type {string} */ tenant, state = '') => `${tenant}\0s${state}`;

/** An index in memory. */
export class OrderedIndex {
  /** By task. @type {Map<string, Indexed>} */
  #entries = new Map();
  /** @type {Map<string, OrderedEntries>} */
  #lists = new Map();

  /** Number of tasks with an entry. */
  get size() {
    return this.#entries.size;
  }

  /**
   * The entry of a task, or undefined.
   * @param {string} task
   */
  get(task) {
    return this.#entries.get(task);
  }

  /**
   * The lists that contain an entry.
   * @param {Indexed} entry
   */
  #listsOf({ tenant, context, state }) {
    return [tenant, ofContext(tenant, context), ofState(tenant, state)];
  }

  /**
   * Enters a task, or replaces its entry.
   * @param {Indexed} entry
   */
  set(entry) {
    this.remove(entry.task);
    this.#entries.set(entry.task, entry);
    for (const name of this.#listsOf(entry)) {
      const list = this.#lists.get(name) ?? new OrderedEntries();
      this.#lists.set(name, list);
      list.add(entry);
    }
  }

  /**
   * Deletes the entry of a task, if there is one.
   * @param {string} task
   */
  remove(task) {
    const entry = this.#entries.get(task);
    if (!entry) return;
    this.#entries.delete(task);
    for (const name of this.#listsOf(entry)) {
      const list = this.#lists.get(name);
      list?.remove(entry);
      if (list?.empty) this.#lists.delete(name);
    }
  }

  /**
   * A page of a list, in its order.
   * @param {ListFilter} filter
   * @param {Place | undefined} after
   * @param {number} limit
   */
  page({ tenant, context, state, since = -Infinity }, after, limit) {
    const name =
      context !== undefined ? ofContext(tenant, context) : state ? ofState(tenant, state) : tenant;
    /** @type {Indexed[]} */
    const found = [];
    for (const entry of this.#lists.get(name)?.after(after) ?? []) {
      if (found.length === limit || entry.time < since) break;
      if (!state || entry.state === state) found.push(entry);
    }
    return found;
  }

  /**
   * Number of tasks with a state in a list.
   * @param {ListFilter} filter
   */
  count({ tenant, context, state, since = -Infinity }) {
    if (context !== undefined) {
      const found = this.page({ tenant, context, state, since }, undefined, Infinity);
      return found.filter((entry) => entry.state).length;
    }
    const countOf = (/** @type {string} */ name) => this.#lists.get(name)?.count(since) ?? 0;
    return state ? countOf(ofState(tenant, state)) : countOf(tenant) - countOf(ofState(tenant));
  }
}

/**
 * The first index for which a condition fails that holds for all before and for none after.
 * @param {number} length
 * @param {(index: number) => boolean} holds
 */
function partition(length, holds) {
  let low = 0;
  for (let high = length; low < high;) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
