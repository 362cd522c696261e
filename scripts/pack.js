/**
 * Packs all packages that can be imported: all except the gateway, a program.
 *
 *   node scripts/pack.js FOLDER
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGES } from './entries.js';

/** @typedef {import('./entries.js').Package} Package */

const cwd = fileURLToPath(new URL('../', import.meta.url));
/** @param {Package} package_ */
const fileOf = ({ name, manifest }) =>
  `${name.replace('@', '').replace('/', '-')}-${manifest.version}.tgz`;

export const IMPORTED = PACKAGES.filter(({ entries }) => Object.keys(entries).length);

/**
 * @param {string} folder of the files
 * @param {Package[]} packages
 * @returns {Record<string, string>} the files, by the names of the packages
 */
export const filesIn = (folder, packages = IMPORTED) =>
  Object.fromEntries(packages.map((each) => [each.name, join(folder, fileOf(each))]));

/**
 * Builds and packs packages.
 * @param {string} folder for the files
 * @param {Package[]} packages
 */
export function pack(folder, packages = IMPORTED) {
  execFileSync('scripts/build.sh', ['package'], { cwd });
  const options = ['--silent', '--ignore-scripts', '--pack-destination', folder];
  const folders = packages.map((each) => `./${each.folder}`);
  execFileSync('npm', ['pack', ...options, ...folders], { cwd });
  return filesIn(folder, packages);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) pack(String(process.argv[2]));
