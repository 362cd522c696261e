// The host page of the comparison: opens a frame for each library, and times one thing at a time.
// Whatever is timed is timed for the floor too, right before or after, so that each ratio compares
// adjacent runs.
import * as PEERS from '../peers/index.js';
import { core, corePending } from './core.js';
import { params } from './params.js';

const FLOOR = 'raw-port';
const sides = new Map();
const now = () => performance.timeOrigin + performance.now();
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

/**
 * Opens a frame, connects to it, and looks whether it does what it is asked. `many`: whether it
 * will be asked for many calls.
 * @returns what the library can do, and ms from the frame's being ready to the first call's answer
 */
async function open(name, appUrl, many = true) {
  const origin = new URL(appUrl).origin;
  const iframe = document.createElement('iframe');
  iframe.allow = 'cross-origin-isolated';
  iframe.src = `${appUrl}?${name}&${encodeURIComponent(location.origin)}&${many || ''}`;
  const ready = new Promise((resolve) =>
    addEventListener('message', function ours({ data, source, ports }) {
      if (data?.setUp !== name || source !== iframe.contentWindow) return;
      removeEventListener('message', ours);
      resolve(ports);
    }),
  );
  document.body.append(iframe);
  const [port, side] = await ready;
  const ask = (what) =>
    new Promise((resolve) => {
      side.onmessage = ({ data }) => resolve(data);
      side.postMessage(what);
    });
  const start = performance.now();
  const peer = {
    value: (answer) => answer,
    ...(await PEERS[name].host({ port, iframe, origin, many })),
  };
  const sent = params();
  const answer = await peer.echo?.(sent);
  const connect = performance.now() - start;
  sides.set(name, { ...peer, ask, iframe });
  if (peer.echo) await check(name, peer, sent, answer);
  const can = { moves: 'move' in peer, aborts: 'wait' in peer };
  if (!can.aborts) return { connect, ...can };
  // Whether a caller waits for its handler to stop, which takes this one a while. Where an abort
  // fires no signal, this hangs.
  const lingers = await ask('linger');
  const [, settled] = await measures.abort(name);
  return { connect, ...can, early: settled < lingers / 2 };
}

async function check(name, { value, size, move }, sent, echo) {
  const must = (holds, what) => {
    if (!holds) throw new Error(`${name}: ${what}`);
  };
  must(JSON.stringify(value(echo)) === JSON.stringify(sent), 'the echo is another');
  must(value(await size(new Uint8Array(1000))) === 1000, 'not all bytes arrive');
  if (move) {
    const bytes = new Uint8Array(1000);
    const answer = move(bytes);
    await Promise.resolve();
    must(bytes.byteLength === 0, 'the bytes were not moved');
    must(value(await answer) === 1000, 'not all bytes arrive that are moved');
  }
}

/** Whether a library can stream such chunks: all of them must arrive as they were. */
async function streams(name, params) {
  const { stream } = sides.get(name);
  if (!stream) return false;
  let count = 0;
  for await (const chunk of await stream({ ...params, count: 3 })) {
    if (params.bytes && !(chunk instanceof Uint8Array)) return false;
    if (chunk.length !== params.size) throw new Error(`${name}: a chunk of ${chunk.length}`);
    count++;
  }
  if (count !== 3) throw new Error(`${name}: ${count} chunks of 3`);
  return true;
}

/**
 * Reads one chunk and waits, as a reader does that is slow.
 * @returns how many chunks the app makes in the meantime
 */
async function ahead(name, params, ms) {
  const { stream, ask } = sides.get(name);
  const iterator = (await stream(params))[Symbol.asyncIterator]();
  await iterator.next();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const made = await ask('made');
  await iterator.return?.();
  return made;
}

function close(name) {
  const side = sides.get(name);
  side.close();
  side.iframe.remove();
  sides.delete(name);
}

/**
 * Params for so many calls, each an object of its own: no agent sends one object twice, and a
 * structured clone writes an object once in a message, however often it is in there. They are made
 * before anything is timed, for each library alike.
 */
const paramsFor = (n) => Array.from({ length: n }, params);

async function time(work) {
  const start = performance.now();
  await work();
  return [performance.now() - start];
}

/** Each returns the times of one slice of work. */
const measures = {
  async connect(name, appUrl) {
    const { connect } = await open(name, appUrl, false);
    close(name);
    return [connect];
  },
  oneAtATime(name, n) {
    const { echo } = sides.get(name);
    const list = paramsFor(n);
    return time(async () => {
      for (const each of list) await echo(each);
    });
  },
  inFlight(name, n) {
    const { echo, burst } = sides.get(name);
    const list = paramsFor(n);
    return time(() => (burst ? burst(list) : Promise.all(list.map((each) => echo(each)))));
  },
  copy: (name, bytes, n) => measures.bytes(name, bytes, n, 'size'),
  move: (name, bytes, n) => measures.bytes(name, bytes, n, 'move'),
  bytes(name, bytes, n, how) {
    const peer = sides.get(name);
    // Filled, since memory that nobody has written to costs more to send.
    const buffers = Array.from({ length: n }, () => new Uint8Array(bytes).fill(1));
    return time(async () => {
      for (const buffer of buffers) await peer[how](buffer);
    });
  },
  /** Reads a stream to its end. Its chunks are there before. */
  async stream(name, params) {
    const { ask, stream } = sides.get(name);
    await ask({ make: params });
    return time(async () => {
      let count = 0;
      for await (const chunk of await stream(params)) count += chunk.length > 0;
      if (count !== params.count) throw new Error(`${name}: ${count} chunks`);
    });
  },
  /** From asking for a stream to its first chunk. */
  async first(name, params) {
    const start = performance.now();
    let taken = 0;
    for await (const chunk of await sides.get(name).stream(params))
      if (chunk.length) taken ||= performance.now();
    return [taken - start];
  },
  /**
   * From abort() to the handler's signal, by the clock that both documents share, and to settled.
   */
  async abort(name) {
    const { wait, ask } = sides.get(name);
    const controller = new AbortController();
    const end = wait(controller.signal);
    await ask('started');
    const from = now();
    controller.abort();
    await end;
    const settled = now() - from;
    return [(await ask('aborted')) - from, settled];
  },
};

/**
 * So many slices of a library's work, each next to one of the floor's, now after it and now before.
 * @returns {Promise<[number[], number[]]>} the median of each time, of the library and of the floor
 */
async function pair(name, what, args, slices) {
  const taken = [[], []];
  const take = async (who, i) => taken[i].push(await measures[what](who, ...args));
  for (let slice = 0; slice < slices; slice++) {
    const first = (slice + turn) % 2;
    await take(first ? FLOOR : name, first);
    await take(first ? name : FLOOR, 1 - first);
  }
  turn++;
  return taken.map((slices) =>
    slices[0].map((_time, i) => median(slices.map((times) => times[i]))),
  );
}
let turn = 0;

/** How far the app's clock is ahead: the best guess of many, from the fastest round trip. ms */
async function skew() {
  const { ask } = sides.get(FLOOR);
  let best = Infinity;
  let ahead = 0;
  for (let i = 0; i < 200; i++) {
    const from = now();
    const there = await ask('now');
    const to = now();
    if (to - from < best) [best, ahead] = [to - from, there - (from + to) / 2];
  }
  return { ahead, roundTrip: best };
}

/** Makes calls that stay pending, and waits until the other side has them. */
async function pend(name, n) {
  const { pend, echo, connections = 1 } = sides.get(name);
  for (let i = 0; i < n; i += 1000) {
    for (let j = i; j < Math.min(n, i + 1000); j++) pend(params());
    await Promise.all(paramsFor(connections).map((each) => echo(each)));
  }
}

/** Many calls, a tenth of them cancelled. */
async function many(name, calls) {
  const { echo, wait } = sides.get(name);
  for (let done = 0; done < calls; done += 1000) {
    await Promise.all(
      paramsFor(1000).map((each, i) => {
        if (i % 10) return echo(each);
        const controller = new AbortController();
        const call = wait(controller.signal);
        controller.abort();
        return call;
      }),
    );
  }
}

/**
 * From now on a library's calls go in turn over so many connections of their own, all to the one
 * frame.
 */
async function connectMore(name, connections) {
  const side = sides.get(name);
  const ports = await side.ask({ connections });
  const peers = await Promise.all(
    ports.map((port) => PEERS[name].host({ port, isPort: true, many: true })),
  );
  let turn = 0;
  const next = () => peers[turn++ % connections];
  const echo = (params) => next().echo(params);
  const pend = (params) => next().pend(params);
  sides.set(name, { ...side, connections, echo, pend });
}

window.comparison = {
  open,
  pair,
  skew,
  pend,
  many,
  streams,
  ahead,
  connectMore,
  core,
  corePending,
};
