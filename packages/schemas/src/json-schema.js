/** The schemas of capabilities, as agents are told of them. */
import { AbpError, toErrorObject } from '../../../js/common/errors.js';
import { isRecord } from '../../../js/common/values.js';

/** What a library does with a type that JSON Schema cannot say, such as an ArrayBuffer: it says nothing of it. */
const libraryOptions = {
  unrepresentable: 'any', // zod
  errorMode: 'ignore', // valibot
};

/**
 * What a schema of another library has for others to use it.
 * @param {any} schema any value
 * @returns {import('./types.js').StandardSchema['~standard'] | undefined} undefined if it does not follow Standard Schema
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
  let why = 'must be a JSON Schema or follow Standard Schema';
  try {
    if (!standard) {
      if (schema === undefined || typeof schema === 'boolean' || isRecord(schema)) return schema;
    } else if (standard.jsonSchema) {
      // Of a schema that changes what it takes agents write what comes in, and read what comes out.
      const side = /** @type {'input' | 'output'} */ (member.replace('Schema', ''));
      return standard.jsonSchema[side]({ target: 'draft-2020-12', libraryOptions });
    } else {
      const { vendor } = standard;
      why = `cannot be described to agents: ${vendor} does not convert it to JSON Schema`;
      if (vendor === 'valibot')
        why += ': wrap it in toStandardJsonSchema of @valibot/to-json-schema';
    }
  } catch (error) {
    why = `cannot be described to agents: ${toErrorObject(error).message}`;
  }
  throw new AbpError('INVALID_PARAMS', `${member} of ${name} ${why} (docs/errors.md#schemas)`);
}
