// The same as effects.test.js, by the ways that lead to a page of a real browser. Each session opens a page, so there are fewer.
import { after } from 'node:test';
import { launch, serve } from '../support/browser.js';
import { serveDatabase } from './database-server.js';
import { Database } from './database.js';
import { pageWays } from './page-ways.js';
import { testWays } from './test-ways.js';

const database = new Database();
const browser = await launch({ args: ['--enable-features=WebMCP,WebMCPTesting'] });
const [host, app, served] = await Promise.all([serve(), serve(), serveDatabase(database)]);
after(async () => {
  await browser.close();
  for (const each of [host, app, served]) each.close();
  await database.close();
});
const ways = await pageWays({
  browser,
  hostOrigin: `http://127.0.0.1:${host.port}`,
  appOrigin: `http://localhost:${app.port}`,
  database,
  served,
});
testWays(ways, database);
