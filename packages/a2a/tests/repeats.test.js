// A message that comes again: the agent takes it once, where the client relies on that.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createTaskClient } from '../src/index.js';
import { CARD, VERSIONS, ask, deferred, gist, open, serve } from './support/a2a.js';

const URI = 'urn:abp-bridge:a2a:repeats';
const finished = [];
after(() => Promise.all(finished.map((server) => server.close())));
const served = async (...args) => {
  const server = await serve(...args);
  finished.push(server);
  return server;
};
const taskOf = ({ result }) => result.task ?? result;
const declaring = (names) => ({
  ...names.headers,
  'a2a-extensions': URI,
  'x-a2a-extensions': URI,
});

for (const [version, names] of Object.entries(VERSIONS))
  test(`${version}: a message that comes again is answered with its task, however far that is`, async () => {
    const gate = deferred();
    let runs = 0;
    const { url, agent } = await served(async (ctx) => {
      if (++runs === 1) return gate.promise;
      return void ctx.emitStatus('input-required', 'And?');
    });
    const headers = declaring(names);
    const params = { message: names.message('go') };
    const stream = await open(url, names.stream, params, headers);
    await stream.next();
    const again = ask(url, names.send, params, headers);
    const second = await open(url, names.stream, params, headers);
    const shown = taskOf(await second.next());
    assert.match(shown.status.state, /working/i);
    assert.equal(agent.counters.live, 1);
    gate.resolve();
    const { id, status } = taskOf(await again);
    assert.equal(shown.id, id);
    assert.match(status.state, /completed/i);
    assert.equal((await second.rest()).map(gist).at(-1), 'completed');
    // Its task has ended, or asks for something: a stream shows that, and ends.
    const third = await open(url, names.stream, params, headers);
    assert.deepEqual((await third.rest()).map(gist), ['task completed']);
    const question = { message: names.message('ask me') };
    await ask(url, names.send, question, headers);
    assert.match(taskOf(await ask(url, names.send, question, headers)).status.state, /input/i);
    assert.deepEqual((await (await open(url, names.stream, question, headers)).rest()).map(gist), [
      'task input-required',
    ]);
    assert.equal(runs, 2);
  });

test('a message is that of its sender, and of a client that declares the extension', async () => {
  let runs = 0;
  const { agent } = await served(() => void runs++);
  const names = VERSIONS['1.0'];
  const send = async (user, message, headers = declaring(names)) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: names.send, params: { message } });
    const request = new Request('http://agent.example/', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    const response = await agent.fetch(request, { user });
    return [(await response.json()).result.task.id, response.headers.get('a2a-extensions')];
  };
  const message = names.message('go');
  const [first, used] = await send({ name: 'ann' }, message);
  assert.equal(used, URI);
  assert.deepEqual(await send({ name: 'ann' }, message), [first, URI]);
  assert.equal(runs, 1);
  assert.notEqual((await send({ name: 'bob' }, message))[0], first);
  assert.notEqual((await send({ name: 'ann' }, names.message('go')))[0], first);
  const [plain, unused] = await send({ name: 'ann' }, message, names.headers);
  assert.notEqual(plain, first);
  assert.equal(unused, null);
  assert.equal(runs, 4);
});

test('a message whose reply is being thought about is thought about once', async () => {
  const asked = deferred();
  const gate = deferred();
  let replies = 0;
  const reply = async () => {
    replies++;
    asked.resolve();
    await gate.promise;
    return 'Hello yourself';
  };
  const { url } = await served(() => {}, {}, CARD, reply);
  const names = VERSIONS['1.0'];
  const params = { message: names.message('hello') };
  const send = () => ask(url, names.send, params, declaring(names));
  const first = send();
  await asked.promise;
  const second = send();
  gate.resolve();
  assert.deepEqual((await second).result, (await first).result);
  assert.deepEqual((await send()).result, (await first).result);
  const streamed = await open(url, names.stream, params, declaring(names));
  assert.deepEqual((await streamed.next()).result, (await first).result);
  assert.equal(replies, 1);
});

test('a message that was refused is looked at anew, and one whose task is forgotten is not taken again', async () => {
  const gate = deferred();
  let runs = 0;
  const limits = { maxTasks: 1, remembered: 1 };
  const execute = ({ message }) => (runs++, message.parts[0].text === 'wait' && gate.promise);
  const { url, agent } = await served(execute, { limits });
  const names = VERSIONS['1.0'];
  const send = (message, configuration) =>
    ask(url, names.send, { message, configuration }, declaring(names));
  await send(names.message('wait'), { returnImmediately: true });
  const message = names.message('go');
  assert.equal((await send(message)).error.data[0].reason, 'RATE_LIMITED');
  gate.resolve();
  while (agent.counters.live) await new Promise(setImmediate);
  assert.match((await send(message)).result.task.status.state, /COMPLETED/);
  await send(names.message('one'));
  await send(names.message('two'));
  assert.equal((await send(message)).error.code, -32001);
  assert.equal(runs, 4);
});

/** A fetch that loses the answers to the first requests to the agent itself. */
function losing(count) {
  const sent = [];
  const lossy = async (url, init) => {
    const answer = await fetch(url, init);
    if (init.method !== 'POST') return answer;
    sent.push(init.headers);
    if (sent.length > count) return answer;
    await answer.body.cancel();
    throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } });
  };
  return { lossy, sent };
}

for (const streaming of [true, false])
  test(`the client sends a message again whose answer was lost, ${streaming ? 'with' : 'without'} streams`, async () => {
    let runs = 0;
    const execute = (ctx) => (runs++, ctx.emitArtifact({ parts: [{ text: 'done' }] }));
    const { url } = await served(execute, {}, { ...CARD, capabilities: { streaming } });
    const { lossy, sent } = losing(2);
    const client = createTaskClient(url, { fetch: lossy, limits: { retry: 1 } });
    const { status, artifacts } = await client.send('go');
    assert.deepEqual([status.state, artifacts[0].parts[0].text], ['completed', 'done']);
    assert.deepEqual([runs, sent.length], [1, 3]);
    assert.equal(sent[0]['a2a-extensions'], URI);
  });

test('an answer that breaks off is lost, not malformed', async () => {
  const { url } = await served(() => {}, {}, { ...CARD, capabilities: { streaming: false } });
  let cut = 1;
  const client = createTaskClient(url, {
    limits: { retry: 1 },
    fetch: async (to, init) => {
      const answer = await fetch(to, init);
      if (init.method !== 'POST' || cut-- <= 0) return answer;
      const pull = (controller) => {
        if (pull.called) controller.error(new TypeError('terminated'));
        else controller.enqueue(new TextEncoder().encode('{"jsonrpc":'));
        pull.called = true;
      };
      return new Response(new ReadableStream({ pull }), answer);
    },
  });
  assert.equal((await client.send('go')).status.state, 'completed');
});
