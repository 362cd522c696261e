// What few calls need is loaded when the first of them comes. A call that is cancelled meanwhile never ran, and is told so.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, expose } from '../../js/index.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP } from '../support/pair.js';

/** Two transports that deliver at once: nothing can be loaded between two messages. */
function ends() {
  const one = { post() {}, close() {} };
  const two = { post() {}, close() {} };
  one.post = (message) => two.onMessage?.(message);
  two.post = (message) => one.onMessage?.(message);
  return [one, two];
}

test('a call with a key that is cancelled before the keys are loaded does not wait for them', async (t) => {
  const [near, far] = ends();
  let ran = 0;
  const app = expose(
    { app: APP, capabilities: { work: () => ++ran } },
    { origins: [], limits: { grace: 5 } },
  );
  await app.ready;
  app.accept(far);
  const client = await connect(near, { agent: AGENT });
  const clock = useClock(t);
  const controller = new AbortController();
  const pending = client.call('work', {}, { signal: controller.signal, idempotencyKey: 'k' });
  await Promise.resolve();
  controller.abort();
  for (let i = 0; i < 20; i++) await undefined;
  clock.advance(1000);
  const { cancelled, error, metadata } = await pending;
  assert.deepEqual([cancelled, metadata.outcome, ran], [true, 'unstarted', 0], error.message);
  client.close();
  app.close();
});
