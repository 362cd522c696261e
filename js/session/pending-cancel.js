/** Cancelling a call by its id. Loaded with the first one: a call is cancelled by its signal. */
import * as abp from '../driver/abp-boundary.js';
import { reasonText } from '../common/errors.js';
import { copyRecord, getOwn, isObject } from '../common/values.js';
import { readError } from '../wire/responses.js';
import { CANCELS, RECORD } from './records.js';

/** A `capabilities/cancel` that waits for its answer. */
export class PendingCancel {
  /** @type {abp.Handle} */
  handle = 0;
  [RECORD] = CANCELS;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {(response: unknown) => void} resolve
   * @param {string} callId
   */
  constructor(endpoint, resolve, callId) {
    this.endpoint = endpoint;
    this.resolve = resolve;
    this.callId = callId;
  }

  /**
   * @param {abp.Outcome} outcome
   * @param {unknown} message
   */
  settle(outcome, message) {
    const { callId } = this;
    const payload = getOwn(message, 'payload');
    if (outcome === abp.COMPLETED) {
      this.resolve({ ...readCancelAnswer(payload), callId, cancelled: false });
    } else if (outcome === abp.CANCELLED && payload) {
      this.resolve({ ...readCancelAnswer(payload), callId, cancelled: true });
    } else this.fail(this.endpoint.ended(outcome));
  }

  /**
   * There was no answer: the call may or may not have been stopped.
   * @param {{ error: import('../common/errors.js').ErrorObject }} response
   */
  fail({ error }) {
    this.resolve({ callId: this.callId, cancelled: false, reason: error.message, error });
  }
}

/**
 * Asks for whatever call has this id to stop.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} callId
 * @param {unknown} reason
 * @param {(response: any) => void} resolve gets the protocol's answer
 */
export function cancelById(endpoint, callId, reason, resolve) {
  const { core } = endpoint;
  endpoint.begin(new PendingCancel(endpoint, resolve, callId), 0, (x, pointer) => {
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
