// The same as effects.test.js, by the ways that lead to a page of a real browser. Each session
// opens a page, so there are fewer.
import { after } from 'node:test';
import { Database } from './database.js';
import { openPageConnections } from './page-connections.js';
import { testConnections } from './test-connections.js';

const database = new Database();
const { connections, close } = await openPageConnections(database);
after(async () => {
  await close();
  await database.close();
});
testConnections(connections, database);
