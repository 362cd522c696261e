/**
 * An app of others' making as the other side of a transport, for `connect`. Its endpoint is here: the core keeps its calls
 * and answers cancels, by the app's own word. What the app is asked, and says, is its capabilities' to pass on.
 */
import { Connection } from '../../../../js/app/connection.js';
import { AGENT } from '../../../../js/driver/abp-boundary.js';
import { partOf } from '../../../page/src/grace.js';
import { LIST_CHANGED } from '../../../../js/wire/messages.js';
import { Receiver } from '../../../../js/transports/receiver.js';

const LEFT = 'The agent has left';

export class RelayTransport extends Receiver {
  /** @type {readonly import('../../../../js/transports/transport.js').Feature[]} */
  carries = [];
  /** @type {Connection | undefined} */
  #connection;
  #registry;
  #onEnd;
  #limits;

  /**
   * @param {import('../../../../js/app/registry.js').Capabilities} registry calls the app
   * @param {() => void} [onEnd] called when nothing is sent or received any more
   * @param {import('../../../../js/driver/abp-core.js').Limits} [limits] the agent's
   */
  constructor(registry, onEnd, limits) {
    super();
    this.#registry = registry;
    this.#onEnd = onEnd;
    // What its agent waits for is told before that gives up.
    this.#limits = { ...limits, grace: partOf(AGENT, limits) };
  }

  /** The app's connection. It begins with the agent's first message: by then the core is ready. */
  get #begun() {
    return (this.#connection ??= new Connection({
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
    }));
  }

  /** @param {unknown} message */
  post(message) {
    if (!this.stopped) this.#begun.receive(message);
  }

  /** The app's capabilities have changed: tells the agent. @param {object} changes */
  changed(changes) {
    this.notify(LIST_CHANGED, changes);
  }

  /** @param {string} event @param {unknown} data */
  notify(event, data) {
    if (event === LIST_CHANGED) this.#connection?.refresh();
    this.#connection?.notify(event, data);
  }

  /** @param {unknown} info of no call that runs */
  notifyProgress(info) {
    this.#connection?.notifyProgress(info);
  }

  /** Asks the agent a question. @param {unknown} request */
  elicit(request) {
    return this.#connection?.elicit(request);
  }

  /** @override */
  end() {
    if (this.#connection) {
      this.#connection.endpoint.closing ??= LEFT;
      this.#connection.endpoint.lost();
    }
    this.#onEnd?.();
  }
}
