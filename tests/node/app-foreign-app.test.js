// Apps of others' making in one form: how they report, list their capabilities, take a cancel, and end.
import assert from 'node:assert/strict';
import { afterEach, describe, mock, test } from 'node:test';
import { foreignApp } from '../../js/app/foreign-app.js';
import { REPORTERS } from '../../js/app/reporters.js';

afterEach(() => mock.restoreAll());

const nextTurn = () => new Promise((resolve) => setTimeout(resolve));
const HELLO = { agent: { name: 'a', version: '1' }, features: { elicitation: true } };

/** A page with an app, in a session of its own; `heard` has what it reports. */
async function opened(abp, page = {}, params = HELLO) {
  page.abp = { initialize: () => ({ sessionId: 's' }), ...abp };
  const app = foreignApp(REPORTERS, page);
  const heard = [];
  const result = await app.open(params, (kind, report) => {
    heard.push([kind, report]);
    return kind === 'Elicitation' ? 'an answer' : undefined;
  });
  return { app, page, heard, result };
}

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
      const initialize = () => ({ sessionId: 's', capabilities: [first] });
      const { result } = await opened({ initialize, listCapabilities });
      assert.deepEqual(result, { sessionId: 's', capabilities: [first, ...listed] });
    });

  test('though it says nothing first', async () => {
    for (const initialize of [() => ({}), () => undefined]) {
      const { result } = await opened({ initialize, listCapabilities: () => [second] });
      assert.deepEqual(result, { capabilities: [second] });
    }
  });

  test('and is not waited for without end', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let asked;
    const isAsked = new Promise((resolve) => (asked = resolve));
    const listCapabilities = () => {
      asked();
      return new Promise(() => {});
    };
    const opening = opened({ listCapabilities });
    await isAsked;
    t.mock.timers.tick(2000);
    assert.deepEqual((await opening).result.capabilities, []);
  });
});

describe('a session that it refuses', () => {
  test('leaves nothing in the page, and its words are told', async () => {
    const refusal = { success: false, error: { code: 'OWN' } };
    const { result, page, app } = await opened({ initialize: () => refusal });
    assert.equal(result, refusal);
    assert.deepEqual(Object.keys(page), ['abp']);
    page.abp.shutdown = mock.fn();
    await app.close();
    assert.equal(page.abp.shutdown.mock.callCount(), 0);
  });

  test('by throwing leaves nothing in the page either', async () => {
    const page = {};
    const initialize = () => Promise.reject(new Error('no'));
    await assert.rejects(opened({ initialize }, page), { message: 'no' });
    assert.deepEqual(Object.keys(page), ['abp']);
  });
});

describe('what it reports by functions of the page', () => {
  test('is heard by each name that apps know, until it is closed', async () => {
    const { app, page, heard } = await opened();
    const calls = Object.entries(REPORTERS).flatMap(([kind, names]) =>
      names.map((name) => [kind, name]),
    );
    for (const [, name] of calls) {
      await page[name]({ event: 'e' });
      await nextTurn();
    }
    const kinds = calls.map(([kind]) => kind);
    assert.deepEqual(
      heard.map(([kind]) => kind),
      kinds,
    );
    const { __abp_progress: progress } = page;
    await app.close();
    assert.deepEqual(Object.keys(page), ['abp']);
    await progress({ progress: 1 });
    assert.equal(heard.length, kinds.length);
  });

  test('reaches the functions that were there, too, but for questions', async () => {
    const before = mock.fn(function () {
      assert.ok(this.abp);
      return Promise.reject(new Error('not of interest'));
    });
    const page = { __abp_progress: before, __abp_elicitation: before, __abp_notify: 'no function' };
    const silent = [() => undefined, () => 'no promise'];
    [page.__abp_notification, page.__abpOnProgress] = silent;
    const { app, heard } = await opened({}, page);
    await page.__abp_notification('silent');
    await page.__abpOnProgress('silent');
    assert.equal(heard.splice(0).length, 2);
    await page.__abp_progress({ progress: 1 });
    assert.equal(await page.__abp_elicitation({}), 'an answer');
    await page.__abp_notify('e');
    assert.equal(before.mock.callCount(), 1);
    assert.equal(heard.length, 3);
    const stacked = page.__abp_progress;
    await app.close();
    assert.deepEqual([page.__abp_progress, page.__abp_elicitation], [before, before]);
    assert.equal(page.__abp_notify, 'no function');
    await assert.rejects(stacked({ progress: 2 }), { message: 'not of interest' });
    assert.equal(before.mock.callCount(), 2);
  });

  test('is not taken back from who has replaced it since', async () => {
    const { app, page } = await opened();
    const own = () => {};
    page.__abp_progress = own;
    await app.close();
    assert.equal(page.__abp_progress, own);
  });

  test('is heard by way of the places that were kept for it', async () => {
    const place = { [Symbol.for('abp-bridge.place')]: true };
    const { app, page, heard } = await opened({}, { __abp_notify: place });
    assert.equal(page.__abp_notify, place);
    await place.heard('e', 1);
    assert.deepEqual(heard, [['Notification', { event: 'e', data: 1 }]]);
    const { heard: listen } = place;
    await app.close();
    assert.equal(place.heard, undefined);
    assert.equal(listen('e', 2), undefined);
    assert.equal(heard.length, 1);
  });

  test('is no question where the agent takes none', async () => {
    for (const features of [undefined, {}, { elicitation: 'true' }]) {
      const { page } = await opened({}, {}, { features });
      assert.equal(page.__abp_elicitation, undefined);
      assert.equal(typeof page.__abp_progress, 'function');
    }
  });
});

describe('what it reports by handlers of its own', () => {
  test('is heard where it takes a handler, where it holds one, and where it has neither', async () => {
    let taken;
    const abp = Object.freeze({
      initialize: () => ({ sessionId: 's' }),
      onProgress: (handler) => (taken = handler),
    });
    const page = { abp };
    const app = foreignApp(REPORTERS, page);
    const heard = [];
    await app.open(HELLO, (...report) => void heard.push(report));
    assert.equal(await taken({ progress: 1 }), undefined);
    assert.deepEqual(heard, [['Progress', { progress: 1 }]]);
    await app.close();
    assert.equal(taken({ progress: 2 }), undefined);
    assert.equal(heard.length, 1);

    const holder = await opened({ onNotification: null });
    await holder.page.abp.onNotification('e', 1);
    await holder.page.abp.onElicitation({});
    assert.deepEqual(
      holder.heard.map(([kind]) => kind),
      ['Notification', 'Elicitation'],
    );
    await holder.app.close();
    assert.equal(holder.page.abp.onNotification, null);
    assert.equal('onElicitation' in holder.page.abp, false);
  });

  test('is heard by two agents, each as long as it stays', async () => {
    const one = await opened();
    const app = foreignApp(REPORTERS, one.page);
    const heard = [];
    await app.open(HELLO, (kind) => void heard.push(kind));
    await one.page.abp.onNotification('e', 1);
    assert.deepEqual([heard.length, one.heard.length], [1, 1]);
    await app.close();
    await nextTurn();
    await one.page.abp.onNotification('e', 1);
    assert.deepEqual([heard.length, one.heard.length], [1, 2]);
  });
});

describe('a report', () => {
  test('that comes by two ways in one turn is one', async () => {
    const { page, heard } = await opened();
    const cyclic = {};
    cyclic.cyclic = cyclic;
    for (let turn = 1; turn <= 2; turn++) {
      for (const reporter of ['__abp_progress', '__abpOnProgress', '__abp_progress'])
        await page[reporter]({ progress: 1 });
      assert.equal(heard.length, 2 * turn, 'twice by the first of them');
      await nextTurn();
    }
    heard.splice(0);
    await page.__abp_progress(cyclic);
    await page.__abpOnProgress(cyclic);
    assert.equal(heard.length, 2);
    heard.splice(0);
    await page.__abp_notify('e', 1);
    await page.__abp_notification({ event: 'e', data: 1 });
    await page.__abp_notification('e', 2);
    assert.deepEqual(
      heard.map(([, { data }]) => data),
      [1, 2],
    );
  });

  test('is a notification in any form', async () => {
    const { page, heard } = await opened();
    await page.__abp_notify('e', 1);
    await page.__abp_notify({ event: 'e', data: 2 });
    await page.__abp_notify({ method: 'e', params: 3 });
    await page.__abp_notify();
    assert.deepEqual(heard, [
      ['Notification', { event: 'e', data: 1 }],
      ['Notification', { event: 'e', data: 2 }],
      ['Notification', { event: 'e', data: 3 }],
      ['Notification', { event: undefined, data: undefined }],
    ]);
  });

  test('of what has changed comes with the descriptions', async () => {
    const all = ['a', 'b', 'c'].map((name) => ({ name }));
    const { page, heard } = await opened({ listCapabilities: () => [...all, null] });
    const changes = { added: ['a'], removed: ['d'], changed: ['c'] };
    const expected = ['CapabilitiesChanged', { ...changes, capabilities: [all[0], all[2]] }];
    await page.__abp_notify('notifications/capabilities/list_changed', changes);
    await page.__abp_capabilities_changed(changes);
    assert.deepEqual(heard, [expected], 'once, by two ways');
    await nextTurn();
    await page.__abp_capabilities_changed(changes);
    await page.__abpOnCapabilitiesChanged({ added: ['b'] });
    await page.__abp_capabilities_changed();
    assert.deepEqual(heard[1], expected);
    assert.deepEqual(heard[2][1].capabilities, [all[1]]);
    assert.deepEqual(heard[3][1].capabilities, []);
  });

  test('of what has changed is not sent when the session has ended meanwhile', async () => {
    const { app, page, heard } = await opened();
    const listing = page.__abp_capabilities_changed({ added: ['a'] });
    await app.close();
    await listing;
    assert.deepEqual(heard, []);
  });

  test('that cannot be sent is written to the console, and a question gets the error', async () => {
    const warn = mock.method(console, 'warn', () => {});
    const page = { abp: { initialize: () => ({ sessionId: 's' }) } };
    const app = foreignApp(REPORTERS, page);
    await app.open(HELLO, () => {
      throw new Error('gone');
    });
    assert.equal(await page.__abp_progress({ progress: 1 }), undefined);
    assert.equal(warn.mock.callCount(), 1);
    await assert.rejects(page.__abp_elicitation({}), { message: 'gone' });
    assert.equal(warn.mock.callCount(), 1);
  });
});

test('a call says that it takes bytes', async () => {
  const call = mock.fn(() => 'response');
  const { app } = await opened({ call });
  assert.equal(await app.call('x', { a: 1 }, { callId: 'c' }), 'response');
  const [name, params, options] = call.mock.calls[0].arguments;
  assert.deepEqual([name, params, options.callId], ['x', { a: 1 }, 'c']);
  assert.equal(options[Symbol.for('abp-bridge.bytes')], true);
});

describe('a cancel', () => {
  const no = () => Promise.reject(new Error('no'));
  const object = (answer) => (first) => (typeof first === 'object' ? answer(first) : undefined);
  for (const [what, cancel, expected] of [
    ['true', () => true, { cancelled: true }],
    ['cancelled', () => ({ cancelled: true, more: 1 }), { cancelled: true, more: 1 }],
    ['the callId', (callId) => ({ callId }), { callId: 'c', cancelled: false }],
    ['an object alone', object(({ callId }) => ({ callId })), { callId: 'c', cancelled: false }],
    [
      'an object, with its reason',
      object(({ reason }) => ({ cancelled: true, reason })),
      { cancelled: true, reason: 'enough' },
    ],
    ['no', () => ({ reason: 'too late' }), { reason: 'too late', cancelled: false }],
    ['false', () => false, { reason: 'The app gave no reason', cancelled: false }],
    ['nothing', () => {}, { reason: 'The app gave no reason', cancelled: false }],
    [
      'an error, then an answer',
      (first) => (typeof first === 'string' ? no() : { reason: 'too late' }),
      { reason: 'too late', cancelled: false },
    ],
  ])
    test(`that is answered by ${what}`, async () => {
      const { app } = await opened({ cancel });
      assert.deepEqual(await app.cancel('c', 'enough'), expected);
    });

  test('that fails in each form fails by the first error', async () => {
    const cancel = (first) => Promise.reject(new Error(typeof first));
    const { app } = await opened({ cancel });
    await assert.rejects(app.cancel('c'), { message: 'string' });
  });

  test('by the function of the page, where the app has none', async () => {
    const page = {
      __abp_cancel: (callId, reason) => ({ cancelled: true, said: [callId, reason] }),
    };
    const { app } = await opened({}, page);
    assert.deepEqual(await app.cancel('c', 'enough'), { cancelled: true, said: ['c', 'enough'] });
    delete page.__abp_cancel;
    const reason = 'The app has no cancel function';
    assert.deepEqual(await app.cancel('c'), { cancelled: false, reason });
  });
});

describe('its end', () => {
  test('is told once, with the reason', async () => {
    const shutdown = mock.fn();
    const { app } = await opened({ shutdown });
    await app.close('gone');
    await app.close('again');
    assert.deepEqual(
      shutdown.mock.calls.map((call) => call.arguments),
      [[{ reason: 'gone' }]],
    );
  });

  test('comes though it fails, or has no word for it', async () => {
    await (await opened({ shutdown: () => Promise.reject(new Error('no')) })).app.close();
    await (await opened()).app.close();
  });

  test('is not waited for without end', async (t) => {
    const { app } = await opened({ shutdown: () => new Promise(() => {}) });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const closing = app.close();
    t.mock.timers.tick(2000);
    await closing;
  });
});
