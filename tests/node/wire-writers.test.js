// What js/wire sends: messages, entries of frames and when they go, streams, bytes as text, and what becomes of what cannot be sent.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import '../../js/common/uncloneable.js'; // it is loaded on demand, and then it is there
import { warnings } from '../../js/common/warnings.js';
import * as FrameKind from '../../js/wire/frame-kinds.js';
import { FrameWriter } from '../../js/wire/frames.js';
import { CALL, ELICITATION } from '../../js/wire/messages.js';
import { prepare, withBase64 } from '../../js/wire/result-store.js';
import { writeChunk, writeCredit } from '../../js/wire/stream-writer.js';
import { reasonUnsent, warnUnsent } from '../../js/wire/unsent.js';
import { EntryWriter, MessageWriter } from '../../js/wire/writers.js';

const turn = () => new Promise(setImmediate);
/** Lets others have their turns until it is so, or never will be. */
const until = async (isSo) => {
  for (let i = 0; i < 1000 && !isSo(); i++) await turn();
};
/** Microtasks until it is so. */
const microtasksUntil = async (isSo) => {
  let count = 0;
  for (; count < 100 && !isSo(); count++) await undefined;
  return count;
};
const microtasks = async (count) => {
  for (let i = 0; i < count; i++) await undefined;
};
const isTransferred = (moved, kept) => [moved.byteLength, kept.byteLength];

/** Where a writer posts: as a port does, it throws for what cannot be cloned. */
function outletOf() {
  const posted = [];
  const told = [];
  return {
    posted,
    told,
    outgoing: CALL,
    incoming: ELICITATION,
    core: { number: (handle) => handle * 10 },
    post: (message, transfer, kind) => {
      const { timestamp, ...rest } = structuredClone(message, { transfer });
      if (!Array.isArray(message)) assert.ok(Math.abs(Date.now() - timestamp) < 60_000);
      posted.push([Array.isArray(message) ? message : rest, transfer, kind]);
    },
    tellUnsent: (...given) => told.push(given),
  };
}
/** What is warned of while a test runs. */
function listenToWarnings(t) {
  const said = [];
  warnings((message) => said.push(message));
  t.after(() => warnings(true));
  return said;
}
const asked = { handle: 3, id: 'P.3', key: 0, callId: undefined, name: 'x', params: 'p' };
const callOf = (more) => ({ ...asked, timeout: 0, progress: false, unsent: mock.fn(), ...more });
const UNSENDABLE = { act() {} };
const IMMOVABLE = {};
const refused = (what) => ({
  success: false,
  error: { code: 'OPERATION_FAILED', message: what, retryable: false },
});
const whyUnsent = /^The result cannot be sent: data.act \(function\): .* could not be cloned/;

describe('a writer of messages', () => {
  test('writes each thing as a message of its own', () => {
    const { posted, ...outlet } = outletOf();
    const writer = new MessageWriter(outlet);
    const buffer = new ArrayBuffer(1);
    const call = callOf({ timeout: 5, transfer: [buffer] });
    writer.request(call);
    writer.respond({ message: { id: 7 } }, { success: true, data: 'd' });
    writer.progress({ callId: 'c', request: { progress: true } }, { progress: 1 });
    writer.progress({ callId: 'c', request: { progress: 'token' } }, { progress: 1 });
    writer.message({ type: 'other' });
    writer.message({ type: 'hello' }, 'greeting');
    writer.later({ type: 'progress' });
    assert.deepEqual([writer.cancel(), writer.flush()], [undefined, undefined]);
    const payload = CALL.write('P.3', call);
    assert.deepEqual(posted, [
      [{ type: 'capabilities/call', id: 'P.3', payload }, [buffer], 'request'],
      [
        { type: 'elicitation/response', id: 7, payload: { success: true, data: 'd' } },
        ...[undefined, undefined],
      ],
      [
        { type: 'progress', payload: { progress: 1, operationId: 'c' } },
        ...[undefined, 'droppable'],
      ],
      [
        { type: 'progress', payload: { progress: 1, operationId: 'token' } },
        ...[undefined, 'droppable'],
      ],
      [{ type: 'other' }, undefined, undefined],
      [{ type: 'hello' }, undefined, 'greeting'],
      [{ type: 'progress' }, undefined, 'droppable'],
    ]);
  });

  test('keeps the time of a message that has one', () => {
    let at;
    const writer = new MessageWriter({ post: ({ timestamp }) => (at = timestamp) });
    writer.message({ type: 'x', timestamp: 5 });
    assert.equal(at, 5);
  });

  test('tells a call that cannot be sent', () => {
    const call = callOf({ params: UNSENDABLE });
    new MessageWriter(outletOf()).request(call);
    assert.equal(call.unsent.mock.calls[0].arguments[0].name, 'DataCloneError');
  });

  test('refuses what is too deep before it is posted', () => {
    const outlet = outletOf();
    let params = 1;
    for (let i = 0; i < 1100; i++) params = [params];
    const call = callOf({ params });
    new MessageWriter(outlet).request(call);
    assert.equal(call.unsent.mock.calls[0].arguments[0].name, 'RangeError');
    assert.deepEqual(outlet.posted, []);
  });

  test('answers without what cannot be moved, and says why an answer cannot be sent', async () => {
    const outlet = outletOf();
    const writer = new MessageWriter(outlet);
    writer.respond({ message: { id: 'a' } }, { success: true, data: 'd' }, [IMMOVABLE]);
    writer.respond({ message: { id: 'b' } }, { success: true, data: UNSENDABLE }, []);
    await until(() => outlet.posted.length === 2);
    const [[first, ...how], [second]] = outlet.posted;
    assert.deepEqual([first.id, first.payload.data, ...how], ['a', 'd', undefined, undefined]);
    assert.equal(second.id, 'b');
    const { message } = second.payload.error;
    assert.deepEqual(second.payload, refused(message));
    assert.match(message, whyUnsent);
  });

  test('warns of what else cannot be sent', async (t) => {
    const said = listenToWarnings(t);
    const writer = new MessageWriter(outletOf());
    writer.message({ type: 'x', payload: UNSENDABLE });
    writer.respond({ message: { id: () => {} } }, { success: true });
    await until(() => said.length === 2);
    assert.equal(said.length, 2);
    assert.match(said[0], /a message could not be sent: payload.act \(function\)/);
  });
});

describe('what cannot be sent', () => {
  test('is explained by what is loaded then', async (t) => {
    const said = listenToWarnings(t);
    const error = new Error('why');
    const reason = await reasonUnsent('call', 'params', UNSENDABLE, error);
    assert.match(reason, /^The call cannot be sent: params.act \(function\): why/);
    await warnUnsent(error, UNSENDABLE);
    assert.match(said[0], /payload.act/);
  });
});

describe('frames', () => {
  const make = () => {
    const posted = [];
    const failed = [];
    const frames = new FrameWriter(
      (frame, transfer) => {
        structuredClone(frame, { transfer });
        posted.push([frame, transfer]);
      },
      (...given) => failed.push(given),
    );
    return { frames, posted, failed, sent: () => posted.splice(0).map(([frame]) => frame) };
  };

  test('begin with an entry that does not wait, and others go together', async () => {
    const { frames, posted, sent } = make();
    frames.add(1, 'a', 'b', 'c');
    assert.deepEqual(sent(), [[1, 'a', 'b', 'c']]);
    frames.add(1, 'd', 'e', 'f');
    frames.add(1, 'g', 'h', 'i');
    assert.equal(await microtasksUntil(() => posted.length), 2);
    assert.deepEqual(sent(), [[1, 'd', 'e', 'f', 1, 'g', 'h', 'i']]);
    frames.add(1, 'j', 'k', 'l');
    assert.equal(posted.length, 1);
    await microtasks(5);
    assert.equal(posted.length, 1);
  });

  test('collect what a handler settles a microtask later', async () => {
    const { frames, sent } = make();
    frames.add(1, 1, 1, 1);
    frames.add(1, 2, 2, 2);
    void Promise.resolve().then(() => frames.add(1, 3, 3, 3));
    await microtasks(5);
    assert.deepEqual(sent(), [
      [1, 1, 1, 1],
      [1, 2, 2, 2, 1, 3, 3, 3],
    ]);
  });

  test('wait longer if they are told to, and say whether they have something', async () => {
    const { frames, posted, sent } = make();
    frames.add(1, 1, 1, 1);
    assert.equal(frames.wait(5), false);
    frames.add(1, 2, 2, 2);
    assert.equal(frames.wait(5), true);
    sent();
    assert.equal(await microtasksUntil(() => posted.length), 6);
    assert.deepEqual(sent(), [[1, 2, 2, 2]]);
  });

  test('have copies of what waits, as it was', async () => {
    const { frames, posted, sent } = make();
    const first = { a: 1 };
    frames.add(1, 1, 1, first);
    assert.equal(posted[0][0][3], first);
    const value = { a: 1 };
    frames.add(1, 2, 2, value);
    value.a = 2;
    const large = new Uint8Array(1);
    frames.add(1, 3, 3, large);
    assert.deepEqual(sent().slice(1), [[1, 2, 2, { a: 1 }, 1, 3, 3, large]]);
  });

  test('take a message that is not urgent at the end of the turn, also a first one', async () => {
    const { frames, sent } = make();
    frames.addLater({ type: 'x' });
    assert.deepEqual(sent(), []);
    frames.add(1, 2, 2, 2);
    assert.deepEqual(sent(), []);
    await microtasks(4);
    assert.deepEqual(sent(), [[FrameKind.MESSAGE, 0, undefined, { type: 'x' }, 1, 2, 2, 2]]);
  });

  test('have 4096 entries at most', async () => {
    const { frames, sent } = make();
    for (let i = 0; i <= 4097; i++) frames.add(1, i, i, i);
    await microtasks(4);
    assert.deepEqual(
      sent().map(({ length }) => length / 4),
      [1, 4096, 1],
    );
  });

  test('move what belongs to their entries, once', async () => {
    const { frames, posted } = make();
    const [a, b] = [new ArrayBuffer(1), new ArrayBuffer(1)];
    frames.add(1, 0, 0, 0);
    assert.equal(posted[0][1], undefined);
    frames.add(1, 1, 1, 1);
    frames.add(1, 2, 2, { small: 1 }, [a, b]);
    frames.add(1, 3, 3, { small: 1 }, [b]);
    await microtasks(4);
    assert.deepEqual(posted[1][1], [a, b]);
    frames.add(1, 4, 4, 4);
    assert.equal(posted[2][1], undefined);
  });

  test('send one by one what does not go together, and tell what does not go at all', async () => {
    const { frames, posted, failed } = make();
    const [a, b] = [new ArrayBuffer(1), new ArrayBuffer(1)];
    frames.add(1, 0, 0, 0);
    posted.splice(0);
    frames.add(1, 1, 1, 1, [a]);
    frames.add(1, () => {}, 2, 2, [b]);
    frames.add(1, 3, 3, 3);
    await microtasks(4);
    assert.deepEqual(posted, [
      [[1, 1, 1, 1], [a]],
      [[1, 3, 3, 3], undefined],
    ]);
    assert.deepEqual(isTransferred(a, b), [0, 1]);
    const [[entry, transfer, error]] = failed;
    assert.deepEqual(
      [failed.length, entry[2], transfer, error.name],
      [1, 2, [b], 'DataCloneError'],
    );
    frames.add(1, 0, 0, UNSENDABLE);
    assert.deepEqual([failed[1][0][3], failed[1][1]], [UNSENDABLE, undefined]);
  });

  test('tell what is too deep before they collect it', async () => {
    const { frames, posted, failed } = make();
    let deep = 1;
    for (let i = 0; i < 1100; i++) deep = [deep];
    frames.add(1, 0, 0, deep, ['moved']);
    assert.deepEqual([failed[0][0], failed[0][1]], [[1, 0, 0, deep], ['moved']]);
    assert.equal(failed[0][2].name, 'RangeError');
    await microtasks(4);
    assert.deepEqual(posted, []);
  });
});

describe('a writer of entries', () => {
  const make = () => {
    const outlet = outletOf();
    const writer = new EntryWriter(outlet, new MessageWriter(outlet));
    return { ...outlet, writer, sent: () => outlet.posted.splice(0).map(([message]) => message) };
  };
  /** What one act writes, by itself. */
  const written = async (act) => {
    const { writer, sent } = make();
    act(writer);
    writer.flush();
    return sent();
  };

  test('writes a call, with what is asked beside its params', async () => {
    const request = (more) => {
      const call = callOf(more);
      return written((writer) => writer.request(call)).then(([frame]) => [call.key, frame]);
    };
    const { REQUEST, REQUEST_WITH } = FrameKind;
    assert.deepEqual(await request(), [30, [REQUEST, 30, 'x', 'p']]);
    assert.deepEqual(await request({ callId: 'own' }), ['own', [REQUEST, 'own', 'x', 'p']]);
    for (const [more, expected] of [
      [{ timeout: 5 }, ['p', 5, false]],
      [{ progress: true }, ['p', 0, true]],
      [{ progress: 0 }, ['p', 0, 0]],
      [{ window: [2, 3] }, ['p', 0, false, 2, 3]],
      [{ window: [2, 3], input: {} }, ['p', 0, false, 2, 3, true]],
      [{ input: {} }, ['p', 0, false, 0, 0, true]],
      [{ idempotencyKey: 'k' }, ['p', 0, false, 0, 0, false, 'k']],
      [{ about: 'own' }, ['p', 0, false, 0, 0, 'own']],
      [{ about: 'own', idempotencyKey: 'k' }, ['p', 0, false, 0, 0, 'own', 'k']],
    ]) {
      assert.deepEqual((await request(more))[1], [REQUEST_WITH, 30, 'x', expected]);
    }
    assert.deepEqual((await request({ window: [0, 3] }))[1], [REQUEST, 30, 'x', 'p']);
  });

  test('moves what a call moves', () => {
    for (const more of [{}, { timeout: 5 }]) {
      const { writer, posted } = make();
      const moved = new ArrayBuffer(1);
      writer.request(callOf({ ...more, transfer: [moved] }));
      assert.deepEqual(posted[0][1], [moved]);
    }
  });

  test('writes an answer, short if it says no more than its data and a duration', async () => {
    const { VALUE, RESPONSE } = FrameKind;
    const call = { request: { key: 7 } };
    const respond = async (response) => (await written((w) => w.respond(call, response)))[0];
    const short = { success: true, data: 'd', metadata: { duration: 5 } };
    assert.deepEqual(await respond(short), [VALUE, 7, 5, 'd']);
    for (const response of [
      { success: true, data: 'd' },
      { success: false, metadata: { duration: 5 } },
      { ...short, metadata: { duration: 5, cached: false } },
      { ...short, metadata: { duration: 5, collected: true } },
    ]) {
      assert.deepEqual(await respond(response), [RESPONSE, 7, undefined, response]);
    }
    const message = { ...call, message: { id: 'm' } };
    assert.deepEqual(await written((w) => w.respond(message, short)), [
      ...[{ type: 'elicitation/response', id: 'm', payload: short }],
    ]);
    for (const response of [short, { success: true }]) {
      const { writer, posted } = make();
      const moved = new ArrayBuffer(1);
      writer.respond(call, response, [moved]);
      assert.deepEqual(posted[0][1], [moved]);
      const answered = make();
      const other = new ArrayBuffer(1);
      answered.writer.respond(message, response, [other]);
      assert.deepEqual(answered.posted[0][1], [other]);
    }
  });

  test('writes progress by the number of its call, if it has one and is asked by it', async () => {
    const info = { progress: 1 };
    const progress = async (handle, token) => {
      const call = { handle, callId: 'c', request: { progress: token } };
      const [frame] = await written((writer) => writer.progress(call, info));
      if (frame[3].timestamp) delete frame[3].timestamp;
      return frame;
    };
    const { PROGRESS, MESSAGE } = FrameKind;
    const message = (operationId) => [
      ...[MESSAGE, 0, undefined, { type: 'progress', payload: { progress: 1, operationId } }],
    ];
    assert.deepEqual(await progress(3, true), [PROGRESS, 30, undefined, info]);
    assert.deepEqual(await progress(0, true), message('c'));
    assert.deepEqual(await progress(3, 'token'), message('token'));
  });

  test('writes cancels and messages, now or at the end of the turn', async () => {
    assert.deepEqual(await written((writer) => writer.cancel({ key: 7 }, 'why')), [
      [FrameKind.CANCEL, 7, 'why', undefined],
    ]);
    const [frame] = await written((writer) => writer.message({ type: 'x' }));
    assert.ok(Math.abs(Date.now() - frame[3].timestamp) < 60_000);
    assert.deepEqual(frame.slice(0, 3), [FrameKind.MESSAGE, 0, undefined]);
    assert.equal(frame[3].type, 'x');
    const { writer, sent } = make();
    writer.later({ type: 'y' });
    assert.deepEqual(sent(), []);
    await microtasks(4);
    assert.deepEqual(sent(), [[FrameKind.MESSAGE, 0, undefined, { type: 'y' }]]);
  });

  test('tells whose call or chunk cannot be sent', () => {
    const { writer, told } = make();
    writer.request(callOf({ params: UNSENDABLE }));
    writer.request(callOf({ params: UNSENDABLE, timeout: 5 }));
    writer.flush();
    writer.frames.add(FrameKind.CHUNK, 7, 8, UNSENDABLE);
    writer.flush();
    assert.deepEqual(
      told.map(([method, key, { name }]) => [method, key, name]),
      [
        ['unsent', 30, 'DataCloneError'],
        ['unsent', 30, 'DataCloneError'],
        ['chunkFailed', 7, 'DataCloneError'],
      ],
    );
  });

  test('answers without what cannot be moved, and says why an answer cannot be sent', async () => {
    const call = { request: { key: 7 } };
    for (const metadata of [undefined, { duration: 5 }]) {
      const { writer, sent, posted } = make();
      const response = { success: true, data: 'd', metadata };
      writer.respond(call, response, [IMMOVABLE]);
      writer.flush();
      const kind = metadata ? FrameKind.VALUE : FrameKind.RESPONSE;
      assert.deepEqual(sent(), [[kind, 7, metadata?.duration, metadata ? 'd' : response]]);
      writer.respond(call, { success: true, data: UNSENDABLE, metadata }, []);
      writer.flush();
      await until(() => posted.length);
      const [[how, key, a, said]] = sent();
      assert.deepEqual([how, key, a], [FrameKind.RESPONSE, 7, undefined]);
      assert.match(said.error.message, whyUnsent);
    }
  });

  test('warns of what nobody else can be told', async (t) => {
    const said = listenToWarnings(t);
    const { writer, posted } = make();
    writer.message({ type: 'x', payload: UNSENDABLE });
    writer.progress({ handle: 3, request: { progress: true } }, UNSENDABLE);
    writer.respond({ request: { key: () => {} } }, { success: true });
    writer.flush();
    await until(() => said.length === 3);
    assert.deepEqual(posted, []);
    assert.equal(said.length, 3);
    for (const message of said.slice(0, 2)) assert.match(message, /payload.act \(function\)/);
  });
});

describe('a stream', () => {
  const make = (t) => {
    let now = 1000;
    t.mock.method(performance, 'now', () => now);
    const outlet = outletOf();
    const messages = new MessageWriter(outlet);
    const writer = new EntryWriter(outlet, messages);
    const chunkFailed = mock.fn();
    const call = { callId: 'c', request: { key: 7 }, chunkFailed };
    return {
      ...{ writer, messages, call, outlet },
      write: (chunk, size = 1) => writeChunk(writer, messages, call, chunk, size),
      pass: (ms) => (now += ms),
      /** The chunks of each frame that was posted. */
      sent: () => outlet.posted.splice(0).map(([frame]) => frame.filter((_part, i) => i % 4 === 3)),
    };
  };

  test('is written as messages where there are no frames', (t) => {
    const { writer, messages, call, outlet } = make(t);
    const moved = { content: new ArrayBuffer(1), mimeType: 'a/b' };
    writeChunk(messages, messages, call, moved, 5);
    writeChunk(writer, messages, { ...call, message: {} }, 'x', 6);
    const [[first, transfer], [second]] = outlet.posted;
    assert.deepEqual(
      [first.type, first.payload.callId, first.payload.size],
      [...['bridge/chunk', 'c', 5]],
    );
    assert.deepEqual(transfer, [moved.content]);
    assert.deepEqual(second, {
      ...{ type: 'bridge/chunk', payload: { callId: 'c', size: 6, chunk: 'x' } },
    });
    writeChunk(messages, messages, call, UNSENDABLE, 5);
    assert.equal(call.chunkFailed.mock.calls[0].arguments[0].name, 'DataCloneError');
    const made = { id: 'P.3', key: 30 };
    writeCredit(messages, made, [1, 2]);
    assert.deepEqual(outlet.posted[2][0], {
      ...{ type: 'bridge/credit', payload: { callId: 'P.3', chunks: 1, bytes: 2 } },
    });
  });

  test('says what was read in an entry, if its call has a key', (t) => {
    const { writer, outlet } = make(t);
    writeCredit(writer, { id: 'P.3', key: 30 }, [1, 2]);
    assert.deepEqual(outlet.posted[0][0], [FrameKind.CREDIT, 30, 1, 2]);
    writeCredit(writer, { id: 'P.3', key: 0 }, [1, 2]);
    writer.flush();
    const [kind, , , { type, payload }] = outlet.posted[1][0];
    assert.deepEqual(
      [kind, type, payload],
      [...[FrameKind.MESSAGE, 'bridge/credit', { callId: 'P.3', chunks: 1, bytes: 2 }]],
    );
  });

  test('moves what a chunk moves', (t) => {
    const { write, outlet } = make(t);
    const chunk = { content: new ArrayBuffer(1), mimeType: 'a/b' };
    write(chunk);
    assert.deepEqual(outlet.posted[0][1], [chunk.content]);
    assert.deepEqual(outlet.posted[0][0].slice(0, 3), [FrameKind.CHUNK, 7, 1]);
  });

  test('sends a first chunk at once, and collects those that follow within a millisecond', async (t) => {
    const { write, sent, pass, outlet } = make(t);
    write('a');
    assert.deepEqual(sent(), [['a']]);
    write('b');
    pass(0.9);
    write('c');
    assert.equal(await microtasksUntil(() => outlet.posted.length), 25);
    assert.deepEqual(sent(), [['b', 'c']]);
    pass(0.1);
    write('d');
    assert.deepEqual(sent(), [['d']]);
  });

  test('sends what has waited for a millisecond with the chunk that comes then', async (t) => {
    const { write, sent, pass } = make(t);
    write('a');
    write('b');
    sent();
    pass(1);
    write('c');
    assert.deepEqual(sent(), [['b', 'c']]);
    write('d');
    assert.deepEqual(sent(), []);
    pass(1);
    write('e');
    assert.deepEqual(sent(), [['d', 'e']]);
  });

  test('counts the millisecond from the last chunk that did not wait', async (t) => {
    const { write, sent, pass } = make(t);
    write('a');
    await microtasks(40);
    pass(0.5);
    write('b');
    assert.deepEqual(sent(), [['a'], ['b']]);
    pass(0.7);
    write('c');
    assert.deepEqual(sent(), []);
    await microtasks(40);
    assert.deepEqual(sent(), [['c']]);
  });

  test('sends 64 KiB, however quickly they came', async (t) => {
    const { write, sent } = make(t);
    write('a', 1);
    sent();
    write('b', 2 ** 15);
    write('c', 2 ** 15 - 1);
    assert.deepEqual(sent(), []);
    write('d', 1);
    assert.deepEqual(sent(), [['b', 'c', 'd']]);
    write('e', 2 ** 16 - 1);
    assert.deepEqual(sent(), []);
    write('f', 1);
    assert.deepEqual(sent(), [['e', 'f']]);
  });
});

describe('bytes in a result', () => {
  const context = { signal: new AbortController().signal, callId: 'c' };
  const bytes = (length) => Uint8Array.from({ length }, (_, i) => i);

  test('are stored above a size, each by its own, and what is small or text stays', async () => {
    const stored = [];
    const store = (data, call) => {
      stored.push([data, call]);
      return { downloadUrl: `u${stored.length}`, expiresAt: 5, auth: { type: 'query' }, own: 1 };
    };
    const small = { content: bytes(10), mimeType: 'a/b' };
    const large = { content: bytes(11), mimeType: 'a/b', filename: 'f' };
    const value = { small, list: [large, { again: large }, 'last'], text: 'x' };
    const sent = await prepare(value, context, store, 10);
    assert.deepEqual(sent, {
      small,
      list: [
        {
          ...{ downloadUrl: 'u1', mimeType: 'a/b', size: 11, filename: 'f', expiresAt: 5 },
          auth: { type: 'query' },
        },
        { again: sent.list[0] },
        'last',
      ],
      text: 'x',
    });
    assert.equal(sent.small, small);
    assert.deepEqual(value.list[0], large);
    assert.equal(stored.length, 1);
    const [[data, call]] = stored;
    assert.deepEqual(Object.keys(data), ['content', 'mimeType', 'filename', 'size']);
    assert.deepEqual([data.size, data.filename, call], [11, 'f', context]);
    assert.deepEqual(new Uint8Array(data.content), bytes(11));
    const same = { a: [1, { b: 'x', none: null }] };
    assert.equal(await prepare(same, context, store, 10), same);
    assert.equal(await prepare(large, context, undefined, 10), large);
  });

  test('have the size of what they are, in whatever form', async () => {
    const stores = async (content, above, more) => {
      let size = 'not stored';
      const store = (data) => ((size = data.size), { downloadUrl: 'u' });
      await prepare({ content, mimeType: 'a/b', ...more }, context, store, above);
      return size;
    };
    for (const content of [bytes(6).buffer, bytes(6), new DataView(bytes(6).buffer)]) {
      assert.deepEqual([await stores(content, 6), await stores(content, 5)], ['not stored', 6]);
    }
    const view = bytes(10).subarray(2, 6);
    assert.equal(await stores(view, 3), 4);
    const blob = new Blob(['12345']);
    assert.deepEqual([await stores(blob, 5), await stores(blob, 4)], ['not stored', 5]);
    assert.deepEqual([await stores('text', 4), await stores('text', 3)], ['not stored', 4]);
    // Its size in characters decides, and its bytes are stored.
    assert.equal(await stores('é', 0), 2);
    const base64 = { encoding: 'base64' };
    for (const [text, size] of [
      ['AQIDBAUG', 6],
      ['AQIDBAU=', 5],
      ['AQIDBA==', 4],
    ]) {
      assert.equal(await stores(text, size, base64), 'not stored');
      assert.equal(await stores(text, size - 1, base64), size);
    }
    assert.equal(await stores(5, 0), 'not stored');
    assert.equal(await stores('text', 0, { mimeType: 5 }), 'not stored');
  });

  test('stand alone, too', async () => {
    const store = ({ mimeType, size }) => ({ downloadUrl: `${mimeType} ${size}` });
    const stored = async (value) => (await prepare(value, context, store, 1)).downloadUrl;
    assert.equal(await stored(bytes(2)), 'application/octet-stream 2');
    assert.equal(await stored(new Blob(['12'])), 'application/octet-stream 2');
    assert.equal(await stored(new Blob(['12'], { type: 'a/b' })), 'a/b 2');
  });

  test('of a Blob are read, whether they are stored or not', async () => {
    const blob = new Blob(['12'], { type: 'a/b' });
    const sent = await prepare({ a: blob }, context, undefined, 1);
    assert.deepEqual(sent.a.mimeType, 'a/b');
    assert.ok(sent.a.content instanceof ArrayBuffer);
    const { Blob: known } = globalThis;
    globalThis.Blob = undefined;
    try {
      assert.equal(await prepare('x', context, undefined, 1), 'x');
    } finally {
      globalThis.Blob = known;
    }
  });

  test('are not stored for a call that is cancelled', async () => {
    const controller = new AbortController();
    controller.abort(new Error('stopped'));
    const store = mock.fn();
    const call = { ...context, signal: controller.signal };
    await assert.rejects(prepare(bytes(2), call, store, 1), { message: 'stopped' });
    assert.equal(store.mock.callCount(), 0);
  });

  test('that cannot be stored fail their call', async () => {
    for (const [store, why] of [
      [() => ({}), 'store gave no downloadUrl'],
      [() => Promise.reject(new Error('full')), 'full'],
    ]) {
      await assert.rejects(prepare(bytes(2), context, store, 1), (error) => {
        assert.equal(error.code, 'OPERATION_FAILED');
        assert.equal(error.message, `The result could not be stored: ${why}`);
        assert.equal(error.cause.message, why);
        return true;
      });
    }
  });

  test('are bounded, more widely than messages', async () => {
    const half = 'x'.repeat(2 ** 28);
    assert.ok(await prepare([half, half], context, undefined, 1));
    for (const value of [[half, half, 'x'], new Array(2 ** 24)]) {
      await assert.rejects(prepare(value, context, undefined, 1), (error) => {
        assert.equal(error.code, 'OPERATION_FAILED');
        assert.match(error.message, /^The result cannot be sent: The value has too many/);
        assert.ok(error.cause instanceof RangeError);
        return true;
      });
    }
  });

  test('are left where JSON does not look, or goes in a circle', async () => {
    const own = { toJSON: () => 1, content: bytes(1), inner: new Blob(['x']) };
    const value = { own };
    assert.equal(await prepare(value, context, undefined, 1), value);
    const store = () => ({ downloadUrl: 'u' });
    const cycle = { toJSON: undefined, blob: new Blob(['x']) };
    const shared = { blob: new Blob(['y']) };
    const twice = await prepare([shared, shared, cycle], context, store, 5);
    for (const part of twice) assert.ok(part.blob.content instanceof ArrayBuffer);
  });

  test('become base64, and a value without any is itself', async () => {
    const value = { a: [1] };
    assert.equal(withBase64(value), value);
    assert.equal(withBase64('x'), 'x');
    const none = { content: 5, mimeType: 'a/b' };
    assert.equal(withBase64(none), none);
    assert.deepEqual(await withBase64({ content: new ArrayBuffer(0), mimeType: 'a/b' }), {
      ...{ content: '', mimeType: 'a/b', encoding: 'base64', size: 0 },
    });
    const text = { content: 'x', mimeType: 'a/b' };
    const mixed = { bytes: { content: bytes(3), mimeType: 'a/b', own: 1 }, text, blob: new Blob() };
    const sent = await withBase64(mixed);
    const octets = 'application/octet-stream';
    assert.deepEqual(sent, {
      bytes: { content: 'AAEC', mimeType: 'a/b', own: 1, encoding: 'base64', size: 3 },
      text,
      blob: { content: '', mimeType: octets, encoding: 'base64', size: 0 },
    });
    assert.equal(sent.text, text);
  });
});
