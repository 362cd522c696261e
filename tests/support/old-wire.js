/**
 * What an agent and an app say to each other, recorded from one version of this library and played
 * against another: one side is the recording, the other lives. tests/transcripts/README.md says how
 * a recording is made.
 */
import assert from 'node:assert/strict';
import { entriesOf } from './frames.js';

const APP = { id: 'old.new', name: 'Old and new', version: '1' };
const AGENT = { name: 'agent', version: '1' };

/**
 * What both versions are asked to expose.
 * @param {() => any} exposed what `expose` returned
 */
const capabilitiesOf = (exposed) => ({
  echo: (params) => params,
  nothing() {},
  fails() {
    throw Object.assign(new Error('Not today'), { code: 'OWN', retryable: true });
  },
  reports(_params, { progress }) {
    progress({ progress: 1, total: 2 });
    return 'reported';
  },
  waits: (_params, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    ),
  async *counts({ to }) {
    for (let i = 0; i < to; i++) yield { i, bytes: new Uint8Array([i]) };
    return 'counted';
  },
  async sums(_params, { input }) {
    let sum = 0;
    for await (const value of input ?? []) sum += value;
    return sum;
  },
  async asks(_params, { elicit }) {
    const { data } = await elicit({ method: 'elicitation/input', params: { message: 'Who?' } });
    return `Hello, ${data}`;
  },
  tells() {
    exposed().notify('saved', { pages: 2 });
    return 'told';
  },
  grows() {
    exposed().set('more', { handler: () => 'more', description: 'One more' });
    return 'grown';
  },
});

/**
 * Serves the app.
 * @param {any} expose of either version
 * @param {any} transport
 * @param {string} upgrade
 */
export function serve(expose, transport, upgrade) {
  const exposed = expose(
    { app: APP, capabilities: capabilitiesOf(() => exposed) },
    upgrade === 'none' ? { upgrade } : {},
  );
  exposed.accept(transport);
  return exposed;
}

/**
 * The agent: it does one thing after the other, and sees that each ends as it should.
 * @param {any} connect of either version
 * @param {any} transport
 * @param {string} upgrade
 */
export async function attend(connect, transport, upgrade) {
  const events = [];
  const client = await connect(() => transport, {
    agent: AGENT,
    upgrade,
    onElicitation: ({ params }) => `${params.message} Me`,
    onNotification: (event, data) => events.push([event, data]),
  });
  const dataOf = async (...call) => (await client.call(...call)).data;
  assert.deepEqual(await dataOf('echo', { a: [1, 'b', null] }), { a: [1, 'b', null] });
  const together = [1, 2, 3].map((n) => dataOf('echo', { n }));
  assert.deepEqual(await Promise.all(together), [{ n: 1 }, { n: 2 }, { n: 3 }]);
  assert.equal(await dataOf('nothing'), undefined);
  const { error } = await client.call('fails');
  assert.deepEqual([error.code, error.message, error.retryable], ['OWN', 'Not today', true]);
  assert.equal((await client.call('unknown')).error.code, 'UNKNOWN_CAPABILITY');
  const progress = [];
  const options = { onProgress: (info) => progress.push(info.percentage), timeout: 60_000 };
  assert.equal(await dataOf('reports', {}, options), 'reported');
  assert.deepEqual(progress, [50]);

  const controller = new AbortController();
  const stopped = client.call('waits', {}, { signal: controller.signal });
  await dataOf('echo'); // it runs
  controller.abort('enough');
  const { cancelled, error: why } = await stopped;
  assert.deepEqual([cancelled, why.code, why.message], [true, 'CANCELLED', 'enough']);
  const named = client.call('waits', {}, { callId: 'mine' });
  await dataOf('echo');
  assert.equal((await client.cancel('mine', 'no more')).cancelled, true);
  assert.equal((await named).cancelled, true);
  assert.equal((await client.cancel('mine')).cancelled, true);
  assert.equal((await client.cancel('nobody')).reason, 'Operation not found');

  const chunks = [];
  const stream = client.stream('counts', { to: 3 });
  for await (const { i, bytes } of stream) chunks.push([i, bytes[0]]);
  if (upgrade !== 'none') {
    assert.deepEqual(chunks, [
      [0, 0],
      [1, 1],
      [2, 2],
    ]);
  }
  assert.equal((await stream.response).data, 'counted');
  async function* input() {
    yield* [1, 2, 3];
  }
  const summed = await client.call('sums', {}, { input: input() });
  if (upgrade === 'none') assert.equal(summed.error.code, 'NOT_SUPPORTED');
  else assert.equal(summed.data, 6);
  assert.equal(await dataOf('asks'), 'Hello, Who? Me');
  assert.equal(await dataOf('tells'), 'told');
  assert.equal(await dataOf('grows'), 'grown');
  assert.deepEqual(events[0], ['saved', { pages: 2 }]);
  assert.equal(events[1][0], 'notifications/capabilities/list_changed');
  assert.equal((await client.describeCapability('more')).description, 'One more');
  assert.equal(await dataOf('more'), 'more');
  const { features } = client;
  client.close();
  return features;
}

/**
 * A transport like a window's: it can carry ports.
 * @param {MessagePort} port
 */
export function windowLike(port) {
  const transport = {
    carries: ['port', 'frames', 'liveness', 'streams'],
    post: (message, transfer = []) => port.postMessage(message, transfer),
    onMessage() {},
    close: () => port.close(),
  };
  port.onmessage = ({ data, ports }) => transport.onMessage(data, ports);
  return transport;
}

/**
 * @typedef {object} Line
 * @property {'agent' | 'app'} from
 * @property {'window' | 'port'} on
 * @property {any} data
 * @property {true} [offers] whether a port came with it
 */

/** JSON has neither undefined nor bytes. */
const write = (data) =>
  JSON.stringify(data, (key, value) => {
    // Another one each time.
    if (key === 'memory') return { ...value, id: '(memory)' };
    if (value instanceof Uint8Array) return { '(bytes)': [...value] };
    return value === undefined ? '(undefined)' : value;
  });
const read = (text) => {
  const undo = (value) => {
    if (value === '(undefined)') return undefined;
    if (typeof value !== 'object' || value === null) return value;
    if (value['(bytes)']) return new Uint8Array(value['(bytes)']);
    if (Array.isArray(value)) return value.map(undo);
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, undo(part)]));
  };
  return undo(JSON.parse(text));
};

/** Names of what is different each time: the id of `initialize`, and that of the session. */
const NAMES = { agent: '(agent)', app: '(app)' };

/**
 * Records what two of one version say.
 * @param {{ connect: any, expose: any }} version
 * @param {string} upgrade
 * @returns {Promise<string>} a line of JSON for each message
 */
export async function record({ connect, expose }, upgrade) {
  /** @type {Line[]} */
  const lines = [];
  const [agent, app] = [new MessageChannel(), new MessageChannel()];
  const join = (here, there, on) => {
    for (const [from, port, other] of [
      ['agent', here, there],
      ['app', there, here],
    ]) {
      port.onmessage = ({ data, ports }) => {
        lines.push({ from, on, data, ...(ports.length && { offers: true }) });
        if (!ports.length) return other.postMessage(data);
        const inner = new MessageChannel();
        join(inner.port1, ports[0], 'port');
        other.postMessage(data, [inner.port2]);
      };
    }
  };
  join(agent.port1, app.port1, 'window');
  const exposed = serve(expose, windowLike(app.port2), upgrade);
  await attend(connect, windowLike(agent.port2), upgrade);
  while (exposed.sessions.length) await new Promise(setImmediate);
  exposed.close();
  agent.port1.close();
  app.port1.close();
  const first = lines.findIndex(({ data }) => data.type === 'initialize');
  const { id } = lines[first].data;
  const { sessionId } = lines.find(({ data }) => data.type === 'initialize-result').data.payload;
  // On a busy machine it is sent again, and answered again.
  const isAgain = ({ data: { type } }, i) =>
    /^initialize/.test(type) && i !== lines.findIndex(({ data }) => data.type === type);
  const text = lines.filter((line, i) => !isAgain(line, i)).map((line) => write(line));
  return `${text.join('\n').replaceAll(id, NAMES.agent).replaceAll(sessionId, NAMES.app)}\n`;
}

/** What a message or a frame says, one by one, without what is different each time. */
function saidIn(data) {
  const isFrame = Array.isArray(data) || typeof data === 'string';
  const entries = isFrame
    ? entriesOf(data).map((entry) => (entry[0] === 6 ? entry[3] : entry))
    : [data];
  return entries.map((entry) => {
    if (Array.isArray(entry)) {
      if (entry[0] === 3) entry = [3, entry[1], 0, entry[3]];
      // Older questions do not say which call they are about.
      if (entry[0] === 2 && typeof entry[3][5] === 'string') {
        const [params, timeout] = entry[3];
        entry = timeout
          ? [...entry.slice(0, 3), entry[3].slice(0, 3)]
          : [1, entry[1], entry[2], params];
      }
      if (entry[3]?.metadata) entry = [...entry.slice(0, 3), withoutNews(entry[3])];
      return entry;
    }
    const rest = { ...entry };
    delete rest.timestamp;
    // The handle of the call that a signal stops.
    if (typeof rest.id === 'string') rest.id = rest.id.replace(/\.c[0-9a-f]{8}$/, '.c');
    if (rest.type === 'elicitation/request') {
      rest.payload = { ...rest.payload };
      delete rest.payload.callId;
    }
    return rest.payload?.metadata ? { ...rest, payload: withoutNews(rest.payload) } : rest;
  });
}
const withoutNews = (payload) => {
  const metadata = { ...payload.metadata };
  delete metadata.duration;
  // Which older versions do not say.
  for (const key of ['outcome', 'report', 'progress']) delete metadata[key];
  const rest = { ...payload };
  delete rest.metadata;
  return Object.keys(metadata).length ? { ...rest, metadata } : rest;
};

/** What a reader grants depends on when it reads. */
const isCredit = (said) => (Array.isArray(said) ? said[0] === 9 : said.type === 'bridge/credit');

/**
 * Leaves out what greetings say since, which an older side does not read.
 * @param {any} said
 */
function asOfThen(said) {
  if (!['initialize', 'initialize-result'].includes(said.type)) return said;
  const payload = { ...said.payload, features: { ...said.payload.features } };
  delete payload.stream;
  delete payload.agentCapabilities;
  delete payload.features['bridge.outcomes'];
  delete payload.features['bridge.text'];
  return { ...said, payload };
}

/**
 * Plays one side of a recording to the other side, which lives.
 * @param {string} recording
 * @param {'agent' | 'app'} live which side that is
 * @param {(transport: any) => unknown} start starts it
 * @returns {Promise<void>} settles when all was played; rejects where the live side says something
 *   else
 */
export async function play(recording, live, start) {
  const { port1, port2 } = new MessageChannel();
  /** What the live side has said. @type {any[]} */
  const said = [];
  /** Its id: what the recording calls (agent) or (app). */
  let name = '';
  let wake = () => {};
  const ports = { window: port1, port: undefined };
  let hello;
  const hear = ({ data, ports: offered }) => {
    if (offered.length) (ports.port = offered[0]).onmessage = hear;
    if (data.type === 'initialize' && data.id === hello) return;
    if (data.type === 'initialize') hello = data.id;
    said.push(...saidIn(data).filter((entry) => !isCredit(entry)));
    wake();
  };
  port1.onmessage = hear;
  const next = async () => {
    while (!said.length) {
      await Promise.race([new Promise((resolve) => (wake = () => resolve(undefined))), failed]);
    }
    return said.shift();
  };
  const started = Promise.resolve(start(windowLike(port2)));
  const failed = started.then(() => new Promise(() => {}));
  for (const text of recording.trim().split('\n')) {
    if (read(text).from !== live) {
      const { on, data, offers } = read(name ? text.replaceAll(NAMES[live], name) : text);
      if (!offers) ports[on].postMessage(data);
      else {
        const inner = new MessageChannel();
        (ports.port = inner.port1).onmessage = hear;
        ports.window.postMessage(data, [inner.port2]);
      }
      continue;
    }
    for (const expected of saidIn(read(text).data)) {
      if (isCredit(expected)) continue;
      const got = await next();
      name ||= live === 'agent' ? got.id : got.payload.sessionId;
      assert.deepEqual(
        read(write(asOfThen(got)).replaceAll(name, NAMES[live])),
        asOfThen(expected),
      );
    }
  }
  await started;
  port1.close();
  ports.port?.close();
}
