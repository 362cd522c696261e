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
  './pool': { source: 'js/workers/pool.js', page: 'pool' },
  './recorder': { source: 'js/recorder/index.js', page: 'recorder' },
  './inspector': { source: 'js/inspector/index.js', page: 'inspector' },
  './discover': { source: 'js/discovery/discover.js', page: 'discover' },
  './automation': { source: 'js/automation/index.js' },
  './webmcp': { source: 'js/webmcp/index.js', page: 'webmcp' },
  './a2a': { source: 'js/a2a/index.js', page: 'a2a' },
  './rpc': { source: 'js/rpc/index.js', page: 'rpc' },
  './mcp-apps': { source: 'js/mcp-apps/index.js', page: 'mcp-apps' },
  './mcp-apps/sandbox': { source: 'js/mcp-apps/sandbox.js', page: 'mcp-apps/sandbox' },
  './mcp-apps/view': { source: 'js/mcp-apps/view.js', single: 'mcp-apps/view' },
  './mcp-apps/app': { source: 'js/mcp-apps/app.js', single: 'mcp-apps/app' },
  './mcp': { source: 'js/rpc/mcp.js' },
  './react': { source: 'js/frameworks/react.js' },
  './vue': { source: 'js/frameworks/vue.js' },
  './svelte': { source: 'js/frameworks/svelte.js' },
  './adapters/acp': { source: 'js/adapters/acp.js' },
  './adapters/mcp': { source: 'js/adapters/mcp.js' },
  './adapters/vscode-jsonrpc': { source: 'js/adapters/vscode-jsonrpc.js' },
};

/** The files of dist/page: their names without `.js`, and the sources. @type {Record<string, string>} */
export const PAGES = Object.fromEntries(
  Object.values(ENTRIES).flatMap(({ source, page }) => (page ? [[page, source]] : [])),
);

/** @param {string} path of an entry */
const workerdName = (path) => path.slice(2) || 'index';

/**
 * The files of dist/workerd: every entry that has no file of its own already, because what entries share must be one
 * thing to all of them.
 * @type {Record<string, string>}
 */
export const WORKERD = Object.fromEntries(
  Object.entries(ENTRIES).flatMap(([path, { source, single }]) =>
    single ? [] : [[workerdName(path), source]],
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
 * What package.json's `exports` must be. `workerd` is the condition of Cloudflare Workers. `./page` is the main entry for pages
 * without a bundler, `./page/bundle` in one file.
 */
export const EXPORTS = Object.fromEntries([
  ...Object.entries(ENTRIES).map(([path, { source, single }]) => [
    path,
    single
      ? { types: typesOf(path), default: `./dist/page/${single}.js` }
      : {
          types: typesOf(path),
          workerd: `./dist/workerd/${workerdName(path)}.js`,
          default: `./${source}`,
        },
  ]),
  ['./page', { types: typesOf('.'), default: './dist/page/abp-bridge.js' }],
  ['./page/bundle', { types: typesOf('.'), default: BUNDLE }],
]);
