/** What a server knows of the client of a connection, or of a request. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import { InvalidRequest, UserError } from './errors.js';

/** The extension that made tasks of 2026-07-28. */
export const TASKS = 'io.modelcontextprotocol/tasks';

/** @typedef {import('@modelcontextprotocol/server').ServerContext} Context */
/** @typedef {NonNullable<ReturnType<import('@modelcontextprotocol/server').Server['getClientCapabilities']>>} Capabilities */

/**
 * @typedef {object} Session
 * @property {import('./runs.js').Owner} [owner] what its runs and files belong to; undefined where the protocol has no sessions
 * @property {() => (() => Promise<void>) | undefined} [flow] gives what resolves when the client of the current request reads
 */

export class McpClient {
  #server;

  /**
   * @param {import('@modelcontextprotocol/server').Server} server
   * @param {import('./gateway.js').Gateway} gateway
   * @param {'legacy' | 'modern'} era
   * @param {Session} session
   */
  constructor(server, gateway, era, { owner, flow }) {
    this.#server = server;
    this.gateway = gateway;
    this.isModern = era === 'modern';
    this.owner = owner;
    this.flow = flow;
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
