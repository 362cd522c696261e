/**
 * Results that a handler streams: LSP's partial results, and what callers that ask for none get.
 */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { createPeer, headerTransport } from '../src/index.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';

const request = (id, method, params = {}) => ({ jsonrpc: '2.0', id, method, params });
const part = (value, token = 't') => ({
  jsonrpc: '2.0',
  method: '$/progress',
  params: { token, value },
});
const ASKS = { partialResultToken: 't' };

/** Reads a stream to its end: its parts, and what was returned or thrown. */
async function read(stream) {
  const parts = [];
  try {
    for (;;) {
      const { done, value } = await stream.next();
      if (done) return { parts, last: value };
      parts.push(value);
    }
  } catch (err) {
    return { parts, err };
  }
}

test('lsp: parts go to the token that asked, and the result is empty', async () => {
  const { peer, post, said } = scriptedPeer('lsp');
  peer.handle('refs', async function* () {
    yield ['a', 'b'];
    yield ['c'];
  });
  post(request(1, 'refs', ASKS));
  assert.deepEqual(await said(3), [
    part(['a', 'b']),
    part(['c']),
    { jsonrpc: '2.0', id: 1, result: null },
  ]);
  peer.close();
});

test('lsp: what the generator returns is the result', async () => {
  const { peer, post, said } = scriptedPeer('lsp');
  peer.handle('workspace/diagnostic', async function* () {
    yield { items: ['a'] };
    return { items: [] };
  });
  post(request(1, 'workspace/diagnostic', { partialResultToken: 0 }));
  assert.deepEqual(await said(2), [
    part({ items: ['a'] }, 0),
    { jsonrpc: '2.0', id: 1, result: { items: [] } },
  ]);
  post(request(2, 'workspace/diagnostic'));
  assert.deepEqual((await said(3))[2].result, { items: ['a'] });
  peer.close();
});

for (const dialect of /** @type {const} */ (['acp', 'lsp', 'mcp'])) {
  test(`${dialect}: a caller that asked for no parts gets them joined`, async () => {
    const { peer, post, said } = scriptedPeer(dialect);
    peer.handle('refs', async function* () {
      yield ['a', 'b'];
      yield ['c'];
    });
    peer.handle('readable', () => ReadableStream.from([{ content: [1] }, { content: [2] }]));
    peer.handle('none', async function* () {});
    peer.handle('words', async function* () {
      yield 'a';
      yield 'b';
    });
    // A token is nothing special in a dialect that has none.
    const params = dialect === 'lsp' ? {} : ASKS;
    const methods = ['refs', 'readable', 'none', 'words'];
    methods.forEach((method, i) => post(request(i + 1, method, params)));
    const heard = [...(await said(4))].sort((a, b) => a.id - b.id);
    assert.deepEqual(
      heard.map(({ result }) => result),
      [['a', 'b', 'c'], { content: [1, 2] }, dialect === 'mcp' ? {} : null, ['a', 'b']],
    );
    peer.close();
  });
}

test('parts are joined as LSP appends them, and change nothing of the handler’s', async () => {
  const { a, b } = peerPair('lsp');
  let given;
  b.handle('parts', async function* () {
    yield* given.parts;
    return given.last;
  });
  const joined = (parts, last) => ((given = { parts, last }), a.request('parts'));
  const own = { items: ['a'], kind: 'full', relatedDocuments: { x: { n: 1 } } };
  const more = { items: ['b'], kind: 'more', relatedDocuments: { y: { n: 2 } } };
  const copy = structuredClone(own);
  const related = { x: { n: 1 }, y: { n: 2 } };
  for (const [parts, last, expected] of [
    [[own, more], undefined, { items: ['a', 'b'], kind: 'more', relatedDocuments: related }],
    [
      [{ isIncomplete: true, items: ['a'] }, ['b']],
      null,
      { isIncomplete: true, items: ['a', 'b'] },
    ],
    [[['a'], ['b']], [], ['a', 'b']],
    [[['a'], ['b']], null, ['a', 'b']],
    [[['a']], { n: 1 }, { n: 1 }],
    [[['a'], 'b'], undefined, [['a'], 'b']],
    [[], undefined, null],
  ])
    assert.deepEqual(await joined(parts, last), expected);
  assert.deepEqual(own, copy);
  const odd = JSON.parse('{"__proto__": {"polluted": 1}, "in": {"__proto__": [1]}}');
  const whole = await joined([odd, odd]);
  assert.equal(whole.polluted, undefined);
  assert.equal(Object.getPrototypeOf(whole.in), Object.prototype);
  assert.deepEqual(Object.keys(whole), ['__proto__', 'in']);
  a.close();
  b.close();
});

test('lsp: a stream reads the parts, in order, and then the result', async () => {
  const { a, b } = peerPair('lsp');
  b.handle('refs', async function* ({ count }) {
    for (let i = 0; i < count; i++) yield [i];
    return [];
  });
  const stream = a.stream('refs', { count: 100 });
  const { parts, last } = await read(stream);
  assert.deepEqual(
    parts,
    Array.from({ length: 100 }, (_, i) => [i]),
  );
  assert.deepEqual([last, await stream.result], [[], []]);
  assert.deepEqual(await stream.next(), { done: true, value: undefined });
  a.close();
  b.close();
});

for (const dialect of /** @type {const} */ (['acp', 'lsp', 'mcp'])) {
  test(`${dialect}: a stream from a side that sends no parts has one`, async () => {
    const { a, b } = peerPair(dialect);
    b.handle('refs', () => ({ items: ['a'] }));
    b.handle('none', () => undefined);
    assert.deepEqual((await read(a.stream('refs'))).parts, [{ items: ['a'] }]);
    const none = dialect === 'mcp' ? [{}] : [];
    assert.deepEqual((await read(a.stream('none'))).parts, none);
    a.close();
    b.close();
  });
}

test('lsp: a stream that fails rejects after the parts that came before, once', async () => {
  const { a, b } = peerPair('lsp');
  let ended = 0;
  b.handle('refs', async function* () {
    try {
      yield ['a'];
      throw new Error('half of it');
    } finally {
      ended++;
    }
  });
  b.handle('unsendable', async function* () {
    try {
      yield ['a'];
      yield () => {};
    } finally {
      ended++;
    }
  });
  for (const [method, message] of [
    ['refs', /^half of it$/],
    ['unsendable', /could not be cloned/],
  ]) {
    const stream = a.stream(method);
    const { parts, err } = await read(stream);
    assert.deepEqual(parts, [['a']]);
    assert.match(err.message, message);
    assert.equal(err.code, -32603);
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    assert.equal((await outcome(stream.result)).err, err);
  }
  assert.equal(ended, 2);
  a.close();
  b.close();
});

/** A handler whose parts never end, and that tells when it has unwound. */
function endless() {
  const unwound = gate();
  const handler = async function* (_, { signal }) {
    try {
      for (let i = 0; ; i++) yield [i];
    } finally {
      unwound.open(signal.aborted);
    }
  };
  return { handler, unwound };
}

for (const dialect of /** @type {const} */ (['acp', 'lsp', 'mcp'])) {
  test(`${dialect}: a cancel ends a generator where it yields, and its finally runs`, async () => {
    const { a, b } = peerPair(dialect);
    const { handler, unwound } = endless();
    const started = gate();
    b.handle('refs', async function* (params, context) {
      started.open();
      yield* handler(params, context);
    });
    const controller = new AbortController();
    const { signal } = controller;
    const asked = outcome(a.request('refs', {}, { signal }));
    await started.opened;
    controller.abort();
    assert.equal((await asked).err.name, 'AbortError');
    assert.equal(await unwound.opened, true);
    a.close();
    b.close();
  });
}

for (const [dialect, method, key] of /** @type {const} */ ([
  ['acp', '$/cancel_request', 'requestId'],
  ['lsp', '$/cancelRequest', 'id'],
])) {
  test(`${dialect}: a generator of which no line ran when the cancel came never ran`, async () => {
    const { peer, post, said } = scriptedPeer(dialect);
    let hasRun = false;
    peer.handle('refs', async function* () {
      hasRun = true;
      yield ['a'];
    });
    // Both have started when this one runs, and the first part is not taken yet.
    peer.handle('other', () => post({ jsonrpc: '2.0', method, params: { [key]: 1 } }));
    post(request(1, 'refs', ASKS));
    post(request(2, 'other'));
    const { error } = (await said(2)).find(({ id }) => id === 1);
    assert.equal(error.data.outcome, 'unstarted');
    assert.equal(hasRun, false);
    peer.close();
  });
}

test('lsp: whoever leaves a stream cancels its request, once', async () => {
  const pair = peerPair('lsp');
  const { a, b } = pair;
  const { handler, unwound } = endless();
  b.handle('refs', handler);
  const stream = a.stream('refs');
  for await (const [i] of stream) if (i === 3) break;
  assert.equal(await unwound.opened, true);
  const { err } = await outcome(stream.result);
  assert.deepEqual([err.name, err.cause.code], ['AbortError', -32800]);
  assert.deepEqual(await stream.next(), { done: true, value: undefined });
  const cancels = pair.sent('a2b').filter(({ method }) => method === '$/cancelRequest');
  assert.equal(cancels.length, 1);
  assert.equal(b.counters.inFlightIn, 0);
  a.close();
  b.close();
});

test('lsp: a signal ends a stream with its own reason, and one that is aborted sends nothing', async () => {
  const pair = peerPair('lsp');
  const { a, b } = pair;
  const { handler, unwound } = endless();
  b.handle('refs', handler);
  const why = new Error('enough');
  const controller = new AbortController();
  const stream = a.stream('refs', {}, { signal: controller.signal });
  await stream.next();
  controller.abort(why);
  assert.equal((await read(stream)).err, why);
  await unwound.opened;
  const said = pair.sent('a2b').length;
  const none = a.stream('refs', {}, { signal: controller.signal });
  assert.equal((await read(none)).err, why);
  assert.equal(pair.sent('a2b').length, said);
  a.close();
  b.close();
});

test('lsp: the end of the connection ends both sides of a stream', async () => {
  const { a, b } = peerPair('lsp');
  const { handler, unwound } = endless();
  b.handle('refs', handler);
  const stream = a.stream('refs');
  await stream.next();
  b.close();
  assert.equal(await unwound.opened, true);
  // The close cancels what runs, which is answered.
  assert.ok((await read(stream)).err.code);
  a.close();
});

test('lsp: what a generator returns in spite of a cancel is the result', async () => {
  const { peer, post, said } = scriptedPeer('lsp');
  // Where it waits is for the test to know: in a `yield` it would end.
  let waits = gate();
  const cancelled = (signal) => {
    waits.open();
    return fired(signal);
  };
  peer.handle('refs', async function* (_, { signal }) {
    yield ['a'];
    await cancelled(signal);
    return ['rest'];
  });
  post(request(1, 'refs', ASKS));
  await waits.opened;
  post({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 1 } });
  assert.deepEqual((await said(2))[1].result, ['rest']);
  peer.handle('quiet', async function* (_, { signal }) {
    yield ['a'];
    await cancelled(signal);
  });
  waits = gate();
  post(request(2, 'quiet', ASKS));
  await waits.opened;
  post({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 2 } });
  const { error } = (await said(4))[3];
  assert.deepEqual([error.code, error.data.outcome], [-32800, 'finished']);
  peer.close();
});

test('lsp: a cancelled generator is answered for when its finally is over', async () => {
  const { peer, post, said, quiet } = scriptedPeer('lsp');
  const released = gate();
  peer.handle('refs', async function* () {
    try {
      for (;;) yield ['a'];
    } finally {
      released.reach();
      await released.opened;
    }
  });
  post(request(1, 'refs', ASKS));
  await said(1);
  post({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 1 } });
  await released.reached;
  const answers = (heard) => heard.filter(({ id }) => id === 1);
  assert.deepEqual(answers(await quiet()), []);
  assert.equal(peer.counters.inFlightIn, 1);
  const { length } = await quiet();
  released.open();
  assert.equal(answers(await said(length + 1))[0].error.code, -32800);
  assert.equal(peer.counters.inFlightIn, 0);
  peer.close();
});

test('lsp: parts that nobody reads are bounded', async () => {
  const { peer, heard, post } = scriptedPeer('lsp');
  const stream = peer.stream('refs');
  const flood = part('x'.repeat(2 ** 20), 'abp-bridge.partial.1');
  // The request goes out when the core is loaded.
  peer.handle('ready', () => true);
  post(request('r', 'ready'));
  while (heard.length < 2) await new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < 70; i++) post(flood);
  assert.deepEqual(
    heard.filter(({ method }) => method === '$/cancelRequest').map(({ params }) => params),
    [{ id: 1 }],
  );
  post({ jsonrpc: '2.0', id: 1, error: { code: -32800, message: 'cancelled' } });
  assert.match((await outcome(stream.result)).err.message, /were not read/);
  await stream.return();
  peer.close();
});

test('lsp: a generator waits until the other side of a stream of bytes has read', async () => {
  const input = new PassThrough();
  const output = new PassThrough({ highWaterMark: 1024 });
  const peer = createPeer(headerTransport({ readable: input, writable: output }), {
    dialect: 'lsp',
  });
  const unwound = gate();
  let made = 0;
  peer.handle('refs', async function* () {
    try {
      for (;;) {
        made++;
        yield ['x'.repeat(2 ** 16)];
      }
    } finally {
      unwound.open();
    }
  });
  const send = (message) => {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    input.write(`Content-Length: ${text.length}\r\n\r\n${text}`);
  };
  send({ id: 1, method: 'refs', params: ASKS });
  // It makes parts as long as there is room, and it has turns enough to make many more.
  while (made === 0) await new Promise((resolve) => setImmediate(resolve));
  for (let turn = 0; turn < 1000; turn++) await new Promise((resolve) => setImmediate(resolve));
  const before = made;
  assert.ok(before < 10, `${before} parts of 64 KiB`);
  output.on('data', () => {});
  while (made < 4 * before) await new Promise((resolve) => setImmediate(resolve));
  send({ method: '$/cancelRequest', params: { id: 1 } });
  await unwound.opened;
  peer.close();
});

test('mcp: a tool that streams is joined', async () => {
  const { a, b } = peerPair('mcp');
  b.handle('tools/call', async function* (_, { progress }) {
    progress({ progress: 1 });
    yield { content: [{ type: 'text', text: 'a' }] };
    yield { content: [{ type: 'text', text: 'b' }] };
  });
  const reports = [];
  const onProgress = ({ progress }) => reports.push(progress);
  const { content } = await a.request('tools/call', { name: 't' }, { onProgress });
  assert.deepEqual(
    content.map(({ text }) => text),
    ['a', 'b'],
  );
  assert.deepEqual(reports, [1]);
  a.close();
  b.close();
});
