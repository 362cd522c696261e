// SDKs of other people on our transports, each with its real package, in Node.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { WebSocket, WebSocketServer } from 'ws';
import { acpStream } from '../../src/adapters/acp.js';
import { mcpTransport } from '../../src/adapters/mcp.js';
import { headerTransport, lineTransport, portChannel } from '../../src/index.js';
import { portTransport } from 'abp-bridge/driver';
import { webSocketTransport } from 'abp-bridge/transports';
import { SDKS, handlers } from '../support/sdks.js';

/** What happened, for a test to wait for. */
function journal() {
  const lines = [];
  let wake = () => {};
  return {
    lines,
    add(line) {
      lines.push(line);
      wake();
    },
    async reached(count) {
      while (lines.length < count) await new Promise((resolve) => (wake = resolve));
      return lines;
    },
  };
}

const streams = (open) => () => {
  const [there, back] = [new PassThrough(), new PassThrough()];
  const near = { readable: back, writable: there };
  const far = { readable: there, writable: back };
  return { near: open(near), far: open(far), cut: () => back.destroy() };
};
const ports = (open) => () => {
  const { port1, port2 } = new MessageChannel();
  return { near: open(port1), far: open(port2), cut: () => port2.close() };
};
/** Two sockets that have found each other. */
async function sockets() {
  const server = new WebSocketServer({ port: 0 });
  await once(server, 'listening');
  const near = new WebSocket(`ws://127.0.0.1:${server.address().port}`);
  const [[far]] = await Promise.all([once(server, 'connection'), once(near, 'open')]);
  server.close();
  const [there, back] = [near, far].map((socket) => webSocketTransport(socket));
  return { near: there, far: back, cut: () => far.terminate() };
}
const TRANSPORTS = {
  'ports in frames': ports(portChannel),
  'plain ports': ports(portTransport),
  lines: streams(lineTransport),
  'Content-Length': streams(headerTransport),
  WebSockets: sockets,
};

for (const [sdk, { open, both }] of Object.entries(SDKS)) {
  for (const [transport, pair] of Object.entries(TRANSPORTS)) {
    describe(`${sdk} over ${transport}`, () => {
      /** Both ends; `caller` is who calls, `log` what the other's handlers do. */
      async function ends(direction = 'client to server') {
        const { near, far, cut } = await pair();
        const log = journal();
        const [client, server] = await Promise.all([
          open('client', near, handlers(log.add)),
          open('server', far, handlers(log.add)),
        ]);
        const [caller, callee] =
          direction === 'client to server' ? [client, server] : [server, client];
        return { caller, callee, log, cut, done: () => void (client.close(), server.close()) };
      }

      for (const direction of ['client to server', ...(both ? ['server to client'] : [])]) {
        test(`${direction}: a request is answered, a hundred at once, too`, async () => {
          const { caller, callee, done } = await ends(direction);
          const values = Array.from({ length: 100 }, (_, i) => ({ i, text: 'é😀' }));
          assert.deepEqual(await Promise.all(values.map((v) => caller.call('echo', v))), values);
          await assert.rejects(caller.call('nothing'));
          assert.deepEqual([...caller.errors, ...callee.errors], []);
          done();
        });

        test(`${direction}: a cancel reaches the handler, of the first request, too`, async () => {
          const { caller, log, done } = await ends(direction);
          const controller = new AbortController();
          const call = caller.call('hang', {}, controller.signal);
          await log.reached(1);
          controller.abort(new Error('enough'));
          await assert.rejects(call);
          assert.deepEqual(await log.reached(2), ['started', 'aborted']);
          assert.equal(await caller.call('echo', 'alive'), 'alive');
          done();
        });

        test(`${direction}: closing the caller fires the handler's signal`, async () => {
          const { caller, log, done } = await ends(direction);
          const call = assert.rejects(caller.call('hang', {}));
          await log.reached(1);
          await caller.close();
          await call;
          assert.deepEqual(await log.reached(2), ['started', 'aborted']);
          done();
        });

        test(`${direction}: closing the callee rejects what waits for it`, async () => {
          const { caller, callee, log, done } = await ends(direction);
          const call = assert.rejects(caller.call('hang', {}));
          await log.reached(1);
          await callee.close();
          await call;
          done();
        });

        test(`${direction}: the end of the transport settles both sides`, async () => {
          const { caller, cut, log, done } = await ends(direction);
          const call = assert.rejects(caller.call('hang', {}));
          await log.reached(1);
          cut();
          await call;
          assert.deepEqual(await log.reached(2), ['started', 'aborted']);
          done();
        });
      }

      test('a result that cannot be sent is an error to the caller, and to nobody else', async () => {
        const { caller, done } = await ends();
        if (transport.includes('ports')) {
          const calls = [1, 2, 3].map((n) => caller.call(n === 2 ? 'unsendable' : 'echo', n));
          await assert.rejects(calls[1], /cannot be sent/);
          assert.deepEqual(await Promise.all([calls[0], calls[2]]), [1, 3]);
        }
        assert.equal(await caller.call('echo', 'alive'), 'alive');
        done();
      });
    });
  }
}

describe('the observed cancel', () => {
  /** An SDK's end, and a peer that says what the test tells it to. */
  async function against(sdk, role, initialize) {
    const { port1, port2 } = new MessageChannel();
    const raw = portTransport(port2);
    const said = journal();
    raw.onMessage = (message) => {
      if (message.method === 'initialize') {
        raw.post({ jsonrpc: '2.0', id: message.id, result: initialize });
      } else if (message.method !== 'notifications/initialized') said.add(message);
    };
    const log = journal();
    const end = await SDKS[sdk].open(role, portTransport(port1), handlers(log.add));
    /** Everything before it has been dealt with. */
    const barrier = async (method = 'ping') => {
      const count = said.lines.length + 1;
      raw.post({ jsonrpc: '2.0', id: 'barrier', method });
      await said.reached(count);
      return said.lines.splice(count - 1, 1)[0];
    };
    return { ...end, raw, said, log, barrier, done: () => (end.close(), raw.close()) };
  }
  const MCP_SERVER = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'raw', version: '1' },
  };
  const hang = (id) => ({
    jsonrpc: '2.0',
    id,
    method: 'test/call',
    params: { name: 'hang', params: {} },
  });
  const cancel = (requestId) => ({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId, reason: 'enough' },
  });

  test('MCP SDK 1.x: every id can be cancelled, 0 and "" too, and only by its own type', async () => {
    const { raw, said, log, barrier, done } = await against('MCP SDK 1.x', 'client', MCP_SERVER);
    const ids = [0, '0', '', 7, '7', -1];
    for (const id of ids) raw.post(hang(id));
    await log.reached(ids.length);
    for (const [i, id] of ids.entries()) {
      raw.post(cancel(id));
      await barrier();
      assert.equal(log.lines.filter((line) => line === 'aborted').length, i + 1, `id ${id}`);
    }
    assert.deepEqual(said.lines, []);
    done();
  });

  test('MCP SDK 1.x: an answer to a request of id 0 names 0 again', async () => {
    const { raw, said, done } = await against('MCP SDK 1.x', 'client', MCP_SERVER);
    for (const id of [0, '', '0']) raw.post({ jsonrpc: '2.0', id, method: 'ping' });
    await said.reached(3);
    assert.deepEqual(
      said.lines.map(({ id }) => id),
      [0, '', '0'],
    );
    done();
  });

  test('a cancel of what is over, unknown, not yet asked or malformed reaches nobody', async () => {
    const { raw, said, log, barrier, errors, done } = await against(
      'MCP SDK 1.x',
      'client',
      MCP_SERVER,
    );
    for (const id of [1, '1', 99, null, {}, undefined]) raw.post(cancel(id));
    for (const params of [undefined, null, [], 'x', { id: 1 }]) {
      raw.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    }
    raw.post(hang(1));
    await log.reached(1);
    raw.post(cancel('1'));
    await barrier();
    assert.deepEqual([log.lines, errors, said.lines], [['started'], [], []]);
    done();
  });

  test('MCP SDK 1.x: an abort after the answer sends no cancel', async () => {
    const { raw, said, barrier, call, done } = await against('MCP SDK 1.x', 'client', MCP_SERVER);
    const controller = new AbortController();
    const answer = call('echo', 1, controller.signal);
    const [{ id }] = await said.reached(1);
    raw.post({ jsonrpc: '2.0', id, result: { value: 1 } });
    assert.equal(await answer, 1);
    controller.abort();
    await barrier();
    assert.equal(said.lines.length, 1);
    done();
  });

  test('MCP SDK 1.x: an answer that comes after the cancel is nobody’s error', async () => {
    const { raw, said, barrier, call, errors, done } = await against(
      'MCP SDK 1.x',
      'client',
      MCP_SERVER,
    );
    const controller = new AbortController();
    const answer = call('echo', 1, controller.signal);
    await said.reached(1);
    controller.abort('enough');
    await assert.rejects(answer);
    const [{ id }, cancelled] = await said.reached(2);
    assert.deepEqual(cancelled.params, { requestId: id, reason: 'enough' });
    raw.post({ jsonrpc: '2.0', id, result: { value: 1 } });
    await barrier();
    assert.deepEqual(errors, []);
    done();
  });

  test('MCP SDK 1.x: a server’s first request can be cancelled, and "0" does not answer it', async () => {
    const { raw, said, barrier, call, done } = await against('MCP SDK 1.x', 'server');
    const controller = new AbortController();
    let settled = false;
    const answer = call('echo', 1, controller.signal).finally(() => (settled = true));
    answer.catch(() => {});
    const [{ id }] = await said.reached(1);
    assert.ok(id, 'a peer of 1.x would not cancel what has no true id');
    for (const other of ['0', 0, '', null, `${id} `]) {
      raw.post({ jsonrpc: '2.0', id: other, result: { value: 2 } });
    }
    await barrier();
    assert.equal(settled, false);
    controller.abort();
    await assert.rejects(answer);
    const [, cancelled] = await said.reached(2);
    assert.equal(cancelled.params.requestId, id);
    done();
  });

  test('closing cancels what is pending and answers what is open', async () => {
    const ACP = {
      cancel: '$/cancel_request',
      key: 'requestId',
      initialize: { protocolVersion: 1 },
    };
    const cases = {
      'MCP SDK 1.x': {
        cancel: 'notifications/cancelled',
        key: 'requestId',
        code: -32000,
        reason: { reason: 'The connection was closed' },
        initialize: MCP_SERVER,
        method: 'test/call',
      },
      'ACP SDK': { ...ACP, code: -32800, method: '_call' },
    };
    for (const [sdk, { cancel: method, key, code, reason, ...more }] of Object.entries(cases)) {
      const { raw, said, log, call, close } = await against(sdk, 'client', more.initialize);
      raw.post({ ...hang('theirs'), method: more.method });
      await log.reached(1);
      const pending = assert.rejects(call('echo', 1));
      const [{ id }] = await said.reached(1);
      await close();
      await pending;
      const [, cancelled, answer] = await said.reached(3);
      const params = { [key]: id, ...reason };
      assert.deepEqual(cancelled, { jsonrpc: '2.0', method, params }, sdk);
      assert.deepEqual([answer.id, answer.error.code], ['theirs', code], sdk);
      await log.reached(2);
      raw.close();
    }
  });

  test('MCP SDK 2.x: a server may end a subscription by a cancel, and nothing else', async () => {
    const { port1, port2 } = new MessageChannel();
    const raw = portTransport(port2);
    const said = journal();
    const version = '2026-07-28';
    const answers = {
      'server/discover': {
        supportedVersions: [version],
        capabilities: { tools: {} },
        ttlMs: 0,
        cacheScope: 'private',
        resultType: 'complete',
      },
    };
    raw.onMessage = (message) => {
      said.add(message);
      const result = answers[message.method];
      if (result) raw.post({ jsonrpc: '2.0', id: message.id, result });
      if (message.method !== 'subscriptions/listen') return;
      const _meta = { 'io.modelcontextprotocol/subscriptionId': message.id };
      const method = 'notifications/subscriptions/acknowledged';
      raw.post({ jsonrpc: '2.0', method, params: { _meta, notifications: {} } });
    };
    const client = new Client2(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode: { pin: version } } },
    );
    await client.connect(mcpTransport(portTransport(port1)));
    const subscription = await client.listen({ toolsListChanged: true });
    const call = client.callTool({ name: 'slow', arguments: {} });
    while (said.lines.at(-1).method !== 'tools/call') await said.reached(said.lines.length + 1);
    const { id } = said.lines.find(({ method }) => method === 'subscriptions/listen');
    raw.post(cancel(said.lines.at(-1).id));
    raw.post(cancel(id));
    assert.equal(await subscription.closed, 'remote');
    const result = { content: [{ type: 'text', text: 'fine' }], resultType: 'complete' };
    raw.post({ jsonrpc: '2.0', id: said.lines.at(-1).id, result });
    assert.equal((await call).content[0].text, 'fine');
    await client.close();
    raw.close();
  });

  test('MCP: a subscription whose id is 0 has that id to its client', async () => {
    const posted = [];
    const transport = { post: (message) => posted.push(message), close() {} };
    const server = mcpTransport(transport);
    const heard = [];
    server.onmessage = (message) => heard.push(message);
    await server.start();
    const listen = (id) => ({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params: {} });
    transport.onMessage(listen(0));
    const [{ id }] = heard;
    const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
    const method = 'notifications/tools/list_changed';
    await server.send({ jsonrpc: '2.0', method, params: { _meta } });
    await server.send(cancel(id));
    await server.send({ jsonrpc: '2.0', id, result: { _meta } });
    transport.onMessage(listen(0));
    await server.send({ jsonrpc: '2.0', id, result: { _meta } });
    const trueMeta = { 'io.modelcontextprotocol/subscriptionId': 0 };
    assert.deepEqual(posted, [
      { jsonrpc: '2.0', method, params: { _meta: trueMeta }, id: undefined },
      cancel(0),
      { jsonrpc: '2.0', id: 0, result: { _meta: trueMeta } },
    ]);
    await server.close();
  });

  test('an orderly end is no error, one with a cause is; after it nothing is sent', async () => {
    const adapters = {
      mcp(transport, errors) {
        const adapter = mcpTransport(transport);
        adapter.onerror = (error) => errors.push(error.message);
        void adapter.start();
        return (message) => adapter.send(message);
      },
      acp(transport) {
        const writer = acpStream(transport).writable.getWriter();
        return (message) => writer.write(message);
      },
    };
    for (const [name, adapter] of Object.entries(adapters)) {
      for (const cause of [undefined, new Error('the cable was cut')]) {
        const transport = { post() {}, close() {} };
        const errors = [];
        const send = adapter(transport, errors);
        transport.onClose(cause);
        if (name !== 'acp') assert.deepEqual(errors, cause ? [cause.message] : [], name);
        const sent = send({ jsonrpc: '2.0', method: 'late' });
        await assert.rejects(sent, (error) => error.cause === cause, name);
      }
    }
  });

  test('a peer that ends its half of a stream is answered, and then told the end', async () => {
    const adapters = {
      mcp(transport, heard) {
        const adapter = mcpTransport(transport);
        adapter.onmessage = (message) => heard.push(message);
        adapter.onclose = () => heard.push('closed');
        void adapter.start();
        return (message) => adapter.send(message);
      },
      acp(transport, heard) {
        const { readable, writable } = acpStream(transport);
        const read = async () => {
          for await (const message of readable) heard.push(message);
          heard.push('closed');
        };
        void read();
        const writer = writable.getWriter();
        return (message) => writer.write(message);
      },
    };
    const call = (id, method = 'call') => ({ jsonrpc: '2.0', id, method });
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    for (const [name, adapter] of Object.entries(adapters)) {
      const posted = [];
      const transport = {
        post: (message) => posted.push(message),
        close: () => posted.push('closed'),
      };
      const heard = [];
      const send = adapter(transport, heard);
      const theirs = [
        call(1),
        call(2),
        ...(name === 'mcp' ? [call(3, 'subscriptions/listen')] : []),
      ];
      for (const request of theirs) transport.onMessage(request);
      await send(call('ours'));
      transport.onEnd();
      await turn();
      assert.deepEqual(heard.slice(0, theirs.length), theirs, name);
      const [refused, ...none] = heard.slice(theirs.length);
      assert.deepEqual([refused.id, typeof refused.error.code, none], ['ours', 'number', []], name);
      const answers = [1, 2].map((id) => ({ jsonrpc: '2.0', id, result: 'answer' }));
      if (name !== 'acp') await assert.rejects(send(call('late')), { code: 'DISCONNECTED' }, name);
      for (const answer of answers) await send(answer);
      await turn();
      assert.deepEqual(posted, [call('ours'), ...answers, 'closed'], name);
      assert.equal(heard.at(-1), 'closed', name);
    }
  });

  test('ACP SDK: a line that is no JSON is answered as its own streams do', async () => {
    const [there, back] = [new PassThrough(), new PassThrough()];
    const raw = lineTransport({ readable: back, writable: new PassThrough() });
    const said = journal();
    raw.onMessage = said.add;
    const { readable } = acpStream(lineTransport({ readable: there, writable: back }));
    const reader = readable.getReader();
    there.write('{"jsonrpc"\n[]\n');
    assert.deepEqual((await reader.read()).value, []);
    assert.deepEqual(await said.reached(1), [
      { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } },
    ]);
    await reader.cancel();
    raw.close();
  });

  test('more requests than anybody has are refused, and the rest goes on', async () => {
    const posted = [];
    const transport = { post: (message) => posted.push(message), close() {} };
    const { readable } = acpStream(transport);
    const reader = readable.getReader();
    for (let id = 0; id <= 2 ** 16; id++) transport.onMessage({ ...hang(id), method: '_call' });
    assert.deepEqual(
      posted.map(({ id, error }) => [id, error.code]),
      [[2 ** 16, -32603]],
    );
    transport.onMessage({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 3 } });
    for (let id = 0; id < 2 ** 16; id++) assert.equal((await reader.read()).value.id, id);
    assert.equal((await reader.read()).value.params.requestId, 3);
  });
});

test('the adapters are what the SDKs’ types ask for', () => {
  const path = (name) => fileURLToPath(new URL(`../../../../${name}`, import.meta.url));
  const options = '--ignoreConfig --noEmit --strict --skipLibCheck --allowJs --checkJs false';
  const targets = '--target es2023 --module nodenext --lib es2023,dom';
  const { status, stdout } = spawnSync(
    path('node_modules/.bin/tsc'),
    [...`${options} ${targets}`.split(' '), path('packages/rpc/tests/types/adapters.ts')],
    { encoding: 'utf8' },
  );
  assert.equal(status, 0, stdout);
});
