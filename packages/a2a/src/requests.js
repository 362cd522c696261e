/** Reads the requests that an A2A agent receives, and refuses invalid ones. */
import { requireBounded } from '../../untrusted/src/bounds.js';
import { AbpError } from '../../../js/common/errors.js';
import { getOwn } from '../../../js/common/values.js';
import { DIALECTS, getField, printError, readState } from './dialects.js';
import { invalid, readHistoryLength } from './validation.js';

/** @import { Place } from './backends/backend.js' */
/** @import { Dialect, Task } from './dialects.js' */
/** @import { Reply } from './reply.js' */
/** @import { StoredTask } from './task.js' */

/** How deep a request may be nested. Deeper ones could be parsed, but not printed again. */
const MAX_DEPTH = 100;
const MAX_PAGE_SIZE = 100;

/**
 * The version that a header names, or undefined if we do not speak it.
 * @param {string | undefined} header
 * @returns {'0.3' | '1.0' | undefined}
 */
export function versionOf(header) {
  const [, version] = /^\s*(0\.3|1\.0)(?:\.\d+)?\s*$/.exec(header ?? '') ?? [];
  return /** @type {'0.3' | '1.0' | undefined} */ (version);
}

/**
 * Throws the `AbpError` of an invalid request.
 * @param {unknown} request
 * @param {string | undefined} version that the request names
 */
export function check(request, version) {
  if (version?.trim() && !versionOf(version))
    throw new AbpError(
      'VERSION_NOT_SUPPORTED',
      `The requested A2A protocol version '${version}' is not supported. Supported versions: 1.0, 0.3`,
    );
  const id = getOwn(request, 'id') ?? null;
  const idIsFine = id === null || typeof id === 'string' || Number.isInteger(id);
  const method = getOwn(request, 'method');
  const methodIsFine = typeof method === 'string' && method !== '';
  if (getOwn(request, 'jsonrpc') !== '2.0' || !idIsFine || !methodIsFine)
    throw new AbpError('INVALID_REQUEST', 'Invalid JSON-RPC Request.');
  const params = getOwn(request, 'params');
  if (
    params !== undefined &&
    (typeof params !== 'object' || params === null || Array.isArray(params))
  )
    throw new AbpError('INVALID_PARAMS', 'Invalid method parameters.');
  try {
    requireBounded(params, { maxDepth: MAX_DEPTH });
  } catch (error) {
    throw new AbpError('INVALID_PARAMS', /** @type {Error} */ (error).message);
  }
}

/** @param {unknown} params */
export const taskIdOf = (params) => getField(params, 'id') ?? getField(params, 'taskId');

/** The tasks that a request may be about. @param {unknown} params @returns {Set<unknown>} */
export const idsOf = (params) =>
  new Set([
    taskIdOf(params),
    getField(params, 'taskId'),
    getField(getOwn(params, 'message'), 'taskId'),
  ]);

/**
 * A task with as much of its history as was requested.
 * @param {StoredTask} task
 * @param {unknown} asked
 * @returns {Task}
 */
export function historyOf({ id, contextId, status, artifacts, history }, asked) {
  const length = readHistoryLength(asked);
  const kept = length === undefined ? history : length > 0 ? history.slice(-length) : [];
  return { id, contextId, status, artifacts, history: kept };
}

/** @param {StoredTask} task */
export const timeOf = ({ status }) => /** @type {string} */ (status.timestamp);

/** @param {unknown} params */
export function filterOf(params) {
  const pageSize = getField(params, 'pageSize') ?? MAX_PAGE_SIZE / 2;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MAX_PAGE_SIZE)
    throw invalid('pageSize', `must be between 1 and ${MAX_PAGE_SIZE}`);
  const wanted = getField(params, 'status');
  const status = wanted === undefined ? 0 : readState(wanted);
  if (wanted && !status && wanted !== 'TASK_STATE_UNSPECIFIED')
    throw invalid('status', `is not a task state: ${JSON.stringify(wanted)}`);
  const since = textIn(params, 'statusTimestampAfter');
  const after = since ? Date.parse(since) : undefined;
  if (Number.isNaN(after))
    throw invalid('statusTimestampAfter', 'must be a valid ISO 8601 date string');
  const token = textIn(params, 'pageToken');
  const contextId = textIn(params, 'contextId');
  const of = JSON.stringify([contextId, status, after]);
  const from = token ? readToken(token, of) : undefined;
  if (token && !from) throw invalid('pageToken', 'is not that of a list with these filters');
  const artifacts = getField(params, 'includeArtifacts') === true;
  return { contextId, status, after, pageSize, from, artifacts, of };
}

/** A text that may be left out, or empty. @param {unknown} params @param {string} name @returns {string | undefined} */
function textIn(params, name) {
  const value = getField(params, name) || undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw invalid(name, 'must be a string');
}

/**
 * Where the next page begins, and what is known of the count: how many tasks there are, or only how many are before it.
 * @typedef {{ place: Place, total?: number, before?: number }} Token
 */

/** @param {Place} place @param {{ total?: number, before?: number }} count @param {string} of what the list is limited to */
export const printToken = ({ time, task }, { total, before }, of) =>
  btoa(encodeURIComponent(JSON.stringify([time, task, total ?? null, before ?? null, of])));

/** @param {string} token @param {string} wanted what the list is limited to @returns {Token | undefined} */
function readToken(token, wanted) {
  try {
    const [time, task, total, before, of] = JSON.parse(decodeURIComponent(atob(token)));
    // A process of the version before does not say it.
    if (of !== undefined && of !== wanted) return undefined;
    const count = (/** @type {unknown} */ n) =>
      Number.isInteger(n) && /** @type {number} */ (n) >= 0 && /** @type {number} */ (n) < 2 ** 31
        ? /** @type {number} */ (n)
        : undefined;
    if (typeof time === 'number' && typeof task === 'string')
      return { place: { time, task }, total: count(total), before: count(before) };
  } catch {
    // It is refused.
  }
  return undefined;
}

/**
 * Refuses a request that could not be read.
 * @param {Reply} reply
 * @param {string | undefined} version
 * @param {string} reason
 * @param {string} message
 */
export function refuse(reply, version, reason, message) {
  const error = printError(DIALECTS[versionOf(version) ?? '0.3'], new AbpError(reason, message));
  reply.answer({ jsonrpc: '2.0', id: null, error });
}
