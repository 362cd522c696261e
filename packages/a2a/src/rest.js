/**
 * The HTTP+JSON binding of A2A 1.0, at both ends: a method and a path for each JSON-RPC request, a
 * status and a body for its response. The paths are those of the `google.api.http` annotations in
 * the protocol's a2a.proto. A prefix (the path that the agent is mounted at, a tenant) is ignored.
 */
import { AbpError, getOwn } from 'abp-bridge/driver';
import { DIALECTS } from './dialects.js';

const { methods, codes } = DIALECTS['1.0'];
const CONFIGS = '/tasks/{taskId}/pushNotificationConfigs';

/**
 * Clients use the first route of a method. `{id}` stands for a text without a colon, `{+id}` may
 * contain colons.
 */
const ROUTES = /** @type {[verb: string, path: string, method: string][]} */ ([
  ['POST', '/message:send', methods.send],
  ['POST', '/message:stream', methods.stream],
  ['GET', '/tasks', methods.list],
  ['GET', '/tasks/{id}:subscribe', methods.resubscribe],
  ['POST', '/tasks/{id}:subscribe', methods.resubscribe],
  ['POST', '/tasks/{id}:cancel', methods.cancel],
  ['GET', '/tasks/{id}', methods.get],
  ['POST', CONFIGS, 'CreateTaskPushNotificationConfig'],
  ['GET', CONFIGS, 'ListTaskPushNotificationConfigs'],
  ['GET', `${CONFIGS}/{+id}`, 'GetTaskPushNotificationConfig'],
  ['DELETE', `${CONFIGS}/{+id}`, 'DeleteTaskPushNotificationConfig'],
  ['GET', '/extendedAgentCard', 'GetExtendedAgentCard'],
]).map(([verb, path, method]) => {
  const named = path.replace(/\{\+(\w+)\}/, '(?<$1>[^/]+)').replace(/\{(\w+)\}/, '(?<$1>[^/:]*)');
  return { verb, path, method, pattern: new RegExp(`${named}$`) };
});

/**
 * The URIs in an extensions header.
 * @param {string} [header]
 */
export const urisIn = (header = '') =>
  header
    .split(',')
    .map((uri) => uri.trim())
    .filter(Boolean);

// --- The agent's side ----------------------------------------------------------------------------

/**
 * The JSON-RPC request, or undefined if the path does not belong to this binding.
 * @param {string} verb
 * @param {string} path
 * @param {boolean} shared whether other handlers serve further paths, so that a path may have no
 *   prefix
 * @param {(tenant: string) => boolean} hasTenant
 * @returns {{ method: string, params: Record<string, unknown> } | undefined}
 */
export function routeOf(verb, path, shared, hasTenant) {
  for (const { verb: asked, pattern, method } of ROUTES) {
    const found = verb === asked && pattern.exec(path);
    if (!found) continue;
    try {
      // The prefix is the path that the agent is mounted at, and a tenant.
      const before = path.slice(0, found.index);
      const tenant = decodeURIComponent(before.slice(before.lastIndexOf('/') + 1));
      const known = tenant !== '' && hasTenant(tenant);
      if (shared && before !== '' && !(known && before.lastIndexOf('/') === 0)) continue;
      const named = Object.entries(found.groups ?? {}).map(([name, value]) => [
        name,
        decodeURIComponent(value),
      ]);
      return { method, params: { ...Object.fromEntries(named), ...(known && { tenant }) } };
    } catch {
      return undefined; // malformed URL encoding
    }
  }
  return undefined;
}

/**
 * True if a path looks like one of this binding, so that a request to it is not JSON-RPC.
 * @param {string} path
 */
export const looksLikeRoute = (path) => /\/(?:message|tasks\/[^/:]*):[^/]*$/.test(path);

const NUMBERS = new Set(['historyLength', 'pageSize']);

/**
 * The parameters in a query, with numbers and booleans converted.
 * @param {URLSearchParams} query
 */
export const readQuery = (query) =>
  Object.fromEntries(
    [...query].map(([name, value]) => [
      name,
      NUMBERS.has(name) && /^-?\d+$/.test(value)
        ? Number(value)
        : name === 'includeArtifacts'
          ? value === 'true'
          : value,
    ]),
  );

/**
 * The HTTP status and the gRPC status by JSON-RPC code. Other codes are errors of the server.
 */
const STATUS = new Map(
  /** @type {[string, number, string][]} */ ([
    ['TASK_NOT_FOUND', 404, 'NOT_FOUND'],
    ['TASK_NOT_CANCELABLE', 400, 'FAILED_PRECONDITION'],
    ['PUSH_NOTIFICATION_NOT_SUPPORTED', 400, 'FAILED_PRECONDITION'],
    ['UNSUPPORTED_OPERATION', 400, 'FAILED_PRECONDITION'],
    ['CONTENT_TYPE_NOT_SUPPORTED', 400, 'INVALID_ARGUMENT'],
    ['EXTENDED_AGENT_CARD_NOT_CONFIGURED', 400, 'FAILED_PRECONDITION'],
    ['EXTENSION_SUPPORT_REQUIRED', 400, 'FAILED_PRECONDITION'],
    ['VERSION_NOT_SUPPORTED', 400, 'FAILED_PRECONDITION'],
    ['PARSE_ERROR', 400, 'INVALID_ARGUMENT'],
    ['INVALID_REQUEST', 400, 'INVALID_ARGUMENT'],
    ['INVALID_PARAMS', 400, 'INVALID_ARGUMENT'],
    ['METHOD_NOT_FOUND', 404, 'NOT_FOUND'],
  ]).map(([reason, code, status]) => [codes[reason], { code, status }]),
);

/**
 * @param {{ code: number, message: string, data?: unknown }} error of JSON-RPC
 * @param {number} [status] of HTTP
 */
export function errorBody({ code: number, message, data = [] }, status) {
  const busy = getOwn(getOwn(data, '0'), 'reason') === 'RATE_LIMITED';
  const { code, status: name } = busy
    ? { code: 429, status: 'RESOURCE_EXHAUSTED' }
    : (STATUS.get(number) ?? { code: 500, status: 'INTERNAL' });
  return { error: { code: status ?? code, status: name, message, details: data } };
}

// --- The client's side ---------------------------------------------------------------------------

/** @typedef {{ method: string, params: Record<string, any> }} RpcRequest of JSON-RPC */

/**
 * Translates a JSON-RPC request.
 * @param {RpcRequest} request
 * @returns {{ verb: string, path: string, body?: object }} the path is appended to the interface's
 *   URL
 */
export function restRequest({ method, params: { tenant, ...rest } }) {
  // Without an id the path would be that of the list of tasks.
  if (rest.id === '') throw new AbpError('INVALID_PARAMS', 'Task ID is required');
  const route = ROUTES.find((one) => one.method === method);
  const { verb, path } = /** @type {(typeof ROUTES)[number]} */ (route);
  const before = tenant ? `/${encodeURIComponent(tenant)}` : '';
  const [, name = ''] = /\{(\w+)\}/.exec(path) ?? [];
  const named = before + path.replace(`{${name}}`, encodeURIComponent(rest[name]));
  delete rest[name];
  if (verb === 'POST') return { verb, path: named, body: rest };
  return { verb, path: named + query(rest) };
}

/** @param {object} params */
function query(params) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined);
  return given.length ? `?${new URLSearchParams(given.map(([k, v]) => [k, String(v)]))}` : '';
}

/**
 * Translates an answer into a JSON-RPC response.
 * @param {unknown} body
 */
export function restResponse(body) {
  const error = getOwn(body, 'error');
  if (!error) return { result: body };
  const data = getOwn(error, 'details');
  const reason = getOwn(getOwn(data, '0'), 'reason');
  // The code in the body is the HTTP status, which several errors share.
  const known = typeof reason === 'string' ? getOwn(codes, reason) : undefined;
  const code = known ?? getOwn(error, 'code');
  return { error: { code, message: getOwn(error, 'message'), data } };
}
