// Schemas that follow Standard Schema, of each library that our documents name: they check what
// comes and goes, may change it, and are told to agents as JSON Schema.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import { expose, transfer } from '../../parts/main/index.js';
import { manifestOf } from '../../parts/discovery/discover.js';
import { openPair } from '../support/pair.js';

const APP = { id: 'test.app', name: 'Test', version: '1.0' };
let channel, told;
beforeEach(() => {
  channel = new MessageChannel();
  told = [];
  mock.method(console, 'error', (...words) => told.push(words));
});
afterEach(() => {
  channel.port1.close();
  channel.port2.close();
  mock.restoreAll();
});

/** The same schema in each library: a copy count with a default, a title, and bytes. */
const LIBRARIES = {
  zod: z.object({
    title: z.string(),
    copies: z.number().int().min(1).default(1),
    image: z.instanceof(ArrayBuffer).optional(),
  }),
  valibot: toStandardJsonSchema(
    v.object({
      title: v.string(),
      copies: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 1),
      image: v.optional(v.instance(ArrayBuffer)),
    }),
  ),
  arktype: type({ title: 'string', copies: 'number.integer >= 1 = 1', 'image?': 'ArrayBuffer' }),
};

for (const [vendor, schema] of Object.entries(LIBRARIES)) {
  describe(`a schema of ${vendor}`, () => {
    test('gives the handler what it makes of the params', async () => {
      const { client } = await openPair({
        x: { handler: (params) => params, inputSchema: schema },
      });
      assert.deepEqual(await client.invoke('x', { title: 'a' }), { title: 'a', copies: 1 });
      assert.deepEqual(told, []);
    });

    test('refuses params, and says where and why', async () => {
      const handler = mock.fn();
      const { client } = await openPair({ x: { handler, inputSchema: schema } });
      const { error } = await client.call('x', { title: 'a', copies: 'two' });
      assert.equal(error.code, 'INVALID_PARAMS');
      assert.match(error.message, /^params\/copies: .*number/);
      assert.deepEqual(
        error.details.map(({ path, keyword }) => [path, keyword]),
        [['params/copies', vendor]],
      );
      assert.equal(handler.mock.callCount(), 0);
    });

    test('checks results, and gives the caller what it makes of them', async () => {
      const { client } = await openPair({
        right: { handler: () => ({ title: 'a' }), outputSchema: schema },
        responds: {
          handler: () => ({ success: true, data: { title: 'a' } }),
          outputSchema: schema,
        },
        wrong: { handler: () => ({ title: 1 }), outputSchema: schema },
      });
      assert.deepEqual(await client.invoke('right'), { title: 'a', copies: 1 });
      assert.deepEqual(await client.invoke('responds'), { title: 'a', copies: 1 });
      const { error } = await client.call('wrong');
      assert.equal(error.code, 'OPERATION_FAILED');
      assert.match(error.message, /outputSchema: data\/title: /);
    });

    test('is told to agents, and in the manifest, as JSON Schema', async () => {
      const capability = { handler: () => 1, inputSchema: schema, outputSchema: schema };
      const { exposed: app, client } = await openPair({ x: capability });
      const { inputSchema, outputSchema } = await client.describeCapability('x');
      assert.deepEqual(inputSchema.required, ['title']);
      assert.equal(inputSchema.properties.title.type, 'string');
      assert.equal(inputSchema.properties.copies.minimum, 1);
      assert.deepEqual(inputSchema.properties.image, {});
      assert.ok(outputSchema.properties.title);
      const [listed] = (await app.manifest()).capabilities;
      assert.deepEqual(listed.inputSchema, inputSchema);
      const { capabilities } = manifestOf({ app: APP, capabilities: { x: capability } });
      assert.deepEqual(capabilities[0].inputSchema, inputSchema);
      assert.deepEqual(capabilities[0].outputSchema, outputSchema);
    });
  });
}

test('a schema that reads text as something else is told to agents as what they write', async () => {
  const inputSchema = z.object({ on: z.iso.datetime().transform((text) => new Date(text)) });
  const outputSchema = z.object({ year: z.number().transform(String) });
  const handler = ({ on }) => ({ year: on.getUTCFullYear() });
  const { client } = await openPair({ x: { handler, inputSchema, outputSchema } });
  assert.deepEqual(await client.invoke('x', { on: '2026-01-01T00:00:00Z' }), { year: '2026' });
  assert.equal((await client.describeCapability('x')).inputSchema.properties.on.type, 'string');
});

test('a schema may take its time', async () => {
  const inputSchema = z.string().refine(async (text) => Promise.resolve(text !== 'taken'), 'taken');
  const { client } = await openPair({ x: { handler: (name) => name, inputSchema } });
  assert.equal(await client.invoke('x', 'free'), 'free');
  assert.equal((await client.call('x', 'taken')).error.message, 'params: taken');
});

test('a schema that throws fails its call and no other', async () => {
  const refuse = () => {
    throw new Error('no dictionary');
  };
  const inputSchema = z.string().refine((text) => (text === 'bad' ? refuse() : true));
  const { client } = await openPair({ x: { handler: (name) => name, inputSchema } });
  const [bad, good] = await Promise.all([client.call('x', 'bad'), client.call('x', 'good')]);
  assert.equal(bad.error.code, 'OPERATION_FAILED');
  assert.equal(bad.error.message, 'no dictionary');
  assert.equal(good.data, 'good');
});

test('what a handler marks to be moved is moved, though its schema copies the object', async () => {
  const sent = [];
  const outputSchema = z.object({ pixels: z.instanceof(ArrayBuffer) });
  const make = () => {
    const pixels = new ArrayBuffer(8);
    sent.push(pixels);
    return transfer({ pixels }, [pixels]);
  };
  const { client } = await openPair({
    data: { handler: make, outputSchema },
    response: { handler: () => ({ success: true, data: make() }), outputSchema },
  });
  for (const name of ['data', 'response']) {
    assert.equal((await client.invoke(name)).pixels.byteLength, 8);
    assert.equal(sent.pop().byteLength, 0);
  }
});

describe('expose refuses a schema that', () => {
  const standard = { version: 1, vendor: 'other', validate: (value) => ({ value }) };
  const input = () => {
    throw new Error('recursion');
  };
  const WRONG = {
    'is not converted to JSON Schema': [
      v.object({}),
      /x cannot be described to agents: valibot .*docs\/errors.md#schemas/,
    ],
    'is not converted to JSON Schema, of any library': [
      { '~standard': standard },
      /other does not convert/,
    ],
    'cannot be said as JSON Schema': [
      { '~standard': { ...standard, jsonSchema: { input } } },
      /inputSchema of x cannot be described to agents: recursion/,
    ],
  };
  for (const [what, [inputSchema, message]] of Object.entries(WRONG)) {
    test(what, () => {
      const capabilities = { x: { handler: () => 1, inputSchema } };
      const wrong = { code: 'INVALID_PARAMS', message };
      assert.throws(() => expose({ app: APP, capabilities }, { port: channel.port1 }), wrong);
      assert.throws(() => manifestOf({ app: APP, capabilities }), wrong);
    });
  }
});
