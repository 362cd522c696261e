/**
 * Makes dist/lib, dist/page and dist/workerd of each package, which its package.json exports;
 * `--configFor lib` makes only that. Modules that are used together are in one file, since each
 * file costs a page a request, and each chunk of a bundler costs bytes.
 */
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { BUNDLE, ENTRIES, MAIN, PACKAGES } from './entries.js';
import { shortCores } from './short-exports.js';

/** @typedef {import('@rollup/wasm-node').Plugin} Plugin */

const root = fileURLToPath(new URL('../', import.meta.url));
/** The doors of the two sides, which begin to load the core. */
const DOORS = ['expose', 'connect'].map((side) => join(root, `parts/main/${side}.js`));
/**
 * Parts that are loaded later, by the file that contains them. A part that is not named has a file
 * of its own.
 */
const LATER = {
  'app-parts': 'app/goes-on app/questions parts/schemas/checked',
  mistakes: `parts/mistakes/app parts/mistakes/check-agent parts/mistakes/diagnosis parts/mistakes/explain
    parts/mistakes/index parts/mistakes/unread-options parts/mistakes/unsent parts/mistakes/warnings`,
  'agent-parts': 'agent/answers parts/retry/retry session/cancel-answer session/capability-support',
  streams: 'session/streams',
  memory: 'binary/digest parts/keys/local-store parts/keys/memory',
  trace: 'parts/trace/trace',
  'local-agent': 'page/local-agent',
  foreign: 'foreign/foreign-capabilities',
};
/** Parts that are loaded later and have files of their own. */
const ALONE = 'parts/schemas/schema parts/discovery/manifest';
/** Modules that other entries than the main one share. */
const SHARED = {
  'shared-parts': 'foreign/foreign-app foreign/read-error page/grace page/reporters',
  'data-parts': 'binary/binary untrusted/bounds parts/transports/json-text',
};
/**
 * @param {string} files
 * @returns {string[]} their paths
 */
const pathsOf = (files) =>
  files.split(/\s+/).map((file) => {
    const path = join(root, file.startsWith('parts/') ? `${file}.js` : `js/${file}.js`);
    if (!existsSync(path)) throw new Error(`${path}, which is loaded later, is not there`);
    return path;
  });
/**
 * @param {Record<string, string>} parts
 * @returns {Map<string, string | undefined>} the parts, by the paths of their modules
 */
const byPath = (parts) =>
  new Map(
    Object.entries(parts).flatMap(([part, files]) =>
      pathsOf(files).map((path) => [path, part || undefined]),
    ),
  );
const laterOf = byPath({ ...LATER, '': ALONE });
const sharedOf = byPath(SHARED);

/**
 * Modules that are copied into parts that are loaded later, by the file of these. Each name that
 * they import from the file of the sides costs every page some bytes, and keeps its code there,
 * also in pages that do not need it. These modules have no state that must exist once.
 */
const COPIED = {
  'later-common': `agent/capability-list app/(session-of|waits)
    common/(check-options|copy|development|errors|iterator-of|origins|report)
    common/(secret|signals|similar-name|transfer|value-size|values|waiting) driver/abp-boundary
    binary/(base64|binary) page/(grace|reporters)
    parts/schemas/describe untrusted/bounds session/capability-support
    session/made-call session/pending-cancel session/rejection transports/(listen|port|receiver) wire/(frame-kinds|messages)`,
  streams: 'common/(breathe|inflow|iteration) session/(call-stream|input|outflow)',
  trace: 'parts/trace/abp-names',
  foreign: 'foreign/(read-error|foreign-app|reports)',
  'local-agent': 'agent/client transports/(iframe|iframe-watcher|worker)',
};
const copies = Object.entries(COPIED).map(([part, files]) => ({
  part,
  files: new RegExp(`^${root}(js/)?(${files.replace(/\s+/g, '|')})\\.js$`),
}));
const COPY = '?later';
/** The class of errors must exist once: programs compare by `instanceof`. */
const ERROR = /^export class AbpError [\s\S]*?\n}\n/m;
const ONE_ERROR = "import { AbpError } from './errors.js?one';\nexport { AbpError };\n";
/**
 * @param {string} id
 * @param {string} code
 */
function withOneError(id, code) {
  if (id.endsWith('/errors.js' + COPY) && !ERROR.test(code))
    throw new Error('errors.js has no class of errors');
  return code.replace(ERROR, ONE_ERROR);
}

/** Gives the parts these copies. @type {Plugin} */
const copiedForLater = {
  name: 'copied for later',
  resolveId(id, importer = '') {
    const isLater = laterOf.has(importer) || importer.endsWith(COPY);
    if (!isLater || !id.startsWith('.')) return null;
    const found = join(importer, '..', id);
    if (found.endsWith('?one')) return found.replace('?one', '');
    return copies.some(({ files }) => files.test(found)) ? found + COPY : found;
  },
  load: (id) =>
    id.endsWith(COPY) ? withOneError(id, readFileSync(id.slice(0, -COPY.length), 'utf8')) : null,
};

/** Modules of the sides alone. */
const OWN = /\/js\/(app\/(?!waits)|agent|page|session\/pending-cancel)|\/parts\/main\//;

/**
 * Returns the file for a module. The modules that both sides load at once are in one file: bundlers
 * that split code would otherwise make separate files of those that later parts import, too. It has
 * no side effects, since other entries load it, too; the two entries that begin to load the core
 * are beside it.
 * @param {boolean} forPages whether unused code is never removed: then modules of the sides alone
 *   are beside it, too
 * @returns {import('@rollup/wasm-node').GetManualChunk}
 */
function layout(forPages) {
  /** @type {Set<string>} what the sides import statically */
  let sides;
  return (id, { getModuleInfo }) => {
    const part = laterOf.get(id) ?? sharedOf.get(id) ?? /\/dist\/(\w+-wasm)\.js$/.exec(id)?.[1];
    if (part) return part;
    if (id.endsWith(COPY))
      return copies.find(({ files }) => files.test(id.slice(0, -COPY.length)))?.part;
    if (DOORS.includes(id)) return forPages ? 'sides' : `${basename(id, '.js')}-door`;
    if (!sides) {
      sides = new Set(DOORS);
      for (const file of sides)
        for (const other of getModuleInfo(file)?.importedIds ?? []) sides.add(other);
    }
    if (!sides.has(id)) return undefined;
    return forPages && OWN.test(id) ? 'sides' : 'common';
  };
}

/**
 * Rollup orders modules by the paths of their entries. With the main entry first, the core's
 * constants precede their uses, and bundlers inline their values.
 * @type {Plugin}
 */
const mainFirst = {
  name: 'main first',
  resolveId: (id) => (id === MAIN.modules.index ? `${root}./${id}` : null),
};

const boundary = readFileSync(join(root, 'js/driver/abp-boundary.js'), 'utf8');
/** The core's constants, by name. */
const constants = new Map(
  [...boundary.matchAll(/^export const (\w+) = (?:\/\*\*.*?\*\/ )?(\(?-?\d+\)?);$/gm)].map(
    ([, name, value]) => [name, value],
  ),
);
/**
 * Inlines their values: bundlers do not, if they are in another file. Lines stay unchanged.
 * @type {Plugin}
 */
const constantsInside = {
  name: 'constants inside',
  transform(code) {
    if (
      !/^import (\* as abp from '.*\/abp-boundary\.js'|\{[^}]*\babp\b[^}]*\} from 'abp-bridge\/driver');$/m.test(
        code,
      )
    )
      return null;
    const valueOf = (/** @type {string} */ whole, /** @type {string} */ name) =>
      constants.get(name) ?? whole;
    return { code: code.replace(/\babp\.([A-Z]\w*)/g, valueOf), map: null };
  },
};

/** @param {string} id of an import that leads out of the repository */
const isForeign = (id) => !/^[./]/.test(id);
/** Includes imported packages: for ours, their sources. @type {Plugin} */
const foreignInside = {
  name: 'packages inside',
  resolveId(id, importer) {
    if (!importer || !isForeign(id) || id.startsWith('node:')) return null;
    return id in ENTRIES ? join(root, ENTRIES[id].source) : fileURLToPath(import.meta.resolve(id));
  },
};

/**
 * The core as JavaScript, without the WebAssembly: views of MCP Apps are one document, and must not
 * load or compile anything.
 * @type {Plugin}
 */
const coreInside = {
  name: 'core inside',
  load(id) {
    if (/\/dist\/\w+-wasm\.js$/.test(id)) return "export default '';";
    if (!id.endsWith('/js/driver/load.js')) return null;
    return `export const load = async (_deflated, fallback, use) =>
      (use((await fallback()).default), 'js');`;
  },
};
/**
 * The cores for Cloudflare Workers. WebAssembly must not be compiled there while a Worker runs; an
 * imported module is compiled before the Worker starts.
 * @returns {Plugin}
 */
function coresImported() {
  /** @type {Set<string>} the names of the cores */
  const cores = new Set();
  return {
    name: 'cores imported',
    resolveId: (id) => (id.startsWith('cores/') ? { id, external: true } : null),
    load(id) {
      const [, name] = /\/dist\/(\w+)-wasm\.js$/.exec(id) ?? [];
      if (name) {
        cores.add(name);
        return `import core from 'cores/${name}.wasm'; export default core;`;
      }
      if (/\/dist\/\w+-js\.js$/.test(id)) return 'export default undefined;';
      if (!id.endsWith('/js/driver/load.js')) return null;
      return `export const load = async (module, _fallback, use) =>
      (use((env) => new WebAssembly.Instance(module, { env }).exports), 'wasm');`;
    },
    // They are beside the entries.
    renderChunk(code, { fileName }) {
      const folder = '../'.repeat(fileName.split('/').length - 1) || './';
      return { code: code.replaceAll("'cores/", `'${folder}`), map: null };
    },
    writeBundle({ dir = '' }) {
      for (const name of cores)
        copyFileSync(join(root, `build/wasm/${name}.wasm`), join(dir, `${name}.wasm`));
    },
  };
}

/**
 * Chromium compiles all functions of such a file while it loads, beside the main thread. Otherwise
 * it compiles each at its first call, and the first connection of a side calls most of its
 * functions. Bundlers drop comments, so it is for pages alone.
 */
const EAGER = { banner: '//# allFunctionsCalledOnLoad' };

/**
 * Has esbuild print each file. A readable file keeps its source map.
 * @param {import('esbuild').TransformOptions} [options]
 * @param {boolean} [forPages]
 * @returns {Plugin}
 */
const printed = (options, forPages = false) => ({
  name: 'printed',
  async generateBundle({ sourcemap }, bundle) {
    const files = Object.values(bundle);
    const wasm = files.find(({ name }) => name === 'abp-wasm')?.fileName;
    for (const chunk of files) {
      if (chunk.type === 'asset') continue;
      const isCore = /-(js|wasm)$/.test(chunk.name);
      const hasMap = sourcemap && !isCore && !/-door$|^later-/.test(chunk.name);
      // A page requests the module with the rest, not after it.
      const early = forPages && chunk.name === 'abp-bridge' ? `import './${wasm}';` : '';
      const map = Buffer.from(JSON.stringify(chunk.map)).toString('base64');
      const made = await transform(
        `${early}${chunk.code}\n//# sourceMappingURL=data:application/json;base64,${map}`,
        {
          format: 'esm',
          target: 'es2022',
          sourcefile: chunk.fileName,
          minify: isCore,
          sourcemap: hasMap && 'external',
          ...options,
          ...(forPages && /^(common|sides)$/.test(chunk.name) && EAGER),
        },
      );
      const fileName = `${chunk.fileName}.map`;
      delete bundle[fileName];
      chunk.code = made.code;
      if (!hasMap) continue;
      chunk.code += `//# sourceMappingURL=${basename(fileName)}\n`;
      this.emitFile({ type: 'asset', fileName, source: made.map });
    }
  },
});

/**
 * @param {import('@rollup/wasm-node').InputOption} input
 * @param {import('@rollup/wasm-node').OutputOptions} output
 * @param {Plugin[]} plugins
 * @returns {import('@rollup/wasm-node').RollupOptions}
 */
const options = (input, output, ...plugins) => ({
  input,
  external: plugins.includes(foreignInside) ? /^node:/ : isForeign,
  plugins,
  output: { format: 'esm', hoistTransitiveImports: false, ...output },
  treeshake: { moduleSideEffects: (id) => id.endsWith('/inspector/src/index.js') },
  onwarn({ message }) {
    throw new Error(message);
  },
});

/**
 * A self-contained file.
 * @param {string} source
 * @param {string} file
 * @param {Plugin[]} plugins
 */
function single(source, file, ...plugins) {
  // It may be inside a document: esbuild escapes text that would end a script there.
  const print = printed({ minify: true });
  return options(source, { file, inlineDynamicImports: true }, ...plugins, foreignInside, print);
}

/**
 * The outputs of a package.
 * @param {import('./entries.js').Package} package_
 * @returns {Record<string, import('@rollup/wasm-node').RollupOptions[]>}
 */
function outputsOf({ name, folder, modules, pages, singles, hasCore }) {
  const isMain = name === MAIN.name;
  const dist = join(folder, 'dist');
  // A core is a file of its own: together with code, neither compresses well.
  const core = (/** @type {string} */ id) => /\/dist\/(\w+-(js|wasm))\.js$/.exec(id)?.[1];
  const inParts = {
    chunkFileNames: 'parts/[name].js',
    manualChunks: isMain ? layout(false) : core,
  };
  const page = {
    dir: `${dist}/page`,
    sourcemap: true,
    chunkFileNames: '[name]-[hash].js',
    manualChunks: isMain ? layout(true) : core,
  };
  const first = isMain ? [mainFirst, copiedForLater] : [];
  return {
    lib: [
      options(
        modules,
        { dir: `${dist}/lib`, sourcemap: true, ...inParts },
        ...first,
        constantsInside,
        shortCores,
        printed(),
      ),
    ],
    // For pages without a bundler: small, and those of the main package include their imports.
    page: Object.keys(pages).length
      ? [
          options(
            pages,
            page,
            ...(isMain ? [mainFirst, foreignInside] : []),
            shortCores,
            printed({ minify: true }, true),
          ),
        ]
      : [],
    // Without maps it is not readable; stacks have its names.
    workerd: hasCore
      ? [
          options(
            modules,
            { dir: `${dist}/workerd`, ...inParts },
            ...(isMain ? [mainFirst] : []),
            coresImported(),
            printed({ minifyWhitespace: true }),
          ),
        ]
      : [],
    singles: [
      ...(isMain ? [single(MAIN.modules.index, BUNDLE)] : []),
      ...Object.entries(singles).map(([file, source]) =>
        single(source, `${dist}/page/${file}.js`, coreInside),
      ),
    ],
  };
}

/** @param {{ configFor?: string }} given names of outputs, with commas; default: all */
export default ({ configFor }) =>
  PACKAGES.filter(({ modules }) => Object.keys(modules).length).flatMap((package_) =>
    Object.entries(outputsOf(package_)).flatMap(([output, made]) =>
      !configFor || configFor.split(',').includes(output) ? made : [],
    ),
  );
