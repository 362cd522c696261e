// A call whose handler waits for something before it begins: whatever ends it meanwhile ends it at
// once, and it never ran.
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP, closeAfter, openPair, keepAlive } from '../support/pair.js';
import { CONNECTIONS } from '../support/connections.js';

let pair;
keepAlive();
afterEach(() => {
  pair?.close();
  pair = undefined;
});

/**
 * Params that are checked for as long as a test likes: `asked` resolves when the first check
 * begins.
 */
function slowCheck() {
  const it = { ran: 0 };
  it.asked = new Promise((resolve) => (it.begin = resolve));
  it.verdict = new Promise((resolve, reject) => Object.assign(it, { accept: resolve, reject }));
  const inputSchema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      jsonSchema: { input: () => ({}) },
      validate(value) {
        it.begin();
        return it.verdict.then(() => ({ value }));
      },
    },
  };
  it.capability = { inputSchema, handler: () => `ran ${++it.ran}` };
  return it;
}

/** Ends all that wait, and lets what would begin then begin. */
async function release(check) {
  check.accept();
  await check.verdict;
  await new Promise((resolve) => setImmediate(resolve));
}

const KEYED = { idempotencyKey: 'order-1' };

for (const [connection, open] of Object.entries(CONNECTIONS)) {
  const isNested = connection === 'a call of another handler';
  describe(`over ${connection}, a call whose params are still being checked`, () => {
    // Plain messages have no keys.
    const kinds =
      connection === 'a port with messages' ? { plain: {} } : { plain: {}, 'with a key': KEYED };
    for (const [what, more] of Object.entries(kinds)) {
      test(`is cancelled: unstarted (${what})`, async () => {
        const check = slowCheck();
        pair = await open({ work: check.capability });
        const controller = new AbortController();
        const pending = pair.call('work', {}, { ...more, signal: controller.signal });
        await check.asked;
        controller.abort('enough');
        const { cancelled, error, metadata } = await pending;
        assert.deepEqual([cancelled, error.message], [true, 'enough']);
        assert.equal(metadata.outcome, 'unstarted');
        await release(check);
        assert.equal(check.ran, 0);
      });
    }

    test('takes longer than its time: unstarted', async () => {
      const check = slowCheck();
      pair = await open({ work: check.capability });
      const { error, metadata } = await pair.call('work', {}, { timeout: 20 });
      assert.equal(error.code, 'TIMEOUT');
      assert.equal(metadata.outcome, 'unstarted');
      await release(check);
      assert.equal(check.ran, 0);
    });

    test('cannot be checked: unstarted', async () => {
      const check = slowCheck();
      pair = await open({ work: check.capability });
      const pending = pair.call('work');
      await check.asked;
      check.reject(new Error('no network'));
      const { success, metadata } = await pending;
      assert.deepEqual([success, metadata.outcome], [false, 'unstarted']);
      assert.equal(check.ran, 0);
    });

    test('runs once it is checked', async () => {
      const check = slowCheck();
      pair = await open({ work: check.capability });
      const pending = pair.call('work');
      await check.asked;
      check.accept();
      assert.equal((await pending).data, 'ran 1');
    });

    if (!isNested)
      test('is in an app that closes: unstarted', async () => {
        const check = slowCheck();
        pair = await open({ work: check.capability });
        const pending = pair.call('work');
        await check.asked;
        pair.exposed.close();
        assert.equal((await pending).metadata.outcome, 'unstarted');
        await release(check);
        assert.equal(check.ran, 0);
      });
  });
}

test('it gives its place back at once, and the next one begins', async () => {
  const check = slowCheck();
  const { client } = await openPair(
    { work: check.capability, next: () => 'next' },
    { app: { limits: { maxConcurrent: 1 } } },
  );
  const controller = new AbortController();
  const first = client.call('work', {}, { signal: controller.signal });
  await check.asked;
  const next = client.call('next');
  controller.abort();
  assert.equal((await first).metadata.outcome, 'unstarted');
  assert.equal((await next).data, 'next');
  assert.equal((await client.call('next')).data, 'next');
});

for (const connection of ['a port with frames', 'a port with messages', 'a WebSocket']) {
  /**
   * Two calls whose time is over at once make room for two that wait; the first of these does
   * something at once.
   * @param {import('node:test').TestContext} t
   * @param {(pair: any) => unknown} act
   */
  async function twoBegin(t, act) {
    const clock = useClock(t);
    const check = slowCheck();
    const began = [];
    const opened = await CONNECTIONS[connection](
      {
        work: check.capability,
        next({ name }, { callId }) {
          began.push(name);
          if (name === 'a') return act({ ...opened, callId });
          return name;
        },
      },
      { exposeOptions: { limits: { maxConcurrent: 2 } } },
    );
    pair = opened;
    const over = [1, 2].map(() => pair.call('work', {}, { timeout: 50 }));
    const next = ['a', 'b'].map((name) => pair.call('next', { name }, { callId: name }));
    // What comes after the close is read by nobody.
    while (pair.exposed.counters[0].inFlightIn < 4)
      await new Promise((resolve) => setImmediate(resolve));
    clock.advance(50);
    await Promise.all(over);
    return { began, told: await Promise.all(next) };
  }

  test(`over ${connection}, two begin at once, and the first closes the app: the second never ran`, async (t) => {
    const { began, told } = await twoBegin(t, ({ exposed }) => exposed.close());
    assert.deepEqual(began, ['a']);
    assert.deepEqual(
      told.map(({ metadata }) => metadata.outcome),
      ['running', 'unstarted'],
    );
  });

  for (const [what, act, outcome] of [
    [
      'throws',
      () => {
        throw new Error('no');
      },
      'failed',
    ],
    ['returns', () => 'a', undefined],
    ['closes the client', ({ client }) => client.close(), 'unknown'],
    ['cancels the second', ({ client }) => void client.cancel('b'), undefined],
  ]) {
    test(`over ${connection}, two begin at once, and the first ${what}: the second runs`, async (t) => {
      const { began, told } = await twoBegin(t, act);
      assert.deepEqual(began, ['a', 'b']);
      assert.equal(told[0].metadata.outcome, outcome);
    });
  }

  test(`over ${connection}, a call that comes when its app has closed: nobody reads it, and it may be on its way for all its caller knows`, async () => {
    const began = [];
    let late;
    const next = ({ name }) => {
      began.push(name);
      pair.exposed.close();
      late = pair.call('next', { name: 'b' });
    };
    pair = await CONNECTIONS[connection]({ next });
    const first = await pair.call('next', { name: 'a' });
    assert.equal(first.metadata.outcome, 'running');
    assert.equal((await late).metadata.outcome, 'unknown');
    assert.deepEqual(began, ['a']);
  });
}

test('a listener closes the app at a signal that fires as another call gets its turn: that one never ran', async () => {
  const check = slowCheck();
  const { client, exposed } = await openPair(
    {
      work: check.capability,
      listens(_params, { signal }) {
        signal.addEventListener('abort', () => exposed.close());
        return check.verdict;
      },
      next: assert.fail,
    },
    { app: { limits: { maxConcurrent: 2 } } },
  );
  const first = client.call('listens', {}, { timeout: 50 });
  const over = client.call('work', {}, { timeout: 50 });
  const next = client.call('next');
  assert.equal((await next).metadata.outcome, 'unstarted');
  check.accept();
  await Promise.all([first, over]);
});

test('with a queue behind it, an app that closes starts no more of it', async () => {
  const check = slowCheck();
  const { client, exposed } = await openPair(
    { work: check.capability, next: assert.fail },
    { app: { limits: { maxConcurrent: 1 } } },
  );
  const first = client.call('work');
  await check.asked;
  const next = client.call('next');
  await client.call('next', {}, { timeout: 5 }); // so that the one before has come
  exposed.close();
  for (const pending of [first, next]) assert.equal((await pending).metadata.outcome, 'unstarted');
});

test('its line is lost: who asks later is told unstarted, and a repeat with its key runs', async () => {
  const check = slowCheck();
  const exposed = expose({ app: APP, capabilities: { work: check.capability } }, { origins: [] });
  closeAfter(() => exposed.close());
  let last;
  const client = await connect(
    () => {
      const { port1, port2 } = new MessageChannel();
      last = port1;
      closeAfter(() => port1.close());
      exposed.accept(portTransport(port1));
      return port2;
    },
    { agent: AGENT, reconnect: true },
  );
  closeAfter(() => client.close());
  const pending = client.call('work', {}, KEYED);
  await check.asked;
  last.close();
  const response = await pending;
  assert.equal(response.error.code, 'DISCONNECTED');
  assert.equal((await response.settled).outcome, 'unstarted');
  const again = client.call('work', {}, KEYED);
  check.accept();
  assert.equal((await again).data, 'ran 1');
});

/** An app, and an agent that a test plays by hand: what it tells is read at once. */
function played(capabilities) {
  const exposed = expose({ app: APP, capabilities }, { origins: [] });
  closeAfter(() => exposed.close());
  const results = [];
  let arrived = () => {};
  const transport = {
    carries: [],
    post({ type, payload }) {
      if (type === 'capabilities/call-result') results.push(payload);
      arrived();
    },
    close() {},
  };
  exposed.accept(transport);
  const tell = (type, id, payload) => transport.onMessage({ type, id, payload }, []);
  tell('initialize', '1', { agent: AGENT, protocolVersion: '0.1', features: {} });
  const result = async () => {
    while (!results.length) await new Promise((resolve) => (arrived = resolve));
    return results[0];
  };
  return { tell, result };
}

test('a cancel that is read in one turn with a later message, when the grace period has passed', async (t) => {
  const clock = useClock(t);
  const check = slowCheck();
  const { tell, result } = played({ work: check.capability });
  tell('capabilities/call', '2', { callId: 'c', capability: 'work', params: {} });
  await check.asked;
  tell('capabilities/cancel', '3', { callId: 'c', reason: 'enough' });
  clock.pass(60_000);
  tell('capabilities/cancel', '4', { callId: 'other' });
  assert.equal((await result()).metadata.outcome, 'unstarted');
  await release(check);
  assert.equal(check.ran, 0);
});

test('a generator of which no line has run', async () => {
  const { tell, result } = played({ work: stream });
  // eslint-disable-next-line require-yield -- it never comes to that
  async function* stream() {
    assert.fail('it runs');
  }
  tell('capabilities/call', '2', { callId: 'c', capability: 'work', params: {} });
  tell('capabilities/cancel', '3', { callId: 'c', reason: 'enough' });
  assert.equal((await result()).metadata.outcome, 'unstarted');
  await new Promise((resolve) => setImmediate(resolve));
});

test('what waited for it still comes, when its place has been that of a thousand others, and ends none of them', async () => {
  const check = slowCheck();
  const { client, exposed } = await openPair(
    { slow: check.capability, echo: (params) => params, hangs: () => new Promise(() => {}) },
    { app: { limits: { remembered: 1 } } },
  );
  // Each has had a handle of its own, of the same few places.
  for (let i = 0; i < 32; i++) {
    const controller = new AbortController();
    const call = client.call('slow', {}, { signal: controller.signal });
    await client.call('echo');
    controller.abort();
    assert.equal((await call).metadata.outcome, 'unstarted');
  }
  // A place has 1,023 handles, one after the other, and two places take turns.
  for (let i = 0; i < 2 * 1023 - 28; i++) await client.call('echo');
  const ended = [];
  for (let i = 0; i < 2; i++) void client.call('hangs').then((response) => ended.push(response));
  await client.call('echo');
  check.accept();
  await client.call('echo');
  assert.equal(check.ran, 0);
  assert.deepEqual([ended, exposed.counters[0].inFlightIn], [[], 2]);
});
