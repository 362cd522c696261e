/** Capabilities as tools: the page's words, bounded, as data. */
import { cleanText } from './texts.js';

/** Tools of one app; what is beyond is left out, and that is logged. */
export const MAX_TOOLS = 256;
/** Characters of a description. */
const MAX_DESCRIPTION = 4096;
/** Characters of a schema as JSON: a longer one is replaced by one that takes any object. */
const MAX_SCHEMA = 65_536;
/** Characters of a title: a capability's own name. */
const MAX_TITLE = 256;

/** What of MCP's annotations is taken over where an app declares it, and of what type it is. */
const HINTS = /** @type {const} */ ([
  'readOnlyHint',
  'destructiveHint',
  'idempotentHint',
  'openWorldHint',
]);

/**
 * @typedef {Omit<import('./app.js').Capability, 'requirements'>} Capability as the app, or its manifest, describes it
 * @typedef {{ type: 'object', [keyword: string]: unknown }} Schema
 * @typedef {ReturnType<typeof toolOf>} Tool
 */

/**
 * A copy of a schema that every client takes: its root is an object.
 * @param {unknown} schema
 * @returns {Schema | undefined} undefined when it is none, or too long
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
  // It is the gateway's server that would have to compare headers, and a page names none.
  const copy = JSON.parse(text, (key, value) => (key === 'x-mcp-header' ? undefined : value));
  return copy.type === undefined || copy.type === 'object'
    ? { ...copy, type: 'object' }
    : undefined;
}

/** @param {Pick<Capability, 'annotations'>} capability */
function annotationsOf(capability) {
  const declared = capability.annotations;
  if (typeof declared !== 'object' || declared === null) return {};
  const hints = HINTS.filter((hint) => typeof declared[hint] === 'boolean');
  return Object.fromEntries(hints.map((hint) => [hint, declared[hint]]));
}

/** @param {Capability} capability @param {string} name of the tool @param {string} [app] whose it is, where there are several */
export function toolOf(capability, name, app) {
  const notes = [
    capability.deprecated === true &&
      `Deprecated. ${cleanText(capability.deprecationMessage, 500)}`.trim(),
    capability.experimental === true && 'Experimental.',
    app && `App: ${app}`,
  ].filter(Boolean);
  const description = [cleanText(capability.description, MAX_DESCRIPTION), ...notes];
  const annotations = annotationsOf(capability);
  const outputSchema = objectSchema(capability.outputSchema);
  return {
    name,
    title: cleanText(capability.name, MAX_TITLE),
    description: description.filter(Boolean).join('\n'),
    inputSchema: objectSchema(capability.inputSchema) ?? { type: 'object' },
    ...(outputSchema && { outputSchema }),
    ...(Object.keys(annotations).length && { annotations }),
  };
}
