/** What messages of JSON-RPC say of the work. */

/** @typedef {import('../call.js').Outcome} Outcome */

/** By which a text of an error tells that the work was stopped. */
const STOPPED = /\b(cancel|canceled|cancelled|cancelling|cancellation|abort|aborted|stopped)\b/i;

/**
 * @param {string} text of an error
 * @param {number} [code]
 * @returns {Outcome}
 */
export const errorWord = (text, code) =>
  code === -32800 || STOPPED.test(text) ? 'stopped' : 'failed';

/**
 * @param {any} error
 * @returns {string}
 */
export const textOf = (error) => (error instanceof Error ? error.message : String(error));

/**
 * A value for a form of JSON Schema, as somebody gives it who agrees to all.
 * @param {any} schema
 * @returns {any}
 */
export function agree(schema) {
  if (schema?.default !== undefined) return schema.default;
  if (Array.isArray(schema?.enum)) return schema.enum[0];
  if (Array.isArray(schema?.oneOf)) return schema.oneOf[0]?.const;
  switch (schema?.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, its]) => [name, agree(its)]),
      );
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'array':
      return [];
    default:
      return 'yes';
  }
}
