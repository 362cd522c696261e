/** Streams beside those of other libraries: what they cost, and what they hold for a reader that is slow. */
import { hostPage, prepare, rounds } from './peers.js';

export const STREAMING = 'raw-port readable-stream abp-bridge comlink capnweb orpc'.split(' ');

/** What is streamed. */
export const KINDS = [
  { key: 'tokens', title: '16 B of text', size: 16, count: 2000 },
  { key: 'rows', title: '1 KiB of text', size: 1 << 10, count: 2000 },
  { key: 'copied', title: '64 KiB copied', size: 1 << 16, count: 100, bytes: true },
  { key: 'moved', title: '64 KiB moved', size: 1 << 16, count: 100, bytes: true, moves: true },
];
const SLOW = { size: 1 << 16, count: 1000 };
/** Ms for which a reader reads nothing. */
const PAUSE = 500;

/** The columns of the table. Less is better in each. */
export const STREAM_COLUMNS = [
  ...KINDS,
  { key: 'first', title: 'first chunk' },
  { key: 'ahead', title: 'MiB ahead of a slow reader' },
];

/**
 * @param {Awaited<ReturnType<import('../support/browser.js').sites>>} site
 * @param {{ quick: boolean, log?: (line: string) => void }} how
 */
export async function compareStreams(site, { quick, log = () => {} }) {
  await prepare();
  const { context, ask, open } = await hostPage(site, site.appOrigin);
  for (const name of STREAMING) await open(name);
  const table = {};
  const timed = (what, count, slices, who, params) =>
    rounds(ask, { count: quick ? 2 : count, slices: quick ? 1 : slices, log }, who, what, params);
  for (const { key, title, ...params } of KINDS) {
    const able = [];
    for (const name of STREAMING) {
      // Where only the writer can say so, chunks are moved that can be.
      if (params.moves && ['readable-stream', 'capnweb', 'orpc'].includes(name)) continue;
      if (await ask('streams', name, params)) able.push(name);
    }
    log(title);
    [table[key]] = await timed('stream', 9, 3, able, params);
  }
  [table.first] = await timed('first', 11, 15, STREAMING, { ...KINDS[0], count: 1 });
  table.ahead = {};
  for (const name of STREAMING) {
    const chunks = await ask('ahead', name, SLOW, PAUSE);
    table.ahead[name] = { median: (chunks * SLOW.size) / 2 ** 20 };
  }
  await context.close();
  return { names: STREAMING, table };
}
