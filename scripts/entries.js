/**
 * The entries of the packages, from `exports` of their package.json: files of dist/lib, with
 * dist/workerd for Cloudflare Workers; and, in dist/page, files for pages without a bundler. The
 * exported ones of these are self-contained and need no WebAssembly, since they contain the core as
 * JavaScript; but `./page` and `./page/bundle` are the main entry.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';

const root = new URL('../', import.meta.url);
const NOT_FOR_PAGES =
  `keys-sqlite react vue svelte vite @abp-bridge/automation @abp-bridge/a2a-store
  @abp-bridge/a2a/store @abp-bridge/a2a/tasks`.split(/\s+/);

/**
 * @typedef {object} Entry
 * @property {string} source from the root, as are all paths here
 * @property {string} types the source of its types
 * @property {string} [page] the name of its file in dist/page, if it has one for pages without a
 *   bundler
 * @property {string} [single] the same, if the file is self-contained
 */
/**
 * @typedef {object} Package
 * @property {string} name
 * @property {string} folder `''` for the main one
 * @property {Record<string, any>} manifest
 * @property {Record<string, Entry>} entries by the names under which they are imported
 * @property {Record<string, string>} modules the sources of dist/lib and of dist/workerd, by the
 *   names of the files without `.js`. A module that entries share is in one file
 * @property {Record<string, string>} pages those of dist/page
 * @property {Record<string, string>} singles self-contained ones of dist/page
 * @property {boolean} hasCore whether it imports a core, so that it is built for Cloudflare Workers
 */

/**
 * @param {string} folder
 * @returns {Package}
 */
function read(folder) {
  const manifest = JSON.parse(
    readFileSync(new URL(posix.join(folder, 'package.json'), root), 'utf8'),
  );
  /** @type {Package} */
  const made = {
    name: manifest.name,
    folder,
    manifest,
    entries: {},
    modules: {},
    pages: {},
    singles: {},
    hasCore: false,
  };
  for (const [path, exported] of Object.entries(manifest.exports ?? {})) {
    if (/^\.\/(page(\/bundle)?|package\.json)$/.test(path)) continue;
    const { types, workerd, default: file } = /** @type {Record<string, string>} */ (exported);
    const [, declared] = /^\.\/dist\/types\/(.+)\.d\.ts$/.exec(types) ?? [];
    const [, into, name] = /^\.\/dist\/(lib|page)\/(.+)\.js$/.exec(file) ?? [];
    const from = folder ? `${folder}/src/${declared}` : String(declared);
    // Where TypeScript needs more than the source has, types are in a folder `types` beside it.
    const source = `${from.replace('/types/', '/')}.js`;
    const imported = posix.join(manifest.name, path);
    const entry = { source, types: from.includes('/types/') ? `${from}.ts` : source };
    made.entries[imported] = entry;
    made.hasCore ||= Boolean(workerd);
    if (into === 'page') {
      Object.assign(entry, { single: name });
      made.singles[name] = source;
      continue;
    }
    made.modules[name] = source;
    if (NOT_FOR_PAGES.includes(folder ? imported : name) || name.startsWith('adapters/')) continue;
    const page = path === '.' ? manifest.name.replace('@abp-bridge/', '') : name;
    Object.assign(entry, { page });
    made.pages[page] = source;
  }
  return made;
}

const neighbours = readdirSync(new URL('packages', root))
  .map((name) => `packages/${name}`)
  .filter((folder) => existsSync(new URL(`${folder}/package.json`, root)));
/** The packages of npm, the main one first. */
export const PACKAGES = ['', ...neighbours].map(read);
export const [MAIN] = PACKAGES;
/** All entries, by the names under which they are imported. */
export const ENTRIES = Object.assign({}, ...PACKAGES.map(({ entries }) => entries));
/** The main entry for pages in one file, with everything that it may load. */
export const BUNDLE = String(MAIN.manifest.exports['./page/bundle'].default);
