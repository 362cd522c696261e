/**
 * The HTTP+JSON binding of A2A 1.0: translates a method and a path into a JSON-RPC request, and its response into a
 * status and a body. The paths are those of the `google.api.http` annotations in the protocol's a2a.proto. Whatever
 * precedes them (the path that the agent is mounted at, a tenant) is ignored.
 */
import { getOwn, isObject } from '../../../js/common/values.js';
import { DIALECTS } from './dialects.js';

const { methods, codes } = DIALECTS['1.0'];
const [CREATE, GET, DELETE, LIST] = DIALECTS['1.0'].push;

/**
 * The methods and paths, and the names of the parameters in them.
 * @type {[verb: string, path: RegExp, method: string | undefined, names?: string[]][]}
 */
const ROUTES = [
  ['POST', /\/message:send$/, methods.send],
  ['POST', /\/message:stream$/, methods.stream],
  ['GET', /\/tasks$/, methods.list],
  ['GET', /\/tasks\/([^/:]*):subscribe$/, methods.resubscribe, ['id']],
  ['POST', /\/tasks\/([^/:]*):subscribe$/, methods.resubscribe, ['id']],
  ['POST', /\/tasks\/([^/:]*):cancel$/, methods.cancel, ['id']],
  ['GET', /\/tasks\/([^/:]*)$/, methods.get, ['id']],
  ['POST', /\/tasks\/([^/:]*)\/pushNotificationConfigs$/, CREATE, ['taskId']],
  ['GET', /\/tasks\/([^/:]*)\/pushNotificationConfigs$/, LIST, ['taskId']],
  ['GET', /\/tasks\/([^/:]*)\/pushNotificationConfigs\/([^/]+)$/, GET, ['taskId', 'id']],
  ['DELETE', /\/tasks\/([^/:]*)\/pushNotificationConfigs\/([^/]+)$/, DELETE, ['taskId', 'id']],
  ['GET', /\/extendedAgentCard$/, DIALECTS['1.0'].extendedCard],
];

/**
 * The JSON-RPC request, or undefined if the path does not belong to this binding.
 * @param {string} verb
 * @param {string} path
 * @param {boolean} shared whether others serve paths beside ours, so that nothing may precede a path
 * @param {(tenant: string) => boolean} hasTenant
 * @returns {{ method: string, params: Record<string, unknown> } | undefined}
 */
export function routeOf(verb, path, shared, hasTenant) {
  for (const [asked, pattern, method, names = []] of ROUTES) {
    const found = verb === asked && pattern.exec(path);
    if (!found || !method) continue;
    try {
      // What precedes is the path that the agent is mounted at, and a tenant.
      const before = path.slice(0, found.index);
      const tenant = decodeURIComponent(before.slice(before.lastIndexOf('/') + 1));
      const known = tenant !== '' && hasTenant(tenant);
      if (shared && before !== '' && !(known && before.lastIndexOf('/') === 0)) continue;
      const values = found.slice(1).map(decodeURIComponent);
      const named = Object.fromEntries(names.map((name, i) => [name, values[i]]));
      return { method, params: { ...named, ...(known && { tenant }) } };
    } catch {
      return undefined; // malformed URL encoding
    }
  }
  return undefined;
}

/** Whether a path looks like one of this binding, so that a request to it is none of JSON-RPC. @param {string} path */
export const looksLikeRoute = (path) => /\/(?:message|tasks\/[^/:]*):[^/]*$/.test(path);

const NUMBERS = new Set(['historyLength', 'pageSize']);

/** The parameters in a query, with numbers and booleans as such. @param {URLSearchParams} query */
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

/** The HTTP status and the gRPC status by JSON-RPC code. Codes that are not listed are faults of the server. */
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

/** @param {{ code: number, message: string, data?: unknown }} error of JSON-RPC @param {number} [status] of HTTP */
export function errorBody({ code: number, message, data = [] }, status) {
  const busy = getOwn(getOwn(data, '0'), 'reason') === 'RATE_LIMITED';
  const { code, status: name } = busy
    ? { code: 429, status: 'RESOURCE_EXHAUSTED' }
    : (STATUS.get(number) ?? { code: 500, status: 'INTERNAL' });
  return { error: { code: status ?? code, status: name, message, details: data } };
}

/**
 * The parameters of a request. Those in the path take precedence.
 * @param {Record<string, unknown>} named by the path
 * @param {unknown} given by the body or the query
 */
export const mergeParams = (named, given) =>
  isObject(given) && !Array.isArray(given) ? { ...given, ...named } : (given ?? named);

/** The version in the query, which may be there instead of in a header. @param {URLSearchParams} query */
export const versionIn = (query) => getOwn(Object.fromEntries(query), 'A2A-Version');
