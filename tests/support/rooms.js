/**
 * The rooms of docs/architecture.md: what may import what. tests/node/rooms.test.js holds it.
 * @typedef {Record<string, string>} Lists names, with spaces between them, by name
 */

const names = (/** @type {string} */ text = '') => new Set(text.split(/\s+/).filter(Boolean));
const setsOf = (/** @type {Lists} */ lists) =>
  new Map(Object.entries(lists).map(([name, text]) => [name, names(text)]));

/** The rooms of `js/` that each may import from. All of them may import from `common`, too. */
export const ROOMS = setsOf({
  common: 'parts/mistakes',
  driver: '',
  wire: 'driver',
  transports: '',
  session: 'wire driver',
  agent: 'session transports wire driver parts/retry',
  app: 'page session transports wire driver',
  window: 'transports',
  untrusted: '',
  binary: '',
  page: 'agent session wire driver binary',
  foreign: 'agent app transports wire driver page binary',
});

/** The other parts that each part may import from. All may import from the doors of `js/`, too. */
export const PARTS = setsOf({
  main: 'discovery keys schemas trace',
  driver: 'trace transports',
  mistakes: '',
  retry: '',
  trace: '',
  schemas: '',
  keys: '',
  discovery: 'schemas',
  transports: '',
  workers: '',
  frameworks: 'main retry',
  vite: '',
});

/** The doors of each room: files that parts may import. */
export const DOORS = setsOf({
  common: `breathe check-options copy development errors inflow iteration iterator-of latest origins
    parts report secret signals similar-name token transfer value-size values waiting`,
  driver: 'abp-boundary abp-core core machine module',
  wire: 'frame-kinds frames messages unsent',
  transports: 'iframe iframe-watcher owners port receiver worker',
  session: 'capability-support',
  agent: 'client',
  app: 'expose waits',
  page: 'grace reporters',
  foreign: 'foreign-app foreign-capabilities plain-json read-error relay-transport',
  untrusted: 'addresses bounds node-request',
  binary: 'base64 binary digest',
  window: 'transport watch',
});

/**
 * The units that tests import besides the entries of packages, each with a reason. The gateway is a
 * program without an entry: its tests start it, except those of functions that turn values into
 * values.
 */
export const UNITS = [
  // Two ends that are joined with options: tests of all rooms use it.
  'js/transports/port.js',
  // Generated: C and JavaScript agree.
  'js/driver/abp-boundary.js',
  'parts/trace/abp-names.js',
  'packages/rpc/src/rpc-boundary.js',
  'packages/a2a/src/tasks-boundary.js',
  // The driver of the core: its forms, traps, memory that cannot be had, the order of actions.
  'js/driver/load.js',
  'js/driver/module.js',
  'js/driver/instance.js',
  'js/driver/machine.js',
  // Which form of the core a page has loaded.
  'js/driver/abp-core.js',
  'packages/rpc/src/rpc-core.js',
  // The grace period that comes with a signal.
  'js/common/signals.js',
  // Limits of values from outside, up to the very last one.
  'js/untrusted/bounds.js',
  // Moments of a cluster that no real one can be made to show.
  'packages/a2a-store/src/nats.js',
  'packages/a2a-store/src/nats-feed.js',
  'packages/a2a/src/store/membership.js',
  // The texts of events and values, which the entry draws in a page.
  'packages/inspector/src/log.js',
  'packages/inspector/src/readable-copy.js',
  // The text of a policy, which browsers enforce, for hostile sources.
  'packages/mcp-apps/src/policy.js',
];
