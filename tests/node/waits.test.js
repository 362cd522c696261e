// How long JavaScript itself waits, at exact values on a clock that is held. What the core waits
// for (grace, heartbeat, what is remembered) is in limits.test.js.
import assert from 'node:assert/strict';
import { before, describe, mock, test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
};
const HIGHEST = 1 - Number.EPSILON / 2; // of Math.random

// What tries again is loaded when that happens first: here before the clock is held.
before(async () => {
  const fails = () => Promise.reject(new AbpError('BUSY', 'later', { retryable: true }));
  const { client } = await openPair({ fails });
  await client.call('fails', {}, { retry: { delay: 1 } });
});

const busy = (more) => ({
  success: false,
  error: { code: 'BUSY', message: 'busy', retryable: true, ...more },
});

/**
 * Chance is this, and `next` fails unless something more is done after exactly so many ms, by a
 * clock that is held.
 */
function timed(t, done, random) {
  const clock = useClock(t);
  t.mock.method(Math, 'random', () => random);
  const next = async (ms) => {
    const before = done.mock.callCount();
    await turns();
    assert.equal(done.mock.callCount(), before, 'not at once');
    clock.advance(ms - 1);
    await turns();
    assert.equal(done.mock.callCount(), before, `not after ${ms - 1} ms`);
    clock.advance(1);
    await turns();
    assert.equal(done.mock.callCount(), before + 1, `after ${ms} ms`);
  };
  return { clock, next };
}

describe('a lost session is begun again', () => {
  /**
   * A client of which `opened` says how often it has tried to begin its session again, which fails
   * as long as `isBroken`.
   */
  async function lost(t, reconnect, random, { error = new Error('no way'), lasted = 0 } = {}) {
    const exposed = expose({ app: APP, capabilities: {} }, { origins: [] });
    closeAfter(() => exposed.close());
    const it = { opened: mock.fn(), isBroken: false, told: mock.fn() };
    let last;
    const open = () => {
      it.opened();
      if (it.isBroken) throw error;
      const { port1, port2 } = new MessageChannel();
      closeAfter(() => port1.close());
      exposed.accept(portTransport(port1));
      last = port1;
      return port2;
    };
    Object.assign(it, timed(t, it.opened, random));
    const client = await connect(open, { agent: AGENT, reconnect, onReconnect: it.told });
    closeAfter(() => client.close());
    it.lose = async () => {
      const isGone = new Promise((resolve) => (client.onDisconnect = resolve));
      last.close();
      await isGone;
    };
    it.clock.advance(lasted);
    it.isBroken = true;
    it.opened.mock.resetCalls();
    await it.lose();
    return it;
  }

  test('within `delay`, then after 250 ms, each time after twice as many, and never after more than 30 s', async (t) => {
    const { clock, opened, next } = await lost(t, true, 0);
    // What begins sessions again is loaded first.
    for (; !opened.mock.callCount(); await turns()) clock.advance(0);
    assert.equal(opened.mock.callCount(), 1);
    for (const ms of [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) await next(ms);
  });

  test('after half of that where chance is least, the first time after all of `delay`', async (t) => {
    const { next } = await lost(t, { delay: 100, maxDelay: 300 }, HIGHEST);
    for (const ms of [100, 50, 100, 150, 150]) await next(ms);
  });

  test('as the first one, if it had lasted for more than ten seconds', async (t) => {
    for (const [lasted, ms] of [
      [10_000, 600],
      [10_001, 50],
    ]) {
      const it = await lost(t, { delay: 100 }, 0.5, { lasted: 20_000 });
      for (const before of [50, 75, 150]) await it.next(before);
      it.isBroken = false;
      await it.next(300);
      while (!it.told.mock.callCount()) await turns();
      it.clock.advance(lasted);
      it.isBroken = true;
      await it.lose();
      await it.next(ms);
      t.mock.timers.reset();
      t.mock.restoreAll();
    }
  });

  test('so often and no more; and not after an error that is final', async (t) => {
    for (const [error, count] of [
      [new AbpError('TIMEOUT', 'again', { retryable: true }), 2],
      [new AbpError('INVALID_PARAMS', 'never', { retryable: false }), 1],
    ]) {
      const it = await lost(t, { attempts: 2 }, 0, { error });
      for (let i = 0; i < 3; i++) {
        await turns();
        it.clock.advance(30_000);
      }
      await turns();
      assert.deepEqual(
        it.told.mock.calls.map(({ arguments: [given] }) => given),
        [error],
      );
      assert.equal(it.opened.mock.callCount(), count);
      t.mock.timers.reset();
      t.mock.restoreAll();
    }
  });
});

describe('a call that failed is made again', () => {
  /**
   * A call to an app that answers each attempt with the same response. `made` gets the time that
   * each says it has.
   */
  async function failing(t, response, options, random = 0) {
    const { port1, port2 } = new MessageChannel();
    const raw = new Raw(port1);
    closeAfter(() => port1.close());
    const connecting = connect(port2, { agent: AGENT, upgrade: 'none', limits: { heartbeat: 0 } });
    const { id } = await raw.next();
    raw.send('initialize-result', id, { sessionId: 's', features: {}, capabilities: [] });
    const client = await connecting;
    closeAfter(() => client.close());
    const made = mock.fn();
    port1.onmessage = ({ data: { type, id: callId, payload } }) => {
      if (type !== 'capabilities/call') return; // a greeting that was sent again
      made(payload.options?.timeout);
      raw.send('capabilities/call-result', callId, response);
    };
    const it = { made, ...timed(t, made, random), told: undefined };
    void client.call('work', {}, { retry: true, ...options }).then((told) => (it.told = told));
    while (!made.mock.callCount()) await turns();
    return it;
  }
  const reset = (t) => {
    t.mock.timers.reset();
    t.mock.restoreAll();
  };

  test('twice unless it says otherwise, after 250 and 500 ms', async (t) => {
    const it = await failing(t, busy());
    await it.next(250);
    assert.equal(it.told, undefined);
    await it.next(500);
    assert.equal(it.told.error.code, 'BUSY');
    it.clock.advance(1_000_000);
    await turns();
    assert.equal(it.made.mock.callCount(), 3);
  });

  test('after as long as its app asks for, up to ten minutes, whatever maxDelay is', async (t) => {
    for (const [retryAfter, patience, isMade] of [
      [7, {}, true],
      [600_000, {}, true],
      [600_001, {}, false],
      [501, { maxDelay: 500 }, true],
    ]) {
      const it = await failing(
        t,
        busy({ retryAfter }),
        { retry: { attempts: 2, ...patience } },
        0.5,
      );
      if (isMade) await it.next(retryAfter);
      await turns();
      assert.equal(it.told?.error.retryAfter, retryAfter);
      assert.equal(it.made.mock.callCount(), isMade ? 2 : 1, `${retryAfter}`);
      reset(t);
    }
  });

  test('if there is time left after the pause, and with what is left', async (t) => {
    for (const [timeout, left] of [
      [100, undefined],
      [101, 1],
      [400, 300],
    ]) {
      const it = await failing(t, busy(), { retry: { attempts: 2, delay: 100 }, timeout });
      if (left) await it.next(100);
      await turns();
      assert.equal(it.told?.error.code, 'BUSY');
      const given = it.made.mock.calls.map(({ arguments: [ms] }) => ms);
      assert.deepEqual(given, left ? [timeout, left] : [timeout]);
      reset(t);
    }
  });

  const failed = busy();
  for (const [what, response] of Object.entries({
    'has succeeded': { success: true, data: 1 },
    'was cancelled': { ...failed, cancelled: true },
    'will fail again': busy({ retryable: false }),
    'does not say whether it helps': busy({ retryable: 'yes' }),
    'says nothing of its error': { success: false },
  }))
    test(`but not one that ${what}`, async (t) => {
      const it = await failing(t, response);
      while (!it.told) await turns();
      it.clock.advance(1_000_000);
      await turns();
      assert.equal(it.made.mock.callCount(), 1);
    });

  for (const [what, timeout, ms] of [
    ['its time is over', 1000, 1000],
    ['its caller has given up', undefined, 0],
  ])
    test(`in the next session, unless ${what} before there is one: then as it was`, async (t) => {
      const clock = useClock(t);
      const handler = mock.fn(() => (lose(), new Promise(() => {})));
      let lose;
      const exposed = expose(
        { app: APP, capabilities: { work: { readOnly: true, handler } } },
        { origins: [] },
      );
      closeAfter(() => exposed.close());
      const open = () => {
        if (lose) return new Promise(() => {});
        const { port1, port2 } = new MessageChannel();
        lose = () => port1.close();
        exposed.accept(portTransport(port1));
        return port2;
      };
      const client = await connect(open, { agent: AGENT, reconnect: true, timeout: 0 });
      closeAfter(() => client.close());
      const isLost = new Promise((resolve) => (client.onDisconnect = resolve));
      const controller = new AbortController();
      const { signal } = controller;
      let told;
      void client
        .call('work', {}, { retry: true, signal, timeout })
        .then((response) => (told = response));
      await isLost;
      await turns();
      assert.equal(told, undefined);
      if (ms) clock.advance(ms);
      else controller.abort('enough');
      while (!told) await turns();
      assert.equal(told.error.code, ms ? 'DISCONNECTED' : 'CANCELLED');
      assert.deepEqual([told.metadata.outcome, handler.mock.callCount()], ['unknown', 1]);
    });
});

test('after a second without an answer the console says why, if that is known', async (t) => {
  const clock = useClock(t);
  const warned = [];
  t.mock.method(console, 'warn', (...words) => warned.push(words.join(' ')));
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port2);
  closeAfter(() => port2.close());
  const connecting = connect(port1, { agent: AGENT, timeout: 5000 }).catch((error) => error);
  const { id } = await raw.next();
  const error = { code: 'ALREADY_INITIALIZED', message: 'somebody is here', retryable: true };
  raw.send('initialize-result', id, { success: false, error });
  await turns();
  clock.advance(999);
  await turns();
  assert.deepEqual(warned, []);
  clock.advance(1);
  while (!warned.length) await turns();
  assert.match(warned[0], /the app has not answered yet: .*somebody is here/);
  clock.advance(3999);
  assert.equal(await Promise.race([connecting, turns().then(() => 'waits')]), 'waits');
  clock.advance(1);
  assert.equal((await connecting).code, 'TIMEOUT');
  assert.equal(warned.length, 1);
});

describe('the date is set while calls run: nothing that waits looks at it', () => {
  for (const [how, hours] of Object.entries({ forward: 1, back: -1 }))
    test(`an hour ${how}`, async (t) => {
      const clock = useClock(t);
      const lasts = (_params, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
      let left = 1;
      const fails = () => {
        if (left--) throw new AbpError('OPERATION_FAILED', 'not yet', { retryable: true });
        return 'made again';
      };
      const { client } = await openPair({ lasts, fails, echo: (params) => params });
      const settled = mock.fn();
      const lasting = client.call('lasts', {}, { timeout: 60_000, callId: 'lasting' });
      void lasting.then(settled);
      await client.call('echo');
      const later = Date.now() + hours * 3_600_000;
      t.mock.method(Date, 'now', () => later);
      assert.equal((await client.call('echo', 1)).data, 1);
      let passed = 0;
      const pass = async (ms) => {
        clock.advance(ms);
        passed += ms;
        await turns();
      };
      let retried;
      void client
        .call('fails', {}, { retry: { delay: 100 } })
        .then((response) => (retried = response));
      while (!retried) await pass(1);
      assert.equal(retried.data, 'made again');
      assert.equal((await client.outcome('lasting')).outcome, 'running');
      // In steps in which both sides are heard, as they live.
      while (passed < 59_999) await pass(Math.min(1000, 59_999 - passed));
      assert.equal(settled.mock.callCount(), 0);
      clock.advance(1);
      assert.equal((await lasting).error.code, 'TIMEOUT');
      assert.equal((await client.call('echo', 2)).data, 2);
    });
});
