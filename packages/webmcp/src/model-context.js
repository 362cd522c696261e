/**
 * WebMCP's `document.modelContext`: the browser's own object if there is one, because wrappers of
 * libraries lose the signal by which a call is cancelled.
 * @returns {any} undefined if there is none
 */
export function modelContext() {
  const { document, Document } = /** @type {any} */ (globalThis);
  const getter = Object.getOwnPropertyDescriptor(Document?.prototype ?? {}, 'modelContext')?.get;
  return (document && getter?.call(document)) ?? document?.modelContext;
}
