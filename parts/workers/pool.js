/**
 * A pool of workers for long computations. The app's page stays responsive to its agents and passes
 * tasks to workers. A worker that does not stop when its task is cancelled is terminated and
 * replaced by a new one.
 *
 * `Pool` has the waiting tasks and the workers; a `PoolWorker` has one task at a time, so messages
 * need not name it; `serve` is the other end, in the worker. The core decides the outcome of a
 * call: a task is its handler, which returns, throws or is stopped. If the task is the whole
 * handler, the call begins, for the core, when a worker gets the task. A cancelled task has its
 * part of the call's grace period (js/page/grace.js), so its worker has ended before the core stops
 * waiting.
 *
 * The pool sends `task`, then `abort` at most once. A worker sends `ready` when it can take tasks.
 * For a task it sends `progress`, `word` (a further word of a token), `unshared` (the task uses a
 * token that no other thread can set), and finally `done`, `cancelled` or `failed` (with
 * `unstarted` if none of its handler's code ran). If the task streams, the worker sends `stream`,
 * then a `chunk` for each `next` of the pool.
 *
 * A worker that ends during a task sends no answer. In all of these cases the task fails, and the
 * waiting tasks continue:
 *   - Its script cannot be loaded or run, or never calls `serve`: the waiting tasks fail, too,
 *     since the next worker would end in the same way.
 *   - It ends. Node has the event `exit`. In a page no event reports `terminate()`, or a worker
 *     ended by the browser. So a worker holds a Web Lock while it runs, and the pool waits for that
 *     lock; `close()` sends `closing`. Pages without https have no locks.
 *   - An uncaught error or rejection. A page's worker survives it, but the code that was to end the
 *     task may have thrown it. So, as in Node, the worker is ended, unless the task ends by itself
 *     at once. The worker itself reports a rejection (`uncaught`).
 *   - One of its messages, or the task, cannot be deserialised: `messageerror`, on either side.
 */
import {
  AbpError,
  invokeReportingErrors,
  reasonText,
  saysCancelled,
  toErrorObject,
} from '../../js/common/errors.js';
import { requireForm, requireOptions } from '../../js/common/check-options.js';
import { MAX_TIMER, getOwn } from '../../js/common/values.js';
import { LIMITS, abortError, offAbort, onAbort } from '../../js/common/signals.js';
import { whenAborted } from '../../js/common/waiting.js';
import { breatherOf } from '../../js/common/breathe.js';
import { latestOf } from '../../js/common/latest.js';
import { Token } from '../../js/common/token.js';
import { Inflow } from '../../js/common/inflow.js';
import { Iteration, chunkUnsent } from '../../js/common/iteration.js';
import { isStream, transfer, transferOf } from '../../js/common/transfer.js';
import { APP } from '../../js/driver/abp-boundary.js';
import { partOf } from '../../js/page/grace.js';
import { listenToPort } from '../../js/transports/port.js';
import { ownerPort } from '../../js/transports/owners.js';
import { end } from '../../js/transports/worker.js';
import { warn } from '../../js/common/development.js';

// So that a worker's script can import everything from this file.
export { AbpError, Token, transfer };

/**
 * @typedef {object} PoolOptions The options of a pool.
 * @property {number} [size] the largest number of workers, each with one task at a time (the number
 *   of processors)
 * @property {number} [grace] the longest time, in ms, that a cancelled task has to stop by itself
 *   before its worker is terminated; never more than its part of the call's `limits.grace`
 *   (Infinity)
 * @property {number} [timeout] ms that a worker has to start (10000)
 * @property {number} [maxWaiting] tasks that may wait for a worker; further ones fail with
 *   RATE_LIMITED (1024)
 */

/**
 * The options of a task. A handler's context has all of them; a signal alone is enough.
 * @typedef {object} TaskOptions
 * @property {AbortSignal} [signal] cancels the task
 * @property {Token} [token] the call's token, which the worker reads if memory can be shared
 * @property {(info: any) => void} [progress] called with each report of progress
 */

/**
 * @typedef {object} TaskContext The second argument of a handler in a worker. It may be
 *   destructured.
 * @property {Token} token shows whether the task is cancelled; if memory can be shared (in Node,
 *   and in cross-origin isolated pages), also to code that never yields
 * @property {AbortSignal} signal fires when the task is cancelled, for code that yields
 * @property {() => Promise<void> | undefined} breathe for a loop: `await breathe()` returns to the
 *   event loop every few ms, so that the cancel can arrive without shared memory, and throws once
 *   the task is cancelled
 * @property {(info: { progress: number, total?: number, stage?: string, status?: string,
 *   estimatedRemaining?: number }) => void} progress reports progress
 */

/**
 * Makes a pool. Workers are started on demand.
 * @param {() => import('../../js/agent/client.js').AnyWorker} start creates a worker whose
 *   script calls {@link serve}
 * @param {PoolOptions} [options]
 * @example
 * const workers = pool(() => new Worker('/worker.js', { type: 'module' }));
 * expose({ app, capabilities: { 'image.blur': workers.run('blur') } }, { origins });
 */
export const pool = (start, options) => new Pool(start, options);

/** @type {import('../../js/common/check-options.js').Kinds<PoolOptions>} */
const OPTIONS = {
  grace: 'a number',
  maxWaiting: 'a number',
  size: 'a number',
  timeout: 'a number',
};
/** @type {import('../../js/common/check-options.js').Kinds<TaskOptions>} */
const TASK_OPTIONS = { progress: 'a function', signal: 'an AbortSignal', token: 'an object' };

/**
 * How long to wait for a worker's last messages after a sign of its end, which may arrive first, in
 * ms.
 */
const LAST_WORDS = 100;

const realm = /** @type {any} */ (globalThis);
/**
 * The limits of the connections of handlers' signals.
 * @type {WeakMap<AbortSignal, { grace?: number } | undefined>}
 */
const limitsOf = (realm[LIMITS] ??= new WeakMap());

/** The number of processors; Node has no `navigator` before 21. */
const processors = () =>
  globalThis.navigator?.hardwareConcurrency ??
  /** @type {any} */ (globalThis).process?.getBuiltinModule('node:os').availableParallelism() ??
  4;

/**
 * Starts a timer.
 * @param {number} ms Infinity: never
 * @param {() => void} act called when the time is up
 */
function after(ms, act) {
  // A timer with a longer time would fire at once.
  const timer = /** @type {any} */ (setTimeout(act, Math.min(ms, MAX_TIMER)));
  // In Node the worker keeps the process alive; the timer need not.
  timer.unref?.();
  return timer;
}

/**
 * The call whose whole handler is a task.
 * @internal
 * @typedef {{ postpone(): void, beginWork(): boolean }} Call
 */

/**
 * A task of a pool, the listener of its signal and, if it streams, the iterator of its chunks: each
 * chunk is made on request.
 */
class Task extends Inflow {
  /** Its worker, once it no longer waits. @type {PoolWorker | undefined} */
  worker;
  /** True once its handler has succeeded. */
  isDone = false;
  #stopped = false;
  #tellEnded = () => {};
  /** The error of its handler. @type {unknown} */
  #thrown;
  /** Resolves when it has ended. @type {Promise<void>} */
  #ended = new Promise((resolve) => (this.#tellEnded = resolve));
  /** @type {(data: unknown) => void} */
  #resolve = () => {};
  /** @type {(error: unknown) => void} */
  #reject = () => {};
  /** Settles with the task's result; with the task itself, if it streams. */
  result = new Promise((...settle) => ([this.#resolve, this.#reject] = settle));

  /**
   * @param {Pool} pool
   * @param {string} name
   * @param {unknown} params
   * @param {TaskOptions} options
   * @param {Call} [call] the call whose whole handler it is
   */
  constructor(pool, name, params, { signal, token = new Token(), progress }, call) {
    super();
    this.pool = pool;
    this.name = name;
    this.params = params;
    this.signal = signal;
    this.token = token;
    this.progress = progress;
    this.call = call;
    onAbort(signal, this);
  }

  /** Like a generator, it reaches its own end before it takes `return`. */
  get [Symbol.toStringTag]() {
    return 'AsyncGenerator';
  }

  /** How long it has to stop by itself, in ms. */
  get grace() {
    const limits = this.signal && limitsOf.get(this.signal);
    return Math.min(this.pool.options.grace, partOf(APP, limits));
  }

  handleEvent() {
    if (this.worker) return this.stop(reasonText(this.signal?.reason));
    this.token.cancel();
    this.fail(undefined);
  }

  /**
   * Asks its worker to stop the task.
   * @param {string | undefined} reason
   */
  stop(reason) {
    if (this.#stopped || this.worker?.task !== this) return;
    this.#stopped = true;
    this.token.cancel();
    this.worker.abort(this, reason);
  }

  /** Begins the stream: from now on the task's end is the end of the stream. */
  begin() {
    this.#resolve(this);
  }

  /** @override */
  next() {
    if (this.worker?.task === this) this.worker.post({ pool: 'next' });
    return super.next();
  }

  /**
   * @override
   * @param {unknown} [value]
   */
  async return(value) {
    this.stop('The reader stopped reading the stream');
    await this.#ended;
    if (this.#thrown) throw this.#thrown;
    return super.return(value);
  }

  /** @param {unknown} data */
  succeed(data) {
    this.isDone = true;
    this.#resolve(data);
    this.#end(() => ({ done: true, value: data }));
  }

  /**
   * @param {unknown} error
   * @param {boolean} [isOwn] whether its handler threw the error
   */
  fail(error, isOwn) {
    if (isOwn) this.#thrown = error;
    const why = this.signal?.aborted && !isOwn ? this.signal.reason : error;
    this.#reject(why);
    this.#end(() => {
      throw why;
    });
  }

  /**
   * @param {() => IteratorResult<unknown>} last the last result of its stream
   */
  #end(last) {
    offAbort(this.signal, this);
    this.pool.waiting.delete(this);
    this.finish(last);
    this.#tellEnded();
  }
}

/**
 * The data in a worker's message. Moved objects are marked to be moved again.
 * @param {any} message
 */
const dataOf = ({ data, moved }) => (moved ? transfer(data, moved) : data);

/** A worker of a pool. */
class PoolWorker {
  /** True if it can take tasks. */
  ready = false;
  /** @type {Task | undefined} */
  task;
  #pool;
  #worker;
  #stop;
  #timer;
  #ended = new AbortController();

  /**
   * @param {Pool} pool
   * @param {any} worker
   */
  constructor(pool, worker) {
    this.#pool = pool;
    this.#worker = worker;
    const listener = {
      receive: (/** @type {unknown} */ message) => this.#heard(message),
      receiveUnreadable: (/** @type {Error} */ error) => this.#doubt(error.message),
      // In Node any value may have been thrown.
      lose: (/** @type {unknown} */ error) =>
        this.#lost(error ? toErrorObject(error).message : 'it threw something that says nothing'),
    };
    this.#stop = listenToPort(worker, listener, worker);
    const uncaught = (/** @type {any} */ { message }) => this.#doubt(message);
    worker.addEventListener?.('error', uncaught, { signal: this.#ended.signal });
    const late = () => this.#lost('it did not call serve within its timeout');
    this.#timer = after(pool.options.timeout, late);
  }

  /** @param {Task} task */
  take(task) {
    const { name, params, token, call } = task;
    if (call && !call.beginWork()) return task.fail(abortError('Its call has ended'));
    try {
      this.post({ pool: 'task', name, params, word: token.word }, transferOf(params));
      this.task = task;
      task.worker = this;
      this.#worker.ref?.();
    } catch (error) {
      const why = `The parameters cannot be sent to a worker: ${toErrorObject(error).message}`;
      call?.postpone();
      task.fail(new AbpError('INVALID_PARAMS', why));
    }
  }

  /**
   * @param {unknown} message
   * @param {Transferable[]} [transferables]
   */
  post(message, transferables = []) {
    this.#worker.postMessage(message, transferables);
  }

  /**
   * Asks it to stop its task, and terminates it if it does not.
   * @param {Task} task
   * @param {string | undefined} reason
   */
  abort(task, reason) {
    this.post({ pool: 'abort', reason });
    this.#timer = after(task.grace, () => {
      // This thread may have been busy: handle messages that have arrived first.
      this.#timer = after(0, () => void this.#pool.replace(this, task));
    });
  }

  /**
   * Terminates it. Resolves when it has ended, as far as that is known: a page's worker may be busy
   * a while longer.
   */
  async end() {
    clearTimeout(this.#timer);
    this.#ended.abort();
    this.#stop();
    await end(this.#worker);
  }

  /** @param {any} message */
  #heard(message) {
    const kind = getOwn(message, 'pool');
    if (kind === 'ready') {
      this.ready = true;
      // The worker holds the lock while it runs.
      if (message.lock)
        /** @type {any} */ (globalThis).navigator?.locks
          ?.request(message.lock, { signal: this.#ended.signal }, () => this.#ends('it has ended'))
          .catch(() => {}); // nothing waits for it any more
      return this.#free();
    }
    if (kind === 'closing') return this.#ends('it closed itself');
    const { task } = this;
    // Other messages of a worker belong to other code.
    if (!task) return;
    switch (kind) {
      case 'progress':
        return invokeReportingErrors(task.progress, message.info);
      case 'word':
        return task.token.add(message.word);
      case 'unshared':
        return this.#pool.warnOnce(
          'token',
          `the token of the task ${task.name} is not shared with its worker, so a loop sees no cancel in it unless it also awaits breathe(). The headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp share it (docs/workers.md#what-a-task-is-given)`,
        );
      case 'stream':
        return task.begin();
      case 'chunk':
        return task.push(dataOf(message), 0);
      case 'uncaught':
        return this.#doubt(message.why);
      case 'done':
        task.succeed(dataOf(message));
        break;
      case 'cancelled':
        task.fail(abortError(message.reason));
        break;
      case 'failed':
        if (message.unstarted) task.call?.postpone();
        task.fail(AbpError.from(message.error), true);
        break;
      default:
        return;
    }
    this.#free();
  }

  #free() {
    clearTimeout(this.#timer);
    this.task = undefined;
    // An idle worker should not keep a Node process alive.
    this.#worker.unref?.();
    this.#pool.next();
  }

  /**
   * It has ended, or will: it gets no more tasks. Its last messages may still arrive.
   * @param {string} why
   */
  #ends(why) {
    // If this one was not ready, the next one would end before it is ready, too.
    if (this.ready) this.#pool.leave(this);
    after(LAST_WORDS, () => this.#lost(why));
  }

  /**
   * Handles a failure that its task may wait for.
   * @param {string} why
   */
  #doubt(why) {
    const { task } = this;
    if (task) after(LAST_WORDS, () => this.task === task && this.#lost(why));
  }

  /** @param {string} why */
  #lost(why) {
    if (this.#ended.signal.aborted) return;
    void this.end();
    this.#pool.lost(this, why);
  }
}

/** Workers that run tasks. A worker is replaced when its cancelled task does not stop. */
export class Pool {
  /** @type {Set<PoolWorker>} */
  #workers = new Set();
  /**
   * Tasks without a worker.
   * @internal
   * @type {Set<Task>}
   */
  waiting = new Set();
  #start;
  #closed = false;
  /** The warnings that were given. */
  #told = new Set();

  /**
   * Use {@link pool}.
   * @param {() => unknown} start
   * @param {PoolOptions} [options]
   */
  constructor(start, options = {}) {
    requireOptions('pool', options, OPTIONS);
    const { size = processors(), grace = Infinity, timeout = 10_000, maxWaiting = 1024 } = options;
    if (!(size >= 1)) throw new AbpError('INVALID_PARAMS', 'size must be 1 or more');
    this.#start = start;
    this.options = { size, grace, timeout, maxWaiting };
  }

  /**
   * Makes a handler for `expose` that runs in the pool. It may also be called directly. Buffers of
   * `BinaryData` in the params are moved to the worker, and those in results are moved back, not
   * copied.
   * @param {string} name the name of a handler that the workers serve
   * @returns {(params?: any, options?: TaskOptions) => Promise<any>}
   */
  run(name) {
    /**
     * @param {unknown} params
     * @param {TaskOptions} [options]
     * @param {Call} [call]
     */
    const run = (params, options, call) => {
      const task = new Task(this, name, params, options ?? {}, call);
      if (this.#closed) task.fail(new AbpError('CAPABILITY_UNAVAILABLE', 'The pool is closed'));
      else if (task.signal?.aborted) task.fail(undefined);
      else {
        this.waiting.add(task);
        this.next();
        if (this.waiting.size > this.options.maxWaiting && this.waiting.has(task)) {
          const busy = 'Too many tasks wait for a worker: try again later';
          task.fail(new AbpError('RATE_LIMITED', busy, { retryable: true, retryAfter: 1000 }));
        }
      }
      return task.result;
    };
    /**
     * @param {any} [params]
     * @param {TaskOptions} [options]
     * @param {never[]} more no further arguments
     */
    const handler = async (params, options, ...more) => {
      requireForm('a task', 'run(name)(params, { signal })', [options, ...more]);
      requireOptions('a task', options, TASK_OPTIONS, true);
      if (options && !('signal' in options))
        this.warnOnce(
          'signal',
          "a pool task cannot be cancelled, because its options have no signal: pass the handler's context",
        );
      return run(params, options);
    };
    /**
     * Called instead of the handler when this is the handler of a capability.
     * @param {unknown} params
     * @param {any} context
     * @param {Call} [call] the call of this context
     */
    const later = (params, context, call = context) => {
      call.postpone();
      return run(params, context, call);
    };
    return Object.assign(handler, { later });
  }

  /** The numbers of workers and tasks, for debugging. */
  get counters() {
    return {
      workers: this.#workers.size,
      running: [...this.#workers].filter(({ task }) => task).length,
      waiting: this.waiting.size,
    };
  }

  /**
   * Terminates all workers. Tasks that run or wait are cancelled, and no more are accepted.
   * @returns {Promise<void>} resolves when the workers have ended, as far as that is known
   */
  async close() {
    this.#closed = true;
    const workers = [...this.#workers];
    const tasks = [...workers.flatMap(({ task }) => task ?? []), ...this.waiting];
    this.#workers.clear();
    const ended = Promise.all(workers.map((worker) => worker.end()));
    for (const task of tasks) task.fail(abortError('The pool was closed'));
    await ended;
  }

  // --- For tasks and workers ---------------------------------------------------------------------

  /** Passes waiting tasks to idle workers, and starts workers for the rest. */
  next() {
    let starting = 0;
    for (const worker of this.#workers) {
      if (!worker.ready) starting++;
      else {
        for (const task of this.waiting) {
          if (worker.task) break;
          this.waiting.delete(task);
          worker.take(task);
        }
      }
    }
    while (this.waiting.size > starting && this.#workers.size < this.options.size && this.#launch())
      starting++;
  }

  /**
   * Warns once about something.
   * @param {string} about
   * @param {string} text
   */
  warnOnce(about, text) {
    if (!this.#told.has(about)) warn(text);
    this.#told.add(about);
  }

  /**
   * Replaces a worker that did not stop in time.
   * @param {PoolWorker} worker
   * @param {Task} task
   */
  async replace(worker, task) {
    const isShared = !(task.token.word.buffer instanceof ArrayBuffer);
    const hint = `await breathe()${isShared ? ', or read token.cancelled' : ''}`;
    this.warnOnce(
      'end',
      `the task ${task.name} ran on for ${task.grace} ms after its cancel, so its worker was terminated: let its loop ${hint} (docs/workers.md#what-a-task-is-given)`,
    );
    this.#workers.delete(worker);
    const ended = worker.end();
    this.#launch();
    await ended;
    task.fail(undefined);
  }

  /**
   * Removes a worker that has ended, or could not start. Another is only started for the next task,
   * so that a worker that cannot start is not tried endlessly.
   * @param {PoolWorker} worker
   * @param {string} why
   */
  lost(worker, why) {
    this.#workers.delete(worker);
    if (!worker.ready) return this.#unable(why);
    const message = `The worker failed: ${why}`;
    const error = { code: 'OPERATION_FAILED', message, retryable: false };
    // Its work up to now is unknown.
    worker.task?.fail(AbpError.from(error, { metadata: { outcome: 'unknown' } }));
    return this.next();
  }

  /**
   * Removes a worker that takes no more tasks.
   * @param {PoolWorker} worker
   */
  leave(worker) {
    this.#workers.delete(worker);
    this.next();
  }

  /**
   * @returns {boolean} whether a worker could be created: the constructor throws if a policy
   *   forbids it
   */
  #launch() {
    try {
      this.#workers.add(new PoolWorker(this, this.#start()));
      return true;
    } catch (error) {
      this.#unable(toErrorObject(error).message);
      return false;
    }
  }

  /**
   * Handles a worker that could not be started. If there are others, they take the waiting tasks.
   * @param {string} why
   */
  #unable(why) {
    if (this.#workers.size) return;
    const error = `No worker could be started: ${why}`;
    for (const task of this.waiting)
      task.fail(new AbpError('CAPABILITY_UNAVAILABLE', error, { retryable: true }));
  }
}

// --- In a worker ---------------------------------------------------------------------------------

/** The most names of handlers in an error. */
const MAX_NAMES = 20;

/** The ports that were passed to {@link serve}. @type {WeakSet<object>} */
const served = new WeakSet();

/**
 * Serves a pool, in a worker. Call it once.
 * @param {Record<string, (params: any, context: TaskContext) => unknown>} handlers handlers by
 *   name. A handler returns the result; buffers of `BinaryData` and objects marked by `transfer`
 *   are moved
 * @param {any} [port] the port to the pool's page (default: the port to this worker's owner)
 * @example
 * serve({ blur: async (params, { breathe, progress }) => blurImage(params, breathe, progress) });
 */
export function serve(handlers, port = ownerPort()) {
  if (!port) throw new AbpError('NOT_SUPPORTED', 'serve must be called in a worker');
  // Both calls would answer every task, and the second answer would count as that of the next task.
  if (served.has(port)) {
    const already = 'serve was already called in this worker: pass it all handlers at once';
    throw new AbpError('ALREADY_INITIALIZED', already);
  }
  served.add(port);
  /**
   * The current task, and the requests for its chunks.
   * @type {{ controller: AbortController, token: Token, asked: Inflow } | undefined}
   */
  let current;
  /**
   * True once the pool knows that tokens are not shared. Sent once, since a loop may read `token`
   * each time.
   */
  let hasReportedUnshared = false;
  const post = (/** @type {any} */ message) => port.postMessage(message, message.moved ?? []);

  const run = async (/** @type {any} */ { name, params, word }) => {
    const controller = new AbortController();
    const { signal } = controller;
    // Code left behind by a handler may still report during the next task.
    const send = (/** @type {any} */ message) => void (current === task && post(message));
    const token = new Token(word, (bound) => send({ pool: 'word', word: bound }));
    const asked = new Inflow();
    const reports = latestOf((info) => {
      try {
        send({ pool: 'progress', info });
      } catch (error) {
        warn(`progress of the task ${name} cannot be sent: ${toErrorObject(error).message}`);
      }
    });
    const task = (current = { controller, token, asked });
    let outcome;
    let unstarted = true;
    try {
      const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined;
      if (!handler) throw unserved(name, Object.keys(handlers));
      unstarted = false;
      let data = await handler(params, {
        get token() {
          if (!hasReportedUnshared && token.word.buffer instanceof ArrayBuffer)
            send({ pool: 'unshared' });
          hasReportedUnshared = true;
          return token;
        },
        signal,
        breathe: breatherOf(name, () => {
          signal.throwIfAborted();
          token.throwIfCancelled();
        }),
        progress: (/** @type {unknown} */ info) => reports.add(info),
      });
      if (isStream(data)) data = await stream(data, signal, asked, post);
      outcome = { pool: 'done', data, moved: transferOf(data) };
    } catch (error) {
      outcome = saysCancelled(error)
        ? { pool: 'cancelled', reason: reasonText(error) }
        : { pool: 'failed', error: toErrorObject(error), unstarted };
    }
    reports.flush();
    current = undefined;
    try {
      post(outcome);
    } catch (error) {
      const why = `The result cannot be sent: ${toErrorObject(error).message}`;
      post({ pool: 'failed', error: toErrorObject(new AbpError('OPERATION_FAILED', why)) });
    }
  };

  port.addEventListener('message', (/** @type {MessageEvent} */ { data }) => {
    const kind = getOwn(data, 'pool');
    if (kind === 'task') void run(data);
    else if (kind === 'next') current?.asked.push(undefined, 0);
    else if (kind === 'abort' && current) {
      current.token.cancel();
      current.controller.abort(abortError(data.reason));
    }
  });
  // The message must be the task: there is one at a time, and all other messages are plain text.
  port.addEventListener('messageerror', () => {
    const why = 'The parameters could not be deserialized in the worker';
    const error = toErrorObject(new AbpError('INVALID_PARAMS', why));
    post({ pool: 'failed', error, unstarted: true });
  });
  port.start?.();
  if (port === globalThis) void reportReady(port, post, () => current !== undefined);
  else post({ pool: 'ready' });
}

/**
 * The error of a task without a handler.
 * @param {string} name
 * @param {string[]} names the names of the existing handlers
 */
function unserved(name, names) {
  const more = names.length > MAX_NAMES ? ', …' : '';
  const served = `${names.slice(0, MAX_NAMES).join(', ') || 'nothing'}${more}`;
  const why = `The worker does not serve ${name}: it serves ${served}`;
  return new AbpError('INTERNAL_ERROR', why);
}

/**
 * Sends the chunks of a handler, each on request.
 * @param {any} source
 * @param {AbortSignal} signal
 * @param {Inflow} asked has an entry for each requested chunk
 * @param {(message: object) => void} post
 * @returns {Promise<unknown>} the return value of the source
 */
async function stream(source, signal, asked, post) {
  const iteration = new Iteration(source);
  whenAborted(signal, () => {
    iteration.stop(signal.reason);
    void asked.return();
  });
  post({ pool: 'stream' });
  await asked.next();
  const { returned, value } = await iteration.run((data) => {
    try {
      post({ pool: 'chunk', data, moved: transferOf(data) });
    } catch (error) {
      throw chunkUnsent(error);
    }
    return asked.next();
  });
  // The stream was stopped, and its `finally` has run.
  if (!returned) throw signal.reason;
  return value;
}

/**
 * Reports that a page's worker is ready, and makes its end detectable.
 * @param {any} scope the worker's global scope
 * @param {(message: object) => void} post
 * @param {() => boolean} works whether it has a task
 */
async function reportReady(scope, post, works) {
  const { close } = scope;
  scope.close = () => {
    post({ pool: 'closing' });
    close.call(scope);
  };
  scope.addEventListener('unhandledrejection', (/** @type {any} */ event) => {
    const why = toErrorObject(event.reason).message;
    // Later listeners may still prevent the default.
    setTimeout(() => works() && !event.defaultPrevented && post({ pool: 'uncaught', why }));
  });
  const lock = await new Promise((held) => {
    const hold = async () => {
      const name = `abp-bridge/pool/${crypto.randomUUID()}`;
      await scope.navigator.locks.request(name, () => (held(name), new Promise(() => {})));
    };
    // Without https, or without access to storage, there are no locks.
    hold().catch(() => held(undefined));
  });
  post({ pool: 'ready', lock });
}
