// A table of tasks that cannot have more memory: a task that does not fit is refused, the others go
// on, and what is forgotten makes room.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitMemory } from '../../../tests/support/little-memory.js';

limitMemory();
const { VERSIONS, ask, plainState, serve } = await import('./support/a2a.js');

const names = VERSIONS['1.0'];

test('tasks for which there is no memory are refused; those that run can be cancelled, and make room', async () => {
  const { url, close } = await serve(
    ({ signal }) =>
      new Promise((_resolve, reject) => (signal.onabort = () => reject(signal.reason))),
    { limits: { maxTasks: 2 ** 16, remembered: 1 } },
  );
  const begin = () =>
    ask(
      url,
      names.send,
      { message: names.message('work'), configuration: { returnImmediately: true } },
      names.headers,
    );
  const ids = [];
  let refused;
  while (!refused) {
    const answers = await Promise.all(Array.from({ length: 20 }, begin));
    for (const { result, error } of answers) {
      if (error) refused = error;
      else ids.push(result.task.id);
    }
  }
  assert.deepEqual(refused, { code: -32603, message: 'Out of memory' });
  for (const id of ids.slice(0, 20)) {
    const { result } = await ask(url, names.cancel, { id }, names.headers);
    assert.equal(plainState(result.status.state), 'canceled');
  }
  const { result } = await begin();
  assert.equal(plainState(result.task.status.state), 'working');
  await close();
});
