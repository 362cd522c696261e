/**
 * Our tasks behind the official SDK, `@a2a-js/sdk`: its front (Express, gRPC, authentication) and
 * an executor written for it, with the decisions and the store of this package between them.
 *
 * How it is made. A request that the SDK has read is printed again, as JSON of A2A 1.0, and our
 * server receives it like any other. Its answers are read by the SDK's own types, so that errors
 * are its own, too. The executor runs as ours do: what it publishes on its bus is emitted by our
 * context, where the core decides whether it still counts; when the signal of the context fires,
 * `cancelTask` is called. An executor that answers with a message has a task as well, since the
 * core knows only tasks; its sender gets the message.
 */
import { isLoopback, loadOnce, milliseconds, reportError } from 'abp-bridge/driver';
import { OWN_EXTENSION } from '../card.js';
import { queueResponses } from '../port.js';
import { DIALECTS, readEvent } from '../dialects.js';
import { isOwnName } from '../http.js';
import { createTaskServer } from '../server.js';

/** @import { ExecutorContext } from '../runs.js' */

/**
 * An executor of the SDK.
 * @typedef {object} AgentExecutor
 * @property {(requestContext: any, eventBus: any) => Promise<void>} execute
 * @property {(taskId: string, eventBus: any) => Promise<void>} cancelTask
 */

/**
 * Beside those of `createTaskServer`. Unless `authorize` says otherwise, a task is for the user who
 * began it.
 * @typedef {object} CardOptions
 * @property {any} [extendedAgentCard] the card for those who have logged in, or a function
 *   `(context) => Promise<AgentCard>`
 */

/**
 * Events that may wait for one reader; of one that is slower the stream ends, and its task goes on.
 */
const MAX_QUEUE = 4096;
const V10 = DIALECTS['1.0'];
const PUSH = 'TaskPushNotificationConfig';

/** As those of `createTaskServer`. */
const DEFAULTS = { keepAlive: 15_000, maxUnread: 4 << 20 };

/** The SDK, which only those have who use this. @type {() => Promise<any>} */
const sdk = loadOnce(async () => ({
  ...(await import('@a2a-js/sdk')),
  ...(await import('@a2a-js/sdk/errors')),
  ...(await import('@a2a-js/sdk/server')),
}));

/**
 * A request that was made here.
 * @typedef {object} Call
 * @property {any} params as the SDK has read them
 * @property {any} context of the SDK
 * @property {import('../port.js').QueuedResponses} responses
 * @property {number} unread characters of events that wait to be read
 * @property {boolean} begun whether the executor has published something
 * @property {any} [message] what it has published in place of a task
 */

/**
 * Makes a request handler for the SDK's `jsonRpcHandler`, `restHandler`, `grpcService` and
 * `agentCardHandler`.
 * @param {any} agentCard as the SDK takes it
 * @param {AgentExecutor} executor
 * @param {import('../server.js').TaskServerOptions & CardOptions} [options]
 */
export const createRequestHandler = (agentCard, executor, options) =>
  new TaskRequestHandler(agentCard, executor, options);

/**
 * The SDK's `A2ARequestHandler`, as `createRequestHandler` returns it. Its `server` can be drained
 * and closed.
 */
export class TaskRequestHandler {
  /**
   * Those that have made a request here, by the user whom its run is told.
   * @type {WeakMap<any, Call>}
   */
  #calls = new WeakMap();
  #card;
  #executor;
  #extended;
  /** @type {{ keepAlive: number, maxUnread: number, hosts?: string[] | '*' }} */
  #options;
  /**
   * The response to the request that is being answered, if `guard` has let it in: an
   * `AsyncLocalStorage`.
   * @type {any}
   */
  #connection;

  /**
   * Use {@link createRequestHandler}.
   * @param {any} card
   * @param {AgentExecutor} executor
   * @param {import('../server.js').TaskServerOptions & CardOptions} [options]
   */
  constructor(card, executor, { extendedAgentCard, ...options } = {}) {
    this.#card = card;
    this.#executor = executor;
    this.#extended = extendedAgentCard;
    this.#options = { ...DEFAULTS, ...options };
    // What is behind a login is answered here.
    const own = { streaming: card.capabilities?.streaming === true, extendedAgentCard: undefined };
    const capabilities = { ...card.capabilities, ...own };
    const agent = {
      card: { ...card, capabilities },
      execute: (/** @type {ExecutorContext} */ context) => this.#execute(context),
    };
    /** The server that has the tasks: `await server.drain()` before the process ends. */
    this.server = createTaskServer(agent, { authorize: isOwner, ...options });
  }

  /**
   * Middleware for Express, in front of the SDK's `jsonRpcHandler` and `restHandler`: they do not
   * look after their connections. With it, whoever has left is forgotten, a slow reader is waited
   * for, a silent stream shows signs of life, events have the ids with which a client comes back,
   * and a page whose name was rebound to this machine is refused.
   * @param {any} request
   * @param {any} response
   * @param {(error?: any) => void} next
   */
  guard = async (request, response, next) => {
    const { headers, socket } = request;
    const { hosts, keepAlive } = this.#options;
    const asked = { host: headers.host, local: isLoopback(socket.localAddress ?? '') };
    if (!isOwnName(asked, hosts)) return void response.status(403).end();
    const name = 'node:async_hooks';
    const { AsyncLocalStorage } = await import(name);
    this.#connection ??= new AsyncLocalStorage();
    showLife(response, milliseconds(keepAlive));
    this.#connection.run(response, next);
  };

  /**
   * The card, as it was given, with our extension: clients declare it only where the card has it.
   * What is signed is not changed.
   */
  async getAgentCard() {
    const { capabilities, signatures } = this.#card;
    if (signatures?.length) return this.#card;
    const others = (capabilities?.extensions ?? []).filter(
      (/** @type {{ uri: string }} */ { uri }) => uri !== OWN_EXTENSION.uri,
    );
    const extensions = [...others, { ...OWN_EXTENSION, params: undefined }];
    return { ...this.#card, capabilities: { ...capabilities, extensions } };
  }

  /**
   * The card for those who have logged in.
   * @param {any} _params
   * @param {any} context
   */
  async getAuthenticatedExtendedAgentCard(_params, context) {
    const { ExtendedAgentCardNotConfiguredError, UnsupportedOperationError } = await sdk();
    if (!this.#card.capabilities?.extendedAgentCard)
      throw new UnsupportedOperationError('Agent does not support authenticated extended card.');
    if (!this.#extended) throw new ExtendedAgentCardNotConfiguredError();
    if (typeof this.#extended === 'function') return this.#extended(context);
    return context.user?.isAuthenticated ? this.#extended : this.#card;
  }

  sendMessage = this.#asks('SendMessage', 'SendMessageResponse');
  getTask = this.#asks('GetTask', 'Task');
  cancelTask = this.#asks('CancelTask', 'Task');
  listTasks = this.#asks('ListTasks', 'ListTasksResponse');
  createTaskPushNotificationConfig = this.#asks(`Create${PUSH}`, PUSH, PUSH);
  getTaskPushNotificationConfig = this.#asks(`Get${PUSH}`, PUSH);
  listTaskPushNotificationConfigs = this.#asks(`List${PUSH}s`, `List${PUSH}sResponse`);
  deleteTaskPushNotificationConfig = this.#asks(`Delete${PUSH}`);
  sendMessageStream = this.#streams('SendStreamingMessage', 'SendMessageRequest');
  resubscribe = this.#streams('SubscribeToTask');

  // --- Requests ----------------------------------------------------------------------------------

  /**
   * @param {string} method
   * @param {string} [result] the SDK's type of what it is answered
   * @param {string} [request] the type of its parameters
   * @returns {(params: any, context: any) => Promise<any>}
   */
  #asks(method, result, request = `${method}Request`) {
    return async (params, context) => {
      declare(context);
      const types = await sdk();
      const call = this.#open(types, method, request, params, context);
      let response;
      do response = await call.responses.next();
      while (response === BEGUN);
      const read = resultOf(types, response);
      if (call.message) return call.message;
      const answer = result && types[result].fromJSON(read);
      return answer?.payload?.value ?? answer;
    };
  }

  /**
   * @param {string} method
   * @param {string} [request]
   * @returns {(params: any, context: any) => AsyncGenerator<any, void, undefined>}
   */
  #streams(method, request = `${method}Request`) {
    const open = this.#open.bind(this);
    const connection = () => this.#connection?.getStore();
    return (params, context) => {
      // The SDK sends its headers before the stream is read.
      declare(context);
      return stream(params, context);
    };
    /**
     * @param {any} params
     * @param {any} context
     * @returns {AsyncGenerator<any, void, undefined>}
     */
    async function* stream(params, context) {
      const types = await sdk();
      const response = connection();
      const call = open(types, method, request, params, context);
      // Until the executor says whether it answers with a message or a task, what every task begins
      // with is held back.
      /** @type {{ event: unknown, number?: string }[]} */
      let held = [];
      /** @param {typeof held} events */
      const tell = function* (events) {
        for (const { event, number } of events) {
          // The SDK's front writes the rest of the event. The first comes with the headers.
          if (number && response?.headersSent) response.write(`id: ${number}\n`);
          yield types.StreamResponse.fromJSON(event);
        }
      };
      let holds = method === 'SubscribeToTask' ? 0 : 2;
      try {
        for (let told; (told = /** @type {any} */ (await call.responses.next())) !== undefined;) {
          if (call.message) return yield { payload: { $case: 'message', value: call.message } };
          if (told !== BEGUN) held.push({ event: resultOf(types, told), number: told.number });
          call.unread -= told.size ?? 0;
          if (!call.begun && held.length <= holds) continue;
          holds = 0;
          yield* tell(held);
          held = [];
          await room(response);
        }
        yield* tell(held);
      } finally {
        call.responses.close();
      }
    }
  }

  /**
   * Has our server receive a request.
   * @param {any} types
   * @param {string} method
   * @param {string} request
   * @param {any} params
   * @param {any} context
   * @returns {Call}
   */
  #open(types, method, request, params, context) {
    const user = {
      isAuthenticated: context.user?.isAuthenticated ?? false,
      userName: context.user?.userName ?? '',
    };
    const { maxUnread } = this.#options;
    const reply = {
      left: false,
      extensions: [],
      onLeave: /** @type {undefined | (() => void)} */ (undefined),
      open() {},
      answer(/** @type {object} */ response) {
        responses.push(response);
        responses.end();
      },
      /**
       * @param {object} _head
       * @param {import('../reply.js').Printed} body
       * @param {boolean} [failed]
       * @param {string} [number]
       */
      event(_head, { object, text }, failed, number) {
        call.unread += text.length;
        if (call.unread > maxUnread) responses.close();
        else responses.push({ [failed ? 'error' : 'result']: object, number, size: text.length });
      },
      end: () => responses.end(),
    };
    const responses = queueResponses(MAX_QUEUE, () => {
      reply.left = true;
      reply.onLeave?.();
    });
    const call = { params, context, responses, unread: 0, begun: false };
    const response = this.#connection?.getStore();
    response?.once('close', responses.close);
    if (response?.destroyed) responses.close();
    this.#calls.set(user, call);
    const tenant = params.tenant || context.tenant;
    const about = { ...types[request].toJSON(params), ...(tenant && { tenant }) };
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: about });
    const extensions = [...(context.requestedExtensions ?? [])];
    const headers = headersOf(context.state.get('headers'));
    this.server
      .receive(text, { version: '1.0', headers, user, extensions }, reply)
      .catch((error) => responses.fail(error));
    return call;
  }

  // --- The executor ------------------------------------------------------------------------------

  /** @param {ExecutorContext} run */
  async #execute(run) {
    const { message, signal, task, attempt } = run;
    const { user, headers, tenant = '', extensions, metadata } = /** @type {any} */ (run.request);
    const types = await sdk();
    // There is none if another process has received it.
    const call = this.#calls.get(user);
    const state = new Map([['headers', headers]]);
    const context =
      call?.context ??
      new types.ServerCallContext({ user, tenant, state, requestedExtensions: extensions });
    const { params = { tenant, metadata, configuration: undefined } } = call ?? {};
    const request = { ...params, message: types.Message.fromJSON(V10.message(message)) };
    const isKnown = task.history.length > 1 || attempt > 1;
    const about = isKnown ? types.Task.fromJSON(structuredClone(V10.task(task))) : undefined;
    const others = await this.#referenced(message.referenceTaskIds, context);
    const asked = new types.RequestContext(
      request,
      task.id,
      task.contextId,
      context,
      about,
      others,
    );

    const bus = new types.DefaultExecutionEventBus();
    const publish = bus.publish.bind(bus);
    let stopped = false;
    // What our context refuses is thrown to the executor; thrown by a listener, it would end the
    // process.
    bus.publish = (/** @type {any} */ published) => {
      const { kind, data } = published;
      const json = types.StreamResponse.toJSON({ payload: { $case: kind, value: data } });
      const event = /** @type {import('../dialects.js').Event} */ (readEvent(json));
      stopped ||= event.kind === 'status' && event.status.state === 'canceled';
      if (call && !call.begun && event.kind === 'message') call.message = data;
      tell(run, event);
      if (call && !call.begun && !call.message) {
        call.begun = true;
        call.responses.push(BEGUN);
      }
      publish(published);
    };
    const cancel = async () => {
      // The SDK would cancel the run of the message that has taken over.
      if (run.replaced) return;
      await this.#executor.cancelTask(task.id, bus);
    };
    const onAbort = () => void cancel().catch(reportError);
    try {
      signal.throwIfAborted();
      signal.addEventListener('abort', onAbort);
      await this.#executor.execute(asked, bus);
      // An executor of the SDK returns when it was cancelled; ours throw.
      if (stopped) signal.throwIfAborted();
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /**
   * The tasks that a message refers to, as far as its sender may see them.
   * @param {string[] | undefined} ids
   * @param {any} context
   */
  async #referenced(ids, context) {
    if (!ids) return undefined;
    const tasks = [];
    for (const id of ids) tasks.push(await this.getTask({ id }, context).catch(() => undefined));
    return tasks.filter(Boolean);
  }
}

/**
 * Tells the client that our extension is in use, if it knows it.
 * @param {any} context
 */
function declare(context) {
  const { uri } = OWN_EXTENSION;
  if ([...(context.requestedExtensions ?? [])].includes(uri)) context.addActivatedExtension(uri);
}

/**
 * Comments keep a silent stream alive, since proxies end silent connections.
 * @param {any} response
 * @param {number} keepAlive
 */
function showLife(response, keepAlive) {
  if (!keepAlive) return;
  const timer = setInterval(() => {
    const streams = /^text\/event-stream/.test(response.getHeader('content-type'));
    // What waits to be read is a sign of life, too.
    if (streams && !response.writableEnded && !response.writableLength) response.write(':\n\n');
  }, keepAlive);
  response.once('close', () => clearInterval(timer));
}

/**
 * Resolves when a reader has read most of what was sent, or has left.
 * @param {any} response
 */
async function room(response) {
  if (!response?.writableNeedDrain || response.destroyed) return;
  await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}

/**
 * In a queue of responses: the executor has published something, of which there may be nothing to
 * tell.
 */
const BEGUN = {};

/**
 * @param {any} types
 * @param {any} response
 * @returns {unknown} throws the SDK's error
 */
function resultOf(types, response) {
  if (!response) throw new types.A2AError('The agent did not answer');
  const { result, error } = response;
  if (error) throw types.fromJsonRpcErrorResponse({ jsonrpc: '2.0', id: null, error });
  return result;
}

/**
 * Tells what an executor has published. Whatever task it names, it is the one of its run.
 * @param {ExecutorContext} run
 * @param {import('../dialects.js').Event} event
 */
function tell(run, event) {
  const { task } = run;
  if (event.kind === 'message') run.emitStatus('completed', event.message);
  else if (event.kind === 'status') run.emitStatus(event.status.state, event.status.message);
  else if (event.kind === 'artifact') run.emitArtifact(event.artifact, event);
  else {
    // A later turn begins with the task as it is.
    const known = new Set(task.artifacts.map((artifact) => JSON.stringify(artifact)));
    for (const artifact of event.task.artifacts)
      if (!known.has(JSON.stringify(artifact))) run.emitArtifact(artifact);
    const { state, message } = event.task.status;
    if (state !== 'submitted' && state !== task.state) run.emitStatus(state, message);
  }
}

/**
 * @param {Record<string, unknown>} [headers]
 * @returns {Record<string, string>} by names in lower case
 */
const headersOf = (headers = {}) =>
  Object.fromEntries(
    Object.entries(headers)
      .filter(([, value]) => typeof value === 'string')
      .map(([name, value]) => [name.toLowerCase(), /** @type {string} */ (value)]),
  );

/**
 * As the stores of the SDK have it.
 * @type {import('../server.js').TaskServerOptions['authorize']}
 */
const isOwner = (task, _access, { user }) => nameOf(task.user) === nameOf(user);

/** @param {any} user */
const nameOf = (user) => user?.userName ?? '';
