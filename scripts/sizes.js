// What a page downloads of a side, and what each file and each function of the module has of it.
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { build, transform } from 'esbuild';
import { withJoinedData } from '../wasm/join-data.mjs';
import { shortNames, shortened } from './short-exports.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const ENTRY = join(root, 'entry of the sizes.js');

/** What a page imports. A use of the imports, so that they are not left out. */
export const SIDES = /** @type {const} */ ({
  expose: ['expose'],
  connect: ['connect'],
  both: ['expose', 'connect'],
});
/** @typedef {keyof typeof SIDES} Side */

/** @param {Side} side */
const sourceOf = (side) =>
  `import { ${SIDES[side].join()} } from 'abp-bridge';\nconsole.log(${SIDES[side].join()});\n`;

/** @param {string | Uint8Array} code */
const gzipped = (code) => gzipSync(code, { level: 9 }).length;
/** @param {string[]} codes files that are loaded, each by itself */
const sum = (codes) => codes.reduce((bytes, code) => bytes + gzipped(code), 0);

/**
 * A file and all that it imports statically.
 * @template F
 * @param {F} entry
 * @param {(file: F) => F[]} importsOf
 * @returns {F[]}
 */
function closure(entry, importsOf) {
  const files = new Set([entry]);
  for (const file of files) for (const other of importsOf(file)) files.add(other);
  return [...files];
}

/** The module: imported by `import()`, so that it is a file of its own, and loaded at once. */
const MODULE = /\babp-wasm\b/;

/**
 * Leaves out what is loaded only where it is needed, and what is a file of its own: what is imported by `import()`.
 * @type {import('esbuild').Plugin}
 */
export const withoutLazy = {
  name: 'without lazy',
  setup: ({ onResolve }) =>
    onResolve({ filter: /./ }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path, external: true } : undefined,
    ),
};
const module = async () =>
  (
    await transform(readFileSync(join(root, 'dist/lib/parts/abp-wasm.js'), 'utf8'), {
      minify: true,
    })
  ).code;

/** @param {Side} side @returns {import('esbuild').BuildOptions & { write: false, metafile: true }} */
const forEsbuild = (side) => ({
  stdin: { contents: sourceOf(side), resolveDir: root },
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  outdir: root,
  write: false,
  metafile: true,
});

/** One file for the side and the module, lazy parts aside. @param {Side} side @returns {Promise<number>} bytes, gzipped */
export async function inOneFile(side) {
  const { outputFiles } = await build({ ...forEsbuild(side), plugins: [withoutLazy] });
  return sum([...outputFiles.map(({ text }) => text), await module()]);
}

/** @param {Side} side */
async function split(side) {
  const { outputFiles, metafile } = await build({ ...forEsbuild(side), splitting: true });
  const texts = new Map(outputFiles.map(({ path, text }) => [relative(root, path), text]));
  const { outputs } = metafile;
  const loaded = closure('stdin.js', (name) =>
    outputs[name].imports
      .filter(
        ({ kind, external, path }) =>
          !external && (kind === 'import-statement' || MODULE.test(path)),
      )
      .map(({ path }) => path),
  );
  return sum(loaded.map((name) => /** @type {string} */ (texts.get(name))));
}

/** @param {Side} side @returns {import('@rollup/wasm-node').Plugin & import('vite').Plugin} */
const entryOf = (side) => ({
  name: 'the entry',
  resolveId: (/** @type {string} */ id) => (id === ENTRY ? id : null),
  load: (/** @type {string} */ id) => (id === ENTRY ? sourceOf(side) : null),
});

/** The packages of this repository and those that it depends on, as Node finds them. @type {import('@rollup/wasm-node').Plugin} */
const fromPackages = {
  name: 'from packages',
  resolveId: (id, importer) =>
    id.startsWith('.') || id.startsWith('/') || !importer
      ? null
      : fileURLToPath(import.meta.resolve(id)),
};

/** @param {{ type: string, code?: string, fileName: string, isEntry?: boolean, imports?: string[], dynamicImports?: string[] }[]} output */
function loadedOf(output) {
  const chunks = new Map(output.map((chunk) => [chunk.fileName, chunk]));
  const entry = output.find(({ isEntry }) => isEntry);
  return closure(/** @type {string} */ (entry?.fileName), (name) =>
    [
      ...(chunks.get(name)?.imports ?? []),
      ...(chunks.get(name)?.dynamicImports ?? []).filter((other) => MODULE.test(other)),
    ].filter((other) => chunks.has(other)),
  ).map((name) => /** @type {string} */ (chunks.get(name)?.code));
}

/** @param {Side} side */
async function byRollup(side) {
  const { rollup } = await import('@rollup/wasm-node');
  const bundle = await rollup({
    input: ENTRY,
    plugins: [entryOf(side), fromPackages],
    treeshake: { moduleSideEffects: (id) => id === ENTRY },
  });
  const { output } = await bundle.generate({ format: 'esm' });
  const codes = loadedOf(output).map((code) => transform(code, { minify: true, format: 'esm' }));
  return sum((await Promise.all(codes)).map(({ code }) => code));
}

/** @param {Side} side */
async function byVite(side) {
  const vite = await import('vite');
  const built = await vite.build({
    root,
    configFile: false,
    logLevel: 'error',
    publicDir: false,
    plugins: [entryOf(side)],
    build: { write: false, rolldownOptions: { input: ENTRY } },
  });
  const { output } = /** @type {any} */ (Array.isArray(built) ? built[0] : built);
  return sum(loadedOf(output));
}

/** How a page may be built. */
const BUNDLERS = {
  'esbuild, split': split,
  'esbuild, one file': inOneFile,
  Rollup: byRollup,
  Vite: byVite,
};

/**
 * What each bundler makes of each side.
 * @returns {Promise<Record<string, Record<Side, number>>>} bytes, gzipped, of all that is loaded at once
 */
export async function measureSides() {
  /** @type {Record<string, any>} */
  const sizes = {};
  for (const [name, measure] of Object.entries(BUNDLERS)) {
    sizes[name] = {};
    for (const side of /** @type {Side[]} */ (Object.keys(SIDES)))
      sizes[name][side] = await measure(side);
  }
  return sizes;
}

// --- Files -----------------------------------------------------------------------------------------

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/**
 * The sources of a text's parts, from its source map.
 * @param {string} text
 * @param {{ sources: string[], mappings: string }} map
 * @returns {Map<string, string>} what of the text each source has
 */
function partsOf(text, { sources, mappings }) {
  const parts = new Map(sources.map((source) => [source, '']));
  const lines = text.split('\n');
  let source = 0;
  mappings.split(';').forEach((line, row) => {
    let column = 0;
    const segments = line
      .split(',')
      .filter(Boolean)
      .map((segment) => {
        const numbers = [];
        for (let value = 0, shift = 0, i = 0; i < segment.length; i++) {
          const digit = DIGITS.indexOf(segment[i]);
          value |= (digit & 31) << shift;
          shift += 5;
          if (digit & 32) continue;
          numbers.push(value & 1 ? -(value >> 1) : value >> 1);
          value = shift = 0;
        }
        column += numbers[0];
        source += numbers[1] ?? 0;
        return { column, name: sources[source] };
      });
    segments.forEach(({ column: from, name }, i) => {
      const part = lines[row].slice(from, segments[i + 1]?.column);
      parts.set(name, parts.get(name) + part);
    });
  });
  return parts;
}

/**
 * What each file has of a side in one file, lazy parts aside.
 * @param {Side} side
 * @returns {Promise<{ name: string, bytes: number, gzipped: number }[]>} `gzipped` is by how much less it would be
 *   without the file
 */
export async function measureFiles(side) {
  const { outputFiles } = await build({
    ...forEsbuild(side),
    plugins: [withoutLazy],
    sourcemap: 'external',
    sourcesContent: false,
  });
  const textOf = (/** @type {RegExp} */ name) =>
    /** @type {import('esbuild').OutputFile} */ (outputFiles.find(({ path }) => name.test(path)))
      .text;
  const parts = [...partsOf(textOf(/\.js$/), JSON.parse(textOf(/\.map$/)))];
  const whole = gzipped(parts.map(([, code]) => code).join(''));
  const wasm = await module();
  const files = parts
    .filter(([, code]) => code)
    .map(([name, code]) => {
      const others = parts.filter((part) => part[0] !== name).map((part) => part[1]);
      return { name, bytes: code.length, gzipped: whole - gzipped(others.join('')) };
    });
  return [...files, { name: 'dist/abp-wasm.js', bytes: wasm.length, gzipped: gzipped(wasm) }];
}

// --- The module --------------------------------------------------------------------------------------

const CODE = 10;

/** Reads WebAssembly from a place on. @param {Uint8Array} wasm @param {number} at */
function* reader(wasm, at) {
  let length = 0;
  for (;;) {
    at += length;
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = wasm[at++];
      value |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    length = (yield { value, at }) ?? 0;
  }
}

/** @param {Uint8Array} bytes */
const deflated = (bytes) => deflateRawSync(bytes, { level: 9 }).length;

/**
 * What each function and each section has of the module.
 * @param {string} name
 * @returns {{ name: string, bytes: number, deflated: number }[]} `deflated` is by how much less it would be without it
 */
export function measureModule(name) {
  const folder = join(root, 'build/wasm');
  const wasm = shortened(withJoinedData(readFileSync(join(folder, `${name}.wasm`))), shortNames());
  const list = readdirSync(folder).find((file) => new RegExp(`^${name}\\..*symbols$`).test(file));
  if (!list) throw new Error('no list of symbols in build/wasm: scripts/build.sh wasm');
  const symbols = new Map(
    readFileSync(join(folder, list), 'utf8')
      .trim()
      .split('\n')
      .map((line) => /** @type {[number, string]} */ ([parseInt(line), line.replace(/^\d+:/, '')])),
  );
  const imported = WebAssembly.Module.imports(new WebAssembly.Module(wasm)).length;
  /** @type {{ name: string, from: number, to: number }[]} */
  const parts = [];
  for (let at = 8; at < wasm.length;) {
    const section = wasm[at];
    const size = reader(wasm, at + 1).next().value;
    if (!size) break;
    const end = size.at + size.value;
    if (section === CODE) {
      const bodies = reader(wasm, size.at);
      const count = bodies.next().value?.value ?? 0;
      for (let i = 0, skip = 0; i < count; i++) {
        const body = bodies.next(skip).value;
        if (!body) break;
        skip = body.value;
        const to = body.at + body.value;
        parts.push({ name: symbols.get(i + imported) ?? `function ${i}`, from: body.at, to });
      }
    } else parts.push({ name: SECTIONS[section] ?? `section ${section}`, from: at, to: end });
    at = end;
  }
  const whole = deflated(wasm);
  return parts.map(({ name: part, from, to }) => ({
    name: part,
    bytes: to - from,
    deflated: whole - deflated(Buffer.concat([wasm.subarray(0, from), wasm.subarray(to)])),
  }));
}

/** The names of the sections that hold more than code. @type {Record<number, string>} */
const SECTIONS = {
  1: '(types)',
  2: '(imports)',
  3: '(types of the functions)',
  4: '(the table)',
  5: '(the memory)',
  6: '(globals)',
  7: '(names of the exports)',
  9: '(table of functions)',
  11: '(constants)',
  12: '(the number of constants)',
};
