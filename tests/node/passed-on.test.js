// What a call tells whose handler passes on a call of its own, by returning its response or by
// throwing its error.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { portTransport } from '../../js/transports/port.js';
import { useClock } from '../support/clock.js';
import { openPair, keepAlive } from '../support/pair.js';

keepAlive();

/** A handler that ends when the test says so, whatever its signal says. */
function stubborn() {
  const it = {};
  it.ended = new Promise((resolve) => (it.end = resolve));
  it.handler = async (_params, { signal, report }) => {
    await new Promise((resolve) => (signal.onabort = resolve));
    report({ applied: 1 });
    return it.ended.finally(() => report({ applied: 2 }));
  };
  return it;
}

const GRACE = { app: { limits: { grace: 1 } } };
/** Ends of the inner handler, and what is told of both calls then. */
const ENDS = {
  finished: (work) => work.end('done'),
  stopped: (work) => work.end(Promise.reject(new DOMException('enough', 'AbortError'))),
  failed: (work) => work.end(Promise.reject(new Error('disk full'))),
};

for (const [outcome, end] of Object.entries(ENDS)) {
  describe(`a call that still runs and then is ${outcome}`, () => {
    test('is one of the same app', async (t) => {
      t.mock.method(console, 'error', () => {});
      const work = stubborn();
      const { client } = await openPair(
        { inner: work.handler, outer: (_params, { call }) => call('inner', {}, { timeout: 5 }) },
        GRACE,
      );
      const response = await client.call('outer');
      assert.equal(response.metadata.outcome, 'running');
      const { settled } = response;
      end(work);
      assert.deepEqual(await settled, { outcome, report: { applied: 2 } });
    });

    test('is that of a key: a repeat waits for it', async (t) => {
      t.mock.method(console, 'error', () => {});
      const work = stubborn();
      const { client } = await openPair(
        { inner: work.handler, outer: (_params, { call }) => call('inner', {}, { timeout: 5 }) },
        GRACE,
      );
      const first = await client.call('outer', {}, { idempotencyKey: 'k' });
      assert.equal(first.metadata.outcome, 'running');
      const repeat = client.call('outer', {}, { idempotencyKey: 'k' });
      end(work);
      const { metadata } = await repeat;
      assert.deepEqual([metadata.outcome, metadata.report], [outcome, { applied: 2 }]);
    });

    test('is two calls below', async (t) => {
      t.mock.method(console, 'error', () => {});
      const work = stubborn();
      const { client } = await openPair(
        {
          inner: work.handler,
          middle: (_params, { call }) => call('inner', {}, { timeout: 5 }),
          outer: (_params, { call }) => call('middle'),
        },
        GRACE,
      );
      const response = await client.call('outer');
      assert.equal(response.metadata.outcome, 'running');
      const { settled } = response;
      end(work);
      assert.deepEqual(await settled, { outcome, report: { applied: 2 } });
    });

    test('has ended before it is passed on', async (t) => {
      t.mock.method(console, 'error', () => {});
      const work = stubborn();
      const { client } = await openPair(
        {
          inner: work.handler,
          async outer(_params, { call }) {
            const response = await call('inner', {}, { timeout: 5 });
            assert.equal(response.metadata.outcome, 'running');
            end(work);
            await work.ended.catch(() => {});
            // What the app does with its end has been done by then.
            await new Promise((resolve) => setImmediate(resolve));
            return response;
          },
        },
        GRACE,
      );
      const { metadata } = await client.call('outer', {}, { callId: 'one' });
      assert.deepEqual([metadata.outcome, metadata.report], [outcome, { applied: 2 }]);
      assert.deepEqual(await client.outcome('one'), { outcome, report: { applied: 2 } });
    });

    for (const how of ['call', 'invoke'])
      test(`is one of another app: ${how}`, async (t) => {
        t.mock.method(console, 'error', () => {});
        const work = stubborn();
        const other = await openPair({ inner: work.handler }, GRACE);
        const { client } = await openPair({
          outer: () => other.client[how]('inner', {}, { timeout: 5 }),
        });
        const response = await client.call('outer');
        assert.equal(response.metadata.outcome, 'running');
        const { settled } = response;
        end(work);
        assert.deepEqual(await settled, { outcome, report: { applied: 2 } });
      });
  });
}

describe('an error that is thrown', () => {
  for (const how of ['it was closed', 'its line was cut'])
    test(`by invoke, and does not know what became of the call, makes nobody surer: ${how}`, async (t) => {
      t.mock.method(console, 'error', () => {});
      let begin;
      const begun = new Promise((resolve) => (begin = resolve));
      const { port1, port2 } = new MessageChannel();
      const ends = [port1, port2].map((port) => ({
        transport: () => portTransport(port),
        close: () => port.close(),
      }));
      const other = await openPair(
        { inner: () => (begin(), new Promise(() => {})) },
        { ends: async () => ends },
      );
      const { client } = await openPair({ outer: () => other.client.invoke('inner') });
      const pending = client.call('outer');
      await begun;
      if (how === 'it was closed') other.client.close();
      else port2.close();
      assert.equal((await pending).metadata.outcome, 'unknown');
    });

  test('may throw where it is looked at', async (t) => {
    t.mock.method(console, 'error', () => {});
    const thrown = Object.defineProperty({}, 'outcome', {
      get() {
        throw new Error('not for you');
      },
    });
    const { client } = await openPair({ work: () => Promise.reject(thrown) });
    assert.equal((await client.call('work')).metadata.outcome, 'failed');
  });

  test('by invoke has the outcome, the report and what becomes of the call', async (t) => {
    t.mock.method(console, 'error', () => {});
    const work = stubborn();
    const { client } = await openPair({ work: work.handler }, GRACE);
    const error = await client.invoke('work', {}, { timeout: 5 }).catch((thrown) => thrown);
    assert.deepEqual([error.code, error.outcome], ['TIMEOUT', 'running']);
    assert.deepEqual(error.report, { applied: 1 });
    work.end('done');
    assert.equal((await error.settled).outcome, 'finished');
  });

  test('by a stream has them, too', async (t) => {
    t.mock.method(console, 'error', () => {});
    const { client } = await openPair({
      // eslint-disable-next-line require-yield -- it fails
      async *work(_params, { report }) {
        report({ applied: 2 });
        throw new Error('disk full');
      },
    });
    const error = await client
      .stream('work')
      .next()
      .catch((thrown) => thrown);
    assert.deepEqual(
      [error.outcome, error.report, error.settled],
      ['failed', { applied: 2 }, undefined],
    );
  });
});

/** What people give in the place of options, after other libraries' habits. */
const NO_OPTIONS = {
  'a signal': new AbortController().signal,
  'a list': [],
  'a function': () => {},
  'a number': 5,
  'a string': 'fast',
  'a Date': new Date(0),
  'a Map': new Map(),
};
for (const [what, given] of Object.entries(NO_OPTIONS)) {
  test(`${what} is refused where options are expected`, async () => {
    let local;
    const { client, exposed } = await openPair({
      work: (_params, { call }) => {
        local = call('other', {}, given);
        return local.catch(({ code }) => code);
      },
      other: assert.fail,
    });
    const refused = {
      code: 'INVALID_PARAMS',
      message: /must be an object: (pass|write \w+\(name, params,) \{ signal \}/,
    };
    await assert.rejects(client.call('other', {}, given), refused);
    await assert.rejects(client.invoke('other', {}, given), refused);
    await assert.rejects(client.stream('other', {}, given).next(), refused);
    await assert.rejects(client.outcome('id', given), refused);
    await assert.rejects(exposed.abp.call('other', {}, given), refused);
    assert.equal((await client.call('work')).data, 'INVALID_PARAMS');
    await assert.rejects(local, refused);
  });
}

test('a context, or a controller, has a signal: it is taken as options', async () => {
  const controller = new AbortController();
  const { client } = await openPair({ work: () => new Promise(() => {}) });
  const pending = client.call('work', {}, controller);
  controller.abort();
  assert.equal((await pending).cancelled, true);
});

test('a call that its handler passes on at once, with a shorter timeout, has that timeout', async (t) => {
  let begins;
  const begun = new Promise((resolve) => (begins = resolve));
  const { client } = await openPair({
    inner: (_params, { signal }) => {
      begins();
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    },
    outer: (_params, { call }) => call('inner', {}, { timeout: 50 }),
  });
  const clock = useClock(t);
  let told;
  void client.call('outer', {}, { timeout: 3000 }).then((response) => (told = response));
  await begun;
  clock.advance(51);
  for (let turns = 0; !told && turns < 1000; turns++) await new Promise(setImmediate);
  assert.deepEqual([told?.error.code, told?.metadata.duration], ['TIMEOUT', 51]);
});
