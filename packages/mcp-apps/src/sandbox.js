/**
 * The page between a host and a view. Its origin holds nothing else, so a view that breaks out of
 * its frame gains nothing. It sets the view's policy, on itself, too, and relays all messages
 * except its own.
 */
import { OPAQUE, exactOrigin, getOwn, isRecord, safely, watchIframe } from 'abp-bridge/driver';
import { OPAQUE_ORIGIN, allowOf, hasFrames, policyOf } from './policy.js';
import { SANDBOX, VIEW_REPLACED } from './protocol.js';

/** Messages of a view that may wait until its document has answered. */
const MAX_WAITING = 2 ** 16;
/** The beginning of a document, with its doctype. */
const BEGINNING = /^(?:\s|<!--[^]*?-->)*(?:<!doctype[^>]*>)?/i;
/**
 * The first script of a view's document: it answers on a port as long as the document lives. The
 * frame may go to a page of `frameDomains`, which has the same window and an opaque origin, too,
 * but not this port.
 */
const WITNESS =
  '<script>{const{port1,port2}=new MessageChannel();port1.onmessage=({data})=>port1.postMessage(data);' +
  "parent.postMessage({witness:1},'*',[port2]);document.currentScript.remove()}</script>";

/**
 * @typedef {object} SandboxOptions Options of the page around a view.
 * @property {string[]} hosts the exact origins of the pages that may show views here
 */

/**
 * Makes the calling page the sandbox of the view that its host shows in it.
 * @param {SandboxOptions} options
 */
export function serveSandbox({ hosts }) {
  const host = parent;
  if (host === window) return;
  const allowed = new Set(hosts.map((origin) => exactOrigin(origin)));
  /** The host's, once it has sent a message. @type {string | undefined} */
  let hostOrigin;
  /** @type {HTMLIFrameElement | undefined} */
  let iframe;
  let viewOrigin = '';
  /** True if messages must wait until the view's document has confirmed that it is still there. */
  let isWitnessed = false;
  /** @type {MessagePort | undefined} */
  let witness;
  /** Messages that wait for that, in order. @type {MessageEvent[]} */
  const waiting = [];

  /**
   * @param {unknown} message
   * @param {readonly MessagePort[]} [ports]
   */
  const toHost = (message, ports = []) => {
    // The browser delivers it only to the host's origin.
    for (const targetOrigin of hostOrigin ? [hostOrigin] : allowed)
      host.postMessage(message, { targetOrigin, transfer: [...ports] });
  };
  const notifyHost = (/** @type {string} */ method) =>
    toHost({ jsonrpc: '2.0', method, params: {} });

  const show = (/** @type {unknown} */ params) => {
    const html = getOwn(params, 'html');
    if (iframe || typeof html !== 'string') return;
    const tokens = getOwn(params, 'sandbox');
    // The frame inherits the policy. It is this page's, too, because the view can reach into it.
    const policy = document.createElement('meta');
    policy.httpEquiv = 'Content-Security-Policy';
    policy.content = policyOf(getOwn(params, 'csp'));
    document.head.append(policy);
    iframe = document.createElement('iframe');
    iframe.setAttribute('sandbox', typeof tokens === 'string' ? tokens : OPAQUE_ORIGIN);
    viewOrigin = iframe.sandbox.contains('allow-same-origin') ? self.origin : OPAQUE;
    iframe.allow = allowOf(getOwn(params, 'permissions'));
    iframe.style.cssText = 'border:0;position:fixed;inset:0;width:100%;height:100%';
    isWitnessed = viewOrigin === OPAQUE && hasFrames(getOwn(params, 'csp'));
    iframe.srcdoc = isWitnessed
      ? html.replace(BEGINNING, (beginning) => beginning + WITNESS)
      : html;
    document.body.append(iframe);
    let loads = 0;
    const replaced = () => notifyHost(VIEW_REPLACED);
    watchIframe(iframe, {
      // Another document has replaced the one that the host is connected to.
      suspect: () => ++loads > 1 && replaced(),
      // A view with this page's origin can remove its own frame.
      lost: replaced,
      leave() {},
      close() {},
    });
  };

  const fromHost = (/** @type {MessageEvent} */ { origin, data, ports }) => {
    if (!allowed.has(origin)) return;
    hostOrigin = origin;
    const method = methodOf(data);
    if (method === `${SANDBOX}resource-ready`) show(getOwn(data, 'params'));
    else if (!method.startsWith(SANDBOX)) {
      const targetOrigin = viewOrigin === OPAQUE ? '*' : viewOrigin;
      iframe?.contentWindow?.postMessage(data, { targetOrigin, transfer: [...ports] });
    }
  };
  const fromView = (/** @type {MessageEvent} */ event) => {
    if (isWitnessed && !witness) {
      // The first message is the first script's.
      witness = event.ports[0];
      if (witness) witness.onmessage = () => relay(/** @type {MessageEvent} */ (waiting.shift()));
    } else if (!witness) relay(event);
    // Another document begins, and the first may have gone before its `load`.
    else if (getOwn(event.data, 'witness') === 1) notifyHost(VIEW_REPLACED);
    else if (waiting.length < MAX_WAITING) {
      waiting.push(event);
      witness.postMessage(0);
    }
  };
  const relay = (/** @type {MessageEvent} */ { data, ports }) => {
    if (!methodOf(data).startsWith(SANDBOX)) toHost(data, ports);
  };
  addEventListener('message', (event) => {
    if (!event.isTrusted || !event.source) return;
    if (event.source === host) fromHost(event);
    else if (event.source === iframe?.contentWindow && event.origin === viewOrigin) fromView(event);
  });
  notifyHost(`${SANDBOX}proxy-ready`);
}

/** @param {unknown} data */
const methodOf = (data) =>
  safely(() => (isRecord(data) ? String(getOwn(data, 'method') ?? '') : ''), '');
