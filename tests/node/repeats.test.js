// A call that its client makes again by itself does not run twice: only the app that remembers the
// first attempt is asked.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LINES, siteOf } from '../support/site.js';

const AGAIN = { retry: { delay: 1 } };
const BACK = { reconnect: { delay: 1 } };

/** The error code, the outcome and whether the error is retryable, or `success`. */
const failureOf = ({ success, error, metadata }) =>
  success ? 'success' : [error.code, metadata.outcome, error.retryable];

/** An app that pays; the line is cut when it does so first. `runs` counts how often it has paid. */
function siteThatPays(line) {
  const site = siteOf({
    line,
    capabilities: {
      pay: () => {
        if (++site.runs === 1) site.cut();
        return { runs: site.runs };
      },
    },
  });
  return Object.assign(site, { runs: 0 });
}

for (const line of Object.keys(LINES))
  test(`over ${line}, a call that is made again is not run twice when only the line was cut, and gets the data`, async () => {
    const site = siteThatPays(line);
    const client = await site.client(BACK);
    const before = client.memory;
    assert.deepEqual((await client.call('pay', {}, AGAIN)).data, { runs: 1 });
    assert.deepEqual(client.memory, before);
    assert.equal(site.runs, 1);
  });

describe('a call that is made again', () => {
  for (const [what, options] of [
    ['by retry', AGAIN],
    ['with a key of its own', { ...AGAIN, idempotencyKey: 'pay order 17' }],
  ]) {
    test(`is not made to an app that was restarted meanwhile: ${what}`, async () => {
      let runs = 0;
      const site = siteOf({
        capabilities: {
          pay: () => {
            if (++runs === 1) site.restart();
            return { runs };
          },
        },
      });
      const client = await site.client(BACK);
      const before = client.memory;
      const back = new Promise((resolve) => (client.onReconnect = resolve));
      const response = await client.call('pay', {}, options);
      assert.deepEqual(failureOf(response), ['DISCONNECTED', 'unknown', false]);
      await back;
      assert.equal(runs, 1);
      assert.notEqual(client.memory.id, before.id);
      assert.equal((await response.settled).outcome, 'unknown');
    });
  }

  for (const idempotencyKey of ['', null])
    test(`with ${JSON.stringify(idempotencyKey)} as its key is refused, and not run`, async () => {
      const site = siteThatPays();
      const client = await site.client(BACK);
      for (const options of [{ ...AGAIN, idempotencyKey }, { idempotencyKey }])
        await assert.rejects(client.call('pay', {}, options), {
          code: 'INVALID_PARAMS',
          message: 'idempotencyKey of a call must be a string of 1 to 256 characters',
          outcome: 'unstarted',
        });
      await assert.rejects(client.invoke('pay', {}, { idempotencyKey }), {
        code: 'INVALID_PARAMS',
        outcome: 'unstarted',
      });
      assert.equal(site.runs, 0);
    });

  test('whose key is undefined is given one', async () => {
    const site = siteThatPays();
    const client = await site.client(BACK);
    const options = { ...AGAIN, idempotencyKey: undefined };
    assert.deepEqual((await client.call('pay', {}, options)).data, { runs: 1 });
    assert.equal(site.runs, 1);
  });

  test('is not made to another app behind the same address', async () => {
    const runs = [0, 0];
    const site = siteOf({ capabilities: {} });
    const apps = [0, 1].map((i) => {
      const app = site.start();
      app.set('pay', () => {
        runs[i]++;
        site.cut();
      });
      return app;
    });
    [site.app] = apps;
    const client = await site.client(BACK);
    [, site.app] = apps;
    assert.deepEqual(failureOf(await client.call('pay', {}, AGAIN)), [
      'DISCONNECTED',
      'unknown',
      false,
    ]);
    assert.deepEqual(runs, [1, 0]);
  });
});

describe('the memory of an app', () => {
  test('is named to those who may ask it, and to nobody else', async () => {
    const site = siteOf({
      capabilities: { ping: () => 1 },
      options: { limits: { rememberFor: 7000 } },
    });
    const client = await site.client();
    assert.equal(client.memory.rememberFor, 7000);
    assert.match(client.memory.id, /.{16,}/);
    const other = await site.client();
    assert.deepEqual(other.memory, client.memory);
    let told;
    site.reads = (message) => (told = message);
    const plain = await site.client({ upgrade: 'none' });
    assert.equal(plain.memory, undefined);
    assert.equal('memory' in told.payload, false);
  });

  test('that is not named, as by older apps, is not trusted with a repeat', async () => {
    let runs = 0;
    const site = siteOf({
      capabilities: {
        pay: () => {
          runs++;
          site.cut();
        },
      },
    });
    site.reads = (message) => ({ ...message, payload: { ...message.payload, memory: undefined } });
    const client = await site.client(BACK);
    assert.equal(client.memory, undefined);
    assert.deepEqual(failureOf(await client.call('pay', {}, AGAIN)), [
      'DISCONNECTED',
      'unknown',
      false,
    ]);
    assert.equal(runs, 1);
  });

  test('that is named wrongly is none', async () => {
    const site = siteOf({ capabilities: {} });
    for (const memory of [7, null, {}, { id: 7, rememberFor: 5 }, { id: 'a', rememberFor: 'b' }]) {
      site.reads = (message) => ({ ...message, payload: { ...message.payload, memory } });
      assert.equal((await site.client()).memory, undefined);
    }
  });

  for (const [what, pass] of [
    // As while a computer sleeps: one of the clocks stands still, on this side or on that.
    ['the clock on the wall', (t, now) => t.mock.method(Date, 'now', () => now() + 3_600_000)],
    [
      'the clock of the page',
      (t) => {
        const now = performance.now.bind(performance);
        t.mock.method(performance, 'now', () => now() + 3_600_000);
      },
    ],
  ]) {
    test(`is not asked again once ${what} says that it may have forgotten`, async (t) => {
      let runs = 0;
      const now = Date.now.bind(Date);
      const site = siteOf({
        capabilities: {
          pay: () => {
            runs++;
            site.cut();
          },
        },
      });
      const client = await site.client(BACK);
      client.onDisconnect = () => pass(t, now);
      const response = await client.call('pay', {}, AGAIN);
      assert.deepEqual(failureOf(response), ['DISCONNECTED', 'unknown', false]);
      assert.equal(runs, 1);
    });
  }
});
