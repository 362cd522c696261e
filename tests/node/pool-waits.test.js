// A pool and its workers in this thread, on a held clock: how long each is waited for, and what is
// warned of.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { useClock } from '../support/clock.js';
import { createTaskServer } from '../../packages/a2a/src/index.js';
import { LIMITS } from '../../js/common/signals.js';
import { connect, expose } from '../../parts/main/index.js';
import { createPeer, portTransport } from '../../packages/rpc/src/index.js';
import { Token, pool, serve } from '../../parts/workers/pool.js';

const turn = () => new Promise(setImmediate);

/**
 * One end of a line within this thread. A message is a clone of what was posted, and heard when
 * that is over.
 */
class End extends EventTarget {
  /** @type {End} */
  other;
  terminate = mock.fn();
  postMessage(message, transfer) {
    const data = structuredClone(message, { transfer });
    queueMicrotask(() => this.other.dispatchEvent(Object.assign(new Event('message'), { data })));
  }
}

/** A pool whose workers serve these handlers as soon as the test says so. */
function open(t, handlers, options) {
  /** @type {(End & { begin(): void })[]} */
  const workers = [];
  const opened = pool(
    () => {
      const [worker, scope] = [new End(), new End()];
      Object.assign(worker, { other: scope, begin: () => serve(handlers, scope) });
      scope.other = worker;
      workers.push(worker);
      return worker;
    },
    { size: 1, ...options },
  );
  t.after(() => opened.close());
  const terminated = () => workers.map(({ terminate }) => terminate.mock.callCount());
  return { pool: opened, workers, terminated };
}

/** A task, how it has settled, if it has, and what stops it. */
function run(opened, name, params, token) {
  const controller = new AbortController();
  const task = { stop: () => controller.abort('enough') };
  task.ended = opened
    .run(name)(params, { signal: controller.signal, token })
    .then(
      (data) => (task.settled = ['gave', data]),
      (error) => (task.settled = ['threw', error]),
    );
  return task;
}

/** What was warned of, once that is so many. */
const warnings = (t) => {
  const warned = t.mock.method(console, 'warn', () => {});
  return async (count) => {
    while (warned.mock.callCount() < count) await turn();
    await turn();
    return warned.mock.calls.map(({ arguments: [text] }) => text);
  };
};

const deaf = () => new Promise(() => {});

describe('a pool', () => {
  test('starts a worker for each task that waits, up to its size, and gives each worker one at a time', async (t) => {
    const began = [];
    const task = (name) => new Promise((resolve) => began.push([name, resolve]));
    const { pool: opened, workers } = open(t, { task }, { size: 2 });
    assert.equal(workers.length, 0);
    const tasks = ['a', 'b', 'c'].map((name) => run(opened, 'task', name));
    assert.deepEqual(opened.counters, { workers: 2, running: 0, waiting: 3 });
    workers[1].begin();
    await turn();
    assert.deepEqual(opened.counters, { workers: 2, running: 1, waiting: 2 });
    workers[0].begin();
    await turn();
    assert.deepEqual(opened.counters, { workers: 2, running: 2, waiting: 1 });
    assert.deepEqual(
      began.map(([name]) => name),
      ['a', 'b'],
    );
    began[0][1]('A');
    await tasks[0].ended;
    await turn();
    assert.deepEqual([began[2][0], tasks[0].settled], ['c', ['gave', 'A']]);
    for (const [, resolve] of began) resolve('done');
    await Promise.all(tasks.map(({ ended }) => ended));
    void run(opened, 'task', 'd');
    assert.deepEqual(opened.counters, { workers: 2, running: 1, waiting: 0 });
  });

  test('of no size is refused', () => {
    for (const size of [0, 0.5, NaN, -1])
      assert.throws(() => pool(() => {}, { size }), { code: 'INVALID_PARAMS' });
  });

  test('does not mind what else a worker says to its owner', async (t) => {
    let resolve;
    const { pool: opened, workers } = open(t, { task: () => new Promise((r) => (resolve = r)) });
    const task = run(opened, 'task');
    workers[0].begin();
    await turn();
    for (const message of [undefined, null, 7, 'done', { other: 1 }, { pool: 'other' }])
      workers[0].other.postMessage(message);
    await turn();
    assert.equal(task.settled, undefined);
    resolve(1);
    await task.ended;
    assert.deepEqual(task.settled, ['gave', 1]);
  });

  test('fails a task whose params cannot be sent, and its worker takes the one behind it', async (t) => {
    const { pool: opened, workers } = open(t, { echo: (params) => params });
    const [mistaken, next] = [run(opened, 'echo', { f() {} }), run(opened, 'echo', 'next')];
    workers[0].begin();
    await Promise.all([mistaken.ended, next.ended]);
    assert.match(mistaken.settled[1].message, /^The parameters cannot be sent to a worker: /);
    assert.deepEqual(next.settled, ['gave', 'next']);
  });
});

test('serve needs a worker', () => {
  assert.throws(() => serve({}, null), { code: 'NOT_SUPPORTED' });
});

describe('how long is waited', () => {
  test('for a worker that starts: its timeout, and no longer once it serves', async (t) => {
    const clock = useClock(t);
    const { pool: opened, workers, terminated } = open(t, { deaf }, { timeout: 500 });
    const task = run(opened, 'deaf');
    clock.advance(499);
    await turn();
    assert.equal(task.settled, undefined);
    clock.advance(1);
    await task.ended;
    assert.equal(
      task.settled[1].message,
      'No worker could be started: it did not call serve within its timeout',
    );
    const other = run(opened, 'deaf');
    workers[1].begin();
    await turn();
    clock.advance(1000);
    await turn();
    assert.equal(other.settled, undefined);
    assert.deepEqual(terminated(), [1, 0]);
  });

  test('for a task that was cancelled: one that ends in time leaves its worker', async (t) => {
    const clock = useClock(t);
    let end;
    const ends = (_params, { signal }) =>
      new Promise((_resolve, reject) => (end = () => reject(signal.reason)));
    const { pool: opened, workers, terminated } = open(t, { ends }, { grace: 300 });
    const task = run(opened, 'ends');
    workers[0].begin();
    await turn();
    task.stop();
    clock.advance(299);
    await turn();
    end();
    await task.ended;
    assert.deepEqual(task.settled, ['threw', 'enough']);
    clock.advance(10_000);
    await turn();
    assert.deepEqual(terminated(), [0]);
  });

  test('for a task that was cancelled: the grace period, then a fresh worker takes the place, which is said once', async (t) => {
    const clock = useClock(t);
    const warned = warnings(t);
    const { pool: opened, workers, terminated } = open(t, { deaf }, { grace: 300 });
    for (const [i, word] of [new Uint32Array(1), new Token().word].entries()) {
      const task = run(opened, 'deaf', {}, new Token(word));
      if (!i) workers[0].begin();
      await turn();
      task.stop();
      clock.advance(299);
      await turn();
      assert.deepEqual([task.settled, terminated()[i]], [undefined, 0]);
      clock.advance(1);
      await turn();
      clock.advance(0);
      await task.ended;
      assert.deepEqual([task.settled, terminated()[i]], [['threw', 'enough'], 1]);
      workers[i + 1].begin();
    }
    const [text, ...more] = await warned(1);
    assert.match(
      text,
      /deaf ran on for 300 ms .* terminated: let its loop await breathe\(\) \(docs/,
    );
    assert.deepEqual(more, []);
  });
});

describe('what is warned of', () => {
  test('a task that ran on, whose token its worker could have read', async (t) => {
    const clock = useClock(t);
    const warned = warnings(t);
    const { pool: opened, workers } = open(t, { deaf });
    const task = run(opened, 'deaf', {}, new Token());
    workers[0].begin();
    await turn();
    task.stop();
    clock.advance(1800);
    await turn();
    clock.advance(0);
    await task.ended;
    const [text] = await warned(1);
    assert.match(text, /for 1800 ms .* await breathe\(\), or read token\.cancelled \(docs/);
  });

  test('a token that is not shared, once, and only if a task takes it', async (t) => {
    const warned = warnings(t);
    const handlers = {
      leaves: () => {},
      takes: (_params, context) => void [context.token, context.token],
    };
    const { pool: opened, workers } = open(t, handlers);
    const first = run(opened, 'leaves', {}, new Token(new Uint32Array(1)));
    workers[0].begin();
    await first.ended;
    assert.deepEqual(await warned(0), []);
    for (let i = 0; i < 2; i++) await run(opened, 'takes', {}, new Token(new Uint32Array(1))).ended;
    const texts = await warned(1);
    assert.equal(texts.length, 1);
    assert.match(texts[0], /the token of the task takes is not shared with its worker/);
  });
});

describe('the grace period of an app leaves a part to its pool', () => {
  /** The properties of a signal that no other signal has. */
  function addedTo(signal) {
    const usual = Reflect.ownKeys(new AbortController().signal);
    return Reflect.ownKeys(signal).filter((key) => !usual.includes(key));
  }

  /** A call of an app whose limit that is, which is stopped once its handler runs. */
  async function stopped(t, grace, work, options) {
    let begun;
    const began = new Promise((resolve) => (begun = resolve));
    const opened = open(t, { work: (...given) => (begun(), work(...given)) }, options);
    const { port1, port2 } = new MessageChannel();
    const exposed = expose(
      {
        app: { id: 'a', name: 'A', version: '1' },
        capabilities: {
          own: opened.pool.run('work'),
          // What is handed on is the signal.
          wrapped: (params, { signal }) => opened.pool.run('work')(params, { signal }),
        },
      },
      { port: port1, limits: { grace } },
    );
    t.after(() => exposed.close());
    const limits = { grace: 1e6 };
    const client = await connect(port2, { agent: { name: 'a', version: '1' }, limits });
    const clock = useClock(t);
    t.after(async () => {
      client.close();
      await turn();
    });
    return {
      ...opened,
      clock,
      async stop(name) {
        const controller = new AbortController();
        const result = client.call(name, {}, { signal: controller.signal });
        while (!opened.workers.length) await turn();
        opened.workers.at(-1).begin();
        await began;
        controller.abort();
        return result;
      },
    };
  }

  for (const name of ['own', 'wrapped'])
    test(`and a small one, too: its worker has ended before the core gives up (${name})`, async (t) => {
      t.mock.method(console, 'warn', () => {});
      const { clock, stop, terminated } = await stopped(t, 100, deaf);
      const result = stop(name);
      while (!terminated()[0]) {
        await turn();
        clock.advance(10);
      }
      // It is the work's end that is told, not that it still runs.
      assert.equal((await result).metadata.outcome, 'stopped');
    });

  for (const name of ['own', 'wrapped'])
    test(`and a large one, too: work that takes long to stop is not cut off (${name})`, async (t) => {
      let end;
      const slow = (_params, { signal }) =>
        new Promise((_resolve, reject) => (end = () => reject(signal.reason)));
      const { clock, stop, terminated } = await stopped(t, 100_000, slow);
      const result = stop(name);
      while (!end) await turn();
      for (let i = 0; i < 20; i++) await turn();
      clock.advance(59_000);
      await turn();
      assert.deepEqual(terminated(), [0]);
      end();
      assert.equal((await result).metadata.outcome, 'stopped');
      assert.deepEqual(terminated(), [0]);
    });

  for (const [what, begin] of Object.entries({
    'a JSON-RPC peer': (handler) => {
      const { port1, port2 } = new MessageChannel();
      const [caller, callee] = [port1, port2].map((port) =>
        createPeer(portTransport(port), { dialect: 'lsp', limits: { grace: 100 } }),
      );
      callee.handle('work', (_params, { signal }) => handler(signal));
      const controller = new AbortController();
      const answer = caller.request('work', {}, { signal: controller.signal }).catch(() => {});
      const end = () => (caller.close(), callee.close());
      return { stop: () => controller.abort(), ended: answer, end };
    },
    'an A2A agent': (handler) => {
      const execute = ({ signal }) => handler(signal);
      const server = createTaskServer({ card: { name: 'A' }, execute }, { grace: 100 });
      const ask = async (method, params) => {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
        const headers = { 'content-type': 'application/json' };
        const response = await server.fetch(
          new Request('http://127.0.0.1/', { method: 'POST', headers, body }),
        );
        return (await response.json()).result;
      };
      const message = {
        kind: 'message',
        role: 'user',
        messageId: 'm',
        parts: [{ kind: 'text', text: 'go' }],
      };
      const sent = ask('message/send', { message, configuration: { blocking: false } });
      let ended;
      const stop = () => (ended = sent.then(({ id }) => ask('tasks/cancel', { id })));
      return { stop, ended: sent.then(() => ended), end: () => server.close() };
    },
  }))
    test(`and so does that of ${what}`, async (t) => {
      t.mock.method(console, 'warn', () => {});
      let begun;
      const began = new Promise((resolve) => (begun = resolve));
      const work = (...given) => (begun(), deaf(...given));
      const { pool: opened, workers, terminated } = open(t, { work });
      let given;
      const { stop, ended, end } = begin((signal) => {
        given = signal;
        return opened.run('work')({}, { signal });
      });
      t.after(end);
      while (!workers.length) await turn();
      assert.deepEqual(addedTo(given), []);
      const clock = useClock(t);
      workers[0].begin();
      await began;
      stop();
      for (let i = 0; i < 30; i++) await turn();
      clock.advance(59);
      await turn();
      assert.deepEqual(terminated(), [0]);
      clock.advance(1);
      for (let i = 0; i < 30; i++) {
        await turn();
        clock.advance(0);
      }
      assert.equal(terminated()[0], 1);
      await ended;
    });

  test('of which its own limit is the most', async (t) => {
    t.mock.method(console, 'warn', () => {});
    const { clock, stop, terminated } = await stopped(t, 100_000, deaf, { grace: 50 });
    const result = stop('own');
    for (let i = 0; i < 30; i++) await turn();
    clock.advance(50);
    while (!terminated()[0]) {
      await turn();
      clock.advance(0);
    }
    assert.equal((await result).metadata.outcome, 'stopped');
  });

  test('and the signal of a call has no property of ours', async (t) => {
    const { port1, port2 } = new MessageChannel();
    const app = { id: 'a', name: 'A', version: '1' };
    let given;
    const capabilities = { work: (_params, { signal }) => void (given = signal) };
    const exposed = expose({ app, capabilities }, { port: port1, limits: { grace: 100 } });
    t.after(() => exposed.close());
    const client = await connect(port2, { agent: { name: 'a', version: '1' } });
    await client.call('work');
    assert.equal(globalThis[LIMITS].get(given).grace, 100);
    assert.deepEqual(addedTo(given), []);
  });

  test('and to that of another copy of this library', async () => {
    const limits = globalThis[LIMITS];
    const copy = await import('../../js/common/signals.js?copy');
    await import('../../parts/workers/pool.js?copy');
    assert.equal(copy.LIMITS, LIMITS);
    assert.equal(globalThis[LIMITS], limits);
  });
});
