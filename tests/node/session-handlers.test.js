// A handler: what it is given, the calls that it makes itself, and what is told of its end.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { beforeEach, describe, test } from 'node:test';
import { AbpError, expose } from '../../parts/main/index.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';
import { CONNECTIONS } from '../support/connections.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));
const until = async (holds) => {
  while (!holds()) await turn();
};

/** A handler that goes on until a test ends it: `begun` settles with what it is given. */
function held() {
  const it = {};
  it.begun = new Promise((resolve) => {
    it.handler = (params, context) =>
      new Promise((end, fail) => resolve({ params, context, end, fail }));
  });
  return it;
}
const untilAborted = (_params, { signal }) =>
  new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  );

/**
 * An app whose agent a test plays, with a session.
 * @param {Record<string, unknown>} [features] beside progress
 */
async function played(capabilities, features, options) {
  const { port1, port2 } = new MessageChannel();
  const exposed = expose({ app: APP, capabilities }, { port: port1, ...options });
  closeAfter(() => exposed.close());
  const raw = new Raw(port2);
  closeAfter(() => port2.close());
  await raw.ask('initialize', 'h', {
    agent: AGENT,
    protocolVersion: '0.1',
    features: { progress: true, ...features },
  });
  return raw;
}

describe('the context of a handler', () => {
  test('shows its members, and nothing of what they belong to', async () => {
    const work = held();
    const { client } = await openPair({ work: work.handler });
    void client.call('work', {}, { callId: 'c' });
    const { context } = await work.begun;
    const members = [
      'signal',
      'token',
      'progress',
      'elicit',
      'call',
      'callId',
      'input',
      'progressToken',
      'breathe',
      'report',
      'earlier',
    ];
    assert.deepEqual(Object.keys(context), members);
    assert.equal({ ...context }.callId, 'c');
    for (const key of members) assert.ok(key in context, key);
    for (const key of ['request', 'handle', 'start', 'toString']) {
      assert.equal(context[key], undefined, key);
      assert.equal(key in context, false, key);
    }
  });

  for (const [connection, open] of Object.entries(CONNECTIONS))
    test(`over ${connection}, has a token that is cancelled before the signal fires, or when it is first read`, async () => {
      for (const readBefore of [true, false]) {
        const controller = new AbortController();
        let seen;
        const pair = await open({
          work(_params, context) {
            const { signal } = context;
            const token = readBefore ? context.token : undefined;
            assert.equal(token?.cancelled ?? false, false);
            controller.abort();
            return new Promise((resolve) =>
              signal.addEventListener('abort', () => {
                seen = [context.token.cancelled, context.token === (token ?? context.token)];
                resolve();
              }),
            );
          },
        });
        await pair.call('work', {}, { signal: controller.signal });
        assert.deepEqual(seen, [true, true]);
        pair.close();
      }
    });

  test('asks and calls nothing once the call has ended', async () => {
    const work = held();
    const asked = [];
    const { client } = await openPair(
      { work: work.handler, inner: assert.fail },
      { agent: { onElicitation: ({ params }) => (asked.push(params), 'yes') } },
    );
    const pending = client.call('work');
    const { context, end } = await work.begun;
    const ask = (params) => context.elicit({ method: 'elicitation/input', params });
    assert.equal((await ask('now')).data, 'yes');
    end();
    await pending;
    assert.equal((await ask('late')).success, false);
    const { cancelled, metadata } = await context.call('inner');
    assert.deepEqual([cancelled, metadata.outcome], [true, 'unstarted']);
    assert.deepEqual(asked, ['now']);
  });

  test('sends the progress that was asked for, and no other', async () => {
    const raw = await played({ work: (_params, { progress }) => progress({ progress: 1 }) });
    const call = { capability: 'work', params: {} };
    assert.equal((await raw.ask('capabilities/call', 'c', call)).type, 'capabilities/call-result');
    const told = await raw.ask('capabilities/call', 'd', {
      ...call,
      options: { progressToken: 'p' },
    });
    assert.deepEqual([told.type, told.payload], ['progress', { progress: 1, operationId: 'p' }]);
    assert.equal((await raw.next()).id, 'd');
  });
});

describe('a call that an app makes to itself', () => {
  test('has params, a timeout and an id of its own, and its questions are about the one of its agent', async () => {
    const seen = {};
    const { client } = await openPair(
      {
        outer: (_params, { call }) => call('middle', 1),
        middle: (params, { call }) => call('inner', params, { timeout: 50 }),
        async inner(params, context) {
          Object.assign(seen, {
            params,
            callId: context.callId,
            progressToken: context.progressToken,
          });
          await context.elicit({ method: 'elicitation/input', params: {} });
          return untilAborted(params, context);
        },
        none: (_params, { call }) => call('echo'),
        echo: (params) => params,
      },
      { agent: { onElicitation: () => 'yes' } },
    );
    const { error } = await client.call('outer', {}, { callId: 'mine', onProgress() {} });
    assert.equal(error.code, 'TIMEOUT');
    assert.deepEqual([seen.params, seen.progressToken], [1, undefined]);
    assert.notEqual(seen.callId, 'mine');
    assert.deepEqual(await client.invoke('none'), {});
  });

  test('gives its result as it is, whatever its app’s transport makes of it', async () => {
    const content = new Blob(['abc']);
    const { call } = await CONNECTIONS['a WebSocket']({
      inner: () => ({ content, mimeType: 'a/b' }),
      outer: async (_params, context) => (await context.call('inner')).data.content === content,
    });
    assert.equal((await call('outer')).data, true);
  });

  const reason = new Error('enough');
  /** How its signal fires, and what it is told. */
  const SIGNALS = {
    'before it begins': [
      (controller) => controller.abort(reason),
      undefined,
      'CANCELLED',
      'unstarted',
    ],
    'as it begins': [undefined, (controller) => controller.abort(reason), 'CANCELLED', 'stopped'],
    'while it runs': [
      undefined,
      (controller) => setImmediate(() => controller.abort(reason)),
      'CANCELLED',
      'stopped',
    ],
    'because time ran out': [
      undefined,
      (controller) =>
        setImmediate(() => controller.abort(new DOMException('enough', 'TimeoutError'))),
      'TIMEOUT',
      'stopped',
    ],
  };
  for (const [what, [before, meanwhile, code, outcome]] of Object.entries(SIGNALS))
    test(`ends by its signal, which fires ${what}, and leaves that alone then`, async () => {
      const controller = new AbortController();
      const { signal } = controller;
      let isBegun = false;
      const { client } = await openPair({
        inner(params, context) {
          isBegun = true;
          const ends = untilAborted(params, context);
          meanwhile(controller);
          return ends;
        },
        outer(_params, { call }) {
          before?.(controller);
          return call('inner', {}, { signal });
        },
      });
      const { cancelled, error, metadata } = await client.call('outer');
      assert.deepEqual([cancelled, error.code, metadata.outcome], [true, code, outcome]);
      if (code === 'CANCELLED') assert.equal(error.message, 'enough');
      assert.equal(isBegun, !before);
      assert.deepEqual(getEventListeners(signal, 'abort'), []);
    });

  test('leaves its signal alone when it is refused, or has ended', async () => {
    const { signal } = new AbortController();
    const listeners = () => getEventListeners(signal, 'abort').length;
    const { client } = await openPair({
      inner: async () => (await turn(), listeners()),
      outer: ({ name }, { call }) => call(name, {}, { signal }),
    });
    assert.equal(await client.invoke('outer', { name: 'inner' }), 1);
    assert.equal(listeners(), 0);
    const { error, metadata } = await client.call('outer', { name: 'nothing' });
    assert.deepEqual([error.code, metadata.outcome], ['UNKNOWN_CAPABILITY', 'unstarted']);
    assert.equal(listeners(), 0);
  });
});

describe('the end of a call', () => {
  test('tells how long its handler ran, from the message or from its turn on', async (t) => {
    const [first, second] = [held(), held()];
    const { client } = await openPair(
      { first: first.handler, second: second.handler },
      { app: { limits: { maxConcurrent: 1 } } },
    );
    const clock = useClock(t);
    const calls = [client.call('first'), client.call('second'), client.call('none')];
    await calls[2]; // by now the others have come, too
    clock.advance(30);
    (await first.begun).end();
    const { end } = await second.begun;
    clock.advance(20);
    end();
    const durations = (await Promise.all(calls))
      .slice(0, 2)
      .map(({ metadata }) => metadata.duration);
    assert.deepEqual(durations, [30, 20]);
  });

  test('says nothing of a report or of progress where there was none', async () => {
    const { client } = await openPair({ fails: () => Promise.reject(new AbpError('OWN', 'no')) });
    const { metadata } = await client.call('fails');
    assert.deepEqual(Object.keys(metadata), ['duration', 'outcome']);
  });

  const timeout = { code: 'TIMEOUT', message: 'late', retryable: false };
  const declined = { code: 'CANCELLED', message: 'declined', retryable: false };
  for (const [what, response, code, outcome] of [
    ['that it timed out', { error: timeout }, 'TIMEOUT', 'stopped'],
    [
      'that it timed out, and more',
      { error: timeout, metadata: { outcome: 'finished' } },
      'TIMEOUT',
      'finished',
    ],
    ['that it was declined', { error: declined }, 'CANCELLED', 'stopped'],
  ])
    test(`is what its handler says by a response: ${what}`, async () => {
      const { client } = await openPair({
        work: () => ({ success: false, cancelled: true, ...response }),
      });
      const told = await client.call('work');
      assert.equal(told.error.code, code);
      if (code === 'CANCELLED') assert.equal(told.error.message, 'declined');
      assert.equal(told.metadata.outcome, outcome);
    });

  test('has the words of who cancelled it, whatever its handler says then', async () => {
    const controller = new AbortController();
    const { client } = await openPair({
      work: async (_params, { signal }) => {
        controller.abort('enough');
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return { success: false, cancelled: true, error: declined };
      },
    });
    const { error } = await client.call('work', {}, { signal: controller.signal });
    assert.equal(error.message, 'enough');
  });

  test('comes after the signal has fired: a cancel in a frame is answered then', async () => {
    const work = held();
    const raw = await played({ work: work.handler }, { 'bridge.frames': true });
    raw.port.postMessage([1, 1, 'work', {}]);
    const { context } = await work.begun;
    const { callId, signal } = context;
    let fired = false;
    signal.addEventListener('abort', () => (fired = true));
    raw.send('capabilities/cancel', 'k', { callId, reason: 'enough' });
    const [, , , answer] = await raw.next();
    assert.deepEqual([fired, answer.type], [true, 'capabilities/cancel-result']);
  });
});

describe('the console is told of a handler', () => {
  let warned;
  beforeEach((t) => {
    warned = [];
    t.mock.method(console, 'warn', (message) => warned.push(message));
  });

  test('that still runs when the grace period is over, once', async (t) => {
    const deaf = held();
    const { client } = await openPair({ deaf: deaf.handler }, { app: { limits: { grace: 1000 } } });
    const clock = useClock(t);
    const controller = new AbortController();
    const pending = client.call('deaf', {}, { signal: controller.signal });
    const { context } = await deaf.begun;
    const aborted = new Promise((resolve) => context.signal.addEventListener('abort', resolve));
    controller.abort('enough');
    await aborted;
    clock.advance(1000);
    assert.equal((await pending).metadata.outcome, 'running');
    await until(() => warned.length);
    assert.equal(warned.length, 1);
    assert.match(warned[0], /^abp-bridge: deaf still ran/);
  });

  test('but not of one that fails, nor of one whose session has ended', async () => {
    const work = held();
    const { client, exposed } = await openPair({
      'is left': work.handler,
      fails: () => Promise.reject(new AbpError('OWN', 'no')),
    });
    await client.call('fails');
    const pending = client.call('is left');
    const { context, end } = await work.begun;
    exposed.close();
    assert.equal((await pending).metadata.outcome, 'running');
    assert.equal(context.signal.reason.message, 'The app was closed');
    end();
    for (let i = 0; i < 20; i++) await turn();
    assert.deepEqual(warned, []);
  });
});
