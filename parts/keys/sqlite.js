/**
 * A store of keys for Node, in an SQLite file that processes of one machine can share. Each process
 * holds a lock on a file of its own while it runs, so that the others know. The system releases the
 * lock when the process ends, for any reason. It needs `node:sqlite`, part of Node since 22.13.
 */
import { AbpError, safely } from '../../js/common/errors.js';
import { secret } from '../../js/common/secret.js';
import { StoredKeys } from './stored-keys.js';

/** @import { KeyStore } from './store.js' */
/** @import { KeysOptions, Table } from './stored-keys.js' */

/**
 * The layout of the tables; files with a later layout are rejected. In the first layout, keys had
 * no digest.
 */
const LAYOUT = 2;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, owner TEXT NOT NULL, at REAL, ended BLOB, digest TEXT);
  CREATE INDEX IF NOT EXISTS by_end ON keys (at) WHERE at IS NOT NULL;
  PRAGMA user_version = ${LAYOUT};
`;

/** How long another process may be writing, in ms. */
const PATIENCE = 2000;
/** SQLite's error number if another process holds a lock. */
const BUSY = 5;

/**
 * Loads a module of Node in a way that bundlers do not follow.
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
  /** Holds this process's lock. @type {any} */
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
    // Holds a lock while this process runs, so that others can see that it does. A database in
    // memory has no other users.
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
   * @returns {string} the file of that owner's lock
   */
  #lockOf(owner) {
    return `${this.#path}-${owner}.lock`;
  }

  /**
   * The check takes the lock for a moment, so no other process may check meanwhile.
   * @type {Table['lives']}
   */
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
        // If the check fails, the owner counts as gone: its call is reported as lost, and never
        // runs again.
        return /** @type {{ errcode?: number }} */ (error).errcode === BUSY;
      } finally {
        database.close();
      }
      unlinkSync(path);
      return false;
    });
  }

  /**
   * Runs a statement, and returns its first row.
   * @param {string} sql
   * @param {...unknown} values
   */
  #get(sql, ...values) {
    return this.#database.prepare(sql).get(...values);
  }

  /**
   * Makes a change. When this returns it is on the disk; if it throws, nothing has changed. Other
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
      // The transaction may have ended: a full disk ends it.
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
      // A Blob, for example, cannot be stored: this throws.
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
 * A store of keys in an SQLite file. Several processes of one machine may use it at once. Before a
 * call begins, its entry is on the disk.
 * @param {string} path the path of the file, which is created if it does not exist. Beside it each
 *   process has a small file that ends in `.lock`
 * @param {KeysOptions} [options]
 * @returns {KeyStore} its `open` rejects with `NOT_SUPPORTED` if there is no `node:sqlite`
 * @throws {AbpError} INVALID_PARAMS
 */
export function sqliteKeys(path, options = {}) {
  if (typeof path !== 'string' || !path)
    throw new AbpError('INVALID_PARAMS', 'sqliteKeys needs the path of a file');
  return new StoredKeys('sqliteKeys', new SqliteTable(path), options);
}
