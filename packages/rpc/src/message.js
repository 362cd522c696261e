/** Makes JSON-RPC messages, and takes received ones apart. */
import { getOwn, isObject } from '../../../js/common/values.js';
import * as rpc from './rpc-boundary.js';

/** A message with one of these is a response, and is never answered, even if it is malformed. */
const ANSWERS = ['id', 'result', 'error'];

/**
 * Reads a message. Returns what it says, or an error if it is not a message. Throws if a getter throws.
 * @param {unknown} received
 * @param {boolean} unversioned whether `jsonrpc` may be missing
 * @returns {rpc.RpcError | { id: unknown, method: string, params: unknown, answer?: import('./pending-request.js').Answer }}
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

/** Whether a token for progress can stand among params. @param {unknown} params */
export const canHoldToken = (params) =>
  typeof params === 'object' && params !== null && !Array.isArray(params);

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
