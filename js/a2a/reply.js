/** Answers of an A2A agent: where they go, and their frames. */
import { AbpError, safely, toErrorObject } from '../common/errors.js';
import { printError } from './dialects.js';

/** @import { Dialect, Event } from './dialects.js' */

/**
 * A result, as an object and as text.
 * @typedef {{ object: any, text: string }} Printed
 */

/**
 * The destination of the answer to one request.
 * @typedef {object} Reply
 * @property {(response: object) => void} answer sends one JSON-RPC response, which is the whole answer
 * @property {() => void} [wait] announces that the answer takes as long as the task
 * @property {() => void} open begins a stream
 * @property {(head: object, body: Printed, failed?: boolean) => void} frame sends one JSON-RPC response in the
 *   stream: its first members, and its result, or its error if it `failed`
 * @property {() => void} end ends the stream
 * @property {string[]} extensions those that the request and the agent have in common; set before anything is sent
 * @property {boolean} left whether the reader has gone
 * @property {undefined | (() => void)} onLeave called when the reader goes
 */

/**
 * The sender of a request.
 * @typedef {object} Caller
 * @property {string} [version] the `A2A-Version`
 * @property {Record<string, string>} headers with names in lower case; empty without HTTP
 * @property {unknown} user set by whatever authenticated the request
 * @property {string[]} extensions URIs that the client declared
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

/** A reader of a task's events, in one version. */
export class Stream {
  /** @param {Reply} reply @param {Dialect} dialect @param {unknown} id of the request */
  constructor(reply, dialect, id) {
    this.reply = reply;
    this.dialect = dialect;
    this.head = dialect.numbered ? { jsonrpc: '2.0', id } : { jsonrpc: '2.0' };
  }

  /**
   * @param {Frame} frame
   * @returns {boolean} false if the frame could not be sent, which ended the stream
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

/** The error in place of a frame that cannot be sent. @param {unknown} thrown */
export const unsendable = (thrown) =>
  new AbpError('TOO_LARGE', `The answer cannot be sent: ${toErrorObject(thrown).message}`);
