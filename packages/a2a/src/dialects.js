/**
 * The differences between the versions of A2A: names of methods, spellings of states, shapes of tasks and events, codes
 * of errors. Reading accepts every version and returns one form; printing writes a given version.
 *
 * The form is that of 1.0 (a part is `{ text }`, `{ data }`, `{ url }` or `{ raw }`), with the states and roles of
 * 0.3 (`'input-required'`, `'user'`). Only own properties are read.
 */
import { AbpError } from '../../../js/common/errors.js';
import { getOwn, textOf } from '../../../js/common/values.js';
import { readOutcome } from './outcome.js';
import { Unsent } from './unsent.js';

/** @import { TaskState } from './tasks-boundary.js' */

/**
 * @typedef {'unknown' | 'submitted' | 'working' | 'completed' | 'failed' | 'canceled' | 'input-required'
 *   | 'rejected' | 'auth-required'} State The state of a task, by its name in A2A.
 * @typedef {Record<string, any>} Metadata whatever either side puts there
 * @typedef {{ text?: string, data?: unknown, url?: string, raw?: string, mediaType?: string,
 *   filename?: string, metadata?: Metadata }} Part `raw` is base64
 * @typedef {{ messageId: string, role: 'user' | 'agent', parts: Part[], contextId?: string, taskId?: string,
 *   metadata?: Metadata, extensions?: string[], referenceTaskIds?: string[] }} Message A message between a user and an agent.
 * @typedef {{ state: State, timestamp?: string, message?: Message, text?: string,
 *   outcome?: import('../../../js/types/outcome.js').CallOutcome, report?: unknown, progress?: any }} Status `text` is the
 *   message when it came as a plain string. As a client reads it, `outcome` is what became of the work of a task that was
 *   canceled or has failed, `report` what its executor said of that, and `progress` its last progress
 * @typedef {{ artifactId: string, parts: Part[], name?: string, description?: string, metadata?: Metadata,
 *   extensions?: string[] }} Artifact Something that a task has made.
 * @typedef {{ id: string, contextId: string, status: Status, artifacts: Artifact[], history: Message[],
 *   metadata?: Metadata }} Task A task, as its server shows it.
 * @typedef {{ kind: 'task', task: Task }
 *   | { kind: 'message', message: Message }
 *   | { kind: 'status', taskId: string, contextId: string, status: Status, final?: boolean, metadata?: Metadata }
 *   | { kind: 'artifact', taskId: string, contextId: string, artifact: Artifact, append: boolean,
 *       lastChunk: boolean, metadata?: Metadata }} Event an event of a stream, or the answer to a send
 */

/** By the core's numbers. @type {State[]} */
export const STATES = [
  ...['unknown', 'submitted', 'working', 'completed', 'failed', 'canceled', 'input-required'],
  ...['rejected', 'auth-required'],
].map((state) => /** @type {State} */ (state));

// --- Reading, in every version ----------------------------------------------------------------------

/** Fields of several words, as a2a.proto spells them. ProtoJSON accepts both spellings. */
const SNAKE = new Map(
  [
    ...['messageId', 'contextId', 'taskId', 'artifactId', 'mediaType', 'referenceTaskIds'],
    ...['statusUpdate', 'artifactUpdate', 'lastChunk', 'acceptedOutputModes', 'historyLength'],
    ...['returnImmediately', 'pageSize', 'pageToken', 'nextPageToken', 'statusTimestampAfter'],
    ...['includeArtifacts', 'taskPushNotificationConfig', 'pushNotificationConfig'],
  ].map((name) => [name, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]),
);

/**
 * A field by its name in JSON, in either spelling.
 * @param {unknown} object
 * @param {string} name
 * @returns {any}
 */
export function getField(object, name) {
  const value = getOwn(object, name);
  if (value !== undefined) return value;
  const spelled = SNAKE.get(name);
  return spelled && getOwn(object, spelled);
}

/** @param {unknown} value @returns {unknown[]} */
const list = (value) => (Array.isArray(value) ? value : []);
/** @param {unknown} value @returns {Metadata | undefined} */
const record = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
/** @param {unknown} value */
const texts = (value) => {
  const all = list(value).filter((item) => typeof item === 'string');
  return all.length ? all : undefined;
};

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
 * The number of a state in any spelling (`TASK_STATE_INPUT_REQUIRED`, `input_required`, 6), or 0 if it is unknown.
 * @param {unknown} state
 * @returns {TaskState}
 */
export function readState(state) {
  if (typeof state === 'number')
    return /** @type {TaskState} */ (STATES[state] === undefined ? 0 : state);
  const word = textOf(state)
    ?.replace(/^TASK_STATE_/, '')
    .toLowerCase()
    .replace('_', '-')
    .replace('cancelled', 'canceled');
  return /** @type {TaskState} */ (Math.max(0, STATES.indexOf(/** @type {State} */ (word))));
}

/** Marks data that had to be wrapped for 0.3. */
const WRAPPED = 'data_part_compat';

/** @param {unknown} part @returns {Part} */
function readPart(part) {
  const file = getField(part, 'file');
  const metadata = record(getField(part, 'metadata'));
  if (metadata && getField(metadata, WRAPPED) === true) {
    const rest = Object.entries(metadata).filter(([key]) => key !== WRAPPED);
    return compact({
      data: getField(getField(part, 'data'), 'value'),
      metadata: rest.length ? Object.fromEntries(rest) : undefined,
    });
  }
  if (file !== undefined)
    return compact({
      url: textOf(getField(file, 'uri')),
      raw: textOf(getField(file, 'bytes')),
      mediaType: textOf(getField(file, 'mimeType')),
      filename: textOf(getField(file, 'name')),
      metadata,
    });
  return compact({
    text: textOf(getField(part, 'text')),
    data: getField(part, 'data'),
    url: textOf(getField(part, 'url')),
    raw: textOf(getField(part, 'raw')),
    mediaType: textOf(getField(part, 'mediaType')),
    filename: textOf(getField(part, 'filename')),
    metadata,
  });
}

/** @param {unknown} message @returns {Message} */
export function readMessage(message) {
  const role = getField(message, 'role');
  return compact({
    messageId: textOf(getField(message, 'messageId')) ?? '',
    role: role === 'user' || role === 'ROLE_USER' || role === 1 ? 'user' : 'agent',
    parts: list(getField(message, 'parts')).map(readPart),
    contextId: textOf(getField(message, 'contextId')),
    taskId: textOf(getField(message, 'taskId')),
    metadata: record(getField(message, 'metadata')),
    extensions: texts(getField(message, 'extensions')),
    referenceTaskIds: texts(getField(message, 'referenceTaskIds')),
  });
}

/** @param {unknown} artifact @returns {Artifact} */
export function readArtifact(artifact) {
  // 0.1 numbers them.
  const index = getField(artifact, 'index');
  return compact({
    artifactId:
      textOf(getField(artifact, 'artifactId')) ?? (Number.isInteger(index) ? `${index}` : ''),
    parts: list(getField(artifact, 'parts')).map(readPart),
    name: textOf(getField(artifact, 'name')),
    description: textOf(getField(artifact, 'description')),
    metadata: record(getField(artifact, 'metadata')),
    extensions: texts(getField(artifact, 'extensions')),
  });
}

/** @param {unknown} status @returns {Status} */
function readStatus(status) {
  const given = getField(status, 'message');
  const state = STATES[readState(getField(status, 'state'))];
  const message = record(given) && readMessage(given);
  return compact({
    state,
    timestamp: textOf(getField(status, 'timestamp')),
    text: textOf(given),
    message,
    ...readOutcome(state, message),
  });
}

/** @param {unknown} task @returns {Task} */
export function readTask(task) {
  return compact({
    id: textOf(getField(task, 'id')) ?? '',
    contextId: textOf(getField(task, 'contextId')) ?? '',
    status: readStatus(getField(task, 'status')),
    artifacts: list(getField(task, 'artifacts')).map(readArtifact),
    history: list(getField(task, 'history')).map(readMessage),
    metadata: record(getField(task, 'metadata')),
  });
}

/**
 * The result of a send, or an event of a stream. 1.0 wraps it, 0.3 names its `kind`, the gem its `type`. Anything else
 * is recognised by its members.
 * @param {unknown} result
 * @returns {Event | undefined} undefined if it is no event
 */
export function readEvent(result) {
  const wrapped = (/** @type {string} */ name) => record(getField(result, name));
  const whole = getField(result, 'kind') === undefined && getField(result, 'type') === undefined;
  // In other versions a `message` or a `task` beside other members is not the event itself.
  if (whole && wrapped('task')) return { kind: 'task', task: readTask(wrapped('task')) };
  if (whole && wrapped('message'))
    return { kind: 'message', message: readMessage(wrapped('message')) };
  const inner = wrapped('statusUpdate') ?? wrapped('artifactUpdate') ?? record(result);
  if (!inner) return undefined;
  const common = {
    // 0.1 calls it `id`.
    taskId: textOf(getField(inner, 'taskId')) ?? textOf(getField(inner, 'id')) ?? '',
    contextId: textOf(getField(inner, 'contextId')) ?? '',
    metadata: record(getField(inner, 'metadata')),
  };
  const artifact = getField(inner, 'artifact');
  if (record(artifact))
    return compact({
      kind: /** @type {const} */ ('artifact'),
      ...common,
      artifact: readArtifact(artifact),
      // 0.1 has them in the artifact.
      append: (getField(inner, 'append') ?? getField(artifact, 'append')) === true,
      lastChunk: (getField(inner, 'lastChunk') ?? getField(artifact, 'lastChunk')) === true,
    });
  if (record(getField(inner, 'status'))) {
    const final = getField(inner, 'final');
    const isTask =
      getField(inner, 'kind') === 'task' ||
      (final === undefined && !textOf(getField(inner, 'taskId')));
    if (isTask) return { kind: 'task', task: readTask(inner) };
    return compact({
      kind: /** @type {const} */ ('status'),
      ...common,
      status: readStatus(getField(inner, 'status')),
      final: typeof final === 'boolean' ? final : undefined,
    });
  }
  if (Array.isArray(getField(inner, 'parts')))
    return { kind: 'message', message: readMessage(inner) };
  return undefined;
}

/** The tasks of a list: the gem answers with the list itself. @param {unknown} result @returns {Task[]} */
export const readTasks = (result) =>
  list(Array.isArray(result) ? result : getField(result, 'tasks')).map(readTask);

// --- Printing, in one version ----------------------------------------------------------------------------

/** @typedef {'send' | 'stream' | 'get' | 'cancel' | 'resubscribe' | 'list'} Operation */
/** @typedef {'push' | 'extendedCard'} Refused what this server knows by name and does not do */

/**
 * One version. `gem` is the dialect of the Ruby gem simple_a2a: the names of 0.1 with the payloads of 1.0.
 * @typedef {object} Dialect
 * @property {'gem' | '0.3' | '1.0'} name
 * @property {string | undefined} header what a client sends as `A2A-Version`
 * @property {string} extensionsHeader what it calls the header that names extensions
 * @property {Record<Operation, string | undefined>} methods
 * @property {string[]} push methods of push notifications
 * @property {string | undefined} extendedCard the method that asks for the card behind a login
 * @property {(configuration: unknown) => boolean} blocks whether a send is answered only when the task has ended or
 *   needs somebody
 * @property {boolean} streamsErrors whether a failed resubscription is answered with a stream that says so
 * @property {boolean} numbered whether a stream's responses have the request's `id`
 * @property {boolean} snapshot whether the stream of a new task begins with the task
 * @property {boolean} lasting whether a subscription goes on while its task waits for input
 * @property {boolean} repeatable whether a canceled task may be cancelled again
 * @property {Record<string, number>} codes of errors, by reason
 * @property {(method: unknown) => string} noMethod
 * @property {string} noId
 * @property {(params: unknown) => unknown} answers the task that a message is for
 * @property {boolean} streamsAnswers whether a message to a task that is there can be streamed
 * @property {(message: Message) => object} sendParams the parameters that say which task a message is for, besides it
 * @property {(id: string) => string} notFound
 * @property {(id: string) => string} notCancelable
 * @property {(message: Message) => unknown} message
 * @property {(task: Task) => unknown} task
 * @property {(event: Event) => unknown} event as a stream has it, and the answer to a send
 * @property {(tasks: Task[], page: { nextPageToken: string, pageSize: number, totalSize: number | undefined }) => unknown} list
 * @property {boolean} pages whether a list comes in pages, and without artifacts unless they are asked for
 * @property {boolean} explains whether errors carry `data`
 */

/** What the gem's `final` says: not that the stream ends, but that the task has. @param {State} state */
const isFinal = (state) =>
  state === 'completed' || state === 'failed' || state === 'canceled' || state === 'rejected';

/** Codes that every version has. @type {Record<string, number>} */
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
 * Prints a status with a version's states and messages.
 * @param {Status} status
 * @param {string} state
 * @param {(message: Message) => unknown} message
 */
const printStatus = (status, state, message) =>
  compact({
    state,
    timestamp: status.timestamp,
    message: status.message && message(status.message),
  });

/** @type {Dialect} */
const V10 = {
  name: '1.0',
  header: '1.0',
  extensionsHeader: 'a2a-extensions',
  methods: {
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    cancel: 'CancelTask',
    resubscribe: 'SubscribeToTask',
    list: 'ListTasks',
  },
  push: ['Create', 'Get', 'Delete']
    .map((verb) => `${verb}TaskPushNotificationConfig`)
    .concat('ListTaskPushNotificationConfigs'),
  extendedCard: 'GetExtendedAgentCard',
  blocks: (configuration) => getField(configuration, 'returnImmediately') !== true,
  streamsErrors: false,
  numbered: true,
  snapshot: true,
  lasting: true,
  repeatable: true,
  codes: {
    ...CODES,
    EXTENDED_AGENT_CARD_NOT_CONFIGURED: -32007,
    EXTENSION_SUPPORT_REQUIRED: -32008,
    VERSION_NOT_SUPPORTED: -32009,
  },
  noMethod: () => 'Invalid method.',
  noId: 'Task ID is required',
  answers: (params) => getField(getOwn(params, 'message'), 'taskId'),
  streamsAnswers: true,
  sendParams: () => ({}),
  notFound: (id) => `Task not found: ${id}`,
  notCancelable: (id) => `Task not cancelable: ${id}`,
  message: (message) => ({
    ...message,
    role: message.role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT',
  }),
  // By name, since the other members of a stored task are private.
  task: ({ id, contextId, status, artifacts, history, metadata = {} }) =>
    compact({
      id,
      contextId,
      status: status10(status),
      artifacts: artifacts.length ? artifacts.map(artifact10) : undefined,
      history: history.length ? history.map(V10.message) : undefined,
      metadata,
    }),
  event(event) {
    if (event.kind === 'task') return { task: V10.task(event.task) };
    if (event.kind === 'message') return { message: V10.message(event.message) };
    const { taskId, contextId, metadata = {} } = event;
    if (event.kind === 'status')
      return { statusUpdate: { taskId, contextId, status: status10(event.status), metadata } };
    return {
      artifactUpdate: compact({
        taskId,
        contextId,
        artifact: artifact10(event.artifact),
        append: event.append || undefined,
        lastChunk: event.lastChunk || undefined,
        metadata,
      }),
    };
  },
  list: (tasks, page) => ({ tasks: tasks.map(V10.task), ...page }),
  pages: true,
  explains: true,
};
/** @param {Status} status */
const status10 = (status) =>
  printStatus(
    status,
    `TASK_STATE_${status.state === 'unknown' ? 'UNSPECIFIED' : status.state.toUpperCase().replace('-', '_')}`,
    V10.message,
  );
/** @param {Artifact} artifact */
const artifact10 = (artifact) => ({ ...artifact, metadata: artifact.metadata ?? {} });

/** @type {Dialect} */
const V03 = {
  ...V10,
  name: '0.3',
  header: undefined,
  extensionsHeader: 'x-a2a-extensions',
  methods: {
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    resubscribe: 'tasks/resubscribe',
    list: undefined,
  },
  push: ['set', 'get', 'list', 'delete'].map((verb) => `tasks/pushNotificationConfig/${verb}`),
  extendedCard: 'agent/getAuthenticatedExtendedCard',
  blocks: (configuration) => getOwn(configuration, 'blocking') !== false,
  streamsErrors: true,
  lasting: false,
  noMethod: (method) => `Method not found: ${method}`,
  message: (message) => ({ kind: 'message', ...message, parts: message.parts.map(part03) }),
  task: ({ id, contextId, status, artifacts, history, metadata = {} }) =>
    compact({
      kind: 'task',
      id,
      contextId,
      status: printStatus(status, status.state, V03.message),
      artifacts: artifacts.length ? artifacts.map(artifact03) : undefined,
      history: history.length ? history.map(V03.message) : undefined,
      metadata,
    }),
  event(event) {
    if (event.kind === 'task') return V03.task(event.task);
    if (event.kind === 'message') return V03.message(event.message);
    const { taskId, contextId, metadata = {} } = event;
    if (event.kind === 'status')
      return {
        kind: 'status-update',
        taskId,
        contextId,
        status: printStatus(event.status, event.status.state, V03.message),
        final: event.final === true,
        metadata,
      };
    const { append, lastChunk } = event;
    const artifact = artifact03(event.artifact);
    return { kind: 'artifact-update', taskId, contextId, artifact, append, lastChunk, metadata };
  },
  list: (tasks, page) => ({ tasks: tasks.map(V03.task), ...page }),
  explains: false,
};
/** @param {Artifact} artifact */
const artifact03 = (artifact) => ({
  ...artifact,
  parts: artifact.parts.map(part03),
  metadata: artifact.metadata ?? {},
});

/** @param {Part} part */
function part03(part) {
  const { metadata } = part;
  if (part.text !== undefined) return compact({ kind: 'text', text: part.text, metadata });
  if (part.url !== undefined || part.raw !== undefined) {
    const { url: uri, raw: bytes, mediaType: mimeType, filename: name } = part;
    return compact({ kind: 'file', file: compact({ uri, bytes, mimeType, name }), metadata });
  }
  if (record(part.data)) return compact({ kind: 'data', data: part.data, metadata });
  // In 0.3 data must be an object. Other values are wrapped, and marked for reading them again.
  const wrapped = { ...metadata, [WRAPPED]: true };
  return { kind: 'data', data: { value: part.data ?? null }, metadata: wrapped };
}

/** @type {Dialect} */
const GEM = {
  ...V10,
  name: 'gem',
  header: undefined,
  methods: {
    send: 'tasks/send',
    stream: 'tasks/sendSubscribe',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    resubscribe: 'tasks/resubscribe',
    list: 'tasks/list',
  },
  push: ['set', 'get', 'list', 'delete'].map((verb) => `tasks/pushNotification/${verb}`),
  extendedCard: undefined,
  blocks: () => true,
  streamsErrors: false,
  numbered: false,
  snapshot: false,
  lasting: false,
  repeatable: false,
  codes: { ...CODES, EXTENSION_SUPPORT_REQUIRED: -32007, VERSION_NOT_SUPPORTED: -32008 },
  noMethod: V03.noMethod,
  noId: 'id is required',
  answers: (params) => getOwn(params, 'id') ?? V10.answers(params),
  // The gem's server begins a new task with every streamed message.
  streamsAnswers: false,
  sendParams: ({ taskId }) => (taskId ? { id: taskId } : {}),
  notFound: (id) => `Task ${id} not found`,
  notCancelable: (id) => `Task ${id} is already terminal`,
  message: (message) => message,
  task: ({ id, contextId, status, artifacts, history }) => ({
    id,
    contextId,
    status: statusGem(status),
    artifacts: artifacts.map(artifactGem),
    history,
  }),
  event(event) {
    if (event.kind === 'task') return GEM.task(event.task);
    if (event.kind === 'message') return event.message;
    const { taskId, contextId } = event;
    if (event.kind === 'status')
      return {
        taskId,
        contextId,
        status: statusGem(event.status),
        final: isFinal(event.status.state),
        type: 'TaskStatusUpdateEvent',
      };
    const { append, lastChunk } = event;
    const artifact = artifactGem(event.artifact);
    return { taskId, contextId, artifact, append, lastChunk, type: 'TaskArtifactUpdateEvent' };
  },
  list: (tasks) => tasks.map(GEM.task),
  pages: false,
  explains: false,
};
/** @param {Status} status */
const statusGem = (status) => ({
  ...printStatus(status, status.state.replace('-', '_'), GEM.message),
  // The gem's messages are often plain strings.
  ...(status.text !== undefined && { message: status.text }),
});
/** @param {Artifact} artifact */
const artifactGem = (artifact) => ({ ...artifact, extensions: artifact.extensions ?? [] });

/** The dialects by name. */
export const DIALECTS = { gem: GEM, 0.3: V03, '1.0': V10 };

/** @typedef {{ operation: Operation | Refused, dialects: Dialect[] }} NamedOperation */

/**
 * The operation that a method names, and the versions that have this name for it.
 * @type {Map<unknown, NamedOperation>}
 */
export const METHODS = new Map();
for (const dialect of [V03, V10, GEM]) {
  const named = /** @type {[Operation | Refused, string | undefined][]} */ ([
    ...Object.entries(dialect.methods),
    ...dialect.push.map((name) => ['push', name]),
    ['extendedCard', dialect.extendedCard],
  ]);
  for (const [operation, name] of named) {
    if (!name) continue;
    /** @type {NamedOperation} */
    const method = METHODS.get(name) ?? { operation, dialects: [] };
    method.dialects.push(dialect);
    METHODS.set(name, method);
  }
}

// --- Errors ------------------------------------------------------------------------------------------------

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

/** The ms after which an error's data say to try again, if they do. @param {unknown} data */
export function retryAfterIn(data) {
  const retry = list(data).find((item) => getOwn(item, '@type') === RETRY_INFO);
  const seconds = parseFloat(textOf(getOwn(retry, 'retryDelay')) ?? '');
  return seconds >= 0 ? seconds * 1000 : undefined;
}

/**
 * Reads an error, by the reason that it names or by its code.
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
    // Of one that is away, nothing has been done.
    retryable: isBusy || reason === 'UNAVAILABLE',
    retryAfter: retryAfterIn(data),
  });
}
