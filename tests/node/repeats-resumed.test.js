// Work that was stopped because its agent was lost, or its app was closed, is run by its repeat.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';
import { deferred, siteOf } from '../support/site.js';

const AGAIN = { retry: { delay: 1 } };
const BACK = { reconnect: { delay: 1 } };

/** The error code, the outcome and whether the error is retryable, or `success`. */
const failureOf = ({ success, error, metadata }) =>
  success ? 'success' : [error.code, metadata.outcome, error.retryable];

describe('work that was stopped because its agent was lost is run by its repeat', () => {
  /** Loops as docs/apps.md advises, and leaves when it is told to. */
  const looping = () => {
    const rounds = [];
    const handler = async (_params, { breathe, report, earlier }) => {
      const round = { earlier, began: deferred() };
      rounds.push(round);
      waiting.shift()?.(round);
      for (let applied = 1; ; applied++) {
        if (round.ends) return { rounds: rounds.length, earlier };
        report({ applied });
        await breathe();
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const waiting = [];
    const next = () => new Promise((resolve) => waiting.push(resolve));
    return { handler, rounds, next };
  };

  for (const [what, end] of [
    ['the line was cut', (site) => site.cut()],
    ['the app was silent for too long', (site) => site.last.app.onClose()],
  ]) {
    test(`${what}: nobody pressed stop`, async () => {
      const loop = looping();
      const site = siteOf({ capabilities: { loop: loop.handler } });
      const client = await site.client(BACK);
      let begun = loop.next();
      const pending = client.call('loop', {}, AGAIN);
      await begun;
      begun = loop.next();
      end(site);
      if (what.startsWith('the app')) site.cut();
      const second = await begun;
      assert.ok(second.earlier.applied >= 1);
      second.ends = true;
      const { data } = await pending;
      assert.equal(data.rounds, 2);
      assert.deepEqual(data.earlier, second.earlier);
    });
  }

  for (const [what, end] of [
    ['was closed by its agent', (client) => client.close()],
    ['was replaced by a new one', (client) => client.reconnect()],
  ]) {
    test(`a session that ${what}`, async () => {
      const loop = looping();
      const site = siteOf({ capabilities: { loop: loop.handler } });
      const client = await site.client({ owner: 'o' });
      let begun = loop.next();
      const pending = client.call('loop', {}, { idempotencyKey: 'k' });
      await begun;
      await end(client);
      await pending;
      const again = await site.client({ owner: 'o' });
      begun = loop.next();
      const repeat = again.call('loop', {}, { idempotencyKey: 'k' });
      (await begun).ends = true;
      assert.equal((await repeat).data.rounds, 2);
    });
  }

  /** A store that outlives its app, as docs/keys.md asks for one. */
  const storeOf = () => {
    const kept = new Map();
    const ended = [];
    const keys = {
      open: async () => ({ id: 'the store', rememberFor: 100_000 }),
      async begin(key) {
        const known = kept.get(key);
        if (known && !known.again) return { state: 'ended', ended: known };
        if (known === null) return { state: 'lost' };
        kept.set(key, null);
        return { state: 'begun', report: known?.report };
      },
      async end(key, became) {
        kept.set(key, became);
        ended.shift()?.(became);
      },
      async close() {},
    };
    return { keys, written: () => new Promise((resolve) => ended.push(resolve)) };
  };

  for (const [what, end] of Object.entries({
    'the app was closed': ({ app }) => app.close(),
    'its agent has closed the session': ({ client }) => client.close(),
    'its line was cut': ({ port }) => port.close(),
  })) {
    for (const only of [true, false])
      test(`${what}: the store of an app for ${only ? 'one port' : 'many agents'} is told that it was stopped`, async () => {
        const { keys, written } = storeOf();
        const loop = looping();
        const start = async () => {
          const { port1, port2 } = new MessageChannel();
          closeAfter(() => port1.close());
          const definition = { app: APP, capabilities: { loop: loop.handler } };
          const app = expose(definition, only ? { port: port1, keys } : { origins: [], keys });
          closeAfter(() => app.close());
          if (!only) app.accept(portTransport(port1));
          const client = await connect(port2, { agent: AGENT, owner: 'o' });
          closeAfter(() => client.close());
          return { app, client, port: port1 };
        };
        const first = await start();
        let begun = loop.next();
        void first.client.call('loop', {}, { idempotencyKey: 'k' });
        await begun;
        const became = written();
        end(first);
        const { outcome, again } = await became;
        assert.deepEqual([outcome, again], ['stopped', true]);
        const { client } = await start();
        begun = loop.next();
        const repeat = client.call('loop', {}, { idempotencyKey: 'k' });
        const second = await begun;
        assert.ok(second.earlier.applied >= 1);
        second.ends = true;
        assert.equal((await repeat).data.rounds, 2);
      });
  }

  test('but not what somebody has stopped before', async () => {
    const loop = looping();
    const site = siteOf({ capabilities: { loop: loop.handler } });
    const client = await site.client({ owner: 'o' });
    const begun = loop.next();
    const controller = new AbortController();
    const pending = client.call('loop', {}, { idempotencyKey: 'k', signal: controller.signal });
    await begun;
    controller.abort();
    site.cut();
    await pending;
    const again = await site.client({ owner: 'o' });
    const repeat = await again.call('loop', {}, { idempotencyKey: 'k' });
    assert.deepEqual(failureOf(repeat), ['CANCELLED', 'stopped', false]);
    assert.equal(loop.rounds.length, 1);
  });

  for (const [what, name, reports] of [
    ['its report is told if the repeat fails before it has one of its own', 'work', [5]],
    [
      'the report of a call that the repeat passes on is told, not the one of before',
      'outer',
      [5, 7],
    ],
  ])
    test(what, async () => {
      let runs = 0;
      const site = siteOf({
        capabilities: {
          async work(_params, { report, signal }) {
            const applied = reports[runs++];
            if (applied) report({ applied });
            if (runs > 1) throw new Error('no');
            site.cut();
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            signal.throwIfAborted();
          },
          outer: (params, { call }) => call('work', params),
        },
      });
      const client = await site.client(BACK);
      const response = await client.call(name, {}, AGAIN);
      assert.deepEqual(failureOf(response), ['OPERATION_FAILED', 'failed', false]);
      assert.deepEqual(response.metadata.report, { applied: reports.at(-1) });
      assert.equal(runs, 2);
    });
});
