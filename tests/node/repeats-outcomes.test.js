// The outcome of a call that is made again covers all its attempts: what an earlier one may have
// done is not hidden by a later one that never ran.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deferred, held, siteOf } from '../support/site.js';

const AGAIN = { retry: { delay: 1 } };
const BACK = { reconnect: { delay: 1 } };

/** The error code, the outcome and whether the error is retryable, or `success`. */
const failureOf = ({ success, error, metadata }) =>
  success ? 'success' : [error.code, metadata.outcome, error.retryable];

describe('what an earlier attempt may have done is not hidden by a later one', () => {
  /** A site whose first call loses its line; `away` lets the agent back. */
  function lossy(capabilities = {}) {
    const work = held();
    const away = deferred();
    const site = siteOf({ capabilities: { work: work.handler, ...capabilities } });
    return { work, site, away };
  }
  /** Calls, and loses the line once the handler runs. */
  async function loseLine({ work, site, away }, options) {
    const client = await site.client(BACK);
    const lost = new Promise((resolve) => (client.onDisconnect = resolve));
    const begun = work.next();
    const pending = client.call('work', {}, { ...AGAIN, ...options });
    const call = await begun;
    site.held = away.promise;
    site.cut();
    await lost;
    return { client, call, pending };
  }

  test('stop is pressed while the client is away', async () => {
    const its = lossy();
    const controller = new AbortController();
    const { call, pending } = await loseLine(its, { signal: controller.signal });
    controller.abort('stop');
    const response = await pending;
    assert.deepEqual(failureOf(response), ['CANCELLED', 'unknown', false]);
    assert.equal(response.cancelled, true);
    const { settled } = response;
    call.end.resolve(() => 'all of it');
    its.away.resolve();
    assert.deepEqual(await settled, { outcome: 'finished' });
    assert.equal(its.work.calls.length, 1);
  });

  test('the capability is gone by then', async () => {
    const its = lossy();
    const { call, pending } = await loseLine(its, {});
    its.site.app.delete('work');
    its.away.resolve();
    const response = await pending;
    assert.deepEqual(failureOf(response), ['UNKNOWN_CAPABILITY', 'unknown', false]);
    call.end.resolve(() => 'all of it');
    assert.deepEqual(await response.settled, { outcome: 'finished' });
  });

  test('the app has no room by then', async () => {
    const its = lossy();
    its.site.app.close();
    its.site.start({ limits: { maxCalls: 1 } });
    const { call, client, pending } = await loseLine(its, { retry: { delay: 1, attempts: 2 } });
    // A call that was made first takes the room.
    const begun = its.work.next();
    client.onReconnect = () => void client.call('work');
    its.away.resolve();
    await begun;
    const response = await pending;
    assert.deepEqual(failureOf(response), ['RATE_LIMITED', 'unknown', false]);
    call.end.resolve(() => 'all of it');
    its.work.calls[1].end.resolve(() => 1);
    assert.deepEqual(await client.outcome('x'), { outcome: 'unknown' });
  });

  test('what may run twice ran once, perhaps: it is not told that it never ran', async () => {
    const work = held();
    const its = lossy({ work: { handler: work.handler, idempotent: true } });
    its.work = work;
    const { call, pending } = await loseLine(its, {});
    its.site.app.delete('work');
    its.away.resolve();
    const response = await pending;
    assert.deepEqual(
      [response.error.code, response.metadata.outcome],
      ['UNKNOWN_CAPABILITY', 'unknown'],
    );
    call.end.resolve(() => 1);
    assert.deepEqual(await response.settled, { outcome: 'finished' });
  });

  test('a repeat that has joined the first knows better', async () => {
    const its = lossy();
    const { call, pending } = await loseLine(its, {});
    its.away.resolve();
    call.end.resolve(() => Promise.reject(new Error('disk full')));
    const response = await pending;
    assert.deepEqual(failureOf(response), ['OPERATION_FAILED', 'failed', false]);
    assert.equal(its.work.calls.length, 1);
  });

  test('a failure that may be tried again did run, although stop was pressed before it was', async () => {
    const controller = new AbortController();
    const site = siteOf({
      capabilities: {
        busy(_params, { report }) {
          report({ applied: 1 });
          queueMicrotask(() => setImmediate(() => controller.abort()));
          return { success: false, error: { code: 'BUSY', message: 'busy', retryable: true } };
        },
      },
    });
    const client = await site.client();
    const options = { retry: { delay: 3_600_000, maxDelay: 3_600_000 }, signal: controller.signal };
    const response = await client.call('busy', {}, options);
    assert.deepEqual(failureOf(response), ['CANCELLED', 'failed', false]);
    assert.deepEqual(response.metadata.report, { applied: 1 });
  });
});

/** A store of keys that outlives its app; `held` holds what asks it back. */
function storeOf() {
  const kept = new Map();
  const store = {
    held: undefined,
    asked: 0,
    open: async () => ({ id: 'store', rememberFor: 300_000 }),
    async begin(key) {
      store.asked++;
      await store.held;
      const found = kept.get(key);
      if (found && !found.again) return found.state ? found : { state: 'ended', ended: found };
      // Where it runs is gone by the time it is asked for again.
      kept.set(key, { state: 'lost' });
      return { state: 'begun', report: found?.report };
    },
    async end(key, ended) {
      kept.set(key, ended);
    },
    close() {},
  };
  return store;
}

describe('the id of a call names its repeats, too: it is not told as unstarted once one may have run', () => {
  const untold = new Promise(() => {});
  /** What the new app does with the repeat. @type {Record<string, any>} */
  const ends = {
    'stopped before its key is looked up': {
      store: (store) => (store.held = untold),
      until: ({ store }) => store.asked > 1,
      stop: true,
      code: 'CANCELLED',
    },
    'stopped while it waits for its turn': {
      options: { limits: { maxConcurrent: 1 } },
      until: ({ site }) => site.app.counters.some(({ inFlightIn }) => inFlightIn === 2),
      stop: true,
      busy: true,
      code: 'CANCELLED',
    },
    'out of time while its key is looked up': {
      store: (store) => (store.held = untold),
      call: { timeout: 1000 },
      code: 'TIMEOUT',
    },
    'refused for want of room': {
      options: { limits: { maxCalls: 1 } },
      busy: true,
      call: { retry: { delay: 1, attempts: 2 } },
      code: 'RATE_LIMITED',
    },
    'of a capability that is gone': { without: 'work', code: 'UNKNOWN_CAPABILITY' },
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  for (const upgrade of ['frames', 'port']) {
    for (const [what, end] of Object.entries(ends)) {
      test(`over ${upgrade}: the app was restarted and has kept its keys, and the repeat is ${what}`, async () => {
        const store = storeOf();
        let runs = 0;
        const busy = held();
        const site = siteOf({
          options: { keys: store },
          capabilities: {
            work() {
              runs++;
              end.store?.(store);
              site.restart(end.options);
              if (end.without) site.app.delete(end.without);
              return untold;
            },
            busy: busy.handler,
          },
        });
        const controller = new AbortController();
        const client = await site.client({ ...BACK, upgrade });
        const begun = busy.next();
        client.onReconnect = () => end.busy && void client.call('busy');
        const { signal } = controller;
        const options = { callId: 'mine', idempotencyKey: 'k', signal, ...AGAIN, ...end.call };
        const pending = client.call('work', {}, options);
        if (end.busy) await begun;
        if (end.stop) {
          while (!end.until({ store, site })) await turn();
          controller.abort();
        }
        const response = await pending;
        assert.deepEqual(failureOf(response), [end.code, 'unknown', false]);
        assert.equal((await client.outcome('mine')).outcome, 'unknown');
        assert.equal((await response.settled).outcome, 'unknown');
        assert.equal(runs, 1);
      });
    }
  }

  for (const [what, more] of [
    ['has a key', {}],
    ['may run twice', { idempotent: true }],
  ]) {
    test(`the line was cut, and a repeat of what ${what} is stopped while it waits for its turn: the first is told of`, async () => {
      const work = held();
      const site = siteOf({
        capabilities: { work: { handler: work.handler, ...more } },
        options: { limits: { maxConcurrent: 1 } },
      });
      const client = await site.client(BACK);
      const controller = new AbortController();
      let begun = work.next();
      const options = { callId: 'mine', signal: controller.signal, ...AGAIN };
      const pending = client.call('work', {}, options);
      const first = await begun;
      begun = work.next();
      client.onReconnect = () => void client.call('work', { other: true });
      site.cut();
      (await begun).context.report('not this one');
      while (!site.app.counters.some(({ inFlightIn }) => inFlightIn === 2)) await turn();
      assert.equal((await client.outcome('mine')).outcome, 'running');
      controller.abort();
      const response = await pending;
      assert.deepEqual(failureOf(response), ['CANCELLED', 'unknown', false]);
      assert.deepEqual(await client.outcome('mine'), { outcome: 'running' });
      const { settled } = response;
      first.end.resolve(() => 'all of it');
      assert.deepEqual(await settled, { outcome: 'finished' });
      assert.deepEqual(await client.outcome('mine'), { outcome: 'finished' });
      assert.equal(work.calls.length, 2);
    });
  }

  test('it was stopped because the line was cut, and the params of its repeat are checked when that is stopped', async () => {
    const started = deferred();
    const checked = deferred();
    let runs = 0;
    const site = siteOf({
      capabilities: {
        async work(_params, { signal, report }) {
          runs++;
          report({ applied: 1 });
          started.resolve();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          signal.throwIfAborted();
        },
      },
    });
    const client = await site.client(BACK);
    const controller = new AbortController();
    const { signal } = controller;
    const options = { callId: 'mine', idempotencyKey: 'k', signal, ...AGAIN };
    const pending = client.call('work', {}, options);
    await started.promise;
    const validate = () => (checked.resolve(), untold);
    const jsonSchema = { input: () => ({}) };
    const inputSchema = { '~standard': { version: 1, vendor: 'test', jsonSchema, validate } };
    site.app.set('work', { handler: () => void runs++, inputSchema });
    site.cut();
    await checked.promise;
    controller.abort();
    const response = await pending;
    assert.deepEqual(failureOf(response), ['CANCELLED', 'unknown', false]);
    const became = { outcome: 'stopped', report: { applied: 1 } };
    assert.deepEqual(await client.outcome('mine'), became);
    assert.deepEqual(await response.settled, became);
    // Its key is free: what never ran does not hold it.
    site.app.set('work', () => ++runs);
    assert.equal((await client.call('work', {}, { idempotencyKey: 'k' })).data, 2);
  });

  test('of work that ran in two sessions, the later one is told of, also if its session ended before the app knew that the first had', async () => {
    let runs = 0;
    let isLate = () => {};
    const site = siteOf({
      capabilities: {
        async work(_params, { signal, report }) {
          report({ run: ++runs });
          const { app } = site.last;
          // As when a network is gone: only the agent finds out.
          if (runs === 1)
            app.onClose = new Proxy(app.onClose, {
              apply: (...given) => (isLate = () => Reflect.apply(...given)),
            });
          site.cut();
          if (runs === 1)
            return { success: false, error: { code: 'BUSY', message: 'busy', retryable: true } };
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          site.app.delete('work');
          signal.throwIfAborted();
        },
      },
    });
    const client = await site.client({ ...BACK, owner: 'o' });
    const response = await client.call(
      'work',
      {},
      { callId: 'mine', idempotencyKey: 'k', ...AGAIN },
    );
    assert.deepEqual(failureOf(response), ['UNKNOWN_CAPABILITY', 'unknown', false]);
    const became = { outcome: 'stopped', report: { run: 2 } };
    assert.deepEqual(await client.outcome('mine'), became);
    isLate();
    assert.deepEqual(await client.outcome('mine'), became);
    assert.equal(runs, 2);
  });

  test('in the same session, too, where the first failed and may be tried again', async () => {
    const work = held();
    const site = siteOf({
      capabilities: { work: work.handler },
      options: { limits: { maxConcurrent: 1 } },
    });
    const client = await site.client();
    const controller = new AbortController();
    let begun = work.next();
    const options = { callId: 'mine', signal: controller.signal, ...AGAIN };
    const pending = client.call('work', {}, options);
    const first = await begun;
    begun = work.next();
    void client.call('work', { other: true });
    first.end.resolve(() => ({
      success: false,
      error: { code: 'BUSY', message: 'busy', retryable: true },
    }));
    await begun;
    while (!site.app.counters.some(({ inFlightIn }) => inFlightIn === 2)) await turn();
    controller.abort();
    assert.deepEqual(failureOf(await pending), ['CANCELLED', 'failed', false]);
    assert.equal((await client.outcome('mine')).outcome, 'unknown');
  });

  test('a repeat that never ran leaves its key to the next, and one of a call that was refused says so', async () => {
    const work = held();
    const site = siteOf({
      capabilities: { work: work.handler },
      options: { limits: { maxConcurrent: 1 } },
    });
    const client = await site.client();
    const controller = new AbortController();
    const begun = work.next();
    void client.call('work', { other: true });
    await begun;
    const key = { callId: 'mine', idempotencyKey: 'k' };
    const pending = client.call('work', {}, { ...key, signal: controller.signal, ...AGAIN });
    while (!site.app.counters.some(({ inFlightIn }) => inFlightIn === 2)) await turn();
    controller.abort();
    assert.deepEqual(failureOf(await pending), ['CANCELLED', 'unstarted', false]);
    assert.deepEqual(await client.outcome('mine'), { outcome: 'unstarted' });
  });
});
