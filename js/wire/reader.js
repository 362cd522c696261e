/** Reads what the other side says: messages, and the entries of frames, which mean the same. */
import { getOwn, milliseconds, textOf } from '../common/values.js';
import * as FrameKind from './frame-kinds.js';
import { CALL, ELICITATION, countOf, outcomeOf, readAmount } from './messages.js';
import * as abp from '../driver/abp-boundary.js';

/** @import { Request } from './messages.js' */

/**
 * Takes what was read. A key names a call: in a frame its number or its id, in a message its id. It may be anything else in a
 * frame, and undefined in a message.
 * @template T
 * @typedef {object} Taker
 * @property {(request: Request, message?: unknown) => T} request `message` is the one that it arrived in, unless that was a
 *   frame
 * @property {(key: unknown, outcome: abp.Outcome, response: unknown) => T} response
 * @property {(key: unknown, info: unknown) => T} progress
 * @property {(key: unknown, reason: unknown) => T} cancel of a frame; as a message, it is a control message
 * @property {(key: unknown, size: number, chunk: unknown) => T} chunk
 * @property {(key: unknown, amount: [number, number]) => T} credit chunks and bytes
 * @property {(event: unknown, data: unknown) => T} notification
 * @property {(message: any) => T} message an entry that is a whole message
 * @property {(message: unknown) => T} control any other message
 * @property {() => T} malformed
 */

/**
 * Reads a message.
 * @template T
 * @param {unknown} message any object
 * @param {boolean} fromAgent whether an agent says it, and not an app
 * @param {Taker<T>} to
 */
export function readMessage(message, fromAgent, to) {
  const type = getOwn(message, 'type');
  const payload = getOwn(message, 'payload');
  const id = textOf(getOwn(message, 'id'));
  const asks = fromAgent ? CALL : ELICITATION;
  switch (type) {
    case asks.request:
      return to.request(asks.read(message), message);
    case 'bridge/chunk': {
      const size = countOf(getOwn(payload, 'size'));
      return to.chunk(textOf(getOwn(payload, 'callId')), size, getOwn(payload, 'chunk'));
    }
    case 'bridge/credit': {
      const amount = readAmount(getOwn(payload, 'chunks'), getOwn(payload, 'bytes'));
      return to.credit(textOf(getOwn(payload, 'callId')), amount);
    }
  }
  if (fromAgent) {
    if (type === ELICITATION.response) return to.response(id, outcomeOf(payload), payload);
    return to.control(message);
  }
  switch (type) {
    case CALL.response:
    case 'call-result':
      return to.response(id, outcomeOf(payload), payload);
    case 'progress':
      return to.progress(textOf(getOwn(payload, 'operationId')), payload);
    case 'notification':
      // One client library uses other names for the members.
      return to.notification(
        getOwn(payload, 'event') ?? getOwn(payload, 'method'),
        getOwn(payload, 'data') ?? getOwn(payload, 'params'),
      );
  }
  return to.control(message);
}

/**
 * Reads an entry of a frame. js/wire/frame-kinds.js says what the entries are.
 * @template T
 * @param {unknown} kind
 * @param {unknown} key
 * @param {unknown} a
 * @param {unknown} b
 * @param {Taker<T>} to
 */
export function readEntry(kind, key, a, b, to) {
  switch (kind) {
    case FrameKind.REQUEST:
      return to.request({ key, name: a, params: b ?? {}, timeout: 0, progress: false });
    case FrameKind.REQUEST_WITH: {
      const chunks = getOwn(b, '3');
      return to.request({
        key,
        name: a,
        params: getOwn(b, '0') ?? {},
        timeout: milliseconds(getOwn(b, '1')),
        progress: getOwn(b, '2') ?? false,
        window: chunks ? readAmount(chunks, getOwn(b, '4')) : undefined,
        input: getOwn(b, '5') === true,
        idempotencyKey: getOwn(b, '6'),
        about: getOwn(b, '5'),
      });
    }
    case FrameKind.VALUE:
      return to.response(key, abp.COMPLETED, {
        success: true,
        data: b,
        metadata: { duration: a },
      });
    case FrameKind.RESPONSE:
      return to.response(key, outcomeOf(b), b);
    case FrameKind.PROGRESS:
      return to.progress(key, b);
    case FrameKind.CANCEL:
      return to.cancel(key, a);
    case FrameKind.CHUNK:
      return to.chunk(key, countOf(a), b);
    case FrameKind.CREDIT:
      return to.credit(key, readAmount(a, b));
    case FrameKind.MESSAGE:
      return to.message(b);
  }
  return to.malformed();
}
