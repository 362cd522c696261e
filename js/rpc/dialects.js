/**
 * The shapes that dialects give to payloads, which never reach the core: where progress stands, and what an
 * answer holds that says nothing. What dialects decide is one row each in src/rpc.c.
 */
import * as rpc from '../../dist/rpc-constants.js';
import { own } from '../messages.js';

/**
 * @typedef {object} Progress How a dialect reports progress.
 * @property {string} method of the notification
 * @property {(params: any, token: number) => any} ask the params of a request that wants it
 * @property {(params: any) => unknown} wanted the token in a request's params, or undefined
 * @property {(token: unknown, info: any) => object} write the notification's params
 * @property {(params: any) => { token: unknown, info: any }} read
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
 * @property {any} nothing the result of a handler that returns nothing
 * @property {Explain} [explain]
 * @property {(id: unknown) => unknown} [cancelled] what the error says besides that a request was cancelled
 */

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
      ask: (params, token) => ({ ...params, workDoneToken: token }),
      wanted: (params) => own(params, 'workDoneToken'),
      write: (token, value) => ({ token, value }),
      read: (params) => ({ token: own(params, 'token'), info: own(params, 'value') }),
    },
  },
  mcp: {
    number: rpc.MCP,
    nothing: {},
    progress: {
      method: 'notifications/progress',
      ask: (params, token) => ({
        ...params,
        _meta: { ...own(params, '_meta'), progressToken: token },
      }),
      wanted: (params) => own(own(params, '_meta'), 'progressToken'),
      write: (token, info) => ({ ...info, progressToken: token }),
      read: (params) => {
        const { progressToken: token, ...info } = { ...params };
        return { token, info };
      },
    },
  },
};
