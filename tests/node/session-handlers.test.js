// A received call, of an endpoint whose other side and whose handlers are the test: the context of its handler, the calls that it
// makes itself, and what is said of its end.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { ready } from '../../js/core/abp-core.js';
import { ENDED } from '../../js/core/cancellable.js';
import { warnings } from '../../js/common/warnings.js';
import { AbpError } from '../../js/index.js';
import { Endpoint } from '../../js/session/endpoint.js';
import { Invocation } from '../../js/session/invocation.js';
import { makeCall } from '../../js/session/pending-call.js';
import { OUTCOME } from '../../js/wire/messages.js';
import { useClock } from '../support/clock.js';

await ready();
const turn = () => new Promise((resolve) => setImmediate(resolve));

let sent;
let handlers;
let endpoint;
beforeEach(() => {
  sent = [];
  handlers = {};
});
afterEach(() => endpoint.dispose());

/** An app whose agent is the test, after the handshake. */
function open({ limits, callee, side, features = {} } = {}) {
  const transport = { post: (message) => sent.push(message), close() {} };
  endpoint = new Endpoint({
    role: abp.APP,
    features: abp.PROGRESS | abp.ELICITATION | abp.FRAMES | abp.STREAMS | abp.OUTCOMES,
    limits,
    transport,
    Invocation,
    callee: {
      rejectionFor: ({ name }) => (handlers[name] ? abp.NO_ERROR : abp.UNKNOWN_CAPABILITY),
      run: ({ name, params }, context, call) => handlers[name](params, context, call),
      ...callee,
    },
    side: { onSession() {}, ...side },
  });
  endpoint.core.describe('app', { id: 'a', name: 'A', version: '1' });
  endpoint.core.describe('capabilities', []);
  const payload = { protocolVersion: '0.1', features: { progress: true, ...features } };
  transport.onMessage({ type: 'initialize', id: 'h', payload }, []);
  assert.ok(endpoint.ready);
}

/** Calls a capability, by a message with this id. */
function call(id, capability, { params, ...options } = {}) {
  const payload = { capability, params, options };
  endpoint.transport.onMessage({ type: 'capabilities/call', id, payload }, []);
}
const cancel = (callId, reason) =>
  endpoint.transport.onMessage({
    type: 'capabilities/cancel',
    id: 'k',
    payload: { callId, reason },
  });

/** What a call was answered, when it has been. */
async function answerOf(id) {
  const find = () => sent.find((message) => message.id === id);
  while (!find()) await turn();
  return find().payload;
}
const answerTo = (id, ...rest) => (call(id, ...rest), answerOf(id));

/** Settles with what a handler is given, which goes on until it is told to end. */
function running(name) {
  return new Promise((resolve) => {
    handlers[name] = (_params, context, invocation) =>
      new Promise((end, fail) => resolve({ context, invocation, end, fail }));
  });
}

describe('the context of a handler', () => {
  const MEMBERS = [
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

  test('shows its members, and nothing of the call that they belong to', async () => {
    open();
    const begun = running('x');
    call('c', 'x');
    const { context, invocation } = await begun;
    assert.deepEqual(Object.keys(context), MEMBERS);
    assert.equal({ ...context }.callId, 'c');
    for (const key of MEMBERS) assert.ok(key in context, key);
    for (const key of ['request', 'handle', 'start', 'toString']) {
      assert.ok(invocation[key] !== undefined, key);
      assert.equal(context[key], undefined, key);
      assert.equal(key in context, false, key);
      assert.equal(Object.getOwnPropertyDescriptor(context, key), undefined, key);
    }
  });

  test('has a token that is cancelled before the signal fires, or when it is first read', async () => {
    open();
    for (const readBefore of [true, false]) {
      const begun = running('x');
      call(`c${readBefore}`, 'x');
      const { context } = await begun;
      const { signal } = context;
      const token = readBefore ? context.token : undefined;
      assert.equal(token?.cancelled ?? false, false);
      let cancelled;
      signal.addEventListener('abort', () => (cancelled = context.token.cancelled));
      cancel(`c${readBefore}`);
      assert.equal(cancelled, true);
      assert.equal(context.token, token ?? context.token);
    }
  });

  test('does everything on behalf of the call, and nothing once that has ended', async () => {
    const asked = [];
    open({
      features: { 'bridge.streams': true, 'bridge.frames': true },
      side: {
        elicit: (...args) => (asked.push(args), Promise.resolve('yes')),
        input: ({ callId, handle }) => void asked.push([callId, handle]),
      },
    });
    const begun = running('x');
    call('c', 'x', { input: true });
    const { context, invocation, end } = await begun;
    const { handle } = invocation;
    assert.equal(await context.elicit('question'), 'yes');
    void context.input;
    end();
    await answerOf('c');
    void context.elicit('late');
    void context.input;
    assert.deepEqual(asked, [
      ['question', handle, 'c'],
      ['c', handle],
      ['late', ENDED, 'c'],
      ['c', 0],
    ]);
    handlers.y = assert.fail;
    const { cancelled, metadata } = await context.call('y');
    assert.deepEqual([cancelled, metadata.outcome], [true, 'unstarted']);
  });

  test('has nobody to ask where its side takes no questions', async () => {
    open({ features: { 'bridge.streams': true, 'bridge.frames': true } });
    handlers.x = (_params, { elicit, input }) => [elicit({}), input];
    assert.deepEqual((await answerTo('c', 'x', { input: true })).data, [undefined, undefined]);
  });

  for (const features of [
    { 'bridge.streams': true },
    { 'bridge.streams': true, 'bridge.frames': true },
  ]) {
    test(`withdraws its question when its handler has ended (${Object.keys(features)})`, async () => {
      open({ features: { elicitation: true, ...features } });
      handlers.x = (_params, _context, { handle }) =>
        void makeCall(endpoint, 'ask', {}, { callId: 'mine' }, handle);
      call('c', 'x');
      await turn();
      const messages = sent.flatMap((each) => (Array.isArray(each) ? each.slice(0, 4) : each.type));
      assert.ok(messages.includes(7) || messages.includes('bridge/cancel'), messages.join());
    });
  }

  test('has input only where its caller announces some', async () => {
    open({
      features: { 'bridge.streams': true, 'bridge.frames': true },
      side: { input: () => 'input' },
    });
    handlers.x = (_params, { input }) => input;
    assert.equal((await answerTo('c', 'x')).data, undefined);
    assert.equal((await answerTo('d', 'x', { input: true })).data, 'input');
  });

  test('refuses progress that is none, and sends only what was asked for', async () => {
    open();
    handlers.x = (_params, { progress }) => {
      assert.throws(() => progress({ progress: 'half' }), TypeError);
      progress({ progress: 1 });
    };
    await answerTo('c', 'x');
    assert.deepEqual(
      sent.map(({ type }) => type),
      ['capabilities/call-result'],
    );
    await answerTo('d', 'x', { progressToken: 'p' });
    assert.deepEqual(sent[1].payload, { progress: 1, operationId: 'p' });
  });

  test('observers are told of progress that is sent, and of the end', async () => {
    open();
    const told = [];
    const tell =
      (what) =>
      ({ request }, info) =>
        told.push([what, request.name, info.progress ?? info.data]);
    const none = () => {};
    endpoint.observe({
      ...{ message: none, read: none, begin: none, action: none },
      progress: tell('progress'),
      end: tell('end'),
    });
    handlers.x = (_params, { progress }) => (progress({ progress: 1 }), 'done');
    await answerTo('c', 'x');
    await answerTo('d', 'x', { progressToken: 'p' });
    assert.deepEqual(told, [
      ['end', 'x', 'done'],
      ['progress', 'x', 1],
      ['end', 'x', 'done'],
    ]);
  });
});

describe('a call that an app makes to itself', () => {
  /** Calls it from within another one. @returns {Promise<any>} the response */
  const callWithin = async (...args) => {
    handlers.outer = (_params, context) => context.call(...args);
    call('outer', 'outer');
    return answerOf('outer');
  };

  test('has params, a timeout and an id of its own, and its questions are about the one of its agent', async () => {
    const about = [];
    open({ side: { elicit: (_request, _parent, id) => about.push(id) } });
    handlers.inner = (params, context, { request, isLocal }) => {
      context.elicit();
      assert.equal(context.progressToken, undefined);
      return { params, timeout: request.timeout, isLocal, callId: context.callId };
    };
    handlers.middle = (_params, context, { isLocal }) => {
      assert.ok(isLocal);
      return context.call('inner', 1, { timeout: 50 });
    };
    const { callId, ...seen } = (await callWithin('middle')).data;
    assert.deepEqual(seen, { params: 1, timeout: 50, isLocal: true });
    assert.match(callId, /\.\d+$/);
    assert.deepEqual(about, ['outer']);
    handlers.inner = (params) => params;
    handlers.outer = (_params, context, { isLocal }) => (
      assert.ok(!isLocal),
      context.call('inner')
    );
    assert.deepEqual((await answerTo('second', 'outer')).data, {});
  });

  test('is not prepared for the transport, which its result does not see', async () => {
    const prepared = [];
    open({
      side: { prepare: (data) => (prepared.push(data), Promise.resolve(`${data}, prepared`)) },
    });
    handlers.inner = () => 'inner';
    handlers.outer = async (_params, context) => [(await context.call('inner')).data];
    assert.equal((await answerTo('c', 'outer')).data, 'inner, prepared');
    assert.deepEqual(prepared, [['inner']]);
  });

  test('and whose result cannot be prepared fails', async () => {
    open({ side: { prepare: () => Promise.reject(new AbpError('OWN', 'no')) } });
    handlers.x = () => 'done';
    assert.equal((await answerTo('c', 'x')).error.code, 'OWN');
  });

  test('is not begun when its signal had fired', async () => {
    open();
    handlers.inner = assert.fail;
    const response = await callWithin('inner', {}, { signal: AbortSignal.abort('before') });
    assert.deepEqual(
      [response.cancelled, response.error.message, response.metadata.outcome],
      [true, 'before', 'unstarted'],
    );
  });

  test('whose signal says that time ran out has timed out', async () => {
    open();
    const controller = new AbortController();
    handlers.inner = (_params, { signal }) => {
      setImmediate(() => controller.abort(new DOMException('late', 'TimeoutError')));
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
    };
    const { signal } = controller;
    assert.equal((await callWithin('inner', {}, { signal })).error.code, 'TIMEOUT');
  });

  test('is cancelled by its signal, also by one that fires as it begins', async () => {
    open();
    const reason = new Error('enough');
    for (const atOnce of [true, false]) {
      const controller = new AbortController();
      handlers.inner = (_params, { signal }) => {
        if (atOnce) controller.abort(reason);
        else setImmediate(() => controller.abort(reason));
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
      };
      handlers[atOnce] = (_params, context) =>
        context.call('inner', {}, { signal: controller.signal });
      const { cancelled, error, metadata } = await answerTo(`${atOnce}`, `${atOnce}`);
      assert.deepEqual([cancelled, error.message, metadata.outcome], [true, 'enough', 'stopped']);
      assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
    }
  });

  test('leaves its signal alone once it has ended', async () => {
    open();
    const { signal } = new AbortController();
    handlers.inner = async () => (await turn(), getEventListeners(signal, 'abort').length);
    assert.equal((await callWithin('inner', {}, { signal })).data, 1);
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
  });

  test('is refused as an agent’s is, and says that it never ran', async () => {
    open();
    const { signal } = new AbortController();
    const { error, metadata } = await callWithin('nothing', {}, { signal });
    assert.deepEqual([error.code, metadata.outcome], ['UNKNOWN_CAPABILITY', 'unstarted']);
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
  });

  test('ends when the core fails, and so does the one that makes it', async (t) => {
    t.mock.method(console, 'error', () => {});
    open();
    const begun = running('inner');
    let outer;
    let response;
    handlers.outer = async (_params, context) => {
      outer = context.signal;
      response = await context.call('inner');
    };
    call('outer', 'outer');
    const { context } = await begun;
    const { signal } = context;
    const told = [];
    endpoint.observer = {
      end: (record, { error }) => told.push([record.request.name, error.code]),
    };
    endpoint.machine.feed(() => {
      throw new Error('a trap');
    });
    await turn();
    assert.deepEqual(told.sort(), [
      ['inner', 'INTERNAL_ERROR'],
      ['outer', 'INTERNAL_ERROR'],
    ]);
    assert.deepEqual([outer.aborted, signal.aborted], [true, true]);
    assert.equal(signal.reason.message, response.error.message);
    assert.deepEqual(
      [response.error.code, response.metadata.outcome],
      ['INTERNAL_ERROR', 'unknown'],
    );
  });
});

describe('what a handler throws', () => {
  test('is shown in the console if it is no answer, unless its call was cancelled', async (t) => {
    const shown = t.mock.method(console, 'error', () => {});
    open();
    handlers.answers = () => Promise.reject(new AbpError('OWN', 'no'));
    await answerTo('a', 'answers');
    const begun = running('x');
    call('c', 'x');
    const { fail } = await begun;
    cancel('c');
    fail(new Error('fetch failed'));
    await answerOf('c');
    assert.equal(shown.mock.callCount(), 0);
    const defect = new Error('a defect');
    handlers.breaks = () => Promise.reject(defect);
    await answerTo('b', 'breaks');
    assert.deepEqual(shown.mock.calls[0].arguments, ['abp-bridge: breaks failed:', defect]);
  });
});

describe('the end of a call', () => {
  test('tells how long its handler ran, from the message or from its turn on', async (t) => {
    const clock = useClock(t);
    open({ limits: { maxConcurrent: 1 } });
    const first = running('x');
    const second = running('y');
    call('first', 'x');
    call('second', 'y');
    clock.advance(30);
    (await first).end();
    const { end } = await second;
    clock.advance(20);
    end();
    assert.equal((await answerOf('first')).metadata.duration, 30);
    assert.equal((await answerOf('second')).metadata.duration, 20);
  });

  /** What a handler reports is told if its call does not succeed. */
  for (const [what, end, expected] of [
    ['fails', ({ fail }) => fail(new AbpError('OWN', 'no')), { report: 'half', progress: 1 }],
    ['succeeds', ({ end }) => end('all'), { report: undefined, progress: undefined }],
  ]) {
    test(`tells what its handler has reported, if it ${what}`, async () => {
      const kept = [];
      open({ side: { keep: (id, { report }) => kept.push([id, report]) } });
      const begun = running('x');
      call('c', 'x');
      const handler = await begun;
      handler.context.report('half');
      handler.context.progress({ progress: 1 });
      end(handler);
      const { report, progress } = (await answerOf('c')).metadata;
      assert.deepEqual({ report, progress: progress?.progress }, expected);
      // A repeat may ask for it.
      assert.deepEqual(kept, [['c', 'half']]);
    });
  }

  test('keeps progress alone only for those who cancel', async () => {
    const kept = [];
    open({ side: { keep: (id, { progress }) => kept.push([id, progress.progress]) } });
    for (const id of ['ends', 'stops', 'quiet']) {
      const begun = running(id);
      call(id, id);
      const { context, fail } = await begun;
      if (id !== 'quiet') context.progress({ progress: 1 });
      if (id !== 'ends') cancel(id);
      fail(new AbpError('OWN', 'no'));
      await answerOf(id);
    }
    assert.deepEqual(kept, [['stops', 1]]);
  });

  test('tells what its handler has reported where nothing is kept, too', async () => {
    open();
    handlers.x = (_params, { report }) => (
      report('half'),
      Promise.reject(new AbpError('OWN', 'no'))
    );
    assert.equal((await answerTo('c', 'x')).metadata.report, 'half');
  });

  test('without a report or progress says nothing of them', async () => {
    open();
    handlers.x = () => Promise.reject(new AbpError('OWN', 'no'));
    assert.deepEqual(Object.keys((await answerTo('c', 'x')).metadata), ['duration', 'outcome']);
  });

  test('is known to those who wait for the handler, before it and after it', async () => {
    open();
    const begun = running('x');
    call('c', 'x');
    const { invocation, end } = await begun;
    let returned = false;
    const waiting = invocation.returned.then(() => (returned = true));
    await turn();
    assert.equal(returned, false);
    assert.equal(invocation.returned, invocation.returned);
    end();
    await waiting;
    handlers.y = (_params, _context, call) => (handlers.last = call);
    await answerTo('d', 'y');
    await handlers.last.returned;
  });

  describe('that a handler puts into a response', () => {
    const timeout = { code: 'TIMEOUT', message: 'late', retryable: false };
    for (const [what, response, foreign, outcome] of [
      ['that timed out: stopped', {}, false, 'stopped'],
      ['that timed out, of an app of others: unknown', {}, true, 'unknown'],
      ['that timed out and says more', { metadata: { outcome: 'finished' } }, true, 'finished'],
    ]) {
      test(what, async () => {
        open({ callee: { foreign } });
        handlers.x = () => ({ success: false, cancelled: true, error: timeout, ...response });
        const { error, metadata } = await answerTo('c', 'x');
        assert.deepEqual([error.code, metadata.outcome], ['TIMEOUT', outcome]);
      });
    }

    test('that was cancelled has its words, or those of who cancelled it', async () => {
      open();
      const error = { code: 'CANCELLED', message: 'declined', retryable: false };
      handlers.declines = () => ({ success: false, cancelled: true, error });
      const declined = await answerTo('a', 'declines');
      assert.equal(declined.error.message, 'declined');
      // As of one whose handler throws that.
      assert.deepEqual(declined.metadata, { outcome: 'stopped' });
      const begun = running('x');
      call('c', 'x');
      const { end } = await begun;
      cancel('c', 'enough');
      end({ success: false, cancelled: true, error });
      assert.equal((await answerOf('c')).error.message, 'enough');
    });
  });
});

describe('what an app of others answers', () => {
  test('may say cancelled, and no more', async () => {
    open({ callee: { foreign: true } });
    handlers.x = () => ({ success: false, cancelled: true });
    const { cancelled, error } = await answerTo('c', 'x');
    assert.deepEqual([cancelled, error.code], [true, 'CANCELLED']);
  });

  test('to a call whose cancel it has declined is its own', async () => {
    open({ callee: { foreign: true } });
    const begun = running('x');
    call('c', 'x');
    const { invocation, fail } = await begun;
    invocation.onStop = () => invocation.stopAnswered(false);
    cancel('c');
    fail(new AbpError('OWN', 'no', { retryable: true }));
    const { cancelled, error } = await answerOf('c');
    assert.deepEqual([cancelled, error.code, error.retryable], [undefined, 'OWN', true]);
  });
});

test('of a handler that does not know whether it stopped nobody knows it', async () => {
  open();
  const begun = running('x');
  call('c', 'x');
  const { end } = await begun;
  cancel('c');
  end({ success: false, cancelled: true, metadata: { outcome: 'unknown' } });
  assert.equal((await answerOf('c')).metadata.outcome, 'unknown');
});

describe('the memory of calls', () => {
  let recalled;
  const side = {
    recall: (call, run) => (recalled.push(call.request.name), run()),
  };
  beforeEach(() => (recalled = []));

  test('is asked where a call has a key, and by nobody else', async () => {
    open({ side });
    handlers.x = () => 'ran';
    assert.equal((await answerTo('a', 'x')).data, 'ran');
    assert.equal((await answerTo('b', 'x', { idempotencyKey: 'k' })).data, 'ran');
    handlers[OUTCOME] = () => 'known';
    assert.equal((await answerTo('c', OUTCOME)).data, 'known');
    assert.deepEqual(recalled, ['x', OUTCOME]);
  });

  test('is not asked where there is none', async () => {
    open();
    handlers.x = () => 'ran';
    assert.equal((await answerTo('b', 'x', { idempotencyKey: 'k' })).data, 'ran');
  });

  test('may load: a call that is cancelled before never runs, and one that is not runs then', async () => {
    const parts = [];
    open({
      side: {
        recall: (call, run) =>
          call.beginAfter(
            new Promise((resolve, reject) => parts.push({ resolve, reject })),
            (loaded) => (recalled.push(loaded), run()),
          ),
      },
    });
    handlers.x = () => 'ran';
    const key = { idempotencyKey: 'k' };
    for (const id of ['a', 'b', 'c']) call(id, 'x', key);
    cancel('a', 'enough');
    const { cancelled, metadata } = await answerOf('a');
    assert.deepEqual([cancelled, metadata.outcome], [true, 'unstarted']);
    parts[1].resolve('memory');
    assert.equal((await answerOf('b')).data, 'ran');
    parts[2].reject(new AbpError('TRANSPORT_ERROR', 'gone'));
    const failed = await answerOf('c');
    assert.deepEqual(
      [failed.error.code, failed.metadata.outcome],
      ['TRANSPORT_ERROR', 'unstarted'],
    );
    assert.deepEqual(recalled, ['memory']);
  });
});

describe('a handler that does not stop', () => {
  let warned;
  beforeEach(() => {
    warned = [];
    warnings((message) => warned.push(message));
  });
  afterEach(() => warnings(true));

  /** Cancels a call of it, and lets the grace period pass. */
  async function overdue(t, name, act = () => {}) {
    const clock = useClock(t);
    open({ limits: { grace: 1000 } });
    const begun = running(name);
    call('c', name);
    const handler = await begun;
    act(handler);
    cancel('c', 'enough');
    clock.advance(1000);
    const { metadata } = await answerOf('c');
    await import('../../js/common/warnings.js');
    await turn();
    return { ...handler, metadata };
  }

  test('is warned of', async (t) => {
    const { metadata } = await overdue(t, 'deaf');
    assert.equal(metadata.outcome, 'running');
    assert.equal(warned.length, 1);
    assert.match(warned[0], /^abp-bridge: deaf still ran/);
  });

  test('is not warned of if it fails', async () => {
    open();
    handlers.fails = () => Promise.reject(new AbpError('OWN', 'no'));
    await answerTo('c', 'fails');
    await import('../../js/common/warnings.js');
    await turn();
    assert.deepEqual(warned, []);
  });

  test('is not warned of where an app of others decides that', async (t) => {
    const reasons = [];
    const { metadata } = await overdue(t, 'foreign', ({ invocation }) => {
      invocation.onStop = (reason) => reasons.push(reason);
    });
    assert.equal(metadata.outcome, 'running');
    assert.deepEqual([reasons, warned], [['enough'], []]);
  });

  test('is not warned of where its session has ended, which waits for nobody', async () => {
    open();
    const begun = running('closed');
    call('c', 'closed');
    const { context, end } = await begun;
    const { signal } = context;
    endpoint.closing = 'The app was closed';
    endpoint.close();
    assert.equal(signal.reason.message, 'The app was closed');
    end();
    await import('../../js/common/warnings.js');
    await turn();
    assert.deepEqual(warned, []);
  });
});

describe('a refusal', () => {
  test('waits for what explains it, and is at once complete', async () => {
    let explained;
    const waiting = new Promise((resolve) => (explained = resolve));
    const said = [];
    open({
      callee: {
        explain: ({ name }, code, error) => {
          said.push([name, code]);
          return waiting.then(() => (error.message = 'There is x'));
        },
      },
    });
    call('c', 'y');
    await turn();
    assert.deepEqual([sent, said], [[], [['y', abp.UNKNOWN_CAPABILITY]]]);
    explained();
    const { error, metadata } = await answerOf('c');
    assert.deepEqual([error.message, metadata.outcome], ['There is x', 'unstarted']);
  });

  test('that nobody explains is sent at once', () => {
    open();
    call('c', 'y');
    assert.equal(sent[0].payload.error.code, 'UNKNOWN_CAPABILITY');
  });
});

test('what an app of others says of a cancel counts only as long as its call runs', async () => {
  open({ callee: { foreign: true } });
  const begun = running('x');
  call('c', 'x');
  const { invocation, end } = await begun;
  invocation.onStop = () => invocation.stopAnswered(false, new Error('too late'));
  cancel('c');
  const { cancelled, reason } = await answerOf('k');
  assert.deepEqual([cancelled, reason], [false, 'too late']);
  end('done');
  assert.equal((await answerOf('c')).data, 'done');
  const { failed } = endpoint.machine;
  invocation.stopAnswered(true);
  assert.deepEqual([failed, endpoint.machine.failed], [false, false]);
});

test('a cancel is acknowledged when the handler’s signal has fired', async () => {
  open({ features: { 'bridge.frames': true } });
  const begun = running('x');
  endpoint.transport.onMessage([1, 1, 'x', {}], []);
  const { context, invocation } = await begun;
  let before;
  context.signal.addEventListener('abort', () => (before = [...sent]));
  cancel(invocation.callId, 'enough');
  assert.deepEqual([before, sent], [[], []]);
  while (!sent.length) await turn();
  assert.equal(sent[0][3].type, 'capabilities/cancel-result');
});
