/** The capabilities of an app, as far as its agent knows them, within bounds. */
import { firstOf, getOwn } from '../common/values.js';
import { isRepeatable } from '../wire/messages.js';

/** The most capabilities of an app that are kept, and the longest name, in characters. */
const MAX_CAPABILITIES = 4096;
const MAX_NAME_LENGTH = 256;

/**
 * A capability as the app describes it. Only its name is checked.
 * @typedef {object} CapabilityInfo
 * @property {string} name
 * @property {boolean} [available] whether it can be called now
 * @property {string} [description]
 * @property {any} [inputSchema] JSON Schema of the params
 * @property {any} [outputSchema] JSON Schema of the data
 * @property {any} [annotations] hints for MCP clients
 * @property {{ type: string, description: string, met: boolean, resolution?: string }[]}
 *   [requirements]
 * @property {Record<string, boolean>} [features]
 * @property {boolean} [experimental]
 * @property {boolean} [deprecated]
 * @property {string} [deprecationMessage]
 * @property {string[]} [alternatives]
 * @property {any} [browserRequirement] which browsers support it, in the protocol's form
 */

/**
 * @param {unknown} name
 * @returns {name is string}
 */
const isName = (name) => typeof name === 'string' && name.length <= MAX_NAME_LENGTH;

/**
 * A map of capabilities by name.
 * @extends {Map<string, CapabilityInfo>}
 */
export class CapabilityList extends Map {
  /**
   * True if a capability declares that it may run twice.
   * @param {any} name
   */
  repeatable(name) {
    return isRepeatable(this.get(name)?.annotations);
  }

  /**
   * Adds or replaces descriptions by name, as long as there is room.
   * @param {unknown} list
   */
  put(list) {
    for (const capability of firstOf(list, MAX_CAPABILITIES)) {
      const name = getOwn(capability, 'name');
      if (isName(name) && (this.has(name) || this.size < MAX_CAPABILITIES))
        this.set(name, capability);
    }
  }

  /**
   * Applies the data of a `list_changed`.
   * @param {unknown} data
   * @returns {{ added: string[], removed: string[], changed: string[] }} the changed names
   */
  merge(data) {
    const [added, removed, changed] = ['added', 'removed', 'changed'].map((key) =>
      firstOf(getOwn(data, key), MAX_CAPABILITIES).filter(isName),
    );
    for (const name of removed) this.delete(name);
    this.put(added.map((name) => this.get(name) ?? { name, available: true }));
    // Apps of this library send the new descriptions, too; the published notification has only
    // names.
    this.put(getOwn(data, 'capabilities'));
    return { added, removed, changed };
  }
}
