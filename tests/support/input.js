/** What tests of a call's input share: sources that can be watched, and an app that reads them. */
import { openPair } from './pair.js';
import { deferred } from './site.js';

/** An agent's source: how many values it has made, and whether it has ended. */
export function source(to, { fail } = {}) {
  const watched = { made: 0, ended: deferred() };
  watched.values = (async function* () {
    try {
      for (; watched.made < to;) yield watched.made++;
      if (fail) throw fail;
      return 'the end';
    } finally {
      watched.ended.resolve();
    }
  })();
  return watched;
}

/**
 * `gate` is what handlers wait for, `ended` what became of them. Each pair has its own.
 * @type {{ gate: any, ended: any }}
 */
export const handlers = { gate: undefined, ended: undefined };

export const CAPABILITIES = {
  async list(_params, { input }) {
    const values = [];
    for await (const value of input) values.push(value);
    return values;
  },
  async sum(_params, { input }) {
    let sum = 0;
    for (let next; !(next = await input.next()).done;) sum += next.value;
    return sum;
  },
  /** Reads a little, and goes on with something else. */
  async head({ count = 1 }, { input }) {
    const values = [];
    for await (const value of input) if (values.push(value) === count) break;
    await handlers.gate.promise;
    return values;
  },
  /** Reads one, and the rest when it may. */
  async slow(_params, { input }) {
    const values = [(await input.next()).value];
    await handlers.gate.promise;
    for await (const value of input) values.push(value);
    return values.length;
  },
  /** The same, and says how many bytes may come ahead of it. */
  async marked({ highWaterMark }, { input }) {
    input.highWaterMark = highWaterMark;
    const values = [(await input.next()).value];
    await handlers.gate.promise;
    for await (const value of input) values.push(value);
    return values.length;
  },
  async *double(_params, { input }) {
    for await (const value of input) yield value * 2;
    return 'doubled';
  },
  async waits(_params, { input }) {
    try {
      for await (const value of input) handlers.ended.seen = value;
      return 'all';
    } catch (error) {
      handlers.ended.resolve(error);
      throw error;
    }
  },
  /** Reads one, and tries to read on once it was cancelled. */
  async late({ unread }, { input, signal }) {
    const first = unread ? undefined : (await input.next()).value;
    handlers.gate.resolve();
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    const thrown = [];
    for (let i = 0; i < 3; i++) thrown.push(await input.next().then(String, (error) => error));
    handlers.ended.resolve({ first, thrown, reason: signal.reason });
  },
  has: (_params, context) => [context.input === undefined, 'input' in { ...context }],
  plain: () => 42,
};

export function pair({ limits = {}, ...way } = {}) {
  handlers.gate = deferred();
  handlers.ended = deferred();
  return openPair(CAPABILITIES, {
    ...way,
    app: { limits: limits.app },
    agent: { limits: limits.agent },
  });
}
