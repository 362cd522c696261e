// The host page of the comparison: opens a frame for each library and times one thing at a time.
import * as PEERS from '../peers/index.js';

/** A record such as an agent sends. */
const PARAMS = { title: 'a document', pages: [1, 2, 3], options: { size: 'A4', color: true } };
const sides = new Map();
const clock = () => performance.timeOrigin + performance.now();

/** @returns what the library can do, and ms from the frame's being ready to the first call's answer */
window.open_ = async (name, appUrl) => {
  const origin = new URL(appUrl).origin;
  const iframe = document.createElement('iframe');
  iframe.allow = 'cross-origin-isolated';
  iframe.src = `${appUrl}?${name}&${encodeURIComponent(location.origin)}`;
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
  const peer = await PEERS[name].host({ port, iframe, origin });
  const answer = await peer.echo(PARAMS);
  const connect = performance.now() - start;
  if (JSON.stringify(answer) !== JSON.stringify(PARAMS)) throw new Error(`${name} is no echo`);
  sides.set(name, { ...peer, ask, iframe });
  return { connect, transfers: peer.echo.length > 1, aborts: 'wait' in peer };
};

window.close_ = (name) => {
  const { close, iframe } = sides.get(name);
  close();
  iframe.remove();
  sides.delete(name);
};

const time = async (work) => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

window.measures = {
  oneAtATime: (name, n) =>
    time(async () => {
      const { echo } = sides.get(name);
      for (let i = 0; i < n; i++) await echo(PARAMS);
    }),
  inFlight: (name, n) => {
    const { echo } = sides.get(name);
    return time(() => Promise.all(Array.from({ length: n }, () => echo(PARAMS))));
  },
  copy: (name, bytes) => {
    const data = new Uint8Array(bytes);
    return time(() => sides.get(name).echo({ data }));
  },
  move: (name, bytes) => {
    const data = new Uint8Array(bytes);
    return time(() => sides.get(name).echo({ data }, [data.buffer]));
  },
  /** From abort() to the handler's signal, by the clock that both documents share, or to settled: a median. */
  async abort(name, n, until) {
    const { wait, ask } = sides.get(name);
    const times = [];
    for (let i = 0; i < n; i++) {
      const controller = new AbortController();
      const settled = wait(controller.signal);
      await ask('started');
      const from = clock();
      controller.abort();
      await settled;
      const to = clock();
      const signal = await ask('aborted');
      times.push((until === 'signal' ? signal : to) - from);
    }
    return times.sort((a, b) => a - b)[n >> 1];
  },
};
/** Makes calls that stay pending, and waits until the other side has them. */
window.pend = async (name, n) => {
  const { pend, echo } = sides.get(name);
  for (let i = 0; i < n; i += 1000) {
    for (let j = 0; j < 1000; j++) pend();
    await echo(PARAMS);
  }
};
window.isReady = true;
