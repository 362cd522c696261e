/**
 * Watches an iframe. No engine reports the end of a frame's document. So a frame that runs this
 * library sends `bye` itself and answers the heartbeat; for all frames the element is watched.
 */

import { listen } from './listen.js';

/**
 * The callbacks of a watcher.
 * @typedef {object} Watched
 * @property {() => void} lost the frame is gone
 * @property {() => void} suspect the frame may have a new document
 * @property {(persisted: boolean) => void} leave this page goes away, or is only frozen
 * @property {() => void} close this page goes away for good
 */

/** The checks of all watched iframes. @type {Set<() => void>} */
const looks = new Set();
/**
 * One for all iframes, so that a change of the page is reported once, however many there are.
 * @type {MutationObserver | undefined}
 */
let observer;

/**
 * Reports when the iframe loses its window, or may have lost its document, and when this page goes
 * away.
 *
 * `load` proves nothing: engines fire it for a new document, but also when a document goes back in
 * its history, when its hash is set, and when it writes itself anew. A document may also have sent
 * messages before its own `load`.
 * @param {HTMLIFrameElement | undefined} iframe the iframe, if there is one
 * @param {Watched} watched called asynchronously
 * @returns {() => void} stops watching
 */
export function watchIframe(iframe, watched) {
  const shown = iframe?.contentWindow;
  const lose = () => looks.has(look) && watched.lost();
  const look = () => {
    // A removed iframe has no window; one that is inserted again has a new one.
    if (!shown || iframe.contentWindow !== shown) return queueMicrotask(lose);
    // A mutation in a shadow tree is reported in that tree only. So each tree that contains the
    // iframe is observed, up to the document. The document's own `host` is not read: an element
    // with that name may be in its place.
    for (let node = /** @type {any} */ (iframe); node;) {
      const root = node.getRootNode();
      observer?.observe(root, { childList: true, subtree: true });
      node = root !== iframe.ownerDocument && root.host;
    }
  };
  const stop = listen([
    [
      globalThis,
      'pagehide',
      ({ persisted }) => (persisted ? watched.leave(true) : watched.close()),
    ],
    [iframe, 'load', () => watched.suspect()],
    // The iframe may be in the document of another frame or window, which may end before this page.
    [iframe?.ownerDocument.defaultView, 'pagehide', ({ persisted }) => persisted || lose()],
  ]);
  if (iframe) {
    observer ??= new MutationObserver(() => {
      // The iframes may have moved: trees that they left are no longer observed.
      observer?.disconnect();
      for (const look of looks) look();
    });
    looks.add(look);
    look();
  }
  return () => {
    stop();
    if (looks.delete(look) && !looks.size) observer?.disconnect();
  };
}
