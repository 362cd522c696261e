/** The client's side of A2A 1.0's HTTP+JSON binding: translates JSON-RPC requests and responses. */
import { AbpError } from '../../../js/common/errors.js';
import { getOwn } from '../../../js/common/values.js';
import { DIALECTS } from './dialects.js';

const { codes, methods } = DIALECTS['1.0'];

/** @typedef {{ method: string, params: Record<string, any> }} RpcRequest of JSON-RPC */

/**
 * Translates a JSON-RPC request.
 * @param {RpcRequest} request
 * @returns {{ verb: string, path: string, body?: object }} the path is appended to the interface's URL
 */
export function restRequest({ method, params }) {
  const { tenant, ...about } = params;
  const plain = requestOf(method, about);
  return tenant ? { ...plain, path: `/${encodeURIComponent(tenant)}${plain.path}` } : plain;
}

/**
 * @param {string} method
 * @param {RpcRequest['params']} params
 * @returns {{ verb: string, path: string, body?: object }}
 */
function requestOf(method, params) {
  const { id, ...rest } = params;
  // Without an id the path would name the list of tasks.
  if (id === '') throw new AbpError('INVALID_PARAMS', 'Task ID is required');
  const task = `/tasks/${encodeURIComponent(id)}`;
  switch (method) {
    case methods.send:
      return { verb: 'POST', path: '/message:send', body: params };
    case methods.stream:
      return { verb: 'POST', path: '/message:stream', body: params };
    case methods.cancel:
      return { verb: 'POST', path: `${task}:cancel`, body: rest };
    case methods.resubscribe:
      return { verb: 'GET', path: `${task}:subscribe` };
    case methods.get:
      return { verb: 'GET', path: task + query(rest) };
    default:
      return { verb: 'GET', path: `/tasks${query(params)}` };
  }
}

/** @param {object} params */
function query(params) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined);
  return given.length ? `?${new URLSearchParams(given.map(([k, v]) => [k, String(v)]))}` : '';
}

/** Translates an answer into a JSON-RPC response. @param {unknown} body */
export function restResponse(body) {
  const error = getOwn(body, 'error');
  if (!error) return { result: body };
  const data = getOwn(error, 'details');
  const reason = getOwn(getOwn(data, '0'), 'reason');
  // The code in the body is HTTP's status, which several errors share.
  const known = typeof reason === 'string' ? getOwn(codes, reason) : undefined;
  const code = known ?? getOwn(error, 'code');
  return { error: { code, message: getOwn(error, 'message'), data } };
}
