// The capabilities of an app: what agents are shown of them, which calls are refused and why, and how params and results are
// checked.
import assert from 'node:assert/strict';
import { register } from 'node:module';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { Registry } from '../../js/app/registry.js';
import * as abp from '../../js/core/abp-boundary.js';
import { markedTransfer, transfer } from '../../js/common/transfer.js';

const handler = () => 'ran';
let told;
beforeEach(() => {
  told = [];
  mock.method(console, 'error', (...words) => told.push(words.join(' ')));
});
afterEach(() => mock.restoreAll());

/** A call that is not cancelled. */
const call = {
  beginAfter: (needed, begin) => needed.then(begin),
  invoke: (handler, ...given) => handler(...given),
};
/** Calls the one capability of an app. */
const run = (capability, params = {}) =>
  new Registry({ x: capability }).run({ name: 'x', params }, {}, call);
/** A Standard Schema that checks by this function. */
const schemaOf = (validate) => ({
  '~standard': {
    version: 1,
    vendor: 'test',
    validate,
    jsonSchema: { input: () => ({}), output: () => ({}) },
  },
});

// Before anything has loaded what explains refusals.
test('refusals wait for their explanation, 256 at most, and are sent without it if it does not load', async () => {
  const offline = new Uint8Array(new SharedArrayBuffer(1)).fill(1);
  const hooks = `
    let offline;
    export const initialize = (data) => (offline = data);
    export function resolve(name, context, next) {
      if (offline[0] && name.endsWith('explain.js')) throw new Error('offline');
      return next(name, context);
    }`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: offline });
  const registry = new Registry({ 'text.echo': handler });
  const refuse = () => {
    const error = { code: 'UNKNOWN_CAPABILITY', message: 'Unknown' };
    return { error, done: registry.explain({ name: 'text.ehco' }, abp.UNKNOWN_CAPABILITY, error) };
  };
  for (const message of ['Unknown', 'Unknown: text.ehco. Did you mean text.echo?']) {
    const refusals = Array.from({ length: 257 }, refuse);
    assert.deepEqual(
      refusals.map(({ done }) => done instanceof Promise),
      refusals.map((_refusal, i) => i < 256),
    );
    await Promise.all(refusals.map(({ done }) => done));
    assert.deepEqual(
      [refusals[0], refusals[255], refusals[256]].map(({ error }) => error.message),
      [message, message, 'Unknown'],
    );
    offline[0] = 0;
  }
  const { error, done } = refuse();
  assert.equal(done, undefined);
  assert.deepEqual(error.alternatives, ['text.echo']);
});

test('a refusal is explained by what is missing, and some are not', async () => {
  const requirements = [
    { type: 'state', description: 'a file', met: false, resolution: 'open one' },
    { type: 'state', description: 'a key', met: () => false },
    { type: 'state', description: 'light', met: true },
  ];
  const registry = new Registry({
    locked: { handler, requirements },
    gone: { handler, available: false, alternatives: ['locked'], requirements },
  });
  const refused = async (name, number, code) => {
    const error = { code, message: 'Refused' };
    await registry.explain({ name }, number, error);
    return error;
  };
  const locked = await refused('locked', abp.REQUIREMENT_NOT_MET, 'REQUIREMENT_NOT_MET');
  assert.equal(locked.message, 'Refused: a file (open one), a key');
  assert.deepEqual(
    locked.details.requirements.map(({ description, met }) => [description, met]),
    [
      ['a file', false],
      ['a key', false],
    ],
  );
  const gone = await refused('gone', abp.CAPABILITY_UNAVAILABLE, 'CAPABILITY_UNAVAILABLE');
  assert.equal(gone.message, 'Refused: gone, a file (open one), a key');
  assert.deepEqual(gone.alternatives, ['locked']);
  const removed = await refused('removed', abp.CAPABILITY_UNAVAILABLE, 'CAPABILITY_UNAVAILABLE');
  assert.deepEqual(removed, { code: 'CAPABILITY_UNAVAILABLE', message: 'Refused: removed' });
  for (const [name, shown] of [
    [7, 'number'],
    ['n'.repeat(201), 'n'.repeat(200)],
  ]) {
    const unknown = await refused(name, abp.UNKNOWN_CAPABILITY, 'UNKNOWN_CAPABILITY');
    assert.deepEqual(unknown, { code: 'UNKNOWN_CAPABILITY', message: `Refused: ${shown}` });
  }
  assert.deepEqual(await refused('gone', abp.RATE_LIMITED, 'UNKNOWN_CAPABILITY'), {
    code: 'UNKNOWN_CAPABILITY',
    message: 'Refused',
    retryAfter: 1000,
  });
});

describe('capabilities', () => {
  test('are an object of handlers, or of objects that have one', () => {
    new Registry();
    for (const wrong of [null, 'x', []])
      assert.throws(() => new Registry(wrong), { code: 'INVALID_PARAMS' });
    for (const wrong of [{ x: {} }, { x: { handler: 'x' } }, { x: null }])
      assert.throws(() => new Registry(wrong), {
        name: 'TypeError',
        message: /^capability x needs/,
      });
  });

  test('are added, replaced and removed', () => {
    const registry = new Registry({ x: handler });
    registry.set('y', handler);
    assert.deepEqual(
      [registry.has('x'), registry.has('y'), registry.has('z')],
      [true, true, false],
    );
    registry.set('x', { handler, description: 'new' });
    assert.deepEqual(
      registry.list().map(({ name, description }) => [name, description]),
      [
        ['x', 'new'],
        ['y', undefined],
      ],
    );
    assert.deepEqual(Object.keys(registry.definitions), ['x', 'y']);
    assert.deepEqual([registry.delete('x'), registry.delete('x')], [true, false]);
    assert.deepEqual(registry.list().length, 1);
  });

  test('are shown with what is published of them', () => {
    const shown = { description: 'does', deprecated: false, features: { a: true } };
    const registry = new Registry({ x: { handler, ...shown, secret: 1 } });
    assert.deepEqual(registry.describe('x'), {
      name: 'x',
      available: true,
      requirements: [],
      ...shown,
    });
    assert.equal(registry.describe('y'), null);
  });

  test('say whether they may run twice', () => {
    const registry = new Registry({
      plain: handler,
      reads: { handler, readOnly: true, annotations: { title: 'Reads' } },
      again: { handler, idempotent: true },
    });
    assert.deepEqual(
      ['plain', 'reads', 'again', 'none'].map((name) => registry.repeatable(name)),
      [false, true, true, false],
    );
    assert.deepEqual(registry.describe('reads').annotations, {
      title: 'Reads',
      readOnlyHint: true,
    });
    assert.deepEqual(registry.describe('again').annotations, { idempotentHint: true });
    assert.equal('annotations' in registry.describe('plain'), false);
  });

  const met = (value) => ({ type: 'state', description: 'x', met: value });
  for (const [what, more, code, available] of [
    ['nothing', {}, abp.NO_ERROR, true],
    ['a function that says true', { available: () => true }, abp.NO_ERROR, true],
    ['false', { available: false }, abp.CAPABILITY_UNAVAILABLE, false],
    ['a function that says more', { available: () => 'yes' }, abp.CAPABILITY_UNAVAILABLE, false],
    ['a function that throws', { available: assert.fail }, abp.CAPABILITY_UNAVAILABLE, false],
    ['what is met', { requirements: [met(true), met(() => true)] }, abp.NO_ERROR, true],
    ['one that is not', { requirements: [met(true), met(false)] }, abp.REQUIREMENT_NOT_MET, false],
    ['a function', { requirements: [met(() => false)] }, abp.REQUIREMENT_NOT_MET, false],
  ])
    test(`that ${what} decides about: available ${available}`, () => {
      const registry = new Registry({ x: { handler, ...more } });
      assert.equal(registry.rejectionFor({ name: 'x' }), code);
      const shown = registry.describe('x');
      assert.equal(shown.available, available);
      for (const requirement of shown.requirements) assert.equal(typeof requirement.met, 'boolean');
      assert.equal(registry.rejectionFor({ name: 'y' }), abp.UNKNOWN_CAPABILITY);
    });

  test('that were removed while a call waited for its turn never run', async () => {
    const { error, metadata } = await new Registry().run({ name: 'x', params: {} }, {}, call);
    assert.deepEqual([error.message, metadata.outcome], ['Unknown capability: x', 'unstarted']);
  });
});

describe('a schema', () => {
  test('that takes everything checks nothing: the handler runs at once, with its own two arguments', () => {
    const given = mock.fn(() => 'ran');
    for (const schemas of [{}, { inputSchema: true }, { inputSchema: true, outputSchema: true }])
      assert.equal(run({ handler: given, ...schemas }, 'params'), 'ran');
    for (const { arguments: args } of given.mock.calls) assert.deepEqual(args, ['params', {}]);
  });

  test('of params alone, or of results alone, checks these', async () => {
    const number = { type: 'number' };
    const echo = (params) => params;
    for (const schemas of [{ inputSchema: number }, { inputSchema: number, outputSchema: true }]) {
      assert.equal(await run({ handler: echo, ...schemas }, 1), 1);
      assert.equal((await run({ handler: echo, ...schemas }, 'x')).error.code, 'INVALID_PARAMS');
      assert.equal(await run({ handler: () => 'x', ...schemas }, 1), 'x');
    }
    for (const schemas of [{ outputSchema: number }, { inputSchema: true, outputSchema: number }]) {
      assert.equal(await run({ handler: echo, ...schemas }, 1), 1);
      const message = /^The result does not match the outputSchema: data: /;
      await assert.rejects(run({ handler: echo, ...schemas }, 'x'), { message });
    }
  });

  test('is waited for once: the next call is checked at once', async () => {
    const registry = new Registry({ x: { handler, inputSchema: { type: 'number' } } });
    const beginAfter = mock.fn(call.beginAfter);
    const request = { name: 'x', params: 1 };
    assert.equal(await registry.run(request, {}, { ...call, beginAfter }), 'ran');
    assert.equal(await registry.run(request, {}, { ...call, beginAfter }), 'ran');
    assert.equal(beginAfter.mock.callCount(), 1);
  });

  test('does not look at what the handler says that failed', async () => {
    const failure = { success: false, error: { code: 'OWN', message: 'no', retryable: false } };
    const outputSchema = { type: 'number' };
    assert.equal(await run({ handler: () => failure, outputSchema }), failure);
  });

  test('of results that makes something else of them keeps what is to be moved', async () => {
    const outputSchema = schemaOf(({ n }) => ({ value: n === 1 ? 1 : { n } }));
    const buffers = [new ArrayBuffer(8)];
    const answer = (n) => run({ handler: () => transfer({ n }, buffers), outputSchema });
    assert.equal(markedTransfer(await answer(2)), buffers);
    assert.equal(await answer(1), 1);
    const response = { success: true, data: { n: 1 }, metadata: { cached: true } };
    assert.deepEqual(await run({ handler: () => response, outputSchema }), {
      ...response,
      data: 1,
    });
  });

  describe('of results, of a handler that streams', () => {
    const outputSchema = { type: 'number' };
    const read = async (data) => {
      const stream = await run({
        handler: async function* stream() {
          yield 'a chunk';
          return data;
        },
        outputSchema,
      });
      assert.deepEqual(await stream.next(), { value: 'a chunk', done: false });
      return stream.next();
    };

    test('checks what it returns, if that is anything, and no chunk', async () => {
      assert.deepEqual(await read(1), { value: 1, done: true });
      assert.deepEqual(await read(undefined), { value: undefined, done: true });
      const message = /^The result does not match the outputSchema: data: /;
      await assert.rejects(read('x'), { message });
    });
  });
});
