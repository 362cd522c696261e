/**
 * Which iframes have fired `load`. Nothing else tells whether the own `load` of a document of another site is still to
 * come. So this listens from the start, and is not loaded with the rest.
 */

/** The address that each had. @type {WeakMap<EventTarget, string>} */
const loaded = new WeakMap();

/** @param {any} target */
const hasLoaded = (target) => {
  if (target?.localName === 'iframe') loaded.set(target, target.src);
};

/** @param {HTMLIFrameElement} iframe */
export const isLoaded = (iframe) =>
  loaded.get(iframe) === iframe.src ||
  // `load` does not leave a shadow tree. There the browser's own notes tell: it makes them with the `load` of another site's document.
  (iframe.getRootNode() !== document &&
    performance
      .getEntriesByName(iframe.src)
      .some((entry) => 'initiatorType' in entry && entry.initiatorType === 'iframe'));

const { document } = globalThis;
if (document) {
  // `load` does not bubble, but it can be captured.
  document.addEventListener('load', ({ target }) => hasLoaded(target), true);
  // A page is loaded when its iframes are, save those that wait until they are seen.
  const early = [...document.querySelectorAll('iframe')].filter(
    ({ loading }) => loading !== 'lazy',
  );
  const all = () => early.forEach(hasLoaded);
  if (document.readyState === 'complete') all();
  else addEventListener('load', all, { once: true });
}
