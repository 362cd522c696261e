/**
 * The payloads of each dialect, which never reach the core: the place of progress, and an empty
 * result. The decisions of each dialect are a row in src/rpc.c.
 */
import { copyRecord, getOwn, tell, textOf } from 'abp-bridge/driver';
import * as rpc from './rpc-boundary.js';

/**
 * @typedef {'onProgress' | 'onPartialResult' | 'onTagged'} Kind a kind of report, named after its
 *   option
 */
/** @typedef {{ id: unknown, kind: Kind, info: any }} Reported progress as it was received */

/**
 * @typedef {object} Progress The form of a dialect's progress.
 * @property {string} method of the notification
 * @property {(params: any, id: number, options: Partial<Record<Kind | 'resetTimeoutOnProgress',
 *   unknown>>) => unknown} ask returns the params of a request with the reports requested by these
 *   options
 * @property {(params: unknown, kind: Kind) => unknown} wanted returns the token in a request's
 *   params, or undefined
 * @property {(token: unknown, info: any, request: { lastProgress: number, method: string }) =>
 *   object | undefined} write returns the notification's params, or undefined if there is nothing
 *   new
 * @property {(params: unknown) => Reported} read reads a notification; `id` is that of the request,
 *   according to the token; undefined if no request of this side made the token
 */

/**
 * @typedef {object} Dialect The form of cancels, progress and errors of a protocol on JSON-RPC.
 * @property {rpc.Dialect} number
 * @property {Progress} [progress]
 * @property {boolean} [tasks] whether an answer may be a task that goes on
 * @property {ReadonlyMap<string, () => unknown>} [answers] requests that are answered even without
 *   a handler
 * @property {unknown} nothing the result of a handler that returns nothing
 * @property {(fault: rpc.RpcError, method: string | undefined, received: unknown) => { message?:
 *   string, data?: unknown }} [explain] the message and data of an error for a rejected request or
 *   an invalid message, as in the dialect's own SDK
 * @property {(result: unknown) => boolean} [needsInput] whether a result requests input of this
 *   side first
 * @property {(method: string, params: unknown) => Reported} [tagged] reads a notification of a
 *   subscription: `id` is that of its request
 * @property {(id: unknown) => object} [closes] the result of a subscription that is open when its
 *   side closes
 * @property {boolean} [tells] whether errors have the outcome of the work in their data
 * @property {(id: unknown) => unknown} [cancelled] further data of the error for a cancelled
 *   request
 * @property {ReadonlyMap<string, object>} [stopped] by method: the result of a request that was
 *   stopped by its name
 * @property {(result: unknown) => boolean} [saysStopped] whether a result is that of a stopped
 *   request
 */

/** Names the subscription that a message of MCP belongs to. */
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/**
 * LSP servers make tokens, too, and use small numbers: ours must differ from those. In MCP only the
 * receiver of progress makes tokens.
 */
const LSP_TOKEN = /^abp-bridge\.(work|partial)\.(\d{1,10})$/;

/**
 * A token in a request, if valid: a string or an integer.
 * @param {unknown} token
 */
export const tokenOf = (token) =>
  typeof token === 'string' || Number.isSafeInteger(token) ? token : undefined;

/** @type {Record<'acp' | 'lsp' | 'mcp', Dialect>} */
export const DIALECTS = {
  acp: {
    number: rpc.ACP,
    tells: true,
    nothing: null,
    cancelled: (requestId) => ({ requestId }),
    stopped: new Map([
      ['session/prompt', { stopReason: 'cancelled' }],
      ['session/request_permission', { outcome: { outcome: 'cancelled' } }],
    ]),
    saysStopped: (result) =>
      [getOwn(result, 'stopReason'), getOwn(getOwn(result, 'outcome'), 'outcome')].includes(
        'cancelled',
      ),
    explain(fault, method, received) {
      if (fault === rpc.RPC_INVALID_REQUEST) return { data: received };
      if (fault !== rpc.RPC_METHOD_NOT_FOUND) return {};
      return { message: `"Method not found": ${method}`, data: { method } };
    },
  },
  lsp: {
    number: rpc.LSP,
    tells: true,
    nothing: null,
    explain: (fault, method) =>
      fault === rpc.RPC_METHOD_NOT_FOUND ? { message: `Unhandled method ${method}` } : {},
    progress: {
      method: '$/progress',
      ask: (params, id, { onProgress, onPartialResult, resetTimeoutOnProgress }) => ({
        ...params,
        ...(onProgress || resetTimeoutOnProgress ? { workDoneToken: `abp-bridge.work.${id}` } : {}),
        ...(onPartialResult ? { partialResultToken: `abp-bridge.partial.${id}` } : {}),
      }),
      wanted: (params, kind) =>
        tokenOf(getOwn(params, kind === 'onProgress' ? 'workDoneToken' : 'partialResultToken')),
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
    tasks: true,
    nothing: {},
    answers: new Map([['ping', () => ({})]]),
    needsInput: (result) => getOwn(result, 'resultType') === 'input_required',
    tagged: (method, params) => ({
      id: getOwn(getOwn(params, '_meta'), SUBSCRIPTION_ID),
      kind: 'onTagged',
      info: { method, params },
    }),
    closes: (id) => ({ resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: id } }),
    progress: {
      method: 'notifications/progress',
      ask: (params, id) => ({
        ...params,
        _meta: { .../** @type {object} */ (getOwn(params, '_meta')), progressToken: id },
      }),
      wanted: (params, kind) =>
        kind === 'onProgress'
          ? tokenOf(getOwn(getOwn(params, '_meta'), 'progressToken'))
          : undefined,
      // Progress must rise.
      write(token, info, request) {
        const { progress, ...more } = typeof info === 'number' ? { progress: info } : Object(info);
        if (!Number.isFinite(progress) || !['number', 'undefined'].includes(typeof more.total))
          return void tell((dev) => dev.warnOfProgress(request.method, info));
        if (progress <= request.lastProgress) return undefined;
        request.lastProgress = progress;
        return { ...more, progress, progressToken: token };
      },
      read(params) {
        const { progressToken: id, ...info } = copyRecord(params);
        return { id, kind: 'onProgress', info };
      },
    },
  },
};
