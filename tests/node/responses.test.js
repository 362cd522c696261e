// A response is read by the core where it comes as a message's text, and in JavaScript where it
// comes in a frame: a caller is told the same of it, whatever it says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AbpError, connect } from '../../parts/main/index.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';
import { Peer } from '../support/raw.js';

/** An app that this test plays, in the same thread: what it sends arrives as it is. */
class App extends Peer {
  #isGreeted = false;
  transport = {
    onMessage() {},
    close() {},
    post: (message) => {
      // It is sent again until it is answered, which a busy machine may take long for.
      if (message.type !== 'initialize') this.arrived(message);
      else if (!this.#isGreeted) {
        this.#isGreeted = true;
        this.arrived(message);
      }
    },
  };
  post(message) {
    this.transport.onMessage(message, []);
  }
  send(type, id, payload) {
    this.post({ type, id, payload });
  }
}

/**
 * A client of such an app.
 * @param {Record<string, boolean>} features that the app agrees on
 */
async function openClient(features) {
  const app = new App();
  const connecting = connect(app.transport, { agent: AGENT });
  const { id } = await app.next();
  const payload = { sessionId: 's', protocolVersion: '0.1', app: APP, capabilities: [], features };
  app.send('initialize-result', id, payload);
  const client = await connecting;
  closeAfter(() => client.close());
  return { client, app };
}

const CODES = ['CANCELLED', 'TIMEOUT', 'INVALID_PARAMS', 'RATE_LIMITED', 'OWN', '', 7, undefined];
const OUTCOMES = [
  undefined,
  'unstarted',
  'stopped',
  'finished',
  'running',
  'unknown',
  'failed',
  'odd',
];
/** Responses without success, with each code and each outcome. */
function* failures() {
  for (const code of CODES) {
    for (const [i, outcome] of OUTCOMES.entries()) {
      yield {
        success: false,
        ...(i % 3 === 0 && { cancelled: true }),
        error: {
          code,
          message: ['words', '', undefined][i % 3],
          retryable: i % 2 === 1,
          details: i,
        },
        ...(i % 4 !== 3 && { metadata: { outcome, report: i } }),
      };
    }
  }
}

class Made {
  constructor(members) {
    Object.assign(this, members);
  }
}

/** What a peer may send as a response. */
const RESPONSES = [
  ...failures(),
  { success: false },
  { success: false, cancelled: true },
  { success: false, cancelled: true, data: 'half' },
  { success: false, cancelled: 'yes', error: { code: 'X' } },
  { success: false, error: 'words' },
  { success: false, error: '' },
  { success: false, error: null },
  { success: false, error: [] },
  { success: false, error: { code: 'X', retryable: 1 } },
  { success: false, error: { code: 'X', message: { text: 'words' } } },
  { success: false, error: { code: 'X' }, metadata: 'stopped' },
  { success: false, error: { code: 'X' }, data: 'half', more: true },
  { success: true, error: { code: 'X', message: 'words' } },
  { success: true, cancelled: true, data: 'all' },
  { success: 'yes', data: 1 },
  { success: 1 },
  { data: 1 },
  { error: { code: 'X', message: 'words' } },
  {},
  [],
  [{ success: true }],
  Object.assign([], { success: true }),
  { success: false, error: new Error('words') },
  { success: false, error: new AbpError('RATE_LIMITED', 'words', { retryable: true }) },
  { success: false, error: new AbpError('CANCELLED', 'words') },
  {
    success: false,
    error: new Made({ code: 'OWN', message: 'words' }),
    metadata: new Made({ outcome: 'finished' }),
  },
  new Made({ success: true, data: 1 }),
  new Made({ success: false, cancelled: true }),
  undefined,
  null,
  'words',
  1,
];

/**
 * What callers are told of a response that comes in a message, and in a frame.
 * @param {Record<'plain' | 'framed', Awaited<ReturnType<typeof openClient>>>} ways
 * @param {unknown} response
 */
async function toldOf({ plain, framed }, response) {
  const inMessage = plain.client.call('echo');
  const { id } = await plain.app.next();
  plain.app.send('capabilities/call-result', id, response);
  const inFrame = framed.client.call('echo');
  const [, key] = await framed.app.next();
  framed.app.post([4, key, undefined, response]);
  return [await inFrame, await inMessage];
}

const openWays = async () => ({
  plain: await openClient({}),
  framed: await openClient({ 'bridge.frames': true, 'bridge.outcomes': true }),
});

test('a response says the same in a message and in a frame', async () => {
  const ways = await openWays();
  const framed = Object.values(ways).map(({ client }) => client.features.frames);
  assert.deepEqual(framed, [false, true]);
  for (const response of RESPONSES) {
    const [inFrame, inMessage] = await toldOf(ways, response);
    assert.deepEqual(inFrame, inMessage, JSON.stringify(response));
  }
});

test('what all objects inherit is not what a peer has said', async () => {
  const ways = await openWays();
  const expected = await toldOf(ways, { success: false });
  const inherited = {
    cancelled: true,
    error: { code: 'OWN' },
    code: 'CANCELLED',
    outcome: 'stopped',
  };
  for (const [name, value] of Object.entries(inherited)) {
    Object.defineProperty(Object.prototype, name, {
      value,
      configurable: true,
      writable: true,
    });
    let told;
    try {
      told = await toldOf(ways, { success: false, metadata: {} });
    } finally {
      delete Object.prototype[name];
    }
    assert.deepEqual(told, expected, name);
  }
});

test('an answer that cannot be read says so, and costs no other one of its frame', async () => {
  const { framed } = await openWays();
  const { client, app } = framed;
  const unread = [
    [4, undefined, undefined],
    [11, 11n, 'words'],
    [11, NaN, 'words'],
    [11, 11.5, 'words'],
    [11, -11, 'words'],
    [11, 11 + 1024, 'words'],
    [11, 11 + 2048, 'words'],
    [11, 2 ** 32 + 11, 'words'],
    [11, '11', 'words'],
    [11, 255, 'words'],
  ];
  for (const [kind, a, b] of unread) {
    const calls = [client.call('echo'), client.call('echo')];
    const [, first] = await app.next();
    const [, second] = await app.next();
    app.post([kind, first, a, b, 3, second, 0, 'read']);
    const [{ error }, { data }] = await Promise.all(calls);
    assert.equal(data, 'read');
    assert.equal(error.code, 'OPERATION_FAILED');
    assert.match(error.message, /is not an ABP response/);
  }
});
