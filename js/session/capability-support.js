/** The answer of the protocol's `supports`. */
import { copyRecord, firstOf, getOwn } from '../common/values.js';

/** Requirements of a capability that are read; the rest are ignored. */
const MAX_REQUIREMENTS = 64;

/**
 * @param {unknown} capability as its app described it; none, if it did not
 */
export function supportOf(capability) {
  if (!capability) return { supported: false, available: false, reason: 'Unknown capability' };
  const { available = true, requirements, features, alternatives } = copyRecord(capability);
  const unmet = firstOf(requirements, MAX_REQUIREMENTS).find((r) => getOwn(r, 'met') === false);
  const reason = getOwn(unmet, 'description');
  return {
    supported: true,
    available: available !== false && !unmet,
    ...(unmet && { reason: typeof reason === 'string' ? reason : 'A requirement is not met' }),
    ...(requirements && { requirements }),
    ...(features && { features }),
    ...(alternatives && { alternatives }),
  };
}
