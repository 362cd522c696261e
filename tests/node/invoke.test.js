// client.invoke: calls for those who live by exceptions.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';

let channel, client;
beforeEach(async () => {
  channel = new MessageChannel();
  mock.method(console, 'error', () => {});
  const untilAborted = (_params, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    );
  const capabilities = {
    echo: (params) => params,
    fails: () => {
      throw new AbpError('NO_PAPER', 'The printer is empty', {
        details: { tray: 2 },
        retryAfter: 5,
      });
    },
    untilAborted,
    declines: () => {
      throw new AbpError('CANCELLED', 'The user said no');
    },
    nests: async (_params, { call }) => call('echo', 'inner'),
  };
  expose(
    { app: { id: 'test.app', name: 'Test', version: '1.0' }, capabilities },
    { port: channel.port1 },
  );
  client = await connect(channel.port2, { agent: { name: 'test', version: '1.0' } });
});
afterEach(() => {
  client.close();
  channel.port1.close();
  mock.restoreAll();
});

/** What a promise rejects with. */
const rejection = (promise) =>
  promise.then(
    (value) => assert.fail(`it gave ${value}`),
    (error) => error,
  );

test('gives the data itself', async () => {
  assert.deepEqual(await client.invoke('echo', { a: 1 }), { a: 1 });
  assert.deepEqual(await client.invoke('echo'), {});
  assert.equal(await client.invoke('nests'), 'inner');
});

test('throws what the app answers, whole', async () => {
  const error = await rejection(client.invoke('fails'));
  assert.ok(error instanceof AbpError);
  const { name, code, message, details, retryAfter, retryable } = error;
  assert.deepEqual(
    { name, code, message, details, retryAfter, retryable },
    {
      name: 'AbpError',
      code: 'NO_PAPER',
      message: 'The printer is empty',
      details: { tray: 2 },
      retryAfter: 5,
      retryable: false,
    },
  );
  assert.equal((await rejection(client.invoke('nowhere'))).code, 'UNKNOWN_CAPABILITY');
});

test('throws an AbortError when the caller cancels, with the reason as its cause', async () => {
  const controller = new AbortController();
  const call = rejection(client.invoke('untilAborted', {}, { signal: controller.signal }));
  controller.abort('the user pressed stop');
  const error = await call;
  assert.ok(error instanceof AbpError);
  assert.equal(error.name, 'AbortError');
  assert.equal(error.code, 'CANCELLED');
  assert.equal(error.message, 'the user pressed stop');
  assert.equal(error.cause, 'the user pressed stop');
});

test('throws an AbortError when the app says cancelled', async () => {
  const error = await rejection(client.invoke('declines'));
  assert.equal(error.name, 'AbortError');
  assert.equal(error.message, 'The user said no');
  assert.equal(error.cause, undefined);
});

test('throws a timeout as such', async () => {
  const own = await rejection(client.invoke('untilAborted', {}, { timeout: 1 }));
  assert.deepEqual([own.name, own.code, own.retryable], ['AbpError', 'TIMEOUT', false]);
  const signal = AbortSignal.timeout(1);
  const given = await rejection(client.invoke('untilAborted', {}, { signal }));
  assert.deepEqual([given.name, given.code], ['AbpError', 'TIMEOUT']);
  assert.equal(given.cause, signal.reason);
});

test('throws when the client is closed, and when it is given what is no name', async () => {
  await assert.rejects(client.invoke(1), { code: 'INVALID_PARAMS' });
  client.close();
  assert.equal((await rejection(client.invoke('echo'))).code, 'DISCONNECTED');
});
