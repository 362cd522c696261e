// Cancels in each way, and clients and browsers that go away. The log of the handlers is the proof.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { descendants, ended } from './support/processes.js';
import { lineMatching, runGateway, startGateway } from './support/program.js';
import { SOURCES } from '../../../tests/support/stopped-sources.js';
import { envelope, postTo, startRaw } from './support/raw-client.js';
import { startSite } from './support/site.js';

const TOKEN = 'a-token-of-the-tests';
const CLIENT = fileURLToPath(new URL('./support/client-process.js', import.meta.url));
let site;
before(async () => (site = await startSite()));
after(() => site.close());

/** A gateway of this test's own. */
const start = (options) => startRaw(['mcp', site.url(), '--temporary'], options);

/** Whether a message names a request, by its id or its progress token. */
const names = (message, id) =>
  (message.id === id && !message.method) || message.params?.progressToken === `token-${id}`;

/** Begins a call that reports on, and waits until its handler runs. */
async function begin(raw, tool, pattern) {
  const from = site.lines.length;
  const id = raw.call(tool, {}, { _meta: { progressToken: `token-${raw.nextId}` } });
  await site.logged(pattern, from);
  return { id, from };
}

/** Each way in which a client may leave, and the reason that the handler receives. */
const LEAVING = {
  'the end of stdin': [(child) => child.stdin.end(), /: the client disconnected$/],
  SIGINT: [(child) => child.kill('SIGINT'), /: the gateway was ended by SIGINT$/],
  SIGTERM: [(child) => child.kill('SIGTERM'), /: the gateway was ended by SIGTERM$/],
};

/** Ends a gateway in the midst of a call, and waits until its browser has ended. */
async function leave(raw, way) {
  const [act, reason] = LEAVING[way];
  const { from } = await begin(raw, 'work_hang', /hang started/);
  const browsers = descendants(raw.child.pid);
  assert.ok(browsers.length);
  act(raw.child);
  assert.match(await site.logged(/hang aborted/, from), reason);
  assert.deepEqual(await raw.closed, [0, null]);
  await ended(browsers);
}

for (const [version, way] of [
  ['2025-11-25', 'the end of stdin'],
  ['2026-07-28', 'SIGTERM'],
]) {
  describe(`MCP ${version}`, () => {
    let raw;
    before(async () => (raw = await start({ modern: version === '2026-07-28' })));

    test('after notifications/cancelled no message names the request', async () => {
      const { id, from } = await begin(raw, 'work_deaf', /deaf started/);
      await raw.seen((message) => names(message, id));
      raw.cancel(id, 'changed my mind');
      assert.match(await site.logged(/deaf aborted/, from), /: changed my mind$/);
      // What is read after an answer to this was written after the cancel was read.
      await raw.request('resources/list');
      const mark = raw.messages.length;
      // The handler ignores its signal and reports on for two seconds.
      await raw.answerTo(raw.call('work_slow', { ms: 2500 }));
      assert.deepEqual(
        raw.messages.slice(mark).filter((message) => names(message, id)),
        [],
      );
    });

    test(`${way} cancels running calls, ends the browser, and exits with 0`, () => leave(raw, way));
  });
}

test('SIGINT cancels running calls, ends the browser, and exits with 0', async () =>
  leave(await start(), 'SIGINT'));

test('a stopped stream has its outcome, and so has one of more chunks than the gateway keeps', async () => {
  const raw = await startRaw(['mcp', site.url(), '--temporary', '--patience', '0.2']);
  const handleOf = async (source) => {
    const { result } = await raw.answerTo(raw.call('work_source', { source }));
    return result._meta['abp-bridge/call'].handle;
  };
  for (const [source, { outcome }] of Object.entries(SOURCES)) {
    const from = site.lines.length;
    const handle = await handleOf(source);
    await site.logged(/source started/, from);
    const cancelled = await raw.ended('call_cancel', handle);
    // An error that says no more is that of a call that failed.
    const reported = cancelled._meta['abp-bridge/outcome'] ?? { outcome: 'failed' };
    assert.deepEqual([source, cancelled.isError, reported], [source, true, { outcome }]);
  }
  const endless = await handleOf('a generator that never ends');
  const { content, _meta } = await raw.ended('call_wait', endless);
  assert.match(
    content[0].text,
    /^OPERATION_FAILED: The app streamed more than the gateway keeps: 65536 chunks\nIt stopped/,
  );
  assert.deepEqual(_meta['abp-bridge/outcome'], { outcome: 'stopped' });
  raw.child.stdin.end();
  await raw.closed;
});

test('a client that is killed in the midst of a call leaves no gateway and no browser', async () => {
  const from = site.lines.length;
  const client = spawn(process.execPath, [CLIENT, 'mcp', site.url(), '--temporary']);
  client.stderr.resume();
  await site.logged(/hang started/, from);
  const left = descendants(client.pid);
  assert.ok(left.length > 1);
  client.kill('SIGKILL');
  assert.match(await site.logged(/hang aborted/, from), /: the client disconnected$/);
  await ended(left);
});

test('a gateway that is killed leaves no browser, and its temporary profile no longer than until the next', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const env = { TMPDIR: folder };
  const raw = await start({ env });
  await begin(raw, 'work_hang', /hang started/);
  const browsers = descendants(raw.child.pid);
  raw.child.kill('SIGKILL');
  await raw.closed;
  await ended(browsers);
  assert.equal(readdirSync(folder).length, 1);
  const { code, stderr } = await runGateway(['list', site.url(), '--temporary'], { env });
  assert.equal(code, 0, stderr);
  assert.deepEqual(readdirSync(folder), []);
});

describe('one gateway', () => {
  let raw;
  before(async () => (raw = await start()));

  test('a browser that is killed in a call settles it as DISCONNECTED, and another serves the next', async () => {
    const { id } = await begin(raw, 'work_hang', /hang started/);
    const [browser] = descendants(raw.child.pid);
    process.kill(browser, 'SIGKILL');
    const { result } = await raw.answerTo(id);
    assert.match(
      result.content[0].text,
      /^DISCONNECTED: .*\nWhether its work was done is not known; .* find out before you call it again\.$/,
    );
    assert.deepEqual(result._meta['abp-bridge/outcome'], { outcome: 'unknown' });
    const again = await raw.answerTo(raw.call('number_add', { a: 20, b: 22 }));
    assert.equal(again.result.content[0].text, '42');
  });

  test('a client that sends more at once than is read is left, as if it had gone', async () => {
    const { from } = await begin(raw, 'work_hang', /hang started/);
    const browsers = descendants(raw.child.pid);
    // The pipe is closed before all of it is written.
    raw.child.stdin.on('error', () => {});
    raw.call('text_echo', { text: 'x'.repeat(11 << 20) });
    assert.match(await site.logged(/hang aborted/, from), /: the client disconnected$/);
    assert.deepEqual(await raw.closed, [0, null]);
    assert.match(raw.stderr, /exceeded maximum size of \d+ bytes/);
    await ended(browsers);
  });
});

describe('over HTTP', () => {
  let child, url;
  before(async () => {
    child = startGateway([
      'mcp',
      site.url(),
      '--temporary',
      '--http',
      '127.0.0.1:0',
      '--token',
      TOKEN,
    ]);
    url = /http:\S+/.exec(await lineMatching(child.stderr, /serves MCP at/))[0];
  });
  after(async () => {
    child.kill('SIGTERM');
    await once(child, 'close');
  });
  const post = (...message) => postTo(url, TOKEN, ...message);

  test('a closed response cancels the request in the newer version', async () => {
    const from = site.lines.length;
    const stop = new AbortController();
    const answer = post(
      {
        id: 1,
        method: 'tools/call',
        params: { name: 'work_hang', arguments: {}, _meta: envelope() },
      },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'work_hang' },
      stop.signal,
    );
    await site.logged(/hang started/, from);
    stop.abort();
    // On a busy machine it may have begun, with a sign of life.
    await assert.rejects(answer.then((response) => response.text()));
    assert.match(await site.logged(/hang aborted/, from), /: the client disconnected$/);
  });

  test('a closed response cancels nothing in the older version; a session that ends does', async () => {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    };
    const opened = await post({ id: 1, method: 'initialize', params });
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') };
    await opened.text();
    const from = site.lines.length;
    const stop = new AbortController();
    const call = (id, name, args = {}) => ({
      id,
      method: 'tools/call',
      params: { name, arguments: args },
    });
    const answer = post(call(2, 'work_slow', { ms: 500 }), session, stop.signal);
    await site.logged(/slow started/, from);
    stop.abort();
    await answer.then((response) => response.text()).catch(() => {});
    await site.logged(/slow done/, from);
    assert.ok(!site.lines.slice(from).some((line) => /slow aborted/.test(line)));
    const hanging = post(call(3, 'work_hang'), session);
    await site.logged(/hang started/, from);
    await fetch(url, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${TOKEN}`, ...session },
    });
    await site.logged(/hang aborted/, from);
    await (await hanging).text();
  });

  test('in the older version a response that is lost cannot be resumed; a task keeps its result', async () => {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    };
    const opened = await post({ id: 1, method: 'initialize', params });
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') };
    await opened.text();
    const request = async (message) => {
      const said = await (await post(message, session)).text();
      return JSON.parse(/^data: (.+)$/m.exec(said)[1]).result;
    };
    const call = (id, task) => ({
      id,
      method: 'tools/call',
      params: { name: 'work_count', arguments: { wait: true }, ...(task && { task }) },
    });
    const finish = (id) => ({ id, method: 'tools/call', params: { name: 'work_finish' } });
    // The answer names no event that a client could resume from, so nobody takes it for less than
    // lost.
    const response = await post(finish(2), session);
    assert.doesNotMatch(await response.text(), /^id:/m);
    const { task } = await request(call(3, { ttl: 60_000 }));
    const stop = new AbortController();
    const waiting = await post(
      { id: 4, method: 'tasks/result', params: { taskId: task.taskId } },
      session,
      stop.signal,
    );
    stop.abort();
    await assert.rejects(waiting.text());
    await request(finish(5));
    const result = await request({
      id: 6,
      method: 'tasks/result',
      params: { taskId: task.taskId },
    });
    assert.deepEqual(result.structuredContent, { counted: 100 });
  });

  test('who has no token, another Host or a foreign Origin is refused', async () => {
    const ping = { id: 1, method: 'ping' };
    assert.equal((await post(ping, { authorization: 'Bearer wrong' })).status, 401);
    assert.equal((await post(ping, { origin: 'https://evil.example' })).status, 403);
    const { request } = await import('node:http');
    const rebound = request(url, {
      method: 'POST',
      headers: { host: 'evil.example', authorization: `Bearer ${TOKEN}` },
    });
    rebound.end('{}');
    const [response] = await once(rebound, 'response');
    assert.equal(response.statusCode, 403);
    response.resume();
  });

  test('a body of 100 MB is refused before it is read', async () => {
    const { request } = await import('node:http');
    const sizes = { 'content-length': { 'content-length': 100_000_000 }, chunked: {} };
    for (const [way, headers] of Object.entries(sizes)) {
      const large = request(url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${TOKEN}`,
          'content-type': 'application/json',
          ...headers,
        },
      });
      large.on('error', () => {});
      const answered = once(large, 'response');
      const chunk = Buffer.alloc(1 << 16, 32);
      let sent = 0;
      const more = () => {
        while (sent < 100_000_000 && !large.destroyed) {
          sent += chunk.length;
          if (!large.write(chunk)) return large.once('drain', more);
        }
      };
      more();
      const [response] = await answered;
      assert.equal(response.statusCode, 413, way);
      large.destroy();
    }
    const after = await post({
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'raw', version: '1' },
      },
    });
    assert.equal(after.status, 200);
    await after.text();
  });
});
