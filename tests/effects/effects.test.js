// What callers are told of calls that are stopped, and what stands in a database beside the
// library: neither contradicts the other, by any way. STOPS is how many calls each way has, SEED
// where they begin. `npm run effects` makes more, and prints a table.
import { after } from 'node:test';
import { Database } from './database.js';
import { testConnections } from './test-connections.js';
import { CONNECTIONS } from './connections.js';

const database = new Database();
after(() => database.close());
testConnections(CONNECTIONS, database);
