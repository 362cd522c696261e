// Streams of tasks that wait for input, in the words of each version; and readers who cannot be
// described.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTaskClient, createTaskServer } from '../src/index.js';
import {
  CARD,
  VERSIONS,
  ask,
  deferred,
  exchange,
  updateOf,
  open,
  servingUntilEnd,
  stateOf,
} from './support/a2a.js';
import { stepwise, beginTask, askAbout } from './support/stepwise.js';

const served = servingUntilEnd();
const names = VERSIONS['1.0'];

/** Asks once, and answers with what it was told. */
const asksOnce = ({ message, emitStatus, emitArtifact }) => {
  const [{ text }] = message.parts;
  if (text === 'go') emitStatus('input-required', 'Which one?');
  else emitArtifact({ artifactId: 'answer', parts: [{ text }] });
};

describe('a task that waits for input', () => {
  for (const [version, names] of Object.entries(VERSIONS)) {
    test(`${version}: a new subscription to it shows it, and ${version === '1.0' ? 'stays for the end' : 'ends, as the stream did that it was asked in'}`, async () => {
      const { url, agent } = await served(asksOnce);
      const params = { message: names.message('go') };
      const stream = await open(url, names.stream, params, names.headers);
      const asks = (await stream.rest()).at(-1);
      assert.equal(updateOf(asks), 'input-required');
      // Only 0.3 says in its frames that a stream ends; what the gem calls final is the end of the
      // task.
      assert.equal(asks.result.final, { '1.0': undefined, 0.3: true, gem: false }[version]);
      const { taskId: id } = asks.result.statusUpdate ?? asks.result;
      const again = await open(url, names.resubscribe, { id }, names.headers);
      if (version === '1.0') {
        assert.equal(updateOf(await again.next()), 'task input-required');
        const message = { ...names.message('this one'), taskId: id };
        await ask(url, names.send, { message }, names.headers);
        assert.deepEqual((await again.rest()).map(updateOf), [
          'working',
          'artifact answer',
          'completed',
        ]);
        return;
      }
      assert.deepEqual((await again.rest()).map(updateOf), ['task input-required']);
      assert.equal(agent.counters.streams, 0);
      assert.equal(stateOf(await ask(url, names.get, { id }, names.headers)), 'input-required');
    });
  }

  test('0.3: frames of a task that goes on say that they are not final', async () => {
    const names = VERSIONS['0.3'];
    const { url } = await served((ctx) => ctx.emitStatus('auth-required', 'Log in'));
    const params = { message: names.message('go') };
    const stream = await open(url, names.stream, params, names.headers);
    const finals = [];
    while (finals.length < 2) {
      const frame = await stream.next();
      if (updateOf(frame) !== 'task submitted') finals.push([updateOf(frame), frame.result.final]);
    }
    assert.deepEqual(finals, [
      ['working', false],
      ['auth-required', false],
    ]);
    stream.leave();
  });

  test('1.0: one who watches the task stays while it asks, and while it asks again', async () => {
    const { url } = await served(({ message: { parts }, emitStatus }) => {
      if (parts[0].text !== 'that') emitStatus('input-required', 'Which one?');
    });
    const client = createTaskClient(url);
    const { id } = await client.send('go');
    const states = [];
    for await (const { status, task } of client.resubscribe(id)) {
      states.push((status ?? task.status).state);
      const text = { 1: 'this', 3: 'that' }[states.length];
      if (text) void client.send({ taskId: id, parts: [{ text }] });
    }
    const asked = 'input-required';
    assert.deepEqual(states, [asked, 'working', asked, 'working', 'completed']);
  });

  test('0.3: the client ends a subscription to it, as its agent does', async () => {
    const { url } = await served(asksOnce);
    const client = createTaskClient(url, { version: '0.3' });
    const { id } = await client.send('go');
    const events = [];
    for await (const event of client.resubscribe(id)) events.push(event.task.status.state);
    assert.deepEqual(events, ['input-required']);
  });

  for (const streams of [false, true])
    test(`the gem's params.id answers it, ${streams ? 'streamed' : 'and waits for the end'}`, async () => {
      const names = VERSIONS.gem;
      const { url, agent } = await served(asksOnce);
      const { result: asks } = await ask(url, names.send, { message: names.message('go') });
      const params = { id: asks.id, message: names.message('that') };
      if (streams) {
        const frames = await (await open(url, names.stream, params)).rest();
        assert.deepEqual(frames.map(updateOf), ['working', 'artifact answer', 'completed']);
        assert.equal(frames[0].result.taskId, asks.id);
      } else {
        const { result } = await ask(url, names.send, params);
        assert.deepEqual([result.id, result.status.state], [asks.id, 'completed']);
      }
      assert.equal(agent.counters.finished, 1);
      const late = await ask(url, names.send, params);
      assert.equal(late.error.code, -32004);
      const unknown = await ask(url, names.send, { ...params, id: 'nobody' });
      assert.equal(unknown.error.code, -32001);
    });
});

/** A transport that takes messages up to a length, as a WebSocket with a `maxLength`. */
function narrow(maxLength) {
  const posted = [];
  let wake = () => {};
  return {
    posted,
    post(message) {
      const { length } = JSON.stringify(message);
      if (length > maxLength) throw new Error(`${length} characters are too many`);
      posted.push(message);
      wake();
    },
    onMessage() {},
    close() {},
    async until(find) {
      for (;;) {
        const found = posted.find(find);
        if (found) return found;
        await new Promise((resolve) => (wake = resolve));
      }
    },
  };
}

describe('a reader whose transport cannot send what it is told', () => {
  const begun = async () => {
    const running = deferred();
    const gate = deferred();
    const agent = createTaskServer({
      card: CARD,
      execute(ctx) {
        running.resolve(ctx);
        return gate.promise;
      },
    });
    const readers = [narrow(2000), narrow(Infinity)];
    for (const reader of readers) agent.serve(reader);
    const say = (reader, stream, method, params) => {
      const request = { jsonrpc: '2.0', id: stream, method, params };
      reader.onMessage({ type: 'a2a/request', stream, version: '1.0', request }, []);
    };
    say(readers[0], 1, names.stream, { message: names.message('go') });
    const ctx = await running.promise;
    say(readers[1], 1, names.resubscribe, { id: ctx.task.id });
    await readers[1].until(({ stream }) => stream === 1);
    return { agent, ctx, gate, readers, say };
  };
  const frames = ({ posted }) =>
    posted
      .filter(({ type, stream, result }) => type === 'a2a/result' && stream === 1 && result.result)
      .map(({ result }) => updateOf(result));

  test('hears why, its stream ends, and the other readers are told all', async () => {
    const { agent, ctx, gate, readers } = await begun();
    const [poor, rich] = readers;
    assert.equal(
      ctx.emitArtifact({ artifactId: 'long', parts: [{ text: 'x'.repeat(4000) }] }),
      true,
    );
    assert.equal(ctx.emitArtifact({ artifactId: 'short', parts: [{ text: 'x' }] }), true);
    gate.resolve();
    await rich.until(({ type, stream }) => type === 'a2a/end' && stream === 1);
    const [start, ...rest] = frames(rich);
    assert.equal(start, 'task working');
    assert.deepEqual(rest, ['artifact long', 'artifact short', 'completed']);
    assert.deepEqual(frames(poor), ['task submitted', 'working']);
    const { error } = poor.posted.at(-2).result;
    assert.deepEqual([error.code, error.data[0].reason], [-32603, 'TOO_LARGE']);
    assert.equal(poor.posted.at(-1).type, 'a2a/end');
    assert.equal(agent.counters.streams, 0);
    agent.close();
  });

  test('has its cancel answered, with what fits', async () => {
    const { agent, ctx, gate, readers, say } = await begun();
    const [poor, rich] = readers;
    ctx.emitArtifact({ artifactId: 'long', parts: [{ text: 'x'.repeat(4000) }] });
    say(poor, 2, names.cancel, { id: ctx.task.id });
    const { result } = await poor.until(
      ({ type, stream }) => type === 'a2a/result' && stream === 2,
    );
    assert.equal(result.error.data[0].reason, 'TOO_LARGE');
    await poor.until(({ type, stream }) => type === 'a2a/end' && stream === 2);
    await rich.until(({ type, stream }) => type === 'a2a/end' && stream === 1);
    assert.deepEqual(frames(rich).slice(1), ['artifact long', 'canceled']);
    assert.equal(ctx.signal.aborted, true);
    gate.resolve();
    agent.close();
  });

  test('or nothing at all, does not keep the others from their answers', async () => {
    const { agent, ctx, gate, readers, say } = await begun();
    const [dead, other] = readers;
    dead.post = () => {
      throw new Error('gone');
    };
    say(dead, 2, names.cancel, { id: ctx.task.id });
    await other.until(({ type, stream }) => type === 'a2a/end' && stream === 1);
    assert.deepEqual(frames(other).slice(1), ['canceled']);
    gate.resolve();
    agent.close();
  });
});

test('a request whose answer cannot be sent in any form ends all the same', async () => {
  const agent = createTaskServer({ card: CARD, execute() {} });
  const reader = narrow(10);
  const { post } = reader;
  const ended = new Promise((resolve) => {
    reader.post = (message) => (message.type === 'a2a/end' ? resolve(message) : post(message));
  });
  agent.serve(reader);
  const request = { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'none' } };
  reader.onMessage({ type: 'a2a/request', stream: 1, version: '1.0', request }, []);
  assert.deepEqual(await ended, { type: 'a2a/end', stream: 1 });
  agent.close();
});

test('a stream whose name is too long to be kept is none', async () => {
  const agent = createTaskServer({ card: CARD, execute() {} });
  const reader = narrow(Infinity);
  agent.serve(reader);
  for (const stream of ['x'.repeat(257), 'x'.repeat(256)]) {
    reader.onMessage({ type: 'a2a/card', stream, version: '1.0' }, []);
  }
  assert.deepEqual(
    reader.posted.map(({ stream }) => stream.length),
    [256, 256],
  );
  agent.close();
});

test('a reader that leaves while the agent thinks about a reply leaves no clock running', async (t) => {
  const asked = deferred();
  const gate = deferred();
  const agent = createTaskServer({
    card: CARD,
    execute: () => gate.promise,
    reply() {
      asked.resolve();
      return gate.promise;
    },
  });
  for (const method of ['SendStreamingMessage', 'SendMessage']) {
    const { request, response } = exchange(method, { message: VERSIONS['1.0'].message('go') });
    const answered = agent.handle(request, response);
    await asked.promise;
    response.emit('close');
    const { mock } = t.mock.method(globalThis, 'setInterval');
    gate.resolve();
    await answered;
    assert.equal(mock.callCount(), 0);
    mock.restore();
  }
  agent.close();
});

test('a long event that is on its way is a sign of life: its reader is not cut off for want of another', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const gate = deferred();
  const running = deferred();
  const agent = createTaskServer(
    { card: CARD, execute: () => (running.resolve(), gate.promise) },
    { keepAlive: 1000, maxUnread: 1000 },
  );
  const params = { message: VERSIONS['1.0'].message('go') };
  const { request, response } = exchange('SendStreamingMessage', params);
  void agent.handle(request, response);
  await running.promise;
  while (!response.written.length) await new Promise(setImmediate);
  const writes = response.written.splice(0).length;
  assert.ok(writes > 0);
  response.writableLength = 1500;
  t.mock.timers.tick(1000);
  assert.deepEqual([response.written, response.cut], [[], false]);
  response.writableLength = 0;
  t.mock.timers.tick(1000);
  assert.deepEqual([response.written, response.cut], [[':\n\n'], false]);
  response.emit('close');
  gate.resolve();
  agent.close();
});

describe('what structured clone carries and JSON does not', () => {
  /** Says it to an agent over a port, and awaits the answer. */
  const asked = async (request) => {
    const agent = createTaskServer({ card: CARD, execute() {} });
    const reader = narrow(Infinity);
    agent.serve(reader);
    reader.onMessage({ type: 'a2a/request', stream: 1, version: '1.0', request }, []);
    const { result } = await reader.until(({ type }) => type === 'a2a/result');
    agent.close();
    return result.error;
  };
  const cyclic = {};
  cyclic.self = cyclic;

  for (const [what, value, code] of [
    ['a sparse array of four billion places', new Array(2 ** 32 - 1), -32600],
    ['a hundred of fifty million', Array.from({ length: 100 }, () => new Array(5e7)), -32600],
    ['a text longer than a request may be', 'x'.repeat(5 << 20), -32600],
    ['text that grows when it is written', '\n'.repeat(4_000_000), -32600],
    ['a BigInt', 1n, -32700],
    ['a BigInt of ten million digits', 1n << 33_000_000n, -32600],
    ['an object that contains itself', cyclic, -32700],
  ])
    test(`${what}: the agent refuses it before it is written as text`, async () => {
      const params = { message: VERSIONS['1.0'].message('go'), metadata: { value } };
      const error = await asked({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
      assert.equal(error?.code, code, error?.message);
    });

  test('a client refuses what no agent may say, and the stream ends', async () => {
    const transport = narrow(Infinity);
    const client = createTaskClient(transport, { version: '1.0' });
    const stream = client.subscribe('go');
    const first = stream.next();
    const { stream: name } = await transport.until(({ type }) => type === 'a2a/request');
    const parts = new Array(2 ** 32 - 1);
    const artifact = { artifactId: 'a', parts };
    const result = { jsonrpc: '2.0', id: 1, result: { artifactUpdate: { taskId: 't', artifact } } };
    transport.onMessage({ type: 'a2a/result', stream: name, result }, []);
    await assert.rejects(first, { code: 'TOO_LARGE' });
    assert.equal(transport.posted.at(-1).type, 'a2a/leave');
  });
});

describe('readers', () => {
  test('one that leaves cancels nothing, and leaves nothing behind', async () => {
    const script = stepwise();
    const { url, agent } = await served(script.execute);
    const { id, run, stream } = await beginTask(url, script, '1.0');
    assert.equal(agent.counters.streams, 1);
    stream.leave();
    while (agent.counters.streams) await new Promise(setImmediate);
    assert.equal(run.ctx.signal.aborted, false);
    run.ctx.emitArtifact({ artifactId: 'unseen', parts: [] });
    run.gate.resolve();
    await run.returned.promise;
    const { result } = await askAbout(url, names, 'get', id);
    assert.equal(stateOf({ result }), 'completed');
    assert.equal(result.artifacts.length, 1);
  });

  test('one that does not read is disconnected, and the task and its other readers go on', async () => {
    const script = stepwise();
    const { url, agent } = await served(script.execute, { maxUnread: 1 << 20 });
    const { id, run, stream: slow } = await beginTask(url, script, '1.0');
    slow.response.pause();
    const other = await open(url, names.resubscribe, { id }, names.headers);
    await other.next();
    const text = 'x'.repeat(1 << 18);
    let emitted = 0;
    for (; agent.counters.streams > 1; emitted++) {
      assert.ok(emitted < 400, 'the slow reader is still served');
      run.ctx.emitArtifact({ artifactId: 'log', parts: [{ text }] });
      await other.next();
    }
    run.gate.resolve();
    assert.deepEqual((await other.rest()).map(updateOf), ['completed']);
    assert.equal(stateOf(await askAbout(url, names, 'get', id)), 'completed');
  });

  test('one whose stream is silent receives a comment every keepAlive ms', async () => {
    const script = stepwise();
    const { url } = await served(script.execute, { keepAlive: 5 });
    const { run, stream } = await beginTask(url, script, '1.0');
    const rest = stream.rest();
    while (stream.comments < 2) await new Promise(setImmediate);
    run.gate.resolve();
    assert.deepEqual((await rest).map(updateOf), ['completed']);
  });
});

test('a stream has cache-control: no-transform', async () => {
  const { url } = await served(() => {});
  const { headers } = await open(
    url,
    names.stream,
    { message: names.message('go') },
    names.headers,
  );
  assert.match(headers['cache-control'], /no-transform/);
});
