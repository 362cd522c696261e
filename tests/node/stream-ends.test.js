// What a call says of a stream that ended before its end, came to its end, or never began.
import assert from 'node:assert/strict';
import { afterEach, describe, mock, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { AGENT, APP, closeAfter, keepAlive } from '../support/pair.js';
import { CONNECTIONS } from '../support/connections.js';

let pair;
keepAlive();
afterEach(() => {
  pair?.close();
  pair = undefined;
  mock.restoreAll();
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Sources without an end, by what they are; `began` is called with the first chunk. */
const ENDLESS = {
  'an async generator': async function* (began) {
    for (let i = 0; ; i++) {
      began();
      yield i;
      await turn();
    }
  },
  'a generator that yields while it ends': async function* (began) {
    try {
      for (;;) {
        began();
        yield 'chunk';
        await turn();
      }
    } finally {
      yield 'last';
      assert.fail('it goes on');
    }
  },
  'a ReadableStream': (began) =>
    new ReadableStream({
      async pull(controller) {
        began();
        await turn();
        controller.enqueue('chunk');
      },
    }),
  'a ReadableStream that waits for ever': (began) =>
    new ReadableStream({
      pull(controller) {
        began();
        controller.enqueue('chunk');
        return new Promise(() => {});
      },
    }),
  'an iterator without a return': (began) => ({
    [Symbol.asyncIterator]: () => ({
      async next() {
        began();
        await turn();
        return { done: false, value: 'chunk' };
      },
    }),
  }),
  'an iterator whose return ends what is read': (began) => {
    let end;
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          began();
          return new Promise((resolve) => (end = resolve));
        },
        return: () => end({ done: true, value: undefined }),
      }),
    };
  },
};

/**
 * A ReadableStream without an end.
 * @param {() => void} began
 * @param {(reason: unknown) => unknown} cancel
 */
const readable = (began, cancel) =>
  new ReadableStream({
    async pull(controller) {
      began();
      await turn();
      controller.enqueue('chunk');
    },
    cancel,
  });

/**
 * An iterator without an end.
 * @param {() => void} began
 * @param {(reason: unknown) => unknown} end
 */
const iterator = (began, end) => ({
  [Symbol.asyncIterator]: () => ({
    async next() {
      began();
      await turn();
      return { done: false, value: 'chunk' };
    },
    return: end,
  }),
});

/**
 * Sources that break when they are told to end, and what is told of them: as of a handler that
 * throws the same.
 */
const BREAKING = {
  'a ReadableStream whose cancel fails': [
    'failed',
    (began) => readable(began, () => Promise.reject(new Error('cannot be closed'))),
  ],
  'a ReadableStream whose cancel gives back its reason': [
    'stopped',
    (began) => readable(began, (reason) => Promise.reject(reason)),
  ],
  'a ReadableStream whose cancel says that it was aborted': [
    'stopped',
    (began) => readable(began, () => Promise.reject(new DOMException('stop', 'AbortError'))),
  ],
  'an iterator whose return throws': [
    'failed',
    (began) =>
      iterator(began, () => {
        throw new Error('cannot be closed');
      }),
  ],
  'an iterator whose return rejects': [
    'failed',
    (began) => iterator(began, () => Promise.reject(new Error('cannot be closed'))),
  ],
  'an iterator whose return throws the reason of the signal': [
    'stopped',
    (began, signal) => iterator(began, () => Promise.reject(signal.reason)),
  ],
  'a generator whose finally throws': [
    'failed',
    async function* (began) {
      try {
        for (;;) {
          began();
          yield 'chunk';
          await turn();
        }
      } finally {
        await Promise.reject(new Error('cannot be closed'));
      }
    },
  ],
};

/** Whether a stream is handed over by a plain function, or checked by a schema. */
const KINDS = {
  '': (handler) => handler,
  ', checked': (handler) => ({ handler, outputSchema: { type: 'number' } }),
};

/** What stops it, by a client. */
const STOPS = {
  'by its signal': ({ controller }) => controller.abort('enough'),
  'by cancel(callId)': ({ client }) => client.cancel('the-call', 'enough'),
};

for (const [connection, open] of Object.entries(CONNECTIONS)) {
  /** Sources are read alike over each: all are tried over one, and in the app's own page. */
  const tried = (sources) =>
    Object.entries(sources).slice(0, /frames|window/.test(connection) ? undefined : 1);
  const isDirect = connection.startsWith('a port') || connection === 'a WebSocket';
  describe(`over ${connection}, a collected stream that is stopped: stopped`, () => {
    for (const [what, source] of tried(ENDLESS))
      for (const [kind, given] of Object.entries(KINDS))
        test(`${what}${kind}`, async () => {
          mock.method(console, 'error', () => {});
          const controller = new AbortController();
          const began = () => controller.abort('enough');
          pair = await open({ work: given(() => source(began)) });
          const response = await pair.call('work', {}, { signal: controller.signal });
          assert.deepEqual(
            [response.cancelled, response.error.message, response.metadata.outcome],
            [true, 'enough', 'stopped'],
          );
        });

    for (const [what, [outcome, source]] of tried(BREAKING))
      for (const [kind, given] of Object.entries(KINDS))
        test(`${what}${kind}: ${outcome}`, async () => {
          mock.method(console, 'error', () => {});
          const controller = new AbortController();
          const began = () => controller.abort('enough');
          pair = await open({ work: given((_params, { signal }) => source(began, signal)) });
          const response = await pair.call('work', {}, { signal: controller.signal });
          assert.deepEqual(
            [response.cancelled, response.error.message, response.metadata.outcome],
            [true, 'enough', outcome],
          );
        });

    test('by its timeout', async () => {
      pair = await open({ work: () => ENDLESS['an async generator'](() => {}) });
      const { error, metadata } = await pair.call('work', {}, { timeout: 30 });
      assert.deepEqual([error.code, metadata.outcome], ['TIMEOUT', 'stopped']);
    });
  });

  test(`over ${connection}, a generator that comes to its end after the cancel: finished`, async () => {
    const controller = new AbortController();
    pair = await open({
      async *work(_params, { signal }) {
        yield 1;
        const aborted = new Promise((resolve) => (signal.onabort = resolve));
        controller.abort();
        await aborted;
      },
    });
    const { cancelled, metadata } = await pair.call('work', {}, { signal: controller.signal });
    assert.deepEqual([cancelled, metadata.outcome], [true, 'finished']);
  });

  if (!isDirect) continue;

  describe(`over ${connection}, a stream that is read and stopped: stopped`, () => {
    for (const [what, source] of tried(ENDLESS)) {
      // Plain messages carry no streams.
      if (connection === 'a port with messages') continue;
      for (const [how, stop] of Object.entries(STOPS))
        test(`${what}, ${how}`, async () => {
          mock.method(console, 'error', () => {});
          const controller = new AbortController();
          let begin;
          const began = new Promise((resolve) => (begin = resolve));
          pair = await open({ work: () => source(begin) });
          const stream = pair.client.stream(
            'work',
            {},
            { callId: 'the-call', signal: controller.signal },
          );
          await began;
          stop({ controller, client: pair.client });
          const { cancelled, metadata } = await stream.response;
          assert.deepEqual([cancelled, metadata.outcome], [true, 'stopped']);
        });

      if (what.includes('ends what is read')) continue;
      test(`${what}, by break`, async () => {
        mock.method(console, 'error', () => {});
        pair = await open({ work: () => source(() => {}) });
        const stream = pair.client.stream('work');
        for await (const chunk of stream) if (chunk !== undefined) break;
        const { cancelled, metadata } = await stream.response;
        assert.deepEqual([cancelled, metadata.outcome], [true, 'stopped']);
      });
    }
  });

  describe(`over ${connection}, a stream that breaks when its reader has stopped`, () => {
    for (const [what, [outcome, source]] of tried(BREAKING)) {
      if (connection === 'a port with messages') continue;
      for (const [how, stop] of Object.entries(STOPS).concat([['by break', undefined]]))
        test(`${what}, ${how}: ${outcome}`, async () => {
          mock.method(console, 'error', () => {});
          const controller = new AbortController();
          pair = await open({ work: (_params, { signal }) => source(() => {}, signal) });
          const { client } = pair;
          const options = { callId: 'the-call', signal: controller.signal };
          const stream = client.stream('work', {}, options);
          await stream.next();
          if (stop) stop({ controller, client });
          else await stream.return();
          const { cancelled, metadata } = await stream.response;
          assert.deepEqual([cancelled, metadata.outcome], [true, outcome]);
          assert.equal((await client.outcome('the-call')).outcome, outcome);
        });
    }

    test('waits for ever for its end: running', async () => {
      mock.method(console, 'warn', () => {});
      if (connection === 'a port with messages') return;
      pair = await open(
        {
          work: () =>
            readable(
              () => {},
              () => new Promise(() => {}),
            ),
        },
        { exposeOptions: { limits: { grace: 1 } } },
      );
      const stream = pair.client.stream('work');
      await stream.next();
      await stream.return();
      const { cancelled, metadata } = await stream.response;
      assert.deepEqual([cancelled, metadata.outcome], [true, 'running']);
    });
  });

  describe(`over ${connection}, a stream that had given all, of which not all was read`, () => {
    if (connection === 'a port with messages') return;
    /** One chunk may be under way: the second waits, and the stream is at its end by then. */
    const NARROW = { exposeOptions: { limits: { streamChunks: 1 } } };
    const SOURCES = {
      'a ReadableStream that is closed behind its last chunk': (given) => {
        let count = 0;
        return new ReadableStream({
          pull(controller) {
            if (count++ < 2) return controller.enqueue('chunk');
            controller.close();
            given();
          },
        });
      },
      'a ReadableStream that is closed with its last chunk': (given) =>
        new ReadableStream({
          start(controller) {
            controller.enqueue('chunk');
            controller.enqueue('chunk');
            controller.close();
            given();
          },
        }),
    };
    for (const [what, source] of tried(SOURCES)) {
      for (const [how, stop] of Object.entries(STOPS).concat([['by return', undefined]]))
        test(`${what}, ${how}: finished`, async () => {
          const controller = new AbortController();
          let give;
          const given = new Promise((resolve) => (give = resolve));
          pair = await open({ work: () => source(give) }, NARROW);
          const { client } = pair;
          const options = { callId: 'the-call', signal: controller.signal };
          const stream = client.stream('work', {}, options);
          await given;
          await turn();
          if (stop) stop({ controller, client });
          else await stream.return();
          const { success, cancelled, metadata } = await stream.response;
          assert.deepEqual([success, cancelled, metadata.outcome], [false, true, 'finished']);
          assert.equal((await client.outcome('the-call')).outcome, 'finished');
        });

      test(`${what}, by its timeout: finished`, async () => {
        pair = await open({ work: () => source(() => {}) }, NARROW);
        const stream = pair.client.stream('work', {}, { timeout: 50 });
        const { error, metadata } = await stream.response;
        assert.deepEqual([error.code, metadata.outcome], ['TIMEOUT', 'finished']);
      });
    }

    test('a generator that has not returned, and waits in its last yield: stopped', async () => {
      pair = await open(
        {
          async *work() {
            yield 1;
            yield 2;
          },
        },
        NARROW,
      );
      const stream = pair.client.stream('work', {}, { timeout: 50 });
      assert.equal((await stream.response).metadata.outcome, 'stopped');
    });
  });

  test(`over ${connection}, a generator that is not async streams, and is told as what it was`, async () => {
    const log = [];
    const work = function* ({ rows }) {
      try {
        for (let i = 0; i < rows; i++) {
          log.push(i);
          yield i;
        }
        log.push('all');
      } finally {
        log.push('end');
      }
    };
    pair = await open({ work });
    const { data } = await pair.call('work', { rows: 2 });
    assert.deepEqual(
      [data, log.splice(0)],
      [
        [0, 1],
        [0, 1, 'all', 'end'],
      ],
    );
    const signal = AbortSignal.abort();
    assert.equal((await pair.call('work', { rows: 2 }, { signal })).metadata.outcome, 'unstarted');
    assert.deepEqual(log, []);
    const controller = new AbortController();
    const pending = pair.call('work', { rows: 1e6 }, { signal: controller.signal });
    while (!log.length) await turn();
    controller.abort();
    assert.equal((await pending).metadata.outcome, 'stopped');
    assert.equal(log.at(-1), 'end');
    assert.ok(!log.includes('all'));
  });

  test(`over ${connection}, a handler that did something before it gave its stream: stopped`, async () => {
    const controller = new AbortController();
    pair = await open({
      async work() {
        controller.abort();
        await turn();
        await turn();
        return ENDLESS['an async generator'](assert.fail);
      },
    });
    const { metadata } = await pair.call('work', {}, { signal: controller.signal });
    assert.notEqual(metadata.outcome, 'finished');
    assert.notEqual(metadata.outcome, 'unstarted');
  });
}

test('a stream whose line is lost: who asks later is told stopped', async () => {
  const capabilities = { work: () => ENDLESS['an async generator'](() => {}) };
  const exposed = expose({ app: APP, capabilities }, { origins: [] });
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
  const stream = client.stream('work');
  await stream.next();
  last.close();
  const response = await stream.response;
  assert.equal(response.error.code, 'DISCONNECTED');
  assert.equal((await response.settled).outcome, 'stopped');
});
