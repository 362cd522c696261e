/** Requests of an A2A agent, read: what they ask for, and why some are refused. */
import { AbpError } from '../errors.js';
import { own } from '../messages.js';
import { DIALECTS, printError, readMessage, readState } from './dialects.js';
import { newId } from './ids.js';

/** @import { Dialect, Message, Task } from './dialects.js' */
/** @import { Reply } from './server.js' */
/** @import { StoredTask } from './task.js' */

/** How deep a request may be nested: deeper ones could be read, but not printed again. */
const DEEPEST = 100;
const MOST_IN_PAGE = 100;

/**
 * A version that is spoken here, by a header; undefined without one.
 * @param {string | undefined} header
 * @returns {'0.3' | '1.0' | undefined}
 */
export function versionOf(header) {
  const [, version] = /^\s*(0\.3|1\.0)(?:\.\d+)?\s*$/.exec(header ?? '') ?? [];
  return /** @type {any} */ (version);
}

/**
 * @param {any} request
 * @param {string | undefined} version
 * @param {Dialect} dialect
 */
export function check(request, version, dialect) {
  if (version?.trim() && !versionOf(version))
    throw new AbpError(
      'VERSION_NOT_SUPPORTED',
      `The requested A2A protocol version '${version}' is not supported. Supported versions: 1.0, 0.3`,
    );
  const id = own(request, 'id') ?? null;
  const idIsFine = id === null || typeof id === 'string' || Number.isInteger(id);
  const method = own(request, 'method');
  const methodIsFine = typeof method === 'string' && method !== '';
  if (own(request, 'jsonrpc') !== '2.0' || !idIsFine || !methodIsFine)
    throw new AbpError(dialect.malformed, 'Invalid JSON-RPC Request.');
  const params = own(request, 'params');
  if (
    params !== undefined &&
    (typeof params !== 'object' || params === null || Array.isArray(params))
  )
    throw new AbpError('INVALID_PARAMS', 'Invalid method parameters.');
  if (tooDeep(params)) throw new AbpError('INVALID_PARAMS', 'The parameters are nested too deeply');
}

/** @param {any} value */
function tooDeep(value) {
  let level = [value];
  for (let depth = 0; level.length; depth++) {
    if (depth > DEEPEST) return true;
    level = level.flatMap((item) =>
      typeof item === 'object' && item !== null ? Object.values(item) : [],
    );
  }
  return false;
}

/**
 * @param {any} params
 * @param {Dialect} dialect
 * @returns {Message}
 */
export function messageOf(params, dialect) {
  const given = own(params, 'message');
  if (typeof given !== 'object' || given === null)
    throw new AbpError('INVALID_PARAMS', 'message is required');
  if (!Array.isArray(own(given, 'parts')))
    throw new AbpError('INVALID_PARAMS', 'message.parts must be an array');
  const message = readMessage(given);
  // The gem makes one up.
  if (!message.messageId && dialect === DIALECTS.gem) message.messageId = newId();
  if (!message.messageId) throw new AbpError('INVALID_PARAMS', 'message.messageId is required');
  return message;
}

/** @param {any} params */
export const taskIdOf = (params) => own(params, 'id') ?? own(params, 'taskId');

/**
 * A task with as much of its history as was asked for.
 * @param {StoredTask} task
 * @param {any} asked
 * @returns {Task}
 */
export function historyOf({ id, contextId, status, artifacts, history }, asked) {
  const length = own(asked, 'historyLength');
  const kept =
    typeof length !== 'number' ? history : length > 0 ? history.slice(-Math.floor(length)) : [];
  return { id, contextId, status, artifacts, history: kept };
}

/** @param {StoredTask} task */
export const timeOf = ({ status }) => /** @type {string} */ (status.timestamp);
/** What tasks are sorted by: the latest first. @param {StoredTask} task */
export const keyOf = (task) => `${timeOf(task)}|${task.id}`;

/** @param {any} params */
export function filterOf(params) {
  const pageSize = own(params, 'pageSize') ?? MOST_IN_PAGE / 2;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MOST_IN_PAGE)
    throw new AbpError('INVALID_PARAMS', `pageSize must be between 1 and ${MOST_IN_PAGE}`);
  const wanted = own(params, 'status');
  const status = wanted === undefined ? 0 : readState(wanted);
  if (wanted && !status && wanted !== 'TASK_STATE_UNSPECIFIED')
    throw new AbpError('INVALID_PARAMS', `Invalid status filter: ${wanted}`);
  const since = own(params, 'statusTimestampAfter');
  const after = since ? Date.parse(since) : undefined;
  if (Number.isNaN(after))
    throw new AbpError(
      'INVALID_PARAMS',
      'statusTimestampAfter must be a valid ISO 8601 date string',
    );
  const token = own(params, 'pageToken');
  try {
    const cursor = token ? atob(token) : undefined;
    return { contextId: own(params, 'contextId') || undefined, status, after, pageSize, cursor };
  } catch {
    throw new AbpError('INVALID_PARAMS', 'Token is not a valid base64-encoded cursor.');
  }
}

/**
 * Refuses what could not even be read.
 * @param {Reply} reply
 * @param {string | undefined} version
 * @param {string} reason
 * @param {string} message
 */
export function refuse(reply, version, reason, message) {
  const error = printError(DIALECTS[versionOf(version) ?? '0.3'], new AbpError(reason, message));
  reply.answer({ jsonrpc: '2.0', id: null, error });
}
