/**
 * Window messages between a host page and its iframe; what js/app/listen.js says of them holds
 * here, too.
 */
import { safely } from '../common/errors.js';
import { listen } from './listen.js';
import { UPGRADABLE } from './port.js';
import { Receiver } from './receiver.js';

/** The origin of a sandboxed frame, and the value of the `origin` option that means it. */
export const OPAQUE = 'null';

/**
 * From a host page to its iframe. `stranger` is another origin from which a document in the frame
 * spoke.
 * @param {HTMLIFrameElement} iframe where the app is
 * @param {string} origin exact, or OPAQUE: then only greetings are sent
 * @returns {import('./transport.js').Transport & { stranger?: string }}
 */
export function iframeTransport(iframe, origin) {
  const opaque = origin === OPAQUE;
  const hear = (/** @type {MessageEvent} */ event) => {
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
      // No target origin names an opaque origin. Only a greeting may go to an unknown document; the
      // rest waits for the port that the frame's own document offers.
      if (transport.stopped || (opaque && !isGreeting)) return;
      // A frame that has begun to load still shows an empty document of our own origin. Browsers
      // log what it is not meant for.
      if (isGreeting && !opaque && safely(() => target.origin ?? origin, origin) !== origin) return;
      target?.postMessage(message, { targetOrigin: opaque ? '*' : origin, transfer });
    },
    end: listen([[globalThis, 'message', hear]]),
  });
}
