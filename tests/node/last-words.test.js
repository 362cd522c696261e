// Each wait for what became of a call has an end: whatever happens in the turn in which its handler
// ends, and while its app is asked. The clock is held, and what is tried comes at each microtask in
// turn, so it does not depend on how quick a machine is.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';

const GRACE = 100;
const MINUTE = 60_000;
/** Microtasks before and after the moment when grace passes, or after a question. */
const BEFORE = 8;
const AFTER = 8;

const turns = async (count = 8) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};
const microtasks = async (count) => {
  for (let i = 0; i < count; i++) await undefined;
};

/** An end of a handler, which the test decides. */
function held() {
  const it = {};
  it.begun = new Promise((resolve) => (it.begin = resolve));
  it.ended = new Promise((resolve, reject) =>
    Object.assign(it, { return: resolve, throw: reject }),
  );
  it.ended.catch(() => {});
  return it;
}

/** Both ends of a channel that delivers in the next microtask. */
function linked() {
  const ends = [0, 1].map((i) => ({
    post(message) {
      const copy = structuredClone(message);
      queueMicrotask(() => ends[1 - i].onMessage(copy, []));
    },
    onMessage: () => {},
    onClose: () => {},
    close: () => {},
  }));
  return ends;
}

/**
 * An app and its agent, whose sessions begin again over another channel, as long as it is not
 * `lost`.
 */
async function open(capabilities, { grace = GRACE, ...options } = {}) {
  const limits = { heartbeat: 0, grace };
  const exposed = expose({ app: APP, capabilities }, { origins: [], limits });
  const it = { exposed, isLost: false, cut: () => {} };
  const dial = () => {
    if (it.isLost) throw new Error('there is no way');
    const [near, far] = linked();
    it.cut = () => [near, far].forEach((end) => end.onClose());
    exposed.accept(far);
    return near;
  };
  it.client = await connect(dial, {
    agent: AGENT,
    limits: { heartbeat: 0 },
    onElicitation: () => new Promise(() => {}),
    ...options,
  });
  closeAfter(() => exposed.close());
  closeAfter(() => it.client.close());
  return it;
}

/** What is loaded on demand is loaded before the clock is held. */
before(async () => {
  const { client } = await open(
    {
      stuck: () => new Promise(() => {}),
      passes: (_params, { call }) => call('stuck', {}, { timeout: 1 }),
      asks: (_params, { elicit }) => elicit({ method: 'elicitation/confirm', params: {} }),
      *streams() {},
    },
    { grace: 1, onElicitation: () => ({}) },
  );
  await client.call('asks');
  await client.call('passes');
  await client.outcome('a');
  for await (const chunk of client.stream('streams')) assert.fail(chunk);
});

/** Handlers that pass on what ends in the test. `work` is the one that is called. */
const SHAPES = {
  'works itself': ({ begin, ended }) => ({ work: () => (begin(), ended) }),
  'calls another': ({ begin, ended }) => ({
    inner: () => (begin(), ended),
    work: (_params, { call }) => call('inner'),
  }),
  'calls another, with a timeout': ({ begin, ended }) => ({
    inner: () => (begin(), ended),
    work: (_params, { call }) => call('inner', {}, { timeout: 5 }),
  }),
  'begins a chain of calls': ({ begin, ended }) => ({
    inner: () => (begin(), ended),
    middle: (_params, { call }) => call('inner', {}, { timeout: 5 }),
    outer: (_params, { call }) => call('middle'),
    work: (_params, { call }) => call('outer'),
  }),
  'leaves what it called': ({ begin, ended }) => ({
    inner: () => (begin(), ended),
    work: (_params, { call, signal }) => {
      void call('inner');
      return new Promise((_resolve, reject) => (signal.onabort = () => reject(signal.reason)));
    },
  }),
  'asks a question': ({ begin, ended }) => ({
    async work(_params, { elicit }) {
      begin();
      await elicit({ method: 'elicitation/confirm', params: {} });
      return ended;
    },
  }),
  'calls one that asks': ({ begin, ended }) => ({
    async inner(_params, { elicit }) {
      begin();
      await elicit({ method: 'elicitation/confirm', params: {} });
      return ended;
    },
    work: (_params, { call }) => call('inner'),
  }),
  streams: ({ begin, ended }) => ({
    async *work() {
      yield 1;
      begin();
      await ended;
    },
  }),
};
const ENDS = {
  finished: (work) => work.return('done'),
  failed: (work) => work.throw(new Error('disk full')),
};

describe('a handler ends in the turn in which grace passes: what is told at once or later is its end', () => {
  for (const [what, shape] of Object.entries(SHAPES))
    for (const [word, end] of Object.entries(ENDS))
      test(`${what}: ${word}`, async (t) => {
        t.mock.method(console, 'error', () => {});
        const expected = what.startsWith('leaves') ? 'stopped' : word;
        const clock = useClock(t);
        for (let moment = -BEFORE; moment <= AFTER; moment++) {
          const work = held();
          const { client } = await open(shape(work));
          const controller = new AbortController();
          const { signal } = controller;
          const told = {};
          const stream = what === 'streams' && client.stream('work', {}, { signal, callId: 'a' });
          const calling = stream
            ? stream.response
            : client.call('work', {}, { signal, callId: 'a' });
          void calling.then(async (response) => {
            told.first = response.metadata.outcome;
            if ('settled' in response) told.settled = (await response.settled).outcome;
          });
          await work.begun;
          await turns(2);
          controller.abort();
          await turns(2);
          void client
            .outcome('a', { settled: true })
            .then(({ outcome }) => (told.waited = outcome));
          await turns(2);
          if (moment < 0) {
            end(work);
            await microtasks(-moment);
            clock.advance(GRACE);
          } else {
            clock.advance(GRACE);
            await microtasks(moment);
            end(work);
          }
          await turns();
          void client.outcome('a').then(({ outcome }) => (told.later = outcome));
          await turns(2);
          const { first, ...rest } = told;
          const isOpen = first === 'running' && { settled: expected };
          assert.deepEqual(rest, { ...isOpen, waited: expected, later: expected }, `${moment}`);
          assert.ok([expected, 'running'].includes(first), `${moment}: ${first}`);
        }
      });
});

/** What happens while an app is asked, and whether it can answer in the next session. */
const DISTURBANCES = {
  'the line is cut, and comes back': [(it) => it.cut(), true],
  'the line is cut for good': [(it) => ((it.isLost = true), it.cut()), false],
  'the app closes': [(it) => ((it.isLost = true), it.exposed.close()), false],
  'the client closes': [(it) => it.client.close(), false],
  'the agent begins another session': [(it) => void it.client.reconnect().catch(() => {}), true],
};

for (const reconnect of [{ delay: 1 }, undefined])
  describe(`while an app is asked, by a client that ${reconnect ? 'reconnects' : 'does not reconnect'}`, () => {
    for (const [what, [disturb, returns]] of Object.entries(DISTURBANCES))
      test(`${what}: each question is answered`, async (t) => {
        const clock = useClock(t);
        for (let moment = 0; moment <= BEFORE + AFTER; moment++) {
          const work = held();
          const it = await open({ work: () => (work.begin(), work.ended) }, { reconnect });
          const { client } = it;
          const controller = new AbortController();
          const { signal } = controller;
          const calling = client.call('work', {}, { callId: 'a', signal });
          await work.begun;
          controller.abort();
          await turns(2);
          clock.advance(GRACE);
          const response = await calling;
          const told = {};
          const ask = (name, asked) =>
            void asked.then(({ outcome }) => {
              told[name] = outcome;
            });
          ask('settled', response.settled);
          ask('waited', client.outcome('a', { settled: true }));
          ask('at once', client.outcome('a'));
          await microtasks(moment);
          disturb(it);
          ask('after it', client.outcome('a'));
          await turns(2);
          clock.advance(1);
          await turns(2);
          work.return('done');
          await turns();
          // Those who wait for a session, or for an app that says nothing.
          for (let i = 0; i < 4; i++) {
            clock.advance(MINUTE);
            await turns(3);
          }
          assert.equal(Object.keys(told).length, 4, `${moment}: ${JSON.stringify(told)}`);
          const isBack = returns && (reconnect || what.startsWith('the agent'));
          if (isBack) assert.deepEqual([told.settled, told.waited], ['finished', 'finished']);
          else assert.ok(['unknown', 'finished'].includes(told.waited), told.waited);
        }
      });
  });

describe('an app that says nothing any more, though nothing tells that it is gone', () => {
  /** A client whose app has a call that runs, and hangs when the test says so. */
  async function hanging(t) {
    const clock = useClock(t);
    const work = held();
    const exposed = expose(
      { app: APP, capabilities: { work: () => (work.begin(), work.ended) } },
      { origins: [] },
    );
    closeAfter(() => exposed.close());
    const [near, far] = linked();
    near.carries = far.carries = ['streams'];
    exposed.accept(far);
    const { post } = near;
    const it = { clock, work, hangs: false };
    near.post = (message) => it.hangs || post(message);
    // What a client waits for an app that was told to stop is another matter.
    const limits = { grace: 100 * MINUTE };
    it.client = await connect(() => near, { agent: AGENT, limits });
    closeAfter(() => it.client.close());
    void it.client.call('work', {}, { callId: 'a' });
    await work.begun;
    return it;
  }
  /** Asks, and says how many of these ms go by before there is an answer, and which. */
  async function answerOf({ client, clock }, options, step) {
    let answer;
    void client.outcome('a', options).then((given) => (answer = given));
    let passed = 0;
    for (await turns(); !answer && passed < 5 * MINUTE; await turns()) {
      clock.advance(step);
      passed += step;
    }
    return [passed, answer?.outcome, answer?.error?.code];
  }

  for (const [what, options, ms] of [
    ['is waited for a minute', undefined, MINUTE],
    ['is waited for as long as the agent says', { timeout: 5000 }, 5000],
    ['is asked again after a minute of waiting for the handler', { settled: true }, 2 * MINUTE],
    [
      'is waited for with the handler, as long as the agent says',
      { settled: true, timeout: 5000 },
      5000,
    ],
  ])
    test(`${what}: unknown`, async (t) => {
      const it = await hanging(t);
      it.hangs = true;
      assert.deepEqual(await answerOf(it, options, 1000), [ms, 'unknown', 'TIMEOUT']);
    });

  test('is not taken for one whose handler takes long', async (t) => {
    const { client, clock, work } = await hanging(t);
    let answer;
    void client.outcome('a', { settled: true }).then((given) => (answer = given));
    for (let i = 0; i < 100; i++) {
      await turns(3);
      clock.advance(MINUTE / 4);
    }
    await turns();
    assert.equal(answer, undefined);
    work.return('done');
    await turns();
    assert.deepEqual(answer, { outcome: 'finished' });
  });
});
