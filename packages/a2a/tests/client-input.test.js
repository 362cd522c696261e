// What a client reads: server-sent events however they are cut, and faulty answers of every kind.
import assert from 'node:assert/strict';
import { createTaskClient } from '../src/index.js';
import { useClock } from '../../../tests/support/clock.js';
import {
  restOf,
  bytesOf,
  statusFrame,
  END,
  streamOf,
  subscribeTo,
  test,
} from './support/clients.js';

/** What it says in statuses. */
const textsOf = async (stream) =>
  (await restOf(stream)).flatMap(({ status }) => (status ? [status.message.parts[0].text] : []));

const slices = (bytes, size) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );

const [A, B] = [statusFrame('a'), statusFrame('b')];

const [A1, A2] = [A.slice(0, A.indexOf('"id"')), A.slice(A.indexOf('"id"'))];

const LINES = `data: ${A1}\ndata: ${A2}\n\ndata: ${B}\n\n${END}`;

const LIMITS = { maxEvent: 1 << 16, maxBody: 1 << 20, maxTask: 1 << 16, maxArtifacts: 3 };

for (const [what, text, expected = ['a', 'b', 'end']] of [
  ['line feeds end lines', LINES],
  ['carriage returns end lines', LINES.replaceAll('\n', '\r')],
  ['both end a line once', LINES.replaceAll('\n', '\r\n')],
  ['a byte order mark is skipped', `\ufeffdata: ${statusFrame('ä€😀')}\n\n${END}`, ['ä€😀', 'end']],
  ['comments are skipped', `: ping\n\n:\n\ndata: ${A1}\n: x\ndata: ${A2}\n\n${END}`, ['a', 'end']],
  ['a space after the colon is not needed', `data:${A1}\ndata:  ${A2}\n\n${END}`, ['a', 'end']],
  ['a field may have no colon', `data\ndata: ${A}\ndata\n\n${END}`, ['a', 'end']],
  ['an event has a type', `event: error\ndata: ${A}\n\n${END}`, ['a', 'end']],
  ['unknown fields are skipped', `retry: 9\nfoo: bar\n\ndata: ${A}\n\n${END}`, ['a', 'end']],
  ['an event without data is none', `event: x\n\n${END}`, ['end']],
  ['an event that the stream cuts off is none', `data: ${A}\n\ndata: ${B}\n`, ['a']],
]) {
  test(`server-sent events: ${what}, however the stream is cut`, async () => {
    const bytes = bytesOf(text);
    for (let size = 1; size <= bytes.length; size = size < 8 ? size + 1 : size * 2)
      assert.deepEqual(
        await textsOf(streamOf(slices(bytes, size))),
        expected,
        `${size} bytes at a time`,
      );
  });
}

for (const [what, text] of [
  ['line', 'x'],
  ['data line', 'data: x'],
  ['event', 'data: x\n'],
  ['comment', ': x'],
]) {
  test(`server-sent events: an endless ${what} is an error, and is not kept`, async () => {
    let read = 0;
    const endless = (function* () {
      for (;;) yield (read++, bytesOf(text));
    })();
    const stream = streamOf(endless, { maxEvent: 1000 });
    await assert.rejects(restOf(stream), { name: 'AbpError', code: 'TOO_LARGE' });
    assert.ok(read < 2000, `${read}`);
  });
}

test('server-sent events: megabytes of carriage returns are read in one go', async () => {
  // Looking for the line feed behind each of them took an hour.
  const stream = streamOf([new Uint8Array(2 ** 23).fill(13), bytesOf(END)], { maxEvent: 1000 });
  assert.deepEqual(await textsOf(stream), ['end']);
});

test('server-sent events: a stream of any length may pass', async () => {
  const frame = bytesOf(`data: ${A}\n\n: y\n\n`);
  const stream = streamOf([...Array(2000).fill(frame), bytesOf(END)], { maxEvent: 400 });
  assert.equal((await textsOf(stream)).length, 2001);
});

for (const [what, code, answer] of [
  ['an endless line', 'TOO_LARGE', (asked) => asked.open().endless('x'.repeat(1 << 14))],
  ['an endless event', 'TOO_LARGE', (asked) => asked.open().endless(`data: ${'x'.repeat(100)}\n`)],
  [
    'a body of 100 MB',
    'TOO_LARGE',
    (asked) => asked.open('application/json').endless(' '.repeat(1 << 16), 100 << 20),
  ],
  [
    'a frame that is not JSON',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.open().text('data: {"a":\n\n'),
  ],
  [
    'a frame without a result',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.open().text('data: {}\n\n'),
  ],
  [
    'a frame that is no object',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.open().text('data: null\n\n'),
  ],
  ['a page', 'INVALID_AGENT_RESPONSE', (asked) => asked.raw(200, 'text/html', '<p>hello</p>')],
  [
    'JSON that is none',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.raw(200, 'application/json', '{'),
  ],
  ['nothing', 'INVALID_AGENT_RESPONSE', (asked) => asked.raw(204, 'application/json', '')],
  ['HTTP 500', 'TRANSPORT_ERROR', (asked) => asked.raw(500, 'text/plain', 'oh no')],
  [
    'HTTP 401',
    'TRANSPORT_ERROR',
    (asked) => asked.raw(401, 'application/json', '{"error":"who?"}'),
  ],
  [
    'a redirect',
    'TRANSPORT_ERROR',
    (asked) => asked.raw(307, 'text/plain', '', { location: 'http://127.0.0.1:1/' }),
  ],
  [
    'HTTP 400 and an error of JSON-RPC',
    'INVALID_REQUEST',
    (asked) => asked.raw(400, 'application/json', '{"error":{"code":-32600,"message":"no"}}'),
  ],
  [
    'an error in place of a stream',
    'UNSUPPORTED_OPERATION',
    (asked) => asked.answer({ error: { code: -32004, message: 'no' } }),
  ],
  ['an error that is none', 'OPERATION_FAILED', (asked) => asked.answer({ error: 'no' })],
  [
    'artifacts without end',
    'TOO_LARGE',
    (asked) => {
      asked.open();
      for (let i = 0; i < 40; i++) asked.artifact('t', 'a', 'x'.repeat(2000), true);
    },
  ],
  [
    'too many artifacts',
    'TOO_LARGE',
    (asked) => {
      asked.open();
      for (let i = 0; i < 4; i++) asked.artifact('t', `a${i}`, 'x');
    },
  ],
  [
    'an artifact without an id',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.open().artifact('t', undefined, 'x'),
  ],
]) {
  test(`an agent that answers a stream with ${what}: ${code}`, async (t) => {
    const { agent, stream } = await subscribeTo(t, { limits: LIMITS });
    const events = restOf(stream);
    const asked = await agent.next('SendStreamingMessage');
    const sent = answer(asked);
    await assert.rejects(events, { name: 'AbpError', code });
    // The connection is let go of, however much was still to come.
    await asked.closed;
    if (what === 'a body of 100 MB') assert.ok((await sent) < 50 << 20, `${await sent} bytes sent`);
  });
}

test('an answer whose content-length is too large is not read', async (t) => {
  const { agent, client } = await subscribeTo(t, { limits: LIMITS });
  const got = client.get('t');
  const asked = await agent.next('GetTask');
  asked.raw(200, 'application/json', '', { 'content-length': `${100 << 20}` });
  await assert.rejects(got, { code: 'TOO_LARGE' });
});

test('a request that is not answered in time rejects with TIMEOUT', async (t) => {
  const { agent, client } = await subscribeTo(t, { limits: { timeout: 5000 } });
  const clock = useClock(t);
  const got = client.get('t');
  const asked = await agent.next('GetTask');
  clock.advance(5000);
  await assert.rejects(got, { code: 'TIMEOUT' });
  await asked.closed;
});

test('a request to an agent that cannot be reached rejects with TRANSPORT_ERROR', async () => {
  const client = createTaskClient('http://127.0.0.1:1/', { version: '1.0' });
  await assert.rejects(client.subscribe('go').next(), { code: 'TRANSPORT_ERROR', retryable: true });
  await assert.rejects(client.get('t'), { code: 'TRANSPORT_ERROR' });
});

test('an unknown version is refused', () => {
  assert.throws(() => createTaskClient('http://127.0.0.1:1/', { version: '9' }), {
    code: 'NOT_SUPPORTED',
  });
});
