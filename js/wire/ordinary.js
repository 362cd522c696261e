/**
 * The messages of an ordinary call, as objects: a call with only a name, params and a timeout, and
 * its data. Converting these to text would double their cost, so they are read and written here.
 * The core does all other messages, and defines what these mean: src/wire_abp_data.c. Their words
 * are generated from there.
 */
import * as abp from '../driver/abp-boundary.js';
import { getOwn, isRecord } from '../common/values.js';

/** The types of messages that carry a response, by the role of the sender. */
const RESPONSE_TYPES = [abp.TYPE_ANSWER, abp.TYPE_CALL_RESULT];

/**
 * Reads an ordinary call, or data: the response of a successful call or question.
 * @param {abp.Role} role of the reader
 * @param {unknown} message as it arrived
 * @returns {{ id: string, payload: unknown, callId?: string, name?: unknown, timeout?: unknown }
 *   | undefined} undefined for anything else; a call has a `callId`
 */
export function readOrdinary(role, message) {
  const type = getOwn(message, 'type');
  const id = getOwn(message, 'id');
  const payload = getOwn(message, 'payload');
  if (typeof id !== 'string' || !isRecord(payload)) return undefined;
  if (type === RESPONSE_TYPES[1 - role]) {
    const isData = getOwn(payload, 'success') === true;
    const isMore = getOwn(payload, 'error') || getOwn(payload, 'cancelled');
    return isData && !isMore ? { id, payload } : undefined;
  }
  const name = getOwn(payload, 'capability');
  const options = getOwn(payload, 'options') ?? {};
  const isCall = role === abp.APP && type === abp.TYPE_CALL && isRecord(options);
  if (!isCall || typeof name !== 'string') return undefined;
  const { callId = getOwn(payload, 'callId'), timeout, ...more } = /** @type {any} */ (options);
  for (const _ in more) return undefined;
  return typeof callId === 'string' ? { id, payload, callId, name, timeout } : undefined;
}

/**
 * @param {string} type
 * @param {unknown} id
 * @param {unknown} payload
 */
const messageOf = (type, id, payload) => ({ type, id, timestamp: Date.now(), payload });

/**
 * @param {string} callId
 * @param {string} capability
 * @param {unknown} params
 */
export const callMessage = (callId, capability, params) =>
  messageOf(abp.TYPE_CALL, callId, { capability, params, options: { callId }, callId });

/**
 * @param {abp.Role} role of the responding side
 * @param {unknown} id of the call's message
 * @param {unknown} response
 */
export const responseMessage = (role, id, response) =>
  messageOf(RESPONSE_TYPES[role], id, response);
