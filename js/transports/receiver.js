/** Delivers what arrives, as js/transports/transport.js promises for every transport. */
import { AbpError, invokeReportingErrors } from '../common/errors.js';

/** @import { Transport } from './transport.js' */

/** Messages, and characters of text, that may arrive before somebody listens. */
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
  /** Whether nothing arrives any more: the other side was lost, or this one has closed it. */
  #over = false;
  /**
   * Whether nothing is sent or received any more. Earlier messages may still wait to be delivered.
   */
  stopped = false;

  /** What the transport's user has set: called with each message, and the ports that came. */
  get onMessage() {
    return this.#onMessage ?? (() => {});
  }

  set onMessage(listener) {
    this.#onMessage = listener;
    this.listen();
    this.#deliverSoon();
  }

  /** What the transport's user has set: called once, when the other side is gone. */
  get onClose() {
    return this.#onClose;
  }

  set onClose(listener) {
    this.#onClose = listener;
    this.#deliverSoon();
  }

  /** Called when somebody listens: a transport that can wait begins to read. */
  listen() {}

  /** Releases what the transport uses: its listeners, its socket or port. Called once. */
  end() {}

  /** Ends the connection from this side: nothing is delivered any more. */
  close() {
    this.#over = true;
    this.#early = [];
    this.stop();
  }

  /** Stops sending and receiving. What has arrived is still delivered. */
  stop() {
    if (this.stopped) return;
    this.stopped = true;
    this.end();
  }

  /**
   * A message has arrived.
   * @param {unknown} message the message
   * @param {readonly MessagePort[]} [ports]
   * @param {number} [length] characters, where it was text
   */
  receive(message, ports = NO_PORTS, length = 0) {
    this.deliverInTurn(() => invokeReportingErrors(this.#onMessage, message, ports), length);
  }

  /**
   * Something has arrived that is not a message.
   * @param {AbpError} error what was wrong with it
   */
  receiveUnreadable(error) {
    this.deliverInTurn(() => {
      if (this.onUnreadable) invokeReportingErrors(this.onUnreadable, error);
      else invokeReportingErrors(this.#onMessage, null, NO_PORTS);
    });
  }

  /**
   * The other side has gone away.
   * @param {unknown} [cause] none where it has ended the connection in an orderly way
   */
  lose(cause) {
    if (this.#over) return;
    this.#over = true;
    const waiting = this.#early.push(() => invokeReportingErrors(this.#onClose, cause));
    if (waiting === 1) this.#deliver();
  }

  /**
   * Delivers something at once, or after what waits already.
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

  /** Not at once: the listener may have more to set up. */
  #deliverSoon() {
    if (this.#early.length) queueMicrotask(() => this.#deliver());
  }

  #deliver() {
    // What arrives meanwhile is kept and comes after it.
    for (let next; (next = this.#early[0]); this.#early.shift()) {
      // The last one tells that the other side was lost.
      const isEnd = this.#over && this.#early.length === 1;
      if (!(isEnd ? this.#onClose : this.#onMessage)) return;
      next();
    }
    this.#earlyCharacters = 0;
  }
}
