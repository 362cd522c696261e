// The frame of the comparison: one library, named in the address.
import * as PEERS from '../peers/index.js';

const [name, host, many] = location.search.slice(1).split('&');
const origin = decodeURIComponent(host);
const now = () => performance.timeOrigin + performance.now();

/** The times of what `wait` saw, for the host to ask: each is asked for once. */
const seen = { started: Promise.withResolvers(), aborted: Promise.withResolvers() };

const held = [];
/** Chunks that the latest stream has made. */
let made = 0;
/** Chunks that were made for the next stream before it is timed. */
let ready = [];

/**
 * A chunk: text, or bytes whose memory has been written to. Each is a new object, since a
 * structured clone writes an object once in a message, however often it is in there. (Parsed:
 * engines put off what joins or repeats a text, until it is sent.)
 */
const chunkOf = ({ size, bytes }) =>
  bytes ? new Uint8Array(size).fill(1) : JSON.parse(JSON.stringify('x'.repeat(size)));
/** For how many ms the next `wait` goes on after its signal has fired. */
let lingers = 0;

const handlers = {
  echo: (params) => params,
  size(bytes) {
    if (!(bytes instanceof Uint8Array)) throw new TypeError('not the bytes that were sent');
    return bytes.byteLength;
  },
  wait: (signal) =>
    new Promise((resolve) => {
      const stop = () => {
        seen.aborted.resolve(now());
        if (lingers) setTimeout(resolve, lingers, 'stopped');
        else resolve('stopped');
        lingers = 0;
      };
      signal.addEventListener('abort', stop, { once: true });
      seen.started.resolve(now());
    }),
  *rows(params) {
    const chunks = ready;
    ready = [];
    for (made = 0; made < params.count; made++) yield chunks[made] ?? chunkOf(params);
  },
  // Whatever a real handler waits for holds it.
  pend: () => new Promise((resolve) => held.push(resolve)),
};

const [channel, side] = [new MessageChannel(), new MessageChannel()];
side.port1.onmessage = async ({ data: what }) => {
  if (what.make) {
    ready = Array.from({ length: what.make.count }, () => chunkOf(what.make));
    return side.port1.postMessage(true);
  }
  if (what.connections) {
    const channels = Array.from({ length: what.connections }, () => new MessageChannel());
    for (const { port1: port } of channels) PEERS[name].app({ port, isPort: true, many }, handlers);
    const ports = channels.map(({ port2 }) => port2);
    return side.port1.postMessage(ports, ports);
  }
  if (what === 'now') return side.port1.postMessage(now());
  if (what === 'made') return side.port1.postMessage(made);
  if (what === 'linger') return side.port1.postMessage((lingers = 50));
  const time = await seen[what].promise;
  seen[what] = Promise.withResolvers();
  side.port1.postMessage(time);
};
PEERS[name].app({ port: channel.port1, origin, many }, handlers);
parent.postMessage({ setUp: name }, origin, [channel.port2, side.port2]);
