// The driver's end of a page's messages, with a page that is played by the test: it may say
// anything.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectPage } from '../src/index.js';

/** Characters that go to or fro at once, and those of the longest message. */
const [MAX_PIECE, MAX_MESSAGE] = [2 ** 22, 2 ** 28];
const AGENT = { name: 'agent', version: '1' };
const APP = { id: 'a', name: 'A', version: '1' };
const SESSION = { sessionId: 's', protocolVersion: '0.1', app: APP, features: {} };
const lineOf = (type, id, payload) => `${JSON.stringify({ type, id, timestamp: 1, payload })}\n`;

/**
 * A page whose object says what `say` yields: texts, each when the driver has asked for the next.
 * @param {'ours' | 'foreign'} found what app it has
 * @param {(asked: { until(matches: (message: any) => boolean): Promise<any> })
 *   => AsyncGenerator<unknown>} say
 */
function page(found, say) {
  /** @type {[at: number, text: string][]} */
  const taken = [];
  const offsets = [];
  let wake = () => {};
  const asked = {
    taken,
    offsets,
    /** The first message of which that is so. */
    async until(matches) {
      for (;;) {
        const lines = taken
          .map(([, text]) => text)
          .join('')
          .split('\n');
        const found = lines
          .slice(0, -1)
          .map((line) => JSON.parse(line))
          .find(matches);
        if (found) return found;
        await new Promise((resolve) => (wake = () => resolve(undefined)));
      }
    },
  };
  const said = say(asked);
  const object = {
    find: async () => found,
    take: (at, text) => (taken.push([at, text]), wake()),
    async next(received) {
      offsets.push(received);
      const { done, value } = await said.next();
      return done ? new Promise(() => {}) : value;
    },
    async end() {},
  };
  const handle = {
    evaluate: async (question, argument) => question(object, argument),
    async dispose() {},
  };
  return { target: { evaluateHandle: async () => handle }, ...asked };
}

/**
 * An agent of a page that begins a session and then says what follows. It is closed with the test.
 */
async function open(t, say) {
  const there = page('ours', async function* (asked) {
    const { id } = await asked.until(({ type }) => type === 'initialize');
    yield lineOf('initialize-result', id, SESSION);
    yield* say(asked);
  });
  let lost;
  const gone = new Promise((resolve) => (lost = resolve));
  const heard = [];
  const client = await connectPage(there.target, {
    agent: AGENT,
    onDisconnect: (why) => lost(String(why?.message ?? why)),
    onNotification: (event) => heard.push(event),
  });
  t.after(() => client.close());
  return { client, gone, heard, ...there };
}
const called = (asked) => asked.until(({ type }) => type === 'capabilities/call');
const result = (id) => lineOf('capabilities/call-result', id, { success: true, data: 'done' });

test('messages come in lines, however these are cut; blank ones and what is no message are passed over', async (t) => {
  const { client, offsets } = await open(t, async function* (asked) {
    const { id } = await called(asked);
    const text = `\n{\n1\n[2]\n\n${result(id)}`;
    for (let at = 0; at < text.length; at += 7) yield text.slice(at, at + 7);
  });
  assert.equal((await client.call('work')).data, 'done');
  // What was received is told by its length.
  const [begun, ...rest] = offsets.slice(1);
  assert.ok(rest.length > 5);
  for (const [i, offset] of rest.slice(0, -1).entries()) assert.equal(offset, begun + 7 * (i + 1));
});

test('what is long is posted in pieces that say where they begin', async (t) => {
  const { client, taken } = await open(t, async function* (asked) {
    const { id } = await called(asked);
    yield result(id);
  });
  const params = { long: 'x'.repeat(MAX_PIECE) };
  assert.equal((await client.call('work', params)).data, 'done');
  let at = 0;
  for (const [from, text] of taken) {
    assert.equal(from, at);
    assert.ok(text.length <= MAX_PIECE);
    at += text.length;
  }
  assert.ok(taken.length >= 3);
});

test('a page that says what is no text is lost', async (t) => {
  const { gone } = await open(t, async function* () {
    yield { length: 1, indexOf: () => -1, slice: () => '' };
  });
  assert.match(await gone, /not text/);
});

test('a page that says more at once than was agreed on is lost, and nothing of it is read', async (t) => {
  const notice = lineOf('notification', undefined, { event: 'custom' });
  const { gone, heard } = await open(t, async function* () {
    yield notice.padEnd(MAX_PIECE);
    yield `\n${notice}`.padEnd(MAX_PIECE + 1);
  });
  assert.match(await gone, /at once/);
  assert.equal(heard.length, 1);
});

test('a message without end is given up beyond 2^28 characters', async (t) => {
  const piece = 'x'.repeat(MAX_PIECE);
  let said = 0;
  const { gone } = await open(t, async function* () {
    for (; said < MAX_MESSAGE; said += piece.length) yield piece;
    said++;
    yield 'x';
    said = Infinity;
    yield 'x';
  });
  assert.match(await gone, /too long/);
  assert.equal(said, MAX_MESSAGE + 1);
});

test('what the page of another app says in no form that is known costs nobody anything', async (t) => {
  t.mock.method(console, 'error', () => {});
  const { target } = page('foreign', async function* (asked) {
    const answer = async (method, value) => {
      const { ask } = await asked.until((line) => line.method === method);
      return `${JSON.stringify({ answer: ask, value })}\n`;
    };
    const odd = [
      5,
      'text',
      null,
      [],
      {},
      { answer: 9 },
      { method: 'hear' },
      { method: 'hear', args: [] },
    ];
    yield `${odd.map((line) => JSON.stringify(line)).join('\n')}\n`;
    yield await answer('open', { ...SESSION, capabilities: [{ name: 'work' }] });
    yield '{"method":"hear","args":["Other"]}\n{"method":"hear","args":["Progress",5]}\n';
    yield await answer('call', { success: true, data: 'done' });
  });
  const client = await connectPage(target, { agent: AGENT });
  t.after(() => client.close());
  assert.equal((await client.call('work')).data, 'done');
});
