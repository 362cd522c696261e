// What the package has beyond the sources: a bundle for pages without a bundler, and type declarations.
import { execFileSync } from 'node:child_process';
import { build } from 'esbuild';

await build({
  entryPoints: { 'abp-bridge': 'js/index.js' },
  bundle: true,
  minify: true,
  splitting: true, // the schema validator stays a file of its own, which loads when it is needed
  format: 'esm',
  target: 'es2022',
  outdir: 'dist/page',
  chunkNames: '[name]-[hash]',
});
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
