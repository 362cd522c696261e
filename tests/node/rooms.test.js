// Imports between rooms, parts and packages point one way: as tests/support/rooms.js lists them.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ENTRIES, PACKAGES } from '../../scripts/entries.js';
import { DOORS, PARTS, ROOMS, UNITS } from '../support/rooms.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const foldersOf = (path) =>
  readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
const rooms = foldersOf('js').filter((name) => name !== 'types');
const parts = foldersOf('parts');

/** The specifiers that the code of a file imports, statically or on demand. */
const importedIn = (path) =>
  [
    ...readFileSync(path, 'utf8')
      .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
      .replace(/^(?:import|export) type [\s\S]*?;$/gm, '')
      .matchAll(/(?:\bfrom|\bimport\(|^import)\s*'([^']+)'/gm),
  ].map(([, to]) => to);

/** The files among these: their paths from the root, in pieces. */
const filesIn = (path) =>
  importedIn(path)
    .filter((to) => /^(\.|\/(js|parts|packages)\/)/.test(to))
    .map((to) => (to.startsWith('/') ? join(root, to) : join(dirname(path), to)))
    .map((file) => relative(root, file).split(sep));

/** @param {string} folder */
const sourcesIn = (folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((name) => /\.[jt]s$/.test(name))
    .map((name) => join(root, folder, name));

/**
 * @param {string} folder
 * @param {(to: string[]) => boolean} allowed
 */
const wrongIn = (folder, allowed) =>
  sourcesIn(folder).flatMap((path) =>
    filesIn(path)
      .filter((to) => to[0] !== 'dist' && !allowed(to))
      .map((to) => `${relative(root, path)} -> ${to.join('/')}`),
  );

test('rooms of the shim import only from those that are listed', () => {
  const wrong = rooms.flatMap((room) =>
    wrongIn(`js/${room}`, ([top, other]) => {
      if (top === 'parts') return ROOMS.get(room).has(`parts/${other}`);
      const isCommon = other === 'common' && room !== 'common';
      return top === 'js' && (other === room || isCommon || ROOMS.get(room).has(other));
    }),
  );
  assert.deepEqual(wrong, []);
});

test('parts import only from those that are listed, and from the doors of the shim', () => {
  const wrong = parts.flatMap((name) =>
    wrongIn(`parts/${name}`, ([top, other, file]) =>
      top === 'parts'
        ? other === name || PARTS.get(name).has(other)
        : top === 'js' && DOORS.get(other)?.has(file.replace(/\.js$/, '')),
    ),
  );
  assert.deepEqual(wrong, []);
});

test('each room and each part is listed', () => {
  assert.deepEqual([...ROOMS.keys()].sort(), rooms.sort());
  assert.deepEqual([...PARTS.keys()].sort(), parts.sort());
});

test('every door is used', () => {
  const used = new Set(
    sourcesIn('parts').flatMap((path) => filesIn(path).map((to) => to.join('/'))),
  );
  const unused = [...DOORS].flatMap(([room, names]) =>
    [...names].map((name) => `js/${room}/${name}.js`).filter((path) => !used.has(path)),
  );
  assert.deepEqual(unused, []);
});

test('neighbours import each other and the main package by the names of entries, and depend on them', () => {
  const wrong = PACKAGES.filter(({ folder }) => folder).flatMap(({ name, folder, manifest }) => {
    const owners = [name, ...Object.keys(manifest.dependencies)];
    const needed = PACKAGES.filter((each) => owners.includes(each.name));
    const entries = needed.flatMap((each) => Object.keys(each.entries));
    const ours = (to) => /^@?abp-bridge(\/|$)/.test(to);
    const unknown = sourcesIn(`${folder}/src`).flatMap((path) =>
      importedIn(path)
        .filter((to) => ours(to) && !entries.includes(to))
        .map((to) => `${relative(root, path)} -> ${to}`),
    );
    return [...unknown, ...wrongIn(`${folder}/src`, (to) => to.join('/').startsWith(`${folder}/`))];
  });
  assert.deepEqual(wrong, []);
});

test('the door for neighbours has nothing that none of them uses', () => {
  const neighbours = PACKAGES.filter(({ folder, entries }) => folder && Object.keys(entries).length)
    .flatMap(({ folder }) => sourcesIn(`${folder}/src`))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
  const door = readFileSync(join(root, 'parts/driver/index.js'), 'utf8');
  const names = [...door.matchAll(/^export (?:\* as (\w+)|\{([^}]*)\})/gm)].flatMap(
    ([, one, many]) => (one ? [one] : many.match(/\w+/g)),
  );
  assert.ok(names.length > 50);
  assert.deepEqual(
    names.filter((name) => !new RegExp(`\\b${name}\\b`).test(neighbours)),
    [],
  );
});

test('tests look from outside: they import entries, and the units that are listed', () => {
  const entries = Object.values(ENTRIES).map(({ source }) => source);
  const imports = ['tests', ...foldersOf('packages').map((name) => `packages/${name}/tests`)]
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`),
    )
    .filter((path) => /\.[jt]s$/.test(path) && !/node_modules|\/bench\//.test(path))
    .flatMap((path) => filesIn(join(root, path)).map((to) => [path, to.join('/')]))
    .map(([path, to]) => [path, to.replace(/\?.*/, '')])
    .filter(([, to]) => /^(js|parts|packages\/[\w-]+\/src)\//.test(to))
    .filter(([, to]) => !entries.includes(to) && !to.startsWith('packages/gateway/'));
  const wrong = imports.filter(([, to]) => !UNITS.includes(to));
  assert.deepEqual(wrong, []);
  const unused = UNITS.filter((unit) => !imports.some(([, to]) => to === unit));
  assert.deepEqual(unused, []);
});
