/** The life of a handler: from the start of its call until its result is passed to the core. */
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
    // An async function would keep four times as much memory. A handler's promise may have a
    // `then` of its own, which calls back twice.
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
 * The value itself if it is a response; else a response with it as data.
 * @param {unknown} value
 */
const responseOf = (value) =>
  (typeof value === 'object' && value && 'success' in value && readResponse(value)) || {
    success: true,
    data: value,
  };

/**
 * Makes a response of a handler's result: sends its stream, prepares its data, or waits for a call
 * that it passed on. All of that is part of the call, which can still be cancelled.
 * @param {Call} call
 * @param {any} value the returned or thrown value
 * @param {any} response its response, if known already
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
 * Passes the handler's response to the core.
 * @param {Call} call
 * @param {any} response
 * @param {any} value the returned or thrown value
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
 * Keeps a handler's report and progress, for later questions.
 * @param {Call} call
 */
function keepReports(call) {
  const { extra, endpoint, aborted } = call;
  const { parent, reports, answeredEarly } = extra;
  reports?.flush();
  const last = lastReportsOf(call);
  const connection = /** @type {import('./connection.js').Connection} */ (endpoint.owner);
  if (last.report !== undefined || (aborted && last.progress))
    connection.keep(isPassedOn(call) ? aboutOf(call) : call.callId, last);
  if (parent && answeredEarly) parent.ensureExtra().lateReport = last.report;
}

/**
 * The last report and progress of a call: from its handler, from the response that it passes on, or
 * from an earlier run.
 * @param {Call} call
 */
function lastReportsOf({ extra, given: { metadata } = EMPTY }) {
  const { report = metadata?.report ?? extra.earlier, progress = metadata?.progress } = extra;
  return { report, progress };
}

/**
 * True if all calls above it were answered as still running: then their caller asks about it.
 * @param {Call} call
 * @returns {boolean}
 */
const isPassedOn = ({ extra: { parent } }) =>
  !parent || (parent.extra.goesOn === true && isPassedOn(parent));

/** A handler may have blocked its thread after this long without a turn, in ms. */
const LONG = 250;

/**
 * Completes the response of a received call.
 * @param {Call} call
 * @param {any} response
 * @param {abp.Outcome} [outcome] absent for a question of the app
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
    // Reading a message, or `breathe`, was a turn. A cancel that waits is read in this one.
    if (now - Math.max(endpoint.now, due) > LONG) listenForCancel(call);
  }
  Object.assign(metadata, response.metadata);
  if (response.success) {
    const cached = given.metadata?.cached;
    if (cached !== undefined) metadata.cached = cached;
    if (extra.collected) metadata.collected = true;
  } else {
    const { report, progress } = lastReportsOf(call);
    if (report !== undefined) metadata.report = report;
    if (progress) metadata.progress = progress;
  }
  response.metadata = metadata;
  if (fate === abp.FATE_RUNNING) answeredEarly(call);
}

/**
 * Notes that a call's caller was answered that it still runs, and warns if its handler is to blame.
 * @param {Call} call
 */
function answeredEarly(call) {
  const { endpoint, name, given } = call;
  const extra = call.ensureExtra();
  extra.answeredEarly = true;
  // No warning if its handler has ended or answered, or if the session has ended: then there was no
  // wait.
  if (!extra.onStop && !given && endpoint.ready && !call.hasEnded)
    tell((dev) => dev.warnOfHandler(name, 'busy'));
}

/**
 * Warns if a cancel waits because a handler has blocked its thread.
 * @param {Call} call
 */
function listenForCancel({ endpoint, name }) {
  endpoint.late = () => tell((dev) => dev.warnOfHandler(name, 'deaf'));
  inAnotherTurn(() => (endpoint.late = undefined));
}
