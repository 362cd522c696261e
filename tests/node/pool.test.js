// Work that never returns to the event loop is stopped: by its token, or by ending its worker.
// Other calls go on.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { afterEach, describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { connect, expose } from '../../parts/main/index.js';
import { pool } from '../../parts/workers/pool.js';

const script = new URL('../support/workers/pool.js', import.meta.url);

/** The workers of a test, and those that still run. */
let made, running;
/** @type {import('../../parts/workers/pool.js').Pool} */
let workers;
const start = (workerData) => () => {
  const worker = new Worker(script, { workerData: workerData ?? {} });
  made.push(worker);
  running.add(worker);
  worker.exited = new Promise((resolve) => worker.on('exit', resolve));
  worker.exited.then(() => running.delete(worker));
  return worker;
};
const open = (options, workerData) => {
  made = [];
  running = new Set();
  workers = pool(start(workerData), { size: 1, ...options });
  return workers;
};
afterEach(() => workers.close());

/** Runs a task and resolves when it says that it has started. */
function started(name, { signal } = {}) {
  return new Promise((resolve, reject) => {
    const ended = workers.run(name)({}, { signal, progress: () => resolve({ ended }) });
    ended.catch(reject);
  });
}

/** An app whose capabilities run in the pool, and its agent. */
async function pair(names, limits) {
  const { port1, port2 } = new MessageChannel();
  const capabilities = Object.fromEntries(names.map((name) => [name, workers.run(name)]));
  const app = expose(
    { app: { id: 'a', name: 'A', version: '1' }, capabilities },
    { port: port1, limits },
  );
  const client = await connect(port2, { agent: { name: 'a', version: '1' } });
  /** Calls, and resolves when the handler says that it has started. */
  const call = (name, options) =>
    new Promise((resolve, reject) => {
      const result = client.call(name, {}, { ...options, onProgress: () => resolve({ result }) });
      void result.then(({ error }) => reject(error));
    });
  return { app, client, call };
}

describe('a task that streams', () => {
  /**
   * Runs `rows`; `made` is how many rows there were, and `ended` resolves when its `finally` runs.
   */
  async function rows(params, options) {
    const state = { made: 0 };
    state.ended = new Promise((resolve) => {
      state.progress = ({ progress, total }) => {
        state.made = total ?? progress;
        if (progress < 0) resolve();
      };
    });
    const { progress } = state;
    state.stream = await workers.run('rows')(params, { ...options, progress });
    return state;
  }
  const { signal } = new AbortController();

  test('makes each chunk when it is asked for, and then its worker is free', async () => {
    open();
    const { stream, ...state } = await rows({ count: 5 }, { signal });
    const next = workers.run('echo')('next', { signal });
    assert.deepEqual(workers.counters, { workers: 1, running: 1, waiting: 1 });
    assert.equal(state.made, 0);
    assert.deepEqual(await stream.next(), { done: false, value: 0 });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert.deepEqual(chunks, [1, 2, 3, 4]);
    await state.ended;
    assert.equal(await next, 'next');
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    const asked = (await rows({ count: 1 }, { signal })).stream;
    assert.deepEqual(await Promise.all([asked.next(), asked.next(), asked.next()]), [
      { done: false, value: 0 },
      { done: true, value: 'all rows' },
      { done: true, value: undefined },
    ]);
    assert.equal(made.length, 1);
  });

  test('unwinds when its reader leaves, when its signal fires, and when it throws', async () => {
    open();
    const left = await rows({ count: Infinity }, { signal });
    let hasEnded = false;
    void left.ended.then(() => (hasEnded = true));
    for await (const chunk of left.stream) if (chunk === 3) break;
    // Who leaves goes on when its source has ended, as with any generator.
    assert.ok(hasEnded);
    assert.equal(left.made, 4);
    assert.equal(await workers.run('echo')('free', { signal }), 'free');
    const controller = new AbortController();
    const stopped = await rows({ count: Infinity }, { signal: controller.signal });
    await stopped.stream.next();
    controller.abort(new Error('enough'));
    await stopped.ended;
    await assert.rejects(stopped.stream.next(), { message: 'enough' });
    const failed = await rows({ count: 1, fails: true }, { signal });
    assert.equal((await failed.stream.next()).value, 0);
    await assert.rejects(failed.stream.next(), { code: 'X', message: 'no ink' });
    const odd = await workers.run('odd')({}, { signal });
    assert.equal((await odd.next()).value, 'even');
    await assert.rejects(odd.next(), {
      code: 'OPERATION_FAILED',
      message: /A chunk cannot be sent/,
    });
    const lost = await rows({ count: Infinity }, { signal });
    await lost.stream.next();
    await workers.close();
    await assert.rejects(lost.stream.next(), { name: 'AbortError' });
    assert.equal(made.length, 1);
  });

  test('reaches the agent chunk by chunk', async () => {
    open();
    const { app, client } = await pair(['rows']);
    const stream = client.stream('rows', { count: 200 });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert.deepEqual(chunks, [...Array(200).keys()]);
    assert.equal((await stream.response).data, 'all rows');
    const left = client.stream('rows', { count: Infinity });
    for await (const chunk of left) if (chunk === 10) break;
    assert.equal((await left.response).cancelled, true);
    assert.equal((await client.call('rows', { count: 2 })).data, 'all rows');
    client.close();
    app.close();
  });

  for (const [name, chunks, outcome] of [
    ['fails_to_end', 3, 'failed'],
    ['closed', 1, 'finished'],
    ['rows', 3, 'stopped'],
  ])
    test(`and is stopped is told as what it was: ${name}: ${outcome}`, async (t) => {
      t.mock.method(console, 'error', () => {});
      open();
      const { app, client } = await pair([name], { streamChunks: 1 });
      let says;
      const said = new Promise((resolve) => (says = resolve));
      const stream = client.stream(name, { count: Infinity }, { onProgress: says });
      for (let i = 0; i < chunks; i++) assert.equal((await stream.next()).done, false);
      if (name === 'closed') await said;
      await stream.return();
      const { cancelled, metadata } = await stream.response;
      assert.deepEqual([cancelled, metadata.outcome], [true, outcome]);
      client.close();
      app.close();
    });
});

describe('a task', () => {
  test('gives its result, moves what is to be moved, and reports progress until it ends', async () => {
    open();
    assert.deepEqual(await workers.run('echo')({ a: [1] }), { a: [1] });
    const content = new ArrayBuffer(1 << 20);
    assert.equal(await workers.run('size')({ content, mimeType: 'a/b' }), 1 << 20);
    assert.equal(content.byteLength, 0);
    assert.equal((await workers.run('bytes')({ size: 1000 })).content.byteLength, 1000);
    const seen = [];
    const progress = (info) => seen.push(info.progress);
    await workers.run('talks')({}, { progress });
    await workers.run('isInterrupted')({}, { progress });
    // In one turn, of which the first and the last are told.
    assert.deepEqual([seen[0], seen.at(-1)], [1, 3]);
    assert.equal(made.length, 1);
  });

  test('of a call hands its buffers on to the agent, those that transfer marks and those of BinaryData', async () => {
    open();
    const { client } = await pair(['moved', 'bytes']);
    assert.equal((await client.call('moved', { size: 1000 })).data.pixels.byteLength, 1000);
    assert.equal((await client.call('bytes', { size: 1000 })).data.content.byteLength, 1000);
    client.close();
  });

  test('that throws fails with its error, code and details', async () => {
    open();
    const { client } = await pair([
      'fails',
      'unsendable',
      'unsendableError',
      'nothing',
      'toString',
    ]);
    const { error } = await client.call('fails');
    assert.deepEqual(error, {
      code: 'RENDER_ERROR',
      message: 'no ink',
      retryable: true,
      details: { page: 3 },
    });
    const unsendable = await client.call('unsendable');
    assert.equal(unsendable.error.code, 'OPERATION_FAILED');
    assert.match(unsendable.error.message, /^The result cannot be sent: /);
    assert.equal((await client.call('unsendableError')).error.code, 'OPERATION_FAILED');
    for (const name of ['nothing', 'toString'])
      assert.match(
        (await client.call(name)).error.message,
        // It has more than twenty.
        new RegExp(`does not serve ${name}: it serves echo, marks, (\\w+, ){18}…$`),
      );
    await assert.rejects(workers.run('echo')({ f() {} }), { code: 'INVALID_PARAMS' });
    await assert.rejects(workers.run('echo')(1, { signal: new AbortController() }), {
      code: 'INVALID_PARAMS',
      message: 'signal of a task must be an AbortSignal',
    });
    assert.equal(await workers.run('echo')('still there'), 'still there');
    assert.equal(made.length, 1);
    client.close();
  });

  test('whose worker ends fails, and the next one has a fresh worker', async () => {
    open();
    for (const name of ['exits', 'throwsLater']) {
      await assert.rejects(workers.run(name)(), { code: 'OPERATION_FAILED' });
      assert.equal(await workers.run('echo')(1), 1);
    }
    assert.equal(made.length, 3);
  });
});

describe('a task that is cancelled', () => {
  test('and asks its token is stopped in the midst of its computation; its worker goes on', async () => {
    open({ grace: 60_000 });
    const { client, call } = await pair(['asks', 'echo']);
    const controller = new AbortController();
    const { result } = await call('asks', { signal: controller.signal });
    controller.abort('the user pressed stop');
    const { success, cancelled, error } = await result;
    assert.deepEqual([success, cancelled, error.message], [false, true, 'the user pressed stop']);
    assert.equal((await client.call('echo', 'same worker')).data, 'same worker');
    assert.equal(made.length, 1);
    client.close();
  });

  test('by the clock, too', async () => {
    open({ grace: 60_000 });
    const { client } = await pair(['asks', 'echo']);
    const { cancelled, error } = await client.call('asks', {}, { timeout: 300 });
    assert.deepEqual([cancelled, error.code], [true, 'TIMEOUT']);
    assert.equal((await client.call('echo', 1)).data, 1);
    assert.equal(made.length, 1);
    client.close();
  });

  test('because its agent has gone, too', async () => {
    open({ grace: 60_000 });
    const { client, call } = await pair(['asks']);
    await call('asks');
    client.close();
    assert.equal(await workers.run('echo')(1), 1);
    assert.equal(made.length, 1);
  });

  test('and yields hears its signal, with the reason', async () => {
    open({ grace: 60_000 });
    const controller = new AbortController();
    const { ended } = await started('yields', controller);
    controller.abort(new Error('enough'));
    assert.deepEqual(await ended, { cancelled: true, reason: 'enough', name: 'AbortError' });
  });

  test('and never asks is stopped by ending its worker; a fresh one answers, and other calls notice nothing', async () => {
    open({ size: 2, grace: 500 });
    const { client, call } = await pair(['asks', 'deaf', 'echo']);
    const controllers = [new AbortController(), new AbortController()];
    const { result: neighbour } = await call('asks', { signal: controllers[0].signal });
    const { result } = await call('deaf', { signal: controllers[1].signal });
    const waiting = client.call('echo', 'waited');
    const [, deaf] = made;
    controllers[1].abort('stop');
    const { cancelled, error } = await result;
    assert.deepEqual([cancelled, error.message], [true, 'stop']);
    // The result tells that the work has stopped.
    assert.equal(running.has(deaf), false);
    assert.equal((await waiting).data, 'waited');
    assert.equal((await client.call('echo', 'again')).data, 'again');
    assert.equal(made.length, 3);
    assert.equal(await Promise.race([neighbour, Promise.resolve('runs')]), 'runs');
    controllers[0].abort();
    assert.equal((await neighbour).cancelled, true);
    client.close();
  });

  test('and computes in WebAssembly is stopped by the word of its memory that was bound', async () => {
    open({ grace: 60_000 });
    const wasm = readFileSync(new URL('../../build/wasm/sieve.wasm', import.meta.url));
    const count = (limit, options) => workers.run('sieve')({ wasm, limit }, options);
    if (typeof WebAssembly === 'undefined') {
      // Where there is none, the pool does without it: only such a task cannot run.
      await assert.rejects(count(100), { message: /WebAssembly/ });
      return;
    }
    assert.equal(await count(1_000_000), 78_498);
    const controller = new AbortController();
    const progress = () => controller.abort();
    assert.equal(await count(2 ** 32 - 1, { signal: controller.signal, progress }), -1);
    // Each task has its word anew.
    assert.equal(await count(1_000_000), 78_498);
    assert.equal(made.length, 1);
    await assert.rejects(workers.run('bindsItsOwn')(), { message: /shared memory/ });
  });

  test('while it waits never runs', async () => {
    open();
    const controllers = [new AbortController(), new AbortController()];
    const { ended } = await started('asks', controllers[0]);
    const waits = workers.run('asks')({}, { ...controllers[1], signal: controllers[1].signal });
    assert.deepEqual(workers.counters, { workers: 1, running: 1, waiting: 1 });
    controllers[1].abort();
    await assert.rejects(waits, { name: 'AbortError' });
    assert.deepEqual(getEventListeners(controllers[1].signal, 'abort'), []);
    assert.deepEqual(workers.counters, { workers: 1, running: 1, waiting: 0 });
    controllers[0].abort();
    await assert.rejects(ended, { name: 'AbortError' });
  });

  test('before it is handed over starts no worker', async () => {
    open();
    await assert.rejects(workers.run('echo')(1, { signal: AbortSignal.abort() }), {
      name: 'AbortError',
    });
    assert.equal(made.length, 0);
  });

  test('a task that breathes stops by itself, with the reason', async () => {
    open({ grace: 60_000 });
    const { client, call } = await pair(['breathes', 'echo']);
    const controller = new AbortController();
    const { result } = await call('breathes', { signal: controller.signal });
    controller.abort('enough');
    const { cancelled, error } = await result;
    assert.deepEqual([cancelled, error.message], [true, 'enough']);
    assert.equal((await client.call('echo', 1)).data, 1);
    client.close();
    assert.equal(made.length, 1);
  });

  test('a task that runs on is named in the console, once', async (t) => {
    const warn = t.mock.method(console, 'warn', () => {});
    open({ grace: 1 });
    const { client, call } = await pair(['deaf']);
    for (let round = 0; round < 2; round++) {
      const controller = new AbortController();
      const { result } = await call('deaf', { signal: controller.signal });
      controller.abort();
      assert.equal((await result).cancelled, true);
    }
    client.close();
    const told = warn.mock.calls.map(({ arguments: [text] }) => text);
    assert.equal(told.length, 1);
    assert.match(
      told[0],
      /the task deaf ran on for 1 ms .* terminated: let its loop await breathe/,
    );
  });

  test('a hundred times leaves no worker, no listener and no timer behind', async () => {
    open({ size: 4, grace: 20 });
    const { client, call } = await pair(['asks', 'deaf', 'echo'], { maxConcurrent: 4 });
    const timers = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    for (let round = 0; round < 25; round++) {
      await Promise.all(
        ['asks', 'asks', 'asks', 'deaf'].map(async (name) => {
          const controller = new AbortController();
          const { result } = await call(name, { signal: controller.signal });
          controller.abort();
          assert.equal((await result).cancelled, true);
        }),
      );
    }
    assert.equal((await client.call('echo', 1)).data, 1);
    assert.ok(made.length >= 4 + 25);
    const { signal } = new AbortController(); // one that outlives its tasks
    await workers.run('echo')(1, { signal });
    await assert.rejects(workers.run('fails')(1, { signal }));
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
    client.close();
    await workers.close();
    assert.equal(running.size, 0);
    assert.ok(timers() <= before);
    assert.deepEqual(workers.counters, { workers: 0, running: 0, waiting: 0 });
  });
});

describe('a worker that cannot start', () => {
  test('fails what waits for it, and is not tried again until there is more to do', async () => {
    open({ size: 3 }, { throws: true });
    const all = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => workers.run('echo')(n)));
    for (const { reason } of all) {
      assert.deepEqual([reason.code, reason.retryable], ['CAPABILITY_UNAVAILABLE', true]);
      assert.match(reason.message, /broken at the start/);
    }
    assert.equal(made.length, 3);
    await assert.rejects(workers.run('echo')(6), { code: 'CAPABILITY_UNAVAILABLE' });
    assert.equal(made.length, 4);
  });

  test('because its constructor throws, or its script is missing, says why', async () => {
    workers = pool(() => {
      throw new DOMException('not by this policy', 'SecurityError');
    });
    await assert.rejects(workers.run('x')(), { message: /not by this policy/ });
    workers = pool(() => new Worker(new URL('missing.js', import.meta.url)));
    await assert.rejects(workers.run('x')(), { message: /missing\.js/ });
  });

  test('because it never says that it serves, is ended', async () => {
    open({ timeout: 50 }, { silent: true });
    await assert.rejects(workers.run('echo')(1), { message: /did not call serve/ });
    await made[0].exited;
  });

  test('because it serves twice, is no worker: it would answer twice', async () => {
    open({}, { twice: true });
    await assert.rejects(workers.run('echo')(1), { message: /serve was already called/ });
  });

  test('leaves what waits to the others', async () => {
    let starts = 0;
    open({ size: 2, grace: 60_000 });
    const good = start();
    const bad = start({ throws: true });
    workers = pool(() => (starts++ === 1 ? bad() : good()), { size: 2 });
    const controller = new AbortController();
    const { ended } = await started('asks', controller);
    const waits = workers.run('echo')('served');
    await made[1].exited;
    controller.abort();
    await assert.rejects(ended, { name: 'AbortError' });
    assert.equal(await waits, 'served');
  });
});

test('a task whose options have no signal cannot be cancelled, which is said once', async (t) => {
  const said = t.mock.method(console, 'warn', () => {});
  open();
  const { signal } = new AbortController();
  await workers.run('echo')({ n: 1 });
  await workers.run('echo')({ n: 1 }, { signal });
  await workers.run('echo')({ n: 1 }, { signal: undefined });
  assert.equal(said.mock.callCount(), 0);
  for (let i = 0; i < 2; i++) await workers.run('echo')({ n: 1 }, { progress() {} });
  assert.match(said.mock.calls[0].arguments[0], /no signal: pass the handler's context/);
  assert.equal(said.mock.callCount(), 1);
});

test('an option that is undefined is its default', async () => {
  const undefinedOnes = { size: undefined, grace: undefined, timeout: undefined };
  workers = pool(start(), { ...undefinedOnes, maxWaiting: undefined });
  const size = globalThis.navigator?.hardwareConcurrency ?? availableParallelism();
  assert.deepEqual(workers.options, { size, grace: Infinity, timeout: 10_000, maxWaiting: 1024 });
});

test('a time that is infinite is never over', async () => {
  open({ timeout: Infinity });
  assert.equal(await workers.run('echo')(1), 1);
});

test('more than may wait is refused as RATE_LIMITED', async () => {
  open({ maxWaiting: 2 });
  const controller = new AbortController();
  const { ended } = await started('asks', controller);
  const waits = [workers.run('echo')(1), workers.run('echo')(2)];
  const refused = { code: 'RATE_LIMITED', retryable: true, retryAfter: 1000 };
  await assert.rejects(workers.run('echo')(3), refused);
  controller.abort();
  await assert.rejects(ended);
  assert.deepEqual(await Promise.all(waits), [1, 2]);
});

test('closing ends the workers; what runs and what waits is cancelled, and nothing more is taken', async () => {
  open();
  const { client, call } = await pair(['deaf', 'echo']);
  const { result } = await call('deaf');
  const waits = client.call('echo', 1);
  while (workers.counters.waiting === 0) await new Promise(setImmediate);
  await workers.close();
  assert.equal(running.size, 0);
  assert.deepEqual([(await result).cancelled, (await waits).cancelled], [true, true]);
  assert.equal((await client.call('echo')).error.code, 'CAPABILITY_UNAVAILABLE');
  client.close();
});

test('a pool that has nothing to do does not keep the process alive', async () => {
  const code = `
    import { Worker } from 'node:worker_threads';
    import { pool } from '${new URL('../../parts/workers/pool.js', import.meta.url)}';
    const workers = pool(() => new Worker(new URL('${script}'), { execArgv: [], workerData: {} }));
    const wrong = workers.run('echo')({ unsendable() {} });
    await wrong.catch(({ code }) => console.log(code));
    console.log(await workers.run('echo')('done'));
    await workers.run('echo')({ unsendable() {} }).catch(({ code }) => console.log(code));`;
  const { execFileSync } = await import('node:child_process');
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.deepEqual(output.trim().split('\n'), ['INVALID_PARAMS', 'done', 'INVALID_PARAMS']);
});

test('a handler in the page has a token, too: set before its signal fires, and known to who asks late', async () => {
  const { port1, port2 } = new MessageChannel();
  const seen = [];
  const handler = (early) => (_params, context) =>
    new Promise((_resolve, reject) => {
      const token = early && context.token;
      context.progress({ progress: 0 });
      context.signal.addEventListener('abort', () => {
        const { cancelled } = token || context.token;
        seen.push(cancelled);
        assert.throws(() => context.token.throwIfCancelled(), { name: 'AbortError' });
        reject(context.signal.reason);
      });
    });
  expose(
    {
      app: { id: 'a', name: 'A', version: '1' },
      capabilities: { early: handler(true), late: handler(false) },
    },
    { port: port1 },
  );
  const client = await connect(port2, { agent: { name: 'a', version: '1' } });
  for (const name of ['early', 'late']) {
    const controller = new AbortController();
    const onProgress = () => controller.abort();
    await client.call(name, {}, { signal: controller.signal, onProgress });
  }
  assert.deepEqual(seen, [true, true]);
  client.close();
});

describe('a thread that dies in its task', () => {
  const { signal } = new AbortController();
  for (const [what, name, why, workerOptions] of [
    ['exits', 'exits', /exited with code 3/],
    ['throws where nobody catches it', 'throwsLater', /there/],
    ['throws in a timer', 'throwsInATimer', /there/],
    ['throws a text', 'throwsText', /: out of ink$/],
    ['throws an object', 'throwsObject', /: {"ink":"out"}$/],
    ['throws nothing', 'throwsNothing', /: it threw something that says nothing$/],
    ['rejects where nobody catches it', 'rejectsLater', /no ink/],
    ['exhausts its memory', 'exhausts', /memory/, { maxOldGenerationSizeMb: 16 }],
  ])
    test(`because it ${what} fails it, and those behind it go on`, async () => {
      open();
      const limited = pool(
        () => {
          const worker = new Worker(script, { workerData: {}, resourceLimits: workerOptions });
          made.push(worker);
          return worker;
        },
        { size: 1 },
      );
      const capabilities = { work: limited.run(name), echo: limited.run('echo') };
      const { port1, port2 } = new MessageChannel();
      const app = expose(
        { app: { id: 'a', name: 'A', version: '1' }, capabilities },
        { port: port1 },
      );
      const client = await connect(port2, { agent: { name: 'a', version: '1' } });
      const first = client.call('work', {});
      const others = [1, 2].map((n) => client.call('echo', n));
      const { error, metadata } = await first;
      assert.equal(error.code, 'OPERATION_FAILED');
      assert.match(error.message, why);
      assert.equal(metadata.outcome, 'unknown');
      assert.deepEqual(
        (await Promise.all(others)).map(({ data }) => data),
        [1, 2],
      );
      assert.equal(made.length, 2);
      const direct = await limited
        .run(name)({}, { signal })
        .catch((thrown) => thrown);
      assert.equal(direct.outcome, 'unknown');
      client.close();
      app.close();
      await limited.close();
    });

  test('because it was terminated by others fails it, and one that is idle is replaced', async () => {
    open();
    const running = workers.run('hangs')({}, { signal, progress: () => made[0].terminate() });
    await assert.rejects(running, { code: 'OPERATION_FAILED', outcome: 'unknown' });
    assert.equal(await workers.run('echo')(1, { signal }), 1);
    await made[1].terminate();
    assert.equal(await workers.run('echo')(2, { signal }), 2);
    assert.equal(made.length, 3);
  });
});
