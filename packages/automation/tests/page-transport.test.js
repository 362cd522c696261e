// The driver's end of a page's messages, with a page that is played by the test.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_FETCH_CHARACTERS, PageTransport } from '../src/page-transport.js';

/**
 * A transport to a page that says these texts, and then nothing. It is closed with the test.
 * @param {import('node:test').TestContext} t
 * @param {Iterable<unknown>} texts
 */
function open(t, texts) {
  const said = texts[Symbol.iterator]();
  const taken = [];
  const offsets = [];
  const page = {
    take: (at, text) => void taken.push([at, text]),
    next(received) {
      offsets.push(received);
      const { done, value } = said.next();
      return done ? new Promise(() => {}) : value;
    },
    async end() {},
  };
  const handle = {
    evaluate: async (question, argument) => question(page, argument),
    async dispose() {},
  };
  const gone = new AbortController();
  const transport = new PageTransport(handle, { gone: gone.signal, release() {} });
  t.after(() => gone.abort());
  const messages = [];
  const lost = new Promise((resolve) => (transport.onClose = resolve));
  const heard = (count) =>
    new Promise((resolve) => {
      transport.onMessage = (message) => messages.push(message) === count && resolve(messages);
    });
  return { transport, taken, offsets, messages, lost, heard };
}

test('messages come in lines, however these are cut, and blank lines are none', async (t) => {
  const { transport, heard, offsets } = open(t, ['{"a":', '1}\n\n[2', ']\n3\n']);
  const arrived = heard(3);
  transport.post('hello');
  assert.deepEqual(await arrived, [{ a: 1 }, [2], 3]);
  assert.deepEqual(offsets, [0, 5, 11, 15].slice(0, offsets.length));
});

test('a line that is no message is told as one that cannot be read', async (t) => {
  const { transport, heard } = open(t, ['{\n1\n']);
  const arrived = heard(2);
  transport.post('hello');
  assert.deepEqual(await arrived, [null, 1]);
});

test('what is long is posted in pieces that say where they begin', async (t) => {
  const { transport, taken } = open(t, []);
  const long = 'x'.repeat(MAX_FETCH_CHARACTERS);
  transport.post(long);
  transport.post('short');
  while (taken.length < 2 || !taken.at(-1)[1].endsWith('\n')) await new Promise(setImmediate);
  let at = 0;
  for (const [from, text] of taken) {
    assert.equal(from, at);
    assert.ok(text.length <= MAX_FETCH_CHARACTERS);
    at += text.length;
  }
  assert.match(taken.map(([, text]) => text).join(''), /^"x+"\n"short"\n$/);
});

test('a page that says what is no text is lost', async (t) => {
  const { transport, lost, heard } = open(t, [{ length: 1, indexOf: () => -1, slice: () => '' }]);
  void heard(1);
  transport.post('hello');
  assert.match(String(await lost), /not text/);
});

test('a page that says more at once than was agreed on is lost, and nothing of it is read', async (t) => {
  const { transport, lost, heard, messages } = open(t, [
    `1\n${'x'.repeat(MAX_FETCH_CHARACTERS - 2)}`,
    `2\n${'x'.repeat(MAX_FETCH_CHARACTERS - 1)}`,
  ]);
  void heard(1);
  transport.post('hello');
  assert.match(String(await lost), /at once/);
  assert.deepEqual(messages, [1]);
});

test('a message without end is given up beyond 2^28 characters', async (t) => {
  const piece = 'x'.repeat(MAX_FETCH_CHARACTERS);
  let said = 0;
  function* pieces() {
    for (; said < 2 ** 28; said += piece.length) yield piece;
    said++;
    yield 'x';
    said = Infinity;
    yield 'x';
  }
  const { transport, lost, heard } = open(t, pieces());
  void heard(1);
  transport.post('hello');
  assert.match(String(await lost), /too long/);
  assert.equal(said, 2 ** 28 + 1);
});
