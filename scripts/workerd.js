// Entries for Cloudflare Workers. WebAssembly may not be compiled there while a Worker runs; a module that is imported
// has been compiled when the Worker starts.
import { build } from 'esbuild';

/** Imports the core as a module, and leaves out its text and the core as JavaScript. */
const coreImported = {
  name: 'core imported',
  /** @param {import('esbuild').PluginBuild} build */
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]dist[\\/]\w+-wasm\.js$/ }, ({ path }) => {
      const [, name] = /(\w+)-wasm\.js$/.exec(path) ?? [];
      return { contents: `export { default } from './${name}.wasm';`, resolveDir: 'build/wasm' };
    });
    onLoad({ filter: /[\\/]dist[\\/]\w+-js\.js$/ }, () => ({
      contents: 'export default undefined;',
    }));
    onLoad({ filter: /[\\/]js[\\/]core[\\/]load\.js$/ }, () => ({
      contents: `export const load = async (module) =>
        ({ kind: 'wasm', instantiate: (env) => new WebAssembly.Instance(module, { env }).exports });`,
    }));
  },
};

/**
 * Makes them, after the modules in build/wasm.
 * @param {Record<string, string>} files sources by the names of the files, without `.js`
 * @param {string} outdir where they are written
 */
export async function buildWorkerd(files, outdir) {
  await build({
    entryPoints: files,
    bundle: true,
    splitting: true,
    packages: 'external',
    external: ['node:*'],
    format: 'esm',
    target: 'es2022',
    outdir,
    chunkNames: '[name]-[hash]',
    loader: { '.wasm': 'copy' },
    assetNames: '[name]',
    plugins: [coreImported],
  });
}
