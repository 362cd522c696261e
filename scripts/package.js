// What the package has beyond the sources: its entries for pages without a bundler and for Cloudflare Workers, and type
// declarations.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { build } from 'esbuild';
import { BUNDLE, ENTRIES, SINGLES, WORKERD } from './entries.js';
import { FOR_PAGES, buildPages } from './pages.js';
import { buildSingles } from './singles.js';
import { buildWorkerd } from './workerd.js';

// Chunks of older sources.
for (const folder of ['page', 'workerd'])
  rmSync(`dist/${folder}`, { recursive: true, force: true });
await buildPages('dist/page');
await buildSingles(SINGLES, 'dist/page');
await buildWorkerd(WORKERD, 'dist/workerd');
// The main entry with all that it may load, for whoever wants one file.
await build({ ...FOR_PAGES, entryPoints: [ENTRIES['.'].source], outfile: BUNDLE });
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
