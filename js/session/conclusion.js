/**
 * How a call ends whose handler has returned a response of the protocol that is no success, or has told that what it called still
 * runs. Loaded with the first.
 */
import * as abp from '../driver/abp-boundary.js';
import { fateIn, outcomeOf } from '../wire/messages.js';
import { readResponse } from '../wire/responses.js';

/** @import { Response } from '../wire/messages.js' */

/**
 * How it ends: `fate` is what became of its work, where that was told, and `reason` why it was cancelled.
 * @typedef {{ outcome: abp.Outcome, response?: Response, fate?: abp.Fate, reason?: string }} Conclusion
 */

/**
 * Reads what the handler has returned or thrown.
 * @param {any} told a response or an error, which may have `settled`
 * @param {Response} response what is answered, as it was given
 * @param {object} how
 * @param {boolean} [how.foreign] whether its app is not ours: what passes calls on has read its responses
 * @param {{ report?: unknown, late?: unknown, follows?: boolean }} how.call what is kept of the call
 * @param {(response: Response) => void} how.goOn answers that it still runs
 * @returns {Promise<Conclusion>} never rejects. Of a call to another app that still runs it resolves when that has ended; the core
 *   knows one to this app by itself
 */
export async function conclude(told, response, { foreign, call, goOn }) {
  const plain = foreign ? response : readResponse(response);
  const reason = plain.error?.message;
  let fate = fateIn(plain.metadata);
  const how = outcomeOf(plain);
  if (fate === abp.FATE_RUNNING) {
    call.follows = true;
    const { settled } = told;
    if (settled) {
      goOn(plain);
      const became = await Promise.resolve(settled).catch(() => undefined);
      fate = fateIn(became) || abp.FATE_UNKNOWN;
      call.report ??= became?.report;
    } else {
      call.report ??= call.late;
    }
    return { outcome: abp.CANCELLED, response: plain, fate, reason };
  }
  if (how === abp.CANCELLED) {
    const outcome = fate === abp.FATE_UNKNOWN ? abp.UNKNOWN : how;
    return { outcome, response: plain.error && plain, fate, reason };
  }
  if (how === abp.TIMED_OUT) fate ||= foreign ? abp.FATE_UNKNOWN : abp.FATE_STOPPED;
  return { outcome: abp.FAILED, response: plain, fate };
}
