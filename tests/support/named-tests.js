/**
 * Lists in Markdown whose items each name the tests that hold them, as lines "- `path`: "name""
 * below the item. The name is that of a `test` or an `it` in JavaScript (with its `${…}`), of a
 * cmocka test, or of a section of a transcript.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** Where the sources are, also for tests that run in a copy with mutants (tests/mutation). */
const root = process.env.UNMUTATED
  ? pathToFileURL(`${process.env.UNMUTATED}/`)
  : new URL('../../', import.meta.url);
export { root };
export const read = (path) => readFileSync(new URL(path, root), 'utf8');

/**
 * @param {string} text
 * @param {RegExp} start how each item starts, its words in bold
 * @returns {{ rule: string, tests: { path: string, name: string }[] }[]}
 */
export function namedTestsIn(text, start) {
  return text
    .split(start)
    .slice(1)
    .map((item) => ({
      rule: item.slice(0, item.indexOf('**')),
      tests: [...item.matchAll(/^ +- `([^`]+)`: "(.+?)"(?:$|[:.;] )/gm)].map(([, path, name]) => ({
        path,
        name: name.replace(/\\([_*])/g, '$1'), // which Markdown would take for emphasis
      })),
    }));
}

/**
 * @param {string} text of a file
 * @param {string} path
 * @param {string} name
 */
export function hasTest(text, path, name) {
  if (path.endsWith('.c')) return text.split(/\s/).includes(`${name}(void`);
  if (path.endsWith('.md')) return text.split('\n').includes(`## ${name}`);
  const calls = ['test', ' it'];
  return ["'", '"', '`'].some((quote) =>
    calls.some((call) => text.includes(`${call}(${quote}${name}${quote}`)),
  );
}

/** Fails for an item without a test, and for a test that is not there. */
export function assertTestsExist(items) {
  for (const { rule, tests } of items) {
    assert.ok(tests.length, `no test holds: ${rule}`);
    for (const { path, name } of tests) {
      assert.ok(existsSync(new URL(path, root)), `${rule}: there is no ${path}`);
      assert.ok(hasTest(read(path), path, name), `${rule}: ${path} has no test "${name}"`);
    }
  }
}
