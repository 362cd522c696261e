/**
 * Reads the requests that an A2A agent receives, and rejects invalid ones with an error that names
 * the invalid field.
 */
import { AbpError, getOwn, isObject, requireBounded, textOf } from 'abp-bridge/driver';
import { DIALECTS, getField, printError, readMessage } from './dialects.js';
import { newId } from './ids.js';

/** @import { Dialect, Message, Task } from './dialects.js' */
/** @import { Caller, Reply } from './reply.js' */
/** @import { RequestInfo, StoredTask } from './task.js' */

/** Maximum nesting of a request. A deeper one could be parsed, but not printed again. */
const MAX_DEPTH = 100;

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
 * @param {string | undefined} version that it names
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
  if (params !== undefined && !isRecord(params))
    throw new AbpError('INVALID_PARAMS', 'Invalid method parameters.');
  try {
    requireBounded(params, { maxDepth: MAX_DEPTH });
  } catch (error) {
    throw new AbpError('INVALID_PARAMS', /** @type {Error} */ (error).message);
  }
}

/** @param {unknown} params */
export const taskIdOf = (params) => getField(params, 'id') ?? getField(params, 'taskId');

/**
 * The tasks that a request may refer to.
 * @param {unknown} params
 * @returns {Set<unknown>}
 */
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

/**
 * Rejects a request that could not be read.
 * @param {Reply} reply
 * @param {string | undefined} version
 * @param {string} reason
 * @param {string} message
 */
export function refuse(reply, version, reason, message) {
  const error = printError(DIALECTS[versionOf(version) ?? '0.3'], new AbpError(reason, message));
  reply.answer({ jsonrpc: '2.0', id: null, error });
}

// --- Messages ------------------------------------------------------------------------------------

/**
 * @param {string} field
 * @param {string} why
 */
export const invalid = (field, why) =>
  new AbpError('INVALID_PARAMS', `${field} ${why}`, { details: { field, description: why } });

/** @param {unknown} value */
const isRecord = (value) => isObject(value) && !Array.isArray(value);

/**
 * The test for each kind of field, and the name of the kind.
 * @type {Record<'text' | 'flag' | 'record' | 'records' | 'texts', [(value: unknown) => boolean,
 *   string]>}
 */
const KINDS = {
  text: [(value) => typeof value === 'string', 'must be a string'],
  flag: [(value) => typeof value === 'boolean', 'must be true or false'],
  record: [isRecord, 'must be an object'],
  records: [(value) => Array.isArray(value) && value.every(isRecord), 'must be a list of objects'],
  texts: [
    (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
    'must be a list of strings',
  ],
};

/**
 * Throws unless each of the fields is absent, null, or of its kind.
 * @param {unknown} object
 * @param {string} at the object's path
 * @param {Record<string, keyof typeof KINDS>} fields
 */
export function checkFields(object, at, fields) {
  for (const [name, kind] of Object.entries(fields)) {
    const value = getField(object, name) ?? undefined;
    const [test, why] = KINDS[kind];
    if (value !== undefined && !test(value)) throw invalid(`${at}${name}`, why);
  }
}

/**
 * @param {string} names
 * @param {keyof typeof KINDS} kind
 * @returns {Record<string, keyof typeof KINDS>}
 */
export const each = (names, kind) =>
  Object.fromEntries(names.split(' ').map((name) => [name, kind]));

const PART = {
  ...each('text url raw mediaType filename', 'text'),
  ...each('metadata file', 'record'),
};
const MESSAGE = {
  ...each('messageId contextId taskId', 'text'),
  ...each('metadata', 'record'),
  ...each('extensions referenceTaskIds', 'texts'),
};
const CONFIGURATION = {
  ...each('acceptedOutputModes', 'texts'),
  ...each('returnImmediately blocking', 'flag'),
};
const ROLES = ['user', 'agent', 'ROLE_USER', 'ROLE_AGENT', 1, 2];
const CONTENTS = ['text', 'raw', 'url', 'data'];
/** The names of a part's content in 0.3. */
const PART_KINDS = ['text', 'file', 'data'];
const BASE64 = /^[\w+/-]*={0,2}$/;

/**
 * @param {unknown} part
 * @param {string} at
 */
function checkPart(part, at) {
  if (!isRecord(part)) throw invalid(at, 'must be an object');
  checkFields(part, `${at}.`, PART);
  const kind = getField(part, 'kind');
  if (kind !== undefined && !PART_KINDS.includes(kind))
    throw invalid(at, `must be of a known kind: ${PART_KINDS.join(', ')}`);
  const file = getField(part, 'file');
  if (file !== undefined) checkFields(file, `${at}.file.`, { uri: 'text', bytes: 'text' });
  const contents = [
    ...CONTENTS.map((name) => getField(part, name)),
    getField(file, 'uri'),
    getField(file, 'bytes'),
    // Null is a value that data may have.
  ].filter((content) => content !== undefined);
  if (contents.length !== 1)
    throw invalid(at, 'must have exactly one of: text, a file (url or raw), data');
  if (kind === 'text' && getField(part, 'text') === undefined) throw invalid(at, 'has no text');
  if (kind === 'file' && file === undefined) throw invalid(at, 'has no file');
  if (kind === 'data' && !isObject(getField(part, 'data'))) throw invalid(at, 'has no data');
  const bytes = getField(part, 'raw') ?? getField(file, 'bytes');
  if (bytes !== undefined && !BASE64.test(bytes)) throw invalid(at, 'must be in base64');
}

/**
 * Reads the message of a request.
 * @param {unknown} params
 * @param {Dialect} dialect
 * @param {boolean} pushes whether the agent sends push notifications
 * @returns {Message}
 */
export function readSend(params, dialect, pushes) {
  const given = getField(params, 'message');
  if (!isRecord(given)) throw invalid('message', 'is required');
  checkFields(params, '', { configuration: 'record', metadata: 'record' });
  checkFields(given, 'message.', MESSAGE);
  if (!ROLES.includes(getField(given, 'role')))
    throw invalid('message.role', "must be the user's or the agent's");
  const parts = getField(given, 'parts');
  if (!Array.isArray(parts) || parts.length === 0)
    throw invalid('message.parts', 'must be a list of at least one part');
  parts.forEach((part, i) => checkPart(part, `message.parts[${i}]`));
  const configuration = getField(params, 'configuration') ?? undefined;
  checkFields(configuration, 'configuration.', CONFIGURATION);
  if (!pushes && pushOf(configuration) !== undefined)
    throw new AbpError('PUSH_NOTIFICATION_NOT_SUPPORTED', 'Push Notification is not supported');
  readHistoryLength(configuration);
  const message = readMessage(given);
  const answers = dialect.answers(params);
  if (typeof answers === 'string' && answers) message.taskId = answers;
  // The gem generates one.
  if (!message.messageId && dialect === DIALECTS.gem) message.messageId = newId();
  if (!message.messageId) throw invalid('message.messageId', 'is required');
  return message;
}

/**
 * The push configuration in a message, or undefined.
 * @param {unknown} configuration
 * @returns {unknown}
 */
export const pushOf = (configuration) =>
  getField(configuration, 'taskPushNotificationConfig') ??
  getField(configuration, 'pushNotificationConfig') ??
  undefined;

/**
 * The number of requested messages of a task's history; undefined for all.
 * @param {unknown} asked
 * @returns {number | undefined}
 */
function readHistoryLength(asked) {
  const length = getField(asked, 'historyLength') ?? undefined;
  if (length !== undefined && !(Number.isInteger(length) && length >= 0))
    throw invalid('historyLength', 'must be a number of messages, 0 or more');
  return length;
}

/**
 * Throws unless the client declares every extension that the card requires, in its request or its
 * message.
 * @param {{ uri: string, required?: boolean }[]} extensions
 * @param {RequestInfo} info
 * @param {unknown} params
 */
export function checkExtensions(extensions, info, params) {
  const inMessage = getField(getField(params, 'message'), 'extensions') ?? [];
  const missing = extensions.find(
    ({ uri, required }) => required && !info.extensions.includes(uri) && !inMessage.includes?.(uri),
  );
  if (missing)
    throw new AbpError(
      'EXTENSION_SUPPORT_REQUIRED',
      `The extension ${missing.uri} is required: declare it in A2A-Extensions`,
    );
}

/**
 * The request as an executor and a hook see it.
 * @param {Caller} caller
 * @param {unknown} params
 * @param {{ uri: string }[]} extensions of the card
 * @returns {RequestInfo}
 */
export function requestInfo({ version, headers, user, extensions: declared }, params, extensions) {
  const modes = getField(getField(params, 'configuration'), 'acceptedOutputModes');
  return {
    version,
    headers,
    user,
    tenant: textOf(getField(params, 'tenant')) || undefined,
    extensions: extensions.map(({ uri }) => uri).filter((uri) => declared.includes(uri)),
    metadata: getField(params, 'metadata') ?? undefined,
    acceptedOutputModes: Array.isArray(modes) ? modes : [],
  };
}
