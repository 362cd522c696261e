/** Validation of params. The validator needs no `eval`, and is only loaded once a capability has a schema. */
import { AbpError } from './errors.js';

/** @type {Promise<typeof import('@cfworker/json-schema')> | undefined} */
let library;

/**
 * @param {object} schema a JSON Schema, draft 2020-12
 * @returns {Promise<(params: unknown) => void>} throws INVALID_PARAMS, which says where and why
 */
export async function validatorFor(schema) {
  library ??= import('@cfworker/json-schema');
  const { Validator } = await library;
  const validator = new Validator(schema, '2020-12', false);
  return (params) => {
    const { valid, errors } = validator.validate(params);
    if (valid) return;
    // The outermost errors only say that there are inner ones.
    const details = errors
      .filter(({ keyword }) => keyword !== 'properties' && keyword !== 'items')
      .map(({ instanceLocation, keyword, error }) => ({
        path: instanceLocation.replace(/^#/, 'params'),
        keyword,
        message: error,
      }));
    const first = details[0] ?? { path: 'params', message: 'does not match the schema' };
    throw new AbpError('INVALID_PARAMS', `${first.path}: ${first.message}`, { details });
  };
}
