// Entries for Cloudflare Workers. WebAssembly may not be compiled there while a Worker runs; a module that is imported
// has been compiled when the Worker starts.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildModules } from './modules.js';

/** Imports the cores as modules, and leaves out their text and the cores as JavaScript. @type {import('@rollup/wasm-node').Plugin} */
const coresImported = {
  name: 'cores imported',
  resolveId: (id) => (id.startsWith('cores/') ? { id, external: true } : null),
  // They lie beside the entries.
  renderChunk(code, { fileName }) {
    const folder = '../'.repeat(fileName.split('/').length - 1) || './';
    return { code: code.replaceAll("'cores/", `'${folder}`), map: null };
  },
  load(id) {
    const [, name] = /\/dist\/(\w+)-wasm\.js$/.exec(id) ?? [];
    if (name) return `import core from 'cores/${name}.wasm'; export default core;`;
    if (/\/dist\/\w+-js\.js$/.test(id)) return 'export default undefined;';
    if (!id.endsWith('/js/core/load.js')) return null;
    return `export const load = async (module) =>
      ({ kind: 'wasm', instantiate: (env) => new WebAssembly.Instance(module, { env }).exports });`;
  },
};

/**
 * Makes them, after the modules in build/wasm.
 * @param {Record<string, string>} files sources by the names of the files, without `.js`
 * @param {string} outdir where they are written
 */
export async function buildWorkerd(files, outdir) {
  await buildModules(files, outdir, { cores: coresImported });
  for (const name of ['abp', 'rpc', 'tasks'])
    copyFileSync(`build/wasm/${name}.wasm`, join(outdir, `${name}.wasm`));
}
