// The beginning and the end of a peer: while its core loads, as it closes, and when the core fails.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { RpcError, createPeer } from '../src/index.js';
import { instanceWith, trap } from '../../../tests/support/trap.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';
import { DIALECTS, request, aTurn, closeBoth } from './support/dialects.js';

for (const dialect of DIALECTS) {
  test(`${dialect}: close rejects pending requests and aborts handlers on both sides`, async () => {
    const pair = peerPair(dialect);
    const { a, b } = pair;
    const [started, asked, theirs, ours] = [gate(), gate(), gate(), gate()];
    b.handle('slow', async (_, { signal }) => {
      started.open();
      theirs.open(await fired(signal));
    });
    a.handle('ask', async (_, { signal }) => {
      asked.open();
      ours.open(await fired(signal));
    });
    const pending = outcome(a.request('slow'));
    const theirPending = outcome(b.request('ask'));
    await Promise.all([started.opened, asked.opened]);
    a.close();
    a.close();
    assert.equal((await pending).err.message, 'Connection closed');
    assert.equal((await theirs.opened).name, 'AbortError');
    assert.equal((await ours.opened).name, 'AbortError');
    assert.equal((await theirPending).err.code, dialect === 'mcp' ? -32000 : -32800);
    await a.closed;
    await b.closed;
    assert.equal(a.counters.inFlightOut, 0);
  });
}

test('the end of a connection: callers, handlers and `closed` receive its reason, and nothing is sent or read', async () => {
  for (const dialect of DIALECTS) {
    const code = dialect === 'mcp' ? -32000 : -32097;
    for (const closedBy of ['peer', 'self']) {
      const { peer, heard, post, said, transport } = scriptedPeer(dialect);
      const started = gate();
      const aborted = gate();
      peer.handle('slow', async (_, { signal }) => {
        started.open();
        aborted.open(await fired(signal));
      });
      const pending = outcome(peer.request('never'));
      await said(1);
      post(request('s'));
      await started.opened;
      const cause = closedBy === 'peer' ? new Error('the cable was cut') : undefined;
      if (cause) transport.onClose(cause);
      else peer.close();
      const reason = await aborted.opened;
      assert.equal(reason.name, 'AbortError');
      const errors = [(await pending).err, await peer.closed, reason.cause];
      for (const error of errors) {
        assert.ok(error instanceof RpcError);
        assert.deepEqual([error.code, error.cause], [code, cause]);
      }
      const [mine, ...others] = errors.map(({ data }) => data);
      assert.deepEqual(mine, { closedBy, outcome: 'unknown' });
      assert.deepEqual(others, [{ closedBy }, { closedBy }]);
      const late = (await outcome(peer.request('late'))).err;
      assert.deepEqual([late.code, late.data], [code, { closedBy, outcome: 'unstarted' }]);
      assert.throws(() => peer.notify('late'), { code, message: 'Connection closed' });
      assert.equal(transport.closed, true);
      const { length } = heard;
      post(request('later'));
      await aTurn();
      assert.equal(heard.length, length);
    }
  }
});

test('a notification that cannot be sent throws while the core loads, and others keep their order', async () => {
  const { peer, heard, said } = scriptedPeer('mcp');
  peer.handle('x', () => 1);
  const transport = { post: () => assert.fail('posted'), onMessage() {}, close() {} };
  const unsent = new Error('could not be cloned');
  const other = createPeer(
    {
      ...transport,
      post() {
        throw unsent;
      },
    },
    { dialect: 'mcp' },
  );
  assert.throws(() => other.notify('note', () => {}), unsent);
  other.close();
  assert.throws(() => other.notify('late'), /Connection closed/);
  const closed = createPeer(transport, { dialect: 'mcp' });
  closed.close();
  assert.throws(() => closed.notify('late'), /Connection closed/);
  assert.equal((await outcome(closed.request('late'))).err.message, 'Connection closed');
  await closed.closed;
  const first = outcome(peer.request('first'));
  peer.notify('second');
  await said(2);
  assert.deepEqual(
    heard.map(({ method }) => method),
    ['first', 'second'],
  );
  peer.close();
  await first;
});

for (const [waits, said] of /** @type {const} */ ([
  [[], []],
  [['note'], ['note']],
])) {
  test(`a peer closed while the core loads gives its transport back ${waits.length ? 'after what it has notified' : 'at once'}`, async () => {
    const events = [];
    const transport = {
      post: ({ method }) => void events.push(method),
      onMessage() {},
      close: () => void events.push('closed'),
    };
    const peer = createPeer(transport, { dialect: 'mcp' });
    const asked = outcome(peer.request('ask'));
    for (const method of waits) peer.notify(method);
    peer.close();
    peer.close();
    if (!waits.length) assert.deepEqual(events, ['closed']);
    const { err } = await asked;
    assert.deepEqual([err.code, err.data], [-32000, { closedBy: 'self', outcome: 'unstarted' }]);
    await peer.closed;
    assert.deepEqual(events, [...said, 'closed']);
  });
}

test('a waiting notification that cannot be sent is traced, and the peer goes on', async () => {
  const events = [];
  const sent = [];
  const transport = {
    post(message) {
      if (message.params?.bad) throw new Error('could not be cloned');
      sent.push(message.method);
    },
    onMessage() {},
    close() {},
  };
  const trace = (event) => events.push(event);
  const peer = createPeer(transport, { dialect: 'lsp', trace });
  const pending = outcome(peer.request('first'));
  peer.notify('bad', { bad: true });
  peer.notify('good');
  while (sent.length < 2) await aTurn();
  assert.deepEqual(sent, ['first', 'good']);
  assert.deepEqual(
    events.map(({ type, message }) => [type, message.method]),
    [
      ['sent', 'first'],
      ['unsent', 'bad'],
      ['sent', 'good'],
    ],
  );
  peer.close();
  await pending;
});

test('a notification after the end is not sent when the core has loaded', async () => {
  const script = `
    import { createPeer } from '${new URL('../src/index.js', import.meta.url)}';
    const events = [];
    const transport = { post: () => events.push('posted'), onMessage() {}, close: () => events.push('closed') };
    const peer = createPeer(transport, { dialect: 'lsp' });
    transport.onClose();
    peer.notify('late');
    await peer.closed;
    await new Promise((resolve) => setImmediate(resolve));
    console.log(events.join());`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--input-type=module',
    '-e',
    script,
  ]);
  assert.equal(stdout.trim(), 'closed');
});

test('a trap of the core ends its peer; other peers go on, and new ones get another instance', async () => {
  const one = peerPair('acp');
  const other = peerPair('acp');
  for (const { b } of [one, other]) b.handle('echo', (params) => params);
  assert.equal(await other.a.request('echo', 1), 1);
  await one.a.request('echo', 1);
  const aborted = gate();
  const started = gate();
  one.b.handle('slow', async (_, { signal }) => {
    started.open();
    aborted.open(await fired(signal));
  });
  void outcome(one.a.request('slow'));
  await started.opened;
  const pending = outcome(one.b.request('never'));
  const { instance, said } = trap('malformed');
  one.toB('no message');
  await said;
  assert.equal((await pending).err.code, -32603);
  assert.equal((await aborted.opened).name, 'AbortError');
  assert.equal(await other.a.request('echo', 2), 2);
  const fresh = peerPair('acp');
  assert.equal((await outcome(fresh.a.request('echo', 3))).err.code, -32601);
  closeBoth(fresh);
  assert.notEqual(instanceWith('malformed'), instance);
  closeBoth(one);
  closeBoth(other);
});

test('a request rejects if the core traps while it is made', async () => {
  const { peer, quiet } = scriptedPeer('acp');
  await quiet();
  trap('request', 'malformed');
  assert.equal((await outcome(peer.request('never'))).err.code, -32603);
});

test('peers that have ended free their memory', async () => {
  const session = async () => {
    const pair = peerPair('acp');
    pair.b.handle('echo', (params) => params);
    assert.equal(await pair.a.request('echo', 1), 1);
    closeBoth(pair);
  };
  const memory = () => instanceWith('malformed').x.memory.buffer.byteLength;
  for (let i = 0; i < 50; i++) await session();
  const before = memory();
  for (let i = 0; i < 1000; i++) await session();
  assert.equal(memory(), before);
});
