// The part of the page transport that lives in the page, without one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pageAgent } from '../../js/transports/page-agent.js';

test('an agent that fetches no more is gone: the app is shut down, and later it is said', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() =>
    ['addEventListener', 'removeEventListener', 'abp'].map((n) => delete globalThis[n]),
  );
  const shut = [];
  Object.assign(globalThis, {
    addEventListener() {},
    removeEventListener() {},
    abp: {
      initialize: async () => ({ sessionId: '1' }),
      shutdown: async ({ reason }) => void shut.push(reason),
    },
  });
  const agent = pageAgent(1000);
  agent.take(0, '{"type":"initialize","id":"1","payload":{}}\n');
  const text = await agent.next(0);
  assert.match(text, /"sessionId":"1"/);
  // It fetches again, in vain for now, and is there all the time.
  const idle = agent.next(text.length);
  t.mock.timers.tick(30_000);
  assert.equal(await idle, '');
  const again = agent.next(text.length);
  t.mock.timers.tick(30_000);
  assert.equal(await again, '');
  assert.deepEqual(shut, []);
  t.mock.timers.tick(200_000);
  assert.deepEqual(shut, ['The agent is gone']);
  assert.throws(() => agent.next(text.length), /ended/);
});

test('a piece that comes twice is taken once, and one that was not received is fetched again', async (t) => {
  t.after(() =>
    ['addEventListener', 'removeEventListener', 'abp'].map((n) => delete globalThis[n]),
  );
  const called = [];
  Object.assign(globalThis, {
    addEventListener() {},
    removeEventListener() {},
    abp: { call: async (name) => (called.push(name), { success: true, data: name }) },
  });
  const agent = pageAgent(30);
  const line = (name) =>
    `{"type":"capabilities/call","id":"${name}","payload":{"capability":"${name}","options":{"callId":"${name}"}}}\n`;
  const both = line('a') + line('b');
  agent.take(0, both.slice(0, 80));
  agent.take(0, both.slice(0, 80));
  agent.take(40, both.slice(40));
  assert.deepEqual(called, ['a', 'b']);
  let text = '';
  while (text.split('\n').length < 3) {
    await agent.next(text.length);
    text += await agent.next(text.length);
  }
  const [a, b] = text
    .trim()
    .split('\n')
    .map((json) => JSON.parse(json));
  assert.equal(a.payload.data, 'a');
  assert.equal(b.payload.data, 'b');
  await agent.end();
});
