/**
 * Capabilities as tools: the page's words, limited, as data; under names that every known client
 * accepts.
 */
import { createHash } from 'node:crypto';
import { cleanText } from './texts.js';

/** The gateway's own tools: they wait for a slow call, query it, and cancel it. */
export const HANDLE_NAMES = ['call_wait', 'call_status', 'call_cancel'];
/** Tools of one app; more are omitted, which is logged. */
export const MAX_TOOLS = 256;
/** Characters of a description. */
const MAX_DESCRIPTION = 4096;
/** Characters of a schema as JSON: a longer one is replaced by one that accepts any object. */
const MAX_SCHEMA = 65_536;
/** Characters of a title: a capability's own name. */
const MAX_TITLE = 256;
/** MCP's annotations that are copied if an app declares them. */
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];

/**
 * @typedef {Omit<import('./app.js').Capability, 'requirements'>} Capability as the app, or its
 *   manifest, describes it
 * @typedef {ReturnType<typeof toolOf>} Tool
 */

/**
 * A copy of a schema in the form that every client accepts: its root is an object.
 * @param {unknown} schema
 * @returns {{ type: 'object', [keyword: string]: unknown } | undefined} undefined if it is not a
 *   schema, or too long
 */
function objectSchema(schema) {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return undefined;
  let text;
  try {
    text = JSON.stringify(schema);
  } catch {
    return undefined;
  }
  if (text.length > MAX_SCHEMA) return undefined;
  // The gateway's server would have to compare headers, and a page must not name any.
  const copy = JSON.parse(text, (key, value) => (key === 'x-mcp-header' ? undefined : value));
  if (![undefined, 'object'].includes(copy.type)) return undefined;
  return { ...copy, type: 'object' };
}

/**
 * @param {Capability} capability
 * @param {string} name of the tool
 * @param {string} [app] its app's name, if there are several
 */
export function toolOf(capability, name, app) {
  const { deprecated, deprecationMessage, experimental } = capability;
  const description = [
    cleanText(capability.description, MAX_DESCRIPTION),
    deprecated === true && `Deprecated. ${cleanText(deprecationMessage, 500)}`.trim(),
    experimental === true && 'Experimental.',
    app && `App: ${app}`,
  ];
  const hints = Object.entries(Object(capability.annotations)).filter(
    ([hint, value]) => HINTS.includes(hint) && typeof value === 'boolean',
  );
  const outputSchema = objectSchema(capability.outputSchema);
  return {
    name,
    title: cleanText(capability.name, MAX_TITLE),
    description: description.filter(Boolean).join('\n'),
    inputSchema: objectSchema(capability.inputSchema) ?? { type: 'object' },
    ...(outputSchema && { outputSchema }),
    ...(hints.length && { annotations: Object.fromEntries(hints) }),
  };
}

// --- Names ---------------------------------------------------------------------------------------

/** Characters of a tool's name: the limit of the strictest known client. */
const MAX_NAME = 64;
/** Characters of a hash in a name, to tell equal names apart. */
const MARK = 8;
/**
 * Names of one app that are remembered: a former capability keeps its name, in case it comes back.
 */
const MAX_KNOWN = 1024;

/** @param {string} text */
const safe = (text) => text.replace(/[^A-Za-z0-9_]/g, '_');

/**
 * Keeps the names that were assigned, so that a tool keeps its own when the apps' lists change.
 * @template {{ prefix: string }} T an app
 */
export class ToolNames {
  /** By app and capability. @type {Map<T, Map<string, string>>} */
  #tools = new Map();
  /**
   * The meanings of names; undefined for reserved ones.
   * @type {Map<string, { target: T, capability: string } | undefined>}
   */
  #meanings = new Map();

  /** @param {Iterable<string>} [reserved] names that are taken */
  constructor(reserved = []) {
    for (const name of reserved) this.#meanings.set(name, undefined);
  }

  /**
   * Names all capabilities of an app. Names that need no change are assigned first, so that the
   * order of a list does not matter.
   * @param {T} target
   * @param {string[]} capabilities
   */
  add(target, capabilities) {
    const isFine = (/** @type {string} */ name) => (safe(name) === name ? 0 : 1);
    const sorted = [...capabilities].sort((a, b) => isFine(a) - isFine(b) || (a < b ? -1 : 1));
    for (const capability of sorted) this.of(target, capability);
    // The oldest former capability is forgotten.
    const own = this.#tools.get(target) ?? new Map();
    for (const [capability, tool] of own) {
      if (own.size <= MAX_KNOWN) return;
      if (capabilities.includes(capability)) continue;
      own.delete(capability);
      this.#meanings.delete(tool);
    }
  }

  /**
   * @param {T} target
   * @param {string} capability
   * @returns {string} at most 64 of A-Z a-z 0-9 _, the same each time
   */
  of(target, capability) {
    const own = this.#tools.get(target) ?? new Map();
    this.#tools.set(target, own);
    const known = own.get(capability);
    if (known) return known;
    const plain = target.prefix + safe(capability);
    const fits = plain.length <= MAX_NAME && plain !== '' && !this.#meanings.has(plain);
    const hash = createHash('sha256').update(target.prefix + capability);
    const mark = hash.digest('hex').slice(0, MARK);
    const tool = fits ? plain : `${plain.slice(0, MAX_NAME - MARK - 1)}_${mark}`;
    own.set(capability, tool);
    this.#meanings.set(tool, { target, capability });
    return tool;
  }

  /**
   * The target of a tool.
   * @param {string} tool
   */
  meaningOf(tool) {
    return this.#meanings.get(tool);
  }
}

/** Characters of a prefix, including its `_`. */
const MAX_PREFIX = 21;

/**
 * The prefix of an app's tools if there are several apps.
 * @param {string} name
 */
export const prefixOf = (name) => `${safe(name).slice(0, MAX_PREFIX - 1)}_`;
