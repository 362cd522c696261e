/** Our peer and vscode-jsonrpc, each asking the other. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import {
  CancellationTokenSource,
  PortMessageReader,
  PortMessageWriter,
  ProgressType,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
  createMessageConnection,
} from 'vscode-jsonrpc/node';
import { createPeer, headerTransport } from '../../src/index.js';
import { portTransport } from 'abp-bridge/driver';
import { fired, gate, outcome, recording } from '../support/rpc.js';

const CANCEL = '$/cancelRequest';
const CANCELLED = -32800;

function connected(options) {
  const log = [];
  const { port1, port2 } = new MessageChannel();
  const theirs = createMessageConnection(
    new PortMessageReader(port2),
    new PortMessageWriter(port2),
  );
  const peer = createPeer(recording(portTransport(port1), log, 'ours', 'theirs'), {
    dialect: 'lsp',
    ...options,
  });
  const close = () => {
    peer.close();
    theirs.dispose();
    port2.close();
  };
  return { peer, theirs, log, close, port: port2 };
}

const requested = (token) => new Promise((resolve) => token.onCancellationRequested(resolve));
const methods = (log) =>
  log.map(({ dir, msg }) => `${dir} ${msg.method ?? msg.error?.code ?? 'result'}`);

test('requests succeed both ways, with id 0 and our 1 in use at once', async () => {
  const { peer, theirs, close } = connected();
  theirs.onRequest('echo', (params) => params);
  theirs.listen();
  peer.handle('echo', (params) => params);
  const answers = await Promise.all([
    peer.request('echo', { x: 1 }),
    theirs.sendRequest('echo', { y: 2 }),
    theirs.sendRequest('echo', { z: 3 }),
  ]);
  assert.deepEqual(answers, [{ x: 1 }, { y: 2 }, { z: 3 }]);
  const { err } = await outcome(theirs.sendRequest('none'));
  assert.equal(err.code, -32601);
  close();
});

test('over byte streams, by its own reader and writer: requests and cancels both ways, and the end', async () => {
  const [there, back] = [new PassThrough(), new PassThrough()];
  const theirs = createMessageConnection(
    new StreamMessageReader(there),
    new StreamMessageWriter(back),
  );
  const peer = createPeer(headerTransport({ readable: back, writable: there }), { dialect: 'lsp' });
  for (const side of [
    (name, work) => peer.handle(name, (params, { signal }) => work(params, fired(signal))),
    (name, work) => theirs.onRequest(name, (params, token) => work(params, requested(token))),
  ]) {
    side('echo', (params) => params);
    side('hang', async (_params, cancelled) => {
      await cancelled;
      throw new ResponseError(CANCELLED, 'stopped');
    });
  }
  theirs.listen();
  const text = 'é😀'.repeat(50_000);
  assert.deepEqual(await peer.request('echo', { text }), { text });
  assert.deepEqual(await theirs.sendRequest('echo', { text }), { text });
  const controller = new AbortController();
  const ours = outcome(peer.request('hang', {}, { signal: controller.signal }));
  const source = new CancellationTokenSource();
  const asked = outcome(theirs.sendRequest('hang', {}, source.token));
  controller.abort();
  source.cancel();
  assert.equal((await ours).err.name, 'AbortError');
  assert.equal((await asked).err.code, CANCELLED);
  const closed = new Promise((resolve) => theirs.onClose(resolve));
  const pending = outcome(peer.request('hang'));
  peer.close();
  assert.equal((await pending).err.code, -32097);
  await closed;
  theirs.dispose();
});

test('they obey our cancel by throwing: an AbortError with their error as its cause', async () => {
  const { peer, theirs, log, close } = connected();
  const started = gate();
  theirs.onRequest('slow', async (_, token) => {
    started.open();
    await requested(token);
    throw new ResponseError(CANCELLED, 'Request cancelled', { retry: false });
  });
  theirs.listen();
  const controller = new AbortController();
  const slow = outcome(peer.request('slow', {}, { signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  const { err } = await slow;
  assert.deepEqual(
    [err.name, err.cause.code, err.cause.data],
    ['AbortError', CANCELLED, { retry: false }],
  );
  assert.deepEqual(methods(log), ['ours slow', `ours ${CANCEL}`, `theirs ${CANCELLED}`]);
  close();
});

test('they ignore our cancel: the result resolves', async () => {
  const { peer, theirs, close } = connected();
  const started = gate();
  theirs.onRequest('deaf', async (_, token) => {
    started.open();
    await requested(token);
    return 'done';
  });
  theirs.listen();
  const controller = new AbortController();
  const deaf = peer.request('deaf', {}, { signal: controller.signal });
  await started.opened;
  controller.abort();
  assert.equal(await deaf, 'done');
  close();
});

test('a request and its cancel that they read together: our caller still gets one answer', async () => {
  const { peer, theirs, close } = connected();
  theirs.onRequest('slow', async (_, token) => {
    if (!token.isCancellationRequested) await requested(token);
    return new ResponseError(CANCELLED, 'before it began');
  });
  theirs.listen();
  const controller = new AbortController();
  const slow = outcome(peer.request('slow', {}, { signal: controller.signal }));
  controller.abort();
  const { err } = await slow;
  // A plain abort is no error of the caller's own.
  assert.deepEqual([err.name, err.code], ['AbortError', -32800]);
  close();
});

test('already aborted, and aborted after completion, nothing is sent', async () => {
  const { peer, theirs, log, close } = connected();
  theirs.onRequest('echo', (params) => params);
  theirs.listen();
  const { err } = await outcome(peer.request('echo', {}, { signal: AbortSignal.abort('no') }));
  assert.deepEqual([err.name, err.message], ['AbortError', 'no']);
  const controller = new AbortController();
  await peer.request('echo', {}, { signal: controller.signal });
  controller.abort();
  await peer.request('echo', {});
  assert.deepEqual(methods(log), ['ours echo', 'theirs result', 'ours echo', 'theirs result']);
  close();
});

test('our handler obeys their cancel: whatever it throws, they hear -32800', async () => {
  const { peer, theirs, close } = connected();
  theirs.listen();
  for (const thrown of [(reason) => reason, () => new Error('anything')]) {
    const started = gate();
    peer.handle('slow', async (_, { signal }) => {
      started.open();
      throw thrown(await fired(signal));
    });
    const source = new CancellationTokenSource();
    const slow = outcome(theirs.sendRequest('slow', {}, source.token));
    await started.opened;
    source.cancel();
    const { err } = await slow;
    assert.deepEqual([err.code, err.message], [CANCELLED, 'Request cancelled']);
  }
  close();
});

test('our handler returns a partial result in spite of their cancel', async () => {
  const { peer, theirs, close } = connected();
  theirs.listen();
  const started = gate();
  peer.handle('slow', async (_, { signal }) => {
    started.open();
    await fired(signal);
    return [1, 2];
  });
  const source = new CancellationTokenSource();
  const slow = theirs.sendRequest('slow', {}, source.token);
  await started.opened;
  source.cancel();
  assert.deepEqual(await slow, [1, 2]);
  close();
});

test('their cancel finds a request that waits for its turn: the handler never runs', async () => {
  const { peer, theirs, close } = connected({ limits: { maxConcurrent: 1 } });
  theirs.listen();
  const [started, release] = [gate(), gate()];
  let ran = false;
  peer.handle('first', async () => {
    started.open();
    await release.opened;
  });
  peer.handle('second', () => (ran = true));
  const first = theirs.sendRequest('first');
  await started.opened;
  const source = new CancellationTokenSource();
  const second = outcome(theirs.sendRequest('second', {}, source.token));
  source.cancel();
  assert.equal((await second).err.code, CANCELLED);
  release.open();
  assert.equal(await first, null);
  assert.equal(ran, false);
  close();
});

test('a handler that cancels itself answers -32800 unasked', async () => {
  const { peer, theirs, close } = connected();
  theirs.listen();
  peer.handle('limited', () => {
    throw new DOMException('out of context', 'AbortError');
  });
  const { err } = await outcome(theirs.sendRequest('limited'));
  assert.equal(err.code, CANCELLED);
  close();
});

test('their cancel reaches what our handler asked of them, and that is answered first', async () => {
  const { peer, theirs, log, close } = connected();
  const asked = gate();
  theirs.onRequest('inner', async (_, token) => {
    asked.open();
    await requested(token);
    return new ResponseError(CANCELLED, 'Request cancelled');
  });
  theirs.listen();
  peer.handle('outer', (_, { request }) => request('inner', { q: 1 }));
  const source = new CancellationTokenSource();
  const outer = outcome(theirs.sendRequest('outer', {}, source.token));
  await asked.opened;
  source.cancel();
  assert.equal((await outer).err.code, CANCELLED);
  assert.deepEqual(methods(log), [
    'theirs outer',
    'ours inner',
    `theirs ${CANCEL}`,
    `ours ${CANCEL}`,
    `theirs ${CANCELLED}`,
    `ours ${CANCELLED}`,
  ]);
  close();
});

test('progress by work-done tokens, both ways', async () => {
  const { peer, theirs, close } = connected();
  theirs.onRequest('index', async ({ workDoneToken }) => {
    await theirs.sendNotification('$/progress', { token: workDoneToken, value: { kind: 'begin' } });
    await theirs.sendNotification('$/progress', { token: workDoneToken, value: { kind: 'end' } });
    return 'indexed';
  });
  theirs.listen();
  const seen = [];
  const onProgress = ({ kind }) => seen.push(kind);
  assert.equal(await peer.request('index', { deep: true }, { onProgress }), 'indexed');
  assert.deepEqual(seen, ['begin', 'end']);
  const reports = [];
  theirs.onNotification('$/progress', (report) => reports.push(report));
  peer.handle('index', (_, { progress }) => progress({ kind: 'report' }));
  await theirs.sendRequest('index', { workDoneToken: 'w' });
  assert.deepEqual(reports, [{ token: 'w', value: { kind: 'report' } }]);
  close();
});

test('the connection closes in the middle: our promises reject, our handlers are aborted', async () => {
  const { peer, theirs, port } = connected();
  const [asked, aborted] = [gate(), gate()];
  theirs.onRequest('never', (_) => theirs.sendRequest('ask').catch(() => {}));
  theirs.listen();
  peer.handle('ask', async (_, { signal }) => {
    asked.open();
    aborted.open(await fired(signal));
  });
  const never = outcome(peer.request('never', {}));
  await asked.opened;
  port.close();
  assert.equal((await never).err.message, 'Connection closed');
  assert.equal((await aborted.opened).name, 'AbortError');
  await peer.closed;
  theirs.dispose();
});

test('our close answers what they asked and cancels what we did', async () => {
  const { peer, theirs } = connected();
  const [started, cancelled] = [gate(), gate()];
  theirs.onRequest('slow', async (_, token) => {
    started.open();
    cancelled.open(await requested(token));
  });
  theirs.listen();
  const asked = gate();
  peer.handle('ask', (_, { signal }) => {
    asked.open();
    return fired(signal);
  });
  const theirsPending = outcome(theirs.sendRequest('ask'));
  const oursPending = outcome(peer.request('slow', {}));
  await Promise.all([started.opened, asked.opened]);
  peer.close();
  assert.equal((await oursPending).err.message, 'Connection closed');
  assert.equal((await theirsPending).err.code, CANCELLED);
  await cancelled.opened;
  theirs.dispose();
});

test('partial results: they read our generator, and we their progress', async () => {
  const { peer, theirs, close } = connected();
  const parts = new ProgressType();
  theirs.onRequest('refs', async ({ partialResultToken }) => {
    await theirs.sendProgress(parts, partialResultToken, ['a', 'b']);
    await theirs.sendProgress(parts, partialResultToken, ['c']);
    return [];
  });
  theirs.listen();
  const unwound = gate();
  peer.handle('refs', async function* ({ endless }) {
    try {
      do yield ['a', 'b'];
      while (endless);
      yield ['c'];
    } finally {
      unwound.open();
    }
  });
  const read = [];
  const stream = peer.stream('refs');
  for await (const part of stream) read.push(part);
  assert.deepEqual([read, await stream.result], [[['a', 'b'], ['c']], []]);
  const seen = [];
  const listening = theirs.onProgress(parts, 'theirs', (part) => seen.push(part));
  assert.equal(await theirs.sendRequest('refs', { partialResultToken: 'theirs' }), null);
  assert.deepEqual(seen, read);
  listening.dispose();
  assert.deepEqual(await theirs.sendRequest('refs', {}), ['a', 'b', 'c']);
  const source = new CancellationTokenSource();
  theirs.onProgress(parts, 'more', () => source.cancel());
  const params = { partialResultToken: 'more', endless: true };
  const { err } = await outcome(theirs.sendRequest('refs', params, source.token));
  assert.equal(err.code, CANCELLED);
  await unwound.opened;
  close();
});

test('their client stops our server by the token of a request, and by one made on its behalf', async () => {
  const { peer, theirs, close } = connected();
  const created = gate();
  const began = gate();
  const stopped = [];
  theirs.onRequest('window/workDoneProgress/create', () => {});
  theirs.listen();
  peer.handle('workspace/executeCommand', async ({ command, workDoneToken }, context) => {
    if (workDoneToken === undefined) {
      await context.request('window/workDoneProgress/create', { token: command });
      created.open();
    } else began.open();
    const reason = await fired(context.signal);
    stopped.push(command);
    throw reason;
  });
  const run = (params) => outcome(theirs.sendRequest('workspace/executeCommand', params));
  const [first, second] = [run({ command: 'a', workDoneToken: 7 }), run({ command: 'b' })];
  await Promise.all([created.opened, began.opened]);
  for (const token of ['other', 'b', 7])
    await theirs.sendNotification('window/workDoneProgress/cancel', { token });
  for (const { err } of await Promise.all([first, second])) assert.equal(err.code, CANCELLED);
  assert.deepEqual(stopped.toSorted(), ['a', 'b']);
  close();
});

test('what their user answers after the cancel is not acted on: window/showMessageRequest', async () => {
  const { peer, theirs, close } = connected();
  const asked = gate();
  const user = gate();
  const acts = [];
  theirs.onRequest('window/showMessageRequest', async ({ actions }) => {
    asked.open();
    await user.opened;
    return actions[0];
  });
  theirs.listen();
  peer.handle('workspace/executeCommand', async (_params, { request }) => {
    const actions = [{ title: 'Delete them' }];
    const answer = await request('window/showMessageRequest', { type: 3, message: '?', actions });
    acts.push(answer.title);
  });
  const token = new CancellationTokenSource();
  const run = outcome(theirs.sendRequest('workspace/executeCommand', {}, token.token));
  await asked.opened;
  token.cancel();
  await new Promise((resolve) => setImmediate(resolve));
  user.open();
  assert.equal((await run).err.code, CANCELLED);
  assert.deepEqual(acts, []);
  close();
});
