// Calls that outlast a request: their questions, who may ask for them, and how long they are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identify } from '../src/earlier.js';
import { taskOf } from '../src/mcp-methods.js';
import { McpServer } from '../src/mcp-server.js';
import { PATIENCE_WITH_CLIENTS, REMEMBERED, Run, Runs } from '../src/runs.js';
import { formOf, responseOf } from '../src/questions.js';

/** A run whose app asks as often as it is told to, and stops when it is told to. */
function asking(runs, owner, identity = identify(undefined, undefined, 'x', {})) {
  let ask;
  const run = new Run(runs, {
    tool: 'x',
    owner,
    identity,
    canAsk: true,
    execute: (options) =>
      new Promise((resolve) => {
        options.signal.addEventListener('abort', ({ target }) => {
          const content = [{ type: 'text', text: target.reason }];
          const response = { success: false, cancelled: true };
          resolve({ response, result: { content, isError: true } });
        });
        ask = async () => {
          const answer = options.ask(
            { method: 'elicitation/confirm' },
            new AbortController().signal,
          );
          while (!run.question) await new Promise((settle) => setImmediate(settle));
          return { answer };
        };
      }),
  });
  return { run, ask: () => ask() };
}

const accept = { action: 'accept', content: { confirmed: true } };

test('a requestState that was replaced is refused, and does not end the call when it expires', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const runs = new Runs();
  const { run, ask } = asking(runs);
  const { answer } = await ask();
  const old = run.suspend('b');
  const renewed = run.suspend('b');
  assert.throws(() => runs.resume(old, 'b'), /unknown, was used/);
  assert.throws(() => runs.resume(renewed, 'other'), /another request/);
  runs.resume(renewed, 'b', undefined, { [run.question.key]: accept });
  assert.throws(() => runs.resume(renewed, 'b'), /unknown, was used/);
  run.wait(1); // the request that has come back
  assert.deepEqual((await answer).data, { confirmed: true });
  t.mock.timers.tick(60 * 60_000);
  assert.equal(run.state, 'working');
});

test('a requestState counts only in the session that received it', async () => {
  const runs = new Runs();
  const [one, two] = [{}, {}];
  const { run, ask } = asking(runs, one);
  const { answer } = await ask();
  const state = run.suspend('b');
  const answers = { [run.question.key]: accept };
  for (const other of [two, undefined]) {
    assert.throws(() => runs.resume(state, 'b', other, answers), /unknown, was used/);
  }
  runs.resume(state, 'b', one, answers);
  assert.equal((await answer).success, true);
  run.isNamed = true;
  for (const other of [two, undefined]) {
    assert.throws(() => runs.find(run.id, other), /call is unknown/);
    assert.deepEqual(runs.named(other), []);
  }
  assert.deepEqual(runs.named(one), [run]);
  assert.equal(runs.find(run.id, one), run);
  run.abort('done');
  await run.ended;
});

test('a call that no client asks for is cancelled, and its result is kept for an hour', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const runs = new Runs();
  const [left, awaited] = [asking(runs), asking(runs)].map(({ run }) => run);
  for (const run of [left, awaited]) run.touch();
  awaited.wait(1);
  t.mock.timers.tick(PATIENCE_WITH_CLIENTS + 10);
  await left.ended;
  assert.deepEqual([left.state, awaited.state], ['cancelled', 'working']);
  assert.equal(left.result.content[0].text, 'the client stopped asking for the result');
  assert.equal(runs.find(left.id), left);
  awaited.wait(-1); // its request had to answer without a result
  // The timers count from a clock that stands still.
  t.mock.timers.tick(2 * PATIENCE_WITH_CLIENTS + 10);
  await awaited.ended;
  assert.equal(awaited.state, 'cancelled');
  assert.equal(runs.find(left.id), left);
  t.mock.timers.tick(2 * REMEMBERED);
  assert.throws(() => runs.find(left.id), /no longer kept/);
});

test('a call whose question is not answered in time is cancelled, with the reason', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const runs = new Runs();
  const { run, ask } = asking(runs);
  const { answer } = await ask();
  assert.equal(run.state, 'input_required');
  run.suspend('b');
  t.mock.timers.tick(PATIENCE_WITH_CLIENTS + 10);
  assert.deepEqual(await answer, { success: false, cancelled: true });
  await run.ended;
  assert.equal(run.state, 'cancelled');
  assert.equal(run.result.content[0].text, 'the question was not answered in time');
});

test('1024 calls may run and 1024 results are kept: the oldest is dropped', async () => {
  const runs = new Runs();
  const fill = () => Array.from({ length: 1024 }, () => asking(runs).run);
  const first = fill();
  assert.throws(() => asking(runs), /Too many calls are in flight/);
  for (const run of first) run.abort('enough');
  await Promise.all(first.map(({ ended }) => ended));
  const [next] = fill();
  assert.equal(runs.find(first[0].id), first[0]);
  next.abort('enough');
  await next.ended;
  assert.throws(() => runs.find(first[0].id), /no longer kept/);
  assert.equal(runs.find(first[1].id), first[1]);
});

test('a call that finishes although it was cancelled has completed', async () => {
  let finish;
  const execute = () => new Promise((resolve) => (finish = resolve));
  const identity = identify(undefined, undefined, 'x', {});
  const run = new Run(new Runs(), { tool: 'x', identity, canAsk: false, execute });
  run.abort('enough');
  assert.equal(run.state, 'working'); // until the app has said what became of it
  finish({ response: { success: true }, result: { content: [] } });
  await run.ended;
  assert.equal(run.state, 'completed');
});

test('news of an earlier call is repeated until an answer with it was sent whole', async () => {
  const runs = new Runs();
  const owner = 'session';
  const identity = { reader: owner, key: undefined, work: 'w', shown: '{}' };
  const [stopped, asked] = [asking(runs, owner, identity), asking(runs, owner)].map(
    ({ run }) => run,
  );
  stopped.abort('the user pressed stop');
  runs.left(stopped);
  await stopped.ended;
  const gateway = { runs, patience: 1000, serverInfo: { name: 'g', version: '1' } };
  const tell = async (isWhole, isLost = false) => {
    const written = Promise.resolve(isWhole);
    const exchange = () => ({ written, isLost, brokenAfter: [] });
    const server = new McpServer(gateway, 'legacy', { owner, exchange });
    const ctx = { mcpReq: { signal: new AbortController().signal } };
    const { _meta } = server.tell({ content: [] }, asked, ctx, owner);
    await written;
    return _meta?.['abp-bridge/earlier'].calls.length ?? 0;
  };
  assert.equal(await tell(false, true), 0);
  assert.equal(await tell(false), 1);
  assert.equal(await tell(true), 1);
  assert.equal(await tell(true), 0);
  asked.abort('done');
});

test('the ttl of a task does not depend on the date', (t) => {
  for (const hours of [-1, 1]) {
    const createdAt = new Date();
    const run = {
      id: 'r',
      state: 'working',
      createdAt,
      updatedAt: createdAt,
      began: performance.now(),
    };
    const later = Date.now() + hours * 3_600_000;
    t.mock.method(Date, 'now', () => later);
    const { ttl } = taskOf(run, false);
    assert.ok(ttl >= PATIENCE_WITH_CLIENTS && ttl < PATIENCE_WITH_CLIENTS + 60_000, `${ttl}`);
    assert.equal(taskOf(run, true).ttlMs >= PATIENCE_WITH_CLIENTS, true);
    t.mock.restoreAll();
  }
});

test('a question that no form can ask is not asked, and a refusal is not a consent', () => {
  assert.equal(formOf({ method: 'elicitation/resource', params: {} }), undefined);
  const nested = { type: 'object', properties: { a: { type: 'object' } } };
  assert.equal(formOf({ method: 'elicitation/input', params: { schema: nested } }), undefined);
  const form = formOf({ method: 'elicitation/confirm', params: { message: 'Really?' } });
  assert.deepEqual(responseOf(form, { action: 'accept', content: {} }).data, { confirmed: false });
  for (const said of [
    { action: 'decline' },
    { action: 'cancel' },
    undefined,
    { action: 'forged' },
  ]) {
    assert.deepEqual(responseOf(form, said), { success: false, cancelled: true });
  }
});
