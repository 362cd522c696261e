// The faults that `npm run mutate -- promises` puts in have a place: code that was moved takes its
// fault along.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { FAULTS } from '../mutation/promises.js';

test('each fault changes one place', () => {
  assert.ok(FAULTS.length > 20);
  for (const { promise, file, from } of FAULTS) {
    const places =
      readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').split(from).length - 1;
    assert.equal(places, 1, `${promise}: ${file}`);
  }
});
