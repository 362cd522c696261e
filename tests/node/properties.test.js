// Arbitrary values at both sides: as raw messages from a hostile peer, and from this side's own
// callers and handlers. Whatever comes, an honest call works afterwards, every call settles, and
// nothing goes unhandled. FC_SEED and FC_RUNS choose others than the fixed ones: FC_RUNS=300 is for
// before a release.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { connect, expose } from '../../parts/main/index.js';
import { alter, anything, changes, cloneable, frames, movable } from '../support/anything.js';

const SETTINGS = {
  seed: Number(process.env.FC_SEED ?? 1),
  numRuns: Number(process.env.FC_RUNS ?? 40),
  endOnFailure: true,
};
const ORIGIN = 'https://agent.example';
const AGENT = { name: 'a', version: '1' };
const APP = { id: 'a', name: 'A', version: '1' };
const ALL = {
  notifications: true,
  progress: true,
  elicitation: true,
  'bridge.frames': true,
  'bridge.liveness': true,
};

// --- What must not happen ------------------------------------------------------------------------

const unhandled = [];
const note = (error) => unhandled.push(error);
const { warn, error: complain } = console;
before(() => {
  process.on('uncaughtException', note);
  process.on('unhandledRejection', note);
  globalThis.reportError = note;
  console.warn = () => {};
  // That a handler throws is told to its author.
  console.error = (...words) => void (/ failed:$/.test(words[0]) || note(words));
});
after(() => {
  process.off('uncaughtException', note);
  process.off('unhandledRejection', note);
  delete globalThis.reportError;
  Object.assign(console, { warn, error: complain });
});

/** Resolves as the promise does, or fails: nothing here takes that long. */
function soon(promise, what) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`never came: ${what}`)), 60_000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** What is to be closed after a run. @type {(() => void)[]} */
const opened = [];

/** @param {import('fast-check').Arbitrary<any>[]} arbitraries */
const holds = (arbitraries, property, settings) =>
  fc.assert(
    fc.asyncProperty(...arbitraries, async (...values) => {
      try {
        await property(...values);
      } finally {
        for (const close of opened.splice(0)) close();
      }
      await new Promise(setImmediate);
      assert.deepEqual(unhandled.splice(0), []);
    }),
    { ...SETTINGS, ...settings },
  );

// --- A peer by hand ------------------------------------------------------------------------------

function portsIn(value, found = new Set(), seen = new Set()) {
  if (value instanceof MessagePort) found.add(value);
  else if (typeof value === 'object' && value !== null && !seen.has(value)) {
    seen.add(value);
    if (!ArrayBuffer.isView(value))
      for (const key of Object.keys(value)) portsIn(value[key], found, seen);
  }
  return [...found];
}

/** One end of a connection: what it sends may fail to be cloned, which is nobody's fault. */
class Peer {
  heard = [];
  #waiting = [];
  /** @param {(message: any, transfer: any[]) => void} post */
  constructor(post) {
    this.post = post;
  }
  send(message) {
    try {
      this.post(message, portsIn(message));
    } catch {
      return false;
    }
    return true;
  }
  hear(data) {
    const messages =
      Array.isArray(data) && data.length % 4 === 0
        ? data.flatMap((_, i) =>
            i % 4 ? [] : [{ entry: data[i], id: data[i + 1], payload: data[i + 3] }],
          )
        : [data];
    this.heard.push(...messages);
    for (const check of this.#waiting.splice(0)) check();
  }
  async next(id, after = 0) {
    for (;;) {
      const found = this.heard.slice(after).find((message) => message?.id === id);
      if (found) return found;
      await new Promise((resolve) => this.#waiting.push(resolve));
    }
  }
}

function portPeer(port) {
  const peer = new Peer((message, transfer) => port.postMessage(message, transfer));
  port.onmessage = ({ data }) => peer.hear(data);
  return peer;
}

/** As much of a page as window messages need. */
class Page {
  #listeners = new Set();
  constructor() {
    globalThis.addEventListener = (type, listener) =>
      type === 'message' && this.#listeners.add(listener);
    globalThis.removeEventListener = (_type, listener) => this.#listeners.delete(listener);
    globalThis.MutationObserver = class {
      observe() {}
      disconnect() {}
    };
  }
  /** A window that hears what is posted to it, and speaks to this page. */
  peer(hear) {
    const source = {
      postMessage: (message, { transfer = [] }) => {
        const ports = transfer.filter((part) => part instanceof MessagePort);
        const data = structuredClone({ message, ports }, { transfer });
        queueMicrotask(() => hear(data.message, data.ports));
      },
    };
    const say = (message, transfer) => {
      const { data } = structuredClone({ data: message }, { transfer });
      const event = { data, ports: [], origin: ORIGIN, isTrusted: true, source };
      for (const listener of this.#listeners) listener(event);
    };
    return { source, say };
  }
  close() {
    delete globalThis.addEventListener;
    delete globalThis.removeEventListener;
    delete globalThis.MutationObserver;
  }
}

const MODES = ['window messages', 'a port', 'a port with frames'];

const HANDLERS = {
  echo: (params) => params,
  hang: (_params, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    ),
  chatty: (params, { progress }) => progress({ progress: 1, total: 2 }) ?? params,
  strict: { handler: (params) => params, inputSchema: { type: 'object', required: ['x'] } },
};

/** An app, and a raw agent of it. */
function appIn(mode) {
  if (mode === 'window messages') {
    const page = new Page();
    const { say } = page.peer((data) => peer.hear(data));
    const peer = new Peer(say);
    const app = expose(
      { app: APP, capabilities: HANDLERS },
      { origins: [ORIGIN], limits: { grace: 50 } },
    );
    opened.push(() => app.close(), page.close);
    return { app, peer };
  }
  const { port1, port2 } = new MessageChannel();
  const app = expose({ app: APP, capabilities: HANDLERS }, { port: port1, limits: { grace: 50 } });
  opened.push(
    () => app.close(),
    () => port2.close(),
  );
  return { app, peer: portPeer(port2) };
}

const HELLO = { protocolVersion: '0.1', agent: AGENT, features: ALL };
const message = (type, id, payload) => ({ type, id, timestamp: 1, payload });
const TO_APP = [
  message('initialize', 'hello', HELLO),
  message('capabilities/call', 'c', {
    capability: 'echo',
    params: { x: 1 },
    options: { callId: 'c', timeout: 20, progressToken: 'c' },
  }),
  message('capabilities/call', 'h', { capability: 'hang', callId: 'h', options: { timeout: 5 } }),
  message('capabilities/call', 's', { capability: 'strict', params: { x: 1 } }),
  message('capabilities/call', 'p', { capability: 'chatty', options: { progressToken: 'p' } }),
  message('capabilities/cancel', 'x', { callId: 'h', reason: 'why' }),
  message('elicitation/response', 'q', { success: true, data: 1 }),
  message('shutdown', 'z', {}),
  message('bridge/ping', 'z', {}),
  message('bridge/bye', 'z', { persisted: true }),
];
const wild = fc.oneof(cloneable, movable);
const altered = fc.tuple(fc.constantFrom(...TO_APP), changes(wild)).map((parts) => alter(...parts));
const toApp = fc.array(
  fc.oneof(wild, altered, frames(wild, ['echo', 'hang', 'strict', 'nothing'])),
  { minLength: 1, maxLength: 8 },
);

describe('raw messages of any shape, to an app', () => {
  for (const mode of MODES) {
    test(`by ${mode}`, () =>
      holds([fc.boolean(), toApp], async (early, messages) => {
        const { app, peer } = appIn(mode);
        await app.ready;
        const features = mode === 'a port with frames' ? ALL : {};
        const hello = (id) => peer.send(message('initialize', id, { ...HELLO, features }));
        if (!early) {
          hello('first');
          await soon(peer.next('first'), 'the answer to initialize');
        }
        for (const one of messages) peer.send(one);
        // The session may have been ended by what was sent: a new one is always to be had.
        peer.send(message('shutdown', 'end', {}));
        hello('again');
        await soon(peer.next('again'), 'the answer to the last initialize');
        peer.send(message('capabilities/call', 'honest', { capability: 'echo', params: 'fine' }));
        const { payload } = await soon(peer.next('honest'), 'the answer to the honest call');
        assert.deepEqual([payload.success, payload.data], [true, 'fine']);
      }));
  }
});

/** An agent, and a raw app. */
async function agentIn(mode) {
  const options = {
    agent: AGENT,
    limits: { grace: 50 },
    onElicitation: ({ params }) => params,
    onNotification() {},
    onProgress() {},
    onCapabilitiesChanged() {},
    onDisconnect() {},
  };
  let peer, connecting;
  if (mode === 'window messages') {
    const page = new Page();
    const { source, say } = page.peer((data) => peer.hear(data));
    peer = new Peer(say);
    const iframe = {
      contentWindow: source,
      ownerDocument: {},
      getRootNode: () => ({}),
      addEventListener() {},
      removeEventListener() {},
    };
    connecting = connect(iframe, { ...options, origin: ORIGIN });
    opened.push(page.close);
  } else {
    const { port1, port2 } = new MessageChannel();
    peer = portPeer(port2);
    connecting = connect(port1, options);
    opened.push(
      () => port1.close(),
      () => port2.close(),
    );
  }
  while (!peer.heard.length) await new Promise(setImmediate);
  return { peer, connecting, hello: peer.heard[0].id };
}

const accepted = (id, features) =>
  message('initialize-result', id, {
    sessionId: 's',
    protocolVersion: '0.1',
    app: APP,
    capabilities: [{ name: 'echo', available: true, requirements: [{ met: false }] }],
    features,
  });
const refused = (id) =>
  message('initialize-result', id, {
    success: false,
    error: { code: 'X', message: 'm', retryable: false },
  });
const featuresIn = (mode) => ({ ...ALL, 'bridge.frames': mode === 'a port with frames' });
const toAgent = (id) => [
  message('capabilities/call-result', id, { success: true, data: 1, metadata: { duration: 1 } }),
  message('capabilities/call-result', id, {
    success: false,
    cancelled: true,
    error: { code: 'CANCELLED' },
  }),
  message('capabilities/cancel-result', id, { callId: id, cancelled: true }),
  message('progress', id, { operationId: id, progress: 1, total: 2 }),
  message('notification', id, {
    event: 'notifications/capabilities/list_changed',
    data: { added: ['a'], removed: ['echo'], changed: ['b'], capabilities: [{ name: 'a' }] },
  }),
  message('elicitation/request', id, { method: 'elicitation/input', params: {}, timeout: 10 }),
];

describe('raw messages of any shape, to an agent', () => {
  const altered = fc.array(fc.tuple(fc.nat(5), changes(wild)), { maxLength: 8 });
  const others = fc.array(fc.oneof(wild, frames(wild, [1, 2])), { maxLength: 3 });
  for (const mode of MODES) {
    test(`by ${mode}`, () =>
      holds([altered, others], async (messages, more) => {
        const { peer, connecting, hello } = await agentIn(mode);
        peer.send(accepted(hello, featuresIn(mode)));
        const client = await connecting;
        const calls = ['echo', 'echo'].map((name) => client.call(name, {}, { onProgress() {} }));
        const valid = toAgent(`${hello}.1`);
        for (const [which, replacements] of messages) peer.send(alter(valid[which], replacements));
        for (const one of more) peer.send(one);
        const answer = (n, data) =>
          peer.send(message('capabilities/call-result', `${hello}.${n}`, { success: true, data }));
        answer(1);
        answer(2);
        await soon(Promise.all(calls), 'what was pending');
        await client.supports('echo');
        assert.equal(client.connected, true);
        const honest = client.call('echo', 1);
        answer(3, 'fine');
        assert.equal((await soon(honest, 'the honest call')).data, 'fine');
        assert.equal(client.counters.inFlightOut, 0);
        client.close();
      }));

    test(`in answer to initialize, by ${mode}`, () =>
      holds([fc.boolean(), changes(wild)], async (yes, replacements) => {
        const { peer, connecting, hello } = await agentIn(mode);
        peer.send(alter(yes ? accepted(hello, featuresIn(mode)) : refused(hello), replacements));
        peer.send(refused(hello));
        const client = await soon(connecting, 'the end of the handshake').catch((error) => {
          assert.equal(error.name, 'AbpError');
          assert.equal(typeof error.code, 'string');
        });
        for (const { name } of (await client?.listCapabilities()) ?? [])
          await client.supports(name);
        client?.close();
      }));
  }
});

// --- Callers and handlers ------------------------------------------------------------------------

/** What the protocol says a response is. */
function isResponse(response) {
  assert.equal(typeof response?.success, 'boolean');
  if (response.success) return;
  const { code, message: words, retryable } = response.error;
  assert.deepEqual([typeof code, typeof words, typeof retryable], ['string', 'string', 'boolean']);
  assert.equal(response.cancelled ?? false, code === 'CANCELLED' || code === 'TIMEOUT');
}

const canClone = (value) => {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
};

describe('values of every kind, from callers and handlers', () => {
  for (const upgrade of ['none', 'frames']) {
    const say = (what) => `${what}, with ${upgrade === 'none' ? 'messages' : 'frames'}`;
    const session = (arbitraries, property) => async () => {
      let give;
      const { port1, port2 } = new MessageChannel();
      const app = expose(
        {
          app: APP,
          capabilities: { ...HANDLERS, give: (params, context) => give(params, context) },
        },
        { port: port1, upgrade },
      );
      let asked;
      const client = await connect(port2, {
        agent: AGENT,
        upgrade,
        onElicitation: (request) => asked(request),
        onNotification() {},
        onProgress() {},
      });
      const call = async (name, params, options) => {
        const response = await soon(client.call(name, params, options), name);
        isResponse(response);
        return response;
      };
      const set = (handler, questions) => ((give = handler), (asked = questions));
      try {
        await holds(arbitraries, async (...makers) => {
          await property({ client, app, call, set }, ...makers.map((make) => make()));
          assert.equal((await call('echo', 'fine')).data, 'fine');
          assert.equal(client.counters.inFlightOut, 0);
          assert.equal(app.counters[0].inFlightIn, 0);
        });
      } finally {
        client.close();
        app.close();
      }
    };

    test(
      say('params'),
      session([anything, anything], async ({ client, call }, value, transfer) => {
        const sent = canClone(value);
        const { success, error } = await call('echo', value);
        assert.ok(success || (!sent && error.code === 'INVALID_PARAMS'));
        if (!transfer || typeof transfer === 'object') await call('echo', value, { transfer });
        else {
          const refused = client.call('echo', value, { transfer });
          await assert.rejects(refused, { code: 'INVALID_PARAMS' });
        }
        await call('echo', value, { transfer: [value] });
      }),
    );

    test(
      say('results'),
      session([anything], async ({ call, set }, value) => {
        set(() => [value]);
        const sent = canClone(value);
        const [{ success, error }] = await Promise.all([call('give'), call('echo')]);
        assert.ok(success || (!sent && error.code === 'OPERATION_FAILED'));
      }),
    );

    test(
      say('what a handler throws'),
      session([anything], async ({ call, set }, value) => {
        set(() => {
          throw value;
        });
        const responses = await Promise.all([call('give'), call('echo'), call('give')]);
        assert.deepEqual(
          responses.map(({ success }) => success),
          [false, true, false],
        );
      }),
    );

    test(
      say('progress'),
      session([anything], async ({ call, set }, value) => {
        set((_params, { progress }) => progress(value));
        await call('give', {}, { onProgress() {} });
      }),
    );

    test(
      say('reasons'),
      session([anything], async ({ client, call }, value) => {
        const controller = new AbortController();
        const pending = call('hang', {}, { signal: controller.signal, callId: 'one' });
        const named = call('hang', {}, { callId: 'two' });
        controller.abort(value);
        const answer = await soon(client.cancel('two', value), 'cancel');
        assert.equal(answer.cancelled, true);
        const late = call('hang', {}, { signal: controller.signal });
        for (const response of await Promise.all([pending, named, late]))
          assert.equal(response.error.code, 'CANCELLED');
      }),
    );

    test(
      say('callIds and timeouts'),
      session([anything, anything], async ({ client, call }, callId, timeout) => {
        const { success, error } = await call('echo', 1, { callId });
        const valid = callId === undefined || (typeof callId === 'string' && success);
        assert.equal(valid ? undefined : error.code, valid ? undefined : 'INVALID_PARAMS');
        const timed = call('echo', 1, { timeout });
        if (!timeout || (typeof timeout === 'number' && timeout > 0)) await timed;
        else await assert.rejects(timed, { code: 'INVALID_PARAMS' });
        const answer = await soon(client.cancel(callId), 'cancel');
        assert.equal(answer.cancelled, false);
        assert.equal(typeof answer.reason, 'string');
      }),
    );

    test(
      say('questions and their answers'),
      session([anything, anything], async ({ call, set }, question, answer) => {
        let response;
        set(
          async (_params, { elicit }) => {
            response = await elicit({ method: 'elicitation/input', params: question });
            isResponse(response);
          },
          () => [answer],
        );
        assert.equal((await call('give')).success, true);
        const sent = canClone(question) && canClone(answer);
        assert.ok(response.success || !sent);
        set(
          async (_params, { elicit }) => isResponse(await elicit(question)),
          () => 1,
        );
        await call('give');
      }),
    );

    test(
      say('notifications'),
      session([anything, anything], async ({ app }, event, data) => {
        try {
          app.notify(event, data);
        } catch {
          assert.equal(canClone(event) && canClone(data), false);
        }
      }),
    );
  }
});
