// MCP Apps without a browser: a host, a view and an agent of it; calls whose cancel is true, names
// and results of tools, and the policy of views.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { connect, expose } from 'abp-bridge';
import { RpcError, createPeer } from '@abp-bridge/rpc';
import { createHost, createView, toolsOf } from '../src/index.js';
import { allowOf, policyOf } from '../src/policy.js';
import { SOURCES } from '../../../tests/support/stopped-sources.js';
import { fired, gate, linkedTransports, outcome, recording } from '../../rpc/tests/support/rpc.js';

const agent = { name: 'agent', version: '1' };
const HOST = { name: 'host', version: '1' };
const OUTCOME = 'abp-bridge/outcome';
const turn = () => new Promise(setImmediate);

/**
 * Takes out of the handshake what says that a side is ours, so that neither side tells what becomes
 * of a cancelled call.
 */
function anybodys(transport) {
  const { post } = transport;
  transport.post = (message, ...more) => {
    const { params, result } = message;
    for (const said of [params?.appCapabilities, result?.hostCapabilities])
      if (said) delete said.experimental;
    post.call(transport, message, ...more);
  };
  return transport;
}

/** A host and its view, which are closed with the test, and what they said to each other. */
async function ends(t, { tells = true, host: hostOptions = {}, view: viewOptions = {} }) {
  const [there, here] = linkedTransports();
  if (!tells) for (const end of [there, here]) anybodys(end);
  const log = [];
  const [host, view] = await Promise.all([
    createHost(recording(there, log, 'host'), { host: HOST, ...hostOptions }),
    createView({
      app: { name: 'View', version: '1' },
      transport: recording(here, log, 'view'),
      ...viewOptions,
    }),
  ]);
  t.after(() => {
    view.close();
    return host.close({ timeout: 1 });
  });
  return { host, view, sent: (who) => log.filter(({ dir }) => dir === who).map(({ msg }) => msg) };
}

/** A view that calls what its server runs. */
async function sides(t, run, tells = true, view = {}) {
  const server = (_method, params, context) => run(params, context);
  const both = await ends(t, { tells, host: { server }, view });
  return { ...both, call: (options) => both.view.callTool('x', {}, options) };
}

/** An app, its tools as those of a view, and an agent of them. */
async function bothEnds(t, capabilities, { tells = true, definition } = {}) {
  const app = { id: 'view.app', name: 'View', version: '1' };
  const exposed = expose(definition ?? { app, capabilities }, { origins: [] });
  t.after(() => exposed.close());
  const both = await ends(t, { tells, view: { tools: toolsOf(exposed) } });
  const changes = [];
  const heard = gate();
  const client = await connect(() => both.host.transport(), {
    agent,
    onCapabilitiesChanged: (change) => (changes.push(change), heard.open()),
  });
  t.after(() => client.close());
  return { ...both, client, exposed, changes, heard };
}

/** A view whose every answer the test gives, and an agent of its tools. */
async function scripted(t, answer, tools = [{ name: 'x', inputSchema: { type: 'object' } }]) {
  const [there, here] = linkedTransports();
  const view = createPeer(here, { dialect: 'mcp' });
  view.handle('tools/list', () => ({ tools: typeof tools === 'function' ? tools() : tools }));
  view.handle('tools/call', answer);
  const hosting = createHost(there, { host: HOST });
  await view.request('ui/initialize', {
    appInfo: { name: 'View', version: '1' },
    appCapabilities: { tools: {} },
  });
  view.notify('ui/notifications/initialized');
  const host = await hosting;
  const client = await connect(() => host.transport(), { agent });
  t.after(() => {
    client.close();
    view.close();
    return host.close({ timeout: 1 });
  });
  return { client, view, host };
}

test('without metadata a view may load nothing', () => {
  const policy = policyOf(undefined);
  for (const part of [
    "default-src 'none'",
    "script-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'none'",
    "frame-src 'none'",
    "base-uri 'self'",
    "object-src 'none'",
    "form-action 'none'",
  ]) {
    assert.ok(policy.split('; ').includes(part), `${part} in ${policy}`);
  }
  assert.ok(!policy.includes('eval'));
});

test('metadata names what a view may load, and nothing that it names ends a directive', () => {
  const directive = (csp, name) =>
    policyOf(csp)
      .split('; ')
      .find((part) => part.startsWith(`${name} `));
  const csp = {
    connectDomains: ['https://api.example', 'wss://live.example:8443'],
    resourceDomains: ['https://*.cdn.example/lib/'],
    frameDomains: ['https://maps.example'],
    baseUriDomains: ['https://base.example'],
  };
  assert.equal(
    directive(csp, 'connect-src'),
    "connect-src 'self' https://api.example wss://live.example:8443",
  );
  for (const name of ['script-src', 'style-src', 'img-src', 'font-src', 'media-src']) {
    assert.ok(directive(csp, name).endsWith(' https://*.cdn.example/lib/'), name);
  }
  assert.equal(directive(csp, 'frame-src'), 'frame-src https://maps.example');
  assert.equal(directive(csp, 'base-uri'), 'base-uri https://base.example');
  const evil = [
    'https://x; script-src *',
    '*',
    "'unsafe-eval'",
    "'none'",
    'https:',
    'https://*',
    'x y',
    'javascript:',
    'https://x\n',
    'https://x,https://y',
    '',
    5,
    null,
    {},
    ['https://x'],
  ];
  assert.equal(policyOf({ connectDomains: evil, resourceDomains: evil }), policyOf({}));
  for (const odd of [
    'https://x',
    5,
    null,
    { length: 1e9 },
    Object.assign([], { length: 2 ** 32 - 1 }),
  ]) {
    assert.equal(policyOf({ connectDomains: odd }), policyOf({}));
    assert.equal(policyOf(odd), policyOf({}));
  }
});

test('permissions are those that the metadata has, of those that there are', () => {
  const permissions = { camera: {}, clipboardWrite: {}, usb: {} };
  assert.equal(allowOf(permissions), 'camera *; clipboard-write *');
  assert.equal(allowOf({ microphone: {} }, 'https://x.example'), 'microphone https://x.example');
  for (const odd of [undefined, null, 5, 'camera', []]) assert.equal(allowOf(odd), '');
});

test('names of tools are what every model takes, and lead back', async (t) => {
  const names = ['a.b', 'a_b', 'a-b', 'é', 'x'.repeat(200), '__proto__', 'constructor'];
  const all = Object.fromEntries(names.map((name) => [name, () => ({ called: name })]));
  Object.defineProperty(all, '__proto__', {
    value: () => ({ called: '__proto__' }),
    enumerable: true,
  });
  const { client, host } = await bothEnds(t, all);
  const { tools } = await host.request('tools/list');
  assert.equal(new Set(tools.map(({ name }) => name)).size, names.length);
  for (const { name, title } of tools) {
    assert.match(name, /^\w{1,64}$/);
    assert.deepEqual((await host.callTool(name)).structuredContent, { called: title });
  }
  for (const name of names) assert.equal((await client.call(name)).data.called, name);
  // What is fine stays, whichever comes first.
  for (const name of ['a_b', 'constructor'])
    assert.equal(tools.find(({ title }) => title === name).name, name);
  for (const name of ['toString', {}])
    assert.equal((await host.request('tools/call', { name })).isError, true);
});

test('data comes through a result of a tool', async (t) => {
  const bytes = new Uint8Array([1, 2, 3]).buffer;
  const odd = {
    map: new Map([['a', 1n]]),
    set: new Set([1, [2]]),
    error: Object.assign(new RangeError('far'), { code: 5 }),
    at: new Date(0),
  };
  const capabilities = {
    echo: (params) => params.data,
    bytes: () => ({ content: bytes.slice(), mimeType: 'image/png' }),
    pdf: () => ({ pdf: { content: bytes.slice(), mimeType: 'application/pdf' }, n: 1 }),
    odd: () => odd,
  };
  const ours = await bothEnds(t, capabilities);
  for (const data of [{ a: [1] }, 'text', 5, null, [1, 2], undefined, true])
    assert.deepEqual((await ours.client.call('echo', { data })).data, data);
  assert.deepEqual((await ours.client.call('bytes')).data.content, bytes);
  assert.deepEqual((await ours.client.call('odd')).data.map, odd.map);
  // Anybody's host gets JSON.
  const others = await bothEnds(t, capabilities, { tells: false });
  assert.deepEqual(await others.host.callTool('pdf'), {
    content: [
      { type: 'text', text: '{"pdf":{"mimeType":"application/pdf","size":3},"n":1}' },
      {
        type: 'resource',
        resource: { uri: 'abp-bridge:///result/1', mimeType: 'application/pdf', blob: 'AQID' },
      },
    ],
    structuredContent: { pdf: { mimeType: 'application/pdf', size: 3 }, n: 1 },
  });
  assert.equal((await others.client.call('echo', { data: 'text' })).data, 'text');
  assert.deepEqual((await others.client.call('odd')).data, {
    map: [['a', '1']],
    set: [1, [2]],
    error: { name: 'RangeError', message: 'far', code: 5 },
    at: '1970-01-01T00:00:00.000Z',
  });
});

test('a failure comes through a result of a tool', async (t) => {
  const error = { code: 'RATE_LIMITED', message: 'later', retryable: true, retryAfter: 5 };
  const cyclic = {};
  cyclic.cyclic = cyclic;
  const fails = (details) => () => {
    throw Object.assign(new Error(error.message), error, { details });
  };
  const capabilities = {
    fails: fails(undefined),
    details: fails({ left: new Set([1n]) }),
    act: () => () => {},
    cyclic: () => ({ a: cyclic }),
  };
  const { client, host } = await bothEnds(t, capabilities, { tells: false });
  const result = await host.callTool('fails');
  assert.equal(result.isError, true);
  assert.deepEqual(result.content, [{ type: 'text', text: 'RATE_LIMITED: later' }]);
  assert.deepEqual((await client.call('fails')).error, error);
  assert.deepEqual((await host.callTool('details')).structuredContent.error.details, {
    left: ['1'],
  });
  for (const name of ['act', 'cyclic'])
    assert.match(
      (await host.callTool(name)).content[0].text,
      /^OPERATION_FAILED: The result cannot be sent/,
    );
});

test('anything may come as the result of a tool', async (t) => {
  let result;
  const { client } = await scripted(t, () => result);
  for (result of [
    undefined,
    null,
    5,
    'x',
    [],
    {},
    { content: 5 },
    { content: [null] },
    { isError: true },
    { isError: true, content: [{ type: 'text', text: 5 }], structuredContent: { error: 5 } },
    { content: [{ type: 'image', data: '%', mimeType: 'image/png' }] },
  ]) {
    const response = await client.call('x');
    assert.equal(typeof response.success, 'boolean');
    if (!response.success) assert.equal(typeof response.error.code, 'string');
  }
  result = { content: [{ type: 'audio', data: 'AQID', mimeType: 'audio/ogg' }] };
  const { data } = await client.call('x');
  assert.deepEqual([data.mimeType, data.content.byteLength], ['audio/ogg', 3]);
  result = { isError: true, structuredContent: { error: { code: 'CANCELLED', message: 'no' } } };
  assert.equal((await client.call('x')).cancelled, true);
});

test('a cancelled call rejects when its handler has unwound', async (t) => {
  const started = gate();
  const unwound = gate();
  const { call } = await sides(t, async (_params, { signal }) => {
    started.open();
    await fired(signal);
    await unwound.opened;
    throw new Error('stopped');
  });
  const controller = new AbortController();
  const calling = outcome(call({ signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  assert.equal(await Promise.race([calling, turn().then(() => 'no')]), 'no');
  unwound.open();
  const { err } = await calling;
  assert.deepEqual(
    [err.name, err.message, err.data],
    ['AbortError', 'enough', { outcome: 'failed' }],
  );
  assert.equal(err.cause.message, 'stopped');
});

test('a cancelled call that ends well all the same resolves', async (t) => {
  const started = gate();
  const { call } = await sides(t, async (_params, { signal }) => {
    started.open();
    await fired(signal);
    return { content: [], structuredContent: { done: true } };
  });
  const controller = new AbortController();
  const calling = call({ signal: controller.signal });
  await started.opened;
  controller.abort();
  assert.deepEqual((await calling).structuredContent, { done: true });
});

test('a call that does not return in time is said to run', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const [started, ended] = [gate(), gate()];
  const run = async () => {
    started.open();
    await ended.opened;
    return { content: [] };
  };
  const { call, sent } = await sides(t, run, true, { limits: { grace: 3000 } });
  const controller = new AbortController();
  const calling = outcome(call({ signal: controller.signal }));
  await started.opened;
  controller.abort();
  while (!sent('host').some(({ result }) => result?.outcome === 'running')) await turn();
  t.mock.timers.tick(3000);
  assert.deepEqual((await calling).err.data, { outcome: 'running' });
  t.mock.timers.reset();
  ended.open();
});

test('an answer that crosses the cancel is taken', async (t) => {
  const controller = new AbortController();
  const { call, sent } = await sides(t, () => ({ content: [], n: 1 }));
  const before = sent('host').length;
  const calling = call({ signal: controller.signal });
  // The other side has answered, and nobody has read it.
  while (sent('host').length === before) await turn();
  controller.abort();
  assert.equal((await outcome(calling)).ok?.n, 1);
});

test('a call that was cancelled before it began is known to have been', async (t) => {
  let ran = false;
  const { call, sent } = await sides(t, () => (ran = true));
  const before = sent('view').length;
  const controller = new AbortController();
  const calling = outcome(call({ signal: controller.signal }));
  while (sent('view').length === before) await turn();
  const { err: never } = await outcome(call({ signal: AbortSignal.abort('never') }));
  assert.deepEqual(never.data, { outcome: 'unstarted' });
  controller.abort('enough');
  const { err, ok } = await calling;
  // Whichever was first.
  if (ok === undefined) assert.deepEqual([ran, err.data], [false, { outcome: 'unstarted' }]);
});

test('where the other side does not tell, a cancelled call rejects at once and claims nothing', async (t) => {
  const started = gate();
  const run = () => (started.open(), new Promise(() => {}));
  const { call, sent } = await sides(t, run, false);
  const controller = new AbortController();
  const calling = outcome(call({ signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  const { err } = await calling;
  assert.deepEqual([err.name, err.data], ['AbortError', { outcome: 'unknown' }]);
  assert.ok(sent('view').every(({ method }) => method !== OUTCOME));
});

test('what becomes of a cancelled call at a server that is somebody else’s is not known, unless its client says it', async (t) => {
  for (const [thrown, became] of [
    [new DOMException('stopped', 'AbortError'), { outcome: 'unknown' }],
    [new RpcError(-32800, 'stopped', { outcome: 'stopped' }), { outcome: 'stopped' }],
    [new Error('broken'), { outcome: 'failed' }],
  ]) {
    const started = gate();
    const server = {
      async request(method, _params, { signal } = {}) {
        if (method === 'tools/list') return { tools: [{ name: 'x' }] };
        started.open();
        await fired(signal);
        throw thrown;
      },
    };
    const { view } = await ends(t, { host: { server } });
    const controller = new AbortController();
    const calling = outcome(view.callTool('x', {}, { signal: controller.signal }));
    await started.opened;
    controller.abort('enough');
    assert.deepEqual((await calling).err.data, became);
  }
});

test('a timeout cancels, and says so', async (t) => {
  for (const tells of [true, false]) {
    const run = (_params, { signal }) => fired(signal).then(() => Promise.reject(signal.reason));
    const { call } = await sides(t, run, tells);
    const { err } = await outcome(call({ timeout: 1 }));
    assert.equal(err.name, 'TimeoutError');
    // A clock may be quicker than the other side.
    const known = tells ? ['stopped', 'unstarted'] : ['unknown'];
    assert.ok(known.includes(err.data.outcome), err.data.outcome);
  }
});

test('what became of cancelled calls is told as long as the core remembers them, and questions may be anything', async (t) => {
  const server = async (_method, _params, { signal }) => {
    if (!signal.aborted) await fired(signal);
    return { content: [] };
  };
  const { view, host, sent } = await ends(t, { host: { server, limits: { remembered: 64 } } });
  for (let i = 0; i < 100; i++) {
    const controller = new AbortController();
    const calling = outcome(view.request('tools/call', { name: 'x' }, controller));
    while (!host.counters.inFlightIn) await turn();
    controller.abort();
    await calling;
    while (host.counters.inFlightIn) await turn();
  }
  const ids = sent('view').flatMap(({ id, method }) => (method === 'tools/call' ? [id] : []));
  const unknown = { outcome: 'unknown' };
  assert.deepEqual(await view.request(OUTCOME, { id: ids[0] }), unknown);
  const told = { outcome: 'finished', result: { content: [] } };
  for (const settled of [false, true])
    assert.deepEqual(await view.request(OUTCOME, { id: ids[99], settled }), told);
  for (const odd of [undefined, 5, { id: `${ids[99]}` }, { id: '__proto__' }, { id: { a: 1 } }])
    assert.deepEqual(await view.request(OUTCOME, odd), unknown);
});

test('what was answered is not kept', async (t) => {
  const { view, sent } = await sides(t, () => ({ content: [] }));
  await view.request('tools/call', { name: 'x' });
  const { id } = sent('view').find(({ method }) => method === 'tools/call');
  assert.deepEqual(await view.request(OUTCOME, { id }), { outcome: 'finished' });
});

test('calls that come to a view after its app was closed are answered: they never ran', async (t) => {
  const { client, exposed } = await bothEnds(t, { work: () => 'done' });
  assert.equal((await client.call('work')).data, 'done');
  exposed.close();
  const { error, metadata } = await client.call('work');
  assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unstarted']);
});

test('an agent calls the tools of a view as it calls an app', async (t) => {
  const { client, exposed, changes, heard } = await bothEnds(t, {
    'text.echo': (params) => params,
    hidden: { handler() {}, available: false },
    steps(_params, { progress }) {
      for (const n of [1, 1, 3]) progress({ progress: n, total: 3 });
      return 'done';
    },
  });
  assert.equal(client.app.name, 'View');
  assert.deepEqual(
    (await client.listCapabilities()).map(({ name }) => name),
    ['text.echo', 'steps'],
  );
  assert.deepEqual((await client.call('text.echo', { a: 1 })).data, { a: 1 });
  const progress = [];
  const onProgress = (info) => progress.push(info.progress);
  const { data } = await client.call('steps', {}, { onProgress });
  // MCP's progress rises.
  assert.deepEqual([data, progress], ['done', [1, 3]]);
  assert.equal((await client.call('hidden')).error.code, 'UNKNOWN_CAPABILITY');
  exposed.set('more', () => 1);
  await heard.opened;
  assert.deepEqual(changes, [{ added: ['more'], removed: [], changed: [] }]);
  assert.equal((await client.call('more')).data, 1);
});

test('however often a list changes, one is asked for at a time', async (t) => {
  let lists = 0;
  const tools = () => (lists++ ? [] : [{ name: 'x' }]);
  const { client, view, host } = await scripted(t, () => ({}), tools);
  for (let i = 0; i < 1000; i++) view.notify('notifications/tools/list_changed');
  // Past all that was said.
  await view.request('ping');
  await host.request('ping');
  while ((await client.listCapabilities()).length) await turn();
  assert.ok(lists < 10, `${lists}`);
});

for (const tells of [true, false]) {
  test(`a cancel reaches the handler, and its answer is true (the view ${tells ? 'tells' : 'does not tell'})`, async (t) => {
    const started = gate();
    const stopped = gate();
    const capabilities = {
      async hang(_params, { signal }) {
        started.open();
        stopped.open((await fired(signal)).message);
        throw signal.reason;
      },
    };
    const { client } = await bothEnds(t, capabilities, { tells });
    const calling = client.call('hang', {}, { callId: 'c' });
    await started.opened;
    const answer = await client.cancel('c', 'enough');
    assert.equal(answer.cancelled, tells);
    const { success, cancelled, error, metadata } = await calling;
    assert.deepEqual([success, cancelled, error.code], [false, true, 'CANCELLED']);
    assert.equal(metadata.outcome, tells ? 'stopped' : 'unknown');
    await stopped.opened;
  });

  test(`a cancel is answered by the table after the end, too (the view ${tells ? 'tells' : 'does not tell'})`, async (t) => {
    const { client } = await bothEnds(t, { echo: (params) => params }, { tells });
    await client.call('echo', { a: 1 }, { callId: 'c' });
    const answers = [await client.cancel('c'), await client.cancel('c'), await client.cancel('d')];
    assert.deepEqual(
      answers.map(({ cancelled, reason }) => [cancelled, reason]),
      [
        [false, 'Operation already completed'],
        [false, 'Operation already completed'],
        [false, 'Operation not found'],
      ],
    );
  });
}

for (const [what, { outcome: told, make }] of Object.entries(SOURCES))
  for (const [way, stop] of Object.entries({
    'its signal': ({ controller }) => controller.abort('enough'),
    'cancel(id)': ({ client }) => client.cancel('c', 'enough'),
  }))
    test(`what a view streams, ${what}, by ${way}: ${told}`, async (t) => {
      t.mock.method(console, 'error', () => {});
      const began = gate();
      const { client } = await bothEnds(t, {
        work: (_params, { signal }) => {
          setTimeout(began.open);
          return make(signal);
        },
      });
      const controller = new AbortController();
      const calling = client.call('work', {}, { callId: 'c', signal: controller.signal });
      await began.opened;
      void stop({ controller, client });
      const { cancelled, metadata } = await calling;
      assert.deepEqual([cancelled, metadata.outcome], [true, told]);
    });

test('a view of ours that has accepted a cancel is held to it', async (t) => {
  const started = gate();
  const { client } = await bothEnds(t, {
    async finish(_params, { signal }) {
      started.open();
      await fired(signal);
      return 'done all the same';
    },
  });
  const calling = client.call('finish', {}, { callId: 'c' });
  await started.opened;
  assert.equal((await client.cancel('c')).cancelled, true);
  assert.equal((await calling).cancelled, true);
  assert.equal((await client.cancel('c')).cancelled, true, 'every time');
});

test('a view is closed when what runs has stopped', async (t) => {
  const started = gate();
  const unwound = gate();
  const { client, host } = await bothEnds(t, {
    async hang(_params, { signal }) {
      started.open();
      await fired(signal);
      await unwound.opened;
    },
  });
  const calling = client.call('hang');
  await started.opened;
  const closing = host.close({ reason: 'going', timeout: 600_000 }).then(() => 'closed');
  assert.equal(await Promise.race([closing, host.request('ping').then(() => 'open')]), 'open');
  unwound.open();
  assert.equal(await closing, 'closed');
  const { error } = await calling;
  assert.deepEqual([error.code, error.message], ['CANCELLED', 'going']);
});

test('an app of others’ making has tools, too', async (t) => {
  const abp = {
    app: { id: 'x.y', name: 'Other', version: '1' },
    initialize: async () => ({
      sessionId: 's',
      protocolVersion: '0.1',
      app: abp.app,
      features: {},
    }),
    listCapabilities: async () => [{ name: 'add', available: true }],
    call: async (_name, { a, b }) => ({ success: true, data: a + b }),
    shutdown: async () => {},
  };
  const { client, heard } = await bothEnds(t, {}, { definition: abp });
  // Its list is known when it has answered.
  if (!(await client.listCapabilities()).length) await heard.opened;
  assert.equal((await client.call('add', { a: 1, b: 2 })).data, 3);
});

test('a question in the midst of a tool’s call is refused: MCP Apps has no way to ask a host', async (t) => {
  const { client } = await bothEnds(t, {
    ask: (_params, { elicit }) => elicit({ method: 'elicitation/confirm', params: {} }),
  });
  const { success, error } = await client.call('ask');
  assert.deepEqual([success, error.code], [false, 'NOT_SUPPORTED']);
  assert.equal(
    error.message,
    'The agent does not support elicitation: ask the user in the app itself',
  );
});

/** What a page has that is embedded, and a view in it. */
function embedded(t, { origin, ancestorOrigins }, options = {}) {
  const posted = [];
  const embedder = {
    postMessage: (message, { targetOrigin }) => posted.push([message, targetOrigin]),
  };
  Object.defineProperty(embedder, 'origin', {
    get() {
      if (origin) return origin;
      throw new DOMException('Blocked', 'SecurityError');
    },
  });
  const listeners = new Set();
  const globals = {
    window: {},
    parent: embedder,
    location: { ancestorOrigins },
    addEventListener: (type, listener) => type === 'message' && listeners.add(listener),
    removeEventListener: (_type, listener) => listeners.delete(listener),
  };
  for (const [name, value] of Object.entries(globals)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true });
    t.after(() => {
      if (before) Object.defineProperty(globalThis, name, before);
      else delete globalThis[name];
    });
  }
  const heard = [];
  const creating = createView({
    app: { name: 'X', version: '1' },
    upgrade: 'none',
    onNotification: (method) => heard.push(method),
    ...options,
  });
  const hear = (data, from = {}) => {
    const event = {
      data,
      ports: [],
      source: embedder,
      isTrusted: true,
      origin: 'https://a.example',
    };
    for (const listener of listeners) listener({ ...event, ...from });
  };
  return {
    creating,
    heard,
    hear,
    listeners,
    /** What it said by method, and to which origin. */
    said: () => posted.flatMap(([{ method }, target]) => (method ? [[method, target]] : [])),
    /** Resolves when it has greeted. */
    async greeted() {
      while (!posted.some(([{ method }]) => method)) await turn();
    },
    /** Answers its greeting. */
    answer: (from, word = 'x') => {
      const [{ id }] = posted.map(([message]) => message).filter(({ method }) => method);
      hear({ jsonrpc: '2.0', id, result: { hostInfo: { name: word, version: '1' } } }, from);
    },
    tell: (method, from) => hear({ jsonrpc: '2.0', method }, from),
  };
}
const GREETING = 'ui/initialize';
const BEGUN = 'ui/notifications/initialized';

test('a view posts to the exact origin of the page around it, as soon as that is known', async (t) => {
  for (const place of [
    { origin: 'https://a.example' },
    { ancestorOrigins: ['https://a.example', 'https://other.example'] },
  ]) {
    const { creating, said, greeted, answer } = embedded(t, place);
    await greeted();
    assert.deepEqual(said(), [[GREETING, 'https://a.example']]);
    answer();
    (await creating).close();
  }
  const { creating, said, greeted, answer, tell, heard, listeners } = embedded(t, {});
  await greeted();
  for (const forged of [{ source: {} }, { source: null }, { isTrusted: false }])
    answer(forged, 'forged');
  answer();
  const view = await creating;
  assert.equal(view.hostInfo.name, 'x');
  tell('forged', { origin: 'https://b.example' });
  tell('honest');
  view.notify('secret');
  await turn();
  assert.deepEqual(said(), [
    [GREETING, '*'],
    [BEGUN, 'https://a.example'],
    ['secret', 'https://a.example'],
  ]);
  view.close();
  assert.deepEqual([heard, listeners.size], [['honest'], 0]);
});

test('an opaque origin has no name to post to', async (t) => {
  const { creating, said, greeted, ...host } = embedded(t, { ancestorOrigins: ['null'] });
  const { answer, tell, heard } = host;
  await greeted();
  answer({ origin: 'null' });
  const view = await creating;
  tell('forged');
  tell('honest', { origin: 'null' });
  await turn();
  assert.deepEqual(said(), [
    [GREETING, '*'],
    [BEGUN, '*'],
  ]);
  assert.deepEqual(heard, ['honest']);
  view.close();
});

test('a view that finds no host says so, and its app is there for others all the same', async (t) => {
  const { port1, port2 } = new MessageChannel();
  const capabilities = { echo: (params) => params };
  const app = expose(
    { app: { id: 'x.y', name: 'X', version: '1' }, capabilities },
    { port: port2 },
  );
  const options = { tools: toolsOf(app), timeout: 50 };
  const { creating, hear, said } = embedded(t, {}, options);
  // What other pages say is no answer.
  hear({ type: 'initialize', id: 1, payload: {} });
  await assert.rejects(creating, {
    code: 'TIMEOUT',
    retryable: true,
    message: 'No MCP Apps host answered within 50 ms: the embedding page may not be one',
  });
  assert.equal(said()[0]?.[0], GREETING);
  const client = await connect(port1, { agent });
  assert.deepEqual((await client.call('echo', { a: 1 })).data, { a: 1 });
  client.close();
  app.close();
});

test('a host that has begun listens no more to what could have ended its beginning', async (t) => {
  const followers = [];
  const { any } = AbortSignal;
  t.mock.method(AbortSignal, 'any', (signals) => {
    followers.push(any.call(AbortSignal, signals));
    return followers.at(-1);
  });
  await ends(t, { host: { signal: new AbortController().signal } });
  assert.equal(followers.length, 1);
  assert.deepEqual(getEventListeners(followers[0], 'abort'), []);
});
