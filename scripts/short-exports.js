// Short names for the exports and imports of the module of ABP's core: in the published files,
// where each byte is downloaded. Sources, tests and the files of other platforms have the names in
// wasm/*_boundary.c.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import zopfli from '@gfx/zopfli';
import { withSections, written } from '../wasm/read-module.mjs';

// Its listeners for uncaught errors would print two pages of its own source.
process.removeAllListeners('uncaughtException').removeAllListeners('unhandledRejection');

const LETTERS = '_$abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const GROWTH = 'emscripten_notify_memory_growth';
const [IMPORT, EXPORT] = [2, 7];
/**
 * True if an export is for the compiler.
 * @param {string} name
 */
const isOfCompiler = (name) => /^(__|stack)/.test(name);

/** @param {string} file of the build, with a core as WebAssembly */
function coreIn(file) {
  const [, text] = /'([\w+/=]+)'/.exec(readFileSync(file, 'utf8')) ?? [];
  const wasm = inflateRawSync(Buffer.from(String(text), 'base64'));
  const names = WebAssembly.Module.exports(new WebAssembly.Module(wasm)).map(({ name }) => name);
  return { wasm, names: names.filter((name) => !isOfCompiler(name)) };
}

const abp = coreIn(fileURLToPath(new URL('../dist/abp-wasm.js', import.meta.url)));
/** By the names in C: those of ABP's core. Other cores use them for names that they share. */
const short = new Map(
  [GROWTH, ...abp.names].map((name, i) => [name, LETTERS[i] ?? `_${LETTERS[i % LETTERS.length]}`]),
);
/** @param {string} name */
const shortOf = (name) => short.get(name) ?? name;

/**
 * Gives a module's exports and imports their short names, and omits exports for the compiler.
 * @param {Uint8Array} wasm
 */
function shortened(wasm) {
  /** @param {string} name */
  const named = (name) => {
    const bytes = Buffer.from(shortOf(name));
    return [...written(bytes.length), ...bytes];
  };
  /** @param {number[][]} entries */
  const body = (entries) => [...written(entries.length), ...entries.flat()];
  return withSections(wasm, {
    // A name of the module, one of the import, its kind and its type.
    [IMPORT]: (reader) =>
      body(
        reader.list(() => [
          ...named(reader.text()),
          ...named(reader.text()),
          reader.byte(),
          ...written(reader.number()),
        ]),
      ),
    // A name, a kind and an index.
    [EXPORT]: (reader) => {
      const entries = reader.list(() => {
        const name = reader.text();
        const entry = [...named(name), reader.byte(), ...written(reader.number())];
        return isOfCompiler(name) ? [] : entry;
      });
      return body(entries.filter((entry) => entry.length));
    },
  });
}

/**
 * The cores with short names, as WebAssembly and as JavaScript.
 * @type {import('@rollup/wasm-node').Plugin}
 */
export const shortCores = {
  name: 'short cores',
  async load(file) {
    const [, path, kind] = /^(.*\/dist\/\w+-)(js|wasm)\.js$/.exec(file) ?? [];
    if (!kind) return null;
    const { wasm, names } = coreIn(`${path}wasm.js`);
    if (kind === 'wasm') {
      const deflated = await zopfli.deflateAsync(shortened(wasm), { numiterations: 100 });
      return `export default '${Buffer.from(deflated).toString('base64')}';\n`;
    }
    return `${readFileSync(file, 'utf8').replace('export default', 'const make =')}
export default ({ ${shortOf(GROWTH)} }) => {
  const core = make({ ${GROWTH}: ${shortOf(GROWTH)} });
  return { ${names.map((name) => `${shortOf(name)}: core.${name}`).join(', ')} };
};
`;
  },
  // Calls of exports have the form `x.NAME`. Positions do not change, so that source maps stay
  // right.
  renderChunk(code, { name }) {
    if (/-(js|wasm)$/.test(name)) return null;
    const names = /(?<=\bx\.)\w+|\bemscripten_notify_memory_growth\b/g;
    return {
      code: code.replace(names, (long) => shortOf(long).padEnd(long.length)),
      map: null,
    };
  },
};
