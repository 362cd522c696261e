// Apps that keep to the protocol in forms of their own, and what an agent of a page waits for. No
// library decides these: one drives the pages.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LIBRARIES, answerIn, drive } from '../support/drive.js';

const library = LIBRARIES.playwright;
const { driven, goto, connect, open, until } = drive(library);

describe('a plain app that tells its agent', () => {
  const WAYS = [
    ['globals'],
    ['legacy'],
    ['notify'],
    ['property'],
    ['registrar'],
    ['globals', 'legacy', 'property'],
  ];
  for (const emit of WAYS) {
    test(`by ${emit.join(' and ')} is heard once`, async () => {
      const heard = [];
      const infos = [];
      const client = await open(
        { kind: 'plain', odd: { emit } },
        {
          onNotification: (event, data) => heard.push([event, data]),
          onElicitation: ({ params }) => params,
        },
      );
      await driven.page.evaluate(() => {
        window.abp.notify('notifications/state/changed', { newValue: 1 });
        window.abp.notify('notifications/state/changed', { newValue: 2 });
      });
      const onProgress = (info) => infos.push(info);
      assert.equal((await client.call('steps', {}, { onProgress })).data, 'done');
      assert.deepEqual(heard, [
        ['notifications/state/changed', { newValue: 1 }],
        ['notifications/state/changed', { newValue: 2 }],
      ]);
      if (emit[0] === 'notify') return;
      assert.equal(infos.length, 1);
      assert.equal(infos[0].percentage, 25);
      assert.equal((await client.call('ask', { q: 1 })).data.data.q, 1);
    });
  }

  test('that its capabilities changed is asked what they are', async () => {
    const changes = [];
    const client = await open(
      { kind: 'plain' },
      { onCapabilitiesChanged: (change) => changes.push(change) },
    );
    await driven.page.evaluate(() => window.abp.notifyChanges({ changed: ['echo'] }));
    await client.call('barrier');
    assert.deepEqual(changes, [{ added: [], removed: [], changed: ['echo'] }]);
    assert.equal((await client.describeCapability('echo')).description, 'Does echo');
  });
});

describe('a plain app whose cancel', () => {
  for (const cancel of ['object', 'alias', 'boolean']) {
    test(`is of another form (${cancel}) is understood`, async () => {
      const client = await open({ kind: 'plain', odd: { cancel } });
      const controller = new AbortController();
      const pending = client.call('hang', {}, { signal: controller.signal });
      await until(() => window.started === 1);
      controller.abort('enough');
      const response = await pending;
      assert.equal(response.cancelled, true);
      assert.equal(response.error.code, 'CANCELLED');
      assert.deepEqual(await driven.page.evaluate(() => window.aborted), ['enough']);
      assert.equal((await client.cancel('nobody')).cancelled, false);
    });
  }

  for (const sample of ['fails', 'throws']) {
    test(`is acknowledged, and whose call then ${sample} as the protocol's sample does: it is cancelled`, async () => {
      const client = await open({ kind: 'plain', odd: { sample } });
      const controller = new AbortController();
      const calls = [
        client.call('hang', {}, { signal: controller.signal }),
        client.call('hang', {}, { callId: 'A' }),
      ];
      await until(() => window.started === 2);
      controller.abort('enough');
      assert.equal((await client.cancel('A', 'this, too')).cancelled, true);
      for (const response of await Promise.all(calls)) {
        assert.equal(response.success, false);
        assert.equal(response.cancelled, true);
        assert.equal(response.error.code, 'CANCELLED');
      }
      assert.equal((await calls[0]).error.message, 'enough');
      const failed = await client.call('throw', { name: 'code' }).catch((error) => error);
      assert.equal(failed.cancelled, undefined);
    });
  }

  const SAYS = {
    false: 'The app gave no reason',
    none: 'The app has no cancel function',
    throws: 'no cancel today',
    silent: 'The app gave no reason',
  };
  for (const [cancel, reason] of Object.entries(SAYS)) {
    test(`stops nothing (${cancel}): the result decides if it comes`, async () => {
      const client = await open({ kind: 'plain', odd: { cancel } });
      const controller = new AbortController();
      const pending = client.call('deaf', {}, { signal: controller.signal, callId: 'A' });
      await until(() => window.started === 1);
      controller.abort('enough');
      const answer = await client.cancel('A');
      assert.equal(answer.cancelled, false);
      assert.equal(answer.callId, 'A');
      assert.equal(answer.reason, reason);
      await driven.page.evaluate(() => window.release('after all'));
      const response = await pending;
      assert.equal(response.success, true);
      assert.equal(response.data, 'after all');
      assert.equal((await client.cancel('A')).reason, 'Operation already completed');
    });

    test(`stops nothing (${cancel}): the call is given up after the grace period`, async () => {
      const client = await open({ kind: 'plain', odd: { cancel } }, { limits: { grace: 50 } });
      const controller = new AbortController();
      const pending = client.call('hang', {}, { signal: controller.signal });
      await until(() => window.started === 1);
      controller.abort('enough');
      const response = await pending;
      assert.equal(response.success, false);
      assert.equal(response.cancelled, true);
      assert.equal(response.error.message, 'enough');
      const late = await client.call('hang', {}, { timeout: 50 });
      assert.equal(late.error.code, 'TIMEOUT');
      assert.equal(late.cancelled, true);
      assert.equal((await client.call('echo', 1)).data, 1);
    });
  }

  test('knows no callId answers false, and its call is given up after the grace period', async () => {
    const client = await open(
      { kind: 'plain', odd: { noCallId: true } },
      { limits: { grace: 50 } },
    );
    const response = await client.call('hang', {}, { timeout: 50 });
    assert.equal(response.error.code, 'TIMEOUT');
    // The page has the grace period for its answer to `cancel`, too.
    const patient = await connect({ limits: { grace: 600_000 } });
    const again = await patient.cancel('whatever');
    assert.equal(again.reason, 'Operation not found');
  });
});

describe('a plain app whose call', () => {
  /** Wraps the app's own call in one that settles in no way that the protocol knows. */
  const odd = async (how) => {
    const client = await open({ kind: 'plain' });
    await driven.page.evaluate((way) => {
      const error = Object.assign(new Error('slow down'), {
        code: 'RATE_LIMITED',
        retryable: true,
        retryAfter: 50,
      });
      const circular = { name: 'Error', message: 'goes round' };
      circular.circular = circular;
      window.abp.call = {
        rejects: () => Promise.reject(new Error('broken')),
        throws: () => {
          throw error;
        },
        text: () => Promise.reject('bare words'),
        nothing: () => Promise.reject(),
        aborts: () => Promise.reject(new DOMException('stopped', 'AbortError')),
        circular: () => Promise.reject(circular),
        raw: async () => ({ pdf: 'aGk=' }),
        undefined: async () => {},
        bare: async () => ({ success: false, cancelled: true }),
      }[way];
    }, how);
    return client.call('echo');
  };
  const ENDS = {
    rejects: { code: 'OPERATION_FAILED', message: 'broken', retryable: false },
    throws: { code: 'RATE_LIMITED', message: 'slow down', retryable: true, retryAfter: 50 },
    text: { code: 'OPERATION_FAILED', message: 'bare words', retryable: false },
    nothing: { code: 'OPERATION_FAILED', message: 'undefined', retryable: false },
    circular: { code: 'OPERATION_FAILED', message: 'goes round', retryable: false },
  };
  for (const [how, error] of Object.entries(ENDS)) {
    test(`rejects or throws (${how}) has failed`, async () => {
      const response = await odd(how);
      assert.deepEqual([response.success, response.error], [false, error]);
    });
  }
  test('rejects with an AbortError is cancelled, and so is one that says no more', async () => {
    for (const how of ['aborts', 'bare']) {
      const response = await odd(how);
      assert.equal(response.success, false);
      assert.equal(response.cancelled, true);
      assert.equal(response.error.code, 'CANCELLED');
    }
  });
  test('answers with no response has failed, and what it said is kept', async () => {
    const raw = await odd('raw');
    assert.equal(raw.success, false);
    assert.equal(raw.error.code, 'OPERATION_FAILED');
    assert.deepEqual(raw.error.details, { pdf: 'aGk=' });
    assert.equal((await odd('undefined')).error.code, 'OPERATION_FAILED');
  });
});

describe('a plain app whose listCapabilities', () => {
  for (const list of ['sync', 'envelope']) {
    test(`is of another form (${list}) is understood`, async () => {
      const client = await open({ kind: 'plain', odd: { list, capabilities: 'none' } });
      assert.equal((await client.describeCapability('echo')).description, 'Does echo');
    });
  }
  for (const list of ['empty', 'throws', 'none', 'hangs']) {
    test(`says nothing (${list}): what initialize said stands`, async () => {
      const client = await open({ kind: 'plain', odd: { list } });
      assert.deepEqual(await client.describeCapability('echo'), {
        name: 'echo',
        available: true,
      });
    });
  }
});

describe('waiting for window.abp', () => {
  test('it may come late', async () => {
    const client = await open({ later: 300 });
    assert.equal((await client.call('echo', 7)).data, 7);
  });

  test('it may never come, and another library may have its name', async () => {
    await library.goto(driven.page, 'about:blank');
    await assert.rejects(connect({ timeout: 100 }), { code: 'TIMEOUT', retryable: true });
    await goto({ taken: true });
    // A busy machine may not have looked within the first of them.
    let error;
    for (let timeout = 100; !error || error.code === 'TIMEOUT'; timeout *= 2) {
      error = await connect({ timeout }).then(assert.fail, (reason) => reason);
    }
    assert.equal(error.code, 'NOT_SUPPORTED');
  });

  test('a signal gives it up', async () => {
    await library.goto(driven.page, 'about:blank');
    const controller = new AbortController();
    const connecting = connect({ signal: controller.signal });
    controller.abort(new Error('never mind'));
    await assert.rejects(connecting, { message: 'never mind' });
  });

  test('what stands in for it until the app has loaded passes the handlers on', async () => {
    await goto({ kind: 'none' });
    await driven.page.evaluate(() => {
      // The protocol's own stub: it queues what is asked before the app is there.
      let resolve;
      const loaded = new Promise((done) => (resolve = done));
      const late =
        (name) =>
        async (...args) => (await loaded, window.abp[name](...args));
      window.abp = Object.fromEntries(
        ['initialize', 'shutdown', 'call', 'listCapabilities'].map((name) => [name, late(name)]),
      );
      window.__abpReadyResolve = resolve;
    });
    const connecting = connect();
    await until(() => '__abp_notification' in window);
    await driven.page.evaluate(async () => {
      const { expose } = await import('/parts/main/index.js');
      expose(
        {
          app: { id: 'late.app', name: 'Late', version: '1' },
          capabilities: { echo: (params) => params },
        },
        { origins: [location.origin] },
      );
    });
    const client = await connecting;
    assert.equal(client.app.id, 'late.app');
    assert.equal((await client.call('echo', 8)).data, 8);
  });

  test('an app that refuses is heard, and one that says nothing of a session', async () => {
    await goto({ kind: 'plain' });
    await driven.page.evaluate(() => {
      window.abp.initialize = async () => {
        throw Object.assign(new Error('not you'), {
          code: 'PERMISSION_DENIED',
          retryable: true,
        });
      };
    });
    await assert.rejects(connect(), { code: 'PERMISSION_DENIED', message: 'not you' });
    await driven.page.evaluate(() => {
      window.abp.initialize = async () => ({ protocolVersion: '0.1' });
    });
    await assert.rejects(connect(), { code: 'SESSION_INVALID' });
  });
});

describe('two clients of one page', () => {
  test('where the app has one session, the second waits for it to end, and the first is untouched', async () => {
    const heard = [];
    const first = await open(
      { kind: 'plain', odd: { strict: true } },
      { onNotification: (event) => heard.push(event), onElicitation: () => 'the first' },
    );
    const pending = first.call('deaf');
    await until(() => window.started === 1);
    await assert.rejects(connect({ timeout: 300 }), { code: 'TIMEOUT' });
    await driven.page.evaluate(() => {
      window.abp.notify('for the first');
      window.release('mine');
    });
    assert.equal((await pending).data, 'mine');
    assert.deepEqual(heard, ['for the first']);
    await driven.page.evaluate(() => {
      const { initialize } = window.abp;
      window.abp.initialize = (params) =>
        initialize(params).catch((error) => {
          window.refused = error.code;
          throw error;
        });
    });
    const waiting = connect({ onElicitation: () => 'the second' });
    await until(() => window.refused === 'ALREADY_INITIALIZED');
    assert.equal(answerIn(await first.call('ask', {})), 'the first');
    first.close();
    assert.equal((await (await waiting).call('echo', 10)).data, 10);
  });

  for (const kind of ['ours', 'plain']) {
    test(`where the app takes both, each gets its own answers, and hears what is for all (${kind})`, async () => {
      const heard = [[], []];
      const options = (i) => ({ onNotification: (event) => heard[i].push(event) });
      const first = await open({ kind }, options(0));
      const second = await connect(options(1));
      const pending = first.call('deaf');
      await until(() => window.started === 1);
      assert.equal((await second.call('echo', 'second')).data, 'second');
      await driven.page.evaluate(() => {
        window.abp.notify('for all');
        window.release('first');
      });
      assert.equal((await pending).data, 'first');
      await second.call('barrier');
      assert.deepEqual(heard, [['for all'], ['for all']]);
    });
  }
});

test('a slow app is initialized once, however often it is asked', async () => {
  await goto({ kind: 'plain' });
  await driven.page.evaluate(() => {
    const { initialize } = window.abp;
    window.initialized = 0;
    window.abp.initialize = async (params) => {
      window.initialized++;
      await new Promise((resolve) => setTimeout(resolve, 1000));
      return initialize(params);
    };
  });
  const client = await connect();
  assert.equal((await client.call('echo', 1)).data, 1);
  assert.equal(await driven.page.evaluate(() => window.initialized), 1);
});

test('reconnect waits until the app has shut down', async () => {
  const client = await open({ kind: 'plain' });
  await driven.page.evaluate(() => {
    const { shutdown, initialize } = window.abp;
    window.order = [];
    window.abp.shutdown = async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      window.order.push('shutdown');
      return shutdown();
    };
    window.abp.initialize = (params) => {
      window.order.push('initialize');
      return initialize(params);
    };
  });
  await client.reconnect();
  assert.deepEqual(await driven.page.evaluate(() => window.order), ['shutdown', 'initialize']);
  assert.equal((await client.call('echo', 1)).data, 1);
});

test('capabilities that change are told once, with what they are', async () => {
  const changes = [];
  const events = [];
  const client = await open(
    {},
    {
      onCapabilitiesChanged: (change) => changes.push(change),
      onNotification: (event) => events.push(event),
    },
  );
  await driven.page.evaluate(() => {
    window.exposed.set('fresh', { handler: () => 1, description: 'new here' });
    window.exposed.notify('notifications/state/changed', { field: 'x' });
  });
  await client.call('barrier');
  assert.deepEqual(changes, [{ added: ['fresh'], removed: [], changed: [] }]);
  assert.equal((await client.describeCapability('fresh')).description, 'new here');
  assert.deepEqual(events.sort(), [
    'notifications/capabilities/list_changed',
    'notifications/state/changed',
  ]);
});
