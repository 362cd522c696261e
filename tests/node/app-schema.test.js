// What checks values by JSON Schema: the schemas that it refuses, the values that it takes, and what it says of the others.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkerFor } from '../../js/app/schema.js';

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
    ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
    ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'],
  ].map((name) => [{ [name]: '1' }, 'a number']),
  ...['properties', 'patternProperties', 'dependentSchemas', '$defs'].map((name) => [
    { [name]: [] },
    'an object of schemas',
  ]),
];

/** The same schema within others, so many levels deep. */
const nested = (schema, levels) => (levels ? { items: nested(schema, levels - 1) } : schema);

describe('a schema is refused', () => {
  for (const [schema, is] of FAULTS) {
    test(`where it has ${JSON.stringify(schema)}`, () => {
      const [name] = Object.keys(schema);
      const error = { name: 'TypeError', message: `#/${name} must be ${is}` };
      assert.throws(() => checkerFor(schema, 'params'), error);
    });
  }

  test('where one within it is none: by each keyword that has schemas', () => {
    const within = [
      ...['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains'].map((name) => [
        { [name]: 1 },
        name,
      ]),
      ...['allOf', 'anyOf', 'oneOf', 'prefixItems'].map((name) => [
        { [name]: [true, 1] },
        `${name}/1`,
      ]),
      ...['properties', 'patternProperties', 'dependentSchemas', '$defs'].map((name) => [
        { [name]: { a: {}, b: 1 } },
        `${name}/b`,
      ]),
    ];
    for (const [schema, path] of within) {
      const error = { message: `#/${path} must be an object` };
      assert.throws(() => checkerFor(schema, 'params'), error);
    }
  });

  test('that is no object', () => {
    for (const schema of [null, 'string', 1, []])
      assert.throws(() => checkerFor(schema, 'params'), { message: '# must be an object' });
  });

  test('that is nested deeper than 64 levels', () => {
    checkerFor(nested({}, 64), 'params');
    const message = /^#(\/items){65} is nested too deep$/;
    assert.throws(() => checkerFor(nested({}, 65), 'params'), { message });
    checkerFor(nested(true, 65), 'params');
  });
});

test('a schema may be a boolean', () => {
  assert.deepEqual(checkerFor(true, 'params')(1), { value: 1 });
  assert.match(checkerFor(false, 'params')(1).problem.message, /^params: /);
});

test('what the schema takes is the value itself', () => {
  const value = { a: 1 };
  assert.deepEqual(checkerFor({ type: 'object' }, 'params')(value), { value });
  assert.equal(checkerFor({ type: 'object' }, 'params')(value).value, value);
});

test('a problem says where the value is wrong and why, without the errors that only say that there are others', () => {
  const schema = {
    properties: { list: { items: { properties: { n: { type: 'number' } } } }, n: { minimum: 3 } },
  };
  const value = { list: [{ n: 1 }, { n: 'x' }], n: 2 };
  const { value: checked, problem } = checkerFor(schema, 'data')(value);
  assert.equal(checked, value);
  assert.deepEqual(
    problem.details.map(({ path, keyword }) => [path, keyword]),
    [
      ['data/list/1/n', 'type'],
      ['data/n', 'minimum'],
    ],
  );
  assert.equal(problem.message, `data/list/1/n: ${problem.details[0].message}`);
  assert.match(problem.details[0].message, /number/);
});

test('what JSON leaves out is left out', () => {
  const check = checkerFor(
    { properties: { a: { type: 'string' }, b: { type: 'number' } }, additionalProperties: false },
    'params',
  );
  const right = { a: undefined, b: 1 };
  assert.equal(check(right).value, right);
  assert.equal(check(right).problem, undefined);
  assert.match(check({ a: undefined, b: 'x' }).problem.message, /^params\/b: /);
});

test('what JSON cannot say matches no schema that looks at it', () => {
  const check = checkerFor({ properties: { a: { type: 'number' } } }, 'params');
  const value = { a: 1n };
  const problem = { message: 'params: does not match the schema', details: [] };
  assert.deepEqual(check(value), { value, problem });
  const cyclic = {};
  cyclic.a = cyclic;
  assert.match(check(cyclic).problem.message, /^params\/a: /);
});

test('what JSON would make a text of is none, beside bytes', () => {
  const check = checkerFor({ properties: { when: { type: 'string' } } }, 'params');
  assert.match(check({ when: new Date(0) }).problem.message, /^params\/when: /);
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

  test('match a schema of the form in which they are sent as text, and stay bytes', () => {
    for (const image of [bytes, bytes.buffer, { content: bytes, mimeType: 'image/png' }]) {
      const value = { image };
      const checked = checkerFor(sent, 'params')(value);
      assert.equal(checked.problem, undefined);
      assert.equal(checked.value, value);
    }
  });

  test('that match in neither form are wrong as they are', () => {
    const { problem } = checkerFor(
      { properties: { image: { type: 'number' } } },
      'params',
    )({
      image: bytes,
    });
    assert.deepEqual(
      problem.details.map(({ path }) => path),
      ['params/image'],
    );
  });
});

describe('lists that uniqueItems compares', () => {
  const unique = { type: 'array', uniqueItems: true };
  const numbers = (length) => Array.from({ length }, (_, i) => i);
  const tooLong = {
    path: 'params',
    keyword: 'uniqueItems',
    message: 'has lists that are too long to be compared for uniqueItems',
  };

  test('are compared if that takes 2^23 comparisons at most', () => {
    const check = checkerFor(unique, 'params');
    assert.equal(check(numbers(2895)).problem, undefined);
    const value = numbers(2896);
    assert.deepEqual(check(value), {
      value,
      problem: { message: `params: ${tooLong.message}`, details: [tooLong] },
    });
    const { problem } = check([1, 1]);
    assert.notEqual(problem.details[0].message, tooLong.message);
  });

  test('count together, and objects are no lists', () => {
    const check = checkerFor({ items: unique }, 'params');
    assert.ok(check([numbers(2500), numbers(2500)]).problem);
    const members = Object.fromEntries(Object.entries(numbers(3000)));
    assert.equal(
      checkerFor({ properties: { list: unique } }, 'params')(members).problem,
      undefined,
    );
  });

  test('may be longer where nothing compares them, and in what the app itself returns', () => {
    const long = numbers(3000);
    assert.equal(checkerFor({ type: 'array' }, 'params')(long).problem, undefined);
    assert.equal(checkerFor(unique, 'data')(long).problem, undefined);
  });
});
