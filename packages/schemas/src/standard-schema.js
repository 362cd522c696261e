/** Validates values by schemas of other libraries, those that follow Standard Schema. Loaded when a capability has one. */

/**
 * @param {import('./types.js').StandardSchema['~standard']} standard the schema's
 * @param {string} what the values are called: `params`
 * @returns {(value: unknown) => Promise<import('./schema.js').Checked>}
 */
export function standardCheckerFor(standard, what) {
  return async (value) => {
    const made = await standard.validate(value);
    if (!made.issues) return { value: made.value };
    const details = [...made.issues].map(({ path = [], message }) => ({
      path: [what, ...path.map(keyOf)].join('/'),
      keyword: standard.vendor,
      message,
    }));
    const [first = { path: what, message: 'does not match the schema' }] = details;
    return { value, problem: { message: `${first.path}: ${first.message}`, details } };
  };
}

/** @param {PropertyKey | { key: PropertyKey }} segment of a path */
const keyOf = (segment) => String(typeof segment === 'object' ? segment.key : segment);
