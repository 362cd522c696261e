// An app of others' making behind an endpoint of ours: its word decides what becomes of a cancel.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../../js/index.js';
import { RelayTransport } from '../../js/app/relay-transport.js';

const agent = { name: 'test', version: '1' };

const deferred = () => {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
};

/** An app whose one capability is `run`. */
async function relayed(run, limits) {
  const transport = new RelayTransport(
    {
      foreign: true,
      app: { id: 'x.y', name: 'Other', version: '1' },
      begin: async () => {},
      list: () => [{ name: 'work', available: true }],
      rejectionFor: () => 0,
      run: (_request, context) => run(context),
    },
    undefined,
    limits,
  );
  return connect(() => transport, { agent });
}

/** Begins a call, and resolves with its result once `run` was entered. */
async function begun(run, limits) {
  const started = deferred();
  const client = await relayed((context) => {
    started.resolve(context);
    return run(context);
  }, limits);
  const result = client.call('work', {}, { callId: 'c' });
  return { client, result, context: await started.promise };
}

const aborted = (signal) =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));

test('what an app answers after it was asked to stop stands, and its cancels are answered then', async () => {
  const { client, result } = await begun(async ({ signal }) => {
    await aborted(signal);
    return 'done';
  });
  const answers = await Promise.all([client.cancel('c', 'enough'), client.cancel('c')]);
  for (const { cancelled, reason } of answers) {
    assert.deepEqual([cancelled, reason], [false, 'Operation already completed']);
  }
  assert.deepEqual((await result).data, 'done');
  assert.equal((await client.cancel('c')).reason, 'Operation already completed');
  client.close();
});

test('an app that fails after it was asked to stop was not cancelled', async () => {
  const { client, result } = await begun(async ({ signal }) => {
    await aborted(signal);
    throw { code: 'OPERATION_FAILED', message: 'broken', retryable: false };
  });
  assert.equal((await client.cancel('c')).reason, 'Operation already completed');
  const { success, cancelled, error } = await result;
  assert.deepEqual([success, cancelled, error.message], [false, undefined, 'broken']);
  client.close();
});

test('an app that says that it has stopped is believed', async () => {
  const { client, result } = await begun(async ({ signal }) => {
    await aborted(signal);
    throw signal.reason;
  });
  assert.equal((await client.cancel('c', 'enough')).cancelled, true);
  const { cancelled, error } = await result;
  assert.deepEqual([cancelled, error.code, error.message], [true, 'CANCELLED', 'enough']);
  assert.equal((await client.cancel('c')).cancelled, true, 'every time');
  client.close();
});

const UNKNOWN = 'It is not known whether the operation has stopped';

test('an app that says nothing in time leaves it unknown, whatever it says later', async () => {
  const late = deferred();
  const { client, result } = await begun(() => late.promise, { grace: 20 });
  const { cancelled, reason } = await client.cancel('c');
  assert.deepEqual([cancelled, reason], [false, UNKNOWN]);
  const ended = await result;
  assert.deepEqual([ended.cancelled, ended.metadata.outcome], [true, 'unknown']);
  late.resolve('done');
  await late.promise;
  assert.equal((await client.cancel('c')).reason, UNKNOWN);
  client.close();
});

test('an app that cannot know what became of a call says so', async () => {
  const { client, result } = await begun(async ({ signal }) => {
    await aborted(signal);
    const error = { code: 'CANCELLED', message: 'gone', retryable: false };
    return { success: false, cancelled: true, error, metadata: { outcome: 'unknown' } };
  });
  assert.equal((await client.cancel('c')).reason, UNKNOWN);
  assert.equal((await result).metadata.outcome, 'unknown');
  client.close();
});

test('when the agent leaves, what runs is told, and an agent that comes later finds nobody', async () => {
  const { client, context } = await begun(({ signal }) => aborted(signal));
  const reason = aborted(context.signal);
  client.close();
  assert.ok(await reason);
});
