/**
 * The answer of the protocol's `supports`. Loaded when somebody asks, it imports nothing that its
 * side has.
 */

/** Requirements of a capability that are read; the rest are ignored. */
const MAX_REQUIREMENTS = 64;

/** @param {any} capability as its app described it; none, if it did not */
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
