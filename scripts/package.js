// What the package has beyond the sources: its entries for pages without a bundler, and type declarations.
import { execFileSync } from 'node:child_process';
import { build } from 'esbuild';
import { PAGES, SINGLES } from './entries.js';
import { buildSingles } from './singles.js';

await build({
  entryPoints: PAGES,
  bundle: true,
  minify: true,
  // What several entries use is there once, and what few pages need, such as the schema validator, loads when
  // it is needed.
  splitting: true,
  format: 'esm',
  target: 'es2022',
  outdir: 'dist/page',
  chunkNames: '[name]-[hash]',
});
await buildSingles(SINGLES, 'dist/page');
execFileSync(
  'npx',
  [
    '--no-install',
    'tsc',
    '-p',
    '.',
    '--noEmit',
    'false',
    '--declaration',
    '--emitDeclarationOnly',
    '--rootDir',
    '.',
    '--outDir',
    'dist/types',
  ],
  { stdio: 'inherit' },
);
