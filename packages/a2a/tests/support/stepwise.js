/** Executors that a test leads step by step, and requests about their tasks. */
import assert from 'node:assert/strict';
import { VERSIONS, ask, deferred, updateOf, open } from './a2a.js';

/** An executor that stops at every step until the test lets it go on. */
export function stepwise() {
  const runs = [];
  const waiting = [];
  const execute = async (ctx) => {
    const run = { ctx, gate: deferred(), returned: deferred() };
    runs.push(run);
    waiting.shift()?.resolve(run);
    try {
      await run.gate.promise;
    } finally {
      run.returned.resolve();
    }
  };
  const nextRun = () => {
    const next = deferred();
    waiting.push(next);
    return next.promise;
  };
  return { execute, runs, nextRun };
}

/** Begins a streamed task and waits until its executor runs. */
export async function beginTask(url, script, version, text = 'go') {
  const names = VERSIONS[version];
  const running = script.nextRun();
  const stream = await open(url, names.stream, { message: names.message(text) }, names.headers);
  const run = await running;
  const first = await stream.next();
  if (version !== 'gem') assert.equal(updateOf(await stream.next()), 'working');
  assert.equal(updateOf(first), version === 'gem' ? 'working' : 'task submitted');
  return { stream, run, id: run.ctx.task.id, names };
}

/** Sends a text as a message. */
export const sendText = (url, names, text) =>
  ask(url, names.send, { message: names.message(text) }, names.headers);

/** Sends a request about a task: `get`, `cancel` or `resubscribe`. */
export const askAbout = (url, names, what, id) => ask(url, names[what], { id }, names.headers);
