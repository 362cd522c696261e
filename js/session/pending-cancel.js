/** Cancelling a call by its id. A call of one's own is cancelled by its signal. */
import * as abp from '../driver/abp-boundary.js';
import { reasonText } from '../common/errors.js';
import { copyRecord, isObject } from '../common/values.js';
import { readError } from '../wire/responses.js';

/** A `capabilities/cancel` that waits for its answer. */
export class PendingCancel {
  /** @type {abp.Handle} */
  handle = 0;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {(response: any) => void} answerTo
   * @param {string} callId
   */
  constructor(endpoint, answerTo, callId) {
    this.endpoint = endpoint;
    this.answerTo = answerTo;
    this.callId = callId;
  }

  /**
   * @param {abp.Outcome} outcome
   * @param {{ payload?: unknown }} [context] its answer
   */
  settle(outcome, context) {
    const { callId, endpoint } = this;
    const cancelled = outcome === abp.CANCELLED;
    if (context?.payload && (cancelled || outcome === abp.COMPLETED))
      return this.answerTo({ ...readCancelAnswer(context.payload), callId, cancelled });
    return this.fail(
      endpoint.core.response(abp.SETTLE, outcome, abp.FATE_UNKNOWN, {
        reason: endpoint.whyLost(undefined),
      }),
    );
  }

  /**
   * There was no answer: the call may or may not have been stopped.
   * @param {{ error: import('../common/errors.js').ErrorObject }} response
   */
  fail({ error }) {
    this.answerTo({ callId: this.callId, cancelled: false, reason: error.message, error });
  }
}

/**
 * Asks for whatever call has this id to stop.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} callId
 * @param {unknown} reason
 * @param {(response: any) => void} answerTo gets the protocol's answer
 */
export function cancelById(endpoint, callId, reason, answerTo) {
  const { core } = endpoint;
  endpoint.begin(new PendingCancel(endpoint, answerTo, callId), 0, (x, pointer) => {
    const length = core.writeId(callId);
    return x.cancel_by_id(pointer, length, core.writeReason(reasonText(reason), length));
  });
}

/**
 * Reads the answer to a cancel. The published form has no member for an error, so some apps put `code` and `message`
 * beside the other members.
 * @param {unknown} answer what the app sent
 * @returns {{ reason?: string, error?: import('../common/errors.js').ErrorObject, [more: string]: unknown }}
 */
function readCancelAnswer(answer) {
  const read = copyRecord(answer);
  const { code, message = read.reason, retryable } = read;
  if (typeof read.reason !== 'string') delete read.reason;
  if (isObject(read.error)) read.error = readError(read.error);
  else if (typeof code === 'string') read.error = readError({ code, message, retryable });
  else delete read.error;
  return read;
}
