// A call that breaks a rule is refused where it is made, with words that say what was meant, and
// does not run.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { AbpError, expose } from '../../parts/main/index.js';
import { createPeer, portChannel } from '../../packages/rpc/src/index.js';
import { pool } from '../../parts/workers/pool.js';
import { openPair } from '../support/pair.js';

const APP = { id: 'a.b', name: 'A', version: '1' };

let channel, consoleCalls;

beforeEach(() => {
  channel = new MessageChannel();
  consoleCalls = [];
  for (const method of ['error', 'warn'])
    mock.method(console, method, (...words) => consoleCalls.push(words));
});

afterEach(() => {
  channel.port1.close();
  channel.port2.close();
  mock.restoreAll();
});

const pair = async (capabilities, options) =>
  (await openPair(capabilities, { agent: options })).client;

describe('a call that breaks a rule is refused, and does not run:', () => {
  const stream = () => new ReadableStream();
  /** In the order of the rules: a call that breaks that one alone, and what is said of it. */
  const RULES = [
    [[7], /^call needs the name of a capability$/],
    [['x', 1, {}, 2], /^a call takes nothing after its options: /],
    [['x', 1, { input: {} }], /^input of a call must be an async iterable or a ReadableStream$/],
    [
      ['x', 1, { input: stream(), highWaterMark: 1.5 }],
      /^highWaterMark of a stream must be a whole number of bytes, at least 1$/,
    ],
    [['x', 1, { onProgress: 'on' }], /^onProgress of a call must be a function$/],
    [['x', 1, { idempotencyKey: '' }], /^idempotencyKey of a call must be a string of 1 to 256 /],
    [
      ['x', 1, { input: stream(), idempotencyKey: 'k' }],
      /^a stream cannot have an idempotencyKey: /,
    ],
    [['x', 1, { transfer: [], retry: true }], /input or transfer cannot be retried: /],
    [['x', 1, { idempotencyKey: 'k' }], /^The app does not support idempotencyKey /],
  ];
  const source = readFileSync(new URL('../../js/agent/client.js', import.meta.url), 'utf8');
  const [, list] = source.match(/\n    const mistakes = \[\n([^]*?)\n    \];\n/);

  test('there is no other rule', () => {
    assert.equal(list.split('\n').length, RULES.length);
  });

  for (const [i, [args, words]] of RULES.entries())
    test(`${words}`, async () => {
      const ran = mock.fn();
      const client = await pair({ x: ran }, { upgrade: 'none' });
      const calling = client.call(...args);
      if (i < RULES.length - 1)
        await assert.rejects(calling, {
          code: 'INVALID_PARAMS',
          message: words,
          outcome: 'unstarted',
        });
      else {
        // What another app would do is no mistake of the program.
        const { error, metadata } = await calling;
        assert.match(error.message, words);
        assert.deepEqual([error.code, metadata.outcome], ['NOT_SUPPORTED', 'unstarted']);
      }
      assert.equal(ran.mock.callCount(), 0);
    });
});

describe('several params in a row are refused, with the form that was meant:', () => {
  const hint =
    'where params is one value, such as [1, 2] or { a: 1, b: 2 } (docs/errors.md#several-params)';
  const WRONG = {
    'in the place of options': [[1, 2], /^options of (.*) must be an object: write /],
    'a list there': [[1, [2]], /^options of (.*) must be an object: write /],
    'behind options': [[1, {}, 2], /^(.*) takes nothing after its options: write /],
    'behind no options': [[1, undefined, 2], /^(.*) takes nothing after its options: write /],
  };
  const FORM = 'call(name, params, { signal })';
  const ran = mock.fn(() => 'ran');
  const PEER = '(method, params, { signal })';
  const rpc = (act) => async (args) => {
    const peer = createPeer(portChannel(channel.port1), { dialect: 'lsp' });
    createPeer(portChannel(channel.port2), { dialect: 'lsp' }).handle('sum', ran);
    await Promise.resolve(act(peer, args)).finally(() => peer.close());
  };
  /** By what takes them. */
  const TAKES = {
    call: [FORM, async (args) => (await pair({ sum: ran })).call('sum', ...args)],
    invoke: [FORM, async (args) => (await pair({ sum: ran })).invoke('sum', ...args)],
    'the response of a stream': [
      'stream(name, params, { signal })',
      async (args) => (await pair({ sum: ran })).stream('sum', ...args).response,
    ],
    'a stream': [
      'stream(name, params, { signal })',
      async (args) => (await pair({ sum: ran })).stream('sum', ...args).next(),
    ],
    'the call of a handler': [
      FORM,
      async (args) => {
        const handler = (_params, { call }) => call('sum', ...args);
        throw AbpError.from((await (await pair({ sum: ran, handler })).call('handler')).error);
      },
    ],
    'window.abp': [
      FORM,
      (args) => expose({ app: APP, capabilities: { sum: ran } }).abp.call('sum', ...args),
    ],
    'a request': [`request${PEER}`, rpc((peer, args) => peer.request('sum', ...args))],
    'a stream of a peer': [
      `stream${PEER}`,
      rpc(async (peer, args) => void (await peer.stream('sum', ...args).next())),
    ],
    'the task of a pool': [
      'run(name)(params, { signal })',
      (args) =>
        pool(() => {
          throw ran();
        }).run('sum')(...args),
    ],
  };
  for (const [what, [form, act]] of Object.entries(TAKES))
    for (const [where, [args, why]] of Object.entries(WRONG))
      test(`${what}, ${where}`, async () => {
        ran.mock.resetCalls();
        await assert.rejects(act(args), ({ code, message }) => {
          assert.equal(code, 'INVALID_PARAMS');
          assert.match(message, why);
          assert.ok(message.endsWith(`write ${form}, ${hint}`), message);
          return true;
        });
        assert.equal(ran.mock.callCount(), 0);
      });

  test('and what stands there, but is undefined, is nothing', async () => {
    const client = await pair({
      sum: ran,
      outer: (_params, { call }) => call('sum', 1, {}, undefined),
    });
    for (const name of ['sum', 'outer'])
      assert.equal((await client.call(name, 1, undefined, undefined)).data, 'ran');
  });
});
