// What streams need is loaded when it is first used. What ends a call meanwhile ends one that has
// not begun, and so does a part that does not load. What only warns is not waited for.
import assert from 'node:assert/strict';
import { register } from 'node:module';
import { test } from 'node:test';
import { openPair } from '../support/pair.js';

/** An app whose handlers are counted. */
async function open() {
  const it = { ran: 0 };
  const count = async function* ({ to }) {
    it.ran++;
    for (let i = 0; i < to; i++) yield i;
    return 'counted';
  };
  const sum = async (_params, { input }) => {
    it.ran++;
    let all = 0;
    for await (const value of input) all += value;
    return all;
  };
  return Object.assign(it, await openPair({ count, sum, plain: () => 'plain' }));
}

async function* numbers(to) {
  for (let i = 1; i <= to; i++) yield i;
}

/** What begins a call that streams, and resolves with its response. */
const BEGIN = {
  'that is read': ({ client }, options, to = 2) => client.stream('count', { to }, options).response,
  'of input': ({ client }, options, to = 2) =>
    client.call('sum', {}, { ...options, input: numbers(to) }),
};

for (const [what, begin] of Object.entries(BEGIN)) {
  test(`the first stream ${what} is made`, async () => {
    const pair = await open();
    assert.equal((await begin(pair)).success, true);
    assert.equal(pair.ran, 1);
  });

  test(`the first stream ${what}, cancelled at once, never began`, async () => {
    const pair = await open();
    const controller = new AbortController();
    const pending = begin(pair, { signal: controller.signal });
    controller.abort('enough');
    const { cancelled, error, metadata } = await pending;
    assert.deepEqual([cancelled, error.message], [true, 'enough']);
    assert.equal(metadata.outcome, 'unstarted');
    assert.equal(await pair.client.invoke('plain'), 'plain');
    assert.equal(pair.ran, 0);
  });

  test(`the first stream ${what}, and the one beside it, are cancelled by their ids`, async () => {
    const pair = await open();
    const pending = ['first', 'second'].map((callId) => begin(pair, { callId }, Infinity));
    const answers = ['first', 'second'].map((callId) => pair.client.cancel(callId));
    for (const answer of await Promise.all(answers))
      assert.equal(answer.cancelled, true, answer.reason);
    for (const { cancelled } of await Promise.all(pending)) assert.equal(cancelled, true);
  });

  test(`the first stream ${what} of a client that is closed at once never began`, async () => {
    const pair = await open();
    const pending = begin(pair);
    pair.client.close();
    const { success, metadata } = await pending;
    assert.deepEqual([success, metadata.outcome], [false, 'unstarted']);
    assert.equal(pair.ran, 0);
  });
}

test('the first stream has the params as they were when it was asked for', async () => {
  const { client } = await open();
  const params = { to: 2 };
  const stream = client.stream('count', params);
  params.to = 100;
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  assert.deepEqual(chunks, [0, 1]);
  assert.equal((await stream.response).data, 'counted');
});

test('the first stream is left as any other', async () => {
  const { client } = await open();
  const stream = client.stream('count', { to: 100 });
  assert.deepEqual(await stream.return('left'), { done: true, value: 'left' });
  assert.equal((await stream.response).cancelled, true);
});

test('an answer to a question may be the first stream', async () => {
  async function* onElicitation() {
    yield 'a';
    yield 'b';
  }
  const asks = async (_params, { elicit }) => (await elicit({ method: 'pick', params: {} })).data;
  const { client } = await openPair({ asks }, { agent: { onElicitation } });
  assert.deepEqual(await client.invoke('asks'), ['a', 'b']);
});

/**
 * Makes files that have a name like this fail to load, until the returned function is called.
 * @param {RegExp} like
 */
function offline(like) {
  const isOffline = new Uint8Array(new SharedArrayBuffer(1)).fill(1);
  const hooks = `
    let isOffline;
    export const initialize = (data) => (isOffline = data);
    export function resolve(name, context, next) {
      if (isOffline[0] && ${like}.test(name)) throw new Error('offline');
      return next(name, context);
    }`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: isOffline });
  return () => isOffline.fill(0);
}

test('a stream for which a part does not load never began, and the next one tries again', async () => {
  const online = offline(/streams\.js/);
  const pair = await open();
  for (const [what, begin] of Object.entries(BEGIN)) {
    const { error, metadata } = await begin(pair);
    const told = [error.code, error.retryable, metadata.outcome];
    assert.deepEqual(told, ['TRANSPORT_ERROR', true, 'unstarted'], what);
  }
  await assert.rejects(pair.client.stream('count', { to: 2 }).next(), {
    name: 'AbpError',
    code: 'TRANSPORT_ERROR',
    retryable: true,
  });
  assert.equal(pair.ran, 0);
  online();
  for (const [what, begin] of Object.entries(BEGIN))
    assert.equal((await begin(pair)).success, true, what);
});

test('a call whose options have a misspelt name does not wait for the warning', async (t) => {
  t.mock.method(console, 'warn', () => {});
  const begun = [];
  const { client } = await openPair({
    hang(_params, { signal }) {
      begun.push('first');
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    },
    plain: () => void begun.push('second'),
  });
  const pending = client.call('hang', {}, { callId: 'first', tiemout: 5 });
  const second = client.call('plain');
  assert.equal((await client.cancel('first')).cancelled, true);
  assert.equal((await pending).cancelled, true);
  await second;
  assert.deepEqual(begun, ['first', 'second']);
});
