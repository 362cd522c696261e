/** What a page downloads: the library in one minified file, as a bundler makes it. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** @returns {Promise<number>} bytes, gzipped, of both sides together */
export async function bundleSize() {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('../../js/index.js', import.meta.url))],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    // Loaded only where they are needed.
    external: ['@cfworker/json-schema', '*/abp-js.js', '*/manifest.js'],
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}
