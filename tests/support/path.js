/**
 * Counts what a call passes, on both sides together and for each call: our functions, crossings
 * into the module, readings of the clock, texts.
 *
 *   node tests/support/path.js          prints the counts beside their limits, and the functions
 *   node tests/support/path.js --json   prints the counts as JSON, for tests/node/path.test.js
 *
 * The clock is the program's own, and no timer fires: the counts are the same on any machine.
 */
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';

/**
 * How many calls are counted, and how many are made before: those load what is loaded on demand.
 */
const CALLS = 200;
const FIRST_CALLS = 5;
/** A function that runs less often than this for each call is not counted: a timer may call it. */
const MIN_PER_CALL = 1 / 4;

// --- What is counted. It is replaced before the library is loaded, which keeps some functions.

/** How often each was called. @type {Record<string, number>} */
let counts = {};
const count = (what) => (counts[what] = (counts[what] ?? 0) + 1);

/**
 * Counts the calls of a method.
 * @param {object} object
 * @param {string} name of the method
 * @param {string} what it counts as
 */
function countCalls(object, name, what) {
  const method = object[name];
  object[name] = function (...args) {
    count(what);
    return method.apply(this, args);
  };
}
countCalls(JSON, 'stringify', 'texts written');
countCalls(JSON, 'parse', 'texts read');
countCalls(TextEncoder.prototype, 'encode', 'encodings');
countCalls(TextEncoder.prototype, 'encodeInto', 'encodings');
countCalls(TextDecoder.prototype, 'decode', 'encodings');

/** The time in ms: each message takes one. */
let now = Math.ceil(performance.now());
performance.now = () => {
  count('readings of the clock');
  return now;
};
/** The longest time that a timer takes, in ms. */
const MAX_TIMER = 2 ** 31 - 1;
const setRealTimer = setTimeout;
globalThis.setTimeout = (run) => setRealTimer(run, MAX_TIMER);

const CROSSING = 'crossing ';
const Instance = WebAssembly.Instance;
WebAssembly.Instance = function (module, imports) {
  const exports = { ...new Instance(module, imports).exports };
  for (const name of Object.keys(exports))
    if (typeof exports[name] === 'function') countCalls(exports, name, CROSSING + name);
  return { exports };
};

// --- An agent and an app, whose messages arrive in a turn of their own

const { connect, expose } = await import('../../parts/main/index.js');

/** Both ends of a transport in memory. */
function openTransport() {
  const ends = [0, 1].map(() => ({ onMessage() {}, close() {} }));
  ends.forEach((end, i) => {
    end.post = (message) => {
      count('messages');
      setImmediate(() => {
        now++;
        ends[1 - i].onMessage(message, []);
      });
    };
  });
  return ends;
}

let started;
const app = expose(
  {
    app: { id: 'a.b', name: 'A', version: '1' },
    capabilities: {
      echo: (params) => params,
      fail() {
        throw Object.assign(new Error('no paper'), { code: 'OUT_OF_PAPER', retryable: true });
      },
      wait: (_params, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve('stopped'), { once: true });
          started();
        }),
    },
  },
  { origins: [] },
);
const [agentEnd, appEnd] = openTransport();
app.accept(appEnd);
const client = await connect(agentEnd, { agent: { name: 'a', version: '1' } });

const params = () => ({ title: 'a document', pages: [1, 2, 3], options: { size: 'A4' } });
const ways = {
  async call() {
    const outcome = await client.call('echo', params());
    if (outcome.data?.title !== 'a document') throw new Error('no call was made');
  },
  async fail() {
    const { error } = await client.call('fail', {});
    if (error?.code !== 'OUT_OF_PAPER') throw new Error('no call has failed');
  },
  async abort() {
    const controller = new AbortController();
    const start = new Promise((resolve) => (started = resolve));
    const call = client.call('wait', {}, { signal: controller.signal });
    await start;
    controller.abort();
    const { error } = await call;
    if (error?.code !== 'CANCELLED') throw new Error('no call was cancelled');
  },
};

// --- Counting

const root = new URL('../../', import.meta.url).href;
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/** The functions of ours that ran since it was asked last. */
async function takeFunctions() {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const files = result.filter(({ url }) =>
    /^(js|packages\/[\w-]+\/src)\//.test(url.slice(root.length)),
  );
  return files.flatMap(({ url, functions }) =>
    functions.map(({ functionName, ranges: [{ count, startOffset, endOffset }] }) => ({
      name: `${url.slice(root.length)}: ${functionName || 'a function without a name'}`,
      perCall: count / CALLS,
      characters: endOffset - startOffset,
    })),
  );
}

/** To a tenth: the one timer is set anew now and then. */
const rounded = (number) => Math.round(number * 10) / 10;
/** How often `advance` is called is up to the time that has passed. */
const isLimited = ({ name }) => name !== 'advance';
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** @param {() => Promise<void>} makeCall */
async function measure(makeCall) {
  for (let i = 0; i < FIRST_CALLS; i++) await makeCall();
  await takeFunctions();
  counts = {};
  for (let i = 0; i < CALLS; i++) await makeCall();
  const counted = counts;
  const perCall = (what) => rounded((counted[what] ?? 0) / CALLS);
  const functions = (await takeFunctions())
    .filter((each) => each.perCall >= MIN_PER_CALL)
    .sort((a, b) => b.perCall - a.perCall);
  const crossings = Object.keys(counted)
    .filter((what) => what.startsWith(CROSSING))
    .map((what) => ({ name: what.slice(CROSSING.length), perCall: perCall(what) }));
  return {
    counts: {
      functions: rounded(sum(functions.map((each) => each.perCall))),
      'distinct functions': functions.length,
      'characters of their source': sum(functions.map((each) => each.characters)),
      crossings: rounded(sum(crossings.filter(isLimited).map((each) => each.perCall))),
      messages: perCall('messages'),
      'readings of the clock': perCall('readings of the clock'),
      'texts written': perCall('texts written'),
      'texts read': perCall('texts read'),
      encodings: perCall('encodings'),
    },
    functions,
    crossings,
  };
}

const listed = (each, separator) =>
  each.map(({ name, perCall }) => `${perCall.toFixed(2)} ${name}`).join(separator);

const measured = {};
for (const [way, makeCall] of Object.entries(ways)) measured[way] = await measure(makeCall);
if (process.argv[2] === '--json') console.log(JSON.stringify(measured));
else {
  const limits = JSON.parse(readFileSync(new URL('../node/path.json', import.meta.url), 'utf8'));
  for (const [way, { counts, crossings, functions }] of Object.entries(measured)) {
    const rows = Object.entries(counts).map(([what, count]) => [
      what,
      { count, limit: limits[way][what] },
    ]);
    console.log(`\n${way}, on both sides, for each`);
    console.table(Object.fromEntries(rows));
    console.log('crossings:', listed(crossings, ', '));
    console.log(listed(functions, '\n'));
  }
}
process.exit(); // the timers would keep the process alive
