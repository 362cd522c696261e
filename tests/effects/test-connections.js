/** A test of each way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeStops } from './stops.js';

const STOPS = Number(process.env.STOPS ?? 300);
const seed = Number(process.env.SEED ?? 1);

/**
 * @param {Record<string, import('./stops.js').Connection>} connections
 * @param {import('./database.js').Database} database
 */
export function testConnections(connections, database) {
  for (const [name, connection] of Object.entries(connections)) {
    const stops = Math.ceil(STOPS / (connection.costs ?? 1));
    test(`${stops} stops by ${name}`, async (t) => {
      t.mock.method(console, 'warn', () => {}); // that handlers run on
      t.mock.method(console, 'error', () => {}); // that executors fail
      const told = await makeStops(connection, database, { stops, seed });
      const wrong = told.flatMap((record) => record.wrong ?? []);
      assert.deepEqual(wrong.slice(0, 10), [], `${wrong.length} of ${told.length}`);
    });
  }
}
