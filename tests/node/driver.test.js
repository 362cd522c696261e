// The driver's contract (js/driver): how a core is loaded, what goes into its memory and comes out,
// and that its actions are taken before any is performed. These tests run with WebAssembly and, by
// tests/support/no-wasm.js, without.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import deflated from '../../dist/abp-wasm.js';
import * as abp from '../../js/driver/abp-boundary.js';
import { Instance } from '../../js/driver/instance.js';
import { load } from '../../js/driver/load.js';
import { CoreDriver, Machine } from '../../js/driver/machine.js';
import { CoreModule } from '../../js/driver/module.js';
import { useClock } from '../support/clock.js';

const form = 'WebAssembly' in globalThis ? 'wasm' : 'js';
const asJavaScript = () => import('../../dist/abp-js.js');
const used = mock.fn();
await load(deflated, asJavaScript, used);
/** @type {import('../../js/driver/load.js').Instantiate} */
const [instantiate] = used.mock.calls[0].arguments;
const ANOTHER = { message: 'dist/ does not match js/: npm run build' };

describe('a core is loaded', () => {
  test('as WebAssembly, else as JavaScript, with and without Uint8Array.fromBase64', async () => {
    const native = Object.getOwnPropertyDescriptor(Uint8Array, 'fromBase64');
    try {
      for (const value of [undefined, (text) => new Uint8Array(Buffer.from(text, 'base64'))]) {
        Object.defineProperty(Uint8Array, 'fromBase64', { value, configurable: true });
        assert.equal(await load(deflated, asJavaScript, used), form);
      }
    } finally {
      delete Uint8Array.fromBase64;
      if (native) Object.defineProperty(Uint8Array, 'fromBase64', native);
    }
    assert.equal(await load('no WebAssembly', asJavaScript, used), 'js');
  });

  test('with one instance; where an engine refuses to make one of WebAssembly, as JavaScript', async () => {
    const made = mock.fn();
    assert.equal(await load(deflated, asJavaScript, made), form);
    assert.equal(made.mock.callCount(), 1);
    if (form === 'js') return;
    const refusing = mock.fn(() => {
      if (!refusing.mock.callCount()) throw new EvalError('forbidden');
    });
    assert.equal(await load(deflated, asJavaScript, refusing), 'js');
    assert.equal(refusing.mock.callCount(), 2);
  });

  test('not at all where there is neither form of it, and says why', async () => {
    const cause = new Error('offline');
    await assert.rejects(
      load('', () => Promise.reject(cause), used),
      { code: 'NOT_SUPPORTED', message: /its replacement did not load: offline/, cause },
    );
  });

  test('once; a file that does not load is a typed error, and is tried again', async (t) => {
    const unhandled = mock.fn();
    process.on('unhandledRejection', unhandled);
    t.after(() => process.off('unhandledRejection', unhandled));
    let answer = Promise.reject(new TypeError('Failed to fetch'));
    const file = mock.fn(() => answer);
    const module = new CoreModule(file, asJavaScript, abp.ABI);
    assert.throws(() => module.instance(), TypeError);
    const failing = module.load();
    // Who only imports us hears nothing of it.
    await new Promise(setImmediate);
    assert.equal(unhandled.mock.callCount(), 0);
    await assert.rejects(failing, { code: 'TRANSPORT_ERROR', retryable: true });
    answer = Promise.resolve({ default: deflated });
    const loading = module.load();
    assert.equal(module.load(), loading);
    assert.equal(await loading, form);
    assert.equal(file.mock.callCount(), 2);
  });

  test('of these sources and of no others: it says so at once', async () => {
    const file = async () => ({ default: deflated });
    await assert.rejects(new CoreModule(file, asJavaScript, abp.ABI + 1).load(), ANOTHER);
    const asked = mock.fn();
    for (const x of [{ abi: () => 1, _initialize: asked }, {}])
      assert.throws(() => new Instance(() => x, 2), ANOTHER);
    assert.equal(asked.mock.callCount(), 0);
  });

  test('into one instance, until that is abandoned', async () => {
    const module = new CoreModule(async () => ({ default: deflated }), asJavaScript, abp.ABI);
    await module.load();
    const first = module.instance();
    assert.equal(module.instance(), first);
    module.abandon(new Instance(instantiate, abp.ABI));
    assert.equal(module.instance(), first);
    module.abandon(first);
    const second = module.instance();
    assert.notEqual(second.x.memory, first.x.memory);
    module.abandon(first);
    assert.equal(module.instance(), second);
  });
});

/** Numbers that look random and are the same in each run. */
function randomNumbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** An app in an instance, which has a session. */
function app(instance) {
  const { x, u32 } = instance;
  instance.configure(abp.CONFIG.seed, [
    [abp.CONFIG.role, abp.APP],
    [abp.CONFIG.remembered, 1],
  ]);
  const pointer = x.create(1);
  assert.ok(pointer && u32.length);
  const hello = { type: 'initialize', id: 'P', payload: { protocolVersion: '0.1' } };
  let action = x.receive(pointer, instance.write(JSON.stringify(hello)));
  while (action > 0) action = x.next(pointer);
  return {
    receives(id) {
      const action = x.call_received(pointer, instance.writeId(id), 0, 0, 0, 0, 0, 0);
      assert.equal(action & 255, abp.START);
      return instance.u32[(x.action() + abp.ACTION_CALL) >> 2];
    },
    idOf: (call) => instance.readScratch(x.id_text(pointer, call)),
    finish: (call) => x.finish(pointer, call, abp.COMPLETED, abp.FATE_NONE),
  };
}

describe('the memory of a core', () => {
  test('holds ids of all lengths while others come and go, and what is free is used again', () => {
    const random = randomNumbers(7);
    const instance = new Instance(instantiate, abp.ABI);
    const apps = [app(instance), app(instance)];
    const sizes = [];
    for (let round = 0; round < 6; round++) {
      const kept = [];
      for (let i = 0; i < 3000; i++) {
        const one = apps[random(2)];
        const id = `${i}-`.padEnd(1 + random(250), String.fromCharCode(97 + random(26)));
        kept.push([one, one.receives(id), id]);
        if (random(3)) continue;
        const [[of, call, text]] = kept.splice(random(kept.length), 1);
        assert.equal(of.idOf(call), text);
        of.finish(call);
      }
      for (const [one, call, id] of kept) assert.equal(one.idOf(call), id);
      for (const [one, call] of kept) one.finish(call);
      sizes.push(instance.x.memory.buffer.byteLength);
    }
    assert.equal(new Set(sizes.slice(3)).size, 1, sizes.join());
  });

  test('a block of each size holds what is written to it, and one that cannot be had changes nothing', () => {
    const instance = new Instance(instantiate, abp.ABI);
    const { memory, scratch } = instance.x;
    const small = memory.buffer;
    for (let length = 1; length < 1 << 20; length = Math.ceil(length * 1.3)) {
      const text = `${'x'.repeat(length - 1)}!`;
      assert.equal(instance.write(text), length);
      assert.equal(instance.readScratch(length), text);
    }
    // It grew meanwhile: views of what it was are of no use any more.
    assert.ok(memory.buffer.byteLength > small.byteLength);
    const before = memory.buffer.byteLength;
    assert.equal(scratch(2 ** 31), 0);
    assert.equal(memory.buffer.byteLength, before);
    instance.x.scratch = () => 0;
    assert.equal(instance.write('x'.repeat(1 << 20)), -1);
    assert.equal(instance.write('é, still here', 8), 14);
    assert.equal(instance.readScratch(14, 8), 'é, still here');
  });

  test('takes ids of 256 characters, well-formed, and nothing else', () => {
    const instance = new Instance(instantiate, abp.ABI);
    for (const id of ['', 'abc', '\x7f', '\x80', 'é', 'a😀', 'x'.repeat(256), '€'.repeat(256)])
      assert.equal(instance.readScratch(instance.writeId(id)), id);
    for (const none of ['x'.repeat(257), '\ud800', 'a\udc00b', 5, null, undefined, {}])
      assert.equal(instance.writeId(none), 0);
  });

  test('has 16 random bytes for each core, from which its secrets come', () => {
    const instance = new Instance(instantiate, abp.ABI);
    const at = instance.x.config() + abp.CONFIG.seed;
    const beside = () => [...instance.u8.subarray(at - 4, at), instance.u8[at + 16]];
    const before = beside();
    const seen = Array.from({ length: 16 }, () => new Set());
    for (let i = 0; i < 100; i++) {
      instance.configure(abp.CONFIG.seed, []);
      instance.u8.subarray(at, at + 16).forEach((byte, i) => seen[i].add(byte));
    }
    assert.ok(seen.every(({ size }) => size > 1));
    assert.deepEqual(beside(), before);
  });
});

/** In the place of an action: the core traps when it is taken. */
const TRAP = Symbol('trap');

/**
 * A machine with a core that causes the given actions, `[kind, arg, call, flags]` each, for any
 * input.
 */
function scripted() {
  const core = {
    ...{ pointer: 1, action: 0, instance: { u32: [] }, reason: undefined, at: 0, script: [] },
    inFlightIn: 0,
    isPending: () => false,
    counters: () => ({ inFlightIn: core.inFlightIn }),
    free: mock.fn(),
    abandon: mock.fn(),
    take() {
      const next = core.script.shift();
      if (!next) return 0;
      if (next === TRAP) throw new RangeError('unreachable');
      const [kind, arg, call, flags = 0, reason] = next;
      core.instance.u32[abp.ACTION_CALL >> 2] = call;
      core.reason = reason;
      return kind | (arg << abp.ARG_SHIFT) | flags | (core.script.length ? abp.MORE : 0);
    },
    x: {
      next: () => core.take(),
      finish: () => 0,
      advance: () => 0,
      postpone: mock.fn(),
      begin: mock.fn(() => 0),
    },
  };
  const failed = mock.fn();
  class Scripted extends Machine {
    read({ kind }) {
      if (core.unreadable) assert.fail('unreadable');
      return kind === abp.ABORT ? core.reason : undefined;
    }

    perform({ kind, arg, record, text }) {
      switch (kind) {
        case abp.START:
          return record.start();
        case abp.ABORT:
          return record.abort(text);
        case abp.RESULT:
          return record.answer(arg);
        case abp.SETTLE:
          return record.settle(arg);
        case abp.RESUME:
          return record.resume();
      }
    }

    broke(records) {
      failed(records);
    }
  }
  const machine = new Scripted(/** @type {any} */ (core));
  const feed = (script, context) => {
    core.script = script;
    return machine.feed(() => core.take(), context);
  };
  return { core, machine, feed, failed };
}
const received = () => ({ handle: 0, start() {} });

describe('actions', () => {
  test('are all taken, with what they say, before any is performed', () => {
    const { feed, core } = scripted();
    const seen = [];
    const abort = (reason) => seen.push([reason, core.script.length]);
    feed([[abp.START, 0, 1]], { handle: 0, start() {}, abort });
    feed([
      [abp.ABORT, 0, 1, 0, 'first'],
      [abp.DROP, 0, 0],
      [abp.ABORT, 0, 1, 0, 'second'],
    ]);
    assert.deepEqual(seen, [
      ['first', 0],
      ['second', 0],
    ]);
  });

  test('before that of a call may end it: then it does not start', () => {
    for (const [status, starts] of [
      [0, 1],
      [abp.E_STATE, 0],
    ]) {
      const { feed, core } = scripted();
      core.x.begin.mock.mockImplementation(() => status);
      const start = mock.fn();
      feed(
        [
          [abp.DROP, 0, 0],
          [abp.START, 0, 5],
        ],
        { handle: 0, start },
      );
      assert.deepEqual(core.x.postpone.mock.calls[0].arguments, [1, 5]);
      assert.deepEqual(core.x.begin.mock.calls[0].arguments, [1, 5]);
      assert.equal(start.mock.callCount(), starts);
    }
  });

  test('a handler that settles while its abort is performed is answered all the same, once', () => {
    const { core, machine, feed } = scripted();
    const answers = [];
    const record = {
      ...received(),
      // WebKit runs microtasks between listeners of a signal: the handler has settled before
      // `abort` returns.
      abort: () => machine.finish(record, core.x.finish),
      answer: (outcome) => answers.push(outcome),
    };
    feed([[abp.START, 0, 7]], record);
    feed([
      [abp.ABORT, 0, 7],
      [abp.RESULT, abp.CANCELLED, 7],
    ]);
    assert.deepEqual(answers, [abp.CANCELLED]);
  });

  test('a call made while they are performed may get a slot that a later one of them gives back', () => {
    const { machine, feed } = scripted();
    const told = [];
    const pending = (name, then = () => {}) => ({
      handle: 0,
      settle: (outcome) => (told.push([name, outcome]), then()),
    });
    const late = pending('late');
    const first = pending('first', () => feed([[abp.REQUEST, 0, 2]], late));
    feed([[abp.REQUEST, 0, 1]], first);
    feed([[abp.REQUEST, 0, 2]], pending('second'));
    feed([
      [abp.SETTLE, abp.DISCONNECTED, 1, abp.RELEASED],
      [abp.SETTLE, abp.DISCONNECTED, 2, abp.RELEASED],
    ]);
    feed([[abp.SETTLE, abp.COMPLETED, 2, abp.RELEASED]]);
    assert.deepEqual(told, [
      ['first', abp.DISCONNECTED],
      ['second', abp.DISCONNECTED],
      ['late', abp.COMPLETED],
    ]);
    assert.equal(
      machine.find(() => true),
      undefined,
    );
  });

  test('one that throws is reported, and the others are performed', (t) => {
    const reported = [];
    globalThis.reportError = (error) => reported.push(error.message);
    t.after(() => delete globalThis.reportError);
    const { feed } = scripted();
    const resume = mock.fn();
    const abort = () => assert.fail('its own');
    feed([[abp.START, 0, 1]], { ...received(), abort, resume });
    feed([
      [abp.ABORT, 0, 1],
      [abp.RESUME, 0, 1],
    ]);
    assert.deepEqual([reported, resume.mock.callCount()], [['its own'], 1]);
  });
});

describe('a core that traps', () => {
  test('is given up: all calls hear of it, also those of actions that were taken before, and nothing more is done', (t) => {
    const said = t.mock.method(console, 'error', () => {});
    const { core, machine, feed, failed } = scripted();
    const settle = () => assert.fail('performed by a core that failed');
    const records = [1, 2, 3].map((call) => {
      const record = { handle: 0, settle };
      feed([[abp.REQUEST, 0, call]], record);
      return record;
    });
    const handled = received();
    feed([[abp.START, 0, 4]], handled);
    const status = feed([
      [abp.SETTLE, abp.DISCONNECTED, 1, abp.RELEASED],
      [abp.SETTLE, abp.DISCONNECTED, 2, abp.RELEASED],
      TRAP,
    ]);
    assert.equal(status, abp.E_MEMORY);
    assert.deepEqual(failed.mock.calls[0].arguments, [[...records, handled]]);
    assert.match(said.mock.calls[0].arguments[0], /the connection failed and is closed/);
    assert.equal(feed([[abp.DROP, 0, 0]]), abp.E_MEMORY);
    machine.finish(handled, core.x.finish);
    machine.end();
    const counts = [failed, said, core.abandon, core.free].map(
      ({ mock: { calls } }) => calls.length,
    );
    assert.deepEqual(counts, [1, 1, 1, 0]);
  });

  test('when what an action says cannot be read, its own call hears of it', (t) => {
    t.mock.method(console, 'error', () => {});
    for (const before of [[], [[abp.DROP, abp.LATE, 0]]]) {
      const { core, feed, failed } = scripted();
      const record = { ...received(), answer() {} };
      feed([[abp.START, 0, 5]], record);
      core.unreadable = true;
      feed([...before, [abp.SEND, 0, 5, abp.RELEASED]]);
      assert.deepEqual(failed.mock.calls[0].arguments, [[record]]);
    }
  });
});

test('at the end a core is freed when no handler runs and nobody asks for its calls; its counters stay', () => {
  const { core, machine, feed } = scripted();
  const record = received();
  feed([[abp.START, 0, 1]], record);
  core.inFlightIn = 1;
  machine.kept = 1;
  machine.end();
  core.inFlightIn = 0;
  machine.finish(record, core.x.finish);
  assert.equal(core.free.mock.callCount(), 0);
  machine.forget();
  machine.end();
  assert.equal(core.free.mock.callCount(), 1);
  core.counters = () => assert.fail('it is free');
  assert.deepEqual(machine.counters, { inFlightIn: 0 });
});

test('a core has one timer, at the latest time that was asked for', (t) => {
  const clock = useClock(t);
  const told = [];
  const driver = new CoreDriver();
  driver.advance = (now) => told.push(now);
  const now = performance.now();
  driver.arm(now + 100);
  driver.arm(now + 50);
  clock.advance(49);
  assert.deepEqual(told, []);
  clock.advance(101);
  assert.deepEqual(told.splice(0), [now + 150]);
  // What is due already comes at once, and not within.
  driver.arm(now + 10);
  assert.deepEqual(told, []);
  clock.advance(0);
  assert.deepEqual(told.splice(0), [now + 150]);
  driver.arm(now + 200);
  driver.arm(0);
  clock.advance(100);
  assert.deepEqual(told, []);
  // A timer that fires a little early tells when it was due.
  const set = t.mock.method(globalThis, 'setTimeout', () => ({}));
  driver.arm(now + 300.5);
  const [fire, delay] = set.mock.calls[0].arguments;
  fire();
  assert.deepEqual([told, delay], [[now + 300.5], 51]);
});
