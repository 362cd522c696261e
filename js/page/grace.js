/**
 * `limits.grace` is how long to wait after a cancel. A side that waits for a lower one, such as a
 * worker of a pool or a foreign app, gives it only a part of that time. So the lower side gives up
 * first, and its outcome still arrives in time. The part is three fifths, the ratio of an app's
 * default to an agent's.
 */
import { APP, DEFAULT_AGENT_GRACE_MS, DEFAULT_APP_GRACE_MS } from '../driver/abp-boundary.js';
import { limitOf } from '../common/values.js';

/** @typedef {{ grace?: number }} Limits */

/**
 * @param {import('../driver/abp-boundary.js').Role} role
 * @param {Limits} [limits]
 */
const graceOf = (role, limits) =>
  limitOf(limits?.grace) || (role === APP ? DEFAULT_APP_GRACE_MS : DEFAULT_AGENT_GRACE_MS);

/**
 * The part of an endpoint's grace period for the lower side, in ms.
 * @param {import('../driver/abp-boundary.js').Role} role
 * @param {Limits} [limits]
 */
export const partOf = (role, limits) =>
  Math.max(1, Math.floor((graceOf(role, limits) * DEFAULT_APP_GRACE_MS) / DEFAULT_AGENT_GRACE_MS));

/**
 * How long the agent of a foreign app waits, in ms: an agent's default, or more if the app's grace
 * period needs it.
 * @param {Limits} [limits] the app's
 */
export const wholeOf = (limits) =>
  Math.max(
    DEFAULT_AGENT_GRACE_MS,
    Math.ceil((graceOf(APP, limits) * DEFAULT_AGENT_GRACE_MS) / DEFAULT_APP_GRACE_MS),
  );
