// Our A2A agent beside the SDK's, in one run with one client: tasks a second, the time of a cancel,
// the memory of an idle subscription. Rounds alternate; medians of rounds and their ratios are
// printed.
//
//   npm run bench:a2a [-- rounds]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { performance } from 'node:perf_hooks';

const ROUNDS = Number(process.argv[2] ?? 5);
const TASKS = 1500;
const AT_ONCE = 32;
const CANCELS = 150;
const SUBSCRIPTIONS = 1000;

const keptAlive = new Agent({ keepAlive: true, maxSockets: AT_ONCE * 2 });
const HEADERS = { 'content-type': 'application/json', 'a2a-version': '1.0' };

const send = async (port, method, params, agent = keptAlive) => {
  const outgoing = httpRequest({
    port,
    host: '127.0.0.1',
    method: 'POST',
    headers: HEADERS,
    agent,
  });
  outgoing.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  try {
    const [response] = await once(outgoing, 'response');
    return response.setEncoding('utf8');
  } catch (error) {
    // This connection was idle during the other agent's turn, and the server may have just closed
    // it.
    if (!outgoing.reusedSocket || error.code !== 'ECONNRESET') throw error;
    return send(port, method, params, agent);
  }
};

const message = (text) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] },
});

async function wholeOf(response) {
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

/** Runs `work` a given number of times, some at once; returns the rate per second. */
async function rate(work) {
  let left = TASKS;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) await work();
    }),
  );
  return (TASKS / (performance.now() - began)) * 1000;
}

const expecting = (text, what) => {
  if (!text.includes(what)) throw new Error(`no ${what} in ${text}`);
};

/** A task that works until it is cancelled: its stream, and its id. */
async function begin(port, agent) {
  const response = await send(port, 'SendStreamingMessage', message('wait'), agent);
  let text = '';
  response.on('data', (chunk) => (text += chunk));
  while (!text.includes('TASK_STATE_WORKING')) await once(response, 'data');
  return { response, id: /"id":"([^"]+)"/.exec(text)[1] };
}

const measures = {
  'tasks a second, answered when they have ended': {
    more: true,
    run: ({ port }) =>
      rate(async () =>
        expecting(await wholeOf(await send(port, 'SendMessage', message('go'))), 'COMPLETED'),
      ),
  },
  'tasks a second, streamed': {
    more: true,
    run: ({ port }) =>
      rate(async () =>
        expecting(
          await wholeOf(await send(port, 'SendStreamingMessage', message('go'))),
          'COMPLETED',
        ),
      ),
  },
  'a cancel, µs until its answer': {
    async run({ port }) {
      const times = [];
      for (let n = 0; n < CANCELS; n++) {
        const { response, id } = await begin(port, keptAlive);
        const began = performance.now();
        expecting(await wholeOf(await send(port, 'CancelTask', { id })), 'CANCELED');
        times.push((performance.now() - began) * 1000);
        if (!response.readableEnded) await once(response, 'end');
      }
      return median(times);
    },
  },
  'an idle subscription and its task, KB': {
    async run(server) {
      const agent = new Agent();
      const before = await server.memory();
      const open = [];
      for (let n = 0; n < SUBSCRIPTIONS; n += 50)
        open.push(
          ...(await Promise.all(Array.from({ length: 50 }, () => begin(server.port, agent)))),
        );
      const used = (await server.memory()) - before;
      for (const { id } of open) await wholeOf(await send(server.port, 'CancelTask', { id }));
      return used / SUBSCRIPTIONS / 1024;
    },
  },
};

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

async function start(whose) {
  const child = fork(new URL('a2a-agent.js', import.meta.url), [whose], {
    execArgv: ['--expose-gc'],
  });
  const [{ port }] = await once(child, 'message');
  return {
    port,
    async memory() {
      child.send('memory');
      const [{ memory }] = await once(child, 'message');
      return memory;
    },
    stop: () => child.disconnect(),
  };
}

const names = ['ours', 'sdk'];
const servers = Object.fromEntries(
  await Promise.all(names.map(async (name) => [name, await start(name)])),
);
const results = {};
let behind = 0;
for (const [measure, { run, more }] of Object.entries(measures)) {
  const found = { ours: [], sdk: [] };
  await Promise.all(names.map((name) => run(servers[name]))); // warm
  for (let round = 0; round < ROUNDS; round++)
    for (const name of round % 2 ? names.toReversed() : names)
      found[name].push(await run(servers[name]));
  const [ours, sdk] = names.map((name) => median(found[name]));
  const ahead = more ? ours / sdk : sdk / ours;
  if (ahead < 1) behind++;
  const round = (number) => Number(number.toPrecision(3));
  results[measure] = { ours: round(ours), 'SDK 1.3.0': round(sdk), 'times better': round(ahead) };
}
console.table(results);
for (const server of Object.values(servers)) server.stop();
keptAlive.destroy();
process.exitCode = behind ? 1 : 0;
