/** What the handler of an app's call does, from its start until its response. */
import * as abp from '../driver/abp-boundary.js';
import { safely } from '../common/errors.js';
import { isStream, markedTransfer, transferOf } from '../common/transfer.js';
import { getOwn } from '../common/values.js';
import { OUTCOME, readResponse } from '../wire/messages.js';
import { aboutOf, contextOf } from './context.js';

/** @import { Call } from '../session/call.js' */

/** Runs the handler of a call. @param {Call} call */
export async function start(call) {
  const { endpoint, name, rare } = call;
  const { callee, side } = endpoint;
  rare.started = performance.now();
  try {
    const context = contextOf(call);
    const isOrdinary = call.options.idempotencyKey === undefined && name !== OUTCOME;
    let value = await (isOrdinary || !side.recall
      ? callee.run?.(call, context)
      : side.recall(call, () => callee.run?.(call, context)));
    if (isStream(value)) value = await endpoint.sendStream(call, value);
    const whole = readResponse(value);
    if (whole?.success === false) return await conclude(call, whole, value);
    let data = whole ? whole.data : value;
    // Preparing is part of the call, which can still be cancelled.
    if (side.prepare && !call.resolve) data = await side.prepare(data, call);
    rare.transfer = (whole && markedTransfer(value)) || transferOf(data);
    return settle(call, { ...whole, success: true, data });
  } catch (error) {
    return conclude(call, call.thrown(error), error);
  }
}

/**
 * Its handler has returned, or thrown, a response without success. Where that says that what it called still runs, and will say what
 * became of it, its caller is told so now, and the core then.
 * @param {Call} call
 * @param {any} response
 * @param {any} told what was returned or thrown, which may have `settled`
 */
async function conclude(call, response, told) {
  const { metadata } = response;
  if (getOwn(metadata, 'outcome') !== 'running') return settle(call, response);
  const { rare } = call;
  rare.follows = true;
  // The core knows a call to this app by itself.
  const settled = safely(() => told.settled);
  if (!settled) {
    rare.report ??= rare.late;
    return settle(call, response);
  }
  call.given = response;
  call.tell((x, pointer, handle) => x.goes_on(pointer, handle));
  const became = await Promise.resolve(settled)
    .then(({ report, outcome }) => ({ report, outcome }))
    .catch(() => undefined);
  rare.report ??= became?.report;
  const outcome = became?.outcome ?? 'unknown';
  return settle(call, { ...response, cancelled: true, metadata: { ...metadata, outcome } });
}

/** @param {Call} call @param {any} response what its handler has given, in the end */
function settle(call, response) {
  if (call.hasEnded) return;
  call.given = response;
  const { above, runsOn } = call.rare;
  const said = saidOf(call);
  if (said.report !== undefined || (call.aborted && said.progress))
    call.endpoint.side.keep?.(isPassedOn(call) ? aboutOf(call) : call.callId, said);
  if (above && runsOn) above.rare.late = said.report;
  call.finish(response);
}

/** What was said of its work last: by its handler, in the response that it passes on, or by an earlier run. @param {Call} call */
function saidOf({ rare, given }) {
  const { report = given?.metadata?.report ?? rare.earlier, progress = given?.metadata?.progress } =
    rare;
  return { report, progress };
}

/** Whether those above it were answered that it still runs: their caller asks for it in their place. @param {Call} call @returns {boolean} */
const isPassedOn = ({ rare: { above } }) =>
  !above || (above.rare.follows === true && isPassedOn(above));

/**
 * Completes the response of a call.
 * @param {Call} call
 * @param {any} response
 * @param {abp.Outcome} outcome
 * @param {abp.Fate} fate
 */
export function complete(call, response, outcome, fate) {
  const { rare, given } = call;
  if (fate === abp.FATE_RUNNING) rare.runsOn = true;
  /** @type {Record<string, unknown>} */
  const metadata = {};
  if (outcome === abp.COMPLETED || fate === abp.FATE_FINISHED || fate === abp.FATE_FAILED)
    metadata.duration = Math.round(performance.now() - /** @type {number} */ (rare.started));
  Object.assign(metadata, response.metadata);
  if (response.success) {
    const cached = given.metadata?.cached;
    if (cached !== undefined) metadata.cached = cached;
    if (rare.collected) metadata.collected = true;
  } else {
    const { report, progress } = saidOf(call);
    if (report !== undefined) metadata.report = report;
    if (progress) metadata.progress = progress;
  }
  response.metadata = metadata;
}
