// The outcome that an agent is told of a call that was stopped, compared with what the handler in
// the frame has done. Other channels: tests/node/outcomes.test.js.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sites } from '../support/browser.js';

let site, page;
before(async () => {
  site = await sites();
  page = await site.browser.newPage();
});
after(() => site.close());

const open = async (limits) => {
  await page.goto(site.hostUrl);
  await page.waitForFunction(() => window.isReady);
  await page.evaluate((o) => window.open_(o), {
    src: site.appUrl({ limits }),
    origin: site.appOrigin,
  });
  return page.frames()[1];
};
/** Makes a call, which is not awaited. It can be stopped by its signal and by its id. */
const begin = (name, params) =>
  page.evaluate(
    ([name, params]) => {
      window.controller = new AbortController();
      const { signal } = window.controller;
      window.pending = window.client.call(name, params, { signal, callId: `of ${name}` });
    },
    [name, params],
  );
const outcomeOfCall = async () => {
  const { success, cancelled, data, metadata } = await page.evaluate(() => window.pending);
  return { success, cancelled, data, outcome: metadata?.outcome };
};
const running = (frame, count = 1) =>
  frame.waitForFunction((count) => window.calls === count, count);
const endsOfHandlers = (frame) => frame.evaluate(() => window.handlerEnds ?? []);

const STOPS = {
  signal: () => page.evaluate(() => window.controller.abort()),
  id: () => page.evaluate(() => void window.client.cancel('of workOn')),
};
/** How a handler ends that is told to stop, and what its caller is told. */
const ENDS = { stops: 'stopped', returns: 'finished', breaks: 'failed' };

for (const [by, stop] of Object.entries(STOPS)) {
  test(`stopped by its ${by}: what its handler came to`, async () => {
    const frame = await open();
    for (const [i, [how, outcome]] of Object.entries(ENDS).entries()) {
      await begin('workOn', { how });
      await running(frame, i + 1);
      await stop();
      const expected = { success: false, cancelled: true, data: undefined, outcome };
      assert.deepEqual(await outcomeOfCall(), expected, how);
    }
    assert.deepEqual(await endsOfHandlers(frame), Object.keys(ENDS));
  });
}

test('stopped, and its handler goes on: running', async () => {
  const frame = await open({ grace: 1 });
  await begin('workOn', { how: 'goes on' });
  await running(frame);
  await STOPS.signal();
  assert.equal((await outcomeOfCall()).outcome, 'running');
});

test('stopped before it was its turn: unstarted, and it never runs', async () => {
  const frame = await open({ maxConcurrent: 1 });
  await page.evaluate(() => void (window.first = window.client.call('held')));
  await running(frame);
  await begin('workOn', { how: 'stops' });
  await page.evaluate(() => window.controller.abort());
  assert.equal((await outcomeOfCall()).outcome, 'unstarted');
  await frame.evaluate(() => window.release('done'));
  assert.equal((await page.evaluate(() => window.first)).data, 'done');
  assert.equal((await page.evaluate(() => window.client.call('echo', 1))).data, 1);
  assert.deepEqual(
    [await endsOfHandlers(frame), await frame.evaluate(() => window.calls)],
    [[], 2],
  );
});

test('whose frame is taken away while it runs: unknown', async () => {
  const frame = await open();
  await begin('workOn', { how: 'stops' });
  await running(frame);
  await page.evaluate(() => window.iframe.remove());
  assert.equal((await outcomeOfCall()).outcome, 'unknown');
});

test('a stream that is left, or stopped by its signal: stopped, and its source has ended', async () => {
  const frame = await open();
  for (const leaves of [true, false]) {
    const { success, metadata } = await page.evaluate(async (leaves) => {
      const controller = new AbortController();
      const stream = window.client.stream('count', {}, { signal: controller.signal });
      const read = async () => {
        for await (const n of stream) {
          if (n < 2) continue;
          if (leaves) break;
          controller.abort();
        }
      };
      await read().catch(() => {});
      return stream.response;
    }, leaves);
    assert.deepEqual([success, metadata.outcome], [false, 'stopped']);
  }
  assert.deepEqual(await endsOfHandlers(frame), ['stops', 'stops']);
});
