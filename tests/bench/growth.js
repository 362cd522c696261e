/**
 * What a call costs and keeps when many others are pending, and when its page has many connections.
 */
import { hostPage, weigher } from './peers.js';
import { FLOOR, OURS } from './shared.js';

export const PENDING = 'pending calls';
export const CONNECTIONS = 'connections in a page';
/** Rows of each table, and what they are of. */
export const GROWTH = [
  'one at a time, of a raw port',
  '1,000 in flight, of a raw port',
  'bytes a pending call',
  'KB a connection',
];
const ROUNDS = 3;
/** Fewer calls than these weigh less than what else changes in a heap. */
const WEIGHED = 1000;

/**
 * By table: how many there are, and by row what was measured.
 * @param {Awaited<ReturnType<import('../support/browser.js').sites>>} site
 * @param {{ quick: boolean, log: (line: string) => void }} how
 * @returns {Promise<Record<string, { counts: number[], rows: Record<string, (number
 *   | undefined)[]> }>>}
 */
export async function growth(site, { quick, log }) {
  const [one, burst, kept, connection] = GROWTH;

  const opened = async () => {
    const { context, page, ask, open } = await hostPage(site, site.appOrigin);
    await open(FLOOR);
    await open(OURS);
    const weigh = await weigher(context, page);
    const sum = async () => (await weigh()).reduce((a, b) => a + b);
    return { context, ask, sum };
  };
  /** The median of several rounds. */
  const ratio = async (ask, ...what) => {
    const ratios = [];
    for (let i = 0; i <= (quick ? 1 : ROUNDS); i++) {
      const [[mine], [floor]] = await ask('pair', OURS, ...what);
      if (i) ratios.push(mine / floor); // the first was cold
    }
    return ratios.sort((a, b) => a - b)[ratios.length >> 1];
  };
  const times = async (ask) => ({
    [one]: await ratio(ask, 'oneAtATime', [100], 5),
    [burst]: await ratio(ask, 'inFlight', [1000], 3),
  });
  const tableOf = (counts, lines) => ({
    counts,
    rows: Object.fromEntries(
      GROWTH.filter((row) => row in lines[0]).map((row) => [row, lines.map((line) => line[row])]),
    ),
  });

  const pending = quick ? [10, 1000] : [10, 1000, 100_000, 1_000_000];
  const lines = [];
  const { context, ask, sum } = await opened();
  await times(ask); // what the first calls make and compile is not of those that are pending
  let there = 0;
  for (const count of pending) {
    const before = await sum();
    await ask('pend', OURS, count - there);
    const bytes = ((await sum()) - before) / (count - there);
    there = count;
    lines.push({ ...(await times(ask)), [kept]: count < WEIGHED ? undefined : bytes });
    log(`${count} pending`);
  }
  await context.close();

  const connections = quick ? [1, 10] : [1, 10, 100];
  const calls = quick ? 1000 : 10_000;
  const lines2 = [];
  for (const count of connections) {
    const { context, ask, sum } = await opened();
    const empty = await sum();
    await ask('connectMore', OURS, count);
    const connected = await sum();
    const line = await times(ask);
    const warm = await sum();
    await ask('pend', OURS, calls);
    line[kept] = ((await sum()) - warm) / calls;
    line[connection] = (connected - empty) / count / 1000;
    lines2.push(line);
    await context.close();
    log(`${count} connections`);
  }
  return { [PENDING]: tableOf(pending, lines), [CONNECTIONS]: tableOf(connections, lines2) };
}
