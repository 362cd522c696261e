/**
 * How dialects shape payloads, which never reach the core: where progress is, and what an empty result is. The decisions
 * of each dialect are a row in src/rpc.c.
 */
import * as rpc from '../core/rpc-boundary.js';
import { copyRecord, getOwn, textOf } from '../common/values.js';

/** @typedef {'onProgress' | 'onPartialResult'} Kind what is reported, named after the option that takes it */

/** @typedef {{ id: unknown, kind: Kind, info: any }} Reported progress as it was received */

/**
 * @typedef {object} Progress How a dialect reports progress.
 * @property {string} method of the notification
 * @property {(params: any, id: number, options: Partial<Record<Kind, unknown>>) => unknown} ask the params of a request that
 *   wants what there are options for
 * @property {(params: unknown, kind: Kind) => unknown} wanted the token in a request's params, or undefined
 * @property {(token: unknown, info: any) => object} write the notification's params
 * @property {(params: unknown) => Reported} read `id` is that of the request which asked, as
 *   the token has it; undefined if no request of this side made the token
 */

/**
 * @callback Explain What the error that refuses a message says, as the dialect's own SDK would say it.
 * @param {number} fault `abp_rpc_error`
 * @param {string | undefined} method of the request that is refused
 * @param {unknown} received what is no message
 * @returns {{ message?: string, data?: unknown }}
 */

/**
 * @typedef {object} Dialect
 * @property {number} number `abp_dialect`
 * @property {Progress} [progress]
 * @property {import('./task-progress.js').TaskWords} [tasks]
 * @property {ReadonlyMap<string, () => unknown>} [answers] requests that are answered where nobody handles them
 * @property {unknown} nothing the result of a handler that returns nothing
 * @property {Explain} [explain]
 * @property {(id: unknown) => unknown} [cancelled] what the error says besides that a request was cancelled
 */

/**
 * LSP servers make tokens, too, and use small numbers: ours cannot be confused with those. In MCP all tokens are made by
 * the side that receives the progress.
 * @param {number} id of the request
 */
const workDoneToken = (id) => `abp-bridge/work/${id}`;
/** @param {number} id of the request */
const partialResultToken = (id) => `abp-bridge/partial/${id}`;
const LSP_TOKEN = /^abp-bridge\/(work|partial)\/(\d{1,10})$/;

/** @type {Set<unknown>} */
const TASK_ENDS = new Set(['completed', 'failed', 'cancelled']);

/** @type {Record<'acp' | 'lsp' | 'mcp', Dialect>} */
export const DIALECTS = {
  acp: {
    number: rpc.ACP,
    nothing: null,
    cancelled: (requestId) => ({ requestId }),
    explain(fault, method, received) {
      if (fault === rpc.RPC_INVALID_REQUEST) return { data: received };
      if (fault !== rpc.RPC_METHOD_NOT_FOUND) return {};
      return { message: `"Method not found": ${method}`, data: { method } };
    },
  },
  lsp: {
    number: rpc.LSP,
    nothing: null,
    explain: (fault, method) =>
      fault === rpc.RPC_METHOD_NOT_FOUND ? { message: `Unhandled method ${method}` } : {},
    progress: {
      method: '$/progress',
      ask: (params, id, { onProgress, onPartialResult }) => ({
        ...params,
        ...(onProgress ? { workDoneToken: workDoneToken(id) } : {}),
        ...(onPartialResult ? { partialResultToken: partialResultToken(id) } : {}),
      }),
      wanted: (params, kind) =>
        getOwn(params, kind === 'onProgress' ? 'workDoneToken' : 'partialResultToken'),
      write: (token, value) => ({ token, value }),
      read(params) {
        const [, kind, id] = LSP_TOKEN.exec(textOf(getOwn(params, 'token')) ?? '') ?? [];
        return {
          id: id && Number(id),
          kind: kind === 'work' ? 'onProgress' : 'onPartialResult',
          info: getOwn(params, 'value'),
        };
      },
    },
  },
  mcp: {
    number: rpc.MCP,
    nothing: {},
    answers: new Map([['ping', () => ({})]]),
    progress: {
      method: 'notifications/progress',
      ask: (params, id) => ({
        ...params,
        _meta: { .../** @type {object} */ (getOwn(params, '_meta')), progressToken: id },
      }),
      wanted: (params, kind) =>
        kind === 'onProgress' ? getOwn(getOwn(params, '_meta'), 'progressToken') : undefined,
      write: (token, info) => ({ ...info, progressToken: token }),
      read(params) {
        const { progressToken: id, ...info } = copyRecord(params);
        return { id, kind: 'onProgress', info };
      },
    },
    tasks: {
      started: (result) => textOf(getOwn(getOwn(result, 'task'), 'taskId')),
      ended(params) {
        const related = getOwn(getOwn(params, '_meta'), 'io.modelcontextprotocol/related-task');
        const ended = TASK_ENDS.has(getOwn(params, 'status'));
        return textOf(ended ? getOwn(params, 'taskId') : getOwn(related, 'taskId'));
      },
    },
  },
};
