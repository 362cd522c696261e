/** Delivers messages as the contract in js/transports/transport.js says. */
import { AbpError, invokeReportingErrors } from '../common/errors.js';

/** @import { Transport } from './transport.js' */

/** The most messages, and characters of text, that are kept before there is a listener. */
const MAX_EARLY_MESSAGES = 1024;
const MAX_EARLY_CHARACTERS = 2 ** 25;

/** @type {readonly MessagePort[]} */
const NO_PORTS = [];

/** Delivers messages in order, keeps early ones, and reports the end once. Transports extend it. */
export class Receiver {
  /** @type {Transport['onMessage'] | undefined} */
  #onMessage;
  /** @type {Transport['onClose']} */
  #onClose;
  /** @type {Transport['onUnreadable']} */
  onUnreadable = undefined;
  /** Deliveries that wait for a listener. @type {(() => void)[]} */
  #early = [];
  #earlyCharacters = 0;
  /**
   * True if nothing arrives any more: the other side is gone, or this side has closed the
   * transport.
   */
  #over = false;
  /**
   * True if nothing is sent or received any more. Earlier messages may still wait to be delivered.
   */
  stopped = false;

  /** The user's listener, called with each message and the ports that came with it. */
  get onMessage() {
    return this.#onMessage ?? (() => {});
  }

  set onMessage(listener) {
    this.#onMessage = listener;
    this.listen();
    this.#deliverSoon();
  }

  /** The user's listener, called once, when the other side is gone. */
  get onClose() {
    return this.#onClose;
  }

  set onClose(listener) {
    this.#onClose = listener;
    this.#deliverSoon();
  }

  /** Called when `onMessage` is set: a transport that can wait begins to read. */
  listen() {}

  /** Releases the transport's resources: its listeners, its socket or port. Called once. */
  end() {}

  /** Ends the connection from this side: nothing is delivered any more. */
  close() {
    this.#over = true;
    this.#early = [];
    this.stop();
  }

  /** Stops sending and receiving. Messages that have arrived are still delivered. */
  stop() {
    if (this.stopped) return;
    this.stopped = true;
    this.end();
  }

  /**
   * Delivers a message that has arrived.
   * @param {unknown} message the message
   * @param {readonly MessagePort[]} [ports]
   * @param {number} [length] characters, if it was text
   */
  receive(message, ports = NO_PORTS, length = 0) {
    this.deliverInTurn(() => invokeReportingErrors(this.#onMessage, message, ports), length);
  }

  /**
   * Reports data that has arrived and is not a message.
   * @param {AbpError} error what was wrong with it
   */
  receiveUnreadable(error) {
    this.deliverInTurn(() => {
      if (this.onUnreadable) invokeReportingErrors(this.onUnreadable, error);
      else invokeReportingErrors(this.#onMessage, null, NO_PORTS);
    });
  }

  /**
   * Reports that the other side is gone.
   * @param {unknown} [cause] absent if it ended the connection in an orderly way
   */
  lose(cause) {
    if (this.#over) return;
    this.#over = true;
    const waiting = this.#early.push(() => invokeReportingErrors(this.#onClose, cause));
    if (waiting === 1) this.#deliver();
  }

  /**
   * Runs a delivery at once, or after those that already wait.
   * @param {() => void} deliver
   * @param {number} [length]
   */
  deliverInTurn(deliver, length = 0) {
    if (this.#over) return;
    if (this.#onMessage && !this.#early.length) return deliver();
    this.#earlyCharacters += length;
    if (this.#early.length < MAX_EARLY_MESSAGES && this.#earlyCharacters <= MAX_EARLY_CHARACTERS)
      return void this.#early.push(deliver);
    this.lose(new AbpError('RATE_LIMITED', 'Too many messages before anybody listened'));
    this.stop();
  }

  /** Not at once: the user may still have to set another listener. */
  #deliverSoon() {
    if (this.#early.length) queueMicrotask(() => this.#deliver());
  }

  #deliver() {
    // Messages that arrive meanwhile are kept and delivered next.
    for (let next; (next = this.#early[0]); this.#early.shift()) {
      // The last delivery reports that the other side is gone.
      const isEnd = this.#over && this.#early.length === 1;
      if (!(isEnd ? this.#onClose : this.#onMessage)) return;
      next();
    }
    this.#earlyCharacters = 0;
  }
}
