// What crosses between JavaScript and the core: a mistake does not compile.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as abp from '../../js/driver/abp-boundary.js';
import { KINDS, SESSIONS } from '../../parts/trace/abp-names.js';

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));

test('a number of one meaning does not compile where another is wanted', () => {
  const compiler = pathOf('../../node_modules/typescript/bin/tsc');
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--allowJs',
    '--skipLibCheck',
    '--target',
    'es2023',
  ];
  const { stdout } = spawnSync(
    process.execPath,
    [compiler, ...options, '--module', 'nodenext', pathOf('../types/boundary.ts')],
    { encoding: 'utf8' },
  );
  assert.equal(stdout, '');
});

test('the names of actions and states stand where their numbers say', () => {
  const numbersOf = (names, prefix = '') => names.map((name) => abp[prefix + name.toUpperCase()]);
  assert.deepEqual(numbersOf(KINDS), [...KINDS.keys()]);
  assert.deepEqual(numbersOf(SESSIONS, 'SESSION_'), [...SESSIONS.keys()]);
});
