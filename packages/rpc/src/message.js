/** Makes and reads JSON-RPC's messages, and batches of them. */
import { getOwn, isObject, reasonText, warn } from 'abp-bridge/driver';
import { INTERNAL_ERROR } from './errors.js';
import * as rpc from './rpc-boundary.js';

/** A message with one of these is a response, and is never answered, even if it is malformed. */
const ANSWERS = ['id', 'result', 'error'];

/**
 * Reads a message. Returns its members, or an error if it is not a message. Throws if a getter
 * throws.
 * @param {unknown} received
 * @param {boolean} unversioned whether `jsonrpc` may be missing
 * @returns {rpc.RpcError | { id: unknown, method: string, params: unknown,
 *   answer?: import('./made-call.js').Answer }}
 */
export function readMessage(received, unversioned) {
  if (Array.isArray(received)) return rpc.RPC_BATCH;
  if (getOwn(received, 'jsonrpc') !== '2.0' && !unversioned) return rpc.RPC_INVALID_REQUEST;
  const id = getOwn(received, 'id');
  const method = getOwn(received, 'method');
  const params = getOwn(received, 'params');
  if (typeof method === 'string') return { id, method, params };
  const result = getOwn(received, 'result');
  const error = getOwn(received, 'error');
  if (method !== undefined || !isObject(received)) return rpc.RPC_INVALID_REQUEST;
  if (!ANSWERS.some((key) => Object.hasOwn(received, key))) return rpc.RPC_INVALID_REQUEST;
  const fine = Object.hasOwn(received, 'result') && (error ?? null) === null;
  return { id, method: '', params, answer: fine ? { result } : { error } };
}

/**
 * A request or a notification.
 * @param {{ id?: number, method: string, params: unknown }} says
 */
export const message = ({ id, method, params }) => ({
  jsonrpc: '2.0',
  ...(id !== undefined && { id }),
  method,
  ...(params !== undefined && { params }),
});

/**
 * True if something is a message, or a batch of them: a window has other traffic, too.
 * @param {unknown} data
 */
export const isMessage = (data) =>
  getOwn(Array.isArray(data) ? data[0] : data, 'jsonrpc') === '2.0';

/** Messages that a batch may have. */
export const MAX_BATCH = 1024;

/**
 * Collects the answers to a batch of requests, which are sent together. One version of MCP has
 * batches.
 */
export class Batch {
  /**
   * Those that may still add an answer: its calls and, while it is being read, itself.
   * @type {Set<unknown>}
   */
  open = new Set([this]);
  /** @type {object[]} */
  answers = [];
  #send;

  /** @param {(answers: object[]) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /**
   * Call this when a call has its answer, or will not get one; or when the batch was read.
   * @param {unknown} call
   * @param {object} [answer]
   */
  ended(call, answer) {
    if (!this.open.delete(call)) return;
    if (answer) this.answers.push(answer);
    if (!this.open.size && this.answers.length) this.#send(this.answers);
  }
}

/**
 * Handles a message that could not be sent although `post` had accepted it: answers a request in
 * the other side's place, and replaces an answer by an error.
 * @param {unknown} message
 * @param {unknown} cause
 * @param {import('abp-bridge/driver').Receiver
 *   & import('abp-bridge/driver').Transport} channel
 */
export function answerUnsent(message, cause, channel) {
  const id = getOwn(message, 'id');
  const why = `The message cannot be sent: ${reasonText(cause)}`;
  const answer = { jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message: why } };
  if (typeof id !== 'string' && typeof id !== 'number') warn(why);
  else if (getOwn(message, 'method') === undefined) channel.post(answer);
  else queueMicrotask(() => channel.receive(answer));
}
