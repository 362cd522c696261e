// Calls that outlive their requests: a client that cancels, or leaves, before it has been told how
// to ask for one knows of none, so nothing goes on behind its back. The handler's own log is the
// proof.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { KINDS, connectClient } from './support/clients.js';
import { lineMatching, startGateway } from './support/program.js';
import { envelope, startRaw } from './support/raw-client.js';
import { startSite } from './support/site.js';

const TOKEN = 'a-token-of-the-tests';
const TASKS = 'io.modelcontextprotocol/tasks';
let site;
before(async () => (site = await startSite()));
after(() => site.close());

/** A gateway of this test's own, that hands calls over soon. */
const start = ({ patience = '0.2', ...options } = {}) =>
  startRaw(['mcp', site.url(), '--temporary', '--patience', patience], options);
async function end(raw) {
  raw.child.stdin.end();
  assert.deepEqual(await raw.closed, [0, null]);
}
const tasksOf = async (raw) => (await raw.request('tasks/list')).result.tasks;

describe('an answer that the client does not take, because it has cancelled meanwhile', () => {
  for (const [
    what,
    { modern, patience, capabilities = {}, tool = 'work_hang', more, isGiven },
  ] of Object.entries({
    'a task of 2025-11-25': {
      modern: false,
      more: { task: { ttl: 60_000 } },
      isGiven: ({ task }) => task.status === 'working',
    },
    'a handle of 2025-11-25': {
      modern: false,
      isGiven: ({ _meta }) => _meta['abp-bridge/call'].handle,
    },
    'a task of 2026-07-28': {
      modern: true,
      capabilities: { extensions: { [TASKS]: {} } },
      isGiven: ({ resultType }) => resultType === 'task',
    },
    'a handle of 2026-07-28': {
      modern: true,
      isGiven: ({ _meta }) => _meta['abp-bridge/call'].handle,
    },
    'a question of 2026-07-28': {
      modern: true,
      capabilities: { elicitation: { form: {} } },
      patience: '600', // the question hands it over
      tool: 'ask_input',
      isGiven: ({ requestState }) => typeof requestState === 'string',
    },
  }))
    test(`${what}: the call is cancelled`, async () => {
      const raw = await start({ modern, capabilities, patience });
      const from = site.lines.length;
      const id = raw.call(tool, {}, more);
      const { result } = await raw.answerTo(id);
      assert.ok(isGiven(result), JSON.stringify(result));
      if (tool === 'work_hang') await site.logged(/hang started/, from);
      raw.cancel(id, 'changed my mind');
      assert.match(await site.logged(/aborted/, from), /: changed my mind$/);
      await end(raw);
    });

  for (const kind of KINDS)
    test(`the official client ${kind} aborts as the answer comes`, async (t) => {
      const { client, transport, call } = await connectClient(kind, {
        args: ['mcp', site.url(), '--temporary', '--patience', '0.2'],
      });
      t.after(() => client.close());
      const stop = new AbortController();
      const { onmessage } = transport;
      const from = site.lines.length;
      transport.onmessage = async (message, extra) => {
        if (message.result?._meta?.['abp-bridge/call']) {
          await site.logged(/hang started/, from);
          stop.abort('the user pressed stop');
        }
        onmessage(message, extra);
      };
      await assert.rejects(call('work_hang', {}, { signal: stop.signal }));
      assert.match(await site.logged(/hang aborted/, from), /: the user pressed stop$/);
    });
});

test('a task whose request is cancelled before it begins is none', async () => {
  const raw = await start({ patience: '600' });
  const from = site.lines.length;
  // Both are read before the app is open, which the name of the tool has to wait for.
  const id = raw.call('work_hang', {}, { task: { ttl: 60_000 } });
  raw.cancel(id, 'changed my mind');
  const { result } = await raw.answerTo(raw.call('text_echo', { text: 'hello' }));
  assert.equal(result.isError, undefined, JSON.stringify(result));
  assert.deepEqual(await tasksOf(raw), []);
  await end(raw);
  assert.ok(!site.lines.slice(from).some((line) => /hang started/.test(line)));
});

test('a call whose request is cancelled while its client, which is slow, is asked for a sign of life', async () => {
  const raw = await start();
  const from = site.lines.length;
  const id = raw.call('work_hang', {}, { _meta: { progressToken: 'slow' } });
  await raw.seen(({ method }) => method === 'ping');
  await site.logged(/hang started/, from);
  raw.cancel(id, 'changed my mind');
  assert.match(await site.logged(/hang aborted/, from), /: changed my mind$/);
  // What a client does take stays.
  const kept = raw.call('work_hang', {}, { task: { ttl: 60_000 } });
  const { task } = (await raw.answerTo(kept)).result;
  assert.deepEqual(
    (await tasksOf(raw)).map(({ taskId, status }) => [taskId, status]),
    [[task.taskId, 'working']],
  );
  await end(raw);
});

/** Begins a call over HTTP in 2026-07-28; its response is not read. */
const begin = (url, name, meta = {}) => {
  const outgoing = httpRequest(url, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name,
    },
  });
  outgoing.on('error', () => {});
  const params = { name, arguments: {}, _meta: { ...envelope(), ...meta } };
  outgoing.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
  return outgoing;
};

/**
 * Has more progress waiting, for a client that does not read, than the system keeps (some 4 MB)
 * before the call is handed over; `undefined` on a machine that is too busy for that.
 */
async function flood(t, patience) {
  const args = ['--temporary', '--patience', `${patience}`, '--http', '127.0.0.1:0'];
  const child = startGateway(['mcp', site.url(), ...args, '--token', TOKEN]);
  const closed = once(child, 'close');
  const stop = () => (child.kill('SIGTERM'), closed);
  t.after(stop);
  const url = /http:\S+/.exec(await lineMatching(child.stderr, /serves MCP at/))[0];
  /**
   * Settles when another call, begun now, has ended or been handed over: all that the page said
   * before has been heard.
   */
  const another = async (name) => {
    const [response] = await once(begin(url, name), 'response');
    for await (const chunk of response) void chunk;
  };
  const from = site.lines.length;
  const handedOver = performance.now() + patience * 1000;
  const [response] = await once(begin(url, 'work_flood', { progressToken: 'flood' }), 'response');
  await site.logged(/flood is high/, from);
  await another('page_where');
  if (performance.now() < handedOver) return { from, response, another };
  await stop();
}

test('over HTTP in 2026-07-28, a response that is closed before all of it was sent cancels the call that it hands over', async (t) => {
  let flooded;
  for (let patience = 10; !flooded; patience *= 3) flooded = await flood(t, patience);
  const { from, response, another } = flooded;
  // By the time that others, begun one after the other, have been handed over, so has this one:
  // they wait as long.
  for (let i = 0; i < 2; i++) await another('work_hang');
  response.destroy();
  assert.match(await site.logged(/flood aborted/, from), /: the client disconnected$/);
});
