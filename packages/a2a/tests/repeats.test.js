// A message that comes again: the agent takes it once, where the client relies on that.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTaskClient } from '../src/index.js';
import { Role } from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { CARD, VERSIONS, ask, deferred, updateOf, open, servingUntilEnd } from './support/a2a.js';

const URI = 'urn:abp-bridge:a2a:repeats';
const served = servingUntilEnd();
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
    assert.equal((await second.rest()).map(updateOf).at(-1), 'completed');
    // Its task has ended, or asks for something: a stream shows that, and ends.
    const third = await open(url, names.stream, params, headers);
    assert.deepEqual((await third.rest()).map(updateOf), ['task completed']);
    const question = { message: names.message('ask me') };
    await ask(url, names.send, question, headers);
    assert.match(taskOf(await ask(url, names.send, question, headers)).status.state, /input/i);
    assert.deepEqual(
      (await (await open(url, names.stream, question, headers)).rest()).map(updateOf),
      ['task input-required'],
    );
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

// --- Another message under the id of one before --------------------------------------------------

const REUSED = 'message.messageId was used for another message: each needs an id of its own';

/** A message that differs from another in one thing, in the form of a version. */
const others = (names) => {
  const [{ text, ...part }] = names.message('go').parts;
  return {
    'another text': { parts: [{ ...part, text: `${text}!` }] },
    'one more part': {
      parts: [
        { ...part, text },
        { ...part, text },
      ],
    },
    'another context': { contextId: 'another' },
    metadata: { metadata: { skill: 'delete' } },
  };
};

for (const [version, names] of Object.entries(VERSIONS))
  for (const what of Object.keys(others(names)))
    test(`${version}: ${what} under the id of a message before is refused, and does nothing`, async () => {
      const executed = [];
      const { url } = await served(({ message }) => void executed.push(message));
      const headers = declaring(names);
      const message = names.message('go');
      const first = taskOf(await ask(url, names.send, { message }, headers));
      const other = { ...message, ...others(names)[what] };
      const { error } = await ask(url, names.send, { message: other }, headers);
      assert.deepEqual([error.code, error.message], [-32602, REUSED]);
      if (version === '1.0')
        assert.deepEqual(error.data[1].fieldViolations[0].field, 'message.messageId');
      // A stream of it is refused as well, and the message itself, written in another order, is
      // still that of its task.
      const stream = await open(url, names.stream, { message: other }, headers);
      assert.equal(stream.response.headers['content-type'].split(';')[0], 'application/json');
      stream.leave();
      const again = Object.fromEntries(Object.entries(message).reverse());
      assert.deepEqual(taskOf(await ask(url, names.send, { message: again }, headers)), first);
      assert.equal(executed.length, 1);
    });

test('HTTP+JSON: the refusal is a status, with the field in its details', async () => {
  let runs = 0;
  const { url } = await served(() => void runs++);
  const send = async (text) => {
    const message = { ...VERSIONS['1.0'].message(text), messageId: 'one' };
    const response = await fetch(`${url}message:send`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...declaring(VERSIONS['1.0']) },
      body: JSON.stringify({ message }),
    });
    return [response.status, await response.json()];
  };
  const [status, first] = await send('go');
  assert.equal(status, 200);
  const [refused, { error }] = await send('stop');
  assert.deepEqual([refused, error.message], [400, REUSED]);
  assert.equal(error.details[1].fieldViolations[0].field, 'message.messageId');
  assert.deepEqual(await send('go'), [200, first]);
  assert.equal(runs, 1);
});

test('metadata of the request are of what is asked, how it is answered is not', async () => {
  const executed = [];
  const { url } = await served(({ request }) => void executed.push(request.metadata));
  const names = VERSIONS['1.0'];
  const message = names.message('go');
  const send = (more) => ask(url, names.send, { message, ...more }, declaring(names));
  const first = taskOf(await send({ metadata: { dry: true } }));
  assert.equal((await send({ metadata: { dry: false } })).error.message, REUSED);
  const configuration = { returnImmediately: true, historyLength: 1 };
  assert.equal(taskOf(await send({ metadata: { dry: true }, configuration })).id, first.id);
  assert.deepEqual(executed, [{ dry: true }]);
});

for (const [version, names] of Object.entries(VERSIONS))
  test(`${version}: an answer to one task under the id of a message to another is refused`, async () => {
    const executed = [];
    const { url } = await served(({ message, task, emitStatus }) => {
      executed.push(`${task.history.length} ${message.parts[0].text}`);
      if (task.history.length === 1) emitStatus('input-required', 'And?');
    });
    const headers = declaring(names);
    const send = (message, more) => ask(url, names.send, { message, ...more }, headers);
    const [one, two] = [
      taskOf(await send(names.message('a'))),
      taskOf(await send(names.message('b'))),
    ];
    const answer = names.message('yes');
    const to = ({ id }) => [{ ...answer, taskId: id }, version === 'gem' ? { id } : {}];
    assert.match(taskOf(await send(...to(one))).status.state, /completed/i);
    const { error } = await send(...to(two));
    assert.deepEqual([error.code, error.message], [-32602, REUSED]);
    // The second task still asks, and takes the answer under an id of its own.
    const asks = taskOf(await ask(url, names.get, { id: two.id }, headers));
    assert.match(asks.status.state, /input/i);
    const own = { ...names.message('yes'), taskId: two.id };
    assert.match(
      taskOf(await send(own, version === 'gem' ? { id: two.id } : {})).status.state,
      /completed/i,
    );
    // Nor does the id of a message that began a task answer one.
    assert.equal(taskOf(await send(...to(one))).id, one.id);
    assert.deepEqual(executed, ['1 a', '1 b', '3 yes', '3 yes']);
  });

test('another message is refused at once, however far the one before is', async () => {
  const gate = deferred();
  const thinks = deferred();
  let replies = 0;
  const reply = ({ message }) => {
    replies++;
    if (message.parts[0].text !== 'think') return undefined;
    thinks.resolve();
    return gate.promise;
  };
  const { url } = await served(() => gate.promise, {}, CARD, reply);
  const names = VERSIONS['1.0'];
  for (const text of ['think', 'work']) {
    const message = names.message(text);
    const send = (more) =>
      ask(url, names.send, { message: { ...message, ...more } }, declaring(names));
    const first = send();
    if (text === 'think') await thinks.promise;
    // Both are on their way at once, and one of them is first.
    const second = send({ parts: [{ text: 'other' }] });
    if (text === 'think') assert.equal((await second).error.message, REUSED);
    gate.resolve();
    const errors = [await first, await second].map(({ error }) => error?.message);
    assert.deepEqual(errors.filter(Boolean), [REUSED]);
  }
  assert.equal(replies, 2);
});

test('strangers neither find nor block the ids of others', async () => {
  const executed = [];
  const { agent } = await served(({ message, request }) => {
    executed.push([request.user?.name, request.tenant, message.parts[0].text]);
  });
  const names = VERSIONS['1.0'];
  // More than fits into a key as it is: the claims of a token, say.
  const claims = { roles: 'r'.repeat(5000) };
  const send = async (text, name, tenant) => {
    const message = { ...names.message(text), messageId: 'one' };
    const params = { message, ...(tenant && { tenant }) };
    const request = new Request('http://agent.example/', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...declaring(names) },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: names.send, params }),
    });
    const response = await agent.fetch(request, { user: { ...claims, name } });
    const { error, result } = await response.json();
    return error?.message ?? result.task.id;
  };
  const ids = [
    await send('for ann', 'ann'),
    await send('for bob', 'bob'),
    await send('for ann', 'ann', 'elsewhere'),
  ];
  assert.equal(new Set(ids).size, 3);
  assert.equal(await send('for ann', 'ann'), ids[0]);
  assert.equal(await send('for bob', 'ann'), REUSED);
  assert.deepEqual(executed, [
    ['ann', undefined, 'for ann'],
    ['bob', undefined, 'for bob'],
    ['ann', 'elsewhere', 'for ann'],
  ]);
});

test('what is changed after it was given is sent again as it was', async () => {
  const executed = [];
  const { url } = await served(({ message }) => void executed.push(message.parts[0].data));
  const { lossy, sent } = losing(1);
  const data = { amount: 1 };
  const client = createTaskClient(url, {
    limits: { retry: 1 },
    fetch: (to, init) => {
      const answer = lossy(to, init);
      if (init.method === 'POST') data.amount++;
      return answer;
    },
  });
  assert.equal((await client.send({ parts: [{ data }] })).status.state, 'completed');
  assert.deepEqual([executed, sent.length], [[{ amount: 1 }], 2]);
});

// --- Clients that do not know of it --------------------------------------------------------------

/** The official client, in a version and over a transport; it declares no extension of ours. */
async function official(url, version, Transport) {
  const legacyCompat = { enabled: version === '0.3' };
  const factory = new ClientFactory({
    transports: [new Transport({ legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
  });
  const card = await new DefaultAgentCardResolver({ legacyCompat }).resolve(url);
  const supportedInterfaces = card.supportedInterfaces.filter(
    ({ protocolVersion, protocolBinding }) =>
      protocolVersion === version &&
      (protocolBinding === 'HTTP+JSON') === (Transport === RestTransportFactory),
  );
  return factory.createFromAgentCard({ ...card, supportedInterfaces });
}

for (const [version, Transport] of [
  ['1.0', JsonRpcTransportFactory],
  ['0.3', JsonRpcTransportFactory],
  ['1.0', RestTransportFactory],
])
  for (const repeats of [true, false])
    test(`${version}, ${Transport.name}: what the official client sends twice runs ${repeats ? 'once' : 'twice, without the option'}`, async () => {
      let runs = 0;
      const { url } = await served(
        (ctx) => {
          ctx.emitArtifact({ parts: [{ text: `run ${++runs}` }] });
        },
        { repeats },
      );
      const client = await official(url, version, Transport);
      const message = (text) => ({
        message: {
          messageId: 'one',
          role: Role.ROLE_USER,
          contextId: '',
          taskId: '',
          parts: [
            { content: { $case: 'text', value: text }, mediaType: 'text/plain', filename: '' },
          ],
          extensions: [],
          referenceTaskIds: [],
        },
      });
      const first = await client.sendMessage(message('go'));
      const again = await client.sendMessage(message('go'));
      assert.equal(again.id === first.id, repeats);
      assert.equal(runs, repeats ? 1 : 2);
      const other = client.sendMessage(message('stop'));
      if (repeats) await assert.rejects(other, (error) => error.message.includes(REUSED));
      else await other;
      assert.equal(runs, repeats ? 1 : 3);
    });

test('with the option a message whose sender has left goes on, and is there when it comes back', async () => {
  const gate = deferred();
  const thinks = deferred();
  let replies = 0;
  const reply = async ({ signal }) => {
    replies++;
    thinks.resolve();
    await gate.promise;
    return `Hello, ${signal.aborted}`;
  };
  const { url } = await served(() => {}, { repeats: true }, CARD, reply);
  const names = VERSIONS['1.0'];
  const params = { message: names.message('hello') };
  const leave = new AbortController();
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: names.send, params });
  const headers = { 'content-type': 'application/json', ...names.headers };
  const left = fetch(url, { method: 'POST', headers, body, signal: leave.signal });
  await thinks.promise;
  leave.abort();
  await assert.rejects(left, { name: 'AbortError' });
  const again = ask(url, names.send, params, names.headers);
  gate.resolve();
  assert.equal((await again).result.message.parts[0].text, 'Hello, false');
  assert.equal(replies, 1);
});
