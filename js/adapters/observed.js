/**
 * What passes between an SDK and its peer, watched so far that each side is told the truth about cancels and about
 * the end: the SDKs send cancels for what is over, take an answer for another's, and say nothing when they close.
 *
 *   - A cancel passes, either way, if the request that it names was made in that direction and is still going on. A
 *     subscription may be ended from either side.
 *   - An answer passes once, and only to the very id that asked: `"0"` is not 0.
 *   - A peer that ends its half of a stream is answered what it asked before.
 *   - At the end, pending requests are cancelled and open ones answered, so that nobody waits for ever.
 */
import { AbpError, invokeReportingErrors, reasonText, toErrorObject } from '../common/errors.js';
import { getOwn } from '../common/values.js';

/**
 * @typedef {object} Dialect
 * @property {string} cancel the method that cancels a request
 * @property {string} idKey where its params name the request
 * @property {boolean} answers whether a request that was cancelled is answered all the same
 * @property {number} ended the code of the error that answers what the end of the connection cut off
 * @property {boolean} [reasons] whether a cancel says why
 * @property {string} [subscribe] the method of a request that the side which serves it ends by a cancel, too
 * @property {boolean} [abandons] whether the SDK leaves what is open at the end as it is
 */

/** @typedef {string | number | null} Id */

/** JSON-RPC's own: a message could not be sent. */
const INTERNAL_ERROR = -32603;

/**
 * @param {Id} id
 * @param {number} code
 * @param {string} message
 */
const failure = (id, code, message) => ({ jsonrpc: '2.0', id, error: { code, message } });

/** A request's sender waits and can be told to try later. @param {any} message */
const kindOf = (message) =>
  getOwn(message, 'method') !== undefined && getOwn(message, 'id') !== undefined
    ? 'request'
    : undefined;

/** Why the connection is over where nobody says why. */
const GONE = 'The other side is gone';

/** Requests in flight in one direction: more are refused. */
const MAX_OPEN_REQUESTS = 2 ** 16;

/** What is known of a request in flight. */
const OPEN = 0;
const CANCELLED = 1;
const SUBSCRIPTION = 2;

/**
 * @typedef {object} Direction
 * @property {Map<Id, number>} requests in flight: OPEN, CANCELLED or SUBSCRIPTION
 * @property {(message: any) => void} answer sends an answer to one of them
 */

export class Observed {
  #closed = false;
  /** Whether the peer will say nothing more. */
  #halfClosed = false;
  /** Why, if that was no orderly end. @type {unknown} */
  #cause;
  #transport;
  #dialect;

  /**
   * @param {import('../transports/transport.js').Transport} transport
   * @param {Dialect} dialect
   */
  constructor(transport, dialect) {
    this.#transport = transport;
    this.#dialect = dialect;
    /** Takes what has come. @type {(message: any) => void} */
    this.onMessage = () => {};
    /** Takes what went wrong. @type {(error: AbpError) => void} */
    this.onError = () => {};
    /** The connection is over. */
    this.onClose = () => {};
    /** What the SDK asks of its peer. @type {Direction} */
    this.ours = {
      requests: new Map(),
      answer: (message) => invokeReportingErrors(this.onMessage, message),
    };
    /** What the peer asks of the SDK. @type {Direction} */
    this.theirs = { requests: new Map(), answer: (message) => this.#post(message) };
  }

  /** Begins to read. */
  start() {
    this.#transport.onUnreadable = (error) => invokeReportingErrors(this.onError, error);
    this.#transport.onClose = (cause) => {
      if (this.#closed) return;
      const why = reasonText(cause) ?? GONE;
      this.#cause = cause;
      // An orderly end is no error.
      if (cause !== undefined) {
        invokeReportingErrors(this.onError, new AbpError('DISCONNECTED', why, { cause }));
      }
      this.#end(why);
    };
    this.#transport.onEnd = () => {
      this.#halfClosed = true;
      for (const id of this.ours.requests.keys()) this.ours.answer(this.#ended(id, GONE));
      this.ours.requests.clear();
      this.#endIfAnswered();
    };
    this.#transport.onMessage = (message) => {
      if (this.#closed || !this.#passes(message, this.theirs, this.ours)) return;
      invokeReportingErrors(this.onMessage, message);
    };
  }

  /**
   * Sends what the SDK has to say. Throws if that cannot be sent, unless the peer was told so in its place, and when the
   * connection is over.
   * @param {any} message
   */
  send(message) {
    if (this.#closed || (this.#halfClosed && kindOf(message))) {
      throw new AbpError('DISCONNECTED', 'The connection is closed', { cause: this.#cause });
    }
    if (!this.#passes(message, this.ours, this.theirs)) return;
    try {
      this.#transport.post(message, undefined, kindOf(message));
    } catch (error) {
      const id = getOwn(message, 'id');
      if (getOwn(message, 'method') !== undefined || id === undefined) {
        this.ours.requests.delete(id);
        throw error;
      }
      this.#post(failure(id, INTERNAL_ERROR, `The result cannot be sent: ${reasonText(error)}`));
    }
    this.#endIfAnswered();
  }

  /** The peer has heard all that it waits for. A subscription never ends by itself. */
  #endIfAnswered() {
    if (!this.#halfClosed) return;
    for (const state of this.theirs.requests.values()) if (state !== SUBSCRIPTION) return;
    this.#end(GONE);
  }

  /** The SDK is done: its peer hears what becomes of all that it waits for or works on. */
  close() {
    if (this.#closed) return;
    const why = 'The connection was closed';
    const reason = this.#dialect.reasons ? why : undefined;
    for (const cancel of this.#cancels(this.ours, reason)) this.#post(cancel);
    for (const id of this.theirs.requests.keys()) this.theirs.answer(this.#ended(id, why));
    this.#end(why);
  }

  /** @param {string} why */
  #end(why) {
    if (this.#closed) return;
    this.#closed = true;
    this.#transport.close();
    if (this.#dialect.abandons) {
      for (const id of this.ours.requests.keys()) this.ours.answer(this.#ended(id, why));
      // Nobody sent these: whoever traces what comes in can tell by the reason, which the dialect has not.
      for (const cancel of this.#cancels(this.theirs, why)) {
        invokeReportingErrors(this.onMessage, cancel);
      }
    }
    invokeReportingErrors(this.onClose);
  }

  /**
   * @param {Id} id
   * @param {string} why
   */
  #ended(id, why) {
    return failure(id, this.#dialect.ended, why);
  }

  /**
   * @param {Direction} direction
   * @param {string} [reason]
   */
  #cancels({ requests }, reason) {
    const { cancel: method, idKey } = this.#dialect;
    return [...requests]
      .filter(([, state]) => state !== CANCELLED)
      .map(([id]) => ({
        jsonrpc: '2.0',
        method,
        params: { [idKey]: id, ...(reason && { reason }) },
      }));
  }

  /**
   * Posts what is short and simple: it fails only where the connection does.
   * @param {any} message
   */
  #post(message) {
    try {
      this.#transport.post(message);
    } catch (error) {
      invokeReportingErrors(this.onError, AbpError.from(toErrorObject(error)));
    }
  }

  /**
   * @param {any} message
   * @param {Direction} direction its own
   * @param {Direction} other
   */
  #passes(message, { requests, answer }, other) {
    const method = getOwn(message, 'method');
    const id = getOwn(message, 'id');
    if (method === undefined) {
      // What is no answer either is the SDK's to complain of, and null answers what could not be read.
      return id === undefined || id === null || other.requests.delete(id);
    }
    const { cancel, idKey, subscribe } = this.#dialect;
    if (id !== undefined) {
      if (requests.size < MAX_OPEN_REQUESTS) {
        return requests.set(id, method === subscribe ? SUBSCRIPTION : OPEN);
      }
      answer(failure(id, INTERNAL_ERROR, `More than ${MAX_OPEN_REQUESTS} requests are in flight`));
      return false;
    }
    if (method !== cancel) return true;
    const named = getOwn(getOwn(message, 'params'), idKey);
    if (!requests.has(named)) {
      return other.requests.get(named) === SUBSCRIPTION && other.requests.delete(named);
    }
    if (!this.#dialect.answers) return requests.delete(named);
    const first = requests.get(named) !== CANCELLED;
    requests.set(named, CANCELLED);
    return first;
  }
}
