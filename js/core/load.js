/** Loads a module of the core: as WebAssembly, or as JavaScript where WebAssembly is missing or forbidden. */
import { fromBase64 } from '../common/base64.js';

/**
 * Instantiates a module.
 * @callback Instantiate
 * @param {{ emscripten_notify_memory_growth: () => void }} env
 * @returns {any} its exports
 */

/**
 * Compiles a module. Every new document waits for this, with cold code: so the engine compiles straight from its own
 * decompression stream, and nothing is copied in between.
 * @param {Uint8Array<ArrayBuffer>} deflated the WebAssembly
 * @returns {Promise<WebAssembly.Module>}
 */
function compile(deflated) {
  const { readable, writable } = new DecompressionStream('deflate-raw');
  const writer = writable.getWriter();
  // If writing fails, reading fails, too, and the reader gets the error.
  for (const written of [writer.write(deflated), writer.close()]) written.catch(() => {});
  const headers = { 'content-type': 'application/wasm' };
  return WebAssembly.compileStreaming(new Response(readable, { headers }));
}

/**
 * Loads a module.
 * @param {string} deflated the WebAssembly, deflated and in base64
 * @param {() => Promise<{ default: Instantiate }>} fallback imports the same core as JavaScript
 * @returns {Promise<{ kind: 'wasm' | 'js', instantiate: Instantiate }>}
 */
export async function load(deflated, fallback) {
  try {
    const module = await compile(fromBase64(deflated));
    /** @type {Instantiate} */
    const instantiate = (env) => new WebAssembly.Instance(module, { env }).exports;
    // WebKit compiles modules that it then refuses to instantiate.
    instantiate({ emscripten_notify_memory_growth() {} });
    return { kind: 'wasm', instantiate };
  } catch {
    // No WebAssembly, or a Content Security Policy without 'wasm-unsafe-eval': the same core, slower.
    return { kind: 'js', instantiate: (await fallback()).default };
  }
}
