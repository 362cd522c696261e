/**
 * What the package offers, from `exports` of package.json: files of dist/lib, with dist/workerd for
 * Cloudflare Workers; and, in dist/page, files that need no other and no WebAssembly, since the
 * core is inside, as JavaScript. `./page` and `./page/bundle` are the main entry for pages without
 * a bundler.
 */
import { readFileSync } from 'node:fs';

/** @type {Record<string, any>} */
export const EXPORTS = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).exports;
/** The main entry for pages in one file, with all that it may load. */
export const BUNDLE = EXPORTS['./page/bundle'].default;
const NOT_FOR_PAGES = 'keys-sqlite automation a2a-store tasks react vue svelte vite'.split(' ');

/**
 * Each entry: its source, the source of its types if that is another, and the name of its file in
 * dist/page: `page`, if it is meant for pages without a bundler, or `single`, if it needs no other.
 * @type {Record<string, { source: string, types?: string, page?: string, single?: string }>}
 */
export const ENTRIES = {};
/**
 * The sources of the files of dist/page, by their names without `.js`.
 * @type {Record<string, string>}
 */
export const PAGES = {};
/** The same, of those that need no other. @type {Record<string, string>} */
export const SINGLES = {};
/**
 * The same, of dist/lib and of dist/workerd. What entries share is one thing to all of these.
 * @type {Record<string, string>}
 */
export const MODULES = {};

for (const [path, { types, default: file }] of Object.entries(EXPORTS)) {
  if (/^\.\/(page(\/bundle)?|package\.json)$/.test(path)) continue;
  const [, declared] = /^\.\/dist\/types\/(.+)\.d\.ts$/.exec(types) ?? [];
  const [, folder, name] = /^\.\/dist\/(lib|page)\/(.+)\.js$/.exec(file) ?? [];
  const source = `${String(declared).replace('/types/', '/src/')}.js`;
  const entry = (ENTRIES[path] = { source });
  if (path === '.') Object.assign(entry, { types: `${declared}.ts` });
  if (folder === 'page') {
    Object.assign(entry, { single: name });
    SINGLES[name] = source;
    continue;
  }
  MODULES[name] = source;
  if (NOT_FOR_PAGES.includes(name) || name.startsWith('adapters/')) continue;
  const page = path === '.' ? 'abp-bridge' : name;
  Object.assign(entry, { page });
  PAGES[page] = source;
}
