// An app that has a `window.abp` of its own, as the protocol's documentation writes one, put behind
// a port.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { useClock } from '../support/clock.js';

const AGENT = { name: 'the agent', version: '7' };

/** What the documentation's samples come to, as far as it is of use here. */
function sampleApp() {
  const running = new Map();
  const said = [];
  const app = {
    protocolVersion: '0.1',
    app: { id: 'a.b', name: 'A', version: '1' },
    said,
    async initialize(params) {
      said.push(['initialize', params.agent, params.requestedCapabilities]);
      if (app.refuses) return { success: false, error: app.refuses };
      const capabilities = [{ name: 'echo', available: true }];
      const features = { notifications: false, progress: false, elicitation: false };
      return {
        sessionId: `s${said.length}`,
        protocolVersion: '0.1',
        app: app.app,
        capabilities,
        features,
      };
    },
    async shutdown() {
      said.push(['shutdown']);
    },
    async listCapabilities() {
      return [{ name: 'echo', description: 'Says it again', available: true }];
    },
    async call(capability, params, { callId, progressToken } = {}) {
      switch (capability) {
        case 'echo':
          return { success: true, data: params };
        case 'fail':
          return { success: false, error: { code: 'OWN', message: 'no', retryable: true } };
        case 'steps':
          app.onProgress?.({ operationId: progressToken, progress: 1, total: 2 });
          return { success: true };
        case 'ask':
          return app.onElicitation({ method: 'elicitation/input', params });
        case 'hang':
          return new Promise((resolve) => {
            running.set(callId, () => resolve({ success: false, cancelled: true }));
          });
      }
      const message = `No ${capability}`;
      return { success: false, error: { code: 'UNKNOWN_CAPABILITY', message, retryable: false } };
    },
    async cancel(callId, reason) {
      said.push(['cancel', reason]);
      running.get(callId)?.();
      return { callId, cancelled: running.delete(callId) };
    },
  };
  return app;
}

let channel, app, exposed;
beforeEach(() => {
  channel = new MessageChannel();
  app = sampleApp();
  exposed = expose(app, { port: channel.port1 });
});
afterEach(() => {
  exposed.close();
  channel.port1.close();
  channel.port2.close();
});
const open = (options) => connect(channel.port2, { agent: AGENT, ...options });

test('its capabilities are called as they are, and its agent is who calls', async () => {
  const client = await open({ requestedCapabilities: ['echo'] });
  assert.deepEqual(client.app, app.app);
  const [{ name, description }] = await client.listCapabilities();
  assert.deepEqual([name, description], ['echo', 'Says it again']);
  assert.deepEqual(app.said, [['initialize', AGENT, ['echo']]]);
  const content = new Uint8Array([1, 2]).buffer;
  const { data } = await client.call('echo', { a: 1, file: { content, mimeType: 'x/y' } });
  assert.deepEqual([data.a, data.file.content.byteLength], [1, 2]);
  assert.equal((await client.call('fail')).error.code, 'OWN');
  assert.equal((await client.call('nothing')).error.code, 'UNKNOWN_CAPABILITY');
});

test('a cancel reaches it, and the call is cancelled', async () => {
  const client = await open();
  const controller = new AbortController();
  const pending = client.call('hang', {}, { signal: controller.signal });
  await client.call('echo');
  controller.abort('enough');
  const { cancelled, error } = await pending;
  assert.deepEqual([cancelled, error.message], [true, 'enough']);
  assert.deepEqual(app.said.at(-1), ['cancel', 'enough']);
});

test('an app whose cancel takes an object, or says nothing, is asked in that form, too', async () => {
  const { cancel } = app;
  const forms = [];
  app.cancel = async (...request) => {
    forms.push(request.length);
    const [{ callId, reason }] = request;
    return callId === undefined ? { cancelled: false } : cancel(callId, reason);
  };
  const client = await open();
  const controller = new AbortController();
  const pending = client.call('hang', {}, { signal: controller.signal });
  await client.call('echo');
  controller.abort('enough');
  assert.equal((await pending).cancelled, true);
  assert.deepEqual(forms, [2, 1]);
  app.cancel = async () => {};
  void client.call('hang', {}, { callId: 'c' });
  await client.call('echo');
  const { cancelled, error } = await client.cancel('c');
  assert.deepEqual([cancelled, error], [false, undefined]);
});

test('it is given the token that an agent chose for progress, or the id of the call', async () => {
  const { call } = app;
  const given = [];
  app.call = (name, params, options) => {
    given.push([options.progressToken, options.callId]);
    return call(name, params, options);
  };
  const client = await open();
  await client.call('steps', {}, { progressToken: 'mine', onProgress() {} });
  await client.call('steps', {}, { onProgress() {} });
  await client.call('echo');
  const [[chosen], [own, id], [none]] = given;
  assert.deepEqual([chosen, own, none], ['mine', id, undefined]);
});

test('an app behind a port alone installs no window.abp', () => {
  assert.equal(globalThis.abp, undefined);
  const { port1 } = new MessageChannel();
  const own = expose(
    { app: { id: 'a', name: 'A', version: '1' }, capabilities: {} },
    { port: port1 },
  );
  assert.equal(globalThis.abp, undefined);
  own.close();
  port1.close();
});

test('an app that finishes all the same is not said to be cancelled', async () => {
  let finish;
  const { call, cancel } = app;
  app.call = (name, ...rest) =>
    name === 'slow'
      ? new Promise((resolve) => (finish = () => resolve({ success: true, data: 'done' })))
      : call(name, ...rest);
  app.cancel = async (callId, reason) => {
    await cancel(callId, reason);
    finish();
    return { callId, cancelled: false, reason: 'too late' };
  };
  const client = await open();
  const result = client.call('slow', {}, { callId: 'c' });
  while (!finish) await new Promise((resolve) => setImmediate(resolve));
  const { cancelled, reason } = await client.cancel('c', 'enough');
  assert.deepEqual([cancelled, reason], [false, 'too late']);
  assert.equal((await result).data, 'done');
  assert.equal((await client.cancel('c')).reason, 'Operation already completed');
  assert.ok(app.said.some(([what, why]) => what === 'cancel' && why === 'enough'));
  client.close();
});

test('an app that declined a cancel goes on, and is asked again by the next one', async () => {
  const { cancel } = app;
  const reasons = [];
  app.cancel = async (callId, reason) => {
    // Either form of the arguments counts once.
    if (reasons.at(-1) !== reason) reasons.push(reason);
    return reason === 'please'
      ? cancel(callId, reason)
      : { callId, cancelled: false, reason: 'no' };
  };
  const client = await open();
  const result = client.call('hang', {}, { callId: 'c' });
  await client.call('echo');
  for (const asked of ['stop', 'at once']) {
    const { cancelled, reason } = await client.cancel('c', asked);
    assert.deepEqual([cancelled, reason], [false, 'no']);
  }
  assert.equal((await client.cancel('c', 'please')).cancelled, true);
  assert.equal((await result).cancelled, true);
  assert.deepEqual(reasons, ['stop', 'at once', 'please']);
  client.close();
});

test('an app that acknowledges a cancel is held to it, whatever its call says then', async () => {
  const { cancel } = app;
  app.call = (name, params, { callId }) =>
    new Promise((_resolve, reject) => (app.fail = () => reject(new Error(`${callId} broke`))));
  app.cancel = async (callId) => {
    app.fail();
    return { ...(await cancel(callId)), cancelled: true };
  };
  const client = await open();
  const result = client.call('any', {}, { callId: 'c' });
  while (!app.fail) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await client.cancel('c', 'enough')).cancelled, true);
  const { cancelled, error } = await result;
  assert.deepEqual([cancelled, error.code], [true, 'CANCELLED']);
  client.close();
});

test('an app that never answers a cancel leaves it unknown after the grace period', async () => {
  exposed.close();
  channel = new MessageChannel();
  exposed = expose(app, { port: channel.port1, limits: { grace: 20 } });
  app.cancel = () => new Promise(() => {});
  const client = await open();
  const result = client.call('hang', {}, { callId: 'c' });
  await client.call('echo');
  const { cancelled, reason } = await client.cancel('c');
  assert.deepEqual([cancelled, /not known/.test(reason)], [false, true]);
  assert.equal((await result).metadata.outcome, 'unknown');
  client.close();
});

describe('an app that knows nothing of a cancel but what becomes of its call', () => {
  const STOOD = 'Operation already completed';
  const UNKNOWN = 'It is not known whether the operation has stopped';
  const broken = { code: 'OPERATION_FAILED', message: 'broken', retryable: false };
  const gone = { code: 'CANCELLED', message: 'gone', retryable: false };
  /** What its call answers then; what the cancel is answered, and the caller told. */
  const ANSWERS = {
    'what it gives stands': [
      { success: true, data: 'done' },
      [false, STOOD],
      [true, undefined, undefined, undefined],
    ],
    'what fails was not cancelled': [
      { success: false, error: broken },
      [false, STOOD],
      [false, undefined, 'OPERATION_FAILED', 'failed'],
    ],
    'what says cancelled is believed': [
      { success: false, cancelled: true, error: gone },
      [true, undefined],
      [false, true, 'CANCELLED', 'unknown'],
    ],
    'what cannot know says so': [
      { success: false, cancelled: true, error: gone, metadata: { outcome: 'unknown' } },
      [false, UNKNOWN],
      [false, true, 'CANCELLED', 'unknown'],
    ],
  };
  for (const [what, [response, answer, told]] of Object.entries(ANSWERS))
    test(what, async () => {
      const begun = new Promise((resolve) => {
        app.call = () => new Promise((end) => resolve(end));
      });
      const client = await open();
      const result = client.call('any', {}, { callId: 'c' });
      const end = await begun;
      app.cancel = async (callId) => (end(response), { callId, outcome: 'unknown' });
      const answers = await Promise.all([client.cancel('c', 'enough'), client.cancel('c')]);
      for (const { cancelled, reason } of [...answers, await client.cancel('c')])
        assert.deepEqual([cancelled, reason], answer);
      const { success, cancelled, error, metadata } = await result;
      assert.deepEqual([success, cancelled, error?.code, metadata?.outcome], told);
    });

  test('what says nothing in time leaves it unknown, whatever it says later', async (t) => {
    const clock = useClock(t);
    let end;
    app.call = () => new Promise((resolve) => (end = resolve));
    let isAsked;
    app.cancel = async (callId) => ((isAsked = true), { callId, outcome: 'unknown' });
    const client = await open({ limits: { grace: 60_000 } });
    const result = client.call('any', {}, { callId: 'c' });
    const until = async (holds) => {
      while (!holds()) await new Promise(setImmediate);
    };
    await until(() => end);
    const answered = client.cancel('c');
    await until(() => isAsked);
    clock.advance(3000); // the grace period of the app
    assert.equal((await answered).reason, UNKNOWN);
    assert.equal((await result).metadata.outcome, 'unknown');
    end({ success: true, data: 'done' });
    assert.equal((await client.cancel('c')).reason, UNKNOWN);
  });
});

describe('what an app says is told before its grace period is over', () => {
  /** Cancels a call of an app that asks these functions, whose grace period that is. */
  async function cancelled(t, grace, { call, cancel }) {
    exposed.close();
    channel = new MessageChannel();
    exposed = expose(app, { port: channel.port1, limits: { grace } });
    let isAsked;
    app.call = call;
    app.cancel = (callId) => ((isAsked = true), cancel(callId));
    const client = await open({ limits: { grace: 1e6 } });
    const clock = useClock(t);
    const result = client.call('any', {}, { callId: 'c' });
    const answer = client.cancel('c');
    while (!isAsked) await new Promise(setImmediate);
    t.after(() => client.close());
    let told;
    const all = Promise.all([result, answer]).then((both) => (told = both));
    /** Lets time go by in steps, until both are told. */
    const pass = async (step) => {
      for (; !told; clock.advance(step)) await new Promise(setImmediate);
      return all;
    };
    return { clock, pass };
  }

  test('be that short: a result counts, although the cancel is never answered', async (t) => {
    let end;
    const { pass } = await cancelled(t, 100, {
      call: () => new Promise((resolve) => (end = resolve)),
      cancel: () => (end({ success: true, data: 'done' }), new Promise(() => {})),
    });
    const [{ data }, { cancelled: stopped, reason }] = await pass(10);
    assert.deepEqual([data, stopped, reason], ['done', false, 'Operation already completed']);
  });

  test('be that long: a cancel that is accepted late counts, although the result came first', async (t) => {
    let end, accept;
    const { clock, pass } = await cancelled(t, 100_000, {
      call: () => new Promise((resolve) => (end = resolve)),
      cancel: (callId) => {
        end({ success: true, data: 'done' });
        return new Promise((resolve) => (accept = () => resolve({ callId, cancelled: true })));
      },
    });
    clock.advance(50_000);
    for (let i = 0; i < 20; i++) await new Promise(setImmediate);
    accept();
    const [{ success, metadata }, { cancelled: stopped }] = await pass(0);
    assert.deepEqual([success, metadata.outcome, stopped], [false, 'finished', true]);
  });

  test('and a result that comes late does not wait once more', async (t) => {
    let end;
    const { clock, pass } = await cancelled(t, 1000, {
      call: () => new Promise((resolve) => (end = resolve)),
      cancel: () => new Promise(() => {}),
    });
    clock.advance(900);
    for (let i = 0; i < 20; i++) await new Promise(setImmediate);
    end({ success: true, data: 'done' });
    const [{ data }] = await pass(50);
    assert.equal(data, 'done');
  });
});

test('two agents choose one id: each hears its own progress, and cancels its own call', async () => {
  const heard = [[], []];
  const waiting = [];
  app.call = (name, params, { callId, progressToken }) =>
    new Promise((resolve) => {
      waiting.push({ callId, resolve });
      app.onProgress({ operationId: progressToken, progress: params });
    });
  app.cancel = async (callId) => {
    const call = waiting.find((each) => each.callId === callId);
    call?.resolve({ success: false, cancelled: true });
    return { callId, cancelled: call !== undefined };
  };
  const first = await open();
  const { port1, port2 } = new MessageChannel();
  const { portTransport } = await import('../../js/transports/port.js');
  exposed.accept(portTransport(port1));
  const second = await connect(port2, { agent: AGENT });
  const calls = [first, second].map((client, i) =>
    client.call('any', i, {
      callId: 'same',
      onProgress: ({ progress }) => heard[i].push(progress),
    }),
  );
  while (waiting.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await second.cancel('same')).cancelled, true);
  assert.equal((await calls[1]).cancelled, true);
  waiting[0].resolve({ success: true, data: 'mine' });
  assert.equal((await calls[0]).data, 'mine');
  assert.deepEqual(heard, [[0], [1]]);
  port1.close();
  port2.close();
});

test('progress, notifications, questions and changes of what it can do come through', async () => {
  const heard = [];
  const client = await open({
    onElicitation: ({ params }) => params.toUpperCase(),
    onNotification: (event, data) => heard.push([event, data]),
  });
  const onProgress = ({ percentage }) => heard.push(percentage);
  await client.call('steps', {}, { onProgress });
  assert.equal((await client.call('ask', 'name?')).data, 'NAME?');
  app.onNotification({ event: 'e', data: 1 });
  await client.call('echo');
  assert.deepEqual(heard, [50, ['e', 1]]);
});

test('what it says that cannot be sent is told in its console, and costs nothing else', async (t) => {
  const warn = t.mock.method(console, 'warn', () => {});
  const client = await open();
  app.listCapabilities = async () => [{ name: 'new', annotations: { limits: [1n] } }];
  await app.onCapabilitiesChanged({ added: ['new'] });
  assert.match(warn.mock.calls[0].arguments[0], /a message could not be sent/);
  assert.equal((await client.call('echo', 1)).data, 1);
});

test('an agent that leaves stops what runs for it', async () => {
  const client = await open();
  void client.call('hang');
  await client.call('echo');
  client.close();
  while (!app.said.some(([what]) => what === 'cancel')) await new Promise(setImmediate);
});

test('its session ends with that of its last agent, and another one begins anew', async () => {
  const client = await open();
  client.close();
  while (app.said.length < 2) await new Promise(setImmediate);
  assert.deepEqual(app.said.at(-1), ['shutdown']);
  const { port1, port2 } = new MessageChannel();
  const { portTransport } = await import('../../js/transports/port.js');
  exposed.accept(portTransport(port1));
  const next = await connect(port2, { agent: AGENT });
  assert.equal((await next.call('echo', 1)).data, 1);
  assert.equal(app.said.at(-1)[0], 'initialize');
  port1.close();
  port2.close();
});

test('an agent that it refuses hears why', async () => {
  app.refuses = { code: 'PERMISSION_DENIED', message: 'not you', retryable: false };
  await assert.rejects(open(), { code: 'PERMISSION_DENIED', message: 'not you' });
});

test('an agent hears that it describes itself in no JSON, and its session ends', async () => {
  app.listCapabilities = async () => [{ name: 'echo', annotations: { limits: [1n] } }];
  await assert.rejects(open(), {
    code: 'INVALID_PARAMS',
    message: /capabilities\.0\.annotations\.limits\.0 is a bigint/,
  });
  while (app.said.length < 2) await new Promise(setImmediate);
  assert.deepEqual(app.said.at(-1), ['shutdown']);
});
