// Tools that this library did not make: what their wrapper gives them, and what it tells of their
// calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsTool, settled } from '../src/settled.js';
import { fired, gate } from '../../rpc/tests/support/rpc.js';

const ask = callsTool();
const calls = () => ask.execute().data.calls;
/** What is told of the latest call, without its times. */
function latest() {
  const { startedAt, duration, ...call } = calls()[0];
  assert.ok(!Number.isNaN(Date.parse(startedAt)));
  assert.ok(duration === undefined || duration >= 0);
  return JSON.parse(JSON.stringify(call));
}
/** Runs `execute`, which is stopped where it waits at the gate. */
async function stopped(execute, reason, annotations) {
  const [working, controller] = [gate(), new AbortController()];
  const tool = settled({
    name: 'work',
    annotations,
    execute: (_, context) => execute(context, working),
  });
  const running = tool.execute({}, { signal: controller.signal });
  await working.reached;
  controller.abort(reason);
  return { running, working, answer: () => running };
}

test('a tool that is not stopped gives what it gives, and throws what it throws', async () => {
  const given = { sum: 3 };
  const tool = settled({ name: 'add', description: 'adds', execute: () => given });
  assert.equal(tool.description, 'adds');
  assert.equal(await tool.execute({}), given);
  const { callId, ...call } = latest();
  assert.deepEqual(call, { capability: 'add', state: 'completed' });
  assert.deepEqual(ask.execute({ callId }).data.calls.length, 1);

  const failing = settled({
    name: 'fail',
    execute() {
      throw new RangeError('too far');
    },
  });
  await assert.rejects(failing.execute({}, {}), RangeError);
  const { state, outcome, error } = latest();
  assert.deepEqual([state, outcome, error.message], ['failed', 'failed', 'too far']);
});

test('a tool gets all that the browser gives, and a signal where that gives none', async () => {
  const tool = settled({ name: 'see', execute: (input, context) => [input, context] });
  const [input, { signal, more, report }] = await tool.execute({ a: 1 }, { more: 2 });
  assert.deepEqual([input, more, signal.aborted, typeof report], [{ a: 1 }, 2, false, 'function']);
  const { signal: own } = new AbortController();
  assert.equal((await tool.execute({}, { signal: own }))[1].signal, own);
});

test('a call that was cancelled before it began never runs, and may be made again', async () => {
  let ran = 0;
  const tool = settled({ name: 'count', execute: () => ++ran });
  const { success, cancelled, error, metadata } = await tool.execute(
    {},
    { signal: AbortSignal.abort() },
  );
  assert.deepEqual(
    [success, cancelled, error.code, error.retryable],
    [false, true, 'CANCELLED', true],
  );
  assert.deepEqual([metadata.outcome, ran], ['unstarted', 0]);
  assert.equal(latest().outcome, 'unstarted');
});

test('a tool that heeds its signal has stopped, and what it reported last is told', async () => {
  const { answer } = await stopped(async ({ signal, report }, working) => {
    report({ applied: 11, remaining: 29 });
    report({ applied: 12, remaining: 28 });
    working.reach();
    throw await fired(signal);
  }, 'the agent’s own reason');
  const { error, metadata } = await answer();
  assert.deepEqual([error.message, error.retryable], ['the agent’s own reason', false]);
  assert.equal(metadata.outcome, 'stopped');
  assert.deepEqual(metadata.report, { applied: 12, remaining: 28 });
  const latestCall = latest();
  assert.deepEqual(
    [latestCall.state, latestCall.outcome, latestCall.report.applied],
    ['cancelled', 'stopped', 12],
  );
  assert.equal(latestCall.callId, metadata.callId);
});

test('one that returns all the same has finished, and one that fails by itself has failed', async () => {
  const finished = await stopped(
    async ({ signal }, working) => {
      working.reach();
      await fired(signal);
      return 'data that nobody gets';
    },
    undefined,
    { readOnlyHint: true },
  );
  const { metadata, error } = await finished.answer();
  // What only reads may be done again.
  assert.deepEqual([metadata.outcome, error.retryable], ['finished', true]);
  const failed = await stopped(async ({ signal }, working) => {
    working.reach();
    await fired(signal);
    throw new Error('disk full');
  });
  assert.equal((await failed.answer()).metadata.outcome, 'failed');
  assert.deepEqual([latest().outcome, latest().error.message], ['failed', 'disk full']);
});

test('one that has not returned is running, and can be asked for later', async () => {
  const { running, working } = await stopped(async (_context, working) => {
    working.reach();
    await working.opened;
  });
  const { callId, state, outcome } = latest();
  assert.deepEqual([state, outcome], ['cancelling', 'running']);
  working.open();
  await running;
  assert.equal(ask.execute({ callId }).data.calls[0].outcome, 'finished');
});

test('a report is what it was when it was made, and must be short JSON', async () => {
  const { answer } = await stopped(async ({ signal, report }, working) => {
    const pages = [1];
    report({ applied: pages });
    pages.push(2);
    for (const wrong of [undefined, () => {}, 'x'.repeat(4096), 1n]) {
      assert.throws(() => report(wrong), TypeError);
    }
    working.reach();
    throw await fired(signal);
  });
  assert.deepEqual((await answer()).metadata.report, { applied: [1] });
});

test('what is no tool is refused, and the tool that tells may have another name', () => {
  for (const wrong of [undefined, {}, { name: 'x' }, { execute() {} }]) {
    assert.throws(() => settled(wrong), /settled needs a tool/);
  }
  assert.deepEqual([callsTool().name, callsTool({ name: 'calls' }).name], ['abp.calls', 'calls']);
});
