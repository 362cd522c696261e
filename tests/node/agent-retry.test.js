// Trying again: a client that reconnects by itself, and calls that are made again when their error
// says that it may help.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { useClock } from '../support/clock.js';

const APP = { id: 'a.b', name: 'A', version: '1' };
const agent = { name: 'a', version: '1' };

/** Lets what is on its way arrive. */
const turn = () => new Promise(setImmediate);
/** Waits until something is so. */
const until = async (holds) => {
  for (let turns = 0; !holds(); turns++) {
    assert.ok(turns < 1e6, `this has not happened: ${holds}`);
    await turn();
  }
};
/** Lets everything that needs no clock happen. */
const settle = async () => {
  for (let i = 0; i < 50; i++) await turn();
};

let exposed, ports, opened, told, client;
beforeEach(() => {
  ports = [];
  opened = 0;
  told = [];
});
afterEach(() => {
  client?.close();
  exposed.close();
});

const serve = (capabilities) => (exposed = expose({ app: APP, capabilities }));
/** Opens a way to the app. */
const open = () => {
  opened++;
  const { port1, port2 } = new MessageChannel();
  ports.push(port1);
  exposed.accept(portTransport(port1));
  return port2;
};
const lose = () => ports.at(-1).close();
const connected = async (options, opener = open) =>
  (client = await connect(opener, {
    agent,
    onDisconnect: ({ code }) => told.push(code),
    onReconnect: (error) => told.push(error?.message ?? 'again'),
    ...options,
  }));

describe('a client that reconnects by itself', () => {
  test('begins a new session after each loss, and tells when', async () => {
    serve({ echo: (params) => params });
    await connected({ reconnect: { delay: 1 } });
    for (let times = 1; times <= 3; times++) {
      const { sessionId } = client;
      lose();
      await until(() => told.length === 2 * times);
      assert.deepEqual(told.slice(-2), ['DISCONNECTED', 'again']);
      assert.notEqual(client.sessionId, sessionId);
      assert.equal((await client.call('echo', times)).data, times);
    }
    assert.equal(opened, 4);
  });

  test('settles the calls of the session that was lost', async () => {
    serve({ hang: () => new Promise(() => {}) });
    await connected({ reconnect: true });
    const pending = client.call('hang');
    await turn();
    lose();
    assert.equal((await pending).error.code, 'DISCONNECTED');
    await until(() => told.length === 2);
  });

  test('does so when the app has ended the session, too', async () => {
    serve({});
    await connected({ reconnect: true });
    exposed.close();
    serve({ echo: (params) => params });
    await until(() => told.length === 2);
    assert.equal((await client.call('echo', 1)).data, 1);
  });

  test('tries as long as the way does not open, ever more slowly', async (t) => {
    serve({});
    let failures = 0;
    let broken = false;
    await connected({ reconnect: { delay: 100, maxDelay: 400 } }, () => {
      if (!broken) return open();
      failures++;
      throw new Error('no way');
    });
    const clock = useClock(t);
    broken = true;
    // The first time within 100 ms, since all clients of a server lose it together; and then after
    // 100, 200, 400, 400 ms, less up to a half.
    t.mock.method(Math, 'random', () => 0.5);
    lose();
    await settle();
    clock.advance(49);
    await settle();
    assert.equal(failures, 0);
    clock.advance(1);
    await until(() => failures === 1);
    t.mock.restoreAll();
    for (const [i, delay] of [100, 200, 400, 400].entries()) {
      await settle();
      clock.advance(delay / 2 - 1);
      await settle();
      assert.equal(failures, i + 1);
      clock.advance(delay / 2 + 1);
      await until(() => failures === i + 2);
    }
    broken = false;
    await settle();
    clock.advance(400);
    await until(() => told.length === 2);
    assert.equal(client.connected, true);
  });

  test('gives up after so many attempts, and says why', async () => {
    serve({});
    await connected({ reconnect: { attempts: 3, delay: 1 } }, () => {
      if (opened++ === 0) return open();
      throw new Error('no way');
    });
    lose();
    await until(() => told.length === 2);
    assert.deepEqual(told, ['DISCONNECTED', 'no way']);
    assert.equal(opened, 2 + 3);
  });

  test('gives up at once where trying again does not help', async () => {
    serve({});
    const { port1, port2 } = new MessageChannel();
    exposed.accept(portTransport(port1));
    await connected({ reconnect: true }, port2);
    port1.close();
    await until(() => told.length === 2);
    assert.match(told[1], /This port was closed with its session/);
  });

  test('pauses between sessions that do not last', async (t) => {
    serve({});
    const clock = useClock(t);
    await connected({ reconnect: { delay: 1000 } });
    lose();
    await settle();
    clock.advance(1000); // the first try is spread over this
    await until(() => told.length === 2);
    lose();
    await until(() => told.length === 3);
    await settle();
    assert.equal(opened, 2);
    clock.advance(1000);
    await until(() => told.length === 4);
    // One that has lasted is another matter.
    clock.advance(60_000);
    lose();
    await settle();
    clock.advance(1000);
    await until(() => told.length === 6);
    assert.equal(opened, 4);
  });

  for (const [what, end] of [
    ['it is closed', () => client.close()],
    ['it is told to reconnect', () => client.reconnect()],
  ]) {
    test(`stops when ${what} while it waits`, async (t) => {
      serve({});
      const clock = useClock(t);
      await connected({ reconnect: { delay: 1000 } }, () => {
        if (opened === 1) throw new Error('not now', { cause: opened++ });
        return open();
      });
      lose();
      await settle();
      clock.advance(1000);
      await until(() => opened === 2);
      await settle();
      await end();
      const { length } = told;
      const before = opened;
      clock.advance(60_000);
      await settle();
      assert.deepEqual([told.length, opened], [length, before]);
      assert.equal(client.connected, end.toString().includes('reconnect'));
    });
  }

  test('leaves it to a listener that closes it, or reconnects itself', async () => {
    serve({});
    await connected({ reconnect: true, onDisconnect: () => client.close() });
    lose();
    await until(() => !client.connected);
    await settle();
    assert.deepEqual([opened, told], [1, []]);

    let own;
    await connected({ reconnect: true, onDisconnect: () => void (own = client.reconnect()) });
    lose();
    await until(() => own);
    await own;
    await settle();
    assert.deepEqual([opened, told], [3, []]);
  });

  test('is one that was asked to', async () => {
    serve({});
    await connected();
    lose();
    await until(() => told.length === 1);
    await settle();
    assert.deepEqual([opened, client.connected], [1, false]);
  });
});

describe('a call with retry', () => {
  /** A handler that fails so often before it succeeds. */
  const failing = (times, error) => {
    const handler = () => {
      if (handler.calls++ < times) throw error;
      return 'done';
    };
    handler.calls = 0;
    return handler;
  };
  const busy = (more) => new AbpError('BUSY', 'later', { retryable: true, ...more });

  test('begins where it was made, before the calls that come after it', async () => {
    const begun = [];
    serve({ note: (which) => begun.push(which) });
    await connected();
    await Promise.all([
      client.call('note', 'first', { retry: true }),
      client.call('note', 'second'),
    ]);
    assert.deepEqual(begun, ['first', 'second']);
  });

  test('is made again as long as its error is retryable', async () => {
    const handler = failing(2, busy());
    serve({ handler });
    await connected();
    const response = await client.call('handler', {}, { retry: { delay: 1 } });
    assert.deepEqual([response.data, handler.calls], ['done', 3]);
  });

  test('gives back the last error after so many attempts: three, if nothing is said', async () => {
    for (const [retry, calls] of [
      [{ delay: 1 }, 3],
      [{ delay: 1, attempts: 5 }, 5],
    ]) {
      const handler = failing(Infinity, busy());
      serve({ handler });
      await connected();
      const { error } = await client.call('handler', {}, { retry });
      assert.deepEqual([error.code, handler.calls], ['BUSY', calls]);
      exposed.close();
    }
  });

  test('is not made again after another error, nor after a cancel or a timeout', async () => {
    const wrong = failing(Infinity, new AbpError('WRONG', 'for good'));
    const hang = () => (hang.calls++, new Promise(() => {}));
    hang.calls = 0;
    const late = { success: false, cancelled: true, error: busy({ message: 'late' }) };
    const gave = () => (gave.calls++, late);
    gave.calls = 0;
    serve({ wrong, hang, gave });
    await connected({ limits: { grace: 50 } });
    assert.equal((await client.call('wrong', {}, { retry: true })).error.code, 'WRONG');
    assert.equal(wrong.calls, 1);
    assert.equal((await client.call('gave', {}, { retry: true })).cancelled, true);
    assert.equal(gave.calls, 1);
    const timedOut = await client.call('hang', {}, { retry: true, timeout: 20 });
    assert.equal(timedOut.error.code, 'TIMEOUT');
    assert.ok(hang.calls <= 1);
  });

  for (const [retryAfter, options, why] of [
    [60_000, { retry: { delay: 1 } }, 'longer than its own pauses'],
    [60_000, { retry: { maxDelay: 4000 } }, 'longer than its longest pause'],
    [
      900_000,
      { retry: true, timeout: 1_000_000 },
      'longer than others wait, where its timeout allows it',
    ],
  ])
    test(`waits as long as the app asks for: ${why}`, async (t) => {
      const handler = failing(1, busy({ retryAfter }));
      serve({ handler });
      const clock = useClock(t);
      await connected();
      const response = client.call('handler', {}, options);
      await until(() => handler.calls === 1);
      await settle();
      clock.advance(retryAfter - 1);
      await settle();
      assert.equal(handler.calls, 1);
      clock.advance(1);
      assert.equal((await response).data, 'done');
    });

  test('does not wait for longer than it may', async () => {
    for (const [retryAfter, options] of [
      [5000, { retry: true, timeout: 4000 }],
      [500_000, { retry: { maxDelay: 600_000 }, timeout: 400_000 }],
      [600_001, { retry: true }],
      [1e300, { retry: true }],
    ]) {
      const handler = failing(1, busy({ retryAfter }));
      serve({ handler });
      await connected();
      const { error } = await client.call('handler', {}, options);
      assert.deepEqual([error.code, handler.calls], ['BUSY', 1]);
      exposed.close();
    }
  });

  test('is cancelled while it waits', async (t) => {
    const handler = failing(Infinity, busy({ retryAfter: 5000 }));
    serve({ handler });
    useClock(t);
    await connected();
    const controller = new AbortController();
    const { signal } = controller;
    const response = client.call('handler', {}, { retry: true, signal });
    await until(() => handler.calls === 1);
    await settle();
    controller.abort('enough');
    const { cancelled, error } = await response;
    assert.deepEqual([cancelled, error.message, handler.calls], [true, 'enough', 1]);
  });

  test('is made again in the next session, if the client reconnects', async () => {
    const sessions = [];
    serve({
      where: {
        readOnly: true,
        handler() {
          sessions.push(client.sessionId);
          if (sessions.length > 1) return 'here';
          lose();
          return new Promise(() => {});
        },
      },
    });
    await connected({ reconnect: true });
    const { data } = await client.call('where', {}, { retry: true });
    assert.equal(data, 'here');
    assert.notEqual(sessions[0], sessions[1]);
  });

  test('is not made again after DISCONNECTED, if it may have run and must not run twice', async () => {
    let calls = 0;
    serve({
      pay() {
        calls++;
        lose();
        return new Promise(() => {});
      },
    });
    await connected({ reconnect: true, upgrade: 'none' });
    const { error, metadata } = await client.call('pay', {}, { retry: true });
    assert.equal(error.code, 'DISCONNECTED');
    assert.equal(metadata.outcome, 'unknown');
    assert.equal(calls, 1);
  });

  test('learns what became of it, where the app remembers that', async () => {
    let calls = 0;
    serve({
      pay(_params, { signal }) {
        calls++;
        lose();
        return new Promise((_resolve, reject) => {
          const declined = new AbpError('DECLINED', 'The bank said no');
          signal.addEventListener('abort', () => reject(declined));
        });
      },
    });
    await connected({ reconnect: true });
    const { error, metadata } = await client.call('pay', {}, { retry: true });
    assert.equal(error.code, 'DECLINED');
    assert.equal(metadata.outcome, 'failed');
    assert.equal(calls, 1);
  });

  test('settles with DISCONNECTED, if there will be no other session', async () => {
    for (const options of [{}, { reconnect: { attempts: 1 } }]) {
      opened = 0;
      serve({ lose: () => (lose(), new Promise(() => {})) });
      await connected(options, () => {
        if (opened > 0) throw new Error('no way');
        return open();
      });
      const { error } = await client.call('lose', {}, { retry: true });
      assert.equal(error.code, 'DISCONNECTED');
    }
  });

  test('cannot move its params', async () => {
    serve({});
    await connected();
    const buffer = new ArrayBuffer(1);
    const options = { retry: true, transfer: [buffer] };
    await assert.rejects(client.call('x', buffer, options), /transfer cannot be retried/);
  });
});
