/**
 * A pool of workers for what computes long. The app's page, which hears its agents, hands tasks to workers;
 * a worker that does not stop when its task is cancelled is ended, and a fresh one takes its place.
 *
 * Nothing here decides what becomes of a call: a task is its handler, which returns, throws or is stopped.
 *
 * What they say to each other: the pool `task`, then `abort` at most once; a worker `ready` when it can be
 * given tasks, then for each `progress`, `word` (of a token to be set with the task's own) and, at its end,
 * `done`, `failed` or `cancelled`. A worker has one task at a time, so none is named.
 */
import { AbpError, callOut, reasonText, saysCancelled, toErrorObject } from './errors.js';
import { own } from './messages.js';
import { abortError, listen, unlisten } from './signals.js';
import { Token } from './token.js';
import { transfer, transferOf } from './transfer.js';
import { hear } from './transports/port.js';
import { end, ownerPort } from './transports/worker.js';

// A worker's script needs no more than this file.
export { AbpError, Token, transfer };

/**
 * @typedef {object} PoolOptions
 * @property {number} [size] workers at most, each with one task at a time (as many as there are processors)
 * @property {number} [grace] ms that a cancelled task has to stop by itself before its worker is ended. Less
 *   than the app's own `limits.grace`, or calls settle before their work has stopped (1000)
 * @property {number} [timeout] ms that a worker has to start (10000)
 * @property {number} [maxWaiting] tasks that may wait for a worker; one more fails with RATE_LIMITED (1024)
 */

/**
 * What a task is given of its call. A handler's context has it all; a signal alone will do.
 * @typedef {object} TaskOptions
 * @property {AbortSignal} [signal]
 * @property {Token} [token]
 * @property {(info: any) => void} [progress]
 */

/**
 * @typedef {object} TaskContext What a worker's handler gets besides the params. It may be destructured.
 * @property {Token} token says that the task is cancelled, also to code that never yields where memory can
 *   be shared (in Node, and in pages that are cross-origin isolated)
 * @property {AbortSignal} signal says it to code that yields
 * @property {(info: { progress: number, total?: number, stage?: string, status?: string, estimatedRemaining?: number }) => void} progress
 */

/**
 * Makes a pool. Workers are started when there is something for them to do.
 * @param {() => import('./client.js').AnyWorker} start makes a worker, whose script calls {@link serve}
 * @param {PoolOptions} [options]
 */
export function pool(start, options) {
  return new Pool(start, options);
}

/** @returns {number} how many there are; Node has no `navigator` before 21 */
const processors = () =>
  globalThis.navigator?.hardwareConcurrency ??
  /** @type {any} */ (globalThis).process?.getBuiltinModule('node:os').availableParallelism() ??
  4;

/** @param {number} ms Infinity is never @param {() => void} act */
function after(ms, act) {
  // What is longer than a timer can be would fire at once.
  const timer = /** @type {any} */ (setTimeout(act, Math.min(ms, 2 ** 31 - 1)));
  // Where it matters, in Node, the worker that it is about keeps the process alive.
  timer.unref?.();
  return timer;
}

/** What a pool was asked to do. It is its own abort listener. */
class Task {
  /** Who works on it, once it is no longer waiting. @type {PoolWorker | undefined} */
  worker;
  #resolve;
  #reject;

  /**
   * @param {Pool} pool
   * @param {string} name
   * @param {any} params
   * @param {TaskOptions} options
   * @param {(data: any) => void} resolve
   * @param {(error: any) => void} reject
   */
  constructor(pool, name, params, { signal, token = new Token(), progress }, resolve, reject) {
    this.pool = pool;
    this.name = name;
    this.params = params;
    this.signal = signal;
    this.token = token;
    this.progress = progress;
    this.#resolve = resolve;
    this.#reject = reject;
    listen(signal, this);
  }

  handleEvent() {
    this.token.cancel();
    if (this.worker) this.worker.abort(reasonText(this.signal?.reason));
    else this.pool.forget(this);
  }

  /** @param {any} data */
  succeed(data) {
    unlisten(this.signal, this);
    this.#resolve(data);
  }

  /** @param {any} error */
  fail(error) {
    unlisten(this.signal, this);
    this.#reject(this.signal?.aborted ? this.signal.reason : error);
  }
}

/** A worker of a pool. */
class PoolWorker {
  /** Whether it can be given tasks. */
  ready = false;
  /** @type {Task | undefined} */
  task;
  #pool;
  #worker;
  #stop;
  #timer;

  /**
   * @param {Pool} pool
   * @param {any} worker
   */
  constructor(pool, worker) {
    this.#pool = pool;
    this.#worker = worker;
    const listener = {
      onMessage: (/** @type {any} */ message) => this.#heard(message),
      onClose: (/** @type {any} */ error) =>
        this.#lost(error?.message ?? 'its script could not be loaded'),
    };
    this.#stop = hear(worker, listener, worker);
    this.#timer = after(pool.options.timeout, () => this.#lost('it did not call serve in time'));
  }

  /** @param {Task} task */
  take(task) {
    const { name, params, token } = task;
    this.#worker.ref?.();
    try {
      this.#post({ pool: 'task', name, params, word: token.word }, transferOf(params));
      this.task = task;
      task.worker = this;
    } catch (error) {
      const why = `The parameters cannot be sent to a worker: ${toErrorObject(error).message}`;
      task.fail(new AbpError('INVALID_PARAMS', why));
    }
  }

  /** @param {string | undefined} reason */
  abort(reason) {
    this.#post({ pool: 'abort', reason });
    this.#timer = after(this.#pool.options.grace, () => {
      // This thread may have been the one that was busy: what it has not yet heard comes first.
      this.#timer = after(0, () => this.#pool.replace(this));
    });
  }

  /** Resolves when it has ended, as far as that is told: a page's worker may be busy for a while yet. */
  end() {
    clearTimeout(this.#timer);
    this.#stop();
    return end(this.#worker);
  }

  /**
   * @param {any} message
   * @param {Transferable[]} [transferables]
   */
  #post(message, transferables = []) {
    this.#worker.postMessage(message, transferables);
  }

  /** @param {any} message */
  #heard(message) {
    const kind = own(message, 'pool');
    if (kind === 'ready') {
      this.ready = true;
      return this.#free();
    }
    const { task } = this;
    // Whatever else a worker tells its page is not for us.
    if (!task) return;
    switch (kind) {
      case 'progress':
        return callOut(task.progress, message.info);
      case 'word':
        return task.token.add(message.word);
      case 'done':
        task.succeed(message.moved ? transfer(message.data, message.moved) : message.data);
        return this.#free();
      case 'cancelled':
        task.fail(abortError(message.reason));
        return this.#free();
      case 'failed':
        task.fail(AbpError.from(message.error));
        return this.#free();
    }
  }

  #free() {
    clearTimeout(this.#timer);
    this.task = undefined;
    // An idle worker must not keep a Node process alive.
    this.#worker.unref?.();
    this.#pool.next();
  }

  /** @param {string} why */
  #lost(why) {
    void this.end();
    this.#pool.lost(this, why);
  }
}

export class Pool {
  /** @type {Set<PoolWorker>} */
  #workers = new Set();
  /** @type {Set<Task>} */
  #waiting = new Set();
  #start;
  #closed = false;

  /**
   * Use {@link pool}.
   * @param {() => any} start
   * @param {PoolOptions} [options]
   */
  constructor(start, options = {}) {
    const { size = processors(), grace = 1000, timeout = 10_000, maxWaiting = 1024 } = options;
    if (!(size >= 1)) throw new AbpError('INVALID_PARAMS', 'size must be 1 or more');
    this.#start = start;
    this.options = { size, grace, timeout, maxWaiting };
  }

  /**
   * Makes a handler for `expose` that runs in the pool. It may also be called by hand. `BinaryData` in the
   * params is moved to the worker, and its results are moved here, not copied.
   * @param {string} name which of the handlers that the workers serve
   * @returns {(params?: any, options?: TaskOptions) => Promise<any>}
   */
  run(name) {
    return (params, options = {}) =>
      new Promise((resolve, reject) => {
        const task = new Task(this, name, params, options, resolve, reject);
        if (this.#closed) task.fail(new AbpError('CAPABILITY_UNAVAILABLE', 'The pool is closed'));
        else if (task.signal?.aborted) task.fail(undefined);
        else this.#admit(task);
      });
  }

  /** @param {Task} task */
  #admit(task) {
    this.#waiting.add(task);
    this.next();
    if (this.#waiting.size > this.options.maxWaiting && this.#waiting.delete(task)) {
      const busy = 'Too much is waiting for a worker: try again when some of it is done';
      task.fail(new AbpError('RATE_LIMITED', busy, { retryable: true, retryAfter: 1000 }));
    }
  }

  /** What there is, and what it does; for people who debug. */
  get counters() {
    return {
      workers: this.#workers.size,
      running: [...this.#workers].filter(({ task }) => task).length,
      waiting: this.#waiting.size,
    };
  }

  /**
   * Ends all workers. What runs or waits is cancelled, and nothing more is taken.
   * @returns {Promise<void>} resolves when they have ended, as far as that is told
   */
  async close() {
    this.#closed = true;
    const workers = [...this.#workers];
    const tasks = [...workers.flatMap(({ task }) => task ?? []), ...this.#waiting];
    this.#workers.clear();
    this.#waiting.clear();
    const ended = Promise.all(workers.map((worker) => worker.end()));
    for (const task of tasks) task.fail(abortError('The pool was closed'));
    await ended;
  }

  // --- What tasks and workers tell it --------------------------------------------------------------

  /** Gives what waits to workers that are free, and starts workers for the rest. */
  next() {
    let starting = 0;
    for (const worker of this.#workers) {
      if (!worker.ready) starting++;
      else {
        for (const task of this.#waiting) {
          if (worker.task) break;
          this.#waiting.delete(task);
          worker.take(task);
        }
      }
    }
    while (this.#waiting.size > starting && this.#workers.size < this.options.size) {
      if (!this.#launch()) break;
      starting++;
    }
  }

  /** A task that waits is cancelled. @param {Task} task */
  forget(task) {
    this.#waiting.delete(task);
    task.fail(undefined);
  }

  /**
   * A worker did not stop when it was told.
   * @param {PoolWorker} worker
   */
  async replace(worker) {
    const { task } = worker;
    this.#workers.delete(worker);
    const ended = worker.end();
    this.#launch();
    await ended;
    task?.fail(undefined);
  }

  /**
   * A worker has ended, or could not start. Only what comes next starts another: one that cannot start is not
   * tried for ever.
   * @param {PoolWorker} worker
   * @param {string} why
   */
  lost(worker, why) {
    this.#workers.delete(worker);
    if (!worker.ready) return this.#unable(why);
    worker.task?.fail(new AbpError('OPERATION_FAILED', `The worker ended: ${why}`));
    return this.next();
  }

  /** @returns {boolean} whether a worker could be made: where a policy forbids it, its constructor throws */
  #launch() {
    try {
      this.#workers.add(new PoolWorker(this, this.#start()));
      return true;
    } catch (error) {
      this.#unable(toErrorObject(error).message);
      return false;
    }
  }

  /** No worker will come of this start. Where there are others, they see to what waits. @param {string} why */
  #unable(why) {
    if (this.#workers.size) return;
    const tasks = [...this.#waiting];
    this.#waiting.clear();
    const error = `No worker could be started: ${why}`;
    for (const task of tasks) {
      task.fail(new AbpError('CAPABILITY_UNAVAILABLE', error, { retryable: true }));
    }
  }
}

/** What {@link serve} has been called for. @type {WeakSet<object>} */
const served = new WeakSet();

/**
 * Serves a pool, in a worker. It can be called once.
 * @param {Record<string, (params: any, context: TaskContext) => any>} handlers by name. What one returns
 *   is the result; buffers of `BinaryData` and what `transfer` marks are moved
 * @param {any} [port] of the pool's page (this worker's owner)
 */
export function serve(handlers, port = ownerPort()) {
  if (!port) throw new AbpError('NOT_SUPPORTED', 'serve needs to run in a worker');
  // Each would answer every task, and the later answer would be taken for that of the next task.
  if (served.has(port)) {
    const already = 'This worker serves a pool already: give serve all handlers at once';
    throw new AbpError('ALREADY_INITIALIZED', already);
  }
  served.add(port);
  /** Stops the task that is under way. @type {undefined | ((reason: string | undefined) => void)} */
  let abort;
  const post = (/** @type {any} */ message, /** @type {Transferable[]} */ transferables = []) =>
    port.postMessage(message, transferables);

  const run = async (/** @type {any} */ { name, params, word }) => {
    const controller = new AbortController();
    const stop = (/** @type {string | undefined} */ reason) => {
      token.cancel();
      controller.abort(abortError(reason));
    };
    abort = stop;
    // What a handler left behind may still speak when the next task is under way.
    const say = (/** @type {any} */ message) => abort === stop && post(message);
    const token = new Token(word, (bound) => say({ pool: 'word', word: bound }));
    /** @type {any} */
    let outcome;
    try {
      const handler = own(handlers, name);
      if (!handler) throw new AbpError('INTERNAL_ERROR', `The worker does not serve ${name}`);
      const data = await handler(params, {
        token,
        signal: controller.signal,
        progress: (/** @type {any} */ info) => void say({ pool: 'progress', info }),
      });
      outcome = { pool: 'done', data, moved: transferOf(data) };
    } catch (error) {
      outcome = saysCancelled(error)
        ? { pool: 'cancelled', reason: reasonText(error) }
        : { pool: 'failed', error: toErrorObject(error) };
    }
    abort = undefined;
    try {
      post(outcome, outcome.moved);
    } catch (error) {
      const why = `The result cannot be sent: ${toErrorObject(error).message}`;
      post({ pool: 'failed', error: toErrorObject(new AbpError('OPERATION_FAILED', why)) });
    }
  };

  port.addEventListener('message', (/** @type {MessageEvent} */ { data }) => {
    const kind = own(data, 'pool');
    if (kind === 'task') void run(data);
    else if (kind === 'abort') abort?.(data.reason);
  });
  port.start?.();
  post({ pool: 'ready' });
}
