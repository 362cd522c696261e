/** The answer of the protocol's `supports`. Loaded on demand; it does not depend on either side. */

/** Requirements of a capability that are read; the rest are ignored. */
const MAX_REQUIREMENTS = 64;

/**
 * @param {any} capability as its app described it; undefined if it did not
 */
export function supportOf(capability) {
  if (!capability) return { supported: false, available: false, reason: 'Unknown capability' };
  const { available = true, requirements, features, alternatives } = capability;
  const listed = Array.isArray(requirements) ? requirements.slice(0, MAX_REQUIREMENTS) : [];
  const unmet = listed.find((requirement) => requirement?.met === false);
  const reason = unmet?.description;
  return {
    supported: true,
    available: available !== false && !unmet,
    ...(unmet && { reason: typeof reason === 'string' ? reason : 'A requirement is not met' }),
    ...(requirements && { requirements }),
    ...(features && { features }),
    ...(alternatives && { alternatives }),
  };
}
