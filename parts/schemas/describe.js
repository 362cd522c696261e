/**
 * Describes capabilities to agents, checks whether they can be described, and loads the checks of
 * params and results.
 *
 * `describe` is called when a capability is added to an app. Schemas of other libraries convert
 * themselves to JSON Schema. If there is something to check, `checked.js` is loaded; until then the
 * core postpones calls (js/app/waits.js). For JSON Schemas `schema.js` uses a library; other
 * schemas check values themselves. `types.ts` derives TypeScript's types from schemas.
 */
import { mistyped } from '../../js/common/check-options.js';
import { AbpError, loadOnce, loadPart, toErrorObject } from '../../js/common/errors.js';
import { isObject, isRecord } from '../../js/common/values.js';
import { beginAfter } from '../../js/app/waits.js';

/** @import { Entry, Requirement } from '../../js/app/registry.js' */

/**
 * Levels of objects in an app's description. The core reads 64 levels, and the handshake needs some
 * of them.
 */
const MAX_DESCRIPTION_DEPTH = 56;

/**
 * For types that JSON Schema cannot describe, such as an ArrayBuffer: libraries leave them open.
 */
const libraryOptions = {
  unrepresentable: 'any', // zod
  errorMode: 'ignore', // valibot
};

/**
 * The interface of a schema that follows Standard Schema.
 * @param {any} schema any value
 * @returns {import('./types.js').StandardSchema['~standard'] | undefined}
 */
export const standardOf = (schema) => schema?.['~standard'] ?? undefined;

/**
 * The JSON Schema of a schema.
 * @param {string} name of the capability, for the error's message
 * @param {'inputSchema' | 'outputSchema'} member
 * @param {unknown} schema any value
 * @returns {object | boolean | undefined} itself if it is a JSON Schema or undefined
 * @throws {AbpError} INVALID_PARAMS if it is not a schema, or cannot be converted to JSON Schema
 */
export function jsonSchemaOf(name, member, schema) {
  const standard = standardOf(schema);
  let why = 'must be a JSON Schema or Standard Schema';
  try {
    if (!standard) {
      if (schema === undefined || typeof schema === 'boolean' || isRecord(schema)) return schema;
    } else if (standard.jsonSchema) {
      // If a schema changes values, agents write its input and read its output.
      const side = /** @type {'input' | 'output'} */ (member.replace('Schema', ''));
      return standard.jsonSchema[side]({ target: 'draft-2020-12', libraryOptions });
    } else {
      why = `cannot be described to agents: ${standard.vendor} does not convert it to JSON Schema`;
    }
  } catch (error) {
    why = `cannot be described to agents: ${toErrorObject(error).message}`;
  }
  throw new AbpError('INVALID_PARAMS', `${member} of ${name} ${why} (docs/errors.md#schemas)`);
}

/**
 * Throws unless a value can be written as JSON, as it must be in a handshake.
 * @param {string} what the name of the object that contains the value, for the error's message
 * @param {unknown} value the value
 * @param {string} path the path of the value in it, for the error's message
 * @param {number} [depth] the depth of that path
 */
export function requireJson(what, value, path, depth = 0) {
  const type = typeof value;
  const why = ['bigint', 'function', 'symbol'].includes(type)
    ? `is a ${type}`
    : depth > MAX_DESCRIPTION_DEPTH && 'is too deep, or contains a cycle';
  if (why)
    throw new AbpError('INVALID_PARAMS', `${what} must be JSON, but ${path.slice(0, 200)} ${why}`);
  if (!isObject(value)) return;
  for (const [key, part] of Object.entries(value)) {
    requireJson(what, part, `${path}.${key}`, depth + 1);
  }
}

/**
 * Replaces a capability's schemas by JSON Schemas, and throws unless its description can be sent in
 * a handshake. If it has schemas, its calls are checked by them.
 * @param {string} name
 * @param {Entry} entry with its original schemas
 * @param {readonly (keyof Entry)[]} shown the members of its description, besides its requirements
 * @throws {AbpError} INVALID_PARAMS
 */
export function describe(name, entry, shown) {
  const what = `capability ${name}`;
  const given = { ...entry };
  const schemas = /** @type {const} */ (['inputSchema', 'outputSchema']).map((member) => {
    entry[member] = jsonSchemaOf(name, member, given[member]);
    return given[member] ?? true;
  });
  const requirements = /** @type {Requirement[]} */ (entry.requirements ?? []);
  // A requirement without `met` would count as met.
  if (
    !Array.isArray(requirements) ||
    !requirements.every((each) => isRecord(each) && 'met' in each)
  )
    throw mistyped(what, 'requirements', 'a list of { type, description, met }');
  for (const key of shown) requireJson(what, entry[key], key);
  const described = requirements.map(({ met: _met, ...rest }) => rest);
  requireJson(what, described, 'requirements');
  // If all values are accepted, there is nothing to check.
  const checked = schemas.filter((schema) => schema !== true);
  if (!checked.length) return;
  const checking = loadOnce(async () => {
    const { checkedRun } = await loadPart(
      checked.every(standardOf) ? import('./checked.js') : import('./schema.js'),
    );
    return checkedRun(name, given);
  });
  entry.run = (params, context, call) =>
    beginAfter(call, checking(), (checked) => checked(params, context, call));
  // At once, not with the first call, so that an unusable schema is reported early. Calls get the
  // error.
  checking().then(
    (checked) => (entry.run = checked),
    () => {},
  );
}
