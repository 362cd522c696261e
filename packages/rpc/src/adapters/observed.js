/**
 * Observes the traffic between an SDK and its peer, so that both sides learn the truth about
 * cancels and about the end of the connection. The SDKs cancel requests that are over, match
 * answers to the wrong requests, and send nothing when they close.
 *
 *   - A cancel passes if its request was made in the same direction and is still open. A
 *     subscription may be ended by either side.
 *   - An answer passes once, and only if its id is exactly that of an open request: `"0"` is not 0.
 *   - A peer that has ended its half of a stream still gets its answers.
 * - When the connection ends, sent requests are cancelled and received requests are answered, so
 *   that no side waits for ever.
 */
import {
  AbpError,
  getOwn,
  invokeReportingErrors,
  reasonText,
  requireOf,
  toErrorObject,
} from 'abp-bridge/driver';

/**
 * @typedef {object} Dialect
 * @property {string} cancel the method that cancels a request
 * @property {boolean} answers whether a cancelled request is answered, too
 * @property {number} ended the error code for requests that the end of the connection cut off
 * @property {boolean} [reasons] whether a cancel may have a reason
 * @property {string} [subscribe] the method that opens a subscription, which its server may end by
 *   a cancel
 */

/** JSON-RPC's code for a message that could not be sent. */
const INTERNAL_ERROR = -32603;

/**
 * An error answer.
 * @param {unknown} id of the request
 * @param {number} code
 * @param {string} message
 */
const failure = (id, code, message) => ({ jsonrpc: '2.0', id, error: { code, message } });

/** The default reason for the end of a connection. */
const GONE = 'The other side disconnected';

/** More requests in flight in one direction are refused. */
const MAX_OPEN_REQUESTS = 2 ** 16;

// The state of a request in flight.
const OPEN = 0;
const CANCELLED = 1;
const SUBSCRIPTION = 2;

/**
 * The requests of one direction that are in flight, and the function that answers one.
 * @typedef {{ requests: Map<unknown, number>, answer(message: any): void }} Direction
 */

export class Observed {
  #closed = false;
  /** True if the peer sends nothing more. */
  #halfClosed = false;
  /** Why the connection ended, unless it ended in good order. @type {unknown} */
  #cause;
  #transport;
  #dialect;
  /** Receives the peer's messages. @type {(message: any) => void} */
  onMessage = () => {};
  /** Receives errors of the transport. @type {(error: AbpError) => void} */
  onError = () => {};
  /** Called once, when the connection has ended. */
  onClose = () => {};
  /** The SDK's requests. @type {Direction} */
  #ours = { requests: new Map(), answer: (message) => this.#deliver(message) };
  /** The peer's requests. @type {Direction} */
  #theirs = { requests: new Map(), answer: (message) => this.#post(message) };

  /**
   * @param {import('abp-bridge/driver').Transport} transport
   * @param {Dialect} dialect
   */
  constructor(transport, dialect) {
    requireOf('an adapter', 'the transport', 'an object', transport);
    requireOf('a transport', 'post', 'a function', transport.post);
    requireOf('a transport', 'close', 'a function', transport.close);
    this.#transport = transport;
    this.#dialect = dialect;
  }

  /** Starts to receive. */
  start() {
    this.#transport.onUnreadable = (error) => invokeReportingErrors(this.onError, error);
    this.#transport.onClose = (cause) => {
      if (this.#closed) return;
      this.#cause = cause;
      // An orderly end is no error.
      if (cause !== undefined) {
        const why = reasonText(cause) ?? GONE;
        invokeReportingErrors(this.onError, new AbpError('DISCONNECTED', why, { cause }));
      }
      this.#end();
    };
    this.#transport.onEnd = () => {
      this.#halfClosed = true;
      this.#answerAll(this.#ours, GONE);
      this.#ours.requests.clear();
      this.#endIfAnswered();
    };
    this.#transport.onMessage = (message) => {
      if (!this.#closed && this.#passes(message, this.#theirs, this.#ours)) this.#deliver(message);
    };
  }

  /** @param {unknown} message */
  #deliver(message) {
    invokeReportingErrors(this.onMessage, message);
  }

  /**
   * Sends a message of the SDK. Throws an `AbpError` when the connection is over, and the
   * transport's error if the message cannot be sent; an answer that cannot be sent is replaced by
   * an error answer.
   * @param {unknown} message
   */
  send(message) {
    const id = getOwn(message, 'id');
    const asks = getOwn(message, 'method') !== undefined;
    // Transports may refuse new requests under back-pressure.
    const kind = asks && id !== undefined ? 'request' : undefined;
    if (this.#closed || (this.#halfClosed && kind))
      throw new AbpError('DISCONNECTED', 'The connection is closed', { cause: this.#cause });
    if (!this.#passes(message, this.#ours, this.#theirs)) return;
    try {
      this.#transport.post(message, undefined, kind);
    } catch (error) {
      if (asks || id === undefined) {
        this.#ours.requests.delete(id);
        throw error;
      }
      this.#post(failure(id, INTERNAL_ERROR, `The result cannot be sent: ${reasonText(error)}`));
    }
    this.#endIfAnswered();
  }

  /**
   * Ends the connection once a half-closed peer has its answers. Subscriptions, which never end by
   * themselves, do not count.
   */
  #endIfAnswered() {
    const states = [...this.#theirs.requests.values()];
    if (this.#halfClosed && states.every((state) => state === SUBSCRIPTION)) this.#end();
  }

  /**
   * Ends the connection for the SDK: cancels its requests, and answers the peer's with an error.
   */
  close() {
    if (this.#closed) return;
    const { cancel: method, reasons } = this.#dialect;
    const reason = 'The connection was closed';
    for (const [requestId, state] of this.#ours.requests) {
      const params = { requestId, ...(reasons && { reason }) };
      if (state !== CANCELLED) this.#post({ jsonrpc: '2.0', method, params });
    }
    this.#answerAll(this.#theirs, reason);
    this.#end();
  }

  #end() {
    if (this.#closed) return;
    this.#closed = true;
    this.#transport.close();
    invokeReportingErrors(this.onClose);
  }

  /**
   * Answers the requests that the end of the connection cuts off.
   * @param {Direction} direction
   * @param {string} why
   */
  #answerAll({ requests, answer }, why) {
    for (const id of requests.keys()) answer(failure(id, this.#dialect.ended, why));
  }

  /**
   * Posts a small message of our own, which fails only if the connection does.
   * @param {unknown} message
   */
  #post(message) {
    try {
      this.#transport.post(message);
    } catch (error) {
      invokeReportingErrors(this.onError, AbpError.from(toErrorObject(error)));
    }
  }

  /**
   * True if a message may pass. Keeps the open requests up to date.
   * @param {unknown} message
   * @param {Direction} direction its own
   * @param {Direction} other the opposite one
   */
  #passes(message, { requests, answer }, other) {
    const method = getOwn(message, 'method');
    const id = getOwn(message, 'id');
    // Other messages are left to the SDK. The id null answers a message that could not be read.
    if (method === undefined) return id === undefined || id === null || other.requests.delete(id);
    const { cancel, subscribe, answers } = this.#dialect;
    if (id !== undefined) {
      if (requests.size < MAX_OPEN_REQUESTS)
        return requests.set(id, method === subscribe ? SUBSCRIPTION : OPEN);
      answer(failure(id, INTERNAL_ERROR, `More than ${MAX_OPEN_REQUESTS} requests are in flight`));
      return false;
    }
    if (method !== cancel) return true;
    const named = getOwn(getOwn(message, 'params'), 'requestId');
    if (!requests.has(named))
      return other.requests.get(named) === SUBSCRIPTION && other.requests.delete(named);
    if (!answers) return requests.delete(named);
    const first = requests.get(named) !== CANCELLED;
    requests.set(named, CANCELLED);
    return first;
  }
}
