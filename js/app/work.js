/** What the handler of an app's call does, from its start until its response. */
import * as abp from '../driver/abp-boundary.js';
import { due, inAnotherTurn } from '../common/breathe.js';
import { tell } from '../common/development.js';
import { isStream, markedTransfer, transferOf } from '../common/transfer.js';
import { getOwn } from '../common/values.js';
import { OUTCOME, readResponse } from '../wire/messages.js';
import { NOTHING } from '../session/call.js';
import { aboutOf, contextOf } from './context.js';

/** @import { Call } from '../session/call.js' */

/** Runs the handler of a call. @param {Call} call */
export function start(call) {
  const { callee, side } = call.endpoint;
  call.started = Math.round(performance.now());
  try {
    const context = contextOf(call);
    const isOrdinary = call.options.idempotencyKey === undefined && call.name !== OUTCOME;
    const value =
      isOrdinary || !side.recall
        ? callee.run?.(call, context)
        : side.recall(call, () => callee.run?.(call, context));
    // As long as it is pending, an async function that awaits it would keep four times as much.
    const { then } = Promise.prototype; // A promise of a handler's may have another one, which calls back twice.
    void then.call(Promise.resolve(value), returned.bind(call), threw.bind(call));
  } catch (error) {
    threw.call(call, error);
  }
}

/** @this {Call} @param {any} error */
function threw(error) {
  void conclude(this, this.thrown(error), error);
}

/** @this {Call} @param {any} value */
function returned(value) {
  try {
    const isReady = !isStream(value) && !(this.endpoint.side.prepare && !this.resolve);
    const ended = isReady ? give(this, value) : prepared(this, value);
    ended?.catch(threw.bind(this));
  } catch (error) {
    threw.call(this, error);
  }
}

/** Preparing is part of the call, which can still be cancelled. @param {Call} call @param {any} value */
async function prepared(call, value) {
  if (isStream(value)) value = await call.endpoint.sendStream(call, value);
  const response = readResponse(value) ?? { success: true, data: value };
  const { prepare } = call.endpoint.side;
  if (prepare && !call.resolve && response.success)
    response.data = await prepare(response.data, call);
  return give(call, value, response);
}

/** @param {Call} call @param {any} value that was returned @param {any} [response] that is made of it */
function give(call, value, response = readResponse(value) ?? { success: true, data: value }) {
  if (!response.success) return conclude(call, response, value);
  const transfer = markedTransfer(value) || transferOf(response.data);
  if (transfer) call.rare.transfer = transfer;
  return settle(call, response);
}

/**
 * Its handler has returned, or thrown, a response without success. Where that says that what it called still runs, and will say what
 * became of it, its caller is told so now, and the core then.
 * @param {Call} call
 * @param {any} response
 * @param {any} told what was returned or thrown, which may have `settled`
 */
async function conclude(call, response, told) {
  if (getOwn(response.metadata, 'outcome') === 'running') {
    call.rare.follows = true;
    response = await import('./goes-on.js').then(
      ({ goOn }) => goOn(call, response, told),
      () => response,
    );
  }
  return settle(call, response);
}

/** @param {Call} call @param {any} response what its handler has given, in the end */
function settle(call, response) {
  if (call.hasEnded) return;
  call.given = response;
  const { above, reports, runsOn } = call.seldom;
  reports?.flush();
  const said = saidOf(call);
  if (said.report !== undefined || (call.aborted && said.progress))
    call.endpoint.side.keep?.(isPassedOn(call) ? aboutOf(call) : call.callId, said);
  if (above && runsOn) above.rare.late = said.report;
  call.finish(response);
}

/** What was said of its work last: by its handler, in the response that it passes on, or by an earlier run. @param {Call} call */
function saidOf({ seldom, given: { metadata } = NOTHING }) {
  const { report = metadata?.report ?? seldom.earlier, progress = metadata?.progress } = seldom;
  return { report, progress };
}

/** Whether those above it were answered that it still runs: their caller asks for it in their place. @param {Call} call @returns {boolean} */
const isPassedOn = ({ seldom: { above } }) =>
  !above || (above.seldom.follows === true && isPassedOn(above));

/** Ms without a turn from which on a handler may have blocked its thread. */
const LONG = 250;

/**
 * Completes the response of a call.
 * @param {Call} call
 * @param {any} response
 * @param {abp.Outcome} outcome
 * @param {abp.Fate} fate
 */
export function complete(call, response, outcome, fate) {
  if (fate === abp.FATE_RUNNING) call.rare.runsOn = true;
  /** @type {Record<string, unknown>} */
  const metadata = {};
  if (outcome === abp.COMPLETED || fate === abp.FATE_FINISHED || fate === abp.FATE_FAILED) {
    const now = Math.round(performance.now());
    metadata.duration = now - call.started;
    const { endpoint, name } = call;
    // A message that was read meanwhile, or a breath, was a turn. A cancel that was there is read in this one.
    if (now - Math.max(endpoint.machine.tickedAt, due) > LONG) {
      endpoint.late = () => tell((dev) => dev.warnOfHandler(name, 'deaf'));
      inAnotherTurn(() => (endpoint.late = undefined));
    }
  }
  Object.assign(metadata, response.metadata);
  if (response.success) {
    const cached = call.given.metadata?.cached;
    if (cached !== undefined) metadata.cached = cached;
    if (call.seldom.collected) metadata.collected = true;
  } else {
    const { report, progress } = saidOf(call);
    if (report !== undefined) metadata.report = report;
    if (progress) metadata.progress = progress;
  }
  response.metadata = metadata;
}
