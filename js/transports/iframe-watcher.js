/**
 * Watches an iframe. No engine reports when the document of a frame dies. So a frame that runs this
 * library says `bye` itself and answers the heartbeat; for all frames the element is watched.
 */

import { listen } from './listen.js';

/**
 * Whom to tell.
 * @typedef {object} Watched
 * @property {() => void} lost the frame is gone
 * @property {() => void} suspect the frame may have another document than before
 * @property {(persisted: boolean) => void} leave this page goes away, or is only frozen
 * @property {() => void} close this page goes away for good
 */

/** What looks after each iframe that is watched. @type {Set<() => void>} */
const looks = new Set();
/**
 * One for all of them: a change of the page is told once, however many there are.
 * @type {MutationObserver | undefined}
 */
let observer;

/**
 * Tells when the iframe loses its window, or may have lost the document that it had, and the other
 * side when this page goes away.
 *
 * `load` proves nothing: engines fire it for a new document, but also when a document goes back in
 * its history, when its hash is set, when it writes itself anew, and a document may have spoken
 * before its own.
 * @param {HTMLIFrameElement | undefined} iframe the iframe, if there is one
 * @param {Watched} watched whom to tell. It is told in a turn of its own
 * @returns {() => void} stops watching
 */
export function watchIframe(iframe, watched) {
  const shown = iframe?.contentWindow;
  const lose = () => looks.has(look) && watched.lost();
  const look = () => {
    // A removed iframe has no window; one that is inserted again has a new one.
    if (!shown || iframe.contentWindow !== shown) return queueMicrotask(lose);
    // What happens in a shadow tree is told in that tree alone. So all that can take the iframe
    // along are observed. Not beyond the document, whose named elements are its properties: it may
    // have any `host`.
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
    // The document that it is in may be another frame's or another window's, and end before this
    // page.
    [iframe?.ownerDocument.defaultView, 'pagehide', ({ persisted }) => persisted || lose()],
  ]);
  if (iframe) {
    observer ??= new MutationObserver(() => {
      // The iframes may have moved: what they left is observed no more.
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
