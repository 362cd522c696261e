// The outcome of a call is asked for later: in the same session, and after the connection was lost.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { deferred, held } from '../support/site.js';

/** An app, and a function that opens connections to it; `cut` breaks the last one. */
function serve(capabilities, options) {
  const exposed = expose({ app: APP, capabilities }, { origins: [], ...options });
  let last;
  closeAfter(() => exposed.close());
  const open = () => {
    const { port1, port2 } = new MessageChannel();
    last = port1;
    closeAfter(() => port1.close());
    exposed.accept(portTransport(port1));
    return port2;
  };
  return { exposed, open, cut: () => last.close() };
}

/** A client, closed after the test. */
async function clientOf(open, options) {
  const client = await connect(open, { agent: AGENT, ...options });
  closeAfter(() => client.close());
  return client;
}

const stop = ({ signal }) => Promise.reject(signal.reason);

describe('in the same session', () => {
  test('a call that still ran tells its end as soon as its handler returns', async () => {
    const work = held();
    const { client } = await openPair({ work: work.handler }, { app: { limits: { grace: 1 } } });
    const controller = new AbortController();
    const begun = work.next();
    const pending = client.call('work', {}, { signal: controller.signal });
    const call = await begun;
    call.context.report({ applied: 3 });
    controller.abort();
    const response = await pending;
    assert.equal(response.metadata.outcome, 'running');
    assert.deepEqual(Object.keys(response).sort(), ['cancelled', 'error', 'metadata', 'success']);
    const { settled } = response;
    assert.equal(settled, response.settled, 'it is asked once');
    call.end.resolve(() => 'late');
    assert.deepEqual(await settled, { outcome: 'finished', report: { applied: 3 } });
  });

  for (const [what, end, outcome] of [
    ['returns', () => 'done', 'finished'],
    ['throws its reason', stop, 'stopped'],
    ['fails', () => Promise.reject(new Error('disk full')), 'failed'],
  ]) {
    test(`of a handler that ${what} it is told: ${outcome}`, async () => {
      const work = held();
      const { client } = await openPair({ work: work.handler }, { app: { limits: { grace: 1 } } });
      const begun = work.next();
      const controller = new AbortController();
      const pending = client.call('work', {}, { signal: controller.signal, callId: 'mine' });
      const call = await begun;
      assert.deepEqual(await client.outcome('mine'), { outcome: 'running' });
      controller.abort();
      await pending;
      assert.deepEqual(await client.outcome('mine'), { outcome: 'running' });
      const settled = client.outcome('mine', { settled: true });
      call.end.resolve(end);
      assert.equal((await settled).outcome, outcome);
      assert.equal((await client.outcome('mine')).outcome, outcome);
    });
  }

  test('of a call that succeeded it is told: finished, and of one that failed: failed', async () => {
    const { client } = await openPair({
      good: () => 1,
      bad: () => Promise.reject(new Error('no')),
    });
    await client.call('good', {}, { callId: 'a' });
    await client.call('bad', {}, { callId: 'b' });
    assert.deepEqual(await client.outcome('a'), { outcome: 'finished' });
    assert.deepEqual(await client.outcome('b'), { outcome: 'failed' });
    assert.deepEqual(await client.outcome('c'), { outcome: 'unknown' });
  });

  test('what the handler of an inner call reported is told later, too, and to repeats', async () => {
    const report = { applied: 2, remaining: 1 };
    const { client } = await openPair({
      inner(_params, { signal, ...context }) {
        context.report(report);
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
      },
      outer: (_params, { call, progress }) => (progress({ progress: 1 }), call('inner')),
    });
    const controller = new AbortController();
    const call = { callId: 'a', idempotencyKey: 'k' };
    const first = await client.call(
      'outer',
      {},
      { ...call, signal: controller.signal, onProgress: () => controller.abort() },
    );
    const repeat = await client.call('outer', {}, { idempotencyKey: 'k' });
    for (const { outcome, report: reported } of [
      first.metadata,
      repeat.metadata,
      await client.outcome('a'),
    ])
      assert.deepEqual({ outcome, reported }, { outcome: 'stopped', reported: report });
  });

  test('an id that is used again names the newest call', async () => {
    const { client } = await openPair({
      good: () => 1,
      bad: () => Promise.reject(new Error('no')),
    });
    await client.call('bad', {}, { callId: 'a' });
    await client.call('good', {}, { callId: 'a' });
    assert.equal((await client.outcome('a')).outcome, 'finished');
  });

  test('and what an older call with that id reported is not told of it', async () => {
    const { client } = await openPair({
      good: () => 1,
      bad(_params, { report }) {
        report({ applied: 3 });
        throw new Error('no');
      },
    });
    const asked = { callId: 'a' };
    await client.call('bad', {}, asked);
    assert.deepEqual(await client.outcome('a'), { outcome: 'failed', report: { applied: 3 } });
    await client.call('good', {}, asked);
    assert.deepEqual(await client.outcome('a'), { outcome: 'finished' });
  });

  test('a question waits for no handler, and takes the place of none', async () => {
    const work = held();
    const { client, exposed } = await openPair(
      { work: work.handler, other: () => 'ran' },
      { app: { limits: { maxConcurrent: 2, grace: 1 } } },
    );
    const begun = [work.next(), work.next()];
    const controller = new AbortController();
    const pending = client.call('work', {}, { callId: 'a', signal: controller.signal });
    void client.call('work', {}, { callId: 'b' });
    const [first] = await Promise.all(begun);
    const settled = client.outcome('a', { settled: true });
    assert.equal((await client.outcome('a')).outcome, 'running');
    controller.abort();
    await pending;
    const third = client.call('other');
    first.end.resolve(() => 1);
    assert.equal((await third).data, 'ran');
    assert.equal((await settled).outcome, 'finished');
    assert.equal(exposed.counters[0].inFlightIn, 1);
  });

  test('who stops asking is answered, and the work goes on', async () => {
    const work = held();
    const { client } = await openPair({ work: work.handler });
    const begun = work.next();
    const pending = client.call('work', {}, { callId: 'a' });
    const call = await begun;
    const asking = new AbortController();
    const settled = client.outcome('a', { settled: true, signal: asking.signal });
    asking.abort();
    const { outcome, error } = await settled;
    assert.equal(outcome, 'unknown');
    assert.equal(error.code, 'CANCELLED');
    call.end.resolve(() => 'done');
    assert.equal((await pending).data, 'done');
  });

  test('without an agreement, nobody is asked', async () => {
    const { client } = await openPair({ good: () => 1 }, { upgrade: 'none' });
    assert.equal(client.features.outcomes, false);
    await client.call('good', {}, { callId: 'a' });
    assert.deepEqual(await client.outcome('a'), { outcome: 'unknown' });
    const keyed = await client.call('good', {}, { idempotencyKey: 'k' });
    assert.equal(keyed.error.code, 'NOT_SUPPORTED');
    assert.equal(keyed.metadata.outcome, 'unstarted');
  });

  test('what is no callId is refused', async () => {
    const { client } = await openPair({ good: () => 1 });
    await assert.rejects(client.outcome(7), { code: 'INVALID_PARAMS' });
    const { error } = await client.call('bridge/outcome', { callId: 7 });
    assert.equal(error.code, 'INVALID_PARAMS');
  });
});

describe('after the connection was lost', () => {
  test('the agent learns what became of its call, when it is back', async () => {
    const work = held();
    const app = serve({ work: work.handler });
    const client = await clientOf(app.open, { reconnect: { delay: 1 } });
    const begun = work.next();
    const pending = client.call('work', {}, {});
    const call = await begun;
    call.context.report({ applied: 12, remaining: 28 });
    app.cut();
    const response = await pending;
    assert.equal(response.error.code, 'DISCONNECTED');
    assert.equal(response.metadata.outcome, 'unknown');
    const { settled } = response;
    call.end.resolve(stop);
    assert.deepEqual(await settled, {
      outcome: 'stopped',
      report: { applied: 12, remaining: 28 },
    });
  });

  test('a result that was lost on its way is no loss of the truth', async () => {
    const app = serve({
      good: () => {
        app.cut();
        return 'done';
      },
    });
    const client = await clientOf(app.open, { reconnect: { delay: 1 } });
    const { error, settled } = await client.call('good', {}, { callId: 'a' });
    assert.equal(error.code, 'DISCONNECTED');
    assert.deepEqual(await settled, { outcome: 'finished' });
    assert.deepEqual(await client.outcome('a'), { outcome: 'finished' });
  });

  test('who asks while there is no connection waits no longer than it says', async () => {
    const app = serve({ good: () => 1 });
    let isGone = false;
    const open = () => (isGone ? new Promise(() => {}) : app.open());
    const client = await clientOf(open, { reconnect: { delay: 1 }, timeout: 0 });
    const lost = new Promise((resolve) => (client.onDisconnect = resolve));
    isGone = true;
    app.cut();
    await lost;
    const controller = new AbortController();
    const asked = client.outcome('a', { signal: controller.signal });
    controller.abort();
    assert.deepEqual(await asked, { outcome: 'unknown' });
    assert.deepEqual(await client.outcome('a', { timeout: 1 }), { outcome: 'unknown' });
  });

  test('who reconnects by hand before its client has done so learns it, too', async () => {
    const work = held();
    const app = serve({ work: work.handler });
    let isGone = false;
    const open = () => (isGone ? new Promise(() => {}) : app.open());
    const client = await clientOf(open, { reconnect: { delay: 1 }, timeout: 0 });
    const begun = work.next();
    const pending = client.call('work');
    const call = await begun;
    isGone = true;
    app.cut();
    const { settled } = await pending;
    await client.outcome('another', { timeout: 1 }); // by now it is waited for
    isGone = false;
    await client.reconnect();
    call.end.resolve(() => 'done');
    assert.deepEqual(await settled, { outcome: 'finished' });
  });

  test('who says nothing of itself, or too much, is not known again', async () => {
    for (const owner of ['', 'x'.repeat(257)]) {
      let runs = 0;
      const app = serve({ add: () => ++runs });
      for (let i = 1; i <= 2; i++) {
        const client = await clientOf(app.open, { owner });
        await client.call('add', {}, { idempotencyKey: 'k', callId: `call ${i}` });
        client.close();
      }
      assert.equal(runs, 2);
      const last = await clientOf(app.open, { owner });
      assert.deepEqual(await last.outcome('call 1'), { outcome: 'unknown' });
    }
  });

  test('nothing is waited for where no way to the app opens in time', async () => {
    const app = serve({ good: () => 1 });
    const ways = [app.open];
    const never = () => new Promise(() => {});
    const lost = deferred();
    const options = { timeout: 1000, onDisconnect: lost.resolve };
    const client = await clientOf(() => (ways.shift() ?? never)(), options);
    app.cut();
    await lost.promise;
    const reconnecting = client.reconnect();
    const before = client.outcome('a', { settled: true });
    await assert.rejects(reconnecting, { code: 'TIMEOUT' });
    assert.deepEqual(await before, { outcome: 'unknown' });
    assert.deepEqual(await client.outcome('a', { settled: true }), { outcome: 'unknown' });
  });

  test('another agent is told nothing, and one that has the secret is', async () => {
    const app = serve({ good: () => 1 });
    const first = await clientOf(app.open, { owner: 'mine alone' });
    await first.call('good', {}, { callId: 'a' });
    first.close();
    const other = await clientOf(app.open);
    assert.deepEqual(await other.outcome('a'), { outcome: 'unknown' });
    const again = await clientOf(app.open, { owner: 'mine alone' });
    assert.deepEqual(await again.outcome('a'), { outcome: 'finished' });
  });

  test('a session that its app has not given up yet is asked, too', async () => {
    const work = held();
    const app = serve({ work: work.handler });
    const first = await clientOf(app.open, { owner: 'o' });
    const begun = work.next();
    void first.call('work', {}, { callId: 'a' });
    const call = await begun;
    const second = await clientOf(app.open, { owner: 'o' });
    const settled = second.outcome('a', { settled: true });
    call.end.resolve(() => 1);
    assert.deepEqual(await settled, { outcome: 'finished' });
  });

  for (const restart of [false, true]) {
    test(`a new session on the same channel finds the calls of the older one, restart ${restart}`, async () => {
      const [agentEnd, appEnd] = linked();
      const app = serve({ good: () => 1 }, { restart });
      app.exposed.accept(appEnd);
      const first = await connect(agentEnd, { agent: AGENT });
      await first.call('good', {}, { callId: 'a' });
      // With `restart` it does not know that its session is over.
      if (restart) agentEnd.onMessage = () => {};
      else first.close();
      const second = await clientOf({
        ...agentEnd,
        set onMessage(hear) {
          agentEnd.onMessage = hear;
        },
      });
      assert.deepEqual(await second.outcome('a'), { outcome: 'finished' });
      if (restart) first.close();
    });
  }

  test('a repeat under the same id, in the next session of a channel, waits for the first and not for itself', async () => {
    const [agentEnd, appEnd] = linked();
    const work = held();
    const app = serve({ work: work.handler }, { restart: true });
    app.exposed.accept(appEnd);
    const dial = () => ({
      ...agentEnd,
      set onMessage(hear) {
        agentEnd.onMessage = hear;
      },
    });
    const client = await clientOf(dial);
    const options = { callId: 'a', idempotencyKey: 'k' };
    const begun = work.next();
    const first = client.call('work', {}, options);
    const call = await begun;
    await client.reconnect();
    const repeat = client.call('work', {}, options);
    const settled = client.outcome('a', { settled: true });
    call.end.resolve(() => 'done');
    assert.equal((await repeat).data, 'done');
    assert.equal((await settled).outcome, 'finished');
    assert.equal((await (await first).settled).outcome, 'finished');
    assert.equal(work.calls.length, 1);
  });

  test('a handler that works for longer than its app remembers is told of to who waits for it', async (t) => {
    const rememberFor = 3_600_000;
    const limits = { rememberFor, heartbeat: 0, grace: 1 };
    const work = held();
    const app = serve({ work: work.handler }, { limits });
    const client = await clientOf(app.open, { owner: 'o', limits: { heartbeat: 0 } });
    const begun = work.next();
    void client.call('work', {}, { callId: 'a' });
    const call = await begun;
    const clock = useClock(t);
    app.cut();
    const second = await clientOf(app.open, { owner: 'o', limits: { heartbeat: 0 } });
    await second.outcome('a');
    const settled = second.outcome('a', { settled: true, timeout: 0 });
    // The app is asked by now.
    await second.outcome('a');
    clock.advance(2 * rememberFor);
    call.context.report({ applied: 1 });
    call.end.resolve(() => 'done');
    assert.deepEqual(await settled, { outcome: 'finished', report: { applied: 1 } });
  });

  test('what is kept is bounded in number and in time, and let go with the app', async (t) => {
    const rememberFor = 3_600_000;
    const app = serve({ good: () => 1 }, { limits: { rememberFor, heartbeat: 2 * rememberFor } });
    const outcomeOf = async (callId) => {
      const client = await clientOf(app.open, { owner: 'o', limits: { heartbeat: 0 } });
      const { outcome } = await client.outcome(callId);
      client.close();
      while (app.exposed.sessions.length) await new Promise(setImmediate);
      return outcome;
    };
    const clock = useClock(t);
    const call = async (i) => {
      const client = await clientOf(app.open, { owner: 'o', limits: { heartbeat: 0 } });
      await client.call('good', {}, { callId: `call ${i}` });
      client.close();
      while (app.exposed.sessions.length) await new Promise(setImmediate);
    };
    for (let i = 0; i < 17; i++) await call(i);
    // The session of each question takes the place of one more.
    assert.equal(await outcomeOf('call 0'), 'unknown');
    assert.equal(await outcomeOf('call 2'), 'finished');
    assert.equal(await outcomeOf('call 2'), 'unknown');
    clock.advance(rememberFor - 1);
    assert.equal(await outcomeOf('call 16'), 'finished');
    clock.advance(1);
    assert.equal(await outcomeOf('call 16'), 'unknown');
  });

  test('what a handler said last is kept, and progress alone only for those who stop it', async () => {
    const app = serve({
      work: async ({ progress: says, report: tells, stops }, { progress, report, signal }) => {
        if (says) progress({ progress: 1 });
        if (tells) report('half');
        if (tells) report('more');
        if (!stops) throw new Error('no');
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw signal.reason;
      },
    });
    const client = await clientOf(app.open, { owner: 'o' });
    const progress = { progress: 1 };
    for (const [callId, params, expected] of [
      ['fails', { progress: true }, { outcome: 'failed' }],
      [
        'reports',
        { progress: true, report: true },
        { outcome: 'failed', report: 'more', progress },
      ],
      ['stops', { progress: true, stops: true }, { outcome: 'stopped', progress }],
      ['quiet', { stops: true }, { outcome: 'stopped' }],
    ]) {
      const pending = client.call('work', params, { callId });
      if (params.stops) await client.cancel(callId);
      await pending;
      const became = await client.outcome(callId);
      delete became.progress?.operationId;
      assert.deepEqual(became, expected, callId);
    }
  });
});

/** Both ends of a channel that outlasts sessions. */
function linked() {
  const ends = [0, 1].map((i) => ({
    carries: ['liveness'],
    post: (message) => queueMicrotask(() => ends[1 - i].onMessage(structuredClone(message))),
    onMessage: () => {},
    onClose: () => {},
    close: () => {},
  }));
  return ends;
}
