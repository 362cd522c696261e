// Writes the enumerators of a header as JavaScript constants, so that the shim cannot drift from the core:
// ABP_SESSION_READY becomes SESSION_READY. A bundler puts the numbers where the names stand.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

const [, , from, to] = process.argv;
const header = readFileSync(from, 'utf8').replace(/\/\*[^]*?\*\//g, '');
const lines = [];
for (const [, body] of header.matchAll(/enum \w+ \{([^}]*)\}/g)) {
  let next = 0;
  for (const entry of body.split(',').map((text) => text.trim())) {
    if (!entry) continue;
    const [, name, value] = /^ABP_(\w+)(?: = (-?\d+))?$/.exec(entry) ?? [];
    if (!name) throw new Error(`${from}: cannot read the enumerator "${entry}"`);
    next = value === undefined ? next : Number(value);
    lines.push(`export const ${name} = ${next++};`);
  }
}
writeFileSync(to, `// Made by the build from src/${basename(from)}.\n${lines.join('\n')}\n`);
