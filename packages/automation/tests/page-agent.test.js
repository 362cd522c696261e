// The part of the page transport that lives in the page, without one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expose } from '../../../js/index.js';
import { connectPage, preparePage } from '../src/index.js';
import { REPORTERS } from '../../../js/app/reporters.js';
import { pageAgent } from '../src/page-agent.js';
import { RemoteApp } from '../src/remote-app.js';

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
      call() {},
      shutdown: async ({ reason }) => void shut.push(reason),
    },
  });
  const agent = pageAgent(1000, REPORTERS);
  assert.equal(await agent.find(0), 'foreign');
  agent.take(0, '{"ask":1,"method":"open","args":[{}]}\n');
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
  assert.deepEqual(shut, ['The agent disconnected']);
  assert.throws(() => agent.next(text.length), /ended/);
});

test('an app of this library loses its agent, too: what runs is aborted', async (t) => {
  t.after(() =>
    ['addEventListener', 'removeEventListener', 'abp'].map((n) => delete globalThis[n]),
  );
  let aborted;
  const ended = new Promise((resolve) => (aborted = resolve));
  const work = (_params, { signal }) =>
    new Promise(() => signal.addEventListener('abort', () => aborted(signal.reason)));
  const app = { id: 'a', name: 'A', version: '1' };
  const exposed = expose({ app, capabilities: { work } }, { origins: [] });
  t.after(() => exposed.close());
  await exposed.ready;
  Object.assign(globalThis, { addEventListener() {}, removeEventListener() {}, abp: exposed.abp });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const agent = pageAgent(1000, REPORTERS);
  assert.equal(await agent.find(0), 'ours');
  const hello = { agent: app, protocolVersion: '0.1', features: {} };
  const call = { capability: 'work', options: { callId: 'c' } };
  const lines = [
    { type: 'initialize', id: '1', timestamp: 1, payload: hello },
    { type: 'capabilities/call', id: '2', timestamp: 1, payload: call },
  ];
  agent.take(0, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
  const text = await agent.next(0);
  assert.match(text, /"sessionId"/);
  assert.equal(exposed.sessions.length, 1);
  t.mock.timers.tick(200_000);
  assert.equal((await ended).name, 'AbortError');
  assert.equal(exposed.sessions.length, 0);
  assert.throws(() => agent.next(text.length), /ended/);
});

test('what a page says in no form that is known costs nobody anything', async (t) => {
  t.mock.method(console, 'error', () => {});
  const posted = [];
  const transport = { post: (line) => posted.push(line) };
  const app = new RemoteApp(transport, { lost() {} });
  const heard = [];
  const opening = app.open({}, (kind, said) => {
    heard.push(kind);
    return said.event; // throws where there is nothing
  });
  for (const line of [5, 'text', null, [], {}, { answer: 9 }, { report: 'Notification' }])
    transport.onMessage(line);
  transport.onMessage({ answer: posted[0].ask, value: 'opened' });
  assert.equal(await opening, 'opened');
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(heard, ['Notification']);
});

test('a piece that comes twice is taken once, and one that was not received is fetched again', async (t) => {
  t.after(() =>
    ['addEventListener', 'removeEventListener', 'abp'].map((n) => delete globalThis[n]),
  );
  const called = [];
  Object.assign(globalThis, {
    addEventListener() {},
    removeEventListener() {},
    abp: {
      initialize() {},
      call: async (name) => (called.push(name), { success: true, data: name }),
    },
  });
  const agent = pageAgent(30, REPORTERS);
  const line = (name, ask) =>
    `{"ask":${ask},"method":"call","args":["${name}",{"text":"as long as it takes"},{"callId":"${name}"}]}\n`;
  assert.equal(await agent.find(0), 'foreign');
  const both = line('a', 1) + line('b', 2);
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
  assert.equal(a.value.data, 'a');
  assert.equal(b.value.data, 'b');
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
    const { __abp_progress, __abp_notification, __abp_notify, __abp_elicitation } = globalThis;
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
    await __abp_notify({ event: 'f' });
    const answer = await __abp_elicitation({ method: 'elicitation/input', params: 'asked' });
    assert.equal(answer.data, 'asked');
    assert.deepEqual(heard, [2, 'e', 'f']);
    client.close();
    while (__abp_progress({ progress: 3 })) await new Promise(setImmediate);
  });
}
