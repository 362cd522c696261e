// What it costs an app to check params that an agent has made to be costly: they are refused before
// they are checked.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';

const APP = { id: 'test.app', name: 'Test', version: '1.0' };
/** Any tree of lists and texts. */
const TREE = {
  $ref: '#/$defs/tree',
  $defs: {
    tree: { anyOf: [{ type: 'string' }, { type: 'array', items: { $ref: '#/$defs/tree' } }] },
  },
};
async function callWith(inputSchema, params) {
  const { port1, port2 } = new MessageChannel();
  const handler = mock.fn(() => 'taken');
  const app = expose({ app: APP, capabilities: { x: { handler, inputSchema } } }, { port: port1 });
  const client = await connect(port2, { agent: { name: 'test', version: '1.0' } });
  const response = await client.call('x', params);
  app.close();
  port2.close();
  return { ...response, handled: handler.mock.callCount() };
}

/**
 * A list that stands twice in a list, which stands twice in a list, … A port keeps it as small as
 * it is.
 */
function shared(levels) {
  let value = ['x', 'y'];
  for (let i = 0; i < levels; i++) value = [value, value];
  return value;
}

test('params that are small to send and millions of values to check are refused', async () => {
  for (const levels of [19, 40]) {
    const { error, handled } = await callWith(TREE, shared(levels));
    assert.equal(error.code, 'INVALID_PARAMS');
    assert.match(error.message, /^params: The value has too many values: the limit is \d+$/);
    assert.equal(handled, 0);
  }
  assert.equal((await callWith(TREE, shared(10))).data, 'taken');
});

test("they are refused before a library's schema sees them", async () => {
  const validate = mock.fn((value) => ({ value }));
  const jsonSchema = { input: () => ({}), output: () => ({}) };
  const schema = { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } };
  assert.equal((await callWith(schema, shared(40))).error.code, 'INVALID_PARAMS');
  assert.equal(validate.mock.callCount(), 0);
  assert.equal((await callWith(schema, shared(1))).data, 'taken');
});

test('lists that uniqueItems would compare for seconds are refused; shorter ones are compared', async () => {
  const schema = {
    properties: { lists: { type: 'array', items: { type: 'array', uniqueItems: true } } },
  };
  const numbers = (length) => Array.from({ length }, (_, i) => i);
  for (const lists of [
    [numbers(13_000)],
    new Array(40).fill(numbers(1000)),
    [shared(12), shared(12)],
  ]) {
    const { error } = await callWith(schema, { lists });
    assert.equal(error?.code, 'INVALID_PARAMS');
    assert.match(error.message, /too long to be compared for uniqueItems|Duplicate items/);
  }
  assert.equal((await callWith(schema, { lists: [numbers(2000)] })).data, 'taken');
  const { error } = await callWith(schema, { lists: [[{ a: 1 }, { a: 1 }]] });
  assert.match(error.message, /Duplicate items/);
});

test('an answer that names mistakes is not many times as long as its call', async () => {
  const wrong = Array.from({ length: 20_000 }, () => 'x');
  const { error } = await callWith({ type: 'array', items: { type: 'number' } }, wrong);
  assert.equal(error.code, 'INVALID_PARAMS');
  assert.equal(error.details.length, 20);
  const name = 'n'.repeat(48_000);
  const named = await callWith({ additionalProperties: false }, { [name]: 1 });
  assert.ok(JSON.stringify(named.error).length < 5000);
});

test('params that are nested too deep to be checked are refused as such', async () => {
  const deep = (levels) => {
    let value = 'x';
    for (let i = 0; i < levels; i++) value = [value];
    return value;
  };
  assert.equal((await callWith(TREE, deep(100))).data, 'taken');
  const { error } = await callWith(TREE, deep(990));
  assert.equal(error.code, 'INVALID_PARAMS');
  assert.match(error.message, /too many levels/);
});
