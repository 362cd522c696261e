// The part of the page transport that lives in the page, without one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectPage, preparePage } from '../../js/automation/index.js';
import { pageAgent } from '../../js/automation/page-agent.js';

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

for (const method of ['evaluateOnNewDocument', 'addInitScript']) {
  test(`an app that looks for the reporting functions while it loads is heard on a page that was prepared (${method})`, async (t) => {
    const globals = ['addEventListener', 'removeEventListener', 'abp'];
    const before = Object.keys(globalThis);
    t.after(() =>
      [...globals, ...Object.keys(globalThis).filter((key) => !before.includes(key))].forEach(
        (name) => delete globalThis[name],
      ),
    );
    const inPage = (script) => (0, eval)(script);
    // What the driver does when the page is opened, before the page's own scripts run.
    await preparePage({ [method]: async (script) => inPage(script) });
    const { __abp_progress, __abp_notification, __abp_elicitation } = globalThis;
    assert.equal(__abp_progress({ progress: 1 }), undefined);
    const app = { id: 'a', name: 'A', version: '1' };
    const session = { sessionId: '1', app, capabilities: [], features: {} };
    const abp = { initialize: async () => session, call: async () => ({ success: true }) };
    Object.assign(globalThis, { addEventListener() {}, removeEventListener() {}, abp });
    const heard = [];
    const client = await connectPage(
      {
        evaluateHandle: async (script) => {
          const agent = inPage(script);
          const evaluate = async (question, argument) => question(agent, argument);
          return { evaluate, dispose: async () => {} };
        },
      },
      {
        agent: { name: 'a', version: '1' },
        onProgress: ({ progress }) => heard.push(progress),
        onNotification: (event) => heard.push(event),
        onElicitation: ({ params }) => params,
      },
    );
    await __abp_progress({ progress: 2 });
    await __abp_notification({ event: 'e' });
    const answer = await __abp_elicitation({ method: 'elicitation/input', params: 'asked' });
    assert.equal(answer.data, 'asked');
    assert.deepEqual(heard, [2, 'e']);
    client.close();
    while (__abp_progress({ progress: 3 })) await new Promise(setImmediate);
  });
}
