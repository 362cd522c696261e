/** Entries of an index in the order of a list, so that a page costs what it shows, however many there are. */
import { isBefore } from './backend.js';

/** @import { Indexed, ListFilter, Place } from './backend.js' */

/** Entries that are next to each other in memory: a new one moves at most so many. */
const MAX_BLOCK = 128;

/**
 * @template {Place} T no two of one place
 */
class OrderedEntries {
  /** Each in order, after the one before, and not empty. @type {T[][]} */
  #blocks = [];

  /** The block of a place, and how many of it come before. @param {Place} place */
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

  /** @param {T} entry */
  add(entry) {
    const { at, index } = this.#find(entry);
    const block = (this.#blocks[at] ??= []);
    block.splice(index, 0, entry);
    if (block.length > MAX_BLOCK) this.#blocks.splice(at + 1, 0, block.splice(MAX_BLOCK / 2));
  }

  /** @param {T} entry that was added */
  remove(entry) {
    const { at, index } = this.#find(entry);
    const block = this.#blocks[at];
    block.splice(index, 1);
    if (block.length === 0) this.#blocks.splice(at, 1);
  }

  /**
   * Visits the entries that come after a place, or all, until `visit` returns false.
   * @param {Place | undefined} place
   * @param {(entry: T) => boolean} visit
   */
  walk(place, visit) {
    let { at, index } = place ? this.#find(place) : { at: 0, index: 0 };
    for (let block; (block = this.#blocks[at]); at++, index = 0)
      for (; index < block.length; index++) {
        if (place && !isBefore(place, block[index])) continue;
        if (!visit(block[index])) return;
      }
  }

  /** How many are not older. @param {number} since */
  count(since) {
    let count = 0;
    for (const block of this.#blocks) {
      if (block[block.length - 1].time >= since) count += block.length;
      else return count + partition(block.length, (i) => block[i].time >= since);
    }
    return count;
  }
}

/** @typedef {OrderedEntries<Indexed>} Ordered */
/** @typedef {{ all: Ordered, contexts: Map<string, Ordered>, states: Map<string, Ordered> }} Tenant */

/** An index in memory. */
export class OrderedIndex {
  /** @type {Map<string, Indexed>} */
  #entries = new Map();
  /** @type {Map<string, Tenant>} */
  #tenants = new Map();

  get size() {
    return this.#entries.size;
  }

  /** @param {string} task */
  get(task) {
    return this.#entries.get(task);
  }

  /** Enters a task, or replaces its entry. @param {Indexed} entry */
  set(entry) {
    this.remove(entry.task);
    this.#entries.set(entry.task, entry);
    let tenant = this.#tenants.get(entry.tenant);
    if (!tenant) {
      tenant = { all: new OrderedEntries(), contexts: new Map(), states: new Map() };
      this.#tenants.set(entry.tenant, tenant);
    }
    tenant.all.add(entry);
    within(tenant.contexts, entry.context).add(entry);
    if (entry.state) within(tenant.states, entry.state).add(entry);
  }

  /** @param {string} task */
  remove(task) {
    const entry = this.#entries.get(task);
    if (!entry) return;
    this.#entries.delete(task);
    const { all, contexts, states } = /** @type {Tenant} */ (this.#tenants.get(entry.tenant));
    all.remove(entry);
    for (const [map, key] of /** @type {const} */ ([
      [contexts, entry.context],
      [states, entry.state ?? ''],
    ])) {
      const entries = map.get(key);
      entries?.remove(entry);
      if (entries?.empty) map.delete(key);
    }
    if (all.empty) this.#tenants.delete(entry.tenant);
  }

  /**
   * @param {ListFilter} filter
   * @param {Place | undefined} after
   * @param {number} limit
   * @returns {Indexed[]}
   */
  page({ tenant, context, state, since = -Infinity }, after, limit) {
    const of = this.#tenants.get(tenant);
    const entries =
      context !== undefined ? of?.contexts.get(context) : state ? of?.states.get(state) : of?.all;
    /** @type {Indexed[]} */
    const found = [];
    entries?.walk(after, (entry) => {
      if (found.length === limit || entry.time < since) return false;
      if (!state || entry.state === state) found.push(entry);
      return true;
    });
    return found;
  }

  /** How many with a state a list shows. @param {ListFilter} filter */
  count({ tenant, context, state, since = -Infinity }) {
    const of = this.#tenants.get(tenant);
    let count = 0;
    if (context === undefined) {
      for (const [name, entries] of of?.states ?? [])
        if (!state || name === state) count += entries.count(since);
    } else
      of?.contexts.get(context)?.walk(undefined, (entry) => {
        if (entry.time < since) return false;
        if (state ? entry.state === state : entry.state) count++;
        return true;
      });
    return count;
  }
}

/** @param {Map<string, Ordered>} map @param {string} key @returns {Ordered} */
function within(map, key) {
  let entries = map.get(key);
  if (!entries) map.set(key, (entries = new OrderedEntries()));
  return entries;
}

/**
 * The first index for which something does not hold that holds for all before, and for none after.
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
