/** Files that a person wants a result's bytes in. The app may suggest names, and overwrites nothing. */
import { access, constants, mkdtemp, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';
import { usageError } from './errors.js';
import { lineOf } from './texts.js';

/** Names that are tried for one file. */
const MAX_TRIES = 1000;
/** Characters of a name, its ending included. */
const MAX_NAME = 100;
/** Names of devices, on Windows. */
const DEVICES = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** @typedef {import('./plain.js').Bytes} Bytes */

/** @param {string} path */
const isFolder = (path) =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );

/**
 * Finds out before a call whether its result can be saved.
 * @param {string} out a file, or a folder
 * @throws {import('./errors.js').UserError} if it cannot
 */
export async function requireWritable(out) {
  const folder = (await isFolder(out)) ? out : dirname(out);
  if (!(await isFolder(folder))) throw usageError(`--out ${out}: there is no folder ${folder}`);
  await access(folder, constants.W_OK).catch(() => {
    throw usageError(`--out ${out}: ${folder} cannot be written`);
  });
}

/**
 * The app's name for a file, as one that may stand in a folder: no path, not hidden, nothing that a terminal interprets.
 * @param {string | undefined} filename
 * @param {number} at which of the files
 */
function safeName(filename, at) {
  const name = lineOf(basename((filename ?? '').replaceAll('\\', '/')), MAX_NAME)
    .replace(/[<>:"/\\|?*]/g, '_')
    .replace(/^[.\s]+|[.\s]+$/g, '');
  return !name || DEVICES.test(name) ? `result-${at + 1}` : name;
}

/**
 * Writes a file that is not there yet: if one is, it gets a number.
 * @param {string} folder
 * @param {string} name
 * @param {Uint8Array} bytes
 * @returns {Promise<string>} its path
 */
async function writeNew(folder, name, bytes) {
  const ending = extname(name);
  const stem = name.slice(0, name.length - ending.length);
  for (let number = 1; ; number++) {
    const path = join(folder, number === 1 ? name : `${stem} (${number})${ending}`);
    try {
      await writeFile(path, bytes, { flag: 'wx' });
      return path;
    } catch (error) {
      const isThere = /** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST';
      if (!isThere || number === MAX_TRIES) throw error;
    }
  }
}

/**
 * Saves all bytes of a result. What cannot be written where it was wanted is not lost: it goes into a temporary folder.
 * @param {Bytes[]} found
 * @param {string} out a file, which is overwritten, or a folder, in which nothing is
 * @param {(line: string) => void} log
 * @returns {Promise<boolean>} whether all of it is where it was wanted
 */
export async function saveAll(found, out, log) {
  if (!found.length) log('the result has no binary parts: nothing was saved');
  const toFolder = await isFolder(out);
  /** @type {string | undefined} */
  let spare;
  for (const [at, { bytes, filename }] of found.entries()) {
    const name = safeName(filename, at);
    try {
      if (!toFolder && found.length > 1) {
        throw new Error(`${found.length} binary parts need a folder`);
      }
      const path = toFolder ? await writeNew(out, name, bytes) : out;
      if (!toFolder) await writeFile(path, bytes);
      log(`saved ${path} (${bytes.length} bytes)`);
    } catch (error) {
      spare ??= await mkdtemp(join(tmpdir(), 'abp-bridge-result-'));
      const path = await writeNew(spare, name, bytes);
      const { message } = /** @type {Error} */ (error);
      log(`${out} cannot be written: ${message}. The result is in ${path}`);
    }
  }
  return spare === undefined;
}
