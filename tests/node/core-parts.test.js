// The JavaScript of js/core by itself: what goes into a module's memory and comes out, what drives it, and its timer.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { AbpCore, ready } from '../../js/core/abp-core.js';
import { ActionReader, callLimits } from '../../js/core/action-reader.js';
import { Cancellable, ENDED } from '../../js/core/cancellable.js';
import { controlText } from '../../js/core/control-text.js';
import { Core, outOfMemory } from '../../js/core/core.js';
import { Instance } from '../../js/core/instance.js';
import { load } from '../../js/core/load.js';
import { CoreDriver, Machine, argOf, kindOf } from '../../js/core/machine.js';
import { CoreModule } from '../../js/core/module.js';
import { Pending } from '../../js/core/pending.js';
import * as rpc from '../../js/core/rpc-boundary.js';
import { PeerCore, ready as rpcReady } from '../../js/core/rpc-core.js';
import { useClock } from '../support/clock.js';

await Promise.all([ready(), rpcReady()]);

/** A module whose memory is a plain buffer, and which says what it was asked. */
function moduleOf(more = {}) {
  const memory = { buffer: new ArrayBuffer(8192) };
  const asked = [];
  const x = {
    memory,
    abi: () => 7,
    _initialize: () => void asked.push('initialize'),
    config: () => 64,
    scratch: (size) => (asked.push(`scratch ${size}`), 1024),
    create: () => 5,
    destroy: (pointer) => (asked.push(`destroy ${pointer}`), 0),
    count: (pointer, counter) => pointer * 100 + counter,
    action: () => 128,
    ...more,
  };
  let grown;
  const instantiate = (env) => ((grown = env.emscripten_notify_memory_growth), x);
  return { x, asked, memory, instantiate, grow: () => grown() };
}
/** What has one instance of it. */
const sharing = (made) => ({
  instance: () => new Instance(made.instantiate, 7),
  abandon: mock.fn(),
});

describe('an instance', () => {
  test('is of the module that it was built for', () => {
    const { instantiate, asked } = moduleOf();
    const words = { message: 'abp-bridge: dist/ does not match js/: run npm run build' };
    assert.throws(() => new Instance(instantiate, 8), words);
    assert.throws(() => new Instance(() => ({}), 8), words);
    assert.deepEqual(asked, []);
    new Instance(instantiate, 7);
    assert.deepEqual(asked, ['initialize', 'scratch 1024']);
  });

  test('sees memory that has grown', () => {
    const { instantiate, memory, grow } = moduleOf();
    const instance = new Instance(instantiate, 7);
    memory.buffer = new ArrayBuffer(16384);
    grow();
    assert.deepEqual([instance.u8.buffer, instance.u32.buffer], [memory.buffer, memory.buffer]);
  });

  test('has a configuration, with 16 random bytes', () => {
    const { instantiate } = moduleOf();
    const instance = new Instance(instantiate, 7);
    const before = [...instance.u8.subarray(64, 68), ...instance.u8.subarray(84, 88)];
    instance.configure(4, [
      [0, 1],
      [20, 70_000],
    ]);
    assert.deepEqual([instance.u32[16], instance.u32[21]], [1, 70_000]);
    assert.deepEqual(before, Array(8).fill(0));
    // Each of the 16 bytes is random, and none beside them.
    const seen = Array.from({ length: 16 }, () => new Set());
    for (let i = 0; i < 100; i++) {
      instance.configure(4, []);
      instance.u8.subarray(68, 84).forEach((byte, at) => seen[at].add(byte));
    }
    assert.ok(seen.every(({ size }) => size > 1));
    assert.equal(instance.u8.subarray(32, 64).join(''), '0'.repeat(32));
    assert.equal(instance.u8.subarray(88, 120).join(''), '0'.repeat(32));
  });

  test('takes ids of 256 characters, well-formed, and nothing else', () => {
    const instance = new Instance(moduleOf().instantiate, 7);
    const written = (id) => {
      const length = instance.writeId(id);
      return [length, instance.readScratch(length)];
    };
    for (const [id, length] of [
      ['', 0],
      ['abc', 3],
      ['\x7f', 1],
      ['\x80', 2],
      ['é', 2],
      ['a😀', 5],
      ['x'.repeat(256), 256],
      ['€'.repeat(256), 768],
    ]) {
      assert.deepEqual(written(id), [length, id]);
    }
    for (const none of ['x'.repeat(257), '\ud800', 'a\udc00b', 5, null, undefined, {}]) {
      assert.equal(instance.writeId(none), 0);
    }
  });

  test('takes text of any length, if there is memory', () => {
    let has = true;
    const { asked, ...made } = moduleOf({ scratch: (size) => (asked.push(size), has ? 2048 : 0) });
    const instance = new Instance(made.instantiate, 7);
    assert.equal(instance.write('abc'), 3);
    assert.equal(instance.write('é', 3), 2);
    assert.equal(instance.readScratch(5), 'abcé');
    assert.equal(instance.readScratch(2, 3), 'é');
    assert.equal(instance.write('x'.repeat(341)), 341);
    assert.equal(instance.write('x'.repeat(341), 1), 341);
    assert.deepEqual(asked, ['initialize', 1024]);
    assert.equal(instance.write('x'.repeat(341), 2), 341);
    assert.equal(instance.write('x'.repeat(341), 2), 341);
    assert.deepEqual(asked.slice(2), [1025]);
    has = false;
    assert.equal(instance.write('x'.repeat(342)), -1);
    assert.equal(instance.write('abc'), 3);
    assert.equal(instance.readScratch(3), 'abc');
    const at = 2048;
    instance.u8.set([104, 105, 0, 106], at);
    assert.deepEqual([instance.readTerminated(at), instance.read(at + 3, 1)], ['hi', 'j']);
  });
});

describe('a module', () => {
  const none = () => Promise.reject(new Error('must not be loaded'));

  test('has one instance until that is abandoned', async () => {
    const made = moduleOf();
    const wasm = mock.fn(async () => ({ default: 'not WebAssembly' }));
    const module = new CoreModule(wasm, async () => ({ default: made.instantiate }), 7);
    assert.throws(() => module.instance(), { message: 'await `load` before making a core' });
    const loading = module.load();
    assert.equal(module.load(), loading);
    assert.equal(await loading, 'js');
    assert.equal(wasm.mock.callCount(), 1);
    // It is made while it loads: what is wrong with it is known then.
    assert.equal(made.asked.length, 2);
    const first = module.instance();
    assert.equal(module.instance(), first);
    module.abandon({});
    assert.equal(module.instance(), first);
    module.abandon(first);
    const second = module.instance();
    assert.notEqual(second, first);
    module.abandon(first);
    assert.equal(module.instance(), second);
  });

  test('that cannot be loaded is tried again, and only who needs it hears of it', async (t) => {
    const unhandled = mock.fn();
    process.on('unhandledRejection', unhandled);
    t.after(() => process.off('unhandledRejection', unhandled));
    const made = moduleOf();
    let wasm = none;
    const fallback = async () => ({ default: made.instantiate });
    const module = new CoreModule(() => wasm(), fallback, 7);
    void module.load();
    await new Promise(setImmediate);
    assert.equal(unhandled.mock.callCount(), 0);
    wasm = async () => ({ default: '' });
    assert.equal(await module.load(), 'js');
    const other = new CoreModule(wasm, fallback, 8);
    await assert.rejects(other.load(), /dist\/ does not match/);
  });

  test('says what is missing where there is neither form of it', async () => {
    const cause = new Error('offline');
    await assert.rejects(
      load('', () => Promise.reject(cause)),
      {
        code: 'NOT_SUPPORTED',
        message:
          'WebAssembly is forbidden here, and its replacement did not load: offline (docs/errors.md#webassembly)',
        cause,
      },
    );
  });
});

describe('an object of a core', () => {
  test('is configured by names, made, and given back', () => {
    const made = moduleOf();
    const module = sharing(made);
    const core = new Core(module, { seed: 0, a: 16, b: 20 }, { a: Infinity, b: undefined });
    assert.deepEqual(
      [core.pointer, core.instance.u32[20], core.instance.u32[21]],
      [...[5, 2147483647, 0]],
    );
    assert.deepEqual(core.count({ one: 1, two: 2 }), { one: 501, two: 502 });
    core.abandon();
    assert.deepEqual(module.abandon.mock.calls[0].arguments, [core.instance]);
    core.free();
    assert.deepEqual([core.pointer, made.asked.at(-1)], [0, 'destroy 5']);
    assert.throws(() => new Core(module, { seed: 0, a: 0 }, { c: 1 }), {
      name: 'TypeError',
      message: "the core's configuration has no field c",
    });
    new Core(module, { seed: 4, a: 0 }, { a: 1 });
  });

  test('may be recorded', () => {
    const seen = [];
    const tap = (instance) => ({ ...instance.x, create: (now) => (seen.push(now), 9) });
    const core = new Core(sharing(moduleOf()), { seed: 0 }, {}, tap);
    assert.equal(core.pointer, 9);
    assert.ok(seen[0] > 0 && seen[0] <= performance.now());
  });

  test('needs memory', () => {
    const module = sharing(moduleOf({ create: () => 0 }));
    assert.throws(() => new Core(module, { seed: 0 }, {}), { message: 'not enough memory' });
    assert.deepEqual([outOfMemory().code, outOfMemory().retryable], ['INTERNAL_ERROR', true]);
  });

  test('takes reasons of 1024 characters, and none that is no text', () => {
    const core = new Core(sharing(moduleOf()), { seed: 0 }, {});
    assert.equal(core.writeReason('x'.repeat(2000)), 1024);
    for (const none of [5, null, undefined, {}]) assert.equal(core.writeReason(none), 0);
    assert.equal(core.writeReason('why', 4), 3);
    assert.equal(core.instance.readScratch(3, 4), 'why');
    assert.equal(core.writeId('id'), 2);
    let has = true;
    const short = new Core(sharing(moduleOf({ scratch: () => (has ? 1024 : 0) })), { seed: 0 }, {});
    has = false;
    assert.equal(short.writeReason('x'.repeat(1000)), 0);
  });

  test('has an action, whose parts are read from memory', () => {
    const made = moduleOf({ number: (_pointer, call) => -call });
    const reader = new ActionReader(sharing(made), { seed: 0 }, {});
    const word = (field, value) => (reader.instance.u32[(128 + field) / 4] = value);
    word(abp.ACTION_CALL, 77);
    word(abp.ACTION_AT, 5);
    word(abp.ACTION_AT + 4, 3);
    word(abp.ACTION_CHUNKS, 9);
    assert.deepEqual([reader.call, reader.at], [77, 5 + 3 * 2 ** 32]);
    assert.deepEqual(reader.amount, [9, reader.at]);
    assert.equal(reader.reason, undefined);
    const length = reader.writeReason('why');
    word(abp.ACTION_TEXT, 1024);
    word(abp.ACTION_LENGTH, length);
    assert.equal(reader.reason, 'why');
    assert.equal(reader.number(1), 2 ** 32 - 1);
    assert.equal(reader.isPending(1), false);
    assert.deepEqual(reader.counters(), {
      ...{ inFlightOut: 500, inFlightIn: 501, remembered: 502, late: 503, stray: 504 },
      ...{ malformed: 505, refused: 507 },
    });
    assert.deepEqual(callLimits({ maxCalls: 1, maxConcurrent: 2, firstNumber: 7, grace: 5 }), {
      ...{ max_calls: 1, max_concurrent: 2, remembered: undefined, remember_ms: undefined },
      ...{ grace_ms: 5, max_id: undefined, first_number: 7 },
    });
  });
});

describe('an endpoint in the core', () => {
  test('takes control messages up to its limit, and nothing that is not JSON', () => {
    const core = new AbpCore(abp.APP, 0, { maxControlLength: 30 });
    const cycle = {};
    cycle.self = cycle;
    assert.equal(core.writeControl({ a: '"'.repeat(11) }), 30);
    assert.equal(core.instance.readScratch(30), `{"a":"${'\\"'.repeat(11)}"}`);
    for (const none of [{ a: '"'.repeat(12) }, { a: 'x'.repeat(22) }, cycle, undefined]) {
      assert.equal(core.writeControl(none), 0);
    }
    const usual = new AbpCore(abp.APP, 0);
    assert.equal(usual.writeControl({ a: 'x'.repeat(2 ** 20 - 9) }), 2 ** 20 - 1);
    assert.equal(usual.writeControl({ a: 'x'.repeat(2 ** 20 - 8) }), 0);
    for (const each of [core, usual]) each.free();
  });

  test('replaces no session and passes nothing on, unless it is told', (t) => {
    const configure = t.mock.method(Instance.prototype, 'configure');
    new AbpCore(abp.APP, 0).free();
    new AbpCore(abp.APP, 0, {}, true, undefined, true).free();
    const said = configure.mock.calls.map(({ arguments: [, fields] }) => {
      const values = new Map(fields);
      return [values.get(abp.CONFIG.restart), values.get(abp.CONFIG.foreign)];
    });
    assert.deepEqual(said, [
      [0, 0],
      [1, 1],
    ]);
  });

  test('says who it is, and what was refused', () => {
    const core = new AbpCore(abp.APP, abp.PROGRESS);
    core.describe('app', { id: 'an app' });
    core.describe('more', undefined);
    const packed = core.x.receive(
      core.pointer,
      core.writeControl({
        ...{ type: 'initialize', id: 'i' },
        payload: { protocolVersion: '0.1', agent: { name: 'a', version: '1' }, features: {} },
      }),
    );
    assert.equal(kindOf(packed), abp.SEND);
    const { type, id, payload, timestamp } = core.message;
    assert.deepEqual([type, id, payload.app], ['initialize-result', 'i', { id: 'an app' }]);
    assert.equal('more' in payload, false);
    assert.ok(Math.abs(timestamp - Date.now()) < 60_000);
    assert.deepEqual(core.error(abp.TIMEOUT_ERROR).code, 'TIMEOUT');
    assert.equal(typeof core.error(abp.TIMEOUT_ERROR).message, 'string');
    const retryable = new Set();
    for (let code = 1; code < abp.ERROR_COUNT; code++) retryable.add(core.error(code).retryable);
    assert.deepEqual([...retryable].sort(), [false, true]);
    assert.equal(core.error(abp.RATE_LIMITED).retryable, true);
    assert.equal(core.error(abp.INVALID_PARAMS).retryable, false);
    // The rest of what that caused is taken, too.
    while (core.x.next(core.pointer) > 0) continue;
    core.x.receive(core.pointer, core.writeControl({ type: 'other', id: 'x' }));
    assert.deepEqual([core.counters().unknownType, core.counters().overrun], [1, 0]);
    assert.equal('inFlightIn' in core.counters(), true);
    const call = core.x.call_received(core.pointer, core.writeId('mine'), 0, 0, 0, 0, 0, 0);
    assert.equal(kindOf(call), abp.START);
    assert.equal(core.idText(core.call), 'mine');
    const { fate, call: handle } = core.became('mine');
    assert.deepEqual([fate === abp.FATE_NONE, core.idText(handle)], [false, 'mine']);
    assert.equal(core.became('another').fate, abp.FATE_NONE);
    core.free();
  });

  test('that has no memory says so', () => {
    const core = new AbpCore(abp.APP, 0);
    const { x } = core;
    core.x = { ...x, describe: () => abp.E_MEMORY, print: () => 0 };
    assert.throws(() => core.describe('app', {}), { message: 'not enough memory' });
    assert.throws(() => core.message, { message: 'not enough memory' });
    core.x = x;
    core.instance.write = () => -1;
    assert.throws(() => core.describe('app', {}), { message: 'not enough memory' });
    assert.equal(core.writeControl({}), 0);
    delete core.instance.write;
    core.free();
  });
});

describe('a control message', () => {
  const text = (message, longest = 1000) => JSON.parse(controlText(message, longest));

  test('is JSON, without what the core cannot carry', () => {
    assert.deepEqual(
      text({
        ...{ id: 'a\0b', reason: 'a\0b\ud800', callId: 'a\0b', bytes: new Uint8Array(1), big: 1n },
        ...{ boxed: Object(1n), list: [1, 'x\0'], fine: 'ü😀' },
      }),
      {
        ...{ id: 'a\0b', reason: 'a\ufffdb\ufffd', callId: null, big: null, boxed: null },
        ...{ list: [1, 'x\ufffd'], fine: 'ü😀' },
      },
    );
    assert.equal(text({ callId: 'fine' }).callId, 'fine');
  });

  test('is not written if it is certainly too long', () => {
    const fits = (message, longest) => {
      try {
        return typeof controlText(message, longest) === 'string';
      } catch (error) {
        assert.deepEqual([error.name, error.message], ['RangeError', 'the message is too long']);
        return false;
      }
    };
    // The message itself counts as four, a member as its name and four, an element as two, and a text as its length.
    for (const [message, size] of [
      [{}, 4],
      [{ ab: 1 }, 10],
      [{ ab: 'cde' }, 13],
      [{ id: 'abc' }, 13],
      ['abc', 7],
      [[1, 2], 8],
    ]) {
      assert.deepEqual([fits(message, size), fits(message, size - 1)], [true, false]);
    }
    const claims = new Array(2 ** 32 - 1);
    assert.equal(fits({ claims }, 2 ** 20), false);
    assert.equal(fits(claims, 2 ** 20), false);
  });
});

describe('a JSON-RPC peer in the core', () => {
  test('has the form that the cores of this process have', async () => {
    assert.equal(await rpcReady(), await ready());
  });

  const made = [rpc.ACP, rpc.LSP, rpc.MCP].map((dialect) => new PeerCore(dialect));
  const [acp, lsp, mcp] = made;

  test('knows the words of its dialect', () => {
    assert.deepEqual(
      made.map(({ dialect, cancelMethod, cancelKey }) => [dialect, cancelMethod, cancelKey]),
      [
        [rpc.ACP, '$/cancel_request', 'requestId'],
        [rpc.LSP, '$/cancelRequest', 'id'],
        [rpc.MCP, 'notifications/cancelled', 'requestId'],
      ],
    );
    assert.deepEqual(
      made.map(({ handshake }) => handshake),
      [undefined, undefined, 'initialize'],
    );
    assert.equal(acp.subscription, undefined);
    assert.equal(typeof mcp.subscription, 'string');
    assert.match(mcp.batchVersion, /^\d{4}-\d\d-\d\d$/);
    assert.deepEqual(
      made.map(({ unversioned }) => unversioned),
      [false, true, false],
    );
  });

  test('tells ids apart by their types', () => {
    assert.deepEqual([5, 'x', null, undefined, {}, true].map(acp.idType), [
      ...[rpc.ID_NUMBER, rpc.ID_TEXT, rpc.ID_NULL, rpc.ID_OTHER, rpc.ID_OTHER, rpc.ID_OTHER],
    ]);
    assert.deepEqual(
      [5, 'abc', '', 'x'.repeat(257), '\ud800', null, {}].map((id) => acp.writeIdValue(id)),
      [...[5, 3, 0, 4294967295, 4294967295, 0, 0]],
    );
  });

  test('is told of cancels, by an id and with a reason', () => {
    const given = [];
    const { x } = acp;
    acp.x = { ...x, cancel_received: (_pointer, ...rest) => (given.push(rest), 0) };
    const cancel = (id, reason) => (acp.cancelReceived(id, reason), given.pop());
    assert.deepEqual(cancel('abc', 'why'), [rpc.ID_TEXT, 3, 3, 3, 1]);
    assert.equal(acp.instance.readScratch(6), 'abcwhy');
    assert.deepEqual(cancel(7, 'why'), [rpc.ID_NUMBER, 7, 0, 3, 1]);
    assert.deepEqual(cancel(7, undefined), [rpc.ID_NUMBER, 7, 0, 0, 1]);
    assert.deepEqual(cancel(7, 5), [rpc.ID_NUMBER, 7, 0, 0, 0]);
    assert.deepEqual(cancel('\ud800', 'why'), [rpc.ID_TEXT, 4294967295, 0, 3, 1]);
    acp.x = x;
  });

  test('says what it knows of requests, of errors and of itself', () => {
    const { x } = lsp;
    for (const answer of [0, 1]) {
      const is = () => answer;
      lsp.x = { ...x, pending: is, running: is, closed: is, error_has_no_id: is };
      const all = [lsp.isPending(1), lsp.isRunning(1), lsp.isClosed, lsp.hasNoId(1)];
      assert.deepEqual(all, Array(4).fill(answer === 1));
    }
    lsp.x = x;
    assert.equal(lsp.isClosed, false);
    assert.deepEqual(
      made.map((peer) => peer.error(rpc.RPC_PARSE).code),
      [-32700, -32700, -32700],
    );
    assert.ok(lsp.error(rpc.RPC_PARSE).message);
    assert.notEqual(lsp.error(rpc.RPC_CANCELLED).code, lsp.error(rpc.RPC_PARSE).code);
  });
});

describe('the record of a call', () => {
  test('that was made follows its signal', () => {
    const controller = new AbortController();
    const cancel = mock.fn();
    const pending = new Pending({ cancel }, controller.signal);
    pending.handle = 7;
    controller.signal.addEventListener('abort', pending);
    controller.abort('why');
    assert.deepEqual(cancel.mock.calls[0].arguments, [7, 'why']);
    const other = new AbortController();
    const settled = new Pending({ cancel }, other.signal);
    other.signal.addEventListener('abort', settled);
    settled.unfollow();
    other.abort();
    assert.equal(cancel.mock.callCount(), 1);
    assert.equal(new Pending({ cancel }, undefined).reason, undefined);
  });

  test('that was received has a signal, made when it is read', () => {
    const early = new Cancellable();
    const { signal } = early;
    assert.equal(early.signal, signal);
    assert.deepEqual([early.handle, early.aborted, signal.aborted], [0, false, false]);
    early.abort('why', 'lost');
    const late = new Cancellable();
    late.abort('why', 'lost');
    for (const record of [early, late]) {
      assert.deepEqual([record.aborted, record.reason], [true, 'why']);
      const { name, message, cause } = record.signal.reason;
      assert.deepEqual([name, message, cause], ['AbortError', 'why', 'lost']);
    }
    assert.equal(ENDED, -1);
  });
});

describe('a driver', () => {
  class Driver extends CoreDriver {
    told = [];
    advance(now) {
      this.told.push(now);
    }
  }

  test('tells the time at most every ten milliseconds', (t) => {
    const clock = useClock(t);
    const driver = new Driver();
    const first = driver.tick();
    assert.equal(first, performance.now());
    clock.advance(9);
    assert.equal(driver.tick(), first + 9);
    clock.advance(1);
    driver.tick();
    clock.advance(5);
    driver.tick();
    assert.deepEqual(driver.told, [first, first + 10]);
    assert.equal(new CoreDriver().advance(1), undefined);
  });

  test('has one timer, at the latest time that was asked for', (t) => {
    const clock = useClock(t);
    const driver = new Driver();
    const now = performance.now();
    driver.arm(now + 100);
    driver.arm(now + 50);
    clock.advance(49);
    assert.deepEqual(driver.told, []);
    clock.advance(1);
    assert.deepEqual(driver.told.splice(0), [now + 50]);
    clock.advance(100);
    assert.deepEqual(driver.told, []);
    // What is due already comes at once, and not within.
    driver.arm(now + 10);
    assert.deepEqual(driver.told, []);
    clock.advance(0);
    assert.deepEqual(driver.told.splice(0), [now + 150]);
    driver.arm(now + 200);
    driver.arm(0);
    clock.advance(100);
    assert.deepEqual(driver.told, []);
  });

  test('that is armed again for the same time keeps its timer, and after that has fired makes one', (t) => {
    const made = t.mock.method(globalThis, 'setTimeout', () => ({}));
    const driver = new Driver();
    driver.arm(1e12);
    driver.arm(1e12);
    assert.equal(made.mock.callCount(), 1);
    const [fire, delay] = made.mock.calls[0].arguments;
    assert.ok(Number.isInteger(delay) && delay > 1e11);
    fire();
    // It fired too early: what is told is when it was due.
    assert.deepEqual(driver.told, [1e12]);
    driver.arm(1e12);
    assert.equal(made.mock.callCount(), 2);
    driver.arm(0);
    driver.arm(0);
    driver.arm(1);
    assert.equal(made.mock.calls[2].arguments[1], 0);
  });

  test('keeps its process alive while a call waits', (t) => {
    const timer = { ref: mock.fn(), unref: mock.fn() };
    t.mock.method(globalThis, 'setTimeout', () => timer);
    const driver = new Driver();
    const counts = () => [timer.ref, timer.unref].map(({ mock: { calls } }) => calls.length);
    driver.wait(1);
    driver.arm(1e12);
    assert.deepEqual(counts(), [1, 0]);
    driver.wait(1);
    assert.deepEqual(counts(), [1, 0]);
    driver.wait(-1);
    assert.deepEqual(counts(), [2, 0]);
    driver.wait(-1);
    assert.deepEqual(counts(), [2, 1]);
    driver.arm(2e12);
    assert.deepEqual(counts(), [2, 2]);
    driver.wait(1);
    assert.deepEqual(counts(), [3, 2]);
  });

  test('knows timers that are numbers, and cannot be held', (t) => {
    t.mock.method(globalThis, 'setTimeout', () => 5);
    const driver = new Driver();
    driver.arm(1e12);
    driver.wait(1);
    driver.wait(-1);
  });

  test('gives up a core that has failed, and its timer', (t) => {
    const clock = useClock(t);
    const said = t.mock.method(console, 'error', () => {});
    const driver = new Driver();
    driver.arm(performance.now() + 5);
    const core = { abandon: mock.fn() };
    assert.equal(driver.failed, false);
    driver.giveUp(core, 'it failed', 'why');
    clock.advance(10);
    assert.deepEqual([driver.failed, driver.told, core.abandon.mock.callCount()], [true, [], 1]);
    assert.deepEqual(said.mock.calls[0].arguments, ['abp-bridge: it failed:', 'why']);
  });
});

describe('a machine', () => {
  /** A core that causes the given actions: `{ kind, arg, call, flags, fate, at, reason, amount }`. */
  function scripted() {
    const acted = [];
    const core = {
      ...{ pointer: 1, script: [], asked: 0, pending: new Set(), isFree: false, inFlightIn: 0 },
      isPending: (call) => core.pending.has(call),
      counters: () => ({ inFlightIn: core.inFlightIn, of: 'the core' }),
      free: () => (core.isFree = true),
      abandon() {},
      writeReason: (reason) => reason.length,
      take() {
        const next = core.script.shift();
        if (!next) return 0;
        Object.assign(core, { call: 0, at: 0, reason: undefined, amount: [0, 0] }, next);
        const { kind, arg = 0, flags = 0, fate = 0 } = next;
        const more = core.script.length ? abp.MORE : 0;
        return kind | (arg << abp.ARG_SHIFT) | flags | more | (fate << abp.FATE_SHIFT);
      },
      x: {
        next: () => (core.asked++, core.take()),
        ...Object.fromEntries(
          ['finish', 'cancel', 'unsent', 'advance'].map((name) => [
            name,
            (...given) => (acted.push([name, ...given]), core.take()),
          ]),
        ),
      },
    };
    const acts = Object.fromEntries(
      [
        ...['sendRequest', 'send', 'refuse', 'report', 'drop', 'queued', 'session', 'failed'],
        'read',
      ].map((name) => [name, (...given) => (acted.push([name, ...given]), `${name} said`)]),
    );
    const machine = new Machine(core, acts);
    const feed = (script, context) => {
      core.script = script;
      return machine.feed(() => core.take(), context);
    };
    /** A record that tells what is asked of it. */
    const recordOf = (more) => ({
      ...{ handle: 0, ...more },
      ...Object.fromEntries(
        ['settle', 'start', 'abort', 'chunk', 'credit', 'resume', 'answer'].map((name) => [
          name,
          (...given) => void acted.push([name, ...given]),
        ]),
      ),
    });
    return { core, acts, machine, feed, recordOf, acted, done: () => acted.splice(0) };
  }

  test('performs each action with what it says', () => {
    const { feed, recordOf, done, core } = scripted();
    const call = 3;
    const record = recordOf();
    assert.equal(feed([{ kind: abp.REQUEST, call }], record), abp.OK);
    assert.deepEqual([record.handle, record.window], [3, undefined]);
    assert.deepEqual(done(), [['sendRequest', record, 3]]);
    for (const [action, ...expected] of [
      [{ kind: abp.REPORT, call }, 'report', record, 'context', 3],
      [{ kind: abp.QUEUED, call }, 'queued'],
      [{ kind: abp.ABORT, call, reason: 'why', fate: 1 }, 'abort', 'why', 1],
      [{ kind: abp.RESULT, call, arg: 2, fate: 4 }, 'answer', 2, 4],
      [{ kind: abp.DROP, arg: 3 }, 'drop', 3],
      [{ kind: abp.CHUNK, call, at: 50 }, 'chunk', 'context', 50],
      [{ kind: abp.CREDIT, call, amount: [1, 2] }, 'credit', [1, 2]],
      [{ kind: abp.RESUME, call }, 'resume'],
      [{ kind: abp.SESSION, arg: 2 }, 'session', 2, 'context'],
      [
        { kind: abp.SETTLE, call, arg: abp.FAILED, at: 5, fate: 3 },
        'settle',
        6,
        'context',
        undefined,
        3,
      ],
      [{ kind: abp.SETTLE, call, arg: abp.TIMED_OUT, at: 5 }, 'settle', 3, 'context', 5, 0],
    ]) {
      feed([action], 'context');
      assert.deepEqual(done(), [expected]);
    }
    const send = { kind: abp.SEND, arg: 5, call };
    for (const script of [[send], [{ kind: abp.DROP }, send]]) {
      feed(script, 'context');
      const [read, sent] = done().filter(([name]) => name !== 'drop');
      assert.deepEqual([read[0], kindOf(read[1]), argOf(read[1])], ['read', abp.SEND, 5]);
      assert.deepEqual(read.slice(2), [3, record, 'context']);
      assert.deepEqual(sent, ['send', 5, record, 'read said']);
    }
    feed([{ kind: abp.REFUSE, arg: 7 }], 'context');
    assert.deepEqual(done()[1], ['refuse', 7, 'context', 'read said']);
    assert.equal(feed([]), 0);
    core.take = () => -5;
    assert.equal(feed([]), -5);
    assert.deepEqual(done(), []);
  });

  test('asks for further actions as long as there are more, and gives each its own call', () => {
    const { core, feed, recordOf, done } = scripted();
    const record = recordOf();
    feed([{ kind: abp.REQUEST, call: 3 }], record);
    assert.equal(core.asked, 0);
    done();
    feed(
      [
        { kind: abp.DROP, arg: 1 },
        { kind: abp.REPORT, call: 3 },
        { kind: abp.REPORT, call: 0 },
      ],
      'context',
    );
    assert.deepEqual(done(), [
      ['drop', 1],
      ['report', record, 'context', 3],
      ['report', undefined, 'context', 0],
    ]);
    assert.equal(core.asked, 2);
  });

  test('reads all that actions say before any is performed', () => {
    const { feed, recordOf, done } = scripted();
    const record = recordOf();
    feed([{ kind: abp.START, call: 1 }], record);
    done();
    feed(
      [
        { kind: abp.ABORT, call: 1, reason: 'first' },
        { kind: abp.ABORT, call: 1, reason: 'second' },
        { kind: abp.CHUNK, call: 1, at: 5 },
        { kind: abp.CREDIT, call: 1, amount: [1, 2] },
        { kind: abp.SETTLE, call: 1, arg: abp.TIMED_OUT, at: 9 },
        { kind: abp.RESUME, call: 1 },
      ],
      'context',
    );
    assert.deepEqual(done(), [
      ['abort', 'first', 0],
      ['abort', 'second', 0],
      ['chunk', 'context', 5],
      ['credit', [1, 2]],
      ['settle', abp.TIMED_OUT, 'context', 9, 0],
      ['resume'],
    ]);
  });

  test('may have nobody who is told of what some protocols do not have', (t) => {
    const reported = [];
    globalThis.reportError = (error) => reported.push(error);
    t.after(() => delete globalThis.reportError);
    const { feed, acts, done } = scripted();
    for (const name of ['drop', 'queued', 'session']) delete acts[name];
    const record = { handle: 0 };
    for (const kind of [abp.DROP, abp.SESSION]) feed([{ kind }]);
    feed([{ kind: abp.QUEUED, call: 1 }], record);
    assert.deepEqual([done(), reported], [[], []]);
  });

  test('keeps the records of calls by their slots until they are released', () => {
    const { feed, recordOf, machine, done } = scripted();
    const [made, received] = [recordOf({ stream: {} }), recordOf()];
    const handle = abp.SLOT_MASK + 1 + 5; // slot 5, of another generation
    feed([{ kind: abp.REQUEST, call: handle, amount: [8, 9] }], made);
    assert.deepEqual([made.handle, made.window], [handle, [8, 9]]);
    feed([{ kind: abp.QUEUED, call: 6 }], received);
    done();
    // A call that waited has its record; whoever lets it begin is another.
    feed([{ kind: abp.START, call: 6 }], made);
    assert.deepEqual([received.handle, made.handle], [6, handle]);
    assert.deepEqual(done(), [['start']]);
    assert.equal(
      machine.find((record) => record === made),
      made,
    );
    assert.equal(
      machine.find(() => false),
      undefined,
    );
    const answer = { kind: abp.RESULT, call: 6, flags: abp.RELEASED };
    feed([answer], 'context');
    assert.equal(
      machine.find((record) => record === received),
      undefined,
    );
    // Nothing is kept of it: the context is what is answered then.
    feed([answer], recordOf());
    assert.equal(done().length, 2);
    const next = recordOf();
    feed([{ kind: abp.START, call: 6 }], next);
    assert.equal(
      machine.find((record) => record === next),
      next,
    );
    const again = recordOf();
    feed([{ kind: abp.START, call: 2 * (abp.SLOT_MASK + 1) + 6 }], again);
    assert.equal(
      machine.find((record) => record === next),
      undefined,
    );
  });

  test('waits for the calls that it made, once each', (t) => {
    const { feed, recordOf, machine } = scripted();
    const waits = t.mock.method(machine, 'wait');
    const record = recordOf();
    feed([{ kind: abp.REQUEST, call: 1 }], record);
    feed([{ kind: abp.REQUEST, call: 1 }], record);
    feed([{ kind: abp.SETTLE, call: 1, flags: abp.RELEASED }]);
    assert.deepEqual(
      waits.mock.calls.map(({ arguments: [more] }) => more),
      [1, -1],
    );
  });

  test('gives the core its inputs', (t) => {
    const { machine, recordOf, done, core } = scripted();
    t.mock.method(performance, 'now', () => 77);
    machine.cancel(5, 'why');
    machine.advance();
    machine.advance(78);
    const settled = recordOf();
    machine.expect(settled, 5);
    core.script = [{ kind: abp.SETTLE, call: 5, arg: abp.FAILED }];
    machine.sendFailed(5, 'answer');
    assert.deepEqual(done(), [
      ...[
        ['cancel', 1, 5, 3],
        ['advance', 1, 77],
        ['advance', 1, 78],
        ['unsent', 1, 5],
      ],
      ['settle', abp.FAILED, 'answer', undefined, 0],
    ]);
  });

  test('ends a record when its handler has settled, unless its answer waits', () => {
    const { machine, feed, recordOf, done, core } = scripted();
    const has = (record) => machine.find((each) => each === record) === record;
    const [plain, waiting, other] = [recordOf(), recordOf(), recordOf()];
    feed([{ kind: abp.START, call: 1 }], plain);
    feed([{ kind: abp.START, call: 2 }], waiting);
    feed([{ kind: abp.START, call: 3 }], other);
    done();
    core.pending.add(2);
    machine.finish(plain, abp.COMPLETED);
    machine.finish(waiting, abp.COMPLETED, abp.FATE_FINISHED);
    assert.deepEqual(done(), [
      ['finish', 1, 1, abp.COMPLETED, abp.FATE_NONE],
      ['finish', 1, 2, abp.COMPLETED, abp.FATE_FINISHED],
    ]);
    assert.deepEqual([plain, waiting, other].map(has), [false, true, true]);
    assert.deepEqual([plain.handle, waiting.handle, other.handle], [0, 0, 3]);
    // Its slot may have another's record by then.
    other.handle = 2;
    core.pending.clear();
    machine.finish(other, abp.COMPLETED);
    assert.equal(has(waiting), true);
    assert.equal(core.isFree, false);
  });

  test('tells its observer of each action, and reports what that or a record throws', (t) => {
    const reported = [];
    globalThis.reportError = (error) => reported.push(error);
    t.after(() => delete globalThis.reportError);
    const { machine, feed, recordOf, done } = scripted();
    const record = recordOf();
    const seen = [];
    machine.observer = { action: (...given) => seen.push(given) };
    feed([{ kind: abp.START, call: 1 }], record);
    feed([{ kind: abp.ABORT, call: 1, arg: 4, reason: 'why' }, { kind: abp.DROP }], 'context');
    feed([]);
    assert.deepEqual(
      seen.filter(([kind]) => kind !== abp.DROP),
      [
        [abp.START, 0, record, record, undefined],
        [abp.ABORT, 4, record, 'context', 'why'],
      ],
    );
    assert.equal(seen.length, 3);
    done();
    record.abort = () => {
      throw new Error('its own');
    };
    feed([
      { kind: abp.ABORT, call: 1 },
      { kind: abp.RESUME, call: 1 },
    ]);
    assert.deepEqual([reported[0].message, done()], ['its own', [['resume']]]);
  });

  test('has a timer of the core', (t) => {
    const clock = useClock(t);
    const { feed, done } = scripted();
    feed([{ kind: abp.WAKE, at: performance.now() + 5 }]);
    clock.advance(5);
    assert.deepEqual(done(), [['advance', 1, performance.now()]]);
  });

  test('frees its core when no handler runs, and keeps its counters', (t) => {
    const clock = useClock(t);
    const { machine, feed, recordOf, core, done } = scripted();
    const record = recordOf();
    feed([{ kind: abp.START, call: 1 }], record);
    feed([{ kind: abp.WAKE, at: performance.now() + 5 }]);
    core.inFlightIn = 1;
    machine.end();
    clock.advance(10);
    assert.deepEqual([core.isFree, done()], [false, [['start']]]);
    core.inFlightIn = 0;
    machine.finish(record, abp.COMPLETED);
    assert.equal(core.isFree, true);
    core.isFree = false;
    core.counters = () => assert.fail('it is free');
    machine.end();
    assert.deepEqual([machine.counters, core.isFree], [{ inFlightIn: 0, of: 'the core' }, false]);
  });

  test('keeps its core as long as somebody may ask what became of its calls', () => {
    const { machine, core } = scripted();
    machine.kept = 1;
    machine.end();
    assert.equal(core.isFree, false);
    machine.forget();
    assert.equal(core.isFree, true);
    const living = scripted();
    living.machine.kept = 1;
    living.machine.forget();
    assert.equal(living.core.isFree, false);
    living.machine.end();
    assert.equal(living.core.isFree, true);
  });

  test('tells all calls that its core has failed, once, and does nothing more', (t) => {
    const said = t.mock.method(console, 'error', () => {});
    const { machine, feed, recordOf, core, acts, done } = scripted();
    const records = [recordOf(), recordOf()];
    records.forEach((record, i) => feed([{ kind: abp.START, call: i + 1 }], record));
    done();
    core.take = () => {
      throw new Error('unreachable');
    };
    assert.equal(feed([]), abp.E_MEMORY);
    assert.deepEqual(done(), [['failed', records]]);
    assert.equal(
      machine.find(() => true),
      undefined,
    );
    assert.match(said.mock.calls[0].arguments[0], /the connection failed and is closed/);
    assert.equal(feed([]), abp.E_MEMORY);
    acts.failed = () => assert.fail('twice');
    machine.finish(records[0], abp.COMPLETED);
    assert.deepEqual([records[0].handle, done()], [1, []]);
    machine.end();
    assert.equal(core.isFree, false);
  });
});
