// What an app can do: how it is registered, what agents are told of it and keep, what is refused
// and why, and how params and results are checked.
import assert from 'node:assert/strict';
import { register } from 'node:module';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { connect, transfer } from '../../parts/main/index.js';
import { AGENT, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const handler = () => 'ran';
beforeEach(() => mock.method(console, 'error', () => {}));
afterEach(() => mock.restoreAll());

// Before anything has loaded what explains refusals.
test('refusals wait for their explanation, 256 at most, and are sent without it if it does not load', async () => {
  const offline = new Uint8Array(new SharedArrayBuffer(1)).fill(1);
  let arrive;
  globalThis.arriving = new Promise((resolve) => (arrive = resolve));
  const hooks = `
    let offline;
    export const initialize = (data) => (offline = data);
    export function resolve(name, context, next) {
      if (offline[0] && name.includes('mistakes/index')) throw new Error('offline');
      return next(name, context);
    }
    export async function load(url, context, next) {
      const loaded = await next(url, context);
      if (!url.includes('mistakes/index')) return loaded;
      return { ...loaded, source: 'await globalThis.arriving;' + loaded.source };
    }`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: offline });
  const { client } = await openPair({ 'text.echo': handler });
  const GUESS = 'Did you mean text.echo?';
  for (const expected of [0, 256]) {
    offline[0] = expected ? 0 : 1;
    const calls = Array.from({ length: 257 }, () => client.call('text.ehco'));
    // By the time that this is answered, each of them has been, or waits for what explains it.
    await client.call('text.echo');
    if (expected) arrive();
    const errors = (await Promise.all(calls)).map(({ error }) => error);
    assert.equal(errors.filter(({ message }) => message.includes(GUESS)).length, expected);
    for (const { code } of errors) assert.equal(code, 'UNKNOWN_CAPABILITY');
  }
  delete globalThis.arriving;
  // Once it is loaded it does not matter how many there are, as long as they come one after the
  // other.
  for (let i = 0; i < 300; i++)
    assert.ok((await client.call('text.ehco')).error.message.includes(GUESS));
  assert.deepEqual((await client.call('text.ehco')).error.alternatives, ['text.echo']);
});

describe('an app’s capabilities', () => {
  test('each have a handler', async () => {
    for (const wrong of [{}, { handler: 'x' }, null])
      await assert.rejects(openPair({ x: wrong }), {
        name: 'TypeError',
        message: /^capability x needs/,
      });
    for (const wrong of [null, 'x', []])
      await assert.rejects(openPair(wrong), { code: 'INVALID_PARAMS' });
  });

  test('are added, replaced and removed, and agents know it', async () => {
    const { client, exposed } = await openPair({ x: handler });
    const known = async () => {
      await client.call('x'); // what was told before has come
      const all = await client.listCapabilities();
      return all.map(({ name, description }) => [name, description]);
    };
    exposed.set('y', handler);
    exposed.set('x', { handler: () => 'new', description: 'new' });
    assert.deepEqual(await known(), [
      ['x', 'new'],
      ['y', undefined],
    ]);
    assert.equal(await client.invoke('x'), 'new');
    for (let i = 0; i < 2; i++) exposed.delete('x');
    assert.deepEqual(await known(), [['y', undefined]]);
    assert.equal((await client.call('x')).error.code, 'UNKNOWN_CAPABILITY');
  });

  test('are shown with what is published of them, and whether they may run twice', async () => {
    const shown = { description: 'does', deprecated: false, features: { a: true } };
    const { client } = await openPair({
      x: { handler, ...shown, secret: 1 },
      reads: { handler, readOnly: true, annotations: { title: 'Reads' } },
      again: { handler, idempotent: true },
    });
    const rest = { available: true, requirements: [], features: {} };
    assert.deepEqual(await client.listCapabilities(), [
      { name: 'x', ...rest, ...shown },
      { name: 'reads', ...rest, annotations: { title: 'Reads', readOnlyHint: true } },
      { name: 'again', ...rest, annotations: { idempotentHint: true } },
    ]);
    assert.equal(await client.describeCapability('y'), null);
  });

  const met = (value) => ({ type: 'state', description: 'x', met: value });
  for (const [what, more, code] of [
    ['nothing', {}],
    ['a function that says true', { available: () => true }],
    ['false', { available: false }, 'CAPABILITY_UNAVAILABLE'],
    ['a function that says more', { available: () => 'yes' }, 'CAPABILITY_UNAVAILABLE'],
    ['a function that throws', { available: assert.fail }, 'CAPABILITY_UNAVAILABLE'],
    ['what is met', { requirements: [met(true), met(() => true)] }],
    ['one that is not', { requirements: [met(true), met(false)] }, 'REQUIREMENT_NOT_MET'],
    [
      'a requirement that is a function',
      { requirements: [met(() => false)] },
      'REQUIREMENT_NOT_MET',
    ],
  ])
    test(`that ${what} decides about: ${code ?? 'available'}`, async () => {
      const { client } = await openPair({ x: { handler, ...more } });
      const { available, requirements } = await client.describeCapability('x');
      assert.equal(available, code === undefined);
      for (const requirement of requirements) assert.equal(typeof requirement.met, 'boolean');
      const { data, error } = await client.call('x');
      assert.deepEqual([data, error?.code], [code ? undefined : 'ran', code]);
    });
});

test('a refusal is explained by what is missing', async () => {
  const requirements = [
    { type: 'state', description: 'a file', met: false, resolution: 'open one' },
    { type: 'state', description: 'a key', met: () => false },
    { type: 'state', description: 'light', met: true },
  ];
  const { client } = await openPair({
    locked: { handler, requirements },
    gone: { handler, available: false, alternatives: ['locked'], requirements },
  });
  const locked = (await client.call('locked')).error;
  assert.match(locked.message, /: a file \(open one\), a key$/);
  assert.deepEqual(
    locked.details.requirements.map(({ description, met }) => [description, met]),
    [
      ['a file', false],
      ['a key', false],
    ],
  );
  const gone = (await client.call('gone')).error;
  assert.match(gone.message, /: gone, a file \(open one\), a key$/);
  assert.deepEqual(gone.alternatives, ['locked']);
  const long = (await client.call('n'.repeat(201))).error;
  assert.match(long.message, /: n{200}$/);
});

/** An agent of an app that a test plays: what it says of its capabilities, first and later. */
async function agentOf(capabilities, options) {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port1);
  closeAfter(() => port1.close());
  const connecting = connect(port2, { agent: AGENT, ...options });
  const { id } = await raw.next();
  const features = { notifications: true, dynamicCapabilities: true };
  raw.send('initialize-result', id, { sessionId: 's', features, capabilities });
  const client = await connecting;
  closeAfter(() => client.close());
  return { client, raw };
}

describe('an agent keeps of an app’s capabilities', () => {
  const named = async (client) => (await client.listCapabilities()).map(({ name }) => name);

  test('those that have a name, and what is said of each last', async () => {
    const longest = 'x'.repeat(256);
    const { client } = await agentOf([
      { name: 'a', description: 'old' },
      { name: longest },
      { name: `${longest}x` },
      { name: 7 },
      null,
      'b',
      { name: 'a', description: 'new' },
    ]);
    assert.deepEqual(await named(client), ['a', longest]);
    assert.deepEqual(await client.describeCapability('a'), { name: 'a', description: 'new' });
    assert.equal(await client.describeCapability('b'), null);
    assert.deepEqual(await named((await agentOf({ 0: { name: 'c' }, length: 1 })).client), []);
  });

  test('what has changed, and tells its program', async () => {
    const told = [];
    let tell;
    const { client, raw } = await agentOf(
      [
        { name: 'stays', available: false },
        { name: 'goes', available: true },
      ],
      { onCapabilitiesChanged: (changes) => (told.push(changes), tell()) },
    );
    const event = 'notifications/capabilities/list_changed';
    const changes = {
      added: ['comes', 'stays', 7],
      removed: ['goes', 'x'.repeat(257)],
      changed: ['stays', null],
      capabilities: [{ name: 'told', description: 'of it' }],
    };
    for (const data of [changes, 'nothing']) {
      const isTold = new Promise((resolve) => (tell = resolve));
      raw.send('notification', undefined, { event, data });
      await isTold;
    }
    assert.deepEqual(told, [
      { added: ['comes', 'stays'], removed: ['goes'], changed: ['stays'] },
      { added: [], removed: [], changed: [] },
    ]);
    assert.deepEqual(await client.listCapabilities(), [
      { name: 'stays', available: false },
      { name: 'comes', available: true },
      { name: 'told', description: 'of it' },
    ]);
  });

  test('4,096 and no more, of which each may be told anew', async () => {
    let tell;
    const { client, raw } = await agentOf(
      Array.from({ length: 4095 }, (_, i) => ({ name: `${i}` })),
      { limits: { maxControlLength: 2 ** 20 }, onCapabilitiesChanged: () => tell() },
    );
    const isTold = new Promise((resolve) => (tell = resolve));
    raw.send('notification', undefined, {
      event: 'notifications/capabilities/list_changed',
      data: {
        added: ['4095', '4096'],
        capabilities: [{ name: 'more' }, { name: '7', description: 'new' }],
      },
    });
    await isTold;
    assert.equal((await client.listCapabilities()).length, 4096);
    const of = (name) => client.describeCapability(name);
    assert.deepEqual([await of('4096'), await of('more')], [null, null]);
    assert.deepEqual([(await of('4095')).available, (await of('7')).description], [true, 'new']);
  });
});

describe('a capability is supported', () => {
  const fulfilled = { description: 'a key', met: true };
  const unmet = { description: 'a printer', met: false };
  const SUPPORTED = { supported: true, available: true };
  const NOT_NOW = { supported: true, available: false };
  const lacking = [fulfilled, unmet, { ...unmet, description: 'paper' }];
  const CASES = {
    'and available, if nothing says otherwise': [{}, SUPPORTED],
    'but not available, if it says so': [{ available: false }, NOT_NOW],
    'and available, if it says that oddly': [{ available: 0 }, SUPPORTED],
    'and available, if its requirements are met': [
      { requirements: [fulfilled] },
      { ...SUPPORTED, requirements: [fulfilled] },
    ],
    'but not available, for the first requirement that is not met': [
      { requirements: lacking },
      { ...NOT_NOW, reason: 'a printer', requirements: lacking },
    ],
    'but not available, for a requirement that says nothing of itself': [
      { requirements: [{ met: false }] },
      { ...NOT_NOW, reason: 'A requirement is not met', requirements: [{ met: false }] },
    ],
    'with its features and alternatives': [
      { features: { pdf: true }, alternatives: ['y'] },
      { ...SUPPORTED, features: { pdf: true }, alternatives: ['y'] },
    ],
    'whatever it gives as its requirements': [
      { requirements: 'many' },
      { ...SUPPORTED, requirements: 'many' },
    ],
  };
  for (const [what, [capability, expected]] of Object.entries(CASES))
    test(what, async () => {
      const { client } = await agentOf([{ name: 'x', ...capability }]);
      assert.deepEqual(await client.supports('x'), expected);
    });

  test('not, if it is unknown', async () => {
    const { client } = await agentOf([]);
    const reason = 'Unknown capability';
    assert.deepEqual(await client.supports('x'), { supported: false, available: false, reason });
  });

  test('by its first 64 requirements', async () => {
    const many = Array(64).fill(fulfilled);
    const { client } = await agentOf([
      { name: 'beyond', requirements: [...many, unmet] },
      { name: 'within', requirements: [...many.slice(1), unmet] },
    ]);
    assert.equal((await client.supports('beyond')).available, true);
    assert.equal((await client.supports('within')).available, false);
  });
});

describe('a schema', () => {
  const number = { type: 'number' };
  const echo = (params) => params;

  test('of params alone, of results alone, or that takes everything, checks no more than that', async () => {
    const given = mock.fn(() => 'ran');
    const { client } = await openPair({
      any: { handler: given, inputSchema: true, outputSchema: true },
      params: {
        handler: ({ n }) => n,
        inputSchema: { properties: { n: number } },
        outputSchema: true,
      },
      result: { handler: echo, inputSchema: true, outputSchema: number },
    });
    assert.equal(await client.invoke('any', 'params'), 'ran');
    assert.equal(given.mock.calls[0].arguments.length, 2);
    assert.equal(await client.invoke('params', { n: 1 }), 1);
    assert.equal((await client.call('params', { n: 'x' })).error.code, 'INVALID_PARAMS');
    assert.equal(await client.invoke('result', 1), 1);
    const { error } = await client.call('result', 'x');
    assert.match(error.message, /^The result does not match the outputSchema: data: /);
  });

  test('of results that makes something else of them keeps what is to be moved, and what was said', async () => {
    const jsonSchema = { input: () => ({}), output: () => ({}) };
    const validate = ({ n, bytes }) => ({ value: { n: n + 1, bytes } });
    const outputSchema = { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } };
    const bytes = new ArrayBuffer(8);
    const { client } = await openPair({
      moves: { handler: () => transfer({ n: 1, bytes }, [bytes]), outputSchema },
      responds: {
        handler: () => ({ success: true, data: { n: 1 }, metadata: { cached: true } }),
        outputSchema,
      },
    });
    const moved = await client.invoke('moves');
    assert.deepEqual([moved.n, moved.bytes.byteLength, bytes.byteLength], [2, 8, 0]);
    const { data, metadata } = await client.call('responds');
    assert.deepEqual([data.n, metadata.cached], [2, true]);
  });

  test('of results, of a handler that streams, checks what it returns, if that is anything, and no chunk', async () => {
    const { client } = await openPair({
      x: {
        handler: async function* stream({ data }) {
          yield 'a chunk';
          return data;
        },
        outputSchema: number,
      },
    });
    const read = async (data) => {
      const stream = client.stream('x', { data });
      assert.deepEqual(await stream.next(), { value: 'a chunk', done: false });
      return stream.next();
    };
    assert.deepEqual(await read(1), { value: 1, done: true });
    assert.deepEqual(await read(undefined), { value: undefined, done: true });
    await assert.rejects(
      read('x'),
      /^AbpError: The result does not match the outputSchema: data: /,
    );
  });
});
