/**
 * What agents are told of a capability, whether they can be told, and what checks its params and
 * results.
 *
 * How it is made: `describe` is called when a capability is given to an app. Schemas of other
 * libraries say themselves as JSON Schema. If there is something to check, `checked.js` is loaded,
 * and until then a call waits before it begins (the core knows: js/app/waits.js). JSON Schemas are
 * checked by a library that `schema.js` stands around; others by themselves. `types.ts` says the
 * same of values to TypeScript.
 */
import { mistyped } from '../../js/common/check-options.js';
import { AbpError, loadOnce, loadPart, toErrorObject } from '../../js/common/errors.js';
import { isObject, isRecord } from '../../js/common/values.js';
import { beginAfter } from '../../js/app/waits.js';

/** @import { Entry, Requirement } from '../../js/app/registry.js' */

/**
 * Levels of objects in what describes an app. The core reads 64 levels, of which the handshake
 * needs some.
 */
const MAX_DESCRIPTION_DEPTH = 56;

/**
 * What a library does with a type that JSON Schema cannot say, such as an ArrayBuffer: it says
 * nothing of it.
 */
const libraryOptions = {
  unrepresentable: 'any', // zod
  errorMode: 'ignore', // valibot
};

/**
 * What a schema that follows Standard Schema has for others to use it.
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
 * @throws {AbpError} INVALID_PARAMS if it is no schema, or cannot say itself as JSON Schema
 */
export function jsonSchemaOf(name, member, schema) {
  const standard = standardOf(schema);
  let why = 'must be a JSON Schema or Standard Schema';
  try {
    if (!standard) {
      if (schema === undefined || typeof schema === 'boolean' || isRecord(schema)) return schema;
    } else if (standard.jsonSchema) {
      // Of a schema that changes what it takes agents write what comes in, and read what comes out.
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
 * Throws unless a value can be written as JSON, so that it can stand in a handshake.
 * @param {string} what contains the value, for the error's message
 * @param {unknown} value the value
 * @param {string} path where in it the value is, for the error's message
 * @param {number} [depth] how deep that is
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
 * Puts JSON Schemas in place of a capability's schemas, and throws unless all that is shown of it
 * can stand in a handshake. If there are schemas, its calls are checked by them.
 * @param {string} name
 * @param {Entry} entry with its schemas as they were given
 * @param {readonly (keyof Entry)[]} shown the members that agents may see, besides its requirements
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
  // Without `met` it would count as met.
  if (
    !Array.isArray(requirements) ||
    !requirements.every((each) => isRecord(each) && 'met' in each)
  )
    throw mistyped(what, 'requirements', 'a list of { type, description, met }');
  for (const key of shown) requireJson(what, entry[key], key);
  const told = requirements.map(({ met: _met, ...rest }) => rest);
  requireJson(what, told, 'requirements');
  // Where all values are accepted, nothing is checked.
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
  // Not when the first call comes: a schema that cannot be used is reported at once. Calls get the
  // error.
  checking().then(
    (checked) => (entry.run = checked),
    () => {},
  );
}
