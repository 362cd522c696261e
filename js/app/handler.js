/** The life of a handler: from the start of its call until the core is told what it gave. */
import * as abp from '../driver/abp-boundary.js';
import { due, inAnotherTurn } from '../common/breathe.js';
import { tell } from '../common/development.js';
import { isStream, markedTransfer, transferOf } from '../common/transfer.js';
import { EMPTY, getOwn } from '../common/values.js';
import { readResponse } from '../wire/messages.js';
import { aboutOf } from './context.js';

/** @import { Call } from '../session/call.js' */

/**
 * Runs the handler of a call.
 * @param {Call} call
 */
export function runHandler(call) {
  call.started ||= Math.round(performance.now());
  try {
    const { owner } = call.endpoint;
    const value = /** @type {import('./connection.js').Connection} */ (owner).answer(call);
    // As long as it is pending, an async function that awaits it would keep four times as much.
    // A promise of a handler's may have another one, which calls back twice.
    const { then } = Promise.prototype;
    void then.call(Promise.resolve(value), returned.bind(call), threw.bind(call));
  } catch (error) {
    threw.call(call, error);
  }
}

/**
 * @this {Call}
 * @param {any} value
 */
function returned(value) {
  try {
    const isReady = !isStream(value) && !(this.endpoint.prepare && !this.resolve);
    const response = isReady ? responseOf(value) : undefined;
    if (response?.success) settle(this, response, value);
    else conclude(this, value, response).catch(threw.bind(this));
  } catch (error) {
    threw.call(this, error);
  }
}

/**
 * @this {Call}
 * @param {any} error
 */
function threw(error) {
  void conclude(this, error, this.thrown(error));
}

/**
 * The response that a value is, or is the data of.
 * @param {unknown} value
 */
const responseOf = (value) =>
  (typeof value === 'object' && value && 'success' in value && readResponse(value)) || {
    success: true,
    data: value,
  };

/**
 * Does what it takes to make a response of what a handler gave: sends its stream, prepares its
 * data, waits for what it passed on. That is part of the call, which can still be cancelled.
 * @param {Call} call
 * @param {any} value what was returned or thrown
 * @param {any} response of it, if that is known
 */
async function conclude(call, value, response) {
  const { endpoint } = call;
  if (!response) {
    if (isStream(value)) value = await endpoint.sendStream(call, value);
    response = responseOf(value);
    if (response.success && endpoint.prepare && !call.resolve)
      response.data = await endpoint.prepare(response.data, call);
  }
  if (getOwn(response.metadata, 'outcome') === 'running') {
    call.ensureExtra().goesOn = true;
    response = await import('./goes-on.js').then(
      ({ goOn }) => goOn(call, response, value),
      () => response,
    );
  }
  settle(call, response, value);
}

/**
 * The handler has given its response.
 * @param {Call} call
 * @param {any} response
 * @param {any} value what was returned
 */
function settle(call, response, value) {
  if (!call.handle) return;
  call.given = response;
  const { success, data } = response;
  const transfer = success && ((data !== value && markedTransfer(value)) || transferOf(data));
  if (transfer) call.ensureExtra().transfer = transfer;
  const { report, progress, parent } = call.extra;
  if (report !== undefined || progress || parent || response.metadata) keepReports(call);
  call.finish(response);
}

/**
 * Keeps what a handler said of its work, for those who ask later.
 * @param {Call} call
 */
function keepReports(call) {
  const { extra, endpoint, aborted } = call;
  const { parent, reports, answeredEarly } = extra;
  reports?.flush();
  const said = saidOf(call);
  const connection = /** @type {import('./connection.js').Connection} */ (endpoint.owner);
  if (said.report !== undefined || (aborted && said.progress))
    connection.keep(isPassedOn(call) ? aboutOf(call) : call.callId, said);
  if (parent && answeredEarly) parent.ensureExtra().lateReport = said.report;
}

/**
 * What was said of its work last: by its handler, in the response that it passes on, or by an
 * earlier run.
 * @param {Call} call
 */
function saidOf({ extra, given: { metadata } = EMPTY }) {
  const { report = metadata?.report ?? extra.earlier, progress = metadata?.progress } = extra;
  return { report, progress };
}

/**
 * Whether those above it were answered that it still runs: their caller asks for it in their place.
 * @param {Call} call
 * @returns {boolean}
 */
const isPassedOn = ({ extra: { parent } }) =>
  !parent || (parent.extra.goesOn === true && isPassedOn(parent));

/** Ms without a turn from which on a handler may have blocked its thread. */
const LONG = 250;

/**
 * Completes the response of a call that was received.
 * @param {Call} call
 * @param {any} response
 * @param {abp.Outcome} [outcome] absent of a question that the app has asked
 * @param {abp.Fate} [fate]
 */
export function complete(call, response, outcome, fate) {
  if (outcome === undefined) return;
  const { endpoint, given, extra } = call;
  /** @type {Record<string, unknown>} */
  const metadata = {};
  if (outcome === abp.COMPLETED || fate === abp.FATE_FINISHED || fate === abp.FATE_FAILED) {
    const now = Math.round(performance.now());
    metadata.duration = now - call.started;
    // A message that was read meanwhile, or a breath, was a turn. A cancel that was there is read
    // in this one.
    if (now - Math.max(endpoint.now, due) > LONG) listenForCancel(call);
  }
  Object.assign(metadata, response.metadata);
  if (response.success) {
    const cached = given.metadata?.cached;
    if (cached !== undefined) metadata.cached = cached;
    if (extra.collected) metadata.collected = true;
  } else {
    const { report, progress } = saidOf(call);
    if (report !== undefined) metadata.report = report;
    if (progress) metadata.progress = progress;
  }
  response.metadata = metadata;
  if (fate === abp.FATE_RUNNING) answeredEarly(call);
}

/**
 * The caller of a call is told that it still runs.
 * @param {Call} call
 */
function answeredEarly(call) {
  const { endpoint, name, given } = call;
  const extra = call.ensureExtra();
  extra.answeredEarly = true;
  // Its handler has ended, or given an answer; where the session has ended, nothing was waited for.
  if (!extra.onStop && !given && endpoint.ready && !call.hasEnded)
    tell((dev) => dev.warnOfHandler(name, 'busy'));
}

/**
 * A handler has kept its thread for long: the console says so if a cancel waits.
 * @param {Call} call
 */
function listenForCancel({ endpoint, name }) {
  endpoint.late = () => tell((dev) => dev.warnOfHandler(name, 'deaf'));
  inAnotherTurn(() => (endpoint.late = undefined));
}
