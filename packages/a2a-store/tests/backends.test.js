/** Backends that need nothing but Node; tests/fleet has NATS. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { memoryBackend, sqliteBackend } from '../src/index.js';
import { testBackend } from './contracts/backend.js';

const folder = mkdtempSync(join(tmpdir(), 'abp-backends-'));
after(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${files++}.sqlite`);
const hasSqlite = await import('node:sqlite').then(
  () => true,
  () => false,
);

test('SQLite is tested wherever Node has it', () => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  assert.equal(hasSqlite, major > 22 || (major === 22 && minor >= 13));
});

testBackend('memory', { open: async () => memoryBackend() });

test('memory: it is bounded, and forgetting makes room', async () => {
  const backend = memoryBackend({ maxStored: 10 });
  await backend.append('a', '12345678', 0);
  await assert.rejects(backend.append('b', '123', 0), { code: 'UNAVAILABLE', retryable: true });
  await assert.rejects(backend.put('o', new Uint8Array(3)), { code: 'UNAVAILABLE' });
  await backend.put('o', new Uint8Array(2));
  await backend.forget('a');
  await backend.append('b', '12345678', 0);
  await backend.remove('o');
  await backend.remove('o');
  await assert.rejects(backend.put('o', new Uint8Array(3)), { code: 'UNAVAILABLE' });
});

if (hasSqlite) {
  testBackend('SQLite', { open: () => sqliteBackend(newFile()) });

  test('SQLite: a task outlives its process, which ends as it likes', async () => {
    const path = newFile();
    const module = new URL('../src/sqlite.js', import.meta.url).href;
    const script = `const { sqliteBackend } = await import('${module}');
      const backend = await sqliteBackend(process.argv[1]);
      await backend.append('task', 'a', await backend.append('task', 'b', 0));
      await backend.put('object', new Uint8Array([1, 2]));
      await backend.renew('process');
      process.kill(process.pid, 'SIGKILL');`;
    const { signal, stderr } = spawnSync(process.execPath, [
      '--input-type=module',
      '-e',
      script,
      path,
    ]);
    assert.equal(signal, 'SIGKILL', String(stderr));
    const backend = await sqliteBackend(path);
    const records = await backend.read('task', 0);
    assert.deepEqual(
      records.map(({ data }) => data),
      ['b', 'a'],
    );
    assert.deepEqual([...(await backend.get('object'))], [1, 2]);
    assert.deepEqual(await backend.leases(10), [{ process: 'process', number: 0, left: true }]);
    assert.equal(await backend.release('process', 0), true);
    assert.deepEqual(await backend.leases(10), []);
    await backend.append('task', 'c', records[1].seq);
    await backend.close();
  });

  test('SQLite: a file is open once, in this process or another', async () => {
    const path = newFile();
    const backend = await sqliteBackend(path);
    await assert.rejects(sqliteBackend(path), { code: 'IN_USE' });
    const module = new URL('../src/sqlite.js', import.meta.url).href;
    const script = `const { sqliteBackend } = await import('${module}');
      await sqliteBackend(process.argv[1]).catch((error) => console.log(error.code));`;
    const run = [process.execPath, ['--input-type=module', '-e', script, path]];
    assert.equal(String(spawnSync(.../** @type {[string, string[]]} */ (run)).stdout), 'IN_USE\n');
    await backend.append('task', 'a', 0);
    await backend.close();
    const again = await sqliteBackend(path);
    assert.equal((await again.read('task', 0)).length, 1);
    await again.close();
  });

  test('SQLite: a page of a list is read from an index, from where it begins', async (t) => {
    const path = newFile();
    const { DatabaseSync } = await import('node:sqlite');
    const { mock } = t.mock.method(DatabaseSync.prototype, 'prepare');
    /** What is asked of the database for a page of such a list. @type {[string, RegExp][]} */
    const asked = [];
    const backend = await sqliteBackend(path);
    for (const [filter, expected] of /** @type {[object, RegExp][]} */ ([
      [{}, /^SEARCH entries USING INDEX by_tenant \(tenant=\? AND time>\? AND time<\?\)$/],
      [
        { context: '' },
        /^SEARCH entries USING INDEX by_context \(tenant=\? AND context=\? AND time>\? AND time<\?\)$/,
      ],
      [
        { state: 'working' },
        /^SEARCH entries USING INDEX by_state \(tenant=\? AND state=\? AND time>\? AND time<\?\)$/,
      ],
    ])) {
      const before = mock.callCount();
      await backend.list({ tenant: '', ...filter });
      const [sql] = mock.calls.slice(before).flatMap(({ arguments: [text] }) => text);
      asked.push([sql, expected]);
    }
    await backend.close();
    const database = new DatabaseSync(path);
    for (const [sql, expected] of asked) {
      const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      // Sorting would be a step of its own.
      assert.equal(plan.length, 1);
      assert.match(String(plan[0].detail), expected);
    }
    database.close();
  });

  test('SQLite: what is no database, or of another version, is left alone', async () => {
    const path = newFile();
    writeFileSync(path, 'something else entirely, and long enough to be looked at'.repeat(20));
    await assert.rejects(sqliteBackend(path), { code: 'UNAVAILABLE' });
    await assert.rejects(sqliteBackend(join(folder, 'no', 'folder')), { code: 'UNAVAILABLE' });
    const { DatabaseSync } = await import('node:sqlite');
    for (const layout of [1, 3]) {
      const other = newFile();
      const database = new DatabaseSync(other);
      database.exec(`PRAGMA user_version = ${layout}`);
      database.close();
      const message = new RegExp(`layout ${layout}`);
      await assert.rejects(sqliteBackend(other), { code: 'UNAVAILABLE', message });
    }
  });
} else {
  test('SQLite: where Node has none, the error says what to do', async () => {
    await assert.rejects(sqliteBackend(newFile()), { code: 'NOT_SUPPORTED', message: /22\.13/ });
  });
}
