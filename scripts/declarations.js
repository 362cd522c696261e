// Makes dist/types of each package, without unused declarations: those that no entry refers to.
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
for (const { name, folder, manifest, entries } of PACKAGES) {
  const from = folder ? join(made, folder, 'src') : made;
  const out = join(folder, 'dist/types');
  const declared = new Set(
    Object.values(entries).map(({ types }) => join(made, types.replace(/[jt]s$/, 'd.ts'))),
  );
  // TypeScript may name a type that it has inferred by any package in which it finds it.
  const needed = { [name]: '', ...manifest.dependencies, ...manifest.peerDependencies };
  for (const path of declared) {
    const text = readFileSync(path, 'utf8');
    for (const [, to] of text.matchAll(/['"](\.{1,2}\/[^'"]+)\.[jt]s['"]/g))
      declared.add(`${join(path, '..', to)}.d.ts`);
    for (const [, to] of text.matchAll(/(?:from |import\()['"]((?:@[^'"/]+\/)?[^'"./][^'"/]*)/g))
      if (!(to in needed)) throw new Error(`${path} imports ${to}, which ${name} does not need`);
  }
  const outside = [...declared].filter((path) => !path.startsWith(`${from}/`));
  if (outside.length) throw new Error(`${folder}: its types lead to ${outside.join(', ')}`);
  rmSync(out, { recursive: true, force: true });
  for (const path of declared) cpSync(path, join(out, path.slice(from.length)));
}
