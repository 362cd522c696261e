/**
 * Watches an iframe. No engine reports when the document of a frame dies. So a frame that runs this library says `bye`
 * itself and answers the heartbeat; for other frames the element is watched.
 */

/** @typedef {Pick<import('../session/endpoint.js').Endpoint, 'lost' | 'leave' | 'close'>} Watched the endpoint to tell */

/**
 * The iframes whose document is known to be complete, with the window and the address that it had. `connect` may be
 * called after the `load` event, and nothing else tells that the event has fired.
 * @type {WeakMap<EventTarget, { src: string, contentWindow: Window | null }>}
 */
const complete = new WeakMap();

/** @param {HTMLIFrameElement} iframe */
function isComplete(iframe) {
  const { src, contentWindow } = complete.get(iframe) ?? {};
  return src === iframe.src && contentWindow === iframe.contentWindow;
}

/** @param {any} target */
const hasLoaded = (target) => {
  if (target?.localName !== 'iframe') return;
  const { src, contentWindow } = target;
  complete.set(target, { src, contentWindow });
};

const { document } = globalThis;
// `load` does not bubble, but it can be captured.
document?.addEventListener('load', ({ target }) => hasLoaded(target), true);
if (document && document.readyState !== 'complete') {
  // The page's own `load` event waits for iframes that began to load before this script ran.
  const early = [...document.querySelectorAll('iframe')].filter(
    ({ loading }) => loading !== 'lazy',
  );
  addEventListener('load', () => early.forEach(hasLoaded), { once: true });
}

/**
 * Tells an endpoint when the iframe loses the document that it speaks to.
 * @param {HTMLIFrameElement} iframe the iframe
 * @param {Watched} endpoint whom to tell
 * @param {() => boolean} connected tells whether there is a session
 * @returns {() => void} stops watching
 */
export function watchFrame(iframe, endpoint, connected) {
  const there = iframe.contentWindow;
  let loads = isComplete(iframe) ? 1 : 0;
  // A removed iframe has no window; one that is inserted again has a new one.
  const observer = new MutationObserver(() => {
    if (iframe.contentWindow !== there) endpoint.lost();
  });
  const onLoad = () => {
    // The first `load` may belong to the document that we speak to, which may have answered before it was complete.
    // The second belongs to another document: its `bye` may have been lost with its process.
    if (++loads < 2 || !connected()) return;
    endpoint.lost();
    // What was known of the old document is forgotten by then.
    hasLoaded(iframe);
  };
  const unwatchPage = watchPage(endpoint);
  observer.observe(iframe.ownerDocument, { childList: true, subtree: true });
  iframe.addEventListener('load', onLoad);
  return () => {
    observer.disconnect();
    iframe.removeEventListener('load', onLoad);
    unwatchPage();
  };
}

/**
 * Notes that the document of an iframe has said goodbye: the next one has still to load.
 * @param {HTMLIFrameElement} iframe the iframe
 */
export const forgetDocument = (iframe) => complete.delete(iframe);

/**
 * Tells the other side when this page goes away.
 * @param {Watched} endpoint what tells it
 * @returns {() => void} stops watching
 */
export function watchPage(endpoint) {
  const onHide = (/** @type {PageTransitionEvent} */ event) =>
    event.persisted ? endpoint.leave(true) : endpoint.close();
  globalThis.addEventListener?.('pagehide', onHide);
  return () => globalThis.removeEventListener?.('pagehide', onHide);
}
