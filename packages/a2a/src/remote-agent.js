/**
 * A client's knowledge of an agent: its card, requests to it, and the core's table of the tasks
 * that are streamed.
 */
import { AbpError, firstOf, getOwn, textOf } from 'abp-bridge/driver';
import * as core from './tasks-boundary.js';
import { answerWithin } from './client-http.js';
import { DIALECTS, readError, readEvent, readTask } from './dialects.js';
import { REPEATS } from './ids.js';
import { MAX_EXTENSIONS } from './port.js';
import { TaskView } from './task-stream.js';
import { TaskTable } from './tasks-core.js';

/** @import { Binding, Interface } from './client-http.js' */
/** @import { Dialect, Operation, Task } from './dialects.js' */
/** @import { TaskStream } from './task-stream.js' */

/** Interfaces of a card that are read at most. */
const MAX_INTERFACES = 64;

/** @param {string} what */
export const malformed = (what) =>
  new AbpError('INVALID_AGENT_RESPONSE', `The agent's answer to ${what} is malformed`);

/** A client makes a new one when the core has failed. */
export class RemoteAgent {
  /** The open streams, by their tasks in the table. @type {Map<core.Task, TaskStream>} */
  #watched = new Map();
  #connection;
  #tenant;
  #repeats;
  #limits;
  /** Number of requests and views so far, from which they get their names. */
  #named = 0;

  /**
   * @param {Binding} connection
   * @param {ReturnType<typeof readCard>} card
   * @param {{ timeout: number, grace: number, task: number }} limits
   * @param {object} client
   * @param {import('./client.js').ClientLimits} [client.limits] of the table
   * @param {(event: import('./dialects.js').Event) => void} client.onDropped
   * @param {() => void} client.onFailure called when the core has failed
   */
  constructor(connection, card, limits, { limits: ofTable, onDropped, onFailure }) {
    const { dialect, tenant } = connection.use?.(card.interfaces) ?? card.interfaces[0];
    this.dialect = dialect;
    /** True if its card offers streams; undefined without a card. */
    this.streaming = card.streaming;
    this.onDropped = onDropped;
    this.#connection = connection;
    this.#tenant = tenant;
    this.#repeats = card.repeats;
    this.#limits = limits;
    this.table = new TaskTable(ofTable, {
      onDue: (task, verdict) => this.#watched.get(task)?.act(verdict),
      onFailure: () => {
        onFailure();
        const streams = [...this.#watched.values()];
        this.#watched.clear();
        for (const stream of streams) stream.lost();
      },
    });
  }

  /**
   * Registers a stream to receive what becomes due for its task.
   * @param {TaskStream} stream
   */
  watch(stream) {
    const view = new TaskView(this, `${++this.#named}`, this.#limits.task);
    this.#watched.set(view.handle, stream);
    this.table.wait(1);
    return view;
  }

  /** @param {TaskView} view */
  forget(view) {
    if (this.#watched.delete(view.handle)) this.table.wait(-1);
    this.table.forget(view.handle);
  }

  /**
   * The kind of a watch.
   * @param {boolean} known whether the task's id is known, or only the message
   */
  kind(known) {
    if (known) return core.WATCH_TASK | (this.dialect.lasting ? core.WATCH_LASTING : 0);
    return core.WATCH_MESSAGE | (this.#repeats ? core.WATCH_REPEATS : 0);
  }

  /**
   * @param {Operation} operation
   * @param {object} params
   * @param {boolean} [abortable]
   * @param {string} [lastEventId]
   */
  open(operation, params, abortable = true, lastEventId = undefined) {
    const { name, methods } = this.dialect;
    const method = methods[operation];
    if (!method)
      throw new AbpError('NOT_SUPPORTED', `A2A ${name} has no method to ${operation} tasks`);
    const about = this.#tenant ? { tenant: this.#tenant, ...params } : params;
    const request = { jsonrpc: '2.0', id: ++this.#named, method, params: about };
    const stream = operation === 'stream' || operation === 'resubscribe';
    return this.#connection.open(this.dialect, request, { stream, abortable, lastEventId });
  }

  /** @param {unknown} response of a stream */
  read(response) {
    return readEvent(this.#result(response));
  }

  /**
   * @param {Operation} operation
   * @param {object} params
   * @param {number} [timeout] ms
   */
  async request(operation, params, timeout = this.#limits.timeout) {
    return this.#result(await answerWithin(timeout, this.open(operation, params)));
  }

  /**
   * @param {string} id
   * @param {object} [options]
   */
  get(id, options) {
    return this.#task('get', { id, ...options });
  }

  /**
   * @param {string} id
   * @param {string | undefined} reason
   */
  cancel(id, reason) {
    const { timeout, grace } = this.#limits;
    const params = { id, ...(reason && { metadata: { reason } }) };
    // An agent may wait for its executor before it answers.
    return this.#task('cancel', params, Math.max(timeout, grace));
  }

  /**
   * @param {Operation} operation
   * @param {object} params
   * @param {number} [timeout]
   * @returns {Promise<Task>}
   */
  async #task(operation, params, timeout) {
    const result = await this.request(operation, params, timeout);
    if (!getOwn(result, 'status')) throw malformed(operation);
    return readTask(result);
  }

  /**
   * @param {unknown} response
   * @returns {unknown} its result
   */
  #result(response) {
    const error = getOwn(response, 'error');
    if (error) throw readError(this.dialect, error);
    const result = getOwn(response, 'result');
    if (result === undefined) throw malformed('a request');
    return result;
  }
}

/**
 * @typedef {Interface & { dialect: Dialect, tenant?: string }} Spoken an interface that we speak
 */

/**
 * Reads an agent's card.
 * @param {unknown} card
 * @returns {{ interfaces: Spoken[], streaming?: boolean, repeats: boolean }} the interfaces that we
 *   speak, at least one, the preferred one first; and whether the agent recognises a repeated
 *   message
 */
export function readCard(card) {
  const capabilities = getOwn(card, 'capabilities');
  const extensions = firstOf(getOwn(capabilities, 'extensions'), MAX_EXTENSIONS);
  const listed = getOwn(card, 'supportedInterfaces');
  const interfaces = Array.isArray(getOwn(card, 'interfaces'))
    ? // The URL in the gem's cards is typed by its author. The gem's clients use the card's own
      // address.
      [{ dialect: DIALECTS.gem, rest: false }]
    : firstOf(Array.isArray(listed) ? listed : legacyInterfaces(card), MAX_INTERFACES).flatMap(
        spokenAt,
      );
  if (interfaces.length === 0)
    throw new AbpError(
      'NOT_SUPPORTED',
      'The agent card lists no interface with a supported version and binding',
    );
  return {
    interfaces,
    streaming: getOwn(capabilities, 'streaming') === true,
    repeats: extensions.some((extension) => getOwn(extension, 'uri') === REPEATS),
  };
}

/**
 * @param {unknown} one one interface of a card of 1.0
 * @returns {Spoken[]} empty if we do not speak it
 */
function spokenAt(one) {
  const [version = ''] = /^\d+\.\d+/.exec(textOf(getOwn(one, 'protocolVersion')) ?? '') ?? [];
  const binding = getOwn(one, 'protocolBinding');
  const rest = binding === 'HTTP+JSON' && version === '1.0';
  if ((!rest && binding !== 'JSONRPC') || !Object.hasOwn(DIALECTS, version)) return [];
  const dialect = DIALECTS[/** @type {keyof typeof DIALECTS} */ (version)];
  return [
    { dialect, url: textOf(getOwn(one, 'url')), tenant: textOf(getOwn(one, 'tenant')), rest },
  ];
}

/**
 * The interfaces of a card of 0.3, in the form of 1.0.
 * @param {unknown} card
 */
const legacyInterfaces = (card) =>
  [
    { url: getOwn(card, 'url'), transport: getOwn(card, 'preferredTransport') ?? 'JSONRPC' },
    ...firstOf(getOwn(card, 'additionalInterfaces'), MAX_INTERFACES),
  ].map((one) => ({
    url: getOwn(one, 'url'),
    protocolBinding: getOwn(one, 'transport'),
    protocolVersion: '0.3',
  }));
