/**
 * A WebSocket to an app or from one, in pages and in Node. Each text frame is one message as JSON.
 * Bytes are sent as base64, within `BinaryData`; large ones are stored by the app, and sent as a
 * reference (the protocol's `BinaryDataReference`).
 *
 * The transport is a Receiver (js/transports), which keeps early messages and reports the end once.
 * Outgoing: json-text.js checks and writes a message, which waits here until the socket is open, or
 * is rejected when too much waits already. Incoming: a frame is checked, parsed, and delivered. A
 * result of an app first passes through `prepare`, as part of its call. This file does not know
 * calls or sessions: the cores at both ends do.
 */
import { contentOf, isBlob, replaceBinary, sizeOf } from '../../js/binary/binary.js';
import { requireBounded } from '../../js/untrusted/bounds.js';
import { AbpError, reasonText, toErrorObject } from '../../js/common/errors.js';
import { requireOptions } from '../../js/common/check-options.js';
import { exactOrigin } from '../../js/common/origins.js';
import { Receiver } from '../../js/transports/receiver.js';
import { messageToText, textToMessage } from './json-text.js';

/** @import { MessageKind, Prepare, Transport } from '../../js/transports/transport.js' */

export { messageToText, textToMessage };

/** The `readyState` of an open socket; it is less while connecting and greater afterwards. */
const OPEN = 1;

/** Close codes; those from 4000 on are for applications. */
const NORMAL = 1000;
const UNREAD = 4008;
const TOO_LONG = 4009;

/**
 * @typedef {object} Socket The parts of a WebSocket that are used here: the browser's, Node's, or
 *   that of the package `ws`.
 * @property {number} readyState
 * @property {number} bufferedAmount
 * @property {(text: string) => void} send
 * @property {(code?: number, reason?: string) => void} close
 * @property {() => void} [terminate] `ws`: closes at once, without notifying the other side
 * @property {(type: any, listener: (event: any) => void) => void} addEventListener
 */

/**
 * @typedef {object} SocketOptions The options of `webSocketTransport`.
 * @property {number} [maxLength] the longest message in either direction, in characters (33554432)
 * @property {number} [maxUnsent] bytes that may wait to be sent: with more, new calls fail with
 *   RATE_LIMITED; with four times as many, the socket is closed (16777216)
 * @property {Store} [store] stores large parts of a result; references are sent in their place
 * @property {number} [storeAbove] bytes above which a part is stored (10485760)
 */

/**
 * @typedef {object} Stored A reference to stored bytes.
 * @property {string} downloadUrl
 * @property {number} [expiresAt] ms since 1970; the protocol requires at least an hour
 * @property {{ type: 'bearer' | 'query', token?: string, header?: string }} [auth]
 */

/**
 * @typedef {import('../../js/transports/transport.js').CallContext} StoreContext The call whose
 *   result is stored.
 */

/**
 * @callback Store Stores bytes where the agent can fetch them.
 * @param {{ content: ArrayBuffer, mimeType: string, filename?: string, size: number }} data
 * @param {StoreContext} context the call whose result is stored
 * @returns {Stored | Promise<Stored>}
 */

/**
 * A transport over a socket, which may still be connecting. For `connect`, wrap it in a function:
 * each session needs its own socket.
 * @param {string | URL | Socket} target an address, or a socket without other users
 * @param {SocketOptions} [options]
 * @returns {Transport & { prepare: Prepare }} `prepare` is for apps
 * @example
 * const client = await connect(() => webSocketTransport('wss://writer.example/abp'), { agent });
 */
export const webSocketTransport = (target, options) => new WebSocketTransport(target, options);

/** @type {import('../../js/common/check-options.js').Kinds<SocketOptions>} */
const OPTIONS = {
  maxLength: 'a number',
  maxUnsent: 'a number',
  store: 'a function',
  storeAbove: 'a number',
};

class WebSocketTransport extends Receiver {
  /** @type {Transport['carries']} */
  carries = ['liveness', 'streams'];
  #socket;
  #options;
  #ending = false;
  /** Messages that wait until the socket is open. @type {string[]} */
  #unsent = [];
  /** The number of their characters. */
  #waiting = 0;

  /**
   * @param {string | URL | Socket} target
   * @param {SocketOptions} [options]
   */
  constructor(target, options = {}) {
    super();
    requireOptions('webSocketTransport', options, OPTIONS);
    const { maxLength = 32 << 20, maxUnsent = 16 << 20, store, storeAbove = 10 << 20 } = options;
    const isAddress = typeof target === 'string' || target instanceof URL;
    if (isAddress && !globalThis.WebSocket)
      throw new AbpError(
        'NOT_SUPPORTED',
        'WebSocket is not available: pass a socket from the package ws',
      );
    /** @type {Socket} */
    const socket = isAddress ? new WebSocket(target) : target;
    this.#socket = socket;
    this.#options = { maxLength, maxUnsent, store, storeAbove };
    // Chromium keeps the sockets of pages in its back-forward cache open, so the other side would
    // wait.
    globalThis.addEventListener?.('pagehide', this.#leave);
    // The listeners are never removed: `ws` ends the process on an `error` event without a
    // listener.
    socket.addEventListener('open', () => {
      for (const text of this.#unsent.splice(0)) socket.send(text);
      this.#waiting = 0;
    });
    socket.addEventListener('message', ({ data }) => this.#heard(data));
    // If a connection cannot be made, not every WebSocket emits `close` as well.
    socket.addEventListener('error', ({ message, error }) =>
      this.#fail(`The connection failed${message ? `: ${message}` : ''}`, { cause: error }),
    );
    socket.addEventListener('close', ({ code, reason }) => {
      const why = `The connection was closed: ${code}${reason && ` ${reason}`}`;
      this.#fail(why, { details: { code, reason } });
    });
    if (socket.readyState > OPEN)
      this.#fail('The socket is closed: each session needs its own socket');
  }

  /**
   * @param {unknown} message
   * @param {Transferable[]} [_transfer] nothing can be moved
   * @param {MessageKind} [kind]
   */
  post(message, _transfer, kind) {
    const socket = this.#socket;
    if (this.stopped) return;
    if (this.#ending || socket.readyState > OPEN) return this.#fail('The connection is closing');
    const { maxLength, maxUnsent } = this.#options;
    const unsent = socket.bufferedAmount + this.#waiting;
    if (unsent > maxUnsent) {
      const why = `The other side reads too slowly: ${unsent} bytes wait to be sent`;
      if (kind === 'request')
        throw new AbpError('RATE_LIMITED', why, { retryable: true, retryAfter: 1000 });
      if (kind === 'droppable') return;
      if (unsent > 4 * maxUnsent) {
        this.#giveUp(UNREAD, why);
        // `close` alone would keep the waiting messages until the other side has answered.
        socket.terminate?.();
        return;
      }
    }
    const text = messageToText(message, maxLength);
    // Another listener may run before the one above when the socket opens.
    if (socket.readyState === OPEN && !this.#unsent.length) return socket.send(text);
    this.#unsent.push(text);
    this.#waiting += text.length;
  }

  /**
   * Prepares a result for sending: reads Blobs, and stores large data. This is part of the call: it
   * stops when the call is cancelled.
   * @type {Prepare}
   */
  prepare = async (value, { signal, callId }) => {
    try {
      requireBounded(value, { maxValues: 2 ** 24, maxCharacters: 2 ** 29 });
    } catch (cause) {
      throw failed('The result cannot be sent', cause);
    }
    return replaceBinary(value, async (data, part) => {
      const store = sizeOf(data) > this.#options.storeAbove && this.#options.store;
      if (!store && !isBlob(data.content)) return part;
      const content = await contentOf(data);
      signal.throwIfAborted();
      if (!store) return { ...data, content };
      const { mimeType, filename } = /** @type {any} */ (data);
      const size = content.byteLength;
      try {
        const stored = await store({ content, mimeType, filename, size }, { signal, callId });
        const { downloadUrl, expiresAt, auth } = stored;
        if (typeof downloadUrl !== 'string') throw new TypeError('store gave no downloadUrl');
        return { downloadUrl, mimeType, size, filename, expiresAt, auth };
      } catch (cause) {
        throw failed('The result could not be stored', cause);
      }
    });
  };

  /** @override */
  end() {
    globalThis.removeEventListener?.('pagehide', this.#leave);
    this.#socket.close(NORMAL);
  }

  #leave = () => this.#giveUp(NORMAL, 'The page was closed');

  /** @param {unknown} data */
  #heard(data) {
    if (this.stopped) return;
    const length = typeof data === 'string' ? data.length : 0;
    const { maxLength } = this.#options;
    if (length > maxLength) {
      const why = `A message of ${length} characters was received; the limit is ${maxLength}`;
      return this.#giveUp(TOO_LONG, why);
    }
    let message;
    try {
      if (typeof data !== 'string') throw new TypeError('it is not text');
      message = textToMessage(data);
    } catch (cause) {
      const why = `The message is not JSON: ${reasonText(cause)}`;
      return this.receiveUnreadable(new AbpError('PARSE_ERROR', why, { cause }));
    }
    this.receive(message, undefined, length);
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  #giveUp(code, reason) {
    this.#fail(reason, { details: { code, reason } });
    this.#socket.close(code, reason);
  }

  /**
   * Ends the transport with an error. Only the first reason is reported.
   * @param {string} why
   * @param {{ cause?: unknown, details?: object }} [more]
   */
  #fail(why, more) {
    if (this.#ending) return;
    this.#ending = true;
    const cause = new AbpError('TRANSPORT_ERROR', why, { retryable: true, ...more });
    // Not at once: an endpoint that is sending must finish first.
    queueMicrotask(() => this.lose(cause));
  }
}

/**
 * @param {string} what
 * @param {unknown} cause
 */
const failed = (what, cause) =>
  new AbpError('OPERATION_FAILED', `${what}: ${toErrorObject(cause).message}`, { cause });

/**
 * Makes a check for a server's upgrade requests: which pages may open a socket. Any page can open a
 * socket to any server, with the user's cookies; only the `Origin` header, which the browser sets,
 * identifies the page.
 * @param {readonly string[]} origins the exact origins of the allowed pages
 * @returns {(request: { headers: { origin?: string } }) => boolean} whether a request comes from
 *   one of them. A request without `Origin` does not come from a page, and is rejected
 */
export function fromOrigins(origins) {
  const allowed = new Set(origins.map((origin) => exactOrigin(origin)));
  return ({ headers }) => allowed.has(headers.origin ?? '');
}
