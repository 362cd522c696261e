// docs/protocol.md suffices for a stranger: peers written from it alone (tests/plain/stranger.js)
// beside ours.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { StrangerAgent, StrangerApp } from '../plain/stranger.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';
import { windowLike } from '../support/window-like.js';

const CAPABILITIES = {
  echo: (params) => params,
  reports(_params, { progress }) {
    progress({ progress: 1, total: 2 });
    return 'reported';
  },
  waits: (_params, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    ),
  async *counts() {
    for (let i = 0; i < 10; i++) yield i;
    return 'counted';
  },
  async asks(_params, { elicit }) {
    return (await elicit({ method: 'elicitation/input', params: { question: 'Who?' } })).data;
  },
  async asksAndWaits(_params, { elicit, signal }) {
    void elicit({ method: 'elicitation/input', params: { question: 'Who?' } });
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  },
};

/** A stranger's agent, and our app. */
async function strangerAgent(options = {}) {
  const { port1, port2 } = new MessageChannel();
  const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { ...options });
  exposed.accept(windowLike(port1));
  const agent = await new StrangerAgent().open(port2);
  closeAfter(() => {
    exposed.close();
    agent.port.close();
    port2.close();
  });
  return { agent, exposed };
}

/** Our agent, and a stranger's app. */
async function strangerApp(options = {}) {
  const { port1, port2 } = new MessageChannel();
  const app = new StrangerApp(port1);
  const client = await connect(() => windowLike(port2), { agent: AGENT, ...options });
  closeAfter(() => {
    client.close();
    app.port.close();
    port1.close();
  });
  return { app, client };
}

describe('an agent made from the document', () => {
  test('has a session on a port, and agrees on everything', async () => {
    const { agent } = await strangerAgent();
    for (const name of ['port', 'frames', 'liveness', 'streams', 'text'])
      assert.equal(agent.session.features[`bridge.${name}`], true, name);
    assert.ok(agent.port);
  });

  test('calls, hears of progress, and is answered', async () => {
    const { agent } = await strangerAgent();
    assert.deepEqual(await agent.call('echo', { a: 1 }), { success: true, data: { a: 1 } });
    const call = agent.call('reports', {}, { progress: true, timeout: 60_000 });
    assert.equal((await call).data, 'reported');
    assert.deepEqual(call.progress, [{ progress: 1, total: 2, percentage: 50 }]);
    assert.equal((await agent.call('nothing', {})).error.code, 'UNKNOWN_CAPABILITY');
  });

  test('cancels, and its call says so', async () => {
    const { agent } = await strangerAgent();
    const call = agent.call('waits', {});
    await agent.call('echo', {});
    agent.cancel(call.key, 'enough');
    const { cancelled, error } = await call;
    assert.deepEqual([cancelled, error.code, error.message], [true, 'CANCELLED', 'enough']);
    agent.cancel(call.key, 'again');
    assert.equal((await agent.call('echo', {})).success, true);
  });

  test('reads a stream through its own window', async () => {
    const { agent, exposed } = await strangerAgent();
    const call = agent.call('counts', {}, { stream: true });
    assert.equal((await call).data, 'counted');
    assert.deepEqual(call.chunks, [...Array(10).keys()]);
    assert.equal(exposed.counters[0].overrun, 0);
  });

  test('is asked, and hears when the question is withdrawn', async () => {
    const { agent } = await strangerAgent();
    assert.equal((await agent.call('asks', {})).data, 'elicitation/input: Who?');
    const call = agent.call('asksAndWaits', {});
    await agent.call('echo', {});
    await agent.call('echo', {});
    agent.cancel(call.key, 'enough');
    assert.equal((await call).cancelled, true);
  });

  test('pings and is pinged, and says goodbye', async () => {
    const { agent, exposed } = await strangerAgent({ limits: { heartbeat: 2000 } });
    await agent.ping();
    const call = agent.call('waits', {});
    // The session lasts while pings are answered.
    await new Promise((resolve) => (agent.onPing = resolve));
    assert.equal(exposed.sessions.length, 1);
    agent.bye(true); // it is frozen, and comes back
    assert.deepEqual(await agent.call('echo', 1), { success: true, data: 1 });
    agent.bye(false);
    while (exposed.sessions.length) await new Promise(setImmediate);
    assert.ok(call);
  });

  test('hears a goodbye', async () => {
    const { agent, exposed } = await strangerAgent();
    exposed.close();
    while (!agent.log.length) await new Promise(setImmediate);
    assert.deepEqual(agent.log, ['bye false']);
  });
});

describe('an app made from the document', () => {
  test('agrees on everything, answers and reports', async () => {
    const { client } = await strangerApp();
    const { port, frames, liveness, streams } = client.features;
    assert.deepEqual([port, frames, liveness, streams], [true, true, true, true]);
    const progress = [];
    const onProgress = (info) => progress.push(info.percentage);
    assert.deepEqual((await client.call('echo', { a: 1 }, { onProgress })).data, { a: 1 });
    assert.deepEqual(progress, [25]);
    const results = await Promise.all([1, 2, 3].map((n) => client.call('echo', { n })));
    assert.deepEqual(
      results.map(({ data }) => data.n),
      [1, 2, 3],
    );
    assert.equal((await client.call('nothing')).error.code, 'UNKNOWN_CAPABILITY');
  });

  test('is told to stop, and says what became of it', async () => {
    const { client } = await strangerApp();
    const controller = new AbortController();
    const call = client.call('waits', {}, { signal: controller.signal });
    await client.call('echo');
    controller.abort('enough');
    const { cancelled, error } = await call;
    assert.deepEqual([cancelled, error.message], [true, 'enough']);
  });

  test('streams within the window of its agent', async () => {
    const { client } = await strangerApp({ limits: { streamChunks: 2 } });
    const stream = client.stream('counts', { to: 10 });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert.deepEqual(chunks, [...Array(10).keys()]);
    assert.equal((await stream.response).data.chunks, 2);
    assert.equal(client.counters.overrun, 0);
  });

  test('asks', async () => {
    const onElicitation = ({ method, params }) => `${method}, ${params.question}`;
    const { client } = await strangerApp({ onElicitation });
    assert.equal((await client.call('asks')).data, 'elicitation/input, Who?');
  });

  test('is asked whether it lives, and says goodbye', async () => {
    let lost;
    const disconnected = new Promise((resolve) => (lost = resolve));
    const limits = { heartbeat: 2000 };
    const { app, client } = await strangerApp({ onDisconnect: lost, limits });
    await new Promise((resolve) => (app.onPing = resolve));
    assert.equal(client.connected, true);
    const pending = client.call('waits');
    app.bye(false);
    assert.equal((await pending).error.code, 'DISCONNECTED');
    assert.equal((await disconnected).code, 'DISCONNECTED');
  });

  test('hears that its agent has gone', async () => {
    const { app, client } = await strangerApp();
    client.close();
    while (!app.log.length) await new Promise(setImmediate);
    assert.deepEqual(app.log, ['shutdown']);
  });
});
