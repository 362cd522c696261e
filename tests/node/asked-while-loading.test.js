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

const schema = { type: 'object' };
const LATE = {
  'a call with a key, before the keys are loaded': { idempotencyKey: 'k' },
  'a call whose params have a schema, before what checks them is loaded': {},
};
for (const [what, options] of Object.entries(LATE))
  test(`${what}: a cancel is not waited for`, async (t) => {
    const [near, far] = ends();
    let ran = 0;
    const handler = () => ++ran;
    const app = expose({ app: APP, capabilities: {} }, { origins: [], limits: { grace: 5 } });
    await app.ready;
    app.accept(far);
    const client = await connect(near, { agent: AGENT });
    const clock = useClock(t);
    const controller = new AbortController();
    app.set('work', options.idempotencyKey ? handler : { handler, inputSchema: schema });
    const pending = client.call('work', {}, { signal: controller.signal, ...options });
    await Promise.resolve();
    controller.abort();
    for (let i = 0; i < 20; i++) await undefined;
    clock.advance(1000);
    const { cancelled, error, metadata } = await pending;
    const told = [cancelled, metadata.outcome, ran];
    assert.deepEqual(told, [true, 'unstarted', 0], error.message);
    client.close();
    app.close();
  });
