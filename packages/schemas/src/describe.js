/**
 * What agents are told of a capability, whether they can be told, and what checks its params and results.
 *
 * How it is made: this is called when a capability is given to an app. Schemas of other libraries say themselves as JSON Schema
 * (`json-schema.js`). If there is something to check, `checked.js` is loaded, and until then a call waits before it begins (the core
 * knows: js/app/waits.js). JSON Schemas are checked by a library that `schema.js` stands around; others by themselves. `types.ts` says the
 * same of values to TypeScript.
 */
import { mistyped } from '../../../js/common/check-options.js';
import { loadOnce, loadPart } from '../../../js/common/errors.js';
import { isRecord } from '../../../js/common/values.js';
import { beginAfter } from '../../../js/app/waits.js';
import { jsonSchemaOf } from './json-schema.js';
import { requireJson } from './require-json.js';

/** @import { Entry, Requirement } from '../../../js/app/registry.js' */

/** Checks of schemas: none, or all values are accepted. @param {unknown} schema */
const acceptsAll = (schema) => schema === undefined || schema === true;

/**
 * Puts JSON Schemas in place of a capability's schemas, and throws unless all that is shown of it can stand in a handshake. If there are
 * schemas, its calls are checked by them.
 * @param {string} name
 * @param {Entry} entry with its schemas as they were given
 * @param {readonly (keyof Entry)[]} shown the members that agents may see, besides its requirements
 * @throws {AbpError} INVALID_PARAMS
 */
export function describe(name, entry, shown) {
  const what = `capability ${name}`;
  const given = { ...entry };
  for (const member of /** @type {const} */ (['inputSchema', 'outputSchema']))
    entry[member] = jsonSchemaOf(name, member, given[member]);
  const requirements = /** @type {Requirement[]} */ (entry.requirements ?? []);
  if (!Array.isArray(requirements) || !requirements.every(isRecord))
    throw mistyped(what, 'requirements', 'a list of objects');
  for (const key of shown) requireJson(what, entry[key], key);
  requireJson(
    what,
    requirements.map(({ met: _met, ...rest }) => rest),
    'requirements',
  );
  if (acceptsAll(given.inputSchema) && acceptsAll(given.outputSchema)) return;
  const checking = loadOnce(async () => {
    const { checkedRun } = await loadPart(import('./checked.js'));
    return checkedRun(name, given);
  });
  entry.run = (params, context, call) =>
    beginAfter(call, checking(), (checked) => checked(params, context, call));
  // Not when the first call comes: a schema that cannot be used is reported at once. Calls get the error.
  checking().then(
    (checked) => (entry.run = checked),
    () => {},
  );
}
