/** What the protocol's `supports` says. */
import { own } from './messages.js';

/**
 * @param {any} capability
 */
export function supportOf(capability) {
  if (!capability) return { supported: false, available: false, reason: 'Unknown capability' };
  const { available = true, requirements, features, alternatives } = capability;
  const unmet = Array.isArray(requirements) && requirements.find((r) => own(r, 'met') === false);
  return {
    supported: true,
    available: available !== false && !unmet,
    ...(unmet && { reason: unmet.description }),
    ...(requirements && { requirements }),
    ...(features && { features }),
    ...(alternatives && { alternatives }),
  };
}
