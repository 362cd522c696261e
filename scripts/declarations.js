// Makes dist/types of each package, without the declarations that no entry leads to, which are
// nothing to a user.
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGES } from './entries.js';

const made = 'build/types';
rmSync(made, { recursive: true, force: true }); // of older sources
const options = `--noEmit false --declaration --emitDeclarationOnly --rootDir . --outDir ${made}`;
execFileSync('npx', ['--no-install', 'tsc', '-p', 'tsconfig.check.json', ...options.split(' ')], {
  stdio: 'inherit',
});
for (const { folder, entries } of PACKAGES) {
  const from = folder ? join(made, folder, 'src') : made;
  const out = join(folder, 'dist/types');
  const declared = new Set(
    Object.values(entries).map(({ types }) => join(made, types.replace(/[jt]s$/, 'd.ts'))),
  );
  for (const path of declared) {
    for (const [, to] of readFileSync(path, 'utf8').matchAll(/['"](\.{1,2}\/[^'"]+)\.[jt]s['"]/g))
      declared.add(`${join(path, '..', to)}.d.ts`);
  }
  const outside = [...declared].filter((path) => !path.startsWith(`${from}/`));
  if (outside.length) throw new Error(`${folder}: its types lead to ${outside.join(', ')}`);
  rmSync(out, { recursive: true, force: true });
  for (const path of declared) cpSync(path, join(out, path.slice(from.length)));
}
