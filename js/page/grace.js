/**
 * `limits.grace` is the one number for "long enough" after a cancel. Whoever waits that long hands
 * a part of it to what is below: a worker of a pool, an app of others' making. So what is below
 * gives up first, and what became of it is still heard above. The part is what an app has of its
 * agent's grace by default: three fifths.
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
 * What an endpoint's grace period leaves to what is below, in ms.
 * @param {import('../driver/abp-boundary.js').Role} role
 * @param {Limits} [limits]
 */
export const partOf = (role, limits) =>
  Math.max(1, Math.floor((graceOf(role, limits) * DEFAULT_APP_GRACE_MS) / DEFAULT_AGENT_GRACE_MS));

/**
 * How long the agent of an app waits, in ms: an agent's default, or more where that is not the
 * whole of the app's part.
 * @param {Limits} [limits] the app's
 */
export const wholeOf = (limits) =>
  Math.max(
    DEFAULT_AGENT_GRACE_MS,
    Math.ceil((graceOf(APP, limits) * DEFAULT_AGENT_GRACE_MS) / DEFAULT_APP_GRACE_MS),
  );
