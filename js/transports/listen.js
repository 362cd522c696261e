/**
 * Adds listeners to several targets. A target may be missing, or may have no events: in Node the
 * global object has none.
 * @param {[target: any, type: string, listener: (event: any) => void][]} listeners
 * @param {string} [on] the method that adds a listener
 * @param {string} [off] the method that removes it
 * @returns {() => void} stops listening
 */
export function listen(listeners, on = 'addEventListener', off = 'removeEventListener') {
  /** @param {string} method */
  const each = (method) => {
    for (const [target, type, listener] of listeners) target?.[method]?.(type, listener);
  };
  each(on);
  return () => each(off);
}
