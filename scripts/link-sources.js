/**
 * Makes packages/node_modules, by which the packages find each other: an import of another package
 * gets its sources, also before a build, and each class exists once in all tests. Others get the
 * built files: the demo, the tests of published packages, programs (the gateway, stopcheck), and
 * built files themselves.
 */
import { mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGES } from './entries.js';

const packages = fileURLToPath(new URL('../packages/', import.meta.url));
const root = join(packages, '..');

const others = PACKAGES.filter(({ folder }) => folder);
/** @param {import('./entries.js').Package} given */
const hasEntries = ({ entries }) => Object.keys(entries).length > 0;
/** @param {import('./entries.js').Package[]} packages_ */
const foldersOf = (packages_) => packages_.map(({ folder }) => relative('packages', folder));
const NEIGHBOURS = foldersOf(others.filter(hasEntries));
const PROGRAMS = foldersOf(others.filter((each) => !hasEntries(each)));

/**
 * @param {() => string} read
 * @returns {string | undefined} undefined if there is nothing to read
 */
function readIf(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/**
 * A right link stays unchanged: tests may run.
 * @param {string} path of the link
 * @param {string} to
 */
function link(path, to) {
  const target = relative(dirname(path), to);
  if (readIf(() => readlinkSync(path)) === target) return;
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

for (const { name, folder, entries } of PACKAGES) {
  const place = join(packages, 'node_modules', name);
  for (const part of folder ? ['src'] : ['js', 'parts'])
    link(join(place, part), join(root, folder, part));
  /** @param {string} source */
  const within = (source) => `./${source.slice(folder ? folder.length + 1 : 0)}`;
  const exports = Object.fromEntries(
    Object.entries(entries).map(([imported, { source, types }]) => [
      `.${imported.slice(name.length)}`,
      { types: within(types), default: within(source) },
    ]),
  );
  // Only this package's sources have side effects that a bundle needs.
  const sideEffects = name === '@abp-bridge/inspector';
  const manifest = join(place, 'package.json');
  const text = `${JSON.stringify({ name, type: 'module', sideEffects, exports }, null, 2)}\n`;
  if (readIf(() => readFileSync(manifest, 'utf8')) !== text) writeFileSync(manifest, text);
  if (!Object.keys(entries).length) continue;
  // Built files import built files; and so do programs.
  for (const place of [...PROGRAMS, ...NEIGHBOURS.map((each) => `${each}/dist`)])
    link(join(packages, place, 'node_modules', name), join(root, folder || '.'));
}
