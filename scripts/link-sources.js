/**
 * Makes packages/node_modules, where the packages find each other: what one imports by the name of
 * another is that one's sources there, also before anything was built, and one class is one class
 * for all tests. Everybody else finds what was built: the demo, the tests of what is published, the
 * gateway, which is a program, and what was built itself.
 */
import { mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGES } from './entries.js';

const packages = fileURLToPath(new URL('../packages/', import.meta.url));
const root = join(packages, '..');

const NEIGHBOURS = PACKAGES.flatMap(({ folder, entries }) =>
  folder && Object.keys(entries).length ? [relative('packages', folder)] : [],
);

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
 * What is right stays as it is: tests may run.
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
  // Of sources nothing runs by itself that a bundle of them needs.
  const sideEffects = name === '@abp-bridge/inspector';
  const manifest = join(place, 'package.json');
  const text = `${JSON.stringify({ name, type: 'module', sideEffects, exports }, null, 2)}\n`;
  if (readIf(() => readFileSync(manifest, 'utf8')) !== text) writeFileSync(manifest, text);
  if (!Object.keys(entries).length) continue;
  // What was built finds what was built; and so does the gateway.
  for (const place of ['gateway', ...NEIGHBOURS.map((each) => `${each}/dist`)])
    link(join(packages, place, 'node_modules', name), join(root, folder || '.'));
}
