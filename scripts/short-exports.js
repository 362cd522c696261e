// Short names for what the module of ABP's core exports and imports: in the published files, where each byte is downloaded. Sources,
// tests and the files of other platforms have the names in wasm/*_boundary.c.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import { ModuleReader, written } from '../wasm/read-module.mjs';

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const GROWTH = 'emscripten_notify_memory_growth';
const [IMPORT, EXPORT] = [2, 7];

/** @param {Buffer} bytes */
async function deflated(bytes) {
  const events = ['uncaughtException', 'unhandledRejection'];
  const known = new Set(events.flatMap((event) => process.listeners(/** @type {any} */ (event))));
  const { default: zopfli } = await import('@gfx/zopfli');
  // Its listeners would print two pages of its own source.
  for (const event of events)
    for (const listener of process.listeners(/** @type {any} */ (event)))
      if (!known.has(listener)) process.off(event, /** @type {any} */ (listener));
  return Buffer.from(await zopfli.deflateAsync(bytes, {}));
}

/** @param {string} file @returns {Buffer<ArrayBuffer>} the WebAssembly that a file of the build contains */
function moduleIn(file) {
  const [, text] = /'([\w+/=]+)'/.exec(readFileSync(file, 'utf8')) ?? [];
  return inflateRawSync(Buffer.from(String(text), 'base64'));
}

/** Whether something is exported for the compiler. @param {string} name */
const isOfCompiler = (name) => /^(__|stack)/.test(name);

/** @param {Buffer<ArrayBuffer>} wasm the names of what it exports for us, and not for its compiler */
const exportsOf = (wasm) =>
  WebAssembly.Module.exports(new WebAssembly.Module(wasm))
    .map(({ name }) => name)
    .filter((name) => !isOfCompiler(name));

/** The short names, by the names in C: those of the core of ABP, in the other cores, too, where they have them. */
export function shortNames() {
  const abp = moduleIn(fileURLToPath(new URL('../dist/abp-wasm.js', import.meta.url)));
  const names = [GROWTH, ...exportsOf(abp)];
  if (names.length > LETTERS.length) throw new Error('more exports than letters');
  return new Map(names.map((name, i) => [name, LETTERS[i]]));
}

/**
 * Gives what a module exports and imports its short names, and leaves out what is exported for its compiler.
 * @param {Buffer} wasm
 * @param {Map<string, string>} short
 */
export function shortened(wasm, short) {
  const reader = new ModuleReader(wasm);
  /** @param {string} name */
  const named = (name) => {
    const bytes = Buffer.from(short.get(name) ?? name);
    return [...written(bytes.length), ...bytes];
  };
  const rest = () => {
    const from = reader.at;
    reader.number();
    return wasm.subarray(from, reader.at);
  };
  /** @type {Record<number, () => number[]>} what an entry of a section becomes, which may be nothing */
  const entries = {
    [IMPORT]: () => [...named(reader.text()), ...named(reader.text()), reader.byte(), ...rest()],
    [EXPORT]: () => {
      const name = reader.text();
      const entry = [...named(name), reader.byte(), ...rest()];
      return isOfCompiler(name) ? [] : entry;
    },
  };
  const parts = [wasm.subarray(0, reader.at)];
  while (!reader.done) {
    const from = reader.at;
    const section = reader.byte();
    const end = reader.number() + reader.at;
    const entry = entries[section];
    if (entry) {
      const made = Array.from({ length: reader.number() }, entry).filter((bytes) => bytes.length);
      const body = [...written(made.length), ...made.flat()];
      parts.push(Buffer.from([section, ...written(body.length), ...body]));
    } else parts.push(wasm.subarray(from, end));
    reader.at = end;
  }
  return Buffer.concat(parts);
}

/**
 * What a file of the build becomes: the WebAssembly of a core, or the same as JavaScript.
 * @param {string} file
 * @param {Map<string, string>} short
 */
export async function shortenedCore(file, short) {
  if (file.endsWith('-wasm.js')) {
    const wasm = shortened(moduleIn(file), short);
    return `export default '${(await deflated(wasm)).toString('base64')}';\n`;
  }
  const names = exportsOf(moduleIn(file.replace(/-js\.js$/, '-wasm.js')));
  const given = names.map((name) => `${short.get(name) ?? name}: core.${name}`);
  return `${readFileSync(file, 'utf8').replace('export default', 'const make =')}
export default ({ ${short.get(GROWTH)} }) => {
  const core = make({ ${GROWTH}: ${short.get(GROWTH)} });
  return { ${given.join(', ')} };
};
`;
}

/**
 * Code that calls the exports, which it does as `x.NAME`, by their short names. Nothing moves, so that source maps stay right.
 * @param {string} code
 * @param {Map<string, string>} short
 */
export const withShortNames = (code, short) =>
  code.replace(/(?<=\bx\.)\w+|\bemscripten_notify_memory_growth\b/g, (name) =>
    (short.get(name) ?? name).padEnd(name.length),
  );
