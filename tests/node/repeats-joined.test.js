// A repeat joins the call that has its key: it is told what becomes of that, also when either is
// stopped or the app closes, at any moment.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AGENT } from '../support/pair.js';
import { LINES, deferred, held, siteOf } from '../support/site.js';

describe('a repeat that is stopped follows what it has joined', () => {
  for (const [what, end, outcome] of [
    ['returns', () => 'done', 'finished'],
    ['fails', () => Promise.reject(new Error('disk full')), 'failed'],
    ['says that it was cancelled', () => ({ success: false, cancelled: true }), 'stopped'],
  ]) {
    test(`and is told what became of it when that ${what}`, async () => {
      const work = held();
      // It does not wait for the grace period: nothing would end it before the test does.
      const limits = { grace: 3_600_000 };
      const site = siteOf({ capabilities: { work: work.handler }, options: { limits } });
      const client = await site.client({ limits });
      const begun = work.next();
      const first = client.call('work', {}, { idempotencyKey: 'k' });
      const call = await begun;
      call.context.report({ applied: 4 });
      const controller = new AbortController();
      const options = { idempotencyKey: 'k', signal: controller.signal, callId: 'repeat' };
      const second = client.call('work', {}, options);
      assert.equal((await client.outcome('repeat')).outcome, 'running');
      controller.abort();
      const response = await second;
      assert.deepEqual([response.cancelled, response.metadata.outcome], [true, 'running']);
      assert.equal(call.context.signal.aborted, false);
      const { settled } = response;
      call.end.resolve(end);
      await first;
      const report = { applied: 4 };
      const told = await settled;
      assert.equal(told.outcome, outcome);
      assert.equal((await client.outcome('repeat')).outcome, outcome);
      if (outcome !== 'finished') assert.deepEqual(told.report, report);
      assert.equal(work.calls.length, 1);
    });
  }

  test('and runs by itself when that never ran', async () => {
    const work = held();
    const check = deferred();
    const site = siteOf({
      capabilities: {
        work: {
          handler: work.handler,
          // Checked asynchronously: until then it has not begun.
          inputSchema: {
            '~standard': {
              version: 1,
              vendor: 'test',
              jsonSchema: { input: () => ({}) },
              validate: async (value) => (await check.promise, { value }),
            },
          },
        },
      },
    });
    const client = await site.client();
    const controller = new AbortController();
    const first = client.call('work', {}, { idempotencyKey: 'k', signal: controller.signal });
    const second = client.call('work', {}, { idempotencyKey: 'k' });
    await client.outcome('until the app has both');
    controller.abort();
    const begun = work.next();
    assert.equal((await first).metadata.outcome, 'unstarted');
    check.resolve();
    (await begun).end.resolve(() => 'by the second');
    assert.equal((await second).data, 'by the second');
    assert.equal(work.calls.length, 1);
  });

  test('and is told that it never ran when neither did', async () => {
    const written = deferred();
    const keys = {
      open: async () => ({ id: 'kept', rememberFor: 60_000 }),
      begin: async () => (await written.promise, { state: 'begun' }),
      end: async () => {},
      close() {},
    };
    const site = siteOf({
      capabilities: { work: () => assert.fail('it runs') },
      options: { keys },
    });
    const client = await site.client();
    const stop = [1, 2].map(() => new AbortController());
    const calls = stop.map(({ signal }) =>
      client.call('work', {}, { idempotencyKey: 'k', signal }),
    );
    await client.outcome('until the app has both');
    for (const controller of stop) controller.abort();
    await client.outcome('until the app has been told');
    written.resolve();
    const [first, second] = await Promise.all(calls);
    assert.deepEqual(
      [first, second].map(({ metadata }) => metadata.outcome),
      ['unstarted', 'running'],
    );
    assert.equal((await second.settled).outcome, 'unstarted');
  });
});

describe('a repeat has joined a call, and the app closes', () => {
  const checked = (until, handler) => ({
    handler,
    inputSchema: {
      '~standard': {
        version: 1,
        vendor: 'test',
        jsonSchema: { input: () => ({}) },
        validate: async (value) => (await until, { value }),
      },
    },
  });
  const lookedUp = (until, work) => ({
    capabilities: { work },
    options: {
      keys: {
        open: async () => ({ id: 'kept', rememberFor: 60_000 }),
        begin: async () => (await until, { state: 'begun' }),
        end: async () => {},
        close() {},
      },
    },
  });
  /**
   * How a call may wait before it begins.
   * @type {Record<string, (until: Promise<void>, work: () => unknown) => any>}
   */
  const WAITS = {
    'until its params are checked': (until, handler) => ({
      capabilities: { work: checked(until, handler) },
    }),
    'until its key is looked up': lookedUp,
    'until its key is looked up, and its params are checked': (until, handler) =>
      lookedUp(
        until,
        checked(Promise.resolve(), () => handler()),
      ),
    'until its key is looked up, and its first chunk is taken': (until, handler) =>
      lookedUp(until, async function* () {
        yield await handler();
      }),
  };
  for (const [what, appOf] of Object.entries(WAITS)) {
    for (const isOther of [false, true]) {
      test(`the first waits ${what}, ${isOther ? 'for another client' : 'in the same session'}: neither ran`, async () => {
        const until = deferred();
        const site = siteOf(appOf(until.promise, () => assert.fail('it runs')));
        const owner = 'the agent';
        const client = await site.client({ owner });
        const other = isOther ? await site.client({ owner }) : client;
        const first = client.call('work', {}, { idempotencyKey: 'k' });
        await client.outcome('until the app has the first');
        const repeat = other.call('work', {}, { idempotencyKey: 'k' });
        await other.outcome('until the app has both');
        site.app.close();
        for (const { metadata } of await Promise.all([first, repeat]))
          assert.equal(metadata.outcome, 'unstarted');
        until.resolve();
      });
    }
  }

  /** Two who call, each in its own session or, in the app's own page, both in one. */
  const callers = async (line, made) => {
    const site = siteOf({ ...made, ...(LINES[line] && { line }) });
    if (LINES[line]) {
      const both = [await site.client({ owner: 'o' }), await site.client({ owner: 'o' })];
      const arrived = () => Promise.all(both.map((client) => client.outcome('until it has come')));
      return { site, both, arrived };
    }
    const { abp } = site.app;
    const features = { 'bridge.outcomes': true };
    await abp.initialize({ agent: AGENT, protocolVersion: '0.1', features });
    const arrived = () => abp.call('bridge/outcome', { callId: 'nobody' });
    return { site, both: [abp, abp], arrived };
  };

  for (const line of ['ports', "the app's own page"])
    for (const [what, appOf] of Object.entries(WAITS)) {
      for (const isStopped of [false, true])
        test(`over ${line}, at any moment after the first${isStopped ? ', which is cancelled,' : ''} has waited ${what}: what never ran is told to be unstarted`, async () => {
          const words = new Set();
          for (let moment = 0; moment < 18; moment++) {
            const until = deferred();
            let runs = 0;
            const made = appOf(until.promise, () => (runs++, new Promise(() => {})));
            const { site, both, arrived } = await callers(line, made);
            const controller = new AbortController();
            const { signal } = controller;
            const first = both[0].call('work', {}, { idempotencyKey: 'k', signal });
            await arrived();
            const repeat = both[1].call('work', {}, { idempotencyKey: 'k' });
            await arrived();
            if (isStopped) controller.abort();
            if (isStopped) await arrived();
            until.resolve();
            for (let i = 0; i < moment; i++) await undefined;
            const before = runs;
            site.app.close();
            const told = await Promise.all([first, repeat]);
            await new Promise(setImmediate);
            assert.equal(runs, before, 'nothing begins in an app that has closed');
            const word = runs ? 'running' : 'unstarted';
            words.add(word);
            assert.deepEqual(
              told.map(({ metadata }) => metadata.outcome),
              [isStopped ? 'unstarted' : word, word],
              `after ${moment} microtasks`,
            );
          }
          assert.ok(words.has('unstarted'));
        });
    }

  test('at any moment after the first has returned: no repeat is told that it never ran', async () => {
    const words = new Set();
    for (let moment = 0; moment < 18; moment++) {
      const work = held();
      const { site, both, arrived } = await callers("the app's own page", {
        capabilities: { work: work.handler },
      });
      const begun = work.next();
      const [, repeat] = both.map((abp) => abp.call('work', {}, { idempotencyKey: 'k' }));
      const call = await begun;
      await arrived();
      call.end.resolve(() => 1);
      for (let i = 0; i < moment; i++) await undefined;
      site.app.close();
      const { success, metadata } = await repeat;
      words.add(success ? 'success' : metadata.outcome);
    }
    assert.deepEqual([...words].sort(), ['running', 'success']);
  });

  for (const isEarly of [true, false])
    test(`the first was stopped because its line was cut, and a repeat came ${isEarly ? 'before' : 'while'} that is written: it has not begun`, async () => {
      const [work, writing] = [held(), deferred()];
      const store = { open: async () => ({ id: 'kept', rememberFor: 60_000 }), close() {} };
      store.begin = async () => ({ state: 'begun' });
      store.end = () => (writing.resolve(), new Promise(() => {}));
      const site = siteOf({ capabilities: { work: work.handler }, options: { keys: store } });
      const client = await site.client({ owner: 'o' });
      const { cut } = site.last;
      const other = await site.client({ owner: 'o' });
      const begun = work.next();
      void client.call('work', {}, { idempotencyKey: 'k' });
      const { context, end } = await begun;
      const repeated = async () => {
        const calling = other.call('work', {}, { idempotencyKey: 'k' });
        await other.outcome('until it has come');
        return { calling };
      };
      const early = isEarly && (await repeated());
      context.signal.addEventListener('abort', () =>
        end.resolve(({ signal }) => signal.throwIfAborted()),
      );
      cut();
      await writing.promise;
      const { calling } = early || (await repeated());
      site.app.close();
      assert.equal((await calling).metadata.outcome, 'unstarted');
      assert.equal(work.calls.length, 1);
    });

  test('the first has begun: both are told that it runs', async () => {
    const work = held();
    const site = siteOf({ capabilities: { work: work.handler } });
    const client = await site.client();
    const begun = work.next();
    const calls = [1, 2].map(() => client.call('work', {}, { idempotencyKey: 'k' }));
    const call = await begun;
    await client.outcome('until the app has both');
    site.app.close();
    for (const { metadata } of await Promise.all(calls)) assert.equal(metadata.outcome, 'running');
    call.end.resolve(() => 1);
  });
});

test('a call with a key that is stopped at any moment of its beginning has run, or is told that it never ran', async () => {
  const words = new Set();
  for (let moment = 0; moment < 20; moment++) {
    const [asked, written] = [deferred(), deferred()];
    let runs = 0;
    const keys = {
      open: async () => ({ id: 'kept', rememberFor: 60_000 }),
      async begin() {
        asked.resolve();
        await written.promise;
        return { state: 'begun' };
      },
      end: async () => {},
      close() {},
    };
    // In the app's own page a cancel comes between two microtasks.
    const { abp } = siteOf({ capabilities: { work: () => ++runs } }).start({ keys });
    const features = { 'bridge.outcomes': true };
    await abp.initialize({ agent: AGENT, protocolVersion: '0.1', features });
    const controller = new AbortController();
    const options = { idempotencyKey: 'k', signal: controller.signal };
    const calling = abp.call('work', {}, options);
    await asked.promise;
    written.resolve();
    for (let i = 0; i < moment; i++) await undefined;
    controller.abort();
    const { success, metadata } = await calling;
    const word = success ? 'success' : metadata.outcome;
    words.add(word);
    assert.ok((runs ? ['success', 'finished'] : ['unstarted']).includes(word), `${word}: ${runs}`);
  }
  assert.ok(words.has('unstarted') && words.has('success'));
});
