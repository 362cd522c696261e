// The app in C of demo/examples/native, called and cancelled by our agent: over lines of standard
// input and output, and over WebSockets. It is built with AddressSanitizer, so its exit code tells
// of leaks, too.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { connect } from '../../parts/main/index.js';
import { lineTransport } from '../../packages/rpc/src/index.js';
import { webSocketTransport } from '../../parts/transports/index.js';

const AGENT = { name: 'test', version: '1' };
/** More numbers than can be counted in the time of a test. */
const ENDLESS = { limit: 2 ** 32 - 1 };

// When a test hangs, its run ends with a signal, and what it has started ends with it.
process.once('SIGTERM', () => process.exit(143));
const start = (name, ...args) => {
  const file = new URL(`../../build/test/tests/core/native/${name}`, import.meta.url);
  const child = spawn(fileURLToPath(file), args, { stdio: ['pipe', 'pipe', 'inherit'] });
  process.once('exit', () => child.kill('SIGKILL'));
  return child;
};
/** The address at which a server of the example listens. */
const addressOf = async (child) => (await once(createInterface(child.stdout), 'line'))[0];

const CONNECTIONS = {
  'lines of stdin and stdout': async () => {
    const child = start('app_lines');
    const { stdout: readable, stdin: writable } = child;
    return {
      child,
      open: () => lineTransport({ readable, writable }),
      say: (text) => writable.write(`${text}\n`),
      end: (client) => client.close(),
    };
  },
  'a WebSocket': async () => {
    const child = start('app_websocket', '0');
    const address = await addressOf(child);
    let socket;
    return {
      child,
      open: () => webSocketTransport((socket = new WebSocket(address))),
      say: (text) => socket.send(text),
      end(client) {
        client.close();
        child.kill();
      },
    };
  },
};

for (const [name, begin] of Object.entries(CONNECTIONS)) {
  describe(`an app in C over ${name}`, () => {
    let way, client, ended;
    before(async () => {
      way = await begin();
      ended = once(way.child, 'exit');
      client = await connect(way.open, { agent: AGENT });
    });

    test('says who it is and what it can do', async () => {
      assert.equal(client.app.name, 'Native example');
      const [capability] = await client.listCapabilities();
      assert.equal(capability.name, 'primes.count');
      assert.deepEqual(capability.inputSchema.required, ['limit']);
    });

    test('a call completes, and its progress has a total', async () => {
      const said = [];
      const result = await client.call(
        'primes.count',
        { limit: 100_000 },
        { onProgress: (info) => said.push(info) },
      );
      assert.deepEqual(result, { success: true, data: { primes: 9592 } });
      for (const { progress, total, percentage } of said) {
        assert.equal(total, 100_000);
        assert.equal(percentage, (progress / total) * 100);
      }
      assert.equal(said.at(-1).percentage, 100);
    });

    test('a call is cancelled under way, and the next one in the same session completes', async () => {
      const controller = new AbortController();
      const result = await client.call('primes.count', ENDLESS, {
        signal: controller.signal,
        onProgress: () => controller.abort('the user pressed stop'),
      });
      assert.equal(result.cancelled, true);
      assert.equal(result.error.code, 'CANCELLED');
      assert.equal((await client.call('primes.count', { limit: 10 })).data.primes, 4);
    });

    test('a call that runs out of time is stopped', async () => {
      const result = await client.call('primes.count', ENDLESS, { timeout: 50 });
      assert.deepEqual([result.cancelled, result.error.code], [true, 'TIMEOUT']);
    });

    test('a call that waits for its turn is cancelled alone', async () => {
      const running = Array.from({ length: 4 }, () => {
        const controller = new AbortController();
        const { signal } = controller;
        return { controller, call: client.call('primes.count', ENDLESS, { signal }) };
      });
      const waiting = new AbortController();
      const queued = client.call('primes.count', { limit: 10 }, { signal: waiting.signal });
      const next = client.call('primes.count', { limit: 100 });
      waiting.abort();
      assert.equal((await queued).cancelled, true);
      running[0].controller.abort();
      assert.equal((await running[0].call).cancelled, true);
      assert.equal((await next).data.primes, 25); // it has the place that is free
      for (const { controller } of running) controller.abort();
      for (const { call } of running) assert.equal((await call).cancelled, true);
    });

    test('what it cannot do is an error with a code and a reason', async () => {
      const unknown = await client.call('primes.forget');
      assert.equal(unknown.error.code, 'UNKNOWN_CAPABILITY');
      const { error } = await client.call('primes.count', { limit: 'many' });
      assert.equal(error.code, 'INVALID_PARAMS');
      assert.equal(error.message, 'limit must be a number from 0 to 4294967295');
    });

    test('what cannot be read harms nobody', async () => {
      for (const text of ['no JSON', '[]', '{"type":1}', `"${'x'.repeat(2 ** 20 - 2)}"`])
        way.say(text);
      assert.equal((await client.call('primes.count', { limit: 10 })).data.primes, 4);
    });

    test('it ends in good order when its agent leaves in the midst of a call', async () => {
      const pending = client.call('primes.count', ENDLESS);
      way.end(client);
      assert.equal((await pending).cancelled, true);
      assert.deepEqual(await ended, [0, null]);
    });
  });
}

test('an app that is killed fails its calls', async () => {
  const { child, open } = await CONNECTIONS['lines of stdin and stdout']();
  const client = await connect(open, { agent: AGENT });
  const result = await client.call('primes.count', ENDLESS, { onProgress: () => child.kill() });
  assert.equal(result.error.code, 'DISCONNECTED');
});

test('a line that is too long is skipped, and the next one is read', async () => {
  const { child, open, say } = await CONNECTIONS['lines of stdin and stdout']();
  say('x'.repeat(3_000_000));
  const client = await connect(open, { agent: AGENT });
  assert.equal((await client.call('primes.count', { limit: 10 })).data.primes, 4);
  client.close();
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('an app behind a WebSocket serves several agents, and the pages of one origin', async () => {
  const child = start('app_websocket', '0', 'https://agent.example');
  const address = await addressOf(child);
  const dial = (options) =>
    connect(() => webSocketTransport(new WebSocket(address, options)), { agent: AGENT });
  const clients = await Promise.all([dial(), dial({ origin: 'https://agent.example' })]);
  const controller = new AbortController();
  const { signal } = controller;
  const first = clients[0].call('primes.count', ENDLESS, { signal, callId: 'the same' });
  const second = clients[1].call('primes.count', { limit: 100 }, { callId: 'the same' });
  assert.equal((await second).data.primes, 25);
  controller.abort();
  assert.equal((await first).cancelled, true);
  await assert.rejects(dial({ origin: 'https://else.example' }), { code: 'DISCONNECTED' });
  await assert.rejects(dial({ origin: 'https://agent.example.evil' }), { code: 'DISCONNECTED' });
  for (const client of clients) client.close();
  child.kill();
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});
