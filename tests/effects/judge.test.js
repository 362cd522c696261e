// The recorder itself: what tells the truth passes, and each kind of lie is noticed.
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import { after, test } from 'node:test';
import { Database } from './database.js';
import { makeStops } from './stops.js';

const database = new Database();
after(() => database.close());

/**
 * Calls handlers without the library, and says what became of them, unless `lie` says something else.
 * @param {(told: import('./judge.js').Told) => import('./judge.js').Told} lie
 * @param {(run: () => Promise<unknown>) => Promise<unknown>} [running] how a handler is run
 * @returns {import('./stops.js').Way}
 */
const honest = (lie, running = (run) => run()) => ({
  reports: true,
  async open(handlers, { grace }) {
    const over = new AbortController();
    setMaxListeners(0, over.signal);
    const call = async (name, params, { signal, timeout }) => {
      const until = AbortSignal.any([signal, over.signal]);
      const stop = new AbortController();
      until.addEventListener('abort', () => stop.abort(until.reason));
      const clock = timeout && setTimeout(() => stop.abort(new Error('late')), timeout);
      if (signal.aborted) return lie({ success: false, outcome: 'unstarted' });
      let report;
      let outcome = 'running';
      const context = { signal: stop.signal, report: (said) => (report = said) };
      const work = running(() => handlers[name](params, context)).then(
        () => (outcome = stop.signal.aborted ? 'finished' : 'success'),
        (error) => (outcome = error === stop.signal.reason ? 'stopped' : 'failed'),
      );
      const gone = new Promise((resolve) => over.signal.addEventListener('abort', resolve));
      const patience = new Promise((resolve) =>
        stop.signal.addEventListener('abort', () => setTimeout(resolve, grace).unref()),
      );
      await Promise.race([work, patience, gone]);
      clearTimeout(clock);
      const told = () => lie({ success: outcome === 'success', outcome, report });
      if (over.signal.aborted && outcome === 'running') {
        return lie({ success: false, outcome: 'unknown' });
      }
      return outcome === 'running' ? { ...told(), later: work.then(told) } : told();
    };
    return { call, cut: () => over.abort(), close() {} };
  },
});

const wrongOf = async (way) => (await makeStops(way, database, { stops: 300, seed: 1 })).wrong;

test('whoever tells the truth is not contradicted, and every outcome is met', async () => {
  const { tally, wrong } = await makeStops(
    honest((told) => told),
    database,
    { stops: 1000, seed: 1 },
  );
  assert.deepEqual(wrong, []);
  const words = ['success', 'unstarted', 'stopped', 'finished', 'failed', 'running', 'unknown'];
  for (const word of words) assert.ok(tally[word] > 0, `${word}: ${JSON.stringify(tally)}`);
});

const WORDS = ['unstarted', 'stopped', 'finished', 'failed', 'running', 'unknown'];
for (const one of WORDS) {
  // An app that goes may say that its handlers still run.
  const others = WORDS.filter((word) => word !== one && !(one === 'unknown' && word === 'running'));
  for (const other of others) {
    test(`${other} in place of ${one} is noticed`, async () => {
      const lie = (told) => (told.outcome === one ? { ...told, outcome: other } : told);
      const wrong = await wrongOf(honest(lie));
      assert.ok(wrong.length > 0);
    });
  }
}

test('an outcome that is missing, or is no outcome, is noticed', async () => {
  for (const outcome of [undefined, 'cancelled']) {
    const wrong = await wrongOf(honest((told) => (told.success ? told : { ...told, outcome })));
    assert.ok(wrong.length > 0);
  }
});

test('a success of what did not end well is noticed, and a report that says less than was done', async () => {
  assert.ok((await wrongOf(honest((told) => ({ ...told, success: true })))).length > 0);
  assert.ok((await wrongOf(honest((told) => ({ ...told, report: undefined })))).length > 0);
});

test('a handler that runs twice is noticed', async () => {
  const twice = async (run) => (await Promise.all([run(), run()]))[0];
  assert.ok((await wrongOf(honest((told) => told, twice))).length > 0);
});
