/**
 * The function that the panel runs in the inspected page, again and again. Only its text gets
 * there, so it refers to nothing else of the extension.
 * @returns {string} as JSON: the id of this document, when it began, in ms since 1970, and the
 *   events since the last run
 */
export function drain() {
  const page = /** @type {any} */ (globalThis);
  const MAX_QUEUE = 5000;
  const MAX_LENGTH = 100_000;
  /** @type {{ id: number, queue: string[], known: WeakSet<object> }} */
  const panel = (page.__abpPanel ??= { id: Math.random(), queue: [], known: new WeakSet() });

  /**
   * @param {string} _key
   * @param {any} value
   */
  const plain = (_key, value) => {
    if (typeof value === 'bigint') return `${value}`;
    const isBytes = ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
    return isBytes ? `(${value.byteLength} bytes)` : value;
  };
  /**
   * The short members of an object.
   * @param {object} object
   */
  const short = (object) =>
    Object.fromEntries(
      Object.entries(object).filter(([, value]) =>
        typeof value === 'string' ? value.length < 1000 : /number|boolean/.test(typeof value),
      ),
    );
  /** @param {any} event */
  const write = (event) => {
    try {
      const text = JSON.stringify(event, plain);
      if (text.length <= MAX_LENGTH) return text;
    } catch {
      // The short members are written.
    }
    const { response, message, ...rest } = event;
    return JSON.stringify({
      ...short(rest),
      error: rest.error && short(rest.error),
      response: response && short(response),
      message: message && { ...short(message), payload: short(message.payload ?? {}) },
    });
  };

  for (const reference of page.__abpDebug ?? []) {
    const observed = reference.deref();
    if (!observed || panel.known.has(observed)) continue;
    panel.known.add(observed);
    observed.add((/** @type {any} */ event) => {
      panel.queue.push(write(event));
      if (panel.queue.length > MAX_QUEUE) panel.queue.shift();
    });
  }
  const events = panel.queue.splice(0).join();
  return `{"id":${panel.id},"origin":${performance.timeOrigin},"events":[${events}]}`;
}
