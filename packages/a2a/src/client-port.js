/** The client's side of A2A over a Transport (a port, a window, a socket). port-messages.js lists the messages. */
import { requireBounded } from '../../untrusted/src/bounds.js';
import { AbpError } from '../../../js/common/errors.js';
import { getOwn } from '../../../js/common/values.js';
import { CARD, END, LEAVE, REQUEST, RESULT, readUris } from './port-messages.js';
import { within } from './client-http.js';

/** @import { Binding, Responses } from './client-http.js' */
/** @import { Dialect } from './dialects.js' */
/** @import { Transport } from '../../../js/transports/transport.js' */

/** @implements {Binding} */
export class PortConnection {
  /** Open streams, by name. @type {Map<unknown, PortResponses>} */
  #streams = new Map();
  #transport;
  /** URIs of those that are declared with every request. @type {string[]} */
  extensions;
  #onExtensions;
  #limits;
  #named = 0;
  #lost = false;

  /**
   * @param {Transport} transport used by nobody else from now on
   * @param {{ extensions: string[], onExtensions: (extensions: string[]) => void }} options
   * @param {{ queue: number, body: number }} limits
   */
  constructor(transport, { extensions, onExtensions }, limits) {
    this.#transport = transport;
    this.extensions = extensions;
    this.#onExtensions = onExtensions;
    this.#limits = limits;
    transport.onMessage = (message) => this.#receive(message);
    transport.onClose = () => this.#end();
  }

  close() {
    this.#transport.close();
    this.#end();
  }

  #end() {
    this.#lost = true;
    for (const responses of this.#streams.values()) responses.end();
    this.#streams.clear();
  }

  /** @param {number} timeout ms */
  card(timeout) {
    return within(timeout, this.#send({ type: CARD, version: '1.0' }));
  }

  /** @param {Dialect} dialect @param {object} request */
  open(dialect, request) {
    // A cancel is sent even under back-pressure.
    const kind = getOwn(request, 'method') === dialect.methods.cancel ? undefined : 'request';
    const extensions = this.extensions;
    const declared = extensions.length ? { extensions } : {};
    const { header: version } = dialect;
    return this.#send({ type: REQUEST, version, request, ...declared }, kind);
  }

  /**
   * @param {{ type: string, version?: string, request?: object }} message
   * @param {import('../../../js/transports/transport.js').MessageKind} [kind]
   */
  #send(message, kind) {
    if (this.#lost) throw new AbpError('DISCONNECTED', 'The transport is closed');
    const stream = `${++this.#named}`;
    const responses = new PortResponses(this.#limits.queue, () => {
      if (this.#streams.delete(stream)) this.#transport.post({ type: LEAVE, stream });
    });
    this.#transport.post({ ...message, stream }, undefined, kind);
    this.#streams.set(stream, responses);
    return responses;
  }

  /** @param {PortResponses} responses @param {unknown} response */
  #push(responses, response) {
    try {
      requireBounded(response, { maxCharacters: this.#limits.body });
      responses.push(response);
    } catch (error) {
      responses.fail(new AbpError('TOO_LARGE', /** @type {Error} */ (error).message));
    }
  }

  /** @param {unknown} message */
  #receive(message) {
    const stream = getOwn(message, 'stream');
    const responses = this.#streams.get(stream);
    switch (getOwn(message, 'type')) {
      case RESULT:
        if (!responses) return;
        this.#onExtensions(readUris(getOwn(message, 'extensions')));
        this.#push(responses, getOwn(message, 'result'));
        break;
      case END:
        this.#streams.delete(stream);
        responses?.end();
    }
  }
}

/** @implements {Responses} */
export class PortResponses {
  /** @type {unknown[]} */
  #ready = [];
  /** Resolves the promise of a waiting `next`. */
  #wake = () => {};
  #over = false;
  /** Why reading fails once the responses before it are read. @type {AbpError | undefined} */
  #failure;
  #limit;
  #leave;

  /** @param {number} limit responses that wait to be read @param {() => void} leave */
  constructor(limit, leave) {
    this.#limit = limit;
    this.#leave = leave;
  }

  /** @param {unknown} response */
  push(response) {
    if (this.#over) return;
    if (this.#ready.length < this.#limit) this.#ready.push(response);
    else this.close();
    this.#wake();
  }

  end() {
    this.#over = true;
    this.#wake();
  }

  close() {
    this.end();
    this.#leave();
  }

  /** @param {AbpError} error */
  fail(error) {
    this.#failure ??= error;
    this.close();
  }

  async next() {
    while (!this.#ready.length && !this.#over) {
      await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    }
    if (!this.#ready.length && this.#failure) throw this.#failure;
    return this.#ready.shift();
  }
}
