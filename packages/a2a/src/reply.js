/** Answers of an A2A agent: their destinations, and the events of streams. */
import { AbpError, safely, toErrorObject } from 'abp-bridge/driver';
import { printError } from './dialects.js';

/** @import { Dialect, Event } from './dialects.js' */

/**
 * A result, as text, as an object, and as bytes once they are needed.
 * @typedef {{ object?: any, text: string, bytes?: Uint8Array }} Printed
 */

/**
 * The destination of the answer to one request.
 * @typedef {object} Reply
 * @property {(response: object) => void} answer sends one JSON-RPC response, which is the whole
 *   answer
 * @property {(streams?: boolean) => void} [wait] announces that the answer, or the stream, will
 *   take long
 * @property {(ms: number) => void} [unavailable] the answer is an error, and the server is away for
 *   this time
 * @property {() => void} open begins a stream
 * @property {(head: object, body: Printed, failed?: boolean, number?: string) => void} event sends
 *   one JSON-RPC response in the stream: its first members, and its result, or its error if it
 *   `failed`; a number lets a reader resume after it
 * @property {() => Promise<void>} [room] resolves when the reader has read most of what was sent,
 *   or has left
 * @property {() => void} end ends the stream
 * @property {string[]} extensions that the request and the agent have in common; set before
 *   anything is sent
 * @property {boolean} left whether the reader has gone
 * @property {undefined | (() => void)} onLeave called when the reader goes
 */

/**
 * The sender of a request.
 * @typedef {object} Caller
 * @property {string} [version] the `A2A-Version`
 * @property {Record<string, string>} headers with names in lower case; empty without HTTP
 * @property {unknown} user set by the authentication of the request
 * @property {string[]} extensions URIs that the client declared
 */

/** One event of a task, printed at most once for each version. */
export class PrintedEvent {
  /** @type {Map<Dialect, Printed>} */
  #printed = new Map();

  /**
   * @param {Event} event
   * @param {string} [number] from which a reader can resume
   */
  constructor(event, number) {
    this.event = event;
    this.number = number;
  }

  /**
   * @param {Dialect} dialect
   * @returns {Printed}
   */
  in(dialect) {
    let printed = this.#printed.get(dialect);
    if (!printed) {
      const object = dialect.event(this.event);
      printed = { object, text: JSON.stringify(object) };
      this.#printed.set(dialect, printed);
    }
    return printed;
  }
}

/** A reader of a task's events, in one version. */
export class Stream {
  /**
   * @param {Reply} reply
   * @param {Dialect} dialect
   * @param {unknown} id of the request
   * @param {boolean} [lasting] whether the stream goes on while the task waits for input
   */
  constructor(reply, dialect, id, lasting = false) {
    this.lasting = lasting;
    this.reply = reply;
    this.dialect = dialect;
    this.head = dialect.numbered ? { jsonrpc: '2.0', id } : { jsonrpc: '2.0' };
  }

  /**
   * @param {PrintedEvent} event
   * @returns {boolean} false if the event could not be sent, which ended the stream
   */
  send(event) {
    try {
      this.reply.event(this.head, event.in(this.dialect), false, event.number);
      return true;
    } catch (thrown) {
      this.fail(printError(this.dialect, unsendable(thrown)));
      return false;
    }
  }

  /**
   * Ends the stream with an error.
   * @param {object} error
   */
  fail(error) {
    const body = { object: error, text: JSON.stringify(error) };
    safely(() => this.reply.event(this.head, body, true), undefined);
    this.end();
  }

  end() {
    safely(() => this.reply.end(), undefined);
  }
}

/**
 * The error that replaces an event which cannot be sent.
 * @param {unknown} thrown
 */
export const unsendable = (thrown) =>
  new AbpError('TOO_LARGE', `The answer cannot be sent: ${toErrorObject(thrown).message}`);
