// Answers that a client has given up on when they come: its cancel, or the end of its connection,
// crosses them on the way. What the handlers did is in a list of their own.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { KINDS, connectClient } from './support/clients.js';
import { lineMatching, startGateway } from './support/program.js';
import { startProxy } from './support/proxy.js';
import { envelope, postTo, startRaw } from './support/raw-client.js';
import { startSocketApp } from './support/socket-app.js';

const TOKEN = 'a-token-of-the-tests';
const EARLIER = 'abp-bridge/earlier';
const REPEATS = 'abp-bridge/repeats';
const KEY = 'abp-bridge/idempotencyKey';
const CLIENT = 'abp-bridge/client';
/** The time limit of a client, in ms: it passes when a test says so. */
const LIMIT = 7_654_321;

/** What the handlers did. @type {string[]} */
const paid = [];
let app, http, url, proxy;
/** The handler that waits has begun. */
let began = () => {};
beforeEach(() => void (paid.length = 0));
before(async () => {
  app = await startSocketApp({
    'work.pays': async ({ order }) => {
      paid.push(`${order}`);
      return { paid: order };
    },
    'work.waits': async (_params, { signal }) => {
      began();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      paid.push(`stopped: ${signal.reason.message}`);
      throw signal.reason;
    },
  });
  proxy = await startProxy();
  const args = ['--http', '127.0.0.1:0', '--token', TOKEN, '--allow-host', proxy.host];
  http = startGateway(['mcp', app.url, ...args]);
  url = /http:\S+/.exec(await lineMatching(http.stderr, /serves MCP at/))[0];
  proxy.leadTo(url);
});
after(async () => {
  http.kill('SIGTERM');
  await once(http, 'close');
  proxy.close();
  app.close();
});

const connect = async (t, kind, way) => {
  const where = way === 'stdio' ? { args: ['mcp', app.url] } : { url: way, token: TOKEN };
  const mcp = { ...(await connectClient(kind, where)), kind };
  t.after(() => mcp.close());
  return mcp;
};
const callTool = ({ client, kind }, name, args, _meta, options) =>
  kind === '1.x'
    ? client.callTool({ name, arguments: args, _meta }, undefined, options)
    : client.callTool({ name, arguments: args, _meta }, options);
const calls = ({ _meta }) => _meta?.[EARLIER]?.calls ?? [];
const outcomes = (result) => calls(result).map(({ tool, outcome }) => [tool, outcome]);
const FINISHED = [['work_pays', 'finished']];

/**
 * Begins a call with that limit.
 * @returns {Promise<{ call: Promise<any>, expire: () => void }>} `expire` lets the limit pass
 */
async function withLimit(begin) {
  const { setTimeout } = globalThis;
  const expire = new Promise((resolve) => {
    globalThis.setTimeout = (callback, ms, ...given) => {
      if (ms !== LIMIT) return setTimeout(callback, ms, ...given);
      globalThis.setTimeout = setTimeout;
      resolve(callback);
      return setTimeout(() => {}, 0);
    };
  });
  const call = begin({ timeout: LIMIT });
  call.catch(() => {});
  return { call, expire: await expire };
}

for (const kind of KINDS)
  for (const way of ['stdio', 'HTTP'])
    if (kind !== '2.x modern' || way === 'stdio')
      describe(`client ${kind} over ${way}, whose time limit passes while the result is on its way`, () => {
        /** Pays, and gives up when the result has come so far. */
        async function pay(mcp, order, meta) {
          const { transport } = mcp;
          const { onmessage } = transport;
          let expire;
          transport.onmessage = (message, extra) => {
            if (message.result?.structuredContent?.paid === order) expire();
            onmessage(message, extra);
          };
          const limited = await withLimit((limit) =>
            callTool(mcp, 'work_pays', { order }, meta, limit),
          );
          ({ expire } = limited);
          await assert.rejects(limited.call, /timed out/i);
          transport.onmessage = onmessage;
        }

        test('is told with its next result, once, and its repeat says that it was done', async (t) => {
          const mcp = await connect(t, kind, way === 'stdio' ? way : url);
          await pay(mcp, 1);
          const next = await callTool(mcp, 'work_pays', { order: 2 });
          assert.deepEqual(outcomes(next), FINISHED);
          assert.match(
            next.content[1].text,
            /- work_pays \{"order":1\}, asked to stop at .*timed out.*It had finished\. Its result is kept/i,
          );
          const [{ handle }] = calls(next);
          const kept = await callTool(mcp, 'call_wait', { handle });
          assert.deepEqual(kept.structuredContent, { paid: 1 });
          await pay(mcp, 3);
          const repeat = await callTool(mcp, 'work_pays', { order: 3 });
          assert.deepEqual(
            [outcomes(repeat), repeat._meta[REPEATS].outcome],
            [FINISHED, 'finished'],
          );
          const last = await callTool(mcp, 'work_pays', { order: 4 });
          assert.deepEqual([calls(last), last._meta?.[REPEATS]], [[], undefined]);
        });

        test('does not do the work twice if the call has a key', async (t) => {
          const mcp = await connect(t, kind, way === 'stdio' ? way : url);
          const key = { [KEY]: 'pay order 1' };
          await pay(mcp, 1, key);
          const repeat = await callTool(mcp, 'work_pays', { order: 1 }, key);
          assert.deepEqual([repeat.structuredContent, outcomes(repeat)], [{ paid: 1 }, FINISHED]);
          assert.deepEqual(paid, ['1']);
        });

        test('is told again what the result would have told', async (t) => {
          const mcp = await connect(t, kind, way === 'stdio' ? way : url);
          await pay(mcp, 1);
          await pay(mcp, 2);
          const next = await callTool(mcp, 'work_pays', { order: 3 });
          assert.deepEqual(
            calls(next).map(({ requestId }) => requestId).length,
            2,
            JSON.stringify(calls(next)),
          );
        });
      });

test('official client 2.x modern over HTTP, on a slow line: a response that it gave up on before it was read is told of', async (t) => {
  const meta = { [CLIENT]: 'on a slow line' };
  const mcp = await connect(t, '2.x modern', `${proxy.url}mcp`);
  proxy.cut();
  proxy.hold();
  const { call, expire } = await withLimit((limit) =>
    callTool(mcp, 'work_pays', { order: 1 }, meta, limit),
  );
  // By the time that another one is answered, this one is mostly written; before, it would be a
  // cancel.
  const other = await connect(t, '2.x modern', url);
  while (!paid.includes('1')) await callTool(other, 'work_pays', { order: 0 });
  await callTool(other, 'work_pays', { order: 0 });
  expire();
  await assert.rejects(call, /timed out/i);
  proxy.pass();
  let earlier = [];
  while (!earlier.length) earlier = outcomes(await callTool(mcp, 'work_pays', { order: 2 }, meta));
  assert.deepEqual(earlier, FINISHED);
  const repeat = await callTool(mcp, 'work_pays', { order: 1 }, meta);
  assert.equal(repeat._meta[REPEATS].outcome, 'finished');
});

for (const modern of [true, false])
  test(`a response that was written whole to a connection that breaks is told of, in ${modern ? '2026-07-28' : '2025-11-25'}`, async () => {
    const _meta = { [CLIENT]: `breaks ${modern}`, ...(modern && envelope()) };
    const headers = modern
      ? {
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'work_pays',
        }
      : {};
    if (!modern) {
      const params = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'raw', version: '1' },
      };
      const opened = await postTo(url, TOKEN, { id: 1, method: 'initialize', params });
      headers['mcp-session-id'] = opened.headers.get('mcp-session-id');
      await opened.text();
    }
    let id = 1;
    const message = (order) => ({
      jsonrpc: '2.0',
      id: ++id,
      method: 'tools/call',
      params: { name: 'work_pays', arguments: { order }, _meta },
    });
    const outgoing = httpRequest(url, {
      method: 'POST',
      agent: new Agent({ keepAlive: true }),
      headers: {
        ...headers,
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
    });
    outgoing.end(JSON.stringify(message(1)));
    const [response] = await once(outgoing, 'response');
    const { socket } = response;
    response.resume();
    await once(response, 'end');
    socket.resetAndDestroy();
    // When the gateway hears of it, is the system's to say.
    let earlier = [];
    while (!earlier.length) {
      const said = await (await postTo(url, TOKEN, message(2), headers)).text();
      earlier = outcomes(JSON.parse(/^data: (.+)$/m.exec(said)?.[1] ?? said).result);
    }
    assert.deepEqual(earlier, FINISHED);
  });

for (const modern of [false, true])
  describe(`over stdio in ${modern ? '2026-07-28' : '2025-11-25'}`, () => {
    const begin = async (t, ...args) => {
      const raw = await startRaw(['mcp', app.url, ...args], {
        modern,
        capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } },
      });
      t.after(() => raw.child.stdin.end());
      return raw;
    };
    const pay = async (raw, order) => {
      const id = raw.call('work_pays', { order });
      return { id, ...(await raw.answerTo(id)) };
    };

    test('a cancel that comes after other calls were made is told of all the same', async (t) => {
      const raw = await begin(t);
      const { id } = await pay(raw, 1);
      // Sent before the first answer was read, for all that is known.
      for (let order = 2; order < 5; order++)
        assert.deepEqual(calls((await pay(raw, order)).result), []);
      raw.cancel(id, 'too late');
      const { result } = await pay(raw, 5);
      const [{ requestId, reason, outcome, handle }] = calls(result);
      assert.deepEqual(
        [requestId, reason, outcome, handle],
        [id, 'too late', 'finished', undefined],
      );
      assert.match(result.content[1].text, /It ran to its end all the same: all its effects stand/);
      assert.equal((await pay(raw, 1)).result._meta[REPEATS].outcome, 'finished');
    });

    test('of more answers than the gateway keeps, the oldest is forgotten', async (t) => {
      const raw = await begin(t);
      const { id } = await pay(raw, 1);
      const ids = Array.from({ length: 256 }, (_each, order) => raw.call('work_pays', { order }));
      for (const each of ids) await raw.answerTo(each);
      raw.cancel(id, 'much too late');
      raw.cancel(ids.at(-1), 'too late');
      const [only, ...more] = calls((await pay(raw, 2)).result);
      assert.deepEqual([only.requestId, more], [ids.at(-1), []]);
    });

    test('a cancel of what nobody has answered, or of no id, is ignored', async (t) => {
      const raw = await begin(t);
      await pay(raw, 1);
      for (const requestId of [99, undefined, null, {}, '1']) raw.cancel(requestId, 'nothing');
      assert.deepEqual(calls((await pay(raw, 2)).result), []);
    });

    test('a cancel of the request that brought the result of a task is told of', async (t) => {
      const raw = await begin(t, '--patience', '0.1');
      const begun = new Promise((resolve) => (began = resolve));
      const first = raw.call('work_waits', {}, modern ? {} : { task: { ttl: 60_000 } });
      const { result } = await raw.answerTo(first);
      const taskId = (modern ? result : result.task).taskId;
      await begun;
      await raw.request('tasks/cancel', { taskId });
      let id, got;
      do {
        id = raw.begin(modern ? 'tasks/get' : 'tasks/result', { taskId });
        got = (await raw.answerTo(id)).result;
      } while (modern && got.status === 'working');
      // Who asked for the task had the answer that named it: a cancel of that has no meaning any
      // more.
      raw.cancel(first, 'stale');
      assert.deepEqual(calls((await pay(raw, 1)).result), []);
      raw.cancel(id, 'too late');
      assert.deepEqual(outcomes((await pay(raw, 2)).result), [['work_waits', 'stopped']]);
      assert.equal(paid.filter((each) => /^stopped/.test(each)).length, 1);
    });
  });

test('a session that ends, all of whose answers came, leaves nothing to tell in the next', async (t) => {
  const meta = { [CLIENT]: 'comes again' };
  const first = await connect(t, '1.x', url);
  await callTool(first, 'work_pays', { order: 1 }, meta);
  await first.transport.terminateSession();
  const second = await connect(t, '1.x', url);
  const next = await callTool(second, 'work_pays', { order: 1 }, meta);
  assert.deepEqual([calls(next), next._meta?.[REPEATS]], [[], undefined]);
});

test('no client cancels what another was answered, nor what was answered where there are no sessions', async (t) => {
  const [one, two] = [await connect(t, '1.x', url), await connect(t, '1.x', url)];
  const modern = await connect(t, '2.x modern', url);
  const meta = { [CLIENT]: 'of no session' };
  await callTool(one, 'work_pays', { order: 1 });
  await callTool(modern, 'work_pays', { order: 1 }, meta);
  for (let requestId = 0; requestId < 9; requestId++) {
    const message = { method: 'notifications/cancelled', params: { requestId } };
    await two.client.notification(message);
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': message.method };
    const said = { ...message, params: { requestId, _meta: envelope() } };
    await (await postTo(url, TOKEN, said, headers)).text();
  }
  for (const [each, more] of [
    [one, undefined],
    [modern, meta],
  ])
    assert.deepEqual(calls(await callTool(each, 'work_pays', { order: 2 }, more)), []);
});
