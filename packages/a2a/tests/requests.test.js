// Requests that are refused: what is wrong with them, who sends them, and to which host.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test, describe } from 'node:test';
import { createTaskClient, createTaskServer } from '../src/index.js';
import { CARD, VERSIONS, ask, updateOf, post, servingUntilEnd } from './support/a2a.js';
import { once } from 'node:events';
import { connect } from 'node:net';
import { stepwise, beginTask } from './support/stepwise.js';

const served = servingUntilEnd();

const names = VERSIONS['1.0'];

describe('a malformed request', () => {
  test('is answered with the error of its fault', async () => {
    const { url } = await served(() => {});
    for (const [code, body, headers] of [
      [-32700, '{'],
      [-32700, '', {}],
      [-32600, '[]'],
      [-32600, 'null'],
      [-32600, '"x"'],
      [-32600, '{"method":"tasks/get"}'],
      [-32600, '{"jsonrpc":"2.0","id":1}'],
      [-32600, '{"jsonrpc":"2.0","id":{},"method":"tasks/get","params":{}}'],
      [-32602, '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":[]}'],
      [-32602, '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":"x"}'],
      [-32601, '{"jsonrpc":"2.0","id":1,"method":"constructor","params":{}}'],
      [-32601, '{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}'],
      [
        -32009,
        '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}',
        { 'a2a-version': '7' },
      ],
      [-32005, '{}', { 'content-type': 'text/plain' }],
      [-32005, '{}', { 'content-encoding': 'gzip' }],
      [-32600, '{}', { 'a2a-version': '1.0' }],
      [-32001, '{"jsonrpc":"2.0","method":"tasks/cancel","params":{"id":"x"}}'],
      [-32602, '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}'],
      [
        -32602,
        '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"parts":[]}}}',
      ],
      [
        -32602,
        '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"x"}}}',
      ],
      [-32003, '{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotification/set","params":{}}'],
      [-32003, '{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{}}'],
      [-32003, '{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{}}'],
      [-32004, '{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}'],
      [-32004, '{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}'],
      [
        -32602,
        `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":${'['.repeat(9000)}${']'.repeat(9000)}}`,
      ],
      [
        -32602,
        `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"x","parts":[],"metadata":${'{"a":'.repeat(9000)}1${'}'.repeat(9000)}}}}`,
      ],
    ]) {
      const response = await post(url, body, headers);
      const answer = await response.json();
      assert.deepEqual([response.status, answer.jsonrpc], [200, '2.0']);
      assert.ok('id' in answer);
      assert.equal(typeof answer.error.message, 'string');
      assert.equal(answer.error.code, code, body.slice(0, 100));
    }
  });

  test('that has __proto__ is data', async () => {
    const { url } = await served((ctx) => {
      ctx.emitArtifact({ artifactId: '__proto__', parts: ctx.message.parts });
    });
    const body =
      '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"__proto__":{"message":{"taskId":"x"}},' +
      '"message":{"__proto__":{"taskId":"x"},"messageId":"m","role":"ROLE_USER","metadata":{"__proto__":{"a":1}},' +
      '"parts":[{"data":{"__proto__":{"polluted":true}}}]}}}';
    const text = await (await post(url, body)).text();
    const { task } = JSON.parse(text).result;
    assert.match(text, /"__proto__":\{"polluted":true\}/);
    assert.equal(task.artifacts[0].artifactId, '__proto__');
    assert.notEqual(task.id, 'x');
    assert.equal({}.polluted, undefined);
    const inherited =
      '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"__proto__":{"id":"x"}}}';
    assert.equal((await (await post(url, inherited)).json()).error.code, -32602);
  });

  test('of 100 MB is refused before it has arrived, in bounded memory', async () => {
    const { http } = await served(() => {});
    for (const head of ['Content-Length: 104857600', 'Transfer-Encoding: chunked']) {
      const socket = connect(http.address().port, '127.0.0.1');
      socket.on('error', () => {});
      const before = process.memoryUsage.rss();
      socket.write(
        `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${head}\r\n\r\n`,
      );
      const piece = 'x'.repeat(1 << 20);
      const chunk = `100000\r\n${piece}\r\n`;
      let text = '';
      socket.setEncoding('utf8').on('data', (data) => (text += data));
      let sent = 0;
      // Where its length says enough, none of it need come.
      const announced = head.startsWith('Content-Length');
      for (; !announced && sent < 100 && !text.includes('\r\n\r\n'); sent++) {
        if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'data')]);
        await new Promise(setImmediate);
      }
      assert.ok(sent < 50, `${sent} MB were taken before the answer`);
      while (!text.includes('}}')) await once(socket, 'data');
      assert.match(text, /^HTTP\/1.1 413 /);
      assert.equal(JSON.parse(/\{.*\}/.exec(text)[0]).error.code, -32600);
      assert.ok(process.memoryUsage.rss() - before < 64 << 20);
      socket.destroy();
    }
  });
});

test('a message to a task that works, or to an unknown one, is refused', async () => {
  const script = stepwise();
  const { url } = await served(script.execute);
  const { id, run, stream } = await beginTask(url, script, '1.0');
  const send = (message) => ask(url, names.send, { message }, names.headers);
  assert.equal((await send({ ...names.message('more'), taskId: id })).error.code, -32004);
  assert.equal((await send({ ...names.message('more'), taskId: 'x' })).error.code, -32001);
  run.gate.resolve();
  assert.deepEqual((await stream.rest()).map(updateOf), ['completed']);
  assert.equal(run.ctx.task.history.length, 1);
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

test('a mistyped path of HTTP+JSON is answered with 404', async () => {
  const { url } = await served(() => {});
  for (const path of ['message:sned', 'tasks/t:cancle'])
    assert.equal((await post(url + path, '{}', names.headers)).status, 404);
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
