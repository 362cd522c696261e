// User code runs in the middle of things: it may call, cancel, close and throw wherever it is run.
import assert from 'node:assert/strict';
import { beforeEach, afterEach, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { Raw } from '../support/raw.js';

let channel, client, app, aborts;
beforeEach(async () => {
  channel = new MessageChannel();
  aborts = [];
  app = expose(
    {
      app: { id: 'a', name: 'A', version: '1' },
      capabilities: {
        echo: (params) => params,
        hang: (_params, { signal, callId }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => {
              aborts.push(callId);
              reject(signal.reason);
            }),
          ),
        steps: async (n, { progress }) => {
          for (let i = 1; i <= n; i++) progress({ progress: i, total: n });
          return 'done';
        },
        chain: async (_params, { call, signal }) => {
          const inner = call('hang');
          signal.addEventListener('abort', () => void call('echo', 'too late'));
          return inner;
        },
        fork: (_params, { call }) => Promise.all([call('hang'), call('hang'), call('nothing')]),
      },
    },
    { port: channel.port1 },
  );
  client = await connect(channel.port2, { agent: { name: 'a', version: '1' } });
});
afterEach(() => {
  channel.port1.close();
  channel.port2.close();
});

test('a listener of the signal may call, and be answered', async () => {
  const controller = new AbortController();
  let inner;
  controller.signal.addEventListener('abort', () => (inner = client.call('echo', 'from abort')));
  const pending = client.call('hang', {}, { signal: controller.signal });
  controller.abort();
  assert.equal((await pending).cancelled, true);
  assert.equal((await inner).data, 'from abort');
});

test('progress may cancel its own call, and what comes after is not heard', async () => {
  const controller = new AbortController();
  const heard = [];
  const response = await client.call('steps', 3, {
    signal: controller.signal,
    onProgress({ progress }) {
      heard.push(progress);
      controller.abort('seen enough');
    },
  });
  // The app had finished by then: its word stands. Of its one turn the first and the last are told.
  assert.equal(response.data, 'done');
  assert.deepEqual(heard, [1, 3]);
});

test('progress may close the session', async () => {
  const response = await client.call('steps', 3, { onProgress: () => client.close() });
  assert.equal(response.cancelled, true);
  assert.equal(client.connected, false);
});

test('a handler of the page that throws harms no other call of the same frame', async () => {
  const errors = [];
  // Browsers have this.
  globalThis.reportError = (error) => errors.push(error.message);
  const [steps, echo] = await Promise.all([
    client.call('steps', 2, {
      onProgress() {
        throw new Error('the page’s own');
      },
    }),
    client.call('echo', 'whole'),
  ]);
  delete globalThis.reportError;
  assert.equal(steps.data, 'done');
  assert.equal(echo.data, 'whole');
  assert.deepEqual(errors, ['the page’s own', 'the page’s own']);
});

test('what cannot even be read may be thrown, given as a reason or stand in params', async () => {
  const unreadable = Object.create(null, {
    name: { get: () => assert.fail('read') },
    message: { get: () => assert.fail('read') },
  });
  app.set('fail', () => {
    throw unreadable;
  });
  assert.equal((await client.call('fail')).error.code, 'OPERATION_FAILED');
  const { error } = await client.call('echo', {
    get params() {
      throw unreadable;
    },
  });
  assert.equal(error.code, 'INVALID_PARAMS');
  const controller = new AbortController();
  const pending = client.call('hang', {}, { signal: controller.signal });
  controller.abort(unreadable);
  assert.equal((await pending).error.code, 'CANCELLED');
});

test('a tree of calls is aborted from its leaves, and what it calls then is refused', async () => {
  const controller = new AbortController();
  const [chain, fork, echo] = [
    client.call('chain', {}, { signal: controller.signal }),
    client.call('fork', {}, { signal: controller.signal }),
    client.call('echo', 'bystander'),
  ];
  assert.equal((await echo).data, 'bystander');
  controller.abort('all of it');
  assert.deepEqual([(await chain).cancelled, (await fork).cancelled], [true, true]);
  assert.equal(aborts.length, 3);
  assert.equal(app.counters[0].inFlightIn, 0);
});

test('a signal aborted by the answer to its own call does nothing', async () => {
  const controller = new AbortController();
  const response = await client.call('echo', 1, { signal: controller.signal });
  controller.abort();
  assert.equal(response.data, 1);
  assert.equal((await client.call('echo', 2)).data, 2);
  assert.equal(client.counters.stray, 0);
});

test('a message that cannot be read is counted, and the session goes on', async () => {
  channel.port1.dispatchEvent(new Event('messageerror'));
  assert.equal((await client.call('echo', 3)).data, 3);
  assert.equal(app.counters[0].malformed, 1);
});

test('what says whether a capability is available may use another session, while the message that asks for it is read', async () => {
  const { port1, port2 } = new MessageChannel();
  const slow = {
    available() {
      // An id of some length is written where messages are.
      void client.call('echo', 1, { callId: `${Math.random()}`.padEnd(200, 'x') });
      return true;
    },
    handler: (_params, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  };
  const other = expose(
    { app: { id: 'b', name: 'B', version: '1' }, capabilities: { slow } },
    { port: port1 },
  );
  const raw = new Raw(port2);
  await raw.ask('initialize', 1, { protocolVersion: '0.1', agent: { name: 'a', version: '1' } });
  // The id of a call that is a number is looked up in the text of its message.
  for (const id of [7, 8]) raw.send('capabilities/call', id, { capability: 'slow' });
  for (const callId of ['7', '8']) raw.send('capabilities/cancel', `of ${callId}`, { callId });
  const answers = [];
  while (answers.length < 4) answers.push(await raw.next());
  for (const { payload } of answers) assert.equal(payload.cancelled, true);
  assert.equal((await client.call('echo', 2)).data, 2);
  other.close();
  port2.close();
});

test('what cannot be sent ends its own call, also where one of the other side has its number', async () => {
  const { port1, port2 } = new MessageChannel();
  const questions = [];
  const asks = (_params, { elicit }) =>
    Promise.all([1, 2].map((params) => elicit({ method: 'q', params })));
  const asking = expose(
    { app: { id: 'b', name: 'B', version: '1' }, capabilities: { asks, echo: (params) => params } },
    { port: port1 },
  );
  let asked;
  const both = new Promise((resolve) => (asked = resolve));
  const agent = await connect(port2, {
    agent: { name: 'a', version: '1' },
    onElicitation: () =>
      new Promise((resolve) => {
        if (questions.push(resolve) === 2) asked();
      }),
  });
  const pending = agent.call('asks');
  await both;
  const { error, metadata } = await agent.call('echo', { act() {} });
  assert.deepEqual([error.code, metadata.outcome], ['INVALID_PARAMS', 'unstarted']);
  for (const answer of questions) answer('yes');
  assert.deepEqual(
    (await pending).data.map(({ data }) => data),
    ['yes', 'yes'],
  );
  agent.close();
  asking.close();
});
