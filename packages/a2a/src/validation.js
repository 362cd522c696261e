/** What a request has to be, in every version; what is wrong is said of the field that it is wrong with. */
import { AbpError } from '../../../js/common/errors.js';
import { isObject, textOf } from '../../../js/common/values.js';
import { DIALECTS, getField, readMessage } from './dialects.js';
import { newId } from './ids.js';

/** @import { Dialect, Message } from './dialects.js' */
/** @import { Caller } from './reply.js' */
/** @import { RequestInfo } from './task.js' */

/**
 * @param {string} field
 * @param {string} why
 */
export const invalid = (field, why) =>
  new AbpError('INVALID_PARAMS', `${field} ${why}`, { details: { field, description: why } });

/** What a field may hold: a test, and what it is called. */
const KINDS = /** @type {const} */ ({
  text: [(/** @type {unknown} */ value) => typeof value === 'string', 'must be a string'],
  flag: [(/** @type {unknown} */ value) => typeof value === 'boolean', 'must be true or false'],
  record: [
    (/** @type {unknown} */ value) => isObject(value) && !Array.isArray(value),
    'must be an object',
  ],
  texts: [
    (/** @type {unknown} */ value) =>
      Array.isArray(value) && value.every((item) => typeof item === 'string'),
    'must be a list of strings',
  ],
});

/**
 * Throws unless each of the fields is absent, null, or what it is to be.
 * @param {unknown} object
 * @param {string} at where the object is
 * @param {Record<string, keyof typeof KINDS>} fields
 */
function checkFields(object, at, fields) {
  for (const [name, kind] of Object.entries(fields)) {
    const value = getField(object, name) ?? undefined;
    const [test, why] = KINDS[kind];
    if (value !== undefined && !test(value)) throw invalid(`${at}${name}`, why);
  }
}

const ROLES = ['user', 'agent', 'ROLE_USER', 'ROLE_AGENT', 1, 2];
const CONTENTS = ['text', 'raw', 'url', 'data'];
/** What 0.3 calls a part's content, and 0.1 by `type`. */
const PART_KINDS = ['text', 'file', 'data'];
const BASE64 = /^[\w+/-]*={0,2}$/;

/**
 * @param {unknown} part
 * @param {string} at
 */
function checkPart(part, at) {
  if (!isObject(part) || Array.isArray(part)) throw invalid(at, 'must be an object');
  checkFields(part, `${at}.`, {
    text: 'text',
    url: 'text',
    raw: 'text',
    mediaType: 'text',
    filename: 'text',
    metadata: 'record',
    file: 'record',
  });
  const kind = getField(part, 'kind') ?? getField(part, 'type');
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
 * The message of a request, and its configuration.
 * @param {unknown} params
 * @param {Dialect} dialect
 * @param {boolean} pushes whether the agent sends push notifications
 * @returns {{ message: Message, configuration: unknown }}
 */
export function readSend(params, dialect, pushes) {
  const given = getField(params, 'message');
  if (!isObject(given) || Array.isArray(given)) throw invalid('message', 'is required');
  checkFields(params, '', { configuration: 'record', metadata: 'record' });
  checkFields(given, 'message.', {
    messageId: 'text',
    contextId: 'text',
    taskId: 'text',
    metadata: 'record',
    extensions: 'texts',
    referenceTaskIds: 'texts',
  });
  if (!ROLES.includes(getField(given, 'role')))
    throw invalid('message.role', "must be the user's or the agent's");
  const parts = getField(given, 'parts');
  if (!Array.isArray(parts) || parts.length === 0)
    throw invalid('message.parts', 'must be a list of at least one part');
  parts.forEach((part, i) => checkPart(part, `message.parts[${i}]`));
  const configuration = getField(params, 'configuration') ?? undefined;
  checkFields(configuration, 'configuration.', {
    acceptedOutputModes: 'texts',
    returnImmediately: 'flag',
    blocking: 'flag',
  });
  if (!pushes && pushOf(configuration) !== undefined)
    throw new AbpError('PUSH_NOTIFICATION_NOT_SUPPORTED', 'Push Notification is not supported');
  readHistoryLength(configuration);
  const message = readMessage(given);
  const answers = dialect.answers(params);
  if (typeof answers === 'string' && answers) message.taskId = answers;
  // The gem makes one up.
  if (!message.messageId && dialect === DIALECTS.gem) message.messageId = newId();
  if (!message.messageId) throw invalid('message.messageId', 'is required');
  return { message, configuration };
}

/** What a message says of push notifications, or undefined. @param {unknown} configuration @returns {unknown} */
export const pushOf = (configuration) =>
  getField(configuration, 'taskPushNotificationConfig') ??
  getField(configuration, 'pushNotificationConfig') ??
  undefined;

/**
 * How many messages of a task are asked for; undefined for all.
 * @param {unknown} asked
 * @returns {number | undefined}
 */
export function readHistoryLength(asked) {
  const length = getField(asked, 'historyLength') ?? undefined;
  if (length !== undefined && !(Number.isInteger(length) && length >= 0))
    throw invalid('historyLength', 'must be a number of messages, 0 or more');
  return length;
}

// --- Extensions ----------------------------------------------------------------------------------------

/**
 * Throws unless the client declares every extension that the card requires, in its request or its message.
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
 * What an executor and a hook learn of a request.
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
