// Endpoints share an instance of the core: how many there can be, what they leave behind, and what
// one that fails does to the rest.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { connect, expose } from '../../parts/main/index.js';
import { createTaskServer } from '../../packages/a2a/src/index.js';
import { trap, watchCores } from '../support/cores.js';
import { openPair } from '../support/pair.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

const agent = { name: 'a', version: '1' };
const definition = (capabilities) => ({
  app: { id: 'a', name: 'A', version: '1' },
  capabilities: { echo: (params) => params, ...capabilities },
});

const pair = (capabilities) => openPair(definition(capabilities).capabilities);

test('a thousand connections live at once, and each is answered', async () => {
  const pairs = await Promise.all(Array.from({ length: 500 }, () => pair()));
  const all = await Promise.all(pairs.map(({ client }, i) => client.call('echo', i)));
  assert.deepEqual(
    all.map(({ data }) => data),
    pairs.map((_, i) => i),
  );
  for (const { client, exposed } of pairs) (client.close(), exposed.close());
});

test('sessions that have ended give their memory back', async (t) => {
  const cores = watchCores(t);
  const memory = () => cores[0].instance.x.memory.buffer.byteLength;
  const session = async () => {
    const { client, exposed } = await pair();
    assert.equal((await client.call('echo', 1)).data, 1);
    client.close();
    exposed.close();
  };
  for (let i = 0; i < 100; i++) await session();
  const before = memory();
  for (let i = 0; i < 300; i++) await session();
  while (!cores.every(({ isFree }) => isFree)) await new Promise(setImmediate);
  assert.equal(memory(), before);
  assert.equal(new Set(cores.map(({ instance }) => instance)).size, 1);
});

test('a handler that outlives its session can still say which call it was, and what it asks is answered', async () => {
  let resume;
  const resumed = new Promise((resolve) => (resume = resolve));
  const heard = Promise.withResolvers?.() ?? {};
  heard.promise ??= new Promise((resolve) => (heard.resolve = resolve));
  const { client, exposed } = await pair({
    slow: async (_params, context) => {
      await resumed;
      context.progress({ progress: 1 });
      heard.resolve([
        context.callId,
        await context.call('echo', 1),
        await context.elicit({ method: 'x' }),
      ]);
    },
  });
  const pending = client.call('slow', {}, { callId: undefined });
  await client.call('echo');
  client.close();
  assert.equal((await pending).cancelled, true);
  exposed.close();
  resume();
  const [callId, called, asked] = await heard.promise;
  assert.match(callId, /\.1$/);
  assert.equal(called.error.code, 'CANCELLED');
  assert.equal(asked.success, false);
  assert.equal((await client.call('echo')).error.code, 'DISCONNECTED');
  assert.equal((await client.cancel('x')).error.code, 'DISCONNECTED');
  assert.equal(client.connected, false);
});

test('a limit of Infinity is none to speak of, and not the default', async () => {
  const limits = { maxCalls: Infinity };
  const { port1, port2 } = new MessageChannel();
  const exposed = expose(definition({ hang: () => new Promise(() => {}) }), {
    port: port1,
    limits,
  });
  const client = await connect(port2, { agent, limits });
  const pending = Array.from({ length: 5000 }, () => client.call('hang'));
  assert.equal((await client.call('echo', 1)).data, 1);
  assert.equal(client.counters.inFlightOut, 5000);
  client.close();
  assert.ok((await Promise.all(pending)).every(({ cancelled }) => cancelled));
  exposed.close();
});

test('an app serves whoever it accepts, until that connection ends', async () => {
  const exposed = expose(definition());
  const channels = [new MessageChannel(), new MessageChannel()];
  const clients = [];
  for (const { port1, port2 } of channels) {
    let closed = () => {};
    const transport = {
      post: (message, transfer) => port1.postMessage(message, transfer),
      onMessage() {},
      close: () => port1.close(),
    };
    port1.addEventListener('message', ({ data }) => transport.onMessage(data, []));
    port1.addEventListener('close', () => (transport.onClose?.(), closed()));
    port1.start();
    exposed.accept(transport);
    clients.push(await connect(port2, { agent }));
    const gone = new Promise((resolve) => (closed = resolve));
    clients.at(-1).gone = gone;
  }
  assert.equal(exposed.sessions.length, 2);
  clients[0].close();
  channels[0].port2.close();
  await clients[0].gone;
  assert.equal(exposed.sessions.length, 1);
  assert.equal(exposed.counters.length, 1);
  assert.equal((await clients[1].call('echo', 2)).data, 2);
  exposed.close();
  channels[1].port2.close();
});

test('each session of a client that opens its own way has a new one, and a closed one waits for none', async () => {
  const exposed = expose(definition());
  let opened = 0;
  const open = () => {
    opened++;
    const { port1, port2 } = new MessageChannel();
    const serve = {
      post: (m, t) => port1.postMessage(m, t),
      onMessage() {},
      close: () => port1.close(),
    };
    port1.onmessage = ({ data }) => serve.onMessage(data, []);
    exposed.accept(serve);
    const mine = {
      post: (m, t) => port2.postMessage(m, t),
      onMessage() {},
      close: () => port2.close(),
    };
    port2.onmessage = ({ data }) => mine.onMessage(data, []);
    return mine;
  };
  const handshake = new AbortController();
  const client = await connect(open, { agent, signal: handshake.signal });
  const first = client.sessionId;
  await client.reconnect();
  assert.equal(opened, 2);
  assert.notEqual(client.sessionId, first);
  assert.equal((await client.call('echo', 3)).data, 3);
  // The signal of the first handshake has nothing to say about later ones.
  handshake.abort();
  await client.reconnect();
  const again = client.reconnect();
  client.close();
  await assert.rejects(again, { code: 'CANCELLED' });
  exposed.close();
});

test('an endpoint that traps is given up; the others go on, and new ones get an instance of their own', async (t) => {
  const cores = watchCores(t);
  const said = t.mock.method(console, 'error', () => {});
  const one = await pair();
  const other = await pair();
  trap(cores[0], 'call_received');
  void one.client.call('echo', 1);
  while (!said.mock.callCount()) await other.client.call('echo', 2);
  assert.match(String(said.mock.calls[0].arguments[0]), /connection failed/);
  assert.equal((await other.client.call('echo', 3)).data, 3);
  const later = await pair();
  assert.notEqual(cores.at(-1).instance, cores[0].instance);
  assert.equal((await later.client.call('echo', 4)).data, 4);
});

test('tables of tasks that nobody has any more give their memory back', async (t) => {
  const cores = watchCores(t);
  const card = { name: 'x', description: '', version: '1', capabilities: {}, skills: [] };
  const make = async () => {
    const agent = createTaskServer({ card, execute() {} });
    const headers = { 'content-type': 'application/json' };
    const asked = new Request('http://localhost/', { method: 'POST', headers, body: '{}' });
    await (await agent.fetch(asked)).text();
    return agent;
  };
  await make(); // nothing here refers to it any more
  const gone = cores.slice();
  const agent = await make();
  const kept = cores.slice(gone.length);
  while (!gone.every(({ isFree }) => isFree)) {
    collect();
    await new Promise(setImmediate);
  }
  assert.ok(kept.length && kept.every(({ isFree }) => !isFree));
  agent.close();
});

test('a port has one session: connecting again says what to do instead', async () => {
  const { exposed, client } = await pair();
  client.close();
  await assert.rejects(client.reconnect(), {
    code: 'TRANSPORT_ERROR',
    message: /give connect a new port/,
  });
  exposed.close();
});
