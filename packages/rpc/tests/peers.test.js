/** JSON-RPC peers: what a program sees, and what odd and hostile messages come to. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { acpStream } from '../src/adapters/acp.js';
import { mcpTransport } from '../src/adapters/mcp.js';
import {
  RpcError,
  createPeer,
  headerTransport,
  hostChannel,
  lineTransport,
  portTransport,
  transfer,
  windowChannel,
} from '../src/index.js';
import { useClock } from '../../../tests/support/clock.js';
import { instanceWith, trap } from '../../../tests/support/trap.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';

const DIALECTS = /** @type {const} */ (['acp', 'lsp', 'mcp']);
const ANSWERING = /** @type {const} */ (['acp', 'lsp']);
const CANCEL = {
  acp: ['$/cancel_request', 'requestId'],
  lsp: ['$/cancelRequest', 'id'],
  mcp: ['notifications/cancelled', 'requestId'],
};
const request = (id, method = 'slow', params = {}) => ({ jsonrpc: '2.0', id, method, params });
const cancelOf = (dialect, id, more) => {
  const [method, key] = CANCEL[dialect];
  return { jsonrpc: '2.0', method, params: { [key]: id, ...more } };
};
/** Lets the event loop go round. */
const aTurn = () => new Promise((resolve) => setImmediate(resolve));
const closeBoth = ({ a, b }) => {
  a.close();
  b.close();
};

for (const dialect of DIALECTS) {
  test(`${dialect}: requests, errors with code and data, notifications, a fallback`, async () => {
    const pair = peerPair(dialect, { b: { onRequest: (params, { method }) => [method, params] } });
    const { a, b } = pair;
    b.handle('fails', () => {
      throw new RpcError(-32050, 'no luck', { tries: 3 });
    });
    b.handle('breaks', () => {
      throw new TypeError('x is not a function');
    });
    const noted = gate();
    b.onNotification('*', (params, { method }) => noted.open([method, params]));
    a.notify('log/it', { level: 1 });
    assert.deepEqual(await noted.opened, ['log/it', { level: 1 }]);
    assert.deepEqual(await a.request('any/thing', { x: 1 }), ['any/thing', { x: 1 }]);
    const { err } = await outcome(a.request('fails'));
    assert.ok(err instanceof RpcError);
    const data = { tries: 3, ...(dialect !== 'mcp' && { outcome: 'failed' }) };
    assert.deepEqual([err.code, err.message, err.data], [-32050, 'no luck', data]);
    const broken = await outcome(a.request('breaks'));
    assert.deepEqual([broken.err.code, broken.err.message], [-32603, 'x is not a function']);
    for (const [thrown, words] of [
      [{ seat: 7 }, '{"seat":7}'],
      [undefined, 'The operation failed'],
      [new AggregateError([new Error('a'), 'b'], 'all'), 'all: a; b'],
    ]) {
      b.handle('throws', () => Promise.reject(thrown));
      assert.equal((await outcome(a.request('throws'))).err.message, words);
    }
    closeBoth(pair);
  });

  test(`${dialect}: a request cancelled in the same read never starts`, async () => {
    const { peer, heard, post, quiet } = scriptedPeer(dialect);
    let ran = false;
    peer.handle('slow', () => (ran = true));
    post(request(7), cancelOf(dialect, 7));
    await quiet();
    assert.equal(ran, false);
    const code = dialect === 'mcp' ? [] : [-32800];
    assert.deepEqual(
      heard.map(({ error }) => error.code),
      code,
    );
    assert.equal(peer.counters.inFlightIn, 0);
    peer.close();
  });

  test(`${dialect}: one cancel goes out however often signal and clock ask, and none after the answer`, async (t) => {
    const clock = useClock(t);
    const pair = peerPair(dialect);
    const { a, b, sent } = pair;
    const started = gate();
    b.handle('slow', async (_, { signal }) => {
      started.open();
      throw await fired(signal);
    });
    b.handle('quick', () => 1);
    const controller = new AbortController();
    const { signal } = controller;
    const slow = outcome(a.request('slow', {}, { signal, timeout: 50, maxTotalTimeout: 60 }));
    await started.opened;
    controller.abort('enough');
    clock.advance(60);
    const { err } = await slow;
    assert.deepEqual([err.name, err.message], ['AbortError', 'enough']);
    await a.request('quick', {}, { signal: AbortSignal.any([]) });
    const cancels = sent('a2b').filter(({ method }) => method === CANCEL[dialect][0]);
    assert.equal(cancels.length, 1);
    closeBoth(pair);
  });

  test(`${dialect}: a timeout cancels the request and rejects with a TimeoutError`, async () => {
    const pair = peerPair(dialect);
    const { a, b } = pair;
    const aborted = gate();
    b.handle('slow', async (_, { signal }) => {
      aborted.open(await fired(signal));
      throw new Error('unwound');
    });
    const { err } = await outcome(a.request('slow', {}, { timeout: 20 }));
    // MCP answers nothing to what was cancelled.
    const data = { timeout: 20, outcome: dialect === 'mcp' ? 'unknown' : 'failed' };
    assert.deepEqual([err.name, err.code, err.data], ['TimeoutError', -32001, data]);
    assert.equal(err.cause?.code, dialect === 'mcp' ? undefined : -32800);
    assert.equal((await aborted.opened).name, 'AbortError');
    closeBoth(pair);
  });

  test(`${dialect}: an answer does not help a request whose timeout has passed`, async () => {
    // MCP's are not answered: that is waited for no longer than this.
    const limits = dialect === 'mcp' ? { grace: 10 } : {};
    const pair = peerPair(dialect, { a: { limits } });
    const { a, b } = pair;
    b.handle('slow', (_, { signal }) => fired(signal).then(() => ['nothing found']));
    const options = { timeout: 10, maxTotalTimeout: 60_000, wait: true };
    const { err } = await outcome(a.request('slow', {}, options));
    assert.deepEqual([err.name, err.code], ['TimeoutError', -32001]);
    closeBoth(pair);
  });

  test(`${dialect}: cancelling a request cancels the tree below it, three levels deep`, async () => {
    const pair = peerPair(dialect);
    const { a, b, sent } = pair;
    const deepest = gate();
    const order = [];
    const pass = (name) => async (_, context) => {
      context.request('next', { from: name }).catch(() => {});
      order.push(name, await fired(context.signal).then((reason) => reason.message));
      throw new Error('unwound');
    };
    b.handle('outer', pass('outer'));
    a.handle('next', pass('middle'));
    b.handle('next', async (_, { signal }) => {
      deepest.open();
      await fired(signal);
      throw new Error('unwound');
    });
    const controller = new AbortController();
    const outer = outcome(a.request('outer', {}, { signal: controller.signal }));
    await deepest.opened;
    controller.abort('all of it');
    assert.equal((await outer).err.name, 'AbortError');
    if (dialect !== 'mcp') {
      // Every answer follows those to what was asked on its behalf.
      const ended = pair.log.filter(({ msg }) => msg.error).map(({ dir, msg }) => [dir, msg.id]);
      assert.deepEqual(ended, [
        ['b2a', 2],
        ['a2b', 1],
        ['b2a', 1],
      ]);
    } else {
      while (b.counters.inFlightIn + a.counters.inFlightIn) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.deepEqual(order, ['outer', 'all of it', 'middle', 'all of it']);
    }
    const cancels = [...sent('a2b'), ...sent('b2a')].filter(
      ({ method }) => method === CANCEL[dialect][0],
    );
    assert.equal(cancels.length, 3);
    closeBoth(pair);
  });

  test(`${dialect}: what a handler asked for and did not wait for goes on after it returned`, async () => {
    const pair = peerPair(dialect);
    const { a, b, sent } = pair;
    const [asked, release] = [gate(), gate()];
    let shown;
    b.handle('quick', (_, context) => {
      shown = context.request('show');
      return { done: true };
    });
    a.handle('show', async () => {
      asked.open();
      await release.opened;
      return { seen: true };
    });
    assert.deepEqual(await a.request('quick'), { done: true });
    await asked.opened;
    release.open();
    assert.deepEqual(await shown, { seen: true });
    assert.equal(sent('b2a').filter(({ method }) => method === CANCEL[dialect][0]).length, 0);
    closeBoth(pair);
  });

  test(`${dialect}: after its signal fired, a handler's context makes no requests`, async () => {
    const pair = peerPair(dialect);
    const { a, b, sent } = pair;
    const [started, late] = [gate(), gate()];
    b.handle('slow', async (_, { signal, request: ask }) => {
      started.open();
      await fired(signal);
      late.open(outcome(ask('clean/up')));
      return {};
    });
    const controller = new AbortController();
    const slow = outcome(a.request('slow', {}, { signal: controller.signal }));
    await started.opened;
    controller.abort();
    assert.equal((await late.opened).err.name, 'AbortError');
    await slow;
    assert.ok(!sent('b2a').some(({ method }) => method === 'clean/up'));
    closeBoth(pair);
  });

  test(`${dialect}: close rejects what is pending, aborts handlers and tells the other side`, async () => {
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
    assert.equal((await outcome(a.request('slow'))).err.message, 'Connection closed');
    assert.throws(() => a.notify('x'), /Connection closed/);
    assert.equal(a.counters.inFlightOut, 0);
  });

  test(`${dialect}: a lost transport rejects what is pending and aborts handlers`, async () => {
    const { peer, transport, post, said } = scriptedPeer(dialect);
    const [started, aborted] = [gate(), gate()];
    peer.handle('slow', async (_, { signal }) => {
      started.open();
      aborted.open(await fired(signal));
    });
    const pending = outcome(peer.request('never'));
    post(request('s'));
    await started.opened;
    await said(1);
    transport.onClose();
    assert.equal((await pending).err.message, 'Connection closed');
    await aborted.opened;
    await peer.closed;
    assert.equal(transport.closed, true);
    post(request('later'));
    assert.equal((await said(1)).length, 1);
  });

  test(`${dialect}: the same id twice: the second is refused, the first untouched`, async () => {
    const { peer, post, quiet, said } = scriptedPeer(dialect);
    const release = gate();
    let runs = 0;
    peer.handle('slow', async () => {
      runs++;
      await release.opened;
      return { first: true };
    });
    post(request('same'), request('same'));
    const heard = await quiet();
    assert.equal(runs, 1);
    assert.deepEqual([heard[0].id, heard[0].error.code], ['same', -32600]);
    release.open();
    assert.deepEqual((await said(2))[1], { jsonrpc: '2.0', id: 'same', result: { first: true } });
    post(request('same'));
    assert.deepEqual((await said(3))[2].result, { first: true });
    peer.close();
  });

  test(`${dialect}: a handler that returns what is no value has failed`, async () => {
    const { peer, heard, post, said } = scriptedPeer(dialect);
    peer.handle('function', () => () => {});
    peer.handle('symbol', () => Symbol('s'));
    post(request(1, 'function'), request(2, 'symbol'));
    await said(2);
    assert.deepEqual(
      heard.map(({ id, error }) => [id, error.code, error.message]),
      [
        [1, -32603, 'A function cannot be a result'],
        [2, -32603, 'A symbol cannot be a result'],
      ],
    );
    peer.close();
  });

  test(`${dialect}: ids are told apart by type and value`, async () => {
    const { peer, post, quiet } = scriptedPeer(dialect);
    const aborted = [];
    peer.handle('slow', async (_, { id, signal }) => {
      await fired(signal);
      aborted.push(id);
      return {};
    });
    const ids = [7, '7', 0, '', '0', -3, 2 ** 53 - 1, 4294967296, 'null', 'ключ'];
    if (dialect !== 'mcp') ids.push(1.5, '1.5');
    if (dialect === 'acp') ids.push(null);
    post(...ids.map((id) => request(id)));
    await quiet();
    assert.equal(peer.counters.inFlightIn, ids.length);
    const expected = [];
    for (const id of ids) {
      post(cancelOf(dialect, id));
      await quiet();
      expected.push(id);
      assert.deepEqual(aborted, expected);
    }
    peer.close();
  });

  test(`${dialect}: ids that cannot be kept apart are refused, and those it does not know are dropped`, async () => {
    const { peer, heard, post, quiet } = scriptedPeer(dialect);
    let runs = 0;
    peer.handle('slow', () => runs++);
    const refused = [2 ** 53, -(2 ** 60), 1e300, JSON.parse('1e400'), NaN];
    post(...refused.map((id) => request(id)));
    await quiet();
    assert.deepEqual(
      heard.splice(0).map(({ id, error }) => [id, error.code]),
      refused.map(() => [null, -32600]),
    );
    const longest = 'i'.repeat(257);
    post(request(longest), request('lone \ud800'), request('nul \0'));
    await quiet();
    assert.deepEqual(
      heard.splice(0).map(({ id, error }) => [id, error.code]),
      [longest, 'lone \ud800', 'nul \0'].map((id) => [id, -32600]),
    );
    const none = [
      {},
      [],
      true,
      ...(dialect === 'acp' ? [] : [null]),
      ...(dialect === 'mcp' ? [1.5] : []),
    ];
    const before = peer.counters.malformed;
    post(...none.map((id) => request(id)));
    await quiet();
    if (dialect === 'acp')
      assert.deepEqual(
        heard.splice(0).map(({ id, error }) => [id, error.code]),
        none.map(() => [null, -32600]),
      );
    else assert.equal(peer.counters.malformed - before, none.length);
    assert.equal(runs, 0);
    assert.deepEqual(heard, []);
    peer.close();
  });

  test(`${dialect}: malformed messages are answered or counted as its SDK does, and cost nothing else`, async () => {
    const { peer, heard, post, quiet, transport } = scriptedPeer(dialect);
    peer.handle('echo', (params) => params);
    const bad = [
      1,
      'text',
      null,
      true,
      {},
      { jsonrpc: '2.0' },
      { jsonrpc: '2.0', method: 5, id: 1 },
      { jsonrpc: '2.0', method: {} },
      Array.from({ length: 10_000 }, (_, id) => request(id, 'echo')),
      [],
    ];
    if (dialect !== 'lsp')
      bad.push({ jsonrpc: '1.0', id: 1, method: 'echo' }, { id: 1, method: 'echo' });
    post(...bad);
    transport.onUnreadable(new Error('no JSON'));
    await quiet();
    const answers = heard.splice(0);
    if (dialect === 'acp') {
      // What is no message is repeated, as its SDK does; a batch is not looked into.
      const [number, , , , empty] = answers;
      assert.deepEqual([number.error.data, empty.error.data], [1, {}]);
      assert.equal('data' in answers[8].error, false);
      const codes = [...bad.map(() => -32600), -32700];
      assert.deepEqual(
        answers.map(({ id, error }) => [id, error.code]),
        codes.map((code) => [null, code]),
      );
    } else {
      // Whoever sends a batch waits for its answers.
      assert.deepEqual(
        answers.map(({ id, error }) => [id, error.code]),
        [
          [null, -32600],
          [null, -32600],
        ],
      );
      assert.equal(peer.counters.malformed, bad.length - 2 + 1);
    }
    post(request(1, 'echo', { fine: true }));
    await quiet();
    assert.deepEqual(heard[0].result, { fine: true });
    peer.close();
  });

  test(`${dialect}: responses to nothing, of another type, or twice are dropped`, async () => {
    const { peer, heard, post, said } = scriptedPeer(dialect);
    const first = outcome(peer.request('a'));
    await said(1);
    post(
      { jsonrpc: '2.0', id: '1', result: 'of a text' },
      { jsonrpc: '2.0', id: 99, result: 'to nothing' },
      { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'what?' } },
      { jsonrpc: '2.0', id: {}, result: 1 },
      { jsonrpc: '2.0', id: 1, result: 'right', extra: true },
      { jsonrpc: '2.0', id: 1, result: 'again' },
    );
    assert.deepEqual(await first, { ok: 'right' });
    assert.equal(heard.length, 1);
    assert.deepEqual([peer.counters.stray, peer.counters.late], [4, 1]);
    peer.close();
  });

  test(`${dialect}: a response that cannot be read rejects its request`, async () => {
    const { peer, post, said } = scriptedPeer(dialect);
    for (const wrong of [{}, { error: 'no' }, { error: { code: 'x' } }, { error: null }]) {
      const pending = outcome(peer.request('a'));
      const { id } = (await said(1)).pop();
      post({ jsonrpc: '2.0', id, ...wrong });
      assert.equal((await pending).err.code, -32600);
    }
    peer.close();
  });

  test(`${dialect}: cancels of what is unknown, finished, malformed or the other side's do nothing`, async () => {
    const { peer, heard, post, quiet, said } = scriptedPeer(dialect);
    const [method, key] = CANCEL[dialect];
    const aborted = gate();
    peer.handle('quick', () => ({ done: true }));
    peer.handle('slow', async (_, { signal }) => {
      aborted.open(await fired(signal));
      return {};
    });
    const pending = outcome(peer.request('theirs'));
    await said(1);
    post(cancelOf(dialect, 5), request(5, 'quick'));
    await said(2);
    assert.deepEqual(
      heard[1].result,
      { done: true },
      'a cancel before its request is not remembered',
    );
    post(request(6));
    post(
      cancelOf(dialect, 5),
      cancelOf(dialect, 1), // ours, not theirs
      cancelOf(dialect, '6'),
      { jsonrpc: '2.0', method },
      { jsonrpc: '2.0', method, params: [6] },
      { jsonrpc: '2.0', method, params: null },
      { jsonrpc: '2.0', method, params: { [key]: null } },
      { jsonrpc: '2.0', method, params: { [key === 'id' ? 'requestId' : 'id']: 6 } },
      { jsonrpc: '2.0', method, params: Object.create({ [key]: 6 }) },
    );
    if (dialect === 'mcp') post(cancelOf(dialect, 6, { reason: { not: 'text' } }));
    await quiet();
    assert.equal(heard.length, 2);
    assert.equal(peer.counters.inFlightIn, 1);
    post(cancelOf(dialect, 6, { reason: 'why' }));
    assert.equal(
      (await aborted.opened).message,
      dialect === 'mcp' ? 'why' : 'The operation was cancelled',
    );
    post({ jsonrpc: '2.0', id: 1, result: 1 });
    assert.deepEqual(await pending, { ok: 1 });
    peer.close();
  });

  test(`${dialect}: a cancel sent as a request is unknown, even to a fallback`, async () => {
    const { peer, post, said } = scriptedPeer(dialect, { onRequest: () => 'fallback' });
    const { params, method } = cancelOf(dialect, 1);
    post({ jsonrpc: '2.0', id: 1, method, params });
    const { error } = (await said(1))[0];
    const words = {
      acp: { message: `"Method not found": ${method}`, data: { method } },
      lsp: { message: `Unhandled method ${method}` },
      mcp: { message: 'Method not found' },
    };
    assert.deepEqual(error, { code: -32601, ...words[dialect] });
    peer.close();
  });

  test(`${dialect}: names of Object's own are no handlers, and prototypes are not read`, async () => {
    const { peer, heard, post, quiet } = scriptedPeer(dialect);
    peer.handle('echo', (params) => params);
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    post(...names.map((name) => request(name, name)));
    await quiet();
    assert.deepEqual(
      heard.splice(0).map(({ id, error }) => [id, error.code]),
      names.map((name) => [name, -32601]),
    );
    post(JSON.parse('{"jsonrpc":"2.0","id":1,"method":"echo","params":{"__proto__":{"x":1}}}'));
    await quiet();
    assert.ok(Object.hasOwn(heard[0].result, '__proto__'));
    assert.equal({}.x, undefined);
    post(Object.create(request(2, 'echo')));
    await quiet();
    assert.equal(heard.filter(({ result }) => result).length, 1);
    peer.close();
  });

  test(`${dialect}: getters and proxies that throw are malformed messages`, async () => {
    const { peer, post, quiet } = scriptedPeer(dialect);
    const trap = new Proxy(
      {},
      {
        getOwnPropertyDescriptor() {
          throw new Error('gotcha');
        },
      },
    );
    post(
      {
        jsonrpc: '2.0',
        get method() {
          throw new Error('gotcha');
        },
      },
      trap,
      {
        jsonrpc: '2.0',
        method: CANCEL[dialect][0],
        get params() {
          throw new Error('gotcha');
        },
      },
    );
    const hidden = {
      get [CANCEL[dialect][1]]() {
        throw new Error('gotcha');
      },
    };
    post({ jsonrpc: '2.0', method: CANCEL[dialect][0], params: hidden });
    await quiet();
    // Those three, one cancel that names nobody, and the question of `quiet`.
    assert.equal(peer.counters.malformed + peer.counters.refused, 5);
    peer.close();
  });

  test(`${dialect}: limits are ordinary errors on both sides`, async () => {
    const { peer, heard, post, quiet } = scriptedPeer(dialect, { limits: { maxCalls: 2 } });
    peer.handle('slow', (_, { signal }) => fired(signal));
    post(request(1), request(2), request(3));
    await quiet();
    // The question of `quiet` is the fourth.
    assert.deepEqual([heard[0].id, heard[0].error.code], [3, -32005]);
    const first = outcome(peer.request('a'));
    const second = outcome(peer.request('b'));
    const { err } = await outcome(peer.request('c'));
    assert.equal(err.code, -32005);
    peer.close();
    await Promise.all([first, second]);
  });

  test(`${dialect}: a reason that is an error rejects the request as it is`, async () => {
    const pair = peerPair(dialect);
    pair.b.handle('slow', (_, { signal }) => fired(signal).then(() => Promise.reject(new Error())));
    const controller = new AbortController();
    const slow = outcome(pair.a.request('slow', {}, { signal: controller.signal }));
    const reason = new Error('mine');
    controller.abort(reason);
    assert.equal((await slow).err, reason);
    closeBoth(pair);
  });

  test(`${dialect}: what cannot be sent rejects here, and the other side never hears of it`, async () => {
    const pair = peerPair(dialect);
    const { a, b, sent } = pair;
    const { err } = await outcome(a.request('x', { f() {} }));
    assert.match(err.message, /cannot be sent/);
    b.handle('odd', () => ({ f() {} }));
    const odd = await outcome(a.request('odd'));
    assert.match(odd.err.message, /cannot be sent/);
    const buffer = new ArrayBuffer(8);
    b.handle('length', ({ buffer: moved }) => transfer({ moved }, [moved]));
    const result = await a.request('length', { buffer }, { transfer: [buffer] });
    assert.deepEqual([buffer.byteLength, result.moved.byteLength], [0, 8]);
    assert.equal(sent('a2b').filter(({ method }) => method === 'x').length, 0);
    closeBoth(pair);
  });
}

for (const dialect of ANSWERING) {
  test(`${dialect}: what a handler answers after a cancel decides`, async () => {
    const pair = peerPair(dialect);
    const { a, b } = pair;
    const endings = {
      value: () => ({ partial: true }),
      anything: () => Promise.reject(new TypeError('oops')),
      reason: (reason) => Promise.reject(reason),
      own: () => Promise.reject(new RpcError(-32800, 'Stopped', { retry: false })),
    };
    const ended = {};
    for (const [name, end] of Object.entries(endings)) {
      const started = gate();
      b.handle(name, async (_, { signal }) => {
        started.open();
        return end(await fired(signal));
      });
      const controller = new AbortController();
      const pending = outcome(a.request(name, {}, { signal: controller.signal }));
      await started.opened;
      controller.abort('enough');
      const { ok, err } = await pending;
      ended[name] = ok ?? [err.name, err.cause.code, err.cause.message];
    }
    assert.deepEqual(ended, {
      value: { partial: true },
      anything: ['AbortError', -32800, 'Request cancelled'],
      reason: ['AbortError', -32800, 'Request cancelled'],
      own: ['AbortError', -32800, 'Stopped'],
    });
    closeBoth(pair);
  });

  test(`${dialect}: a parent waits for its children no longer than the grace period`, async () => {
    const pair = peerPair(dialect, { b: { limits: { grace: 30 } } });
    const { a, b } = pair;
    const [asked, release] = [gate(), gate()];
    a.handle('deaf', async () => {
      asked.open();
      await release.opened;
      return { late: true };
    });
    b.handle('outer', async (_, context) => {
      context.request('deaf').catch(() => {});
      throw await fired(context.signal);
    });
    const controller = new AbortController();
    const outer = outcome(a.request('outer', {}, { signal: controller.signal }));
    await asked.opened;
    controller.abort('enough');
    assert.equal((await outer).err.cause.code, -32800);
    assert.equal(b.counters.late, 0);
    release.open();
    while (!b.counters.late) await new Promise((resolve) => setImmediate(resolve));
    closeBoth(pair);
  });

  test(`${dialect}: wait: false settles at once, and the late answer is dropped quietly`, async () => {
    const pair = peerPair(dialect);
    const { a, b } = pair;
    const [started, release] = [gate(), gate()];
    b.handle('slow', async () => {
      started.open();
      await release.opened;
      return 1;
    });
    const controller = new AbortController();
    const { signal } = controller;
    const slow = outcome(a.request('slow', {}, { signal, wait: false }));
    await started.opened;
    controller.abort();
    assert.equal((await slow).err.name, 'AbortError');
    release.open();
    while (!a.counters.late) await new Promise((resolve) => setImmediate(resolve));
    closeBoth(pair);
  });
}

test('mcp: wait: true waits for an answer, as long as the grace period', async () => {
  const pair = peerPair('mcp', { a: { limits: { grace: 20 } } });
  const { a, b } = pair;
  b.handle('slow', (_, { signal }) => fired(signal));
  const controller = new AbortController();
  const slow = outcome(a.request('slow', {}, { signal: controller.signal, wait: true }));
  setTimeout(() => controller.abort(), 5);
  assert.equal((await slow).err.name, 'AbortError');
  closeBoth(pair);
});

test('mcp: an AbortError that nobody asked for is an error of its own', async () => {
  const pair = peerPair('mcp');
  pair.b.handle('limited', () => {
    throw new DOMException('out of context', 'AbortError');
  });
  const { err } = await outcome(pair.a.request('limited'));
  assert.deepEqual([err.name, err.code, err.message], ['RpcError', -32603, 'out of context']);
  closeBoth(pair);
});

test('a handler whose time ran out is cancelled to ACP, and an error to the others', async () => {
  const answers = {};
  for (const dialect of DIALECTS) {
    const pair = peerPair(dialect);
    pair.b.handle('limited', () => {
      throw new DOMException('out of time', 'TimeoutError');
    });
    const { err } = await outcome(pair.a.request('limited'));
    answers[dialect] = [err.code, err.message];
    closeBoth(pair);
  }
  assert.deepEqual(answers, {
    acp: [-32800, 'Request cancelled'],
    lsp: [-32603, 'out of time'],
    mcp: [-32603, 'out of time'],
  });
});

test('mcp: a server ends a subscription by a cancel, and nothing else of ours', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  const other = outcome(peer.request('tools/call'));
  const subscription = outcome(peer.request('subscriptions/listen'));
  await said(2);
  post(cancelOf('mcp', 1), cancelOf('mcp', 2));
  const { err } = await subscription;
  assert.deepEqual([err.name, err.code], ['AbortError', -32800]);
  post({ jsonrpc: '2.0', id: 1, result: 'an answer' });
  assert.deepEqual(await other, { ok: 'an answer' });
  peer.close();
});

test('acp: a handler that cancels itself cancels what it asked for, and answers after it', async () => {
  const pair = peerPair('acp');
  const { a, b, log } = pair;
  const asked = gate();
  a.handle('ask', async (_, { signal }) => {
    asked.open();
    throw await fired(signal);
  });
  b.handle('outer', async (_, context) => {
    context.request('ask').catch(() => {});
    await asked.opened;
    throw new DOMException('out of context', 'AbortError');
  });
  const { err } = await outcome(a.request('outer'));
  assert.deepEqual([err.name, err.code], ['RpcError', -32800]);
  assert.deepEqual(
    log.map(({ dir, msg }) => `${dir} ${msg.method ?? msg.error.code}`),
    ['a2b outer', 'b2a ask', 'b2a $/cancel_request', 'a2b -32800', 'b2a -32800'],
  );
  closeBoth(pair);
});

test('lsp: messages without a version are taken', async () => {
  const { peer, post, said } = scriptedPeer('lsp');
  peer.handle('echo', (params) => params);
  post({ id: 1, method: 'echo', params: [1] });
  assert.deepEqual((await said(1))[0].result, [1]);
  peer.close();
});

test('what arrives as another kind of message than it is registered for is warned of, once for each method', async (t) => {
  const told = [];
  t.mock.method(console, 'warn', (message) => told.push(message));
  const { peer, post, said } = scriptedPeer('acp');
  const calls = [];
  peer.handle('session/cancel', () => calls.push('handle'));
  peer.onNotification('ask', () => calls.push('onNotification'));
  peer.handle('both', () => calls.push('both'));
  peer.onNotification('both', () => calls.push('told'));
  const cancel = { jsonrpc: '2.0', method: 'session/cancel', params: {} };
  post(cancel, cancel);
  for (const id of [1, 2]) post(request(id, 'ask'));
  post({ jsonrpc: '2.0', method: 'both' }, { jsonrpc: '2.0', method: 'unknown' });
  post(request(3, 'unknown'), request(4, 'both'));
  await said(4);
  while (told.length < 2) await aTurn();
  assert.deepEqual(calls, ['told', 'both']);
  assert.match(
    told[0],
    /session.cancel has arrived as a notification.*with handle\. Register it with onNotification/,
  );
  assert.match(
    told[1],
    /ask has arrived as a request.*with onNotification\. Register it with handle/,
  );
  assert.equal(told.length, 2);
  peer.close();
});

for (const [dialect, asked] of /** @type {const} */ ([
  ['mcp', ({ _meta }) => _meta.progressToken],
  ['lsp', ({ workDoneToken }) => workDoneToken],
]))
  test(`${dialect}: a timeout that progress begins anew asks for progress by itself`, async (t) => {
    const clock = useClock(t);
    const pair = peerPair(dialect);
    const started = gate();
    const end = gate();
    pair.b.handle('slow', async (params, { progress }) => {
      started.open({ params, progress });
      return end.opened;
    });
    const options = { timeout: 50, resetTimeoutOnProgress: true };
    const slow = outcome(pair.a.request('slow', { x: 1 }, options));
    const { params, progress } = await started.opened;
    assert.notEqual(asked(params), undefined);
    clock.advance(40);
    progress({ progress: 1 });
    await aTurn();
    clock.advance(40);
    end.open({ done: true });
    assert.deepEqual(await slow, { ok: { done: true } });
    closeBoth(pair);
  });

for (const [dialect, method, progress] of /** @type {const} */ ([
  ['mcp', 'notifications/progress', (progressToken, n) => ({ progressToken, progress: n })],
  ['lsp', '$/progress', (token, n) => ({ token, value: { progress: n } })],
])) {
  for (const listens of ['*', method]) {
    test(`${dialect}: progress is its request's, late progress is counted, all other goes to listeners of ${listens}`, async () => {
      const { peer, post, said, quiet } = scriptedPeer(dialect);
      const seen = [];
      const others = [];
      peer.onNotification(listens, (params) => others.push(params));
      const pending = outcome(peer.request('a', {}, { onProgress: (info) => seen.push(info) }));
      const [{ params }] = await said(1);
      const token = params.workDoneToken ?? params._meta.progressToken;
      // LSP's servers make tokens, too, and count: 1 is not that of request 1.
      const theirs = dialect === 'lsp' ? 1 : '1';
      const report = (token, n) => post({ jsonrpc: '2.0', method, params: progress(token, n) });
      report(token, 0.5);
      report(theirs, 0.6);
      report(99, 0.7);
      post({ jsonrpc: '2.0', id: 1, result: {} });
      report(token, 1);
      await pending;
      await quiet();
      assert.deepEqual(seen, [{ progress: 0.5 }]);
      assert.deepEqual(others, [progress(theirs, 0.6), progress(99, 0.7)]);
      assert.deepEqual([peer.counters.stray, peer.counters.late], [0, 1]);
      peer.close();
    });
  }
}

test('createPeer and its methods say what is wrong with their arguments', async () => {
  assert.throws(() => createPeer({}, { dialect: 'soap' }), /dialect .* one of acp, lsp, mcp/);
  const wrong = { code: 'INVALID_PARAMS' };
  for (const options of [
    undefined,
    {},
    { dialect: 'toString' },
    { dialect: 'acp', limits: 5 },
    { dialect: 'acp', limits: { maxCalls: 'many' } },
    { dialect: 'acp', limits: { grace: -1 } },
    { dialect: 'acp', onRequest: 'x' },
    { dialect: 'acp', onNotification: {} },
    { dialect: 'acp', trace: true },
  ]) {
    assert.throws(() => createPeer({}, options), wrong);
  }
  assert.throws(() => createPeer(undefined, { dialect: 'acp' }), wrong);
  const { peer, heard } = scriptedPeer('acp');
  assert.throws(() => peer.handle('x'), wrong);
  assert.throws(() => peer.onNotification(5, () => {}), wrong);
  await assert.rejects(peer.request(5), wrong);
  for (const options of [
    'now',
    null,
    { signal: {} },
    { signal: 'abort' },
    { onProgress: 1 },
    { onPartialResult: 'x' },
    { timeout: '5' },
    { timeout: -5 },
    { timeout: NaN },
    { maxTotalTimeout: {} },
  ]) {
    await assert.rejects(peer.request('x', {}, options), wrong);
  }
  await assert.rejects(peer.stream('x', {}, { timeout: 'x' }).result, wrong);
  for (const options of ['now', null, { signal: {} }]) {
    assert.throws(() => peer.stream('x', {}, options), wrong);
  }
  assert.deepEqual(heard, []);
  peer.close();
});

test('transports say what is wrong with their options', () => {
  const wrong = { code: 'INVALID_PARAMS' };
  const streams = { readable: new ReadableStream(), writable: new WritableStream() };
  for (const options of [{ maxMessage: 'long' }, { maxMessage: -1 }, { maxBacklog: NaN }]) {
    assert.throws(() => lineTransport(streams, options), wrong);
    assert.throws(() => headerTransport(streams, options), wrong);
  }
  const origin = 'https://a.example';
  assert.throws(() => windowChannel({}, { origin, upgrade: 'port' }), wrong);
  assert.throws(() => hostChannel({ origins: [origin], host: {}, upgrade: true }), wrong);
});

test('adapters say what is wrong with the transport that they are given', () => {
  for (const adapt of [acpStream, mcpTransport])
    for (const wrong of [undefined, null, 'ws://a', [], {}, { post() {} }, { post: 1, close() {} }])
      assert.throws(() => adapt(wrong), { code: 'INVALID_PARAMS' });
});

test('1,000 requests in flight, a third of them cancelled: each settles once', async () => {
  const pair = peerPair('acp');
  const { a, b } = pair;
  b.handle('work', async ({ n }, { signal }) => {
    if (n % 3) return { n };
    throw await fired(signal);
  });
  const all = Array.from({ length: 1000 }, (_, n) => {
    const controller = new AbortController();
    const pending = outcome(a.request('work', { n }, { signal: controller.signal }));
    if (n % 3 === 0) setTimeout(() => controller.abort('enough'), n % 7);
    return pending;
  });
  const ended = await Promise.all(all);
  ended.forEach(({ ok, err }, n) => {
    if (n % 3) assert.equal(ok.n, n);
    else assert.equal(err.name, 'AbortError');
  });
  assert.deepEqual([a.counters.inFlightOut, b.counters.inFlightIn], [0, 0]);
  closeBoth(pair);
});

test('a peer that traps is given up; the others go on, and new ones get an instance of their own', async () => {
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

test('a timeout keeps its process alive while somebody waits for it, and no longer', async () => {
  const script = `
    import { createPeer } from '${new URL('../src/index.js', import.meta.url)}';
    const nobody = { post() {}, close() {}, onMessage() {} };
    const peer = createPeer(nobody, { dialect: 'acp', limits: { grace: 1 } });
    const answered = peer.request('answered', {}, { timeout: 3_600_000 });
    nobody.onMessage({ jsonrpc: '2.0', id: 1, result: 'an answer' }, []);
    console.log(await answered);
    console.log((await peer.request('unanswered', {}, { timeout: 1 }).catch((error) => error)).name);`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', script],
    { timeout: 60_000 },
  );
  assert.equal(stdout, 'an answer\nTimeoutError\n');
});

test('a listener or an onProgress that throws or rejects is reported, and ends nothing', async () => {
  const script = `
    import { createPeer } from '${new URL('../src/index.js', import.meta.url)}';
    const sent = [];
    const nobody = { post: (message) => sent.push(message), close() {}, onMessage() {} };
    const peer = createPeer(nobody, { dialect: 'mcp' });
    const awake = setInterval(() => {}, 1000);
    const fail = (how) => {
      if (how === 'throws') throw new Error('it throws');
      return how === 'rejects' ? Promise.reject(new Error('it rejects')) : 'fine';
    };
    peer.onNotification('note', ({ how }) => fail(how));
    const answer = peer.request('work', {}, { onProgress: ({ message }) => fail(message) });
    while (!sent.length) await new Promise(setImmediate);
    const { progressToken } = sent[0].params._meta;
    for (const how of ['throws', 'rejects']) {
      nobody.onMessage({ jsonrpc: '2.0', method: 'note', params: { how } }, []);
      const params = { progressToken, progress: 1, message: how };
      nobody.onMessage({ jsonrpc: '2.0', method: 'notifications/progress', params }, []);
    }
    await new Promise(setImmediate);
    nobody.onMessage({ jsonrpc: '2.0', id: sent[0].id, result: 'an answer' }, []);
    console.log(await answer);
    clearInterval(awake);`;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', script],
    { timeout: 60_000 },
  );
  assert.equal(stdout, 'an answer\n');
  assert.deepEqual(stderr.match(/Error: it (throws|rejects)/g), [
    'Error: it throws',
    'Error: it throws',
    'Error: it rejects',
    'Error: it rejects',
  ]);
});

test('a notification before the core is there: what cannot be sent throws at once, and the rest goes on', async () => {
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

test('a notification that waited and cannot be sent is traced, and the peer goes on', async () => {
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
  while (sent.length < 2) await new Promise((resolve) => setImmediate(resolve));
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

test('why a connection ended is told to callers, to handlers and by `closed`', async () => {
  for (const dialect of DIALECTS) {
    const code = dialect === 'mcp' ? -32000 : -32097;
    for (const closedBy of ['peer', 'self']) {
      const { peer, post, said, transport } = scriptedPeer(dialect);
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
      const told = [(await pending).err, await peer.closed, reason.cause];
      for (const error of told) {
        assert.ok(error instanceof RpcError);
        assert.deepEqual([error.code, error.cause], [code, cause]);
      }
      const [mine, ...others] = told.map(({ data }) => data);
      assert.deepEqual(mine, { closedBy, outcome: 'unknown' });
      assert.deepEqual(others, [{ closedBy }, { closedBy }]);
      const late = await outcome(peer.request('late'));
      assert.deepEqual(late.err.data, { closedBy, outcome: 'unstarted' });
    }
    // A handler that was cancelled by its caller finds no cause.
    const { peer, post } = scriptedPeer(dialect);
    const [started, aborted] = [gate(), gate()];
    peer.handle('slow', async (_, { signal }) => {
      started.open();
      aborted.open(await fired(signal));
    });
    post(request('s'));
    await started.opened;
    post(cancelOf(dialect, 's'));
    assert.equal((await aborted.opened).cause, undefined);
    peer.close();
  }
});

test('a plain abort and AbortSignal.timeout() tell what the other side answered', async () => {
  const pair = peerPair('acp');
  const { a, b } = pair;
  const started = [gate(), gate()];
  b.handle('slow', async ({ n }, { signal }) => {
    started[n].open();
    await fired(signal);
    throw new RpcError(-32800, 'Stopped', { saved: 3 });
  });
  const controller = new AbortController();
  const aborted = outcome(a.request('slow', { n: 0 }, { signal: controller.signal }));
  await started[0].opened;
  controller.abort();
  const timer = new AbortController();
  const timed = outcome(a.request('slow', { n: 1 }, { signal: timer.signal }));
  await started[1].opened;
  // As AbortSignal.timeout() does.
  timer.abort(new DOMException('The operation timed out', 'TimeoutError'));
  const errors = [(await aborted).err, (await timed).err];
  assert.deepEqual(
    errors.map(({ name, code, data, cause }) => [name, code, data.outcome, cause.data]),
    [
      ['AbortError', -32800, 'stopped', { outcome: 'stopped', saved: 3 }],
      ['TimeoutError', -32001, 'stopped', { outcome: 'stopped', saved: 3 }],
    ],
  );
  closeBoth(pair);
});

test('a timeout of 0 is none', async (t) => {
  const clock = useClock(t);
  const { peer, post, said } = scriptedPeer('lsp');
  const pending = outcome(peer.request('slow', {}, { timeout: 0, maxTotalTimeout: 0 }));
  await said(1);
  clock.advance(24 * 3600_000);
  post({ jsonrpc: '2.0', id: 1, result: 'late' });
  assert.deepEqual(await pending, { ok: 'late' });
  peer.close();
});

test('a TimeoutError tells which of the two limits passed', async () => {
  const { peer } = scriptedPeer('mcp');
  const awake = setInterval(() => {}, 1000);
  const limits = [
    [{ timeout: 60_000, maxTotalTimeout: 5 }, 5],
    [{ timeout: 4, maxTotalTimeout: 60_000 }, 4],
    [{ timeout: 3 }, 3],
    [{ timeout: 0, maxTotalTimeout: 2 }, 2],
  ];
  for (const [options, limit] of limits) {
    const { err } = await outcome(peer.request('slow', {}, options));
    assert.deepEqual(
      [err.name, err.data],
      ['TimeoutError', { timeout: limit, outcome: 'unknown' }],
    );
  }
  clearInterval(awake);
  peer.close();
});

test('progress cannot be asked for by params that hold no token', async () => {
  for (const dialect of /** @type {const} */ (['lsp', 'mcp'])) {
    const { peer } = scriptedPeer(dialect);
    for (const params of [[1, 2], 'text', null]) {
      const { err } = await outcome(peer.request('x', params, { onProgress() {} }));
      assert.match(err.message, /params of request must be an object/);
    }
    peer.close();
  }
});

test('mcp: progress that was not asked for here is a listener’s, whatever number its token is', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  const heard = [];
  peer.onNotification('notifications/progress', (params) => heard.push(params));
  const pending = outcome(peer.request('x', { _meta: { progressToken: 1 } }));
  await said(1);
  const params = { progressToken: 1, progress: 5 };
  post({ jsonrpc: '2.0', method: 'notifications/progress', params });
  assert.deepEqual(heard, [params]);
  peer.close();
  await pending;
});

test('mcp: the progress of a task goes on until the task ends, from both sides', async () => {
  const pair = peerPair('mcp');
  const { a, b } = pair;
  const working = gate();
  b.handle('tools/call', (_, { progress }) => {
    working.open(progress);
    return { task: { taskId: 't1', status: 'working' } };
  });
  b.handle('tasks/get', ({ status }) => ({ taskId: 't1', status }));
  const seen = [];
  const others = [];
  a.onNotification('notifications/progress', ({ progress }) => others.push(progress));
  await a.request('tools/call', {}, { onProgress: ({ progress }) => seen.push(progress) });
  const progress = await working.opened;
  for (const [n, status] of ['working', 'completed', 'completed'].entries()) {
    progress({ progress: n });
    await a.request('tasks/get', { status });
  }
  assert.deepEqual(seen, [0, 1]);
  assert.equal(a.counters.late, 1);
  assert.deepEqual(others, []);
  closeBoth(pair);
});

test('lsp: work done and partial results are asked for and taken apart', async () => {
  const pair = peerPair('lsp');
  const { a, b } = pair;
  b.handle('textDocument/references', (_, { progress, partialResult }) => {
    progress({ kind: 'begin', title: 'Searching' });
    partialResult(['a']);
    partialResult(['b']);
    return [];
  });
  const seen = [];
  const result = await a.request(
    'textDocument/references',
    {},
    {
      onProgress: ({ kind }) => seen.push(kind),
      onPartialResult: (part) => seen.push(part),
    },
  );
  assert.deepEqual([seen, result], [['begin', ['a'], ['b']], []]);
  const unasked = await a.request('textDocument/references', {}, { onProgress() {} });
  assert.deepEqual(unasked, []);
  assert.equal(pair.sent('b2a').filter(({ method }) => method).length, 4);
  closeBoth(pair);
});

test('mcp: ping is answered by default, and by a handler where there is one', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  post(request(1, 'ping'));
  assert.deepEqual((await said(1))[0].result, {});
  peer.handle('ping', () => ({ mine: true }));
  post(request(2, 'ping'));
  assert.deepEqual((await said(2))[1].result, { mine: true });
  peer.close();
});

test('handlers and listeners can be taken back', async () => {
  const { peer, post, said } = scriptedPeer('acp');
  const heard = [];
  peer.handle('x', () => 1).onNotification('n', () => heard.push('n'));
  post(request(1, 'x'), { jsonrpc: '2.0', method: 'n' });
  await said(1);
  peer.removeHandler('x').removeListener('n');
  post(request(2, 'x'), { jsonrpc: '2.0', method: 'n' });
  assert.equal((await said(2))[1].error.code, -32601);
  assert.deepEqual(heard, ['n']);
  peer.close();
});

test('start: false reads nothing before start(), so that later handlers miss nothing', async () => {
  const { port1, port2 } = new MessageChannel();
  const caller = createPeer(portTransport(port1), { dialect: 'acp' });
  const answer = caller.request('late');
  const callee = createPeer(portTransport(port2), { dialect: 'acp', start: false });
  await new Promise((resolve) => setImmediate(resolve));
  callee.handle('late', () => 'in time');
  callee.start();
  callee.start();
  assert.equal(await answer, 'in time');
  caller.close();
  callee.close();
  port1.close();
});

test('a trace tells what is said, what is dropped and refused, and why it ended', async () => {
  const events = [];
  const { peer, post, said, transport } = scriptedPeer('mcp', {
    trace: (event) => events.push(event),
  });
  const pending = peer.request('ours');
  await said(1);
  const answer = { jsonrpc: '2.0', id: 1, result: 1 };
  const unknown = request('u', 'nobody');
  post(answer, answer, { ...answer, id: 9 }, 5, unknown, cancelOf('mcp', 'z'));
  await pending;
  const unreadable = new Error('no JSON');
  transport.onUnreadable(unreadable);
  const cause = new Error('cut');
  transport.onClose(cause);
  const [last] = events.splice(-1);
  assert.deepEqual([last.type, last.error.cause], ['closed', cause]);
  const told = events
    .filter(({ type }) => !['sent', 'received'].includes(type))
    .map(({ type, message, error }) => [type, message, error?.code ?? error]);
  assert.deepEqual(told, [
    ['late', answer, undefined],
    ['stray', { ...answer, id: 9 }, undefined],
    ['malformed', 5, undefined],
    ['refused', unknown, -32601],
    ['stray', cancelOf('mcp', 'z'), undefined],
    ['malformed', undefined, unreadable],
  ]);
  const said2 = events.filter(({ type }) => type === 'sent').map(({ message }) => message);
  assert.deepEqual(
    said2.map(({ method, error }) => method ?? error.code),
    ['ours', -32601],
  );
  assert.equal(events.filter(({ type }) => type === 'received').length, 6);
});

test('mcp: batches are taken where the version has them, and their answers go together', async () => {
  const { peer, heard, post, said, quiet } = scriptedPeer('mcp');
  const release = gate();
  peer.handle('initialize', ({ protocolVersion }) => ({ protocolVersion }));
  peer.handle('echo', (params) => params);
  peer.handle('slow', () => release.opened);
  const noted = [];
  peer.onNotification('note', ({ n }) => noted.push(n));
  const batch = [
    request(1, 'echo', { n: 1 }),
    { jsonrpc: '2.0', method: 'note', params: { n: 2 } },
    request(2, 'slow'),
    request(3, 'nobody'),
    request('cancelled', 'slow'),
    cancelOf('mcp', 'cancelled'),
    request(null, 'echo'),
    7,
  ];
  post(batch);
  assert.equal((await said(1)).pop().error.code, -32600);
  post(request(0, 'initialize', { protocolVersion: '2025-03-26' }));
  assert.equal((await said(1)).pop().result.protocolVersion, '2025-03-26');
  assert.equal(peer.protocolVersion, '2025-03-26');
  const pending = peer.request('ours');
  await said(1);
  const { id } = heard.pop();
  post([{ jsonrpc: '2.0', id, result: 'an answer' }]);
  assert.equal(await pending, 'an answer');
  post(batch);
  await quiet();
  assert.deepEqual([noted, heard], [[2], []]);
  release.open({ done: true });
  const [answers] = await said(1);
  assert.deepEqual(
    answers.map(({ id, result, error }) => [id, result ?? error.code]),
    [
      [3, -32601],
      [1, { n: 1 }],
      [2, { done: true }],
    ],
  );
  heard.pop();
  post([], new Array(2 ** 32 - 1));
  assert.deepEqual(
    (await said(2)).map(({ id, error }) => [id, error.code]),
    [
      [null, -32600],
      [null, -32600],
    ],
  );
  peer.close();
});

test('ids go on beyond 2^31', async () => {
  for (const dialect of DIALECTS) {
    const firstNumber = 2 ** 31 - 2;
    const pair = peerPair(dialect, { a: { limits: { firstNumber } } });
    const { a, b, sent } = pair;
    const asked = gate();
    b.handle('echo', (params) => params);
    b.handle('slow', async (_, { signal }) => {
      asked.open();
      throw await fired(signal);
    });
    for (let n = 0; n < 5; n++) assert.deepEqual(await a.request('echo', { n }), { n });
    const controller = new AbortController();
    const slow = outcome(a.request('slow', {}, { signal: controller.signal }));
    await asked.opened;
    controller.abort('enough');
    assert.equal((await slow).err.name, 'AbortError');
    assert.deepEqual(
      sent('a2b').flatMap(({ id }) => id ?? []),
      Array.from({ length: 6 }, (_, n) => firstNumber + n),
    );
    const { params } = sent('a2b').find(({ method }) => method === CANCEL[dialect][0]);
    assert.equal(params[CANCEL[dialect][1]], firstNumber + 5);
    closeBoth(pair);
  }
});

test('peers that have ended give their memory back', async () => {
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

test('a request whose core traps while it is made rejects', async () => {
  const { peer, quiet } = scriptedPeer('acp');
  await quiet();
  trap('request', 'malformed');
  assert.equal((await outcome(peer.request('never'))).err.code, -32603);
});

test('what is no record or no text is not walked for progress and its tokens', async () => {
  // Each took seconds to hours, and gigabytes.
  const text = 'x'.repeat(2 ** 25);
  const values = [
    new Array(2 ** 28),
    1n << 33_000_000n,
    text,
    [text],
    { token: new Array(2 ** 28) },
  ];
  for (const dialect of DIALECTS) {
    const { peer, post, quiet } = scriptedPeer(dialect);
    const heard = [];
    for (const method of ['$/progress', 'notifications/progress']) {
      peer.onNotification(method, (params) => void heard.push(params));
      for (const value of values) {
        post(
          { jsonrpc: '2.0', method, params: value },
          { jsonrpc: '2.0', method, params: { token: value, progressToken: value } },
        );
      }
    }
    await quiet();
    assert.equal(heard.length, 4 * values.length);
    peer.close();
  }
});

test('mcp: what throws when it is read costs a request nothing', async () => {
  const { peer, heard, post, said } = scriptedPeer('mcp');
  const thrower = (name) =>
    Object.defineProperty({}, name, {
      enumerable: true,
      get() {
        throw new Error('not to be read');
      },
    });
  const onProgress = () => {};
  const task = peer.request('tools/call', {}, { onProgress });
  await said(1);
  post({ jsonrpc: '2.0', id: heard.pop().id, result: { task: { taskId: 't' } } });
  await task;
  const results = [thrower('protocolVersion'), thrower('task'), thrower('_meta')];
  for (const result of results) {
    const pending = peer.request('initialize', {}, { onProgress });
    await said(1);
    post({ jsonrpc: '2.0', id: heard.pop().id, result });
    assert.equal(await pending, result);
  }
  const noted = [];
  peer.onNotification('note', (params) => noted.push(params));
  for (const params of results) post({ jsonrpc: '2.0', method: 'note', params });
  assert.deepEqual(noted, results);
  peer.handle('initialize', () => results[0]);
  post(request('theirs', 'initialize'));
  assert.equal((await said(1)).pop().id, 'theirs');
  peer.close();
});

test('mcp: the answers of a batch do not wait for a handler whose request was cancelled', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  peer.protocolVersion = '2025-03-26';
  const started = gate();
  peer.handle('echo', (params) => params);
  peer.handle('hangs', () => {
    started.open();
    return new Promise(() => {});
  });
  post([request(1, 'echo', { n: 1 }), request(2, 'hangs')]);
  await started.opened;
  post(cancelOf('mcp', 2));
  assert.deepEqual(await said(1), [[{ jsonrpc: '2.0', id: 1, result: { n: 1 } }]]);
  peer.close();
});

test('a notification said after the other side has gone, and before the core is there, is not sent', async () => {
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

for (const dialect of DIALECTS) {
  test(`${dialect}: an answer that is in hand is read before the clock is, and so is progress`, async (t) => {
    const clock = useClock(t);
    const { peer, post, said, heard } = scriptedPeer(dialect);
    const limits = { timeout: 50, resetTimeoutOnProgress: true };
    const first = outcome(peer.request('a', {}, limits));
    const second = outcome(peer.request('b', {}, limits));
    const third = outcome(peer.request('c', {}, { ...limits, onProgress() {} }));
    await said(3);
    const [one, two, three] = heard.map(({ id }) => id);
    // The thread was busy: both timeouts have passed when the answers are read, in one turn.
    clock.pass(60);
    post({ jsonrpc: '2.0', id: one, result: 1 }, { jsonrpc: '2.0', id: two, result: 2 });
    if (dialect === 'mcp') {
      const params = { progressToken: three, progress: 1 };
      post({ jsonrpc: '2.0', method: 'notifications/progress', params });
    }
    clock.fire();
    await aTurn();
    assert.deepEqual([await first, await second], [{ ok: 1 }, { ok: 2 }]);
    const cancels = heard.filter(({ method }) => method === CANCEL[dialect][0]);
    assert.equal(cancels.length, dialect === 'mcp' ? 0 : 1);
    if (dialect === 'mcp') {
      clock.advance(49);
      await aTurn();
      assert.equal(heard.length, 3);
      clock.advance(2);
    } else {
      post({ jsonrpc: '2.0', id: three, error: { code: -32800, message: 'stopped' } });
    }
    assert.equal((await third).err.name, 'TimeoutError');
    peer.close();
  });

  test(`${dialect}: an answer that waits to be read counts although its timeout passes meanwhile`, async () => {
    const pair = peerPair(dialect);
    pair.b.handle('busy', () => {
      const until = performance.now() + 20;
      while (performance.now() < until);
      return 'done';
    });
    await pair.a.request('busy'); // the core is loaded
    pair.log.length = 0;
    const { err } = await outcome(pair.a.request('busy', {}, { timeout: 10 }));
    await aTurn();
    // A machine that is slow to deliver the request may cancel it, but never once it was answered.
    const said = pair.log.map(({ msg }) => msg.method ?? 'answer');
    const cancelled = said.indexOf(CANCEL[dialect][0]);
    if (err) assert.equal(cancelled, 1, said.join());
    else assert.deepEqual(said, ['busy', 'answer']);
    closeBoth(pair);
  });

  test(`${dialect}: after a long silence a cancelled request is still waited for`, async (t) => {
    const clock = useClock(t);
    const { peer, post, said } = scriptedPeer(dialect, { limits: { grace: 1000 } });
    const controller = new AbortController();
    const { signal } = controller;
    const pending = outcome(peer.request('slow', {}, { signal, wait: true }));
    const [{ id }] = await said(1);
    clock.advance(60_000);
    controller.abort();
    clock.advance(900);
    post({ jsonrpc: '2.0', id, result: 'in spite of it' });
    assert.deepEqual(await pending, { ok: 'in spite of it' });
    peer.close();
  });

  test(`${dialect}: after the end the error is the dialect's, as it was before`, async () => {
    const { a, b } = peerPair(dialect);
    const before = outcome(a.request('slow'));
    b.handle('slow', () => new Promise(() => {}));
    b.close();
    await a.closed;
    const codes = [(await before).err, (await outcome(a.request('x'))).err, await a.closed];
    const notified = await outcome(Promise.resolve().then(() => a.notify('x')));
    codes.push(notified.err);
    const closed = dialect === 'mcp' ? -32000 : -32097;
    assert.deepEqual(
      codes.slice(1).map(({ code }) => code),
      [closed, closed, closed],
    );
  });

  test(`${dialect}: a method without a name is a method like any other`, async () => {
    const { peer, said } = scriptedPeer(dialect);
    const controller = new AbortController();
    const pending = outcome(peer.request('', {}, { signal: controller.signal, wait: false }));
    await said(1);
    controller.abort();
    assert.equal((await pending).err.name, 'AbortError');
    assert.equal((await said(2))[1].method, CANCEL[dialect][0]);
    peer.close();
  });
}

test('mcp: a number is progress, and what does not rise is not sent', async () => {
  const { a, b, sent } = peerPair('mcp');
  b.handle('work', async (_params, { progress }) => {
    for (const info of [0.5, 0.5, { progress: 0.4 }, 0.75, NaN, Infinity, '5', { message: 'x' }]) {
      progress(info);
      await aTurn();
    }
    progress(undefined);
    progress({ progress: 2, total: 4 });
    return {};
  });
  const seen = [];
  await a.request('work', {}, { onProgress: (info) => seen.push(info) });
  const rising = [{ progress: 0.5 }, { progress: 0.75 }, { progress: 2, total: 4 }];
  assert.deepEqual(seen, rising);
  assert.equal(sent('b2a').length, rising.length + 1);
  closeBoth({ a, b });
});

test('of progress in a loop the first and the last of each turn are sent, the last before the answer', async () => {
  for (const dialect of /** @type {const} */ (['lsp', 'mcp'])) {
    const { a, b, sent } = peerPair(dialect);
    b.handle('work', async (_params, { progress }) => {
      for (let i = 1; i <= 9; i++) progress({ progress: i });
      await aTurn();
      for (let i = 10; i <= 20; i++) progress({ progress: i });
      return {};
    });
    const seen = [];
    await a.request('work', {}, { onProgress: (info) => seen.push(info.progress) });
    assert.deepEqual(seen.at(-1), 20);
    // A turn that takes very long sends one now and then.
    assert.ok(seen.length < 20 && seen[0] === 1 && seen.includes(9), seen.join());
    assert.equal(sent('b2a').length, seen.length + 1);
    closeBoth({ a, b });
  }
});

test('only texts and integers are tokens: with anything else no progress and no parts are sent', async () => {
  for (const dialect of /** @type {const} */ (['lsp', 'mcp'])) {
    const { peer, post, said, heard } = scriptedPeer(dialect);
    peer.handle('parts', async function* (_params, { progress }) {
      progress(dialect === 'mcp' ? 1 : { kind: 'report' });
      yield [1];
      yield [2];
    });
    const tokens = [null, true, 1.5, {}, ['a'], '', 0, 'a'];
    for (const [id, token] of tokens.entries()) {
      const lsp = { workDoneToken: token, partialResultToken: token };
      const params = dialect === 'lsp' ? lsp : { _meta: { progressToken: token } };
      const isToken = typeof token === 'string' || Number.isInteger(token);
      post(request(id, 'parts', params));
      // Progress, two parts and an empty result, or the whole result.
      const count = isToken ? (dialect === 'lsp' ? 4 : 2) : 1;
      await said(count);
      const answer = heard.splice(0).pop();
      const whole = [1, 2];
      assert.deepEqual(answer, {
        jsonrpc: '2.0',
        id,
        result: isToken && dialect === 'lsp' ? null : whole,
      });
    }
    peer.close();
  }
});

for (const dialect of ['acp', 'lsp']) {
  test(`${dialect}: the error of a request says what became of its work, as the callee's table knows it`, async () => {
    const pair = peerPair(dialect, { b: { limits: { maxConcurrent: 1 } } });
    const { a, b } = pair;
    for (const [how, told] of [
      [(signal) => Promise.reject(signal.reason), 'stopped'],
      [() => Promise.reject(new Error('disk full')), 'failed'],
      [() => Promise.reject(new RpcError(-32800, 'Stopped', { pages: 3 })), 'stopped'],
      [() => Promise.reject(new RpcError(-32050, 'no luck', 'a text')), 'failed'],
    ]) {
      const started = gate();
      b.handle('work', async (_, { signal }) => {
        started.open();
        await fired(signal);
        return how(signal);
      });
      const [first, second] = [new AbortController(), new AbortController()];
      const running = outcome(a.request('work', {}, { signal: first.signal }));
      await started.opened;
      // There is room for one, so this waits.
      const waiting = outcome(a.request('work', {}, { signal: second.signal }));
      second.abort();
      assert.deepEqual((await waiting).err.data, { outcome: 'unstarted' });
      first.abort();
      const { data } = (await running).err;
      assert.equal(data.outcome, told);
    }
    const unsent = await outcome(a.request('work', {}, { signal: AbortSignal.abort() }));
    assert.deepEqual(unsent.err.data, { outcome: 'unstarted' });
    closeBoth(pair);
  });

  test(`${dialect}: of a request that others have cancelled, or never answer, nobody knows what became`, async (t) => {
    const clock = useClock(t);
    const { peer, post, said } = scriptedPeer(dialect);
    const answers = [undefined, 'a text', { outcome: 'none' }, { outcome: 5 }];
    for (const [i, data] of answers.entries()) {
      const controller = new AbortController();
      const cancelled = outcome(peer.request('slow', {}, { signal: controller.signal }));
      await said(2 * i + 1);
      controller.abort();
      const error = { code: -32800, message: 'no', ...(data !== undefined && { data }) };
      post({ jsonrpc: '2.0', id: i + 1, error });
      assert.deepEqual((await cancelled).err.data, { outcome: 'unknown' });
    }
    const silent = outcome(peer.request('slow', {}, { timeout: 10 }));
    await said(2 * answers.length + 1);
    clock.advance(10);
    await said(2 * answers.length + 2);
    clock.advance(5000);
    assert.deepEqual((await silent).err.data, { timeout: 10, outcome: 'unknown' });
    peer.close();
  });
}

test('what a request is to call must be a function', async () => {
  const { peer } = scriptedPeer('mcp');
  for (const name of ['onProgress', 'onPartialResult', 'onInputRequired', 'onTagged']) {
    await assert.rejects(peer.request('x', {}, { [name]: 'no function' }), {
      code: 'INVALID_PARAMS',
      message: new RegExp(name),
    });
  }
});
