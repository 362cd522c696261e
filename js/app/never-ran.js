/** The responses to calls that reached their capability and not its handler. */
import { AbpError, toErrorObject } from '../common/errors.js';

/** @param {unknown} error why */
export const neverRan = (error) => ({
  success: /** @type {const} */ (false),
  error: toErrorObject(error),
  metadata: { outcome: /** @type {const} */ ('unstarted') },
});

/** Of a call whose capability was removed while it waited for its turn. @param {string} name */
export const removed = (name) =>
  neverRan(new AbpError('UNKNOWN_CAPABILITY', `Unknown capability: ${name}`));
