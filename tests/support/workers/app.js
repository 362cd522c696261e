// An app in a worker of whatever kind, in Node or in a page. What it is is said in its address or,
// in Node, in its data.
import { expose } from '../../../parts/main/index.js';
import { Token } from '../../../parts/workers/pool.js';
import { AppDriver } from '../drivers.js';

const options =
  globalThis.process?.getBuiltinModule('node:worker_threads').workerData ??
  JSON.parse(decodeURIComponent(location.search.slice(1)));
/** How a test tells it what to do, past the bridge. */
const control = new BroadcastChannel(options.control);
const driver = new AppDriver((line) => control.postMessage({ log: line }));
control.onmessage = ({ data }) => data.do && driver.do(...data.do);

if (options.throws) throw new Error('broken at the start');
const exposed = expose(
  {
    app: { id: 'test.app', name: 'Test', version: '1' },
    capabilities: {
      ...driver.handlers,
      echo: (params) => params,
      hang: (_params, { signal }) =>
        new Promise((_resolve, reject) => {
          control.postMessage({ log: 'app: hangs' });
          signal.addEventListener('abort', () => {
            control.postMessage({ log: `app: stopped ${signal.reason.message}` });
            reject(signal.reason);
          });
        }),
      bytes: ({ size }) => ({ content: new ArrayBuffer(size), mimeType: 'a/b' }),
      size: ({ content }) => content.byteLength,
      exit: () => globalThis.process.exit(3),
      throwLater: () => void queueMicrotask(() => globalThis.nothing.there),
      connections: () => exposed.counters.length,
      /** Computes until the token that came with the params says stop. */
      asks: ({ word }, { progress }) => {
        const token = new Token(word);
        progress({ progress: 0 });
        for (const end = performance.now() + 60_000; performance.now() < end;) {
          token.throwIfCancelled();
        }
      },
    },
  },
  { limits: options.limits },
);
