// What a call waits for before its handler begins: what few calls need is loaded when the first of
// them comes, and params may take time to be checked. A call that is cancelled meanwhile never ran,
// and is told so; so is one for which that fails.
import assert from 'node:assert/strict';
import { register } from 'node:module';
import { test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP, openPair } from '../support/pair.js';

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

/** A Standard Schema that checks by this function. */
const schemaOf = (validate) => ({
  '~standard': { version: 1, vendor: 'test', validate, jsonSchema: { input: () => ({}) } },
});

test('a call that is cancelled while its params are checked does not wait for that, and never runs', async () => {
  let checked;
  let began;
  const checking = new Promise((resolve) => (began = resolve));
  const validate = (value) => {
    began();
    return new Promise((resolve) => (checked = () => resolve({ value })));
  };
  let ran = 0;
  const work = { handler: () => ++ran, inputSchema: schemaOf(validate) };
  const { client } = await openPair({ work, other: () => 'answered' });
  const controller = new AbortController();
  const pending = client.call('work', {}, { signal: controller.signal });
  await checking;
  controller.abort('enough');
  const { cancelled, error, metadata } = await pending;
  assert.deepEqual([cancelled, metadata.outcome, error.message], [true, 'unstarted', 'enough']);
  checked();
  assert.equal(await client.invoke('other'), 'answered');
  assert.equal(ran, 0);
});

test('a call whose params cannot be checked never ran', async (t) => {
  t.mock.method(console, 'error', () => {});
  const failing = schemaOf(() => Promise.reject(new Error('no dictionary')));
  let ran = 0;
  const handler = () => ++ran;
  const { client } = await openPair({
    fails: { handler, inputSchema: failing },
    unusable: { handler, inputSchema: { type: 'text' } },
  });
  const outcomes = [];
  for (const name of ['fails', 'unusable']) {
    const { error, metadata } = await client.call(name);
    outcomes.push([error.code, metadata.outcome]);
  }
  assert.deepEqual(outcomes, [
    ['OPERATION_FAILED', 'unstarted'],
    ['INTERNAL_ERROR', 'unstarted'],
  ]);
  assert.equal(ran, 0);
});

test('a call for which a part does not load never ran, and the next one tries again', async () => {
  const offline = new Uint8Array(new SharedArrayBuffer(1)).fill(1);
  const hooks = `
    let offline;
    export const initialize = (data) => (offline = data);
    export function resolve(name, context, next) {
      if (offline[0] && /schema\\.js|memory/.test(name)) throw new Error('offline');
      return next(name, context);
    }`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: offline });
  const handler = () => 'ran';
  const { client } = await openPair({ plain: handler, checked: { handler, inputSchema: schema } });
  const CALLS = [
    ['checked', {}],
    ['plain', { idempotencyKey: 'k' }],
  ];
  for (const [name, options] of CALLS) {
    const { error, metadata } = await client.call(name, {}, options);
    const told = [error.code, error.retryable, metadata.outcome];
    assert.deepEqual(told, ['TRANSPORT_ERROR', true, 'unstarted'], name);
  }
  offline[0] = 0;
  for (const [name, options] of CALLS)
    assert.equal(await client.invoke(name, {}, options), 'ran', name);
});

test('params are checked asynchronously where a page has replaced Promise', async (t) => {
  const { Promise: own } = globalThis;
  t.after(() => (globalThis.Promise = own));
  const inputSchema = schemaOf(async () => ({ issues: [{ message: 'no' }] }));
  let ran = 0;
  const { client } = await openPair({ refuses: { handler: () => ++ran, inputSchema } });
  globalThis.Promise = class extends own {};
  const { error } = await client.call('refuses');
  assert.equal(error.code, 'INVALID_PARAMS');
  assert.equal(ran, 0);
});
