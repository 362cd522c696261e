// Lists that promise only what a test holds: SECURITY.md, and the attacks of tests/threats.md. The
// tests that they name exist.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertTestsExist, hasTest, namedTestsIn, read } from '../support/named-tests.js';

const promisesIn = (text) =>
  namedTestsIn(/^## What is promised\n([^]*?)^## /m.exec(text)[1], /^- \*\*/m);
const attacksIn = (text) => namedTestsIn(text, /^\d+\. \*\*/m);
const ATTACKS = 71;

test('each promise of SECURITY.md names a test that is there', () => {
  const promises = promisesIn(read('SECURITY.md'));
  assert.ok(promises.length > 5);
  assertTestsExist(promises);
});

test('each attack of tests/threats.md names a test that is there', () => {
  const text = read('tests/threats.md');
  const numbers = [...text.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
  assert.deepEqual(
    numbers,
    Array.from({ length: ATTACKS }, (_, i) => i + 1),
  );
  const attacks = attacksIn(text);
  assert.equal(attacks.length, ATTACKS);
  assertTestsExist(attacks);
  // No line is written so that it would not be read as one.
  const lines = text.match(/^ +- /gm).length;
  assert.equal(attacks.flatMap(({ tests }) => tests).length, lines);
});

test('an item without a test, and one whose test is not there, are found', () => {
  const text =
    '## What is promised\n\n- **One.** Words.\n  - `a.js`: "b"\n- **Two.** Words.\n\n## Next\n';
  assert.deepEqual(promisesIn(text), [
    { rule: 'One.', tests: [{ path: 'a.js', name: 'b' }] },
    { rule: 'Two.', tests: [] },
  ]);
  const [one, two] = promisesIn(text);
  assert.throws(() => assertTestsExist([one]), /there is no a\.js/);
  assert.throws(() => assertTestsExist([two]), /no test holds: Two\./);
  const path = 'tests/node/security.test.js';
  assert.throws(
    () => assertTestsExist([{ rule: 'Three', tests: [{ path, name: 'each promise' }] }]),
    /has no test "each promise"/,
  );
  assert.deepEqual(attacksIn('1. **A:** x\n\n   - `a.js`: "b": c\n'), [
    { rule: 'A:', tests: [{ path: 'a.js', name: 'b' }] },
  ]);
});

test('a test of each kind of file is found by its whole name', () => {
  assert.ok(hasTest('  test(`a ${b}`, () => {', 'x.test.js', 'a ${b}'));
  assert.ok(!hasTest("test('ab', () => {", 'x.test.js', 'a'));
  assert.ok(hasTest('static void\na_b(void **state) {', 'x.c', 'a_b'));
  assert.ok(!hasTest('static void a_b(int x) {', 'x.c', 'a_b'));
  assert.ok(hasTest('# A\n## A b\n', 'x.md', 'A b'));
});
