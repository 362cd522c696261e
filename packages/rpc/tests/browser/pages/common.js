// What the host's and the app's page have in common: what happened, and calls that a test can look
// at.
import { ready } from '../../../src/rpc-core.js';

/** What the core of our peers is made of. */
window.core = ready();

// ext-apps reports every message there.
console.debug = () => {};

/** What handlers, signals and listeners did. @type {string[]} */
window.log = [];
export const note = (line) => window.log.push(line);

/** Window messages that arrived: by origin, and the data of those that are no JSON-RPC. */
window.heard = {};
window.words = [];
addEventListener('message', ({ origin, data }) => {
  window.heard[origin] = (window.heard[origin] ?? 0) + 1;
  if (data?.jsonrpc !== '2.0') window.words.push(data);
});

/** Calls by name. `window.calls[key].outcome` is what became of one. */
window.calls = {};
window.call = (key, ...args) => {
  const controller = new AbortController();
  const outcome = window.end.call(...args, controller.signal).then(
    (value) => ({ value }),
    (error) => ({ name: error.name, code: error.code, message: error.message }),
  );
  window.calls[key] = { controller, outcome };
};
