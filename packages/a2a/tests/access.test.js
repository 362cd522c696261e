// Who asks: what an executor learns of a request, and who may see which task, over every way to the
// agent.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, describe, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { createTaskClient, createTaskServer } from '../src/index.js';
import { portTransport } from 'abp-bridge/driver';
import { startAgent } from './support/a2a-agent.js';
import { CARD, VERSIONS, ask, deferred, open, post, serve, stateOf } from './support/a2a.js';

const finished = [];
after(() => Promise.all(finished.map((server) => server.close())));
const served = async (...args) => {
  const server = await serve(...args);
  finished.push(server);
  return server;
};
const jsonRpc = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });

/**
 * An agent whose users are who the header `x-user` says, as a login in front of it would leave
 * them.
 */
async function withUsers(execute, options) {
  const agent = createTaskServer({ card: CARD, execute }, options);
  const http = createServer((request, response) => {
    request.user = request.headers['x-user'] && { name: request.headers['x-user'] };
    void agent.handle(request, response);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  finished.push({
    close() {
      agent.close();
      http.closeAllConnections();
      http.close();
    },
  });
  return { agent, url: `http://127.0.0.1:${http.address().port}/` };
}
const ownTasks = (task, access, { user }) => task.user?.name === user?.name;

describe('what an executor learns of the request', () => {
  const names = VERSIONS['1.0'];
  const params = {
    message: names.message('go'),
    metadata: { trace: 7 },
    configuration: { acceptedOutputModes: ['text/markdown'] },
  };

  test('user, headers, metadata, output modes and version, over HTTP', async () => {
    const seen = [];
    const { url } = await withUsers(({ request }) => seen.push(request));
    await ask(url, names.send, params, { ...names.headers, 'x-user': 'ann', 'x-more': 'yes' });
    const [{ user, headers, metadata, acceptedOutputModes, version, extensions }] = seen;
    assert.deepEqual([user, headers['x-more']], [{ name: 'ann' }, 'yes']);
    assert.deepEqual([metadata, acceptedOutputModes], [{ trace: 7 }, ['text/markdown']]);
    assert.deepEqual([version, extensions], ['1.0', []]);
  });

  test('those of the message that it answers, not of the first', async () => {
    const seen = [];
    const { url } = await withUsers((ctx) => {
      seen.push(ctx.request.user.name);
      if (seen.length === 1) ctx.emitStatus('input-required');
    });
    const sent = await ask(url, names.send, params, { 'x-user': 'ann' });
    const message = { ...names.message('more'), taskId: sent.result.task.id };
    await ask(url, names.send, { message }, { 'x-user': 'bob' });
    assert.deepEqual(seen, ['ann', 'bob']);
  });

  test('the user that whoever calls `fetch` or `serve` gives', async () => {
    const seen = [];
    const agent = createTaskServer({ card: CARD, execute: (ctx) => void seen.push(ctx.request) });
    const request = new Request('http://x/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: jsonRpc(names.send, params),
    });
    await (await agent.fetch(request, { user: 'ann' })).text();
    const transport = { post() {}, onMessage() {}, close() {} };
    agent.serve(transport, { user: 'bob' });
    const answered = new Promise((resolve) => (transport.post = resolve));
    const asked = { jsonrpc: '2.0', id: 1, method: names.send, params };
    transport.onMessage({ type: 'a2a/request', stream: 1, version: '1.0', request: asked }, []);
    await answered;
    assert.deepEqual(
      seen.map(({ user, metadata }) => [user, metadata.trace]),
      [
        ['ann', 7],
        ['bob', 7],
      ],
    );
    agent.close();
  });
});

for (const [version, names] of Object.entries(VERSIONS))
  describe(`tasks of others, in the words of ${version}`, () => {
    const [ann, bob] = ['ann', 'bob'].map((user) => ({ ...names.headers, 'x-user': user }));

    for (const [how, authorize] of [
      ['', ownTasks],
      [
        ', by a hook that takes its time',
        async (...asked) => {
          await new Promise(setImmediate);
          return ownTasks(...asked);
        },
      ],
    ])
      test(`are not found, whatever is asked of them; nor are they told from those that are not there${how}`, async () => {
        const { url, agent } = await withUsers((ctx) => ctx.emitStatus('input-required', 'What?'), {
          authorize,
        });
        const sent = await ask(url, names.send, { message: names.message('go') }, ann);
        const { id } = sent.result.task ?? sent.result;
        /** The answer to a request, without the id that it names. */
        const outcome = async (method, params, named) => {
          const response = await post(url, jsonRpc(method, params), bob);
          const text = await response.text();
          return [
            response.status,
            response.headers.get('content-type'),
            text.replaceAll(named, 'ID'),
          ];
        };
        const message = (taskId) => ({ message: { ...names.message('me'), taskId } });
        for (const [method, params] of [
          [names.get, (id) => ({ id })],
          [names.cancel, (id) => ({ id })],
          [names.resubscribe, (id) => ({ id })],
          [names.send, message],
          [names.stream, message],
        ]) {
          const theirs = await outcome(method, params(id), id);
          assert.match(theirs[2], /-32001/, method);
          assert.deepEqual(theirs, await outcome(method, params('no-such'), 'no-such'));
        }
        assert.equal(stateOf(await ask(url, names.get, { id }, ann)), 'input-required');
        assert.equal(stateOf(await ask(url, names.cancel, { id }, ann)), 'canceled');
        if (names.list) {
          const lists = await Promise.all([ann, bob].map((by) => ask(url, names.list, {}, by)));
          const [own, others] = lists.map(({ result }) => (result.tasks ?? result).length);
          assert.deepEqual([own, others], [1, 0]);
          assert.equal(lists[1].result.totalSize ?? 0, 0);
        }
        assert.equal(agent.counters.finished, 1);
      });
  });

test('the hook is told what is wanted of which task, and only `true` is yes', async () => {
  const names = VERSIONS['1.0'];
  const asked = [];
  let answer = true;
  const { url } = await served((ctx) => ctx.emitStatus('auth-required'), {
    authorize(task, access, request) {
      asked.push([task.id, access, request.headers['x-who']]);
      return typeof answer === 'function' ? answer() : answer;
    },
  });
  const headers = { ...names.headers, 'x-who': 'me' };
  const sent = await ask(url, names.send, { message: names.message('go') }, headers);
  const { id } = sent.result.task;
  assert.deepEqual(asked, []);
  await ask(url, names.get, { id }, headers);
  await ask(url, names.list, {}, headers);
  const stream = await open(url, names.resubscribe, { id }, headers);
  stream.leave();
  await ask(url, names.send, { message: { ...names.message('x'), taskId: id } }, headers);
  await ask(url, names.cancel, { id }, headers);
  assert.deepEqual(
    asked,
    ['get', 'list', 'subscribe', 'send', 'cancel'].map((access) => [id, access, 'me']),
  );
  const { error } = console;
  console.error = () => {};
  const rejects = () => Promise.reject(new Error('The database is away'));
  for (answer of [1, 'yes', Promise.resolve(false), Promise.resolve(1), rejects, undefined])
    assert.equal((await ask(url, names.get, { id }, headers)).error?.code, -32001);
  answer = Promise.resolve(true);
  assert.equal(stateOf(await ask(url, names.get, { id }, headers)), 'canceled');
  console.error = error;
});

test('who leaves while the hook is asked waits for nothing', async () => {
  const names = VERSIONS['1.0'];
  const asked = deferred();
  const allowed = deferred();
  const { url, agent } = await served(() => new Promise(() => {}), {
    authorize: (_task, access) => (access === 'get' ? true : (asked.resolve(), allowed.promise)),
  });
  const configuration = { returnImmediately: true };
  const params = { message: names.message('go'), configuration };
  const { id } = (await ask(url, names.send, params, names.headers)).result.task;
  const leaving = new AbortController();
  const headers = { 'content-type': 'application/json', ...names.headers };
  const body = jsonRpc(names.resubscribe, { id });
  const { signal } = leaving;
  const stream = fetch(url, { method: 'POST', headers, body, signal });
  await asked.promise;
  leaving.abort();
  await assert.rejects(stream);
  // Its connection is gone when another one has been answered.
  await ask(url, names.get, { id }, names.headers);
  allowed.resolve(true);
  await ask(url, names.get, { id }, names.headers);
  assert.equal(agent.counters.streams, 0);
});

test('what is kept of a user and of sizes is never told', async () => {
  const secret = 'the secret of ann';
  const { url } = await withUsers((ctx) => ctx.emitStatus('input-required'), {});
  for (const names of Object.values(VERSIONS)) {
    const by = { ...names.headers, 'x-user': secret };
    const sent = await ask(url, names.send, { message: names.message('go') }, by);
    const { id } = sent.result.task ?? sent.result;
    const answers = [sent];
    for (const [method, params] of [
      [names.get, { id }],
      [names.list, {}],
      [names.cancel, { id }],
    ])
      if (method) answers.push(await ask(url, method, params, by));
    assert.doesNotMatch(JSON.stringify(answers), /secret|"size"|artifactsSize|counted/);
  }
});

describe('pages of other origins', () => {
  const names = VERSIONS['1.0'];
  const page = 'https://app.example';
  const preflight = {
    origin: page,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'a2a-version,content-type,authorization',
  };

  for (const [what, origins] of [
    ['a list', [page]],
    ['all', '*'],
  ])
    test(`may ask when ${what} says so: requests, streams and cards`, async () => {
      const { url } = await served(() => {}, { origins });
      const asks = await fetch(url, { method: 'OPTIONS', headers: preflight });
      assert.equal(asks.status, 204);
      assert.equal(asks.headers.get('access-control-allow-origin'), page);
      assert.match(asks.headers.get('access-control-allow-methods'), /POST/);
      const allowed = asks.headers.get('access-control-allow-headers');
      for (const name of ['a2a-version', 'content-type', 'authorization'])
        assert.ok(allowed.includes(name));
      const origin = { origin: page };
      const params = { message: names.message('go') };
      const sent = await post(url, jsonRpc(names.send, params), { ...names.headers, ...origin });
      assert.equal(sent.headers.get('access-control-allow-origin'), page);
      assert.match(sent.headers.get('vary'), /Origin/);
      const stream = await open(url, names.stream, params, { ...names.headers, ...origin });
      assert.equal(stream.headers['access-control-allow-origin'], page);
      await stream.rest();
      const card = await fetch(`${url}.well-known/agent-card.json`, { headers: origin });
      assert.equal(card.headers.get('access-control-allow-origin'), page);
      assert.equal(card.headers.get('vary'), 'A2A-Version, Origin');
    });

  test('may not when nobody says so', async () => {
    for (const origins of [undefined, [], ['https://other.example']]) {
      const { url } = await served(() => {}, { origins });
      const asks = await fetch(url, { method: 'OPTIONS', headers: preflight });
      const status = origins?.length ? 403 : 405;
      assert.deepEqual(
        [asks.status, asks.headers.get('access-control-allow-origin')],
        [status, null],
      );
      const body = jsonRpc(names.send, { message: names.message('go') });
      const sent = await post(url, body, { origin: page });
      assert.equal(sent.headers.get('access-control-allow-origin'), null);
    }
  });

  test('cannot post without asking first, by not saying what they post', async () => {
    const executed = [];
    const { url } = await served((ctx) => executed.push(ctx));
    const body = new TextEncoder().encode(jsonRpc(names.send, { message: names.message('go') }));
    const answer = await fetch(url, { method: 'POST', headers: { origin: page }, body });
    assert.equal((await answer.json()).error.code, -32005);
    assert.deepEqual(executed, []);
  });

  test('a list that is none is told where it is made', () => {
    const agent = { card: CARD, execute() {} };
    for (const origins of [page, ['*.example'], ['https://app.example/path'], 5])
      assert.throws(() => createTaskServer(agent, { origins }), { code: 'INVALID_PARAMS' });
  });
});

for (const [version, names] of Object.entries(VERSIONS))
  describe(`a message in place of a task, in the words of ${version}`, () => {
    const agent = async (reply, execute = () => {}) => {
      const server = await served(execute, {}, CARD, reply);
      return server;
    };
    const textOf = ({ result }) => (result.message ?? result).parts[0].text;
    const params = (text) => ({ message: { ...names.message(text), contextId: 'c' } });

    test('is the answer to a send, and all of a stream', async () => {
      const { url, agent: server } = await agent(({ message, request }) => {
        assert.ok(request.headers);
        return message.parts[0].text === 'hello' ? 'Hello yourself' : undefined;
      });
      const said = await ask(url, names.send, params('hello'), names.headers);
      assert.equal(textOf(said), 'Hello yourself');
      const message = said.result.message ?? said.result;
      assert.equal(message.role, version === '1.0' ? 'ROLE_AGENT' : 'agent');
      assert.deepEqual([message.contextId, message.taskId], ['c', undefined]);
      const frames = await (await open(url, names.stream, params('hello'), names.headers)).rest();
      assert.deepEqual(frames.map(textOf), ['Hello yourself']);
      assert.deepEqual([server.counters.live, server.counters.finished], [0, 0]);
      assert.equal(stateOf(await ask(url, names.send, params('work'), names.headers)), 'completed');
    });

    test('may be a promise, and what it throws is what the client hears', async () => {
      const { url } = await agent(async () => {
        await null;
        throw Object.assign(new Error('not today'));
      });
      const { error } = console;
      console.error = () => {};
      const answer = await ask(url, names.send, params('x'), names.headers);
      console.error = error;
      assert.deepEqual(
        [answer.error.code, /not today/.test(answer.error.message)],
        [-32603, false],
      );
    });
  });

describe('extensions', () => {
  const uris = ['https://x.example/one', 'https://x.example/two'];
  const card = (required) => ({
    ...CARD,
    capabilities: { extensions: uris.map((uri, i) => ({ uri, required: required && i === 0 })) },
  });

  for (const [version, names] of Object.entries(VERSIONS))
    test(`${version}: one that the card requires is enforced, and what both know is told`, async () => {
      const seen = [];
      const { url } = await served((ctx) => void seen.push(ctx.request.extensions), {}, card(true));
      const params = { message: names.message('go') };
      const without = await ask(url, names.send, params, names.headers);
      assert.equal(without.error.code, version === 'gem' ? -32007 : -32008);
      assert.match(without.error.message, /x\.example\/one/);
      if (version === '1.0')
        assert.equal(without.error.data[0].reason, 'EXTENSION_SUPPORT_REQUIRED');
      const streamed = await ask(url, names.stream, params, names.headers);
      assert.equal(streamed.error.code, without.error.code);
      // 0.3 called the header something else.
      for (const header of ['A2A-Extensions', 'X-A2A-Extensions']) {
        const extensions = { [header]: `${uris[0]} , https://unknown.example/,${uris[1]}` };
        const headers = { ...names.headers, ...extensions };
        const answer = await post(url, jsonRpc(names.send, params), headers);
        assert.equal(answer.headers.get(header), uris.join(','));
        assert.equal(stateOf(await answer.json()), 'completed');
        const stream = await open(url, names.stream, params, headers);
        assert.equal(stream.headers[header.toLowerCase()], uris.join(','));
        await stream.rest();
      }
      assert.deepEqual(seen, Array(4).fill(uris));
      const named = { message: { ...names.message('go'), extensions: [uris[0]] } };
      assert.equal(stateOf(await ask(url, names.send, named, names.headers)), 'completed');
    });

  for (const way of ['1.0', '0.3', 'a port'])
    test(`a client declares its own, and hears which are in use: ${way}`, async (t) => {
      const seen = [];
      const mine = [uris[0], 'https://unknown.example/'];
      const { url, agent } = await served(
        (ctx) => void seen.push(ctx.request.extensions),
        {},
        card(true),
      );
      let to = url;
      if (way === 'a port') {
        const { port1, port2 } = new MessageChannel();
        agent.serve(portTransport(port2));
        to = portTransport(port1);
      }
      const version = way === 'a port' ? undefined : way;
      const client = createTaskClient(to, { version, extensions: mine });
      t.after(() => client.close());
      assert.deepEqual(client.extensions, []);
      assert.equal((await client.send('go')).status.state, 'completed');
      assert.deepEqual([seen, client.extensions], [[[uris[0]]], [uris[0]]]);
    });

  test('a client that does not know a required one hears its name', async () => {
    const { url } = await served(() => {}, {}, card(true));
    await assert.rejects(createTaskClient(url).send('go'), {
      code: 'EXTENSION_SUPPORT_REQUIRED',
      message: /x\.example\/one/,
    });
  });
});

test('a client of the gem answers a task by its own params.id, and waits: its server streams no answers', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: 'gem' });
  const { signal } = new AbortController();
  const sent = client.send({ parts: [{ text: 'that' }], taskId: 't' }, { signal });
  const asked = await agent.next('tasks/send');
  assert.equal(asked.rpc.params.id, 't');
  asked.answer({ result: { id: 't', status: { state: 'completed' } } });
  assert.equal((await sent).status.state, 'completed');
});

for (const protocolBinding of ['JSONRPC', 'HTTP+JSON'])
  test(`${protocolBinding}: the client names its tenant in each request, and tenants do not see each other's tasks`, async () => {
    const seen = [];
    const execute = (ctx) => void seen.push(ctx.request.tenant);
    const card = (tenant) => ({
      ...CARD,
      supportedInterfaces: [{ protocolBinding, protocolVersion: '1.0', tenant }],
    });
    const supportedInterfaces = ['a', 'b'].flatMap((tenant) => card(tenant).supportedInterfaces);
    const { url } = await served(execute, {}, { ...CARD, supportedInterfaces });
    const clientOf = (tenant) =>
      createTaskClient(url, {
        fetch: (to, init) =>
          String(to).endsWith('agent-card.json')
            ? Promise.resolve(
                Response.json({
                  ...card(tenant),
                  supportedInterfaces: card(tenant).supportedInterfaces.map((one) => ({
                    ...one,
                    url,
                  })),
                  capabilities: { streaming: true },
                }),
              )
            : fetch(to, init),
      });
    const [a, b] = ['a', 'b'].map(clientOf);
    const { id } = await a.send('go');
    assert.deepEqual(seen, ['a']);
    assert.equal((await a.get(id)).id, id);
    assert.equal((await a.list()).tasks.length, 1);
    assert.equal((await b.list()).tasks.length, 0);
    for (const request of [() => b.get(id), () => b.cancel(id), () => b.resubscribe(id).next()])
      await assert.rejects(request, { code: 'TASK_NOT_FOUND' });
    await assert.rejects(b.send({ taskId: id, parts: [{ text: 'x' }] }), {
      code: 'TASK_NOT_FOUND',
    });
  });
