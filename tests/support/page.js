import { connect } from '../../parts/main/index.js';
import { AGENT } from './pair.js';
import { Peer } from './raw.js';

/** Where framed apps are, unless a test says otherwise. */
export const ORIGIN = 'https://app.example';

/**
 * Makes this process a page until the test ends.
 * @param {import('node:test').TestContext} t
 * @param {Record<string, unknown>} [globals] what else the page has
 * @returns {{ say(type: string, event: unknown): void, types(): string[], post(source: unknown,
 *   origin: string, data: unknown, more?: object): void }} `say` tells those that listen, `types`
 *   says to what they do, and `post` is a window message
 */
export function usePage(t, globals = {}) {
  let all = [];
  const given = {
    addEventListener: (type, heard) => void all.push([type, heard]),
    removeEventListener: (type, heard) => {
      all = all.filter((each) => each[0] !== type || each[1] !== heard);
    },
    ...globals,
  };
  const before = Object.fromEntries(
    Object.keys(given).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]),
  );
  for (const [name, value] of Object.entries(given)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  t.after(() => {
    for (const [name, descriptor] of Object.entries(before)) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else delete globalThis[name];
    }
  });
  const say = (type, event) =>
    all.filter((each) => each[0] === type).forEach(([, on]) => on(event));
  return {
    say,
    types: () => all.map(([type]) => type),
    post: (source, origin, data, more) =>
      say('message', { isTrusted: true, ports: ['its ports'], source, origin, data, ...more }),
  };
}

/**
 * A window, which keeps what was posted to it.
 * @param {object} [more] what else it shows
 */
export const windowOf = (more) => {
  const posted = [];
  return { posted, postMessage: (...given) => void posted.push(given), ...more };
};

/** An app that a test plays by hand, in an iframe of a page. */
export class FramedApp extends Peer {
  #hello;
  /**
   * @param {import('node:test').TestContext} t
   * @param {{ origin?: string, src?: string, shows?: object, [attribute: string]: any }} [frame]
   *   the origin that is named for it, its address, what the page sees in its window, and its
   *   attributes
   * @param {Record<string, unknown>} [globals] what else the page has
   */
  constructor(
    t,
    { origin = ORIGIN, src = `${ORIGIN}/editor`, shows = {}, ...given } = {},
    globals = {},
  ) {
    super();
    this.page = usePage(t, {
      MutationObserver: class {
        observe() {}
        disconnect() {}
      },
      ...globals,
    });
    this.origin = origin;
    const attributes = { ...(src && { src }), ...given };
    this.iframe = Object.assign(new EventTarget(), {
      src,
      contentWindow: Object.defineProperties(
        { postMessage: (message) => this.#posted(message) },
        Object.getOwnPropertyDescriptors(shows),
      ),
      ownerDocument: {},
      getRootNode: () => ({}),
      getAttribute: (name) => attributes[name] ?? null,
      hasAttribute: (name) => name in attributes,
    });
  }
  #posted(message) {
    // It is sent again until it is answered.
    if (message.type === 'initialize' && message.id === this.#hello) return;
    if (message.type === 'initialize') this.#hello = message.id;
    this.arrived(message);
  }
  connect(options) {
    return connect(this.iframe, { agent: AGENT, origin: this.origin, timeout: 0, ...options });
  }
  /**
   * What its window says to the page.
   * @param {unknown} data
   * @param {object} [more] of the message
   */
  say(data, more) {
    this.page.post(this.iframe.contentWindow, this.origin, data, { ports: [], ...more });
  }
  /**
   * Answers the handshake.
   * @param {object} features
   * @param {unknown[]} ports
   */
  async answer(features, ports = []) {
    const { id } = await this.next();
    const app = { id: 'a.b', name: 'A', version: '1' };
    const payload = { app, sessionId: 's', features, capabilities: [{ name: 'x' }] };
    this.say({ type: 'initialize-result', id, payload }, { ports });
  }
}
