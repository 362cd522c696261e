/**
 * A backend in a file, for one process at a time: tasks outlive a restart. It needs `node:sqlite`,
 * which Node has from 22.13 on.
 */
import { AbpError } from 'abp-bridge/driver';
import { localBackend, unavailable } from '@abp-bridge/a2a/store';

/** @import { IndexEntry, ListFilter, Place } from '@abp-bridge/a2a/store' */
/** @import { Storage } from '@abp-bridge/a2a/store' */

/** The layout of the tables; a file with another one is rejected. */
const LAYOUT = 2;
/** Entries that are counted at once. */
const SLICE = 10_000;

/** The indexes cover everything that counting needs. */
const TABLES = `
  CREATE TABLE IF NOT EXISTS records (task TEXT, seq INTEGER, data TEXT NOT NULL, PRIMARY KEY (task, seq)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS entries (task TEXT PRIMARY KEY, tenant TEXT NOT NULL, context TEXT NOT NULL,
    time REAL NOT NULL, data TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS objects (name TEXT PRIMARY KEY, bytes BLOB NOT NULL);
  CREATE INDEX IF NOT EXISTS by_tenant ON entries (tenant, time DESC, task, state);
  CREATE INDEX IF NOT EXISTS by_context ON entries (tenant, context, time DESC, task, state);
  CREATE INDEX IF NOT EXISTS by_state ON entries (tenant, state, time DESC, task);
  PRAGMA user_version = ${LAYOUT};
`;

/**
 * The condition for the entries of a list after a place, and its values. The time alone determines
 * where in the index it begins.
 * @param {ListFilter} filter
 * @param {Place} [after]
 * @param {boolean} [counted] whether to select only counted entries
 * @returns {[where: string, ...values: unknown[]]}
 */
function selection({ tenant, context, state, since = -Infinity }, after, counted = false) {
  const { time, task } = after ?? { time: Infinity, task: '' };
  const where = ['tenant = ?', 'time <= ?', '(time < ? OR task > ?)', 'time >= ?'];
  const values = [tenant, time, time, task, since];
  for (const [name, value] of Object.entries({ context, state })) {
    if (value === undefined) continue;
    where.push(`${name} = ?`);
    values.push(value);
  }
  if (counted && state === undefined) where.push("state <> ''");
  const index = context !== undefined ? 'by_context' : state ? 'by_state' : 'by_tenant';
  return [`FROM entries INDEXED BY ${index} WHERE ${where.join(' AND ')}`, ...values];
}

/** Numbers of SQLite's errors. */
const BUSY = 5;
const FULL = 13;

/** @typedef {Error & { errcode?: number }} SqliteError */

/**
 * The storage of a backend in a file.
 * @param {any} database
 * @returns {Storage}
 */
function storageIn(database) {
  /** Prepared statements, by their text. @type {Map<string, any>} */
  const statements = new Map();

  /**
   * @param {'run' | 'get' | 'all'} method
   * @param {string} sql
   * @param {...unknown} values
   */
  const ask = (method, sql, ...values) => {
    let statement = statements.get(sql);
    if (!statement) statements.set(sql, (statement = database.prepare(sql)));
    try {
      return statement[method](...values);
    } catch (error) {
      const { errcode, message } = /** @type {SqliteError} */ (error);
      const why = errcode === FULL ? 'The disk is full' : `The file cannot be used: ${message}`;
      throw unavailable(why, error);
    }
  };

  /**
   * Writes data that need not be on the disk on return. It is there before the next record is,
   * since the file is written in order.
   * @param {string} sql
   * @param {...unknown} values
   */
  const later = (sql, ...values) => {
    database.exec('PRAGMA synchronous = NORMAL');
    try {
      ask('run', sql, ...values);
    } finally {
      database.exec('PRAGMA synchronous = FULL');
    }
  };

  return {
    last: (task) => ask('get', 'SELECT max(seq) AS seq FROM records WHERE task = ?', task).seq ?? 0,

    append(task, data) {
      const seq = this.last(task) + 1;
      ask('run', 'INSERT INTO records VALUES (?, ?, ?)', task, seq, data);
      return seq;
    },

    read(task, after, limit) {
      const sql = 'SELECT seq, data FROM records WHERE task = ? AND seq > ? ORDER BY seq LIMIT ?';
      return ask('all', sql, task, after, limitOf(limit)).map(plain);
    },

    forget(task) {
      later('DELETE FROM entries WHERE task = ?', task);
      later('DELETE FROM records WHERE task = ?', task);
    },

    note(task, { tenant, context, time, state = '', data }, seq) {
      const sql = `INSERT INTO entries (task, tenant, context, time, data, seq, state) VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (task) DO UPDATE SET tenant = excluded.tenant, context = excluded.context, time = excluded.time,
          data = excluded.data, seq = excluded.seq, state = excluded.state
        WHERE excluded.seq >= entries.seq`;
      later(sql, task, tenant, context, time, data, seq, state);
    },

    list(filter, after, limit) {
      const [where, ...values] = selection(filter, after);
      const sql = `SELECT task, tenant, context, time, state, data ${where} ORDER BY time DESC, task LIMIT ?`;
      return ask('all', sql, ...values, limit).map(
        (/** @type {IndexEntry & { task: string }} */ { state, ...row }) =>
          state ? { ...row, state } : row,
      );
    },

    count(filter, after) {
      const [where, ...values] = selection(filter, after, true);
      const place = `SELECT time, task ${where} ORDER BY time DESC, task LIMIT 1 OFFSET ${SLICE - 1}`;
      const last = ask('get', place, ...values);
      if (last) return { count: SLICE, last: plain(last) };
      return { count: ask('get', `SELECT count(*) AS count ${where}`, ...values).count };
    },

    put: (name, bytes) => later('INSERT OR REPLACE INTO objects VALUES (?, ?)', name, bytes),
    get: (name) => ask('get', 'SELECT bytes FROM objects WHERE name = ?', name)?.bytes,
    remove: (name) => later('DELETE FROM objects WHERE name = ?', name),

    names(after, limit) {
      const sql = 'SELECT name FROM objects WHERE name > ? ORDER BY name LIMIT ?';
      const rows = ask('all', sql, after, limitOf(limit));
      return rows.map((/** @type {{ name: string }} */ { name }) => name);
    },

    close: () => database.close(),
  };
}

/**
 * SQLite's value for no limit is -1.
 * @param {number} limit
 */
const limitOf = (limit) => (Number.isFinite(limit) ? limit : -1);

/**
 * A row as a plain object.
 * @template T
 * @param {T} row
 * @returns {T}
 */
const plain = (row) => ({ ...row });

/**
 * A backend in a file of SQLite. No other process can open the file until this backend is closed,
 * or its process has ended. A record is on the disk when `append` resolves.
 * @param {string} path of the file, which is made if it does not exist
 * @returns {Promise<import('@abp-bridge/a2a/store').Backend>} rejects with `NOT_SUPPORTED` without
 *   `node:sqlite`, with `IN_USE` when another process has the file, and with `UNAVAILABLE` when it
 *   cannot be opened or has another layout
 */
export async function sqliteBackend(path) {
  const name = 'node:sqlite';
  const { DatabaseSync } = await import(name).catch((cause) => {
    const message = 'The SQLite backend needs node:sqlite: Node 22.13 or later';
    throw new AbpError('NOT_SUPPORTED', message, { cause });
  });
  let database;
  try {
    database = new DatabaseSync(path);
    // The lock comes with the first transaction, and stays.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL');
    database.exec('PRAGMA synchronous = FULL; BEGIN EXCLUSIVE');
    const { user_version: layout } = database.prepare('PRAGMA user_version').get();
    if (layout && layout !== LAYOUT)
      throw new Error(`it has layout ${layout}, and this version reads ${LAYOUT}`);
    database.exec(`${TABLES} COMMIT`);
    return localBackend(storageIn(database));
  } catch (error) {
    database?.close();
    const { errcode, message } = /** @type {SqliteError} */ (error);
    if (errcode === BUSY)
      throw new AbpError('IN_USE', `Another process has ${path} open`, { cause: error });
    throw unavailable(`${path} cannot be opened: ${message}`, error);
  }
}
