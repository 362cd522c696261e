/**
 * Thirty handlers whose effects are written down beside the library, so that what a caller is told of a call can be compared
 * with what stands there. They run wherever the app is: in this process, in a worker, in a page. A handler is a manner, in which
 * its effects come, and a temper, which is how it takes being told to stop. The rest follows from the seed in its params.
 */
import { random } from '../differential/scripts.js';

/**
 * @typedef {{ key: string, at: 'begin' | 'effect' | 'signal' | 'end' | 'told' | 'cut', how?: string, order?: number }} Row `order`: how many
 *   rows were read before it
 */

/**
 * @typedef {object} Place Where handlers run.
 * @property {(row: Row) => unknown} write into the database; by then the row stands
 * @property {(row: Row) => Promise<unknown>} writeElsewhere the same, by another thread
 * @property {() => Promise<unknown>} released resolves when a handler that is stuck may go on
 */

/** @typedef {{ signal: AbortSignal, report?: (report: { applied: number, remaining: number }) => void }} Context */

const { setImmediate } = globalThis;
/** A turn of the event loop: what has arrived is read. @returns {Promise<void>} */
export const turn = () =>
  new Promise((resolve) => {
    if (setImmediate) return setImmediate(resolve);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });

/**
 * @typedef {object} Steps What a manner is made of.
 * @property {number} effects how many it is to have
 * @property {() => void} effect writes one
 * @property {() => Promise<void>} effectElsewhere has one written by another thread
 * @property {() => Promise<void>} pause lets messages in, and throws if the handler is to end here
 */

/** @param {number} count @param {() => unknown} act */
async function times(count, act) {
  for (let i = 0; i < count; i++) await act();
}

/** @type {Record<string, (steps: Steps) => Promise<void>>} */
const MANNERS = {
  async at_once({ effects, effect, pause }) {
    await times(effects, effect);
    await times(effects, pause);
  },
  in_steps: ({ effects, effect, pause }) =>
    times(effects, async () => {
      await pause();
      effect();
    }),
  async at_the_end({ effects, effect, pause }) {
    await times(effects, pause);
    await times(effects, effect);
  },
  in_a_worker: ({ effects, effectElsewhere, pause }) =>
    times(effects, async () => {
      await effectElsewhere();
      await pause();
    }),
  /** What it was told stops its work, and its effects come then. */
  async after_the_signal({ effects, effect, pause }) {
    try {
      await times(2 * effects, pause);
    } finally {
      await times(effects, effect);
    }
  },
  twice: ({ effects, effect, pause }) =>
    times(effects, async () => {
      effect();
      await pause();
      effect();
    }),
};

/** What ends or delays a handler in a pause. @type {Record<string, (its: any) => Promise<void> | void>} */
const TEMPERS = {
  obeys: ({ signal }) => signal.throwIfAborted(),
  is_deaf() {},
  async tidies_up({ signal }) {
    if (!signal.aborted) return;
    for (let i = 0; i < 3; i++) await turn();
    signal.throwIfAborted();
  },
  breaks({ left }) {
    if (left <= 0) throw Object.assign(new Error('broken'), { code: 'BROKEN', retryable: false });
  },
  /** It does not end until it is released, once it was told to stop. */
  async is_stuck({ signal, released }) {
    if (signal.aborted) await released();
  },
};

/** The names of all handlers. */
export const NAMES = Object.keys(MANNERS).flatMap((manner) =>
  Object.keys(TEMPERS).map((temper) => `${manner}-${temper}`),
);

/** Whether a handler of this name ends only when it is released. @param {string} name */
export const isStuck = (name) => name.endsWith('is_stuck');

/**
 * @param {Place} place
 * @returns {Record<string, (params: { key: string, seed: number }, context: Context) => Promise<{ key: string }>>}
 */
export const handlersOf = (place) =>
  Object.fromEntries(NAMES.map((name) => [name, handlerOf(name, place)]));

/** @param {string} name @param {Place} place */
function handlerOf(name, { write, writeElsewhere, released }) {
  const [manner, temper] = name.split('-');
  return async (
    /** @type {{ key: string, seed: number }} */ { key, seed },
    /** @type {Context} */ { signal, report },
  ) => {
    const below = random(seed);
    const effects = 1 + below(4);
    const all = manner === 'twice' ? 2 * effects : effects;
    let applied = 0;
    let left = 1 + below(4);
    const said = () => report?.({ applied: ++applied, remaining: all - applied });
    const effect = () => {
      write({ key, at: 'effect' });
      said();
    };
    const effectElsewhere = async () => {
      await writeElsewhere({ key, at: 'effect' });
      said();
    };
    const pause = async () => {
      await turn();
      await TEMPERS[temper]({ signal, left: left--, released });
    };
    write({ key, at: 'begin' });
    const noted = () => write({ key, at: 'signal' });
    signal.addEventListener('abort', noted);
    try {
      await MANNERS[manner]({ effects, effect, effectElsewhere, pause });
      write({ key, at: 'end', how: 'returned' });
      return { key };
    } catch (error) {
      write({
        key,
        at: 'end',
        how: signal.aborted && error === signal.reason ? 'stopped' : 'broke',
      });
      throw error;
    } finally {
      signal.removeEventListener('abort', noted);
    }
  };
}
