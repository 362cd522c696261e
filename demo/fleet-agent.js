// One process of npm run demo:fleet: an agent that counts, and keeps its tasks on NATS.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTaskServer } from '@abp-bridge/a2a';
import { natsBackend, taskStore } from '@abp-bridge/a2a-store';

const { port, effects, term } = JSON.parse(process.argv[2]);
const { resolve } = createRequire(new URL('nats/package.json', import.meta.url));
const { connect } = await import(resolve('@nats-io/transport-node'));
const jetstream = await import(resolve('@nats-io/jetstream'));

const connection = await connect({ servers: `127.0.0.1:${port}` });
const store = taskStore({
  backend: await natsBackend({ connection, jetstream }),
  term,
  onOrphan: 'rerun',
  saveRequest: ({ metadata }) => ({ metadata }),
});
/** @param {object} effect */
const note = (effect) => appendFileSync(effects, `${JSON.stringify(effect)}\n`);
const agent = createTaskServer(
  {
    card: { name: 'Counter' },
    async execute({ task, request, signal, attempt, emitStatus }) {
      const { steps, ms } = request.metadata;
      for (let step = 1; step <= steps; step++) {
        await sleep(ms, undefined, { signal });
        emitStatus(
          'working',
          `step ${step} of ${steps}, in process ${process.pid}, attempt ${attempt}`,
        );
      }
      note({ id: task.id, pid: process.pid });
    },
  },
  { store },
);
const http = createServer(agent.handle).listen(0, '127.0.0.1', () => {
  const { port: at } = /** @type {import('node:net').AddressInfo} */ (http.address());
  process.send?.(at);
});
process.once('SIGTERM', async () => {
  await agent.drain({ ms: 20_000 });
  http.close();
  http.closeAllConnections();
  await connection.close();
});
