/** Results that are too large for a message: files, which `resources/read` serves and nothing else. */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makeTemporaryFolder, removeFolder } from './temporary-folder.js';

/** Files that are kept; the oldest give way. */
const MAX_FILES = 64;
/** Bytes of them all together. */
const MAX_BYTES = 1 << 30;
/** Bytes of one message's contents: official clients end a connection on which 10 MiB come at once. */
export const MAX_MESSAGE = 8 << 20;

const EXTENSIONS = new Map([
  ['application/json', 'json'],
  ['application/pdf', 'pdf'],
  ['application/zip', 'zip'],
  ['audio/mpeg', 'mp3'],
  ['audio/wav', 'wav'],
  ['image/gif', 'gif'],
  ['image/jpeg', 'jpg'],
  ['image/png', 'png'],
  ['image/svg+xml', 'svg'],
  ['image/webp', 'webp'],
  ['text/csv', 'csv'],
  ['text/html', 'html'],
  ['text/plain', 'txt'],
  ['video/mp4', 'mp4'],
]);

/**
 * @typedef {object} Kept
 * @property {string} uri
 * @property {string} name
 * @property {string} mimeType
 * @property {number} size
 * @property {string} path
 * @property {import('./runs.js').Owner} owner the session whose call made it
 */

/** What a file is, by its name. @param {string} name */
export const typeOfName = (name) =>
  [...EXTENSIONS].find(([, ending]) => name.toLowerCase().endsWith(`.${ending}`))?.[0] ??
  'application/octet-stream';

export class ResultFiles {
  #wanted;
  /** @type {Promise<string> | undefined} */
  #folder;
  /** By address, the oldest first. @type {Map<string, Kept>} */
  #kept = new Map();
  #bytes = 0;

  /** @param {string} [folder] where they go and stay; else into a folder that goes with the gateway */
  constructor(folder) {
    this.#wanted = folder;
  }

  /**
   * What a session may list. Without a session there is nothing to tell clients apart by.
   * @param {import('./runs.js').Owner} owner
   */
  of(owner) {
    return owner ? [...this.#kept.values()].filter((kept) => kept.owner === owner) : [];
  }

  /**
   * @param {import('./plain.js').Bytes} found
   * @param {import('./runs.js').Owner} owner
   * @returns {Promise<Kept>} rejects when it cannot be written
   */
  async keep({ bytes, mimeType }, owner) {
    this.#folder ??= this.#makeFolder();
    const folder = await this.#folder.catch((error) => {
      // Another time there may be room.
      this.#folder = undefined;
      throw error;
    });
    // The app's own name for it names no file.
    const name = `result-${randomBytes(9).toString('hex')}.${EXTENSIONS.get(mimeType) ?? 'bin'}`;
    const path = join(folder, name);
    await writeFile(path, bytes, { mode: 0o600 });
    const uri = pathToFileURL(path).href;
    const kept = { uri, name, mimeType, size: bytes.length, path, owner };
    this.#kept.set(kept.uri, kept);
    this.#bytes += kept.size;
    for (const oldest of this.#kept.values()) {
      if (this.#kept.size <= MAX_FILES && this.#bytes <= MAX_BYTES) break;
      if (oldest === kept) break;
      this.#kept.delete(oldest.uri);
      this.#bytes -= oldest.size;
      if (!this.#wanted) await rm(oldest.path, { force: true });
    }
    return kept;
  }

  async #makeFolder() {
    if (!this.#wanted) return makeTemporaryFolder();
    await mkdir(this.#wanted, { recursive: true });
    return resolve(this.#wanted);
  }

  /**
   * @param {string} uri
   * @param {import('./runs.js').Owner} owner who asks
   * @returns {Promise<{ uri: string, mimeType: string, blob?: string, text?: string } | undefined>} undefined for
   *   whatever is not one of this owner's files, or is not there any more
   */
  async read(uri, owner) {
    const kept = this.#kept.get(uri);
    if (kept?.owner !== owner || !kept) return undefined;
    const { mimeType, size, path } = kept;
    if (size <= MAX_MESSAGE) {
      const bytes = await readFile(path).catch(() => undefined);
      if (!bytes) return undefined;
      const isText = /^(text\/|application\/json$)/.test(mimeType);
      const contents = isText
        ? { uri, mimeType, text: bytes.toString('utf8') }
        : { uri, mimeType, blob: bytes.toString('base64') };
      if (Buffer.byteLength(JSON.stringify(contents)) <= MAX_MESSAGE) return contents;
    }
    const text = `${size} bytes are too large for a message: read the file ${path}`;
    return { uri, mimeType: 'text/plain', text };
  }

  /** Removes what is nobody's any more. */
  async close() {
    if (this.#folder && !this.#wanted) await removeFolder(await this.#folder);
  }
}
