// What the package has beyond the sources and dist/lib: its entries for pages without a bundler and for Cloudflare Workers,
// and type declarations.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { BUNDLE, ENTRIES, EXPORTS, MODULES, PAGES, SINGLES } from './entries.js';
import { buildModules } from './modules.js';
import { buildSingles } from './singles.js';
import { buildWorkerd } from './workerd.js';

// Of older sources.
for (const folder of ['types', 'workerd'])
  rmSync(`dist/${folder}`, { recursive: true, force: true });
await buildModules(PAGES, 'dist/page', { forPages: true });
await buildSingles(SINGLES, 'dist/page');
await buildWorkerd(MODULES, 'dist/workerd');
// The main entry with all that it may load, for whoever wants one file.
await build({
  entryPoints: [ENTRIES['.'].source],
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  outfile: BUNDLE,
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

// Declarations that no entry leads to are nothing to a user.
const declared = new Set(
  Object.values(EXPORTS).flatMap(({ types }) => (types ? [join(types)] : [])),
);
for (const path of declared) {
  for (const [, to] of readFileSync(path, 'utf8').matchAll(/['"](\.{1,2}\/[^'"]+)\.[jt]s['"]/g))
    declared.add(`${join(path, '..', to)}.d.ts`);
}
for (const name of readdirSync('dist/types', { recursive: true, encoding: 'utf8' })) {
  const path = join('dist/types', name);
  if (path.endsWith('.d.ts') && !declared.has(path)) rmSync(path);
}
