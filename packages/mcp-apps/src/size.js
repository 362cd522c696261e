/** The size of a view's document, for hosts that follow it. */

/**
 * Tells the size of the document, at first and whenever it changes.
 * @param {(size: { width: number, height: number }) => void} tell
 * @returns {() => void} stops it
 */
export function observeSize(tell) {
  const { documentElement: root } = document;
  let told = '';
  let request = 0;
  const measure = () => {
    request = 0;
    // As high as it would be if its frame set no height: a frame that has grown would never shrink again.
    const { height: before } = root.style;
    root.style.height = 'max-content';
    const { height } = root.getBoundingClientRect();
    root.style.height = before;
    const size = { width: Math.ceil(innerWidth), height: Math.ceil(height) };
    const text = `${size.width} ${size.height}`;
    if (text === told) return;
    told = text;
    tell(size);
  };
  const soon = () => (request ||= requestAnimationFrame(measure));
  const observer = new ResizeObserver(soon);
  observer.observe(root);
  if (document.body) observer.observe(document.body);
  return () => {
    observer.disconnect();
    cancelAnimationFrame(request);
  };
}
