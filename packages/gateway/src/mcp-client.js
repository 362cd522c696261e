/** What a server knows of the client of a connection, or of a request. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import { cancelledError, reasonOf } from './attend.js';
import { InvalidRequest, UserError } from './errors.js';

/** The extension that made tasks of 2026-07-28. */
export const TASKS = 'io.modelcontextprotocol/tasks';

/** @typedef {import('@modelcontextprotocol/server').ServerContext} Context */
/** @typedef {NonNullable<ReturnType<import('@modelcontextprotocol/server').Server['getClientCapabilities']>>} Capabilities */

/**
 * @typedef {object} Session
 * @property {import('./runs.js').Owner} [owner] what its runs and files belong to; undefined where the protocol has no sessions
 * @property {() => Exchange | undefined} [exchange] gives that of the current request, where each has one of its own
 *
 * @typedef {object} Exchange A request and its answer over HTTP.
 * @property {() => Promise<void>} drained resolves when the client reads
 * @property {AbortSignal} [gone] where that cancels the request, aborts when the client has closed the answer before it had all of it
 */

export class McpClient {
  #server;
  /** Runs that outlive their requests, by the ids of these. @type {Map<unknown, import('./run.js').Run>} */
  #handed = new Map();

  /**
   * @param {import('@modelcontextprotocol/server').Server} server
   * @param {import('./gateway.js').Gateway} gateway
   * @param {'legacy' | 'modern'} era
   * @param {Session} session
   */
  constructor(server, gateway, era, { owner, exchange }) {
    this.#server = server;
    this.gateway = gateway;
    this.isModern = era === 'modern';
    this.owner = owner;
    this.exchange = exchange;
    /** Whether calls that take long are answered with a handle. */
    this.hasHandles = gateway.patience !== Infinity;
  }

  /**
   * What the client of this request says that it can.
   * @param {Context} ctx
   * @returns {Capabilities}
   */
  #capabilities(ctx) {
    const answer = this.isModern
      ? /** @type {Record<string, Capabilities> | undefined} */ (ctx.mcpReq.envelope)?.[
          CLIENT_CAPABILITIES_META_KEY
        ]
      : this.#server.getClientCapabilities();
    return answer ?? {};
  }

  /** Whether the client shows forms; in older versions to elicit was to show one. @param {Context} ctx */
  canAsk(ctx) {
    const { elicitation } = this.#capabilities(ctx);
    return Boolean(elicitation && (elicitation.form || !elicitation.url));
  }

  /** @param {Context} ctx */
  knowsTasks(ctx) {
    return this.isModern && Boolean(this.#capabilities(ctx).extensions?.[TASKS]);
  }

  /**
   * The answer to a request tells its client how to ask for the run from now on. A client that cancels the request, or
   * leaves it, before it has that answer knows of no run: then the run is cancelled, as if it still were that of the request.
   * @param {import('./run.js').Run} run
   * @param {Context} ctx
   */
  handOver(run, { mcpReq: { id, signal } }) {
    // The SDK ends the signal of a request with its answer, where the answer has a connection of its own.
    const left = this.exchange?.()?.gone ?? signal;
    if (signal.aborted || left.aborted) {
      run.abort(reasonOf(signal.aborted ? signal : left));
      throw cancelledError();
    }
    left.addEventListener('abort', () => run.abort(reasonOf(left)), { once: true });
    this.#handed.set(id, run);
    void run.ended.then(() => this.#handed.get(id) === run && this.#handed.delete(id));
  }

  /**
   * A client cancels a request. One that was answered it would not cancel if it had the answer.
   * @param {Record<string, unknown>} params
   */
  cancelled({ requestId, reason }) {
    this.#handed.get(requestId)?.abort(reasonOf({ reason }));
  }

  /**
   * Handles a method whose params the SDK may not know.
   * @param {string} method
   * @param {{ params: object }} schemas
   * @param {(params: any, ctx: Context) => unknown} handler
   */
  handle(method, schemas, handler) {
    this.#server.setRequestHandler(method, /** @type {any} */ (schemas), answering(handler));
  }
}

/**
 * Bad requests are the client's to mend; the way to the app is the user's.
 * @param {unknown} error
 */
function protocolError(error) {
  if (error instanceof InvalidRequest) {
    return new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, error.data);
  }
  if (error instanceof UserError) {
    return new ProtocolError(ProtocolErrorCode.InternalError, error.message);
  }
  return error;
}

/**
 * A handler whose errors a client can read.
 * @template {unknown[]} A
 * @param {(...args: A) => unknown} handler
 * @returns {(...args: A) => Promise<any>}
 */
export const answering =
  (handler) =>
  async (...args) => {
    try {
      return await handler(...args);
    } catch (error) {
      throw protocolError(error);
    }
  };
