/** The HTTP+JSON binding of 1.0, the client's side: what JSON-RPC would ask, as a method and a path, and its answers. */
import { AbpError } from '../common/errors.js';
import { getOwn } from '../common/values.js';
import { DIALECTS } from './dialects.js';

const { codes, methods } = DIALECTS['1.0'];

/**
 * A request of JSON-RPC as HTTP has it.
 * @param {{ method: string, params: any }} request
 * @returns {{ verb: string, path: string, body?: object }} the path is to be put after the interface's URL
 */
export function restRequest({ method, params }) {
  const { id, ...rest } = params;
  // A path without it would name something else.
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

/** An answer as JSON-RPC would have given it. @param {any} body */
export function restResponse(body) {
  const error = getOwn(body, 'error');
  if (!error) return { result: body };
  const data = getOwn(error, 'details');
  const reason = getOwn(getOwn(data, '0'), 'reason');
  // Its own code is HTTP's status, which several errors share.
  const code = getOwn(codes, reason) ?? getOwn(error, 'code');
  return { error: { code, message: getOwn(error, 'message'), data } };
}
