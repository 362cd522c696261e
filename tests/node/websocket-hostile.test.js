// WebSockets and what means no good: messages that are too long or none, a peer that never reads,
// and origins that may not connect. Others are served meanwhile.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { WebSocket } from 'ws';
import { AbpError } from '../../parts/main/index.js';
import { fromOrigins } from '../../parts/transports/index.js';
import { useClock } from '../support/clock.js';
import { hanging, serve, dial, rawApp, rawAgent, deferred } from '../support/websocket.js';

const MIB = 1 << 20;

describe('messages that are too long', () => {
  test('one that goes out fails its own call alone, on either side', async (t) => {
    const { hang, when } = hanging();
    const socket = { maxLength: 10_000 };
    const { url } = await serve(t, { hang, long: () => 'x'.repeat(10_000) }, { socket });
    const { client } = await dial(t, url, { socket });
    const other = client.call('hang', {}, { callId: 'other' });
    await when(({ running }) => running === 1);
    const sent = await client.call('echo', 'x'.repeat(10_000));
    assert.equal(sent.error.code, 'INVALID_PARAMS');
    assert.match(sent.error.message, /the limit is 10000/);
    const received = await client.call('long');
    assert.equal(received.error.code, 'OPERATION_FAILED');
    assert.match(received.error.message, /the limit is 10000/);
    assert.equal((await client.call('echo', 1)).data, 1);
    assert.equal((await client.cancel('other')).cancelled, true);
    assert.equal((await other).cancelled, true);
  });

  test('one that comes in ends the session, with 4009: its call would wait for ever', async (t) => {
    const { hang, when, seen } = hanging();
    const { raw, exposed } = await rawAgent(t, { hang }, { socket: { maxLength: 1000 } });
    raw.send('capabilities/call', 'A', { capability: 'hang' });
    await when(({ running }) => running === 1);
    raw.send('capabilities/call', 'B', { capability: 'echo', params: 'x'.repeat(1000) });
    const [code, reason] = await raw.closed;
    assert.equal(code, 4009);
    assert.match(reason, /the limit is 1000/);
    await when(({ aborted }) => aborted.length === 1);
    assert.equal(seen.running, 1);
    assert.deepEqual(exposed.counters, []);
  });

  test('an app that sends one is left, and the agent learns why', async (t) => {
    const lost = deferred();
    const { raw, client } = await rawApp(t, {
      socket: { maxLength: 1000 },
      onDisconnect: lost.resolve,
    });
    const call = client.call('echo');
    await raw.next();
    raw.send('capabilities/call-result', 'x', { success: true, data: 'x'.repeat(1000) });
    const { error } = await call;
    assert.deepEqual([error.code, error.retryable], ['DISCONNECTED', false]);
    assert.match(error.message, /characters was received; the limit is 1000/);
    const reported = await lost.promise;
    assert.ok(reported instanceof AbpError);
    assert.equal(reported.message, error.message);
    assert.equal((await raw.closed)[0], 4009);
  });

  test('a server that allows less closes with 1009, which is told', async (t) => {
    const { url } = await serve(t, {}, { server: { maxPayload: 1000 } });
    const { client } = await dial(t, url);
    const { error } = await client.call('echo', 'x'.repeat(2000));
    assert.equal(error.code, 'DISCONNECTED');
    assert.match(error.message, /1009/);
  });

  test('a server that inflates is not blown up by little that becomes much', async (t) => {
    const { hang, when } = hanging();
    const { raw } = await rawAgent(
      t,
      { hang },
      { server: { maxPayload: MIB, perMessageDeflate: true }, dial: { perMessageDeflate: true } },
    );
    assert.equal(raw.socket.extensions, 'permessage-deflate');
    raw.send('capabilities/call', 'A', { capability: 'hang' });
    await when(({ running }) => running === 1);
    const before = raw.socket._socket.bytesWritten;
    raw.send('capabilities/call', 'B', { capability: 'echo', params: 'x'.repeat(16 * MIB) });
    assert.equal((await raw.closed)[0], 1009);
    // It was fired: sixteen times what is allowed, in few bytes.
    assert.ok(raw.socket._socket === null || raw.socket._socket.bytesWritten - before < MIB / 8);
    await when(({ aborted }) => aborted.length === 1);
  });
});

describe('frames that are no messages', () => {
  const frames = {
    'text that is not JSON': ['{"type":', false],
    'no text at all': ['', false],
    'JSON that is no object': ['[1, 2, 3, 4]', false],
    'a number': ['7', false],
    null: ['null', false],
    'two messages in one': ['{}{}', false],
    'JSON after a byte order mark': ['\ufeff{"type":"initialize"}', false],
    'a million brackets': ['['.repeat(MIB), false],
    'a control message of ten thousand levels': [
      `{"type":"capabilities/cancel","payload":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_001)}`,
      false,
    ],
    'bytes in the deep': [
      `{"type":"shutdown","payload":${'['.repeat(1e5)}"base64"${']'.repeat(1e5)}}`,
      false,
    ],
    'a binary frame': [Buffer.from('{"type":"initialize"}'), true],
    'an empty binary frame': [Buffer.alloc(0), true],
  };
  for (const [what, [data, binary]] of Object.entries(frames)) {
    test(`${what} is counted, and nobody notices, in an app`, async (t) => {
      const { raw, exposed } = await rawAgent(t);
      raw.socket.send(data, { binary });
      assert.equal((await raw.call('echo', 'fine')).data, 'fine');
      assert.equal(exposed.counters[0].malformed, 1);
    });

    test(`${what} is counted, and nobody notices, in an agent`, async (t) => {
      const { raw, client } = await rawApp(t);
      const call = client.call('echo');
      const { id } = await raw.next();
      raw.socket.send(data, { binary });
      raw.send('capabilities/call-result', id, { success: true, data: 'fine' });
      assert.equal((await call).data, 'fine');
      assert.equal(client.counters.malformed, 1);
    });
  }

  test('a call in thousands of fragments is one call', async (t) => {
    const { raw } = await rawAgent(t);
    const text = JSON.stringify({
      type: 'capabilities/call',
      id: 'x',
      payload: { capability: 'echo', params: 'y'.repeat(4000) },
    });
    for (const [i, letter] of [...text].entries()) {
      raw.socket.send(letter, { fin: i === text.length - 1 });
    }
    assert.equal((await raw.next()).payload.data.length, 4000);
  });

  test('fragments without an end are no message: their sender is left, and others are served', async (t) => {
    const { hang, when } = hanging();
    const options = { server: { maxPayload: MIB, maxFragments: 1000 } };
    const { raw, url } = await rawAgent(t, { hang }, options);
    raw.send('capabilities/call', 'A', { capability: 'hang' });
    await when(({ running }) => running === 1);
    for (let i = 0; i < 2000; i++) raw.socket.send('x', { fin: false });
    assert.equal((await raw.closed)[0], 1008);
    await when(({ aborted }) => aborted.length === 1);
    assert.equal((await (await dial(t, url)).client.call('echo', 1)).data, 1);
  });

  const violations = {
    'an unknown opcode': [0x8b, 0x80, 0, 0, 0, 0],
    'text that is not UTF-8': [0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28],
    'a frame of 2^63 bytes': [0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    'a frame without its mask': [0x81, 0x02, 0x7b, 0x7d],
  };
  for (const [what, octets] of Object.entries(violations)) {
    test(`${what} breaks the WebSocket: its session ends, the process lives`, async (t) => {
      const { hang, when } = hanging();
      const { raw, url, exposed } = await rawAgent(t, { hang });
      raw.send('capabilities/call', 'A', { capability: 'hang' });
      await when(({ running }) => running === 1);
      raw.socket._socket.write(Buffer.from(octets));
      assert.ok([1002, 1006, 1007, 1009].includes((await raw.closed)[0]));
      await when(({ aborted }) => aborted.length === 1);
      assert.deepEqual(exposed.counters, []);
      assert.equal((await (await dial(t, url)).client.call('echo', 1)).data, 1);
    });
  }
});

describe('a peer that never reads', () => {
  const LARGE = 'x'.repeat(MIB);
  const socket = { maxUnsent: MIB };

  test('new calls fail with RATE_LIMITED, retryable; when it reads again, all is well', async (t) => {
    const { raw, client, sockets } = await rawApp(t, { socket });
    raw.socket.pause();
    const calls = [];
    // The system takes some of it first.
    while (sockets[0].bufferedAmount <= MIB) calls.push(client.call('echo', LARGE));
    assert.ok(calls.length < 100);
    const { error } = await client.call('echo', 'one more');
    assert.deepEqual([error.code, error.retryable], ['RATE_LIMITED', true]);
    assert.match(error.message, /reads too slowly: \d{7} bytes/);
    assert.ok(error.retryAfter > 0);
    // A cancel is no new call: it goes out behind the rest.
    const cancel = client.cancel('unknown');
    raw.socket.resume();
    for (let i = 0; i < calls.length; i++) {
      const { id, type } = await raw.next();
      assert.equal(type, 'capabilities/call');
      raw.send('capabilities/call-result', id, { success: true, data: 'done' });
    }
    for (const { data } of await Promise.all(calls)) assert.equal(data, 'done');
    const { id, type } = await raw.next();
    assert.equal(type, 'capabilities/cancel');
    raw.send('capabilities/cancel-result', id, { callId: 'unknown', cancelled: false });
    assert.equal((await cancel).cancelled, false);
    const again = client.call('echo', LARGE);
    raw.send('capabilities/call-result', (await raw.next()).id, { success: true, data: 1 });
    assert.equal((await again).data, 1);
  });

  test('and still asks: at four times that its socket is ended, its handlers are aborted', async (t) => {
    const { hang, when } = hanging();
    const { server, exposed, raw } = await rawAgent(t, { hang, large: () => LARGE }, { socket });
    const [served] = server.clients;
    let most = 0;
    const { send } = served;
    served.send = (...args) => {
      send.apply(served, args);
      most = Math.max(most, served.bufferedAmount);
    };
    const closed = once(served, 'close');
    raw.send('capabilities/call', 'hang', { capability: 'hang' });
    await when(({ running }) => running === 1);
    raw.socket.pause();
    for (let i = 0; i < 100; i++) raw.send('capabilities/call', `${i}`, { capability: 'large' });
    assert.equal((await closed)[0], 1006);
    await when(({ aborted }) => aborted.length === 1);
    assert.deepEqual(exposed.counters, []);
    // Bounded: one message more than the limit, and what its head takes.
    assert.ok(most > 4 * MIB && most < 5.1 * MIB, `${most}`);
  });

  test('is spared the progress that it would not read', async (t) => {
    const { server, raw } = await rawAgent(
      t,
      {
        report: async (_params, { progress }) => {
          for (let i = 1; i <= 100; i++) progress({ progress: i, total: 100, status: LARGE });
        },
      },
      { socket, features: { progress: true } },
    );
    const [served] = server.clients;
    raw.socket.pause();
    const options = { callId: 'A', progressToken: 'A' };
    raw.send('capabilities/call', 'A', { capability: 'report', options });
    while (served.bufferedAmount <= MIB) await new Promise(setImmediate);
    raw.socket.resume();
    let reports = 0;
    let message;
    while ((message = await raw.next()).type === 'progress') reports++;
    assert.equal(message.type, 'capabilities/call-result');
    assert.equal(message.payload.success, true);
    assert.ok(reports > 0 && reports < 100, `${reports}`);
  });

  test('is noticed by its heartbeat', async (t) => {
    const clock = useClock(t);
    const features = { 'bridge.liveness': true, notifications: true };
    const { raw, client } = await rawApp(t, { features, limits: { heartbeat: 30_000 } });
    let heard = () => {};
    client.onNotification = () => heard();
    const call = client.call('echo');
    assert.equal((await raw.next()).type, 'capabilities/call');
    for (let i = 0; i < 3; i++) {
      clock.advance(30_000);
      assert.equal((await raw.next()).type, 'bridge/ping');
      const answered = new Promise((resolve) => (heard = resolve));
      raw.send('bridge/pong', undefined, {});
      raw.send('notification', undefined, { event: 'after the pong' });
      await answered;
    }
    assert.equal(client.connected, true);
    raw.socket.pause();
    for (let i = 0; i < 3; i++) clock.advance(30_000);
    const { error } = await call;
    assert.deepEqual([error.code, error.retryable], ['DISCONNECTED', false]);
    assert.equal(client.connected, false);
  });
});

describe('who may open a socket', () => {
  const allowed = fromOrigins(['https://agent.example', 'HTTP://Agent.Example:8080/']);
  const origins = {
    'https://agent.example': true,
    'http://agent.example:8080': true,
    'https://evil.example': false,
    'http://agent.example': false,
    'https://agent.example:444': false,
    'https://agent.example.evil.example': false,
    'https://evil-agent.example': false,
    'https://agent.example.': false,
    null: false,
    '': false,
  };
  for (const [origin, expected] of Object.entries(origins)) {
    test(`a page of ${JSON.stringify(origin)} ${expected ? 'may' : 'may not'}`, async (t) => {
      let asked;
      const verifyClient = ({ req }) => {
        asked = req.headers.origin;
        return allowed(req);
      };
      const { url, exposed } = await serve(t, {}, { server: { verifyClient } });
      const socket = new WebSocket(url, { headers: { origin } });
      const [what] = await Promise.race([
        once(socket, 'open').then(() => [true]),
        once(socket, 'unexpected-response').then(([, { statusCode }]) => [statusCode]),
      ]);
      assert.equal(asked, origin);
      assert.equal(what, expected || 401);
      assert.equal(exposed.counters.length, expected ? 1 : 0);
      socket.on('error', () => {}).terminate();
    });
  }

  test('what sends no Origin is no page, and may not', () => {
    assert.equal(allowed({ headers: {} }), false);
  });

  test('an origin that is none is a mistake of ours, and is told', () => {
    for (const origin of ['*', 'null', 'agent.example', 'https://agent.example/path']) {
      assert.throws(() => fromOrigins([origin]), { code: 'INVALID_PARAMS' });
    }
  });
});
