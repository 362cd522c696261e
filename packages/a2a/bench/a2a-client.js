// node packages/a2a/bench/a2a-client.js: our A2A client and the SDK's against one server, as ratios
// within this run.
//
//   --quick   a smoke run: its numbers mean nothing
//
// The server (ours) and each client run in processes of their own. Rounds of the two clients
// alternate, and ratios are medians of rounds.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);
const [role, name] = process.argv.slice(2);

/**
 * For each client: subscribe(text) begins a task and waits for its first event; then its other
 * events, its id, and its cancel.
 */
const CLIENTS = {
  async ours(url) {
    const { createTaskClient } = await import('../src/index.js');
    const client = createTaskClient(url);
    return async (text) => {
      const stream = client.subscribe(text);
      await stream.next();
      const { id } = stream.task;
      return { stream, cancel: () => client.cancel(id), stateOf: ({ status }) => status?.state };
    };
  },
  async sdk(url) {
    const { ClientFactory } = await import('@a2a-js/sdk/client');
    const { TaskState } = await import('@a2a-js/sdk');
    const client = await new ClientFactory().createFromUrl(url);
    return async (text) => {
      const stream = client.sendMessageStream({
        tenant: '',
        message: {
          messageId: crypto.randomUUID(),
          role: 1,
          parts: [
            { content: { $case: 'text', value: text }, mediaType: 'text/plain', filename: '' },
          ],
          contextId: '',
          taskId: '',
          extensions: [],
          referenceTaskIds: [],
        },
      });
      const { value } = await stream.next();
      const { id } = value.payload.value;
      return {
        stream,
        cancel: () => client.cancelTask({ tenant: '', id }),
        stateOf: ({ payload: { value } }) =>
          value.status?.state === TaskState.TASK_STATE_CANCELED ? 'canceled' : undefined,
      };
    };
  },
};

async function serve() {
  const { createTaskServer } = await import('../src/index.js');
  const agent = createTaskServer(
    {
      card: { name: 'Agent' },
      async execute(context) {
        const [{ text }] = context.message.parts;
        // Idle until it is cancelled.
        if (text === 'idle') await new Promise((resolve) => (context.signal.onabort = resolve));
        for (let n = 1; n <= 3; n++)
          context.emitArtifact({ artifactId: `${n}`, parts: [{ text: `step ${n}` }] });
      },
    },
    { limits: { maxTasks: 100_000 } },
  );
  const server = createServer(agent.handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send(`http://127.0.0.1:${server.address().port}/`);
}

/** Answers each request of the parent with a number. */
async function measure(url) {
  const subscribe = await CLIENTS[name](url);
  const open = [];
  const finish = async (task) => {
    while (!(await task.stream.next()).done);
  };
  const MEASURES = {
    /** Tasks a second, 32 at a time. */
    async tasks(count) {
      const from = performance.now();
      let left = count;
      const worker = async () => {
        while (left-- > 0) await finish(await subscribe('three steps'));
      };
      await Promise.all(Array.from({ length: 32 }, worker));
      return (count / (performance.now() - from)) * 1000;
    },
    /**
     * ms from the request for a cancel until the stream has sent canceled and ended: the median.
     */
    async cancel(count) {
      const took = [];
      for (let i = 0; i < count; i++) {
        const task = await subscribe('idle');
        const from = performance.now();
        const asked = task.cancel();
        let last;
        for await (const event of task.stream) last = event;
        if (task.stateOf(last) === 'canceled') took.push(performance.now() - from);
        await asked;
      }
      if (took.length !== count) throw new Error('not every task was canceled');
      return took.sort((a, b) => a - b)[count >> 1];
    },
    /** Bytes of one more idle subscription. */
    async memory(count) {
      const used = async () => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        for (let i = 0; i < 4; i++) globalThis.gc();
        const { heapUsed, external, arrayBuffers } = process.memoryUsage();
        return heapUsed + external + arrayBuffers;
      };
      // The first few load code, which must not count.
      for (let i = 0; i < 20; i++) open.push(await subscribe('idle'));
      for (const task of open) task.waiting = task.stream.next();
      const before = await used();
      for (let i = 0; i < count; i++) {
        const task = await subscribe('idle');
        task.waiting = [await task.stream.next(), task.stream.next()];
        open.push(task);
      }
      return ((await used()) - before) / count;
    },
  };
  process.on('message', async ([measure, count]) => process.send(await MEASURES[measure](count)));
  process.send('ready');
}

async function run() {
  const quick = process.argv.includes('--quick');
  const child = async (...args) => {
    const process = fork(self, args, { execArgv: ['--expose-gc'] });
    const [first] = await once(process, 'message');
    return { process, first };
  };
  const server = await child('serve');
  const clients = {};
  for (const which of Object.keys(CLIENTS))
    clients[which] = await child('client', which, server.first);
  const ask = async (which, measure, count) => {
    clients[which].process.send([measure, count]);
    return (await once(clients[which].process, 'message'))[0];
  };
  console.log('| A2A client, against one server | ours | @a2a-js/sdk | ratio |');
  console.log('| --- | --- | --- | --- |');
  for (const [measure, what, count, rounds, digits, more] of [
    ['tasks', 'tasks a second, 32 at a time', quick ? 64 : 400, quick ? 1 : 31, 0, true],
    [
      'cancel',
      'cancel, until its stream has settled, ms',
      quick ? 5 : 200,
      quick ? 1 : 5,
      2,
      false,
    ],
    ['memory', 'bytes an idle subscription', quick ? 20 : 1000, 1, 0, false],
  ]) {
    const results = { ours: [], sdk: [] };
    for (let round = 0; round < rounds; round++) {
      // Alternate the order: the state of the machine changes within a round.
      const order = round % 2 ? ['sdk', 'ours'] : ['ours', 'sdk'];
      for (const which of order) results[which].push(await ask(which, measure, count));
    }
    const median = (all) => all.toSorted((a, b) => a - b)[all.length >> 1];
    const [ours, sdk] = [median(results.ours), median(results.sdk)];
    // Ratios are per round: other load on the machine then slows both.
    const ratio = median(results.ours.map((mine, i) => (mine / results.sdk[i]) ** (more ? 1 : -1)));
    console.log(
      `| ${what} | ${ours.toFixed(digits)} | ${sdk.toFixed(digits)} | ${ratio.toFixed(2)} × |`,
    );
  }
  for (const { process } of [server, ...Object.values(clients)]) process.kill();
}

if (role === 'serve') await serve();
else if (role === 'client') await measure(process.argv[4]);
else await run();
