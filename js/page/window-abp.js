/**
 * `window.abp`: the protocol's interface in the app's own page, for clients such as automation.
 *
 * The interface is installed at once; its methods load local-agent.js with the first call, because
 * few pages need it. `LocalAgent` is one more agent of the app, with one connection to the app for
 * all sessions that begin here. Each session has a client of js/agent, and an `AgentEnd` as its end
 * of the transport. So a call passes through the client's core and the app's core to the handler,
 * and its response back, as for any agent: the two cores hold the state of calls and sessions. This
 * folder holds only the handlers that the page has registered, and the client of the session. The
 * app's reports go to these handlers, or to functions of the page whose names are in reporters.js.
 * grace.js divides the grace period between a side and the one below it, in all packages.
 */
import { loadOnce } from '../common/errors.js';

const METHODS =
  'initialize shutdown call cancel elicit listCapabilities describeCapability supports';
const EVENTS = 'Notification Progress Elicitation CapabilitiesChanged';

/**
 * @param {any} definition
 * @returns {definition is import('../app/expose.js').Interface}
 */
export const isInterface = (definition) =>
  typeof definition?.initialize === 'function' && typeof definition.call === 'function';

/**
 * Makes the interface, and installs it as `window.abp` if it `installs`.
 * @param {import('../app/expose.js').Exposed} exposed
 * @param {unknown} app
 * @param {boolean} installs
 */
export function windowAbp(exposed, app, installs) {
  /** @type {import('./local-agent.js').LocalAgent | undefined} */
  let agent;
  // Once for all calls, so that calls made before it is loaded keep their order.
  /** @type {() => Promise<any>} */
  const load = loadOnce(async () => {
    const { LocalAgent } = await import('./local-agent.js');
    return (agent = new LocalAgent(exposed, handlers));
  });
  /** @type {import('./local-agent.js').Handlers} */
  const handlers = {};
  /** @type {any} */
  const abp = {
    protocolVersion: '0.1',
    app,
    get initialized() {
      return !!abp.sessionId;
    },
    get sessionId() {
      return agent?.sessionId ?? null;
    },
    notify: (/** @type {string} */ event, /** @type {unknown} */ data) =>
      exposed.notify(event, data),
    notifyProgress(/** @type {unknown} */ info) {
      exposed.sessions.forEach((session) => session.notifyProgress(info));
    },
    /**
     * For this library: automation exchanges messages with the app directly.
     * @param {import('../transports/transport.js').Transport} transport
     */
    [Symbol.for('abp-bridge.accept')](transport) {
      exposed.accept(transport);
    },
    /**
     * For this library: streams a result. The call begins with the loop.
     * @param {unknown[]} args
     */
    async *stream(...args) {
      return yield* (await load()).stream(...args);
    },
  };
  for (const method of METHODS.split(' ')) {
    abp[method] = async (/** @type {unknown[]} */ ...args) => (await load())[method](...args);
  }
  for (const name of /** @type {import('./local-agent.js').EventName[]} */ (EVENTS.split(' '))) {
    const register = (/** @type {((...args: unknown[]) => unknown) | undefined} */ handler) => {
      // A client that chains to the previous handler calls the registrar with an event.
      if (typeof handler === 'function' || !handler) handlers[name] = handler;
    };
    // Some clients assign a handler, others call a registrar.
    Object.defineProperty(abp, `on${name}`, {
      get: () => register,
      set: register,
      enumerable: true,
    });
  }
  const { window } = /** @type {any} */ (globalThis);
  // Other libraries use the name, too. It is replaced only if it is unused, or is such an
  // interface.
  if (installs && window && (!window.abp || isInterface(window.abp))) {
    window.abp = abp;
    window.__abp_cancel ??= abp.cancel;
    window.__abpReadyResolve?.();
  }
  return abp;
}
