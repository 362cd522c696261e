/** Validation of params, by a library that needs no `eval`. Loaded once a capability has a schema. */
import { Validator } from '@cfworker/json-schema';
import { AbpError } from './errors.js';

/**
 * @param {object} schema a JSON Schema, draft 2020-12
 * @returns {(params: unknown) => void} throws INVALID_PARAMS, which says where and why
 */
export function validatorFor(schema) {
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
