// What checks values by JSON Schema: the schemas that it refuses, the values that it takes, and
// what it says of the others.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { openPair } from '../support/pair.js';

// A schema that cannot be used is told there, too.
beforeEach(() => mock.method(console, 'error', () => {}));
afterEach(() => mock.restoreAll());

/**
 * What calls with these params are told, by schema: the response's error, or what the handler was
 * given.
 */
async function checked(schema, ...values) {
  let given;
  const handler = (params) => void (given = params);
  const { client } = await openPair({ x: { handler, inputSchema: schema } });
  const told = [];
  for (const value of values) {
    given = undefined;
    const { success, error } = await client.call('x', value);
    told.push(success ? { given } : error);
  }
  return told;
}
/** Of one value: what is wrong with it. */
const problem = async (schema, value) => (await checked(schema, value))[0];

/** Each keyword with a value that it cannot have, and the reason. */
const TYPES = 'one of null, boolean, object, array, number, integer, string, or a list of them';
const PATTERN = 'a regular expression, as text';
const FAULTS = [
  [{ type: 'text' }, TYPES],
  [{ type: ['string', 'text'] }, TYPES],
  [{ required: 'a' }, 'a list of names'],
  [{ required: ['a', 1] }, 'a list of names'],
  ...['enum', 'allOf', 'anyOf', 'oneOf', 'prefixItems'].map((name) => [{ [name]: {} }, 'a list']),
  [{ pattern: '(' }, PATTERN],
  [{ pattern: '\\-' }, PATTERN], // an expression without the flag u
  [{ pattern: 1 }, PATTERN],
  ...['format', '$ref', '$id'].map((name) => [{ [name]: 1 }, 'text']),
  ...[
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'multipleOf',
    'minLength',
    'maxLength',
    'minItems',
    'maxItems',
    'minProperties',
    'maxProperties',
  ].map((name) => [{ [name]: '1' }, 'a number']),
  ...['properties', 'patternProperties', 'dependentSchemas', '$defs'].map((name) => [
    { [name]: [] },
    'an object of schemas',
  ]),
];
/** Each keyword that has schemas, with one that is none, and where. */
const WITHIN = [
  ...['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains'].map((name) => [
    { [name]: 1 },
    name,
  ]),
  ...['allOf', 'anyOf', 'oneOf', 'prefixItems'].map((name) => [{ [name]: [true, 1] }, `${name}/1`]),
  ...['properties', 'patternProperties', 'dependentSchemas', '$defs'].map((name) => [
    { [name]: { a: {}, b: 1 } },
    `${name}/b`,
  ]),
];

test('a schema is refused by each keyword that has what it cannot have, or a schema that is none', async () => {
  const refused = [
    ...FAULTS.map(([schema, is]) => [schema, `#/${Object.keys(schema)[0]} must be ${is}`]),
    ...WITHIN.map(([schema, path]) => [schema, `#/${path} must be an object`]),
  ];
  const capabilities = refused.map(([inputSchema], i) => [
    `x${i}`,
    { handler: assert.fail, inputSchema },
  ]);
  const { client } = await openPair(Object.fromEntries(capabilities));
  for (const [i, [schema, message]] of refused.entries()) {
    const { error } = await client.call(`x${i}`);
    assert.equal(error.code, 'INTERNAL_ERROR');
    assert.ok(error.message.includes(message), `${JSON.stringify(schema)}: ${error.message}`);
  }
});

test('a schema that is nested too deep to be told to agents is refused at once', async () => {
  const nested = (levels) => (levels ? { items: nested(levels - 1) } : {});
  assert.equal((await problem(nested(50), 1)).given, 1);
  await assert.rejects(problem(nested(65), 1), { code: 'INVALID_PARAMS', message: /too deep/ });
});

test('a schema may be a boolean', async () => {
  assert.deepEqual(await problem(true, 1), { given: 1 });
  assert.match((await problem(false, 1)).message, /^params: /);
});

test('a problem says where the value is wrong and why, without the errors that only say that there are others', async () => {
  const schema = {
    properties: { list: { items: { properties: { n: { type: 'number' } } } }, n: { minimum: 3 } },
  };
  const { message, details } = await problem(schema, { list: [{ n: 1 }, { n: 'x' }], n: 2 });
  assert.deepEqual(
    details.map(({ path, keyword }) => [path, keyword]),
    [
      ['params/list/1/n', 'type'],
      ['params/n', 'minimum'],
    ],
  );
  assert.equal(message, `params/list/1/n: ${details[0].message}`);
  assert.match(details[0].message, /number/);
});

test('what JSON leaves out is left out', async () => {
  const schema = {
    properties: { a: { type: 'string' }, b: { type: 'number' } },
    additionalProperties: false,
  };
  const [right, wrong] = await checked(schema, { a: undefined, b: 1 }, { a: undefined, b: 'x' });
  assert.deepEqual(right, { given: { a: undefined, b: 1 } });
  assert.match(wrong.message, /^params\/b: /);
});

test('what JSON cannot say matches no schema that looks at it', async () => {
  const cyclic = {};
  cyclic.a = cyclic;
  const schema = { properties: { a: { type: 'number' } } };
  const [big, cycle] = await checked(schema, { a: 1n }, cyclic);
  assert.deepEqual([big.message, big.details], ['params: does not match the schema', []]);
  assert.equal(cycle.code, 'INVALID_PARAMS');
});

test('what JSON would make a text of is none, beside bytes', async () => {
  const { message } = await problem(
    { properties: { when: { type: 'string' } } },
    { when: new Date(0) },
  );
  assert.match(message, /^params\/when: /);
});

describe('bytes', () => {
  const bytes = new Uint8Array([1, 2, 3]);
  const sent = {
    properties: {
      image: {
        type: 'object',
        properties: { content: { type: 'string', pattern: '^AQID$' } },
        required: ['content', 'mimeType', 'encoding'],
      },
    },
  };

  test('match a schema of the form in which they are sent as text, and stay bytes', async () => {
    const images = [bytes, bytes.buffer, { content: bytes, mimeType: 'image/png' }];
    const told = await checked(sent, ...images.map((image) => ({ image })));
    assert.deepEqual(
      told,
      images.map((image) => ({ given: { image } })),
    );
  });

  test('that match in neither form are wrong as they are', async () => {
    const schema = { properties: { image: { type: 'number' } } };
    const { details } = await problem(schema, { image: bytes });
    assert.deepEqual(
      details.map(({ path }) => path),
      ['params/image'],
    );
  });
});

describe('lists that uniqueItems compares', () => {
  const unique = { type: 'array', uniqueItems: true };
  const numbers = (length) => Array.from({ length }, (_, i) => i);
  const message = 'has lists that are too long to be compared for uniqueItems';

  test('are compared if that takes 2^23 comparisons at most', async () => {
    const [most, more, same] = await checked(unique, numbers(2895), numbers(2896), [1, 1]);
    assert.ok(most.given);
    assert.equal(more.message, `params: ${message}`);
    assert.deepEqual(more.details, [{ path: 'params', keyword: 'uniqueItems', message }]);
    assert.notEqual(same.details[0].message, message);
  });

  test('count together, and objects are no lists', async () => {
    const lists = [numbers(2500), numbers(2500)];
    assert.equal((await problem({ items: unique }, lists)).details[0].message, message);
    const list = Object.fromEntries(Object.entries(numbers(3000)));
    assert.ok((await problem({ properties: { list: unique } }, list)).given);
  });

  test('may be longer where nothing compares them, and in what the app itself returns', async () => {
    assert.ok((await problem({ type: 'array' }, numbers(3000))).given);
    const { client } = await openPair({
      x: { handler: () => numbers(3000), outputSchema: unique },
    });
    assert.equal((await client.call('x')).data.length, 3000);
  });
});
