// The same as effects.test.js, by the ways that lead to a page of a real browser. Each session
// opens a page, so there are fewer.
import { after } from 'node:test';
import { Database } from './database.js';
import { openPageWays } from './page-ways.js';
import { testWays } from './test-ways.js';

const database = new Database();
const { ways, close } = await openPageWays(database);
after(async () => {
  await close();
  await database.close();
});
testWays(ways, database);
