// Imports between the rooms of js/ point where docs/architecture.md says, and nowhere else.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const js = join(root, 'js');
const roomOf = (path) => relative(js, path).split(sep)[0];
const rooms = readdirSync(js, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** What each room may import from, as the document says. */
function allowed() {
  const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const lines = text.match(/Imports point one way\.[\s\S]*?```\n([\s\S]*?)```/)[1].trim();
  return new Map(
    lines.split('\n').map((line) => {
      const [room, others] = line.split('->');
      const names = others.match(/[a-z2-]+/g).filter((word) => rooms.includes(word));
      return [room.trim(), new Set([...names, 'common', room.trim()])];
    }),
  );
}

/** The rooms that a file imports from at run time, statically or on demand. */
function importsOf(path) {
  const code = readFileSync(path, 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const found = code.matchAll(/(?:\bfrom|\bimport\(|^import)\s*'(\.[^']+)'/gm);
  return [...found]
    .map(([, to]) => roomOf(join(dirname(path), to)))
    .filter((room) => rooms.includes(room));
}

test('rooms import only from those that the architecture names', () => {
  const may = allowed();
  const wrong = [];
  for (const room of rooms) {
    if (room === 'types') continue;
    for (const name of readdirSync(join(js, room)).filter((file) => file.endsWith('.js'))) {
      for (const other of importsOf(join(js, room, name))) {
        const ok = room === 'common' ? other === 'common' : may.get(room)?.has(other);
        if (!ok) wrong.push(`${room}/${name} -> ${other}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});
