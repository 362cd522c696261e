/** What agents are told of a capability, and whether they can be told. */
import { AbpError } from '../../../js/common/errors.js';
import { isRecord } from '../../../js/common/values.js';
import { jsonSchemaOf } from './json-schema.js';
import { requireJson } from './require-json.js';

/** @import { Entry, Requirement } from '../../../js/app/registry.js' */

/**
 * Puts JSON Schemas in place of a capability's schemas, and throws unless all that is shown of it can stand in a handshake.
 * @param {string} name
 * @param {Entry} entry with its schemas as they were given
 * @param {readonly (keyof Entry)[]} shown the members that agents may see, besides its requirements
 * @throws {AbpError} INVALID_PARAMS
 */
export function describe(name, entry, shown) {
  const what = `capability ${name}`;
  entry.inputSchema = jsonSchemaOf(name, 'inputSchema', entry.inputSchema);
  entry.outputSchema = jsonSchemaOf(name, 'outputSchema', entry.outputSchema);
  const requirements = /** @type {Requirement[]} */ (entry.requirements ?? []);
  if (!Array.isArray(requirements) || !requirements.every(isRecord))
    throw new AbpError('INVALID_PARAMS', `requirements of ${what} must be a list of objects`);
  for (const key of shown) requireJson(what, entry[key], key);
  requirements.forEach(({ met: _met, ...rest }, i) => requireJson(what, rest, `requirements.${i}`));
}
