/** The objects to move with a marked value. @type {WeakMap<object, Transferable[]>} */
export const marked = new WeakMap();
