// Imports between the rooms of js/ and the packages point where docs/architecture.md says, and
// nowhere else.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ENTRIES } from '../../scripts/entries.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
const foldersOf = (path) =>
  readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
const rooms = foldersOf('js');
// The gateway is a package of its own on npm: it can import nothing but entries.
const packages = foldersOf('packages').filter((name) => name !== 'gateway');

/**
 * The lines of the document's list that follows these words: names by the name before the arrow.
 */
function listed(words) {
  const [, list] = text.slice(text.indexOf(words)).match(/```\n([\s\S]*?)```/);
  return new Map(
    list
      .trim()
      .split('\n')
      .map((line) => {
        const [name, others] = line.split('->');
        return [name.trim(), new Set(others.match(/[a-z0-9.-]+/g))];
      }),
  );
}
const ofRooms = listed('Imports point one way');
const ofPackages = listed('A package may import');
const doors = listed('The doors of the shim');
const doorsOfTypes = listed('further doors for types');
/** What `a2a` and `a2a-store` import from each other. */
const storeDoors = new Set(text.match(/(?<=`)[\w/.-]*a2a[\w/.-]* -> [\w/.-]*a2a[\w/.-]*(?=`)/g));
/** What rooms may import types from in addition: `room -> other`. */
const forTypes = new Set(text.match(/(?<=but this type: `)[a-z]+ -> [a-z]+/));

/**
 * What the code of a file imports, statically or on demand, from the root; from its comments, too,
 * if `types`.
 */
function importsOf(path, types = false) {
  const whole = readFileSync(path, 'utf8');
  const code = types ? whole : whole.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const found = code.matchAll(
    /(?:\bfrom|\bimport\(|^import)\s*'(\.[^']+|\/(?:js|packages)\/[^']+)'/gm,
  );
  return [...found].map(([, to]) => {
    const file = to.startsWith('/') ? join(root, to) : join(dirname(path), to);
    return relative(root, file).split(sep);
  });
}

/**
 * @param {string} room whose folder this is
 * @param {string} folder
 * @param {(to: string[], from: string) => boolean} allowed
 * @param {(to: string[]) => boolean} allowedTypes in addition
 */
function wrongIn(room, folder, allowed, allowedTypes) {
  const wrong = [];
  const isRightType = (to) => to.slice(0, 2).join('/') === 'js/types' || allowedTypes(to);
  for (const name of readdirSync(join(root, folder), { recursive: true })) {
    if (!/\.[jt]s$/.test(name)) continue;
    const path = join(root, folder, name);
    const isRight = (to) => to[0] === 'dist' || allowed(to, `${folder}/${name}`);
    const found = importsOf(path).filter((to) => !isRight(to));
    const types = importsOf(path, true).filter((to) => !isRight(to) && !isRightType(to));
    wrong.push(
      ...found.map((to) => `${room}/${name} -> ${to.join('/')}`),
      ...types.map((to) => `${room}/${name} -> ${to.join('/')} (types)`),
    );
  }
  return wrong;
}

test('rooms of the shim import code and types only from those that the architecture names', () => {
  const wrong = rooms
    .filter((room) => room !== 'types')
    .flatMap((room) =>
      wrongIn(
        room,
        `js/${room}`,
        ([top, other]) => {
          if (top === 'js' && other === room) return true;
          if (room === 'common') return false;
          return (top === 'js' && other === 'common') || ofRooms.get(room).has(other);
        },
        ([top, other]) => top === 'js' && forTypes.has(`${room} -> ${other}`),
      ),
    );
  assert.deepEqual(wrong, []);
});

test('packages import only from those that the architecture names, and from the doors of the shim', () => {
  const isIn = (list, room, file) => list.get(room)?.has(file.replace(/\.js$/, '')) ?? false;
  const wrong = packages.flatMap((name) =>
    wrongIn(
      name,
      `packages/${name}/src`,
      ([top, other, ...file], from) => {
        if (top !== 'packages') return isIn(doors, other, file[0]);
        if (other === name || ofPackages.get(name).has(other)) return true;
        const path = ['packages', other, ...file].join('/');
        return storeDoors.has(`${from} -> ${other}`) || storeDoors.has(`${name} -> ${path}`);
      },
      ([top, other, file]) => top === 'js' && isIn(doorsOfTypes, other, file),
    ),
  );
  assert.deepEqual(wrong, []);
});

test('every door is used', () => {
  const usedIn = (types) =>
    new Set(
      packages
        .flatMap((name) =>
          readdirSync(join(root, `packages/${name}/src`), { recursive: true })
            .filter((file) => /\.[jt]s$/.test(file))
            .flatMap((file) => importsOf(join(root, `packages/${name}/src`, file), types)),
        )
        .map((to) => to.join('/')),
    );
  const unusedOf = (list, used) =>
    [...list].flatMap(([room, names]) =>
      [...names].map((name) => `js/${room}/${name}.js`).filter((path) => !used.has(path)),
    );
  assert.deepEqual(unusedOf(doors, usedIn(false)), []);
  assert.deepEqual(unusedOf(doorsOfTypes, usedIn(true)), []);
});

test('tests look from outside: they import entries, and the units that the architecture names', () => {
  const [, table] = text.slice(text.indexOf('Tests import entries')).match(/\n((?:\|.*\n)+)/);
  const units = [...table.matchAll(/`([^`]+\.js)`/g)].map(([, path]) => path);
  const entries = Object.values(ENTRIES).map(({ source }) => source);
  const imports = ['tests', ...foldersOf('packages').map((name) => `packages/${name}/tests`)]
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`),
    )
    .filter((path) => /\.[jt]s$/.test(path) && !path.includes('node_modules'))
    .flatMap((path) => importsOf(join(root, path)).map((to) => [path, to.join('/')]))
    .map(([path, to]) => [path, to.replace(/\?.*/, '')])
    .filter(([, to]) => /^(js|packages\/[\w-]+\/src)\//.test(to) && !to.startsWith('js/types/'))
    .filter(([, to]) => !entries.includes(to) && !to.startsWith('packages/gateway/'));
  const wrong = imports.filter(([, to]) => !units.includes(to));
  assert.deepEqual(wrong, []);
  const unused = units.filter((unit) => !imports.some(([, to]) => to === unit));
  assert.deepEqual(unused, []);
});
