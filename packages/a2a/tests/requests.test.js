// Requests that must be refused, tenants, and what a reader is told.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { AbpError } from 'abp-bridge';
import { createTaskClient, createTaskServer } from '../src/index.js';
import {
  CARD,
  VERSIONS,
  ask,
  deferred,
  open,
  plainState,
  post,
  servingUntilEnd,
} from './support/a2a.js';

const served = servingUntilEnd();
const names = VERSIONS['1.0'];
const stateOf = ({ result }) => plainState((result.task ?? result).status.state);

test('the client takes what the agent sends by default: an image of two megabytes', async () => {
  const raw = 'A'.repeat(2 << 20);
  const { url } = await served((ctx) => ctx.emitArtifact({ parts: [{ raw }] }));
  const { artifacts } = await createTaskClient(url).send('go');
  assert.equal(artifacts[0].parts[0].raw.length, raw.length);
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

test("an executor's exception is reported at home; the client reads an AbpError's message or a general one", async (t) => {
  const reported = [];
  t.mock.method(console, 'error', (...args) => reported.push(args.at(-1)));
  const secret = new Error('password of the database: x');
  for (const [thrown, text] of [
    [secret, 'The agent failed to execute the task'],
    [new AbpError('OPERATION_FAILED', 'No such city'), 'No such city'],
    [{ code: 'NO_CITY', message: 'No such city' }, 'No such city'],
  ]) {
    const { url } = await served(() => Promise.reject(thrown));
    const { status } = await createTaskClient(url).send('go');
    assert.equal(status.state, 'failed');
    assert.equal(status.message.parts[0].text, text);
  }
  assert.deepEqual(reported, [secret]);
});

test('0.3: message/send waits unless `blocking` is false', async () => {
  const { send, message } = VERSIONS['0.3'];
  const gate = deferred();
  const { url } = await served(
    ({ message: { parts } }) => parts[0].text === 'long' && gate.promise,
  );
  for (const configuration of [undefined, {}, { acceptedOutputModes: ['text/plain'] }])
    assert.equal(
      stateOf(await ask(url, send, { message: message('go'), configuration })),
      'completed',
    );
  const params = { message: message('long'), configuration: { blocking: false } };
  assert.notEqual(stateOf(await ask(url, send, params)), 'completed');
  gate.resolve();
});

test('a push configuration in a message is refused like any other', async () => {
  const { url, agent } = await served(() => {});
  for (const name of ['taskPushNotificationConfig', 'pushNotificationConfig']) {
    const configuration = { [name]: { url: 'https://example.com' } };
    const params = { message: names.message('go'), configuration };
    assert.equal((await ask(url, names.send, params, names.headers)).error.code, -32003);
  }
  assert.equal(agent.counters.finished, 0);
});

test('what is not JSON-RPC is -32600 in every version, and a mistyped path of HTTP+JSON is 404', async () => {
  const { url } = await served(() => {});
  for (const { headers } of Object.values(VERSIONS)) {
    const answer = await post(url, JSON.stringify({ id: 1, method: 'GetTask' }), headers);
    assert.equal((await answer.json()).error.code, -32600);
  }
  for (const path of ['message:sned', 'tasks/t:cancle'])
    assert.equal((await post(url + path, '{}', names.headers)).status, 404);
});

test('a stream says that nothing may transform it', async () => {
  const { url } = await served(() => {});
  const { headers } = await open(
    url,
    names.stream,
    { message: names.message('go') },
    names.headers,
  );
  assert.match(headers['cache-control'], /no-transform/);
});

test('where origins are listed, a page of another one is refused before anything happens', async () => {
  let ran = 0;
  const { url } = await served(() => void ran++, { origins: ['https://app.example'] });
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: names.send,
    params: { message: names.message('go') },
  });
  const from = async (origin) => (await post(url, body, { ...names.headers, origin })).status;
  assert.equal(await from('https://evil.example'), 403);
  assert.equal(await from('null'), 403);
  assert.equal(ran, 0);
  assert.equal(await from('https://app.example'), 200);
  assert.equal(await from(new URL(url).origin), 200);
  // A proxy that speaks TLS is in front of it.
  assert.equal(await from(new URL(url).origin.replace('http:', 'https:')), 200);
  assert.equal(ran, 3);
});

test('the names under which an agent is asked: those of this machine where it is asked there', async () => {
  const names = async (hosts, ...asked) => {
    const { http } = await served(() => {}, { hosts });
    const { port } = http.address();
    const statusOf = (host) =>
      new Promise((resolve, reject) => {
        const headers = { host: host.replace('PORT', port) };
        const path = '/.well-known/agent-card.json';
        request({ port, host: '127.0.0.1', path, headers, agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on('error', reject)
          .end();
      });
    return Promise.all(asked.map(statusOf));
  };
  const local = ['127.0.0.1:PORT', 'localhost:PORT', 'LOCALHOST', '[::1]:PORT', 'app.localhost'];
  assert.deepEqual(await names(undefined, ...local), [200, 200, 200, 200, 200]);
  const foreign = ['evil.example:PORT', 'localhost.evil.example', '127.0.0.1.evil.example', 'x">'];
  assert.deepEqual(await names(undefined, ...foreign), [403, 403, 403, 403]);
  const listed = ['agent.example', 'other.example:8080'];
  const asked = ['Agent.example', 'agent.example:PORT', 'other.example:8080', 'other.example:80'];
  assert.deepEqual(await names(listed, ...asked, 'localhost'), [200, 200, 200, 403, 403]);
  assert.deepEqual(await names('*', ...foreign.slice(0, 3)), [200, 200, 200]);
});

test('the names under which an agent in the style of fetch is asked are those of its list', async () => {
  const { agent } = await served(() => {}, { hosts: ['agent.example'] });
  const statusOf = async (url) => (await agent.fetch(new Request(url))).status;
  assert.equal(await statusOf('https://agent.example/.well-known/agent-card.json'), 200);
  assert.equal(await statusOf('https://evil.example/.well-known/agent-card.json'), 403);
});

test('wrong options throw where they are given', async () => {
  const agent = { card: CARD, execute() {} };
  for (const options of [
    { grace: -1 },
    { grace: '5' },
    { grace: NaN },
    { keepAlive: -1 },
    { maxRequest: '1' },
    { maxUnread: null },
    { maxBacklog: -5 },
    { replyTimeout: 'x' },
    { authorize: true },
    { hosts: 'agent.example' },
    { hosts: [1] },
    { origins: 'https://a.example' },
    { repeats: 'all' },
    { repeats: null },
    { limits: 5 },
    { limits: { maxTask: '1' } },
    { limits: { maxTaks: 1 } },
    { maxTasks: 1 },
  ])
    assert.throws(() => createTaskServer(agent, options), { code: 'INVALID_PARAMS' });
  for (const wrong of [{}, { card: CARD }, { ...agent, reply: 'Hello' }])
    assert.throws(() => createTaskServer(wrong), { code: 'INVALID_PARAMS' });
  for (const options of [
    { fetch: 5 },
    { extensions: 'x' },
    { onDropped: 1 },
    { header: {} },
    { limits: [] },
    { limits: { timeout: '5' } },
    { limits: { grace: -1 } },
    { limits: { retries: 1 } },
  ])
    assert.throws(() => createTaskClient('http://127.0.0.1/', options), { code: 'INVALID_PARAMS' });
  const client = createTaskClient('http://127.0.0.1:1/', { version: '1.0' });
  for (const args of [
    [5],
    [{}],
    ['go', { signal: 5 }],
    ['go', { metadata: 5 }],
    ['go', { abort: 1 }],
  ]) {
    assert.throws(() => client.subscribe(...args), { code: 'INVALID_PARAMS' });
    await assert.rejects(client.send(...args), { code: 'INVALID_PARAMS' });
  }
  assert.throws(() => client.resubscribe(5), { code: 'INVALID_PARAMS' });
  assert.throws(() => client.resubscribe('t', { signal: 5 }), { code: 'INVALID_PARAMS' });
});

test('with an endless grace a cancel waits for its executor, and with an endless timeout a client for its agent', async () => {
  const gate = deferred();
  const { url } = await served(() => gate.promise, { grace: Infinity });
  const client = createTaskClient(url, { limits: { timeout: Infinity, grace: Infinity } });
  const { id } = await client.send('go', { configuration: { returnImmediately: true } });
  const cancelled = client.cancel(id);
  // Its executor is told before the cancel is answered.
  assert.equal((await client.get(id)).status.state, 'working');
  gate.resolve();
  assert.equal((await cancelled).status.state, 'canceled');
});

test('a long event is in memory once, however many wait for it', async () => {
  const gate = deferred();
  const text = 'x'.repeat(10_000);
  const { agent } = await served(async (ctx) => {
    await gate.promise;
    ctx.emitArtifact({ artifactId: 'a', parts: [{ text }] });
  });
  const streamOf = async (id, method, params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const headers = { 'content-type': 'application/json', ...names.headers };
    const asked = new Request('http://agent.example/', { method: 'POST', headers, body });
    return (await agent.fetch(asked)).body.getReader();
  };
  const first = await streamOf(1, names.stream, { message: names.message('go') });
  const { value } = await first.read();
  const { id } = JSON.parse(new TextDecoder().decode(value).slice('data: '.length)).result.task;
  const second = await streamOf('two', names.resubscribe, { id });
  gate.resolve();
  const read = async (reader) => {
    let all = '';
    let long;
    for (let next; !(next = await reader.read()).done;) {
      all += new TextDecoder().decode(next.value);
      if (next.value.length > text.length) long = next.value;
    }
    const frames = all.trim().split('\n\n');
    return [long, frames.map((frame) => JSON.parse(frame.slice('data: '.length)))];
  };
  const [[a, [, ofFirst]], [b, ofSecond]] = await Promise.all([read(first), read(second)]);
  assert.equal(a, b);
  assert.equal(ofFirst.result.artifactUpdate.artifact.parts[0].text, text);
  assert.deepEqual([ofFirst.id, ofSecond[0].id], [1, 'two']);
});
