// Peers as they are found: agents and apps that speak the published protocol with their own habits, over a
// MessagePort and through `window.abp`.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, expose } from '../../js/index.js';

const FEATURES = { notifications: true, progress: true, elicitation: true };
const APP = { id: 'a', name: 'A', version: '1' };

/** One end of a channel, by hand. */
class Raw {
  #queue = [];
  #waiting = [];
  #hello;
  constructor(port) {
    this.port = port;
    port.onmessage = ({ data }) => {
      // It is sent again until it is answered.
      if (data.type === 'initialize' && data.id === this.#hello) return;
      if (data.type === 'initialize') this.#hello = data.id;
      this.#queue.push(data);
      this.#waiting.shift()?.();
    };
  }
  send(type, id, payload) {
    this.port.postMessage({ type, id, payload });
  }
  /** The next message, in order. */
  async next() {
    if (!this.#queue.length) await new Promise((resolve) => this.#waiting.push(resolve));
    return this.#queue.shift();
  }
  async ask(type, id, payload) {
    this.send(type, id, payload);
    return this.next();
  }
}

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
    const { id } = await raw.next();
    raw.send('initialize-result', id, result);
    client = await connecting;
  }

  describe('its questions may be answered with', () => {
    const DECLINED = { success: false, cancelled: true };
    const REFUSED = {
      success: false,
      error: { code: 'USER_CANCELLED', message: 'no', retryable: false },
    };
    for (const [what, answer, expected] of [
      ['the data', { confirmed: true }, { success: true, data: { confirmed: true } }],
      ['a response', { success: true, data: 1 }, { success: true, data: 1 }],
      ['a response that says cancelled', DECLINED, DECLINED],
      ['a response that fails', REFUSED, REFUSED],
    ]) {
      test(what, async () => {
        await open({ onElicitation: () => answer });
        const { payload } = await raw.ask('elicitation/request', 1, { method: 'm' });
        assert.deepEqual(payload, expected);
      });
    }
  });

  test('options of null are none', async () => {
    await open();
    const pending = client.call('echo', {}, null);
    raw.send('capabilities/call-result', (await raw.next()).id, { success: true });
    assert.deepEqual(await pending, { success: true });
  });

  test('the error of a cancel may stand beside its answer', async () => {
    await open();
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

    test('because it serves another agent: connect says that this may be so', async () => {
      const error = { code: 'ALREADY_INITIALIZED', message: 'busy', retryable: false };
      await assert.rejects(open({ timeout: 20 }, { success: false, error }), {
        code: 'TIMEOUT',
        message: /no other agent/,
      });
    });
  });
});
