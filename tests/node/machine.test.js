// Actions are taken before any is performed: what is performed may call, settle and close in between.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { Machine } from '../../js/core/machine.js';

/** In the place of an action: the core traps when it is taken. */
const TRAP = Symbol('trap');

/** A core that causes the given actions, `[kind, arg, call, flags]` each, for any input. */
function scripted() {
  const core = {
    pointer: 1,
    call: 0,
    reason: undefined,
    at: 0,
    script: [],
    isPending: () => false,
    counters: () => ({ inFlightIn: 0 }),
    free() {},
    abandon() {},
    take() {
      const next = core.script.shift();
      if (!next) return 0;
      if (next === TRAP) throw new WebAssembly.RuntimeError('unreachable');
      const [kind, arg, call, flags = 0] = next;
      core.call = call;
      return kind | (arg << abp.ARG_SHIFT) | flags | (core.script.length ? abp.MORE : 0);
    },
    x: { next: () => core.take(), finish: () => 0 },
  };
  const failed = [];
  const acts = {
    read: () => core.unreadable && assert.fail('unreadable'),
    sendRequest() {},
    send() {},
    refuse() {},
    report() {},
    failed: (records) => failed.push(...records),
  };
  const machine = new Machine(/** @type {any} */ (core), acts);
  const feed = (actions, context) => {
    core.script = actions;
    return machine.feed(() => core.take(), context);
  };
  return { core, machine, feed, failed };
}

test('a handler that settles while its abort is performed is answered all the same, once', () => {
  const { machine, feed } = scripted();
  const answers = [];
  const record = {
    handle: 0,
    start() {},
    // WebKit runs microtasks between listeners of a signal: the handler has settled before `abort` returns.
    abort: () => machine.finish(record, abp.CANCELLED),
    answer: (outcome) => answers.push(outcome),
  };
  feed([[abp.START, 0, 7]], record);
  feed([
    [abp.ABORT, 0, 7],
    [abp.RESULT, abp.CANCELLED, 7],
  ]);
  assert.deepEqual(answers, [abp.CANCELLED]);
});

test('a call made while actions are performed may get a slot that a later one of them gives back', () => {
  const { machine, feed } = scripted();
  const settled = [];
  const pending = (name, then = () => {}) => ({
    handle: 0,
    settle: (outcome) => (settled.push([name, outcome]), then()),
  });
  const late = pending('late');
  feed(
    [[abp.REQUEST, 0, 1]],
    pending('first', () => feed([[abp.REQUEST, 0, 2]], late)),
  );
  feed([[abp.REQUEST, 0, 2]], pending('second'));
  feed([
    [abp.SETTLE, abp.DISCONNECTED, 1, abp.RELEASED],
    [abp.SETTLE, abp.DISCONNECTED, 2, abp.RELEASED],
  ]);
  assert.deepEqual(settled, [
    ['first', abp.DISCONNECTED],
    ['second', abp.DISCONNECTED],
  ]);
  assert.equal(
    machine.find((record) => record === late),
    late,
  );
  feed([[abp.SETTLE, abp.COMPLETED, 2, abp.RELEASED]]);
  assert.deepEqual(settled.at(-1), ['late', abp.COMPLETED]);
  assert.equal(
    machine.find(() => true),
    undefined,
  );
});

test('when the core traps while actions are taken, the calls of those taken before hear of it, too', (t) => {
  const said = t.mock.method(console, 'error', () => {});
  const pending = () => ({
    handle: 0,
    settle: () => assert.fail('performed by a core that failed'),
  });
  const { feed, failed } = scripted();
  const [settled, alsoSettled, other] = [pending(), pending(), pending()];
  feed([[abp.REQUEST, 0, 1]], settled);
  feed([[abp.REQUEST, 0, 2]], alsoSettled);
  feed([[abp.REQUEST, 0, 3]], other);
  const status = feed([
    [abp.SETTLE, abp.DISCONNECTED, 1, abp.RELEASED],
    [abp.SETTLE, abp.DISCONNECTED, 2, abp.RELEASED],
    TRAP,
  ]);
  assert.equal(status, abp.E_MEMORY);
  assert.deepEqual(failed, [settled, alsoSettled, other]);
  assert.equal(said.mock.callCount(), 1);
});

test('when what an action says cannot be read, its own call hears of it', (t) => {
  t.mock.method(console, 'error', () => {});
  for (const before of [[], [[abp.DROP, abp.LATE, 0]]]) {
    const { core, feed, failed } = scripted();
    const record = { handle: 0, start() {}, answer() {} };
    feed([[abp.START, 0, 5]], record);
    core.unreadable = true;
    feed([...before, [abp.SEND, 0, 5, abp.RELEASED]]);
    assert.deepEqual(failed, [record]);
  }
});
