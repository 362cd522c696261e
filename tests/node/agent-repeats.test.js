// A call that is made again, by itself: how often, when, and when no more.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retry } from '../../js/agent/retry.js';
import { useClock } from '../support/clock.js';

const failed = (more) => ({
  success: false,
  error: { code: 'BUSY', message: 'busy', retryable: true, ...more },
});
const settle = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
};

/** A call that has failed, and what its repeats are. */
function again(t, response, { ready = async () => true, answers = [], ...more } = {}) {
  const clock = useClock(t);
  const now = performance.now();
  const made = [];
  const outcome = { settled: undefined };
  const attempt = async ({ timeout }) => {
    made.push([performance.now() - now, timeout]);
    return answers[made.length - 1] ?? response;
  };
  const { within, keyed, patience = true, signal, ...call } = more;
  const sent = [Date.now(), now];
  void retry(response, {
    client: { features: { outcomes: true } },
    sent,
    ...call,
    attempt,
    ready,
    options: {
      retry: patience,
      signal,
      timeout: within,
      idempotencyKey: keyed ? 'the key' : undefined,
    },
  }).then((last) => (outcome.settled = last));
  return { clock, made, outcome };
}

test('a session that does not come before the time is over ends it with the response that there is', async (t) => {
  const response = failed();
  const never = () => new Promise(() => {});
  const { clock, made, outcome } = again(t, response, { ready: never, within: 1000 });
  await settle();
  clock.advance(250);
  await settle();
  clock.advance(749);
  await settle();
  assert.equal(outcome.settled, undefined);
  clock.advance(1);
  await settle();
  assert.equal(outcome.settled, response);
  assert.deepEqual(made, []);
});

test('where it is known that there will be no session, nothing is tried', async (t) => {
  const response = failed({ code: 'DISCONNECTED' });
  const { made, outcome } = again(t, response, { ready: async () => false });
  await settle();
  assert.equal(outcome.settled, response);
  assert.deepEqual(made, []);
});

test('a caller that has given up while there was no session is answered by an attempt', async (t) => {
  const controller = new AbortController();
  const answer = { success: false, cancelled: true };
  const { made, outcome } = again(t, failed({ code: 'DISCONNECTED' }), {
    ready: () => new Promise(() => {}),
    answers: [answer],
    signal: controller.signal,
  });
  await settle();
  assert.deepEqual(made, []);
  controller.abort();
  await settle();
  assert.equal(outcome.settled, answer);
  assert.equal(made.length, 1);
});

test('an attempt has the time that is left, or no limit where there is none', async (t) => {
  const limited = again(t, failed({ retryAfter: 100 }), {
    within: 400,
    answers: [{ success: true }],
  });
  await settle();
  limited.clock.advance(100);
  await settle();
  assert.deepEqual(limited.made, [[100, 300]]);
  t.mock.reset();
  t.mock.timers.reset();
  const free = again(t, failed({ retryAfter: 100 }), { answers: [{ success: true }] });
  await settle();
  free.clock.advance(100);
  await settle();
  assert.deepEqual(free.made, [[100, undefined]]);
});

for (const [what, response] of Object.entries({
  'has succeeded': { success: true, data: 1 },
  'was cancelled': { ...failed(), cancelled: true },
  'will fail again': failed({ retryable: false }),
  'does not say whether it helps': failed({ retryable: 'yes' }),
  'says nothing of its error': { success: false },
  'is to wait for more than ten minutes': failed({ retryAfter: 600_001 }),
})) {
  test(`what ${what} is not made again`, async (t) => {
    const { clock, made, outcome } = again(t, response);
    await settle();
    assert.equal(outcome.settled, response);
    clock.advance(1_000_000);
    await settle();
    assert.deepEqual(made, []);
  });
}

test('it is made three times in all', async (t) => {
  const response = failed({ retryAfter: 10 });
  const { clock, made, outcome } = again(t, response);
  for (let i = 0; i < 5; i++) {
    await settle();
    clock.advance(10);
  }
  await settle();
  assert.deepEqual(
    made.map(([at]) => at),
    [10, 20],
  );
  assert.equal(outcome.settled, response);
});

test('a pause that would last until the deadline is not begun', async (t) => {
  const response = failed({ retryAfter: 100 });
  const { outcome } = again(t, response, { within: 100 });
  await settle();
  assert.equal(outcome.settled, response);
});
