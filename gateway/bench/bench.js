// npm run bench:gateway: how long the gateway's ways take, with the official client over stdio and a real Chromium.
import { readFileSync, readdirSync } from 'node:fs';
import { connectClient } from '../tests/support/clients.js';
import { startSite } from '../tests/support/site.js';

const ROUNDS = Number(process.env.ROUNDS ?? 20);
const now = () => performance.timeOrigin + performance.now();
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const shown = (values) =>
  `${median(values).toFixed(1)} (${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)})`;

/** Resident memory of a process and of all that it has begun, in MB. */
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

const site = await startSite();
const options = { args: ['mcp', site.url(), '--temporary'] };
for (const kind of ['2.x', '2.x modern']) {
  const [starts, cancels, calls] = [[], [], []];
  let memory;
  for (let round = 0; round < 3; round++) {
    const from = now();
    const mcp = await connectClient(kind, options);
    await mcp.client.listTools();
    starts.push(now() - from);
    memory = memoryOf(mcp.transport.pid);
    for (let i = 0; i < ROUNDS; i++) {
      const began = now();
      await mcp.call('number_add', { a: 1, b: 2 });
      calls.push(now() - began);
    }
    for (let i = 0; i < ROUNDS; i++) {
      const before = site.lines.length;
      const stop = new AbortController();
      const called = mcp.call('work_hang', {}, { signal: stop.signal });
      await site.logged(/hang started/, before);
      const at = now();
      stop.abort('enough');
      await called.catch(() => {});
      const line = await site.logged(/^hang signal at/, before);
      cancels.push(Number(line.split(' ').at(-1)) - at);
    }
    await mcp.close();
  }
  console.log(`client ${kind}
  start to the first tools/list, ms     ${shown(starts)}
  a call that adds two numbers, ms      ${shown(calls)}
  cancel to the handler's signal, ms    ${shown(cancels)}
  idle memory, MB: program and browser  ${memory.program.toFixed(0)} and ${memory.browser.toFixed(0)} (shared pages counted often)`);
}
site.close();
