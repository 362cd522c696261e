// The parts of js/agent by themselves: what an agent keeps of its app, how it waits, streams and answers, and the end of each.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, mock, test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { calleeOf } from '../../js/agent/answering.js';
import { CallStream } from '../../js/agent/call-stream.js';
import { CapabilityList } from '../../js/agent/capability-list.js';
import { ClientSession } from '../../js/agent/client-session.js';
import { Input } from '../../js/agent/input.js';
import { LateStream } from '../../js/agent/late-stream.js';
import { askOutcome } from '../../js/agent/outcome.js';
import { rejectionOf } from '../../js/agent/rejection.js';
import { wait } from '../../js/agent/retry.js';
import { callStreaming } from '../../js/agent/streaming.js';
import { useClock } from '../support/clock.js';
import { usePage } from '../support/page.js';
import { openPair } from '../support/pair.js';

const turn = () => new Promise(setImmediate);

describe('the list of capabilities', () => {
  const names = (list) => list.list().map(({ name }) => name);

  test('has those that have a name, and what is said of each last', () => {
    const list = new CapabilityList();
    const longest = 'x'.repeat(256);
    list.put([
      { name: 'a', description: 'old' },
      { name: longest },
      { name: `${longest}x` },
      { name: 7 },
      Object.create({ name: 'inherited' }),
      null,
      'b',
    ]);
    list.put({ 0: { name: 'c' }, length: 1 });
    list.put([{ name: 'a', description: 'new' }]);
    assert.deepEqual(names(list), ['a', longest]);
    assert.deepEqual(list.get('a'), { name: 'a', description: 'new' });
    assert.equal(list.get('b'), null);
  });

  test('takes in what has changed, and says what that was', () => {
    const list = new CapabilityList();
    list.put([
      { name: 'stays', available: false },
      { name: 'goes', available: true },
    ]);
    const changes = list.merge({
      added: ['comes', 'stays', 7],
      removed: ['goes', 'x'.repeat(257)],
      changed: ['stays', null],
      capabilities: [{ name: 'told', description: 'of it' }],
    });
    assert.deepEqual(changes, {
      added: ['comes', 'stays'],
      removed: ['goes'],
      changed: ['stays'],
    });
    assert.deepEqual(list.list(), [
      { name: 'stays', available: false },
      { name: 'comes', available: true },
      { name: 'told', description: 'of it' },
    ]);
    assert.deepEqual(list.merge('nothing'), { added: [], removed: [], changed: [] });
  });

  test('holds 4096 and no more, of which each may be told anew', () => {
    const list = new CapabilityList();
    const many = Array.from({ length: 4095 }, (_, i) => ({ name: `${i}` }));
    list.put(many);
    list.merge({ added: ['4095', '4096'] });
    list.put([{ name: 'more' }, { name: '7', description: 'new' }]);
    assert.equal(list.list().length, 4096);
    assert.deepEqual([list.get('4096'), list.get('more')], [null, null]);
    assert.deepEqual([list.get('4095').available, list.get('7').description], [true, 'new']);
    // More of one message is not even looked at.
    const repeated = Array.from({ length: 4097 }, (_, i) => (i < 4096 ? 'a' : 'b'));
    const other = new CapabilityList();
    assert.equal(other.merge({ added: repeated }).added.length, 4096);
    other.put(repeated.map((name) => ({ name })));
    assert.deepEqual(names(other), ['a']);
  });
});

describe('what is waited for', () => {
  test('is the time, a signal or something else, whichever is first', async (t) => {
    const clock = useClock(t);
    const over = mock.fn();
    const controller = new AbortController();
    const { signal } = controller;
    void wait(100, signal, new Promise(() => {})).then(over);
    clock.advance(99);
    await turn();
    assert.equal(over.mock.callCount(), 0);
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    clock.advance(1);
    await turn();
    assert.equal(over.mock.callCount(), 1);
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
    await wait(100, signal, Promise.resolve());
    await wait(100, signal, Promise.reject(new Error('no')));
    const waiting = wait(100, signal);
    controller.abort();
    await waiting;
    await wait(100, signal);
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
  });

  test('leaves no timer behind, and has none where there is no limit', async (t) => {
    const made = t.mock.method(globalThis, 'setTimeout', () => 7);
    const cleared = t.mock.method(globalThis, 'clearTimeout', () => {});
    await wait(Infinity, undefined, Promise.resolve());
    assert.equal(made.mock.callCount(), 0);
    await wait(1.5, undefined, Promise.resolve());
    assert.equal(made.mock.calls[0].arguments[1], 2);
    assert.deepEqual(cleared.mock.calls.at(-1).arguments, [7]);
  });
});

describe('the error that a failed call throws', () => {
  const aborted = AbortSignal.abort('why');
  for (const [what, response, signal, expected] of [
    [
      'is that of the app',
      { error: { code: 'MINE', message: 'no', retryable: true } },
      undefined,
      ['AbpError', 'MINE', 'no', true],
    ],
    [
      'is an AbortError where it was cancelled',
      { cancelled: true, error: { code: 'CANCELLED', message: 'stopped', retryable: false } },
      aborted,
      ['AbortError', 'CANCELLED', 'stopped', false, 'why'],
    ],
    [
      'says that it was cancelled where nothing else does',
      { cancelled: true },
      new AbortController().signal,
      ['AbortError', 'CANCELLED', 'The operation was cancelled', false],
    ],
    [
      'is a timeout as such',
      { cancelled: true, error: { code: 'TIMEOUT', message: 'late', retryable: true } },
      undefined,
      ['AbpError', 'TIMEOUT', 'late', true],
    ],
  ])
    test(what, () => {
      const error = rejectionOf({ success: false, ...response }, signal);
      const { name, code, message, retryable, cause } = error;
      assert.deepEqual(
        [name, code, message, retryable, ...('cause' in error ? [cause] : [])],
        expected,
      );
    });
});

describe('an input', () => {
  /** A source that gives what a test says. */
  const sourceOf = (more) => {
    const source = { next: mock.fn(async () => ({ done: false, value: 1 })), ...more };
    return Object.assign(source, { [Symbol.asyncIterator]: () => source });
  };

  test('knows whether it is read', async () => {
    const input = new Input(sourceOf());
    assert.equal(input.taken, false);
    assert.equal(input[Symbol.asyncIterator](), input);
    assert.equal(input.taken, true);
    assert.deepEqual(await input.next(), { done: false, value: 1 });
  });

  test('ends its source once, and is not read after that', async () => {
    const end = mock.fn();
    const source = sourceOf({ return: end });
    const input = new Input(source);
    const returned = input.return('enough');
    assert.equal(input.return('again'), returned);
    await returned;
    input.close();
    await turn();
    assert.deepEqual(
      end.mock.calls.map(({ arguments: given }) => given),
      [['enough']],
    );
    await assert.rejects(input.next(), { code: 'CANCELLED', message: 'The call has ended' });
    assert.equal(source.next.mock.callCount(), 0);
  });

  test('is not waited for once its call has ended', async () => {
    const input = new Input(sourceOf({ next: () => new Promise(() => {}) }));
    const next = input.next();
    input.close();
    await assert.rejects(next, { code: 'CANCELLED', message: 'The call has ended' });
  });

  test('fails as its source fails', async () => {
    const rejecting = new Input(sourceOf({ next: () => Promise.reject(new Error('broken')) }));
    await assert.rejects(rejecting.next(), /broken/);
    const throwing = new Input(
      sourceOf({
        next() {
          throw new Error('torn');
        },
      }),
    );
    await assert.rejects(throwing.next(), /torn/);
  });

  test('reports a source that cannot be ended, and none that needs no end', async (t) => {
    const said = t.mock.method(console, 'error', () => {});
    await new Input(sourceOf()).return();
    assert.equal(said.mock.callCount(), 0);
    const cause = new Error('stuck');
    const input = new Input(sourceOf({ return: () => Promise.reject(cause) }));
    await input.return();
    assert.deepEqual(said.mock.calls[0].arguments, [
      "abp-bridge: an input's cleanup failed:",
      cause,
    ]);
  });
});

describe('a stream', () => {
  /** One whose call a test settles. */
  const begun = () => {
    let settle;
    const answer = new Promise((...both) => (settle = both));
    const stream = new CallStream(() => answer);
    const pending = { read: mock.fn(), leave: mock.fn() };
    stream.attach(pending);
    return { stream, pending, resolve: settle[0], reject: settle[1] };
  };

  test('tells its call what was read, and that its reader has left', async () => {
    const { stream, pending } = begun();
    stream.push('a', 5);
    stream.push('b', 6);
    assert.deepEqual(await stream.next(), { done: false, value: 'a' });
    assert.deepEqual(pending.read.mock.calls[0].arguments, [5]);
    await stream.return();
    assert.equal(pending.leave.mock.callCount(), 1);
    assert.equal(pending.read.mock.callCount(), 1);
  });

  test('ends with what was returned', async () => {
    const { stream, pending, resolve } = begun();
    resolve({ success: true, data: ['x'] });
    assert.deepEqual(await stream.next(), { done: true, value: ['x'] });
    assert.deepEqual(await stream.response, { success: true, data: ['x'] });
    await stream.return();
    assert.equal(pending.leave.mock.callCount(), 0);
  });

  test('has the chunks that an app has collected', async () => {
    const { stream, resolve } = begun();
    resolve({ success: true, data: [1, 2], metadata: { collected: true } });
    const read = [];
    for await (const chunk of stream) read.push(chunk);
    assert.deepEqual(read, [1, 2]);
    for (const response of [
      { success: true, data: 'no list', metadata: { collected: true } },
      { success: true, data: [1], metadata: { collected: 'yes' } },
    ]) {
      const other = begun();
      other.resolve(response);
      assert.deepEqual(await other.stream.next(), { done: true, value: response.data });
    }
    const collected = begun();
    collected.resolve({ success: true, data: [], metadata: { collected: true } });
    assert.deepEqual(await collected.stream.next(), { done: true, value: undefined });
  });

  test('throws as its call failed, with the reason of its signal', async () => {
    const { stream, pending, resolve } = begun();
    pending.signal = AbortSignal.abort('why');
    const error = { code: 'CANCELLED', message: 'stopped', retryable: false };
    resolve({ success: false, data: [1], metadata: { collected: true }, cancelled: true, error });
    await assert.rejects(stream.next(), { name: 'AbortError', message: 'stopped', cause: 'why' });
    const unmade = new CallStream(async () => ({ success: false, error }));
    await assert.rejects(unmade.next(), { code: 'CANCELLED', message: 'stopped' });
    const mistaken = begun();
    mistaken.reject(new Error('a mistake'));
    await assert.rejects(mistaken.stream.next(), /a mistake/);
    await assert.rejects(mistaken.stream.response, /a mistake/);
  });

  test('begins without options, too, also as the first of its process', async () => {
    const { client } = await openPair({ echo: (params) => params });
    for (let i = 0; i < 2; i++) {
      assert.equal((await client.stream('echo', 7, null).next()).value, 7);
    }
  });

  test('that is still to begin is read when it has begun', async () => {
    const { stream, resolve } = begun();
    let begin;
    const late = new LateStream(new Promise((give) => (begin = give)), assert.fail);
    assert.equal(late[Symbol.asyncIterator](), late);
    const next = late.next();
    stream.push('a', 1);
    begin(stream);
    assert.deepEqual(await next, { done: false, value: 'a' });
    resolve({ success: true, data: 'end' });
    assert.equal((await late.response).data, 'end');
    assert.deepEqual(await late.return('left'), { done: true, value: 'left' });
  });

  test('that does not begin has a response all the same', async () => {
    const cause = new Error('offline');
    const failed = mock.fn(() => 'its response');
    const late = new LateStream(Promise.reject(cause), failed);
    assert.equal(await late.response, 'its response');
    assert.deepEqual(failed.mock.calls[0].arguments, [cause]);
    await assert.rejects(late.next(), cause);
  });

  test('whose call was mistaken tells those who ask', async () => {
    // The runner fails a test file for a rejection that nobody handles.
    const stream = { response: Promise.reject(new Error('a mistake')) };
    const late = new LateStream(Promise.resolve(stream), assert.fail);
    await turn();
    await assert.rejects(late.response, /a mistake/);
  });

  test('leaves its input when its call has ended, or could not be made', async () => {
    for (const begin of [async () => 'its response', () => Promise.reject(new Error('no'))]) {
      const end = mock.fn();
      const source = { next: () => new Promise(() => {}), return: end };
      source[Symbol.asyncIterator] = () => source;
      const answer = await callStreaming(begin, source).catch(({ message }) => message);
      assert.ok(['its response', 'no'].includes(answer));
      await turn();
      assert.equal(end.mock.callCount(), 1);
    }
    assert.equal(await callStreaming(async () => 'without', undefined), 'without');
  });
});

describe('what an agent answers', () => {
  const input = (taken) => ({ taken });
  const calleeWith = ({ records = [], onElicitation, able = true, allowed } = {}) => {
    const has = mock.fn((feature) => able && feature === abp.ELICITATION);
    const find = (matches) => records.find(matches);
    const client = { onElicitation };
    return { client, callee: calleeOf(client, { machine: { find }, has }, allowed) };
  };
  const asked = (params, window = [1, 1]) => ({ name: 'bridge/input', params, window });

  test('is the input of a call of its own, which is asked for once, as a stream', () => {
    const owner = {};
    const own = { owner, id: 'a', input: input(false) };
    const { callee } = calleeWith({
      records: [
        { id: 'a', input: input(false) },
        { owner, id: 'a' },
        { owner, id: 'b', input: input(true) },
        own,
      ],
    });
    for (const [request, code] of [
      [asked({ callId: 'a' }), abp.NO_ERROR],
      [asked({ callId: 'a' }, null), abp.INVALID_PARAMS],
      [asked({ callId: 'b' }), abp.INVALID_PARAMS],
      [asked({ callId: 'c' }), abp.INVALID_PARAMS],
      [asked('a'), abp.INVALID_PARAMS],
    ])
      assert.equal(callee.rejectionFor(request), code);
    assert.equal(callee.run(asked({ callId: 'a' }), {}), own.input);
    assert.equal(callee.run(asked({ callId: 'c' }), {}), undefined);
  });

  test('is a question, if it takes any, both sides agreed on that, and it takes this one', () => {
    const confirm = { name: 'elicitation/confirm', params: {} };
    const onElicitation = () => {};
    for (const [given, code] of [
      [{ onElicitation }, abp.NO_ERROR],
      [{}, abp.NOT_SUPPORTED],
      [{ onElicitation, able: false }, abp.NOT_SUPPORTED],
      [{ onElicitation, allowed: [] }, abp.NOT_SUPPORTED],
      [{ onElicitation, allowed: ['elicitation/confirm'] }, abp.NO_ERROR],
    ])
      assert.equal(calleeWith(given).callee.rejectionFor(confirm), code);
    // By its standard name.
    const { callee } = calleeWith({ onElicitation, allowed: ['elicitation/input'] });
    assert.equal(callee.rejectionFor({ name: 'elicitation/text' }), abp.NO_ERROR);
  });

  test('is what its listener of now says, who hears of a timeout if there is one', () => {
    const onElicitation = mock.fn(() => 'answer');
    const { client, callee } = calleeWith({ onElicitation });
    const { signal } = new AbortController();
    const params = { prompt: '?' };
    const text = { name: 'elicitation/text', params };
    assert.equal(callee.run({ ...text, timeout: 5 }, { signal }), 'answer');
    assert.equal(callee.run({ ...text, timeout: 0 }, { signal }), 'answer');
    assert.deepEqual(
      onElicitation.mock.calls.map(({ arguments: given }) => given),
      [
        [{ method: 'elicitation/input', params, timeout: 5 }, { signal }],
        [{ method: 'elicitation/input', params }, { signal }],
      ],
    );
    client.onElicitation = undefined;
    assert.equal(callee.run(text, { signal }), undefined);
  });
});

describe('a session of a client', () => {
  const endpointOf = (more) => {
    const asked = [];
    const tell =
      (name) =>
      (...given) =>
        void asked.push([name, ...given]);
    const endpoint = {
      core: { describe: tell('describe') },
      ...Object.fromEntries(['connect', 'close', 'dispose', 'leave'].map((n) => [n, tell(n)])),
      ...more,
    };
    return { endpoint, asked: () => asked.splice(0) };
  };

  test('says who its agent is, and waits until it is told how that went', async (t) => {
    const { types } = usePage(t);
    const { endpoint, asked } = endpointOf();
    const session = new ClientSession(endpoint, undefined);
    const connecting = session.connect({ agent: 'a', other: undefined }, 500);
    assert.deepEqual(asked(), [
      ['describe', 'agent', 'a'],
      ['describe', 'other', undefined],
      ['connect', 500],
    ]);
    session.settle(undefined);
    await connecting;
    assert.deepEqual([session.settle, session.closed, types()], [undefined, false, ['pagehide']]);
    session.close();
    assert.deepEqual([asked(), session.closed, types()], [[['close']], true, []]);
  });

  test('that is refused, or cannot say who its agent is, leaves nothing', async (t) => {
    const { types } = usePage(t);
    const refused = endpointOf();
    const session = new ClientSession(refused.endpoint, undefined);
    const connecting = session.connect({}, 0);
    const problem = new Error('refused');
    session.settle(problem);
    await assert.rejects(connecting, problem);
    assert.deepEqual(
      [refused.asked(), session.settle, types()],
      [[['connect', 0], ['dispose']], ...[undefined, []]],
    );
    const describe = () => assert.fail('no JSON');
    const { endpoint, asked } = endpointOf({ core: { describe } });
    await assert.rejects(
      new ClientSession(endpoint, undefined).connect({ agent: 1 }, 0),
      /no JSON/,
    );
    assert.deepEqual([asked(), types()], [[['dispose']], []]);
  });
});

describe('the question what became of a call', () => {
  const clientOf = (answers, outcomes = true) => {
    const call = mock.fn(async () => answers.shift());
    const losses = answers.filter((answer) => answer === lost).length;
    return {
      call,
      features: { outcomes },
      connected: true,
      // It has another one after each loss.
      get sessionId() {
        return Math.min(call.mock.callCount(), losses);
      },
    };
  };
  const lost = { success: false, error: { code: 'DISCONNECTED', message: '', retryable: true } };
  const ready = async () => true;

  test('is asked again in the next session', async () => {
    const data = { outcome: 'stopped', report: 0, progress: null, more: 1 };
    const client = clientOf([lost, lost, { success: true, data }]);
    assert.deepEqual(await askOutcome(client, 'c', { settled: true }, ready), {
      outcome: 'stopped',
      report: 0,
      progress: null,
    });
    assert.equal(client.call.mock.callCount(), 3);
    const [, params, options] = client.call.mock.calls[0].arguments;
    assert.deepEqual(params, { callId: 'c', settled: true });
    assert.deepEqual(options, { signal: undefined, timeout: undefined });
  });

  test('has no answer of an app that fails, cannot tell, or says nothing', async () => {
    const error = { code: 'BUSY', message: 'no', retryable: true };
    assert.deepEqual(await askOutcome(clientOf([{ success: false, error }]), 'c', {}, ready), {
      outcome: 'unknown',
      error,
    });
    const silent = clientOf([{ success: true, data: undefined }]);
    assert.deepEqual(await askOutcome(silent, 'c', {}, ready), { outcome: 'unknown' });
    for (const [client, isReady] of [
      [clientOf([], false), ready],
      [clientOf([]), async () => false],
    ]) {
      assert.deepEqual(await askOutcome(client, 'c', {}, isReady), { outcome: 'unknown' });
      assert.equal(client.call.mock.callCount(), 0);
    }
  });

  test('waits no longer than it may, and its call has the time that is left', async (t) => {
    const clock = useClock(t);
    const client = clientOf([{ success: true, data: { outcome: 'finished' } }]);
    let begin;
    const late = () => new Promise((resolve) => (begin = resolve));
    const asking = askOutcome(client, 'c', { timeout: 100 }, late);
    clock.advance(40);
    begin(true);
    assert.deepEqual(await asking, { outcome: 'finished' });
    assert.deepEqual(client.call.mock.calls[0].arguments[2], { signal: undefined, timeout: 60 });
    assert.deepEqual(client.call.mock.calls[0].arguments[1], { callId: 'c', settled: false });
    const given = askOutcome(client, 'c', { timeout: 100 }, () => new Promise(() => {}));
    clock.advance(100);
    assert.deepEqual(await given, { outcome: 'unknown' });
  });

  test('needs an id, and options of their types', async () => {
    const client = clientOf([]);
    await assert.rejects(askOutcome(client, 7, {}, ready), {
      code: 'INVALID_PARAMS',
      message: 'outcome needs the callId of a call, a string',
    });
    for (const options of [{ settled: 'yes' }, { signal: 7 }, { timeout: 'soon' }]) {
      const [name] = Object.keys(options);
      await assert.rejects(askOutcome(client, 'c', options, ready), {
        code: 'INVALID_PARAMS',
        message: new RegExp(`^${name} of outcome must be`),
      });
    }
  });
});
