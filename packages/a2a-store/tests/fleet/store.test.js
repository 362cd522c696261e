// Tasks in a store on NATS.
import { after } from 'node:test';
import * as jetstream from '@nats-io/jetstream';
import { natsBackend } from '../../src/index.js';
import { testStore } from '../contracts/store.js';
import { NatsServer } from './nats-server.js';

const server = await new NatsServer().start();
after(() => server.close());
let namespaces = 0;

testStore('NATS', async () => {
  const connection = await server.connect();
  return natsBackend({ connection, jetstream, namespace: `n${namespaces++}` });
});
