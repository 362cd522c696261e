// Values that are quick to send and take minutes to walk or to write: each is refused before that,
// everywhere.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { requireBounded } from '../../js/untrusted/bounds.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { createPeer, headerTransport, lineTransport } from '../../packages/rpc/src/index.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { overSockets, socketPair } from '../support/sockets.js';

const doubled = (times) => {
  let value = ['x', 'y'];
  for (let i = 0; i < times; i++) value = [value, value];
  return value;
};
const nested = (levels) => {
  let value = {};
  for (let i = 1; i < levels; i++) value = { value };
  return value;
};
/** What is sent in no time, as a port brings it. */
const SMALL_AND_LONG = {
  'a sparse array': () => new Array(2 ** 32 - 1),
  'sparse arrays in a list': () => Array.from({ length: 64 }, () => new Array(2 ** 26)),
  'a sparse array in a map': () => new Map([[1, new Set([new Array(2 ** 32 - 1)])]]),
  'a list that stands twice in a list, fifty times over': () => doubled(50),
};

describe('a value is bounded', () => {
  for (const [what, make] of Object.entries(SMALL_AND_LONG)) {
    test(`${what} is refused`, () => {
      assert.throws(() => requireBounded(make()), {
        name: 'RangeError',
        message: /too many values/,
      });
    });
  }

  test('in the number of values, to the very one', () => {
    const list = Array.from({ length: 9 }, (_, i) => i);
    requireBounded(list, { maxValues: 10 });
    assert.throws(() => requireBounded(list, { maxValues: 9 }), /the limit is 9/);
    assert.throws(() => requireBounded({ a: list }, { maxValues: 10 }), RangeError);
    requireBounded(new Map([[1, 2]]), { maxValues: 3 });
    assert.throws(() => requireBounded(new Map([[1, 2]]), { maxValues: 2 }), RangeError);
    assert.throws(() => requireBounded(new Set([1, 2]), { maxValues: 2 }), RangeError);
  });

  test('and a list that is too long is not even looked at', () => {
    const looked = [];
    const list = new Proxy(new Array(11), {
      get: (target, key) => (looked.push(key), target[key]),
    });
    assert.throws(() => requireBounded(list, { maxValues: 10 }), RangeError);
    assert.ok(!looked.includes('0'));
  });

  test('in characters, names of members included', () => {
    requireBounded({ abc: 'de', f: ['gh'] }, { maxCharacters: 8 });
    assert.throws(() => requireBounded({ abc: 'de', f: ['gh'] }, { maxCharacters: 7 }), RangeError);
  });

  test('in depth; what contains itself is told apart', () => {
    requireBounded(nested(64), { maxDepth: 64 });
    assert.throws(() => requireBounded(nested(65), { maxDepth: 64 }), /levels: the limit is 64/);
    const cycle = { inner: {} };
    cycle.inner.outer = cycle;
    assert.throws(() => requireBounded(cycle), { name: 'TypeError', message: /a cycle/ });
  });

  test('in the digits of a BigInt, of either sign', () => {
    requireBounded([2n ** 16383n - 1n, -(2n ** 16383n)]);
    for (const long of [2n ** 16383n, -(2n ** 16383n) - 1n, 1n << 30_000_000n]) {
      assert.throws(() => requireBounded({ long }), /too many bits/);
    }
  });

  test('bytes are one value, and what has a toJSON of its own is taken at its word', () => {
    requireBounded([new ArrayBuffer(1e6), new Uint8Array(1e6), Buffer.alloc(1e6)], {
      maxValues: 4,
    });
    requireBounded(
      { at: new Date(), own: { toJSON: () => 1, rest: new Array(1000) } },
      { maxValues: 4 },
    );
  });

  test('only by what is its own', () => {
    requireBounded(Object.create({ inherited: new Array(1000) }), { maxValues: 10 });
  });
});

describe('before it is written', () => {
  const WAYS = {
    text: () => ({ ends: overSockets(socketPair()) }),
    driven: () => ({ driven: true }),
  };
  for (const [what, make] of Object.entries(SMALL_AND_LONG)) {
    for (const [way, options] of Object.entries(WAYS)) {
      test(`${what} is refused to an app by ${way}, and to its agent`, async () => {
        const { client } = await openPair({ take: () => 1, give: make }, options());
        const { error: mine } = await client.call('take', make());
        const { error: theirs } = await client.call('give');
        assert.deepEqual([mine.code, theirs.code], ['INVALID_PARAMS', 'OPERATION_FAILED']);
        for (const { message } of [mine, theirs])
          assert.match(message, /cannot be sent: .*too many values/);
        assert.equal((await client.call('take')).data, 1);
      });
    }
  }

  test('over lines, a post of one is refused as too long', () => {
    const transport = lineTransport({ readable: new PassThrough(), writable: new PassThrough() });
    for (const v of [new Array(2 ** 32 - 1), doubled(50)]) {
      assert.throws(() => transport.post({ v }), { code: 'MESSAGE_TOO_LONG' });
    }
    transport.close();
  });

  test('a BigInt is neither written nor read beyond some thousand digits', async () => {
    const { client } = await openPair({ echo: (params) => params }, { driven: true });
    for (const n of [2n ** 16383n - 1n, -(2n ** 16383n)])
      assert.deepEqual((await client.call('echo', { n })).data, { n });
    const { error } = await client.call('echo', { n: 2n ** 30_000_000n });
    assert.match(error.message, /too many bits/);
    const { connected } = page([`"~i${'9'.repeat(4_000_000)}"\n`]);
    assert.equal((await connected).counters.malformed, 1);
  });
});

/** Counts the turns that others have until something is done. */
async function turnsUntil(done) {
  let turns = 0;
  let over = false;
  const ended = Promise.resolve(done).finally(() => (over = true));
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    turns++;
  }
  await ended;
  return turns;
}

describe('a flood of lines lets others have their turns', () => {
  const LINES = 20_000;

  for (const [what, line] of Object.entries({ blank: '\n', broken: '{\n', short: '1\n' })) {
    test(`${what}, at once`, async () => {
      const readable = new PassThrough();
      const transport = lineTransport({ readable, writable: new PassThrough() });
      let heard = 0;
      let unreadable = 0;
      transport.onUnreadable = () => unreadable++;
      const closed = new Promise((resolve) => (transport.onClose = resolve));
      transport.onMessage = () => heard++;
      readable.end(Buffer.from(line.repeat(LINES)));
      const turns = await turnsUntil(closed);
      assert.ok(turns > LINES / 1024 / 2, `${turns}`);
      assert.deepEqual(
        [heard, unreadable],
        [line === '1\n' ? LINES : 0, line === '{\n' ? LINES : 0],
      );
    });
  }

  test('of headers without a length, from a web stream', async () => {
    const readable = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('x\r\n\r\n'.repeat(LINES)));
        controller.close();
      },
    });
    const transport = headerTransport({ readable, writable: new WritableStream() });
    let unreadable = 0;
    transport.onUnreadable = () => unreadable++;
    const closed = new Promise((resolve) => (transport.onClose = resolve));
    transport.onMessage = () => {};
    assert.ok((await turnsUntil(closed)) > LINES / 1024 / 2);
    assert.equal(unreadable, LINES);
  });

  test('at a JSON-RPC peer, whose handlers and requests go on', async () => {
    const [there, back] = [new PassThrough(), new PassThrough()];
    const peer = createPeer(
      lineTransport({ readable: there, writable: back }, { maxBacklog: 2 ** 30 }),
      { dialect: 'mcp' },
    );
    let turns = 0;
    peer.onNotification('end', () => (turns = -turns));
    back.resume();
    there.write(Buffer.from('{\n'.repeat(LINES)));
    there.write('{"jsonrpc":"2.0","method":"end"}\n');
    while (turns >= 0) {
      await new Promise((resolve) => setImmediate(resolve));
      if (turns >= 0) turns++;
    }
    assert.ok(-turns > LINES / 1024 / 2, `${turns}`);
    peer.close();
  });
});

/**
 * A page that says these texts, then answers the handshake, as a driver sees it, and the agent that
 * connects to it.
 */
function page(said) {
  const texts = said[Symbol.iterator]();
  let taken = '';
  const end = {
    find: () => 'ours',
    take: (_at, text) => void (taken += text),
    next() {
      const { done, value } = texts.next();
      if (!done) return value;
      if (!taken) return new Promise(() => {});
      const { id } = JSON.parse(taken.split('\n')[0]);
      taken = '';
      const payload = { sessionId: 's', protocolVersion: '0.1', app: APP, capabilities: [] };
      return `${JSON.stringify({ type: 'initialize-result', id, payload })}\n`;
    },
    end() {},
  };
  const handle = {
    evaluate: async (question, argument) => question(end, argument),
    dispose: async () => {},
  };
  const connected = connectPage({ evaluateHandle: async () => handle }, { agent: AGENT });
  connected.then(
    (client) => closeAfter(() => client.close()),
    () => {},
  );
  return { connected };
}

describe('a page that is driven', () => {
  test('may send line feeds without end: none is a message, and others have their turns', async () => {
    const { connected } = page(['\n'.repeat(100_000), '1\n\n2\n']);
    assert.ok((await turnsUntil(connected)) > 100_000 / 1024 / 2);
    assert.equal((await connected).counters.malformed, 2);
  });

  test('that sends a message without end is left, and says why', async () => {
    let fetches = 0;
    const piece = 'x'.repeat(2 ** 22);
    function* pieces() {
      for (; ; fetches++) yield piece;
    }
    await assert.rejects(page(pieces()).connected, /too long/);
    assert.equal(fetches, 64);
  });

  test('that sends more at once than it was asked for is left', async () => {
    await assert.rejects(page(['x'.repeat(2 ** 22 + 1)]).connected, /more at once than the limit/);
  });
});

test('a reader of lines that is given up while it is behind reads no further', async () => {
  const readable = new PassThrough();
  const transport = lineTransport({ readable, writable: new PassThrough() });
  let heard = 0;
  await new Promise((resolve) => {
    transport.onMessage = () => {
      if (++heard !== 5000) return;
      transport.close();
      setImmediate(resolve);
    };
    readable.end(Buffer.from('1\n'.repeat(20_000)));
  });
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(heard, 5000);
});
