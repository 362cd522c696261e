// What callers are told, by every way: how often each word, and whether any of them contradicts
// what stands in the database.
//
//   npm run effects -- [--browser] [way …]
//
// STOPS is how many calls each way has (10,000), SEED where they begin. A contradiction says the
// SEED of its session, which plays it again.
import { Database } from './database.js';
import { makeStops } from './stops.js';

const stops = Number(process.env.STOPS ?? 10_000);
const seed = Number(process.env.SEED ?? 1);
const args = process.argv.slice(2);
const names = args.filter((arg) => arg !== '--browser');

const database = new Database();
const { connections, close } = args.includes('--browser')
  ? await (await import('./page-connections.js')).openPageConnections(database)
  : { connections: (await import('./connections.js')).CONNECTIONS, close() {} };

// That handlers run on, that executors fail.
console.warn = console.error = () => {};

const COLUMNS = ['way', 'grace', 'trouble', 'told', 'unknown', 'wrong', 'words'];
const row = (/** @type {unknown[]} */ cells) => console.log(`| ${cells.join(' | ')} |`);
console.log(`${stops} calls by each way (fewer where a session costs more), seed ${seed}\n`);
row(COLUMNS);
row(COLUMNS.map(() => '---'));
let wrong = 0;
for (const [name, connection] of Object.entries(connections)) {
  if (names.length && !names.includes(name)) continue;
  const told = await makeStops(connection, database, {
    stops: Math.ceil(stops / (connection.costs ?? 1)),
    seed,
    graces: [60, 5000],
  });
  /** @type {Map<string, typeof told>} */
  const groups = new Map();
  for (const record of told) {
    const group = `${record.grace} ms | ${record.trouble ?? ''}`;
    groups.set(group, [...(groups.get(group) ?? []), record]);
  }
  for (const [group, records] of [...groups].sort()) {
    /** @type {Record<string, number>} */
    const counts = {};
    for (const { word } of records) counts[word] = (counts[word] ?? 0) + 1;
    const words = Object.entries(counts).sort(([, a], [, b]) => b - a);
    const unknown = records.filter(({ word }) => word === 'unknown').length;
    const first = records.filter(({ word }) => !word.includes(' ')).length;
    const contradictions = records.flatMap((record) => record.wrong ?? []);
    row([
      name,
      group,
      records.length,
      `${((100 * unknown) / first).toFixed(1)} %`,
      contradictions.length,
      words.map((each) => each.join(' ')).join(', '),
    ]);
    wrong += contradictions.length;
    for (const each of contradictions.slice(0, 20)) console.log(`  ${each}`);
  }
}
await close();
await database.close();
console.log(`\n${wrong} contradictions`);
process.exit(wrong ? 1 : 0);
