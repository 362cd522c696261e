// A call that is made again does not run twice, whatever became of its app meanwhile, and what is
// told of it is what was done.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';
import { LINES, deferred, held, siteOf } from '../support/site.js';

const AGAIN = { retry: { delay: 1 } };
const BACK = { reconnect: { delay: 1 } };

/** What a response says, in short. */
const said = ({ success, error, metadata }) =>
  success ? 'success' : [error.code, metadata.outcome, error.retryable];

/** An app that pays; the line is cut when it does so first. `runs` counts how often it has paid. */
function siteThatPays(line) {
  const site = siteOf({
    line,
    capabilities: {
      pay: () => {
        if (++site.runs === 1) site.cut();
        return { runs: site.runs };
      },
    },
  });
  return Object.assign(site, { runs: 0 });
}

for (const line of Object.keys(LINES)) {
  describe(`over ${line}, a call that is made again by itself`, () => {
    test('is not run twice when only the line was cut, and gets the data', async () => {
      const site = siteThatPays(line);
      const client = await site.client(BACK);
      const before = client.memory;
      assert.deepEqual((await client.call('pay', {}, AGAIN)).data, { runs: 1 });
      assert.deepEqual(client.memory, before);
      assert.equal(site.runs, 1);
    });

    for (const [what, options] of [
      ['by retry', AGAIN],
      ['with a key of its own', { ...AGAIN, idempotencyKey: 'pay order 17' }],
    ]) {
      test(`is not made to an app that was restarted meanwhile: ${what}`, async () => {
        let runs = 0;
        const site = siteOf({
          line,
          capabilities: {
            pay: () => {
              if (++runs === 1) site.restart();
              return { runs };
            },
          },
        });
        const client = await site.client(BACK);
        const before = client.memory;
        const back = new Promise((resolve) => (client.onReconnect = resolve));
        const response = await client.call('pay', {}, options);
        assert.deepEqual(said(response), ['DISCONNECTED', 'unknown', false]);
        await back;
        assert.equal(runs, 1);
        assert.notEqual(client.memory.id, before.id);
        assert.equal((await response.settled).outcome, 'unknown');
      });
    }

    for (const idempotencyKey of ['', null])
      test(`with ${JSON.stringify(idempotencyKey)} as its key is refused, and not run`, async () => {
        const site = siteThatPays(line);
        const client = await site.client(BACK);
        for (const options of [{ ...AGAIN, idempotencyKey }, { idempotencyKey }])
          await assert.rejects(client.call('pay', {}, options), {
            code: 'INVALID_PARAMS',
            message: 'idempotencyKey of a call must be a string of 1 to 256 characters',
            outcome: 'unstarted',
          });
        await assert.rejects(client.invoke('pay', {}, { idempotencyKey }), {
          code: 'INVALID_PARAMS',
          outcome: 'unstarted',
        });
        assert.equal(site.runs, 0);
      });

    test('whose key is undefined is given one', async () => {
      const site = siteThatPays(line);
      const client = await site.client(BACK);
      const options = { ...AGAIN, idempotencyKey: undefined };
      assert.deepEqual((await client.call('pay', {}, options)).data, { runs: 1 });
      assert.equal(site.runs, 1);
    });

    test('is not made to another app behind the same address', async () => {
      const runs = [0, 0];
      const site = siteOf({ line, capabilities: {} });
      const apps = [0, 1].map((i) => {
        const app = site.start();
        app.set('pay', () => {
          runs[i]++;
          site.cut();
        });
        return app;
      });
      [site.app] = apps;
      const client = await site.client(BACK);
      [, site.app] = apps;
      assert.deepEqual(said(await client.call('pay', {}, AGAIN)), [
        'DISCONNECTED',
        'unknown',
        false,
      ]);
      assert.deepEqual(runs, [1, 0]);
    });
  });
}

describe('a memory', () => {
  test('is named to those who may ask it, and to nobody else', async () => {
    const site = siteOf({
      capabilities: { ping: () => 1 },
      options: { limits: { rememberFor: 7000 } },
    });
    const client = await site.client();
    assert.equal(client.memory.rememberFor, 7000);
    assert.match(client.memory.id, /.{16,}/);
    const other = await site.client();
    assert.deepEqual(other.memory, client.memory);
    let told;
    site.reads = (message) => (told = message);
    const plain = await site.client({ upgrade: 'none' });
    assert.equal(plain.memory, undefined);
    assert.equal('memory' in told.payload, false);
  });

  test('that is not named, as by older apps, is not trusted with a repeat', async () => {
    let runs = 0;
    const site = siteOf({
      capabilities: {
        pay: () => {
          runs++;
          site.cut();
        },
      },
    });
    site.reads = (message) => ({ ...message, payload: { ...message.payload, memory: undefined } });
    const client = await site.client(BACK);
    assert.equal(client.memory, undefined);
    assert.deepEqual(said(await client.call('pay', {}, AGAIN)), ['DISCONNECTED', 'unknown', false]);
    assert.equal(runs, 1);
  });

  test('that is named wrongly is none', async () => {
    const site = siteOf({ capabilities: {} });
    for (const memory of [7, null, {}, { id: 7, rememberFor: 5 }, { id: 'a', rememberFor: 'b' }]) {
      site.reads = (message) => ({ ...message, payload: { ...message.payload, memory } });
      assert.equal((await site.client()).memory, undefined);
    }
  });

  for (const [what, pass] of [
    // As while a computer sleeps: one of the clocks stands still, on this side or on that.
    ['the clock on the wall', (t, now) => t.mock.method(Date, 'now', () => now() + 3_600_000)],
    [
      'the clock of the page',
      (t) => {
        const now = performance.now.bind(performance);
        t.mock.method(performance, 'now', () => now() + 3_600_000);
      },
    ],
  ]) {
    test(`is not asked again once ${what} says that it may have forgotten`, async (t) => {
      let runs = 0;
      const now = Date.now.bind(Date);
      const site = siteOf({
        capabilities: {
          pay: () => {
            runs++;
            site.cut();
          },
        },
      });
      const client = await site.client(BACK);
      client.onDisconnect = () => pass(t, now);
      const response = await client.call('pay', {}, AGAIN);
      assert.deepEqual(said(response), ['DISCONNECTED', 'unknown', false]);
      assert.equal(runs, 1);
    });
  }

  test('of 16,384 keys has as many of one agent as are left: what is known stays known, a new one is refused, and others go on', async () => {
    let runs = 0;
    const site = siteOf({ capabilities: { add: () => ++runs } });
    const client = await site.client();
    const call = (key, by = client) => by.call('add', {}, { idempotencyKey: `${key}` });
    const fill = async (keys, by) => {
      for (let i = 0; i < keys; i += 1024)
        await Promise.all(Array.from({ length: 1024 }, (_, j) => call(i + j, by)));
    };
    await fill(8192);
    const refused = await call('one more');
    assert.deepEqual(said(refused), ['RATE_LIMITED', 'unstarted', true]);
    assert.ok(refused.error.retryAfter > 0);
    assert.equal((await call(0)).data, 1);
    assert.equal(runs, 8192);
    assert.equal((await client.call('add')).data, 8193);
    // Each further one has half of what is left, however many sessions somebody begins.
    let left = 8192;
    for (const [by, keys] of [
      [await site.client(), 4096],
      [await site.client(), 2048],
      [await site.client(), 1024],
    ]) {
      await fill(keys, by);
      left -= keys;
      assert.deepEqual(said(await call('one more', by)), ['RATE_LIMITED', 'unstarted', true]);
      assert.equal(typeof (await call(0, by)).data, 'number');
    }
    assert.equal(left, 1024);
    assert.equal((await call('its first', await site.client())).success, true);
    assert.equal((await call(1)).data, 2);
  });

  test('keeps what has run after it has let go of the data', async () => {
    let runs = 0;
    const site = siteOf({ capabilities: { add: () => (runs++, 'x'.repeat(1_048_576)) } });
    const client = await site.client();
    const call = (key) => client.call('add', {}, { idempotencyKey: key });
    for (const key of ['a', 'b', 'c', 'd']) await call(key);
    assert.equal((await call('a')).data.length, 1_048_576);
    await call('e');
    assert.deepEqual(said(await call('a')), ['OPERATION_FAILED', 'finished', false]);
    assert.equal((await call('b')).data.length, 1_048_576);
    assert.equal(runs, 5);
  });

  test('gives what is moved to each repeat', async () => {
    const site = siteOf({
      capabilities: {
        draw: () => ({ content: new Uint8Array([1, 2, 3]).buffer, mimeType: 'a/b' }),
      },
    });
    const client = await site.client();
    for (let i = 0; i < 3; i++) {
      const { data } = await client.call('draw', {}, { idempotencyKey: 'k' });
      assert.deepEqual([...new Uint8Array(data.content)], [1, 2, 3]);
    }
  });
});

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
    assert.deepEqual(said(response), ['CANCELLED', 'unknown', false]);
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
    assert.deepEqual(said(response), ['UNKNOWN_CAPABILITY', 'unknown', false]);
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
    assert.deepEqual(said(response), ['RATE_LIMITED', 'unknown', false]);
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
    assert.deepEqual(said(response), ['OPERATION_FAILED', 'failed', false]);
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
    assert.deepEqual(said(response), ['CANCELLED', 'failed', false]);
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

describe('the id of a call names its repeats, too: it is never told that it never ran once one may have', () => {
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

  for (const line of Object.keys(LINES)) {
    for (const upgrade of ['frames', 'port']) {
      for (const [what, end] of Object.entries(ends)) {
        test(`over ${line}, ${upgrade}: the app was restarted and has kept its keys, and the repeat is ${what}`, async () => {
          const store = storeOf();
          let runs = 0;
          const busy = held();
          const site = siteOf({
            line,
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
          assert.deepEqual(said(response), [end.code, 'unknown', false]);
          assert.equal((await client.outcome('mine')).outcome, 'unknown');
          assert.equal((await response.settled).outcome, 'unknown');
          assert.equal(runs, 1);
        });
      }
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
      assert.deepEqual(said(response), ['CANCELLED', 'unknown', false]);
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
    assert.deepEqual(said(response), ['CANCELLED', 'unknown', false]);
    const became = { outcome: 'stopped', report: { applied: 1 } };
    assert.deepEqual(await client.outcome('mine'), became);
    assert.deepEqual(await response.settled, became);
    // Its key is free: what never ran does not hold it.
    site.app.set('work', () => ++runs);
    assert.equal((await client.call('work', {}, { idempotencyKey: 'k' })).data, 2);
  });

  for (const line of Object.keys(LINES))
    test(`over ${line}, of work that ran in two sessions, the later one is told of, also if its session ended before the app knew that the first had`, async () => {
      let runs = 0;
      let isLate = () => {};
      const site = siteOf({
        line,
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
      assert.deepEqual(said(response), ['UNKNOWN_CAPABILITY', 'unknown', false]);
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
    assert.deepEqual(said(await pending), ['CANCELLED', 'failed', false]);
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
    assert.deepEqual(said(await pending), ['CANCELLED', 'unstarted', false]);
    assert.deepEqual(await client.outcome('mine'), { outcome: 'unstarted' });
  });
});

describe('a repeat that is stopped follows what it has joined', () => {
  for (const [what, end, outcome] of [
    ['returns', () => 'done', 'finished'],
    ['fails', () => Promise.reject(new Error('disk full')), 'failed'],
    ['says that it was cancelled', () => ({ success: false, cancelled: true }), 'stopped'],
  ]) {
    test(`and is told what became of it when that ${what}`, async () => {
      const work = held();
      // It does not wait for the grace period: nothing would end it before the test does.
      const limits = { grace: 3_600_000 };
      const site = siteOf({ capabilities: { work: work.handler }, options: { limits } });
      const client = await site.client({ limits });
      const begun = work.next();
      const first = client.call('work', {}, { idempotencyKey: 'k' });
      const call = await begun;
      call.context.report({ applied: 4 });
      const controller = new AbortController();
      const options = { idempotencyKey: 'k', signal: controller.signal, callId: 'repeat' };
      const second = client.call('work', {}, options);
      assert.equal((await client.outcome('repeat')).outcome, 'running');
      controller.abort();
      const response = await second;
      assert.deepEqual([response.cancelled, response.metadata.outcome], [true, 'running']);
      assert.equal(call.context.signal.aborted, false);
      const { settled } = response;
      call.end.resolve(end);
      await first;
      const report = { applied: 4 };
      const told = await settled;
      assert.equal(told.outcome, outcome);
      assert.equal((await client.outcome('repeat')).outcome, outcome);
      if (outcome !== 'finished') assert.deepEqual(told.report, report);
      assert.equal(work.calls.length, 1);
    });
  }

  test('and runs by itself when that never ran', async () => {
    const work = held();
    const check = deferred();
    const site = siteOf({
      capabilities: {
        work: {
          handler: work.handler,
          // Checked asynchronously: until then it has not begun.
          inputSchema: {
            '~standard': {
              version: 1,
              vendor: 'test',
              jsonSchema: { input: () => ({}) },
              validate: async (value) => (await check.promise, { value }),
            },
          },
        },
      },
    });
    const client = await site.client();
    const controller = new AbortController();
    const first = client.call('work', {}, { idempotencyKey: 'k', signal: controller.signal });
    const second = client.call('work', {}, { idempotencyKey: 'k' });
    await client.outcome('until the app has both');
    controller.abort();
    const begun = work.next();
    assert.equal((await first).metadata.outcome, 'unstarted');
    check.resolve();
    (await begun).end.resolve(() => 'by the second');
    assert.equal((await second).data, 'by the second');
    assert.equal(work.calls.length, 1);
  });

  test('and is told that it never ran when neither did', async () => {
    const written = deferred();
    const keys = {
      open: async () => ({ id: 'kept', rememberFor: 60_000 }),
      begin: async () => (await written.promise, { state: 'begun' }),
      end: async () => {},
      close() {},
    };
    const site = siteOf({
      capabilities: { work: () => assert.fail('it runs') },
      options: { keys },
    });
    const client = await site.client();
    const stop = [1, 2].map(() => new AbortController());
    const calls = stop.map(({ signal }) =>
      client.call('work', {}, { idempotencyKey: 'k', signal }),
    );
    await client.outcome('until the app has both');
    for (const controller of stop) controller.abort();
    await client.outcome('until the app has been told');
    written.resolve();
    const [first, second] = await Promise.all(calls);
    assert.deepEqual(
      [first, second].map(({ metadata }) => metadata.outcome),
      ['unstarted', 'running'],
    );
    assert.equal((await second.settled).outcome, 'unstarted');
  });
});

describe('a repeat has joined a call, and the app closes', () => {
  const checked = (until, handler) => ({
    handler,
    inputSchema: {
      '~standard': {
        version: 1,
        vendor: 'test',
        jsonSchema: { input: () => ({}) },
        validate: async (value) => (await until, { value }),
      },
    },
  });
  const lookedUp = (until, work) => ({
    capabilities: { work },
    options: {
      keys: {
        open: async () => ({ id: 'kept', rememberFor: 60_000 }),
        begin: async () => (await until, { state: 'begun' }),
        end: async () => {},
        close() {},
      },
    },
  });
  /**
   * How a call may wait before it begins.
   * @type {Record<string, (until: Promise<void>, work: () => unknown) => any>}
   */
  const WAITS = {
    'until its params are checked': (until, handler) => ({
      capabilities: { work: checked(until, handler) },
    }),
    'until its key is looked up': lookedUp,
    'until its key is looked up, and its params are checked': (until, handler) =>
      lookedUp(
        until,
        checked(Promise.resolve(), () => handler()),
      ),
    'until its key is looked up, and its first chunk is taken': (until, handler) =>
      lookedUp(until, async function* () {
        yield await handler();
      }),
  };
  for (const [what, appOf] of Object.entries(WAITS)) {
    for (const isOther of [false, true]) {
      test(`the first waits ${what}, ${isOther ? 'for another client' : 'in the same session'}: neither ran`, async () => {
        const until = deferred();
        const site = siteOf(appOf(until.promise, () => assert.fail('it runs')));
        const owner = 'the agent';
        const client = await site.client({ owner });
        const other = isOther ? await site.client({ owner }) : client;
        const first = client.call('work', {}, { idempotencyKey: 'k' });
        await client.outcome('until the app has the first');
        const repeat = other.call('work', {}, { idempotencyKey: 'k' });
        await other.outcome('until the app has both');
        site.app.close();
        for (const { metadata } of await Promise.all([first, repeat]))
          assert.equal(metadata.outcome, 'unstarted');
        until.resolve();
      });
    }
  }

  /** Two who call, each in its own session or, in the app's own page, both in one. */
  const callers = async (line, made) => {
    const site = siteOf({ ...made, ...(LINES[line] && { line }) });
    if (LINES[line]) {
      const both = [await site.client({ owner: 'o' }), await site.client({ owner: 'o' })];
      const arrived = () => Promise.all(both.map((client) => client.outcome('until it has come')));
      return { site, both, arrived };
    }
    const { abp } = site.app;
    const features = { 'bridge.outcomes': true };
    await abp.initialize({ agent: AGENT, protocolVersion: '0.1', features });
    const arrived = () => abp.call('bridge/outcome', { callId: 'nobody' });
    return { site, both: [abp, abp], arrived };
  };

  for (const line of [...Object.keys(LINES), "the app's own page"])
    for (const [what, appOf] of Object.entries(WAITS)) {
      for (const isStopped of [false, true])
        test(`over ${line}, at any moment after the first${isStopped ? ', which is cancelled,' : ''} has waited ${what}: what never ran is told to be unstarted`, async () => {
          const words = new Set();
          for (let moment = 0; moment < 18; moment++) {
            const until = deferred();
            let runs = 0;
            const made = appOf(until.promise, () => (runs++, new Promise(() => {})));
            const { site, both, arrived } = await callers(line, made);
            const controller = new AbortController();
            const { signal } = controller;
            const first = both[0].call('work', {}, { idempotencyKey: 'k', signal });
            await arrived();
            const repeat = both[1].call('work', {}, { idempotencyKey: 'k' });
            await arrived();
            if (isStopped) controller.abort();
            if (isStopped) await arrived();
            until.resolve();
            for (let i = 0; i < moment; i++) await undefined;
            const before = runs;
            site.app.close();
            const told = await Promise.all([first, repeat]);
            await new Promise(setImmediate);
            assert.equal(runs, before, 'nothing begins in an app that has closed');
            const word = runs ? 'running' : 'unstarted';
            words.add(word);
            assert.deepEqual(
              told.map(({ metadata }) => metadata.outcome),
              [isStopped ? 'unstarted' : word, word],
              `after ${moment} microtasks`,
            );
          }
          assert.ok(words.has('unstarted'));
        });
    }

  test('at any moment after the first has returned: no repeat is told that it never ran', async () => {
    const words = new Set();
    for (let moment = 0; moment < 18; moment++) {
      const work = held();
      const { site, both, arrived } = await callers("the app's own page", {
        capabilities: { work: work.handler },
      });
      const begun = work.next();
      const [, repeat] = both.map((abp) => abp.call('work', {}, { idempotencyKey: 'k' }));
      const call = await begun;
      await arrived();
      call.end.resolve(() => 1);
      for (let i = 0; i < moment; i++) await undefined;
      site.app.close();
      const { success, metadata } = await repeat;
      words.add(success ? 'success' : metadata.outcome);
    }
    assert.deepEqual([...words].sort(), ['running', 'success']);
  });

  for (const isEarly of [true, false])
    test(`the first was stopped because its line was cut, and a repeat came ${isEarly ? 'before' : 'while'} that is written: it has not begun`, async () => {
      const [work, writing] = [held(), deferred()];
      const store = { open: async () => ({ id: 'kept', rememberFor: 60_000 }), close() {} };
      store.begin = async () => ({ state: 'begun' });
      store.end = () => (writing.resolve(), new Promise(() => {}));
      const site = siteOf({ capabilities: { work: work.handler }, options: { keys: store } });
      const client = await site.client({ owner: 'o' });
      const { cut } = site.last;
      const other = await site.client({ owner: 'o' });
      const begun = work.next();
      void client.call('work', {}, { idempotencyKey: 'k' });
      const { context, end } = await begun;
      const repeated = async () => {
        const calling = other.call('work', {}, { idempotencyKey: 'k' });
        await other.outcome('until it has come');
        return { calling };
      };
      const early = isEarly && (await repeated());
      context.signal.addEventListener('abort', () =>
        end.resolve(({ signal }) => signal.throwIfAborted()),
      );
      cut();
      await writing.promise;
      const { calling } = early || (await repeated());
      site.app.close();
      assert.equal((await calling).metadata.outcome, 'unstarted');
      assert.equal(work.calls.length, 1);
    });

  test('the first has begun: both are told that it runs', async () => {
    const work = held();
    const site = siteOf({ capabilities: { work: work.handler } });
    const client = await site.client();
    const begun = work.next();
    const calls = [1, 2].map(() => client.call('work', {}, { idempotencyKey: 'k' }));
    const call = await begun;
    await client.outcome('until the app has both');
    site.app.close();
    for (const { metadata } of await Promise.all(calls)) assert.equal(metadata.outcome, 'running');
    call.end.resolve(() => 1);
  });
});

test('a store of keys that cannot be opened is warned of, and calls without a key are answered', async (t) => {
  const warned = t.mock.method(console, 'warn', () => {});
  const site = siteOf({ options: { keys: {} }, capabilities: { work: () => 'done' } });
  const client = await site.client();
  assert.equal((await client.call('work')).data, 'done');
  const refused = await client.call('work', {}, { idempotencyKey: 'k' });
  assert.deepEqual(
    [refused.error.code, refused.metadata.outcome],
    ['KEYS_UNAVAILABLE', 'unstarted'],
  );
  while (!warned.mock.callCount()) await new Promise(setImmediate);
  assert.match(warned.mock.calls[0].arguments[0], /the store of keys cannot be used/);
});

test('a call with a key that is stopped at any moment of its beginning has run, or is told that it never ran', async () => {
  const words = new Set();
  for (let moment = 0; moment < 20; moment++) {
    const [asked, written] = [deferred(), deferred()];
    let runs = 0;
    const keys = {
      open: async () => ({ id: 'kept', rememberFor: 60_000 }),
      async begin() {
        asked.resolve();
        await written.promise;
        return { state: 'begun' };
      },
      end: async () => {},
      close() {},
    };
    // In the app's own page a cancel comes between two microtasks.
    const { abp } = siteOf({ capabilities: { work: () => ++runs } }).start({ keys });
    const features = { 'bridge.outcomes': true };
    await abp.initialize({ agent: AGENT, protocolVersion: '0.1', features });
    const controller = new AbortController();
    const options = { idempotencyKey: 'k', signal: controller.signal };
    const calling = abp.call('work', {}, options);
    await asked.promise;
    written.resolve();
    for (let i = 0; i < moment; i++) await undefined;
    controller.abort();
    const { success, metadata } = await calling;
    const word = success ? 'success' : metadata.outcome;
    words.add(word);
    assert.ok((runs ? ['success', 'finished'] : ['unstarted']).includes(word), `${word}: ${runs}`);
  }
  assert.ok(words.has('unstarted') && words.has('success'));
});

describe('what was stopped because its agent was lost is run by its repeat', () => {
  /** Loops as docs/apps.md advises, and leaves when it is told to. */
  const looping = () => {
    const rounds = [];
    const handler = async (_params, { breathe, report, earlier }) => {
      const round = { earlier, began: deferred() };
      rounds.push(round);
      waiting.shift()?.(round);
      for (let applied = 1; ; applied++) {
        if (round.ends) return { rounds: rounds.length, earlier };
        report({ applied });
        await breathe();
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const waiting = [];
    const next = () => new Promise((resolve) => waiting.push(resolve));
    return { handler, rounds, next };
  };

  for (const [what, end] of [
    ['the line was cut', (site) => site.cut()],
    ['the app was silent for too long', (site) => site.last.app.onClose()],
  ]) {
    test(`${what}: nobody pressed stop`, async () => {
      const loop = looping();
      const site = siteOf({ capabilities: { loop: loop.handler } });
      const client = await site.client(BACK);
      let begun = loop.next();
      const pending = client.call('loop', {}, AGAIN);
      await begun;
      begun = loop.next();
      end(site);
      if (what.startsWith('the app')) site.cut();
      const second = await begun;
      assert.ok(second.earlier.applied >= 1);
      second.ends = true;
      const { data } = await pending;
      assert.equal(data.rounds, 2);
      assert.deepEqual(data.earlier, second.earlier);
    });
  }

  for (const [what, end] of [
    ['was closed by its agent', (client) => client.close()],
    ['was replaced by a new one', (client) => client.reconnect()],
  ]) {
    test(`a session that ${what}`, async () => {
      const loop = looping();
      const site = siteOf({ capabilities: { loop: loop.handler } });
      const client = await site.client({ owner: 'o' });
      let begun = loop.next();
      const pending = client.call('loop', {}, { idempotencyKey: 'k' });
      await begun;
      await end(client);
      await pending;
      const again = await site.client({ owner: 'o' });
      begun = loop.next();
      const repeat = again.call('loop', {}, { idempotencyKey: 'k' });
      (await begun).ends = true;
      assert.equal((await repeat).data.rounds, 2);
    });
  }

  /** A store that outlives its app, as docs/keys.md asks for one. */
  const storeOf = () => {
    const kept = new Map();
    const ended = [];
    const keys = {
      open: async () => ({ id: 'the store', rememberFor: 100_000 }),
      async begin(key) {
        const known = kept.get(key);
        if (known && !known.again) return { state: 'ended', ended: known };
        if (known === null) return { state: 'lost' };
        kept.set(key, null);
        return { state: 'begun', report: known?.report };
      },
      async end(key, became) {
        kept.set(key, became);
        ended.shift()?.(became);
      },
      async close() {},
    };
    return { keys, written: () => new Promise((resolve) => ended.push(resolve)) };
  };

  for (const [what, end] of Object.entries({
    'the app was closed': ({ app }) => app.close(),
    'its agent has closed the session': ({ client }) => client.close(),
    'its line was cut': ({ port }) => port.close(),
  })) {
    for (const only of [true, false])
      test(`${what}: the store of an app for ${only ? 'one port' : 'many agents'} is told that it was stopped`, async () => {
        const { keys, written } = storeOf();
        const loop = looping();
        const start = async () => {
          const { port1, port2 } = new MessageChannel();
          closeAfter(() => port1.close());
          const definition = { app: APP, capabilities: { loop: loop.handler } };
          const app = expose(definition, only ? { port: port1, keys } : { origins: [], keys });
          closeAfter(() => app.close());
          if (!only) app.accept(portTransport(port1));
          const client = await connect(port2, { agent: AGENT, owner: 'o' });
          closeAfter(() => client.close());
          return { app, client, port: port1 };
        };
        const first = await start();
        let begun = loop.next();
        void first.client.call('loop', {}, { idempotencyKey: 'k' });
        await begun;
        const became = written();
        end(first);
        const { outcome, again } = await became;
        assert.deepEqual([outcome, again], ['stopped', true]);
        const { client } = await start();
        begun = loop.next();
        const repeat = client.call('loop', {}, { idempotencyKey: 'k' });
        const second = await begun;
        assert.ok(second.earlier.applied >= 1);
        second.ends = true;
        assert.equal((await repeat).data.rounds, 2);
      });
  }

  test('but not what somebody has stopped before', async () => {
    const loop = looping();
    const site = siteOf({ capabilities: { loop: loop.handler } });
    const client = await site.client({ owner: 'o' });
    const begun = loop.next();
    const controller = new AbortController();
    const pending = client.call('loop', {}, { idempotencyKey: 'k', signal: controller.signal });
    await begun;
    controller.abort();
    site.cut();
    await pending;
    const again = await site.client({ owner: 'o' });
    const repeat = await again.call('loop', {}, { idempotencyKey: 'k' });
    assert.deepEqual(said(repeat), ['CANCELLED', 'stopped', false]);
    assert.equal(loop.rounds.length, 1);
  });

  for (const [what, name, reports] of [
    ['its report is told if the repeat fails before it has one of its own', 'work', [5]],
    [
      'the report of a call that the repeat passes on is told, not the one of before',
      'outer',
      [5, 7],
    ],
  ])
    test(what, async () => {
      let runs = 0;
      const site = siteOf({
        capabilities: {
          async work(_params, { report, signal }) {
            const applied = reports[runs++];
            if (applied) report({ applied });
            if (runs > 1) throw new Error('no');
            site.cut();
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            signal.throwIfAborted();
          },
          outer: (params, { call }) => call('work', params),
        },
      });
      const client = await site.client(BACK);
      const response = await client.call(name, {}, AGAIN);
      assert.deepEqual(said(response), ['OPERATION_FAILED', 'failed', false]);
      assert.deepEqual(response.metadata.report, { applied: reports.at(-1) });
      assert.equal(runs, 2);
    });
});

describe('settled', () => {
  for (const [what, end, options] of [
    ['its signal fires', ({ controller }) => controller.abort()],
    ['it is cancelled by its id', ({ client }) => client.cancel('queued')],
    ['its time is over', () => {}, { timeout: 50 }],
    ['its client is closed', ({ client }) => client.close()],
    ['its line is cut', ({ cut }) => cut()],
  ]) {
    for (const [kind, key] of [
      ['', {}],
      [' with a key', { idempotencyKey: 'k' }],
    ]) {
      test(`of a call${kind} that waits for its turn: ${what}, and who has asked before is answered`, async () => {
        const work = held();
        const site = siteOf({
          capabilities: { work: work.handler },
          options: { limits: { maxConcurrent: 1 } },
        });
        const client = await site.client({ owner: 'o' });
        const { cut } = site.last;
        const other = await site.client({ owner: 'o' });
        const begun = work.next();
        void client.call('work');
        await begun;
        const controller = new AbortController();
        const { signal } = controller;
        const queued = client.call('work', {}, { callId: 'queued', signal, ...key, ...options });
        await client.outcome('until it has come');
        const asked = other.outcome('queued', { settled: true });
        if (!options) assert.equal((await other.outcome('queued')).outcome, 'running');
        await end({ client, controller, cut });
        assert.deepEqual(await asked, { outcome: 'unstarted' });
        assert.equal((await queued).success, false);
        assert.equal(work.calls.length, 1);
      });
    }
  }

  /** A client whose call lost its line, and which does not reconnect by itself. */
  async function lost() {
    const work = held();
    const site = siteOf({ capabilities: { work: work.handler } });
    const client = await site.client();
    const begun = work.next();
    const pending = client.call('work', {}, { callId: 'mine' });
    const call = await begun;
    site.cut();
    const response = await pending;
    assert.equal(response.metadata.outcome, 'unknown');
    return { client, call, response, site };
  }

  test('waits for the session that the program begins', async () => {
    const { client, call, response } = await lost();
    const { settled } = response;
    assert.equal(response.settled, settled, 'it is asked once');
    call.end.resolve(() => 1);
    // Who does not wait for that is told at once that nobody knows.
    assert.deepEqual(await client.outcome('mine'), { outcome: 'unknown' });
    await client.reconnect();
    assert.deepEqual(await settled, { outcome: 'finished' });
  });

  test('goes on in the session that replaces one in which it was asked', async () => {
    const { client, call, response } = await lost();
    await client.reconnect();
    const { settled } = response;
    // It has been asked by then.
    await client.outcome('mine');
    await client.reconnect();
    call.end.resolve(() => 1);
    assert.deepEqual(await settled, { outcome: 'finished' });
  });

  test('is asked again after an answer that said nothing', async () => {
    const { client, call, response } = await lost();
    client.close();
    assert.deepEqual(await response.settled, { outcome: 'unknown' });
    await client.reconnect();
    call.end.resolve(() => 1);
    assert.deepEqual(await response.settled, { outcome: 'finished' });
  });

  test('gives up with the client', async () => {
    const { client, response } = await lost();
    const { settled } = response;
    client.close();
    assert.deepEqual(await settled, { outcome: 'unknown' });
  });

  test('waits no longer than a minute for an app that is gone, or than it is told', async (t) => {
    const { client, response } = await lost();
    assert.deepEqual(await client.outcome('mine', { settled: true, timeout: 1 }), {
      outcome: 'unknown',
    });
    const controller = new AbortController();
    const stopped = client.outcome('mine', { settled: true, signal: controller.signal });
    controller.abort();
    assert.deepEqual(await stopped, { outcome: 'unknown' });
    // Without `settled` nobody waits for a session that nobody begins.
    assert.deepEqual(await client.outcome('mine'), { outcome: 'unknown' });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let told;
    const settled = response.settled.then((became) => (told = became));
    // What it asks with is loaded by now.
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    t.mock.timers.tick(59_999);
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(told, undefined);
    t.mock.timers.tick(1);
    assert.deepEqual(await settled, { outcome: 'unknown' });
  });
});
