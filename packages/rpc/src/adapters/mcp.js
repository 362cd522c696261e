/** Our transports for the MCP SDKs, 1.x and 2.x, client and server. */
import { getOwn } from 'abp-bridge/driver';
import { Observed } from './observed.js';

/** @type {import('./observed.js').Dialect} */
const MCP = {
  cancel: 'notifications/cancelled',
  answers: false,
  ended: -32000,
  reasons: true,
  subscribe: 'subscriptions/listen',
};

/**
 * SDK 1.x treats these ids as missing and cannot cancel the requests that have them; its own first
 * request is 0. So each is replaced by a string: in our requests on the wire, and in the peer's
 * requests before the SDK sees them. Answers are translated back.
 */
const FALSY = [0, ''];
const THEIRS = FALSY.map((id) => `abp-bridge:theirs:${typeof id}`);

/**
 * @param {unknown} id
 * @param {unknown[]} from the ids to replace
 * @param {unknown[]} to what replaces them, in the same order
 */
const replaced = (id, from, to) => (from.includes(id) ? to[from.indexOf(id)] : id);

/**
 * Every message of a subscription repeats the id of the request that opened it, under this key of
 * `_meta`.
 */
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/**
 * Restores the id of the subscription that a message belongs to.
 * @param {any} part its params or result
 * @param {unknown[]} asked as below
 */
function withTrueSubscription(part, asked) {
  const meta = getOwn(part, '_meta');
  const id = getOwn(meta, SUBSCRIPTION_ID);
  if (!asked.includes(id)) return part;
  const _meta = { .../** @type {object} */ (meta), [SUBSCRIPTION_ID]: replaced(id, asked, FALSY) };
  return { ...part, _meta };
}

/**
 * Translates the ids in a message.
 * @param {any} message
 * @param {string[]} asking replacements of FALSY in requests in its direction
 * @param {unknown[]} asked and in requests in the other direction
 */
function translated(message, asking, asked) {
  const method = getOwn(message, 'method');
  const id = getOwn(message, 'id');
  const params = getOwn(message, 'params');
  if (method === MCP.cancel) {
    const named = getOwn(params, 'requestId');
    // A cancel in the opposite direction to its request ends a subscription.
    const requestId = asked.includes(named)
      ? replaced(named, asked, FALSY)
      : replaced(named, FALSY, asking);
    return { ...message, params: { .../** @type {object} */ (params), requestId } };
  }
  const key = method === undefined ? 'result' : 'params';
  const part = getOwn(message, key);
  const named = method === undefined ? replaced(id, asked, FALSY) : replaced(id, FALSY, asking);
  const repeated = withTrueSubscription(part, asked);
  if (named === id && repeated === part) return message;
  return { ...message, id: named, ...(part !== undefined && { [key]: repeated }) };
}

/**
 * Makes a `Transport` for `connect` of the SDK's client or server.
 * @param {import('abp-bridge/driver').Transport} transport closed together
 *   with the result
 */
export function mcpTransport(transport) {
  const observed = new Observed(transport, MCP);
  // The replacements of our ids on the wire: different for each connection, because the peer may
  // use the same scheme.
  const mark = crypto.getRandomValues(new Uint32Array(2)).join('-');
  const ours = FALSY.map((id) => `abp-bridge:${mark}:${typeof id}`);
  return {
    // The SDK sets these three.
    onmessage: /** @type {undefined | ((message: any) => void)} */ (undefined),
    onclose: /** @type {undefined | (() => void)} */ (undefined),
    onerror: /** @type {undefined | ((error: Error) => void)} */ (undefined),
    async start() {
      observed.onMessage = (message) => this.onmessage?.(translated(message, THEIRS, ours));
      observed.onError = (error) => this.onerror?.(error);
      observed.onClose = () => this.onclose?.();
      observed.start();
    },
    async send(/** @type {unknown} */ message) {
      observed.send(translated(message, ours, THEIRS));
    },
    async close() {
      observed.close();
    },
  };
}
