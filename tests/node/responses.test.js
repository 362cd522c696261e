// A response is read by the core where it comes as a message's text, and in JavaScript where it
// comes in a frame: a caller is told the same of it, whatever it says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../../packages/main/src/index.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';
import { Raw } from '../support/raw.js';

/**
 * A client of an app that this test plays.
 * @param {Record<string, boolean>} features that the app agrees on
 */
async function openClient(features) {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port2);
  const connecting = connect(port1, { agent: AGENT });
  const { id } = await raw.next();
  const payload = { sessionId: 's', protocolVersion: '0.1', app: APP, capabilities: [], features };
  raw.send('initialize-result', id, payload);
  const client = await connecting;
  closeAfter(() => port2.close());
  closeAfter(() => client.close());
  return { client, raw };
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
  null,
  'words',
  1,
];

test('a response says the same in a message and in a frame', async () => {
  const plain = await openClient({});
  const framed = await openClient({ 'bridge.frames': true });
  assert.deepEqual(
    [plain, framed].map(({ client }) => client.features.frames),
    [false, true],
  );
  for (const response of RESPONSES) {
    const inMessage = plain.client.call('echo');
    const { id } = await plain.raw.next();
    plain.raw.send('capabilities/call-result', id, response);
    const inFrame = framed.client.call('echo');
    const [, key] = await framed.raw.next();
    framed.raw.port.postMessage([4, key, undefined, response]);
    assert.deepEqual(await inFrame, await inMessage, JSON.stringify(response));
  }
});
