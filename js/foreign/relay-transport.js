/**
 * A foreign app as the other side of a transport, for `connect`. Its endpoint is here: the core
 * keeps its calls and answers cancels, as the app decides. `ForeignCapabilities` passes requests to
 * the app, and its reports back.
 */
import { Connection } from '../app/connection.js';
import { AGENT } from '../driver/abp-boundary.js';
import { partOf } from '../page/grace.js';
import { Receiver } from '../transports/receiver.js';
import { ForeignCapabilities } from './foreign-capabilities.js';

/** A transport that represents a foreign app. */
export class RelayTransport extends Receiver {
  /** @type {readonly import('../transports/transport.js').Feature[]} */
  carries = [];
  /**
   * The app's connection. It begins with the agent's first message: by then the core is ready.
   * @type {Connection | undefined}
   */
  #connection;
  #registry;
  #onEnd;
  #limits;

  /**
   * @param {import('./foreign-app.js').ForeignApp} app
   * @param {() => void} [onEnd] called when the transport and the app's session have ended
   * @param {import('../driver/abp-core.js').Limits} [limits] the agent's
   */
  constructor(app, onEnd, limits) {
    super();
    this.#registry = new ForeignCapabilities(app);
    this.#onEnd = onEnd;
    // The app's side ends before the agent's grace period does.
    this.#limits = { ...limits, grace: partOf(AGENT, limits) };
  }

  /**
   * Receives a message from the agent.
   * @param {unknown} message
   */
  post(message) {
    if (this.stopped) return;
    this.#connection ??= new Connection({
      app: { id: '', name: '', version: '' },
      registry: this.#registry,
      transport: {
        carries: [],
        post: (message) => this.stopped || this.receive(message),
        onMessage() {},
        close() {},
      },
      limits: this.#limits,
      upgrade: 'none',
      onEnd() {},
    });
    this.#connection.endpoint.receive(message);
  }

  /**
   * Ends the app's session.
   * @override
   */
  end() {
    if (this.#connection) {
      const { endpoint } = this.#connection;
      endpoint.closing ??= 'The agent has left';
      endpoint.lost();
    }
    void this.#registry.end('The agent disconnected').then(this.#onEnd);
  }
}
