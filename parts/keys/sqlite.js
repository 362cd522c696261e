/**
 * A store of keys for Node, in a file of SQLite that processes of one machine may share. Which of
 * them lives is known by a lock that each holds on a file of its own: the system lets it go with
 * the process, however that ends. It needs `node:sqlite`, which Node has from 22.13 on.
 */
import { AbpError, safely } from '../../js/common/errors.js';
import { secret } from '../../js/common/secret.js';
import { StoredKeys } from './stored-keys.js';

/** @import { KeyStore } from './store.js' */
/** @import { KeysOptions, Table } from './stored-keys.js' */

/**
 * The layout of the tables; a file with a later one is refused. In the first, keys had no digest.
 */
const LAYOUT = 2;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, owner TEXT NOT NULL, at REAL, ended BLOB, digest TEXT);
  CREATE INDEX IF NOT EXISTS by_end ON keys (at) WHERE at IS NOT NULL;
  PRAGMA user_version = ${LAYOUT};
`;

/** ms that another process may be writing. */
const PATIENCE = 2000;
/** The number of SQLite's error that another holds a lock. */
const BUSY = 5;

/**
 * A module of Node's, of which bundlers know nothing.
 * @param {string} name
 * @returns {any}
 */
function builtin(name) {
  const module = /** @type {any} */ (globalThis).process?.getBuiltinModule?.(name);
  if (module) return module;
  throw new AbpError('NOT_SUPPORTED', `sqliteKeys needs ${name}: Node 22.13 or later`);
}

/** @implements {Table} */
class SqliteTable {
  self = '';
  #path;
  /** @type {string | undefined} */
  #id;
  /** @type {any} */
  #database;
  /** Holds the lock of this process. @type {any} */
  #lock;

  /** @param {string} path */
  constructor(path) {
    this.#path = path;
  }

  /** @returns {string} */
  open() {
    if (this.#id) return this.#id;
    try {
      return (this.#id = this.#opened());
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #opened() {
    const { DatabaseSync } = builtin('node:sqlite');
    const database = (this.#database = new DatabaseSync(this.#path));
    database.exec(`PRAGMA busy_timeout = ${PATIENCE}; PRAGMA journal_mode = WAL`);
    database.exec('PRAGMA synchronous = FULL');
    // A lock as long as this process lives: the others see it. Nobody else has a database in
    // memory.
    this.self = secret();
    if (this.#path !== ':memory:') {
      this.#lock = new DatabaseSync(this.#lockOf(this.self));
      this.#lock.exec('BEGIN EXCLUSIVE');
    }
    return this.#change(() => {
      const { user_version: layout } = this.#get('PRAGMA user_version');
      if (layout > LAYOUT)
        throw new Error(`it has layout ${layout}, and this version reads ${LAYOUT}`);
      if (layout === 1) database.exec('ALTER TABLE keys ADD COLUMN digest TEXT');
      database.exec(SCHEMA);
      this.#get("INSERT OR IGNORE INTO about VALUES ('id', ?)", secret());
      return this.#get("SELECT value FROM about WHERE name = 'id'").value;
    });
  }

  /**
   * @param {string} owner
   * @returns {string} the file on which it holds its lock
   */
  #lockOf(owner) {
    return `${this.#path}-${owner}.lock`;
  }

  /** Who looks holds the lock, so others must not look meanwhile. @type {Table['lives']} */
  lives(owner) {
    this.open();
    const { existsSync, unlinkSync } = builtin('node:fs');
    const path = this.#lockOf(owner);
    return this.#change(() => {
      if (!existsSync(path)) return false;
      const database = new (builtin('node:sqlite').DatabaseSync)(path);
      try {
        database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
      } catch (error) {
        // What cannot be looked at counts as gone: that is said, and never runs again.
        return /** @type {{ errcode?: number }} */ (error).errcode === BUSY;
      } finally {
        database.close();
      }
      unlinkSync(path);
      return false;
    });
  }

  /**
   * Runs a statement, and gives its first row.
   * @param {string} sql
   * @param {...unknown} values
   */
  #get(sql, ...values) {
    return this.#database.prepare(sql).get(...values);
  }

  /**
   * Makes a change, which is on the disk when this returns; nothing has changed if it throws. Other
   * processes wait.
   * @template T
   * @param {() => T} change
   * @returns {T}
   */
  #change(change) {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const result = change();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      // It may be over: a full disk ends it.
      safely(() => this.#database.exec('ROLLBACK'), undefined);
      throw error;
    }
  }

  /** @type {Table['replace']} */
  async replace(key, next) {
    this.open();
    const { deserialize, serialize } = builtin('node:v8');
    this.#change(() => {
      const row = this.#get('SELECT owner, at, ended, digest FROM keys WHERE key = ?', key);
      const entry = next(row && { ...row, ended: row.ended && deserialize(row.ended) });
      if (!entry) return;
      const { owner, at = null, ended, digest = null } = entry;
      // A blob, for example, is kept by no file: this throws.
      const bytes = ended ? serialize(ended) : null;
      const sql = 'INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?)';
      this.#get(sql, key, owner, at, bytes, digest);
    });
  }

  /** @type {Table['clean']} */
  async clean(before) {
    this.open();
    return this.#change(() => {
      this.#get('DELETE FROM keys WHERE at < ?', before);
      return this.#get('SELECT count(*) AS count FROM keys').count;
    });
  }

  close() {
    this.#database?.close();
    this.#lock?.close();
    if (this.#lock) builtin('node:fs').unlinkSync(this.#lockOf(this.self));
    this.#database = this.#lock = this.#id = undefined;
  }
}

/**
 * A store of keys in a file of SQLite. Several processes of one machine may use it at once. What is
 * written is on the disk when the call begins.
 * @param {string} path of the file, which is made if it is not there. Beside it each process has a
 *   small file that ends in `.lock`
 * @param {KeysOptions} [options]
 * @returns {KeyStore} whose `open` rejects with `NOT_SUPPORTED` where there is no `node:sqlite`
 * @throws {AbpError} INVALID_PARAMS
 */
export function sqliteKeys(path, options = {}) {
  if (typeof path !== 'string' || !path)
    throw new AbpError('INVALID_PARAMS', 'sqliteKeys needs the path of a file');
  return new StoredKeys('sqliteKeys', new SqliteTable(path), options);
}
