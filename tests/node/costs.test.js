// What inputs cost JavaScript, in steps and not in seconds: n, 2n and 4n parts take about one, two
// and four times as many. What they cost the core is in tests/core/test_costs.c.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as scenarios from '../support/cost-scenarios.js';
import { stepsOf } from '../support/steps.js';

const MODULE = new URL('../support/cost-scenarios.js', import.meta.url);
const N = 1200; // more than are read in a turn
/** What streams and turns decide may add a half; the square of 4 is 16. */
const isLinear = ([one, two, four]) => two <= 3 * one && four <= 6.4 * one;

for (const name of Object.keys(scenarios)) {
  // From the name of the function: aListAsJson is "a list as json".
  const what = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  test(`the steps are in proportion to the length: ${what}`, async () => {
    const steps = await stepsOf(MODULE, name, [N, 2 * N, 4 * N]);
    assert.ok(steps[2] > N, `it is counted: ${steps}`);
    assert.ok(isLinear(steps), `steps of n, 2n and 4n: ${steps.join(', ')}`);
  });
}

test('what is not linear is found', () => {
  assert.ok(isLinear([1000, 2000, 4000]));
  assert.ok(isLinear([50_000, 51_000, 53_000]), 'most of it is the beginning');
  assert.ok(!isLinear([1000, 4000, 16_000]));
  assert.ok(!isLinear([1000, 2500, 6500]));
});
