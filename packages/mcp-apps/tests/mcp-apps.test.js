// MCP Apps without a browser: the policy of views, names and results of tools, calls whose cancel is true, and a view's
// tools as an app.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { connect, expose } from '../../../js/index.js';
import { ViewToolNames } from '../src/names.js';
import { callTool, serveCalls } from '../src/outcome.js';
import { allowOf, policyOf } from '../src/policy.js';
import { OUTCOME } from '../src/protocol.js';
import { ViewTransport } from '../src/relay.js';
import { responseOf, toolResult } from '../src/results.js';
import { toolsOf } from '../src/tools.js';
import { createHost } from '../src/host.js';
import { createView } from '../src/view.js';
import { EmbedderTransport } from '../../../js/transports/embedder.js';
import { SOURCES } from '../../../tests/support/stopped-sources.js';
import { fired, gate, linkedTransports, outcome, peerPair } from '../../rpc/tests/support/rpc.js';

const agent = { name: 'agent', version: '1' };

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
    ...['https://x; script-src *', '*', "'unsafe-eval'", "'none'", 'https:', 'https://*', 'x y'],
    ...['javascript:', 'https://x\n', 'https://x,https://y', '', 5, null, {}, ['https://x']],
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

test('names of tools are what every model takes, and lead back', () => {
  const names = new ViewToolNames();
  const capabilities = ['a.b', 'a_b', 'a-b', 'é', '', 'x'.repeat(200), '__proto__', 'constructor'];
  names.add(capabilities);
  const tools = capabilities.map((name) => names.toolOf(name));
  assert.equal(new Set(tools).size, tools.length);
  for (const [i, tool] of tools.entries()) {
    assert.match(tool, /^\w{1,64}$/);
    assert.equal(names.capabilityOf(tool), capabilities[i]);
  }
  // What is fine stays, whichever comes first.
  assert.equal(names.toolOf('a_b'), 'a_b');
  assert.equal(names.toolOf('constructor'), 'constructor');
  assert.equal(names.capabilityOf('toString'), undefined);
  assert.equal(names.capabilityOf({}), undefined);
});

test('data comes through a result of a tool', async () => {
  const through = async (data, whole) =>
    responseOf(await toolResult({ success: true, data }, whole)).data;
  for (const data of [{ a: [1] }, 'text', 5, null, [1, 2], undefined, true]) {
    assert.deepEqual(await through(data, true), data);
  }
  const bytes = new Uint8Array([1, 2, 3]).buffer;
  assert.equal((await through({ content: bytes, mimeType: 'image/png' }, true)).content, bytes);
  // Anybody's host gets JSON.
  const result = await toolResult(
    { success: true, data: { pdf: { content: bytes, mimeType: 'application/pdf' }, n: 1 } },
    false,
  );
  assert.deepEqual(result, {
    content: [
      { type: 'text', text: '{"pdf":{"mimeType":"application/pdf","size":3},"n":1}' },
      {
        type: 'resource',
        resource: { uri: 'abp-bridge:///result/1', mimeType: 'application/pdf', blob: 'AQID' },
      },
    ],
    structuredContent: { pdf: { mimeType: 'application/pdf', size: 3 }, n: 1 },
  });
  assert.equal(await through('text', false), 'text');
  const odd = {
    map: new Map([['a', 1n]]),
    set: new Set([1, [2]]),
    error: Object.assign(new RangeError('far'), { code: 5 }),
    at: new Date(0),
  };
  assert.deepEqual(await through(odd, false), {
    map: [['a', '1']],
    set: [1, [2]],
    error: { name: 'RangeError', message: 'far', code: 5 },
    at: '1970-01-01T00:00:00.000Z',
  });
  const block = { type: 'audio', data: 'AQID', mimeType: 'audio/ogg' };
  const { data } = responseOf({ content: [block] });
  assert.deepEqual([data.mimeType, data.content.byteLength], ['audio/ogg', 3]);
});

test('a failure comes through a result of a tool', async () => {
  const error = { code: 'RATE_LIMITED', message: 'later', retryable: true, retryAfter: 5 };
  const result = await toolResult({ success: false, error }, false);
  assert.equal(result.isError, true);
  assert.deepEqual(result.content, [{ type: 'text', text: 'RATE_LIMITED: later' }]);
  assert.deepEqual(responseOf(result), { success: false, error });
  const cancelled = { success: false, cancelled: true };
  assert.equal(responseOf(await toolResult(cancelled, true)).cancelled, true);
  const details = { left: new Set([1n]) };
  const said = await toolResult({ success: false, error: { ...error, details } }, false);
  assert.deepEqual(said.structuredContent.error.details, { left: ['1'] });
  const cyclic = {};
  cyclic.cyclic = cyclic;
  for (const data of [() => {}, { a: cyclic }]) {
    const unsendable = await toolResult({ success: true, data }, false);
    assert.match(unsendable.content[0].text, /^OPERATION_FAILED: The result cannot be sent/);
  }
});

test('anything may come as the result of a tool', () => {
  const odd = [
    undefined,
    null,
    5,
    'x',
    [],
    {},
    { content: 5 },
    { content: [null] },
    { isError: true },
  ];
  odd.push({
    isError: true,
    content: [{ type: 'text', text: 5 }],
    structuredContent: { error: 5 },
  });
  odd.push({ content: [{ type: 'image', data: '%', mimeType: 'image/png' }] });
  odd.push({ content: Object.assign([], { length: 2 ** 32 - 1 }) });
  for (const result of odd) {
    const response = responseOf(result);
    assert.equal(typeof response.success, 'boolean');
    if (!response.success) assert.equal(typeof response.error.code, 'string');
  }
});

/** Two sides, of which one serves tools. */
function sides(run) {
  const pair = peerPair('mcp');
  serveCalls(pair.b, run);
  const call = (tells, options) => callTool(pair.a, { name: 'x' }, options, tells);
  return { ...pair, call, done: () => (pair.a.close(), pair.b.close()) };
}

test('a cancelled call rejects when its handler has unwound', async () => {
  const started = gate();
  const unwound = gate();
  const { call, done } = sides(async (_params, { signal }) => {
    started.open();
    await fired(signal);
    await unwound.opened;
    throw new Error('stopped');
  });
  const controller = new AbortController();
  const calling = outcome(call(true, { signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  const first = await Promise.race([
    calling,
    new Promise((resolve) => setImmediate(resolve, 'no')),
  ]);
  assert.equal(first, 'no');
  unwound.open();
  const { err } = await calling;
  assert.deepEqual(
    [err.name, err.message, err.data],
    ['AbortError', 'enough', { outcome: 'failed' }],
  );
  assert.equal(err.cause.message, 'stopped');
  done();
});

test('a cancelled call that ends well all the same resolves', async () => {
  const started = gate();
  const { call, done } = sides(async (_params, { signal }) => {
    started.open();
    await fired(signal);
    return { content: [], structuredContent: { done: true } };
  });
  const controller = new AbortController();
  const calling = call(true, { signal: controller.signal });
  await started.opened;
  controller.abort();
  assert.deepEqual((await calling).structuredContent, { done: true });
  done();
});

test('a call that does not return in time is said to run, and can be asked for again', async (t) => {
  const [started, ended] = [gate(), gate()];
  const { a, call, done } = sides(async () => {
    started.open();
    await ended.opened;
    return { content: [] };
  });
  const controller = new AbortController();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const calling = outcome(call(true, { signal: controller.signal }));
  await started.opened;
  controller.abort();
  // What is asked of it has arrived once this is answered.
  await a.request('ping');
  t.mock.timers.tick(3000);
  const { data } = (await calling).err;
  assert.deepEqual(data, { outcome: 'running' });
  t.mock.timers.reset();
  ended.open();
  done();
});

test('an answer that crosses the cancel is taken', async () => {
  const pair = peerPair('mcp');
  const controller = new AbortController();
  serveCalls(pair.b, () => ({ content: [], n: 1 }));
  const calling = callTool(pair.a, { name: 'x' }, { signal: controller.signal }, true);
  // The other side has answered, and nobody has read it.
  while (!pair.sent('b2a').length) await new Promise((resolve) => setImmediate(resolve));
  controller.abort();
  assert.equal((await outcome(calling)).ok?.n, 1);
  pair.a.close();
  pair.b.close();
});

test('what was answered is not kept', async () => {
  const { a, done } = sides(() => ({ content: [] }));
  await a.request('tools/call', { name: 'x', _meta: { [OUTCOME]: 'c' } });
  assert.deepEqual(await a.request(OUTCOME, { call: 'c' }), {});
  done();
});

test('a call that was cancelled before it began is known to have been', async () => {
  let ran = false;
  const { call, sent, done } = sides(() => (ran = true));
  const controller = new AbortController();
  const calling = outcome(call(true, { signal: controller.signal }));
  while (!sent('a2b').length) await new Promise((resolve) => setImmediate(resolve));
  const aborted = new AbortController();
  aborted.abort('never');
  assert.deepEqual((await outcome(call(true, { signal: aborted.signal }))).err.data, {
    outcome: 'unstarted',
  });
  controller.abort('enough');
  const { err, ok } = await calling;
  // Whichever was first.
  if (ok === undefined) assert.deepEqual([ran, err.data], [false, { outcome: 'unstarted' }]);
  done();
});

test('where the other side does not tell, a cancelled call rejects at once and claims nothing', async () => {
  const started = gate();
  const { call, sent, done } = sides(() => (started.open(), new Promise(() => {})));
  const controller = new AbortController();
  const calling = outcome(call(false, { signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  const { err } = await calling;
  assert.deepEqual([err.name, err.data], ['AbortError', { outcome: 'unknown' }]);
  assert.ok(sent('a2b').every(({ method }) => method !== OUTCOME));
  done();
});

test('a timeout cancels, and says so', async () => {
  const { call, done } = sides((_params, { signal }) =>
    fired(signal).then(() => Promise.reject(signal.reason)),
  );
  for (const tells of [true, false]) {
    const { err } = await outcome(call(tells, { timeout: 1 }));
    assert.equal(err.name, 'TimeoutError');
    // A clock may be quicker than the other side.
    const known = tells ? ['stopped', 'unstarted'] : ['unknown'];
    assert.ok(known.includes(err.data.outcome), err.data.outcome);
  }
  done();
});

test('outcomes that nobody asks for are forgotten, and questions may be anything', async () => {
  const { a, b, done } = sides((_params, { signal }) =>
    fired(signal).then(() => ({ content: [] })),
  );
  const marked = (call) => ({ name: 'x', _meta: { [OUTCOME]: call } });
  for (let i = 0; i < 100; i++) {
    const controller = new AbortController();
    const calling = outcome(a.request('tools/call', marked(`${i}`), controller));
    while (!b.counters.inFlightIn) await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    await calling;
    while (b.counters.inFlightIn) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(await a.request(OUTCOME, { call: '0' }), {});
  assert.deepEqual(await a.request(OUTCOME, { call: '99' }), { result: { content: [] } });
  assert.deepEqual(await a.request(OUTCOME, { call: '99' }), {}, 'it was told once');
  for (const odd of [undefined, 5, { call: 5 }, { call: '__proto__' }, { call: { a: 1 } }]) {
    assert.deepEqual(await a.request(OUTCOME, odd), {});
  }
  done();
});

/** An app, its tools on one side of a connection, and an agent of them on the other. */
async function bothEnds(capabilities, { tells = true, definition } = {}) {
  const { port1 } = new MessageChannel();
  const app = { id: 'view.app', name: 'View', version: '1' };
  const exposed = expose(definition ?? { app, capabilities }, { port: port1 });
  const { a: hostSide, b: viewSide } = peerPair('mcp');
  const tools = toolsOf(exposed);
  const context = ({ signal, progress }) => ({ signal, progress, whole: tells });
  viewSide.handle('tools/list', () => ({ tools: tools.list() }));
  serveCalls(viewSide, (params, request) => tools.call(params, context(request)));
  const transports = new Set();
  const host = {
    viewInfo: { name: 'View', version: '1' },
    offersTools: true,
    get ended() {
      return hostSide.ended !== undefined;
    },
    request: (method, params) => hostSide.request(method, params),
    callTool: (name, args, options) =>
      callTool(hostSide, { name, arguments: args }, options, tells),
  };
  hostSide.onNotification('notifications/tools/list_changed', () => {
    for (const transport of transports) void transport.refresh();
  });
  tools.open({ name: 'host' }, () => viewSide.notify('notifications/tools/list_changed'));
  const open = () => {
    const transport = new ViewTransport(host, () => transports.delete(transport));
    transports.add(transport);
    return transport;
  };
  const changes = [];
  const heard = gate();
  const client = await connect(open, {
    agent,
    onCapabilitiesChanged: (change) => (changes.push(change), heard.open()),
  });
  const done = () => {
    client.close();
    exposed.close();
    for (const peer of [hostSide, viewSide]) peer.close();
    port1.close();
  };
  return { client, exposed, tools, changes, heard, hostSide, viewSide, done };
}

test('calls that come to a view after its app was closed are answered: they never ran', async () => {
  const { client, exposed, done } = await bothEnds({ work: () => 'done' });
  assert.equal((await client.call('work')).data, 'done');
  exposed.close();
  const { error, metadata } = await client.call('work');
  assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unstarted']);
  done();
});

test('an agent calls the tools of a view as it calls an app', async () => {
  const { client, exposed, changes, heard, done } = await bothEnds({
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
  const { data } = await client.call(
    'steps',
    {},
    { onProgress: (info) => progress.push(info.progress) },
  );
  // MCP's progress rises.
  assert.deepEqual([data, progress], ['done', [1, 3]]);
  assert.equal((await client.call('hidden')).error.code, 'UNKNOWN_CAPABILITY');
  exposed.set('more', () => 1);
  await heard.opened;
  assert.deepEqual(changes, [{ added: ['more'], removed: [], changed: [] }]);
  assert.equal((await client.call('more')).data, 1);
  done();
});

test('however often a list changes, one is asked for at a time', async () => {
  const { client, viewSide, hostSide, done } = await bothEnds({ echo: (params) => params });
  let lists = 0;
  viewSide.handle('tools/list', () => (lists++, { tools: [] }));
  for (let i = 0; i < 1000; i++) viewSide.notify('notifications/tools/list_changed');
  // Past all that was said.
  await viewSide.request('ping');
  await hostSide.request('ping');
  while ((await client.listCapabilities()).length) await new Promise((r) => setImmediate(r));
  assert.ok(lists < 10, `${lists}`);
  done();
});

for (const tells of [true, false]) {
  test(`a cancel reaches the handler, and its answer is true (the view ${tells ? 'tells' : 'does not tell'})`, async () => {
    const started = gate();
    const stopped = gate();
    const { client, done } = await bothEnds(
      {
        async hang(_params, { signal }) {
          started.open();
          stopped.open((await fired(signal)).message);
          throw signal.reason;
        },
      },
      { tells },
    );
    const calling = client.call('hang', {}, { callId: 'c' });
    await started.opened;
    const answer = await client.cancel('c', 'enough');
    assert.equal(answer.cancelled, tells);
    const { success, cancelled, error, metadata } = await calling;
    assert.deepEqual([success, cancelled, error.code], [false, true, 'CANCELLED']);
    assert.equal(metadata.outcome, tells ? 'stopped' : 'unknown');
    await stopped.opened;
    done();
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
      const { client, done } = await bothEnds({
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
      done();
    });

test('a view of ours that has accepted a cancel is held to it', async () => {
  const started = gate();
  const { client, done } = await bothEnds({
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
  done();
});

for (const tells of [true, false]) {
  test(`a cancel is answered by the table after the end, too (the view ${tells ? 'tells' : 'does not tell'})`, async () => {
    const { client, done } = await bothEnds({ echo: (params) => params }, { tells });
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
    done();
  });
}

test('a view that is gone fails what runs with DISCONNECTED', async () => {
  const started = gate();
  const { client, hostSide, done } = await bothEnds({
    hang: () => (started.open(), new Promise(() => {})),
  });
  const calling = client.call('hang');
  await started.opened;
  hostSide.close();
  assert.equal((await calling).error.code, 'DISCONNECTED');
  done();
});

test('the tools are closed when what runs has stopped', async () => {
  const started = gate();
  const unwound = gate();
  const { client, tools, done } = await bothEnds({
    async hang(_params, { signal }) {
      started.open();
      await fired(signal);
      await unwound.opened;
    },
  });
  const calling = client.call('hang');
  await started.opened;
  const closing = tools.close('going').then(() => 'closed');
  assert.equal(await Promise.race([closing, new Promise((r) => setImmediate(r, 'open'))]), 'open');
  unwound.open();
  assert.equal(await closing, 'closed');
  const { error } = await calling;
  assert.deepEqual([error.code, error.message], ['CANCELLED', 'going']);
  assert.equal((await client.call('hang')).error.code, 'NOT_INITIALIZED');
  done();
});

test('an app of others’ making has tools, too', async () => {
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
  const { client, heard, done } = await bothEnds({}, { definition: abp });
  // Its list is known when it has answered.
  if (!(await client.listCapabilities()).length) await heard.opened;
  assert.equal((await client.call('add', { a: 1, b: 2 })).data, 3);
  done();
});

test('a question in the midst of a tool’s call is refused: MCP Apps has no way to ask a host', async () => {
  const { client, done } = await bothEnds({
    ask: (_params, { elicit }) => elicit({ method: 'elicitation/confirm', params: {} }),
  });
  const { success, error } = await client.call('ask');
  assert.deepEqual([success, error.code], [false, 'NOT_SUPPORTED']);
  assert.equal(
    error.message,
    'The agent does not support elicitation: ask the user in the app itself',
  );
  done();
});

/** What a page would have that is embedded by `embedder`. */
function embedded(t, { origin, ancestorOrigins }) {
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
    addEventListener: (_type, listener) => listeners.add(listener),
    removeEventListener: (_type, listener) => listeners.delete(listener),
  };
  const before = Object.keys(globals).map((name) => [
    name,
    Object.getOwnPropertyDescriptor(globalThis, name),
  ]);
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, configurable: true });
  }
  t.after(() => {
    for (const [name, descriptor] of before) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else delete globalThis[name];
    }
  });
  const transport = new EmbedderTransport(embedder);
  const heard = [];
  transport.onMessage = (message) => heard.push(message);
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
  return { transport, posted, heard, hear, listeners };
}

test('a view posts to the exact origin of the page around it, as soon as that is known', (t) => {
  const known = [
    { origin: 'https://a.example' },
    { ancestorOrigins: ['https://a.example', 'https://other.example'] },
  ];
  for (const place of known) {
    const { transport, posted } = embedded(t, place);
    transport.post(1);
    assert.deepEqual(posted, [[1, 'https://a.example']]);
  }
  const { transport, posted, heard, hear, listeners } = embedded(t, {});
  transport.post('hello');
  hear('forged', { source: {} });
  hear('forged', { source: null });
  hear('forged', { isTrusted: false });
  transport.post('still not known');
  hear('first');
  transport.post('secret');
  hear('forged', { origin: 'https://b.example' });
  transport.close();
  assert.deepEqual(
    posted.map(([, target]) => target),
    ['*', '*', 'https://a.example'],
  );
  assert.deepEqual([heard, listeners.size], [['first'], 0]);
});

test('an opaque origin has no name to post to', (t) => {
  const { transport, posted, heard, hear } = embedded(t, { ancestorOrigins: ['null'] });
  transport.post(1);
  hear('first', { origin: 'null' });
  hear('forged');
  assert.deepEqual([posted, heard], [[[1, '*']], ['first']]);
  transport.close();
});

test('a view that finds no host says so, and its app is there for others all the same', async (t) => {
  const { posted, hear, transport } = embedded(t, {});
  transport.close();
  const { port1, port2 } = new MessageChannel();
  const capabilities = { echo: (params) => params };
  const app = expose(
    { app: { id: 'x.y', name: 'X', version: '1' }, capabilities },
    { port: port2 },
  );
  const viewing = createView({
    app: { name: 'X', version: '1' },
    tools: toolsOf(app),
    timeout: 50,
  });
  // What other pages say is no answer.
  hear({ type: 'initialize', id: 1, payload: {} });
  await assert.rejects(viewing, {
    code: 'TIMEOUT',
    retryable: true,
    message: 'No MCP Apps host answered within 50 ms: the embedding page may not be one',
  });
  const [asked] = posted.map(([message]) => message).filter(({ method }) => method);
  assert.equal(asked.method, 'ui/initialize');
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
  const [there, here] = linkedTransports();
  const { signal } = new AbortController();
  const [host, view] = await Promise.all([
    createHost(there, { host: agent, signal }),
    createView({ transport: here, app: { name: 'view', version: '1' } }),
  ]);
  assert.equal(followers.length, 1);
  assert.deepEqual(getEventListeners(followers[0], 'abort'), []);
  view.close();
  await host.close();
});
