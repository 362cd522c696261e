// The frame of the comparison: one library, named in the address.
import * as PEERS from '../peers/index.js';

const [name, host] = location.search.slice(1).split('&');
const origin = decodeURIComponent(host);
const now = () => performance.timeOrigin + performance.now();

/** The times of what `wait` saw, for the host to ask: each is asked for once. */
const seen = { started: Promise.withResolvers(), aborted: Promise.withResolvers() };

const held = [];
/** Chunks that the latest stream has made. */
let made = 0;
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
  /** Chunks: text, or bytes whose memory has been written to, as new ones where they are moved. */
  *rows({ size, bytes, moves, count }) {
    const chunk = bytes ? new Uint8Array(size).fill(1) : 'x'.repeat(size);
    for (made = 0; made < count; made++) yield moves ? new Uint8Array(size).fill(1) : chunk;
  },
  // Whatever a real handler waits for holds it.
  pend: () => new Promise((resolve) => held.push(resolve)),
};

const [channel, side] = [new MessageChannel(), new MessageChannel()];
side.port1.onmessage = async ({ data: what }) => {
  if (what === 'now') return side.port1.postMessage(now());
  if (what === 'made') return side.port1.postMessage(made);
  if (what === 'linger') return side.port1.postMessage((lingers = 50));
  const time = await seen[what].promise;
  seen[what] = Promise.withResolvers();
  side.port1.postMessage(time);
};
PEERS[name].app({ port: channel.port1, origin }, handlers);
parent.postMessage({ setUp: name }, origin, [channel.port2, side.port2]);
