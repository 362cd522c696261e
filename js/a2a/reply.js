/** Where answers go, and what is told in them. */
import { AbpError, safely, toErrorObject } from '../common/errors.js';
import { printError } from './dialects.js';

/** @import { Dialect, Event } from './dialects.js' */

/**
 * What is told, as an object and as text.
 * @typedef {{ object: any, text: string }} Printed
 */

/**
 * Where the answer to one request goes.
 * @typedef {object} Reply
 * @property {(response: object) => void} answer one JSON-RPC response, and that is all
 * @property {() => void} [wait] the answer will take as long as its task, and is no error
 * @property {() => void} open begins a stream
 * @property {(head: object, body: Printed, failed?: boolean) => void} frame one JSON-RPC response in the stream: what
 *   it begins with, and its result, or its error when it has failed
 * @property {() => void} end ends the stream
 * @property {string[]} extensions those that the request and the agent both know, set before anything is answered
 * @property {boolean} left whether nobody reads the answer any more
 * @property {undefined | (() => void)} onLeave called when that becomes so
 */

/**
 * Who asks, and how.
 * @typedef {object} Caller
 * @property {string} [version] the `A2A-Version`
 * @property {Record<string, string>} headers by their names in lower case; none where there is no HTTP
 * @property {unknown} user as whoever authenticated the request left it
 * @property {string[]} extensions URIs that the client declares
 */

/** One frame of a task, printed at most once for each version. */
export class Frame {
  /** @type {Map<Dialect, Printed>} */
  #printed = new Map();

  /** @param {Event} event */
  constructor(event) {
    this.event = event;
  }

  /** @param {Dialect} dialect @returns {Printed} */
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

/** Somebody who reads what happens to a task, in one version. */
export class Stream {
  /** @param {Reply} reply @param {Dialect} dialect @param {unknown} id of the request */
  constructor(reply, dialect, id) {
    this.reply = reply;
    this.dialect = dialect;
    this.head = dialect.numbered ? { jsonrpc: '2.0', id } : { jsonrpc: '2.0' };
  }

  /**
   * @param {Frame} frame
   * @returns {boolean} false when the reader cannot be told, which is the end of its stream
   */
  send(frame) {
    try {
      this.reply.frame(this.head, frame.in(this.dialect));
      return true;
    } catch (thrown) {
      this.fail(printError(this.dialect, unsendable(thrown)));
      return false;
    }
  }

  /** Ends the stream with an error. @param {object} error */
  fail(error) {
    const body = { object: error, text: JSON.stringify(error) };
    safely(() => this.reply.frame(this.head, body, true), undefined);
    this.end();
  }

  end() {
    safely(() => this.reply.end(), undefined);
  }
}

/** What a reader is told of what cannot be sent to it. @param {unknown} thrown */
export const unsendable = (thrown) =>
  new AbpError('TOO_LARGE', `The answer cannot be sent: ${toErrorObject(thrown).message}`);
