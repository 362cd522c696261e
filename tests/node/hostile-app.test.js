// An app that speaks raw messages and means no good, against our agent over a MessagePort. Each
// attack is followed by an honest call, which must notice nothing.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { AbpError, connect } from '../../parts/main/index.js';
import { Raw } from '../support/raw.js';

let channel, raw;

beforeEach(() => (channel = new MessageChannel()));

afterEach(() => {
  channel.port1.close();
  channel.port2.close();
});

describe('an app that means no good', () => {
  const RESULT = {
    sessionId: 's',
    protocolVersion: '0.1',
    app: { id: 'a', name: 'A', version: '1' },
    capabilities: [{ name: 'echo' }, { name: 7 }, null, 'x', { name: '__proto__' }],
    features: { progress: true, notifications: true, elicitation: true },
  };
  let client;
  async function open(options = {}) {
    raw = new Raw(channel.port2);
    const connecting = connect(channel.port1, {
      agent: { name: 'a', version: '1' },
      onElicitation: ({ params }) => params,
      ...options,
    });
    const { id, type } = await raw.next();
    assert.equal(type, 'initialize');
    raw.send('initialize-result', id, options.result ?? RESULT);
    client = await connecting;
  }
  async function calls(n) {
    const pending = Array.from({ length: n }, () => client.call('echo', 'x'));
    const ids = [];
    for (let i = 0; i < n; i++) ids.push((await raw.next()).id);
    return [pending, ids];
  }

  test('its list of capabilities is read as data', async () => {
    await open();
    const names = (await client.listCapabilities()).map(({ name }) => name);
    assert.deepEqual(names, ['echo', '__proto__']);
    assert.equal((await client.supports('constructor')).supported, false);
  });

  test('results for guessed ids settle nothing, and each call settles once, by the first', async () => {
    await open();
    const [[first, second], [id1, id2]] = await calls(2);
    for (let i = 0; i < 1000; i++)
      raw.send('capabilities/call-result', `${i}`, { success: true, data: 'forged' });
    for (let i = 0; i < 1000; i++)
      raw.send('capabilities/call-result', i, { success: true, data: 'forged' });
    raw.send('capabilities/call-result', id1, { success: true, data: 1 });
    raw.send('capabilities/call-result', id1, { success: true, data: 2 });
    raw.send('capabilities/call-result', id2, { success: true, data: 3 });
    assert.deepEqual([(await first).data, (await second).data], [1, 3]);
    assert.equal(client.counters.stray, 2000);
    assert.equal(client.counters.late, 1);
  });

  test('ids cannot be described from one another’s', async () => {
    await open();
    const [, ids] = await calls(1);
    assert.match(ids[0], /^[0-9a-f]{20}-1\.\d+$/);
  });

  test('its cancel-result does not settle the call, nor its call-result the cancel', async () => {
    await open();
    const [[pending], [id]] = await calls(1);
    const cancelling = client.cancel(id, 'why');
    const cancel = await raw.next();
    assert.deepEqual([cancel.type, cancel.payload.callId], ['capabilities/cancel', id]);
    assert.notEqual(cancel.id, id);
    raw.send('capabilities/cancel-result', id, { cancelled: true });
    raw.send('capabilities/call-result', cancel.id, { success: true });
    raw.send('capabilities/cancel-result', cancel.id, {
      callId: '',
      cancelled: false,
      reason: 'no',
    });
    assert.deepEqual(await cancelling, { callId: id, cancelled: false, reason: 'no' });
    raw.send('capabilities/call-result', id, { success: true, data: 'still' });
    assert.equal((await pending).data, 'still');
  });

  test('an app that answers no cancel: the call settles as cancelled after the grace period', async () => {
    await open({ limits: { grace: 30 } });
    const controller = new AbortController();
    const pending = client.call('echo', {}, { signal: controller.signal });
    const { id } = await raw.next();
    controller.abort('enough');
    const { success, cancelled, error } = await pending;
    assert.deepEqual(
      [success, cancelled, error.code, error.message],
      [false, true, 'CANCELLED', 'enough'],
    );
    raw.send('capabilities/call-result', id, { success: true, data: 'late' });
    const answer = await client.cancel('x');
    assert.deepEqual([answer.cancelled, answer.error.code], [false, 'TIMEOUT']);
    while (!client.counters.late) await new Promise(setImmediate);
  });

  test('a result that comes in spite of the cancel is delivered as it is', async () => {
    await open();
    const controller = new AbortController();
    const pending = client.call('echo', {}, { signal: controller.signal });
    const { id } = await raw.next();
    controller.abort();
    raw.send('capabilities/call-result', id, { success: true, data: 'done' });
    assert.deepEqual(await pending, { success: true, data: 'done' });
  });

  describe('a result that comes after the app has accepted the cancel settles as cancelled:', () => {
    const error = { code: 'OPERATION_FAILED', message: 'fetch failed', retryable: true };
    const RESULTS = {
      'a success': { success: true, data: 'done' },
      'a failure': { success: false, error },
    };
    for (const [what, payload] of Object.entries(RESULTS)) {
      const accept = ({ id }, cancelled = true) =>
        raw.send('capabilities/cancel-result', id, { callId: '', cancelled });
      const metadata = { outcome: payload.success ? 'finished' : 'failed' };
      const settled = (message, code = 'CANCELLED') => ({
        success: false,
        error: { code, message, retryable: false },
        cancelled: true,
        metadata,
      });

      test(`${what}, with the signal's own reason`, async () => {
        await open();
        for (const [reason, expected] of [
          ['enough', settled('enough')],
          [new DOMException('too slow', 'TimeoutError'), settled('too slow', 'TIMEOUT')],
        ]) {
          const controller = new AbortController();
          const pending = client.call('echo', {}, { signal: controller.signal });
          const { id } = await raw.next();
          controller.abort(reason);
          accept(await raw.next());
          raw.send('capabilities/call-result', id, payload);
          assert.deepEqual(await pending, expected);
        }
      });

      test(`${what}, with the app's words if no signal fired`, async () => {
        await open();
        const [[pending], [id]] = await calls(1);
        const cancelling = client.cancel(id);
        accept(await raw.next());
        assert.equal((await cancelling).cancelled, true);
        raw.send('capabilities/call-result', id, payload);
        const { message } = payload.error ?? { message: 'The operation was cancelled' };
        assert.deepEqual(await pending, settled(message));
      });

      test(`${what}, unless the cancel was refused`, async () => {
        await open();
        const controller = new AbortController();
        const pending = client.call('echo', {}, { signal: controller.signal });
        const { id } = await raw.next();
        controller.abort();
        accept(await raw.next(), false);
        raw.send('capabilities/call-result', id, payload);
        const expected = payload.success ? payload : { ...payload, metadata };
        assert.deepEqual(await pending, expected);
      });
    }
  });

  test('both shapes of a cancelled response are one to the caller', async () => {
    await open();
    for (const payload of [
      { success: false, cancelled: true },
      { success: false, error: { code: 'CANCELLED', message: 'm', retryable: false } },
    ]) {
      const [[pending], [id]] = await calls(1);
      raw.send('capabilities/call-result', id, payload);
      const { success, cancelled, error } = await pending;
      assert.deepEqual([success, cancelled, error.code], [false, true, 'CANCELLED']);
    }
  });

  test('what is no response fails its call, and what was said is kept', async () => {
    await open();
    const shapes = [undefined, null, 1, 'x', {}, [], { success: 'yes' }, { error: 'x' }];
    const list = Object.assign([], { success: true });
    for (const shape of [...shapes, list]) {
      const [[pending], [id]] = await calls(1);
      raw.send('capabilities/call-result', id, shape);
      const { success, error } = await pending;
      assert.deepEqual([success, error.code], [false, 'OPERATION_FAILED']);
      assert.deepEqual(error.details, shape);
    }
  });

  test('a response that failed has an error with a code, words and retryable, whatever it came with', async () => {
    await open();
    const failed = { code: 'OPERATION_FAILED', retryable: false };
    for (const [error, expected] of [
      ['boom', { ...failed, message: 'boom' }],
      [undefined, { ...failed, message: 'The operation failed, and no reason was given' }],
      [
        { code: 7, message: { toString: 1 } },
        { ...failed, message: 'The operation failed, and no reason was given' },
      ],
      [
        { code: 'OWN', details: 1 },
        { code: 'OWN', message: 'OWN', retryable: false, details: 1 },
      ],
    ]) {
      const [[pending], [id]] = await calls(1);
      raw.send('capabilities/call-result', id, { success: false, error });
      const metadata = { outcome: 'failed' };
      assert.deepEqual(await pending, { success: false, error: expected, metadata });
    }
  });

  test('a code that is the name of what every object inherits is a code like any other', async () => {
    await open();
    for (const code of ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty']) {
      const [[pending], [id]] = await calls(1);
      const invoked = client.invoke('echo').catch((error) => error);
      const { id: other } = await raw.next();
      for (const to of [id, other])
        raw.send('capabilities/call-result', to, { success: false, error: { code } });
      assert.deepEqual(await pending, {
        success: false,
        error: { code, message: code, retryable: false },
        metadata: { outcome: 'failed' },
      });
      const error = await invoked;
      assert.ok(error instanceof AbpError);
      assert.deepEqual([error.code, error.message, error.retryable], [code, code, false]);
    }
  });

  describe('says something that cannot be calculated with or read as text', () => {
    const odd = { valueOf: 1, toString: 1 };
    const ODD = {
      'a BigInt': 5n,
      'a BigInt of many digits': 1n << 100_000n,
      'a BigInt that is an object': Object(5n),
      'an object that is no number and no text': odd,
      'a list': [1],
      'no finite number': NaN,
    };
    for (const [what, value] of Object.entries(ODD)) {
      test(`${what}, in progress: the rest of it is reported`, async () => {
        await open();
        const heard = [];
        client.onProgress = (info) => heard.push(info);
        raw.send('progress', undefined, { operationId: 'o', progress: 1, total: value });
        raw.send('progress', undefined, {
          operationId: 'o',
          progress: value,
          total: 4,
          stage: 's',
        });
        raw.send('progress', undefined, { operationId: 'o', percentage: value, status: value });
        raw.send('progress', undefined, [value]);
        const [[pending], [id]] = await calls(1);
        raw.send('capabilities/call-result', id, { success: true });
        await pending;
        assert.deepEqual(heard, [
          { operationId: 'o', progress: 1 },
          { operationId: 'o', progress: 0, total: 4, percentage: 0, stage: 's' },
          { operationId: 'o', progress: 0 },
          { progress: 0 },
        ]);
      });

      test(`${what}, as the words of an answer to a cancel: it is settled`, async () => {
        await open();
        const settled = client.cancel('x');
        const { id } = await raw.next();
        const payload = {
          callId: 'x',
          cancelled: false,
          code: 'OWN',
          message: value,
          reason: value,
        };
        raw.send('capabilities/cancel-result', id, payload);
        const { cancelled, reason, error } = await settled;
        assert.deepEqual([cancelled, reason], [false, undefined]);
        assert.deepEqual(error, { code: 'OWN', message: 'OWN', retryable: false });
      });
    }
  });

  describe('says a list of 2^32 - 1 places, which takes minutes to walk', () => {
    const endless = () => Object.assign([], { length: 2 ** 32 - 1 });

    test('that have changed: only the first are looked at', async () => {
      await open();
      const changes = new Promise((resolve) => (client.onCapabilitiesChanged = resolve));
      const data = { added: endless(), removed: endless(), changed: endless() };
      data.added[0] = 'new';
      const event = 'notifications/capabilities/list_changed';
      raw.send('notification', undefined, { event, data: { ...data, capabilities: endless() } });
      assert.deepEqual(await changes, { added: ['new'], removed: [], changed: [] });
    });

    test('of what a capability requires: supports is answered', async () => {
      await open();
      const capabilities = [{ name: 'new', requirements: endless() }];
      const event = 'notifications/capabilities/list_changed';
      const heard = new Promise((resolve) => (client.onNotification = resolve));
      raw.send('notification', undefined, { event, data: { added: ['new'], capabilities } });
      await heard;
      assert.equal((await client.supports('new')).available, true);
    });
  });

  test('that adds capabilities without end is known for some of them only', async () => {
    await open();
    const event = 'notifications/capabilities/list_changed';
    let heard;
    for (let i = 0; i < 10; i++) {
      heard = new Promise((resolve) => (client.onNotification = resolve));
      const added = Array.from({ length: 1000 }, (_, j) => `c${i}.${j}`);
      raw.send('notification', undefined, { event, data: { added: [...added, 'x'.repeat(1e6)] } });
      await heard;
    }
    const names = (await client.listCapabilities()).map(({ name }) => name);
    assert.equal(names.length, 4096);
    assert.ok(names.every((name) => name.length < 10));
  });

  test('short type names are taken only for what is pending', async () => {
    await open();
    const [[pending], [id]] = await calls(1);
    raw.send('call-result', 'other', { success: true, data: 'forged' });
    raw.send('call-result', id, { success: true, data: 'short' });
    assert.equal((await pending).data, 'short');
  });

  test('questions of every shape are answered, and only allowed ones are put to the user', async () => {
    await open({ allowedRequests: ['elicitation/input'] });
    const answer = async (payload, id = 'q') =>
      (await raw.ask('elicitation/request', id, payload)).payload;
    assert.deepEqual(await answer({ method: 'elicitation/input', params: 5 }), {
      success: true,
      data: 5,
    });
    assert.equal((await answer({ method: 'sampling/create' })).error.code, 'NOT_SUPPORTED');
    assert.equal((await answer({ method: 7 })).error.code, 'INVALID_PARAMS');
    assert.equal((await answer({}, 'x'.repeat(10_000))).error.code, 'INVALID_PARAMS');
  });

  test('one that sends back whatever it gets is no app', async () => {
    let sent = 0;
    channel.port2.onmessage = ({ data }) => {
      sent++;
      channel.port2.postMessage(data);
    };
    const agent = { name: 'a', version: '1' };
    await assert.rejects(connect(channel.port1, { agent, timeout: 200 }), { code: 'TIMEOUT' });
    assert.ok(sent > 1 && sent < 10, `${sent} messages: no loop`);
  });

  test('it cannot call the agent', async () => {
    await open();
    raw.send('capabilities/call', 'x', { capability: 'echo' });
    raw.send('capabilities/cancel', 'x', { callId: 'x' });
    raw.send('shutdown');
    const [[pending], [id]] = await calls(1);
    raw.send('capabilities/call-result', id, { success: true, data: 1 });
    assert.equal((await pending).data, 1);
    assert.equal(client.counters.unknownType, 3);
  });

  test('a refused handshake rejects with the app’s error', async () => {
    const error = { code: 'PERMISSION_DENIED', message: 'not you', retryable: false };
    await assert.rejects(open({ result: { success: false, error } }), (thrown) => {
      assert.ok(thrown instanceof AbpError);
      assert.deepEqual([thrown.code, thrown.message], ['PERMISSION_DENIED', 'not you']);
      return true;
    });
  });

  test('a refusal that cannot be read rejects the handshake, too', async () => {
    const error = { code: { toString: 1 }, message: { toString: null } };
    await assert.rejects(open({ result: { success: false, error } }), { name: 'AbpError' });
  });

  test('requirements of any shape are read as data', async () => {
    const capabilities = [5, 'x', [null], [{ met: false, description: 'd' }]].map(
      (requirements, i) => ({ name: `${i}`, requirements }),
    );
    await open({ result: { ...RESULT, capabilities } });
    const available = await Promise.all(
      capabilities.map(async ({ name }) => (await client.supports(name)).available),
    );
    assert.deepEqual(available, [true, true, true, false]);
  });

  test('a port that closes settles what is pending', async () => {
    await open();
    const [[pending]] = await calls(1);
    channel.port2.close();
    assert.equal((await pending).error.code, 'DISCONNECTED');
  });
});
