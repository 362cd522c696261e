/** Tells which jobs of scripts/jobs.js a change can break, by the list in CONTRIBUTING.md. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const cwd = fileURLToPath(new URL('../', import.meta.url));

/** @returns {[string[], string[]][]} the list: how paths begin, and the jobs */
export function listedJobs() {
  const text = readFileSync(new URL('../CONTRIBUTING.md', import.meta.url), 'utf8');
  const [, list] = /** @type {RegExpExecArray} */ (
    /^## What a change can break$[^]*?```\n([^]*?)```/m.exec(text)
  );
  return list
    .trim()
    .split('\n')
    .map((line) => {
      const [paths, jobs] = line.split('->').map((half) => half.trim().split(/\s+/));
      return [paths, jobs];
    });
}

/**
 * @param {string[]} files that have changed, from the root
 * @param {[string[], string[]][]} [list]
 * @returns {string[]} the jobs of each line in which a file begins, and `all` for a file that is in none
 */
export function jobsOf(files, list = listedJobs()) {
  const jobs = new Set(
    files.flatMap((file) => {
      const lines = list.filter(([paths]) => paths.some((path) => file.startsWith(path)));
      return lines.length ? lines.flatMap(([, named]) => named) : ['all'];
    }),
  );
  return jobs.has('all') ? ['all'] : [...jobs];
}

/**
 * @param {string} [since] a commit; else it is where this branch left main
 * @returns {string[]} the jobs that what differs from it can break. What is not committed counts.
 */
export function changedJobs(since) {
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync('git', args, { cwd, encoding: 'utf8' }).split('\n').filter(Boolean);
  const differing = git('diff', '--name-only', since ?? git('merge-base', 'main', 'HEAD')[0]);
  return jobsOf([...differing, ...git('ls-files', '--others', '--exclude-standard')]);
}
