/** Names of tools that every model takes, whatever an app calls its capabilities. */

/** Characters of a tool's name: what the strictest known model takes. */
const MAX_NAME = 64;

/** Eight characters that tell apart what would be the same name. @param {string} text */
function markOf(text) {
  // FNV-1a: nothing depends on it but the looks of a name.
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

/** Keeps the names that were given, so that a tool keeps its own however the list changes. */
export class ViewToolNames {
  /** @type {Map<string, string>} */
  #tools = new Map();
  /** @type {Map<string, string>} */
  #capabilities = new Map();

  /**
   * Names several at once. Names that are fine as they are go first, so that the order of a list does not matter.
   * @param {string[]} capabilities
   */
  add(capabilities) {
    const isFine = (/** @type {string} */ name) => Number(/^\w{1,64}$/.test(name));
    for (const name of [...capabilities].sort((a, b) => isFine(b) - isFine(a))) this.#add(name);
  }

  /** @param {string} capability */
  #add(capability) {
    if (this.#tools.has(capability)) return;
    const plain = capability.replace(/\W/g, '_').slice(0, MAX_NAME);
    const isFree = plain !== '' && capability.length <= MAX_NAME && !this.#capabilities.has(plain);
    const tool = isFree ? plain : `${plain.slice(0, MAX_NAME - 9)}_${markOf(capability)}`;
    this.#tools.set(capability, tool);
    this.#capabilities.set(tool, capability);
  }

  /** @param {string} capability @returns {string} its tool */
  toolOf(capability) {
    this.#add(capability);
    return /** @type {string} */ (this.#tools.get(capability));
  }

  /** @param {unknown} tool @returns {string | undefined} what it calls */
  capabilityOf(tool) {
    return typeof tool === 'string' ? this.#capabilities.get(tool) : undefined;
  }
}
