// The contract of tasks in a store, on the backends that need nothing but Node; tests/fleet has
// NATS.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { memoryBackend, sqliteBackend, taskStore } from '../src/index.js';
import { createTaskServer } from '@abp-bridge/a2a';
import { testStore } from './contracts/store.js';

const folder = mkdtempSync(join(tmpdir(), 'abp-store-'));

let files = 0;

after(() => rmSync(folder, { recursive: true }));

testStore('memory', async () => memoryBackend());

if (await import('node:sqlite').catch(() => undefined))
  testStore('SQLite', () => sqliteBackend(join(folder, `${files++}`)));

test('an object that is not a store is refused where it is given', () => {
  const card = { name: 'x' };
  const execute = () => {};
  for (const store of [{}, 1, { attach: 1 }])
    assert.throws(() => createTaskServer({ card, execute }, { store }), { code: 'INVALID_PARAMS' });
  const backend = memoryBackend();
  for (const options of [
    {},
    { backend: {} },
    { backend, term: -1 },
    { backend, maxOutbox: 'x' },
    { backend, onOrphan: 'x' },
  ])
    assert.throws(() => taskStore(options), { code: 'INVALID_PARAMS' });
  assert.throws(() => taskStore({ backend, terms: 1 }), { code: 'INVALID_PARAMS' });
});
