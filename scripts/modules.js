// The modules that are published: what is used together lies together, since each file costs a page a request, and each chunk
// that a bundler makes of them costs bytes.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from '@rollup/wasm-node';
import { transform } from 'esbuild';
import { MODULES } from './entries.js';
import { shortNames, shortenedCore, withShortNames } from './short-exports.js';

const root = fileURLToPath(new URL('../', import.meta.url));
/** @param {string} path */
const at = (path) => join(root, path);
/**
 * The two sides: their doors, which begin to load the core; what of js/ each has for itself; and what other entries use, too. What
 * both import is in the common file.
 */
const SIDES = {
  expose: {
    entry: at('js/app/entry.js'),
    own: /\/js\/(app\/|session\/invocation)/,
    shared:
      /\/js\/(core\/cancellable|common\/(breathe|json-schema|report|require-json|token)|transports\/(owners|window))\.js/,
  },
  connect: {
    entry: at('js/agent/connect.js'),
    own: /\/js\/(agent\/(?!rejection)|session\/pending-call)/,
    shared: /\/js\/(core\/pending|transports\/(iframe|iframe-watcher|worker)|wire\/responses)\.js/,
  },
};

/**
 * What is loaded later, by the file it is put into. A part that is not named is in a file of its own.
 * @type {Record<string, string[]>}
 */
const LATER = {
  'app-parts': [
    'app/checked',
    'app/explain',
    'app/never-ran',
    'app/refusals',
    'app/standard-schema',
  ],
  'agent-parts': ['agent/retry', 'agent/diagnosis', 'agent/mistakes', 'session/pending-cancel'],
  'agent-streams': ['agent/input', 'agent/streaming', 'session/streamed-call'],
  'shared-parts': [
    ...['common/bounds', 'common/copy', 'common/inflow', 'common/iterator-of'],
    ...[
      'common/similar-name',
      'common/option-mistakes',
      'common/value-size',
      'common/warnings',
      'agent/call-stream',
    ],
    ...['common/turns', 'app/reporters', 'session/capability-support'],
    ...['wire/elicitations', 'wire/stream-writer'],
  ],
  'outflow-parts': ['common/iteration', 'session/outflow'],
  'data-parts': ['wire/binary', 'wire/json-text', 'wire/result-store'],
};
const laterOf = new Map(
  Object.entries(LATER).flatMap(([name, files]) =>
    files.map((file) => {
      const path = at(`js/${file}.js`);
      if (!existsSync(path)) throw new Error(`${path}, of the part ${name}, is not there`);
      return /** @type {[string, string]} */ ([path, name]);
    }),
  ),
);

/**
 * Whether an import leads out of the repository.
 * @param {string} id
 */
const isForeign = (id) => !/^[./]/.test(id);

/** Puts the packages that are used inside. @type {import('@rollup/wasm-node').Plugin} */
const foreignInside = {
  name: 'packages inside',
  resolveId: (id) =>
    isForeign(id) && !id.startsWith('node:') ? fileURLToPath(import.meta.resolve(id)) : null,
};

/** The cores, with short names. @param {Map<string, string>} short @returns {import('@rollup/wasm-node').Plugin} */
const coresOf = (short) => ({
  name: 'cores',
  load: (id) => (/\/dist\/\w+-(js|wasm)\.js$/.test(id) ? shortenedCore(id, short) : null),
});

/**
 * A file and all that it imports statically.
 * @param {string} entry
 * @param {import('@rollup/wasm-node').GetModuleInfo} info
 */
function closure(entry, info) {
  const files = new Set([entry]);
  for (const file of files) for (const id of info(file)?.importedIds ?? []) files.add(id);
  return files;
}

/**
 * Makes modules.
 * @param {Record<string, string>} files sources by the names of the entries, without `.js`
 * @param {string} outdir where they are written; other files there are removed
 * @param {object} [options]
 * @param {boolean} [options.forPages] whether they are for pages without a bundler: small, with the packages that they use
 *   inside, and both sides in one file, since nothing would leave one of them out
 * @param {import('@rollup/wasm-node').Plugin} [options.cores] gives the cores, in place of those with short names and source maps
 */
export async function buildModules(files, outdir, { forPages = false, cores } = {}) {
  const short = cores ? new Map() : shortNames();
  const bundle = await rollup({
    input: Object.fromEntries(Object.entries(files).map(([name, path]) => [name, at(path)])),
    external: forPages ? /^node:/ : isForeign,
    plugins: [cores ?? coresOf(short), ...(forPages ? [foreignInside] : [])],
    treeshake: { moduleSideEffects: (id) => id.endsWith('/inspector/src/index.js') },
    onwarn({ message }) {
      throw new Error(message);
    },
  });
  /** @type {{ side: string, entry: string, own: RegExp, shared: RegExp, files: Set<string> }[] | undefined} */
  let sides;
  const { output } = await bundle.generate({
    dir: outdir,
    format: 'esm',
    hoistTransitiveImports: false,
    sourcemap: true,
    chunkFileNames: forPages ? '[name]-[hash].js' : 'parts/[name].js',
    manualChunks(id, { getModuleInfo }) {
      const name = laterOf.get(id) ?? /\/dist\/(\w+-wasm)\.js$/.exec(id)?.[1];
      if (name) return name;
      sides ??= Object.entries(SIDES).map(([side, definition]) => {
        return { ...definition, side, files: closure(definition.entry, getModuleInfo) };
      });
      const users = sides.filter(({ files }) => files.has(id));
      if (!users.length) return;
      const [{ side, entry, own, shared }] = users;
      if (users.length === 1 && own.test(id)) {
        if (forPages) return 'sides';
        // Nothing in a side's file runs by itself, for other entries load it, too.
        return id === entry ? `${side}-door` : side;
      }
      // A page would load all of a side for a part of it; a bundler takes the part.
      return users.length === 1 && shared.test(id) && !forPages ? side : 'common';
    },
  });
  await bundle.close();
  const wasm = output.find(({ name }) => name === 'abp-wasm')?.fileName;
  const written = new Set();
  /** @param {string} name @param {string} text */
  function write(name, text) {
    const path = join(outdir, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    written.add(path);
  }
  for (const chunk of output) {
    if (chunk.type === 'asset') continue; // their maps
    const map = Buffer.from(JSON.stringify(chunk.map)).toString('base64');
    // A page asks for the module with the rest, not after it.
    const early = forPages && chunk.name === 'abp-bridge' ? `import './${wasm}';` : '';
    const isCore = /-(js|wasm)$/.test(chunk.name);
    const code = early + (isCore ? chunk.code : withShortNames(chunk.code, short));
    // There is a source to lead to, and something to see.
    const hasMap = !cores && !isCore && !chunk.name.endsWith('-door');
    const { code: text, map: mapped } = await transform(
      `${code}\n//# sourceMappingURL=data:application/json;base64,${map}`,
      {
        format: 'esm',
        target: 'es2022',
        minify: forPages || isCore,
        // Without maps nobody reads them; stacks have their names.
        ...(cores && { minifyWhitespace: true }),
        sourcemap: hasMap && 'external',
        sourcefile: chunk.fileName,
      },
    );
    const name = `${chunk.fileName}.map`;
    write(chunk.fileName, hasMap ? `${text}//# sourceMappingURL=${basename(name)}\n` : text);
    if (hasMap) write(name, mapped);
  }
  for (const name of readdirSync(outdir, { recursive: true, encoding: 'utf8' })) {
    const path = join(outdir, name);
    if (/\.(js|map)$/.test(name) && !written.has(path)) rmSync(path);
  }
}

/** Makes dist/lib, which `package.json` exports. */
export const buildLib = () => buildModules(MODULES, 'dist/lib');
