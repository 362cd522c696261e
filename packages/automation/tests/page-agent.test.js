// What lives in a driven page, without a browser: what it does when its agent goes, and what it
// hears twice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useClock } from '../../../tests/support/clock.js';
import { expose } from 'abp-bridge';
import { connectPage, preparePage } from '../src/index.js';
import { drivenPage } from './support/driven-page.js';

const AGENT = { name: 'a', version: '1' };
const APP = { id: 'a', name: 'A', version: '1' };
const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
};

/**
 * A page whose driver each of these is asked by: it may stop answering, or do what it is asked and
 * say otherwise.
 */
function page(members, evaluating = (evaluate) => evaluate()) {
  const { evaluateHandle } = drivenPage(members);
  return {
    async evaluateHandle(script) {
      const handle = await evaluateHandle(script);
      const evaluate = (...args) => evaluating(() => handle.evaluate(...args));
      return { ...handle, evaluate };
    },
  };
}

/** A page whose driver is there until `cut` is called: it is gone without a word then. */
function cuttable(members) {
  let isCut = false;
  const never = new Promise(() => {});
  const target = page(members, (evaluate) => (isCut ? never : evaluate()));
  return { target, cut: () => (isCut = true) };
}

test('an agent that fetches no more is gone: the app is shut down', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const shut = [];
  const abp = {
    initialize: async () => ({ sessionId: '1', protocolVersion: '0.1', app: APP, features: {} }),
    listCapabilities: async () => [],
    call() {},
    shutdown: async ({ reason }) => void shut.push(reason),
  };
  const { target, cut } = cuttable({ abp });
  await connectPage(target, { agent: AGENT });
  // It fetches again, in vain for now, and is there all the time.
  for (let minute = 0; minute < 10; minute++) {
    t.mock.timers.tick(60_000);
    await turns();
  }
  assert.deepEqual(shut, []);
  cut();
  for (const ms of [60_000, 200_000]) {
    t.mock.timers.tick(ms);
    await turns();
  }
  assert.deepEqual(shut, ['The agent disconnected']);
});

test('an app of this library loses its agent, too: what runs is aborted', async (t) => {
  let aborted, began;
  const ended = new Promise((resolve) => (aborted = resolve));
  const begun = new Promise((resolve) => (began = resolve));
  const work = (_params, { signal }) =>
    new Promise(() => {
      signal.addEventListener('abort', () => aborted(signal.reason));
      began();
    });
  const exposed = expose({ app: APP, capabilities: { work } }, { origins: [] });
  t.after(() => exposed.close());
  await exposed.ready;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { target, cut } = cuttable({ abp: exposed.abp });
  const client = await connectPage(target, { agent: AGENT });
  void client.call('work');
  await begun;
  assert.equal(exposed.sessions.length, 1);
  cut();
  for (const ms of [60_000, 200_000]) {
    t.mock.timers.tick(ms);
    await turns();
  }
  assert.equal((await ended).name, 'AbortError');
  assert.equal(exposed.sessions.length, 0);
});

test('what a driver gave up is asked again: a piece that comes twice is taken once, and one that was not received is fetched again', async (t) => {
  const called = [];
  const abp = {
    initialize: async () => ({ sessionId: '1', protocolVersion: '0.1', app: APP, features: {} }),
    listCapabilities: async () => [{ name: 'a', available: true }],
    call: async (_name, params) => (called.push(params.n), { success: true, data: params.n }),
  };
  let fails = false;
  let failed = 0;
  const target = page({ abp }, async (evaluate) => {
    const answer = await evaluate();
    if (!fails || failed++ % 2) return answer;
    throw new Error('Runtime.callFunctionOn timed out');
  });
  const client = await connectPage(target, { agent: AGENT });
  t.after(() => client.close());
  fails = true;
  for (const n of [1, 2, 3]) assert.equal((await client.call('a', { n })).data, n);
  assert.deepEqual(called, [1, 2, 3]);
  assert.ok(failed > 6);
});

for (const grace of [100, 100_000])
  test(`an app that has accepted a cancel and goes on is known to run before its agent gives up (${grace} ms)`, async (t) => {
    let isAsked;
    const abp = {
      initialize: async () => ({ sessionId: '1', protocolVersion: '0.1', app: APP, features: {} }),
      listCapabilities: async () => [{ name: 'a', available: true }],
      call: () => new Promise(() => {}),
      cancel: async (callId) => ((isAsked = true), { callId, cancelled: true }),
    };
    const client = await connectPage(page({ abp }), { agent: AGENT, limits: { grace } });
    t.after(() => client.close());
    const clock = useClock(t);
    let response;
    const result = client.call('a', {}, { callId: 'c' }).then((value) => (response = value));
    void client.cancel('c');
    while (!isAsked) await turns();
    for (; !response; clock.advance(grace / 10)) await turns();
    assert.deepEqual([(await result).cancelled, response.metadata.outcome], [true, 'running']);
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

test('what an app answers is not read as the answer of a WebMCP tool, though tools are wanted', async (t) => {
  const abp = {
    initialize: async () => ({ sessionId: '1', protocolVersion: '0.1', app: APP, features: {} }),
    call: async () => ({ output: 'text' }),
  };
  const client = await connectPage(drivenPage({ abp }), { agent: AGENT, webmcp: true });
  t.after(() => client.close());
  const { success, error } = await client.call('work');
  assert.equal(success, false);
  assert.match(error.message, /not an ABP response/);
});

test('an app whose question has an answer that cannot be sent is told so', async (t) => {
  const abp = {
    initialize: async () => ({ sessionId: '1', protocolVersion: '0.1', app: APP, features: {} }),
    call: async () => ({ success: true }),
  };
  const client = await connectPage(drivenPage({ abp }), {
    agent: AGENT,
    onElicitation: () => ({ success: true, data: () => {} }),
  });
  t.after(() => client.close());
  await assert.rejects(abp.onElicitation({ method: 'elicitation/input' }), {
    message: 'A function cannot be sent',
  });
});
