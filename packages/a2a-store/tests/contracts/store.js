/**
 * What an agent with a store promises, whatever its backend is. Processes are agents here, on one
 * backend; tests/fleet has real ones.
 */
import assert from 'node:assert/strict';
import { test as nodeTest } from 'node:test';
import { createTaskClient } from '@abp-bridge/a2a';
import { pushNotifications, taskStore } from '../../src/index.js';
import {
  VERSIONS,
  ask,
  deferred,
  gist,
  open,
  plainState,
  post,
  serve,
} from '../../../a2a/tests/support/a2a.js';

/** Of the test of many. */
const TASKS = Number(process.env.FLEET_TASKS ?? 60);
const test = (name, run) => nodeTest(name, { timeout: 60_000 + TASKS * 200 }, run);
const V1 = VERSIONS['1.0'];
const send = (url, text, more) =>
  ask(url, V1.send, { message: V1.message(text), ...more }, V1.headers);
const get = (url, id) => ask(url, V1.get, { id }, V1.headers);
const cancel = (url, id) => ask(url, V1.cancel, { id }, V1.headers);
const stateOf = ({ result }) => plainState((result.task ?? result).status.state);
const returnImmediately = { configuration: { returnImmediately: true } };

/** Agents on one backend; each is a process of its own. */
async function start(t, openBackend, execute, { count = 2, store = {}, ...options } = {}) {
  const backend = await openBackend();
  const agents = [];
  t.after(() => backend.close());
  t.after(() => Promise.all(agents.map((agent) => agent.close())));
  /** One more process, whose options may differ. */
  const join = async (more = {}) => {
    const own = { ...options, store: taskStore({ backend, term: 10_000, ...store }), ...more };
    const i = agents.length;
    agents.push(await serve((context) => execute(context, i), own));
    return agents[i];
  };
  for (let i = 0; i < count; i++) await join();
  return { backend, agents, urls: agents.map(({ url }) => url), join };
}

/**
 * @param {string} name
 * @param {() => Promise<import('../../src/index.js').Backend>} openBackend an empty one
 */
export function testStore(name, openBackend) {
  /**
   * @param {string} what
   * @param {(t: any, start: any) => Promise<void>} run
   */
  const it = (what, run) =>
    test(`${name}: ${what}`, (t) => run(t, (...rest) => start(t, openBackend, ...rest)));

  it('what one process did, all show', async (t, start) => {
    const { urls } = await start((context) => {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: '1' }] });
      context.emitArtifact({ artifactId: 'a', parts: [{ text: '2' }] }, { append: true });
    });
    const sent = await send(urls[0], 'go');
    assert.equal(stateOf(sent), 'completed');
    const { id } = sent.result.task;
    const got = await get(urls[1], id);
    assert.deepEqual(got.result, (await get(urls[0], id)).result);
    assert.deepEqual(
      got.result.artifacts[0].parts.map(({ text }) => text),
      ['1', '2'],
    );
    const listed = await ask(urls[1], V1.list, {}, V1.headers);
    assert.deepEqual(
      listed.result.tasks.map((task) => [task.id, stateOf({ result: task })]),
      [[id, 'completed']],
    );
    assert.equal((await get(urls[1], 'nothing')).error.code, -32001);
    assert.equal((await get(urls[1], 'x'.repeat(300))).error.code, -32001);
  });

  it('a cancel through another process is answered with the truth', async (t, start) => {
    const aborted = deferred();
    const { urls } = await start((context) => {
      context.signal.addEventListener('abort', () => aborted.resolve(context.signal.reason));
      return aborted.promise.then(() => {});
    });
    const sent = await send(urls[0], 'go', returnImmediately);
    const { id } = sent.result.task;
    const stream = await open(urls[0], V1.resubscribe, { id }, V1.headers);
    const params = { id, metadata: { reason: 'enough' } };
    const answer = await ask(urls[1], V1.cancel, params, V1.headers);
    assert.equal(stateOf(answer), 'canceled');
    assert.match(String(await aborted.promise), /enough/);
    assert.equal(gist((await stream.rest()).at(-1)), 'canceled');
    assert.equal(stateOf(await get(urls[0], id)), 'canceled');
    assert.equal(stateOf(await cancel(urls[1], id)), 'canceled');
    const gem = await ask(urls[1], 'tasks/cancel', { id }, { 'a2a-version': '1.0' });
    assert.equal(gem.error.code, -32002);
  });

  it('what became of the work of a canceled task all processes tell, at once and later', async (t, start) => {
    const go = deferred();
    const { urls } = await start(async ({ report, signal }) => {
      report({ applied: 1 });
      await go.promise;
      report({ applied: 2 });
      signal.throwIfAborted();
    });
    const metadataOf = ({ result }) => (result.task ?? result).status.message.metadata;
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const running = { outcome: 'running', report: { applied: 1 } };
    assert.deepEqual(metadataOf(await cancel(urls[1], id)), running);
    for (const url of urls) assert.deepEqual(metadataOf(await get(url, id)), running);
    go.resolve();
    const stopped = { outcome: 'stopped', report: { applied: 2 } };
    for (const url of urls) {
      let told;
      do told = metadataOf(await get(url, id));
      while (told.outcome === 'running');
      assert.deepEqual(told, stopped);
      const listed = await ask(url, V1.list, {}, V1.headers);
      assert.deepEqual(listed.result.tasks[0].status.message.metadata, stopped);
    }
  });

  it('with grace, what an executor did of its task is told with the end, in every process', async (t, start) => {
    const { urls } = await start(
      ({ signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', resolve)).then(() => {}),
      { grace: 60_000 },
    );
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const answer = await cancel(urls[1], id);
    assert.deepEqual(answer.result.status.message.metadata, { outcome: 'finished' });
    assert.deepEqual((await get(urls[0], id)).result, answer.result);
  });

  it('what a task had done that waits for input has stopped, whichever process cancels it', async (t, start) => {
    const { agents, urls } = await start(({ emitStatus }) => emitStatus('input-required'));
    const { id } = (await send(urls[0], 'go')).result.task;
    // Its executor has returned, and nobody owns it.
    while (agents[0].agent.counters.owned) await new Promise(setImmediate);
    const answer = await cancel(urls[1], id);
    assert.deepEqual(answer.result.status.message.metadata, { outcome: 'stopped' });
  });

  it('nobody knows what became of the work of a process that is gone', async (t, start) => {
    const { agents, urls } = await start(() => new Promise(() => {}));
    const ids = [];
    for (let i = 0; i < 2; i++)
      ids.push((await send(urls[0], 'go', returnImmediately)).result.task.id);
    assert.equal((await cancel(urls[1], ids[0])).result.status.message.metadata.outcome, 'running');
    await agents[0].close();
    const states = [];
    for (const id of ids) {
      let status;
      do status = (await get(urls[1], id)).result.status;
      while (status.message?.metadata.outcome !== 'unknown');
      states.push(plainState(status.state));
    }
    assert.deepEqual(states, ['canceled', 'failed']);
  });

  it('who was taken for gone does not change what was said of its work', async (t, start) => {
    const go = deferred();
    const { agents, backend, urls } = await start(() => go.promise);
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    assert.equal((await cancel(urls[0], id)).result.status.message.metadata.outcome, 'running');
    const { seq } = (await backend.read(id, 0)).at(-1);
    const e = [{ k: 'outcome', metadata: { outcome: 'unknown' } }];
    await backend.append(id, JSON.stringify({ v: 1, id: 'x', by: 'other', epoch: 0, e }), seq);
    go.resolve();
    while (agents[0].agent.counters.owned) await new Promise(setImmediate);
    for (const url of urls)
      assert.equal((await get(url, id)).result.status.message.metadata.outcome, 'unknown');
    assert.equal((await backend.read(id, 0)).at(-1).data.includes('unknown'), true);
  });

  it('a cancel that comes after the end is refused, whichever process is asked', async (t, start) => {
    const { urls } = await start(() => {});
    const { id } = (await send(urls[0], 'go')).result.task;
    assert.equal((await cancel(urls[1], id)).error.code, -32002);
    assert.equal(stateOf(await get(urls[1], id)), 'completed');
  });

  it('with grace, the executor says how a task ended that another process was to cancel', async (t, start) => {
    const { urls } = await start(
      async (context) => {
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
        context.emitStatus('completed', 'it was done already');
      },
      { grace: 60_000 },
    );
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    assert.equal((await cancel(urls[1], id)).error.code, -32002);
    assert.equal(stateOf(await get(urls[1], id)), 'completed');
  });

  it('a subscription at another process has all events, and ends with the task', async (t, start) => {
    const go = deferred();
    const { urls } = await start(async (context) => {
      await go.promise;
      for (let i = 0; i < 5; i++)
        context.emitArtifact({ artifactId: `step-${i}`, parts: [{ text: `${i}` }] });
    });
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const there = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    const first = await there.next();
    assert.equal(gist(first), 'task working');
    go.resolve();
    assert.deepEqual((await there.rest()).map(gist), [
      ...[0, 1, 2, 3, 4].map((i) => `artifact step-${i}`),
      'completed',
    ]);
  });

  it('a stream is resumed from any number, at any process, without gap or repeat', async (t, start) => {
    const gates = [deferred(), deferred()];
    const { urls } = await start(
      async (context) => {
        const emit = (text) =>
          context.emitArtifact({ artifactId: 'a', parts: [{ text }] }, { append: true });
        // What is emitted at once may share a record.
        for (let i = 0; i < 5; i++) emit(`${i}`);
        emit('x'.repeat(1_100_000));
        await gates[0].promise;
        emit('5');
        await context.flushed();
        context.emitStatus('working', 'half');
        await gates[1].promise;
        emit('6');
      },
      { maxUnread: 16 << 20 },
    );
    const what = ({ result }) =>
      result.artifactUpdate?.artifact.parts[0].text.slice(0, 3) ?? gist({ result });
    const numberOf = ({ raw }) => /^id: (.*)$/m.exec(raw)?.[1];
    const params = { message: V1.message('go') };
    const whole = await open(urls[0], V1.stream, params, V1.headers);
    const frames = [];
    const until = async (last) => {
      while (frames.length === 0 || what(frames.at(-1)) !== last) frames.push(await whole.next());
    };
    await until('xxx');
    const { id } = frames[0].result.task;
    const from = (number, url) =>
      open(url, V1.resubscribe, { id }, { ...V1.headers, 'last-event-id': number });
    const early = [];
    for (const [i, frame] of frames.entries())
      early.push([i, await from(numberOf(frame), urls[i % 2])]);
    gates[0].resolve();
    await until('working');
    const middle = await from(numberOf(frames[2]), urls[1]);
    gates[1].resolve();
    frames.push(...(await whole.rest()));
    assert.equal(what(frames.at(-1)), 'completed');
    const told = frames.map((frame) => [numberOf(frame), what(frame)]);
    assert.equal(new Set(told.map(([number]) => number)).size, frames.length);
    const after = (i) => told.slice(i + 1);
    const rest = async (stream) =>
      (await stream.rest()).map((frame) => [numberOf(frame), what(frame)]);
    for (const [i, stream] of early) assert.deepEqual(await rest(stream), after(i), `${i}`);
    assert.deepEqual(await rest(middle), after(2));
    // Of a task that has ended, too, as long as something came after.
    for (const [i, frame] of frames.entries()) {
      if (i === frames.length - 1) break;
      assert.deepEqual(await rest(await from(numberOf(frame), urls[i % 2])), after(i), `${i}`);
    }
    const nothing = { ...V1.headers, 'last-event-id': numberOf(frames.at(-1)) };
    assert.equal((await ask(urls[1], V1.resubscribe, { id }, nothing)).error.code, -32004);
  });

  it('a number that nobody gave is answered with the task', async (t, start) => {
    const go = deferred();
    const { urls } = await start(
      async (context) => {
        context.emitArtifact({ artifactId: 'a', parts: [{ text: 'x'.repeat(30_000) }] });
        await go.promise;
      },
      { maxUnread: 100_000 },
    );
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    let seen = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    const [, first] = /^id: (.*)$/m.exec((await seen.next()).raw);
    seen.leave();
    const [seq, place] = first.split('.').map(Number);
    for (const number of ['0', 'x', '1', '0.0', `${seq}.${place + 1000}`, '999999.0', '1.9999']) {
      const headers = { ...V1.headers, 'last-event-id': number };
      const stream = await open(urls[0], V1.resubscribe, { id }, headers);
      assert.match(gist(await stream.next()), /^task/, number);
      stream.leave();
    }
    go.resolve();
    do seen = await get(urls[1], id);
    while (stateOf(seen) !== 'completed');
    // One that has ended has no stream.
    const headers = { ...V1.headers, 'last-event-id': '999999.0' };
    assert.equal((await ask(urls[1], V1.resubscribe, { id }, headers)).error.code, -32004);
  });

  it('however much came after a number, a reader gets all of it, as fast as it reads', async (t, start) => {
    const go = deferred();
    // More than may wait for a reader of a stream.
    const { urls, agents, backend } = await start(
      async (context) => {
        for (let i = 0; i < 60; i++) {
          const artifactId = `${i % 7}`;
          const length = i === 30 ? 1_100_000 : i % 3 ? 200 : 120_000;
          context.emitArtifact({ artifactId, parts: [{ text: `${i} `.padEnd(length, 'x') }] });
          if (i % 10 === 0) await context.flushed();
        }
        await go.promise;
      },
      { maxUnread: 300_000 },
    );
    const what = (frame) => {
      const { artifactUpdate } = frame.result ?? frame;
      return artifactUpdate?.artifact.parts[0].text ?? gist({ result: frame.result ?? frame });
    };
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const from = (number, url) =>
      open(url, V1.resubscribe, { id }, { ...V1.headers, 'last-event-id': number });
    // While it works, and its last artifact has been stored.
    let working;
    do working = (await get(urls[1], id)).result;
    while (!(working.artifacts ?? []).some(({ parts }) => parts[0].text.startsWith('59 ')));
    const [{ seq }] = await backend.read(id, 0, 1);
    const data = `${seq}.0`;
    const live = await from(data, urls[1]);
    const read = [];
    while (read.length < 61) read.push(await live.next());
    go.resolve();
    read.push(...(await live.rest()));
    const told = read.map(what);
    assert.deepEqual(
      told.map((text) => text.split(' ')[0]),
      ['working', ...Array.from({ length: 60 }, (_, i) => `${i}`), 'completed'],
    );
    assert.ok(JSON.stringify(read).length > 3_000_000);
    // When it has ended, in both bindings, and by a reader that takes its time.
    for (const [i, url] of urls.entries()) {
      assert.deepEqual((await (await from(data, url)).rest()).map(what), told);
      const headers = { ...V1.headers, 'last-event-id': data };
      const answer = await fetch(new URL(`tasks/${id}:subscribe`, url), { headers });
      assert.equal(answer.status, 200);
      const text = await answer.text();
      const frames = [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json));
      assert.deepEqual(frames.map(what), told);
      const written = [];
      agents[i].http.prependListener('request', (_request, response) => written.push(response));
      const slow = await from(data, url);
      slow.response.pause();
      const [response] = written;
      // It stands still when the connection has taken what it can, if that is less than all.
      for (let still = 0; still < 300 && !response.writableEnded; still++) {
        await new Promise(setImmediate);
        assert.ok(response.writableLength < 1_500_000, `${response.writableLength} bytes wait`);
        if (!response.writableNeedDrain) still = 0;
      }
      assert.deepEqual((await slow.rest()).map(what), told);
    }
    // Of what is not read little is in memory, and little was read from the log.
    let chars = 0;
    const readLog = backend.read.bind(backend);
    backend.read = async (...args) => {
      const found = await readLog(...args);
      for (const record of found) chars += record.data.length;
      return found;
    };
    const asked = new Request(`http://agent/tasks/${id}:subscribe`, {
      headers: { ...V1.headers, 'last-event-id': data },
    });
    const reader = (await agents[1].agent.fetch(asked)).body.getReader();
    for (let i = 0; i < 500; i++) await new Promise(setImmediate);
    assert.ok(chars < 1_500_000, `${chars} characters were read`);
    let text = '';
    const decoder = new TextDecoder();
    for (let next; !(next = await reader.read()).done;)
      text += decoder.decode(next.value, { stream: true });
    const shown = [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => what(JSON.parse(json)));
    assert.deepEqual(shown, told);
    backend.read = readLog;
    // One of it is the last.
    const numbers = read.map(({ raw }) => /^id: (.*)$/m.exec(raw)[1]);
    for (const i of [0, 29, 30, 31, 32, 60])
      assert.deepEqual(
        (await (await from(numbers[i], urls[i % 2])).rest()).map(what),
        told.slice(i + 1),
      );
  });

  it('for a reader that has left, nothing more is read', async (t, start) => {
    let reads = 0;
    const { urls, agents, backend } = await start((context) => {
      for (let i = 0; i < 200; i++)
        context.emitArtifact({ artifactId: `${i % 5}`, parts: [{ text: `${i}`.padEnd(60_000) }] });
    });
    const { id } = (await send(urls[0], 'go')).result.task;
    const read = backend.read.bind(backend);
    backend.read = (...args) => {
      reads++;
      return read(...args);
    };
    const written = [];
    agents[1].http.prependListener('request', (_request, response) => written.push(response));
    const first = `${(await read(id, 0, 1))[0].seq}.0`;
    const headers = { ...V1.headers, 'last-event-id': first };
    const stream = await open(urls[1], V1.resubscribe, { id }, headers);
    await stream.next();
    stream.leave();
    const closed = new Promise((resolve) => written[0].once('close', resolve));
    if (!written[0].destroyed) await closed;
    for (let i = 0; i < 20; i++) await new Promise(setImmediate);
    const before = reads;
    for (let i = 0; i < 100; i++) await new Promise(setImmediate);
    assert.equal(reads, before);
  });

  it('a client of ours goes on from the number that it has seen', async (t, start) => {
    const go = deferred();
    const { urls } = await start(async (context) => {
      for (let i = 0; i < 3; i++)
        context.emitArtifact({ artifactId: 'a', parts: [{ text: `${i}` }] }, { append: true });
      await go.promise;
      context.emitArtifact({ artifactId: 'a', parts: [{ text: '3' }] }, { append: true });
    });
    let turn = 0;
    const asked = [];
    const cuts = [];
    /** Each request goes to the next process, and a stream can be cut. */
    const balanced = async (_url, init) => {
      const { method } = JSON.parse(init.body);
      asked.push([method, new Headers(init.headers).get('last-event-id') !== null]);
      const answer = await fetch(urls[turn++ % urls.length], init);
      const reader = answer.body.getReader();
      const body = new ReadableStream({
        start: (controller) => cuts.push(() => controller.error(new Error('cut'))),
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        },
      });
      return new Response(body, answer);
    };
    const client = createTaskClient(urls[0], {
      version: '1.0',
      fetch: balanced,
      limits: { retry: 1 },
    });
    const stream = client.subscribe('go');
    const seen = [];
    for await (const event of stream) {
      seen.push(event.kind === 'artifact' ? event.artifact.parts[0].text : event.kind);
      if (seen.at(-1) === '1') cuts[0]();
      if (seen.at(-1) === '2') go.resolve();
    }
    assert.deepEqual(seen, ['task', 'status', '0', '1', '2', '3', 'status']);
    assert.deepEqual(asked, [
      [V1.stream, false],
      [V1.resubscribe, true],
    ]);
    assert.deepEqual(
      stream.task.artifacts[0].parts.map(({ text }) => text),
      ['0', '1', '2', '3'],
    );
    // Another client, which has kept the number, is told what has come since.
    const other = client.resubscribe(stream.task.id, { lastEventId: '1.0' });
    assert.equal((await other.next()).value.status.state, 'working');
    await other.return();
  });

  it('an answer goes to any process, which takes the task', async (t, start) => {
    const runs = [];
    const { urls } = await start((context, process) => {
      const [{ text }] = context.message.parts;
      runs.push([process, text]);
      if (text === 'go') context.emitStatus('input-required', 'Which one?');
      else context.emitArtifact({ artifactId: 'a', parts: [{ text }] });
    });
    const asked = await send(urls[0], 'go');
    assert.equal(stateOf(asked), 'input-required');
    const { id, contextId } = asked.result.task;
    const message = { ...V1.message('this one'), taskId: id };
    const done = await ask(urls[1], V1.send, { message }, V1.headers);
    assert.equal(stateOf(done), 'completed');
    assert.equal(done.result.task.contextId, contextId);
    assert.deepEqual(runs, [
      [0, 'go'],
      [1, 'this one'],
    ]);
    const got = await get(urls[0], id);
    assert.deepEqual(
      got.result.history.map(({ parts }) => parts[0].text),
      ['go', 'Which one?', 'this one'],
    );
    const late = await ask(urls[0], V1.send, { message }, V1.headers);
    assert.equal(late.error.code, -32004);
  });

  it('of two answers at once one is taken', async (t, start) => {
    let runs = 0;
    const { urls } = await start((context) => {
      if (context.message.parts[0].text === 'go') return context.emitStatus('input-required');
      runs++;
    });
    const { id } = (await send(urls[0], 'go')).result.task;
    const answers = await Promise.all(
      [...urls, ...urls].map((url) => {
        const message = { ...V1.message('answer'), taskId: id };
        return ask(url, V1.send, { message }, V1.headers);
      }),
    );
    assert.equal(runs, 1);
    assert.equal(answers.filter(({ result }) => result).length, 1);
    const refused = answers.filter(({ error }) => error);
    assert.deepEqual(
      refused.map(({ error }) => error.code),
      refused.map(() => -32004),
    );
    assert.equal(stateOf(await get(urls[1], id)), 'completed');
  });

  it('a question is cancelled by any process', async (t, start) => {
    const { urls } = await start((context) => context.emitStatus('input-required'));
    const { id } = (await send(urls[0], 'go')).result.task;
    assert.equal(stateOf(await cancel(urls[1], id)), 'canceled');
    assert.equal(stateOf(await get(urls[0], id)), 'canceled');
  });

  it('a question that nobody answers is canceled, however often the processes were replaced', async (t, start) => {
    const { agents, backend, urls, join } = await start(
      ({ emitStatus }) => emitStatus('input-required', 'Which one?'),
      { count: 1, store: { term: 3000 } },
    );
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await send(urls[0], 'go')).result.task.id);
    const processes = async () => (await backend.leases(1000)).length;
    // Three deployments: the next one is there, then this one ends, and the next one has found what
    // it left.
    for (let generation = 0; generation < 3; generation++) {
      // The questions of the last generation have no time left.
      const limits = generation < 2 ? {} : { limits: { rememberFor: 1 } };
      await join(limits);
      await agents[generation].agent.drain();
      if (generation === 1) {
        const answer = { ...V1.message('this one'), taskId: ids[2] };
        const answered = await ask(agents[2].url, V1.send, { message: answer }, V1.headers);
        assert.equal(stateOf(answered), 'input-required');
      }
      while ((await processes()) > 1) await new Promise(setImmediate);
    }
    for (const id of ids) {
      let answer;
      do answer = await get(agents[3].url, id);
      while (stateOf(answer) === 'input-required');
      assert.equal(stateOf(answer), 'canceled');
    }
    // Nothing is left of the processes before.
    await agents[3].agent.drain();
    const last = await join();
    while ((await processes()) > 1) await new Promise(setImmediate);
    assert.equal(stateOf(await get(last.url, ids[0])), 'canceled');
  });

  for (const [what, later] of [
    ['a record of a later version', { v: 2, events: 'in a form of its own' }],
    ['an event of a later version', { v: 1, id: 'x', by: 'later', epoch: 9, e: [{ k: 'later' }] }],
    ['what is no record', ''],
    ['a record without events', { v: 1 }],
    ['an event that is none', { v: 1, id: 'x', by: 'later', epoch: 9, e: [null] }],
  ])
    it(`a task that has ${what} is told so, and costs others nothing`, async (t, start) => {
      const warned = t.mock.method(console, 'error', () => {});
      const warnings = () =>
        warned.mock.calls.filter(({ arguments: all }) =>
          all.some((one) => one?.code || one?.stack),
        );
      const aborted = [];
      const { agents, backend, urls } = await start(
        ({ task, signal, message, emitStatus }) => {
          if (message.parts[0].text === 'ask') return emitStatus('input-required');
          signal.addEventListener('abort', () => aborted.push(task.id));
          return new Promise(() => {});
        },
        { count: 4, push: pushNotifications({ allowPrivate: true }), store: { term: 3000 } },
      );
      const [ours, theirs] = [[], []];
      for (const of of [ours, theirs])
        for (const url of urls.slice(0, 2))
          of.push((await send(url, 'go', returnImmediately)).result.task.id);
      theirs.push((await send(urls[1], 'ask')).result.task.id);
      const [one] = theirs;
      const stream = await open(urls[2], V1.resubscribe, { id: one }, V1.headers);
      await stream.next();
      // A process of a later version takes some of them.
      for (const id of theirs) {
        const { seq } = (await backend.read(id, 0)).at(-1);
        await backend.append(id, later && JSON.stringify(later), seq);
      }
      // What was open ends, and what worked stops.
      assert.deepEqual(await stream.rest(), []);
      while (aborted.length < 2) await new Promise(setImmediate);
      assert.deepEqual(aborted.sort(), theirs.slice(0, 2).sort());
      const expectUnreadable = async (url, id) => {
        const message = { ...V1.message('more'), taskId: id };
        const config = { taskId: id, url: 'http://127.0.0.1:1/' };
        for (const [method, params] of [
          [V1.get, { id }],
          [V1.cancel, { id }],
          [V1.resubscribe, { id }],
          [V1.send, { message }],
          ['CreateTaskPushNotificationConfig', config],
          ['ListTaskPushNotificationConfigs', { taskId: id }],
        ]) {
          const { error } = await ask(url, method, params, V1.headers);
          assert.equal(error?.data[0].reason, 'NOT_SUPPORTED', `${method} at ${url}`);
          assert.match(error.message, /later version/);
        }
        for (const [method, params] of [
          ['tasks/get', { id }],
          ['tasks/cancel', { id }],
        ])
          assert.match((await ask(url, method, params, {})).error.message, /later version/);
      };
      for (const url of urls) for (const id of theirs) await expectUnreadable(url, id);
      const listed = async (url) => {
        const { result } = await ask(url, V1.list, {}, V1.headers);
        return result.tasks.map(({ id }) => id).sort();
      };
      for (const url of urls) assert.deepEqual(await listed(url), ours.toSorted());
      // Whichever is looked at first, the others' tasks are taken.
      await Promise.all(agents.slice(0, 2).map(({ agent }) => agent.drain({ ms: 0 })));
      for (const id of ours) {
        let answer;
        do answer = await get(urls[3], id);
        while (stateOf(answer) === 'working');
        assert.equal(stateOf(answer), 'failed');
      }
      await expectUnreadable(urls[3], one);
      assert.deepEqual(await listed(urls[3]), ours.toSorted());
      // Those of the later version are still there for its processes.
      const left = [];
      for (const { process } of await backend.leases(1000)) {
        const duties = await backend.list({ tenant: `duties:${process}` });
        left.push(...duties.tasks.map(({ data }) => data));
      }
      for (const id of theirs) assert.ok(left.includes(id));
      // Each process says it once of each.
      assert.ok(warnings().length <= 4 * theirs.length, `${warnings().length}`);
      assert.ok(warnings().length >= 1);
    });

  it('a process whose lease was deleted has one again, and what it leaves is found', async (t, start) => {
    const { agents, backend, urls } = await start(() => new Promise(() => {}), {
      store: { term: 1000 },
    });
    await send(urls[0], 'go', returnImmediately);
    const names = async () => (await backend.leases(10)).map(({ process }) => process).sort();
    const before = await names();
    assert.equal(before.length, 2);
    for (const name of before) while (!(await backend.release(name, await backend.lease(name))));
    while ((await names()).length < 2) await new Promise(setImmediate);
    assert.deepEqual(await names(), before);
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    // It ends, and those who are left see its lease.
    await agents[0].agent.drain({ ms: 0 });
    let answer;
    do answer = await get(urls[1], id);
    while (stateOf(answer) === 'working');
    assert.equal(stateOf(answer), 'failed');
  });

  it('a cancel and a message that wait are answered when a later version takes the task', async (t, start) => {
    t.mock.method(console, 'error', () => {});
    const began = deferred();
    const { backend, urls } = await start(
      ({ task }) => {
        began.resolve(task.id);
        return new Promise(() => {});
      },
      { grace: 60_000 },
    );
    const sent = send(urls[0], 'go');
    const id = await began.promise;
    const cancelled = cancel(urls[1], id);
    for (;;) {
      await new Promise(setImmediate);
      const log = await backend.read(id, 0);
      if (!log.some(({ data }) => data.includes('"k":"wish"'))) continue;
      const later = JSON.stringify({ v: 2 });
      if (await backend.append(id, later, log.at(-1).seq).catch(() => 0)) break;
    }
    for (const { error } of await Promise.all([sent, cancelled]))
      assert.equal(error?.data[0].reason, 'NOT_SUPPORTED');
  });

  it('a client of ours follows its task to its end at another process', async (t, start) => {
    const go = deferred();
    const { urls } = await start(async (context) => {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: '1' }] });
      await go.promise;
      context.emitArtifact({ artifactId: 'a', parts: [{ text: '2' }] }, { append: true });
    });
    const one = createTaskClient(urls[0], { version: '1.0' }).subscribe('go');
    for await (const event of one) if (event.kind === 'artifact') break;
    const other = createTaskClient(urls[1], { version: '1.0' }).resubscribe(one.task.id);
    await other.next();
    go.resolve();
    for await (const event of other) void event;
    assert.equal(other.task.status.state, 'completed');
    assert.deepEqual(
      other.task.artifacts[0].parts.map(({ text }) => text),
      ['1', '2'],
    );
  });

  it('flushed says when what was emitted is stored', async (t, start) => {
    const seen = [];
    const { urls, backend } = await start(async (context) => {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: 'x' }] });
      await context.flushed();
      const records = await backend.read(context.task.id, 0);
      seen.push(records.some(({ data }) => data.includes('"artifactId":"a"')));
    });
    await send(urls[0], 'go');
    assert.deepEqual(seen, [true]);
  });

  it('what is too long for a record is kept beside it', async (t, start) => {
    const text = 'x'.repeat(2_500_000);
    const { urls } = await start((context) => {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: 'first' }] });
      context.emitArtifact({ artifactId: 'b', parts: [{ text }] });
      context.emitArtifact({ artifactId: 'c', parts: [{ text: 'last' }] });
    });
    const { id } = (await send(urls[0], 'go')).result.task;
    const { artifacts } = (await get(urls[1], id)).result;
    assert.deepEqual(
      artifacts.map(({ artifactId }) => artifactId),
      ['a', 'b', 'c'],
    );
    assert.equal(artifacts[1].parts[0].text, text);
  });

  it('a process that closes gives its tasks away, which fail', async (t, start) => {
    const { urls, agents } = await start(() => new Promise(() => {}));
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const there = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    await agents[0].agent.drain({ ms: 0 });
    assert.equal(gist((await there.rest()).at(-1)), 'failed');
  });

  it('or run again, with what was saved of their requests', async (t, start) => {
    const attempts = [];
    const store = {
      onOrphan: 'rerun',
      saveRequest: ({ metadata }) => ({ metadata }),
    };
    const { urls, agents } = await start(
      (context, process) => {
        attempts.push([process, context.attempt, context.request.metadata]);
        context.emitArtifact(
          { artifactId: 'a', parts: [{ text: `by ${process}` }] },
          { append: true },
        );
        return process === 0 ? new Promise(() => {}) : undefined;
      },
      { store },
    );
    const begun = await send(urls[0], 'go', { ...returnImmediately, metadata: { n: 1 } });
    const { id } = begun.result.task;
    const there = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    for (let frame; (frame = await there.next());)
      if (gist(frame) === 'artifact a' || frame.result.task?.artifacts) break;
    await agents[0].agent.drain({ ms: 0 });
    assert.equal(gist((await there.rest()).at(-1)), 'completed');
    assert.deepEqual(attempts, [
      [0, 1, { n: 1 }],
      [1, 2, { n: 1 }],
    ]);
    const { artifacts } = (await get(urls[1], id)).result;
    assert.deepEqual(
      artifacts[0].parts.map(({ text }) => text),
      ['by 0', 'by 1'],
    );
  });

  it('of many tasks, some cancelled elsewhere and some left behind, each has one end that all tell', async (t, start) => {
    const go = deferred();
    const done = new Map();
    const { agents, backend, urls } = await start(
      async ({ task, signal, emitArtifact }) => {
        emitArtifact({ artifactId: 'a', parts: [{ text: '1' }] });
        await go.promise;
        signal.throwIfAborted();
        done.set(task.id, (done.get(task.id) ?? 0) + 1);
      },
      { count: 3, store: { onOrphan: 'rerun', saveRequest: () => ({}) } },
    );
    const every = (run) => Promise.all(Array.from({ length: TASKS }, (_, i) => run(i)));
    const ids = await every(
      async (i) => (await send(urls[i % 3], 'go', returnImmediately)).result.task.id,
    );
    // Every other one, through a process that does not own it, while one goes and leaves its tasks
    // behind.
    const cancelled = every(async (i) => i % 2 && stateOf(await cancel(urls[(i + 1) % 2], ids[i])));
    await agents[2].close();
    const answers = await cancelled;
    go.resolve();
    for (const [i, id] of ids.entries()) {
      const expected = i % 2 ? 'canceled' : 'completed';
      const told = [];
      for (const url of urls.slice(0, 2)) {
        let answer;
        do answer = await get(url, id);
        while (
          answer.result.status.message?.metadata?.outcome === 'running' ||
          stateOf(answer) === 'working'
        );
        told.push([stateOf(answer), answer.result.status.message?.metadata?.outcome]);
      }
      assert.deepEqual(told[0], told[1]);
      assert.equal(told[0][0], expected);
      if (i % 2) assert.equal(answers[i], 'canceled');
      const events = (await backend.read(id, 0)).flatMap(({ data }) => JSON.parse(data).e);
      const ends = events.filter(({ status }) =>
        ['completed', 'canceled', 'failed'].includes(status?.state),
      );
      assert.deepEqual(
        ends.map(({ status }) => status.state),
        [expected],
      );
      assert.equal(done.get(id), i % 2 ? undefined : 1);
    }
  });

  it('draining waits for what runs, and sends others elsewhere', async (t, start) => {
    const go = deferred();
    const { urls, agents } = await start(async (context) => {
      await go.promise;
      context.emitArtifact({ artifactId: 'a', parts: [{ text: 'done' }] });
    });
    const [{ agent }] = agents;
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const here = await open(urls[0], V1.resubscribe, { id }, V1.headers);
    await here.next();
    assert.equal(agent.draining, false);
    const drained = agent.drain();
    assert.equal(agent.draining, true);
    // Its stream ends, and its end is seen elsewhere.
    assert.deepEqual(await here.rest(), []);
    const there = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    assert.equal(gist(await there.next()), 'task working');
    const body = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    for (const [method, params] of [
      [V1.send, { message: V1.message('another') }],
      [V1.stream, { message: V1.message('another') }],
      [V1.resubscribe, { id }],
    ]) {
      const refused = await post(urls[0], body(method, params), V1.headers);
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
      assert.equal((await refused.json()).error.data[0].reason, 'UNAVAILABLE');
    }
    assert.equal(stateOf(await get(urls[0], id)), 'working');
    go.resolve();
    await drained;
    assert.deepEqual((await there.rest()).map(gist), ['artifact a', 'completed']);
  });

  it('a client of ours, with several addresses, notices nothing of a process that drains', async (t, start) => {
    const go = deferred();
    const { urls, agents } = await start(() => go.promise.then(() => {}));
    let turn = 0;
    // A balancer: each request goes to the next process.
    const balanced = (_url, init) => fetch(urls[turn++ % urls.length], init);
    const client = createTaskClient(urls[0], {
      version: '1.0',
      fetch: balanced,
      limits: { retry: 1 },
    });
    const stream = client.subscribe('go');
    await stream.next();
    const drained = agents[0].agent.drain();
    go.resolve();
    for await (const event of stream) void event;
    assert.equal(stream.task.status.state, 'completed');
    await drained;
  });

  it('a message that comes again, to another process, is taken once', async (t, start) => {
    let runs = 0;
    const { urls } = await start(() => void runs++);
    const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
    const message = V1.message('go');
    const answers = [];
    for (const url of [...urls, ...urls])
      answers.push(await ask(url, V1.send, { message }, headers));
    assert.equal(new Set(answers.map(({ result }) => result.task.id)).size, 1);
    assert.equal(runs, 1);
  });

  it('a message that comes to several processes at once is taken once, and each tells its task', async (t, start) => {
    const did = [];
    const execute = ({ message, emitStatus }) => {
      did.push(message.messageId);
      if (message.parts[0].text === 'go') emitStatus('input-required');
    };
    const { urls } = await start(execute, { count: 4 });
    const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
    const sent = [];
    for (let i = 1; i <= 20; i++) {
      let taskId;
      for (const text of ['go', 'answer']) {
        const message = { ...V1.message(text), taskId };
        sent.push(message.messageId);
        const post = (url) => ask(url, V1.send, { message }, headers);
        const answers = await Promise.all(urls.map(post));
        const ids = answers.map(({ result, error }) => result?.task.id ?? error.message);
        assert.equal(new Set(ids).size, 1, ids.join());
        [taskId] = ids;
      }
    }
    assert.deepEqual(did, sent);
  });

  it('another message under the id of one before is refused, by every process', async (t, start) => {
    const did = [];
    const { urls } = await start(({ message, task, emitStatus }) => {
      did.push(message.parts[0].text);
      if (task.history.length === 1) emitStatus('input-required', 'And?');
    });
    const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
    const post = (url, message) => ask(url, V1.send, { message }, headers);
    const reused = { code: -32602, field: 'message.messageId' };
    const refused = ({ error }) => ({
      code: error?.code,
      field: error?.data[1].fieldViolations[0].field,
    });
    const first = V1.message('one');
    const { id } = (await post(urls[0], first)).result.task;
    const second = (await post(urls[1], V1.message('two'))).result.task;
    const answer = { ...V1.message('yes'), taskId: id };
    for (const url of urls) {
      assert.deepEqual(refused(await post(url, { ...first, parts: [{ text: 'other' }] })), reused);
      // The id of a message that began a task is that of no answer, to this task or to another.
      for (const taskId of [id, second.id])
        assert.deepEqual(
          refused(await post(url, { ...answer, taskId, messageId: first.messageId })),
          reused,
        );
      assert.equal((await post(url, first)).result.task.id, id);
    }
    assert.equal(stateOf(await post(urls[1], answer)), 'completed');
    for (const url of urls) {
      assert.equal(stateOf(await post(url, answer)), 'completed');
      assert.deepEqual(refused(await post(url, { ...answer, parts: [{ text: 'no' }] })), reused);
    }
    assert.deepEqual(did, ['one', 'two', 'yes']);
    assert.equal(stateOf(await get(urls[0], second.id)), 'input-required');
  });

  it('what was stored without a digest is recognised by its id', async (t, start) => {
    let runs = 0;
    const { backend, urls } = await start(({ task, emitStatus }) => {
      runs++;
      if (task.history.length === 1) emitStatus('input-required', 'And?');
    });
    const { append } = backend;
    backend.append = function (task, data, expected) {
      const { e: events, ...record } = JSON.parse(data);
      const before = events.map(({ mark: _mark, ...event }) => event);
      return append.call(this, task, JSON.stringify({ ...record, e: before }), expected);
    };
    const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
    const message = V1.message('go');
    const { id } = (await ask(urls[0], V1.send, { message }, headers)).result.task;
    const answer = { ...V1.message('yes'), taskId: id };
    await ask(urls[0], V1.send, { message: answer }, headers);
    for (const again of [message, answer])
      assert.equal((await ask(urls[1], V1.send, { message: again }, headers)).result.task.id, id);
    assert.equal(runs, 2);
  });

  it('a task that ended longer ago than the retention is deleted, and no other', async (t, start) => {
    const HOUR = 3_600_000;
    const begun = Math.ceil(Date.now() / HOUR) * HOUR + HOUR / 2;
    t.mock.timers.enable({ apis: ['Date'], now: begun });
    const { urls, backend } = await start(
      ({ emitArtifact, emitStatus, message: { parts } }) => {
        if (parts[0].text === 'ask') return emitStatus('input-required');
        return emitArtifact({ parts: [{ text: 'x'.repeat(1_100_000) }] });
      },
      { store: { term: 2000, retention: 2 * HOUR }, limits: { rememberFor: 100 * HOUR } },
    );
    const old = (await send(urls[0], 'go')).result.task;
    const asks = (await send(urls[1], 'ask')).result.task;
    const swept = async () => Number((await backend.list({ tenant: 'swept' })).tasks[0]?.data);
    const setTime = async (ms) => {
      t.mock.timers.setTime(ms);
      const last = Math.floor(ms / HOUR) - 3;
      while ((await swept()) !== last) await new Promise(setImmediate);
    };
    await setTime(begun + HOUR);
    const young = (await send(urls[1], 'go')).result.task;
    await setTime(begun + 2.49 * HOUR);
    for (const { id } of [old, asks, young]) assert.ok((await get(urls[0], id)).result);
    assert.equal((await backend.objects('')).length, 2);
    await setTime(begun + 2.5 * HOUR);
    for (const url of urls) {
      while ((await get(url, old.id)).result) await new Promise(setImmediate);
      for (const { id } of [asks, young]) assert.ok((await get(url, id)).result);
      const listed = await ask(url, V1.list, {}, V1.headers);
      assert.deepEqual(listed.result.tasks.map(({ id }) => id).sort(), [asks.id, young.id].sort());
    }
    assert.deepEqual(await backend.read(old.id, 0), []);
    assert.equal((await backend.objects('')).length, 1);
    const { tasks } = await backend.list({ tenant: 'ended' });
    assert.deepEqual(
      tasks.map(({ data }) => data),
      [young.id],
    );
  });

  it('tenants and users are apart, whichever process is asked', async (t, start) => {
    const { urls } = await start(() => {}, {
      authorize: (task, access, { tenant }) => task.tenant === tenant,
    });
    const { id } = (await send(urls[0], 'go', { tenant: 'one' })).result.task;
    const one = await ask(urls[1], V1.get, { id, tenant: 'one' }, V1.headers);
    assert.equal(stateOf(one), 'completed');
    assert.equal((await get(urls[1], id)).error.code, -32001);
    const list = async (tenant) =>
      (await ask(urls[1], V1.list, { tenant }, V1.headers)).result.tasks.length;
    assert.deepEqual([await list('one'), await list('two')], [1, 0]);
  });

  it('lists come in pages', async (t, start) => {
    const { urls } = await start(() => {});
    const ids = [];
    for (let i = 0; i < 7; i++) ids.unshift((await send(urls[i % 2], `${i}`)).result.task.id);
    const found = [];
    let pageToken;
    do {
      const { result } = await ask(urls[1], V1.list, { pageSize: 3, pageToken }, V1.headers);
      found.push(...result.tasks.map(({ id }) => id));
      pageToken = result.nextPageToken;
    } while (pageToken);
    assert.deepEqual(new Set(found), new Set(ids));
    assert.equal(found.length, 7);
  });
}
