/**
 * The page between a host and a view, of an origin of its own: what the view breaks out of its frame into is here, where
 * there is nothing. It sets the view's policy, on itself, too, and relays all messages but those that are its own.
 */
import { safely } from '../common/errors.js';
import { exactOrigin } from '../common/origins.js';
import { getOwn, isRecord } from '../common/values.js';
import { OPAQUE } from '../transports/window.js';
import { allowOf, policyOf } from './policy.js';
import { SANDBOX } from './protocol.js';

/** What the view's frame may do. Forms need it to tell scripts that they are sent; none goes anywhere. */
const TOKENS = 'allow-scripts allow-same-origin allow-forms';

/**
 * @typedef {object} SandboxOptions
 * @property {string[]} hosts the exact origins of the pages that may show views here
 */

/**
 * Makes the page that calls it the sandbox of whatever view its host shows in it.
 * @param {SandboxOptions} options
 */
export function serveSandbox({ hosts }) {
  const host = parent;
  if (host === window) return;
  const allowed = new Set(hosts.map((origin) => exactOrigin(origin)));
  /** The host's, once it has spoken. @type {string | undefined} */
  let hostOrigin;
  /** @type {HTMLIFrameElement | undefined} */
  let frame;
  let viewOrigin = '';

  const toHost = (
    /** @type {unknown} */ message,
    /** @type {readonly MessagePort[]} */ ports = [],
  ) => {
    // The browser delivers it only to the origin that the host has.
    for (const targetOrigin of hostOrigin ? [hostOrigin] : allowed) {
      host.postMessage(message, { targetOrigin, transfer: [...ports] });
    }
  };
  const tell = (/** @type {string} */ name) =>
    toHost({ jsonrpc: '2.0', method: `${SANDBOX}${name}`, params: {} });

  const show = (/** @type {unknown} */ params) => {
    const html = getOwn(params, 'html');
    if (frame || typeof html !== 'string') return;
    const tokens = getOwn(params, 'sandbox');
    // The frame inherits the policy. It is this page's, too, because the view can reach into it.
    const policy = document.createElement('meta');
    policy.httpEquiv = 'Content-Security-Policy';
    policy.content = policyOf(getOwn(params, 'csp'));
    document.head.append(policy);
    frame = document.createElement('iframe');
    frame.setAttribute('sandbox', typeof tokens === 'string' ? tokens : TOKENS);
    viewOrigin = frame.sandbox.contains('allow-same-origin') ? self.origin : OPAQUE;
    frame.allow = allowOf(getOwn(params, 'permissions'));
    frame.style.cssText = 'border:0;position:fixed;inset:0;width:100%;height:100%';
    frame.srcdoc = html;
    let loads = 0;
    // The document that the host speaks to has gone, and another has come.
    frame.addEventListener('load', () => ++loads > 1 && tell('view-replaced'));
    document.body.append(frame);
  };

  const fromHost = (/** @type {MessageEvent} */ { origin, data, ports }) => {
    if (!allowed.has(origin)) return;
    hostOrigin = origin;
    const method = methodOf(data);
    if (method === `${SANDBOX}resource-ready`) show(getOwn(data, 'params'));
    else if (!method.startsWith(SANDBOX)) {
      const targetOrigin = viewOrigin === OPAQUE ? '*' : viewOrigin;
      frame?.contentWindow?.postMessage(data, { targetOrigin, transfer: [...ports] });
    }
  };
  addEventListener('message', (event) => {
    if (!event.isTrusted || !event.source) return;
    if (event.source === host) fromHost(event);
    else if (event.source === frame?.contentWindow && event.origin === viewOrigin) {
      if (!methodOf(event.data).startsWith(SANDBOX)) toHost(event.data, event.ports);
    }
  });
  tell('proxy-ready');
}

/** @param {unknown} data */
const methodOf = (data) =>
  safely(() => (isRecord(data) ? String(getOwn(data, 'method') ?? '') : ''), '');
