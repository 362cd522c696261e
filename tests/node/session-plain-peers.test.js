// Peers as they are found: agents and apps that speak the published protocol with their own habits,
// over a MessagePort and through `window.abp`.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { Raw } from '../support/raw.js';
import { openPair } from '../support/pair.js';

const FEATURES = { notifications: true, progress: true, elicitation: true };
const APP = { id: 'a', name: 'A', version: '1' };

const HANDLERS = {
  echo: (params) => params,
  hang: (_params, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    ),
  steps: (_params, { progress }) => progress({ progress: 1, total: 4 }),
  ask: (request, { elicit }) => elicit(request),
};

let channel, raw;
beforeEach(() => {
  channel = new MessageChannel();
  raw = new Raw(channel.port2);
});
afterEach(() => {
  channel.port1.close();
  channel.port2.close();
});

describe('a plain agent', () => {
  let exposed;
  beforeEach(async () => {
    exposed = expose({ app: APP, capabilities: HANDLERS }, { port: channel.port1 });
    await raw.ask('initialize', 'hello', { protocolVersion: '0.1', features: FEATURES });
  });
  afterEach(() => exposed.close());

  for (const progressToken of ['a token of its own', 7, 0]) {
    test(`progress is named by the call’s progressToken: ${JSON.stringify(progressToken)}`, async () => {
      const options = { callId: 'the call', progressToken };
      const { type, payload } = await raw.ask('capabilities/call', 'c', {
        capability: 'steps',
        options,
      });
      assert.equal(type, 'progress');
      assert.deepEqual(payload, {
        operationId: progressToken,
        progress: 1,
        total: 4,
        percentage: 25,
      });
      assert.equal((await raw.next()).id, 'c');
    });
  }

  for (const [what, reason, words] of [
    ['half a surrogate', 'no more \ud83d', 'no more \ufffd'],
    ['NUL', 'no\0more', 'no\ufffdmore'],
    ['null', null, 'The operation was cancelled'],
  ]) {
    test(`a cancel counts, though its reason holds ${what}`, async () => {
      raw.send('capabilities/call', 'h', { capability: 'hang' });
      const answer = await raw.ask('capabilities/cancel', 'k', { callId: 'h', reason });
      assert.deepEqual([answer.id, answer.payload.cancelled], ['k', true]);
      const { payload } = await raw.next();
      assert.deepEqual([payload.cancelled, payload.error.message], [true, words]);
    });
  }

  for (const callId of ['a\ud83d', 'a\0b', null, undefined, 7]) {
    test(`a cancel for a callId that none can have is answered: ${JSON.stringify(callId)}`, async () => {
      const { id, payload } = await raw.ask('capabilities/cancel', 'k', { callId });
      assert.equal(id, 'k');
      assert.deepEqual([payload.cancelled, payload.error.code], [false, 'INVALID_PARAMS']);
    });
  }

  test('a progressToken of null, as some clients write for none, asks for no progress', async () => {
    const options = { progressToken: null, timeout: null, callId: null };
    const { type } = await raw.ask('capabilities/call', 'c', { capability: 'steps', options });
    assert.equal(type, 'capabilities/call-result');
  });
});

describe('a handler that throws', () => {
  for (const [what, thrown, expected] of [
    ['nothing', undefined, { code: 'OPERATION_FAILED', message: 'The operation failed' }],
    ['null', null, { code: 'OPERATION_FAILED', message: 'The operation failed' }],
    ['a text', 'no paper', { code: 'OPERATION_FAILED', message: 'no paper' }],
  ]) {
    test(`${what} fails its call in words`, async () => {
      const capabilities = { fail: () => Promise.reject(thrown) };
      expose({ app: APP, capabilities }, { port: channel.port1 });
      await raw.ask('initialize', 'hello', {});
      const { payload } = await raw.ask('capabilities/call', 'c', { capability: 'fail' });
      assert.deepEqual(payload.error, { ...expected, retryable: false });
    });
  }

  test('the protocol’s CANCELLED, as an object of any class, has cancelled its call', async () => {
    const capabilities = {
      fail: () => Promise.reject({ code: 'CANCELLED', message: 'declined', retryable: false }),
    };
    expose({ app: APP, capabilities }, { port: channel.port1 });
    await raw.ask('initialize', 'hello', {});
    const { payload } = await raw.ask('capabilities/call', 'c', { capability: 'fail' });
    assert.deepEqual([payload.cancelled, payload.error.message], [true, 'declined']);
    const answer = await raw.ask('capabilities/cancel', 'k', { callId: 'c' });
    assert.equal(answer.payload.cancelled, true);
  });
});

describe('a plain app', () => {
  const ACCEPTED = {
    sessionId: 's',
    protocolVersion: '0.1',
    app: APP,
    capabilities: [{ name: 'echo' }],
    features: FEATURES,
  };
  let client;
  async function open(options, result = ACCEPTED) {
    const connecting = connect(channel.port1, {
      agent: { name: 'a', version: '1' },
      limits: { grace: 60 },
      ...options,
    });
    connecting.catch(() => {}); // it may time out before what it sent has arrived
    const { id } = await raw.next();
    raw.send('initialize-result', id, result);
    client = await connecting;
  }

  describe('its questions may be answered with', () => {
    const DECLINED = { success: false, cancelled: true };
    const CANCELLED = {
      code: 'CANCELLED',
      message: 'The operation was cancelled',
      retryable: false,
    };
    const REFUSED = {
      success: false,
      error: { code: 'USER_CANCELLED', message: 'no', retryable: false },
    };
    for (const [what, answer, expected] of [
      ['the data', { confirmed: true }, { success: true, data: { confirmed: true } }],
      ['a response', { success: true, data: 1 }, { success: true, data: 1 }],
      ['a response that says cancelled', DECLINED, { ...DECLINED, error: CANCELLED }],
      ['a response that fails', REFUSED, REFUSED],
    ]) {
      test(what, async () => {
        await open({ onElicitation: () => answer });
        const { payload } = await raw.ask('elicitation/request', 1, { method: 'm' });
        assert.deepEqual(payload, expected);
      });
    }
  });

  test('a description that was cut within a character costs no session', async () => {
    const capabilities = [{ name: 'echo', description: 'Says it again \ud83d' }];
    await open({}, { ...ACCEPTED, capabilities, app: { ...APP, description: 'a\0b' } });
    assert.deepEqual(await client.listCapabilities(), capabilities);
  });

  test('elicitation/text is elicitation/input by another name, and allowed where that is', async () => {
    const allowedRequests = ['elicitation/input'];
    await open({ allowedRequests, onElicitation: ({ method }) => method });
    const { payload } = await raw.ask('elicitation/request', 1, { method: 'elicitation/text' });
    assert.equal(payload.data, 'elicitation/input');
  });

  test('that offers no feature and uses them all the same is heard', async () => {
    const features = { notifications: false, progress: false, elicitation: false };
    const heard = [];
    const onElicitation = ({ method }) => method;
    const onNotification = (...args) => heard.push(args);
    await open({ onElicitation, onNotification }, { ...ACCEPTED, features });
    const onProgress = ({ progress }) => heard.push(progress);
    const pending = client.call('echo', {}, { onProgress });
    const { id, payload } = await raw.next();
    raw.send('progress', undefined, { operationId: payload.options.progressToken, progress: 5 });
    raw.send('notification', undefined, { event: 'e', data: 1 });
    const answer = await raw.ask('elicitation/request', 1, { method: 'elicitation/input' });
    assert.equal(answer.payload.data, 'elicitation/input');
    raw.send('capabilities/call-result', id, { success: true });
    await pending;
    assert.deepEqual(heard, [5, ['e', 1]]);
  });

  test('options of null are none', async () => {
    await open();
    const pending = client.call('echo', {}, null);
    raw.send('capabilities/call-result', (await raw.next()).id, { success: true });
    assert.deepEqual(await pending, { success: true });
  });

  test('the error of a cancel may stand beside its answer', async () => {
    await open({ limits: { grace: 60_000 } });
    const said = { callId: 'x', cancelled: false, reason: 'No session', code: 'NOT_INITIALIZED' };
    const answered = client.cancel('x');
    raw.send('capabilities/cancel-result', (await raw.next()).id, said);
    const { cancelled, error } = await answered;
    assert.equal(cancelled, false);
    assert.deepEqual(error, { code: 'NOT_INITIALIZED', message: 'No session', retryable: false });
  });

  describe('that refuses the handshake', () => {
    for (const [what, result, code, words] of [
      ['with a text', { success: false, error: 'not today' }, 'OPERATION_FAILED', /^not today$/],
      ['without a code', { success: false, error: { message: 'no' } }, 'OPERATION_FAILED', /^no$/],
      ['without an error', { success: false }, 'SESSION_INVALID', /sessionId/],
      ['without a payload', null, 'SESSION_INVALID', /sessionId/],
    ]) {
      test(`${what}: connect rejects with a code and words`, async () => {
        await assert.rejects(open({}, result), (error) => {
          assert.equal(error.code, code);
          assert.match(error.message, words);
          return true;
        });
      });
    }
  });
});

describe('window.abp', () => {
  const LIST_CHANGED = 'notifications/capabilities/list_changed';
  const HELLO = { agent: { name: 'client' }, protocolVersion: '0.1', features: FEATURES };
  const CALLBACKS = ['progress', 'notification', 'elicitation', 'capabilities_changed'];
  let exposed, abp, errors;
  beforeEach(async () => {
    errors = [];
    globalThis.window = globalThis;
    globalThis.reportError = (error) => errors.push(error.message);
    exposed = expose({ app: APP, capabilities: HANDLERS }, { origins: [], limits: { grace: 60 } });
    abp = globalThis.abp;
    await abp.initialize(HELLO);
  });
  afterEach(() => {
    exposed.close();
    for (const name of CALLBACKS) delete globalThis[`__abp_${name}`];
    for (const name of ['window', 'reportError', 'abp', '__abp_cancel']) delete globalThis[name];
  });
  const steps = () => abp.call('steps', {}, { progressToken: 't' });

  test('a notification is one object for a handler, as it is for a callback', () => {
    const heard = [];
    abp.onNotification = (...args) => heard.push(args);
    abp.notify('notifications/error', { code: 'X' });
    abp.onNotification = undefined;
    globalThis.__abp_notification = (...args) => heard.push(args);
    abp.notify('notifications/error', { code: 'X' });
    const told = [{ event: 'notifications/error', data: { code: 'X' } }];
    assert.deepEqual(heard, [told, told]);
  });

  test('bytes are base64, as a client needs that evaluates in the page, which gets {} for a buffer', async () => {
    exposed.set('bytes', () => ({
      file: { content: new Uint8Array([104, 105]).buffer, mimeType: 'text/plain' },
      bare: new Uint8Array([104, 105]),
      when: new Date(0),
    }));
    const { data } = await abp.call('bytes');
    const text = { content: 'aGk=', encoding: 'base64', size: 2 };
    assert.deepEqual(data, {
      file: { ...text, mimeType: 'text/plain' },
      bare: { ...text, mimeType: 'application/octet-stream' },
      when: new Date(0),
    });
  });

  test('bytes are base64 in errors, too, and in what a client’s own functions are told', async () => {
    const content = new Uint8Array([104, 105]).buffer;
    const file = { content, mimeType: 'a/b' };
    const inText = { content: 'aGk=', mimeType: 'a/b', encoding: 'base64', size: 2 };
    exposed.set('refuse', () => ({
      success: false,
      error: { code: 'X', message: 'no', retryable: false, details: { file } },
    }));
    exposed.set('ask', (_params, { elicit }) => elicit({ method: 'm', params: { file } }));
    assert.deepEqual((await abp.call('refuse')).error.details, { file: inText });
    globalThis.__abp_elicitation = ({ params }) => params;
    assert.deepEqual((await abp.call('ask')).data, { file: inText });
    const heard = new Promise((resolve) => (globalThis.__abp_notification = resolve));
    abp.notify('e', file);
    assert.deepEqual(await heard, { event: 'e', data: inText });
    abp.onNotification = ({ data }) => data === file || assert.fail('changed');
    abp.notify('e', file);
    assert.deepEqual(errors, []);
  });

  test('what is listed has every member that is not optional, and is available only if it is', async () => {
    const handler = () => 1;
    const met = () => false;
    const requirement = { type: 'permission', description: 'a key' };
    exposed.set('locked', { handler, requirements: [{ ...requirement, met }] });
    exposed.set('modern', { handler, browserRequirement: { chrome: 100 } });
    const named = Object.fromEntries((await abp.listCapabilities()).map((c) => [c.name, c]));
    assert.deepEqual(named.echo, { name: 'echo', available: true, requirements: [], features: {} });
    const { available, requirements } = named.locked;
    assert.deepEqual([available, requirements], [false, [{ ...requirement, met: false }]]);
    assert.deepEqual(named.modern.browserRequirement, { chrome: 100 });
    assert.equal((await exposed.manifest()).capabilities.at(-2).name, 'locked');
    assert.deepEqual((await exposed.manifest()).capabilities.at(-2).requirements, [requirement]);
  });

  test('is installed for the clients of its page, though no other page may connect', () => {
    assert.equal(abp, exposed.abp);
  });

  test('a listener or a callback that throws fails neither the call nor the notification', async () => {
    globalThis.__abp_progress = () => {
      throw new Error('the client disconnected');
    };
    assert.equal((await steps()).success, true);
    abp.onNotification = () => {
      throw new Error('the page’s own');
    };
    abp.notify('x');
    assert.deepEqual(errors, ['the client disconnected', 'the page’s own']);
  });

  test('a handler may be assigned, registered, chained to the one before, and taken away', async () => {
    const heard = [];
    abp.onProgress = () => heard.push('assigned');
    await steps();
    abp.onProgress(() => heard.push('registered'));
    await steps();
    const before = abp.onProgress;
    abp.onProgress = (info) => {
      before(info);
      heard.push('chained');
    };
    await steps();
    await steps();
    abp.onProgress = null;
    await steps();
    assert.deepEqual(heard, ['assigned', 'registered', 'chained', 'chained']);
  });

  test('changes of capabilities come with all three lists, whichever the app gave', () => {
    const heard = [];
    abp.onCapabilitiesChanged = (changes) => heard.push(changes);
    abp.notify(LIST_CHANGED, { changed: ['echo'] });
    assert.deepEqual(heard, [{ added: [], removed: [], changed: ['echo'] }]);
  });

  test('notifyProgress says progress and percentage, as clients that look no further need', () => {
    const heard = [];
    abp.onProgress = (info) => heard.push(info);
    abp.notifyProgress({ operationId: 'crawl', status: 'begun' });
    abp.notifyProgress({ operationId: 'crawl', progress: 1, total: 2 });
    assert.deepEqual(heard, [
      { operationId: 'crawl', status: 'begun', progress: 0 },
      { operationId: 'crawl', progress: 1, total: 2, percentage: 50 },
    ]);
  });

  test('a cancel is answered, whatever it is asked with', async () => {
    const pending = abp.call('hang', {}, { callId: 'h' });
    assert.equal((await abp.cancel({ callId: 'h', reason: new Error('why') })).cancelled, true);
    assert.equal((await pending).error.message, 'why');
    const cyclic = {};
    cyclic.self = cyclic;
    for (const args of [['x', cyclic], ['x', 1n], [cyclic], [1n], [null], []]) {
      assert.equal((await abp.cancel(...args)).cancelled, false);
    }
  });

  test('an initialize that no message can carry is rejected', async () => {
    await abp.shutdown();
    const agent = { id: 1n };
    await assert.rejects(abp.initialize({ ...HELLO, agent }), TypeError);
  });

  test('a signal that lost its form on the way into the page is none', async () => {
    assert.equal((await abp.call('echo', 1, { signal: {} })).data, 1);
  });

  test('elicit before initialize resolves with NOT_INITIALIZED, as call does', async () => {
    await abp.shutdown();
    assert.deepEqual([abp.initialized, abp.sessionId], [false, null]);
    const { success, error } = await abp.elicit({ method: 'elicitation/input' });
    assert.deepEqual([success, error.code], [false, 'NOT_INITIALIZED']);
  });

  test('an app that is closed settles what is pending, on its way or not, and begins no session', async () => {
    const running = abp.call('hang');
    await abp.call('echo');
    const onItsWay = abp.call('hang');
    exposed.close();
    assert.equal((await running).cancelled, true);
    assert.equal((await onItsWay).error.code, 'DISCONNECTED');
    assert.deepEqual([abp.initialized, abp.sessionId], [false, null]);
    assert.equal((await abp.call('echo')).error.code, 'DISCONNECTED');
    assert.equal((await abp.cancel('x')).cancelled, false);
    await assert.rejects(abp.initialize(HELLO), { code: 'DISCONNECTED' });
    await abp.shutdown();
  });
});

describe('both sides ours', () => {
  for (const upgrade of ['none', 'frames']) {
    const say = (what) => `${what}, with ${upgrade === 'none' ? 'messages' : 'frames'}`;
    const pair = async (capabilities) => (await openPair(capabilities, { upgrade })).client;

    test(say('progress names its operation'), async () => {
      const client = await pair(HANDLERS);
      const heard = [];
      const onProgress = (info) => heard.push(info.operationId);
      await client.call('steps', {}, { onProgress, callId: 'named' });
      await client.call('steps', {}, { onProgress });
      assert.equal(heard[0], 'named');
      assert.match(heard[1], /\.\d+$/);
    });

    test(
      say('a buffer that an earlier result took along is not sent as an empty one'),
      async () => {
        const content = new ArrayBuffer(4);
        const client = await pair({ cached: () => ({ content, mimeType: 'a/b' }) });
        assert.equal((await client.call('cached')).data.content.byteLength, 4);
        const { success, error } = await client.call('cached');
        assert.equal(success, false);
        assert.match(error.message, /detached/);
      },
    );
  }
});
