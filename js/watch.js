/**
 * Notices what becomes of an iframe. No engine tells when a frame's document dies, so a frame that runs
 * this library says `bye` itself and answers the heartbeat; what the element shows is watched for the rest.
 */

/** @typedef {Pick<import('./endpoint.js').Endpoint, 'lost' | 'leave' | 'close'>} Watched who is told */

/**
 * @param {HTMLIFrameElement} iframe
 * @param {Watched} endpoint
 * @param {() => boolean} connected
 * @returns {() => void} stops watching
 */
export function watchFrame(iframe, endpoint, connected) {
  const there = iframe.contentWindow;
  let loads = 0;
  // A removed frame has no window any more, and one put back has another.
  const observer = new MutationObserver(() => {
    if (iframe.contentWindow !== there) endpoint.lost();
  });
  const onLoad = () => {
    // The first load may be that of the document we speak to, which may have answered before it was complete.
    // The second is another document's: a `bye` can be lost with the process that said it.
    if (++loads > 1 && connected()) endpoint.lost();
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
 * Tells the other side when this page goes away.
 * @param {Watched} endpoint
 * @returns {() => void} stops watching
 */
export function watchPage(endpoint) {
  const onHide = (/** @type {PageTransitionEvent} */ event) =>
    event.persisted ? endpoint.leave(true) : endpoint.close();
  globalThis.addEventListener?.('pagehide', onHide);
  return () => globalThis.removeEventListener?.('pagehide', onHide);
}
