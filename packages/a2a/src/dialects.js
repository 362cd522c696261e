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

/** How a2a.proto spells fields of several words. ProtoJSON accepts both spellings. @type {Map<string, string>} */
const SNAKE = new Map();

/** A field by its name in JSON, in either spelling. @param {unknown} object @param {string} name @returns {any} */
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

/**
 * Reads members, each by what it may hold, and leaves out those that are not there.
 * @param {unknown} object
 * @param {[name: string, kind: (value: unknown) => unknown][]} members
 */
function read(object, members) {
  /** @type {any} */
  const result = {};
  for (const [name, kind] of members) {
    const value = kind(getField(object, name));
    if (value !== undefined) result[name] = value;
  }
  return result;
}

/** @param {string} names @param {(value: unknown) => unknown} kind @returns {[string, typeof kind][]} */
const each = (names, kind) => names.split(' ').map((name) => [name, kind]);

const FILE = each('uri bytes mimeType name', textOf);
const PART = [
  ...each('text url raw mediaType filename', textOf),
  ...each('data', (value) => value),
  ...each('metadata', record),
];
const MESSAGE = [
  ...each('contextId taskId', textOf),
  ...each('metadata', record),
  ...each('extensions referenceTaskIds', texts),
];
const ARTIFACT = [
  ...each('name description', textOf),
  ...each('metadata', record),
  ...each('extensions', texts),
];

/** Marks data that had to be wrapped for 0.3. */
const WRAPPED = 'data_part_compat';

/** @param {unknown} given @returns {Part} */
function readPart(given) {
  const part = read(given, PART);
  const { metadata } = part;
  const file = getField(given, 'file');
  if (metadata && getField(metadata, WRAPPED) === true) {
    const rest = { ...metadata };
    delete rest[WRAPPED];
    const data = getField(part.data, 'value');
    return compact({ data, metadata: Object.keys(rest).length ? rest : undefined });
  }
  if (file === undefined) return part;
  const { uri: url, bytes: raw, mimeType: mediaType, name: filename } = read(file, FILE);
  return compact({ url, raw, mediaType, filename, metadata });
}

/** @param {unknown} message @returns {Message} */
export function readMessage(message) {
  const role = getField(message, 'role');
  return {
    messageId: textOf(getField(message, 'messageId')) ?? '',
    role: role === 'user' || role === 'ROLE_USER' || role === 1 ? 'user' : 'agent',
    parts: list(getField(message, 'parts')).map(readPart),
    ...read(message, MESSAGE),
  };
}

/** @param {unknown} artifact @returns {Artifact} */
export function readArtifact(artifact) {
  // 0.1 numbers them.
  const index = getField(artifact, 'index');
  const id = textOf(getField(artifact, 'artifactId'));
  return {
    artifactId: id ?? (Number.isInteger(index) ? `${index}` : ''),
    parts: list(getField(artifact, 'parts')).map(readPart),
    ...read(artifact, ARTIFACT),
  };
}

/** @param {unknown} status @returns {Status} */
function readStatus(status) {
  const given = getField(status, 'message');
  const state = STATES[readState(getField(status, 'state'))];
  const message = record(given) && readMessage(given);
  const timestamp = textOf(getField(status, 'timestamp'));
  return compact({
    ...{ state, timestamp, text: textOf(given), message },
    ...readOutcome(state, message),
  });
}

/** @param {unknown} task @returns {Task} */
export const readTask = (task) =>
  compact({
    id: textOf(getField(task, 'id')) ?? '',
    contextId: textOf(getField(task, 'contextId')) ?? '',
    status: readStatus(getField(task, 'status')),
    artifacts: list(getField(task, 'artifacts')).map(readArtifact),
    history: list(getField(task, 'history')).map(readMessage),
    metadata: record(getField(task, 'metadata')),
  });

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
 * @property {(state: State) => string} state
 * @property {(message: Message) => object} message
 * @property {(artifact: Artifact) => object} artifact
 * @property {(status: Status) => object} status
 * @property {(task: Task) => object} task
 * @property {(event: Event) => object} event as a stream has it, and the answer to a send
 * @property {(tasks: Task[], page: { nextPageToken: string, pageSize: number, totalSize: number | undefined }) => unknown} list
 * @property {boolean} pages whether a list comes in pages, and without artifacts unless they are asked for
 * @property {boolean} explains whether errors carry `data`
 */

/** @type {State[]} */
const ENDS = ['completed', 'failed', 'canceled', 'rejected'];

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
  state: (state) =>
    `TASK_STATE_${state === 'unknown' ? 'UNSPECIFIED' : state.toUpperCase().replace('-', '_')}`,
  message: (message) => ({
    ...message,
    role: message.role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT',
  }),
  artifact: (artifact) => ({ ...artifact, metadata: artifact.metadata ?? {} }),
  status({ state, timestamp, message }) {
    return compact({
      state: this.state(state),
      timestamp,
      message: message && this.message(message),
    });
  },
  // By name, since the other members of a stored task are private.
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
    if (event.kind === 'task') return { task: this.task(event.task) };
    if (event.kind === 'message') return { message: this.message(event.message) };
    const { taskId, contextId, metadata = {} } = event;
    if (event.kind === 'status')
      return { statusUpdate: { taskId, contextId, status: this.status(event.status), metadata } };
    const artifact = this.artifact(event.artifact);
    const append = event.append || undefined;
    const lastChunk = event.lastChunk || undefined;
    return {
      artifactUpdate: compact({ taskId, contextId, artifact, append, lastChunk, metadata }),
    };
  },
  list(tasks, page) {
    return { tasks: tasks.map((task) => this.task(task)), ...page };
  },
  pages: true,
  explains: true,
};

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
  state: (state) => state,
  message: (message) => ({ kind: 'message', ...message, parts: message.parts.map(part03) }),
  artifact: (artifact) => ({ ...V10.artifact(artifact), parts: artifact.parts.map(part03) }),
  task(task) {
    return { kind: 'task', ...V10.task.call(this, task) };
  },
  event(event) {
    if (event.kind === 'task') return this.task(event.task);
    if (event.kind === 'message') return this.message(event.message);
    const { taskId, contextId, metadata = {} } = event;
    if (event.kind === 'status') {
      const final = event.final === true;
      const status = this.status(event.status);
      return { kind: 'status-update', taskId, contextId, status, final, metadata };
    }
    const { append, lastChunk } = event;
    const artifact = this.artifact(event.artifact);
    return { kind: 'artifact-update', taskId, contextId, artifact, append, lastChunk, metadata };
  },
  explains: false,
};

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
    if (event.kind === 'task') return this.task(event.task);
    if (event.kind === 'message') return event.message;
    const { taskId, contextId } = event;
    if (event.kind === 'status') {
      const status = this.status(event.status);
      // Not that the stream ends, but that the task has.
      const final = ENDS.includes(event.status.state);
      return { taskId, contextId, status, final, type: 'TaskStatusUpdateEvent' };
    }
    const { append, lastChunk } = event;
    const artifact = this.artifact(event.artifact);
    return { taskId, contextId, artifact, append, lastChunk, type: 'TaskArtifactUpdateEvent' };
  },
  list(tasks) {
    return tasks.map((task) => this.task(task));
  },
  pages: false,
  explains: false,
};

/** The dialects by name. */
export const DIALECTS = { gem: GEM, 0.3: V03, '1.0': V10 };

/**
 * The operation that a method names, and the versions that have this name for it.
 * @type {Map<unknown, { operation: Operation | Refused, dialects: Dialect[] }>}
 */
export const METHODS = new Map();
for (const dialect of [V03, V10, GEM]) {
  const { methods, push, extendedCard } = dialect;
  for (const [operation, names] of Object.entries({ ...methods, push, extendedCard }))
    for (const name of [names ?? []].flat()) {
      const known = METHODS.get(name)?.dialects ?? [];
      METHODS.set(name, {
        operation: /** @type {Operation | Refused} */ (operation),
        dialects: [...known, dialect],
      });
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

/** Reads an error, by the reason that it names or by its code. @param {Dialect} dialect @param {unknown} error */
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
