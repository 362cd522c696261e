// What the inspector makes of events; how it looks and is used is shown in tests/browser.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AbpInspector } from '../src/index.js';
import { Log, eventsOf } from '../src/log.js';
import { recordSession } from '../../../tests/support/recorded.js';

const at = { time: 1, connection: 1, side: 'agent' };
const message = (type, payload = {}, direction = 'out', id = 'c') => ({
  ...at,
  type: 'message',
  direction,
  message: { type, id, payload },
});

test('it can be imported where there are no pages', () => {
  assert.equal(typeof AbpInspector, 'function');
});

test('no message of a peer hides itself by what it says', () => {
  const odd = [
    { toString: 1, valueOf: 1 },
    Object.create(null),
    5n,
    Symbol('odd'),
    [{ toString: 1 }],
  ];
  for (const what of odd) {
    const log = new Log();
    const sent = [
      { ...message('x'), message: { type: what, id: what } },
      { ...message('x'), message: what },
      message('capabilities/call', { capability: what, options: { callId: what } }),
      message('elicitation/request', { method: what }, 'in'),
      message('capabilities/call-result', { error: { code: what, message: what } }, 'in'),
      message('capabilities/cancel-result', { cancelled: what, reason: what, callId: what }, 'in'),
      message('notification', { event: what }, 'in'),
      message('progress', { progress: what, total: what, operationId: what }, 'in', 'p'),
      message('bridge/chunk', { callId: what, size: what }, 'in', 's'),
    ];
    for (const event of sent) log.add(event);
    log.add({ ...at, type: 'call', direction: 'out', callId: 'c', name: 'n' });
    log.add({
      ...at,
      type: 'progress',
      direction: 'out',
      callId: 'c',
      progress: { progress: what, total: what },
    });
    log.add({
      ...at,
      type: 'result',
      direction: 'out',
      callId: 'c',
      response: { error: { code: what } },
      outcome: 'failed',
    });
    assert.ok(log.rows.length >= sent.length - 1);
    assert.equal([...log.calls.values()][0].state, 'ended');
  }
});

describe('a row', () => {
  const ROWS = {
    'a call': [
      message('capabilities/call', { capability: 'x.y' }),
      ['call', 'x.y: call', 'agent', 'c'],
    ],
    'a question': [
      message('elicitation/request', { method: 'm' }, 'in'),
      ['call', 'm: question', 'app', 'c'],
    ],
    'a success': [
      message('capabilities/call-result', { success: true }, 'in'),
      ['result', 'completed', 'app', 'c'],
    ],
    'a failure': [
      message('capabilities/call-result', { success: false, error: { code: 'X', message: 'y' } }),
      ['failed', 'failed: X: y', 'agent', 'c'],
    ],
    'a cancelled call': [
      message('capabilities/call-result', { success: false, cancelled: true }, 'in'),
      ['cancel', 'cancelled', 'app', 'c'],
    ],
    'a cancel': [
      message('capabilities/cancel', { callId: 'd', reason: 'no' }),
      ['cancel', 'cancel: no', 'agent', 'd'],
    ],
    'the answer to a cancel': [
      message('capabilities/cancel-result', { callId: 'd', cancelled: false }, 'in'),
      ['cancel', 'cancelled: false', 'app', 'd'],
    ],
    'the cancel of a question': [
      message('bridge/cancel', { callId: 'd', reason: 'no' }),
      ['cancel', 'cancel: no', 'agent', 'd'],
    ],
    progress: [
      message('progress', { operationId: 'd', progress: 1, total: 3 }, 'in'),
      ['progress', 'progress 33%', 'app', 'd'],
    ],
    'a chunk of a stream': [
      message('bridge/chunk', { callId: 'd' }, 'in'),
      ['progress', '1 chunk', 'app', 'd'],
    ],
    'a notification': [
      message('notification', { event: 'changed' }, 'in'),
      ['other', 'notification changed', 'app', 'c'],
    ],
    'a handshake': [message('initialize'), ['session', 'initialize', 'agent', 'c']],
    'what is no message': [
      { ...at, type: 'message', direction: 'in', message: 7 },
      ['other', 'number: another protocol', 'app', ''],
    ],
    'a message of JSON-RPC': [
      {
        ...at,
        type: 'message',
        direction: 'in',
        message: { jsonrpc: '2.0', id: 1, method: 'ui/initialize' },
      },
      ['other', 'ui/initialize: another protocol (JSON-RPC)', 'app', '1'],
    ],
    'an answer of JSON-RPC': [
      { ...at, type: 'message', direction: 'in', message: { jsonrpc: '2.0', id: 1, result: {} } },
      ['other', 'an answer: another protocol (JSON-RPC)', 'app', '1'],
    ],
    'the greeting of a channel for JSON-RPC': [
      { ...at, type: 'message', direction: 'in', message: { 'abp-bridge': 'here' } },
      ['other', 'here: another protocol (JSON-RPC channel)', 'app', ''],
    ],
    'a question whether the app is there': [
      message('capabilities/cancel', { callId: 'x.0' }),
      ['session', 'are you there? (a cancel of no call)', 'agent', 'x.0'],
    ],
    'its answer': [
      message('capabilities/cancel-result', { callId: 'x.0', cancelled: false }, 'in'),
      ['session', 'yes', 'app', 'x.0'],
    ],
    'what was dropped': [
      { ...at, type: 'dropped', reason: 'late', count: 2 },
      ['problem', 'dropped: late', undefined, ''],
    ],
    'what was refused': [
      { ...at, type: 'refused', name: 'x', callId: 'c', error: { code: 'X', message: 'y' } },
      ['problem', 'x: refused: X', undefined, 'c'],
    ],
  };
  for (const [what, [event, expected]] of Object.entries(ROWS)) {
    test(`says what ${what} is, and who sent it`, () => {
      const log = new Log();
      log.add(event);
      const [{ kind, title, from, id }] = log.rows;
      assert.deepEqual([kind, title, from, id], expected);
    });
  }
});

test('a greeting that is repeated until it is answered is one row', () => {
  const log = new Log();
  const greet = (id, connection = 1) =>
    log.add({ ...message('initialize', {}, 'out', id), connection });
  for (const id of ['a', 'a', 'a', 'b']) greet(id);
  greet('b', 2);
  const titles = () => log.rows.map(({ title }) => title);
  assert.deepEqual(titles(), ['initialize (3 times)', 'initialize', 'initialize']);
  log.clear();
  greet('b', 2);
  assert.deepEqual(titles(), ['initialize']);
});

test('what is of another protocol is one row, and is counted by what it is', () => {
  const log = new Log();
  const dropped = (count) => log.add({ ...at, type: 'dropped', reason: 'malformed', count });
  const heard = (message) => log.add({ ...at, type: 'message', direction: 'in', message });
  heard({ 'abp-bridge': 'here' });
  dropped(1);
  heard({ jsonrpc: '2.0', id: 1, method: 'ui/initialize' });
  dropped(2); // one that nobody knows more of is among them
  const greeting = 'here: another protocol (JSON-RPC channel)';
  const request = 'ui/initialize: another protocol (JSON-RPC)';
  const titles = log.rows.map(({ title }) => title);
  assert.deepEqual(titles, [greeting, request, 'dropped: malformed']);
  assert.equal(log.counts.get('malformed'), 3);
  assert.deepEqual(
    log.reasons.map(({ text }) => text),
    [
      `malformed: ${greeting}`,
      `malformed: ${request}`,
      `malformed: a message that could not be read`,
    ],
  );
});

test('a call goes from state to state, and says how it ended', () => {
  const log = new Log();
  const call = { ...at, callId: 'c', name: 'work', direction: 'in' };
  const state = () => [...log.calls.values()].map((entry) => entry.state);
  log.add({ ...call, type: 'call', waiting: true, timeout: 50, parent: 'p' });
  assert.deepEqual(state(), ['waiting']);
  log.add({ ...call, type: 'start' });
  log.add({ ...call, type: 'progress', progress: { percentage: 40 } });
  assert.deepEqual(state(), ['running']);
  log.add({ ...call, type: 'cancel', reason: 'no' });
  assert.deepEqual(state(), ['stopping']);
  log.add({ ...call, type: 'result', outcome: 'timed out', time: 9, response: {} });
  const [{ end, deadline, progress, parent, ended }] = log.calls.values();
  assert.deepEqual(
    [state(), end, deadline, progress, parent, ended],
    [['ended'], 'timed out', 51, '40%', 'p', 9],
  );
});

for (const [side, coming, going] of [
  ['the reader', 'out', 'in'],
  ['the handler', 'in', 'out'],
]) {
  test(`a stream shows what its reader has not read, at ${side}`, () => {
    const log = new Log();
    const stream = () => log.calls.values().next().value.stream;
    log.add({ ...at, type: 'call', callId: 'c', name: 'a', direction: coming });
    assert.equal(stream(), undefined);
    for (const size of [3, 4, 5n]) log.add(message('bridge/chunk', { callId: 'c', size }, going));
    log.add(message('bridge/chunk', { callId: 'another', size: 9 }, going));
    assert.deepEqual(stream(), { chunks: 3, unread: 3, bytes: 7 });
    log.add(message('bridge/credit', { callId: 'c', chunks: 2, bytes: 7 }, coming));
    log.add(message('bridge/credit', { callId: 'c', chunks: 'x' }, coming));
    assert.deepEqual(stream(), { chunks: 3, unread: 1, bytes: 0 });
  });
}

test('everything that it keeps is bounded', () => {
  const log = new Log();
  const huge = 'x'.repeat(15_000);
  for (let i = 0; i < 3000; i++) {
    log.add(message('capabilities/call', { params: huge }));
    log.add({ ...at, type: 'call', callId: `${i}`, name: 'a', direction: 'out' });
    log.add({ ...at, type: 'dropped', reason: 'stray', count: 1 });
  }
  assert.deepEqual([log.rows.length, log.calls.size, log.reasons.length], [2000, 1000, 200]);
  assert.equal(log.counts.get('stray'), 3000);
  const kept = log.rows.reduce((sum, { content = '' }) => sum + content.length, 0);
  assert.ok(kept <= 8_000_000 && kept > 7_000_000, `${kept}`);
  assert.notEqual(log.rows.at(-2).content, undefined);
  assert.ok([...log.calls.values()].every(({ id }) => Number(id) >= 2000));
});

test('the progress and the chunks of a call are one row, until something else happens to it', () => {
  const log = new Log();
  log.add({ ...at, type: 'call', callId: 'c', name: 'story', direction: 'out' });
  const progressOf = (done) =>
    message('progress', { operationId: 'c', progress: done, total: 4 }, 'in');
  log.add(message('capabilities/call', { capability: 'story' }));
  for (const done of [1, 2, 3]) {
    log.add(progressOf(done));
    log.add(message('bridge/chunk', { callId: 'c', chunk: done }, 'in'));
    log.add(message('progress', { operationId: 'other', progress: done, total: 4 }, 'in'));
  }
  log.add(message('bridge/credit', { callId: 'c', chunks: 3 }));
  const titles = () => log.rows.map(({ title }) => title);
  const both = ['story: progress 75% (3 times), 3 chunks, 1 credit', 'progress 75% (3 times)'];
  assert.deepEqual(titles(), ['story: call', ...both]);
  assert.match(log.rows[1].content, /"bridge\/credit"/);
  log.add(message('capabilities/cancel', { callId: 'c', reason: 'no' }));
  log.add(progressOf(4));
  assert.deepEqual(titles().slice(3), ['story: cancel: no', 'story: progress 100%']);
});

test('it reads recordings, and says what is none', async () => {
  const { text } = await recordSession();
  const log = new Log();
  for (const event of eventsOf(text)) log.add(event);
  const titles = log.rows.map(({ title }) => title);
  for (const title of ['echo: call', 'echo: completed', 'fails: failed: OWN', 'session ready']) {
    assert.ok(titles.includes(title), title);
  }
  assert.ok([...log.calls.values()].every(({ state }) => state === 'ended'));
  assert.throws(() => eventsOf('{"e":1}\nno'), /line 2 is not JSON/);
  assert.throws(() => eventsOf('{"e":1}\n{"note":{"type":1}}'), /it has no events/);
  assert.throws(() => eventsOf(''), TypeError);
});
