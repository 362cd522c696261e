// Cloudflare Workers, and others like them, forbid randomness, timers and requests while a module
// is evaluated: only what answers somebody may use them. So an agent that is a module's constant
// must be made without.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

/** Runs in a thread of its own: what it forbids would be forbidden to the test's runner, too. */
const script = `
  import { parentPort, workerData } from 'node:worker_threads';
  const turns = globalThis.setImmediate;
  const allowed = [];
  for (const [object, name] of [
    [globalThis, 'setTimeout'], [globalThis, 'setInterval'], [globalThis, 'setImmediate'], [globalThis, 'fetch'],
    [Crypto.prototype, 'getRandomValues'], [Crypto.prototype, 'randomUUID'],
  ]) {
    const whole = object[name];
    allowed.push(() => (object[name] = whole));
    object[name] = () => { throw new Error('Disallowed operation called within global scope: ' + name); };
  }
  const { createTaskServer, createTaskClient } = await import(workerData.a2a);
  const { ready } = await import(workerData.core);
  const agent = createTaskServer({
    card: { name: 'Agent' },
    execute: (ctx) => ctx.emitArtifact({ parts: [{ text: 'done' }] }),
  });
  createTaskClient('http://agent.example/');
  const card = await agent.fetch(new Request('http://agent.example/.well-known/agent-card.json'));
  await ready();
  for (let i = 0; i < 10; i++) await new Promise((resolve) => turns(resolve));
  for (const allow of allowed) allow();
  const answer = await agent.fetch(new Request('http://agent.example/', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage',
      params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] } } }),
  }));
  parentPort.postMessage({ name: (await card.json()).name, answer: await answer.json() });
`;

test('an agent and a client that are made while their module is evaluated need no randomness, timers or requests', async () => {
  const url = (path) => new URL(path, import.meta.url).href;
  const workerData = {
    a2a: url('../src/index.js'),
    core: url('../src/tasks-core.js'),
  };
  const source = new URL(`data:text/javascript,${encodeURIComponent(script)}`);
  const worker = new Worker(source, { workerData });
  const heard = await new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the thread ended without a word')));
  });
  await worker.terminate();
  assert.equal(heard.name, 'Agent');
  assert.equal(
    heard.answer.result?.task.status.state,
    'TASK_STATE_COMPLETED',
    JSON.stringify(heard),
  );
});
