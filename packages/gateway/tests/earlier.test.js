// What clients are told of their earlier calls, beside what the handlers did: they write that into
// a list of their own.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, beforeEach, describe, test } from 'node:test';
import { AbpError } from 'abp-bridge';
import { KINDS, connectClient } from './support/clients.js';
import { lineMatching, startGateway } from './support/program.js';
import { envelope, postTo, startRaw } from './support/raw-client.js';
import { startSocketApp } from './support/socket-app.js';

const TOKEN = 'a-token-of-the-tests';
const EARLIER = 'abp-bridge/earlier';
const REPEATS = 'abp-bridge/repeats';
const KEY = 'abp-bridge/idempotencyKey';
const CLIENT = 'abp-bridge/client';
/** Results after which what is to be told is known on any machine. */
const MANY = 2000;

/** What the handlers did. @type {string[]} */
const done = [];
/** Wait for a word in that list. */
const watchers = new Set();
const write = (word) => {
  done.push(word);
  for (const look of watchers) look();
};
const written = (word, times = 1) =>
  new Promise((resolve) => {
    const look = () => {
      if (done.filter((each) => each === word).length < times) return;
      watchers.delete(look);
      resolve();
    };
    watchers.add(look);
    look();
  });
/** Lets go of the handlers that wait. */
let open = () => {};
let gate;
const close = () => {
  gate = new Promise((resolve) => (open = resolve));
};
beforeEach(() => {
  done.length = 0;
  close();
});

const aborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
const object = (properties) => ({ type: 'object', properties });
const capabilities = {
  'work.stops': async (_params, { signal, report }) => {
    write('stops began');
    await aborted(signal);
    report({ applied: 12, remaining: 28 });
    write('stops stopped');
    throw signal.reason;
  },
  'work.finishes': async ({ name = '' }, { signal }) => {
    write('finishes began');
    await Promise.race([aborted(signal), gate]);
    write(`finishes done${name}`);
    return 'done';
  },
  'work.fails': async (_params, { signal }) => {
    write('fails began');
    await aborted(signal);
    throw new AbpError('DISK_FULL', 'no room');
  },
  'work.deaf': async () => {
    write('deaf began');
    await gate;
    write('deaf done');
    return 'late';
  },
  'work.pays': async ({ order }) => {
    write('pays began');
    await gate;
    write(`paid ${order}`);
    return { paid: order };
  },
  'work.file': async () => {
    write('file began');
    await gate;
    write('file done');
    return { content: new Uint8Array(2 << 20), mimeType: 'application/pdf' };
  },
  'work.streams': async function* () {
    write('streams began');
    yield 'one';
    return 'two';
  },
  'text.echo': {
    inputSchema: object({ text: { type: 'string' } }),
    outputSchema: { ...object({ text: { type: 'string' } }), required: ['text'] },
    handler: ({ text }) => ({ text }),
  },
  'text.read': {
    annotations: { readOnlyHint: true },
    handler: async () => {
      write('read began');
      await gate;
      return 'read';
    },
  },
};

let app, http, url;
before(async () => {
  app = await startSocketApp(capabilities, { limits: { grace: 200 } });
  http = startGateway(['mcp', app.url, '--http', '127.0.0.1:0', '--token', TOKEN]);
  url = /http:\S+/.exec(await lineMatching(http.stderr, /serves MCP at/))[0];
});
after(async () => {
  http.kill('SIGTERM');
  await once(http, 'close');
  app.close();
});

const connect = async (t, kind, way, options = {}) => {
  const where = way === 'HTTP' ? { url, token: TOKEN } : { args: ['mcp', app.url] };
  const mcp = await connectClient(kind, { ...where, ...options });
  t.after(() => mcp.close());
  return mcp;
};
/** Calls, and stops once the handler has begun. */
async function stop(mcp, tool, args = {}, began = `${tool.replace('work_', '')} began`, meta) {
  const stopped = new AbortController();
  const times = done.filter((each) => each === began).length + 1;
  const call = callTool(mcp, tool, args, meta, { signal: stopped.signal });
  await written(began, times);
  stopped.abort('the user pressed stop');
  await assert.rejects(call);
}
const callTool = ({ client, kind }, name, args, _meta, options) =>
  kind === '1.x'
    ? client.callTool({ name, arguments: args, _meta }, undefined, options)
    : client.callTool({ name, arguments: args, _meta }, options);
/** What the next result tells, and the sentences that say it. */
async function nextResult(mcp, meta) {
  const result = await callTool(mcp, 'text_echo', { text: 'hello' }, meta);
  assert.deepEqual(result.structuredContent, { text: 'hello' });
  assert.equal(result.content[0].text, '{"text":"hello"}');
  const { calls = [], more = 0 } = result._meta?.[EARLIER] ?? {};
  return { calls, more, text: result.content[1]?.text ?? '', content: result.content };
}
/** The same, as soon as something is told. */
async function nextNews(mcp, meta) {
  for (let i = 0; i < MANY; i++) {
    const said = await nextResult(mcp, meta);
    if (said.calls.length) return said;
  }
  throw new Error('nothing is told');
}
const outcomes = ({ calls }) => calls.map(({ tool, outcome }) => [tool, outcome]);

for (const kind of KINDS)
  for (const way of ['stdio', 'HTTP'])
    describe(`client ${kind} over ${way}`, () => {
      // In the newer version over HTTP a client says itself who it is.
      const meta = kind === '2.x modern' && way === 'HTTP' ? { [CLIENT]: `${kind} ${way}` } : {};
      const reason =
        way === 'HTTP' && kind === '2.x modern' ? /client disconnected/ : /pressed stop/;

      test('what became of a call that was stopped is told with the next result, once', async (t) => {
        const mcp = { ...(await connect(t, kind, way)), kind };
        for (const [tool, outcome, line, sentence] of [
          [
            'work_stops',
            'stopped',
            'stops stopped',
            /It stopped after 12 of 40\. What it had done/,
          ],
          ['work_finishes', 'finished', 'finishes done', /It ran to its end all the same: all its/],
          ['work_fails', 'failed', 'fails began', /It failed\.$/],
        ]) {
          await stop(mcp, tool, {}, undefined, meta);
          await written(line);
          const said = await nextNews(mcp, meta);
          assert.deepEqual([...outcomes(said), said.more], [[tool, outcome], 0]);
          assert.match(
            said.text,
            /^Of earlier calls, not of this one:\n- work_\w+ \{\}, asked to stop at/,
          );
          assert.match(said.text, sentence);
          assert.match(said.calls[0].reason, reason);
          assert.ok(Date.now() - Date.parse(said.calls[0].at) < 3_600_000);
          assert.deepEqual((await nextResult(mcp, meta)).content.length, 1);
        }
      });

      test('what is not known yet is told when it is known', async (t) => {
        const mcp = { ...(await connect(t, kind, way)), kind };
        await stop(mcp, 'work_deaf', {}, undefined, meta);
        // The app's grace period passes, and the handler has not returned.
        const first = await nextNews(mcp, meta);
        assert.deepEqual(
          [outcomes(first), done.includes('deaf done')],
          [[['work_deaf', 'running']], false],
        );
        assert.match(first.text, /It was told to stop and has not yet/);
        assert.deepEqual((await nextResult(mcp, meta)).calls, []);
        open();
        await written('deaf done');
        assert.deepEqual(outcomes(await nextNews(mcp, meta)), [['work_deaf', 'finished']]);
        assert.deepEqual((await nextResult(mcp, meta)).calls, []);
      });
    });

test('of two clients none is told what the other did, nor who says nothing of itself where there are no sessions', async (t) => {
  const one = { ...(await connect(t, '1.x', 'HTTP')), kind: '1.x' };
  const two = { ...(await connect(t, '1.x', 'HTTP')), kind: '1.x' };
  const none = { ...(await connect(t, '2.x modern', 'HTTP')), kind: '2.x modern' };
  await stop(none, 'work_finishes', { name: ' of none' });
  await written('finishes done of none');
  await stop(one, 'work_finishes', { name: ' of one' });
  await written('finishes done of one');
  // What became of these is known by the time that this one begins.
  await stop(two, 'work_finishes', { name: ' of two' });
  for (const [each, name] of [
    [two, 'of two'],
    [one, 'of one'],
  ]) {
    const { calls, text } = await nextNews(each);
    assert.deepEqual([calls.length, / (of \w+)"/.exec(text)[1]], [1, name]);
  }
  for (const each of [one, two, none]) assert.deepEqual((await nextResult(each)).calls, []);
  assert.deepEqual((await nextResult(none, { [CLIENT]: 'one' })).calls, []);
});

test('a client that says who it is is told in its next session', async (t) => {
  const meta = { [CLIENT]: 'the same' };
  const first = { ...(await connect(t, '1.x', 'HTTP')), kind: '1.x' };
  const call = callTool(first, 'work_finishes', {}, meta);
  call.catch(() => {});
  await written('finishes began');
  // Its session ends, and with that its calls.
  await first.transport.terminateSession();
  await written('finishes done');
  const second = { ...(await connect(t, '1.x', 'HTTP')), kind: '1.x' };
  const said = await nextNews(second, meta);
  assert.deepEqual(outcomes(said), [['work_finishes', 'finished']]);
  assert.equal(said.calls[0].reason, 'the client disconnected');
});

test('of more calls than a result names it says how many', async () => {
  const raw = await startRaw(['mcp', app.url]);
  const ids = Array.from({ length: 70 }, (_each, at) =>
    raw.call('work_finishes', { name: `-${at}` }),
  );
  await written('finishes began', 8); // the app's own limit lets the others wait
  for (const id of ids) raw.cancel(id, 'enough');
  let sentences = '';
  const calls = [];
  let more = 0;
  while (calls.length + more < 70) {
    const { result } = await raw.answerTo(raw.call('text_echo', { text: 'x' }));
    const said = result._meta?.[EARLIER];
    if (!said) continue;
    assert.ok(said.calls.length <= 16);
    calls.push(...said.calls);
    more += said.more;
    sentences += result.content[1].text;
    assert.ok(result.content[1].text.split('\n').length <= 18);
  }
  assert.equal(calls.length + more, 70);
  assert.equal(new Set(calls.map(({ requestId }) => requestId)).size, calls.length);
  assert.match(sentences, /- and \d+ more calls, whose answers you did not get\./);
  // What is told of each is what it did.
  const finished = calls.filter(({ outcome }) => outcome === 'finished').length;
  assert.ok(finished <= done.filter((word) => /^finishes done/.test(word)).length);
  raw.child.stdin.end();
  await raw.closed;
});

test('a call that was answered with a handle, and is stopped by the id of its request, is told of', async () => {
  const raw = await startRaw(['mcp', app.url, '--patience', '0.1']);
  const id = raw.call('work_stops');
  const { result } = await raw.answerTo(id);
  const { handle } = result._meta['abp-bridge/call'];
  await written('stops began');
  raw.cancel(id, 'changed my mind');
  await written('stops stopped');
  let said;
  while (!said) {
    const next = await raw.answerTo(raw.call('text_echo', { text: 'x' }));
    said = next.result._meta?.[EARLIER];
  }
  const { at, ...rest } = said.calls[0];
  assert.ok(Date.parse(at));
  assert.deepEqual(rest, {
    tool: 'work_stops',
    requestId: id,
    reason: 'changed my mind',
    outcome: 'stopped',
    report: { applied: 12, remaining: 28 },
  });
  // Who asks by the handle is told all the same.
  const asked = await raw.use('call_wait', handle);
  assert.equal(asked._meta['abp-bridge/outcome'].outcome, 'stopped');
  raw.child.stdin.end();
  await raw.closed;
});

test('over HTTP in the older version a response that is lost is told of, and its result can be had', async () => {
  const post = (...message) => postTo(url, TOKEN, ...message);
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  };
  const opened = await post({ id: 1, method: 'initialize', params });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') };
  await opened.text();
  const call = async (id, name, args = {}) => {
    const message = { id, method: 'tools/call', params: { name, arguments: args } };
    const said = await (await post(message, session)).text();
    return JSON.parse(/^data: (.+)$/m.exec(said)[1]).result;
  };
  const lost = new AbortController();
  const message = { id: 2, method: 'tools/call', params: { name: 'work_file', arguments: {} } };
  const response = await post(message, session, lost.signal);
  await written('file began');
  lost.abort();
  await assert.rejects(response.text());
  assert.equal((await call(3, 'text_echo', { text: 'x' }))._meta?.[EARLIER], undefined);
  open();
  await written('file done');
  let result;
  for (let id = 4; !result?._meta?.[EARLIER]; id++)
    result = await call(id, 'text_echo', { text: 'x' });
  const [{ handle, ...said }] = result._meta[EARLIER].calls;
  assert.deepEqual([said.tool, said.outcome, said.requestId], ['work_file', 'finished', 2]);
  assert.match(
    result.content[1].text,
    /whose answer was lost at .*\. It had finished\. Its file is there: result-\w+\.pdf\./,
  );
  assert.equal(result.content[2].type, 'resource_link');
  const kept = await call(90, 'call_wait', { handle });
  assert.equal(
    kept.content.find(({ type }) => type === 'resource_link').uri,
    result.content[2].uri,
  );
});

test('a call that was lost with its connection, and went on, is told of when its app has said so', async (t) => {
  const mcp = { ...(await connect(t, '1.x', 'stdio')), kind: '1.x' };
  const call = callTool(mcp, 'work_pays', { order: 1 });
  await written('pays began');
  app.cut();
  const lost = await call;
  assert.match(lost.content[0].text, /^DISCONNECTED: /);
  assert.deepEqual(lost._meta['abp-bridge/outcome'], { outcome: 'unknown' });
  assert.deepEqual((await nextResult(mcp)).calls, []); // that, it was told
  open();
  await written('paid 1');
  const said = await nextNews(mcp);
  assert.deepEqual(outcomes(said), [['work_pays', 'finished']]);
  assert.match(said.text, /It ran to its end all the same/);
});

test('a call that is made again while the first runs, or after it may have done its work, says so', async (t) => {
  const mcp = { ...(await connect(t, '1.x', 'stdio')), kind: '1.x' };
  const first = callTool(mcp, 'work_pays', { order: 1, items: { a: 1, b: 2 } });
  await written('pays began');
  // The same, whatever the order of its members; another one is another.
  const [second, other] = [
    callTool(mcp, 'work_pays', { items: { b: 2, a: 1 }, order: 1 }),
    callTool(mcp, 'work_pays', { items: { b: 2, a: 2 }, order: 1 }),
  ];
  await written('pays began', 3);
  open();
  const results = await Promise.all([first, second, other]);
  assert.deepEqual(
    results.map(({ _meta }) => _meta?.[REPEATS]?.outcome),
    [undefined, 'running', undefined],
  );
  assert.match(
    results[1].content.at(-1).text,
    /^The same call, .* was still running when this one began\. This one ran all the same\. Calls with the same _meta\["abp-bridge\/idempotencyKey"\] run once\.$/,
  );
  assert.deepEqual(results[1].structuredContent, { paid: 1 });
  assert.equal(done.filter((word) => word === 'paid 1').length, 3);
  // Once their results are there, nothing is in doubt.
  const again = await callTool(mcp, 'work_pays', { order: 1, items: { a: 1, b: 2 } });
  assert.equal(again._meta?.[REPEATS], undefined);
  // One that was stopped, and had run to its end.
  close();
  await stop(mcp, 'work_finishes');
  await written('finishes done');
  await nextNews(mcp);
  open();
  const repeat = await callTool(mcp, 'work_finishes', {});
  assert.equal(repeat._meta[REPEATS].outcome, 'finished');
  assert.match(
    repeat.content.at(-1).text,
    /had run to its end, and its result did not reach you\./,
  );
  // What only reads may be called twice.
  close();
  const reads = [callTool(mcp, 'text_read', {}), callTool(mcp, 'text_read', {})];
  await written('read began', 2);
  open();
  for (const { _meta } of await Promise.all(reads)) assert.equal(_meta?.[REPEATS], undefined);
});

test('a call with the key of an earlier one does not run again, after a lost answer either', async (t) => {
  const mcp = { ...(await connect(t, '1.x', 'stdio')), kind: '1.x' };
  const key = { [KEY]: 'pay order 7' };
  const first = callTool(mcp, 'work_pays', { order: 7 }, key);
  await written('pays began');
  const second = callTool(mcp, 'work_pays', { order: 7 }, key);
  open();
  for (const { structuredContent } of await Promise.all([first, second]))
    assert.deepEqual(structuredContent, { paid: 7 });
  // An answer that is lost, with an app that lives.
  close();
  const lost = callTool(mcp, 'work_pays', { order: 8 }, { [KEY]: '8' });
  await written('pays began', 2);
  app.cut();
  assert.match((await lost).content[0].text, /^DISCONNECTED: /);
  const repeat = callTool(mcp, 'work_pays', { order: 8 }, { [KEY]: '8' });
  open();
  assert.deepEqual((await repeat).structuredContent, { paid: 8 });
  // Another client's key is another one.
  const other = { ...(await connect(t, '1.x', 'stdio')), kind: '1.x' };
  await callTool(other, 'work_pays', { order: 8 }, { [KEY]: '8' });
  assert.deepEqual(
    done.filter((word) => /^paid/.test(word)),
    ['paid 7', 'paid 8', 'paid 8'],
  );
  // What streams, too.
  const streams = { [KEY]: 'stream' };
  for (let i = 0; i < 2; i++) await callTool(mcp, 'work_streams', {}, streams);
  assert.equal(done.filter((word) => word === 'streams began').length, 1);
});

test('a call with the key of one that had other arguments is refused, and not made', async (t) => {
  let own = await startSocketApp(capabilities);
  t.after(() => own.close());
  const mcp = { ...(await connect(t, '1.x', 'stdio', { args: ['mcp', own.url] })), kind: '1.x' };
  const key = { [KEY]: 'pay order 7' };
  const refused = async (args) => {
    const { isError, content, _meta } = await callTool(mcp, 'work_pays', args, key);
    assert.equal(isError, true);
    assert.match(
      content[0].text,
      /^KEY_REUSED: The key "pay order 7" belongs to a call with other/,
    );
    assert.deepEqual(_meta['abp-bridge/outcome'], { outcome: 'unstarted' });
    assert.equal(_meta['abp-bridge/error'].retryable, false);
  };
  const first = callTool(mcp, 'work_pays', { order: 7, to: 'ann' }, key);
  await written('pays began');
  await refused({ order: 8, to: 'ann' });
  open();
  assert.deepEqual((await first).structuredContent, { paid: 7 });
  await refused({ order: 8, to: 'ann' });
  await refused(undefined);
  const repeat = await callTool(mcp, 'work_pays', { to: 'ann', order: 7 }, key);
  assert.deepEqual(repeat.structuredContent, { paid: 7 });
  // Its answer is lost, and the app is loaded again: it knows the key no more, but the gateway
  // does.
  close();
  key[KEY] = 'pay order 9';
  const lost = callTool(mcp, 'work_pays', { order: 9 }, key);
  await written('pays began', 2);
  const { port } = own;
  own.cut();
  await lost;
  own.close();
  await own.closed;
  own = await startSocketApp(capabilities, { port });
  open();
  const other = await callTool(mcp, 'work_pays', { order: 10 }, key);
  assert.match(other.content[0].text, /^KEY_REUSED: The key "pay order 9" /);
  assert.deepEqual(
    done.filter((word) => /^pa/.test(word)),
    ['pays began', 'paid 7', 'pays began', 'paid 9'],
  );
});

test('where the app was loaded again, a call with the key of one that may have run is refused', async (t) => {
  let own = await startSocketApp(capabilities);
  const mcp = { ...(await connect(t, '1.x', 'stdio', { args: ['mcp', own.url] })), kind: '1.x' };
  const key = { [KEY]: 'pay order 9' };
  const first = callTool(mcp, 'work_pays', { order: 9 }, key);
  await written('pays began');
  const { port } = own;
  own.cut();
  assert.match((await first).content[0].text, /Whether its work was done is not known/);
  own.close();
  await own.closed;
  own = await startSocketApp(capabilities, { port });
  t.after(() => own.close());
  open();
  const again = await callTool(mcp, 'work_pays', { order: 9 }, key);
  assert.match(again.content[0].text, /^DISCONNECTED: The app no longer knows this key/);
  assert.deepEqual(again._meta['abp-bridge/outcome'], { outcome: 'unknown' });
  assert.equal(done.filter((word) => word === 'pays began').length, 1);
});

test('a key, or a name of a client, that is none is refused', async (t) => {
  const mcp = { ...(await connect(t, '1.x', 'stdio')), kind: '1.x' };
  for (const member of [KEY, CLIENT])
    for (const name of ['', 'x'.repeat(257), 'a\0b', '\ud800', 7, null])
      await assert.rejects(callTool(mcp, 'work_pays', {}, { [member]: name }), (error) => {
        assert.equal(error.code, -32602);
        assert.match(
          error.message,
          /must be a well-formed string of 1 to 256 characters, without NUL/,
        );
        assert.deepEqual(error.data, { member });
        return true;
      });
  assert.deepEqual(done, []);
});

test('in the newer version over HTTP a call whose response was closed is told of, and so is the next, each once', async () => {
  const meta = { ...envelope(), [CLIENT]: 'who loses answers' };
  const ask = (name, signal) =>
    postTo(
      url,
      TOKEN,
      { id: 1, method: 'tools/call', params: { name, arguments: { text: 'x' }, _meta: meta } },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name },
      signal,
    );
  const lost = new AbortController();
  const call = ask('work_finishes', lost.signal);
  await written('finishes began');
  lost.abort();
  await assert.rejects(call.then((response) => response.text()));
  await written('finishes done');
  // The response that would have told it is closed, too.
  const stops = new AbortController();
  const second = ask('work_stops', stops.signal);
  await written('stops began');
  stops.abort();
  await assert.rejects(second.then((response) => response.text()));
  await written('stops stopped');
  const heard = [];
  for (let after = 0; after < 2; after += heard.length < 2 ? 0 : 1) {
    const said = await (await ask('text_echo')).text();
    const { result } = JSON.parse(/^data: (.+)$/m.exec(said)?.[1] ?? said);
    heard.push(...(result._meta[EARLIER]?.calls ?? []).map(({ tool }) => tool));
  }
  assert.deepEqual(heard.sort(), ['work_finishes', 'work_stops']);
});
