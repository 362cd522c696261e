/**
 * The download size of a side, by bundler, and the size of each file and each function of the
 * module in it.
 *
 *   node scripts/size.js             prints tables
 *   node scripts/size.js FILE        writes them to a file: the site has a page of them
 */
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync, inflateRawSync } from 'node:zlib';
import { rollup } from '@rollup/wasm-node';
import { build, transform } from 'esbuild';
import { build as buildByVite } from 'vite';
import { ModuleReader } from '../wasm/read-module.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const MODULE = 'dist/lib/parts/abp-wasm.js';
/** @param {string} path */
const read = (path) => readFileSync(join(root, path), 'utf8');

/** The imports of a page. */
const SIDES = { expose: 'expose', connect: 'connect', both: 'expose, connect' };
/** @typedef {keyof typeof SIDES} Side */
const NAMES = /** @type {Side[]} */ (Object.keys(SIDES));

/**
 * @param {Side} side
 * @returns {string} a page's script, which uses its imports, so that they are not removed
 */
function entryOf(side) {
  const path = join(root, `build/size/${side}.js`);
  mkdirSync(join(root, 'build/size'), { recursive: true });
  writeFileSync(
    path,
    `import { ${SIDES[side]} } from 'abp-bridge';\nconsole.log(${SIDES[side]});\n`,
  );
  return path;
}

/** @param {string[]} codes files, each loaded separately */
const gzipped = (codes) =>
  codes.reduce((bytes, code) => bytes + gzipSync(code, { level: 9 }).length, 0);

/**
 * The files that are loaded at once: an entry, its static imports, and the module, which is
 * imported by `import()` so that it is a file of its own.
 * @param {{ fileName: string, code: string, isEntry?: boolean, imports: string[],
 *   dynamicImports: string[] }[]} chunks
 */
function loadedOf(chunks) {
  const loaded = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports, dynamicImports } of loaded) {
    const names = [...imports, ...dynamicImports.filter((name) => name.includes('abp-wasm'))];
    for (const chunk of chunks) if (names.includes(chunk.fileName)) loaded.add(chunk);
  }
  return [...loaded].map(({ code }) => code);
}

/**
 * Omits the targets of `import()`: parts that are loaded only when needed, and files of their own.
 * @type {import('esbuild').Plugin}
 */
export const withoutLazy = {
  name: 'without lazy',
  setup: ({ onResolve }) =>
    onResolve({ filter: /./ }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path, external: true } : undefined,
    ),
};

/**
 * @param {Side} side
 * @param {import('esbuild').BuildOptions} more
 */
async function byEsbuild(side, more) {
  const { outputFiles = [], metafile } = await build({
    entryPoints: [entryOf(side)],
    outdir: join(root, 'build/size/out'),
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    metafile: true,
    ...more,
  });
  return outputFiles.map(({ path, text: code }) => {
    const fileName = relative(root, path);
    const { imports, inputs, entryPoint } = /** @type {import('esbuild').Metafile} */ (metafile)
      .outputs[fileName];
    const of = (/** @type {string} */ kind) =>
      imports.flatMap((each) => (each.kind === kind ? [each.path] : []));
    return {
      fileName,
      code,
      inputs,
      isEntry: entryPoint === relative(root, entryOf(side)),
      imports: of('import-statement'),
      dynamicImports: of('dynamic-import'),
    };
  });
}

/**
 * One file for a side, and the module, lazy parts aside.
 * @param {Side} side
 * @returns {Promise<number>} bytes, gzipped
 */
export async function inOneFile(side) {
  const [{ code }] = await byEsbuild(side, { plugins: [withoutLazy] });
  const module = await transform(read(MODULE), { minify: true });
  return gzipped([code, module.code]);
}

/** Finds packages as Node does. @type {import('@rollup/wasm-node').Plugin} */
const fromPackages = {
  name: 'from packages',
  resolveId: (id, importer) =>
    importer && !/^[./]/.test(id) ? fileURLToPath(import.meta.resolve(id)) : null,
};

/** The ways to build a page. @type {Record<string, (side: Side) => Promise<number>>} */
const BUNDLERS = {
  'esbuild, split': async (side) => gzipped(loadedOf(await byEsbuild(side, { splitting: true }))),
  'esbuild, one file': inOneFile,
  async Rollup(side) {
    const input = entryOf(side);
    const treeshake = { moduleSideEffects: (/** @type {string} */ id) => id === input };
    const bundle = await rollup({ input, plugins: [fromPackages], treeshake });
    const { output } = await bundle.generate({ format: 'esm' });
    const minified = loadedOf(/** @type {any[]} */ (output)).map((code) =>
      transform(code, { minify: true, format: 'esm' }),
    );
    return gzipped((await Promise.all(minified)).map(({ code }) => code));
  },
  async Vite(side) {
    const { output } = /** @type {any} */ (
      await buildByVite({
        root,
        configFile: false,
        logLevel: 'error',
        publicDir: false,
        build: { write: false, rolldownOptions: { input: entryOf(side) } },
      })
    );
    return gzipped(loadedOf(output));
  },
};

/**
 * The size of each side with each bundler.
 * @returns {Promise<Record<string, Record<Side, number>>>} bytes, gzipped, of all that is loaded at
 *   once
 */
export async function measureSides() {
  /** @type {Record<string, any>} */
  const sizes = {};
  for (const [name, measure] of Object.entries(BUNDLERS)) {
    sizes[name] = {};
    for (const side of NAMES) sizes[name][side] = await measure(side);
  }
  return sizes;
}

const CODE = 10;
/** The contents of the other sections, by their numbers. */
const SECTIONS =
  '- types imports functions table memory globals exports - elements - constants number'.split(' ');

/**
 * @returns {Promise<Map<string, number>>} the bytes of each function and each other section of the
 *   module
 */
async function measureModule() {
  const [text] = Object.values(await import(join(root, MODULE)));
  const wasm = inflateRawSync(Buffer.from(text, 'base64'));
  const list = readdirSync(join(root, 'build/wasm')).find((name) => /^abp\..*symbols$/.test(name));
  if (!list) throw new Error('no list of symbols in build/wasm: scripts/build.sh wasm');
  const imports = WebAssembly.Module.imports(new WebAssembly.Module(wasm));
  const symbols = [...read(`build/wasm/${list}`).matchAll(/^\d+:(.*)$/gm)].slice(imports.length);
  const bytes = new Map();
  const reader = new ModuleReader(wasm);
  for (const { id, from, end } of reader.sections()) {
    if (id !== CODE) bytes.set(`(${SECTIONS[id]})`, end - from);
    else reader.list(() => bytes.set(symbols.shift()?.[1], reader.bytes().length));
  }
  return bytes;
}

/**
 * The size of each source in one file of a side, without lazy parts, and of each function and
 * section of the module.
 * @returns {Promise<Record<string, Record<Side, number>>>} bytes before they are compressed, by
 *   name and side
 */
export async function measureParts() {
  /** @type {Record<string, any>} */
  const parts = {};
  const options = {
    plugins: [withoutLazy],
    alias: { 'abp-bridge': './parts/main/index.js' },
  };
  for (const side of NAMES) {
    const [{ inputs }] = await byEsbuild(side, options);
    for (const [name, { bytesInOutput }] of Object.entries(inputs))
      if (bytesInOutput) (parts[name] ??= {})[side] = bytesInOutput;
  }
  for (const [name, bytes] of await measureModule())
    parts[name] = Object.fromEntries(NAMES.map((side) => [side, bytes]));
  return parts;
}

/** @param {[string, Record<Side, number>][]} rows */
const table = (rows) =>
  [
    `| | ${NAMES.join(' | ')} |`,
    `| --- ${'| --: '.repeat(NAMES.length)}|`,
    ...rows.map(([name, bytes]) => {
      const cells = NAMES.map((side) => bytes[side]?.toLocaleString('en') ?? '');
      return `| ${name} | ${cells.join(' | ')} |`;
    }),
  ].join('\n');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , file] = process.argv;
  const budgets = JSON.parse(read('tests/size/budgets.json'));
  const most = (/** @type {[string, Record<Side, number>]} */ [, bytes]) =>
    Math.max(...Object.values(bytes));
  const text = `# Sizes

Printed by \`npm run size\`.

## What a page downloads

Bytes, gzipped, of all that is loaded at once, and the budget of each in \`tests/size/budgets.json\`, which tests hold.

${table(
  Object.entries(await measureSides()).flatMap(([name, bytes]) => [
    [name, bytes],
    ['its budget', budgets[name]],
  ]),
)}

## By file, and by function of the module

Bytes before they are compressed: of one file by esbuild, without the parts that are loaded later, and of the module. A name
that is not a file is a function or, in brackets, a section of the module.

${table(Object.entries(await measureParts()).sort((a, b) => most(b) - most(a)))}
`;
  if (file) writeFileSync(file, text);
  else console.log(text);
}
