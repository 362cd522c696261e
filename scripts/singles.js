// Files that need no other: views of MCP Apps are one document, and may load nothing and compile no WebAssembly.
import { build } from 'esbuild';

/** Takes the core as JavaScript, and leaves out the WebAssembly. */
const coreInside = {
  name: 'core inside',
  /** @param {import('esbuild').PluginBuild} build */
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]dist[\\/]\w+-wasm\.js$/ }, () => ({ contents: "export default '';" }));
    onLoad({ filter: /[\\/]js[\\/]core[\\/]load\.js$/ }, () => ({
      contents: `export const load = async (_deflated, fallback) =>
        ({ kind: 'js', instantiate: (await fallback()).default });`,
    }));
  },
};

/**
 * Makes each of them.
 * @param {Record<string, string>} files sources by the names of the files, without `.js`
 * @param {string} [outdir] where they are written; without it they are only returned
 * @returns {Promise<import('esbuild').OutputFile[]>}
 */
export async function buildSingles(files, outdir) {
  const { outputFiles } = await build({
    entryPoints: files,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    outdir: outdir ?? '.',
    // It may stand in a document, where this would end it.
    supported: { 'inline-script': false },
    write: outdir !== undefined,
    plugins: [coreInside],
  });
  return outputFiles ?? [];
}
