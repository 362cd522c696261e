/** Entries in the order of a list, so that a page costs what it shows, however many there are. */
import { isBefore } from './backend.js';

/** @import { Place } from './backend.js' */

/** Entries that are next to each other in memory: a new one moves at most so many. */
const MAX_BLOCK = 128;

/**
 * @template {Place} T no two of one place
 */
export class OrderedEntries {
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
   * The entries that come after a place, or the first ones.
   * @param {Place | undefined} place
   * @param {number} limit
   */
  page(place, limit) {
    let { at, index } = place ? this.#find(place) : { at: 0, index: 0 };
    const found = [];
    for (let block; found.length < limit && (block = this.#blocks[at]); at++, index = 0)
      for (; index < block.length && found.length < limit; index++)
        if (!place || isBefore(place, block[index])) found.push(block[index]);
    return found;
  }
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
