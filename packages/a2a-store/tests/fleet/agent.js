// A process of a fleet: an agent on NATS. Its executor writes down what it does, in a file beside.
import { appendFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import * as jetstream from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { createTaskServer } from '@abp-bridge/a2a';
import { natsBackend, taskStore } from '../../src/index.js';

const { servers, namespace, effects, term, onOrphan, replicas } = JSON.parse(process.argv[2]);
const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
const backend = await natsBackend({ connection, jetstream, namespace, replicas, timeout: 2000 });
const store = taskStore({ backend, term, onOrphan, saveRequest: ({ metadata }) => ({ metadata }) });

/** @param {object} effect */
const note = (effect) =>
  appendFileSync(effects, `${JSON.stringify({ process: process.pid, ...effect })}\n`);

const agent = createTaskServer(
  {
    card: { name: 'Fleet' },
    async execute({ task, attempt, signal, emitArtifact, request }) {
      const { id } = task;
      const { steps = 3, ms = 5 } = request.metadata ?? {};
      note({ id, attempt, what: 'begun' });
      signal.addEventListener('abort', () => note({ id, attempt, what: 'aborted' }));
      for (let i = 0; i < steps; i++) {
        await sleep(ms, undefined, { signal });
        emitArtifact(
          { artifactId: 'steps', parts: [{ text: `${attempt}.${i}` }] },
          { append: true },
        );
      }
      note({ id, attempt, what: 'done' });
    },
  },
  { store },
);
const http = createServer(agent.handle).listen(0, '127.0.0.1');
await once(http, 'listening');
process.on('SIGTERM', async () => {
  await agent.drain({ ms: 60_000 });
  http.close();
  http.closeAllConnections();
  await connection.close();
});
process.send?.(/** @type {import('node:net').AddressInfo} */ (http.address()).port);
