// What a call that did not succeed says became of its handler's work, over every way alike.
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { connect } from '../../parts/main/index.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { AGENT, keepAlive } from '../support/pair.js';
import { Raw } from '../support/raw.js';
import { CONNECTIONS } from '../support/connections.js';

let pair;
let channel;
keepAlive();
afterEach(() => {
  pair?.close();
  channel?.port1.close();
  pair = channel = undefined;
});

/** A promise, and what settles it. */
function deferred() {
  const it = {};
  it.promise = new Promise((resolve) => (it.resolve = resolve));
  return it;
}

const GRACE = { exposeOptions: { limits: { grace: 1 } } };
const ONE = { exposeOptions: { limits: { maxConcurrent: 1 } } };

/** How a handler behaves once its signal has fired, and what its caller is told. */
const AFTER_ITS_SIGNAL = {
  'throws the reason': [({ signal }) => Promise.reject(signal.reason), 'stopped'],
  'throws an AbortError of its own': [
    () => Promise.reject(new DOMException('enough', 'AbortError')),
    'stopped',
  ],
  'says cancelled': [() => ({ success: false, cancelled: true }), 'stopped'],
  returns: [() => 'done', 'finished'],
  'returns a response': [() => ({ success: true, data: 'done' }), 'finished'],
  'throws an error': [() => Promise.reject(new Error('disk full')), 'failed'],
  'returns an error': [
    () => ({ success: false, error: { code: 'OWN', message: 'no', retryable: false } }),
    'failed',
  ],
  'says that nobody knows': [
    () => ({ success: false, cancelled: true, metadata: { outcome: 'unknown' } }),
    'unknown',
  ],
  'was told of what it called': [
    () => ({ success: false, cancelled: true, metadata: { outcome: 'finished' } }),
    'finished',
  ],
};

for (const [connection, open] of Object.entries(CONNECTIONS)) {
  describe(`over ${connection}, it is told of a handler that`, () => {
    for (const [what, [end, outcome]] of Object.entries(AFTER_ITS_SIGNAL)) {
      test(`${what} after its signal: ${outcome}`, async () => {
        const controller = new AbortController();
        pair = await open({
          async work(_params, context) {
            const aborted = new Promise((resolve) => (context.signal.onabort = resolve));
            controller.abort('enough');
            await aborted;
            return end(context);
          },
        });
        const response = await pair.call('work', {}, { signal: controller.signal });
        assert.equal(response.success, false);
        assert.equal(response.cancelled, true);
        assert.equal(response.data, undefined);
        assert.equal(response.error.code, 'CANCELLED');
        assert.equal(response.metadata.outcome, outcome);
      });
    }

    test('fails by itself: failed', async () => {
      pair = await open({
        work() {
          throw Object.assign(new Error('no'), { code: 'OWN', retryable: false });
        },
      });
      const { metadata, cancelled } = await pair.call('work');
      assert.equal(metadata.outcome, 'failed');
      assert.equal(cancelled, undefined);
    });

    test('cancels its own call: stopped', async () => {
      pair = await open({
        work() {
          throw new DOMException('not today', 'AbortError');
        },
      });
      const { metadata, error } = await pair.call('work');
      assert.equal(metadata.outcome, 'stopped');
      assert.match(error.message, /not today/);
    });

    test('cancels its own call by a response: its error', async () => {
      const said = {
        code: 'CANCELLED',
        message: 'no paper',
        retryable: true,
        details: { left: 2 },
      };
      pair = await open({ work: () => ({ success: false, cancelled: true, error: said }) });
      const { cancelled, error } = await pair.call('work');
      assert.equal(cancelled, true);
      assert.deepEqual([error.message, error.details], ['no paper', { left: 2 }]);
    });

    test('succeeds: nothing', async () => {
      pair = await open({ work: () => 1 });
      assert.equal((await pair.call('work')).metadata?.outcome, undefined);
    });

    test('never ran, because there is none: unstarted', async () => {
      pair = await open({});
      assert.equal((await pair.call('work')).metadata.outcome, 'unstarted');
    });

    test('was not called, because the params break its schema: unstarted', async () => {
      const inputSchema = { type: 'object', required: ['name'] };
      pair = await open({ work: { inputSchema, handler: assert.fail } });
      const { error, metadata } = await pair.call('work', {});
      assert.equal(error.code, 'INVALID_PARAMS');
      assert.equal(metadata.outcome, 'unstarted');
    });

    test('was not called, because the signal had fired: unstarted', async () => {
      pair = await open({ work: assert.fail });
      const { metadata } = await pair.call('work', {}, { signal: AbortSignal.abort() });
      assert.equal(metadata.outcome, 'unstarted');
    });
  });
}

const DIRECT = Object.entries(CONNECTIONS).filter(
  ([connection]) => connection !== 'a call of another handler',
);
for (const [connection, open] of DIRECT) {
  test(`over ${connection}, of a handler that is removed while its call waits: unstarted`, async () => {
    const [running, release] = [deferred(), deferred()];
    const first = () => (running.resolve(), release.promise);
    pair = await open({ first, second: assert.fail }, ONE);
    const calls = [pair.call('first')];
    await running.promise;
    calls.push(pair.call('second'), pair.call('third'));
    // There is no third: with this answer the second has come, too.
    assert.equal((await calls[2]).error.code, 'UNKNOWN_CAPABILITY');
    pair.exposed.delete('second');
    release.resolve();
    const { error, metadata } = await calls[1];
    assert.equal(error.code, 'UNKNOWN_CAPABILITY');
    assert.equal(metadata.outcome, 'unstarted');
  });

  test(`over ${connection}, of a handler that waits for its turn: unstarted`, async () => {
    const running = deferred();
    const release = deferred();
    pair = await open(
      {
        first() {
          running.resolve();
          return release.promise;
        },
        second: assert.fail,
      },
      ONE,
    );
    const first = pair.call('first');
    await running.promise;
    const second = await pair.call('second', {}, { signal: AbortSignal.timeout(1) });
    assert.equal(second.cancelled, true);
    assert.equal(second.metadata.outcome, 'unstarted');
    release.resolve();
    assert.equal((await first).success, true);
  });

  test(`over ${connection}, of a handler that has not returned when the grace period is over: running`, async () => {
    const release = deferred();
    const controller = new AbortController();
    pair = await open(
      {
        work() {
          controller.abort();
          return release.promise;
        },
      },
      GRACE,
    );
    const { metadata } = await pair.call('work', {}, { signal: controller.signal });
    assert.equal(metadata.outcome, 'running');
    release.resolve();
  });

  test(`over ${connection}, of a handler whose app ends the session: running`, async () => {
    const release = deferred();
    const exposed = deferred();
    pair = await open({
      async work() {
        (await exposed.promise).close();
        return release.promise;
      },
    });
    exposed.resolve(pair.exposed);
    assert.equal((await pair.call('work')).metadata.outcome, 'running');
    release.resolve();
  });
}

describe('the caller tells', () => {
  /** An agent of an app that a test plays. */
  async function plain(options) {
    channel = new MessageChannel();
    const raw = new Raw(channel.port1);
    const connecting = connect(channel.port2, { agent: AGENT, ...options });
    const { id } = await raw.next();
    raw.send('initialize-result', id, { sessionId: 's', features: {}, capabilities: [] });
    return { raw, client: await connecting };
  }

  /** What an app of another library says, and what the caller is told. */
  const SAID = {
    'cancelled, and no more': [{ success: false, cancelled: true }, 'unknown'],
    'a timeout': [
      {
        success: false,
        cancelled: true,
        error: { code: 'TIMEOUT', message: 'late', retryable: true },
      },
      'unknown',
    ],
    'an error': [
      { success: false, error: { code: 'OWN', message: 'no', retryable: false } },
      'failed',
    ],
    'a word of ours': [
      { success: false, cancelled: true, metadata: { outcome: 'finished' } },
      'finished',
    ],
    'a word that is none': [
      { success: false, cancelled: true, metadata: { outcome: 'none' } },
      'unknown',
    ],
    'an object in place of a word': [
      { success: false, cancelled: true, metadata: { outcome: { toString: 1 } } },
      'unknown',
    ],
    'no metadata that can be read': [{ success: false, cancelled: true, metadata: 7 }, 'unknown'],
    'what is no response': ['boom', 'failed'],
  };
  for (const [what, [payload, outcome]] of Object.entries(SAID)) {
    test(`of an app that says ${what}: ${outcome}`, async () => {
      const { raw, client } = await plain();
      const pending = client.call('work');
      raw.send('capabilities/call-result', (await raw.next()).id, payload);
      assert.equal((await pending).metadata.outcome, outcome);
    });
  }

  test('of an app that does not answer a cancel: unknown', async () => {
    const { raw, client } = await plain({ limits: { grace: 1 } });
    const controller = new AbortController();
    const pending = client.call('work', {}, { signal: controller.signal });
    await raw.next();
    controller.abort();
    assert.equal((await pending).metadata.outcome, 'unknown');
  });

  test('of an app that is gone: unknown', async () => {
    const { raw, client } = await plain();
    const pending = client.call('work');
    await raw.next();
    channel.port1.close();
    const { error, metadata } = await pending;
    assert.equal(error.code, 'DISCONNECTED');
    assert.equal(metadata.outcome, 'unknown');
  });

  for (const { name, ends } of TRANSPORTS)
    test(`of an app that says it is gone: unknown, and nothing else of what it said (${name})`, async (t) => {
      const [agentEnd, appEnd] = await ends();
      t.after(() => [agentEnd, appEnd].forEach((end) => end.close()));
      const app = appEnd.plain();
      const session = { sessionId: 's', features: { 'bridge.liveness': true }, capabilities: [] };
      app.listen(({ type, id }) => {
        if (type === 'initialize') app.post({ type: 'initialize-result', id, payload: session });
        if (type === 'capabilities/call')
          app.post({ type: 'bridge/bye', payload: { persisted: false, data: 'late' } });
      });
      const client = await connect(agentEnd.transport, { agent: AGENT });
      const { success, error, metadata, ...more } = await client.call('work');
      const { message, ...coded } = error;
      assert.ok(message);
      assert.deepEqual(coded, { code: 'DISCONNECTED', retryable: false });
      assert.deepEqual([success, metadata], [false, { outcome: 'unknown' }]);
      assert.deepEqual(Object.keys(more), []);
    });

  test('of a client that closes: unknown, and of what it calls then: unstarted', async () => {
    const { raw, client } = await plain();
    const pending = client.call('work');
    await raw.next();
    client.close();
    assert.equal((await pending).metadata.outcome, 'unknown');
    assert.equal((await client.call('work')).metadata.outcome, 'unstarted');
  });

  test('of what could not be sent: unstarted', async () => {
    const { client } = await plain();
    const { error, metadata } = await client.call('work', { f() {} });
    assert.match(error.message, /params.f \(function\)/);
    assert.equal(metadata.outcome, 'unstarted');
  });

  test('of what its own limits refuse: unstarted', async () => {
    const { raw, client } = await plain({ limits: { maxCalls: 1 } });
    void client.call('work');
    const { error, metadata } = await client.call('work');
    assert.equal(error.code, 'RATE_LIMITED');
    assert.equal(metadata.outcome, 'unstarted');
    await raw.next();
  });
});

test('the published members of a response stay as they are', async () => {
  const controller = new AbortController();
  pair = await CONNECTIONS['a port with messages']({
    work(_params, { signal }) {
      controller.abort('enough');
      return new Promise((_resolve, reject) => (signal.onabort = () => reject(signal.reason)));
    },
  });
  assert.deepEqual(await pair.call('work', {}, { signal: controller.signal }), {
    success: false,
    cancelled: true,
    error: { code: 'CANCELLED', message: 'enough', retryable: false },
    metadata: { outcome: 'stopped' },
  });
});

for (const [connection, open] of Object.entries(CONNECTIONS)) {
  describe(`over ${connection}, a report`, () => {
    test('is sent with the outcome, the latest, as it was, and with the last progress', async () => {
      const controller = new AbortController();
      pair = await open({
        async work(_params, { signal, report, progress }) {
          const remaining = [];
          report({ applied: 11 });
          report({ applied: 12, remaining });
          remaining.push('page 13');
          progress({ progress: 12, total: 40 });
          const aborted = new Promise((resolve) => (signal.onabort = resolve));
          controller.abort();
          await aborted;
          throw signal.reason;
        },
      });
      const { metadata } = await pair.call('work', {}, { signal: controller.signal });
      assert.equal(metadata.outcome, 'stopped');
      assert.deepEqual(metadata.report, { applied: 12, remaining: [] });
      assert.deepEqual(metadata.progress, { progress: 12, total: 40, percentage: 30 });
    });

    test('is sent with an error', async () => {
      pair = await open({
        work(_params, { report }) {
          report({ applied: 1 });
          throw Object.assign(new Error('no'), { code: 'OWN', retryable: false });
        },
      });
      const { error, metadata } = await pair.call('work');
      assert.equal(error.code, 'OWN');
      assert.deepEqual(metadata.report, { applied: 1 });
    });

    test('is not sent with a success', async () => {
      pair = await open({
        work(_params, { report }) {
          report({ applied: 1 });
          return 'done';
        },
      });
      const { data, metadata } = await pair.call('work');
      assert.equal(data, 'done');
      assert.equal(metadata?.report, undefined);
    });

    for (const [what, report] of [
      ['larger than 4 KB', { applied: 'x'.repeat(4096) }],
      ['that is no JSON', { applied: 1n }],
      ['that is nothing', undefined],
    ]) {
      test(`${what} is left out, with the one before, and named in the console`, async (t) => {
        const error = t.mock.method(console, 'error', () => {});
        pair = await open({
          work(_params, context) {
            context.report({ applied: 1 });
            context.report(report);
            throw Object.assign(new Error('no'), { code: 'OWN', retryable: false });
          },
        });
        const { metadata } = await pair.call('work');
        assert.equal(metadata.outcome, 'failed');
        assert.equal(metadata.report, undefined);
        assert.match(error.mock.calls[0].arguments[0], /a report is JSON of at most 4 KB/);
      });
    }
  });
}

/** What may run twice says so, in either way; and what does not. */
const CAPABILITIES = {
  'says nothing': [{}, false],
  'is idempotent': [{ idempotent: true }, true],
  'is only read from': [{ readOnly: true }, true],
  'has the hint': [{ annotations: { idempotentHint: true } }, true],
  'has another hint': [{ annotations: { openWorldHint: true } }, false],
};
for (const [connection, open] of DIRECT) {
  describe(`over ${connection}, a timeout`, () => {
    for (const [what, [said, retryable]] of Object.entries(CAPABILITIES)) {
      test(`of what ${what} ${retryable ? 'is' : 'is not'} retryable once its handler has run`, async () => {
        const handler = (_params, { signal }) =>
          new Promise((_resolve, reject) => (signal.onabort = () => reject(signal.reason)));
        pair = await open({ work: { ...said, handler } });
        const { error, metadata } = await pair.call('work', {}, { timeout: 1 });
        assert.equal(metadata.outcome, 'stopped');
        assert.deepEqual([error.code, error.retryable], ['TIMEOUT', retryable]);
      });
    }

    test('is retryable if its handler never ran', async () => {
      const release = deferred();
      pair = await open({ first: () => release.promise, second: assert.fail }, ONE);
      const first = pair.call('first');
      const { error, metadata } = await pair.call('second', {}, { timeout: 1 });
      assert.equal(metadata.outcome, 'unstarted');
      assert.deepEqual([error.code, error.retryable], ['TIMEOUT', true]);
      release.resolve();
      await first;
    });
  });
}

test('agents are told what may run twice as hints', async () => {
  const handler = () => 1;
  pair = await CONNECTIONS['a port with messages']({
    a: { handler, idempotent: true, annotations: { openWorldHint: false } },
    b: { handler, readOnly: true },
    c: { handler },
  });
  const hints = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => (await pair.client.describeCapability(name)).annotations),
  );
  assert.deepEqual(hints, [
    { openWorldHint: false, idempotentHint: true },
    { readOnlyHint: true },
    undefined,
  ]);
});

test('a handler whose own error is retryable says so for itself', async () => {
  pair = await CONNECTIONS['a port with frames']({
    work() {
      throw Object.assign(new Error('busy'), { code: 'BUSY', retryable: true });
    },
  });
  assert.equal((await pair.call('work')).error.retryable, true);
});
