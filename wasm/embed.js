// Writes the core as JavaScript modules: the WebAssembly as text, which every bundler and page can
// load and which compiles without another request; and the output of wasm2js, for pages that forbid
// WebAssembly. Then runs both: the build fails if one does not run, or if they differ.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { inflateRawSync } from 'node:zlib';
import zopfli from '@gfx/zopfli';
import { build } from 'esbuild';
import { withJoinedData } from './join-data.mjs';

// zopfli's listener for uncaught errors would print two pages of its own source.
process.removeAllListeners('uncaughtException').removeAllListeners('unhandledRejection');

const [, , wasmFile, jsFile, folder, name] = process.argv;
const wasmModule = join(folder, `${name}-wasm.js`);
const jsModule = join(folder, `${name}-js.js`);
mkdirSync(folder, { recursive: true });

const wasm = withJoinedData(readFileSync(wasmFile));
// Base64 of compressed bytes compresses back to the size of the bytes in a download; that of the
// raw bytes takes a third more. Zopfli's output is a twentieth smaller than zlib's.
const deflated = Buffer.from(await zopfli.deflateAsync(wasm, {}));
writeFileSync(
  wasmModule,
  `// Made by the build from src/ and wasm/: the core, deflated, in base64.
/** @type {string} */
export default '${deflated.toString('base64')}';
`,
);

// wasm2js makes an ES module that imports 'env' and is one instance. As a CommonJS module it is the
// body of a function, which makes any number of instances. A trap is thrown as a RangeError, so
// that it can be recognised: where this runs, there may be no WebAssembly.RuntimeError.
const module = new WebAssembly.Module(wasm);
const names = WebAssembly.Module.exports(module)
  .filter(({ kind }) => kind !== 'table')
  .map(({ name }) => name);
// If memory cannot grow, WebAssembly returns -1. wasm2js throws, or reports growth that did not
// happen.
const GROW = 'function __wasm_memory_grow(';
const made = readFileSync(jsFile, 'utf8');
if (made.split(GROW).length !== 2) throw new Error(`${jsFile} grows its memory in another way`);
writeFileSync(
  jsFile,
  made.replace(
    GROW,
    `function __wasm_memory_grow(pages) {
  try {
    var before = grow(pages);
    return __wasm_memory_size() - before === pages ? before : -1;
  } catch {
    return -1;
  }
}
function grow(`,
  ),
);
const { outputFiles } = await build({
  stdin: {
    contents: `import { ${names} } from './${basename(jsFile)}'; core = { ${names} };`,
    resolveDir: dirname(resolve(jsFile)),
  },
  bundle: true,
  external: ['env'],
  format: 'cjs',
  define: { Error: 'RangeError' },
  minify: true,
  write: false,
});
writeFileSync(
  jsModule,
  `// Made by the build from src/ and wasm/: the core as JavaScript.
// @ts-nocheck
/** @type {(env: object) => any} */
export default (env) => {
let core;
const require = () => env;
${outputFiles[0].text}
return core;
};
`,
);

// --- Running both modules ------------------------------------------------------------------------

/** The observable state of a core: its exports, and its memory before and after it has grown. */
function tryCore(instantiate) {
  let growths = 0;
  const env = { emscripten_notify_memory_growth: () => growths++ };
  const core = instantiate(env);
  const other = instantiate(env);
  const memory = () => Buffer.from(core.memory.buffer);
  const before = Buffer.from(memory()); // a copy
  core._initialize();
  const scratch = [64, before.length, 2 ** 31].map((size) => core.scratch(size));
  const isOwn = before.equals(Buffer.from(other.memory.buffer));
  return {
    exports: names.filter((name) => name in core),
    scratch,
    growths,
    isOwn,
    before,
    after: memory(),
  };
}

/** The default export of a module on the disk. */
const load = async (file) => (await import(pathToFileURL(file).href)).default;

const embedded = new WebAssembly.Module(
  inflateRawSync(Buffer.from(await load(wasmModule), 'base64')),
);
const expected = tryCore((env) => new WebAssembly.Instance(embedded, { env }).exports);
const actual = tryCore(await load(jsModule));
const different = Object.keys(expected).filter(
  (what) => !isDeepStrictEqual(actual[what], expected[what]),
);
if (different.length) throw new Error(`${jsModule} differs from WebAssembly in: ${different}`);
console.log(`${name}: ${wasm.length} bytes, ${deflated.length} deflated`);
