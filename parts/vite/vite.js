/**
 * A plugin for Vite. A page that is built asks for the core beside its own scripts, not a round
 * trip later, when these run.
 *
 * How it is made. The core is a chunk of its own, which is imported by `import()`. Vite asks
 * `resolveDependencies` what a page preloads with a script, and a script with what it imports on
 * demand: with a script that begins to load the core, the core.
 */

/**
 * @typedef {Record<string, { facadeModuleId?: string | null, imports?: string[],
 *   dynamicImports?: string[] }>} Bundle What is built: each file, and what it imports.
 */
/**
 * @typedef {object} Host What asks for a file: a page, or a script.
 * @property {string} hostId
 * @property {'html' | 'js'} hostType
 */
/**
 * @typedef {(file: string, dependencies: string[], host: Host) => string[]} Resolve Says what is
 *   preloaded with a file.
 */

/**
 * Makes the plugin, for `plugins` of the configuration.
 * @param {{ schemas?: boolean }} [options] `schemas`: apps have JSON Schemas, so that what checks
 *   these is preloaded, too (false)
 */
export function abpBridge({ schemas = false } = {}) {
  const early = schemas ? /\/parts\/(abp-wasm|schema)\.js$/ : /\/parts\/abp-wasm\.js$/;
  /** @type {Bundle} */
  let bundle = {};
  /**
   * What is loaded with a file.
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
