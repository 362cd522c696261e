/** What is marked to be moved with a value. @type {WeakMap<object, Transferable[]>} */
export const marked = new WeakMap();
