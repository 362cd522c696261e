/**
 * What the package offers: each entry, its source, the source of its types if that is another, and the name of its file
 * for pages without a bundler, if it is meant for pages. `single` is that of a file that needs no other and no WebAssembly:
 * the core is inside, as JavaScript, and the entry is this file. package.json's exports, the files of dist/page, the tests
 * of the package and those of its types are made from this list or checked against it.
 * @type {Record<string, { source: string, types?: string, page?: string, single?: string }>}
 */
export const ENTRIES = {
  '.': { source: 'js/index.js', types: 'js/types/index.ts', page: 'abp-bridge' },
  './websocket': { source: 'js/transports/websocket.js', page: 'websocket' },
  './pool': { source: 'packages/workers/src/pool.js', page: 'pool' },
  './keys-indexeddb': { source: 'packages/keys/src/indexeddb.js', page: 'keys-indexeddb' },
  './keys-sqlite': { source: 'packages/keys/src/sqlite.js' },
  './recorder': { source: 'packages/inspector/src/recorder/index.js', page: 'recorder' },
  './inspector': { source: 'packages/inspector/src/index.js', page: 'inspector' },
  './discover': { source: 'packages/automation/src/discovery/discover.js', page: 'discover' },
  './automation': { source: 'packages/automation/src/index.js' },
  './webmcp': { source: 'packages/webmcp/src/index.js', page: 'webmcp' },
  './settled': { source: 'packages/webmcp/src/settled.js', single: 'settled' },
  './a2a': { source: 'packages/a2a/src/index.js', page: 'a2a' },
  './a2a-store': { source: 'packages/a2a/src/store/index.js' },
  './rpc': { source: 'packages/rpc/src/index.js', page: 'rpc' },
  './mcp-apps': { source: 'packages/mcp-apps/src/index.js', page: 'mcp-apps' },
  './mcp-apps/sandbox': { source: 'packages/mcp-apps/src/sandbox.js', page: 'mcp-apps/sandbox' },
  './mcp-apps/view': { source: 'packages/mcp-apps/src/view.js', single: 'mcp-apps/view' },
  './mcp-apps/app': { source: 'packages/mcp-apps/src/app.js', single: 'mcp-apps/app' },
  './mcp': { source: 'packages/rpc/src/mcp.js' },
  './react': { source: 'packages/frameworks/src/react.js' },
  './vue': { source: 'packages/frameworks/src/vue.js' },
  './svelte': { source: 'packages/frameworks/src/svelte.js' },
  './adapters/acp': { source: 'packages/rpc/src/adapters/acp.js' },
  './adapters/mcp': { source: 'packages/rpc/src/adapters/mcp.js' },
  './adapters/vscode-jsonrpc': { source: 'packages/rpc/src/adapters/vscode-jsonrpc.js' },
  './warnings': { source: 'js/common/warnings.js', page: 'warnings' },
};

/** The files of dist/page: their names without `.js`, and the sources. @type {Record<string, string>} */
export const PAGES = Object.fromEntries(
  Object.values(ENTRIES).flatMap(({ source, page }) => (page ? [[page, source]] : [])),
);

/** @param {string} path of an entry */
const nameOf = (path) => path.slice(2) || 'index';

/**
 * The files of dist/lib and of dist/workerd: every entry that has no file of its own already, because what entries share
 * must be one thing to all of them.
 * @type {Record<string, string>}
 */
export const MODULES = Object.fromEntries(
  Object.entries(ENTRIES).flatMap(([path, { source, single }]) =>
    single ? [] : [[nameOf(path), source]],
  ),
);

/** The same, of those that need no other file. @type {Record<string, string>} */
export const SINGLES = Object.fromEntries(
  Object.values(ENTRIES).flatMap(({ source, single }) => (single ? [[single, source]] : [])),
);

/** The main entry for pages in one file, with all that it may load. */
export const BUNDLE = './dist/page/abp-bridge.bundle.js';

/** @param {string} path */
const typesOf = (path) => {
  const { source, types = source } = ENTRIES[path];
  return `./dist/types/${types.replace(/\.[jt]s$/, '.d.ts')}`;
};

/**
 * What package.json's `exports` must be: the built modules. `workerd` is the condition of Cloudflare Workers. `./page` is the main entry for pages
 * without a bundler, `./page/bundle` in one file.
 */
export const EXPORTS = Object.fromEntries([
  ...Object.entries(ENTRIES).map(([path, { single }]) => [
    path,
    single
      ? { types: typesOf(path), default: `./dist/page/${single}.js` }
      : {
          types: typesOf(path),
          workerd: `./dist/workerd/${nameOf(path)}.js`,
          default: `./dist/lib/${nameOf(path)}.js`,
        },
  ]),
  ['./page', { types: typesOf('.'), default: './dist/page/abp-bridge.js' }],
  ['./page/bundle', { types: typesOf('.'), default: BUNDLE }],
  ['./package.json', './package.json'], // bundlers' plugins and tools read it
]);
