// Actions are taken before any is performed: what is performed may call, settle and close in between.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { Machine } from '../../js/core/machine.js';

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
      const [kind, arg, call, flags = 0] = next;
      core.call = call;
      return kind | (arg << abp.ARG_SHIFT) | flags | (core.script.length ? abp.MORE : 0);
    },
    x: { next: () => core.take(), finish: () => 0 },
  };
  const acts = { read() {}, sendRequest() {}, send() {}, refuse() {}, report() {}, failed() {} };
  const machine = new Machine(/** @type {any} */ (core), acts);
  const feed = (actions, context) => {
    core.script = actions;
    return machine.feed(() => core.take(), context);
  };
  return { machine, feed };
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
