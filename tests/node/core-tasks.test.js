// The table of tasks as JavaScript drives it: what goes into its core, and who is told what comes of that.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Instance } from '../../js/core/instance.js';
import { TASK_LIMITS, TaskTable, ended, ready } from '../../js/core/tasks-core.js';
import * as tasks from '../../js/core/tasks-boundary.js';
import { useClock } from '../support/clock.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

await ready();

/** A table that gives its core nothing, and says what it would have: each input answers with `answer`. */
function recorded(delegate) {
  const table = new TaskTable({}, delegate);
  const { x } = table.core;
  const asked = [];
  const script = { due: [], wake: 0, answer: 7 };
  const answers = {
    next: () => script.due[0]?.[1] ?? 0,
    due_task: () => script.due.shift()[0],
    wake: () => script.wake,
  };
  table.core.x = new Proxy(x, {
    get:
      (_x, name) =>
      (pointer, ...given) => {
        if (answers[name]) return answers[name]();
        asked.push([name, pointer === table.core.pointer, ...given]);
        return script.answer;
      },
  });
  return { table, script, asked: () => asked.splice(0) };
}

describe('a table of tasks', () => {
  test('knows which form its core has, and which states are ends', async () => {
    assert.equal(await ready(), 'WebAssembly' in globalThis ? 'wasm' : 'js');
    assert.deepEqual(
      [tasks.TASK_WORKING, tasks.TASK_INPUT_REQUIRED, tasks.TASK_COMPLETED].map(ended),
      [false, false, true],
    );
  });

  test('gives each limit to its core under the name that it has there', (t) => {
    const configure = t.mock.method(Instance.prototype, 'configure');
    const limits = {
      ...{ maxTasks: 1, maxArtifacts: 2, remembered: 3, rememberFor: 4 },
      ...{ grace: 5, linger: 6, retry: 7, outage: 8 },
    };
    assert.deepEqual(Object.keys(limits).slice(0, 4), TASK_LIMITS);
    new TaskTable(limits, { commits: true });
    new TaskTable();
    const [given, defaults] = configure.mock.calls.map(({ arguments: [, fields] }) =>
      Object.fromEntries(
        fields.map(([offset, value]) => [
          Object.keys(tasks.CONFIG).find((name) => tasks.CONFIG[name] === offset),
          value,
        ]),
      ),
    );
    assert.deepEqual(given, {
      ...{ max_tasks: 1, max_artifacts: 2, remembered: 3, remember_ms: 4 },
      ...{ grace_ms: 5, linger_ms: 6, retry_ms: 7, outage_ms: 8, commits: 1 },
    });
    assert.ok(Object.values(defaults).every((value) => !value));
  });

  test('lives in its core: a task is added, found, said of and forgotten', () => {
    const table = new TaskTable({ maxTasks: 1 });
    const task = table.add('one', tasks.TASK_SUBMITTED);
    assert.ok(task > 0);
    assert.deepEqual([table.find('one'), table.find('two')], [task, 0]);
    assert.ok(table.add('two', tasks.TASK_SUBMITTED) < 0);
    assert.deepEqual(table.counters(), { live: 1, finished: 0, dropped: 0 });
    table.forget(task);
    assert.deepEqual([table.find('one'), table.counters().live], [0, 0]);
  });

  test('hands over each input as it is', (t) => {
    const clock = useClock(t);
    clock.advance(1000);
    const { table, asked } = recorded();
    const { TASK_WORKING: state, TASK_NEWS, TASK_RETURNED, WATCH_BROKEN } = tasks;
    for (const [act, ...expected] of [
      [() => table.add('an id', state), 'add', 5, state],
      [() => table.find('ab'), 'find', 2],
      [() => table.start(3), 'start', 3],
      [() => table.run(3), 'run', 3],
      [() => table.says(3, 2, state, TASK_NEWS), 'says', 3, 2, state, TASK_NEWS],
      [() => table.subscribe(3, true), 'subscribe', 3, 1],
      [() => table.returns(3, 2, TASK_RETURNED), 'returns', 3, 2, TASK_RETURNED],
      [() => table.fate(3), 'fate', 3],
      [() => table.cancel(3, 500, false), 'cancel', 3, 500, 0],
      [() => table.artifact(3, 2, 'abc', true), 'artifact', 3, 2, 3, 1],
      [() => table.committed(3, state), 'committed', 3, state],
      [() => table.wish(3, 500), 'wish', 3, 500],
      [() => table.lost(3), 'lost', 3],
    ]) {
      assert.equal(act(), 7, expected[0]);
      const [name, ...rest] = expected;
      assert.deepEqual(asked(), [[name, true, ...rest]]);
    }
    for (const [act, ...expected] of [
      [() => table.taken(3), 'taken', 3],
      [() => table.forget(3), 'forget', 3],
      [() => table.advance(5), 'advance', 5],
      [() => table.advance(), 'advance', performance.now()],
    ]) {
      assert.equal(act(), undefined);
      const [name, ...rest] = expected;
      assert.deepEqual(asked(), [[name, true, ...rest]]);
    }
    // What is watched is measured from now on: the core is told the time first.
    for (const [act, ...expected] of [
      [() => table.watch(3, tasks.WATCH_TASK), 'watch', 3, tasks.WATCH_TASK],
      [() => table.watching('leave', 3), 'watch_leave', 3],
      [() => table.watchStep('asked', 3, WATCH_BROKEN, 40), 'watch_asked', 3, WATCH_BROKEN, 40],
      [() => table.watchStep('ended', 3, WATCH_BROKEN, NaN), 'watch_ended', 3, WATCH_BROKEN, 0],
      [
        () => table.watchCancelAnswered(3, WATCH_BROKEN, 40, state),
        ...['watch_cancel_answered', 3, WATCH_BROKEN, 40, state],
      ],
      [
        () => table.watchCancelAnswered(3, WATCH_BROKEN, undefined, state),
        ...['watch_cancel_answered', 3, WATCH_BROKEN, 0, state],
      ],
    ]) {
      clock.advance(1000);
      assert.equal(act(), 7, expected[0]);
      const [name, ...rest] = expected;
      assert.deepEqual(asked(), [
        ['advance', true, performance.now()],
        [name, true, ...rest],
      ]);
    }
  });

  test('tells its delegate what has become due, after all of it was taken, and sets its timer', (t) => {
    const clock = useClock(t);
    const told = [];
    const { table, script, asked } = recorded({
      onDue: (task, verdict) => told.push([task, verdict, script.due.length]),
    });
    script.due = [
      [5, tasks.TASK_TELL],
      [6, tasks.TASK_END],
    ];
    script.wake = performance.now() + 100;
    script.answer = undefined;
    assert.equal(table.start(5), 0);
    assert.deepEqual(told, [
      [5, tasks.TASK_TELL, 0],
      [6, tasks.TASK_END, 0],
    ]);
    asked();
    clock.advance(99);
    assert.deepEqual(asked(), []);
    script.wake = 0;
    clock.advance(1);
    assert.deepEqual(asked(), [['advance', true, performance.now()]]);
  });

  test('without a delegate has no clock, and takes nothing that is due', (t) => {
    const clock = useClock(t);
    const { table, script, asked } = recorded();
    script.due = [[5, tasks.TASK_TELL]];
    script.wake = performance.now() + 1;
    table.start(5);
    asked();
    clock.advance(10);
    assert.deepEqual([asked(), script.due.length], [[], 1]);
  });

  test('that rests sets no timer any more, and still tells', (t) => {
    const clock = useClock(t);
    const onDue = mock.fn();
    const { table, script, asked } = recorded({ onDue });
    script.wake = performance.now() + 50;
    table.start(5);
    table.rest();
    asked();
    clock.advance(100);
    assert.deepEqual(asked(), []);
    script.due = [[5, tasks.TASK_TELL]];
    script.wake = performance.now() + 50;
    table.start(5);
    asked();
    clock.advance(100);
    assert.deepEqual([asked(), onDue.mock.callCount()], [[], 1]);
  });
});

describe('a table whose core fails', () => {
  /** Makes every input of a table trap. The instance stays: other tables are in it, too. */
  function trap(t, table) {
    const input = mock.fn(() => {
      throw new WebAssembly.RuntimeError('unreachable');
    });
    table.core.x = new Proxy(table.core.x, { get: () => input });
    const abandon = t.mock.method(table.core, 'abandon', () => {});
    const said = t.mock.method(console, 'error', () => {});
    return { input, abandon, said };
  }

  test('is empty from then on, and says so once', (t) => {
    const onFailure = mock.fn();
    const table = new TaskTable({}, { onFailure, onDue: () => assert.fail('nothing is due') });
    const task = table.add('one', tasks.TASK_SUBMITTED);
    const { input, abandon, said } = trap(t, table);
    assert.equal(table.start(task), 0);
    assert.equal(table.failed, true);
    assert.deepEqual(
      [onFailure, abandon, said].map((each) => each.mock.callCount()),
      [1, 1, 1],
    );
    assert.match(
      said.mock.calls[0].arguments[0],
      /the core of the tasks failed, and they are lost/,
    );
    assert.equal(table.find('one'), 0);
    assert.deepEqual(table.counters(), { live: 0, finished: 0, dropped: 0 });
    assert.deepEqual([onFailure.mock.callCount(), input.mock.callCount()], [1, 1]);
  });

  test('need not tell anybody', (t) => {
    const table = new TaskTable();
    trap(t, table);
    assert.equal(table.run(1), 0);
    assert.equal(table.failed, true);
  });

  test('leaves its memory alone', async (t) => {
    const { instance } = new TaskTable().core;
    const destroyed = t.mock.method(instance.x, 'destroy');
    // Nothing here may still refer to the tables.
    const pointerOf = (fails) => {
      const table = new TaskTable();
      if (fails) trap(t, table);
      if (fails) table.run(1);
      return table.core.pointer;
    };
    const [failed, other] = [true, false].map(pointerOf);
    await destruction(destroyed, other);
    assert.equal(isDestroyed(destroyed, failed), false);
  });
});

const isDestroyed = (destroyed, pointer) =>
  destroyed.mock.calls.some(({ arguments: [given] }) => given === pointer);
/** Collects until a table's memory was given back. */
async function destruction(destroyed, pointer) {
  while (!isDestroyed(destroyed, pointer)) {
    collect();
    await new Promise(setImmediate);
  }
}

test('a table that nobody has any more gives its memory back', async (t) => {
  const { instance } = new TaskTable().core;
  const destroyed = t.mock.method(instance.x, 'destroy');
  await destruction(destroyed, new TaskTable().core.pointer);
});
