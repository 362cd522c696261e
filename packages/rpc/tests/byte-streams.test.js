// JSON-RPC messages in streams of bytes: framed by lines and by Content-Length, in Node's streams
// and the web's.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { Duplex, PassThrough, Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { createPeer, headerTransport, lineTransport } from '../src/index.js';

import { fired, gate, outcome } from './support/rpc.js';

const LINES = {
  name: 'lines',
  open: lineTransport,
  frame: (text) => `${text}\n`,
};
const HEADERS = {
  name: 'Content-Length',
  open: headerTransport,
  frame: (text) => `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
};
const framed = (framing, ...messages) =>
  Buffer.concat(
    messages.map((m) => Buffer.from(framing.frame(typeof m === 'string' ? m : JSON.stringify(m)))),
  );

/** A transport that reads what the test writes to `input`, and all that it says. */
function open(framing, options, streams = {}) {
  const input = streams.readable ?? new PassThrough();
  const output = streams.writable ?? new PassThrough();
  const transport = framing.open({ readable: input, writable: output }, options);
  const log = [];
  let wake = () => {};
  const said = (...entry) => {
    log.push(entry);
    wake();
  };
  transport.onUnreadable = (error) => said('unreadable', error.code);
  transport.onClose = (error) => said('closed', error && `${error.code} ${error.message}`);
  transport.onMessage = (message) => said('message', message);
  const reached = async (count) => {
    while (log.length < count) await new Promise((resolve) => (wake = resolve));
    return log;
  };
  return { transport, input, output, log, reached };
}

const HELLO = {
  jsonrpc: '2.0',
  id: 1,
  method: 'echo',
  params: { u: 'é€😀', nested: '{"a":"\n"}' },
};
const AGAIN = { jsonrpc: '2.0', id: '1', result: [null, 0, ''] };

for (const framing of [LINES, HEADERS]) {
  describe(`messages framed by ${framing.name}`, () => {
    test('are read however the bytes are cut, inside characters and headers, too', async () => {
      const bytes = framed(framing, HELLO, AGAIN);
      const expected = [
        ['message', HELLO],
        ['message', AGAIN],
      ];
      for (let at = 0; at <= bytes.length; at++) {
        const { input, reached } = open(framing);
        input.write(bytes.subarray(0, at));
        input.write(bytes.subarray(at));
        assert.deepEqual(await reached(2), expected, `cut at ${at}`);
      }
      const { input, reached } = open(framing);
      for (const byte of bytes) input.write(Uint8Array.of(byte));
      assert.deepEqual(await reached(2), expected);
    });

    test('are written so that the other side reads the same', async () => {
      const { transport, output } = open(framing);
      const { reached } = open(framing, {}, { readable: output });
      for (const message of [HELLO, AGAIN, HELLO]) transport.post(message);
      assert.deepEqual(
        await reached(3),
        [HELLO, AGAIN, HELLO].map((m) => ['message', m]),
      );
    });

    test('that are no JSON, or no UTF-8, are reported and skipped', async () => {
      const { input, reached } = open(framing);
      input.write(framed(framing, '{"id":1', HELLO, 'nothing', "{'a':1}", '1 2', AGAIN));
      const cut = Buffer.from('"é"').subarray(0, 2);
      input.write(framing === LINES ? cut : `Content-Length: 2\r\n\r\n`);
      input.write(framing === LINES ? '\n' : cut);
      input.write(framed(framing, 'true', '[]', '1e400'));
      assert.deepEqual(await reached(10), [
        ['unreadable', 'PARSE_ERROR'],
        ['message', HELLO],
        ['unreadable', 'PARSE_ERROR'],
        ['unreadable', 'PARSE_ERROR'],
        ['unreadable', 'PARSE_ERROR'],
        ['message', AGAIN],
        ['unreadable', 'PARSE_ERROR'],
        ['message', true],
        ['message', []],
        ['message', Infinity],
      ]);
    });

    test('longer than the limit are reported once and skipped, those after them are read', async () => {
      const { input, reached, log } = open(framing, { maxMessage: 64 });
      const exact = ['x'.repeat(60)];
      input.write(framed(framing, exact, ['x'.repeat(61)], exact));
      assert.deepEqual(await reached(3), [
        ['message', exact],
        ['unreadable', 'MESSAGE_TOO_LONG'],
        ['message', exact],
      ]);
      const long = framed(framing, ['y'.repeat(1000)]);
      for (const byte of long) input.write(Uint8Array.of(byte));
      input.write(framed(framing, '"after"'));
      assert.deepEqual((await reached(5)).slice(3), [
        ['unreadable', 'MESSAGE_TOO_LONG'],
        ['message', 'after'],
      ]);
      assert.equal(log.length, 5);
    });

    test('of 100 MB cost no more memory than the limit', async () => {
      const { input, reached } = open(framing);
      const chunk = Buffer.alloc(2 ** 20, 'x');
      const head = framing === LINES ? '["' : `Content-Length: ${100 * chunk.length + 4}\r\n\r\n["`;
      const before = process.memoryUsage().arrayBuffers;
      let most = 0;
      const send = (bytes) => new Promise((resolve) => input.write(bytes, resolve));
      await send(head);
      for (let i = 0; i < 100; i++) {
        await send(chunk);
        most = Math.max(most, process.memoryUsage().arrayBuffers - before);
      }
      await send(framing === LINES ? '"]\n' : '"]');
      await send(framed(framing, HELLO));
      assert.deepEqual(await reached(2), [
        ['unreadable', 'MESSAGE_TOO_LONG'],
        ['message', HELLO],
      ]);
      // What was kept of it doubles up to the limit, and is copied once more then.
      assert.ok(most < 100 * chunk.length, `${most} bytes`);
    });

    test('longer than the limit are refused by post', () => {
      const { transport } = open(framing, { maxMessage: 64 });
      assert.throws(() => transport.post('é'.repeat(32)), { code: 'MESSAGE_TOO_LONG' });
      transport.post('é'.repeat(31));
    });

    test('in single bytes take time in proportion to their length', async () => {
      // A million pieces: with a copy of what is kept for each, it would be half a terabyte.
      const { input, reached } = open(framing);
      const text = JSON.stringify('x'.repeat(2 ** 20));
      for (const byte of framed(framing, text)) input.emit('data', Uint8Array.of(byte));
      const [[, message]] = await reached(1);
      assert.equal(message.length, 2 ** 20);
    });

    test('that a source which cannot pause gives at once take time in proportion to their number', async () => {
      const readable = Object.assign(new EventEmitter(), { destroy() {} });
      const { reached } = open(framing, { maxMessage: 128 }, { readable });
      // The rest waits for other turns. With a copy of what waits for each, it would be a quarter
      // of a terabyte.
      readable.emit('data', framed(framing, ...Array(2000).fill('0')));
      const piece = framed(framing, JSON.stringify('x'.repeat(125)));
      for (let i = 0; i < 2 ** 16; i++) readable.emit('data', piece);
      assert.equal((await reached(2000 + 2 ** 16)).length, 2000 + 2 ** 16);
    });

    test('end with the stream; what began and did not end is reported', async () => {
      const { input, reached } = open(framing);
      input.end(framed(framing, HELLO, AGAIN).subarray(0, -5));
      assert.deepEqual(await reached(3), [
        ['message', HELLO],
        ['unreadable', 'PARSE_ERROR'],
        ['closed', undefined],
      ]);
    });
  });
}

// No framing decides these.
describe('messages on a stream', () => {
  const framing = HEADERS;

  test('go through web streams as well', async () => {
    const { readable, writable } = new TransformStream(undefined, { highWaterMark: 4 });
    const back = new TransformStream();
    const { transport } = open(framing, {}, { readable: back.readable, writable });
    const { reached } = open(framing, {}, { readable, writable: back.writable });
    transport.post(HELLO);
    transport.post(AGAIN);
    assert.deepEqual(await reached(2), [
      ['message', HELLO],
      ['message', AGAIN],
    ]);
    transport.close();
    assert.equal((await reached(3))[2][0], 'closed');
  });

  test('go through a socket, and what was said before it closed arrives', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const near = connect(server.address().port, '127.0.0.1');
    const [[far]] = await Promise.all([once(server, 'connection'), once(near, 'connect')]);
    const { transport } = open(framing, {}, { readable: near, writable: near });
    const other = open(framing, {}, { readable: far, writable: far });
    const large = { text: 'x'.repeat(3_000_000) };
    transport.post(large);
    transport.post(AGAIN);
    transport.close();
    assert.deepEqual(await other.reached(3), [
      ['message', large],
      ['message', AGAIN],
      ['closed', undefined],
    ]);
    other.transport.close();
    await once(server.close(), 'close');
  });

  test('are not read before somebody listens', async () => {
    const input = new PassThrough();
    const transport = framing.open({ readable: input, writable: new PassThrough() });
    input.write(framed(framing, HELLO));
    await new Promise((resolve) => setImmediate(resolve));
    const message = await new Promise((resolve) => (transport.onMessage = resolve));
    assert.deepEqual(message, HELLO);
  });

  test('that cannot be JSON are refused by post', () => {
    const { transport } = open(framing);
    const cyclic = {};
    cyclic.self = cyclic;
    for (const message of [undefined, 1n, cyclic])
      assert.throws(() => transport.post(message), TypeError);
    assert.throws(() => transport.post(() => 1), { name: 'DataCloneError' });
  });

  test('stop at close, in the midst of those that came together', async () => {
    const { transport, input, log } = open(framing);
    const seen = new Promise((resolve) => {
      transport.onMessage = (message) => {
        log.push(message);
        transport.close();
        setImmediate(resolve);
      };
    });
    input.write(framed(framing, HELLO, AGAIN, 'no JSON'));
    await seen;
    assert.deepEqual(log, [HELLO]);
    transport.post(HELLO);
    transport.close();
  });

  test('after one at which a listener throws are delivered', async () => {
    const { transport, input, log } = open(framing);
    const thrown = new Promise((resolve) => (globalThis.reportError = resolve));
    const { onMessage } = transport;
    transport.onMessage = (message) => {
      onMessage(message);
      if (message === 1) throw new Error('the listener’s own');
    };
    input.write(framed(framing, '1', '2'));
    assert.equal((await thrown).message, 'the listener’s own');
    assert.deepEqual(log, [
      ['message', 1],
      ['message', 2],
    ]);
    delete globalThis.reportError;
  });

  test('a stream that fails closes the transport, which says why', async () => {
    const failures = {
      broken: ({ input }) => input.destroy(new Error('broken')),
      'it was closed before its end': ({ input }) => input.destroy(),
      full: ({ output }) => output.destroy(new Error('full')),
    };
    for (const [what, fail] of Object.entries(failures)) {
      const side = open(framing);
      fail(side);
      assert.deepEqual(await side.reached(1), [
        ['closed', `TRANSPORT_ERROR The stream failed: ${what}`],
      ]);
      side.transport.post(HELLO);
      side.transport.close();
      assert.equal(side.log.length, 1, what);
    }
    const objects = open(framing, {}, { readable: new PassThrough({ objectMode: true }) });
    objects.input.write({ not: 'bytes' });
    assert.match((await objects.reached(1))[0][1], /must contain bytes/);
    const web = open(
      framing,
      {},
      {
        readable: new ReadableStream({
          start: (controller) => controller.error(new Error('no')),
        }),
        writable: new WritableStream(),
      },
    );
    assert.deepEqual(await web.reached(1), [['closed', 'TRANSPORT_ERROR The stream failed: no']]);
    const readable = new ReadableStream({ start: (controller) => controller.error() });
    const unsaid = open(framing, {}, { readable, writable: new WritableStream() });
    assert.match((await unsaid.reached(1))[0][1], /^TRANSPORT_ERROR The stream failed/);
  });

  test('a peer that does not read is given up when too much waits for it', async () => {
    const writables = {
      node: new Writable({ write() {} }),
      web: new WritableStream({ write: () => new Promise(() => {}) }),
    };
    for (const [what, writable] of Object.entries(writables)) {
      const side = open(framing, { maxBacklog: 1000 }, { writable });
      for (let i = 0; i < 9; i++) side.transport.post('x'.repeat(70));
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(side.log, [], what);
      for (let i = 0; i < 9; i++) side.transport.post('x'.repeat(70));
      assert.deepEqual(side.log, [], 'not in the midst of posting');
      const [[kind, why]] = await side.reached(1);
      assert.equal(kind, 'closed', what);
      assert.match(why, /has not read \d+ bytes/);
    }
  });

  test('a peer that reads slowly is not', async () => {
    const slow = new Writable({ highWaterMark: 1, write: (_b, _e, done) => setImmediate(done) });
    const side = open(framing, { maxBacklog: 1000 }, { writable: slow });
    for (let i = 0; i < 100; i++) {
      side.transport.post('x'.repeat(300));
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(side.log, []);
  });
});

describe('lines', () => {
  test('may end with CRLF, be blank, and the last may be unended', async () => {
    const { input, reached } = open(LINES);
    input.end('\n\r\n  \t\r\n1\r\n\n 2 \r\n3');
    assert.deepEqual(await reached(4), [
      ['message', 1],
      ['message', 2],
      ['message', 3],
      ['closed', undefined],
    ]);
  });

  test('of text are read from a stream that was told its encoding', async () => {
    const { input, reached } = open(LINES);
    input.setEncoding('utf8');
    const bytes = framed(LINES, HELLO);
    for (const byte of bytes) input.write(Uint8Array.of(byte));
    assert.deepEqual(await reached(1), [['message', HELLO]]);
  });
});

describe('Content-Length', () => {
  const recording = readFileSync(
    new URL('./vectors/lsp-j-edge-framing.jsonl', import.meta.url),
    'utf8',
  );

  test('the recorded conversation of vscode-jsonrpc is read', async () => {
    const said = recording
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ dir }) => dir === 'a2b')
      .map(({ msg }) => msg);
    const bytes = Buffer.concat(
      said.map((msg) => (msg.__raw ? Buffer.from('bad header\r\n\r\n') : framed(HEADERS, msg))),
    );
    const { input, reached } = open(HEADERS);
    for (const byte of bytes) input.write(Uint8Array.of(byte));
    assert.deepEqual(
      await reached(said.length),
      said.map((msg) => (msg.__raw ? ['unreadable', 'PARSE_ERROR'] : ['message', msg])),
    );
  });

  const HEADERS_READ = {
    'in any case': 'cOnTeNt-lEnGtH: 2',
    'without a space': 'Content-Length:2',
    'with spaces and tabs': 'Content-Length: \t 2 \t',
    'with leading zeros': 'Content-Length: 0002',
    'before others':
      'Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-16',
    'after others': 'Content-Type: text/plain\r\nX: y\r\nContent-Length: 2',
    'twice the same': 'Content-Length: 2\r\ncontent-length: 2',
  };
  for (const [what, header] of Object.entries(HEADERS_READ)) {
    test(`is read ${what}`, async () => {
      const { input, reached } = open(HEADERS);
      input.write(`${header}\r\n\r\n17${HEADERS.frame('18')}`);
      assert.deepEqual(await reached(2), [
        ['message', 17],
        ['message', 18],
      ]);
    });
  }

  const HEADERS_REFUSED = {
    'is missing': 'Content-Type: text/plain',
    'is another header': 'X-Content-Length: 2',
    'is empty': 'Content-Length:',
    'is negative': 'Content-Length: -2',
    'is signed': 'Content-Length: +2',
    'is no whole number': 'Content-Length: 2.0',
    'is in hexadecimal': 'Content-Length: 0x2',
    'is no number': 'Content-Length: NaN',
    'is huge': 'Content-Length: 99999999999999999999',
    'is longer than any number': `Content-Length: ${'9'.repeat(400)}`,
    'is said in two ways': 'Content-Length: 2\r\nContent-Length: 1',
    'is one of two': 'Content-Length: 2\r\nContent-Length: x',
    'ends with a bare LF': 'Content-Length: 2\nX: y',
  };
  for (const [what, header] of Object.entries(HEADERS_REFUSED)) {
    test(`that ${what} is reported, and the next message is read`, async () => {
      const { input, reached } = open(HEADERS);
      input.write(`${header}\r\n\r\n{}${framed(HEADERS, HELLO)}`);
      const [[kind, code], ...rest] = await reached(2);
      assert.equal(kind, 'unreadable');
      assert.match(code, /^(PARSE_ERROR|MESSAGE_TOO_LONG)$/);
      assert.deepEqual(rest, [['message', HELLO]]);
    });
  }

  for (const [what, lie] of Object.entries({ 'too short': -9, 'too long': 9 })) {
    test(`that is ${what} costs the messages it cuts, and none after them`, async () => {
      const { input, reached } = open(HEADERS);
      const text = JSON.stringify(HELLO);
      input.write(`Content-Length: ${Buffer.byteLength(text) + lie}\r\n\r\n${text}`);
      input.write(framed(HEADERS, HELLO, '"in step"'));
      const log = await reached(lie < 0 ? 3 : 2);
      assert.deepEqual(log[0], ['unreadable', 'PARSE_ERROR']);
      assert.deepEqual(log.at(-1), ['message', 'in step']);
    });
  }

  test('that is too long and no JSON costs no other message', async () => {
    const { input, reached } = open(HEADERS, { maxMessage: 64 });
    input.write(`Content-Length: 20000\r\n\r\n${'x'.repeat(20_000)}${HEADERS.frame('1')}`);
    input.write(`Content-Length: 65\r\n\r\n${'"'.repeat(65)}${HEADERS.frame('2')}`);
    assert.deepEqual(await reached(4), [
      ['unreadable', 'MESSAGE_TOO_LONG'],
      ['message', 1],
      ['unreadable', 'MESSAGE_TOO_LONG'],
      ['message', 2],
    ]);
  });

  test('of nothing is no message', async () => {
    const { input, reached } = open(HEADERS);
    input.write(`Content-Length: 0\r\n\r\n${HEADERS.frame('1')}`);
    assert.deepEqual(await reached(2), [
      ['unreadable', 'PARSE_ERROR'],
      ['message', 1],
    ]);
  });

  test('text in a message that looks like a header is not one', async () => {
    const { input, reached } = open(HEADERS);
    const text = JSON.stringify({ text: '}Content-Length: 1\r\n\r\n7' });
    // The stream is out of step when it comes.
    input.write(`Content-Length: x\r\n\r\n${text}${framed(HEADERS, HELLO)}`);
    assert.deepEqual(await reached(2), [
      ['unreadable', 'PARSE_ERROR'],
      ['message', HELLO],
    ]);
  });

  test('headers without an end cost bounded memory and time', async () => {
    const { input, reached } = open(HEADERS);
    const junk = Buffer.alloc(2 ** 20, 'Content-Length: ');
    for (let i = 0; i < 20; i++) input.write(junk);
    input.write(Buffer.alloc(2 ** 20, '\n'));
    input.write(Buffer.alloc(2 ** 20, '\r'));
    input.write(`\n\r\n${HEADERS.frame('1')}`);
    assert.deepEqual(await reached(2), [
      ['unreadable', 'PARSE_ERROR'],
      ['message', 1],
    ]);
  });
});

test('a process is spoken to by its standard input and output, until it ends', async () => {
  const module = new URL('../src/byte-streams.js', import.meta.url);
  const script = `
    import { lineTransport } from '${module}';
    const { stdin: readable, stdout: writable } = process;
    const transport = lineTransport({ readable, writable });
    transport.onMessage = (message) => {
      transport.post({ said: message });
      if (message === 'bye') transport.close();
    };`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { transport, reached } = open(LINES, {}, { readable: child.stdout, writable: child.stdin });
  transport.post('hello');
  transport.post('bye');
  assert.deepEqual(await reached(3), [
    ['message', { said: 'hello' }],
    ['message', { said: 'bye' }],
    ['closed', undefined],
  ]);
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  transport.post('to nobody');
  transport.close();
});

test('a process that dies closes the transport', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { transport, reached } = open(LINES, {}, { readable: child.stdout, writable: child.stdin });
  transport.post('hello');
  await once(child, 'spawn');
  child.kill('SIGKILL');
  const [[kind]] = await reached(1);
  assert.equal(kind, 'closed');
  transport.close();
});

test('Duplex.from of web streams is one stream, both ways', async () => {
  const { readable, writable } = new TransformStream();
  const both = Duplex.fromWeb({ readable, writable });
  const { transport, reached } = open(LINES, {}, { readable: both, writable: both });
  transport.post('echo');
  assert.deepEqual(await reached(1), [['message', 'echo']]);
  transport.close();
});

describe('a client that has ended its half of the stream', () => {
  const ask = (id, method) => ({ jsonrpc: '2.0', id, method, params: {} });
  /** A server that has read these requests, and the end after them. */
  async function asked(dialect, requests, streams, handlers) {
    const input = new PassThrough();
    const output = new PassThrough();
    const transport = lineTransport({ readable: input, writable: output, ...streams });
    const peer = createPeer(transport, { dialect });
    for (const [method, handler] of Object.entries(handlers(peer))) peer.handle(method, handler);
    const ended = new Promise((resolve) => {
      const { onEnd } = transport;
      transport.onEnd = () => (onEnd(), resolve());
    });
    input.end(framed(LINES, ...requests));
    return { peer, output, ended, transport };
  }
  const answersOf = async (output) => {
    const text = Buffer.concat(await output.toArray()).toString();
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  };

  for (const dialect of ['acp', 'lsp', 'mcp']) {
    test(`${dialect}: gets its answers, and then the connection ends in an orderly way`, async () => {
      const go = gate();
      const { peer, output, ended } = await asked(
        dialect,
        [ask(1, 'slow'), ask(2, 'asks'), ask(3, 'subscriptions/listen')],
        {},
        () => ({
          slow: async () => ({ slow: await go.opened }),
          async asks(_, { request, progress, notify }) {
            const { err } = await outcome(request('theirs'));
            progress({ progress: 1 });
            notify('note');
            return { why: err.data.closedBy, again: (await outcome(request('theirs'))).err.code };
          },
          'subscriptions/listen': (_, { signal }) => dialect !== 'mcp' || fired(signal),
        }),
      );
      await ended;
      const { err } = await outcome(peer.request('late'));
      assert.deepEqual(err.data, { closedBy: 'peer', outcome: 'unstarted' });
      go.open(true);
      const { cause, data } = await peer.closed;
      assert.deepEqual([cause, data], [undefined, { closedBy: 'peer' }]);
      const answers = (await answersOf(output)).filter(({ id, method }) => id && !method);
      const results = Object.fromEntries(answers.map(({ id, result }) => [id, result]));
      assert.deepEqual(results[1], { slow: true });
      assert.deepEqual(results[2], { why: 'peer', again: err.code });
      assert.equal(answers.length, dialect === 'mcp' ? 2 : 3);
    });
  }

  test('and then the other half, too: handlers are aborted', async () => {
    for (const end of [(output) => output.destroy(), (output) => output.destroy(new Error('no'))]) {
      const aborted = gate();
      const { peer, output, ended } = await asked('acp', [ask(1, 'slow')], {}, () => ({
        slow: async (_, { signal }) => aborted.open(await fired(signal)),
      }));
      await ended;
      end(output);
      assert.equal((await aborted.opened).name, 'AbortError');
      await peer.closed;
    }
  });

  test('over a socket that ends as a whole: handlers are aborted', async () => {
    const aborted = gate();
    const started = gate();
    const server = createServer((socket) => {
      const peer = createPeer(lineTransport({ readable: socket, writable: socket }), {
        dialect: 'lsp',
      });
      peer.handle('slow', async (_, { signal }) => {
        started.open();
        aborted.open(await fired(signal));
      });
    });
    await once(server.listen(0), 'listening');
    const client = connect(server.address().port);
    client.write(framed(LINES, ask(1, 'slow')));
    await started.opened;
    client.end();
    assert.equal((await aborted.opened).name, 'AbortError');
    client.destroy();
    server.close();
  });

  test('cat requests | server', async () => {
    const at = (path) => JSON.stringify(new URL(`../../../${path}`, import.meta.url).href);
    const script = `
      import { setTimeout as sleep } from 'node:timers/promises';
      import { createPeer } from ${at('packages/rpc/src/index.js')};
      import { lineTransport } from ${at('packages/rpc/src/byte-streams.js')};
      const streams = { readable: process.stdin, writable: process.stdout };
      const peer = createPeer(lineTransport(streams), { dialect: 'mcp' });
      peer.handle('slow', () => sleep(20, { done: true }));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    child.stdin.end(framed(LINES, ask(1, 'slow')));
    assert.deepEqual(await answersOf(child.stdout), [
      { jsonrpc: '2.0', id: 1, result: { done: true } },
    ]);
  });
});
