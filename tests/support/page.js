/**
 * Makes this process a page until the test ends.
 * @param {import('node:test').TestContext} t
 * @param {Record<string, unknown>} [globals] what else the page has
 * @returns {{ say(type: string, event: unknown): void, types(): string[], post(source: unknown, origin: string, data: unknown, more?: object): void }}
 *   `say` tells those that listen, `types` says to what they do, and `post` is a window message
 */
export function usePage(t, globals = {}) {
  let all = [];
  const given = {
    addEventListener: (type, heard) => void all.push([type, heard]),
    removeEventListener: (type, heard) => {
      all = all.filter((each) => each[0] !== type || each[1] !== heard);
    },
    ...globals,
  };
  const before = Object.fromEntries(
    Object.keys(given).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]),
  );
  for (const [name, value] of Object.entries(given)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  t.after(() => {
    for (const [name, descriptor] of Object.entries(before)) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else delete globalThis[name];
    }
  });
  const say = (type, event) =>
    all.filter((each) => each[0] === type).forEach(([, on]) => on(event));
  return {
    say,
    types: () => all.map(([type]) => type),
    post: (source, origin, data, more) =>
      say('message', { isTrusted: true, ports: ['its ports'], source, origin, data, ...more }),
  };
}

/** A window, which keeps what was posted to it. @param {object} [more] what else it shows */
export const windowOf = (more) => {
  const posted = [];
  return { posted, postMessage: (...given) => void posted.push(given), ...more };
};
