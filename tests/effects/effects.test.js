// What callers are told of calls that are stopped, and what stands in a database beside the library: neither contradicts the
// other, by any way. STOPS is how many calls each way has (`npm run effects`: 10,000), SEED where they begin.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Database } from './database.js';
import { makeStops } from './stops.js';
import { WAYS } from './ways.js';

const STOPS = Number(process.env.STOPS ?? 300);
const seed = Number(process.env.SEED ?? 1);
const database = new Database();
after(() => database.close());

for (const [name, way] of Object.entries(WAYS)) {
  const stops = Math.ceil(STOPS / (way.costs ?? 1));
  test(`${stops} stops by ${name}`, async (t) => {
    t.mock.method(console, 'warn', () => {}); // that handlers run on
    t.mock.method(console, 'error', () => {}); // that executors fail
    const { tally, wrong } = await makeStops(way, database, { stops, seed });
    const unknown = (100 * (tally.unknown ?? 0)) / stops;
    t.diagnostic(`${unknown.toFixed(1)} % unknown; ${JSON.stringify(tally)}`);
    assert.deepEqual(wrong.slice(0, 10), [], `${wrong.length} of ${stops}`);
  });
}
