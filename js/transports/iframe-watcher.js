/**
 * Watches an iframe. No engine reports when the document of a frame dies. So a frame that runs this library says `bye`
 * itself and answers the heartbeat; for all frames the element is watched.
 */

/**
 * Whom to tell.
 * @typedef {object} Watched
 * @property {() => void} lost the frame is gone
 * @property {() => void} suspect the frame may have another document than before
 * @property {(persisted: boolean) => void} leave this page goes away, or is only frozen
 * @property {() => void} close this page goes away for good
 */

/**
 * Tells when the iframe loses its window, or may have lost the document that it had.
 *
 * `load` proves nothing: engines fire it for a new document, but also when a document goes back in its history, when its
 * hash is set, when it writes itself anew, and a document may have spoken before its own.
 * @param {HTMLIFrameElement} iframe the iframe
 * @param {Watched} watched whom to tell
 * @returns {() => void} stops watching
 */
export function watchIframe(iframe, watched) {
  const shown = iframe.contentWindow;
  // A removed iframe has no window; one that is inserted again has a new one.
  const observer = new MutationObserver(() => {
    if (iframe.contentWindow !== shown) watched.lost();
  });
  const onLoad = () => watched.suspect();
  const unwatchPage = watchPage(watched);
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
 * @param {Pick<Watched, 'leave' | 'close'>} watched what tells it
 * @returns {() => void} stops watching
 */
export function watchPage(watched) {
  const onHide = (/** @type {PageTransitionEvent} */ event) =>
    event.persisted ? watched.leave(true) : watched.close();
  globalThis.addEventListener?.('pagehide', onHide);
  return () => globalThis.removeEventListener?.('pagehide', onHide);
}
