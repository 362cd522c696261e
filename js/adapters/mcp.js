/** Our transports under the SDKs of MCP, 1.x and 2.x, client and server. */
import { getOwn } from '../common/values.js';
import { Observed } from './observed.js';

/** @type {import('./observed.js').Dialect} */
const MCP = {
  cancel: 'notifications/cancelled',
  idKey: 'requestId',
  answers: false,
  ended: -32000,
  reasons: true,
  subscribe: 'subscriptions/listen',
};

/**
 * SDK 1.x takes these ids for none, and cannot cancel what they name; its own first request is 0. So requests
 * have other ids in their place, ours on the wire and the peer's towards the SDK, and answers the true ones.
 */
const FALSY = [0, ''];
const THEIRS = FALSY.map((id) => `abp-bridge:theirs:${typeof id}`);
/** No other connection's: the peer's requests may be named in the same way. */
const newOurs = () => {
  const mark = crypto.getRandomValues(new Uint32Array(2)).join('-');
  return FALSY.map((id) => `abp-bridge:${mark}:${typeof id}`);
};

/**
 * @param {any} id
 * @param {any[]} from
 * @param {any[]} to
 */
const replaced = (id, from, to) => (from.includes(id) ? to[from.indexOf(id)] : id);

/** What belongs to a subscription repeats the id of the request that opened it. */
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/**
 * @param {any} part the params or the result of a message
 * @param {string[]} asked the ids of requests that go the other way than the message
 */
function withTrueSubscription(part, asked) {
  const meta = getOwn(part, '_meta');
  const id = getOwn(meta, SUBSCRIPTION_ID);
  if (!asked.includes(id)) return part;
  return { ...part, _meta: { ...meta, [SUBSCRIPTION_ID]: replaced(id, asked, FALSY) } };
}

/**
 * @param {any} message
 * @param {string[]} asking the ids of requests that go the message's way
 * @param {string[]} asked those of requests that go the other way
 */
function translated(message, asking, asked) {
  const method = getOwn(message, 'method');
  const id = getOwn(message, 'id');
  const params = getOwn(message, 'params');
  if (method === MCP.cancel) {
    const named = getOwn(params, MCP.idKey);
    // One that goes the other way than its request ends a subscription.
    const requestId = asked.includes(named)
      ? replaced(named, asked, FALSY)
      : replaced(named, FALSY, asking);
    return { ...message, params: { ...params, requestId } };
  }
  const key = method === undefined ? 'result' : 'params';
  const part = getOwn(message, key);
  const named = method === undefined ? replaced(id, asked, FALSY) : replaced(id, FALSY, asking);
  const repeated = withTrueSubscription(part, asked);
  if (named === id && repeated === part) return message;
  return { ...message, id: named, ...(part !== undefined && { [key]: repeated }) };
}

/**
 * A `Transport` for `connect` of a client or server of the MCP SDK. It closes what it stands on.
 * @param {import('../transports/transport.js').Transport} transport
 */
export const mcpTransport = (transport) => new McpTransport(transport);

class McpTransport {
  /** What the SDK sets. @type {undefined | ((message: any) => void)} */
  onmessage;
  /** @type {undefined | (() => void)} */
  onclose;
  /** @type {undefined | ((error: Error) => void)} */
  onerror;
  #observed;
  /** What stands on the wire for FALSY. */
  #ours = newOurs();

  /** @param {import('../transports/transport.js').Transport} transport */
  constructor(transport) {
    this.#observed = new Observed(transport, MCP);
  }

  async start() {
    this.#observed.onMessage = (message) =>
      this.onmessage?.(translated(message, THEIRS, this.#ours));
    this.#observed.onError = (error) => this.onerror?.(error);
    this.#observed.onClose = () => this.onclose?.();
    this.#observed.start();
  }

  /** @param {any} message */
  async send(message) {
    this.#observed.send(translated(message, this.#ours, THEIRS));
  }

  async close() {
    this.#observed.close();
  }
}
