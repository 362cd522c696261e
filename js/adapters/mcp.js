/** Our transports under the SDKs of MCP, 1.x and 2.x, client and server. */
import { own } from '../messages.js';
import { Observed } from './observed.js';

/** @type {import('./observed.js').Dialect} */
const MCP = {
  cancel: 'notifications/cancelled',
  idKey: 'requestId',
  answers: false,
  ended: -32000,
};

/**
 * SDK 1.x takes these ids for none, and cannot cancel what they name; its own first request is 0. So requests
 * have other ids in their place, ours on the wire and the peer's towards the SDK, and answers the true ones.
 */
const FALSY = [0, ''];
const OURS = FALSY.map((id) => `abp-bridge:ours:${typeof id}`);
const THEIRS = FALSY.map((id) => `abp-bridge:theirs:${typeof id}`);

/**
 * @param {any} id
 * @param {any[]} from
 * @param {any[]} to
 */
const replaced = (id, from, to) => (from.includes(id) ? to[from.indexOf(id)] : id);

/**
 * @param {any} message
 * @param {string[]} asking the ids of requests that go the message's way
 * @param {string[]} asked those of requests that go the other way
 */
function translated(message, asking, asked) {
  const method = own(message, 'method');
  const id = own(message, 'id');
  const params = own(message, 'params');
  if (method === MCP.cancel) {
    const requestId = replaced(own(params, MCP.idKey), FALSY, asking);
    return { ...message, params: { ...params, requestId } };
  }
  const other = method === undefined ? replaced(id, asked, FALSY) : replaced(id, FALSY, asking);
  return other === id ? message : { ...message, id: other };
}

/**
 * A `Transport` for `connect` of a client or server of the MCP SDK. It closes what it stands on.
 * @param {import('../endpoint.js').Transport} transport
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

  /** @param {import('../endpoint.js').Transport} transport */
  constructor(transport) {
    this.#observed = new Observed(transport, MCP);
  }

  async start() {
    this.#observed.onMessage = (message) => this.onmessage?.(translated(message, THEIRS, OURS));
    this.#observed.onError = (error) => this.onerror?.(error);
    this.#observed.onClose = () => this.onclose?.();
    this.#observed.start();
  }

  /** @param {any} message */
  async send(message) {
    this.#observed.send(translated(message, OURS, THEIRS));
  }

  async close() {
    this.#observed.close();
  }
}
