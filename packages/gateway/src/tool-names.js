/** Names of tools: what every known client takes, whatever the app calls its capabilities. */
import { createHash } from 'node:crypto';

/** Characters of a tool's name: what the strictest known client takes. */
export const MAX_NAME = 64;
/** Characters of it that tell names apart which would be one. */
const MARK = 8;
/** Names of one app that are remembered: what it had before keeps its name, in case that it comes back. */
const MAX_KNOWN = 1024;

/** @param {string} text */
const safe = (text) => text.replace(/[^A-Za-z0-9_]/g, '_');

/** @param {string} text */
const markOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, MARK);

/**
 * What a tool calls.
 * @template T
 * @typedef {{ target: T, capability: string }} Meaning
 */

/**
 * Keeps the names that were given, so that a tool keeps its own however the apps' lists change.
 * @template {{ prefix: string }} T an app
 */
export class ToolNames {
  /** By app and capability. @type {Map<T, Map<string, string>>} */
  #tools = new Map();
  /** What they mean; nothing, if they are reserved. @type {Map<string, Meaning<T> | undefined>} */
  #meanings = new Map();

  /** @param {Iterable<string>} [reserved] names that are taken */
  constructor(reserved = []) {
    for (const name of reserved) this.#meanings.set(name, undefined);
  }

  /**
   * Names several at once. Names that are fine as they are go first, so that the order of a list matters to nobody.
   * @param {T} target
   * @param {string[]} capabilities
   */
  add(target, capabilities) {
    const isFine = (/** @type {string} */ name) => (safe(name) === name ? 0 : 1);
    const sorted = [...capabilities].sort((a, b) => isFine(a) - isFine(b) || (a < b ? -1 : 1));
    for (const capability of sorted) this.of(target, capability);
    this.#forget(target, new Set(capabilities));
  }

  /** How many names are remembered, reserved ones included. */
  get size() {
    return this.#meanings.size;
  }

  /** Forgets the oldest of what an app has no more, beyond the limit. @param {T} target @param {Set<string>} current */
  #forget(target, current) {
    const own = this.#tools.get(target) ?? new Map();
    for (const [capability, tool] of [...own]) {
      if (own.size <= MAX_KNOWN) return;
      if (current.has(capability)) continue;
      own.delete(capability);
      this.#meanings.delete(tool);
    }
  }

  /** @param {T} target @param {string} capability @returns {string} at most 64 of A-Z a-z 0-9 _, the same each time */
  of(target, capability) {
    const own = this.#tools.get(target) ?? new Map();
    this.#tools.set(target, own);
    const known = own.get(capability);
    if (known) return known;
    const plain = target.prefix + safe(capability);
    const fits = plain.length <= MAX_NAME && plain !== '' && !this.#meanings.has(plain);
    const mark = markOf(target.prefix + capability);
    const tool = fits ? plain : `${plain.slice(0, MAX_NAME - MARK - 1)}_${mark}`;
    own.set(capability, tool);
    this.#meanings.set(tool, { target, capability });
    return tool;
  }

  /** @param {string} tool @returns {Meaning<T> | undefined} */
  meaningOf(tool) {
    return this.#meanings.get(tool);
  }
}

/** Characters of a prefix, its `_` included. */
const MAX_PREFIX = 21;

/** What begins the names of an app's tools when there are several apps. @param {string} name */
export const prefixOf = (name) => `${safe(name).slice(0, MAX_PREFIX - 1)}_`;
