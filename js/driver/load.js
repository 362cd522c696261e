/**
 * Loads a module of the core: as WebAssembly, or as JavaScript where WebAssembly is missing or
 * forbidden.
 */
import { development } from '../common/development.js';

/**
 * Instantiates a module.
 * @callback Instantiate
 * @param {{ emscripten_notify_memory_growth: () => void }} env
 * @returns {any} its exports
 */

/**
 * Compiles a module. Every new document waits for this, with cold code. So the engine compiles
 * straight from its own decompression stream, without copies in between.
 * @param {Uint8Array<ArrayBuffer>} deflated the WebAssembly
 * @returns {Promise<WebAssembly.Module>}
 */
const compile = (deflated) =>
  // WebAssembly first: where it is missing, Node's own Response is missing, too.
  WebAssembly.compileStreaming(
    new Response(
      new Response(deflated).body?.pipeThrough(
        /** @type {TransformStream<any, Uint8Array<ArrayBuffer>>} */ (
          new DecompressionStream('deflate-raw')
        ),
      ),
      { headers: { 'content-type': 'application/wasm' } },
    ),
  );

/**
 * Decodes base64. Not the decoder of js/binary, so that a page loads only this.
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
const bytesOf = (text) =>
  /** @type {typeof Uint8Array & { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }} */ (
    Uint8Array
  ).fromBase64?.(text) ?? Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/**
 * Loads a module.
 * @param {string} deflated the WebAssembly, deflated and in base64
 * @param {() => Promise<{ default: Instantiate }>} fallback imports the same core as JavaScript
 * @param {(instantiate: Instantiate) => void} use makes an instance and uses it from then on
 * @returns {Promise<'wasm' | 'js'>} its form
 */
export async function load(deflated, fallback, use) {
  try {
    const module = await compile(bytesOf(deflated));
    // WebKit compiles modules that it then refuses to instantiate.
    use((env) => new WebAssembly.Instance(module, { env }).exports);
    return 'wasm';
  } catch {
    // WebAssembly is missing, or a Content Security Policy lacks 'wasm-unsafe-eval': use the same
    // core as JavaScript, which is slower.
    const { default: instantiate } = await fallback().catch(async (cause) => {
      throw (await development()).withoutCore(cause);
    });
    use(instantiate);
    return 'js';
  }
}
