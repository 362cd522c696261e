/**
 * A store of keys for Node, in a file of SQLite that processes of one machine may share. Which of them lives is known by a lock
 * that each holds on a file of its own: the system lets it go with the process, however that ends. It needs `node:sqlite`, which Node has
 * from 22.13 on.
 */
import { AbpError, safely } from '../../../js/common/errors.js';
import { secret } from '../../../js/common/secret.js';
import { StoredKeys, withoutValue } from './stored-keys.js';

/** @typedef {import('./stored-keys.js').KeysOptions} KeysOptions What a store remembers. */

/** @import { KeyEnded, KeyFound, KeyStore } from '../types/store.js' */

/** The layout of the tables; a file with another is refused. */
const LAYOUT = 1;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, owner TEXT NOT NULL, at REAL, ended BLOB);
  CREATE INDEX IF NOT EXISTS by_end ON keys (at) WHERE at IS NOT NULL;
  PRAGMA user_version = ${LAYOUT};
`;

/** ms that another process may be writing. */
const PATIENCE = 2000;
/** The number of SQLite's error that another holds a lock. */
const BUSY = 5;

/** A module of Node's, of which bundlers know nothing. @param {string} name @returns {any} */
function builtin(name) {
  const module = /** @type {any} */ (globalThis).process?.getBuiltinModule?.(name);
  if (module) return module;
  throw new AbpError('NOT_SUPPORTED', `sqliteKeys needs ${name}: Node 22.13 or later`);
}

/** @implements {KeyStore} */
class SqliteKeys extends StoredKeys {
  #path;
  /** @type {string | undefined} */
  #id;
  /** @type {any} */
  #database;
  /** Holds the lock of this process. @type {any} */
  #lock;

  /** @param {string} path @param {any} options */
  constructor(path, options) {
    super('sqliteKeys', options);
    this.#path = path;
  }

  async open() {
    try {
      return { id: (this.#id ??= this.#open()), rememberFor: this.rememberFor };
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** @returns {string} its id */
  #open() {
    const { DatabaseSync } = builtin('node:sqlite');
    const database = (this.#database = new DatabaseSync(this.#path));
    database.exec(`PRAGMA busy_timeout = ${PATIENCE}; PRAGMA journal_mode = WAL`);
    database.exec('PRAGMA synchronous = FULL');
    // A lock as long as this process lives: the others see it. Nobody else has a database in memory.
    this.self = secret();
    if (this.#path !== ':memory:') {
      this.#lock = new DatabaseSync(this.#lockOf(this.self));
      this.#lock.exec('BEGIN EXCLUSIVE');
    }
    return this.#change(() => {
      const { user_version: layout } = this.#get('PRAGMA user_version');
      if (layout > LAYOUT)
        throw new Error(`it has layout ${layout}, and this version reads ${LAYOUT}`);
      database.exec(SCHEMA);
      this.#run("INSERT OR IGNORE INTO about VALUES ('id', ?)", secret());
      return this.#get("SELECT value FROM about WHERE name = 'id'").value;
    });
  }

  /** @param {string} owner @returns {string} the file on which it holds its lock */
  #lockOf(owner) {
    return `${this.#path}-${owner}.lock`;
  }

  /** Whether the process that began a call lives. @param {string} owner */
  #lives(owner) {
    const { existsSync, unlinkSync } = builtin('node:fs');
    const path = this.#lockOf(owner);
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
  }

  /** @param {string} sql @param {...unknown} values */
  #get(sql, ...values) {
    return this.#database.prepare(sql).get(...values);
  }

  /** @param {string} sql @param {...unknown} values */
  #run(sql, ...values) {
    return this.#database.prepare(sql).run(...values);
  }

  /**
   * Makes a change, which is on the disk when this returns. Other processes wait.
   * @template T
   * @param {() => T} change
   * @returns {T} throws if nothing has changed
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

  /** @param {string} key @returns {Promise<KeyFound>} */
  async begin(key) {
    await this.open();
    this.#clean();
    /** @type {KeyFound} */
    const found = this.#change(() => {
      const row = this.#get('SELECT owner, at, ended FROM keys WHERE key = ?', key);
      const found = this.find(
        row && { at: row.at, ended: row.ended && builtin('node:v8').deserialize(row.ended) },
      );
      if (found?.state === 'begun')
        this.#run('INSERT OR REPLACE INTO keys VALUES (?, ?, NULL, NULL)', key, this.self);
      if (found) return found;
      const lives = row.owner === this.self ? this.live.has(key) : this.#lives(row.owner);
      return { state: lives ? 'running' : 'lost' };
    });
    if (found.state === 'begun') {
      this.live.add(key);
      this.count++;
    }
    return found;
  }

  /** @param {string} key @param {KeyEnded} ended */
  async end(key, ended) {
    this.live.delete(key);
    await this.open();
    const { serialize } = builtin('node:v8');
    // A blob, for example, is kept by no file.
    const bytes = safely(() => serialize(ended)) ?? serialize(withoutValue(ended));
    const sql = 'UPDATE keys SET at = ?, ended = ? WHERE key = ? AND owner = ? AND ended IS NULL';
    this.#change(() => this.#run(sql, Date.now(), bytes, key, this.self));
  }

  /** Deletes what is too old, now and then, and counts the rest. */
  #clean() {
    if (!this.isDue()) return;
    this.count = this.#change(() => {
      this.#run('DELETE FROM keys WHERE at < ?', Date.now() - this.rememberFor);
      return this.#get('SELECT count(*) AS count FROM keys').count;
    });
  }

  close() {
    this.#database?.close();
    this.#lock?.close();
    if (this.#lock) builtin('node:fs').unlinkSync(this.#lockOf(this.self));
    this.#database = this.#lock = this.#id = undefined;
    this.live.clear();
  }
}

/**
 * A store of keys in a file of SQLite. Several processes of one machine may use it at once. What is written is on the disk when the
 * call begins.
 * @param {string} path of the file, which is made if it is not there. Beside it each process has a small file that ends in `.lock`
 * @param {KeysOptions} [options]
 * @returns {KeyStore} whose `open` rejects with `NOT_SUPPORTED` where there is no `node:sqlite`
 * @throws {AbpError} INVALID_PARAMS
 */
export function sqliteKeys(path, options = {}) {
  if (typeof path !== 'string' || !path)
    throw new AbpError('INVALID_PARAMS', 'sqliteKeys needs the path of a file');
  return new SqliteKeys(path, options);
}
