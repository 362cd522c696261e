/**
 * Listens to several targets at once. Some may not be there, and some have no events: Node has none
 * for its programs.
 * @param {[target: any, type: string, heard: (event: any) => void][]} listeners
 * @param {string} [on] the method that adds a listener
 * @param {string} [off] the one that removes it
 * @returns {() => void} stops listening
 */
export function listen(listeners, on = 'addEventListener', off = 'removeEventListener') {
  /** @param {string} method */
  const each = (method) => {
    for (const [target, type, heard] of listeners) target?.[method]?.(type, heard);
  };
  each(on);
  return () => each(off);
}
