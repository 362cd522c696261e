// What others' code may do to a release, and what builds a checkout that was moved.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8');

test('a release uses actions by their hash, with the version in words', () => {
  const uses = workflow.split('\n').filter((line) => /\buses:/.test(line));
  assert.ok(uses.length > 3);
  for (const line of uses) assert.match(line, /uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
});

test('nothing without an exact version runs where tokens can be minted', () => {
  const jobs = workflow.slice(workflow.indexOf('\njobs:')).split(/^ {2}(?=\w+:$)/m);
  const minting = jobs.filter((job) => /id-token: write/.test(job));
  assert.equal(minting.length, 1);
  assert.doesNotMatch(
    minting[0],
    /\b(npx|npm (i|ci|install|exec)|pnpm|yarn|curl|wget|container:)\b/,
  );
  for (const [, version] of minting[0].matchAll(/-version: (.*)$/gm)) {
    assert.match(version, /^\d+\.\d+\.\d+$/);
  }
});

test('a checkout that was moved builds again', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'checkout-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const first = join(folder, 'first');
  for (const each of ['scripts', 'bin']) mkdirSync(join(first, each), { recursive: true });
  copyFileSync(join(root, 'scripts/build.sh'), join(first, 'scripts/build.sh'));
  const script = (path, text) => {
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
  };
  script(join(first, 'scripts/setup.sh'), ':');
  // As CMake does: the cache of another folder is an error.
  script(
    join(first, 'bin/cmake'),
    `[ "$1" = --preset ] || exit 0
    cache=build/$2/CMakeCache.txt line="CMAKE_CACHEFILE_DIR:INTERNAL=$PWD/build/$2"
    [ ! -e $cache ] || grep -qxF "$line" $cache || exit 1
    mkdir -p build/$2
    [ -e $cache ] || echo configured >> build/count
    echo "$line" > $cache`,
  );
  const build = (checkout) => {
    const PATH = `${join(checkout, 'bin')}:${process.env.PATH}`;
    execFileSync(join(checkout, 'scripts/build.sh'), ['native'], { env: { ...process.env, PATH } });
    return readFileSync(join(checkout, 'build/count'), 'utf8').split('\n').length - 1;
  };
  assert.equal(build(first), 1);
  // What is where it was is not configured again.
  assert.equal(build(first), 1);
  const second = join(folder, 'second');
  renameSync(first, second);
  assert.equal(build(second), 2);
});
