/** A2A, by the official SDK. What is said of a task is its state: by stream, answer and store. */
import { randomUUID } from 'node:crypto';
import {
  CancelTaskRequest,
  GetTaskRequest,
  SendMessageRequest,
  TaskState,
  taskStateToJSON,
} from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { textOf } from './words.js';

/**
 * @typedef {import('../call.js').Call} Call
 * @typedef {import('../options.js').Options} Options
 */

/** Words for states. @type {Record<number, import('../call.js').Outcome | undefined>} */
const WORDS = {
  [TaskState.TASK_STATE_SUBMITTED]: 'running',
  [TaskState.TASK_STATE_WORKING]: 'running',
  [TaskState.TASK_STATE_COMPLETED]: 'finished',
  [TaskState.TASK_STATE_FAILED]: 'failed',
  [TaskState.TASK_STATE_REJECTED]: 'failed',
  [TaskState.TASK_STATE_CANCELED]: 'stopped',
};
/** States in which the client must say more. @type {(number | undefined)[]} */
const ASKING = [TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED];
/** Ms between two looks at a task of an agent that does not stream. */
const POLL = 100;

/**
 * @param {Options} options
 * @returns {import('../checked.js').Way}
 */
export const reach = (options) => ({ open: () => open(options) });

/**
 * @param {Options} options
 * @returns {Promise<import('../trial.js').Session>}
 */
async function open({ address: url = '', headers, 'input-ends': inputEnds }) {
  /** @type {typeof fetch} */
  const fetchImpl = (input, init) =>
    fetch(input, {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init?.headers)), ...headers },
    });
  const given = { fetchImpl, legacyCompat: { enabled: true } };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory(given), new RestTransportFactory(given)],
    cardResolver: new DefaultAgentCardResolver(given),
  });
  const client = await factory.createFromUrl(url);
  const isStreaming = (await client.getAgentCard()).capabilities?.streaming === true;
  /** Closes the streams. */
  const line = new AbortController();

  /**
   * @param {Call} call
   * @param {import('../call.js').Said['by']} by
   * @param {any} state
   */
  function sayState(call, by, state) {
    const isAsking = ASKING.includes(state);
    call.say(by, isAsking && inputEnds ? 'finished' : WORDS[state], taskStateToJSON(state));
    if (isAsking && !inputEnds) call.say('question', undefined, taskStateToJSON(state));
  }
  const cancel = async (/** @type {Call} */ call, /** @type {string} */ id = call.id) => {
    try {
      const task = await client.cancelTask(CancelTaskRequest.fromJSON({ id }));
      sayState(call, 'cancel', task.status?.state);
    } catch (error) {
      call.say('cancel', undefined, textOf(error));
    }
    // A task that waits for its client has no stream whose end would show.
    if (call.leavesQuestions) call.end();
  };
  const get = (/** @type {string} */ id) => client.getTask(GetTaskRequest.fromJSON({ id }));

  /**
   * Sends a message, and reads what comes of it.
   * @param {Call} call
   * @param {string} text
   * @returns {Promise<number | undefined>} the last state
   */
  async function converse(call, text) {
    // A call that is repeated has the same messages.
    const messageId = call.id ? `${call.key} answer` : call.key;
    const request = SendMessageRequest.fromJSON({
      message: { messageId, taskId: call.id, role: 'ROLE_USER', parts: [{ text }] },
      // What is answered has a name by which it can be stopped: it is waited for.
      ...(!isStreaming && !call.id && { configuration: { returnImmediately: true } }),
    });
    let state;
    for await (const { kind, value } of isStreaming ? stream(request) : poll(request)) {
      const id = kind === 'task' ? value.id : value.taskId;
      // Stop may have been pressed before the task had an id.
      if (id && !call.id && call.controller.signal.aborted) void cancel(call, id);
      if (id && !call.id) call.name(id);
      if (kind === 'artifactUpdate') call.say('stream', 'running', 'an artifact');
      else if (kind === 'message') call.say('answer', 'finished', 'a message');
      else if (value.status) sayState(call, 'stream', (state = value.status.state));
    }
    return state;
  }
  /**
   * @param {any} request
   * @returns {AsyncGenerator<{ kind?: string, value: any }>}
   */
  async function* stream(request) {
    for await (const { payload } of client.sendMessageStream(request, { signal: line.signal }))
      yield { kind: payload?.$case, value: payload?.value ?? {} };
  }
  /**
   * The same, of an agent that does not stream: the task when it is at rest.
   * @param {any} request
   * @returns {AsyncGenerator<{ kind?: string, value: any }>}
   */
  async function* poll(request) {
    let value = /** @type {any} */ (await client.sendMessage(request));
    if (!value.status) return yield { kind: 'message', value };
    yield { kind: 'id', value: { taskId: value.id } };
    while (WORDS[value.status.state] === 'running' && !line.signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, POLL));
      value = await get(value.id);
    }
    return yield { kind: 'task', value };
  }
  /** @param {Call} call */
  async function start(call) {
    try {
      let state = await converse(call, call.input);
      const asks = () => ASKING.includes(state) && !inputEnds;
      while (asks() && !call.leavesQuestions) state = await converse(call, 'yes');
      if (asks()) return;
    } catch (error) {
      if (!line.signal.aborted) call.say('answer', 'failed', textOf(error));
    }
    call.end();
  }
  return {
    client: `@a2a-js/sdk 1.x, A2A ${client.protocolVersion}, ${client.transport.protocolName}`,
    lacks: { before: 'a task that has no id cannot be named' },
    start: (call) => void start(call),
    stop(call) {
      call.controller.abort();
      if (call.id) void cancel(call);
    },
    stopById: (call) => cancel(call),
    stopUnknown: (call) => cancel(call, randomUUID()),
    async look(call) {
      if (!call.id) return;
      try {
        sayState(call, 'store', (await get(call.id)).status?.state);
      } catch (error) {
        call.say('store', 'unknown', textOf(error));
      }
    },
    ping: async () => (await fetchImpl(url)).arrayBuffer(),
    close: async () => line.abort(),
  };
}
