/**
 * Puts the decisions and the store of this package behind the official SDK, `@a2a-js/sdk`: between
 * its front (Express, gRPC, authentication) and an executor written for it.
 *
 * How it is made. A request that the SDK has read is printed again, as JSON of A2A 1.0, and our
 * server receives it like any other. The SDK's own types read the answers, so errors are the SDK's,
 * too. The executor runs as ours do: our context emits what it publishes on its bus, and the core
 * decides whether that still counts. When the context's signal fires, `cancelTask` is called. An
 * executor that answers with a message has a task as well, since the core knows only tasks; its
 * sender gets the message.
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
 * Besides the options of `createTaskServer`. The default of `authorize` gives a task only to the
 * user who began it.
 * @typedef {object} CardOptions
 * @property {any} [extendedAgentCard] the card for those who have logged in, or a function
 *   `(context) => Promise<AgentCard>`
 */

/**
 * Events that may wait for one reader. The stream of a slower reader ends; its task goes on.
 */
const MAX_QUEUE = 4096;
const V10 = DIALECTS['1.0'];
const PUSH = 'TaskPushNotificationConfig';

/** The defaults of `createTaskServer`. */
const DEFAULTS = { keepAlive: 15_000, maxUnread: 4 << 20 };

/** The SDK, loaded at first use: it is an optional dependency. @type {() => Promise<any>} */
const sdk = loadOnce(async () => ({
  ...(await import('@a2a-js/sdk')),
  ...(await import('@a2a-js/sdk/errors')),
  ...(await import('@a2a-js/sdk/server')),
}));

/** @typedef {import('../port.js').QueuedResponses} QueuedResponses */

/**
 * A request that the SDK passed to this handler.
 * @typedef {object} Call
 * @property {any} params as the SDK has read them
 * @property {any} context the SDK's
 * @property {QueuedResponses} responses
 * @property {number} unread characters of events that wait to be read
 * @property {boolean} begun whether the executor has published something
 * @property {any} [message] the message that it has published instead of a task
 */

/**
 * Makes a request handler for the SDK's `jsonRpcHandler`, `restHandler`, `grpcService` and
 * `agentCardHandler`.
 * @param {any} agentCard in the SDK's form
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
   * The requests in progress, by the user object that their run is given.
   * @type {WeakMap<any, Call>}
   */
  #calls = new WeakMap();
  #card;
  #executor;
  #extended;
  /** @type {{ keepAlive: number, maxUnread: number, hosts?: string[] | '*' }} */
  #options;
  /**
   * The HTTP response to the current request, if `guard` admitted it: an `AsyncLocalStorage`.
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
    // This handler serves the extended card itself.
    const own = { streaming: card.capabilities?.streaming === true, extendedAgentCard: undefined };
    const capabilities = { ...card.capabilities, ...own };
    const agent = {
      card: { ...card, capabilities },
      execute: (/** @type {ExecutorContext} */ context) => this.#execute(context),
    };
    /** The task server: call `await server.drain()` before the process ends. */
    this.server = createTaskServer(agent, { authorize: isOwner, ...options });
  }

  /**
   * Middleware for Express, in front of the SDK's `jsonRpcHandler` and `restHandler`, which do not
   * manage their connections. It forgets readers that have left, waits for slow ones, keeps silent
   * streams alive, gives events the ids that a client needs to resume, and rejects a page whose
   * host name was rebound to this machine.
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
   * The card as given, with our extension added: clients declare an extension only if the card has
   * it. A signed card is not changed.
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
   * The card for authenticated clients.
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

  sendMessage = this.#requestMethod('SendMessage', 'SendMessageResponse');
  getTask = this.#requestMethod('GetTask', 'Task');
  cancelTask = this.#requestMethod('CancelTask', 'Task');
  listTasks = this.#requestMethod('ListTasks', 'ListTasksResponse');
  createTaskPushNotificationConfig = this.#requestMethod(`Create${PUSH}`, PUSH, PUSH);
  getTaskPushNotificationConfig = this.#requestMethod(`Get${PUSH}`, PUSH);
  listTaskPushNotificationConfigs = this.#requestMethod(`List${PUSH}s`, `List${PUSH}sResponse`);
  deleteTaskPushNotificationConfig = this.#requestMethod(`Delete${PUSH}`);
  sendMessageStream = this.#streamMethod('SendStreamingMessage', 'SendMessageRequest');
  resubscribe = this.#streamMethod('SubscribeToTask');

  // --- Requests ----------------------------------------------------------------------------------

  /**
   * @param {string} method
   * @param {string} [result] the SDK's type of the result
   * @param {string} [request] the type of its parameters
   * @returns {(params: any, context: any) => Promise<any>}
   */
  #requestMethod(method, result, request = `${method}Request`) {
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
  #streamMethod(method, request = `${method}Request`) {
    const open = this.#open.bind(this);
    const connection = () => this.#connection?.getStore();
    return (params, context) => {
      // The SDK sends its headers before it reads the stream.
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
      // Hold back the events that every task begins with, until the executor shows whether it
      // answers with a message or a task.
      /** @type {{ event: unknown, number?: string }[]} */
      let held = [];
      /** @param {typeof held} events */
      const send = function* (events) {
        for (const { event, number } of events) {
          // The SDK's front writes the rest of the event. The first event is written with the
          // headers.
          if (number && response?.headersSent) response.write(`id: ${number}\n`);
          yield types.StreamResponse.fromJSON(event);
        }
      };
      let holds = method === 'SubscribeToTask' ? 0 : 2;
      try {
        for (
          let received;
          (received = /** @type {any} */ (await call.responses.next())) !== undefined;
        ) {
          if (call.message) return yield { payload: { $case: 'message', value: call.message } };
          if (received !== BEGUN)
            held.push({ event: resultOf(types, received), number: received.number });
          call.unread -= received.size ?? 0;
          if (!call.begun && held.length <= holds) continue;
          holds = 0;
          yield* send(held);
          held = [];
          await room(response);
        }
        yield* send(held);
      } finally {
        call.responses.close();
      }
    }
  }

  /**
   * Passes a request to our server.
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
    // Undefined if another process received the request.
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
    // An event that our context rejects is thrown to the executor; thrown by a listener, it would
    // end the process.
    bus.publish = (/** @type {any} */ published) => {
      const { kind, data } = published;
      const json = types.StreamResponse.toJSON({ payload: { $case: kind, value: data } });
      const event = /** @type {import('../dialects.js').Event} */ (readEvent(json));
      stopped ||= event.kind === 'status' && event.status.state === 'canceled';
      if (call && !call.begun && event.kind === 'message') call.message = data;
      emit(run, event);
      if (call && !call.begun && !call.message) {
        call.begun = true;
        call.responses.push(BEGUN);
      }
      publish(published);
    };
    const cancel = async () => {
      // The SDK would cancel the run of the newer message.
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
   * The tasks that a message refers to, without those that its sender may not see.
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
 * Reports that our extension is in use, if the client declared it.
 * @param {any} context
 */
function declare(context) {
  const { uri } = OWN_EXTENSION;
  if ([...(context.requestedExtensions ?? [])].includes(uri)) context.addActivatedExtension(uri);
}

/**
 * Sends comments to keep a silent stream alive, since proxies end silent connections.
 * @param {any} response
 * @param {number} keepAlive
 */
function showLife(response, keepAlive) {
  if (!keepAlive) return;
  const timer = setInterval(() => {
    const streams = /^text\/event-stream/.test(response.getHeader('content-type'));
    // Unread data keeps the connection alive, too.
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
 * An item of the response queue: the executor has published something, perhaps without an event for
 * the client.
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
 * Emits what an executor has published, always for the task of its run, whichever task it names.
 * @param {ExecutorContext} run
 * @param {import('../dialects.js').Event} event
 */
function emit(run, event) {
  const { task } = run;
  if (event.kind === 'message') run.emitStatus('completed', event.message);
  else if (event.kind === 'status') run.emitStatus(event.status.state, event.status.message);
  else if (event.kind === 'artifact') run.emitArtifact(event.artifact, event);
  else {
    // A later turn begins with the artifacts that the task has already.
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
 * The SDK's stores have the same rule.
 * @type {import('../server.js').TaskServerOptions['authorize']}
 */
const isOwner = (task, _access, { user }) => nameOf(task.user) === nameOf(user);

/** @param {any} user */
const nameOf = (user) => user?.userName ?? '';
