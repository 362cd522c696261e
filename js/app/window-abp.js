/**
 * `window.abp`: the protocol's interface in the app's own page, for clients that find it there, such as
 * automation. It is installed at once; its implementation is loaded when a method is first called, because few pages need it.
 */
import { loadOnce } from '../common/errors.js';

const METHODS = /** @type {const} */ ([
  ...['initialize', 'shutdown', 'call', 'cancel', 'elicit'],
  ...['listCapabilities', 'describeCapability', 'supports'],
]);
const EVENTS = /** @type {const} */ ([
  ...['Notification', 'Progress', 'Elicitation', 'CapabilitiesChanged'],
]);

/**
 * @param {unknown} app
 * @param {Omit<import('./local-agent.js').Page, 'handlers'>} page
 */
export function createInterface(app, page) {
  /** @type {import('./local-agent.js').LocalAgent | undefined} */
  let agent;
  // Once for all calls, so that those made before it is loaded keep their order.
  /** @type {() => Promise<any>} */
  const load = loadOnce(async () => {
    const { LocalAgent } = await import('./local-agent.js');
    return (agent = new LocalAgent({ ...page, handlers }));
  });
  /** @type {import('./local-agent.js').Page['handlers']} */
  const handlers = {};
  /** @type {any} */
  const abp = {
    protocolVersion: '0.1',
    app,
    get initialized() {
      return abp.sessionId !== null;
    },
    get sessionId() {
      return agent?.sessionId ?? null;
    },
    notify: (/** @type {string} */ event, /** @type {unknown} */ data) =>
      page.exposed.notify(event, data),
    notifyProgress(/** @type {unknown} */ info) {
      for (const connection of page.exposed.sessions) connection.notifyProgress(info);
    },
  };
  /** This library's own: reads a result while it is made. The call begins with the loop. @param {unknown[]} args */
  abp.stream = async function* (...args) {
    return yield* (await load()).stream(...args);
  };
  for (const method of METHODS) {
    abp[method] = async (/** @type {unknown[]} */ ...args) => (await load())[method](...args);
  }
  // This library's own: automation exchanges messages with the app itself.
  Object.defineProperty(abp, Symbol.for('abp-bridge.accept'), {
    value: (/** @type {import('../transports/transport.js').Transport} */ transport) =>
      page.exposed.accept(transport),
  });
  for (const name of EVENTS) {
    const register = (/** @type {((...args: unknown[]) => unknown) | undefined} */ handler) => {
      // A client that chains to the previous handler calls the registrar with an event.
      if (typeof handler === 'function' || !handler) handlers[name] = handler || undefined;
    };
    // Some clients assign a handler, others call a registrar.
    const property = { get: () => register, set: register, enumerable: true };
    Object.defineProperty(abp, `on${name}`, property);
  }
  return abp;
}

/** Installs the interface if `window.abp` is free or has its form: other libraries use the name, too. */
export function install(/** @type {{ cancel: unknown }} */ instance) {
  const { window } = /** @type {any} */ (globalThis);
  if (!window) return;
  const existing = window.abp;
  const ours = typeof existing?.initialize === 'function' && typeof existing.call === 'function';
  if (existing && !ours) return;
  window.abp = instance;
  window.__abp_cancel ??= instance.cancel;
  window.__abpReadyResolve?.();
}
