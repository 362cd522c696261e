// Every limit, from one list: it is lowered, and tried at itself, one beyond and far beyond, in
// each way that leads to it. A number that can be configured and is not in this list fails a test,
// and so does a default that is not as documented.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { PassThrough, Writable } from 'node:stream';
import { describe, mock, test } from 'node:test';
import { requireBounded } from '../../js/untrusted/bounds.js';
import * as tasks from '../../packages/a2a/src/tasks-boundary.js';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { PACKAGES } from '../../scripts/entries.js';
import { createTaskServer } from '../../packages/a2a/src/index.js';
import { createPeer, headerTransport, lineTransport } from '../../packages/rpc/src/index.js';
import { assertTestsExist, read, root } from '../support/named-tests.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';
import { overSockets, socketPair } from '../support/sockets.js';

const turns = async (count = 20) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};
/** Waits until it is so, however long the machine takes. */
const until = async (isSo) => {
  while (!(await isSo())) await turns(1);
};
const whenAborted = (_params, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
const hello = (features = {}) => ({ agent: AGENT, protocolVersion: '0.1', features });

// --- How a limit is tried ------------------------------------------------------------------------

/** An agent by hand, and our app. */
async function rawAgent(capabilities, limits, features) {
  const { port1, port2 } = new MessageChannel();
  const exposed = expose({ app: APP, capabilities }, { port: port1, limits });
  const raw = new Raw(port2);
  closeAfter(() => (exposed.close(), port2.close()));
  await raw.ask('initialize', 'P', hello(features));
  return { raw, exposed };
}
/** An app by hand, and our agent. */
async function rawApp(limits, features = {}) {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port2);
  const connecting = connect(port1, { agent: AGENT, limits });
  const { id } = await raw.next();
  const session = { sessionId: 's', protocolVersion: '0.1', app: APP, capabilities: [] };
  raw.send('initialize-result', id, { ...session, features });
  const client = await connecting;
  closeAfter(() => (client.close(), port2.close()));
  return { raw, client };
}
/** How many of so many calls are taken: the others are refused as RATE_LIMITED. */
async function takenOf(n, { app = {}, agent = {}, upgrade }) {
  const high = { maxCalls: 1 << 16 };
  const { client, exposed } = await openPair(
    { hang: whenAborted, echo: (x) => x },
    { upgrade, app: { limits: { ...high, ...app } }, agent: { limits: { ...high, ...agent } } },
  );
  const codes = [];
  for (let i = 0; i < n; i++) void client.call('hang').then(({ error }) => codes.push(error.code));
  // Comes after them all.
  await client.call('echo', 1);
  await until(() => codes.length + exposed.counters[0].inFlightIn === n);
  const { inFlightIn } = exposed.counters[0];
  assert.deepEqual(codes, Array(n - inFlightIn).fill('RATE_LIMITED'));
  return inFlightIn;
}
const UPGRADES = ['frames', 'port', 'none'];
const overUpgrades = (side, limit, run) =>
  Object.fromEntries(UPGRADES.map((upgrade) => [`${side}, ${upgrade}`, run(upgrade, limit)]));

async function handlersOf(n, limit, upgrade) {
  let running = 0;
  const { client } = await openPair(
    { hang: (...given) => (running++, whenAborted(...given)) },
    { upgrade, app: { limits: { maxConcurrent: limit } } },
  );
  for (let i = 0; i < n; i++) void client.call('hang');
  await until(() => running >= Math.min(n, limit));
  await turns();
  return running === n;
}

const text = (length) => 'x'.repeat(length);
/** A message of exactly so many characters as JSON. */
const sized = (message, payload, length) => {
  const whole = { ...message, payload: { ...payload, reason: '' } };
  whole.payload.reason = text(length - JSON.stringify(whole).length);
  return whole;
};

/** Two JSON-RPC peers. */
function peers({ asks = {}, answers = {} } = {}) {
  const { port1, port2 } = new MessageChannel();
  const high = { maxCalls: 1 << 16 };
  const asking = createPeer(portTransport(port1), { dialect: 'lsp', limits: { ...high, ...asks } });
  const answering = createPeer(portTransport(port2), {
    dialect: 'lsp',
    limits: { ...high, ...answers },
  });
  closeAfter(() => (asking.close(), answering.close()));
  answering.handle('echo', (params) => params);
  return { asking, answering };
}
async function requestsTaken(n, limits) {
  const { asking, answering } = peers(limits);
  let running = 0;
  answering.handle('hang', (...given) => (running++, whenAborted(...given)));
  const refused = [];
  for (let i = 0; i < n; i++)
    asking.request('hang').catch(({ code, message }) => refused.push(code ?? message));
  await until(() => running + refused.length === n);
  return running === n;
}

const FRAMES = {
  lines: [lineTransport, (body) => `${body}\n`],
  headers: [headerTransport, (body) => `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`],
};
const overFrames = (what, run) =>
  Object.fromEntries(Object.entries(FRAMES).map(([name, of]) => [`${what}, ${name}`, run(...of)]));

const socketOf = (bufferedAmount = 0) =>
  Object.assign(new EventTarget(), { readyState: 1, bufferedAmount, send() {}, close() {} });

const nested = (levels, wrap) => {
  let value = 1;
  for (let i = 0; i < levels; i++) value = wrap(value);
  return value;
};
const bounded = (make, option) => (limit, n) => {
  try {
    requireBounded(make(n), { [option]: limit });
    return true;
  } catch (error) {
    assert.match(error.message, new RegExp(`the limit is ${limit}$`));
    return false;
  }
};
const numbers = (n) => Array.from({ length: n }, (_, i) => i);

const A2A_CARD = { name: 'x', description: '', version: '1', capabilities: {}, skills: [] };
/** An agent of tasks: what is posted to it is answered with the status of HTTP and what it says. */
function taskAgent(options, execute = () => {}) {
  const agent = createTaskServer({ card: A2A_CARD, execute }, options);
  closeAfter(() => agent.close());
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
  const post = async (body) => {
    const asked = new Request('http://localhost/', { method: 'POST', body, headers });
    const response = await agent.fetch(asked);
    return { status: response.status, ...(await response.json().catch(() => ({}))) };
  };
  const ask = (method, params) => post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  return {
    agent,
    post,
    /** Begins a task, and gives its id. */
    async begin() {
      const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'x' }] };
      const configuration = { returnImmediately: true };
      return (await ask('SendMessage', { message, configuration })).result?.task.id;
    },
    knows: async (id) => Boolean((await ask('GetTask', { id })).result),
  };
}
async function requestOf(maxRequest, length) {
  const { post } = taskAgent({ maxRequest });
  const start = '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"';
  const body = `${start}${text(length - start.length - 3)}"}}`;
  assert.equal(body.length, length);
  const { status } = await post(body);
  assert.ok([200, 413].includes(status), String(status));
  return status === 200;
}

/** Memory ages with the clock of the core, which moves in steps of 10 ms (js/driver/machine.js). */
const CLOCK_STEP = 12;

// --- The list
// ----------------------------------------------------------------------------------------
//
// `default` is what is documented. `c` is its name in the configuration of the core. `ways` lead to
// it: each tells whether n is taken where the limit is lowered to `low`, and n is `low`, `low + 1`
// and a hundred times as much. `waits` are times: each tells whether something still waits after so
// many ms by a clock of the test's own. What is tried elsewhere names its tests.

const named = (path, ...names) => ({ path, names });
const C_ENDPOINT = 'tests/core/test_endpoint.c';
const C_TASKS = 'tests/core/test_tasks.c';
const MEMORY = 'packages/a2a/tests/memory.test.js';
const CANCELS = 'packages/a2a/tests/client-cancels.test.js';
const INPUT = 'packages/a2a/tests/client-input.test.js';
const STREAMS = 'packages/a2a/tests/client-streams.test.js';
const LASTING = 'packages/a2a/tests/lasting.test.js';
const RETRY = 'tests/node/agent-retry.test.js';
const POOL = 'tests/node/pool.test.js';

const LIMITS = {
  'js/untrusted/bounds.js Bounds': {
    maxValues: {
      default: 2 ** 20,
      ways: {
        'a list': bounded((n) => numbers(n - 1), 'maxValues'),
        'members of objects': bounded(
          (n) => Object.fromEntries(numbers(n - 1).map((i) => [`m${i}`, i])),
          'maxValues',
        ),
        'a set': bounded((n) => new Set(numbers(n - 1)), 'maxValues'),
        'a map': bounded((n) => {
          const map = new Map(numbers((n - 1) >> 1).map((i) => [i, i]));
          return n % 2 ? map : [map];
        }, 'maxValues'),
        'sparse lists': bounded((n) => new Array(n - 1), 'maxValues'),
      },
    },
    maxCharacters: {
      default: 2 ** 26,
      ways: {
        'a text': bounded(text, 'maxCharacters'),
        'names of members': bounded((n) => ({ [text(n)]: 1 }), 'maxCharacters'),
        'texts together': bounded((n) => [text(1), { [text(1)]: text(n - 2) }], 'maxCharacters'),
      },
    },
    maxDepth: {
      default: 1000,
      ways: {
        lists: bounded((n) => nested(n, (value) => [value]), 'maxDepth'),
        objects: bounded((n) => nested(n, (value) => ({ value })), 'maxDepth'),
        maps: bounded((n) => nested(n, (value) => new Map([[1, value]])), 'maxDepth'),
      },
    },
    maxBigIntBits: {
      default: 2 ** 14,
      ways: {
        'a positive number': bounded((n) => 2n ** BigInt(n - 1) - 1n, 'maxBigIntBits'),
        'a negative number': bounded((n) => -(2n ** BigInt(n - 1)), 'maxBigIntBits'),
      },
    },
  },

  'js/driver/abp-core.js Limits': {
    maxCalls: {
      c: 'max_calls',
      default: 4096,
      ways: {
        ...overUpgrades('at the app', 'app', (upgrade) => async (maxCalls, n) => {
          // The honest call that comes after them needs no place at the agent, and finds none at
          // the app.
          const taken = await takenOf(n, { app: { maxCalls }, upgrade });
          assert.equal(taken, Math.min(n, maxCalls));
          return taken === n;
        }),
        ...overUpgrades('at the agent', 'agent', (upgrade) => async (maxCalls, n) => {
          const taken = await takenOf(n, { agent: { maxCalls }, upgrade });
          assert.equal(taken, Math.min(n, maxCalls));
          return taken === n;
        }),
      },
    },
    maxConcurrent: {
      c: 'max_concurrent',
      default: 'maxCalls',
      ways: overUpgrades(
        'handlers',
        'app',
        (upgrade) => (limit, n) => handlersOf(n, limit, upgrade),
      ),
    },
    remembered: {
      c: 'remembered',
      default: 1024,
      ways: {
        'calls that have ended at the app': async (remembered, n) => {
          const { raw } = await rawAgent({ echo: (x) => x }, { remembered });
          for (let i = 0; i < n; i++)
            await raw.ask('capabilities/call', `${i}`, { capability: 'echo' });
          const { payload } = await raw.ask('capabilities/cancel', 'c', { callId: '0' });
          return payload.reason === 'Operation already completed';
        },
        'late answers at the agent': async (remembered, n) => {
          const { raw, client } = await rawApp({ remembered });
          const ids = [];
          for (let i = 0; i < n; i++) {
            const call = client.call('echo');
            ids.push((await raw.next()).id);
            raw.send('capabilities/call-result', ids[i], { success: true });
            await call;
          }
          raw.send('capabilities/call-result', ids[0], { success: true });
          await until(() => client.counters.late + client.counters.stray);
          return client.counters.late === 1;
        },
      },
    },
    rememberFor: {
      c: 'remember_ms',
      default: 300_000,
      waits: {
        'a call that has ended': async (t, rememberFor) => {
          const clock = useClock(t);
          const { raw } = await rawAgent({ echo: (x) => x }, { rememberFor, heartbeat: 1e6 });
          await raw.ask('capabilities/call', 'a', { capability: 'echo' });
          return {
            clock,
            step: CLOCK_STEP,
            waits: async () =>
              (await raw.ask('capabilities/cancel', 'c', { callId: 'a' })).payload.reason ===
              'Operation already completed',
          };
        },
      },
    },
    grace: {
      c: 'grace_ms',
      default: 'app 3000, agent 5000',
      waits: {
        'a handler that does not stop': async (t, grace) => {
          const clock = useClock(t);
          const limits = { grace, heartbeat: 1e6 };
          let aborted;
          const deaf = (_params, { signal }) => {
            signal.addEventListener('abort', () => (aborted = true));
            return new Promise(() => {});
          };
          const { raw } = await rawAgent({ deaf }, limits, { 'bridge.frames': true });
          raw.port.postMessage([1, 1, 'deaf', {}]);
          raw.port.postMessage([7, 1, 'stop', 0]);
          await until(() => aborted);
          const answers = [];
          void raw.next().then((answer) => answers.push(answer));
          return { clock, waits: async () => (await turns(), answers.length === 0) };
        },
        'an app that does not answer': async (t, grace) => {
          const clock = useClock(t);
          const { raw, client } = await rawApp({ grace, heartbeat: 1e6 });
          const controller = new AbortController();
          const ends = mock.fn();
          void client.call('x', {}, { signal: controller.signal }).then(ends);
          await raw.next(); // the call
          controller.abort();
          return { clock, waits: async () => (await turns(), ends.mock.callCount() === 0) };
        },
        'an answer to a cancel': async (t, grace) => {
          const clock = useClock(t);
          const { raw, client } = await rawApp({ grace, heartbeat: 1e6 });
          const ends = mock.fn();
          void client.cancel('x').then(ends);
          await raw.next(); // the cancel
          return { clock, waits: async () => (await turns(), ends.mock.callCount() === 0) };
        },
      },
    },
    maxIdLength: {
      c: 'max_id',
      default: 256,
      ways: {
        'the id of a call that comes': async (maxIdLength, n) => {
          const { raw } = await rawAgent({ echo: (x) => x }, { maxIdLength });
          const { payload } = await raw.ask('capabilities/call', text(n), { capability: 'echo' });
          return payload.success;
        },
        'its callId, in characters of two bytes': async (maxIdLength, n) => {
          const { raw } = await rawAgent({ echo: (x) => x }, { maxIdLength });
          const callId = 'é'.repeat(n >> 1) + text(n % 2);
          const payload = { capability: 'echo', options: { callId } };
          return (await raw.ask('capabilities/call', 'm', payload)).payload.success;
        },
        'the callId of a call that is made': async (maxIdLength, n) => {
          const { client } = await openPair(
            { echo: (x) => x },
            { agent: { limits: { maxIdLength } } },
          );
          const { success, error } = await client.call('echo', 1, { callId: text(n) });
          assert.equal(error?.code, success ? undefined : 'INVALID_PARAMS');
          return success;
        },
      },
    },
    maxControlLength: {
      c: 'max_text',
      default: 2 ** 20,
      low: 1000,
      ways: {
        'to the app': async (maxControlLength, n) => {
          const { raw, exposed } = await rawAgent({ echo: (x) => x }, { maxControlLength });
          const message = { type: 'capabilities/cancel', id: 'c' };
          raw.port.postMessage(sized(message, { callId: 'nobody' }, n));
          await raw.ask('capabilities/call', 'after', { capability: 'echo' });
          return exposed.counters[0].malformed === 0;
        },
        'to the agent': async (maxControlLength, n) => {
          const { raw, client } = await rawApp({ maxControlLength });
          const message = { type: 'capabilities/cancel-result', id: 'x' };
          raw.port.postMessage(sized(message, { callId: 'nobody', cancelled: false }, n));
          await until(() => client.counters.malformed + client.counters.stray);
          return client.counters.malformed === 0;
        },
      },
    },
    heartbeat: {
      c: 'heartbeat_ms',
      default: 15_000,
      waits: Object.fromEntries(
        ['app', 'agent'].map((side) => [
          `silence at the ${side}`,
          async (t, heartbeat) => {
            const clock = useClock(t);
            const features = { 'bridge.liveness': true };
            const { raw } =
              side === 'app'
                ? await rawAgent({}, { heartbeat }, features)
                : await rawApp({ heartbeat }, features);
            const pings = [];
            void raw.next().then((message) => pings.push(message.type));
            return {
              clock,
              waits: async () => {
                await turns();
                assert.ok(pings.every((type) => type === 'bridge/ping'));
                return pings.length === 0;
              },
            };
          },
        ]),
      ),
    },
    probe: {
      c: 'probe_ms',
      default: 10_000,
      tests: [named(C_ENDPOINT, 'a_suspected_peer_is_asked_and_what_it_answers_decides')],
    },
    streamChunks: {
      c: 'stream_chunks',
      default: 64,
      ways: Object.fromEntries(
        ['app', 'agent'].map((side) => [
          `of the ${side}`,
          async (streamChunks, n) => {
            let made = 0;
            const { client } = await openPair(
              {
                async *count() {
                  for (; made < n;) yield ++made;
                },
              },
              { [side]: { limits: { streamChunks } } },
            );
            const stream = client.stream('count');
            const first = stream.next(); // which is read: one more is under way
            await first;
            await until(() => made >= Math.min(n, streamChunks));
            await turns();
            await stream.return?.();
            return made >= n;
          },
        ]),
      ),
      // The first chunk is read, and a generator is one ahead of the window.
      beyond: 2,
    },
    streamBytes: {
      c: 'stream_bytes',
      default: 2 ** 20,
      tests: [
        named('tests/core/test_streams.c', 'a_handler_waits_while_the_window_is_full_of_bytes'),
        named(
          'tests/node/session-streams.test.js',
          'the window counts bytes, too, and the smaller one of the two sides',
        ),
      ],
    },
    firstNumber: {
      c: 'first_number',
      default: 1,
      tests: [named(C_ENDPOINT, 'numbers_go_on_past_2_31_and_begin_again_after_2_32')],
    },
  },

  'packages/rpc/src/rpc-core.js Limits': {
    maxCalls: {
      c: 'max_calls',
      default: 4096,
      ways: {
        'requests that are made': (maxCalls, n) => requestsTaken(n, { asks: { maxCalls } }),
        'requests that come': (maxCalls, n) => requestsTaken(n, { answers: { maxCalls } }),
      },
    },
    maxConcurrent: {
      c: 'max_concurrent',
      default: 'maxCalls',
      ways: {
        handlers: async (maxConcurrent, n) => {
          const { asking, answering } = peers({ answers: { maxConcurrent } });
          let running = 0;
          answering.handle('hang', (...given) => (running++, whenAborted(...given)));
          for (let i = 0; i < n; i++) asking.request('hang').catch(() => {});
          await until(() => running >= Math.min(n, maxConcurrent));
          await turns();
          return running === n;
        },
      },
    },
    remembered: {
      c: 'remembered',
      default: 1024,
      ways: {
        'late answers': async (remembered, n) => {
          const { port1, port2 } = new MessageChannel();
          const peer = createPeer(portTransport(port1), { dialect: 'mcp', limits: { remembered } });
          closeAfter(() => (peer.close(), port2.close()));
          port2.on('message', ({ id }) => port2.postMessage({ jsonrpc: '2.0', id, result: {} }));
          for (let i = 0; i < n; i++) await peer.request('ping');
          port2.postMessage({ jsonrpc: '2.0', id: 1, result: {} });
          await until(() => peer.counters.late + peer.counters.stray);
          return peer.counters.late === 1;
        },
      },
    },
    rememberFor: {
      c: 'remember_ms',
      default: 300_000,
      waits: {
        'an answer that is late': async (t, rememberFor) => {
          const clock = useClock(t);
          const { port1, port2 } = new MessageChannel();
          const limits = { rememberFor };
          const peer = createPeer(portTransport(port1), { dialect: 'mcp', limits });
          closeAfter(() => (peer.close(), port2.close()));
          port2.on('message', ({ id }) => port2.postMessage({ jsonrpc: '2.0', id, result: {} }));
          await peer.request('ping');
          return {
            clock,
            step: CLOCK_STEP,
            waits: async () => {
              const { late } = peer.counters;
              port2.postMessage({ jsonrpc: '2.0', id: 1, result: {} });
              await turns();
              return peer.counters.late === late + 1;
            },
          };
        },
      },
    },
    grace: {
      c: 'grace_ms',
      default: 5000,
      waits: {
        'an answer to a request that was cancelled': async (t, grace) => {
          const clock = useClock(t);
          const { port1, port2 } = new MessageChannel();
          const peer = createPeer(portTransport(port1), { dialect: 'acp', limits: { grace } });
          closeAfter(() => (peer.close(), port2.close()));
          const controller = new AbortController();
          const ends = mock.fn();
          void peer.request('x', {}, { signal: controller.signal }).catch(ends);
          await once(port2, 'message');
          controller.abort();
          return { clock, waits: async () => (await turns(), ends.mock.callCount() === 0) };
        },
      },
    },
    maxIdLength: {
      c: 'max_id',
      default: 256,
      ways: {
        'the id of a request that comes': async (maxIdLength, n) => {
          const { port1, port2 } = new MessageChannel();
          const limits = { maxIdLength };
          const peer = createPeer(portTransport(port1), { dialect: 'acp', limits });
          closeAfter(() => (peer.close(), port2.close()));
          peer.handle('echo', (params) => params);
          const raw = new Raw(port2);
          port2.postMessage({ jsonrpc: '2.0', id: text(n), method: 'echo', params: {} });
          return 'result' in (await raw.next());
        },
      },
    },
    firstNumber: {
      c: 'first_number',
      default: 1,
      tests: [named('packages/rpc/tests/ids.test.js', 'ids go on beyond 2^31')],
    },
  },

  'packages/a2a/src/tasks-core.js TaskLimits': {
    maxTasks: {
      c: 'max_tasks',
      default: 4096,
      ways: {
        tasks: async (maxTasks, n) => {
          const { agent, begin } = taskAgent({ limits: { maxTasks } }, () => new Promise(() => {}));
          for (let i = 0; i < n; i++) await begin();
          assert.equal(agent.counters.live, Math.min(n, maxTasks));
          return agent.counters.live === n;
        },
      },
    },
    maxArtifacts: {
      c: 'max_artifacts',
      default: 4096,
      tests: [named(C_TASKS, 'artifacts_belong_to_their_task_and_are_limited')],
    },
    remembered: {
      c: 'remembered',
      default: 1024,
      ways: {
        'tasks that have ended': async (remembered, n) => {
          const { agent, begin, knows } = taskAgent({ limits: { remembered } });
          const first = await begin();
          for (let i = 1; i < n; i++) await begin();
          await until(() => agent.counters.live === 0);
          return knows(first);
        },
      },
    },
    rememberFor: {
      c: 'remember_ms',
      default: 3_600_000,
      waits: {
        'a task that has ended': async (t, rememberFor) => {
          const clock = useClock(t);
          const { agent, begin, knows } = taskAgent({ limits: { rememberFor } });
          const id = await begin();
          await until(() => agent.counters.live === 0);
          return { clock, waits: () => knows(id) };
        },
      },
    },
  },
  'packages/a2a/src/tasks-core.js WatchLimits': {
    grace: {
      c: 'grace_ms',
      default: 30_000,
      tests: [
        named(C_TASKS, 'a_cancel_is_sent_once_and_again_only_while_the_agent_is_out_of_reach'),
      ],
    },
    linger: {
      c: 'linger_ms',
      default: 5000,
      tests: [named(C_TASKS, 'a_watch_ends_with_its_task_and_lingers')],
    },
    retry: {
      c: 'retry_ms',
      default: 1000,
      tests: [named(C_TASKS, 'an_outage_is_waited_for_longer_and_longer_up_to_a_limit')],
    },
    outage: {
      c: 'outage_ms',
      default: 60_000,
      tests: [named(C_TASKS, 'an_outage_is_waited_for_longer_and_longer_up_to_a_limit')],
    },
  },
  'src/abp_tasks.h abp_tasks_config': {
    maxIdLength: {
      c: 'max_id',
      default: tasks.TASKS_DEFAULT_MAX_ID,
      // It is not lowered from JavaScript, where an agent gives its tasks their ids.
      tests: [named(C_TASKS, 'ids_are_told_apart_and_wrong_ones_refused')],
    },
  },

  'parts/transports/websocket.js SocketOptions': {
    maxLength: {
      default: 2 ** 25,
      ways: {
        'a message that goes': (maxLength, n) => {
          const transport = webSocketTransport(socketOf(), { maxLength });
          closeAfter(() => transport.close());
          try {
            transport.post(text(n - 2));
            return true;
          } catch (error) {
            assert.ok(error instanceof RangeError);
            return false;
          }
        },
        'a message that comes': async (maxLength, n) => {
          const socket = socketOf();
          const transport = webSocketTransport(socket, { maxLength });
          closeAfter(() => transport.close());
          const [heard, closed] = [mock.fn(), mock.fn()];
          transport.onMessage = heard;
          transport.onClose = closed;
          socket.dispatchEvent(Object.assign(new Event('message'), { data: `"${text(n - 2)}"` }));
          await until(() => heard.mock.callCount() + closed.mock.callCount());
          return heard.mock.callCount() === 1;
        },
      },
    },
    maxUnsent: {
      default: 2 ** 24,
      ways: {
        'a request': (maxUnsent, n) => {
          const transport = webSocketTransport(socketOf(n), { maxUnsent });
          closeAfter(() => transport.close());
          try {
            transport.post({}, [], 'request');
            return true;
          } catch (error) {
            assert.equal(error.code, 'RATE_LIMITED');
            return false;
          }
        },
        'what can be left out': (maxUnsent, n) => {
          const socket = socketOf(n);
          socket.send = mock.fn();
          const transport = webSocketTransport(socket, { maxUnsent });
          closeAfter(() => transport.close());
          transport.post({}, [], 'droppable');
          return socket.send.mock.callCount() === 1;
        },
        'anything, at four times as much': async (maxUnsent, n) => {
          const far = n === maxUnsent ? 4 * n : n === maxUnsent + 1 ? 4 * maxUnsent + 1 : 4 * n;
          const transport = webSocketTransport(socketOf(far), { maxUnsent });
          const closed = mock.fn();
          transport.onClose = closed;
          transport.post({});
          await turns();
          return closed.mock.callCount() === 0;
        },
      },
    },
    storeAbove: {
      default: 10 << 20,
      ways: Object.fromEntries(
        Object.entries({
          bytes: (n) => new Uint8Array(n),
          'a Blob': (n) => new Blob([text(n)]),
          'an ArrayBuffer': (n) => new ArrayBuffer(n),
        }).map(([what, make]) => [
          what,
          async (storeAbove, n) => {
            const store = mock.fn(async () => ({
              downloadUrl: 'https://a.example/1',
              expiresAt: Date.now() + 3_600_000,
            }));
            const data = { content: make(n), mimeType: 'a/b' };
            const ends = overSockets(socketPair(), { store, storeAbove });
            const { client } = await openPair({ get: () => data }, { ends });
            assert.ok((await client.call('get')).success);
            return store.mock.callCount() === 0;
          },
        ]),
      ),
    },
  },
  'packages/rpc/src/byte-streams.js StreamOptions': {
    maxMessage: {
      default: 2 ** 25,
      shown: '32 MiB',
      ways: {
        ...overFrames('that goes', (open) => (maxMessage, n) => {
          const streams = { readable: new PassThrough(), writable: new PassThrough() };
          const transport = open(streams, { maxMessage });
          closeAfter(() => transport.close());
          try {
            transport.post(text(n - 2));
            return true;
          } catch (error) {
            assert.equal(error.code, 'MESSAGE_TOO_LONG');
            return false;
          }
        }),
        ...overFrames('that comes', (open, frame) => async (maxMessage, n) => {
          const readable = new PassThrough();
          const transport = open({ readable, writable: new PassThrough() }, { maxMessage });
          closeAfter(() => transport.close());
          const told = new Promise((resolve) => {
            transport.onMessage = () => resolve(true);
            transport.onUnreadable = () => resolve(false);
          });
          readable.write(frame(`"${text(n - 2)}"`));
          return told;
        }),
      },
    },
    maxBacklog: {
      default: 2 ** 27,
      shown: '128 MiB',
      ways: overFrames('that goes', (open, frame) => async (maxBacklog, n) => {
        const stuck = new Writable({ write() {} });
        const transport = open({ readable: new PassThrough(), writable: stuck }, { maxBacklog });
        closeAfter(() => transport.close());
        const closed = mock.fn();
        transport.onClose = closed;
        const cost = (length) => frame(JSON.stringify(text(length))).length;
        const half = n >> 1;
        let rest = n - cost(half);
        while (cost(half) + cost(rest) > n) rest--;
        assert.equal(cost(half) + cost(rest), n);
        transport.post(text(half));
        await turns(); // what was handed to the stream waits there, and counts
        transport.post(text(rest));
        await turns();
        return closed.mock.callCount() === 0;
      }),
      low: 1000,
      tests: [
        named(
          'packages/rpc/tests/byte-streams.test.js',
          'a peer that does not read is given up when too much waits for it',
        ),
      ],
    },
  },

  'js/session/call.js RequestOptions': {
    timeout: {
      default: undefined,
      waits: {
        'a call': async (t, timeout) => {
          const clock = useClock(t);
          const { client, raw } = await rawApp({ heartbeat: 1e6 });
          void client.call('x', {}, { timeout });
          await raw.next();
          const cancels = [];
          void raw.next().then(({ type }) => cancels.push(type));
          return {
            clock,
            waits: async () => {
              await turns();
              assert.ok(cancels.every((type) => type === 'capabilities/cancel'));
              return cancels.length === 0;
            },
          };
        },
      },
    },
  },
  'packages/rpc/src/peer.js RequestOptions': Object.fromEntries(
    ['timeout', 'maxTotalTimeout'].map((option) => [
      option,
      {
        default: undefined,
        waits: {
          'a request': async (t, ms) => {
            const clock = useClock(t);
            const { asking, answering } = peers();
            const ends = mock.fn();
            await new Promise((resolve) => {
              answering.handle('hang', () => (resolve(undefined), new Promise(() => {})));
              void asking.request('hang', {}, { [option]: ms, wait: false }).catch(ends);
            });
            return { clock, waits: async () => (await turns(), ends.mock.callCount() === 0) };
          },
        },
      },
    ]),
  ),
  'packages/a2a/src/server.js TaskServerOptions': {
    grace: {
      default: 0,
      tests: [
        named('packages/a2a/tests/cancels.test.js', 'does not wait longer than the grace period'),
      ],
    },
    maxRequest: { default: 4 << 20, low: 200, ways: { 'over HTTP': requestOf } },
    maxUnread: {
      default: 4 << 20,
      tests: [
        named(
          'packages/a2a/tests/streams.test.js',
          'one that does not read is disconnected, and the task and its other readers go on',
        ),
      ],
    },
    maxBacklog: {
      default: 256 << 20,
      tests: [
        named(MEMORY, 'is bounded for all: who has waited longest is cut off, who reads is not'),
      ],
    },
    keepAlive: {
      default: 15_000,
      tests: [
        named(
          LASTING,
          'an agent shows signs of life in streams and in answers that take their time, unless told not to',
        ),
      ],
    },
    replyTimeout: {
      default: 60_000,
      tests: [
        named(
          'packages/a2a/tests/returned.test.js',
          'a reply that takes too long ends with an error, and its signal fires',
        ),
      ],
    },
  },
  'packages/a2a/src/server.js ServerLimits': {
    maxTask: {
      default: 64 << 20,
      tests: [
        named(
          MEMORY,
          'each are as long as the limit and no longer; replacing an artifact frees what it took',
        ),
      ],
    },
    maxStored: {
      default: 256 << 20,
      tests: [
        named(MEMORY, 'that have ended are forgotten, the earliest first, when all are too long'),
        named(
          MEMORY,
          'that live are not forgotten: what makes them too long is refused, and a new one, too',
        ),
      ],
    },
    maxAnswer: {
      default: 64 << 20,
      tests: [
        named(MEMORY, 'a page of a list ends before it is too long, and the next one goes on'),
        named(MEMORY, 'a task that is too long for one is refused by name, and its stream goes on'),
      ],
    },
  },
  'packages/a2a/src/store/index.js TaskStoreOptions': {
    term: {
      default: 15_000,
      tests: [
        named(
          'packages/a2a-store/tests/fleet/processes.test.js',
          'a process is killed: its tasks fail, and others do not',
        ),
      ],
    },
    retention: {
      default: 604_800_000,
      tests: [
        named(
          'packages/a2a-store/tests/contracts/store/records.js',
          'a task that ended longer ago than the retention is deleted, and no other',
        ),
      ],
    },
    maxOutbox: {
      default: 64 << 20,
      tests: [
        named(
          'packages/a2a-store/tests/outbox.test.js',
          'the outbox is bounded: emitting throws, new tasks are refused, cancels are not',
          'a stream of chunks waits until the outbox has room, and no chunk is lost',
        ),
      ],
    },
  },
  'packages/a2a/src/client.js ClientLimits': {
    timeout: {
      default: 30_000,
      tests: [named(INPUT, 'a request that is not answered in time rejects with TIMEOUT')],
    },
    grace: {
      default: 30_000,
      tests: [
        named(
          CANCELS,
          'an agent that never answers at all: after the grace period the abort settles',
        ),
      ],
    },
    retry: {
      default: 1000,
      tests: [
        named(LASTING, 'a task outlives refusals, 503s and a port that is closed for a while'),
      ],
    },
    linger: {
      default: 5000,
      tests: [
        named(
          STREAMS,
          'events after the end are dropped and counted, and the stream is closed when they do not stop',
        ),
      ],
    },
    outage: {
      default: 60_000,
      tests: [
        named(
          LASTING,
          'when an agent stays out of reach, the error has the id of the task and what is known of it',
        ),
      ],
    },
    maxEvent: {
      default: 2 ** 27,
      tests: [named(INPUT, 'server-sent events: an endless ${what} is an error, and is not kept')],
    },
    maxBody: {
      default: 2 ** 28,
      tests: [named(INPUT, 'an answer whose content-length is too large is not read')],
    },
    maxTask: {
      default: 64 << 20,
      tests: [named(INPUT, 'an agent that answers a stream with ${what}: ${code}')],
    },
    maxTasks: {
      default: 4096,
      tests: [named(C_TASKS, 'ids_are_told_apart_and_wrong_ones_refused')],
    },
    maxArtifacts: {
      default: 4096,
      tests: [named(INPUT, 'an agent that answers a stream with ${what}: ${code}')],
    },
    maxQueue: {
      default: 4096,
      tests: [
        named(
          'packages/a2a/tests/client-ports.test.js',
          'over a port: a reader that is too slow loses events, and receives the end of the task',
        ),
      ],
    },
  },
  'parts/workers/pool.js PoolOptions': {
    size: {
      default: 'the number of processors',
      tests: [named(POOL, 'while it waits never runs')],
    },
    grace: {
      default: undefined, // the part of the call's own: in words
      tests: [
        named(
          POOL,
          'and never asks is stopped by ending its worker; a fresh one answers, and other calls notice nothing',
        ),
      ],
    },
    timeout: {
      default: 10_000,
      tests: [named(POOL, 'because it never says that it serves, is ended')],
    },
    maxWaiting: {
      default: 1024,
      tests: [named(POOL, 'more than may wait is refused as RATE_LIMITED')],
    },
  },
  'parts/retry/retry.js Patience': {
    attempts: {
      default: undefined, // two of them: in words
      tests: [named(RETRY, 'gives up after so many attempts, and says why')],
    },
    delay: {
      default: 250,
      tests: [named(RETRY, 'tries as long as the way does not open, ever more slowly')],
    },
    maxDelay: {
      default: 30_000,
      tests: [named(RETRY, 'does not wait for longer than it may')],
    },
  },
};
const ENTRIES = Object.entries(LIMITS).flatMap(([where, limits]) =>
  Object.entries(limits).map(([name, entry]) => ({ where, name, ...entry })),
);

// --- They are tried ------------------------------------------------------------------------------

for (const { where, name, low = 7, beyond = 1, fixed, ways = {}, waits = {} } of ENTRIES) {
  describe(`${name} (${where.split(' ')[0]})`, () => {
    for (const [way, takes] of Object.entries(ways)) {
      test(`holds to the very one: ${way}`, async () => {
        assert.equal(await takes(low, low), true, 'at the limit');
        assert.equal(await takes(low, low + beyond), false, 'beyond it');
        assert.equal(await takes(low, low * 100), false, 'far beyond it');
        if (!fixed) assert.equal(await takes(low * 2, low * 2), true, 'at a higher one');
      });
    }
    for (const [what, begin] of Object.entries(waits)) {
      test(`is waited for as long as it says, by a clock that is held: ${what}`, async (t) => {
        const { clock, waits: stillWaits, step = 1 } = await begin(t, 1000);
        clock.advance(999);
        assert.equal(await stillWaits(), true);
        clock.advance(step);
        await until(async () => !(await stillWaits()));
      });
    }
  });
}

// --- The list is whole ---------------------------------------------------------------------------

const LIMITING =
  /\w*(?:Limits|Bounds|Patience|(?:Stream|Socket|Pool|TaskServer|TaskStore|Request)Options)/;
/** The numbers that somebody can set, with what is said of them, by file and typedef. */
function documented(typedefs = LIMITING) {
  const files = [
    'js',
    'parts',
    ...PACKAGES.flatMap(({ folder }) => (folder ? [`${folder}/src`] : [])),
  ].flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, root), { recursive: true })
      .filter((name) => name.endsWith('.js'))
      .map((name) => `${folder}/${name}`),
  );
  const pattern = new RegExp(`@typedef \\{object\\} (${typedefs.source})\\b([^]*?)\\*/`, 'g');
  const found = {};
  for (const file of files) {
    for (const [, typedef, body] of read(file).matchAll(pattern)) {
      const properties = [
        ...body.matchAll(/@property \{number\} \[(\w+)\]([^]*?)(?=@property|$)/g),
      ].map(([, name, words]) => [name, words.replaceAll(/\s+\*\s+/g, ' ')]);
      if (properties.length) found[`${file} ${typedef}`] = Object.fromEntries(properties);
    }
  }
  return found;
}

test('each limit that is documented is in the list, and no other', () => {
  const given = documented();
  for (const [where, limits] of Object.entries(LIMITS)) {
    if (where.startsWith('src/')) continue;
    assert.deepEqual(Object.keys(limits).sort(), Object.keys(given[where] ?? {}).sort(), where);
  }
  assert.deepEqual(
    Object.keys(given).sort(),
    Object.keys(LIMITS)
      .filter((where) => !where.startsWith('src/'))
      .sort(),
  );
});

test('whatever is called a maximum is in the list', () => {
  const known = new Set(Object.keys(LIMITS));
  for (const [where, names] of Object.entries(documented(/\w+/))) {
    if (known.has(where) || where.includes('-boundary.js')) continue;
    const maxima = Object.keys(names).filter((name) => name.startsWith('max'));
    assert.deepEqual(maxima, [], where);
  }
});

test('each number of a configuration of the core is in the list', () => {
  const CONFIGS = {
    'src/abp.h': ['abp_config', 'js/driver/abp-core.js'],
    'src/abp_rpc.h': ['abp_peer_config', 'packages/rpc/src/rpc-core.js'],
    'src/abp_tasks.h': ['abp_tasks_config', 'packages/a2a/src/tasks-core.js'],
  };
  const SWITCHES = new Set(['features', 'restart', 'foreign', 'commits']);
  for (const [header, [struct, file]] of Object.entries(CONFIGS)) {
    const [, body] = new RegExp(`typedef struct ${struct} \\{([^]*?)\\} ${struct};`).exec(
      read(header),
    );
    const fields = [...body.matchAll(/^ {2}uint32_t (\w+);/gm)].map(([, field]) => field);
    assert.ok(fields.length > 5, header);
    const known = ENTRIES.filter(({ where }) => [header, file].includes(where.split(' ')[0]));
    assert.deepEqual(
      fields.filter((field) => !SWITCHES.has(field)).sort(),
      known.map(({ c }) => c).sort(),
      header,
    );
  }
});

test('the default of each limit is the one that is documented', () => {
  const given = documented();
  for (const { where, name, default: value, shown = value } of ENTRIES) {
    const words = given[where]?.[name];
    if (words && value !== undefined) assert.ok(words.includes(`(${shown}`), `${where} ${name}`);
  }
});

test('and the one that the code has', () => {
  /** What stands for a number: digits, powers, shifts and products. */
  const valueOf = (expression) =>
    expression
      .replaceAll('_', '')
      .split('<<')
      .map((part) => part.split('**').map(Number))
      .map((powers) => powers.reduce((base, exponent) => base ** exponent))
      .reduce((number, shift) => number * 2 ** shift);
  for (const { where, name, default: value, c } of ENTRIES) {
    // Those of the core are compared by defaults.test.js.
    if (c || typeof value !== 'number') continue;
    const source = read(where.split(' ')[0]);
    const expressions = [
      ...source.matchAll(
        new RegExp(`\\b${name}(?: =|:| \\?\\?) ([\\d_]+(?: (?:<<|\\*\\*) \\d+)?)`, 'g'),
      ),
    ].map(([, expression]) => valueOf(expression));
    if (where.includes('client.js')) continue; // by the names of the parts that they go to
    assert.ok(expressions.includes(value), `${where} ${name}: ${expressions}`);
  }
});

test('what is tried elsewhere is there', () => {
  const elsewhere = ENTRIES.filter(({ tests }) => tests);
  assertTestsExist(
    elsewhere.map(({ where, name, tests }) => ({
      rule: `${where} ${name}`,
      tests: tests.flatMap(({ path, names }) => names.map((each) => ({ path, name: each }))),
    })),
  );
  for (const { where, name, ways, waits, tests } of ENTRIES)
    assert.ok(ways || waits || tests, `${where} ${name} is not tried`);
});
