// An app's WebMCP tools without a browser: what a `modelContext` is given, and what it hears of
// calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AbpError, connect, expose } from 'abp-bridge';
import { webmcp } from '../src/index.js';
import { useClock } from '../../../tests/support/clock.js';
import { fired, gate } from '../../rpc/tests/support/rpc.js';

const A = 'https://a.example';
const B = 'https://b.example';

/**
 * The lines of the console that match, once there are `count`: what warns is loaded with the first,
 * of whichever test.
 */
const warnings = (t, pattern, count = 1) =>
  new Promise((resolve) => {
    const lines = [];
    t.mock.method(console, 'warn', (line) => {
      if (pattern.test(line) && lines.push(line) === count) resolve(lines);
    });
  });

/** A `modelContext` that keeps what is registered. */
class Context {
  tools = new Map();
  /** @param {(tool: any, options: any) => void} [refuse] throws for what it does not take */
  constructor(refuse = () => {}) {
    this.refuse = refuse;
  }
  async registerTool(tool, { signal, exposedTo = [] }) {
    this.isAsked = true;
    this.refuse(tool, { exposedTo });
    this.tools.set(tool.name, { ...tool, exposedTo });
    signal.addEventListener('abort', () => this.tools.delete(tool.name));
  }
  get names() {
    return [...this.tools.keys()].sort();
  }
  execute(name, input = {}, options = undefined) {
    return this.tools.get(name).execute(input, options);
  }
  async calls(input) {
    const { success, data } = await this.execute('abp.calls', input);
    assert.equal(success, true);
    return data.calls;
  }
}

/**
 * An app whose page has this context, where it has registered its tools. It is closed with the
 * test.
 */
async function app(t, capabilities, { context = new Context(), exposedTo = [], limits = {} } = {}) {
  const { port1, port2 } = new MessageChannel();
  const exposed = expose(
    { app: { id: 'x.y', name: 'X', version: '1' }, capabilities },
    { port: port2, limits, webmcp: webmcp({ origins: exposedTo }) },
  );
  globalThis.document = /** @type {any} */ ({ modelContext: context });
  t.after(() => delete globalThis.document);
  t.after(() => exposed.close());
  while (!context.isAsked) await new Promise(setImmediate);
  return { context, exposed, port: port1 };
}

/** A capability that runs until it is cancelled, and notes what its signals said. */
function hanging() {
  const reasons = [];
  const started = gate();
  const again = gate();
  const hang = async (_params, { signal }) => {
    (started.isOpen ? again : started).open();
    started.isOpen = true;
    reasons.push((await fired(signal)).message);
    throw signal.reason;
  };
  return { hang, started, again, reasons };
}
const REASON = 'The agent cancelled the call (WebMCP)';

test('a cancel reaches the handler, of its own call only, and claims no more than happened', async (t) => {
  const { hang, started, again, reasons } = hanging();
  const { context } = await app(t, { hang });
  const [first, second] = [new AbortController(), new AbortController()];
  const one = context.execute('hang', {}, first);
  await started.opened;
  const two = context.execute('hang', {}, second);
  await again.opened;
  first.abort('of which nothing is told');
  const { success, cancelled, error } = await one;
  assert.deepEqual([success, cancelled, error.code], [false, true, 'CANCELLED']);
  assert.deepEqual(reasons, [REASON]);
  const states = (await context.calls()).map(({ state }) => state);
  assert.deepEqual(states, ['running', 'cancelled']);
  second.abort();
  assert.equal((await two).cancelled, true);
  assert.deepEqual(reasons, [REASON, REASON]);
});

test('a call that was cancelled before it began does not run', async (t) => {
  let ran = 0;
  const { context } = await app(t, { count: () => ++ran });
  const said = await context.execute('count', {}, { signal: AbortSignal.abort() });
  assert.deepEqual([said.cancelled, said.error.message, ran], [true, REASON, 0]);
  const [{ state }] = await context.calls();
  assert.equal(state, 'cancelled');
  // Browsers before 153 and polyfills give no signal.
  assert.equal((await context.execute('count', {})).data, 1);
  assert.equal((await context.execute('count', {}, {})).data, 2);
});

test('what became of a call is told as long as its app waits for it', async (t) => {
  const [started, aborted, released] = [gate(), gate(), gate()];
  const slow = async (_params, { signal }) => {
    started.open();
    await fired(signal);
    aborted.open();
    await released.opened;
    throw signal.reason;
  };
  const { context } = await app(t, { slow }, { limits: { grace: 100_000 } });
  const controller = new AbortController();
  const said = context.execute('slow', {}, controller);
  await started.opened;
  const clock = useClock(t);
  controller.abort();
  await aborted.opened;
  clock.advance(99_000);
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
  released.open();
  assert.equal((await said).metadata.outcome, 'stopped');
});

test('what had not returned when its caller was told is followed to its end', async (t) => {
  const [started, released] = [gate(), gate()];
  const deaf = async () => (started.open(), await released.opened);
  const { context } = await app(t, { deaf }, { limits: { grace: 20 } });
  const controller = new AbortController();
  const said = context.execute('deaf', {}, controller);
  await started.opened;
  controller.abort();
  assert.equal((await said).metadata.outcome, 'running');
  const [{ state, outcome }] = await context.calls();
  assert.deepEqual([state, outcome], ['cancelling', 'running']);
  released.open();
  let last;
  while ((last = (await context.calls())[0]).state === 'cancelling')
    await new Promise(setImmediate);
  assert.deepEqual([last.state, last.outcome], ['cancelled', 'finished']);
});

for (const [when, grace] of [
  ['soon', 100_000],
  ['after its caller was told', 20],
])
  test(`what a handler says of its work comes with its end: ${when}`, async (t) => {
    const [started, released, ends] = [gate(), gate(), gate()];
    const work = async (_params, { signal, report }) => {
      report('begun');
      started.open();
      await fired(signal);
      if (grace === 20) await released.opened;
      report('one of two');
      ends.open();
      throw signal.reason;
    };
    const { context } = await app(t, { work }, { limits: { grace } });
    const controller = new AbortController();
    const said = context.execute('work', {}, controller);
    await started.opened;
    controller.abort();
    if (grace === 20) assert.equal((await said).metadata.outcome, 'running');
    released.open();
    await ends.opened;
    for (let turns = 0; ; turns++) {
      const [{ state, outcome, report }] = await context.calls();
      // Asked at every moment, between messages and turns, too.
      if (state === 'cancelling' || state === 'running')
        await (turns % 20 === 19 && new Promise(setImmediate));
      else
        return assert.deepEqual([state, outcome, report], ['cancelled', 'stopped', 'one of two']);
    }
  });

test('what the app forgets is forgotten here, too', async (t) => {
  const { context } = await app(t, { count: () => 1 }, { limits: { remembered: 2 } });
  const ids = [];
  for (let i = 0; i < 4; i++) ids.push((await context.execute('count')).metadata.callId);
  const callIds = (await context.calls()).map(({ callId }) => callId);
  assert.deepEqual(callIds, ids.slice(2).reverse());
});

test('a call whose handler goes on after a cancel is cancelling, and then what it came to', async (t) => {
  const [started, aborted, released] = [gate(), gate(), gate()];
  const { context } = await app(t, {
    async deaf(_params, { signal, progress, callId }) {
      progress({ progress: 1, total: 4, stage: callId });
      started.open();
      await fired(signal);
      aborted.open();
      await released.opened;
    },
  });
  const controller = new AbortController();
  const said = context.execute('deaf', {}, controller);
  await started.opened;
  while (!(await context.calls())[0].progress) await new Promise(setImmediate);
  controller.abort();
  await aborted.opened;
  const [{ callId, state, progress }] = await context.calls();
  assert.equal(state, 'cancelling');
  // The call goes by the same name everywhere.
  assert.deepEqual(progress, { progress: 1, total: 4, percentage: 25, stage: callId });
  released.open();
  await said;
  assert.equal((await context.calls())[0].state, 'cancelled');
});

test('whatever a handler gives, a tool gives JSON', async (t) => {
  const bytes = { content: new Uint8Array([0, 127, 255]).buffer, mimeType: 'image/x' };
  const { context } = await app(t, {
    bytes: () => bytes,
    symbol: () => Symbol('s'),
    fail() {
      throw new AbpError('BUSY', 'try later', { details: { queue: 3n } });
    },
  });
  const content = { content: 'AH//', mimeType: 'image/x', encoding: 'base64', size: 3 };
  assert.deepEqual((await context.execute('bytes')).data, content);
  assert.equal((await context.execute('symbol')).error.code, 'OPERATION_FAILED');
  const { error } = await context.execute('fail');
  assert.deepEqual([error.code, error.details], ['BUSY', { queue: '3' }]);
});

test('a signal that fires after its call has ended changes nothing', async (t) => {
  const { context } = await app(t, { count: () => 1 });
  const controller = new AbortController();
  assert.equal((await context.execute('count', {}, controller)).success, true);
  controller.abort();
  const [{ state }] = await context.calls();
  assert.equal(state, 'completed');
});

test('an app is asked every second for what functions decide, until it is closed', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let isOpen = false;
  let isMet = false;
  let asked = 0;
  const { context, exposed } = await app(t, {
    always: () => {},
    never: { available: false, handler: () => {} },
    door: { available: () => (asked++, isOpen), handler: () => {} },
    met: {
      requirements: [{ type: 'state', description: 'a key', met: () => isMet }],
      handler: () => {},
    },
  });
  assert.deepEqual(context.names, ['abp.calls', 'always']);
  isOpen = true;
  t.mock.timers.tick(999);
  assert.deepEqual(context.names, ['abp.calls', 'always']);
  t.mock.timers.tick(1);
  assert.deepEqual(context.names, ['abp.calls', 'always', 'door']);
  isMet = true;
  isOpen = false;
  t.mock.timers.tick(1000);
  assert.deepEqual(context.names, ['abp.calls', 'always', 'met']);
  const before = asked;
  exposed.close();
  assert.deepEqual(context.names, []);
  t.mock.timers.tick(5000);
  assert.equal(asked, before);
});

test('a requirement alone, if a function decides it, is reason enough to ask', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let isMet = false;
  const requirements = [{ type: 'state', description: 'a key', met: () => isMet }];
  const { context } = await app(t, { met: { requirements, handler: () => {} } });
  isMet = true;
  t.mock.timers.tick(1000);
  assert.deepEqual(context.names, ['abp.calls', 'met']);
});

test('so is a capability’s own function', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let isOpen = false;
  const { context } = await app(t, { door: { available: () => isOpen, handler: () => {} } });
  isOpen = true;
  t.mock.timers.tick(1000);
  assert.deepEqual(context.names, ['abp.calls', 'door']);
});

test('a tool that has not changed is not registered again', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const context = new Context();
  const registered = t.mock.method(context, 'registerTool');
  await app(t, { door: { available: () => true, handler: () => {} } }, { context });
  t.mock.timers.tick(3000);
  assert.equal(registered.mock.callCount(), 2);
});

test('agents of other origins hear nothing of each other’s calls, nor of those of the page', async (t) => {
  const exposed = async (exposedTo) => {
    const { context } = await app(t, { count: () => 1 }, { exposedTo });
    return ['count', 'abp.calls'].map((name) => context.tools.get(name).exposedTo);
  };
  assert.deepEqual(await exposed([]), [[], []]);
  assert.deepEqual(await exposed([A]), [[A], []]);
  assert.deepEqual(await exposed([A, B]), [[A, B], []]);
});

test('what other agents call is not told, nor what a call was given or gave', async (t) => {
  const secret = 'a secret';
  const { context, port } = await app(t, {
    echo: (params) => params,
    fail() {
      throw new Error('broken');
    },
  });
  const client = await connect(port, { agent: { name: 'another', version: '1' } });
  await client.call('echo', { text: secret }, { callId: 'theirs' });
  assert.deepEqual(await context.calls(), []);
  const { metadata } = await context.execute('echo', { text: secret });
  await context.execute('fail', { text: secret });
  const calls = await context.calls();
  assert.deepEqual(
    calls.map((call) => [call.capability, call.state, typeof call.duration, call.error?.message]),
    [
      ['fail', 'failed', 'number', 'broken'],
      ['echo', 'completed', 'number', undefined],
    ],
  );
  assert.ok(!JSON.stringify(calls).includes(secret));
  const one = await context.calls({ callId: metadata.callId });
  assert.deepEqual(
    one.map(({ callId, capability }) => [callId, capability]),
    [[metadata.callId, 'echo']],
  );
  for (const callId of ['theirs', 'webmcp-9', 7, null]) {
    assert.deepEqual(await context.calls({ callId }), []);
  }
  client.close();
});

test('the last 64 calls are remembered, the latest first', async (t) => {
  const { context } = await app(t, { count: () => 1 });
  const ids = [];
  for (let i = 0; i < 66; i++) ids.push((await context.execute('count')).metadata.callId);
  const callIds = (await context.calls()).map(({ callId }) => callId);
  assert.deepEqual(callIds, ids.slice(2).reverse());
});

test('of the calls that run, the last 128 are told', async (t) => {
  const released = gate();
  const { context } = await app(t, { wait: () => released.opened });
  const running = Array.from({ length: 130 }, () => context.execute('wait'));
  const callIds = (await context.calls()).map(({ callId }) => callId);
  released.open();
  const ids = (await Promise.all(running)).map(({ metadata }) => metadata.callId);
  assert.deepEqual(callIds, ids.slice(2).reverse());
});

test('a polyfill that exposes nothing to others has the tools for its own origin', async (t) => {
  const context = new Context((_tool, { exposedTo }) => {
    if (exposedTo.length) throw new DOMException('no', 'NotSupportedError');
  });
  await app(t, { count: () => 1 }, { context, exposedTo: [A] });
  await new Promise(setImmediate);
  assert.deepEqual(context.tools.get('count').exposedTo, []);
});

test('a name that another library has is taken when it is free', async (t) => {
  t.mock.method(console, 'warn', () => {});
  let isTaken = true;
  let refused = 0;
  const events = new EventTarget();
  const context = Object.assign(
    new Context(({ name }) => {
      if (name === 'taken' && isTaken) {
        refused++;
        throw new DOMException('It is taken', 'InvalidStateError');
      }
    }),
    {
      addEventListener: events.addEventListener.bind(events),
      removeEventListener: events.removeEventListener.bind(events),
    },
  );
  const { exposed } = await app(t, { taken: () => 1, count: () => 1 }, { context });
  await new Promise(setImmediate);
  const change = async () => {
    events.dispatchEvent(new Event('toolchange'));
    await new Promise(setImmediate);
  };
  await change();
  assert.equal(refused, 2);
  assert.equal(context.names.includes('taken'), false);
  isTaken = false;
  await change();
  assert.equal((await context.execute('taken')).data, 1);
  const registered = t.mock.method(context, 'registerTool');
  await change();
  assert.equal(registered.mock.callCount(), 0);
  exposed.close();
  await change();
  assert.equal(registered.mock.callCount(), 0);
});

test('a tool whose schema the browser refuses is offered without it, and its calls are checked', async (t) => {
  const warned = warnings(t, /cannot offer the schema of odd: oneOf is not supported/);
  const context = new Context(({ inputSchema }) => {
    if (inputSchema.oneOf) throw new TypeError('oneOf is not supported');
  });
  const inputSchema = { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] };
  await app(t, { odd: { inputSchema, handler: () => 1 } }, { context, exposedTo: [A] });
  await new Promise(setImmediate);
  const { inputSchema: offered, exposedTo } = context.tools.get('odd');
  assert.deepEqual([offered, exposedTo], [{ type: 'object' }, [A]]);
  assert.equal((await context.execute('odd', { c: 1 })).error.code, 'INVALID_PARAMS');
  assert.equal((await context.execute('odd', { a: 1 })).data, 1);
  await warned;
});

test('a tool that is refused costs the others nothing, and the console is told once', async (t) => {
  const warned = warnings(t, /cannot offer/, 3);
  const context = new Context(({ name }) => {
    if (name === 'taken') throw new DOMException('It is taken', 'InvalidStateError');
  });
  const { exposed } = await app(
    t,
    { taken: () => 1, 'no name': () => 1, count: () => 1 },
    { context, exposedTo: ['http://plain.example'] },
  );
  await new Promise(setImmediate);
  exposed.set('later', () => 1);
  await new Promise(setImmediate);
  assert.deepEqual(context.names, ['abp.calls', 'count', 'later']);
  assert.deepEqual(context.tools.get('count').exposedTo, []);
  assert.deepEqual(
    (await warned).map((line) => line.match(/cannot offer (.*?):/)[1]),
    ['http', 'no name', 'taken'],
  );
});

test('a tool says in words what its capability says of itself', async (t) => {
  const handler = () => 1;
  const { context } = await app(t, {
    plain: { handler, description: 'Does it' },
    nameless: { handler },
    old: { handler, description: 'Did it', deprecated: true, alternatives: ['plain', 'nameless'] },
    older: { handler, deprecated: true, deprecationMessage: 'too slow', alternatives: [] },
    new: { handler, description: 'Will do it', experimental: true },
  });
  await new Promise(setImmediate);
  const words = (name) => context.tools.get(name).description;
  assert.equal(words('plain'), 'Does it');
  assert.equal(words('nameless'), 'nameless');
  assert.match(words('old'), /^Did it\s+Deprecated\.\s+Alternatives: plain, nameless\.$/);
  assert.match(words('older'), /^older\s+Deprecated: too slow\.?$/);
  assert.match(words('new'), /^Will do it\s+Experimental\.$/);
});

test('a tool that was refused is offered again when the tools of the page change, and no other is', async (t) => {
  const listeners = new Set();
  let offers = [];
  let isTaken = true;
  const context = new Context(({ name }) => {
    offers.push(name);
    if (isTaken && name === 'mine')
      throw new DOMException('There is one of that name', 'InvalidStateError');
  });
  context.addEventListener = (_type, listener) => listeners.add(listener);
  context.removeEventListener = (_type, listener) => listeners.delete(listener);
  t.mock.method(console, 'warn', () => {});
  await app(t, { mine: () => 1, other: () => 2 }, { context });
  await new Promise(setImmediate);
  assert.deepEqual(context.names.includes('mine'), false);
  offers = [];
  isTaken = false;
  const changed = async () => {
    for (const listener of listeners) listener();
    await new Promise(setImmediate);
  };
  await changed();
  assert.deepEqual(offers, ['mine']);
  assert.ok(context.names.includes('mine'));
  await changed();
  assert.deepEqual(offers, ['mine']);
});
