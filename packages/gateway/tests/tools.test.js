// The list of tools: names, descriptions and schemas that every client takes, within bounds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Gateway } from '../src/gateway.js';
import { cleanText } from '../src/texts.js';
import { ToolNames, prefixOf, toolOf } from '../src/tools.js';

test('names of tools are safe, at most 64 long, unique, and do not depend on the order', () => {
  const capabilities = [
    'a.b',
    'a-b',
    'a_b',
    `${'n'.repeat(200)}1`,
    `${'n'.repeat(200)}2`,
    'é',
    'call_wait',
  ];
  const named = (list) => {
    const target = { prefix: '' };
    const names = new ToolNames(['call_wait']);
    names.add(target, list);
    return Object.fromEntries(capabilities.map((name) => [name, names.of(target, name)]));
  };
  const names = named(capabilities);
  assert.deepEqual(named([...capabilities].reverse()), names);
  assert.equal(new Set(Object.values(names)).size, capabilities.length);
  for (const name of Object.values(names)) assert.match(name, /^[A-Za-z0-9_]{1,64}$/);
  assert.equal(names.a_b, 'a_b');
  assert.notEqual(names.call_wait, 'call_wait');
});

test('two apps never share the name of a tool, whatever their prefixes', () => {
  const [one, two] = [{ prefix: prefixOf('a') }, { prefix: prefixOf('a_b') }];
  const names = new ToolNames();
  names.add(one, ['b_c']);
  names.add(two, ['c']);
  assert.notEqual(names.of(one, 'b_c'), names.of(two, 'c'));
  assert.deepEqual(names.meaningOf(names.of(two, 'c')), { target: two, capability: 'c' });
});

test('names of tools that are gone are forgotten beyond a limit', () => {
  const target = { prefix: '' };
  const names = new ToolNames(['call_wait']);
  for (let round = 0; round < 50; round++) {
    names.add(target, ['stays', ...Array.from({ length: 200 }, (_, i) => `t${round}.${i}`)]);
  }
  const known = Array.from({ length: 50 * 200 }, (_, at) => `t${Math.floor(at / 200)}_${at % 200}`);
  assert.equal(known.filter((name) => names.meaningOf(name)).length, 1023);
  assert.deepEqual(names.meaningOf('stays'), { target, capability: 'stays' });
  assert.equal(names.meaningOf('t0_0'), undefined);
});

test('the list of tools fits a message, and a long list of one app does not shorten another', async () => {
  const appWith = (host, count, length) => ({
    url: new URL(`ws://${host}/`),
    watchers: new Set(),
    listCapabilities: async () =>
      Array.from({ length: count }, (_, at) => ({
        name: `c${at}`,
        inputSchema: { type: 'object', description: 'x'.repeat(length) },
      })),
  });
  const logged = [];
  const gateway = new Gateway(
    [
      { app: appWith('large', 250, 60_000), prefix: 'large_' },
      { app: appWith('many', 300, 0), prefix: 'many_' },
    ],
    { patience: 1000, log: (line) => logged.push(line), name: 'test', version: '1' },
  );
  const tools = await gateway.listTools();
  assert.ok(JSON.stringify(tools).length <= 8 << 20);
  const counts = ['large_', 'many_'].map(
    (prefix) => tools.filter(({ name }) => name.startsWith(prefix)).length,
  );
  assert.ok(counts[0] > 50 && counts[0] < 250, `${counts}`);
  assert.equal(counts[1], 256);
  assert.deepEqual(logged.sort(), [
    `ws://large/ has 250 capabilities; ${counts[0]} are shown`,
    'ws://many/ has 300 capabilities; 256 are shown',
  ]);
});

test('a description is bounded, without control characters and characters that hide text', () => {
  const { description, title } = toolOf(
    { name: 'x', description: `\u001b[31mred\u202e\u{e0041}${'y'.repeat(1 << 20)}` },
    'x',
  );
  assert.equal(title, 'x');
  assert.ok(
    description.length <= 4096 && description.startsWith('[31mredyyy') && description.endsWith('…'),
  );
  assert.equal(cleanText({ toString: () => 'forged' }, 10), '');
});

test('a schema that is no object, or too long, is replaced by one that takes any object', () => {
  const schemaOf = (inputSchema) => toolOf({ name: 'x', inputSchema }, 'x').inputSchema;
  assert.deepEqual(schemaOf({ properties: {} }), { properties: {}, type: 'object' });
  for (const schema of [
    undefined,
    5,
    [],
    { type: 'string' },
    { description: 'y'.repeat(70_000) },
  ]) {
    assert.deepEqual(schemaOf(schema), { type: 'object' });
  }
});

test('the schema of a tool names no header that clients would have to send', () => {
  const inputSchema = { properties: { a: { type: 'string', 'x-mcp-header': 'Cookie' } } };
  const tool = toolOf({ name: 'x', inputSchema }, 'x');
  assert.deepEqual(tool.inputSchema.properties, { a: { type: 'string' } });
});

test('an app that could not be reached is announced when it is up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let up = false;
  const app = {
    url: new URL('ws://app/'),
    watchers: new Set(),
    listCapabilities: async () => {
      if (!up) throw new Error('down');
      return [{ name: 'x' }];
    },
  };
  const options = { patience: 1000, log() {}, name: 'test', version: '1' };
  const gateway = new Gateway([{ app, prefix: '' }], options);
  await assert.rejects(gateway.listTools(), /down/);
  const announced = new Promise((resolve) => gateway.listeners.add(resolve));
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  for (const ms of [5000, 10_000]) {
    t.mock.timers.tick(ms);
    await turn();
  }
  up = true;
  t.mock.timers.tick(20_000);
  await announced;
  assert.deepEqual(
    (await gateway.listTools()).map(({ name }) => name),
    ['x'],
  );
});
