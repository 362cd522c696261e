// What waits in js/common: signals, turns, chunks that come and are read; and what is told of that which fails.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { MAX_MESSAGES_PER_TURN, inLaterTurn } from '../../js/common/turns.js';
import * as errors from '../../js/common/errors.js';
import { Collection, Iteration, chunkUnsent } from '../../js/common/iteration.js';
import { Inflow } from '../../js/common/inflow.js';
import { abortError, followSignal, offAbort, onAbort } from '../../js/common/signals.js';
import { breathe, breatherOf, inAnotherTurn } from '../../js/common/breathe.js';
import { iteratorOf } from '../../js/common/iterator-of.js';
import { unless, whenAborted } from '../../js/common/waiting.js';
import { transfer } from '../../js/common/transfer.js';
import { warn as warnSoon } from '../../js/common/warn.js';
import { warn, warnOfHandler, warnings } from '../../js/common/warnings.js';

const { AbpError } = errors;
const turn = () => new Promise(setImmediate);
/** What throws, whatever is read of it. */
const unreadable = new Proxy(
  {},
  {
    get() {
      throw new Error('no');
    },
  },
);

/** A signal that says who listens. */
function signalOf(controller) {
  const { signal } = controller;
  const listening = new Set();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (type, record, options) => (
    listening.add(record),
    add(type, record, options)
  );
  signal.removeEventListener = (type, record) => (listening.delete(record), remove(type, record));
  return { signal, listening };
}

describe('a signal', () => {
  test('is listened to once each, by any number without a warning', async (t) => {
    const warned = mock.fn();
    process.on('warning', warned);
    t.after(() => process.off('warning', warned));
    const controller = new AbortController();
    const records = Array.from({ length: 20 }, () => ({ handleEvent: mock.fn() }));
    for (const record of records) onAbort(controller.signal, record);
    controller.abort();
    controller.signal.dispatchEvent(new Event('abort'));
    for (const { handleEvent } of records) assert.equal(handleEvent.mock.callCount(), 1);
    await turn();
    assert.equal(warned.mock.callCount(), 0);
    const [record] = records;
    onAbort(undefined, record);
    offAbort(undefined, record);
  });

  test('is listened to where there is no Node, or one that is older', async () => {
    const { process } = globalThis;
    for (const other of [undefined, {}]) {
      globalThis.process = other;
      const loading = import(`../../js/common/signals.js?${typeof other}`);
      const fresh = await loading.finally(() => (globalThis.process = process));
      const controller = new AbortController();
      const record = { handleEvent: mock.fn() };
      fresh.onAbort(controller.signal, record);
      controller.abort();
      assert.equal(record.handleEvent.mock.callCount(), 1);
    }
  });

  test('may be another library’s', () => {
    const calls = [];
    const foreign = { addEventListener: (...given) => calls.push(given) };
    const record = { handleEvent() {} };
    onAbort(foreign, record);
    assert.deepEqual(calls, [['abort', record, { once: true }]]);
  });

  test('is not listened to any more when that was said', () => {
    const controller = new AbortController();
    const act = mock.fn();
    const { signal, listening } = signalOf(controller);
    const release = whenAborted(signal, act);
    assert.equal(listening.size, 1);
    release();
    assert.equal(listening.size, 0);
    controller.abort();
    assert.equal(act.mock.callCount(), 0);
  });

  test('that fires makes somebody act, at once if it has', () => {
    const controller = new AbortController();
    const act = mock.fn();
    whenAborted(controller.signal, act);
    assert.equal(act.mock.callCount(), 0);
    controller.abort();
    whenAborted(controller.signal, act);
    assert.equal(act.mock.callCount(), 2);
    whenAborted(undefined, act)();
    assert.equal(act.mock.callCount(), 2);
  });

  test('ends the wait for a promise, and else lets it settle and is let go', async () => {
    for (const settle of [() => Promise.resolve(1), () => Promise.reject(new Error('own'))]) {
      const { signal, listening } = signalOf(new AbortController());
      const waiting = unless(signal, settle());
      assert.equal(listening.size, 1);
      assert.equal(
        await waiting.catch(({ message }) => message),
        await settle().catch(() => 'own'),
      );
      await turn();
      assert.equal(listening.size, 0);
    }
    assert.equal(await unless(undefined, Promise.resolve(2)), 2);
    const controller = new AbortController();
    const waiting = unless(controller.signal, new Promise(() => {}));
    controller.abort('enough');
    await assert.rejects(waiting, (reason) => reason === 'enough');
    await assert.rejects(unless(controller.signal, new Promise(() => {})), (reason) => {
      return reason === 'enough';
    });
  });

  test('is followed, with its reason or another', () => {
    const first = new AbortController();
    const follower = followSignal(first.signal);
    const other = followSignal(first.signal, 'of its own');
    const released = followSignal(first.signal);
    released.release();
    assert.equal(follower.controller.signal.aborted, false);
    first.abort('enough');
    assert.equal(follower.controller.signal.reason, 'enough');
    assert.equal(other.controller.signal.reason, 'of its own');
    assert.equal(released.controller.signal.aborted, false);
    assert.equal(followSignal(first.signal).controller.signal.reason, 'enough');
    const alone = followSignal(undefined);
    alone.release();
    assert.equal(alone.controller.signal.aborted, false);
  });

  test('gives an AbortError, with the cause if there is one', () => {
    const error = abortError('enough');
    assert.deepEqual([error.name, error.message], ['AbortError', 'enough']);
    assert.equal(Object.hasOwn(error, 'cause'), false);
    assert.equal(abortError(undefined).message, 'The operation was cancelled');
    assert.equal(abortError('', 'lost').message, '');
    assert.equal(abortError('x', 'lost').cause, 'lost');
  });
});

describe('a turn', () => {
  test('comes after what is queued, and takes no messages where there is setImmediate', async () => {
    const { MessageChannel } = globalThis;
    globalThis.MessageChannel = undefined;
    await new Promise(inAnotherTurn);
    globalThis.MessageChannel = MessageChannel;
    const order = [];
    setImmediate(() => order.push('queued'));
    await new Promise((resolve) => inLaterTurn(() => resolve(order.push('later'))));
    await new Promise((resolve) => inAnotherTurn(() => resolve(order.push('another'))));
    assert.deepEqual(order, ['queued', 'later', 'another']);
    assert.equal(MAX_MESSAGES_PER_TURN, 1024);
  });

  test('is a timer’s where there is nothing better', async () => {
    const { setImmediate } = globalThis;
    delete globalThis.setImmediate;
    try {
      await new Promise(inLaterTurn);
    } finally {
      globalThis.setImmediate = setImmediate;
    }
  });

  test('is a message’s in browsers, whose port is closed then', async () => {
    const { setImmediate, MessageChannel } = globalThis;
    let open = 0;
    globalThis.MessageChannel = class extends MessageChannel {
      constructor() {
        super();
        open++;
        this.port1.on('close', () => open--);
      }
    };
    delete globalThis.setImmediate;
    const fresh = await import('../../js/common/breathe.js?a-browser');
    try {
      await new Promise(fresh.inAnotherTurn);
      await fresh.breathe();
    } finally {
      Object.assign(globalThis, { setImmediate, MessageChannel });
    }
    for (let i = 0; open && i < 1000; i++) await turn();
    assert.equal(open, 0);
  });

  test('is due every 8 ms, and one for all that wait', async (t) => {
    let now = 1e6;
    t.mock.method(performance, 'now', () => now);
    const due = breathe();
    assert.ok(due instanceof Promise);
    assert.equal(breathe(), due);
    await due;
    assert.equal(breathe(), undefined);
    now += 7.9;
    assert.equal(breathe(), undefined);
    now += 0.1;
    const next = breathe();
    assert.ok(next instanceof Promise);
    assert.notEqual(next, due);
    await next;
  });

  test('is when work is told to stop', async (t) => {
    let now = 2e6;
    t.mock.method(performance, 'now', () => now);
    let stopped = false;
    const breather = breatherOf(() => {
      if (stopped) throw new Error('stop');
    });
    await breather();
    assert.equal(breather(), undefined);
    now += 8;
    const waiting = breather();
    stopped = true;
    await assert.rejects(waiting, { message: 'stop' });
    assert.throws(breather, { message: 'stop' });
  });
});

/** A stream that tells what is read of it. */
class Told extends Inflow {
  log = [];
  onRead(size) {
    this.log.push(size);
  }
  onLeave() {
    this.log.push('left');
  }
  get hasLeft() {
    return this.left;
  }
}
const OVER = { done: true, value: undefined };

describe('chunks that come', () => {
  test('are read in order, whoever is first', async () => {
    const inflow = new Told();
    const early = [inflow.next(), inflow.next()];
    for (const chunk of ['a', 'b', 'c', 'd']) inflow.push(chunk, chunk.charCodeAt(0));
    assert.deepEqual(await Promise.all(early), [
      ...[
        { done: false, value: 'a' },
        { done: false, value: 'b' },
      ],
    ]);
    assert.deepEqual(inflow.log, [97, 98]);
    assert.deepEqual((await inflow.next()).value, 'c');
    inflow.push('e', 1);
    assert.deepEqual([(await inflow.next()).value, (await inflow.next()).value], ['d', 'e']);
    assert.deepEqual(inflow.log, [97, 98, 99, 100, 1]);
    assert.equal(inflow.hasLeft, false);
    assert.equal(inflow[Symbol.asyncIterator](), inflow);
  });

  test('are read before the end, which is told once', async () => {
    const inflow = new Told();
    inflow.push(1, 8);
    inflow.finish(() => ({ done: true, value: 'end' }));
    assert.deepEqual(await inflow.next(), { done: false, value: 1 });
    assert.deepEqual(await inflow.next(), { done: true, value: 'end' });
    assert.deepEqual(await inflow.next(), OVER);
  });

  test('end for all who wait: the first is told how', async () => {
    for (const fails of [false, true]) {
      const inflow = new Told();
      const waiting = [inflow.next(), inflow.next(), inflow.next()];
      inflow.finish(() => {
        if (fails) throw new Error('broken');
        return { done: true, value: 'end' };
      });
      if (fails) await assert.rejects(waiting[0], { message: 'broken' });
      else assert.deepEqual(await waiting[0], { done: true, value: 'end' });
      assert.deepEqual(await Promise.all(waiting.slice(1)), [OVER, OVER]);
      assert.deepEqual(await inflow.next(), OVER);
    }
  });

  test('are dropped when their reader has left', async () => {
    const inflow = new Told();
    const [first, second] = [inflow.next(), inflow.next()];
    inflow.push('a', 1);
    assert.deepEqual(await inflow.return('mine'), { done: true, value: 'mine' });
    assert.deepEqual([(await first).value, await second], ['a', OVER]);
    inflow.push('b', 1);
    assert.deepEqual(inflow.log, [1, 'left']);
    assert.equal(inflow.hasLeft, true);
    assert.deepEqual(await inflow.next(), OVER);
    inflow.finish(() => ({ done: true, value: 'end' }));
    assert.deepEqual(await inflow.next(), OVER);
  });

  test('that waited when their reader left are not read', async () => {
    const inflow = new Told();
    for (let i = 0; i < 5; i++) inflow.push(i, 1);
    await inflow.next();
    await inflow.return();
    assert.deepEqual([await inflow.next(), inflow.log], [OVER, [1, 'left']]);
  });

  test('are let go when they were read', async () => {
    const inflow = new Inflow();
    let freed = 0;
    const registry = new FinalizationRegistry(() => freed++);
    const push = (i) => {
      const chunk = { i };
      registry.register(chunk, i);
      inflow.push(chunk, 1);
    };
    for (let i = 0; i < 6; i++) push(i);
    await (async () => {
      for (let i = 0; i < 2; i++) assert.equal((await inflow.next()).value.i, i);
    })();
    const { setFlagsFromString } = await import('node:v8');
    const { runInNewContext } = await import('node:vm');
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc');
    for (let i = 0; i < 100 && freed < 2; i++) {
      gc();
      await turn();
    }
    assert.equal(freed, 2);
    for (let i = 2; i < 6; i++) assert.equal((await inflow.next()).value.i, i);
  });
});

describe('a source', () => {
  test('is an async iterable, or a ReadableStream, which is cancelled', async () => {
    const list = (async function* () {
      yield 1;
    })();
    assert.deepEqual(await iteratorOf(list).next(), { done: false, value: 1 });
    let reason;
    const readable = new ReadableStream({
      start: (controller) => controller.enqueue('a'),
      cancel: (given) => (reason = given),
    });
    // Not every browser can iterate one.
    readable[Symbol.asyncIterator] = undefined;
    const iterator = iteratorOf(readable);
    assert.deepEqual(await iterator.next(), { done: false, value: 'a' });
    await iterator.return('enough');
    assert.equal(reason, 'enough');
  });

  /** A source that tells what becomes of it. */
  function source(log, chunks = [1, 2], fails) {
    return (async function* () {
      try {
        for (const chunk of chunks) {
          log.push(`made ${chunk}`);
          yield chunk;
        }
        if (fails) throw new Error('its own');
        return 'returned';
      } finally {
        await turn();
        log.push('cleaned up');
      }
    })();
  }

  test('is driven to its end, each chunk when the one before was taken', async () => {
    const log = [];
    const taken = await new Iteration(source(log)).run(async (chunk) => {
      await turn();
      log.push(`took ${chunk}`);
    });
    assert.deepEqual(taken, { returned: true, value: 'returned' });
    assert.deepEqual(log, ['made 1', 'took 1', 'made 2', 'took 2', 'cleaned up']);
  });

  test('that is stopped has cleaned up before that is told', async () => {
    const log = [];
    const iteration = new Iteration(source(log));
    const done = await iteration.run(() => iteration.stop());
    assert.deepEqual(done, { returned: false });
    assert.deepEqual([iteration.stopped, log], [true, ['made 1', 'cleaned up']]);
  });

  test('that is stopped while it makes a chunk hands it to nobody', async () => {
    let give;
    const taken = [];
    const reasons = [];
    const iteration = new Iteration({
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise((resolve) => (give = resolve)),
        return: (reason) => reasons.push(reason),
      }),
    });
    const running = iteration.run((chunk) => void taken.push(chunk));
    iteration.stop('enough');
    iteration.stop('again');
    give({ done: false, value: 1 });
    assert.deepEqual(await running, { returned: false });
    assert.deepEqual([taken, reasons], [[], ['enough']]);
  });

  test('that throws ends by itself, and one whose chunk is not taken is closed', async () => {
    const log = [];
    const failing = new Iteration(source(log, [1], true));
    await assert.rejects(
      failing.run(() => {}),
      { message: 'its own' },
    );
    assert.deepEqual(log, ['made 1', 'cleaned up']);
    for (const take of [
      () => Promise.reject(new Error('full')),
      () => {
        throw new Error('full');
      },
    ]) {
      const closed = [];
      await assert.rejects(new Iteration(source(closed)).run(take), { message: 'full' });
      assert.deepEqual(closed, ['made 1', 'cleaned up']);
    }
    const back = mock.fn();
    const thrower = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('x')), return: back }),
    };
    await assert.rejects(new Iteration(thrower).run(() => {}));
    await turn();
    assert.equal(back.mock.callCount(), 0);
  });

  test('that throws after a chunk was taken is not closed either', async () => {
    const back = mock.fn();
    let count = 0;
    const thrower = {
      next: () => (count++ ? Promise.reject(new Error('x')) : Promise.resolve({ value: 1 })),
      return: back,
    };
    const iteration = new Iteration({ [Symbol.asyncIterator]: () => thrower });
    await assert.rejects(iteration.run(() => {}));
    await turn();
    assert.equal(back.mock.callCount(), 0);
  });

  test('may have no cleanup, or one that fails, which is reported and changes nothing', async (t) => {
    const said = t.mock.method(console, 'error', () => {});
    const of = (back) =>
      new Iteration({
        [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 1 }), return: back }),
      });
    for (const back of [undefined, () => Promise.reject(new Error('no'))]) {
      const iteration = of(back);
      assert.deepEqual(await iteration.run(() => iteration.stop()), { returned: false });
    }
    assert.deepEqual(
      said.mock.calls.map(({ arguments: [words, error] }) => [words, error.message]),
      [["abp-bridge: a stream's cleanup failed:", 'no']],
    );
  });

  test('is collected as it was when it was read, up to 64 MiB', async () => {
    const collection = new Collection();
    const chunk = { a: 1 };
    await collection.add(chunk);
    chunk.a = 2;
    const content = new ArrayBuffer(2 ** 26 - 64 - 200);
    await collection.add(transfer({ content }, [content]));
    assert.deepEqual([collection.chunks[0], content.byteLength], [{ a: 1 }, 0]);
    // What is left is 200, less the name `content`; each chunk counts as at least 64.
    for (let i = 0; i < 3; i++) await collection.add(i);
    assert.throws(() => collection.add(3), {
      code: 'OPERATION_FAILED',
      message: 'The stream is too long to be collected; use client.stream(): 67108864 bytes',
    });
    const exact = new Collection();
    await exact.add(new ArrayBuffer(2 ** 26));
    assert.throws(() => new Collection().add(new ArrayBuffer(2 ** 26 + 1)), AbpError);
    assert.throws(() => new Collection().add({ act() {} }), {
      code: 'OPERATION_FAILED',
      message: /^A chunk cannot be sent: .* could not be cloned\. \(docs/,
    });
    assert.match(chunkUnsent(new Error('why')).message, /^A chunk cannot be sent: why \(docs/);
  });

  test('that is collected lets others have their turns', async (t) => {
    let now = 3e6;
    t.mock.method(performance, 'now', () => now);
    const collection = new Collection();
    await collection.add(1);
    assert.equal(collection.add(2), undefined);
    now += 8;
    await collection.add(3);
  });
});

describe('an error', () => {
  test('has what it was given and nothing else', () => {
    const plain = new AbpError('OWN', 'words');
    assert.deepEqual({ ...plain }, { name: 'AbpError', code: 'OWN', retryable: false });
    assert.deepEqual([plain.message, plain instanceof Error], ['words', true]);
    const cause = new Error('cause');
    const more = { retryable: true, details: null, retryAfter: 0, alternatives: ['a'] };
    const full = new AbpError('OWN', 'words', { ...more, cause });
    assert.deepEqual({ ...full }, { name: 'AbpError', code: 'OWN', ...more });
    assert.equal(full.cause, cause);
  });

  test('is made of whatever a peer sent', () => {
    const sent = { code: 'OWN', message: 'words', retryable: true, details: 1, retryAfter: 2 };
    const { code, message, retryable, details, retryAfter } = AbpError.from(sent);
    assert.deepEqual({ code, message, retryable, details, retryAfter }, sent);
    const empty = AbpError.from({});
    assert.deepEqual([empty.code, empty.message], ['OPERATION_FAILED', '[object Object]']);
    assert.equal(AbpError.from({ code: 5 }).code, '5');
    for (const hostile of [unreadable, null, undefined]) {
      const { code, message } = AbpError.from(hostile);
      assert.equal(code, 'OPERATION_FAILED');
      assert.equal(message, 'The other side sent an error that cannot be read');
    }
  });

  test('of a part that does not load may pass', async () => {
    assert.equal(await errors.loadPart(Promise.resolve(1)), 1);
    const cause = new Error('offline');
    await assert.rejects(errors.loadPart(Promise.reject(cause)), (error) => {
      assert.deepEqual(
        [error.code, error.retryable, error.cause, error.message],
        [
          ...['TRANSPORT_ERROR', true, cause],
          'A part of abp-bridge did not load: offline (docs/errors.md#a-file-did-not-load)',
        ],
      );
      return true;
    });
  });

  test('names the members that are missing or wrong', () => {
    errors.requireTexts('connect needs', { a: 'x', b: '' }, 'a', 'b');
    for (const object of [{ a: 'x' }, { a: 1, b: 'x' }, undefined, null]) {
      assert.throws(() => errors.requireTexts('connect needs', object, 'a', 'b'), {
        code: 'INVALID_PARAMS',
        message: 'connect needs: { a, b }',
      });
    }
    errors.requireFunctions('the app', { a() {}, b: undefined, d: 'other' }, 'a', 'b', 'c');
    errors.requireFunctions('the app', undefined, 'a');
    assert.throws(() => errors.requireFunctions('the app', { a() {}, b: 1 }, 'a', 'b'), {
      code: 'INVALID_PARAMS',
      message: 'b of the app must be a function',
    });
  });

  test('of whatever was thrown is one of the protocol', () => {
    for (const [thrown, code, message, retryable] of [
      [new Error('words'), 'OPERATION_FAILED', 'words', false],
      ['text', 'OPERATION_FAILED', 'text', false],
      [undefined, 'OPERATION_FAILED', 'The operation failed', false],
      [null, 'OPERATION_FAILED', 'The operation failed', false],
      [{ message: '' }, 'OPERATION_FAILED', '', false],
      [new DOMException('no', 'NotAllowedError'), 'PERMISSION_DENIED', 'no', true],
      [new DOMException('no', 'SecurityError'), 'PERMISSION_REQUIRED', 'no', true],
      [{ code: 'OWN', message: 'm' }, 'OPERATION_FAILED', 'm', false],
      [{ code: 5, message: 'm', retryable: true }, 'OPERATION_FAILED', 'm', false],
      [unreadable, 'OPERATION_FAILED', 'The thrown value cannot be read', false],
    ]) {
      assert.deepEqual(errors.toErrorObject(thrown), { code, message, retryable });
    }
    const own = { code: 'OWN', message: 'm', retryable: true, retryAfter: 0, details: null };
    assert.deepEqual(errors.toErrorObject({ ...own, alternatives: undefined, more: 1 }), own);
    assert.equal(errors.isErrorObject(own), true);
    for (const other of [undefined, {}, { code: 'x' }, { code: 1, retryable: true }, unreadable]) {
      assert.equal(errors.isErrorObject(other), false);
    }
  });

  test('says that its call was cancelled, or that time ran out', () => {
    for (const [thrown, cancelled] of [
      [new DOMException('', 'AbortError'), true],
      [{ name: 'AbortError' }, true],
      [{ code: 'CANCELLED', retryable: false }, true],
      [{ code: 'CANCELLED' }, false],
      [{ code: 'OWN', retryable: false }, false],
      [undefined, false],
      [null, false],
      [unreadable, false],
    ]) {
      assert.equal(errors.saysCancelled(thrown), cancelled);
    }
    assert.equal(errors.saysTimeout(new DOMException('', 'TimeoutError')), true);
    for (const reason of [undefined, null, 'TimeoutError', {}, unreadable]) {
      assert.equal(errors.saysTimeout(reason), false);
    }
  });

  test('gives a reason of 1024 characters at most', () => {
    const long = 'x'.repeat(1025);
    assert.equal(errors.reasonText('why'), 'why');
    assert.equal(errors.reasonText(new Error('why')), 'why');
    assert.equal(errors.reasonText(long), long.slice(1));
    assert.equal(errors.reasonText({ message: long }), long.slice(1));
    for (const none of [undefined, null, 5, {}, { message: 5 }, unreadable]) {
      assert.equal(errors.reasonText(none), undefined);
    }
    assert.equal(
      errors.safely(() => 1, 2),
      1,
    );
    assert.equal(
      errors.safely(() => unreadable.x, 2),
      2,
    );
  });
});

describe('a callback', () => {
  /** What is reported while a test runs, as a page reports it. */
  function listenToReports(t) {
    const reported = [];
    globalThis.reportError = (error) => reported.push(error);
    t.after(() => delete globalThis.reportError);
    return reported;
  }

  test('is invoked, and its errors are reported, also those that come later', async (t) => {
    const reported = listenToReports(t);
    assert.equal(
      errors.invokeReportingErrors((a, b) => a + b, 1, 2),
      3,
    );
    assert.equal(errors.invokeReportingErrors(undefined, 1), undefined);
    assert.equal(
      errors.invokeReportingErrors(() => null),
      null,
    );
    const [now, later] = [new Error('now'), new Error('later')];
    const thrower = () => {
      throw now;
    };
    assert.equal(errors.invokeReportingErrors(thrower), undefined);
    await errors.invokeReportingErrors(() => Promise.reject(later)).catch(() => {});
    await turn();
    assert.deepEqual(reported, [now, later]);
    errors.invokeReportingErrors(() => ({ then: (_resolve, reject) => reject('a thenable') }));
    await turn();
    assert.deepEqual(reported[2], 'a thenable');
  });

  test('whose error nobody takes is written about, if it can be printed', (t) => {
    const said = t.mock.method(console, 'error', () => {});
    const error = new Error('own');
    errors.reportError(error);
    assert.deepEqual(said.mock.calls[0].arguments, ['abp-bridge: a callback failed:', error]);
    said.mock.mockImplementation(() => {
      throw new Error('cannot be printed');
    });
    errors.reportError(error);
    assert.equal(said.mock.callCount(), 2);
  });
});

describe('a warning', () => {
  test('goes to the console, to a function, or to nobody', async (t) => {
    const written = t.mock.method(console, 'warn', () => {});
    t.after(() => warnings(true));
    warn('one', 1, 2);
    assert.deepEqual(written.mock.calls[0].arguments, ['abp-bridge: one', 1, 2]);
    const taken = [];
    warnings((...words) => taken.push(words));
    warn('two', 3);
    assert.deepEqual(taken, [['abp-bridge: two', 3]]);
    warnings(false);
    warn('three');
    warnings(true);
    warnSoon('four', 4);
    await turn();
    await turn();
    assert.deepEqual(written.mock.calls[1].arguments, ['abp-bridge: four', 4]);
    assert.deepEqual([written.mock.callCount(), taken.length], [2, 1]);
  });

  test('of a handler comes once, and of a hundred of them', (t) => {
    const taken = [];
    warnings((message) => taken.push(message));
    t.after(() => warnings(true));
    warnOfHandler('export.pdf');
    warnOfHandler('export.pdf');
    assert.equal(taken.length, 1);
    assert.match(taken[0], /^abp-bridge: export\.pdf still ran when .*: give its signal to fetch/);
    for (let i = 0; i < 200; i++) warnOfHandler(`handler${i}`);
    assert.equal(taken.length, 100);
  });
});
