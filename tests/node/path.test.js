// How much code a call passes, on both sides together: counts, which are the same on any machine.
// In a page a call comes after a pause, and then costs as much as the code that it touches.
// What a page downloads is in tests/size.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const limits = JSON.parse(readFileSync(new URL('path.json', import.meta.url), 'utf8'));
const program = fileURLToPath(new URL('../support/path.js', import.meta.url));
// It counts the core as WebAssembly, and is not counted itself.
const env = { ...process.env, NODE_OPTIONS: '', NODE_V8_COVERAGE: '' };
const measured = JSON.parse(
  execFileSync(process.execPath, [program, '--json'], { env, encoding: 'utf8' }),
);

/** The counts that are over their limit, and those that have none. */
const findOver = (counts, limits) =>
  Object.keys(counts)
    .filter((what) => !(counts[what] <= limits[what]))
    .map((what) => `${what}: ${counts[what]}, at most ${limits[what]}`);

const listed = (each) =>
  each.map(({ name, perCall }) => `${perCall.toFixed(2)} ${name}`).join('\n');

for (const [way, limit] of Object.entries(limits)) {
  test(`the way of a call is short: ${way}`, () => {
    const { counts, crossings, functions } = measured[way];
    assert.ok(counts.functions > 10 && counts.crossings > 1, 'they are counted');
    const over = findOver(counts, limit);
    assert.deepEqual(
      over,
      [],
      `${over.join('\n')}\n\n${listed(crossings)}\n\n${listed(functions)}`,
    );
  });
}

test('each way has its limits', () => {
  assert.deepEqual(Object.keys(limits), Object.keys(measured));
});

test('what is over its limit is found, and so is what has none', () => {
  assert.deepEqual(findOver({ crossings: 4 }, { crossings: 4 }), []);
  assert.equal(findOver({ crossings: 4.5 }, { crossings: 4 }).length, 1);
  assert.equal(findOver({ crossings: 0 }, {}).length, 1);
});
