/**
 * A WebSocket, to an app or from one, in pages and in Node: each text frame is one message of the protocol
 * as JSON. Bytes cross as base64, within `BinaryData`.
 */
import { LIVENESS } from '../../dist/abp-constants.js';
import { bytesToText, textToBytes } from '../binary.js';
import { AbpError, reasonText } from '../errors.js';
import { own } from '../messages.js';
import { exactOrigin } from '../origins.js';
import { prepare } from '../stored.js';

/** The state of a socket that is open; one that is connecting has a lesser, one that is not any more a greater. */
const OPEN = 1;

/** Codes of closing; those over 4000 are left to applications. */
const NORMAL = 1000;
const UNREAD = 4008;
const TOO_LONG = 4009;

const REQUESTS = ['capabilities/call', 'elicitation/request'];

/**
 * @typedef {object} Socket What is used of a WebSocket: the browser's, Node's own, or one of the package `ws`.
 * @property {number} readyState
 * @property {number} bufferedAmount
 * @property {(text: string) => void} send
 * @property {(code?: number, reason?: string) => void} close
 * @property {() => void} [terminate] `ws`: closes at once, without telling the other side
 * @property {(type: any, listener: (event: any) => void) => void} addEventListener
 */

/**
 * @typedef {object} SocketOptions
 * @property {number} [maxLength] characters of the longest message, either way (33554432)
 * @property {number} [maxUnsent] bytes that may wait because the other side does not read: with more, new
 *   calls fail with RATE_LIMITED; with four times as many, the socket is closed (16777216)
 * @property {import('../stored.js').Store} [store] keeps large parts of a result, so that references to them
 *   cross in their place
 * @property {number} [storeAbove] bytes: what is larger is stored (10485760)
 */

/**
 * A transport over a socket, which may still be connecting. For `connect`, wrap it in a function, so that each
 * session gets a socket of its own: `connect(() => webSocketTransport(url), options)`.
 * @param {string | URL | Socket} target an address, or a socket that nobody else uses
 * @param {SocketOptions} [options]
 * @returns {import('../endpoint.js').Transport}
 */
export function webSocketTransport(target, options = {}) {
  const { maxLength = 32 << 20, maxUnsent = 16 << 20, store, storeAbove = 10 << 20 } = options;
  const socket = typeof target === 'string' || target instanceof URL ? dial(target) : target;
  let closed = false;
  /** Why nothing can be sent any more. @type {string | undefined} */
  let why;
  /** What is said before the socket is open. @type {string[]} */
  let early = [];
  /** Characters of it. */
  let waiting = 0;

  /** @param {string} reason */
  const lost = (reason) => {
    why ??= reason;
    // Not at once: an endpoint that is sending has more to do before it hears of it.
    queueMicrotask(() => closed || transport.onClose?.(new Error(why)));
  };
  /**
   * What is no JSON text counts as malformed, for those who do not tell the two apart.
   * @param {unknown} cause
   */
  const unreadable = (cause) => {
    if (!transport.onUnreadable) return transport.onMessage(null, []);
    const why = `No JSON text: ${reasonText(cause)}`;
    transport.onUnreadable(new AbpError('PARSE_ERROR', why, { cause }));
  };
  /** @param {unknown} data */
  const receive = (data) => {
    let message;
    try {
      message = parse(data);
    } catch (cause) {
      return unreadable(cause);
    }
    transport.onMessage(message, []);
  };
  /**
   * @param {number} code
   * @param {string} reason
   */
  const giveUp = (code, reason) => {
    lost(reason);
    socket.close(code, reason);
  };

  /** @type {import('../endpoint.js').Transport} */
  const transport = {
    carries: LIVENESS,
    post(message) {
      if (closed) return;
      if (why !== undefined || socket.readyState > OPEN) return lost('The socket is closing');
      const unsent = socket.bufferedAmount + waiting;
      if (unsent > maxUnsent) {
        const type = own(message, 'type');
        if (REQUESTS.includes(type)) throw busy(unsent);
        // It says less than the next one will.
        if (type === 'progress') return;
        if (unsent > 4 * maxUnsent) {
          giveUp(UNREAD, `The other side does not read: ${unsent} bytes wait to be sent`);
          // They would be kept until it has answered that, too.
          socket.terminate?.();
          return;
        }
      }
      const text = JSON.stringify(message, bytesToText);
      if (text.length > maxLength) {
        throw new Error(`${text.length} characters are too many, the limit is ${maxLength}`);
      }
      // Somebody may hear before us that the socket is open.
      if (socket.readyState === OPEN && !early.length) return socket.send(text);
      early.push(text);
      waiting += text.length;
    },
    onMessage() {},
    prepare: (value, context) => prepare(value, context, store, storeAbove),
    close() {
      if (closed) return;
      closed = true;
      globalThis.removeEventListener?.('pagehide', leave);
      socket.close(NORMAL);
    },
  };

  // Chromium keeps the sockets of a page in its back-forward cache open, and the other side waiting.
  const leave = () => giveUp(NORMAL, 'The page was left');
  globalThis.addEventListener?.('pagehide', leave);
  // The listeners stay: `ws` ends the process over an error that nobody listens to.
  socket.addEventListener('open', () => {
    for (const text of early) socket.send(text);
    early = [];
    waiting = 0;
  });
  socket.addEventListener('message', ({ data }) => {
    if (closed) return;
    if (typeof data === 'string' && data.length > maxLength) {
      giveUp(TOO_LONG, `A message of ${data.length} characters came, the limit is ${maxLength}`);
    } else receive(data);
  });
  // Where a connection cannot be made, not every WebSocket says that it is closed as well.
  socket.addEventListener('error', ({ message }) =>
    lost(`The socket failed${message ? `: ${message}` : ''}`),
  );
  socket.addEventListener('close', ({ code, reason }) =>
    lost(`The socket was closed: ${code}${reason && ` ${reason}`}`),
  );
  if (socket.readyState > OPEN) lost('The socket is closed: each session needs one of its own');
  return transport;
}

/**
 * @param {string | URL} url
 * @returns {Socket}
 */
function dial(url) {
  if (globalThis.WebSocket) return new WebSocket(url);
  throw new AbpError(
    'NOT_SUPPORTED',
    'There is no WebSocket here: give a socket of the package ws',
  );
}

/**
 * Who may open a socket to a server: pages of these origins. Any page can open one to any server, with the
 * user's cookies; only the `Origin` that its browser sends tells which it is.
 * @param {readonly string[]} origins exact
 * @returns {(request: { headers: { origin?: string } }) => boolean} whether a request comes from one of them;
 *   one without `Origin` is no page's and does not
 */
export function fromOrigins(origins) {
  const allowed = new Set(origins.map(exactOrigin));
  return ({ headers }) => allowed.has(headers.origin ?? '');
}

/**
 * What a frame says. Throws if it is no JSON text.
 * @param {unknown} data
 */
function parse(data) {
  if (typeof data !== 'string') throw new TypeError('the frame is binary');
  // Few messages have bytes, and looking for them takes longer than all the rest.
  return data.includes('base64') ? JSON.parse(data, textToBytes) : JSON.parse(data);
}

/** @param {number} unsent */
const busy = (unsent) =>
  new AbpError('RATE_LIMITED', `The other side reads too slowly: ${unsent} bytes wait to be sent`, {
    retryable: true,
    retryAfter: 1000,
  });
