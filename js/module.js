/** Loads a module of the core: as WebAssembly, or as JavaScript where that is missing or forbidden. */

/**
 * Makes an instance of a module, given its imports.
 * @callback Instantiate
 * @param {{ emscripten_notify_memory_growth: () => void }} env
 * @returns {any} its exports
 */

/**
 * @param {string} deflated the WebAssembly, in base64
 * @param {() => Promise<{ default: Instantiate }>} fallback imports the same core as JavaScript
 * @returns {Promise<{ kind: 'wasm' | 'js', instantiate: Instantiate }>}
 */
export async function load(deflated, fallback) {
  try {
    const bytes = Uint8Array.from(atob(deflated), (c) => c.charCodeAt(0));
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    const module = await WebAssembly.compile(await new Response(inflated).arrayBuffer());
    /** @type {Instantiate} */
    const instantiate = (env) => new WebAssembly.Instance(module, { env }).exports;
    // WebKit compiles what it then refuses to run.
    instantiate({ emscripten_notify_memory_growth() {} });
    return { kind: 'wasm', instantiate };
  } catch {
    // No WebAssembly, or a Content Security Policy without 'wasm-unsafe-eval': the same core, slower.
    return { kind: 'js', instantiate: (await fallback()).default };
  }
}
