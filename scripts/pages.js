// The files for pages without a bundler.
import { build } from 'esbuild';
import { PAGES } from './entries.js';

/** How what a page loads is bundled. @type {import('esbuild').BuildOptions} */
export const FOR_PAGES = {
  bundle: true,
  minify: true,
  sourcemap: true,
  format: 'esm',
  target: 'es2022',
};

/**
 * Makes them. What several entries use is there once, and what few pages need, such as the schema validator, loads when
 * it is needed.
 * @param {string} outdir where they are written
 */
export const buildPages = (outdir) =>
  build({
    ...FOR_PAGES,
    entryPoints: PAGES,
    splitting: true,
    outdir,
    chunkNames: '[name]-[hash]',
  });
