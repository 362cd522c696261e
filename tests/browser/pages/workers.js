// A page with workers: an agent of apps that live in them, and an app whose operations run in a
// pool of them.
import { connect, expose } from '/parts/main/index.js';
import { ready } from '/js/driver/abp-core.js';
import { pool } from '/parts/workers/pool.js';
import { watchHeld } from './held.js';

const agent = { name: 'test', version: '1' };
const at = (script, options = {}) =>
  `/tests/support/workers/${script}?${encodeURIComponent(JSON.stringify(options))}`;
const MAKE = {
  Worker: (url) => new Worker(url, { type: 'module' }),
  SharedWorker: (url) => new SharedWorker(url, { type: 'module' }),
};

/** What the core is made of. */
window.core = ready();
window.watchHeld = watchHeld;

// --- An app in a worker --------------------------------------------------------------------------

/** What an app in a worker has said past the bridge, by the name of its channel. */
const controls = new Map();
function controlOf(name) {
  if (!controls.has(name)) {
    const channel = new BroadcastChannel(name);
    const lines = [];
    channel.onmessage = ({ data }) => data.log && lines.push(data.log);
    controls.set(name, Object.assign(channel, { lines }));
  }
  return controls.get(name);
}

/** Connects to an app in a worker. `made` is by a function. */
window.connectTo = async ({
  kind,
  script = 'app.js',
  made,
  options,
  limits,
  timeout = 300_000,
}) => {
  const control = controlOf(options.control);
  const make = () => (window.worker = MAKE[kind](at(script, options)));
  const client = await connect(made ? make : make(), {
    agent,
    limits,
    timeout,
    onDisconnect: ({ code }) => (window.lost = code),
  });
  window.client = client;
  window.control = control;
};
/** The same, for what is to fail: resolves with the code. */
window.failToConnect = (what) =>
  window.connectTo(what).then(
    () => 'connected',
    ({ code, cause }) => ({ code, told: cause !== undefined }),
  );
window.begin = (name, params) => {
  window.pending = window.client.call(name, params);
};

// --- An app with a pool --------------------------------------------------------------------------

/** Opens a pool, an app whose capabilities run in it, and its agent. */
window.openPool = async (options, script = at('pool.js')) => {
  await window.workers?.close();
  window.client?.close();
  window.started = 0;
  const start = () => (window.started++, (window.worker = MAKE.Worker(script)));
  window.workers = pool(start, { size: 1, ...options });
  const names = [
    'echo',
    'asks',
    'deaf',
    'yields',
    'breathes',
    'sieve',
    'shares',
    'moved',
    'bytes',
    'fails',
    'rows',
    'throwsInATimer',
    'rejectsLater',
    'handlesRejections',
    'throwsAside',
    'closes',
    'closesAtItsEnd',
    'busy',
    'hangs',
  ];
  const { port1, port2 } = new MessageChannel();
  window.app = expose(
    {
      app: { id: 'a', name: 'A', version: '1' },
      capabilities: Object.fromEntries(names.map((name) => [name, window.workers.run(name)])),
    },
    { port: port1 },
  );
  window.client = await connect(port2, { agent });
};
/** Calls, aborts when the handler says that it has started, and resolves with the outcome. */
window.cancelled = async (name, params) => {
  const controller = new AbortController();
  const { success, cancelled, error } = await window.client.call(name, params, {
    signal: controller.signal,
    onProgress: () => controller.abort('enough'),
  });
  return { success, cancelled, message: error?.message };
};
/** Gives a task to the pool, and others that wait behind it; resolves with what became of all. */
window.withOthersBehind = async (name, params) => {
  const { client } = window;
  const resultOf = ({ success, data, error, metadata }) =>
    success ? data : [error.code, metadata.outcome, error.message];
  const begun = new Promise((resolve) => (window.whenBegun = resolve));
  const first = client.call(name, params, { onProgress: window.whenBegun });
  void first.then(window.whenBegun);
  const others = [1, 2].map((n) => client.call('echo', n));
  window.begun = begun;
  return [resultOf(await first), ...(await Promise.all(others)).map(resultOf)];
};
window.isReady = true;
