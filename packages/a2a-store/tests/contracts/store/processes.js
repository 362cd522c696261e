/** Agents on one backend: each is a process of its own. tests/fleet has real processes. */
import { test as nodeTest } from 'node:test';
import { taskStore } from '../../../src/index.js';
import { VERSIONS, ask, serve } from '../../../../a2a/tests/support/a2a.js';

/** How many tasks the test of many has. */
export const TASKS = Number(process.env.FLEET_TASKS ?? 60);

export const V1 = VERSIONS['1.0'];

export const send = (url, text, more) =>
  ask(url, V1.send, { message: V1.message(text), ...more }, V1.headers);

export const get = (url, id) => ask(url, V1.get, { id }, V1.headers);

export const cancel = (url, id) => ask(url, V1.cancel, { id }, V1.headers);

export const returnImmediately = { configuration: { returnImmediately: true } };

/** Starts so many agents on one backend. */
async function start(t, openBackend, execute, { count = 2, store = {}, ...options } = {}) {
  const backend = await openBackend();
  const agents = [];
  t.after(() => backend.close());
  t.after(() => Promise.all(agents.map((agent) => agent.close())));
  /** One more process, whose options may differ. */
  const join = async (more = {}) => {
    const own = { ...options, store: taskStore({ backend, term: 10_000, ...store }), ...more };
    const i = agents.length;
    agents.push(await serve((context) => execute(context, i), own));
    return agents[i];
  };
  for (let i = 0; i < count; i++) await join();
  return { backend, agents, urls: agents.map(({ url }) => url), join };
}

/**
 * @param {string} name of the backend
 * @param {() => Promise<import('../../../src/index.js').Backend>} openBackend an empty one
 * @returns {(what: string, run: (t: any, start: any) => Promise<void>) => void} a test over it
 */
export const testsOver = (name, openBackend) => (what, run) =>
  nodeTest(`${name}: ${what}`, { timeout: 60_000 + TASKS * 200 }, (t) =>
    run(t, (...rest) => start(t, openBackend, ...rest)),
  );
