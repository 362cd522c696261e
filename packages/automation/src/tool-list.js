/**
 * The WebMCP tools of a document, as capabilities. Injected as text, so it uses nothing but what is injected with it:
 * packages/automation/src/model-context.js.
 */
import { modelContext } from './model-context.js';

/**
 * What a page registers, as WebMCP lists it.
 * @typedef {object} Tool
 * @property {string} name
 * @property {unknown} [title]
 * @property {unknown} [description]
 * @property {unknown} [inputSchema] JSON Schema, or its text
 * @property {object} [annotations]
 */

/** @typedef {{ added: string[], removed: string[], changed: string[] }} Changes names of tools */

/**
 * A tool as a capability.
 * @param {Tool} tool
 */
export function describeTool({ name, title, description, inputSchema, annotations }) {
  const text = (/** @type {unknown} */ value) =>
    typeof value === 'string' && value ? value : undefined;
  const isNative = /\[native code\]/.test(
    Function.prototype.toString.call(modelContext().executeTool),
  );
  const isText = typeof inputSchema === 'string';
  let schema = inputSchema ?? undefined;
  try {
    if (isText) schema = JSON.parse(inputSchema);
  } catch {
    schema = undefined;
  }
  return {
    name,
    title: text(title),
    description: text(description),
    inputSchema: schema,
    annotations: annotations ? { ...annotations } : undefined,
    available: true,
    requirements: [],
    // Whether the browser passes a cancel on to the tool, and whether what became of it is known.
    features: {
      cancellation: isNative && !isText,
      cancelOutcome: false,
      progress: false,
      elicitation: false,
    },
  };
}

/**
 * @param {object} of
 * @param {any} of.window the window whose tools are meant: this page's own, or that of a frame
 * @param {string} [of.origin] the exact origin of a frame
 */
export function toolList({ window, origin }) {
  const MAX_TOOLS = 4096;
  const page = /** @type {any} */ (globalThis);
  /** The tools by name; undefined when they must be asked for. @type {Map<string, Tool> | undefined} */
  let known;
  /** What was told of each, as text. @type {Map<string, string>} */
  let told = new Map();

  /**
   * @param {boolean} [anew] whether they are asked for, although they are known
   * @returns {Promise<Map<string, Tool>>}
   */
  async function read(anew) {
    if (known && !anew) return known;
    known = undefined;
    const others = origin !== undefined && origin !== page.location?.origin;
    const listed = await modelContext().getTools(others ? { fromOrigins: [origin] } : {});
    const tools = new Map();
    for (const tool of [...listed].slice(0, MAX_TOOLS)) {
      if (typeof tool?.name !== 'string' || tool.annotations?.debugging) continue;
      if ((tool.window ?? page) !== window) continue;
      if (origin !== undefined && tool.origin !== origin) continue;
      tools.set(tool.name, tool);
    }
    return (known = tools);
  }

  async function describe() {
    const all = [...(await read()).values()].map(describeTool);
    told = new Map(all.map((tool) => [tool.name, JSON.stringify(tool)]));
    return all;
  }

  /** @returns {Promise<Changes | undefined>} what has changed since they were described; undefined if nothing has */
  async function changes() {
    known = undefined;
    const before = told;
    let all;
    try {
      all = await describe();
    } catch {
      return undefined; // The document is going away.
    }
    const names = all.map(({ name }) => name);
    const added = names.filter((name) => !before.has(name));
    const removed = [...before.keys()].filter((name) => !told.has(name));
    const changed = names.filter((name) => before.has(name) && before.get(name) !== told.get(name));
    if (!added.length && !removed.length && !changed.length) return undefined;
    return { added, removed, changed };
  }

  return {
    read,
    describe,
    changes,
    /** @param {string} name @returns {Promise<Tool | undefined>} */
    find: async (name) => (await read()).get(name) ?? (await read(true)).get(name),
  };
}
