// The cost of a store: our agent without one, with each backend, on NATS with one, two and three
// processes, and the SDK's with its store in memory; in one run, with one client. Rounds alternate,
// and medians are printed. It needs nats-server.
//
//   npm run bench:fleet [-- rounds tasks]
//   npm run bench:fleet -- --many   operations with many stored tasks: see a2a-many.js
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { NatsServer } from '../tests/fleet/nats-server.js';

if (process.argv.includes('--many')) {
  await import('./a2a-many.js');
  process.exit();
}

const ROUNDS = Number(process.argv[2] ?? 5);
const TASKS = Number(process.argv[3] ?? 600);
const AT_ONCE = 32;
const CANCELS = 60;

const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE * 2 });
const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };

async function ask(port, method, params) {
  const outgoing = httpRequest({ port, host: '127.0.0.1', method: 'POST', headers, agent });
  outgoing.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  try {
    const [response] = await once(outgoing, 'response');
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    return text;
  } catch (error) {
    if (!outgoing.reusedSocket || error.code !== 'ECONNRESET') throw error;
    return ask(port, method, params);
  }
}

const message = (text) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] },
});
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
const expecting = (text, what) => {
  if (!text.includes(what)) throw new Error(`no ${what} in ${text}`);
  return text;
};

/** Tasks a second, round robin over the ports. */
async function rate(ports) {
  let left = TASKS;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0)
        expecting(await ask(ports[left % ports.length], 'SendMessage', message('go')), 'COMPLETED');
    }),
  );
  return (TASKS / (performance.now() - began)) * 1000;
}

/** Ms until a cancel is answered, by another process if there is one. */
async function cancels(ports) {
  const times = [];
  for (let n = 0; n < CANCELS; n++) {
    const params = { ...message('wait'), configuration: { returnImmediately: true } };
    const text = await ask(ports[n % ports.length], 'SendMessage', params);
    const { id } = JSON.parse(text).result.task;
    const began = performance.now();
    expecting(await ask(ports[(n + 1) % ports.length], 'CancelTask', { id }), 'CANCELED');
    times.push(performance.now() - began);
  }
  return median(times);
}

const folder = mkdtempSync(join(tmpdir(), 'abp-bench-'));
const nats = await Promise.all([1, 2, 3].map(() => new NatsServer().start()));
const hasSqlite = await import('node:sqlite').then(
  () => true,
  () => false,
);
const children = [];
async function start(whose, where = '', count = 1) {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const child = fork(new URL('../../a2a/bench/a2a-agent.js', import.meta.url), [
        whose,
        String(where),
      ]);
      children.push(child);
      const [{ port }] = await once(child, 'message');
      return port;
    }),
  );
}
const fleets = {
  'no store': await start('ours'),
  'in memory': await start('memory'),
  ...(hasSqlite && { SQLite: await start('sqlite', join(folder, 'tasks')) }),
  'NATS, 1 process': await start('nats', nats[0].port),
  'NATS, 2 processes': await start('nats', nats[1].port, 2),
  'NATS, 3 processes': await start('nats', nats[2].port, 3),
  '@a2a-js/sdk, in memory': await start('sdk'),
};
const found = Object.entries(fleets).map(([name, ports]) => ({
  name,
  ports,
  rates: [],
  times: [],
}));
for (const { ports } of found) {
  await rate(ports); // warm
  await cancels(ports);
}
for (let round = 0; round < ROUNDS; round++)
  for (const one of round % 2 ? found.toReversed() : found) {
    one.rates.push(await rate(one.ports));
    one.times.push(await cancels(one.ports));
  }
console.table(
  Object.fromEntries(
    found.map(({ name, rates, times }) => [
      name,
      {
        'tasks a second': Math.round(median(rates)),
        'a cancel, ms': Number(median(times).toPrecision(3)),
      },
    ]),
  ),
);
for (const child of children) child.disconnect();
await Promise.all(nats.map((server) => server.close()));
agent.destroy();
rmSync(folder, { recursive: true });
