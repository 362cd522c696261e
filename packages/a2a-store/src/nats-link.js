/** A backend's connection to NATS: whether it is up, and the names on it. */
import { AbpError, fromBase64, toBase64 } from 'abp-bridge/driver';
import { requireName, unavailable, within } from '@abp-bridge/a2a/store';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * A name as a token of a subject; `-` stands for the empty name.
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
  /** Bytes of a message that the server accepts. */
  maxPayload;
  /** A client would keep messages published without a connection, and send them later. */
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
   * Tracks the state of the connection. Resolves when it was closed for good.
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
   * Throws unless there is a connection and the names are valid.
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
   * Sends a request.
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
   * Resolves when the server has everything that was sent. A server that hangs does not answer, and
   * its connection stays.
   */
  flush() {
    return this.request(() =>
      within(this.connection.flush(), this.timeout, () => new Error('timeout')),
    );
  }
}
