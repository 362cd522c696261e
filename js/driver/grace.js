/**
 * `limits.grace` is the one number for "long enough" after a cancel. Whoever waits that long hands a part of it to what is below: a
 * worker of a pool, an app of others' making. So what is below gives up first, and what became of it is still heard above. The part
 * is what an app has of its agent's grace by default: three fifths.
 */
import { APP, DEFAULT_AGENT_GRACE_MS, DEFAULT_APP_GRACE_MS } from './abp-boundary.js';
import { limitOf } from '../common/values.js';

const PART = DEFAULT_APP_GRACE_MS / DEFAULT_AGENT_GRACE_MS;
/** The part of what a signal stops, in ms. Copies of this library share the symbol. */
const GRACE = Symbol.for('abp-bridge.grace');

/** How long an endpoint waits after a cancel, in ms. @param {import('./abp-boundary.js').Role} role @param {{ grace?: number }} [limits] */
export const graceOf = (role, limits) =>
  limitOf(limits?.grace) || (role === APP ? DEFAULT_APP_GRACE_MS : DEFAULT_AGENT_GRACE_MS);

/** What a grace period leaves to what is below, in ms. @param {number} grace ms */
export const partOf = (grace) => Math.max(1, Math.floor(grace * PART));

/** The grace period of whoever waits for what has this one. @param {number} part ms */
export const wholeOf = (part) => Math.ceil(part / PART);

/** Makes a controller whose signal hands down a part. @param {number} grace ms that its owner waits for what it stops */
export function controllerWithin(grace) {
  const controller = new AbortController();
  /** @type {any} */ (controller.signal)[GRACE] = partOf(grace);
  return controller;
}

/** The part of what a signal stops, in ms. @param {any} signal nobody's, or one of elsewhere, counts as that of an app's call */
export const partFor = (signal) => signal?.[GRACE] ?? partOf(DEFAULT_APP_GRACE_MS);
