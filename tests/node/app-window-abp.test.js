// `window.abp`, the protocol's interface in the app's own page, as a script of that page uses it.
import assert from 'node:assert/strict';
import { afterEach, describe, mock, test } from 'node:test';
import { expose } from '../../parts/main/index.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP } from '../support/pair.js';

let app;
afterEach(() => {
  app?.close();
  app = undefined;
});

const HELLO = {
  agent: AGENT,
  protocolVersion: '0.1',
  features: { notifications: true, progress: true, elicitation: true },
};

/** The interface of an app with these capabilities, without a session. */
function interfaceOf(capabilities = {}, options = {}) {
  app = expose({ app: APP, capabilities }, { origins: [], ...options });
  return app.abp;
}

/** The same with a session. */
async function begun(capabilities, options) {
  const abp = interfaceOf(capabilities, options);
  await abp.initialize(HELLO);
  return abp;
}

test('a page that stands still while its session begins has it afterwards', async () => {
  const standStill = ({ type }) => {
    for (const end = performance.now() + 300; type === 'message' && performance.now() < end;);
  };
  const abp = await begun({ x: () => 1 }, { trace: standStill });
  assert.equal(abp.initialized, true);
  assert.equal((await abp.call('x')).data, 1);
});

test('an app that closes while a session begins ends that, and what is called then', async () => {
  for (let turns = 0; turns < 20; turns++) {
    const abp = interfaceOf({ x: () => 1 });
    await abp.call('x');
    const beginning = abp.initialize(HELLO);
    for (let i = 0; i < turns; i++) await null;
    app.close();
    await beginning.catch(({ code }) => assert.match(code, /DISCONNECTED|CANCELLED/));
    assert.equal((await abp.call('x')).success, false);
  }
});

for (const grace of [100, 100_000])
  test(`what became of a call is told as long as its app waits for it (${grace} ms)`, async (t) => {
    let end;
    const slow = (_params, { signal }) =>
      new Promise((_resolve, reject) => (end = () => reject(signal.reason)));
    const abp = await begun({ slow }, { limits: { grace } });
    await abp.call('slow', {}, { signal: AbortSignal.abort() });
    const clock = useClock(t);
    const result = abp.call('slow', {}, { callId: 'c' });
    while (!end) await new Promise(setImmediate);
    const { cancelled } = await abp.cancel('c');
    clock.advance(grace * 0.8);
    for (let i = 0; i < 20; i++) await new Promise(setImmediate);
    end();
    const { metadata } = await result;
    assert.deepEqual([cancelled, metadata.outcome], [true, 'stopped']);
  });

test('what a handler returned and cannot be given is no call that never began', async () => {
  const gone = Object.assign(new Blob(['x']), {
    arrayBuffer: () => Promise.reject(new Error('gone')),
  });
  // A function keeps it from being copied.
  const abp = await begun({ gives: () => ({ file: gone, act() {} }) });
  await assert.rejects(abp.call('gives'), /gone/);
});

/** A handler that ends when its call is cancelled, and a promise of its beginning. */
function held() {
  let start;
  const began = new Promise((resolve) => (start = resolve));
  const handler = (params, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      start();
    });
  return { handler, began };
}

describe('its session', () => {
  test('begins with initialize and ends with shutdown', async () => {
    const abp = interfaceOf({ echo: (params) => params });
    assert.deepEqual([abp.protocolVersion, abp.app], ['0.1', APP]);
    assert.deepEqual([abp.initialized, abp.sessionId], [false, null]);
    const { sessionId, capabilities, features } = await abp.initialize(HELLO);
    assert.deepEqual([abp.initialized, abp.sessionId], [true, sessionId]);
    assert.deepEqual(
      capabilities.map(({ name }) => name),
      ['echo'],
    );
    assert.equal(features['bridge.streams'], undefined);
    assert.equal(app.sessions.length, 1);
    await abp.shutdown();
    assert.deepEqual([abp.initialized, abp.sessionId], [false, null]);
  });

  test('is one at a time', async () => {
    const abp = await begun();
    await assert.rejects(abp.initialize(HELLO), { name: 'AbpError', code: 'ALREADY_INITIALIZED' });
  });

  test('needs params that JSON can say', async () => {
    const abp = interfaceOf();
    await assert.rejects(abp.initialize({ ...HELLO, size: 1n }), TypeError);
    assert.equal(abp.initialized, false);
    await abp.initialize({ ...HELLO, log: () => {} });
    assert.equal(abp.initialized, true);
    await abp.shutdown();
    await abp.initialize();
    assert.equal(abp.initialized, true);
  });

  test('that never began is shut down all the same', async () => {
    await interfaceOf().shutdown();
    assert.equal(app.sessions.length, 0);
  });
});

test('what the app can do is asked without a session', async () => {
  const abp = interfaceOf({ echo: { handler: (params) => params, description: 'Says it again' } });
  const [listed] = await abp.listCapabilities();
  assert.deepEqual([listed.name, listed.description], ['echo', 'Says it again']);
  assert.deepEqual(await abp.describeCapability('echo'), listed);
  assert.equal(await abp.describeCapability('other'), null);
  assert.equal((await abp.supports('echo')).supported, true);
  assert.equal((await abp.supports('other')).supported, false);
});

describe('a call', () => {
  test('is answered, with bytes as base64 unless its caller takes them', async () => {
    const bytes = () => ({ content: new Uint8Array([1, 2, 3]).buffer, mimeType: 'a/b' });
    const abp = await begun({ echo: (params) => params, bytes });
    assert.deepEqual((await abp.call('echo', { a: 1 })).data, { a: 1 });
    assert.deepEqual((await abp.call('echo')).data, {});
    assert.deepEqual((await abp.call('echo', 1, null)).data, 1);
    assert.equal((await abp.call('bytes')).data.content, 'AQID');
    const taken = await abp.call('bytes', {}, { [Symbol.for('abp-bridge.bytes')]: true });
    assert.equal(taken.data.content.byteLength, 3);
  });

  for (const [what, options] of [
    ['signal', { signal: new AbortController() }],
    ['signal', { signal: 5 }],
    ['timeout', { timeout: '5s' }],
    ['timeout', { timeout: -1 }],
  ])
    test(`with a wrong ${what} is refused: it could not be stopped`, async () => {
      let runs = 0;
      const abp = await begun({ work: () => ++runs });
      const refused = { code: 'INVALID_PARAMS', message: new RegExp(`^${what} of call must be `) };
      await assert.rejects(abp.call('work', {}, options), refused);
      await assert.rejects(abp.stream('work', {}, options).next(), refused);
      assert.equal(runs, 0);
      // What automation makes of a signal that it sends into the page.
      assert.equal((await abp.call('work', {}, { signal: {}, timeout: null })).data, 1);
    });

  test('is cancelled by its signal', async () => {
    const { handler, began } = held();
    const abp = await begun({ work: handler });
    const controller = new AbortController();
    const pending = abp.call('work', {}, { signal: controller.signal });
    await began;
    controller.abort('enough');
    const { success, cancelled, error, metadata } = await pending;
    assert.deepEqual([success, cancelled, error.message], [false, true, 'enough']);
    assert.equal(metadata.outcome, 'stopped');
  });

  test('whose signal fires when it is answered stays as it was answered', async () => {
    const abp = await begun({ work: () => 'done' });
    const controller = new AbortController();
    const response = await abp.call('work', {}, { signal: controller.signal });
    controller.abort();
    assert.equal(response.data, 'done');
  });

  test('that has ended when its signal fires stays as it ended, though it is not answered yet', async () => {
    const controller = new AbortController();
    const abp = await begun({
      work: () => {
        controller.abort();
        return 'done';
      },
    });
    assert.equal((await abp.call('work', {}, { signal: controller.signal })).data, 'done');
  });

  test('whose signal has fired never runs', async () => {
    const handler = mock.fn();
    const abp = await begun({ work: handler });
    const signal = AbortSignal.abort('enough');
    const { cancelled, error, metadata } = await abp.call('work', {}, { signal });
    assert.deepEqual([cancelled, error.message, metadata.outcome], [true, 'enough', 'unstarted']);
    assert.equal(handler.mock.callCount(), 0);
  });

  test('may have a signal that is none, as automation sends it', async () => {
    const abp = await begun({ echo: (params) => params });
    assert.equal((await abp.call('echo', 1, { signal: {} })).data, 1);
  });

  test('of an app that cancels itself says so in its own words', async () => {
    const cancelled = { success: false, cancelled: true };
    const error = { code: 'CANCELLED', message: 'declined', retryable: false };
    const abp = await begun({ work: () => ({ ...cancelled, error }) });
    const { signal } = new AbortController();
    assert.equal((await abp.call('work', {}, { signal })).error.message, 'declined');
  });

  test('takes no input', async () => {
    const handler = mock.fn();
    const abp = await begun({ work: handler });
    const { error, metadata } = await abp.call('work', {}, { input: [] });
    assert.deepEqual([error.code, metadata.outcome], ['NOT_SUPPORTED', 'unstarted']);
    assert.equal(handler.mock.callCount(), 0);
  });

  test('that runs when the app is closed is cancelled, and a later one never runs', async () => {
    const { handler, began } = held();
    const abp = await begun({ work: handler });
    const pending = abp.call('work');
    await began;
    app.close();
    assert.equal((await pending).cancelled, true);
    const { success, error, metadata } = await abp.call('work');
    assert.deepEqual([success, error.code, error.retryable], [false, 'DISCONNECTED', true]);
    assert.deepEqual([error.message, metadata.outcome], ['The app was closed', 'unstarted']);
  });
});

describe('a cancel', () => {
  for (const [form, args] of [
    ['two arguments', ['mine', 'enough']],
    ['an object', [{ callId: 'mine', reason: 'enough' }]],
  ])
    test(`is given as ${form}`, async () => {
      const { handler, began } = held();
      const abp = await begun({ work: handler });
      const pending = abp.call('work', {}, { callId: 'mine' });
      await began;
      const { callId, cancelled } = await abp.cancel(...args);
      assert.deepEqual([callId, cancelled], ['mine', true]);
      assert.equal((await pending).error.message, 'enough');
    });

  test('of a call that there is not is refused', async () => {
    const abp = await begun();
    const other = await abp.cancel('other');
    assert.deepEqual([other.callId, other.cancelled], ['other', false]);
    for (const callId of [7, null, undefined, () => {}, { callId: Symbol('x') }])
      assert.equal((await abp.cancel(callId)).cancelled, false);
  });
});

describe('a stream', () => {
  async function* count() {
    for (let i = 1; i <= 3; i++) yield i;
    return 'done';
  }

  test('is read while it is made, and returns the data', async () => {
    const abp = await begun({ count });
    const stream = abp.stream('count');
    const read = [];
    let next;
    while (!(next = await stream.next()).done) read.push(next.value);
    assert.deepEqual([read, next.value], [[1, 2, 3], 'done']);
  });

  test('that is not read any more is cancelled', async () => {
    let ended;
    const end = new Promise((resolve) => (ended = resolve));
    const abp = await begun({
      endless: async function* endless(_params, { signal }) {
        signal.addEventListener('abort', () => ended(signal.reason));
        for (let i = 0; ; i++) yield i;
      },
    });
    for await (const chunk of abp.stream('endless')) if (chunk === 40) break;
    assert.equal((await end).message, 'The reader stopped reading the stream');
  });

  test('is granted as much as is read, and leaves its callId to others', async () => {
    const abp = await begun({
      count: async function* count() {
        for (let i = 0; i < 200; i++) yield i;
      },
    });
    let read = 0;
    for await (const chunk of abp.stream('count', {}, { callId: 'mine' }))
      assert.equal(chunk, read++);
    assert.equal(read, 200);
    const collected = await abp.call('count', {}, { callId: 'mine' });
    assert.deepEqual([collected.data.length, collected.metadata.collected], [200, true]);
  });

  test('whose callId another has is refused, and that one goes on', async () => {
    const abp = await begun({ count });
    const options = { callId: 'mine' };
    const [one, two] = [abp.stream('count', {}, options), abp.stream('count', {}, options)];
    const first = one.next();
    await assert.rejects(two.next(), { code: 'INVALID_PARAMS' });
    assert.equal((await first).value, 1);
    assert.equal((await one.next()).value, 2);
    assert.equal((await one.next()).value, 3);
    assert.equal((await one.next()).value, 'done');
  });

  test('is cancelled by its signal', async () => {
    const abp = await begun({ count });
    const signal = AbortSignal.abort('enough');
    await assert.rejects(abp.stream('count', {}, { signal }).next(), /enough/);
  });
});

describe('what the app says', () => {
  /** What a listener is called with, by way of the page's own property or of a registrar. */
  const LISTENERS = {
    'a handler that is assigned': (abp, name, listener) => (abp[`on${name}`] = listener),
    'a handler that is registered': (abp, name, listener) => abp[`on${name}`](listener),
  };
  for (const [what, listen] of Object.entries(LISTENERS))
    test(`reaches ${what}`, async () => {
      const heard = [];
      const abp = await begun({
        work: (_params, { progress }) => progress({ progress: 1, total: 2 }),
      });
      for (const name of ['Notification', 'Progress', 'CapabilitiesChanged'])
        listen(abp, name, (said) => void heard.push([name, said]));
      abp.notify('moved', { x: 1 });
      abp.notifyProgress({ operationId: 'o', progress: 1 });
      await abp.call('work', {}, { callId: 'c', progressToken: 't' });
      app.set('other', () => 1);
      await abp.call('other');
      const changed = { added: ['other'], removed: [], changed: [] };
      const [first, second, third, fourth, fifth] = heard;
      assert.deepEqual(first, ['Notification', { event: 'moved', data: { x: 1 } }]);
      assert.deepEqual([second[0], second[1].operationId], ['Progress', 'o']);
      assert.deepEqual(
        [third[0], third[1].operationId, third[1].percentage],
        ['Progress', 't', 50],
      );
      assert.deepEqual(fourth, ['CapabilitiesChanged', changed]);
      assert.equal(fifth[1].event, 'notifications/capabilities/list_changed');
    });

  test('reaches a function of the page where there is no handler', async () => {
    const heard = [];
    const error = mock.method(console, 'error', () => {});
    globalThis.__abpOnNotification = (said) => void heard.push(said);
    try {
      const abp = await begun();
      abp.notify('bytes', { content: new Uint8Array([1, 2, 3]).buffer, mimeType: 'a/b' });
      await abp.call('none');
      assert.equal(heard[0].data.content, 'AQID');
      abp.onNotification = () => {};
      abp.notify('more');
      abp.onNotification = undefined;
      abp.onNotification({ type: 'notification' });
      abp.notify('again');
      await abp.call('none');
      assert.deepEqual(
        heard.map(({ event }) => event),
        ['bytes', 'again'],
      );
      assert.equal(error.mock.callCount(), 0);
    } finally {
      delete globalThis.__abpOnNotification;
      mock.restoreAll();
    }
  });

  test('of changes without saying which is read as none', async () => {
    const abp = await begun();
    const listener = mock.fn();
    assert.ok(Object.keys(abp).includes('onCapabilitiesChanged'));
    abp.onCapabilitiesChanged = listener;
    abp.notify('notifications/capabilities/list_changed');
    assert.deepEqual(listener.mock.calls[0].arguments, [{ added: [], removed: [], changed: [] }]);
  });

  test('to a listener that fails is reported to the console, and disturbs nothing', async () => {
    const reported = [];
    mock.method(console, 'error', (...words) => reported.push(words.at(-1).message));
    globalThis.__abp_notify = () => Promise.reject(new Error('the client has gone'));
    try {
      const abp = await begun({ echo: (params) => params });
      abp.notify('unheard');
      abp.onNotification = () => {
        throw new Error('a mistake');
      };
      abp.notify('heard');
      assert.equal((await abp.call('echo', 1)).data, 1);
      assert.deepEqual(reported.sort(), ['a mistake', 'the client has gone']);
    } finally {
      delete globalThis.__abp_notify;
      mock.restoreAll();
    }
  });
});

describe('a question', () => {
  const ask = (_params, { elicit }) => elicit({ method: 'elicitation/input', params: { a: 1 } });

  for (const [what, listener, expected] of [
    ['data', ({ params }) => params, { success: true, data: { a: 1 } }],
    ['a response', () => ({ success: true, data: 2 }), { success: true, data: 2 }],
    [
      'an error',
      () => Promise.reject(new Error('no')),
      { success: false, error: { code: 'OPERATION_FAILED', message: 'no', retryable: false } },
    ],
  ])
    test(`is answered by ${what}`, async () => {
      const abp = await begun({ ask: async (...call) => ({ answer: await ask(...call) }) });
      abp.onElicitation = listener;
      assert.deepEqual((await abp.call('ask')).data.answer, expected);
      assert.deepEqual(
        await abp.elicit({ method: 'elicitation/input', params: { a: 1 } }),
        expected,
      );
    });

  test('that nobody hears is not supported', async () => {
    const abp = await begun({ ask: async (...call) => ({ answer: await ask(...call) }) });
    const { answer } = (await abp.call('ask')).data;
    assert.deepEqual([answer.success, answer.error.code], [false, 'NOT_SUPPORTED']);
  });
});

describe('it is installed', () => {
  const other = { initialize() {}, call() {}, cancel() {} };
  afterEach(() => delete globalThis.window);
  const installed = async (window) => {
    globalThis.window = window;
    const abp = interfaceOf();
    await app.ready;
    return { abp, cancel: abp.cancel, window };
  };

  test('where the name is free, and those who wait are told', async () => {
    const resolve = mock.fn();
    const { abp, cancel, window } = await installed({ __abpReadyResolve: resolve });
    assert.deepEqual([window.abp, window.__abp_cancel], [abp, cancel]);
    assert.equal(resolve.mock.callCount(), 1);
  });

  test('in place of another of its form, but not of its cancel', async () => {
    const { abp, window } = await installed({ abp: other, __abp_cancel: other.cancel });
    assert.deepEqual([window.abp, window.__abp_cancel], [abp, other.cancel]);
  });

  test('where nothing else has the name', async () => {
    for (const taken of [{ initialize() {} }, { call() {} }, 'abp']) {
      const { window } = await installed({ abp: taken });
      assert.deepEqual([window.abp, window.__abp_cancel], [taken, undefined]);
      app.close();
    }
  });

  test('nowhere without a window', async () => {
    interfaceOf();
    await app.ready;
    assert.equal(globalThis.abp, undefined);
  });
});
