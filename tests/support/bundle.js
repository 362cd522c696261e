/** What a page downloads: the library in one minified file, as a bundler makes it. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** Files that are loaded only where they are needed. */
export const LAZY = ['*/schema.js', '*/abp-js.js', '*/manifest.js', '*/local-agent.js'];

/** @returns {Promise<number>} bytes, gzipped, of both sides together */
export async function bundleSize() {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('../../js/index.js', import.meta.url))],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    external: LAZY,
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

/** Bundles pages that use other people's packages: tests/browser/pages/NAME/*.js to build/pages/NAME. */
export async function bundlePages(name) {
  const from = fileURLToPath(new URL(`../browser/pages/${name}/`, import.meta.url));
  await build({
    entryPoints: ['host', 'app', 'worker'].map((page) => `${from}${page}.js`),
    outdir: fileURLToPath(new URL(`../../build/pages/${name}`, import.meta.url)),
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    logLevel: 'error',
  });
}
