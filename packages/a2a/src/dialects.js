/**
 * The differences between the versions of A2A: names of methods, spellings of states, shapes of
 * tasks and events, codes of errors. Reading accepts every version and returns one form; printing
 * writes one given version.
 *
 * The form is that of 1.0 (a part is `{ text }`, `{ data }`, `{ url }` or `{ raw }`), with the
 * states and roles of 0.3 (`'input-required'`, `'user'`). Only own properties are read.
 */
import { AbpError, getOwn, isObject, textOf } from 'abp-bridge/driver';
import { readOutcome } from './outcome.js';
import { Unsent } from './unsent.js';

/** @import { TaskState } from './tasks-boundary.js' */

/**
 * @typedef {'unknown' | 'submitted' | 'working' | 'completed' | 'failed' | 'canceled'
 *   | 'input-required' | 'rejected' | 'auth-required'} State The state of a task, by its name in
 *   A2A.
 * @typedef {Record<string, any>} Metadata any values that an agent or a client adds
 * @typedef {{ text?: string, data?: unknown, url?: string, raw?: string, mediaType?: string,
 *   filename?: string, metadata?: Metadata }} Part `raw` is base64
 * @typedef {object} Message A message between a user and an agent.
 * @property {string} messageId
 * @property {'user' | 'agent'} role
 * @property {Part[]} parts
 * @property {string} [contextId]
 * @property {string} [taskId]
 * @property {Metadata} [metadata]
 * @property {string[]} [extensions]
 * @property {string[]} [referenceTaskIds]
 * @typedef {object} Status `text` is the message if it came as a plain string. When a client reads
 *   it, `outcome` is what became of the work of a task that was canceled or has failed, `report`
 *   its executor's report, and `progress` its last progress
 * @property {State} state
 * @property {string} [timestamp]
 * @property {Message} [message]
 * @property {string} [text]
 * @property {import('abp-bridge/driver').CallOutcome} [outcome]
 * @property {unknown} [report]
 * @property {any} [progress]
 * @typedef {object} Artifact A result of a task.
 * @property {string} artifactId
 * @property {Part[]} parts
 * @property {string} [name]
 * @property {string} [description]
 * @property {Metadata} [metadata]
 * @property {string[]} [extensions]
 * @typedef {object} Task A task, as its server shows it.
 * @property {string} id
 * @property {string} contextId
 * @property {Status} status
 * @property {Artifact[]} artifacts
 * @property {Message[]} history
 * @property {Metadata} [metadata]
 * @typedef {{ kind: 'task', task: Task }
 *   | { kind: 'message', message: Message }
 *   | {
 *       kind: 'status',
 *       taskId: string,
 *       contextId: string,
 *       status: Status,
 *       final?: boolean,
 *       metadata?: Metadata,
 *     }
 *   | {
 *       kind: 'artifact',
 *       taskId: string,
 *       contextId: string,
 *       artifact: Artifact,
 *       append: boolean,
 *       lastChunk: boolean,
 *       metadata?: Metadata,
 *     }} Event an event of a stream, or the answer to a send
 */

/** The names, by the core's number of the state. */
export const STATES = /** @type {State[]} */ ([
  'unknown',
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'input-required',
  'rejected',
  'auth-required',
]);

// --- Reading, in every version -------------------------------------------------------------------

/**
 * Fields of several words in the spelling of a2a.proto. ProtoJSON accepts both spellings.
 * @type {Map<string, string>}
 */
const SNAKE = new Map();

/**
 * A field by its name in JSON, in either spelling.
 * @param {unknown} object
 * @param {string} name
 * @returns {any}
 */
export function getField(object, name) {
  const value = getOwn(object, name);
  if (value !== undefined) return value;
  let spelled = SNAKE.get(name);
  if (!spelled) {
    spelled = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    SNAKE.set(name, spelled);
  }
  return spelled === name ? undefined : getOwn(object, spelled);
}

/**
 * Leaves out members that are undefined.
 * @template {object} T
 * @param {T} object
 * @returns {T}
 */
function compact(object) {
  for (const key of /** @type {(keyof T)[]} */ (Object.keys(object)))
    if (object[key] === undefined) delete object[key];
  return object;
}

/**
 * The number of a state in any spelling (`TASK_STATE_INPUT_REQUIRED`, `input_required`, 6), or 0 if
 * it is unknown.
 * @param {unknown} state
 * @returns {TaskState}
 */
export function readState(state) {
  const word = textOf(state)
    ?.replace(/^TASK_STATE_/, '')
    .toLowerCase()
    .replace('_', '-')
    .replace('cancelled', 'canceled');
  const named = typeof state === 'number' ? STATES[state] : /** @type {State} */ (word);
  return /** @type {TaskState} */ (Math.max(0, STATES.indexOf(named)));
}

/**
 * @typedef {(value: unknown, object: unknown) => unknown} Kind reads a member; undefined if it has
 *   the wrong type
 */

/**
 * Makes a function that reads an object's members, each by its type, and omits absent ones.
 * @param {Record<string, Kind>} members
 * @returns {(object: unknown) => any}
 */
const reader = (members) => (object) => {
  /** @type {any} */
  const result = {};
  for (const name in members) {
    const value = members[name](getField(object, name), object);
    if (value !== undefined) result[name] = value;
  }
  return result;
};
/**
 * @param {string} names
 * @param {Kind} kind
 * @returns {Record<string, Kind>}
 */
const each = (names, kind) => Object.fromEntries(names.split(' ').map((name) => [name, kind]));
/**
 * @param {unknown} value
 * @returns {unknown[]}
 */
const list = (value) => (Array.isArray(value) ? value : []);
/**
 * @param {(one: unknown) => unknown} read
 * @returns {Kind}
 */
const listOf = (read) => (value) => list(value).map((one) => read(one));
/**
 * @param {unknown} value
 * @returns {Metadata | undefined}
 */
const record = (value) => (isObject(value) && !Array.isArray(value) ? value : undefined);
/** @param {unknown} value */
const text = (value) => textOf(value) ?? '';
/** @param {unknown} value */
const texts = (value) => {
  const all = list(value).filter((item) => typeof item === 'string');
  return all.length ? all : undefined;
};

/** The members of a part that is a file, and what 0.3 calls them. */
const FILE = /** @type {[keyof Part, string][]} */ (
  Object.entries({ url: 'uri', raw: 'bytes', mediaType: 'mimeType', filename: 'name' })
);
/** Marks data that had to be wrapped for 0.3. */
const WRAPPED = 'data_part_compat';

const readContent = reader({
  ...each('text url raw mediaType filename', textOf),
  data: (value) => value,
  metadata: record,
});

/**
 * @param {unknown} given
 * @returns {Part}
 */
function readPart(given) {
  const part = readContent(given);
  const { metadata } = part;
  if (getField(metadata, WRAPPED) === true) {
    const rest = { ...metadata };
    delete rest[WRAPPED];
    const data = getField(part.data, 'value');
    return compact({ data, metadata: Object.keys(rest).length ? rest : undefined });
  }
  const file = getField(given, 'file');
  if (file === undefined) return part;
  const members = FILE.map(([name, old]) => [name, textOf(getField(file, old))]);
  return compact({ ...Object.fromEntries(members), metadata });
}

/** @type {(message: unknown) => Message} */
export const readMessage = reader({
  messageId: text,
  role: (role) => (role === 'user' || role === 'ROLE_USER' || role === 1 ? 'user' : 'agent'),
  parts: listOf(readPart),
  ...each('contextId taskId', textOf),
  metadata: record,
  ...each('extensions referenceTaskIds', texts),
});

/** @type {(artifact: unknown) => Artifact} */
export const readArtifact = reader({
  artifactId: text,
  parts: listOf(readPart),
  ...each('name description', textOf),
  metadata: record,
  extensions: texts,
});

const readSaid = reader({
  state: (state) => STATES[readState(state)],
  timestamp: textOf,
  text: (_, status) => textOf(getField(status, 'message')),
  message: (message) => record(message) && readMessage(message),
});

/**
 * @param {unknown} given
 * @returns {Status}
 */
function readStatus(given) {
  const status = readSaid(given);
  return compact({ ...status, ...readOutcome(status.state, status.message) });
}

/** @type {(task: unknown) => Task} */
export const readTask = reader({
  ...each('id contextId', text),
  status: readStatus,
  artifacts: listOf(readArtifact),
  history: listOf(readMessage),
  metadata: record,
});

const readAbout = reader({ ...each('taskId contextId', text), metadata: record });

const readWrapped = reader(each('task message statusUpdate artifactUpdate', record));

/**
 * Reads the result of a send, or an event of a stream. 1.0 wraps it, 0.3 has a `kind`, the gem a
 * `type`. Anything else is recognised by its members.
 * @param {unknown} result
 * @returns {Event | undefined} undefined if it is not an event
 */
export function readEvent(result) {
  const { task, message, statusUpdate, artifactUpdate } = readWrapped(result);
  // In other versions, an object with a `message` or a `task` beside other members is not the
  // event.
  const whole = getField(result, 'kind') === undefined && getField(result, 'type') === undefined;
  if (whole && task) return { kind: 'task', task: readTask(task) };
  if (whole && message) return { kind: 'message', message: readMessage(message) };
  const event = statusUpdate ?? artifactUpdate ?? record(result);
  const about = () => readAbout(event);
  const artifact = record(getField(event, 'artifact'));
  if (artifact) {
    const [append, lastChunk] = ['append', 'lastChunk'].map(
      (name) => getField(event, name) === true,
    );
    return { kind: 'artifact', ...about(), artifact: readArtifact(artifact), append, lastChunk };
  }
  const status = record(getField(event, 'status'));
  if (!status)
    return Array.isArray(getField(event, 'parts'))
      ? { kind: 'message', message: readMessage(event) }
      : undefined;
  const final = getField(event, 'final');
  const isTask = final === undefined && !textOf(getField(event, 'taskId'));
  if (isTask || getField(event, 'kind') === 'task') return { kind: 'task', task: readTask(event) };
  const ends = typeof final === 'boolean' && { final };
  return { kind: 'status', ...about(), status: readStatus(status), ...ends };
}

/**
 * The tasks of a list: the gem answers with the list itself.
 * @param {unknown} result
 * @returns {Task[]}
 */
export const readTasks = (result) =>
  list(Array.isArray(result) ? result : getField(result, 'tasks')).map(readTask);

// --- Printing, in one version --------------------------------------------------------------------

/**
 * @typedef {'send' | 'stream' | 'get' | 'cancel' | 'resubscribe' | 'list'} Operation An operation
 *   that a client requests.
 */
/** @typedef {'push' | 'extendedCard'} Other operations that no client here uses */

const PUSH = 'TaskPushNotificationConfig';
/** The methods of each operation: their names in 1.0, in 0.3 and in the gem. */
const NAMES = /** @type {[Operation | Other, ...(string | undefined)[]][]} */ ([
  ['send', 'SendMessage', 'message/send', 'tasks/send'],
  ['stream', 'SendStreamingMessage', 'message/stream', 'tasks/sendSubscribe'],
  ['get', 'GetTask', 'tasks/get', 'tasks/get'],
  ['cancel', 'CancelTask', 'tasks/cancel', 'tasks/cancel'],
  ['resubscribe', 'SubscribeToTask', 'tasks/resubscribe', 'tasks/resubscribe'],
  ['list', 'ListTasks', undefined, 'tasks/list'],
  ['extendedCard', 'GetExtendedAgentCard', 'agent/getAuthenticatedExtendedCard'],
  ['push', `Create${PUSH}`, 'tasks/pushNotificationConfig/set', 'tasks/pushNotification/set'],
  ['push', `Get${PUSH}`, 'tasks/pushNotificationConfig/get', 'tasks/pushNotification/get'],
  ['push', `List${PUSH}s`, 'tasks/pushNotificationConfig/list', 'tasks/pushNotification/list'],
  ['push', `Delete${PUSH}`, 'tasks/pushNotificationConfig/delete', 'tasks/pushNotification/delete'],
]);
/**
 * @param {number} column of the table
 * @returns {any}
 */
const methodsIn = (column) => Object.fromEntries(NAMES.map((row) => [row[0], row[column]]));
/** @type {State[]} */
const ENDS = ['completed', 'failed', 'canceled', 'rejected'];

/**
 * One version. `gem` is the dialect of the Ruby gem simple_a2a: the names of 0.1 with the payloads
 * of 1.0.
 * @typedef {object} Dialect
 * @property {'gem' | '0.3' | '1.0'} name
 * @property {string | undefined} header the `A2A-Version` that a client sends
 * @property {string} extensionsHeader the name of the header that lists extensions
 * @property {Record<Operation, string | undefined>} methods
 * @property {(configuration: unknown) => boolean} blocks whether a send is answered only when the
 *   task has ended or needs input
 * @property {boolean} streamsErrors whether the error of a failed resubscription is sent as a
 *   stream
 * @property {boolean} numbered whether a stream's responses have the request's `id`
 * @property {boolean} snapshot whether the stream of a new task begins with the task
 * @property {boolean} lasting whether a subscription goes on while its task waits for input
 * @property {boolean} repeatable whether a canceled task may be canceled again
 * @property {boolean} streamsAnswers whether a message to an existing task can be streamed
 * @property {boolean} pages whether a list has pages, and has artifacts only on request
 * @property {boolean} explains whether errors carry `data`
 * @property {Record<string, number>} codes of errors, by reason
 * @property {(method: unknown) => string} noMethod
 * @property {string} noId
 * @property {(id: string) => string} notFound
 * @property {(id: string) => string} notCancelable
 * @property {(params: unknown) => unknown} answers reads the id of the task that a message
 *   continues
 * @property {(message: Message) => object} sendParams parameters beside the message that name the
 *   task it continues
 * @property {(state: State) => string} state
 * @property {(message: Message) => object} message
 * @property {(artifact: Artifact) => object} artifact
 * @property {(status: Status) => object} status
 * @property {(task: Task) => object} task
 * @property {(event: Event) => object} event an event of a stream, or the answer to a send
 * @property {(tasks: Task[], page: { nextPageToken: string, pageSize: number, totalSize: number
 *   | undefined }) => unknown} list
 */

/** Error codes that every version has. @type {Record<string, number>} */
const CODES = {
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL_ERROR: -32603,
  TASK_NOT_FOUND: -32001,
  TASK_NOT_CANCELABLE: -32002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  INVALID_AGENT_RESPONSE: -32006,
};

/**
 * The members of an event that every version has.
 * @param {Dialect} dialect
 * @param {Event} event
 * @returns {any}
 */
function bodyOf(dialect, event) {
  if (event.kind === 'task') return dialect.task(event.task);
  if (event.kind === 'message') return dialect.message(event.message);
  const { taskId, contextId } = event;
  if (event.kind === 'status') return { taskId, contextId, status: dialect.status(event.status) };
  const { append, lastChunk } = event;
  return { taskId, contextId, artifact: dialect.artifact(event.artifact), append, lastChunk };
}

/** @type {Dialect} */
const V10 = {
  name: '1.0',
  header: '1.0',
  extensionsHeader: 'a2a-extensions',
  methods: methodsIn(1),
  blocks: (configuration) => getField(configuration, 'returnImmediately') !== true,
  streamsErrors: false,
  numbered: true,
  snapshot: true,
  lasting: true,
  repeatable: true,
  streamsAnswers: true,
  pages: true,
  explains: true,
  codes: {
    ...CODES,
    EXTENDED_AGENT_CARD_NOT_CONFIGURED: -32007,
    EXTENSION_SUPPORT_REQUIRED: -32008,
    VERSION_NOT_SUPPORTED: -32009,
  },
  noMethod: () => 'Invalid method.',
  noId: 'Task ID is required',
  notFound: (id) => `Task not found: ${id}`,
  notCancelable: (id) => `Task not cancelable: ${id}`,
  answers: (params) => getField(getOwn(params, 'message'), 'taskId'),
  sendParams: () => ({}),
  state: (state) =>
    `TASK_STATE_${state === 'unknown' ? 'UNSPECIFIED' : state.toUpperCase().replace('-', '_')}`,
  message: (message) => ({
    ...message,
    role: message.role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT',
  }),
  artifact: (artifact) => ({ ...artifact, metadata: artifact.metadata ?? {} }),
  status({ state, timestamp, message }) {
    const printed = message && this.message(message);
    return compact({ state: this.state(state), timestamp, message: printed });
  },
  // Members are named, since the other members of a stored task are private.
  task({ id, contextId, status, artifacts, history, metadata = {} }) {
    return compact({
      id,
      contextId,
      status: this.status(status),
      artifacts: artifacts.length ? artifacts.map((one) => this.artifact(one)) : undefined,
      history: history.length ? history.map((one) => this.message(one)) : undefined,
      metadata,
    });
  },
  event(event) {
    const body = bodyOf(this, event);
    if (event.kind === 'task' || event.kind === 'message') return { [event.kind]: body };
    // ProtoJSON omits `false`.
    const flags = { append: body.append || undefined, lastChunk: body.lastChunk || undefined };
    const { metadata = {} } = event;
    return { [`${event.kind}Update`]: compact({ ...body, ...flags, metadata }) };
  },
  list(tasks, page) {
    const printed = tasks.map((task) => this.task(task));
    return this.pages ? { tasks: printed, ...page } : printed;
  },
};

/** @type {Dialect} */
const V03 = {
  ...V10,
  name: '0.3',
  header: undefined,
  extensionsHeader: 'x-a2a-extensions',
  methods: methodsIn(2),
  blocks: (configuration) => getOwn(configuration, 'blocking') !== false,
  streamsErrors: true,
  lasting: false,
  explains: false,
  noMethod: (method) => `Method not found: ${method}`,
  state: (state) => state,
  message: (message) => ({ kind: 'message', ...message, parts: message.parts.map(part03) }),
  artifact: (artifact) => ({ ...V10.artifact(artifact), parts: artifact.parts.map(part03) }),
  task(task) {
    return { kind: 'task', ...V10.task.call(this, task) };
  },
  event(event) {
    const body = bodyOf(this, event);
    if (event.kind === 'task' || event.kind === 'message') return body;
    const final = event.kind === 'status' && { final: event.final === true };
    return { kind: `${event.kind}-update`, ...body, ...final, metadata: event.metadata ?? {} };
  },
};

/** @param {Part} part */
function part03(part) {
  const { metadata } = part;
  if (part.text !== undefined) return compact({ kind: 'text', text: part.text, metadata });
  if (part.url !== undefined || part.raw !== undefined) {
    const file = Object.fromEntries(FILE.map(([name, old]) => [old, part[name]]));
    return compact({ kind: 'file', file: compact(file), metadata });
  }
  if (record(part.data)) return compact({ kind: 'data', data: part.data, metadata });
  // In 0.3 data must be an object. Other values are wrapped and marked, so that they can be read
  // back.
  const wrapped = { ...metadata, [WRAPPED]: true };
  return { kind: 'data', data: { value: part.data ?? null }, metadata: wrapped };
}

/** @type {Dialect} */
const GEM = {
  ...V10,
  name: 'gem',
  header: undefined,
  methods: methodsIn(3),
  blocks: () => true,
  numbered: false,
  snapshot: false,
  lasting: false,
  repeatable: false,
  // The gem's server begins a new task with every streamed message.
  streamsAnswers: false,
  pages: false,
  explains: false,
  codes: { ...CODES, EXTENSION_SUPPORT_REQUIRED: -32007, VERSION_NOT_SUPPORTED: -32008 },
  noMethod: V03.noMethod,
  noId: 'id is required',
  notFound: (id) => `Task ${id} not found`,
  notCancelable: (id) => `Task ${id} is already terminal`,
  answers: (params) => getOwn(params, 'id') ?? V10.answers(params),
  sendParams: ({ taskId }) => (taskId ? { id: taskId } : {}),
  state: (state) => state.replace('-', '_'),
  message: (message) => message,
  artifact: (artifact) => ({ ...artifact, extensions: artifact.extensions ?? [] }),
  status(status) {
    // The gem's messages are often plain strings.
    const { text } = status;
    return { ...V10.status.call(this, status), ...(text !== undefined && { message: text }) };
  },
  task({ id, contextId, status, artifacts, history }) {
    const shown = artifacts.map((one) => this.artifact(one));
    return { id, contextId, status: this.status(status), artifacts: shown, history };
  },
  event(event) {
    const body = bodyOf(this, event);
    if (event.kind === 'artifact') return { ...body, type: 'TaskArtifactUpdateEvent' };
    if (event.kind !== 'status') return body;
    // It says that the task has ended, not the stream.
    const final = ENDS.includes(event.status.state);
    return { ...body, final, type: 'TaskStatusUpdateEvent' };
  },
};

/** The dialects by name. */
export const DIALECTS = { gem: GEM, 0.3: V03, '1.0': V10 };

/**
 * The operation of each method name, and the versions that use this name.
 * @type {Map<unknown, { operation: Operation | Other, dialects: Dialect[] }>}
 */
export const METHODS = new Map();
for (const [operation, ...names] of NAMES)
  for (const [i, name] of names.entries()) {
    const known = METHODS.get(name)?.dialects ?? [];
    METHODS.set(name, { operation, dialects: [...known, [V10, V03, GEM][i]] });
  }
METHODS.delete(undefined);

// --- Errors --------------------------------------------------------------------------------------

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';
const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest';
const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo';
const DOMAIN = 'a2a-protocol.org';

/**
 * Prints an error. The codes of AbpErrors in A2A are the reasons of 1.0, such as `TASK_NOT_FOUND`.
 * @param {Dialect} dialect
 * @param {AbpError} error
 * @returns {{ code: number, message: string, data?: unknown }}
 */
export function printError(dialect, { code: reason, message, details, retryAfter }) {
  const code = Object.hasOwn(dialect.codes, reason) ? dialect.codes[reason] : CODES.INTERNAL_ERROR;
  // JSON-RPC's own errors have no details.
  const standard = Object.hasOwn(CODES, reason) && CODES[reason] <= CODES.INVALID_REQUEST;
  if (!dialect.explains || (standard && reason !== 'INVALID_PARAMS')) return { code, message };
  const domain = Object.hasOwn(dialect.codes, reason) ? DOMAIN : 'abp-bridge';
  const data = /** @type {object[]} */ ([{ '@type': ERROR_INFO, reason, domain }]);
  if (getOwn(details, 'field')) data.push({ '@type': BAD_REQUEST, fieldViolations: [details] });
  if (retryAfter) data.push({ '@type': RETRY_INFO, retryDelay: `${retryAfter / 1000}s` });
  return { code, message, data };
}

/**
 * The ms to wait before trying again, if an error's data has them.
 * @param {unknown} data
 */
export function retryAfterIn(data) {
  const retry = list(data).find((item) => getOwn(item, '@type') === RETRY_INFO);
  const seconds = parseFloat(textOf(getOwn(retry, 'retryDelay')) ?? '');
  return seconds >= 0 ? seconds * 1000 : undefined;
}

/**
 * Reads an error, by its reason or its code.
 * @param {Dialect} dialect
 * @param {unknown} error
 */
export function readError(dialect, error) {
  const data = getOwn(error, 'data');
  const info = list(data).find((item) => getOwn(item, '@type') === ERROR_INFO);
  const number = getOwn(error, 'code');
  const named = Object.entries(dialect.codes).find(([, code]) => code === number)?.[0];
  const reason = textOf(getOwn(info, 'reason')) ?? named ?? 'OPERATION_FAILED';
  const isBusy = reason === 'RATE_LIMITED';
  const Kind = isBusy ? Unsent : AbpError;
  return new Kind(reason, textOf(getOwn(error, 'message')) ?? 'The agent gave no message', {
    details: compact({ code: number, data }),
    // The agent was away, so nothing was done.
    retryable: isBusy || reason === 'UNAVAILABLE',
    retryAfter: retryAfterIn(data),
  });
}
