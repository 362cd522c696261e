/** A message that comes again, to any process: it is taken once. */
import assert from 'node:assert/strict';
import { ask, stateOf } from '../../../../a2a/tests/support/a2a.js';
import { V1, get, testsOver } from './processes.js';

/** @type {import('../store.js').StoreTests} */
export function testRepeats(name, openBackend) {
  const it = testsOver(name, openBackend);

  it('a message to several processes at once is taken once, and each answers with its task', async (t, start) => {
    const executed = [];
    const execute = ({ message, emitStatus }) => {
      executed.push(message.messageId);
      if (message.parts[0].text === 'go') emitStatus('input-required');
    };
    const { urls } = await start(execute, { count: 4 });
    const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
    const sent = [];
    for (let i = 1; i <= 20; i++) {
      let taskId;
      for (const text of ['go', 'answer']) {
        const message = { ...V1.message(text), taskId };
        sent.push(message.messageId);
        const post = (url) => ask(url, V1.send, { message }, headers);
        const answers = await Promise.all(urls.map(post));
        const ids = answers.map(({ result, error }) => result?.task.id ?? error.message);
        assert.equal(new Set(ids).size, 1, ids.join());
        [taskId] = ids;
      }
    }
    assert.deepEqual(executed, sent);
  });

  it('another message with the id of an earlier one is refused by every process', async (t, start) => {
    const executed = [];
    const { urls } = await start(({ message, task, emitStatus }) => {
      executed.push(message.parts[0].text);
      if (task.history.length === 1) emitStatus('input-required', 'And?');
    });
    const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
    const post = (url, message) => ask(url, V1.send, { message }, headers);
    const reused = { code: -32602, field: 'message.messageId' };
    const refused = ({ error }) => ({
      code: error?.code,
      field: error?.data[1].fieldViolations[0].field,
    });
    const first = V1.message('one');
    const { id } = (await post(urls[0], first)).result.task;
    const second = (await post(urls[1], V1.message('two'))).result.task;
    const answer = { ...V1.message('yes'), taskId: id };
    for (const url of urls) {
      assert.deepEqual(refused(await post(url, { ...first, parts: [{ text: 'other' }] })), reused);
      // The id of a message that began a task is that of no answer, to this task or to another.
      for (const taskId of [id, second.id])
        assert.deepEqual(
          refused(await post(url, { ...answer, taskId, messageId: first.messageId })),
          reused,
        );
      assert.equal((await post(url, first)).result.task.id, id);
    }
    assert.equal(stateOf(await post(urls[1], answer)), 'completed');
    for (const url of urls) {
      assert.equal(stateOf(await post(url, answer)), 'completed');
      assert.deepEqual(refused(await post(url, { ...answer, parts: [{ text: 'no' }] })), reused);
    }
    assert.deepEqual(executed, ['one', 'two', 'yes']);
    assert.equal(stateOf(await get(urls[0], second.id)), 'input-required');
  });

  it('a message that was stored without a digest is recognised by its id', async (t, start) => {
    let runs = 0;
    const { backend, urls } = await start(({ task, emitStatus }) => {
      runs++;
      if (task.history.length === 1) emitStatus('input-required', 'And?');
    });
    const { append } = backend;
    backend.append = function (task, data, expected) {
      const { e: events, ...record } = JSON.parse(data);
      const before = events.map(({ mark: _mark, ...event }) => event);
      return append.call(this, task, JSON.stringify({ ...record, e: before }), expected);
    };
    const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
    const message = V1.message('go');
    const { id } = (await ask(urls[0], V1.send, { message }, headers)).result.task;
    const answer = { ...V1.message('yes'), taskId: id };
    await ask(urls[0], V1.send, { message: answer }, headers);
    for (const again of [message, answer])
      assert.equal((await ask(urls[1], V1.send, { message: again }, headers)).result.task.id, id);
    assert.equal(runs, 2);
  });
}
