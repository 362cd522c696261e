// How long JavaScript itself waits, at exact values on a clock that is held. What the core waits for (grace, heartbeat, what
// is remembered) is in limits.test.js.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { restore, retry } from '../../js/agent/retry.js';
import { AbpError } from '../../js/common/errors.js';
import { connect } from '../../js/index.js';
import { useClock } from '../support/clock.js';
import { AGENT, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
};
const HIGHEST = 1 - Number.EPSILON / 2; // of Math.random

/** Something that is done again and again, by a clock of its own: says when, after how many ms each time. */
function attempts(t, random) {
  const clock = useClock(t);
  t.mock.method(Math, 'random', () => random);
  const made = mock.fn();
  /** Fails unless the next attempt is made after exactly so many ms. */
  const next = async (ms) => {
    const before = made.mock.callCount();
    await turns();
    assert.equal(made.mock.callCount(), before, 'not at once');
    clock.advance(ms - 1);
    await turns();
    assert.equal(made.mock.callCount(), before, `not after ${ms - 1} ms`);
    clock.advance(1);
    await turns();
    assert.equal(made.mock.callCount(), before + 1, `after ${ms} ms`);
  };
  return { clock, made, next };
}
const neverAgain = () => Promise.reject(new Error('no way'));

describe('a lost session is begun again', () => {
  const never = new AbortController().signal;
  const longAgo = () => ({ failures: 0, since: -Infinity });

  test('at once, then after 250 ms, each time after twice as many, and never after more than 30 s', async (t) => {
    const { made, next } = attempts(t, 0);
    const begin = () => (made(), neverAgain());
    const ends = restore(begin, { attempts: 10 }, longAgo(), never, undefined).catch(
      (error) => error,
    );
    await turns();
    assert.equal(made.mock.callCount(), 1);
    for (const ms of [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) await next(ms);
    assert.equal((await ends).message, 'no way');
  });

  test('after half of that where chance is least', async (t) => {
    const { made, next } = attempts(t, HIGHEST);
    const begin = () => (made(), neverAgain());
    restore(begin, { delay: 100, maxDelay: 300, attempts: 5 }, longAgo(), never, undefined).catch(
      () => {},
    );
    await turns();
    for (const ms of [50, 100, 150, 150]) await next(ms);
  });

  test('at first after up to `delay`, where all clients of a server have lost theirs', async (t) => {
    const { made, next } = attempts(t, 0.25);
    const ends = restore(
      async () => made(),
      { delay: 400 },
      longAgo(),
      never,
      () => {},
    );
    await next(100);
    await ends;
  });

  test('as the first one, if it had lasted for more than ten seconds', async (t) => {
    for (const [lasted, waits] of [
      [10_000, true],
      [10_001, false],
    ]) {
      const { clock, made } = attempts(t, 0);
      const history = { failures: 3, since: performance.now() - lasted };
      const ends = restore(async () => made(), { delay: 100 }, history, never, undefined);
      await turns();
      assert.equal(made.mock.callCount(), waits ? 0 : 1, `${lasted} ms`);
      if (waits) clock.advance(400);
      await ends;
      assert.deepEqual([history.failures, history.since], [waits ? 4 : 1, performance.now()]);
      t.mock.timers.reset();
      t.mock.restoreAll();
    }
  });

  test('so often and no more; and not after an error that is final', async (t) => {
    const { clock, made } = attempts(t, 0);
    for (const [error, count] of [
      [new AbpError('TIMEOUT', 'again', { retryable: true }), 2],
      [new AbpError('INVALID_PARAMS', 'never', { retryable: false }), 1],
    ]) {
      made.mock.resetCalls();
      const begin = () => (made(), Promise.reject(error));
      const ends = restore(begin, { attempts: 2 }, longAgo(), never, undefined).catch(
        (thrown) => thrown,
      );
      await turns();
      clock.advance(60_000);
      assert.equal(await ends, error);
      assert.equal(made.mock.callCount(), count);
    }
  });
});

describe('a call that failed is made again', () => {
  const failed = (error) => ({
    success: false,
    error: { message: 'm', retryable: true, ...error },
  });
  const again = (response, made, options = {}, more = {}) =>
    retry(response, {
      attempt: async ({ timeout }) => (made(timeout), response),
      ready: () => Promise.resolve(true),
      client: {},
      sent: [Date.now(), performance.now()],
      options: { retry: true, ...options },
      ...more,
    });

  test('twice unless it says otherwise, after 250 and 500 ms', async (t) => {
    const { made, next } = attempts(t, 0);
    const ends = again(failed({ code: 'RATE_LIMITED' }), made);
    await next(250);
    await next(500);
    assert.equal((await ends).error.code, 'RATE_LIMITED');
    assert.deepEqual(
      made.mock.calls.map(({ arguments: [timeout] }) => timeout),
      [undefined, undefined],
    );
  });

  test('after as long as its app asks for, up to ten minutes, or to maxDelay', async (t) => {
    for (const [retryAfter, patience, isMade] of [
      [7, true, true],
      [600_000, true, true],
      [600_001, true, false],
      [500, { maxDelay: 500 }, true],
      [501, { maxDelay: 500 }, false],
    ]) {
      const { made, next } = attempts(t, 0.5);
      const response = failed({ code: 'RATE_LIMITED', retryAfter });
      const ends = again(response, made, { retry: { attempts: 2, ...Object(patience) } });
      if (isMade) await next(retryAfter);
      assert.equal(await ends, response);
      assert.equal(made.mock.callCount(), isMade ? 1 : 0, `${retryAfter}`);
      t.mock.timers.reset();
      t.mock.restoreAll();
    }
  });

  test('if there is time left after the pause, and with what is left', async (t) => {
    for (const [left, isMade] of [
      [100, false],
      [101, true],
    ]) {
      const { made, next } = attempts(t, 0);
      const response = failed({ code: 'RATE_LIMITED' });
      const ends = again(response, made, {
        retry: { attempts: 2, delay: 100 },
        timeout: left,
      });
      if (isMade) await next(100);
      assert.equal(await ends, response);
      assert.equal(made.mock.callCount(), isMade ? 1 : 0, `${left} ms are left`);
      if (isMade) assert.ok(Math.abs(made.mock.calls[0].arguments[0] - 1) < 0.01);
      t.mock.timers.reset();
      t.mock.restoreAll();
    }
  });

  test('without a pause once there is a session, if it was lost with the one before', async (t) => {
    const { made } = attempts(t, 0);
    let begin;
    const ready = () => new Promise((resolve) => (begin = resolve));
    const more = { ready, options: { retry: { attempts: 2 } } };
    const ends = again(failed({ code: 'DISCONNECTED' }), made, {}, more);
    await turns();
    assert.equal(made.mock.callCount(), 0);
    begin(true);
    await ends;
    assert.equal(made.mock.callCount(), 1);
    const given = again(failed({ code: 'DISCONNECTED' }), made, {}, more);
    await turns();
    begin(false);
    assert.equal((await given).error.code, 'DISCONNECTED');
    assert.equal(made.mock.callCount(), 1);
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
