/**
 * What an agent with a store promises, whatever its backend is. Processes are agents here, on one backend; tests/fleet has
 * real ones.
 */
import assert from 'node:assert/strict';
import { test as nodeTest } from 'node:test';
import { createTaskClient } from '../../src/index.js';
import { taskStore } from '../../src/store/index.js';
import { VERSIONS, ask, deferred, gist, open, plainState, post, serve } from '../support/a2a.js';

const test = (name, run) => nodeTest(name, { timeout: 60_000 }, run);
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
  for (let i = 0; i < count; i++) {
    const own = { ...options, store: taskStore({ backend, term: 500, ...store }) };
    agents.push(await serve((context) => execute(context, i), own));
  }
  return { backend, agents, urls: agents.map(({ url }) => url) };
}

/**
 * @param {string} name
 * @param {() => Promise<import('../../src/backends/backend.js').Backend>} openBackend an empty one
 */
export function testStore(name, openBackend) {
  /** @param {string} what @param {(t: any, start: any) => Promise<void>} run */
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
    assert.equal(stateOf(await get(urls[1], id)), 'completed');
  });

  it('a question is cancelled by any process', async (t, start) => {
    const { urls } = await start((context) => context.emitStatus('input-required'));
    const { id } = (await send(urls[0], 'go')).result.task;
    assert.equal(stateOf(await cancel(urls[1], id)), 'canceled');
    assert.equal(stateOf(await get(urls[0], id)), 'canceled');
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
