/** A connection to NATS as a backend has it: whether it is there, and what is named on it. */
import { AbpError, fromBase64, toBase64 } from 'abp-bridge/driver';
import { requireName, unavailable, within } from '@abp-bridge/a2a/store';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * A name as a token of a subject; an empty one is none of these.
 * @param {string} name
 */
export const token = (name) =>
  toBase64(encoder.encode(name)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') ||
  '-';

/**
 * @param {string} text a token of a subject
 * @returns {string} its name
 */
export const nameIn = (text) =>
  decoder.decode(fromBase64(text.replaceAll('-', '+').replaceAll('_', '/')));

/**
 * @param {string} subject
 * @returns {string} its last token
 */
export const lastOf = (subject) => subject.slice(subject.lastIndexOf('.') + 1);

export class Link {
  closed = false;
  /** Bytes of a message that the server takes. */
  maxPayload;
  /** A client keeps what is published without a connection, and sends it later. */
  connected = true;

  /**
   * @param {any} connection
   * @param {any} js
   * @param {any} jsm
   * @param {string} namespace
   * @param {number} timeout ms for NATS to answer
   */
  constructor(connection, js, jsm, namespace, timeout) {
    this.connection = connection;
    this.js = js;
    this.jsm = jsm;
    this.namespace = namespace;
    this.timeout = timeout;
    this.maxPayload = connection.info?.max_payload ?? 0;
  }

  /**
   * Knows whether there is a connection. Resolves when it was closed, and does not come back.
   * @param {() => void} onReconnect
   */
  async observe(onReconnect) {
    for await (const { type } of this.connection.status()) {
      if (type === 'disconnect') this.connected = false;
      if (type !== 'reconnect') continue;
      this.connected = true;
      this.maxPayload = this.connection.info?.max_payload ?? 0;
      onReconnect();
    }
  }

  /**
   * Throws unless something can be asked of these.
   * @param {...unknown} names
   */
  check(...names) {
    if (this.closed) throw unavailable();
    names.forEach(requireName);
    if (!this.connected) throw unavailable('There is no connection to NATS');
  }

  /** @param {...string} tokens */
  subject(...tokens) {
    return [this.namespace, ...tokens].join('.');
  }

  /**
   * Asks for something.
   * @template T
   * @param {() => Promise<T>} ask
   * @returns {Promise<T>}
   */
  async request(ask) {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof AbpError) throw error;
      throw unavailable(`NATS did not answer: ${/** @type {Error} */ (error).message}`, error);
    }
  }

  /**
   * Resolves when the server has what was sent. A server that hangs does not answer, and its
   * connection stays.
   */
  flush() {
    return this.request(() =>
      within(this.connection.flush(), this.timeout, () => new Error('timeout')),
    );
  }
}
