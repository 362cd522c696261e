// Foreign apps in a page that is driven: how they report, list their capabilities, take a
// cancel, and end.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { connectPage } from '../../packages/automation/src/index.js';
import { AGENT, closeAfter } from '../support/pair.js';

const nextTurn = () => new Promise((resolve) => setTimeout(resolve));
const until = async (holds) => {
  while (!holds()) await new Promise(setImmediate);
};
const copied = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/** The functions by which apps report, by what they report. */
const REPORTERS = {
  Notification: ['__abp_notification', '__abpOnNotification', '__abp_notify'],
  Progress: ['__abp_progress', '__abpOnProgress'],
  CapabilitiesChanged: ['__abp_capabilities_changed', '__abpOnCapabilitiesChanged'],
  Elicitation: ['__abp_elicitation', '__abpOnElicitation'],
};
const initialize = () => ({ sessionId: 's' });

/** A page with an app, and an agent that drives it; `heard` has what the app reports. */
async function opened(abp, { page = {}, ...options } = {}) {
  Object.setPrototypeOf(page, { addEventListener() {}, removeEventListener() {} });
  page.abp ??= { initialize, call: () => ({ success: true }), ...abp };
  const heard = [];
  const tell =
    (kind) =>
    (...said) =>
      void heard.push([kind, ...said]);
  const driver = {
    async evaluateHandle(script) {
      const object = new Function('globalThis', `return ${script}`)(page);
      const evaluate = async (question, argument) =>
        copied(await question(object, copied(argument)));
      return { evaluate, dispose: async () => {} };
    },
  };
  const client = await connectPage(driver, {
    agent: AGENT,
    onNotification: (event, data) =>
      event === 'notifications/capabilities/list_changed' || tell('Notification')(event, data),
    onProgress: tell('Progress'),
    onCapabilitiesChanged: tell('CapabilitiesChanged'),
    onElicitation: (request) => (tell('Elicitation')(request.params), 'an answer'),
    ...options,
  });
  closeAfter(() => client.close());
  /** Settles when so many reports were heard. */
  const hears = async (count) => {
    await until(() => heard.length >= count);
    await client.call('a barrier');
    assert.equal(heard.length, count);
    return heard.splice(0);
  };
  /** Ends the session; settles when the app has nothing of the agent any more. */
  const close = async () => {
    client.close();
    await until(
      () =>
        !Object.values(page).some(
          (value) => typeof value === 'function' && value[Symbol.for('abp-bridge.listener')],
        ),
    );
  };
  return { client, page, heard, hears, close };
}

// This comes first: timers that sessions before it have left could not be cleared while the clock
// is held.
test('a list that does not come is not waited for without end', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let asked;
  const listCapabilities = () => ((asked = true), new Promise(() => {}));
  const opening = opened({ listCapabilities });
  await until(() => asked);
  t.mock.timers.tick(2000);
  assert.deepEqual(await (await opening).client.listCapabilities(), []);
});

describe('what it can do is what it says first and what it lists', () => {
  const first = { name: 'first' };
  const second = { name: 'second' };
  for (const [what, listCapabilities, listed] of [
    ['a list', () => nextTurn().then(() => [second]), [second]],
    ['a list of capabilities', () => ({ capabilities: [second] }), [second]],
    ['a response with a list', () => ({ success: true, data: [second] }), [second]],
    ['a response with capabilities', () => ({ data: { capabilities: [second] } }), [second]],
    ['nothing that is a list', () => ({ data: 'second' }), []],
    ['an error', () => Promise.reject(new Error('no')), []],
    ['nothing, without the method', undefined, []],
  ])
    test(`by ${what}`, async () => {
      const begin = () => ({ sessionId: 's', capabilities: [first] });
      const { client } = await opened({ initialize: begin, listCapabilities });
      assert.deepEqual(await client.listCapabilities(), [first, ...listed]);
    });
});

test('a session that it refuses leaves nothing in the page, and its words are told', async () => {
  for (const [begin, code] of [
    [() => ({ success: false, error: { code: 'OWN', message: 'no', retryable: false } }), 'OWN'],
    [() => Promise.reject(new Error('no')), undefined],
  ]) {
    const shutdown = mock.fn();
    const page = {};
    await assert.rejects(opened({ initialize: begin, shutdown }, { page }), (error) => {
      assert.match(error.message, /no/);
      return !code || error.code === code;
    });
    await until(() => Object.keys(page).length === 1);
    assert.equal(shutdown.mock.callCount(), 0);
  }
});

describe('what it reports by functions of the page', () => {
  test('is heard by each name that apps know, until it is closed', async () => {
    const { page, hears, close, heard } = await opened();
    const calls = Object.entries(REPORTERS).flatMap(([kind, names]) =>
      names.map((name) => [kind, name]),
    );
    for (const [kind, name] of calls) {
      const method = 'elicitation/input';
      await page[name]({ event: 'e', method, params: 1, operationId: 'o', progress: 1, added: [] });
      const [[told]] = await hears(1);
      assert.equal(told, kind, name);
      await nextTurn();
    }
    const { __abp_progress: progress } = page;
    await close();
    assert.deepEqual(Object.keys(page), ['abp']);
    await progress({ operationId: 'o', progress: 1 });
    assert.equal(heard.length, 0);
  });

  test('reaches the functions that were there, too, but for questions', async () => {
    const before = mock.fn(function () {
      assert.ok(this.abp);
      return Promise.reject(new Error('not of interest'));
    });
    const page = { __abp_progress: before, __abp_elicitation: before, __abp_notify: 'no function' };
    page.__abp_notification = () => undefined;
    page.__abpOnProgress = () => 'no promise';
    const { hears, close } = await opened({}, { page });
    await page.__abp_notification('silent');
    await page.__abpOnProgress({ operationId: 'silent', progress: 1 });
    await hears(2);
    await nextTurn();
    await page.__abp_progress({ operationId: 'o', progress: 1 });
    const { data } = await page.__abp_elicitation({ method: 'elicitation/input', params: {} });
    assert.equal(data, 'an answer');
    await page.__abp_notify('e');
    await hears(3);
    assert.equal(before.mock.callCount(), 1);
    const stacked = page.__abp_progress;
    await close();
    assert.deepEqual([page.__abp_progress, page.__abp_elicitation], [before, before]);
    assert.equal(page.__abp_notify, 'no function');
    await assert.rejects(stacked({ progress: 2 }), { message: 'not of interest' });
    assert.equal(before.mock.callCount(), 2);
  });

  test('is not taken back from who has replaced it since', async () => {
    const { page, close } = await opened();
    const own = () => {};
    page.__abp_progress = own;
    await close();
    assert.equal(page.__abp_progress, own);
  });

  test('is no question where the agent takes none', async () => {
    const { page } = await opened({}, { onElicitation: undefined });
    assert.equal(page.__abp_elicitation, undefined);
    assert.equal(typeof page.__abp_progress, 'function');
  });
});

describe('what it reports by handlers of its own', () => {
  test('is heard where it takes a handler, and where it holds one', async () => {
    let taken;
    const page = {
      abp: Object.freeze({
        initialize,
        call: () => ({}),
        onProgress: (handler) => (taken = handler),
      }),
    };
    const taker = await opened({}, { page });
    assert.equal(await taken({ operationId: 'o', progress: 1 }), undefined);
    assert.deepEqual(await taker.hears(1), [['Progress', { operationId: 'o', progress: 1 }]]);
    await taker.close();
    assert.equal(taken({ operationId: 'o', progress: 2 }), undefined);
    assert.equal(taker.heard.length, 0);

    const holder = await opened({ onNotification: null });
    await holder.page.abp.onNotification('e', 1);
    await holder.page.abp.onElicitation({ method: 'elicitation/input', params: 1 });
    assert.deepEqual(
      (await holder.hears(2)).map(([kind]) => kind),
      ['Notification', 'Elicitation'],
    );
    await holder.close();
    assert.equal(holder.page.abp.onNotification, null);
    assert.equal('onElicitation' in holder.page.abp, false);
  });

  test('is heard by two agents, each as long as it stays', async () => {
    const one = await opened();
    const two = await opened({}, { page: one.page });
    await one.page.abp.onNotification('e', 1);
    await Promise.all([one.hears(1), two.hears(1)]);
    two.client.close();
    await until(() => one.page.abp.shutdown === undefined);
    await nextTurn();
    await one.page.abp.onNotification('e', 1);
    await one.hears(1);
  });
});

describe('a report', () => {
  const step = { operationId: 'o', progress: 1 };

  test('that comes by two ways in one turn is one', async () => {
    const { page, hears } = await opened();
    for (let turn = 1; turn <= 2; turn++) {
      for (const reporter of ['__abp_progress', '__abpOnProgress', '__abp_progress'])
        void page[reporter](step);
      await hears(2); // twice by the first of them
      await nextTurn();
    }
    void page.__abp_notify('e', 1);
    void page.__abp_notification({ event: 'e', data: 1 });
    void page.__abp_notification('e', 2);
    assert.deepEqual(
      (await hears(2)).map(([, , data]) => data),
      [1, 2],
    );
  });

  test('is a notification in any form', async () => {
    const { page, hears } = await opened();
    await page.__abp_notify('e', 1);
    await page.__abp_notify({ event: 'e', data: 2 });
    await page.__abp_notify({ method: 'e', params: 3 });
    assert.deepEqual(await hears(3), [
      ['Notification', 'e', 1],
      ['Notification', 'e', 2],
      ['Notification', 'e', 3],
    ]);
  });

  test('of what has changed comes with the descriptions', async () => {
    const all = ['a', 'b', 'c'].map((name) => ({ name, description: `of ${name}` }));
    const { page, client, hears } = await opened({ listCapabilities: () => [...all, null] });
    const changes = { added: ['a'], removed: ['d'], changed: ['c'] };
    all[2].description = 'new';
    void page.__abp_notify('notifications/capabilities/list_changed', changes);
    void page.__abp_capabilities_changed(changes);
    assert.deepEqual(await hears(1), [['CapabilitiesChanged', changes]], 'once, by two ways');
    assert.deepEqual(await client.describeCapability('c'), { name: 'c', description: 'new' });
    await nextTurn();
    await page.__abpOnCapabilitiesChanged({ added: ['b'] });
    await page.__abp_capabilities_changed();
    const none = { added: [], removed: [], changed: [] };
    assert.deepEqual(await hears(2), [
      ['CapabilitiesChanged', { ...none, added: ['b'] }],
      ['CapabilitiesChanged', none],
    ]);
  });

  test('of what has changed is not sent when the session has ended meanwhile', async () => {
    const { client, page, heard } = await opened();
    const listing = page.__abp_capabilities_changed({ added: ['a'] });
    client.close();
    await listing;
    assert.deepEqual(heard, []);
  });
});

test('a call is told its id, its params, and that it may be answered by bytes', async () => {
  const call = mock.fn(() => ({ success: true, data: 'done' }));
  const { client } = await opened({ call, listCapabilities: () => [{ name: 'x' }] });
  assert.equal((await client.call('x', { a: 1 }, { callId: 'c' })).data, 'done');
  const [name, params, options] = call.mock.calls[0].arguments;
  assert.deepEqual([name, params, options.callId], ['x', { a: 1 }, 'c']);
  assert.equal(options[Symbol.for('abp-bridge.bytes')], true);
});

describe('a cancel', () => {
  const no = () => Promise.reject(new Error('no'));
  const object = (answer) => (first) => (typeof first === 'object' ? answer(first) : undefined);
  /** What the agent is told of a cancel of a call that runs, and of the call if the app goes on. */
  async function cancelled(abp, page) {
    const call = mock.fn(() => new Promise(() => {}));
    const { client } = await opened({ call, ...abp }, { page });
    void client.call('x', {}, { callId: 'c' });
    await until(() => call.mock.callCount());
    const { cancelled: isCancelled, reason } = await client.cancel('c', 'enough');
    return [isCancelled, reason];
  }
  for (const [what, cancel, expected] of [
    ['true', () => true, [true, undefined]],
    ['cancelled', () => ({ cancelled: true, more: 1 }), [true, undefined]],
    ['the callId', (callId) => ({ callId, reason: 'no' }), [false, 'no']],
    ['an object alone', object(({ callId }) => ({ callId, reason: 'no' })), [false, 'no']],
    [
      'an object, with its reason',
      object(({ reason }) => ({ cancelled: reason === 'enough' })),
      [true, undefined],
    ],
    ['no', () => ({ reason: 'too late' }), [false, 'too late']],
    ['false', () => false, [false, 'The app gave no reason']],
    ['nothing', () => {}, [false, 'The app gave no reason']],
    [
      'an error, then an answer',
      (first) => (typeof first === 'string' ? no() : { reason: 'too late' }),
      [false, 'too late'],
    ],
    ['errors', (first) => Promise.reject(new Error(typeof first)), [false, 'string']],
    ['no function of its own', undefined, [false, 'The app has no cancel function']],
  ])
    test(`that is answered by ${what}`, async () => {
      assert.deepEqual(await cancelled({ cancel }), expected);
    });

  test('by the function of the page, where the app has none', async () => {
    const __abp_cancel = mock.fn(() => ({ cancelled: true }));
    assert.deepEqual(await cancelled({}, { __abp_cancel }), [true, undefined]);
    assert.deepEqual(__abp_cancel.mock.calls[0].arguments, ['c', 'enough']);
  });
});

describe('its end', () => {
  test('is told once, with a reason', async () => {
    const shutdown = mock.fn();
    const { client } = await opened({ shutdown });
    client.close();
    client.close();
    await until(() => shutdown.mock.callCount());
    await nextTurn();
    assert.equal(shutdown.mock.callCount(), 1);
    assert.equal(typeof shutdown.mock.calls[0].arguments[0].reason, 'string');
  });

  test('comes though it fails, never ends, or has no word for it', async () => {
    for (const shutdown of [
      () => Promise.reject(new Error('no')),
      () => new Promise(() => {}),
      undefined,
    ]) {
      const { page, close } = await opened({ shutdown });
      await close();
      assert.deepEqual(Object.keys(page), ['abp']);
    }
  });
});
