// Calls that are silent for long, and connections that break meanwhile: behind a proxy that ends
// those on which nothing comes for 25 seconds. The handlers go on when a test says so.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as net from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { createTaskClient } from '@abp-bridge/a2a';
import { KINDS, connectClient } from './support/clients.js';
import { lineMatching, runGateway, startGateway } from './support/program.js';
import { startProxy } from './support/proxy.js';
import { envelope, postTo } from './support/raw-client.js';
import { startSocketApp } from './support/socket-app.js';

const TOKEN = 'a-token-of-the-tests';
const EARLIER = 'abp-bridge/earlier';
const CLIENT = 'abp-bridge/client';
const CONTINUES = 'abp-bridge/continueOnDisconnect';
/** A sign of life between chunks of HTTP: a comment, or white space before JSON. */
const SIGN = /\r\n(?::[^\r\n]*\n\n| +)\r\n$/;

/** What the handlers did. @type {string[]} */
let done;
/** Lets go of the handler. */
let open;
/** Settle when that is done, and when the handler has begun. */
let gate, began;
let begin;
const reset = () => {
  done = [];
  gate = new Promise((resolve) => (open = resolve));
  began = new Promise((resolve) => (begin = resolve));
};
beforeEach(reset);
let app;
before(async () => {
  app = await startSocketApp({
    'work.waits': async ({ reports }, { signal, progress }) => {
      done.push('began');
      begin();
      if (reports) progress({ progress: 1, total: 9 });
      const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
      await Promise.race([gate, aborted]);
      done.push(signal.aborted ? 'stopped' : 'done');
      signal.throwIfAborted();
      return { done: true };
    },
    'text.echo': ({ text }) => ({ text }),
  });
});
after(() => app.close());

/**
 * A gateway behind a proxy.
 * @param {import('node:test').TestContext} t
 */
const start = (t, command, ...args) => startAt(t, app.url, command, ...args);
async function startAt(t, address, command, ...args) {
  const proxy = await startProxy();
  t.after(() => proxy.close());
  const http = ['--http', '127.0.0.1:0', '--token', TOKEN, '--allow-host', proxy.host];
  const child = startGateway([command, address, ...http, ...args]);
  t.after(() => (child.kill('SIGTERM'), once(child, 'close')));
  proxy.leadTo(/http:\S+/.exec(await lineMatching(child.stderr, /serves \w+ at/))[0]);
  return proxy;
}
const connect = async (t, kind, proxy) => {
  const mcp = await connectClient(kind, { url: `${proxy.url}mcp`, token: TOKEN });
  t.after(() => mcp.close());
  return mcp;
};

for (const kind of KINDS)
  test(`client ${kind}: a call that is silent is not ended by a proxy`, async (t) => {
    const proxy = await start(t, 'mcp', '--keep-alive', '0.05');
    const mcp = await connect(t, kind, proxy);
    const signs = proxy.heard(SIGN, 3);
    const call = mcp.call('work_waits');
    await Promise.race([signs, call]);
    open();
    assert.deepEqual((await call).structuredContent, { done: true });
    await signs;
    assert.deepEqual(done, ['began', 'done']);
    assert.deepEqual(mcp.errors, []);
  });

test('in the older version a result of a task that is waited for is not ended by a proxy', async (t) => {
  const proxy = await start(t, 'mcp', '--keep-alive', '0.05');
  const { client } = await connect(t, '2.x', proxy);
  const any = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
  const request = (method, params) => client.request({ method, params }, any);
  const given = { name: 'work_waits', arguments: {}, task: { ttl: 60_000 } };
  const { task } = await request('tools/call', given);
  const signs = proxy.heard(SIGN, 3);
  const result = request('tasks/result', { taskId: task.taskId });
  await Promise.race([signs, result]);
  open();
  assert.deepEqual((await result).structuredContent, { done: true });
  await signs;
});

describe('as an A2A agent', () => {
  for (const way of ['send', 'stream', 'resubscribe'])
    test(`${way}: a task that is silent is not ended by a proxy`, async (t) => {
      const proxy = await start(t, 'a2a', '--keep-alive', '0.05');
      const client = createTaskClient(proxy.url, { headers: { authorization: `Bearer ${TOKEN}` } });
      const message = { parts: [{ data: { skill: 'work.waits', params: {} } }] };
      const states = [];
      const read = async (stream) => {
        for await (const { kind, task, status } of stream)
          if (kind !== 'artifact') states.push((task?.status ?? status).state);
      };
      let ended;
      const signs = proxy.heard(SIGN, 3);
      if (way === 'send')
        ended = client.send(message).then(({ status }) => states.push(status.state));
      else {
        const stream = client.subscribe(message);
        const { value } = await stream.next();
        if (way === 'resubscribe') await stream.return();
        ended = read(way === 'stream' ? stream : client.resubscribe(value.task.id));
      }
      await Promise.race([signs, ended]);
      open();
      await ended;
      assert.equal(states.at(-1), 'completed');
      assert.deepEqual(done, ['began', 'done']);
      await signs;
    });
});

test('as an A2A agent, a blocking send whose connection breaks stops nothing, and the same message again gets its task', async (t) => {
  const proxy = await start(t, 'a2a');
  const message = {
    messageId: 'm',
    role: 'ROLE_USER',
    parts: [{ data: { skill: 'work.waits', params: {} } }],
  };
  const send = () =>
    postTo(
      proxy.url,
      TOKEN,
      { id: 1, method: 'SendMessage', params: { message } },
      { 'a2a-version': '1.0', 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' },
    );
  const lost = send().then((response) => response.json());
  await began;
  proxy.cut();
  await assert.rejects(lost);
  const again = send();
  open();
  const { task } = (await (await again).json()).result;
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(done, ['began', 'done']);
});

test('without signs of life an answer comes as JSON, whole', async (t) => {
  const proxy = await start(t, 'mcp', '--keep-alive', '0');
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' };
  const message = {
    id: 1,
    method: 'tools/call',
    params: { name: 'work_waits', arguments: {}, _meta: envelope() },
  };
  const answer = postTo(`${proxy.url}mcp`, TOKEN, message, {
    ...headers,
    'mcp-name': 'work_waits',
  });
  await began;
  open();
  const response = await answer;
  assert.match(response.headers.get('content-type'), /json/);
  assert.deepEqual((await response.json()).result.structuredContent, { done: true });
  for (const text of ['-1', 'x', ''])
    assert.match(
      (await runGateway(['mcp', app.url, '--http', '0', `--keep-alive=${text}`])).stderr,
      /--keep-alive takes seconds/,
    );
});

test('what fails after signs of life is an error of the protocol all the same', async (t) => {
  const proxy = await start(t, 'mcp', '--keep-alive', '0.001');
  const mcp = await connect(t, '2.x modern', proxy);
  for (let i = 0; i < 20; i++)
    await assert.rejects(mcp.call('call_wait', { handle: 'none' }), ({ code }) => code === -32602);
});

describe('a connection that breaks, in 2026-07-28', () => {
  const meta = { [CLIENT]: 'behind a proxy', [CONTINUES]: true };
  const callTool = ({ client }, name, args = {}, _meta = meta, options = {}) =>
    client.callTool({ name, arguments: args, _meta }, options);
  /** What the next result tells. */
  async function earlierCall(mcp) {
    for (;;) {
      // The first may still be sent by a connection that breaks.
      const result = await callTool(mcp, 'text_echo', { text: 'x' }).catch(() => undefined);
      const { _meta, content } = result ?? {};
      const calls = _meta?.[EARLIER]?.calls;
      if (calls) return { ...calls[0], count: calls.length, text: content[1].text };
    }
  }

  for (const reports of [false, true])
    test(`hands over the call of a client that says so${reports ? ', though its answer had begun' : ''}`, async (t) => {
      const proxy = await start(t, 'mcp', '--patience', '0.5', '--keep-alive', '0.05');
      const mcp = await connect(t, '2.x modern', proxy);
      let seen;
      const progress = new Promise((resolve) => (seen = resolve));
      const options = reports ? { onprogress: seen } : {};
      const call = callTool(mcp, 'work_waits', { reports }, meta, options);
      call.catch(() => {});
      await (reports ? progress : began);
      proxy.cut();
      const running = await earlierCall(mcp);
      assert.deepEqual([running.count, running.outcome, running.reason], [1, 'running', undefined]);
      assert.match(
        running.text,
        /work_waits \{.*\}, whose answer was lost at .*\. It goes on\. call_wait waits for its result, by the handle/,
      );
      open();
      let result;
      do result = await callTool(mcp, 'call_wait', { handle: running.handle });
      while (result._meta?.['abp-bridge/call']);
      assert.deepEqual(result.structuredContent, { done: true });
      assert.deepEqual(done, ['began', 'done']);
    });

  test('does so, too, while its app is still opened', async (t) => {
    let asked, release;
    const isAsked = new Promise((resolve) => (asked = resolve));
    const released = new Promise((resolve) => (release = resolve));
    const door = net
      .createServer(async (socket) => {
        asked();
        await released;
        const behind = net.connect({ port: app.port, host: '127.0.0.1' });
        for (const each of [socket, behind]) each.on('error', () => {});
        socket.pipe(behind).pipe(socket);
      })
      .listen(0, '127.0.0.1');
    t.after(() => door.close());
    await once(door, 'listening');
    const address = `ws://127.0.0.1:${door.address().port}/`;
    const proxy = await startAt(t, address, 'mcp', '--patience', '0.5');
    const mcp = await connect(t, '2.x modern', proxy);
    const call = callTool(mcp, 'work_waits');
    call.catch(() => {});
    await isAsked;
    proxy.cut();
    // When another is answered, the gateway has seen it. The first may still be sent by a
    // connection that breaks.
    let code;
    do code = await callTool(mcp, 'call_wait', { handle: 'none' }).catch((error) => error.code);
    while (code !== -32602);
    release();
    await callTool(mcp, 'text_echo', { text: 'x' });
    assert.deepEqual(done, ['began']);
    open();
    assert.match((await earlierCall(mcp)).outcome, /^(running|finished)$/);
  });

  test('lets a client cancel the call that was handed over', async (t) => {
    const proxy = await start(t, 'mcp', '--patience', '0.5', '--keep-alive', '0.05');
    const mcp = await connect(t, '2.x modern', proxy);
    const call = callTool(mcp, 'work_waits');
    call.catch(() => {});
    await began;
    proxy.cut();
    const { handle } = await earlierCall(mcp);
    let result = await callTool(mcp, 'call_cancel', { handle });
    while (result._meta?.['abp-bridge/call']) result = await callTool(mcp, 'call_wait', { handle });
    assert.equal(result._meta['abp-bridge/outcome'].outcome, 'stopped');
    assert.deepEqual(done, ['began', 'stopped']);
  });

  test('stops the call of any other client, and tells it so', async (t) => {
    const proxy = await start(t, 'mcp');
    const mcp = await connect(t, '2.x modern', proxy);
    for (const said of [{}, { [CONTINUES]: false }]) {
      reset();
      const call = callTool(mcp, 'work_waits', {}, { [CLIENT]: meta[CLIENT], ...said });
      call.catch(() => {});
      await began;
      proxy.cut();
      const { outcome, reason } = await earlierCall(mcp);
      assert.deepEqual([outcome, reason], ['stopped', 'the client disconnected']);
      assert.deepEqual(done, ['began', 'stopped']);
    }
  });

  test('may be said to hand a call over only by a client that can be told of it', async (t) => {
    const proxy = await start(t, 'mcp');
    const mcp = await connect(t, '2.x modern', proxy);
    for (const said of [
      { [CONTINUES]: true },
      { ...meta, [CONTINUES]: 'yes' },
      { ...meta, [CONTINUES]: null },
    ])
      await assert.rejects(callTool(mcp, 'work_waits', {}, said), ({ code, data }) => {
        assert.deepEqual([code, data], [-32602, { member: CONTINUES }]);
        return true;
      });
    assert.deepEqual(done, []);
  });
});
