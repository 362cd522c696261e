// Push notifications: an agent tells an address of the client's each state of a task.
import assert from 'node:assert/strict';
import dns from 'node:dns/promises';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { test as nodeTest } from 'node:test';
import { memoryBackend, pushNotifications, taskStore } from '../src/index.js';
import { VERSIONS, ask, deferred, plainState, serve } from '../../a2a/tests/support/a2a.js';

const test = (name, run) => nodeTest(name, { timeout: 60_000 }, run);
const V1 = VERSIONS['1.0'];

/**
 * Takes notifications; `answers` are the statuses of the first ones, and `held` is awaited before
 * all.
 */
async function receiver(t, answers = [], held = undefined) {
  const got = [];
  let wake = () => {};
  const http = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    got.push({ headers: request.headers, body: JSON.parse(text) });
    await held;
    response.writeHead(answers.shift() ?? 200).end();
    wake();
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  return {
    url: `http://127.0.0.1:${http.address().port}/hook`,
    got,
    async until(count) {
      while (got.length < count) await new Promise((resolve) => (wake = resolve));
      return got;
    },
  };
}
const states = (got) => got.map(({ body }) => plainState((body.statusUpdate ?? body).status.state));

/**
 * @param {object} [options] of pushNotifications
 * @param {object} [more] of the agent
 */
async function start(t, execute, options, more) {
  const push = pushNotifications({ allowPrivate: true, retry: 1, ...options });
  const served = await serve(execute, { push, ...more });
  t.after(served.close);
  return served;
}

for (const [name, V] of Object.entries(VERSIONS)) {
  for (const stored of [false, true])
    test(`${name}${stored ? ', in a store' : ''}: set, get, list and delete, and each state is sent`, async (t) => {
      const hook = await receiver(t);
      const go = deferred();
      const store = stored && taskStore({ backend: memoryBackend() });
      const { url } = await start(
        t,
        (context) => go.promise.then(() => void context.emitStatus('working', 'soon')),
        { secret: 'x' },
        stored ? { store } : {},
      );
      const stream = await ask(
        url,
        V1.send,
        {
          message: V1.message('go'),
          configuration: { returnImmediately: true },
        },
        V1.headers,
      );
      const { id: taskId } = stream.result.task;
      const methods =
        name === '1.0'
          ? [
              'CreateTaskPushNotificationConfig',
              'GetTaskPushNotificationConfig',
              'ListTaskPushNotificationConfigs',
              'DeleteTaskPushNotificationConfig',
            ]
          : ['set', 'get', 'list', 'delete'].map(
              (verb) => `tasks/pushNotification${name === '0.3' ? 'Config' : ''}/${verb}`,
            );
      const [set, get, list, remove] = methods;
      const flat = name === '1.0';
      const config = { id: 'c', url: hook.url, token: 'token' };
      const authentication = flat
        ? { scheme: 'Basic', credentials: 'secret' }
        : { schemes: ['Basic'], credentials: 'secret' };
      const call = async (method, params) => (await ask(url, method, params, V.headers)).result;
      const made = await call(
        set,
        flat
          ? { taskId, ...config, authentication }
          : { taskId, pushNotificationConfig: { ...config, authentication } },
      );
      const inner = (one) => (flat ? one : one.pushNotificationConfig);
      assert.equal(inner(made).url, hook.url);
      assert.equal(JSON.stringify(made).includes('secret'), false);
      const other = flat
        ? { taskId, ...config, id: 'd' }
        : { taskId, pushNotificationConfig: { ...config, id: 'd' } };
      await call(set, other);
      const of = (id) => (flat ? { taskId, id } : { id: taskId, pushNotificationConfigId: id });
      assert.deepEqual(await call(get, of('c')), made);
      const listed = await call(list, flat ? { taskId } : { id: taskId });
      assert.deepEqual(
        (flat ? listed.configs : listed).map((one) => inner(one).id),
        ['c', 'd'],
      );
      assert.deepEqual(await call(remove, of('d')), flat ? {} : null);
      assert.equal((await ask(url, get, of('d'), V.headers)).error.code, -32001);
      go.resolve();
      const got = await hook.until(2);
      assert.deepEqual(states(got), ['working', 'completed']);
      const [{ headers }] = got;
      assert.equal(headers['x-a2a-notification-token'], 'token');
      assert.equal(headers.authorization, 'Basic secret');
      assert.notEqual(headers['x-a2a-notification-id'], got[1].headers['x-a2a-notification-id']);
    });
}

test('a message says itself where to send the states of its task', async (t) => {
  const hook = await receiver(t);
  const { url } = await start(t, () => {});
  const configuration = { taskPushNotificationConfig: { url: hook.url } };
  await ask(url, V1.send, { message: V1.message('go'), configuration }, V1.headers);
  assert.deepEqual(states(await hook.until(2)), ['working', 'completed']);
});

test('what fails is sent again, in order, and what is refused is not', async (t) => {
  const hook = await receiver(t, [500, 503, 400, 429]);
  const { url } = await start(t, (context) => void context.emitStatus('working', 'still'));
  const configuration = { taskPushNotificationConfig: { url: hook.url } };
  await ask(url, V1.send, { message: V1.message('go'), configuration }, V1.headers);
  const got = await hook.until(6);
  assert.deepEqual(states(got), [
    'working',
    'working',
    'working',
    'working',
    'working',
    'completed',
  ]);
  const ids = got.map(({ headers }) => headers['x-a2a-notification-id']);
  assert.equal(new Set(ids).size, 3);
});

test('attempts have an end', async (t) => {
  const hook = await receiver(t, [500, 500, 500]);
  const { url } = await start(t, () => {}, { attempts: 3 });
  const configuration = { taskPushNotificationConfig: { url: hook.url } };
  await ask(url, V1.send, { message: V1.message('go'), configuration }, V1.headers);
  assert.deepEqual(states(await hook.until(4)), ['working', 'working', 'working', 'completed']);
});

test('what waits for a receiver is bounded', async (t) => {
  const held = deferred();
  const hook = await receiver(t, [], held.promise);
  const seen = deferred();
  const { url } = await start(t, async (context) => {
    let emitted = 0;
    const emit = () => context.emitStatus('working', `${++emitted}`);
    assert.throws(
      () => {
        for (;;) emit();
      },
      { code: 'RATE_LIMITED', retryable: true },
    );
    seen.resolve(emitted);
    await context.flushed();
    emit();
  });
  const configuration = { taskPushNotificationConfig: { url: hook.url } };
  const sent = ask(url, V1.send, { message: V1.message('go'), configuration }, V1.headers);
  // The first one is on its way, and the last one was refused.
  assert.equal(await seen.promise, 101);
  held.resolve();
  assert.equal(plainState((await sent).result.task.status.state), 'completed');
  assert.equal((await hook.until(103)).length, 103);
});

test('a notification is signed as the agent likes', async (t) => {
  const hook = await receiver(t);
  const sign = (body, { taskId }) => ({ 'x-signature': `${body.length} ${taskId}` });
  const { url } = await start(t, () => {}, { sign });
  const configuration = { taskPushNotificationConfig: { url: hook.url } };
  const params = { message: V1.message('go'), configuration };
  const { id } = (await ask(url, V1.send, params, V1.headers)).result.task;
  const [{ headers, body }] = await hook.until(1);
  assert.equal(headers['x-signature'], `${JSON.stringify(body).length} ${id}`);
});

test('private addresses, and what is no address, are refused', async (t) => {
  const { url } = await start(t, () => new Promise(() => {}), { allowPrivate: false });
  const set = async (to) => {
    const configuration = { taskPushNotificationConfig: { url: to } };
    const answer = await ask(
      url,
      V1.send,
      { message: V1.message('go'), configuration },
      V1.headers,
    );
    return answer.error?.code;
  };
  for (const to of [
    'http://127.0.0.1/',
    'http://[::1]/',
    'http://10.0.0.1/',
    'http://localhost/',
    'http://2130706433/',
    'file:///etc/passwd',
    'nothing',
    'http://user:x@example.com/',
    '',
  ])
    assert.equal(await set(to), -32602, to);
});

test('a name that leads to a private address is refused when it is asked', async (t) => {
  const hook = await receiver(t);
  const looked = [];
  t.mock.method(dns, 'lookup', async (name) => {
    looked.push(name);
    return [{ address: '127.0.0.1', family: 4 }];
  });
  syncBuiltinESMExports();
  t.after(syncBuiltinESMExports);
  const url = hook.url.replace('127.0.0.1', 'hook.example');
  for (const allowPrivate of [false, true]) {
    const failed = new Promise((resolve) =>
      t.mock.method(console, 'error', (...words) => resolve(words.join(' '))),
    );
    const served = await start(t, () => {}, { allowPrivate, attempts: 1 });
    const configuration = { taskPushNotificationConfig: { url } };
    const params = { message: V1.message('go'), configuration };
    const { result } = await ask(served.url, V1.send, params, V1.headers);
    assert.equal(plainState(result.task.status.state), 'completed');
    if (allowPrivate) await hook.until(1);
    else assert.match(await failed, /hook\.example is 127\.0\.0\.1, which is not a public address/);
    assert.equal(hook.got.length > 0, allowPrivate);
  }
  assert.equal(looked[0], 'hook.example');
});

for (const stored of [false, true])
  test(`of a task that has ended an address is kept and nothing is sent${stored ? ', in a store' : ''}`, async (t) => {
    const hook = await receiver(t);
    const options = stored ? { store: taskStore({ backend: memoryBackend() }) } : {};
    const { url } = await start(t, () => {}, {}, options);
    const call = async (method, params) =>
      (await ask(url, `${method}TaskPushNotificationConfig`, params, V1.headers)).result;
    const { result } = await ask(url, V1.send, { message: V1.message('go') }, V1.headers);
    const { id: taskId } = result.task;
    const made = await call('Create', { taskId, id: 'c', url: hook.url });
    assert.equal(made.url, hook.url);
    assert.deepEqual(await call('Get', { taskId, id: 'c' }), made);
    assert.deepEqual(await call('Delete', { taskId, id: 'c' }), {});
    assert.equal(await call('Get', { taskId, id: 'c' }), undefined);
    assert.deepEqual(hook.got, []);
  });

test('in a store, secrets are encrypted or refused', async (t) => {
  const backend = memoryBackend();
  t.after(() => backend.close());
  const agents = [];
  for (const options of [{}, { secret: 'key' }])
    agents.push(
      await start(t, () => new Promise(() => {}), options, { store: taskStore({ backend }) }),
    );
  const configuration = {
    returnImmediately: true,
    taskPushNotificationConfig: { url: 'http://127.0.0.1:1/', token: 'hidden-token' },
  };
  const params = { message: V1.message('go'), configuration };
  const [refused, taken] = await Promise.all(
    agents.map(({ url }) => ask(url, V1.send, params, V1.headers)),
  );
  assert.equal(refused.error.code, -32602);
  const { id } = taken.result.task;
  const list = ['ListTaskPushNotificationConfigs', { taskId: id }, V1.headers];
  const { result } = await ask(agents[1].url, ...list);
  assert.equal(result.configs[0].token, 'hidden-token');
  const log = JSON.stringify(await backend.read(id, 0));
  assert.ok(log.includes('"k\\":\\"push'));
  assert.equal(log.includes('hidden-token'), false);
});

test('in a store, the process that takes a task tells its end', async (t) => {
  const hook = await receiver(t);
  const backend = memoryBackend();
  t.after(() => backend.close());
  const agents = [];
  for (let i = 0; i < 2; i++)
    agents.push(
      await start(
        t,
        () => new Promise(() => {}),
        {},
        { store: taskStore({ backend, term: 10_000 }) },
      ),
    );
  const message = V1.message('go');
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: hook.url } };
  await ask(agents[0].url, V1.send, { message, configuration }, V1.headers);
  await hook.until(1);
  await agents[0].agent.drain({ ms: 0 });
  assert.deepEqual(states(await hook.until(2)), ['working', 'failed']);
});

test('without the option they are refused, and the card says so', async (t) => {
  const { url, close } = await serve(() => {});
  t.after(close);
  const configuration = { taskPushNotificationConfig: { url: 'https://example.com/' } };
  const answer = await ask(url, V1.send, { message: V1.message('go'), configuration }, V1.headers);
  assert.equal(answer.error.code, -32003);
  const { url: other } = await start(t, () => {});
  const cards = await Promise.all(
    [url, other].map(async (at) => (await fetch(`${at}.well-known/agent-card.json`)).json()),
  );
  assert.deepEqual(
    cards.map(({ capabilities }) => capabilities.pushNotifications),
    [false, true],
  );
});
