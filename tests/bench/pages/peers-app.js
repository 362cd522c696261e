// The frame of the comparison: one library, named in the address.
import * as PEERS from '../peers/index.js';

const [name, host] = location.search.slice(1).split('&');
const origin = decodeURIComponent(host);
/** What happened last to `wait`, for the host to ask: a time each. */
const happened = {};
const events = {};
const expectNext = (what) => (events[what] = new Promise((resolve) => (happened[what] = resolve)));
expectNext('started');
expectNext('aborted');
const now = () => performance.timeOrigin + performance.now();

const handlers = {
  echo: (params) => params,
  wait: (signal) =>
    new Promise((resolve) => {
      happened.started(now());
      signal?.addEventListener('abort', () => {
        happened.aborted(now());
        resolve('stopped');
      });
    }),
};
const [channel, side] = [new MessageChannel(), new MessageChannel()];
side.port1.onmessage = async ({ data: what }) => {
  side.port1.postMessage(await events[what]);
  expectNext(what);
};
PEERS[name].app({ port: channel.port1, origin }, handlers);
parent.postMessage({ setUp: name }, origin, [channel.port2, side.port2]);
