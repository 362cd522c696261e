// Agents in other servers: middleware, servers in the style of fetch, and ports.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { createTaskServer } from '../src/index.js';
import { portTransport } from 'abp-bridge/driver';
import { CARD, VERSIONS, ask, deferred, updateOf, stateOf } from './support/a2a.js';
import { stepwise } from './support/stepwise.js';

describe('an agent is mounted', () => {
  const names = VERSIONS['0.3'];
  const request = (params, method = names.stream) =>
    new Request('http://agent.example/a2a', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
  const steps = (ctx) => {
    ctx.emitArtifact({ artifactId: 'a', parts: [{ text: '1' }] });
  };

  for (const [what, parse] of [
    ['an object', JSON.parse],
    ['a text', String],
    ['bytes', Buffer.from],
  ])
    test(`as middleware below a path, after a parser that turns bodies into ${what}`, async () => {
      const agent = createTaskServer({ card: CARD, execute: steps });
      const http = createServer(async (request, response) => {
        // What Express does: the path it is mounted at goes, the body is parsed.
        request.originalUrl = request.url;
        request.url = request.url.replace('/a2a', '');
        let text = '';
        for await (const chunk of request) text += chunk;
        if (text) request.body = parse(text);
        void agent.handle(request, response, () => response.writeHead(418).end());
      });
      http.listen(0, '127.0.0.1');
      await once(http, 'listening');
      const url = `http://127.0.0.1:${http.address().port}/a2a`;
      const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
      assert.equal(card.supportedInterfaces[0].url, url);
      assert.equal(
        stateOf(await ask(url, names.send, { message: names.message('go') })),
        'completed',
      );
      assert.equal((await fetch(`${url}/else`)).status, 418);
      assert.equal((await fetch(url, { method: 'DELETE' })).status, 418);
      http.close();
      http.closeAllConnections();
    });

  test('in a server in the style of fetch', async () => {
    const agent = createTaskServer({ card: CARD, execute: steps });
    const card = await agent.fetch(
      new Request('http://agent.example/a2a/.well-known/agent-card.json'),
    );
    const [{ url }] = (await card.json()).supportedInterfaces;
    assert.equal(url, 'http://agent.example/a2a');
    const response = await agent.fetch(request({ message: names.message('go') }));
    const frames = (await response.text()).split('\n\n').filter(Boolean);
    assert.deepEqual(
      frames.map((frame) => updateOf(JSON.parse(frame.slice(6)))),
      ['task submitted', 'working', 'artifact a', 'completed'],
    );
    const long = new Request(request({ text: 'x'.repeat(5 << 20) }));
    assert.equal((await agent.fetch(long)).status, 413);
    assert.equal((await agent.fetch(new Request('http://agent.example/x'))).status, 404);
    agent.close();
  });

  test('in a server in the style of fetch, whose reader leaves or does not read', async () => {
    const script = stepwise();
    const agent = createTaskServer({ card: CARD, execute: script.execute }, { maxUnread: 1 << 16 });
    const running = script.nextRun();
    const response = await agent.fetch(request({ message: names.message('go') }));
    const { ctx, gate } = await running;
    const again = await agent.fetch(request({ id: ctx.task.id }, names.resubscribe));
    assert.equal(agent.counters.streams, 2);
    await response.body.cancel();
    assert.equal(agent.counters.streams, 1);
    const parts = [{ text: 'x'.repeat(1 << 16) }];
    while (agent.counters.streams) ctx.emitArtifact({ artifactId: 'log', parts });
    await assert.rejects(again.text(), RangeError);
    assert.equal(ctx.signal.aborted, false);
    gate.resolve();
    agent.close();
  });

  test('at the end of a port, where each request has a stream of its own', async () => {
    const script = stepwise();
    const agent = createTaskServer({ card: CARD, execute: script.execute });
    const { port1, port2 } = new MessageChannel();
    const stop = agent.serve(portTransport(port1));
    const heard = [];
    let more = deferred();
    port2.on('message', (message) => {
      heard.push(message);
      more.resolve();
    });
    const until = async (find) => {
      for (;;) {
        const found = heard.find(find);
        if (found) return found;
        more = deferred();
        await more.promise;
      }
    };
    const say = (stream, method, params) =>
      port2.postMessage({
        type: 'a2a/request',
        stream,
        request: { jsonrpc: '2.0', id: 1, method, params },
      });
    port2.postMessage({ type: 'a2a/card', stream: 'card', version: '1.0' });
    assert.equal((await until(({ stream }) => stream === 'card')).result.name, CARD.name);
    const running = script.nextRun();
    say(1, names.stream, { message: names.message('go') });
    const { ctx, gate } = await running;
    say(2, names.resubscribe, { id: ctx.task.id });
    await until(({ stream }) => stream === 2);
    port2.postMessage({ type: 'a2a/leave', stream: 2 });
    say(3, names.cancel, { id: ctx.task.id });
    const answer = await until(({ stream }) => stream === 3);
    assert.equal(stateOf(answer.result), 'canceled');
    await until(({ type, stream }) => type === 'a2a/end' && stream === 1);
    const frames = heard.filter(({ type, stream }) => type === 'a2a/result' && stream === 1);
    assert.deepEqual(
      frames.map(({ result }) => updateOf(result)),
      ['task submitted', 'working', 'canceled'],
    );
    assert.equal(heard.filter(({ stream }) => stream === 2).length, 1);
    port2.postMessage({ type: 'a2a/request', stream: 4, request: { cyclic: new Map(), n: 1n } });
    assert.equal((await until(({ stream }) => stream === 4)).result.error.code, -32700);
    gate.resolve();
    stop();
    port1.close();
    agent.close();
  });

  test('at the end of a port that it stops serving: streams end there, and tasks go on', async () => {
    const script = stepwise();
    const agent = createTaskServer({ card: CARD, execute: script.execute });
    const posted = [];
    const transport = { post: (message) => posted.push(message), onMessage() {}, close() {} };
    const stop = agent.serve(transport);
    const running = script.nextRun();
    const params = { message: names.message('go') };
    const asks = { jsonrpc: '2.0', id: 1, method: names.stream, params };
    transport.onMessage({ type: 'a2a/request', stream: 1, request: asks }, []);
    const { ctx, gate } = await running;
    stop();
    ctx.emitArtifact({ artifactId: 'unseen', parts: [] });
    assert.deepEqual(
      posted.map(({ type, result }) => (result ? updateOf(result) : type)),
      ['task submitted', 'working', 'a2a/end'],
    );
    assert.deepEqual([agent.counters.streams, ctx.signal.aborted], [0, false]);
    gate.resolve();
    agent.close();
  });

  test('at the end of a port, whose reader leaves before its request has been looked at', async () => {
    const script = stepwise();
    const agent = createTaskServer({ card: CARD, execute: script.execute });
    const posted = [];
    const transport = { post: (message) => posted.push(message), onMessage() {}, close() {} };
    agent.serve(transport);
    const running = script.nextRun();
    const params = { message: names.message('go') };
    const asks = { jsonrpc: '2.0', id: 1, method: names.stream, params };
    transport.onMessage({ type: 'a2a/request', stream: 1, request: asks }, []);
    transport.onMessage({ type: 'a2a/leave', stream: 1 }, []);
    const { ctx, gate } = await running;
    ctx.emitArtifact({ artifactId: 'unseen', parts: [] });
    assert.equal(agent.counters.streams, 0);
    assert.deepEqual(posted, []);
    gate.resolve();
    transport.onClose();
    agent.close();
  });
});
