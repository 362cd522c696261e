// The recorder itself: what tells the truth passes, and each kind of lie is noticed.
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import { after, test } from 'node:test';
import { Database } from './database.js';
import { contradiction } from './judge.js';
import { makeStops } from './stops.js';

const database = new Database();
after(() => database.close());

/**
 * Takes all that a handler streams, unless it is stopped: then its source is left.
 * @param {any} made what it returned
 */
async function taken(made, signal) {
  if (made instanceof ReadableStream) return taken(made.values(), signal);
  const iterator = made?.[Symbol.asyncIterator]?.();
  if (!iterator) return made;
  while (!(await iterator.next()).done) {
    if (!signal.aborted) continue;
    await iterator.return?.();
    throw signal.reason;
  }
  return undefined;
}

/**
 * Calls handlers without the library, and says what became of them, unless `lie` says something
 * else.
 * @param {(told: import('./judge.js').Told) => import('./judge.js').Told} lie
 * @param {(run: () => Promise<unknown>) => Promise<unknown>} [running] how a handler is run
 * @returns {import('./stops.js').Connection}
 */
const honest = (lie, running = (run) => run()) => ({
  reports: true,
  lacks: ['chunks', 'input', 'inner calls', 'questions', 'cancel'],
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
      const run = async () => taken(await handlers[name](params, context), stop.signal);
      const work = running(run).then(
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
      return outcome === 'running' ? { ...told(), settled: () => work.then(told) } : told();
    };
    return { call, trouble: () => over.abort(), close() {} };
  },
});

const makeSome = (way, stops = 300) => makeStops(way, database, { stops, seed: 1 });
const wrongOf = async (way) => (await makeSome(way)).filter(({ wrong }) => wrong);

test('whoever tells the truth is not contradicted, and every outcome is met', async () => {
  const told = await makeSome(
    honest((told) => told),
    1000,
  );
  assert.deepEqual(
    told.flatMap(({ wrong }) => wrong ?? []),
    [],
  );
  const words = ['success', 'unstarted', 'stopped', 'finished', 'failed', 'running', 'unknown'];
  for (const word of words) assert.ok(told.some((record) => record.word === word));
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

const THERE = { cut: false, patient: true };
const told = { at: 'told' };
/**
 * What stands, what is told of it, and in which circumstances: one word that is true, and the words
 * that are not.
 */
const CASES = {
  'a source that was left': [
    [{ at: 'begin' }, { at: 'effect' }, { at: 'signal' }, { at: 'end', how: 'left' }, told],
    'stopped',
    ['finished', 'failed', 'unstarted', 'running'],
  ],
  'a source that was left a turn ago': [
    [{ at: 'begin' }, { at: 'signal' }, { at: 'end', how: 'left' }, told],
    'running',
    ['finished', 'failed', 'unstarted', 'unknown'],
    { ...THERE, asked: true, atOnce: true },
  ],
  'a source that was left, to who has waited for its end': [
    [{ at: 'begin' }, { at: 'signal' }, { at: 'end', how: 'left' }, told],
    'stopped',
    ['finished', 'failed', 'unstarted', 'running', 'unknown'],
    { ...THERE, asked: true },
  ],
  'a source that nobody can leave': [
    [{ at: 'begin', how: 'open' }, { at: 'effect' }, told],
    'stopped',
    ['finished', 'failed', 'unstarted'],
  ],
  'a generator of which no line ran': [
    [told],
    'unstarted',
    ['finished', 'stopped', 'failed', 'running'],
  ],
  'a function that has returned a generator of which no line ran': [
    [{ at: 'begin', how: 'open' }, told],
    'stopped',
    ['finished', 'unstarted'],
  ],
  'a source that was left when its cleanup had failed': [
    [{ at: 'begin' }, { at: 'signal' }, { at: 'end', how: 'left and broke' }, told],
    'stopped',
    ['finished', 'unstarted'],
  ],
  'a source that broke when it was told to end': [
    [{ at: 'begin' }, { at: 'signal' }, { at: 'end', how: 'left' }, { at: 'breaks' }, told],
    'failed',
    ['stopped', 'finished', 'unstarted'],
  ],
  'a source that broke ahead of its reader, who had stopped': [
    [{ at: 'begin', how: 'ahead' }, { at: 'signal' }, { at: 'end', how: 'broke' }, told],
    'stopped',
    ['finished', 'unstarted'],
  ],
  'a source that goes on': [
    [{ at: 'begin' }, { at: 'signal' }, told, { at: 'effect' }, { at: 'end', how: 'left' }],
    'running',
    ['stopped', 'finished'],
    { ...THERE, patient: false },
  ],
  'a call that was passed on, and had ended': [
    [{ at: 'passes' }, { at: 'begin' }, { at: 'end', how: 'returned' }, told],
    'finished',
    ['running', 'unstarted', 'stopped', 'unknown'],
    { ...THERE, asked: true },
  ],
  'a call that was passed on, and never ran': [
    [{ at: 'passes' }, told],
    'unstarted',
    ['finished', 'unknown'],
  ],
  'a handler that left what it had called, which has ended since': [
    [
      { at: 'passes' },
      { at: 'begin' },
      { at: 'signal' },
      { at: 'leaves' },
      { at: 'end', how: 'returned' },
      told,
    ],
    'stopped',
    ['finished', 'unstarted', 'failed', 'unknown'],
  ],
  'a handler that left what it had called, which works on': [
    [{ at: 'passes' }, { at: 'begin' }, { at: 'leaves' }, told, { at: 'effect' }],
    'running',
    ['stopped', 'finished', 'failed', 'unknown'],
    { ...THERE, patient: false },
  ],
  'a thread that was ended': [
    [{ at: 'begin' }, { at: 'effect' }, { at: 'end', how: 'killed' }, told],
    'failed',
    ['finished', 'unstarted'],
    { ...THERE, asked: true },
  ],
};
for (const [what, [rows, right, wrong, circumstances = THERE]] of Object.entries(CASES)) {
  test(`${what}: it is told in one word`, () => {
    const say = (outcome) => contradiction(rows, { success: false, outcome }, circumstances);
    assert.equal(say(right), undefined);
    for (const word of wrong) assert.ok(say(word), word);
    const returned =
      rows.some(({ how }) => how === 'returned') && !rows.some(({ at }) => at === 'leaves');
    assert.equal(!contradiction(rows, { success: true }, circumstances), returned);
  });
}

test('a key that ran twice is noticed, whatever is told', () => {
  const twice = [{ at: 'begin' }, { at: 'begin' }, { at: 'end', how: 'returned' }, told];
  const lost = { cut: true, patient: false, joined: true };
  for (const outcome of WORDS) assert.ok(contradiction(twice, { success: false, outcome }, lost));
  assert.ok(contradiction(twice, { success: true }, lost));
});

test('a success of which a chunk is missing, or comes twice, is noticed', () => {
  const rows = [
    { at: 'begin' },
    { at: 'effect' },
    { at: 'effect' },
    { at: 'end', how: 'returned' },
    told,
  ];
  const say = (chunks) => contradiction(rows, { success: true, chunks }, THERE);
  assert.equal(say(2), undefined);
  for (const chunks of [0, 1, 3]) assert.match(say(chunks), /chunks were read/);
});

test('what the loss of its agent has stopped may run again, and the last run counts', () => {
  const first = [{ at: 'begin' }, { at: 'effect' }, { at: 'signal' }];
  const again = [{ at: 'begin' }, { at: 'effect' }, { at: 'end', how: 'returned' }, told];
  const say = (rows, frees = true) =>
    contradiction(rows, { success: true }, { ...THERE, cut: true, frees });
  assert.equal(say([...first, { at: 'end', how: 'stopped' }, ...again]), undefined);
  assert.ok(say([...first, { at: 'end', how: 'stopped' }, ...again], false));
  assert.ok(say([...first, { at: 'end', how: 'returned' }, ...again]));
  assert.ok(say([...first, ...again]));
  const ahead = [{ at: 'begin', how: 'ahead' }, { at: 'effect' }];
  assert.equal(say([...ahead, { at: 'end', how: 'returned' }, ...again]), undefined);
  assert.ok(say([...ahead, ...again]));
  // What it calls has never begun, the first time.
  const left = [{ at: 'passes' }, { at: 'leaves' }, { at: 'passes' }, ...again];
  assert.equal(say(left), undefined);
  assert.ok(say(left, false));
  assert.ok(say([...left, ...again]));
  // Neither is said of a call that was passed on twice, and told in between.
  const before = [{ at: 'passes' }, told, { at: 'passes' }, ...again];
  assert.ok(contradiction(before, { success: false, outcome: 'unstarted' }, THERE));
});

test('an answer that came after the stop may not be acted on; one that came before it may', () => {
  const rows = (...between) => [
    { at: 'begin' },
    ...between.map((at) => ({ at })),
    { at: 'end', how: 'returned' },
    told,
  ];
  const say = (rows) => contradiction(rows, { success: false, outcome: 'finished' }, THERE);
  assert.match(say(rows('signal', 'answered', 'permitted')), /late permission/);
  assert.equal(say(rows('answered', 'signal', 'permitted')), undefined);
  assert.equal(say(rows('signal', 'answered')), undefined);
});
