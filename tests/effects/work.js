/**
 * Handlers whose effects are written down beside the library, so that what a caller is told of a
 * call can be compared with what stands there. They run wherever the app is: in this process, in a
 * worker, in a page. A capability is a shape: how a handler takes its call and gives its result.
 * The work in it is a manner, in which its effects come, and a temper, which is how it takes being
 * told to stop. The rest follows from the seed in its params.
 */
import { random } from '../differential/scripts.js';

/**
 * @typedef {object} Row
 * @property {string} key of the call
 * @property {'begin' | 'goes on' | 'effect' | 'signal' | 'end' | 'breaks' | 'passes' | 'leaves'
 *   | 'answered' | 'permitted' | 'told' | 'cut'} at
 * @property {string} [how] it began: `open` is a source that nobody tells that it is not wanted any
 *   more, `ahead` one that may be done before its reader knows; or how it ended. A source that
 *   `breaks` does so when it is told to end
 * @property {number} [thread] in which it runs, where that may be ended
 * @property {number} [order] how many rows were read before it
 */

/**
 * @typedef {object} Params
 * @property {string} key
 * @property {number} seed
 * @property {string} manner
 * @property {string} temper
 * @property {string} [inner] the shape of the call that it makes
 */

/**
 * @typedef {object} Place Where handlers run.
 * @property {(row: Row) => unknown} write into the database; by then the row stands
 * @property {(row: Row) => Promise<unknown>} writeElsewhere the same, by another thread
 * @property {() => Promise<unknown>} released resolves when a handler that is stuck may go on
 * @property {() => Promise<never>} [die] ends the thread
 */

/**
 * @typedef {object} Context
 * @property {AbortSignal} signal
 * @property {(report: { applied: number, remaining: number }) => void} [report]
 * @property {(name: string, params: object) => Promise<any>} [call]
 * @property {(question: { method: string, params: object }) => Promise<any>} [elicit]
 * @property {AsyncIterable<unknown>} [input]
 */

const { setImmediate } = globalThis;
/**
 * A turn of the event loop: what has arrived is read.
 * @returns {Promise<void>}
 */
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
 * @param {number} count
 * @param {() => Promise<unknown>} [pace] one turn; one that fails has passed, too
 */
export async function turns(count, pace = turn) {
  for (let i = 0; i < count; i++) await pace().catch(() => {});
}

/**
 * @param {number} count
 * @param {...string} steps
 */
const times = (count, ...steps) => Array.from({ length: count }, () => steps).flat();

/** The steps of some effects. @type {Record<string, (effects: number) => string[]>} */
const MANNERS = {
  at_once: (n) => [...times(n, 'effect'), ...times(n, 'pause')],
  in_steps: (n) => times(n, 'pause', 'effect'),
  at_the_end: (n) => [...times(n, 'pause'), ...times(n, 'effect')],
  in_a_worker: (n) => times(n, 'elsewhere', 'pause'),
  /** What it was told stops its pauses, and its effects come then. */
  after_the_signal: (n) => [...times(2 * n, 'pause'), ...times(n, 'effect')],
  twice: (n) => times(n, 'effect', 'pause', 'effect'),
};

/**
 * What ends or delays a handler in a pause.
 * @type {Record<string, (its: any) => Promise<void> | void>}
 */
const TEMPERS = {
  obeys: ({ signal }) => signal.throwIfAborted(),
  is_deaf() {},
  async tidies_up({ signal }) {
    if (!signal.aborted) return;
    await turns(3);
    signal.throwIfAborted();
  },
  async breaks({ left, die }) {
    if (left > 0) return;
    if (die) await die();
    throw Object.assign(new Error('broken'), { code: 'BROKEN', retryable: false });
  },
  /** It does not end until it is released, once it was told to stop. */
  async is_stuck({ signal, released }) {
    if (signal.aborted) await released();
  },
};

/** One handler at work. */
class Work {
  #place;
  #signal;
  #report;
  #temper;
  #steps;
  #persists;
  #dies;
  #isLeft = false;
  /** @type {Promise<boolean> | undefined} */
  #going;
  #applied = 0;
  #left;
  /** What else the seed decides. */
  below;
  hasEnded = false;

  /**
   * @param {Place} place
   * @param {Params} params
   * @param {Context} context
   */
  constructor(place, { key, seed, manner, temper }, { signal, report }) {
    this.below = random(seed);
    const effects = 1 + this.below(4);
    this.key = key;
    this.#place = place;
    this.#signal = signal;
    this.#report = report;
    this.#temper = temper;
    this.#steps = MANNERS[manner](effects);
    this.#persists = manner === 'after_the_signal';
    this.#left = 1 + this.below(4);
    this.#dies = this.below(2) > 0;
  }

  /**
   * @param {Row['at']} at
   * @param {string} [how]
   */
  write(at, how) {
    return this.#place.write({ key: this.key, at, how });
  }

  #noted = () => this.write('signal');

  /** @param {string} [how] */
  begin(how) {
    this.write('begin', how);
    this.#signal.addEventListener('abort', this.#noted);
  }

  /** @param {string} how */
  #end(how) {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.#signal.removeEventListener('abort', this.#noted);
    this.write('end', how);
  }

  /**
   * Works up to its next effect.
   * @returns {Promise<boolean>} false if there is none
   */
  go() {
    return (this.#going = this.#go());
  }

  async #go() {
    try {
      for (let step; !this.#isLeft && (step = this.#steps.shift());) {
        if (step === 'pause') await this.#pause();
        else if (step === 'effect') return this.#effect();
        else {
          await this.#place.writeElsewhere({ key: this.key, at: 'effect' });
          return this.#said();
        }
      }
      if (!this.#isLeft) this.#end('returned');
      return false;
    } catch (error) {
      throw this.fail(error);
    }
  }

  /** The same where nothing can be waited for. */
  goAtOnce() {
    try {
      for (let step; (step = this.#steps.shift());) {
        if (step !== 'pause') return this.#effect();
        if (this.#left-- <= 0 && this.#temper === 'breaks') throw new Error('broken');
        if (this.#temper === 'obeys') this.#signal.throwIfAborted();
      }
    } catch (error) {
      throw this.fail(error);
    }
    this.#end('returned');
    return false;
  }

  #effect() {
    this.write('effect');
    return this.#said();
  }

  #said() {
    this.#applied++;
    const remaining = this.#steps.filter((step) => step !== 'pause').length;
    this.#report?.({ applied: this.#applied, remaining });
    return true;
  }

  /** Lets messages in, and throws if the handler is to end here. */
  async #pause() {
    await turn();
    const { released } = this.#place;
    const die = this.#dies && this.#place.die && (() => this.#die());
    const signal = this.#signal;
    const its = { signal, left: this.#left--, released, die };
    await TEMPERS[this.#temper](its);
  }

  #die() {
    this.#end('killed');
    return this.#place.die();
  }

  #persist() {
    if (this.#persists && !this.hasEnded) {
      for (const step of this.#steps.splice(0)) if (step === 'effect') this.#effect();
    }
  }

  /**
   * It ends with an error.
   * @param {any} error
   * @returns {any} the error
   */
  fail(error) {
    this.#persist();
    const isStopped =
      error === this.#signal.reason || error?.name === 'AbortError' || error?.code === 'CANCELLED';
    this.#end(isStopped ? 'stopped' : this.#isLeft ? 'left and broke' : 'broke');
    return error;
  }

  /** Nobody reads what it makes. Resolves when it has ended. */
  async leave() {
    this.#isLeft = true;
    await this.#going?.catch(() => {});
    this.leaveAtOnce();
  }

  /**
   * The same, and it breaks in that.
   * @param {string} why
   */
  async breakOff(why) {
    await this.leave();
    this.write('breaks');
    throw new Error(why);
  }

  leaveAtOnce() {
    this.#persist();
    this.#end('left');
  }

  async finish() {
    while (await this.go());
    return this.key;
  }
}

/** @param {Work} work */
async function* generatorOf(work) {
  try {
    while (await work.go()) yield work.key;
    return work.key;
  } finally {
    work.leaveAtOnce();
  }
}

/**
 * @param {Work} work
 * @param {object} more
 */
const iterableOf = (work, more) => ({
  [Symbol.asyncIterator]() {
    return this;
  },
  next: async () => ((await work.go()) ? { value: work.key } : { done: true, value: work.key }),
  ...more,
});

/**
 * @param {Work} work
 * @param {number} highWaterMark what it makes before it is asked
 * @param {() => Promise<void>} cancel
 */
function readableOf(work, highWaterMark, cancel) {
  work.begin(highWaterMark ? 'ahead' : undefined);
  const pull = async (/** @type {ReadableStreamDefaultController} */ controller) => {
    if (await work.go()) controller.enqueue(work.key);
    else if (work.hasEnded) controller.close();
  };
  return new ReadableStream({ pull, cancel }, { highWaterMark });
}

/** What streams. @type {Record<string, (work: Work) => AsyncIterable<unknown> | ReadableStream>} */
const SOURCES = {
  /** Its handler is a generator itself: see {@link handlersOf}. */
  async_generator(work) {
    work.begin();
    return generatorOf(work);
  },
  generator(work) {
    work.begin('open');
    const generator = function* () {
      work.write('goes on');
      try {
        while (work.goAtOnce()) yield work.key;
        return work.key;
      } finally {
        work.leaveAtOnce();
      }
    };
    return { [Symbol.asyncIterator]: /** @type {any} */ (generator) };
  },
  function_of_generator(work) {
    work.begin('open');
    const generator = async function* () {
      work.write('goes on');
      return yield* generatorOf(work);
    };
    return generator();
  },
  readable: (work) => readableOf(work, work.below(2), () => work.leave()),
  by_hand(work) {
    work.begin('open');
    return iterableOf(work, {});
  },
  fails_to_end(work) {
    work.begin();
    return iterableOf(work, {
      return: () => work.breakOff('it cannot be ended'),
    });
  },
  cannot_be_cancelled: (work) => readableOf(work, 0, () => work.breakOff('it cannot be cancelled')),
};

/**
 * What a handler asks before it works.
 * @param {Work} work
 * @param {Context} context
 */
async function ask(work, { signal, elicit }) {
  try {
    await turns(work.below(4));
    const params = { message: work.key };
    const { success, data } = await elicit({ method: 'elicitation/confirm', params });
    if (success && data.confirmed) return work.write('permitted');
    signal.throwIfAborted();
    throw new Error('declined');
  } catch (error) {
    throw work.fail(error);
  }
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
const aborted = (signal) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** @type {Record<string, (work: Work, context: Context, params: Params) => unknown>} */
const SHAPES = {
  async plain(work) {
    work.begin();
    return work.finish();
  },
  /** The app checks its params for a while: see {@link withChecks}. */
  async checked(work) {
    work.begin();
    return work.finish();
  },
  async reads(work, { input }) {
    work.begin();
    try {
      for await (const item of input ?? []) {
        void item;
        if (!(await work.go())) break;
      }
    } catch (error) {
      throw work.fail(error);
    }
    return work.finish();
  },
  async asks(work, context) {
    work.begin();
    await ask(work, context);
    return work.finish();
  },
  passes_on(work, { call }, { inner, ...params }) {
    work.write('passes');
    return call(inner, params);
  },
  /** It ends as soon as it is told to stop, whatever becomes of what it has called. */
  async leaves(work, { call, signal }, { inner, ...params }) {
    work.write('passes');
    const calling = call(inner, params);
    const response = await Promise.race([calling, aborted(signal)]);
    if (response) return response;
    work.write('leaves');
    throw new DOMException('it left', 'AbortError');
  },
  ...SOURCES,
};

/** What each shape takes of the way to its app, beyond a call. @type {Record<string, string>} */
const NEEDS = {
  checked: 'checks',
  reads: 'input',
  asks: 'questions',
  passes_on: 'inner calls',
  leaves: 'inner calls',
};

/**
 * Whether it calls another.
 * @param {string} shape
 */
export const callsInner = (shape) => NEEDS[shape] === 'inner calls';

/**
 * Whether it streams.
 * @param {string} shape
 */
export const streams = (shape) => shape in SOURCES;

/**
 * The shapes of handlers, without those that need what is lacking.
 * @param {readonly string[]} [lacking]
 */
export const shapesWithout = (lacking = []) =>
  Object.keys(SHAPES).filter(
    (shape) => !lacking.includes(NEEDS[shape] ?? (streams(shape) ? 'streams' : '')),
  );

export const MANNER_NAMES = Object.keys(MANNERS);
export const TEMPER_NAMES = Object.keys(TEMPERS);

/**
 * @param {Place} place
 * @param {readonly string[]} [lacking] what the way lacks
 * @returns {Record<string, (params: Params, context: Context) => any>}
 */
export const handlersOf = (place, lacking) =>
  Object.fromEntries(shapesWithout(lacking).map((shape) => [shape, handlerOf(shape, place)]));

/**
 * @param {string} shape
 * @param {Place} place
 */
function handlerOf(shape, place) {
  const run = (/** @type {Params} */ params, /** @type {Context} */ context) =>
    SHAPES[shape](new Work(place, params, context), context, params);
  if (shape !== 'async_generator') return run;
  // Until its first chunk is wanted, no line of it runs.
  return async function* (/** @type {Params} */ params, /** @type {Context} */ context) {
    return yield* /** @type {any} */ (run(params, context));
  };
}

/**
 * The same as capabilities. Params are checked asynchronously: what stops the call meanwhile comes
 * before its handler.
 * @param {ReturnType<typeof handlersOf>} handlers
 */
export const withChecks = ({ checked, ...handlers }) => ({
  ...handlers,
  ...(checked && { checked: { handler: checked, inputSchema: { '~standard': CHECK } } }),
});

const CHECK = {
  version: 1,
  vendor: 'effects',
  jsonSchema: { input: () => ({ type: 'object' }) },
  async validate(/** @type {Params} */ value) {
    const below = random(value.seed + 1);
    await turns(below(12));
    return below(8) ? { value } : { issues: [{ message: 'refused' }] };
  },
};
