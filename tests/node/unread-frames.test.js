// A frame that cannot be read may have held calls, results and cancels. Nobody waits for these: the
// session ends, and both sides say why.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { entriesOf } from '../support/frames.js';
import { Raw } from '../support/raw.js';

const WHY = 'A frame could not be read';
/** What becomes of a frame on its way. */
const BROKEN = {
  'cut off': (frame) => (typeof frame === 'string' ? frame.slice(0, -1) : frame.slice(0, -1)),
  'with an entry too many': (frame) =>
    Array.isArray(frame) ? [...frame, 1] : `${frame.slice(0, -1)},1]`,
  // It changes texts alone: the first frame of a turn is none.
  'as an old Prototype.js had it written': (frame) =>
    typeof frame === 'string' && `[${JSON.stringify(frame)}]`.replaceAll('"[', '['),
};

/** Both ends; `spoil` breaks the next frame that one of them sends, and that can be broken so. */
async function openSpoiled(capabilities, end, options) {
  let breaks;
  const ends = async () => {
    const { port1, port2 } = new MessageChannel();
    const transports = [port1, port2].map((port) => portTransport(port));
    const { post } = transports[end];
    transports[end].post = function (message, ...rest) {
      const isFrame = typeof message === 'string' || Array.isArray(message);
      const broken = isFrame && breaks?.(message);
      if (broken) breaks = undefined;
      return post.call(this, broken || message, ...rest);
    };
    return transports.map((transport) => ({
      transport: () => transport,
      close: () => transport.close(),
    }));
  };
  const pair = await openPair(capabilities, { ends, agent: options });
  return { ...pair, spoil: (how) => (breaks = how) };
}

for (const [what, how] of Object.entries(BROKEN))
  describe(`a frame that comes ${what}`, () => {
    for (const [sender, end] of [
      ['agent', 0],
      ['app', 1],
    ])
      test(`from the ${sender}: all calls settle, and the handlers are told`, async () => {
        if (what.includes('Prototype') && sender === 'app') return;
        let stopped;
        const aborted = new Promise((resolve) => (stopped = resolve));
        const lost = [];
        const { client, spoil } = await openSpoiled(
          {
            hangs: (_params, { signal }) =>
              new Promise(() => signal.addEventListener('abort', () => stopped('aborted'))),
            echo: (params) => params,
          },
          end,
          { onDisconnect: (error) => lost.push(error.code) },
        );
        const pending = client.call('hangs');
        assert.equal((await client.call('echo', 1)).data, 1);
        spoil(how);
        const calls = [client.call('echo', { a: 2 }), client.call('echo', { a: 3 }), pending];
        if (what.includes('Prototype')) assert.equal((await calls.shift()).success, true);
        for (const { success, error, metadata } of await Promise.all(calls)) {
          assert.deepEqual(
            [success, error.code, metadata.outcome],
            [false, 'DISCONNECTED', 'unknown'],
          );
          assert.equal(error.message, WHY);
        }
        assert.equal(await aborted, 'aborted');
        assert.deepEqual(lost, ['DISCONNECTED']);
      });
  });

describe('an app whose agent sends one by hand', () => {
  const begun = async (features) => {
    const { port1, port2 } = new MessageChannel();
    const exposed = expose({ app: APP, capabilities: { echo: (x) => x } }, { port: port1 });
    closeAfter(() => (exposed.close(), port1.close(), port2.close()));
    const raw = new Raw(port2);
    const hello = () =>
      raw.ask('initialize', 'P', { agent: AGENT, protocolVersion: '0.1', features });
    await hello();
    return { raw, exposed, hello };
  };
  const FRAMES = { 'bridge.frames': true };

  for (const features of [FRAMES, { ...FRAMES, 'bridge.text': true, 'bridge.liveness': true }])
    test(`says goodbye with the reason, and begins another: ${Object.keys(features)}`, async () => {
      const { raw, exposed, hello } = await begun(features);
      for (const broken of [[1, 1, 'echo'], Array(4 * 4097).fill(1), '[1,1,"echo",', '[[1,1]]']) {
        raw.port.postMessage(broken);
        const { type, payload } = entriesOf(await raw.next())[0][3];
        const error = { code: 'PARSE_ERROR', message: WHY, retryable: true };
        assert.deepEqual([type, payload], ['bridge/bye', { persisted: false, error }]);
        assert.equal(exposed.sessions.length, 0);
        raw.send('capabilities/call', 'c', { capability: 'echo' });
        assert.equal((await raw.next()).payload.error.code, 'NOT_INITIALIZED');
        assert.equal((await hello()).type, 'initialize-result');
      }
      assert.equal(exposed.counters[0].malformed, 4);
    });

  test('goes on after what is no frame: other programs may share the channel', async () => {
    const { raw, exposed } = await begun(FRAMES);
    const others = ['ready', '[HMR] connected', '[iFrameSizer]1:2', '5', '', [], ['a'], null];
    for (const other of others) raw.port.postMessage(other);
    raw.port.postMessage([1, 7, 'echo', 'there']);
    assert.deepEqual((await raw.next())[3], 'there');
    // An empty list is a frame of nothing.
    assert.equal(exposed.counters[0].malformed, others.length - 1);
  });

  test('goes on where no frames were agreed on', async () => {
    const { raw, exposed } = await begun({});
    for (const broken of [[1, 1, 'echo'], '[1,1']) raw.port.postMessage(broken);
    raw.send('capabilities/call', 'c', { capability: 'echo', params: 'there' });
    assert.equal((await raw.next()).payload.data, 'there');
    assert.equal(exposed.counters[0].malformed, 2);
  });
});
