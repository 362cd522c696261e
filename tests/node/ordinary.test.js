// Ordinary calls and data are read as objects, all other messages by the core. Each case is sent as
// it is, and with a member that nobody knows, which leaves it to the core: what is made of it is
// the same.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const FEATURES = { elicitation: true, progress: true };
const IDS = ['c', '', 'a\0b', '\ud800', 'é', 'x'.repeat(256), 'é'.repeat(128), 'x'.repeat(257)];

/** An answer without what is measured. */
function plain({ type, id, payload }) {
  delete payload.metadata?.duration;
  return { type, id, payload };
}

async function rawAgent() {
  const { port1, port2 } = new MessageChannel();
  const capabilities = {
    shows: (params, { callId }) => ({ params, callId }),
    lasts: (_params, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  };
  const exposed = expose({ app: APP, capabilities }, { port: port1 });
  const raw = new Raw(port2);
  closeAfter(() => (exposed.close(), port2.close()));
  await raw.ask('initialize', 'P', { agent: AGENT, protocolVersion: '0.1', features: FEATURES });
  return { raw, exposed };
}

/** What an app answers, and counts. */
async function answerTo(id, payload) {
  const { raw, exposed } = await rawAgent();
  raw.send('capabilities/call', id, payload);
  const answers = [];
  // Which of the two ends first would depend on the machine.
  if (payload.capability === 'lasts') answers.push(plain(await raw.next()));
  raw.send('capabilities/call', 'last', { capability: 'shows', params: 1 });
  do answers.push(plain(await raw.next()));
  while (answers.at(-1).id !== 'last');
  return { answers, counters: exposed.counters };
}

describe('a call', () => {
  /** @type {[string, unknown, any][]} */
  const CASES = [
    ...IDS.map((id) => [`whose id is ${JSON.stringify(id).slice(0, 9)}`, id, { options: {} }]),
    ...[...IDS, 7, null, {}, 1n].map((callId, i) => [
      `of callId ${i}`,
      'm',
      { options: { callId } },
    ]),
    ...IDS.map((callId, i) => [`of callId ${i} beside its options`, 'm', { callId }]),
    ['of two callIds', 'm', { callId: 'outer', options: { callId: 'inner' } }],
    ...[7, undefined, null, {}].map((id, i) => [`of a message with id ${i}`, id, {}]),
    ...[null, [], 'x', 1].map((options, i) => [`with no options ${i}`, 'm', { options }]),
    ...[0, -1, 1e12, NaN, '5', null, 0.5, 3e9].map((timeout) => [
      `with ${timeout} ms`,
      'm',
      { options: { timeout } },
    ]),
    ['that is over at once', 'm', { capability: 'lasts', options: { timeout: 1 } }],
    ...[null, 7, '', 'toString', ['shows']].map((capability) => [
      `of ${JSON.stringify(capability)}`,
      'm',
      { capability },
    ]),
  ];
  for (const [what, id, more] of CASES) {
    test(what, async () => {
      const payload = { capability: 'shows', params: { a: 1 }, ...more };
      const options = payload.options ?? {};
      const left = {
        ...payload,
        options: typeof options === 'object' ? { ...options, own: 1 } : options,
      };
      const [ordinary, other] = [await answerTo(id, payload), await answerTo(id, left)];
      assert.deepEqual(ordinary, other);
    });
  }
});

describe('data', () => {
  for (const [what, response] of Object.entries({
    plain: { success: true, data: 1 },
    none: { success: true },
    'with metadata': { success: true, data: 1, metadata: { own: 1 } },
    'not cancelled': { success: true, data: 1, cancelled: false },
    'that is cancelled': { success: true, data: 1, cancelled: true },
    'with an error': { success: true, data: 1, error: { code: 'CANCELLED', message: 'm' } },
    failed: { success: false, data: 1 },
    'in a list': [true],
  })) {
    test(what, async () => {
      const { port1, port2 } = new MessageChannel();
      const raw = new Raw(port2);
      const connecting = connect(port1, { agent: AGENT, upgrade: 'none' });
      const { id } = await raw.next();
      const session = { sessionId: 'S', protocolVersion: '0.1', app: APP, capabilities: [] };
      raw.send('initialize-result', id, { ...session, features: FEATURES });
      const client = await connecting;
      closeAfter(() => (client.close(), port2.close()));
      const told = [];
      for (const more of [{}, { error: null, ...response }]) {
        const calling = client.call('work');
        const asked = await raw.next();
        const payload = Array.isArray(response) ? response : { ...response, ...more };
        raw.send('capabilities/call-result', asked.id, payload);
        const { error, ...rest } = await calling;
        told.push([rest, error ?? undefined]);
      }
      assert.deepEqual(told[0], told[1]);
    });
  }
});
