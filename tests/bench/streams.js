/**
 * Streams beside those of other libraries: what they cost, and what they hold for a reader that is
 * slow.
 */
import { hostPage, rounds } from './peers.js';
import { STREAMS } from './shared.js';

export const STREAMING = 'raw-port readable-stream abp-bridge comlink capnweb orpc'.split(' ');

/** What is streamed, by the title of its column. */
const KINDS = {
  '16 B of text': { size: 16, count: 2000 },
  '1 KiB of text': { size: 1 << 10, count: 2000 },
  '64 KiB copied': { size: 1 << 16, count: 100, bytes: true },
  '64 KiB moved': { size: 1 << 16, count: 100, bytes: true, moves: true },
};
const SLOW = { size: 1 << 16, count: 1000 };
/** Ms for which a reader reads nothing. */
const PAUSE = 500;

/**
 * By column and library.
 * @param {Awaited<ReturnType<import('../support/browser.js').sites>>} site
 * @param {import('./peers.js').How} how
 */
export async function compareStreams(site, { quick, only, wants, log }) {
  if (!wants(STREAMS)) return {};
  const { context, ask, open } = await hostPage(site, site.appOrigin);
  const names = STREAMING.filter((name) => !only || only.includes(name) || name === STREAMING[0]);
  for (const name of names) await open(name);
  const table = {};
  const timed = async (title, what, count, slices, who, params) => {
    const how = { count: quick ? 2 : count, slices: quick ? 1 : slices, log };
    [table[title]] = await rounds(ask, how, who, what, params);
  };
  for (const [title, params] of Object.entries(KINDS)) {
    if (!wants(STREAMS, title)) continue;
    const able = [];
    for (const name of names) {
      // Where only the writer can say so, chunks are moved that can be.
      if (params.moves && ['readable-stream', 'capnweb', 'orpc'].includes(name)) continue;
      if (await ask('streams', name, params)) able.push(name);
    }
    log(title);
    await timed(title, 'stream', 5, 2, able, params);
  }
  // Of a stream that goes on: nobody streams one chunk.
  const first = 'first chunk';
  if (wants(STREAMS, first)) await timed(first, 'first', 11, 15, names, { size: 16, count: 10 });
  const ahead = 'MiB ahead of a slow reader';
  if (wants(STREAMS, ahead)) {
    table[ahead] = {};
    for (const name of names) {
      const chunks = await ask('ahead', name, SLOW, PAUSE);
      table[ahead][name] = { median: (chunks * SLOW.size) / 2 ** 20 };
    }
    log(ahead);
  }
  await context.close();
  return { [STREAMS]: table };
}
