// Streams that are cut off at random, in every way in which one can end: each generator unwinds,
// each stream settles once, and nothing of it is left. `npm run soak` makes a hundred thousand;
// SEED says which.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { createPeer, portTransport } from '../../packages/rpc/src/index.js';
import { random } from '../differential/scripts.js';
import { MemorySamples, turn } from './memory.js';

const STREAMS = Number(process.env.STREAMS ?? 6000);
const SEED = Number(process.env.SEED ?? 1);
const BATCH = 50;
/** Batches of one session. */
const SESSION = 6;
const SAMPLES = 12;

const pick = random(SEED);
let begun = 0;
let ended = 0;

/** What is streamed: `kind` is that of the handler. */
async function* chunks({ rows, size, kind }, { signal }) {
  begun++;
  try {
    for (let i = 0; i < rows; i++)
      yield [{ i, text: 'x'.repeat(size), bytes: new Uint8Array(size) }];
    if (kind === 'fails') throw new AbpError('OWN', 'as it was told to');
    if (kind === 'hangs' && !signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return rows;
  } finally {
    // An end that takes its time is still a part of it.
    if (size % 3 === 0) await turn();
    ended++;
  }
}

/** Our two sides over a channel, for ABP and for LSP, and how a session ends. */
const WAYS = {
  async abp() {
    const { port1, port2 } = new MessageChannel();
    const app = expose(
      { app: { id: 'a.b', name: 'A', version: '1' }, capabilities: { chunks } },
      { port: port1, limits: { streamChunks: 9, streamBytes: 700 } },
    );
    const client = await connect(port2, {
      agent: { name: 'soak', version: '1' },
      limits: { streamChunks: 7, streamBytes: 1200 },
    });
    return {
      stream: (params, options) => client.stream('chunks', params, options),
      cancel: (callId) => void client.cancel(callId, 'changed my mind'),
      outcome: async ({ response }) => {
        const { success, data, error } = await response;
        return success ? { data } : { code: error.code };
      },
      left: () => [app.counters[0], client.counters],
      ends: [() => client.close(), () => app.close(), () => port1.close(), () => port2.close()],
      end() {
        client.close();
        app.close();
        port1.close();
        port2.close();
      },
    };
  },
  async lsp() {
    const { port1, port2 } = new MessageChannel();
    const [app, client] = [port1, port2].map((port) =>
      createPeer(portTransport(port), { dialect: 'lsp' }),
    );
    app.handle('chunks', chunks);
    return {
      stream: (params, { signal, timeout }) => client.stream('chunks', params, { signal, timeout }),
      cancel() {},
      outcome: ({ result }) =>
        result.then(
          (data) => ({ data }),
          ({ name, code }) => ({ code: name === 'RpcError' ? code : name }),
        ),
      left: () => [app.counters, client.counters],
      ends: [() => client.close(), () => app.close(), () => port1.close(), () => port2.close()],
      end() {
        client.close();
        app.close();
      },
    };
  },
};

const ENDINGS = ['break', 'abort', 'shared', 'cancel', 'timeout', 'unread', 'throw', 'nothing'];

for (const [way, open] of Object.entries(WAYS)) {
  const count = way === 'abp' ? STREAMS : STREAMS / 4;
  test(`${way}: of ${count.toLocaleString('en')} streams that are cut off at random nothing is left`, async (t) => {
    const outcomes = {};
    let shared = new AbortController();
    let made = 0;

    async function one(side) {
      const ending = ENDINGS[pick(ENDINGS.length)];
      const [rows, cut] = [pick(30), pick(40)];
      const callId = `s${made++}`;
      // What waits for ever has to be stopped by somebody.
      const stops = !['break', 'cancel', 'throw', 'nothing'].includes(ending) && cut <= rows;
      const kind = stops && pick(2) ? 'hangs' : pick(5) ? 'ends' : 'fails';
      const own = new AbortController();
      const { signal } = ending === 'shared' ? shared : own;
      const stream = side.stream(
        { rows, size: pick(100), kind },
        { callId, signal, ...(ending === 'timeout' && { timeout: 1 + pick(3) }) },
      );
      let read = 0;
      const stop = () => {
        if (ending === 'cancel') side.cancel(callId);
        if (['abort', 'unread', 'timeout'].includes(ending)) own.abort();
        if (ending === 'shared') shared.abort();
        if (ending === 'throw') throw new Error('thrown by the reader');
        return ending === 'break';
      };
      try {
        if (ending === 'unread') {
          for (let turns = pick(4); turns; turns--) await turn();
          stop();
        } else if (cut || !stop()) {
          for await (const [{ i }] of stream) {
            assert.equal(i, read++, 'chunks come in order, each once');
            if (read === cut && stop()) break;
          }
        } else await stream.return();
      } catch (error) {
        assert.notEqual(error.name, 'AssertionError', error.message);
        // Whoever throws before the loop has not left it.
        if (!read) await stream.return();
      }
      const { data, code } = await side.outcome(stream);
      if (code === undefined) assert.equal(data, rows);
      const outcome = code ?? 'success';
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      return signal;
    }

    const memory = new MemorySamples(count, SAMPLES);
    let side = await open();
    t.after(() => side.end());
    for (let batch = 1; made < count; batch++) {
      const last = batch % SESSION === 0;
      shared = new AbortController();
      const running = Array.from({ length: BATCH }, () => one(side));
      if (last) {
        // The session itself is cut off, with all that runs in it.
        for (let turns = pick(3); turns; turns--) await turn();
        side.ends[pick(side.ends.length)]();
      }
      const signals = await Promise.all(running);
      while (ended < begun) await turn();
      for (const signal of signals)
        assert.equal(getEventListeners(signal, 'abort').length, 0, 'nobody listens any more');
      // What has settled here may still be told to the other side.
      const pending = () =>
        side.left().some(({ inFlightIn, inFlightOut }) => inFlightIn + inFlightOut > 0);
      while (!last && pending()) await turn();
      if (last) {
        side.end();
        side = await open();
      }
      await memory.take(made);
    }
    assert.equal(ended, begun, 'every generator has unwound');
    assert.equal(
      Object.values(outcomes).reduce((a, b) => a + b),
      made,
      'every stream has settled, once',
    );
    console.log(`${JSON.stringify(outcomes)}\n${begun} generators, ${memory}`);
    memory.assertFlat(0.05); // a stream of which anything stays takes more
  });
}
