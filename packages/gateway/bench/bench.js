// npm run bench:gateway: the times of the gateway's two versions, with the official client over
// stdio and a real Chromium, beside another server of the same app. One round is one process of
// each, one after the other.
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { startSite } from '../tests/support/site.js';
import { PEERS } from './peers.js';

const ROUNDS = 3;
const CALLS = Number(process.env.CALLS ?? 20);
/** Ms within which a handler must receive a cancel; else it counts as never received. */
const NEVER = 5000;
const now = () => performance.timeOrigin + performance.now();

/** Resident memory of a process and its descendants, in MB. */
function memoryOf(pid) {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const status = readFileSync(`/proc/${name}/status`, 'utf8');
        const field = (key) => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
        return [{ pid: Number(name), parent: field('PPid'), kilobytes: field('VmRSS') }];
      } catch {
        return [];
      }
    });
  const own = processes.filter((each) => each.pid === pid);
  for (const each of own) own.push(...processes.filter(({ parent }) => parent === each.pid));
  const [program, ...browser] = own.map(({ kilobytes }) => kilobytes / 1024);
  return { program, browser: browser.reduce((sum, each) => sum + each, 0) };
}

/** The measures, and the format of their values. */
const TIME = (value) =>
  value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${value.toFixed(1)} ms`;
const SIZE = (value) => `${value.toFixed(0)} MB`;
const MEASURES = {
  'start to the first `tools/list`': TIME,
  'start to the first result': TIME,
  'a call that adds two numbers': TIME,
  "cancel to the handler's signal": TIME,
  'memory of the idle program itself': SIZE,
  'memory of its browser, shared pages counted often': SIZE,
};
const [LIST, FIRST, CALL, CANCEL, PROGRAM, BROWSER] = Object.keys(MEASURES);

const site = await startSite();

/**
 * @param {() => Promise<any>} work
 * @returns {Promise<number>} ms
 */
async function timed(work) {
  const from = now();
  await work();
  return now() - from;
}

/**
 * @param {import('./peers.js').Peer} peer
 * @returns {Promise<number>} ms; NaN: the handler did not receive it
 */
async function cancel({ call }) {
  const before = site.lines.length;
  const stop = new AbortController();
  const called = call('work.hang', {}, { signal: stop.signal }).catch(() => {});
  await site.logged(/hang started/, before);
  const at = now();
  stop.abort('enough');
  await called;
  const heard = site.logged(/^hang signal at/, before).catch(() => undefined);
  const line = await Promise.race([heard, sleep(NEVER)]);
  return line ? Number(line.split(' ').at(-1)) - at : NaN;
}

/**
 * @param {(url: string) => Promise<import('./peers.js').Peer>} connect
 * @param {(measure: string, value: number) => void} add
 */
async function measure(connect, add) {
  const from = now();
  const peer = await connect(site.url());
  await peer.mcp.client.listTools();
  add(LIST, now() - from);
  await peer.open();
  const add1 = () => peer.call('number.add', { a: 1, b: 2 });
  await add1();
  add(FIRST, now() - from);
  const { program, browser } = memoryOf(peer.mcp.transport.pid);
  add(PROGRAM, program);
  add(BROWSER, browser);
  for (let i = 0; i < CALLS; i++) add(CALL, await timed(add1));
  for (let i = 0; i < CALLS; i++) {
    const heard = await cancel(peer);
    add(CANCEL, heard);
    // If the first is not received, further ones are not, either.
    if (Number.isNaN(heard)) break;
  }
  await peer.mcp.close();
}

/** By measure and peer. @type {Record<string, Record<string, number[]>>} */
const values = Object.fromEntries(Object.keys(MEASURES).map((name) => [name, {}]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, connect] of Object.entries(PEERS)) {
    console.error(`round ${round + 1} of ${ROUNDS}: ${name}`);
    await measure(connect, (what, value) => (values[what][name] ??= []).push(value));
  }
}
site.close();

const sorted = (list) => [...list].sort((a, b) => a - b);
const median = (list) => sorted(list)[list.length >> 1];
const names = Object.keys(PEERS);
const row = (cells) => console.log(`| ${cells.join(' | ')} |`);
row(['', ...names, 'ratio of the last to the first']);
row(Array(names.length + 2).fill('---'));
for (const [what, shown] of Object.entries(MEASURES)) {
  const cells = names.map((name) => {
    const list = sorted(values[what][name]);
    if (list.some(Number.isNaN)) return 'never';
    return `${shown(median(list))} (${shown(list[0])} to ${shown(list.at(-1))})`;
  });
  const [first, last] = [names[0], names.at(-1)].map((name) => median(values[what][name]));
  row([what, ...cells, Number.isNaN(last) ? '' : (last / first).toFixed(1)]);
}
// Calls whose cancel was not received are still pending.
process.exit();
