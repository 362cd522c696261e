// Makes dist/types, and leaves out the declarations that no entry leads to, which are nothing to a
// user.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { EXPORTS } from './entries.js';

const out = 'dist/types';
rmSync(out, { recursive: true, force: true }); // of older sources
const options = `--noEmit false --declaration --emitDeclarationOnly --rootDir . --outDir ${out}`;
execFileSync('npx', ['--no-install', 'tsc', '-p', '.', ...options.split(' ')], {
  stdio: 'inherit',
});
const declared = new Set(
  Object.values(EXPORTS).flatMap(({ types }) => (types ? [join(types)] : [])),
);
for (const path of declared) {
  for (const [, to] of readFileSync(path, 'utf8').matchAll(/['"](\.{1,2}\/[^'"]+)\.[jt]s['"]/g))
    declared.add(`${join(path, '..', to)}.d.ts`);
}
for (const name of readdirSync(out, { recursive: true, encoding: 'utf8' })) {
  const path = join(out, name);
  if (path.endsWith('.d.ts') && !declared.has(path)) rmSync(path);
}
