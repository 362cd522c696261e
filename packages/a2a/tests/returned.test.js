// What an executor returns, and what an agent replies in place of a task.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { AbpError } from 'abp-bridge';
import { createTaskClient } from '../src/index.js';
import { CARD, VERSIONS, ask, deferred, open, post, servingUntilEnd } from './support/a2a.js';

const served = servingUntilEnd();
const names = VERSIONS['1.0'];
const hello = () => ({ message: names.message('hello') });

for (const [what, execute, parts] of [
  ['a text', () => 'done', [{ text: 'done' }]],
  ['an empty text', async () => '', [{ text: '' }]],
  ['a part', () => ({ data: { a: 1 } }), [{ data: { a: 1 } }]],
  [
    'parts',
    () => ['a', { url: 'https://a.example/' }],
    [{ text: 'a' }, { url: 'https://a.example/' }],
  ],
  ['an artifact', () => ({ parts: [{ text: 'a' }], name: 'A' }), [{ text: 'a' }]],
  [
    'a generator that does not wait',
    function* () {
      yield 'a';
      yield Promise.resolve('b');
      return 'c';
    },
    [{ text: 'a' }, { text: 'b' }, { text: 'c' }],
  ],
])
  test(`an executor that returns ${what}: that is an artifact`, async () => {
    const { url } = await served(execute);
    const { status, artifacts } = await createTaskClient(url).send('go');
    assert.equal(status.state, 'completed');
    assert.deepEqual(
      artifacts.map(({ parts }) => parts),
      [parts],
    );
    assert.equal(artifacts[0].name, what === 'an artifact' ? 'A' : undefined);
  });

test('a generator that does not wait ends where it yields when its task is cancelled', async () => {
  const ended = deferred();
  const { url } = await served(function* () {
    try {
      for (;;) yield 'a';
    } finally {
      ended.resolve();
    }
  });
  const client = createTaskClient(url);
  const { id } = await client.send('go', { configuration: { returnImmediately: true } });
  assert.equal((await client.cancel(id)).status.state, 'canceled');
  await ended.promise;
});

test('an executor that returns anything else has failed, and hears so', async (t) => {
  const reported = [];
  t.mock.method(console, 'error', (...args) => reported.push(args.at(-1)));
  for (const returned of [5, { done: true }, [5], () => {}, new Map()]) {
    const { url } = await served(() => returned);
    assert.equal((await createTaskClient(url).send('go')).status.state, 'failed');
    assert.ok(reported.pop() instanceof TypeError);
  }
});

test('an executor may return nothing, or what an emit has returned', async () => {
  for (const execute of [() => {}, () => null, (ctx) => ctx.emitStatus('working', 'On it')]) {
    const { url } = await served(execute);
    const { status, artifacts } = await createTaskClient(url).send('go');
    assert.deepEqual([status.state, artifacts], ['completed', []]);
  }
});

// --- Replies -------------------------------------------------------------------------------------

/** An agent that thinks about its replies until the test lets it. */
async function thinking(options) {
  const asked = deferred();
  const gate = deferred();
  const reply = (context) => {
    asked.resolve(context);
    return gate.promise;
  };
  return { ...(await served(() => {}, options, CARD, reply)), asked: asked.promise, gate };
}

test('a reply that takes too long ends with an error, and its signal fires', async () => {
  for (const method of [names.send, names.stream]) {
    const { url, asked } = await thinking({ replyTimeout: 1 });
    const answer = ask(url, method, hello(), names.headers);
    const { signal } = await asked;
    assert.equal((await answer).error.data[0].reason, 'TIMEOUT');
    assert.equal(signal.aborted, true);
    assert.equal(signal.reason.name, 'AbortError');
  }
});

test('the signal of a reply fires when nobody waits for it: the client has left, or the agent closes', async () => {
  const first = await thinking({ keepAlive: 0 });
  const stop = new AbortController();
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: names.send, params: hello() });
  const headers = { 'content-type': 'application/json', ...names.headers };
  const left = fetch(first.url, { method: 'POST', headers, body, signal: stop.signal });
  const { signal } = await first.asked;
  stop.abort();
  await assert.rejects(left);
  if (!signal.aborted) await once(signal, 'abort');

  const second = await thinking({});
  const answer = ask(second.url, names.send, hello(), names.headers);
  const context = await second.asked;
  second.agent.close();
  assert.match((await answer).error.message, /closing/);
  assert.equal(context.signal.aborted, true);
});

test('a reply that takes its time is preceded by signs of life, and a message, a task or an error follows', async () => {
  const outcomes = [
    ['Hello yourself', /Hello yourself/],
    [undefined, /TASK_STATE_COMPLETED/],
    [new AbpError('OPERATION_FAILED', 'No'), /"error":/],
  ];
  for (const [said, expected] of outcomes) {
    for (const [path, method] of [
      ['', names.send],
      ['', names.stream],
      ['message:send', undefined],
      ['message:stream', undefined],
    ]) {
      const { url, gate } = await thinking({ keepAlive: 1 });
      const params = hello();
      const request = method ? { jsonrpc: '2.0', id: 1, method, params } : params;
      const answer = await post(url + path, JSON.stringify(request), names.headers);
      const isStream = /tream/.test(method ?? path);
      assert.match(answer.headers.get('content-type'), isStream ? /event-stream/ : /json/);
      const reader = answer.body.getReader();
      const decoder = new TextDecoder();
      const { value } = await reader.read();
      assert.match(decoder.decode(value), isStream ? /^(:\n\n)+$/ : /^ +$/);
      if (said instanceof Error) gate.reject(said);
      else gate.resolve(said);
      let text = '';
      for (let next; !(next = await reader.read()).done;) text += decoder.decode(next.value);
      assert.match(text, expected);
      if (isStream) assert.match(text, /^data: |^event: error\ndata: /m);
      else JSON.parse(text);
    }
  }
});

test('who may send a message again does not end its reply by leaving', async () => {
  const { url, asked, gate } = await thinking({ keepAlive: 0 });
  const headers = { ...names.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
  const params = hello();
  const stop = new AbortController();
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: names.send, params });
  const left = fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
    signal: stop.signal,
  });
  const { signal } = await asked;
  stop.abort();
  await assert.rejects(left);
  const again = open(url, names.stream, params, headers);
  gate.resolve('Hello yourself');
  assert.equal((await (await again).next()).result.message.parts[0].text, 'Hello yourself');
  assert.equal(signal.aborted, false);
});
