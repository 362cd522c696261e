/**
 * Files: folders that are deleted with the gateway; results that are too large for a message; and
 * bytes of results that a person wants to save.
 */
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, parse, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { log, usageError } from './errors.js';
import { lineOf } from './texts.js';

// --- Temporary folders, for results, downloads and profiles --------------------------------------

/** The prefix of their names, before the id of their process. */
const PREFIX = 'abp-bridge-gateway-';

/**
 * @returns {Promise<string>} the path of a new folder. Folders of gateways that were killed are
 *   deleted first
 */
export async function makeTemporaryFolder() {
  for (const name of await fs.readdir(tmpdir()).catch(() => [])) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    // Files of other users stay.
    if (pid && !isRunning(pid)) await removeFolder(join(tmpdir(), name)).catch(() => {});
  }
  return fs.mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
}

/**
 * Removes a folder, even while a browser that is ending may still write there.
 * @param {string} path
 */
export const removeFolder = (path) => fs.rm(path, { recursive: true, force: true, maxRetries: 5 });

/** @param {number} pid */
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH';
  }
}

// --- Results for clients, which `resources/read` serves ------------------------------------------

/** Files that are kept; the oldest are deleted first. */
const MAX_FILES = 64;
/** Bytes of all of them together. */
const MAX_BYTES = 1 << 30;
/**
 * Bytes of one message's contents: official clients end a connection on which 10 MiB arrive at
 * once.
 */
export const MAX_MESSAGE = 8 << 20;

/** Media types of files, with their extensions. */
const TYPES =
  `application/json json, application/pdf pdf, application/zip zip, audio/mpeg mp3, audio/wav wav, image/gif gif,
  image/jpeg jpg, image/png png, image/svg+xml svg, image/webp webp, text/csv csv, text/html html, text/plain txt, video/mp4 mp4`
    .split(/,\s+/)
    .map((row) => row.split(' '));

/**
 * @typedef {import('./plain.js').Bytes} Bytes
 * @typedef {object} Kept `owner`: the session whose call made it
 * @property {string} uri
 * @property {string} name
 * @property {string} mimeType
 * @property {number} size
 * @property {string} path
 * @property {string} [owner]
 */

/**
 * The type of a file, by its name.
 * @param {string} name
 */
export const typeOfName = (name) =>
  TYPES.find(([, ending]) => name.toLowerCase().endsWith(`.${ending}`))?.[0] ??
  'application/octet-stream';

export class ResultFiles {
  #wanted;
  /** @type {Promise<string> | undefined} */
  #folder;
  /** By address, the oldest first. @type {Map<string, Kept>} */
  #kept = new Map();
  #bytes = 0;

  /**
   * @param {string} [folder] for the files, which then stay; by default a temporary one
   */
  constructor(folder) {
    this.#wanted = folder;
  }

  /**
   * The files that a session may list. Without sessions clients cannot be told apart, so none are
   * listed.
   * @param {string | undefined} owner
   */
  of(owner) {
    return owner ? [...this.#kept.values()].filter((kept) => kept.owner === owner) : [];
  }

  /**
   * @param {Bytes} found
   * @param {string | undefined} owner
   * @returns {Promise<Kept>} rejects when it cannot be written
   */
  async keep({ bytes, mimeType }, owner) {
    this.#folder ??= this.#makeFolder();
    const folder = await this.#folder.catch((error) => {
      // There may be room another time.
      this.#folder = undefined;
      throw error;
    });
    // The app's own name for it is not used.
    const [, ending = 'bin'] = TYPES.find(([type]) => type === mimeType) ?? [];
    const name = `result-${randomBytes(9).toString('hex')}.${ending}`;
    const path = join(folder, name);
    await fs.writeFile(path, bytes, { mode: 0o600 });
    const uri = pathToFileURL(path).href;
    const kept = { uri, name, mimeType, size: bytes.length, path, owner };
    this.#kept.set(kept.uri, kept);
    this.#bytes += kept.size;
    for (const oldest of this.#kept.values()) {
      if (this.#kept.size <= MAX_FILES && this.#bytes <= MAX_BYTES) break;
      if (oldest === kept) break;
      this.#kept.delete(oldest.uri);
      this.#bytes -= oldest.size;
      if (!this.#wanted) await fs.rm(oldest.path, { force: true });
    }
    return kept;
  }

  async #makeFolder() {
    if (!this.#wanted) return makeTemporaryFolder();
    await fs.mkdir(this.#wanted, { recursive: true });
    return resolve(this.#wanted);
  }

  /**
   * @param {string} uri
   * @param {string | undefined} owner that requests it
   * @returns {Promise<{ uri: string, mimeType: string, blob?: string, text?: string } | undefined>}
   * undefined if it is not one of this owner's files, or was deleted
   */
  async read(uri, owner) {
    const kept = this.#kept.get(uri);
    if (kept?.owner !== owner || !kept) return undefined;
    const { mimeType, size, path } = kept;
    if (size <= MAX_MESSAGE) {
      const bytes = await fs.readFile(path).catch(() => undefined);
      if (!bytes) return undefined;
      const isText = /^(text\/|application\/json$)/.test(mimeType);
      const content = isText ? { text: `${bytes}` } : { blob: bytes.toString('base64') };
      const contents = { uri, mimeType, ...content };
      if (Buffer.byteLength(JSON.stringify(contents)) <= MAX_MESSAGE) return contents;
    }
    const text = `${size} bytes are too large for a message: read the file ${path}`;
    return { uri, mimeType: 'text/plain', text };
  }

  /** Deletes the temporary files. */
  async close() {
    if (this.#folder && !this.#wanted) await removeFolder(await this.#folder);
  }
}

// --- Files that a person saves: the app may suggest names, and overwrites nothing ----------------

/** Names that are tried for one file. */
const MAX_TRIES = 1000;
/** Characters of a name with its extension. */
const MAX_FILENAME = 100;
/** Names of devices, on Windows. */
const DEVICES = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** @param {string} path */
const isFolder = (path) =>
  fs.stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );

/**
 * Throws, before a call is made, if its result cannot be saved.
 * @param {string} out a file, or a folder
 */
export async function requireWritable(out) {
  const folder = (await isFolder(out)) ? out : dirname(out);
  if (!(await isFolder(folder))) throw usageError(`--out ${out}: there is no folder ${folder}`);
  await fs.access(folder, fs.constants.W_OK).catch(() => {
    throw usageError(`--out ${out}: ${folder} cannot be written`);
  });
}

/**
 * A safe name in a folder: no path, not hidden, nothing that a terminal interprets.
 * @param {Bytes} file
 * @param {number} at its number
 */
function safeName({ filename = '' }, at) {
  const name = lineOf(basename(filename.replaceAll('\\', '/')), MAX_FILENAME)
    .replace(/[<>:"/\\|?*]/g, '_')
    .replace(/^[.\s]+|[.\s]+$/g, '');
  return !name || DEVICES.test(name) ? `result-${at + 1}` : name;
}

/**
 * Writes a new file. If the name is taken, it gets a number.
 * @param {string} folder
 * @param {string} name
 * @param {Uint8Array} bytes
 */
async function writeNew(folder, name, bytes) {
  const { name: stem, ext } = parse(name);
  for (let number = 1; ; number++) {
    const path = join(folder, number === 1 ? name : `${stem} (${number})${ext}`);
    try {
      await fs.writeFile(path, bytes, { flag: 'wx' });
      return path;
    } catch (error) {
      const isThere = /** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST';
      if (!isThere || number === MAX_TRIES) throw error;
    }
  }
}

/**
 * Saves all bytes of a result. Bytes that cannot be written to the given place go into a temporary
 * folder.
 * @param {Bytes[]} found
 * @param {string} out a file, which is overwritten, or a folder, in which nothing is overwritten
 * @returns {Promise<boolean>} whether everything is in the given place
 */
export async function saveAll(found, out) {
  if (!found.length) log('the result has no binary parts: nothing was saved');
  const toFolder = await isFolder(out);
  /** @type {string | undefined} */
  let spare;
  for (const [at, file] of found.entries()) {
    const { bytes } = file;
    const name = safeName(file, at);
    try {
      if (!toFolder && found.length > 1)
        throw new Error(`${found.length} binary parts need a folder`);
      const path = toFolder ? await writeNew(out, name, bytes) : out;
      if (!toFolder) await fs.writeFile(path, bytes);
      log(`saved ${path} (${bytes.length} bytes)`);
    } catch (error) {
      spare ??= await fs.mkdtemp(join(tmpdir(), 'abp-bridge-result-'));
      const path = await writeNew(spare, name, bytes);
      const { message } = /** @type {Error} */ (error);
      log(`${out} cannot be written: ${message}. The result is in ${path}`);
    }
  }
  return spare === undefined;
}
