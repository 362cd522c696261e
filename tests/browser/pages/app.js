// The app page of the browser tests. What it is is said in its address.
import { expose, transfer } from '/parts/main/index.js';
import { ready } from '/js/driver/abp-core.js';
import { plainApp, windowChannel } from '/tests/plain/plain.js';
import { AppDriver } from '/tests/support/drivers.js';

const record = (/** @type {string} */ line) => window.control?.postMessage(line);

/**
 * A transcript tells the app what to do through a port of its own, which the bridge does not see.
 */
addEventListener('message', (event) => {
  if (event.data !== 'control') return;
  event.stopImmediatePropagation();
  [window.control] = event.ports;
  window.control.onmessage = ({ data }) => window.driver.do(...data);
  record('ready');
});

/** What the core is made of. */
window.core = ready();

/** Messages that arrived, by origin: shows that an attack was really fired. */
window.heard = {};
addEventListener('message', ({ origin }) => {
  window.heard[origin] = (window.heard[origin] ?? 0) + 1;
});

const options = JSON.parse(decodeURIComponent(location.search.slice(1)));
// Those of expose; the others are this page's.
const { origins, restart, upgrade, limits, debug } = options;
const driver = new AppDriver(record);
window.driver = driver;
window.calls = 0;
Object.assign(driver.handlers, {
  echo: (params) => (window.calls++, params),
  hang: (_params, { signal }) =>
    new Promise((_resolve, reject) => {
      window.calls++;
      signal.addEventListener('abort', () => {
        window.aborted = [...(window.aborted ?? []), signal.reason.message];
        reject(signal.reason);
      });
    }),
  /** Works until it is told to stop, ends as it is asked to, and notes what it has done. */
  workOn: async ({ how }, { signal }) => {
    window.calls++;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    if (how === 'goes on') return new Promise(() => {});
    (window.handlerEnds ??= []).push(how);
    if (how === 'stops') throw signal.reason;
    if (how === 'breaks') throw new Error('no paper');
    return how;
  },
  /** Streams until it is left or told to stop, and notes it. */
  count: async function* (_params, { signal }) {
    window.calls++;
    try {
      for (let n = 0; !signal.aborted; n++) {
        yield n;
        await new Promise((resolve) => setTimeout(resolve));
      }
      throw signal.reason;
    } finally {
      (window.handlerEnds ??= []).push('stops');
    }
  },
  /** Ends when a test says so. */
  held: () =>
    new Promise((resolve) => {
      window.calls++;
      window.release = resolve;
    }),
  /** Hangs, and is done in the document that comes after a reload. */
  once: {
    idempotent: true,
    handler() {
      window.calls++;
      if (performance.getEntriesByType('navigation')[0].type === 'reload') return 'done';
      return new Promise(() => {});
    },
  },
  bytes: ({ size }) => ({ content: new ArrayBuffer(size), mimeType: 'application/octet-stream' }),
  moved: ({ size }) => {
    const pixels = new Uint8Array(size);
    window.pixels = pixels;
    return transfer({ pixels }, [pixels.buffer]);
  },
  size: ({ content }) => content.byteLength,
  unsendable: () => ({ f() {} }),
  fetches: () => ({ answer: new Response('text') }),
  'returns.nothing'() {},
  ask: (params, { elicit }) => elicit({ method: 'elicitation/input', params }),
});
window.expose_ = (origin) =>
  expose({ app: { id: 'b', name: 'B', version: '1' }, capabilities: {} }, { origins: [origin] });
if (options.taken) window.abp = { notify: { success() {} } };
if (options.kind === 'json-rpc') {
  // An app by hand, which only notes what it is asked.
  addEventListener('message', ({ data }) => data?.jsonrpc && window.calls++);
} else if (options.kind === 'plain') {
  window.exposed = plainApp(
    windowChannel(parent, options.origins[0]),
    driver.handlers,
    options.odd,
  );
} else {
  window.exposed = expose(
    {
      app: { id: 'test.app', name: 'Test', version: '1' },
      capabilities: {
        ...driver.handlers,
        add: {
          inputSchema: {
            type: 'object',
            properties: { a: { type: 'number' }, b: { type: 'number' } },
            required: ['a', 'b'],
          },
          handler: ({ a, b }) => a + b,
        },
      },
    },
    { origins, restart, upgrade, limits, debug },
  );
}
