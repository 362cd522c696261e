// What js/wire reads and writes: each member of each message, in its own form and as an entry of a frame.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { elicitationMethod } from '../../js/wire/elicitations.js';
import * as FrameKind from '../../js/wire/frame-kinds.js';
import { jsonText } from '../../js/wire/json-text.js';
import * as manifests from '../../js/wire/manifest.js';
import * as messages from '../../js/wire/messages.js';
import { readEntry, readMessage } from '../../js/wire/reader.js';
import { readError, readResponse } from '../../js/wire/responses.js';

const { CALL, ELICITATION } = messages;
/** What throws, whatever is read of it. */
const unreadable = new Proxy(
  {},
  {
    getPrototypeOf: () => Object.prototype,
    getOwnPropertyDescriptor() {
      throw new Error('no');
    },
    get() {
      throw new Error('no');
    },
  },
);

describe('a call that came', () => {
  const read = (payload, id = 'id') => CALL.read({ type: CALL.request, id, payload });
  const nothing = {
    ...{ params: {}, timeout: 0, progress: false, window: undefined, input: false },
    ...{ idempotencyKey: undefined, about: undefined },
  };

  test('has a name, params and options', () => {
    assert.deepEqual(
      read({
        capability: 'x',
        params: [1],
        options: {
          ...{ callId: 'c', timeout: 1.5, progressToken: 0, input: true, idempotencyKey: 'k' },
          repeats: 'b',
          stream: { chunks: 2, bytes: 3 },
        },
      }),
      {
        ...{ key: 'c', name: 'x', params: [1], timeout: 2, progress: 0, window: [2, 3] },
        ...{ input: true, idempotencyKey: 'k', about: 'b' },
      },
    );
    assert.deepEqual(read({ capability: 'x', params: null }), { ...nothing, key: 'id', name: 'x' });
    assert.deepEqual(read({ options: { input: 1 } }).input, false);
  });

  test('has its callId in one of three places', () => {
    assert.equal(read({ callId: 'b', options: { callId: 'a' } }).key, 'a');
    assert.equal(read({ callId: 'b', options: {} }).key, 'b');
    assert.equal(read({}, 'c').key, 'c');
    assert.equal(read({}, 7).key, '7');
    for (const id of [null, {}, true]) assert.equal(read({}, id).key, undefined);
    assert.equal(read({ options: { callId: 7 } }).key, undefined);
  });

  test('may be anything', () => {
    for (const message of [null, undefined, 5, {}, { payload: 'x' }, { payload: { options: 1 } }]) {
      assert.deepEqual(CALL.read(message), { ...nothing, key: undefined, name: undefined });
    }
    assert.deepEqual(read({ options: { stream: true } }).window, [-1, -1]);
    assert.deepEqual(read({ options: { stream: { chunks: '1', bytes: 2 } } }).window, [-1, 2]);
  });
});

describe('a call that goes', () => {
  const asked = { name: 'x', params: { a: 1 }, timeout: 0, progress: false };

  test('says what was asked, and nothing else', () => {
    assert.deepEqual(CALL.write('id', asked), {
      ...{ capability: 'x', params: { a: 1 }, callId: 'id', options: { callId: 'id' } },
    });
    assert.deepEqual(
      CALL.write('id', { ...asked, timeout: 5, progress: true, window: [2, 3], input: {} }).options,
      {
        ...{ callId: 'id', timeout: 5, progressToken: 'id', stream: { chunks: 2, bytes: 3 } },
        input: true,
      },
    );
    assert.equal(CALL.write('id', { ...asked, progress: 'token' }).options.progressToken, 'token');
    assert.equal(CALL.write('id', { ...asked, progress: 0 }).options.progressToken, 0);
    assert.deepEqual(CALL.write('id', { ...asked, window: [0, 5] }).options, { callId: 'id' });
    const again = { ...asked, about: 'id' };
    assert.deepEqual(CALL.write('id', again).options, { callId: 'id', repeats: 'id' });
  });

  test('is answered with its data and how long it took', () => {
    assert.deepEqual(CALL.succeed('d', 5), {
      ...{ success: true, data: 'd', metadata: { duration: 5 } },
    });
    assert.deepEqual(CALL.succeed('d', 5, false, true).metadata, {
      ...{ duration: 5, cached: false, collected: true },
    });
    assert.deepEqual(CALL.fail({ success: false, metadata: { a: 1, duration: 1 } }, 5), {
      ...{ success: false, metadata: { a: 1, duration: 5 } },
    });
  });

  test('says what became of it: what its metadata say, and else what is known', () => {
    const failed = (retryable, outcome) => ({
      ...{ success: false, error: { code: 'X', retryable } },
      ...(outcome && { metadata: { a: 1, outcome } }),
    });
    const known = CALL.became(failed(true, 'finished'), abp.FATE_UNSTARTED);
    assert.deepEqual(known, {
      ...{ success: false, error: { code: 'X', retryable: false } },
      metadata: { a: 1, outcome: 'finished' },
    });
    const unstarted = CALL.became(failed(true), abp.FATE_UNSTARTED);
    assert.deepEqual(unstarted.metadata, { outcome: abp.FATES[abp.FATE_UNSTARTED] });
    assert.equal(unstarted.error.retryable, true);
    assert.equal(CALL.became(failed(true, 'finished'), 0, true).error.retryable, true);
    assert.equal(CALL.became(failed(false), abp.FATE_UNSTARTED).error.retryable, false);
    const plain = { success: false, cancelled: true };
    assert.deepEqual(CALL.became(plain, abp.FATE_UNSTARTED), {
      ...{ ...plain, metadata: { outcome: abp.FATES[abp.FATE_UNSTARTED] } },
    });
    assert.equal(CALL.became(plain, 0, false, { outcome: 'stopped' }).metadata.outcome, 'stopped');
    assert.deepEqual(
      [{ outcome: 'stopped' }, { outcome: 'other' }, undefined].map(messages.fateIn),
      [abp.FATES.indexOf('stopped'), 0, 0],
    );
  });
});

describe('a question', () => {
  test('that came has a method, params and a time', () => {
    const stream = { chunks: 1, bytes: 2 };
    const payload = { method: 'm', params: 1, timeout: 5, callId: 'c', stream };
    assert.deepEqual(ELICITATION.read({ id: 'q', payload }), {
      ...{ key: 'q', name: 'm', params: 1, timeout: 5, progress: false, window: [1, 2] },
      about: 'c',
    });
    assert.deepEqual(ELICITATION.read({}), {
      ...{ key: undefined, name: undefined, params: undefined, timeout: 0, progress: false },
      ...{ window: undefined, about: undefined },
    });
  });

  test('that goes says so much', () => {
    const asked = { name: 'm', params: 1, timeout: 0 };
    assert.deepEqual(ELICITATION.write('id', asked), { method: 'm', params: 1 });
    assert.equal(ELICITATION.write('id', { ...asked, about: 'c' }).callId, 'c');
    assert.deepEqual(ELICITATION.write('id', { ...asked, timeout: 5, window: [1, 2] }), {
      ...{ method: 'm', params: 1, timeout: 5, stream: { chunks: 1, bytes: 2 } },
    });
    assert.deepEqual(ELICITATION.succeed('d'), { success: true, data: 'd' });
    const response = { success: false };
    assert.equal(ELICITATION.fail(response), response);
    assert.equal(ELICITATION.became(response), response);
    assert.deepEqual(['elicitation/text', 'elicitation/confirm', 5].map(elicitationMethod), [
      ...['elicitation/input', 'elicitation/confirm', '5'],
    ]);
  });
});

describe('a response', () => {
  test('says what became of its call', () => {
    for (const [response, outcome] of [
      [{ success: true }, abp.COMPLETED],
      [{ success: false }, abp.FAILED],
      [{ success: 1 }, abp.FAILED],
      [undefined, abp.FAILED],
      [{ cancelled: true }, abp.CANCELLED],
      [{ success: true, cancelled: true }, abp.CANCELLED],
      [{ cancelled: 1, success: true }, abp.COMPLETED],
      [{ error: { code: 'CANCELLED' } }, abp.CANCELLED],
      [{ error: { code: 'TIMEOUT' } }, abp.FAILED],
      [{ cancelled: true, error: { code: 'TIMEOUT' } }, abp.TIMED_OUT],
    ]) {
      assert.equal(messages.outcomeOf(response), outcome);
    }
  });

  test('is an object of its members alone', () => {
    const whole = { success: true, data: 1, error: 1, cancelled: 1, metadata: 1 };
    for (const yes of [whole, { success: false }]) assert.equal(messages.isResponse(yes), true);
    const own = { success: true, own: 1 };
    for (const no of [own, { success: 1 }, { data: 1 }, null, [], Object.create(whole)]) {
      assert.equal(messages.isResponse(no), false);
    }
  });

  test('that came is itself if it is one', () => {
    const error = { code: 'X', message: 'm', retryable: false };
    for (const response of [
      { success: true, data: 1 },
      { success: false, error },
      { success: false, cancelled: true },
    ]) {
      assert.equal(readResponse(response), response);
    }
    assert.deepEqual(readResponse({ success: false, own: 1 }), {
      ...{ success: false, own: 1 },
      error: {
        ...{ code: 'OPERATION_FAILED', retryable: false },
        message: 'The operation failed, and no reason was given',
      },
    });
    assert.equal(readResponse({ success: false, cancelled: 1 }).error.code, 'OPERATION_FAILED');
    const both = readResponse({ success: false, cancelled: true, error: 'why' });
    assert.equal(both.error.message, 'why');
  });

  test('that is none says so, with what it is', () => {
    const none = (details) => ({
      success: false,
      error: {
        code: 'OPERATION_FAILED',
        message: "The other side's answer is not an ABP response: { success, data, error }",
        retryable: false,
        ...details,
      },
    });
    for (const received of [null, 5, [], { success: 1 }, Object.create({ success: true })]) {
      assert.deepEqual(readResponse(received), none({ details: received }));
    }
    assert.deepEqual(readResponse(undefined), none());
    assert.deepEqual(readResponse(unreadable), none());
  });

  test('has an error, of whatever form', () => {
    const whole = { code: 'X', message: 'm', retryable: true, own: 1 };
    assert.equal(readError(whole), whole);
    for (const [received, code, message, retryable, more] of [
      ['why', 'OPERATION_FAILED', 'why', false],
      ['', 'OPERATION_FAILED', 'The operation failed, and no reason was given', false],
      [null, 'OPERATION_FAILED', 'The operation failed, and no reason was given', false],
      [{ code: 'X' }, 'X', 'X', false],
      [{ code: 'X', message: '' }, 'X', 'X', false],
      [{ code: 5, message: 'm', retryable: true }, 'OPERATION_FAILED', 'm', true],
      [{ code: 'X', message: 'm', retryable: 1, own: 1 }, 'X', 'm', false, { own: 1 }],
      [{ code: 'X', message: 5, retryable: true }, 'X', 'X', true],
      [unreadable, 'OPERATION_FAILED', 'The error cannot be read', false],
    ]) {
      assert.deepEqual(readError(received), { ...more, code, message, retryable });
    }
    class Own {
      code = 'X';
      message = 'm';
      retryable = true;
    }
    assert.deepEqual(readError(new Own()), { code: 'X', message: 'm', retryable: true });
  });
});

describe('progress', () => {
  test('that came is what is of the right type, with a percentage', () => {
    const whole = {
      ...{ operationId: 'c', progress: 1, total: 4, percentage: 30, estimatedRemaining: 5 },
      ...{ status: 's', stage: 't', own: true },
    };
    assert.deepEqual(messages.progressInfo(whole), whole);
    assert.notEqual(messages.progressInfo(whole), whole);
    assert.deepEqual(messages.progressInfo({ progress: 1, total: 4 }), {
      ...{ progress: 1, total: 4, percentage: 25 },
    });
    assert.equal(messages.progressInfo({ progress: 5, total: 4 }).percentage, 100);
    for (const total of [0, -1]) {
      assert.deepEqual(messages.progressInfo({ progress: 1, total }), { progress: 1, total });
    }
    const wrong = { progress: '1', total: NaN, percentage: Infinity, estimatedRemaining: null };
    assert.deepEqual(messages.progressInfo({ ...wrong, status: 1, stage: {} }), { progress: 0 });
    assert.deepEqual(messages.progressInfo(null), { progress: 0 });
  });

  test('that a handler reports has numbers', () => {
    assert.deepEqual(messages.checkedProgress({ progress: 1, total: 2, status: 's' }), {
      ...{ progress: 1, total: 2, percentage: 50, status: 's' },
    });
    for (const info of [{ progress: '1' }, { total: null }, { percentage: 'x' }, 'text', 5]) {
      assert.throws(() => messages.checkedProgress(info), {
        name: 'TypeError',
        message: 'progress needs { progress, total }, both numbers',
      });
    }
    assert.throws(() => messages.checkedProgress(null), TypeError);
    assert.deepEqual(messages.progressMessage('id', { a: 1, operationId: 'other' }), {
      ...{ type: 'progress', payload: { a: 1, operationId: 'id' } },
    });
  });

  test('and a capability may run twice if it says so', () => {
    for (const [annotations, repeatable] of [
      [{ readOnlyHint: true }, true],
      [{ idempotentHint: true }, true],
      [{ readOnlyHint: 1, idempotentHint: false }, false],
      [undefined, false],
    ]) {
      assert.equal(messages.isRepeatable(annotations), repeatable);
    }
  });
});

/** Takes what was read, and says what that was. */
const taker = Object.fromEntries(
  [
    ...['request', 'response', 'progress', 'cancel', 'chunk', 'credit', 'notification'],
    ...['message', 'control', 'malformed'],
  ].map((name) => [name, (...given) => [name, ...given]]),
);

describe('a message', () => {
  const agent = (message) => readMessage(message, true, taker);
  const app = (message) => readMessage(message, false, taker);

  test('of an agent', () => {
    const call = { type: 'capabilities/call', id: 'c', payload: { capability: 'x' } };
    assert.deepEqual(agent(call), ['request', CALL.read(call), call]);
    const answer = { type: 'elicitation/response', id: 'q', payload: { success: true } };
    assert.deepEqual(agent(answer), ['response', 'q', abp.COMPLETED, answer.payload]);
    for (const type of ['elicitation/request', 'capabilities/call-result', 'progress', 'x']) {
      assert.deepEqual(agent({ type }), ['control', { type }]);
    }
    assert.deepEqual(agent(null), ['control', null]);
  });

  test('of an app', () => {
    const question = { type: 'elicitation/request', id: 'q', payload: { method: 'x' } };
    assert.deepEqual(app(question), ['request', ELICITATION.read(question), question]);
    const payload = { success: false, operationId: 'o' };
    for (const type of ['capabilities/call-result', 'call-result']) {
      assert.deepEqual(app({ type, id: 'c', payload }), ['response', 'c', abp.FAILED, payload]);
      assert.equal(app({ type, id: 5, payload })[1], undefined);
    }
    assert.deepEqual(app({ type: 'progress', payload }), ['progress', 'o', payload]);
    for (const payload of [
      { event: 'e', data: 'd', method: 'm', params: 'p' },
      { method: 'e', params: 'd' },
    ]) {
      assert.deepEqual(app({ type: 'notification', payload }), ['notification', 'e', 'd']);
    }
    for (const type of ['capabilities/call', 'elicitation/response', 'x']) {
      assert.deepEqual(app({ type }), ['control', { type }]);
    }
  });

  test('of a stream, of either', () => {
    for (const read of [agent, app]) {
      const chunk = { callId: 'c', size: 5, chunk: 'x' };
      assert.deepEqual(read({ type: 'bridge/chunk', payload: chunk }), ['chunk', 'c', 5, 'x']);
      const none = ['chunk', undefined, -1, undefined];
      assert.deepEqual(read({ type: 'bridge/chunk', payload: { size: '5' } }), none);
      const credit = { callId: 'c', chunks: 1, bytes: 2 };
      assert.deepEqual(read({ type: 'bridge/credit', payload: credit }), ['credit', 'c', [1, 2]]);
    }
  });
});

describe('an entry of a frame', () => {
  const read = (...entry) => readEntry(...entry, taker);

  test('means what a message means', () => {
    assert.deepEqual(read(FrameKind.REQUEST, 'k', 'x', undefined), [
      ...['request', { key: 'k', name: 'x', params: {}, timeout: 0, progress: false }],
    ]);
    assert.deepEqual(read(FrameKind.REQUEST, 'k', 'x', 0)[1].params, 0);
    const plain = {
      ...{ key: 'k', name: 'x', window: undefined, input: false },
      ...{ idempotencyKey: undefined, about: undefined },
    };
    assert.deepEqual(read(FrameKind.REQUEST_WITH, 'k', 'x', ['p', 1.5, true]), [
      ...['request', { ...plain, params: 'p', timeout: 2, progress: true }],
    ]);
    assert.deepEqual(read(FrameKind.REQUEST_WITH, 'k', 'x', undefined), [
      ...['request', { ...plain, params: {}, timeout: 0, progress: false }],
    ]);
    const whole = ['p', 0, 'token', 2, 3, true, 'key'];
    assert.deepEqual(read(FrameKind.REQUEST_WITH, 'k', 'x', whole), [
      'request',
      {
        ...{ ...plain, params: 'p', timeout: 0, progress: 'token', window: [2, 3], input: true },
        ...{ about: true, idempotencyKey: 'key' }, // a question has a text there, a call `true`
      },
    ]);
    const idle = read(FrameKind.REQUEST_WITH, 'k', 'x', ['p', 0, false, 0, 0, 1])[1];
    assert.deepEqual([idle.window, idle.input], [undefined, false]);
    assert.deepEqual(read(FrameKind.VALUE, 'k', 5, 'd'), [
      ...['response', 'k', abp.COMPLETED],
      { success: true, data: 'd', metadata: { duration: 5 } },
    ]);
    const response = { success: false };
    assert.deepEqual(read(FrameKind.RESPONSE, 'k', 1, response), [
      ...['response', 'k', abp.FAILED, response],
    ]);
    assert.deepEqual(read(FrameKind.PROGRESS, 'k', 1, 'info'), ['progress', 'k', 'info']);
    assert.deepEqual(read(FrameKind.CANCEL, 'k', 'why', 1), ['cancel', 'k', 'why']);
    assert.deepEqual(read(FrameKind.CHUNK, 'k', 5, 'x'), ['chunk', 'k', 5, 'x']);
    assert.deepEqual(read(FrameKind.CREDIT, 'k', 1, 2), ['credit', 'k', [1, 2]]);
    assert.deepEqual(read(FrameKind.MESSAGE, 'k', 1, 'm'), ['message', 'm']);
    for (const kind of [0, 10, '1', undefined])
      assert.deepEqual(read(kind, 1, 2, 3), ['malformed']);
  });
});

describe('text', () => {
  test('is JSON of a length that is allowed', () => {
    assert.equal(jsonText({ a: 1 }, 7), '{"a":1}');
    assert.throws(() => jsonText({ a: 1 }, 6), {
      name: 'RangeError',
      message: '7 characters are too long: the limit is 6',
    });
    assert.equal(
      jsonText({ a: 1 }, 100, (_key, value) => (value === 1 ? 2 : value)),
      '{"a":2}',
    );
    assert.throws(() => jsonText(undefined, 100), { message: 'Only JSON values can be sent' });
  });

  test('is not written if it is certainly too long', () => {
    const written = mock.fn((_key, value) => value);
    // Ten values of a list of nine take nine digits, eight commas and two brackets.
    const list = Array(9).fill(1);
    assert.equal(jsonText(list, 19).length, 19);
    assert.throws(() => jsonText(list, 17, written), /too many values: the limit is 9\.5/);
    assert.throws(() => jsonText('xxxx', 3, written), /too many characters: the limit is 3/);
    assert.equal(written.mock.callCount(), 0);
  });
});

describe('a manifest', () => {
  const app = { id: 'a', name: 'A', version: '1' };
  const parse = (more) =>
    manifests.parseManifest(JSON.stringify({ abp: '0.1', app, capabilities: [], ...more }));
  const invalid = (message) => ({ code: 'INVALID_MANIFEST', message });

  test('is taken as it is', () => {
    const more = { abp: '10.23', own: 1, capabilities: [{ name: 'x', own: 1 }] };
    assert.deepEqual(parse(more), { app, ...more });
  });

  test('needs what the protocol requires', () => {
    assert.throws(() => manifests.parseManifest('{'), invalid('The manifest is not JSON'));
    for (const abp of [undefined, 1, 0.1, '1', '1.', '.1', 'v1.0', '1.0x', '1.0.0', '']) {
      assert.throws(() => parse({ abp }), invalid(/^The manifest needs abp: the version/));
    }
    for (const wrong of [
      null,
      {},
      { ...app, id: '' },
      { ...app, name: 5 },
      { id: 'a', name: 'A' },
    ]) {
      assert.throws(
        () => parse({ app: wrong }),
        invalid('The manifest needs app: { id, name, version }'),
      );
    }
    for (const capabilities of [undefined, {}, 'x']) {
      assert.throws(
        () => parse({ capabilities }),
        invalid('The manifest needs capabilities: a list'),
      );
    }
    for (const nameless of [{}, null, { name: '' }, { name: 1 }]) {
      assert.throws(
        () => parse({ capabilities: [{ name: 'x' }, nameless] }),
        invalid('The manifest has no name for capabilities[1]'),
      );
    }
    assert.throws(() => parse({ capabilities: [{}] }), invalid(/capabilities\[0\]/));
  });

  test('names 100 capabilities at most', () => {
    const named = (length) => ({
      capabilities: Array.from({ length }, (_, i) => ({ name: `${i}` })),
    });
    assert.equal(parse(named(100)).capabilities.length, 100);
    assert.throws(
      () => parse(named(101)),
      invalid('The manifest names 101 capabilities; at most 100 are allowed'),
    );
  });

  test('is 64 levels deep at most', () => {
    const deep = (levels) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    parse({ deep: deep(63) });
    assert.throws(() => parse({ deep: deep(64) }), invalid(/nested more than 64 levels deep/));
  });

  test('is warned of where an agent should know more', () => {
    const warningsOf = (abp, ...capabilities) => manifests.warningsOf({ abp, capabilities });
    for (const abp of ['0.1', '1.0']) assert.deepEqual(warningsOf(abp, { name: 'x' }), []);
    assert.deepEqual(warningsOf(`1${'0'.repeat(30)}.0`), [
      `The manifest is for ABP 1${'0'.repeat(19)}; this library speaks 0.1`,
    ]);
    assert.deepEqual(
      warningsOf(
        '0.1',
        { name: 'x', experimental: true },
        { name: 'x', deprecated: true },
        { name: 'y', experimental: 1, deprecated: 'yes' },
        { name: 'z'.repeat(300), deprecated: true },
      ),
      [
        ...['"x" is experimental', '"x" is listed more than once', '"x" is deprecated'],
        `"${'z'.repeat(200)}" is deprecated`,
      ],
    );
  });

  test('is made of an app, of what holds for everyone', () => {
    const texts = { description: 'd', homepage: 'h', icon: 'i', support: 's' };
    const requirement = { type: 't', description: 'd', resolution: 'r' };
    const capability = {
      ...{ description: 'd', annotations: { readOnlyHint: true }, experimental: true },
      ...{ deprecated: false, inputSchema: { type: 'object' }, outputSchema: true },
    };
    assert.deepEqual(
      manifests.manifestOf({
        app: { ...app, ...texts, secret: 1 },
        capabilities: {
          x: { ...capability, requirements: [{ ...requirement, met: true }], handler: 1 },
          y: () => {},
          z: { requirements: null },
        },
      }),
      {
        abp: '0.1',
        app: { ...app, ...texts },
        capabilities: [
          { name: 'x', ...capability, requirements: [requirement] },
          { name: 'y' },
          { name: 'z' },
        ],
      },
    );
    assert.throws(() => manifests.manifestOf({ app, capabilities: { x: { requirements: {} } } }), {
      code: 'INVALID_PARAMS',
      message: 'requirements of capability x must be a list of objects',
    });
    for (const member of ['inputSchema', 'outputSchema']) {
      assert.throws(() => manifests.manifestOf({ app, capabilities: { x: { [member]: 5 } } }), {
        code: 'INVALID_PARAMS',
        message: new RegExp(`^${member} of x`),
      });
    }
  });

  test('is 1 MiB long at most', () => {
    const of = (description) =>
      manifests.manifestOf({ app: { ...app, description }, capabilities: {} });
    const left = 2 ** 20 - JSON.stringify(of('')).length;
    of('x'.repeat(left));
    assert.throws(() => of('x'.repeat(left + 1)), invalid('The manifest is larger than 1 MiB'));
    assert.throws(() => of('é'.repeat(left / 2 + 1)), invalid(/larger/));
    assert.equal(manifests.MAX_MANIFEST_BYTES, 2 ** 20);
  });
});
