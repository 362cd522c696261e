// A client and an agent at the ends of a port.
import assert from 'node:assert/strict';
import { createTaskClient, createTaskServer } from '../src/index.js';
import { portTransport } from 'abp-bridge/driver';
import { restOf, stateOrKind, test } from './support/clients.js';

/** Our client and our server at the ends of a channel. */
function channel(t, execute, options) {
  const server = createTaskServer({ card: { name: 'Agent' }, execute });
  const { port1, port2 } = new MessageChannel();
  server.serve(portTransport(port2));
  const client = createTaskClient(portTransport(port1), options);
  t.after(() => {
    client.close();
    server.close();
  });
  return { server, port2, client };
}

test('over a port: three tasks, one cancelled by its signal', async (t) => {
  const stop = new AbortController();
  let aborted = 0;
  const { client, server } = channel(t, async (context) => {
    const { message, signal } = context;
    for (let n = 1; n <= 3; n++) {
      if (signal.aborted) return void aborted++;
      context.emitArtifact({ artifactId: `${n}`, parts: [{ text: `${n}` }] });
      if (message.parts[0].text !== 'B') continue;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    }
  });
  const states = await Promise.all(
    ['A', 'B', 'C'].map(async (name) => {
      const stream = client.subscribe(name, name === 'B' ? { signal: stop.signal } : {});
      for await (const event of stream) if (event.kind === 'artifact' && name === 'B') stop.abort();
      return [stream.task.status.state, stream.task.artifacts.length];
    }),
  );
  assert.deepEqual(states, [
    ['completed', 3],
    ['canceled', 1],
    ['completed', 3],
  ]);
  assert.equal(aborted, 1);
  assert.equal(server.counters.streams, 0);
});

test('over a port: leaving a stream cancels nothing', async (t) => {
  let go;
  const gone = new Promise((resolve) => (go = resolve));
  const { client, server } = channel(t, () => gone);
  const stream = client.subscribe('A');
  await stream.next();
  await stream.return();
  const { id } = stream.task;
  assert.equal((await client.get(id)).status.state, 'working');
  assert.equal(server.counters.streams, 0);
  const states = restOf(client.resubscribe(id));
  await client.get(id);
  go();
  assert.equal((await states).map(stateOrKind).at(-1), 'completed');
});

test('over a port: a signal in the place of options is refused', (t) => {
  const { client } = channel(t, assert.fail);
  const { signal } = new AbortController();
  const refused = { code: 'INVALID_PARAMS', message: /must be an object: pass \{ signal \}/ };
  assert.throws(() => client.resubscribe('1', signal), refused);
  assert.throws(() => client.subscribe('A', signal), refused);
  assert.throws(() => client.resubscribe('1', { signal: new AbortController() }), {
    code: 'INVALID_PARAMS',
    message: 'signal of resubscribe must be an AbortSignal',
  });
});

test('over a port: a card that cannot be sent rejects at once, and affects no other request', async (t) => {
  const provider = { url: 'http://agent.example/' };
  const card = { name: 'Agent', provider };
  const server = createTaskServer({ card, execute() {} });
  provider.url = () => 'http://agent.example/';
  const { port1, port2 } = new MessageChannel();
  server.serve(portTransport(port2));
  const client = createTaskClient(portTransport(port1), { limits: { timeout: 50_000 } });
  t.after(() => (client.close(), server.close()));
  for (let i = 0; i < 4100; i++) await assert.rejects(client.card(), { code: 'DISCONNECTED' });
  delete card.provider;
  assert.equal((await client.card()).name, 'Agent');
});

test('over a port: when the port closes, streams and requests reject with DISCONNECTED', async (t) => {
  const { client, port2 } = channel(t, () => new Promise(() => {}));
  const stream = client.subscribe('A');
  await stream.next();
  const events = restOf(stream);
  port2.close();
  await assert.rejects(events, { code: 'DISCONNECTED' });
  await assert.rejects(client.get('t'), { code: 'DISCONNECTED' });
});

test('over a port: closing the client ends its streams', async (t) => {
  const { client } = channel(t, () => new Promise(() => {}));
  const stream = client.subscribe('A');
  await stream.next();
  const events = restOf(stream);
  client.close();
  await assert.rejects(events, { code: 'DISCONNECTED' });
});

test('over a port: a reader that is too slow loses events, and receives the end of the task', async (t) => {
  const execute = (context) => {
    for (let n = 1; n <= 100; n++) {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: `${n}` }] }, { append: n > 1 });
    }
  };
  const { client } = channel(t, execute, { limits: { maxQueue: 10 } });
  const stream = client.subscribe('A');
  await stream.next();
  // What is answered now comes after all that the executor has emitted.
  await client.get(stream.task.id);
  const events = await restOf(stream);
  assert.ok(events.length < 20, `${events.length} events`);
  assert.equal(stateOrKind(events.at(-1)), 'completed');
  assert.equal(stream.task.artifacts[0].parts.length, 100);
});
