/**
 * WebMCP's `document.modelContext`: the browser's own object where there is one, because the
 * wrappers that libraries put in its place lose the signal by which a call is cancelled.
 * @returns {any} undefined where there is none
 */
export function modelContext() {
  const { document, Document } = /** @type {any} */ (globalThis);
  const getter = Object.getOwnPropertyDescriptor(Document?.prototype ?? {}, 'modelContext')?.get;
  return (document && getter?.call(document)) ?? document?.modelContext;
}
