/** Records of a later version: the task is refused, and no other is affected. */
import assert from 'node:assert/strict';
import { pushNotifications } from '../../../src/index.js';
import { ask, deferred, open, stateOf } from '../../../../a2a/tests/support/a2a.js';
import { V1, send, get, cancel, returnImmediately, testsOver } from './processes.js';

/** @type {import('../store.js').StoreTests} */
export function testVersions(name, openBackend) {
  const it = testsOver(name, openBackend);

  for (const [what, later] of [
    ['a record of a later version', { v: 2, events: 'in a form of its own' }],
    ['an event of a later version', { v: 1, id: 'x', by: 'later', epoch: 9, e: [{ k: 'later' }] }],
    ['what is no record', ''],
    ['a record without events', { v: 1 }],
    ['an event that is none', { v: 1, id: 'x', by: 'later', epoch: 9, e: [null] }],
  ])
    it(`a task with ${what} is refused, and others go on`, async (t, start) => {
      const warned = t.mock.method(console, 'error', () => {});
      const warnings = () =>
        warned.mock.calls.filter(({ arguments: all }) =>
          all.some((one) => one?.code || one?.stack),
        );
      const aborted = [];
      const { agents, backend, urls } = await start(
        ({ task, signal, message, emitStatus }) => {
          if (message.parts[0].text === 'ask') return emitStatus('input-required');
          signal.addEventListener('abort', () => aborted.push(task.id));
          return new Promise(() => {});
        },
        { count: 4, push: pushNotifications({ allowPrivate: true }), store: { term: 3000 } },
      );
      const [ours, theirs] = [[], []];
      for (const of of [ours, theirs])
        for (const url of urls.slice(0, 2))
          of.push((await send(url, 'go', returnImmediately)).result.task.id);
      theirs.push((await send(urls[1], 'ask')).result.task.id);
      const [one] = theirs;
      const stream = await open(urls[2], V1.resubscribe, { id: one }, V1.headers);
      await stream.next();
      // A process of a later version takes some of them.
      for (const id of theirs) {
        const { seq } = (await backend.read(id, 0)).at(-1);
        await backend.append(id, later && JSON.stringify(later), seq);
      }
      // What was open ends, and what worked stops.
      assert.deepEqual(await stream.rest(), []);
      while (aborted.length < 2) await new Promise(setImmediate);
      assert.deepEqual(aborted.sort(), theirs.slice(0, 2).sort());
      const expectUnreadable = async (url, id) => {
        const message = { ...V1.message('more'), taskId: id };
        const config = { taskId: id, url: 'http://127.0.0.1:1/' };
        for (const [method, params] of [
          [V1.get, { id }],
          [V1.cancel, { id }],
          [V1.resubscribe, { id }],
          [V1.send, { message }],
          ['CreateTaskPushNotificationConfig', config],
          ['ListTaskPushNotificationConfigs', { taskId: id }],
        ]) {
          const { error } = await ask(url, method, params, V1.headers);
          assert.equal(error?.data[0].reason, 'NOT_SUPPORTED', `${method} at ${url}`);
          assert.match(error.message, /later version/);
        }
        for (const [method, params] of [
          ['tasks/get', { id }],
          ['tasks/cancel', { id }],
        ])
          assert.match((await ask(url, method, params, {})).error.message, /later version/);
      };
      for (const url of urls) for (const id of theirs) await expectUnreadable(url, id);
      const listed = async (url) => {
        const { result } = await ask(url, V1.list, {}, V1.headers);
        return result.tasks.map(({ id }) => id).sort();
      };
      for (const url of urls) assert.deepEqual(await listed(url), ours.toSorted());
      // Whichever is looked at first, the others' tasks are taken.
      await Promise.all(agents.slice(0, 2).map(({ agent }) => agent.drain({ ms: 0 })));
      for (const id of ours) {
        let answer;
        do answer = await get(urls[3], id);
        while (stateOf(answer) === 'working');
        assert.equal(stateOf(answer), 'failed');
      }
      await expectUnreadable(urls[3], one);
      assert.deepEqual(await listed(urls[3]), ours.toSorted());
      // Those of the later version are still there for its processes.
      const left = [];
      for (const { process } of await backend.leases(1000)) {
        const duties = await backend.list({ tenant: `duties:${process}` });
        left.push(...duties.tasks.map(({ data }) => data));
      }
      for (const id of theirs) assert.ok(left.includes(id));
      // Each process says it once of each.
      assert.ok(warnings().length <= 4 * theirs.length, `${warnings().length}`);
      assert.ok(warnings().length >= 1);
    });

  it('a waiting cancel and message are answered when a later version takes the task', async (t, start) => {
    t.mock.method(console, 'error', () => {});
    const began = deferred();
    const { backend, urls } = await start(
      ({ task }) => {
        began.resolve(task.id);
        return new Promise(() => {});
      },
      { grace: 60_000 },
    );
    const sent = send(urls[0], 'go');
    const id = await began.promise;
    const cancelled = cancel(urls[1], id);
    for (;;) {
      await new Promise(setImmediate);
      const log = await backend.read(id, 0);
      if (!log.some(({ data }) => data.includes('"k":"wish"'))) continue;
      const later = JSON.stringify({ v: 2 });
      if (await backend.append(id, later, log.at(-1).seq).catch(() => 0)) break;
    }
    for (const { error } of await Promise.all([sent, cancelled]))
      assert.equal(error?.data[0].reason, 'NOT_SUPPORTED');
  });
}
