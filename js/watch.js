/**
 * Notices what becomes of an iframe. No engine tells when a frame's document dies, so a frame that runs
 * this library says `bye` itself and answers the heartbeat; what the element shows is watched for the rest.
 */
import * as abp from '../dist/abp-constants.js';

/**
 * @param {HTMLIFrameElement} iframe
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {() => boolean} connected
 * @returns {() => void} stops watching
 */
export function watchFrame(iframe, endpoint, connected) {
  const document = iframe.contentWindow;
  let loads = 0;
  // A removed frame has no window any more, and one put back has another.
  const observer = new MutationObserver(() => {
    if (iframe.contentWindow !== document) endpoint.lost();
  });
  const onLoad = () => {
    // The first load is that of the document we speak to, which may have answered before it was complete.
    // A frame that can say `bye` needs no guess.
    if (++loads > 1 && connected() && !endpoint.has(abp.LIVENESS)) endpoint.lost();
  };
  const onHide = (/** @type {PageTransitionEvent} */ event) =>
    event.persisted ? endpoint.leave(true) : endpoint.close();
  observer.observe(iframe.ownerDocument, { childList: true, subtree: true });
  iframe.addEventListener('load', onLoad);
  addEventListener('pagehide', onHide);
  return () => {
    observer.disconnect();
    iframe.removeEventListener('load', onLoad);
    removeEventListener('pagehide', onHide);
  };
}
