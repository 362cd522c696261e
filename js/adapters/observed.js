/**
 * What passes between an SDK and its peer, watched so far that each side is told the truth about cancels and about
 * the end: the SDKs send cancels for what is over, take an answer for another's, and say nothing when they close.
 *
 *   - A cancel passes, either way, if the request that it names was made in that direction and is still going on.
 *   - An answer passes once, and only to the very id that asked: `"0"` is not 0.
 *   - At the end, pending requests are cancelled and open ones answered, so that nobody waits for ever.
 */
import { AbpError, callOut, reasonText, toErrorObject } from '../errors.js';
import { own } from '../messages.js';

/**
 * @typedef {object} Dialect
 * @property {string} cancel the method that cancels a request
 * @property {string} idKey where its params name the request
 * @property {boolean} answers whether a request that was cancelled is answered all the same
 * @property {number} ended the code of the error that answers what the end of the connection cut off
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

/** Requests in flight in one direction: more are refused. */
const MOST = 2 ** 16;

/**
 * @typedef {object} Direction
 * @property {Map<Id, boolean>} requests in flight, and whether each was cancelled
 * @property {(message: any) => void} answer sends an answer to one of them
 */

export class Observed {
  #closed = false;
  #transport;
  #dialect;

  /**
   * @param {import('../endpoint.js').Transport} transport
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
    this.ours = { requests: new Map(), answer: (message) => callOut(this.onMessage, message) };
    /** What the peer asks of the SDK. @type {Direction} */
    this.theirs = { requests: new Map(), answer: (message) => this.#post(message) };
  }

  /** Begins to read. */
  start() {
    this.#transport.onUnreadable = (error) => callOut(this.onError, error);
    this.#transport.onClose = (cause) => {
      if (this.#closed) return;
      const why = reasonText(cause) ?? 'The other side is gone';
      callOut(this.onError, new AbpError('DISCONNECTED', why, { cause }));
      this.#end(why);
    };
    this.#transport.onMessage = (message) => {
      if (this.#closed || !this.#passes(message, this.theirs, this.ours)) return;
      callOut(this.onMessage, message);
    };
  }

  /**
   * Sends what the SDK has to say. Throws if that cannot be sent, unless the peer was told so in its place.
   * @param {any} message
   */
  send(message) {
    if (this.#closed || !this.#passes(message, this.ours, this.theirs)) return;
    try {
      this.#transport.post(message);
    } catch (error) {
      const id = own(message, 'id');
      if (own(message, 'method') !== undefined || id === undefined) {
        this.ours.requests.delete(id);
        throw error;
      }
      this.#post(failure(id, INTERNAL_ERROR, `The result cannot be sent: ${reasonText(error)}`));
    }
  }

  /** The SDK is done: its peer hears what becomes of all that it waits for or works on. */
  close() {
    if (this.#closed) return;
    const why = 'The connection was closed';
    for (const cancel of this.#cancels(this.ours)) this.#post(cancel);
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
      for (const cancel of this.#cancels(this.theirs)) callOut(this.onMessage, cancel);
    }
    callOut(this.onClose);
  }

  /**
   * @param {Id} id
   * @param {string} why
   */
  #ended(id, why) {
    return failure(id, this.#dialect.ended, why);
  }

  /** @param {Direction} direction */
  #cancels({ requests }) {
    const { cancel: method, idKey } = this.#dialect;
    return [...requests]
      .filter(([, cancelled]) => !cancelled)
      .map(([id]) => ({ jsonrpc: '2.0', method, params: { [idKey]: id } }));
  }

  /**
   * Posts what is short and simple: it fails only where the connection does.
   * @param {any} message
   */
  #post(message) {
    try {
      this.#transport.post(message);
    } catch (error) {
      callOut(this.onError, AbpError.from(toErrorObject(error)));
    }
  }

  /**
   * @param {any} message
   * @param {Direction} direction its own
   * @param {Direction} other
   */
  #passes(message, { requests, answer }, other) {
    const method = own(message, 'method');
    const id = own(message, 'id');
    if (method === undefined) {
      // What is no answer either is the SDK's to complain of, and null answers what could not be read.
      return id === undefined || id === null || other.requests.delete(id);
    }
    if (id !== undefined) {
      if (requests.size < MOST) return requests.set(id, false);
      answer(failure(id, INTERNAL_ERROR, `More than ${MOST} requests are in flight`));
      return false;
    }
    const { cancel, idKey, answers } = this.#dialect;
    if (method !== cancel) return true;
    const cancelled = own(own(message, 'params'), idKey);
    if (requests.get(cancelled) !== false) return false;
    if (answers) requests.set(cancelled, true);
    else requests.delete(cancelled);
    return true;
  }
}
