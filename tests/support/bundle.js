/** The pages of the tests, bundled. */
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** `/parts/main/index.js` is the page's way to name it. */
const fromRoot = {
  name: 'from the root',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\// }, ({ kind, path }) =>
      kind === 'entry-point' ? undefined : { path: join(root, path) },
    ),
};

/** Svelte's components. @type {import('esbuild').Plugin} */
const components = {
  name: 'components of Svelte',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
      const { compile } = await import('svelte/compiler');
      return { contents: compile(readFileSync(path, 'utf8'), { filename: path }).js.code };
    }),
};

/**
 * Bundles the scripts of a folder, which share what they have in common: a page is a few requests
 * then, not forty, and most of what a browser run costs is requests.
 * @param {string} folder from the root of the repository
 * @returns {Promise<Map<string, string>>} texts by their paths on the server
 */
export async function bundleFolder(folder) {
  const from = join(root, folder);
  const { outputFiles } = await build({
    entryPoints: readdirSync(from)
      .filter((name) => name.endsWith('.js'))
      .map((name) => join(from, name)),
    outdir: from,
    write: false,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    external: ['node:*'],
    logLevel: 'error',
    plugins: [fromRoot, components],
  });
  return new Map(outputFiles.map(({ path, text }) => [`/${relative(root, path)}`, text]));
}
