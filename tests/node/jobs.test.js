// The jobs that a change runs: CONTRIBUTING.md has the list, scripts/jobs.js the jobs.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { jobsOf, listedJobs } from '../../scripts/changed.js';
import { jobsIn, perNodeVersion } from '../../scripts/jobs.js';
import { root } from '../support/named-tests.js';

test('each job of the list is one of all, and each of all is in the list', () => {
  const listed = new Set(listedJobs().flatMap(([, jobs]) => jobs));
  assert.deepEqual([...listed].sort(), jobsIn('all').sort());
});

test('each beginning in the list is that of a file', () => {
  for (const path of listedJobs().flatMap(([paths]) => paths)) {
    const [, folder, beginning] = /^(.*\/)?(.*)$/.exec(path);
    const at = new URL(folder ?? './', root);
    const names = existsSync(at) ? readdirSync(at) : [];
    assert.ok(
      names.some((name) => name.startsWith(beginning)),
      path,
    );
  }
});

test('a file takes all lines in which its path begins, and everything if it is in none', () => {
  const list = [
    [
      ['js/', 'README.md'],
      ['node', 'lint'],
    ],
    [['js/core/'], ['c']],
  ];
  assert.deepEqual(jobsOf([], list), []);
  assert.deepEqual(jobsOf(['js/index.js'], list), ['node', 'lint']);
  assert.deepEqual(jobsOf(['js/core/core.js'], list), ['node', 'lint', 'c']);
  assert.deepEqual(jobsOf(['js/core/core.js', 'README.md'], list), ['node', 'lint', 'c']);
  assert.deepEqual(jobsOf(['README.md', 'package.json'], list), ['all']);
});

test('a package of its own runs its own jobs, and so does what all stand on', () => {
  assert.ok(jobsOf(['js/app/expose.js']).includes('gateway'));
  assert.ok(!jobsOf(['packages/gateway/src/gateway.js']).includes('chromium'));
  assert.deepEqual(jobsOf(['package.json']), ['all']);
});

/** The tests of the job `node`. */
const units = [
  'tests/node/',
  ...readdirSync(new URL('packages', root))
    .filter((name) => name !== 'gateway')
    .map((name) => `packages/${name}/tests/`),
].flatMap((folder) => {
  const names = existsSync(new URL(folder, root)) ? readdirSync(new URL(folder, root)) : [];
  return names.filter((name) => name.endsWith('.test.js')).map((name) => folder + name);
});

test('what a version of Node may decide is tried in each version, also when the test itself is changed', () => {
  const decided = /from 'node:(async_hooks|http|net|sqlite|stream|vm|worker_threads)/;
  for (const path of units) {
    if (decided.test(readFileSync(new URL(path, root), 'utf8')))
      assert.ok(perNodeVersion.includes(path), path);
  }
  const versions = jobsIn('all').filter((name) => /^node-\d/.test(name));
  assert.deepEqual(versions, ['node-20', 'node-22', 'node-24']);
  for (const path of perNodeVersion) {
    assert.ok(units.includes(path), path);
    for (const job of ['node', ...versions]) assert.ok(jobsOf([path]).includes(job), path);
  }
});

test('what no version of Node decides, more than half of the tests, is tried once', () => {
  assert.equal(new Set(perNodeVersion).size, perNodeVersion.length);
  assert.ok(2 * perNodeVersion.length < units.length);
});
