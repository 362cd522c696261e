/**
 * Window messages between a host page and its iframe. The rules of js/app/listen.js hold here, too.
 */
import { safely } from '../common/errors.js';
import { listen } from './listen.js';
import { UPGRADABLE } from './port.js';
import { Receiver } from './receiver.js';

/** The origin of a sandboxed frame, and the value of the `origin` option that means it. */
export const OPAQUE = 'null';

/**
 * A transport from a host page to its iframe. `stranger` is another origin from which a document in
 * the frame has sent a message.
 * @param {HTMLIFrameElement} iframe the app's iframe
 * @param {string} origin exact, or OPAQUE: then only greetings are sent
 * @returns {import('./transport.js').Transport & { stranger?: string }}
 */
export function iframeTransport(iframe, origin) {
  const opaque = origin === OPAQUE;
  const onMessage = (/** @type {MessageEvent} */ event) => {
    const { isTrusted, source } = event;
    if (!isTrusted || !source || source !== iframe.contentWindow) return;
    if (event.origin === origin) transport.receive(event.data, event.ports);
    else transport.stranger = event.origin;
  };
  const transport = /** @type {Receiver & { stranger?: string }} */ (new Receiver());
  return Object.assign(transport, {
    carries: UPGRADABLE,
    /** @type {import('./transport.js').Transport['post']} */
    post(message, transfer, kind) {
      const target = /** @type {any} */ (iframe.contentWindow);
      const isGreeting = kind === 'greeting';
      // No target origin names an opaque origin. Only a greeting may go to an unknown document;
      // other messages wait for the port that the frame's own document offers.
      if (transport.stopped || (opaque && !isGreeting)) return;
      // A frame that has begun to load still shows an empty document of this page's origin.
      // Browsers log messages that do not match its origin.
      if (isGreeting && !opaque && safely(() => target.origin ?? origin, origin) !== origin) return;
      target?.postMessage(message, { targetOrigin: opaque ? '*' : origin, transfer });
    },
    end: listen([[globalThis, 'message', onMessage]]),
  });
}
