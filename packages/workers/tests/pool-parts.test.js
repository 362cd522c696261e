// A pool whose workers a test plays by hand, and a worker whose pool it plays: what each says, in which order, on a held clock.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, mock, test } from 'node:test';
import { useClock } from '../../../tests/support/clock.js';
import { Token, pool, serve, transfer } from '../src/pool.js';

const turn = () => new Promise(setImmediate);
const dispatch = (target, type, more) => target.dispatchEvent(Object.assign(new Event(type), more));

/** A worker of a page, played by hand. */
class Worker extends EventTarget {
  posted = [];
  terminate = mock.fn();
  ref = mock.fn();
  unref = mock.fn();
  postMessage(message, transferred) {
    if (message.params?.unsendable) throw new Error('it cannot be cloned');
    this.posted.push([message, transferred]);
  }
  /** What it was told since, by kind. */
  told() {
    return this.posted.splice(0).map(([{ pool: kind }]) => kind);
  }
  say(kind, more) {
    dispatch(this, 'message', { data: { pool: kind, ...more } });
  }
}

/** A pool of such workers. */
function open(t, options) {
  const workers = [];
  const start = () => {
    workers.push(new Worker());
    return workers.at(-1);
  };
  const opened = pool(start, { size: 1, ...options });
  t.after(() => opened.close());
  return { pool: opened, workers };
}
/** A call of a task, and how it has settled, if it has. */
function run(opened, name = 'task', params = {}, options = {}) {
  const task = { options: { signal: new AbortController().signal, ...options } };
  task.ended = opened.run(name)(params, task.options);
  task.ended.then(
    (data) => (task.settled = ['gave', data]),
    (error) => (task.settled = ['threw', error]),
  );
  return task;
}

describe('a pool', () => {
  test('starts a worker for each task that waits, up to its size, and gives each worker one at a time', async (t) => {
    const { pool: opened, workers } = open(t, { size: 2 });
    assert.equal(workers.length, 0);
    const tasks = ['a', 'b', 'c'].map((name) => run(opened, name, { of: name }));
    assert.equal(workers.length, 2);
    assert.deepEqual(opened.counters, { workers: 2, running: 0, waiting: 3 });
    workers[1].say('ready');
    assert.deepEqual(opened.counters, { workers: 2, running: 1, waiting: 2 });
    const [[message, moved]] = workers[1].posted.splice(0);
    assert.ok(message.word instanceof Uint32Array);
    assert.deepEqual([message.name, message.params, moved], ['a', { of: 'a' }, []]);
    workers[0].say('ready');
    workers[1].say('done', { data: 'A' });
    assert.equal(await tasks[0].ended, 'A');
    assert.deepEqual(
      workers.map(({ posted }) => posted.map(([{ name }]) => name)),
      [['b'], ['c']],
    );
    assert.deepEqual(opened.counters, { workers: 2, running: 2, waiting: 0 });
    workers[0].say('done');
    workers[1].say('done');
    await Promise.all(tasks.map(({ ended }) => ended));
    // One that is idle takes the next.
    void run(opened, 'd');
    assert.deepEqual([workers.length, opened.counters.running], [2, 1]);
  });

  test('has as many workers as there are processors, unless it is told', (t) => {
    const { pool: opened } = open(t, { size: undefined });
    const { size } = opened.options;
    assert.ok(size >= 1);
    assert.deepEqual(opened.options, { size, grace: 1000, timeout: 10_000, maxWaiting: 1024 });
    assert.equal(open(t, { size: 1 }).pool.options.size, 1);
    for (const wrong of [0.5, NaN]) {
      assert.throws(() => pool(() => {}, { size: wrong }), { code: 'INVALID_PARAMS' });
    }
  });

  test('does not mind what a worker without a task says, nor what is not its own', async (t) => {
    const { pool: opened, workers } = open(t);
    const task = run(opened);
    const [worker] = workers;
    const kinds = [
      'progress',
      'word',
      'unshared',
      'stream',
      'chunk',
      'done',
      'cancelled',
      'failed',
    ];
    for (const kind of kinds) worker.say(kind);
    worker.say('ready');
    for (const data of [undefined, null, 7, 'done', { other: 1 }, Object.create({ pool: 'done' })])
      dispatch(worker, 'message', { data });
    await turn();
    assert.equal(task.settled, undefined);
    worker.say('done', { data: 1 });
    for (const kind of kinds) worker.say(kind);
    assert.equal(await task.ended, 1);
    assert.equal(opened.counters.workers, 1);
  });

  test('hands over what a task says of its work, and what is to be moved', async (t) => {
    const { pool: opened, workers } = open(t);
    const progress = mock.fn();
    const token = new Token();
    const buffer = new ArrayBuffer(8);
    const task = run(opened, 'task', transfer({ buffer }, [buffer]), { progress, token });
    const [worker] = workers;
    worker.say('ready');
    assert.deepEqual(worker.posted[0][1], [buffer]);
    assert.equal(worker.posted[0][0].word, token.word);
    worker.say('progress', { info: { progress: 1 } });
    assert.deepEqual(progress.mock.calls[0].arguments, [{ progress: 1 }]);
    const word = new Uint32Array(1);
    worker.say('word', { word });
    token.cancel();
    assert.equal(word[0], 1);
    const data = { bytes: new ArrayBuffer(4) };
    worker.say('done', { data, moved: [data.bytes] });
    assert.equal(await task.ended, data);
    assert.deepEqual(worker.told(), ['task']);
  });

  test('fails a task as its worker says', async (t) => {
    const { pool: opened, workers } = open(t);
    const [failing, cancelled] = [run(opened), run(opened)];
    workers[0].say('ready');
    workers[0].say('failed', { error: { code: 'MINE', message: 'no', retryable: true } });
    await assert.rejects(failing.ended, { name: 'AbpError', code: 'MINE', retryable: true });
    workers[0].say('cancelled', { reason: 'enough' });
    await assert.rejects(cancelled.ended, { name: 'AbortError', message: 'enough' });
  });

  test('fails a task whose params cannot be sent, and its worker takes the next', async (t) => {
    const { pool: opened, workers } = open(t);
    const [mistaken, next] = [run(opened, 'a', { unsendable: true }), run(opened, 'b')];
    workers[0].say('ready');
    await assert.rejects(mistaken.ended, {
      code: 'INVALID_PARAMS',
      message: 'The parameters cannot be sent to a worker: it cannot be cloned',
    });
    assert.equal(workers[0].posted[0][0].name, 'b');
    workers[0].say('done');
    await next.ended;
  });

  test('refuses what is more than may wait', async (t) => {
    const { pool: opened, workers } = open(t, { maxWaiting: 1 });
    const [first, second] = [run(opened), run(opened)];
    await assert.rejects(second.ended, {
      ...{ code: 'RATE_LIMITED', retryable: true, retryAfter: 1000 },
      message: 'Too many tasks wait for a worker: try again later',
    });
    workers[0].say('ready');
    const third = run(opened);
    await turn();
    assert.deepEqual([first.settled, third.settled], [undefined, undefined]);
    assert.deepEqual(opened.counters, { workers: 1, running: 1, waiting: 1 });
  });

  test('that is closed ends its workers, and cancels what runs and what waits', async (t) => {
    const { pool: opened, workers } = open(t);
    const tasks = [run(opened), run(opened)];
    workers[0].say('ready');
    const closing = opened.close();
    for (const { ended } of tasks)
      await assert.rejects(ended, { name: 'AbortError', message: 'The pool was closed' });
    await closing;
    assert.equal(workers[0].terminate.mock.callCount(), 1);
    assert.deepEqual(opened.counters, { workers: 0, running: 0, waiting: 0 });
    await assert.rejects(run(opened).ended, {
      code: 'CAPABILITY_UNAVAILABLE',
      message: 'The pool is closed',
    });
    assert.equal(workers.length, 1);
  });

  test('keeps a process alive while a task runs', async (t) => {
    const { pool: opened, workers } = open(t);
    const task = run(opened);
    const [{ ref, unref }] = workers;
    const counts = () => [ref, unref].map((each) => each.mock.callCount());
    assert.deepEqual(counts(), [0, 0]);
    workers[0].say('ready');
    assert.deepEqual(counts(), [1, 1]);
    workers[0].say('done');
    await task.ended;
    assert.deepEqual(counts(), [1, 2]);
  });
});

describe('a worker that cannot start', () => {
  test('fails what waits, and is tried again for the next task', async (t) => {
    const { pool: opened, workers } = open(t);
    const tasks = [run(opened), run(opened)];
    dispatch(workers[0], 'error', { message: 'not found' });
    for (const { ended } of tasks)
      await assert.rejects(ended, {
        ...{ code: 'CAPABILITY_UNAVAILABLE', retryable: true },
        message: 'No worker could be started: not found',
      });
    assert.equal(workers[0].terminate.mock.callCount(), 1);
    assert.deepEqual([workers.length, opened.counters.workers], [1, 0]);
    void run(opened);
    assert.equal(workers.length, 2);
  });

  test('leaves what waits to the others', async (t) => {
    const { pool: opened, workers } = open(t, { size: 2 });
    const tasks = [run(opened), run(opened)];
    dispatch(workers[0], 'error', { message: 'not found' });
    await turn();
    assert.deepEqual(
      tasks.map(({ settled }) => settled),
      [undefined, undefined],
    );
    workers[1].say('ready');
    workers[1].say('done');
    workers[1].say('done');
    await Promise.all(tasks.map(({ ended }) => ended));
  });

  test('is given up when it has said nothing within its timeout', async (t) => {
    const clock = useClock(t);
    const { pool: opened, workers } = open(t, { timeout: 500 });
    const task = run(opened);
    clock.advance(499);
    await turn();
    assert.equal(task.settled, undefined);
    clock.advance(1);
    await assert.rejects(task.ended, {
      message: 'No worker could be started: it did not call serve within its timeout',
    });
    const other = run(opened);
    workers[1].say('ready');
    clock.advance(1000);
    await turn();
    assert.equal(other.settled, undefined);
    assert.equal(workers[1].terminate.mock.callCount(), 0);
  });

  test('because its constructor throws says why, once for all that waits', async (t) => {
    const start = mock.fn(() => {
      throw new Error('forbidden');
    });
    const opened = pool(start, { size: 4 });
    t.after(() => opened.close());
    await assert.rejects(run(opened).ended, { message: 'No worker could be started: forbidden' });
    assert.equal(start.mock.callCount(), 1);
  });

  test('that runs and is lost fails its task, and the next has a fresh one', async (t) => {
    const workers = [];
    /** A worker of Node, which tells of errors at any time. */
    const start = () => {
      const heard = new Map();
      const worker = {
        on: (type, on) => void heard.set(type, on),
        off: (type) => void heard.delete(type),
        emit: (type, given) => heard.get(type)?.(given),
        postMessage() {},
        terminate: mock.fn(async () => {}),
      };
      workers.push(worker);
      return worker;
    };
    const opened = pool(start, { size: 1 });
    t.after(() => opened.close());
    const tasks = [run(opened), run(opened)];
    workers[0].emit('message', { pool: 'ready' });
    workers[0].emit('error', new Error('out of memory'));
    await assert.rejects(tasks[0].ended, {
      code: 'OPERATION_FAILED',
      message: 'The worker failed: out of memory',
    });
    assert.equal(workers.length, 2);
    assert.equal(workers[0].terminate.mock.callCount(), 1);
    workers[1].emit('message', { pool: 'ready' });
    workers[1].emit('message', { pool: 'done', data: 2 });
    assert.equal(await tasks[1].ended, 2);
    // One that is idle is missed by nobody.
    workers[1].emit('exit', 1);
    assert.deepEqual(opened.counters, { workers: 0, running: 0, waiting: 0 });
    const mute = run(opened);
    workers[2].emit('error', undefined);
    await assert.rejects(mute.ended, {
      message: 'No worker could be started: it threw something that says nothing',
    });
  });
});

describe('a task that is cancelled', () => {
  const cancellable = () => {
    const controller = new AbortController();
    return { controller, signal: controller.signal, token: new Token() };
  };

  test('while it waits never reaches a worker', async (t) => {
    const { pool: opened, workers } = open(t);
    const { controller, ...options } = cancellable();
    const [running, waiting] = [run(opened), run(opened, 'b', {}, options)];
    controller.abort('why');
    await waiting.ended.catch(() => {});
    assert.deepEqual(waiting.settled, ['threw', 'why']);
    assert.equal(options.token.cancelled, true);
    workers[0].say('ready');
    workers[0].say('done');
    await running.ended;
    assert.deepEqual(workers[0].told(), ['task']);
    const early = run(opened, 'c', {}, { signal: AbortSignal.abort('before') });
    await early.ended.catch(() => {});
    assert.deepEqual(early.settled, ['threw', 'before']);
    assert.deepEqual(workers[0].told(), []);
    assert.deepEqual(getEventListeners(options.signal, 'abort'), []);
  });

  test('is asked to stop once, with the reason, and may still succeed', async (t) => {
    const { pool: opened, workers } = open(t);
    const { controller, ...options } = cancellable();
    const task = run(opened, 'a', {}, options);
    workers[0].say('ready');
    assert.equal(options.token.cancelled, false);
    controller.abort(new Error('enough'));
    assert.equal(options.token.cancelled, true);
    assert.deepEqual(workers[0].posted.at(-1)[0], { pool: 'abort', reason: 'enough' });
    workers[0].say('done', { data: 'after all' });
    assert.equal(await task.ended, 'after all');
    assert.deepEqual(getEventListeners(options.signal, 'abort'), []);
    assert.deepEqual(workers[0].told(), ['task', 'abort']);
  });

  test('and ends by itself within the grace period leaves its worker', async (t) => {
    const clock = useClock(t);
    const { pool: opened, workers } = open(t, { grace: 300 });
    const { controller, ...options } = cancellable();
    const task = run(opened, 'a', {}, options);
    workers[0].say('ready');
    controller.abort('enough');
    clock.advance(299);
    workers[0].say('cancelled', { reason: 'enough' });
    await task.ended.catch(() => {});
    assert.deepEqual(task.settled, ['threw', 'enough']);
    clock.advance(10_000);
    assert.deepEqual([workers.length, workers[0].terminate.mock.callCount()], [1, 0]);
  });

  test('and runs on loses its worker to a fresh one, which is said once', async (t) => {
    const clock = useClock(t);
    const warned = t.mock.method(console, 'warn', () => {});
    const { pool: opened, workers } = open(t, { grace: 300 });
    for (const [i, word] of [new Uint32Array(1), new Token().word].entries()) {
      const { controller, ...options } = cancellable();
      options.token = new Token(word);
      const task = run(opened, 'deaf', {}, options);
      if (!i) workers[0].say('ready');
      controller.abort('enough');
      clock.advance(299);
      await turn();
      assert.equal(task.settled, undefined);
      assert.equal(workers[i].terminate.mock.callCount(), 0);
      clock.advance(1);
      await task.ended.catch(() => {});
      assert.deepEqual(task.settled, ['threw', 'enough']);
      assert.equal(workers[i].terminate.mock.callCount(), 1);
      assert.equal(workers.length, i + 2);
      workers[i + 1].say('ready');
    }
    while (!warned.mock.callCount()) await turn();
    await turn();
    assert.equal(warned.mock.callCount(), 1);
    assert.match(
      warned.mock.calls[0].arguments[0],
      /the task deaf ran on for 300 ms after its cancel, so its worker was terminated: let its loop await breathe\(\) \(docs/,
    );
  });

  test('whose token its worker may read is told how to do that', async (t) => {
    const clock = useClock(t);
    const warned = t.mock.method(console, 'warn', () => {});
    const { pool: opened, workers } = open(t);
    const { controller, ...options } = cancellable();
    const task = run(opened, 'deaf', {}, options);
    workers[0].say('ready');
    controller.abort();
    clock.advance(1000);
    await task.ended.catch(() => {});
    while (!warned.mock.callCount()) await turn();
    assert.match(
      warned.mock.calls[0].arguments[0],
      /for 1000 ms .* let its loop await breathe\(\), or read token\.cancelled \(docs/,
    );
  });

  test('cannot be without a signal, which is said once, and a token without shared memory, too', async (t) => {
    const warned = t.mock.method(console, 'warn', () => {});
    const { pool: opened, workers } = open(t);
    void opened
      .run('a')({}, {})
      .catch(() => {});
    void opened
      .run('b')({}, {})
      .catch(() => {});
    void opened
      .run('c')()
      .catch(() => {});
    workers[0].say('ready');
    workers[0].say('unshared');
    workers[0].say('unshared');
    while (warned.mock.callCount() < 2) await turn();
    await turn();
    const texts = warned.mock.calls.map(({ arguments: [text] }) => text);
    assert.equal(texts.length, 2);
    assert.match(texts[0], /a pool task cannot be cancelled, because its options have no signal/);
    assert.match(texts[1], /the token of the task a is not shared with its worker/);
  });
});

describe('a task that streams', () => {
  test('is asked for each chunk, and ends with what it returned', async (t) => {
    const { pool: opened, workers } = open(t);
    const task = run(opened);
    const [worker] = workers;
    worker.say('ready');
    worker.say('chunk', { data: 'too early' });
    worker.say('stream');
    const stream = await task.ended;
    assert.deepEqual(worker.told(), ['task']);
    const first = stream.next();
    assert.deepEqual(worker.told(), ['next']);
    worker.say('chunk', { data: 1 });
    assert.deepEqual(await first, { done: false, value: 1 });
    const last = stream.next();
    worker.say('done', { data: 'end' });
    assert.deepEqual(await last, { done: true, value: 'end' });
    worker.told();
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    assert.deepEqual(worker.told(), []);
    assert.equal(opened.counters.running, 0);
  });

  test('is stopped when its reader leaves, and throws as it failed', async (t) => {
    const { pool: opened, workers } = open(t);
    const [left, failed] = [run(opened), run(opened)];
    const [worker] = workers;
    worker.say('ready');
    worker.say('stream');
    const stream = await left.ended;
    const leaving = [stream.return(), stream.return()];
    assert.deepEqual(worker.posted.splice(0).slice(1), [
      [{ pool: 'abort', reason: 'The reader stopped reading the stream' }, []],
    ]);
    worker.say('cancelled', { reason: 'x' });
    await Promise.all(leaving);
    worker.say('stream');
    const other = await failed.ended;
    const next = other.next();
    worker.say('failed', { error: { code: 'MINE', message: 'torn', retryable: false } });
    await assert.rejects(next, { code: 'MINE', message: 'torn' });
  });
});

describe('a worker that serves', () => {
  /** The port to its pool, played by hand. */
  class Port extends EventTarget {
    said = [];
    start = mock.fn();
    postMessage(message, transferred) {
      if (message.data?.unsendable) throw new Error('it cannot be cloned');
      this.said.push(message);
      this.moved = transferred;
    }
    tell(kind, more) {
      dispatch(this, 'message', { data: { pool: kind, ...more } });
    }
    /** Gives it a task, and waits for what becomes of it. */
    async outcome(name, params, word = new Token().word) {
      this.said = [];
      this.tell('task', { name, params, word });
      await this.until('done', 'failed', 'cancelled');
      return this.said.at(-1);
    }
    async until(...kinds) {
      while (!kinds.includes(this.said.at(-1)?.pool)) await turn();
    }
  }
  const serving = (handlers) => {
    const port = new Port();
    serve(handlers, port);
    return port;
  };

  test('says that it is ready, once for each port', () => {
    const port = serving({});
    assert.deepEqual([port.said, port.moved], [[{ pool: 'ready' }], []]);
    assert.equal(port.start.mock.callCount(), 1);
    assert.throws(() => serve({}, port), { code: 'ALREADY_INITIALIZED' });
    assert.throws(() => serve({}, null), {
      code: 'NOT_SUPPORTED',
      message: 'serve must be called in a worker',
    });
    port.start = undefined;
    serving({});
  });

  test('runs what it serves, and nothing that is inherited', async () => {
    const bytes = new ArrayBuffer(4);
    const port = serving({
      echo: (params) => params,
      moves: () => transfer({ bytes }, [bytes]),
      fails: () => Promise.reject(new Error('no')),
      unsendable: () => ({ unsendable: true }),
    });
    assert.deepEqual(await port.outcome('echo', 7), { pool: 'done', data: 7, moved: undefined });
    assert.deepEqual((await port.outcome('moves')).moved, [bytes]);
    assert.deepEqual(port.moved, [bytes]);
    for (const [name, code, message] of [
      ['fails', 'OPERATION_FAILED', 'no'],
      ['toString', 'INTERNAL_ERROR', 'The worker does not serve toString'],
      ['unsendable', 'OPERATION_FAILED', 'The result cannot be sent: it cannot be cloned'],
    ]) {
      const { pool: kind, error } = await port.outcome(name);
      assert.deepEqual([kind, error.code, error.message], ['failed', code, message]);
    }
  });

  test('stops a task when it is told to, and says that it was cancelled', async () => {
    const heard = [];
    const port = serving({
      waits: (_params, { signal, token }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            heard.push(signal.reason.message, token.cancelled);
            reject(signal.reason);
          });
        }),
      breathes: async (_params, { breathe }) => {
        for (;;) await (breathe() ?? turn());
      },
    });
    port.tell('abort', { reason: 'nothing runs' });
    port.tell('next');
    for (const name of ['waits', 'breathes']) {
      const outcome = port.outcome(name);
      port.tell('abort', { reason: 'enough' });
      assert.deepEqual(await outcome, { pool: 'cancelled', reason: 'enough' });
    }
    assert.deepEqual(heard, ['enough', true]);
    const { word } = new Token();
    const outcome = port.outcome('breathes', {}, word);
    new Token(word).cancel();
    assert.equal((await outcome).pool, 'cancelled');
  });

  test('tells progress and words of the task that runs, and of no other', async () => {
    let left;
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const port = serving({
      task: (_params, context) => {
        left ??= context;
        context.progress({ progress: 1 });
        context.token.bind(memory, 4);
      },
    });
    await port.outcome('task');
    const [progress, word] = port.said;
    assert.deepEqual(progress, { pool: 'progress', info: { progress: 1 } });
    assert.deepEqual([word.pool, word.word.byteOffset], ['word', 4]);
    const { length } = port.said;
    left.progress({ progress: 2 });
    assert.equal(port.said.length, length);
  });

  test('tells once that a token is not shared', async () => {
    const port = serving({ reads: (_params, { token }) => token.cancelled });
    const kinds = () => port.said.map(({ pool: kind }) => kind);
    await port.outcome('reads');
    assert.deepEqual(kinds(), ['done']);
    const other = serving({ reads: (_params, context) => [context.token, context.token].length });
    await other.outcome('reads', {}, new Uint32Array(1));
    assert.deepEqual(
      other.said.map(({ pool: kind }) => kind),
      ['unshared', 'done'],
    );
    await other.outcome('reads', {}, new Uint32Array(1));
    assert.equal(other.said.length, 1);
  });

  test('makes a chunk when it is asked for one, and unwinds when it is stopped', async () => {
    const ended = mock.fn();
    const bytes = new ArrayBuffer(4);
    const port = serving({
      async *streams({ torn }) {
        try {
          yield transfer({ bytes }, [bytes]);
          yield torn ? { unsendable: true } : 2;
          return 'end';
        } finally {
          ended();
        }
      },
    });
    const begin = async (params = {}) => {
      port.said = [];
      port.tell('task', { name: 'streams', params, word: new Token().word });
      await port.until('stream');
      await turn();
      assert.equal(port.said.length, 1);
      port.tell('next');
      await port.until('chunk');
      assert.deepEqual(port.said.at(-1), { pool: 'chunk', data: { bytes }, moved: [bytes] });
      assert.deepEqual(port.moved, [bytes]);
      port.tell('next');
    };
    await begin();
    port.tell('next');
    await port.until('done');
    assert.deepEqual(port.said.slice(2), [
      { pool: 'chunk', data: 2, moved: undefined },
      { pool: 'done', data: 'end', moved: undefined },
    ]);
    await begin({ torn: true });
    await port.until('failed');
    assert.match(port.said.at(-1).error.message, /^A chunk cannot be sent: it cannot be cloned/);
    await begin();
    await turn();
    port.tell('abort', { reason: 'enough' });
    await port.until('cancelled');
    assert.equal(port.said.at(-1).reason, 'enough');
    assert.equal(ended.mock.callCount(), 3);
  });
});
