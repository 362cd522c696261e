/** Both ends of a transport that lie in one page. Messages are handed over as they are. */
import * as abp from '../../../js/driver/abp-boundary.js';
import { copyOf } from '../../../js/common/copy.js';
import { AbpError, safely } from '../../../js/common/errors.js';

/** @import { Transport } from '../../../js/transports/transport.js' */

/** What the client needs and its user does not: neither asks for it nor is told of it. */
const OWN_FEATURES = ['bridge.streams', 'bridge.outcomes'];

/** The app's end. It outlasts the sessions. @implements {Transport} */
export class AppEnd {
  carries = /** @type {const} */ (['streams']);
  isOpen = false;
  /** Where the session is. @type {AgentEnd | undefined} */
  agent;
  /** Where one begins. @type {AgentEnd | undefined} */
  newcomer;
  /** @type {Transport['onMessage']} */
  onMessage = () => {};

  /** @param {any} message @param {Transferable[]} [transfer] */
  post({ payload, ...message }, transfer) {
    const { type } = message;
    if (type === abp.TYPE_INITIALIZE_RESULT) return this.newcomer?.answered(message, payload);
    // It is read later. Of results, what cannot be copied stays in this page, where it can be used.
    const copy = () => copyOf(payload, transfer);
    if (type === abp.TYPE_CHUNK) payload = copy();
    else if (type === abp.TYPE_CALL_RESULT) payload = safely(copy, payload);
    return this.agent?.onMessage({ ...message, payload }, []);
  }

  close() {
    this.isOpen = false;
    this.agent?.onClose();
    this.newcomer?.onClose();
  }
}

/** The agent's end, for one session. @implements {Transport} */
export class AgentEnd {
  carries = /** @type {const} */ (['streams']);
  /** What the app said of itself when the session began. @type {any} */
  answer;
  /** Aborts with the app's error if it refuses. The client would ask again until the session before it has ended. */
  refusal = new AbortController();
  #app;
  #hello;
  /** @type {Transport['onMessage']} */
  onMessage = () => {};
  onClose = () => {};

  /**
   * @param {AppEnd} app
   * @param {any} hello what the user of `window.abp` says of itself, in place of the client
   */
  constructor(app, hello) {
    this.#app = app;
    this.#hello = hello;
  }

  /** @param {any} message */
  post(message) {
    const app = this.#app;
    if (!app.isOpen) return queueMicrotask(() => this.onClose());
    if (message.type === abp.TYPE_INITIALIZE) {
      // It is repeated where its answer took long. A second one would end the session that it began.
      if (app.agent === this) return;
      app.newcomer = this;
      const own = Object.fromEntries(OWN_FEATURES.map((name) => [name, true]));
      const features = { ...this.#hello.features, ...own };
      message = { ...message, payload: { ...this.#hello, features } };
    } else if (app.agent !== this) return;
    void this.#hand(message);
  }

  /** @param {object} message */
  #hand(message) {
    // Two microtasks later a handler that has returned has finished. It may have made the signal fire itself.
    const later = Promise.resolve().then(() => {});
    return later.then(() => this.#app.onMessage(message, []));
  }

  /** @param {object} message @param {any} payload */
  answered(message, payload) {
    const app = this.#app;
    app.newcomer = undefined;
    if (payload.sessionId) {
      this.answer = structuredClone(payload);
      for (const name of OWN_FEATURES) delete this.answer.features[name];
      delete this.answer.memory;
      // The app has ended the session before it, if there was one.
      app.agent?.onClose();
      app.agent = this;
    } else this.refusal.abort(AbpError.from(payload.error));
    this.onMessage({ ...message, payload }, []);
  }

  /** Ends the session. The app says what became of its calls, before the client ends them. @param {unknown} payload */
  async leave(payload = {}) {
    await this.#hand({ type: abp.TYPE_SHUTDOWN, timestamp: Date.now(), payload });
    this.close();
  }

  close() {
    if (this.#app.agent === this) this.#app.agent = undefined;
  }
}
