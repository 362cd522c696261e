/**
 * A plugin for Vite. A built page requests the core together with its own scripts, not a round trip
 * later, when these run.
 *
 * The core is a chunk of its own, which is imported by `import()`. Vite calls `resolveDependencies`
 * for the files to preload with a page's script, and with a script's dynamic imports. For a script
 * that starts to load the core, the plugin adds the core.
 */

/**
 * @typedef {Record<string, { facadeModuleId?: string | null, imports?: string[],
 *   dynamicImports?: string[] }>} Bundle The built files, with their imports.
 */
/**
 * @typedef {object} Host The page or script that requests a file.
 * @property {string} hostId
 * @property {'html' | 'js'} hostType
 */
/**
 * @typedef {(file: string, dependencies: string[], host: Host) => string[]} Resolve Returns the
 *   files to preload with a file.
 */

/**
 * Makes the plugin, for the option `plugins` of Vite.
 * @param {{ schemas?: boolean }} [options] `schemas`: whether apps have JSON Schemas, so that the
 *   code that checks them is preloaded, too (false)
 */
export function abpBridge({ schemas = false } = {}) {
  const early = schemas ? /\/parts\/(abp-wasm|schema)\.js$/ : /\/parts\/abp-wasm\.js$/;
  /** @type {Bundle} */
  let bundle = {};
  /**
   * The files that are loaded with a file.
   * @param {string} file
   */
  const loadedWith = (file) => {
    const files = new Set([file]);
    for (const each of files) for (const other of bundle[each]?.imports ?? []) files.add(other);
    return files;
  };
  return {
    name: 'abp-bridge',
    enforce: /** @type {const} */ ('pre'),
    apply: /** @type {const} */ ('build'),
    /**
     * @param {{ build?: { modulePreload?: boolean | { resolveDependencies?: Resolve } } }} config
     */
    config({ build: { modulePreload = true } = {} }) {
      const resolve = typeof modulePreload === 'object' && modulePreload.resolveDependencies;
      /** @type {Resolve} */
      const resolveDependencies = (file, dependencies, host) => {
        const given = resolve ? resolve(file, dependencies, host) : dependencies;
        const before = host.hostType === 'js' ? loadedWith(host.hostId) : new Set();
        const files = [...loadedWith(file)].filter((each) => !before.has(each));
        const begun = files
          .flatMap((each) => bundle[each]?.dynamicImports ?? [])
          .filter((each) => early.test(bundle[each]?.facadeModuleId ?? ''))
          .flatMap((each) => [...loadedWith(each)])
          .filter((each) => !before.has(each) && !files.includes(each));
        return [...new Set([...given, ...begun])];
      };
      return modulePreload && { build: { modulePreload: { resolveDependencies } } };
    },
    /**
     * @param {unknown} _options
     * @param {Bundle} made
     */
    generateBundle(_options, made) {
      bundle = made;
    },
  };
}
