// A table of tasks that cannot have more memory: a task that does not fit is refused, the others go on, and what is forgotten
// makes room.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitMemory } from '../../../tests/support/little-memory.js';

limitMemory();
const { VERSIONS, plainState } = await import('./support/a2a.js');
const { createTaskServer } = await import('../src/index.js');

const names = VERSIONS['1.0'];

test('tasks for which there is no memory are refused; those that run can be cancelled, and make room', async () => {
  const agent = createTaskServer(
    {
      card: { name: 'A' },
      execute: ({ signal }) =>
        new Promise((_resolve, reject) => (signal.onabort = () => reject(signal.reason))),
    },
    { limits: { maxTasks: 2 ** 16, remembered: 1 } },
  );
  const headers = { 'content-type': 'application/json', ...names.headers };
  const ask = async (method, params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const request = { method: 'POST', headers, body };
    return (await agent.fetch(new Request('http://127.0.0.1/', request))).json();
  };
  const configuration = { returnImmediately: true };
  const begin = () => ask(names.send, { message: names.message('work'), configuration });
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
    const { result } = await ask(names.cancel, { id });
    assert.equal(plainState(result.status.state), 'canceled');
  }
  const { result } = await begin();
  assert.equal(plainState(result.task.status.state), 'working');
  agent.close();
});
