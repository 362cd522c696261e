/** What bundlers make: what a page downloads, and the pages of the tests. */
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** Leaves out what is loaded only where it is needed: what is imported by `import()`. @type {import('esbuild').Plugin} */
export const withoutLazy = {
  name: 'without lazy',
  setup: ({ onResolve }) =>
    onResolve({ filter: /./ }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path, external: true } : undefined,
    ),
};

/** The library in one minified file. @returns {Promise<number>} bytes, gzipped, of both sides together */
export async function bundleSize() {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('../../js/index.js', import.meta.url))],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    plugins: [withoutLazy],
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
/** `/js/index.js` is the page's way to name it. */
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
 * Bundles the scripts of a folder, which share what they have in common: a page is a few requests then, not forty,
 * and most of what a browser run costs is requests.
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
