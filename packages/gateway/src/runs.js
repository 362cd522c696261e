/**
 * Calls of capabilities on behalf of clients. A call may outlive the request that began it: then
 * its client requests it by the id of a task or a handle, or by a `requestState`. Each belongs to a
 * session.
 *
 * The core (`@abp-bridge/a2a/tasks`) decides the state of a call, how many there may be, when one
 * that is no longer requested is cancelled, and how long a result is kept. This file holds the
 * values: the app's answer, its progress, its open question.
 */
import { randomBytes } from 'node:crypto';
import { AbpError } from 'abp-bridge';
import { Tasks, ready } from '@abp-bridge/a2a/tasks';
import { hasStopped } from './app.js';
import { InvalidRequest } from './errors.js';
import { DECLINED, formOf, responseOf } from './questions.js';
import { undelivered } from './results.js';
import { deferred, unlessAborted } from './waiting.js';

/** Calls in progress, and results that are kept, of all clients. */
const MAX_RUNS = 1024;
/** Answers that may still be cancelled, of all clients. */
const MAX_ANSWERS = 256;
/** Ms that a question waits for its answer, and a handle for its next request. */
export const PATIENCE_WITH_CLIENTS = 10 * 60_000;
/** Ms that a result is kept, and the outcome of a call whose answer its client did not get. */
export const REMEMBERED = 60 * 60_000;

/**
 * @typedef {import('./questions.js').Form} Form
 * @typedef {object} Ended The end of a call.
 * @property {import('./app.js').Result} response of the app
 * @property {import('./results.js').ToolResult} result made from it
 * @typedef {object} Pending an open question of the app
 * @property {string} key
 * @property {Form} form
 * @property {(response: unknown) => void} settle
 * @property {Promise<unknown>} answered
 * @typedef {object} Answer An answer that its client may not read: a cancel may cross it, or the
 *   connection may break.
 * @property {string | number} requestId
 * @property {Run} run
 * @property {boolean} delivers whether the client learns only by it of the run, or of its result
 * @property {Run[]} told earlier calls that it reports
 * @property {number} [heardAt] when all of a result was sent, in ms of `performance.now()`
 */

/** An id that cannot be guessed, for a session or a run. */
export const unguessable = () => randomBytes(24).toString('base64url');

export class Run {
  id = unguessable();
  createdAt = new Date();
  /** The same in ms of `performance.now()`: dates jump when the clock is set. */
  began = performance.now();
  /** When its state last changed. */
  updatedAt = this.createdAt;
  /** Set at its end. @type {import('./results.js').ToolResult | undefined} */
  result;
  /** The app's latest report. @type {import('./progress.js').Info | undefined} */
  progress;
  /** The app's open question. @type {Pending | undefined} */
  question;
  /** True if its client was sent its id. */
  isNamed = false;
  /**
   * The state that its client must send back, and for which request.
   * @type {{ state: string, binding: string } | undefined}
   */
  round;
  /**
   * The note in its answer on an earlier equal call.
   * @type {ReturnType<typeof import('./earlier.js').repeatOf> | undefined}
   */
  repeats;
  /** When it was asked to stop, or its answer was lost. @type {Date | undefined} */
  leftAt;
  /**
   * Outcome of its work, if learned after its result.
   * @type {import('./outcomes.js').Became | undefined}
   */
  became;
  /** The memory of its app that knows its key. @type {string | undefined} */
  memory;
  /**
   * Called with progress while a request waits for this.
   * @type {(info: import('./progress.js').Info) => void}
   */
  onProgress = () => {};
  /** Settles when it has ended; never rejects. @type {Promise<void>} */
  ended;
  #controller = new AbortController();
  /** The reason to stop. @type {string | undefined} */
  reason;
  /** Resolves with the next change of state. @type {ReturnType<typeof deferred<undefined>>} */
  #wake = deferred();
  /** Questions are asked one after the other. @type {Promise<unknown>} */
  #asking = Promise.resolve();
  #questions = 0;
  /** Number of requests that wait for it. */
  #waiting = 0;

  /**
   * @param {Runs} runs
   * @param {object} options
   * @param {string} options.tool
   * @param {string} [options.owner] the session of its client. Without it, the run belongs to any
   *   client that knows its id
   * @param {import('./earlier.js').Identity} options.identity identifies the client and the call
   * @param {string | number} [options.requestId] of the request
   * @param {boolean} [options.promisesData] whether the tool has an output schema
   * @param {boolean} options.canAsk whether its client can be asked
   * @param {(options: import('./app.js').CallOptions) => Promise<Ended>} options.execute
   */
  constructor(runs, { tool, owner, identity, requestId, promisesData, canAsk, execute }) {
    this.tool = tool;
    this.owner = owner;
    this.identity = identity;
    this.requestId = requestId;
    this.promisesData = promisesData;
    const task = runs.tasks.begin(this.id, this);
    if (!task) throw new InvalidRequest('Too many calls are in flight');
    this.task = task;
    const { signal } = this.#controller;
    const report = (/** @type {import('./progress.js').Info} */ info) => {
      this.progress = info;
      this.onProgress(info);
    };
    let reports = false;
    this.ended = execute({
      signal,
      // Without a session each call has another owner.
      owner: owner ?? this.id,
      onProgress: (info) => {
        reports = true;
        report(info);
      },
      // An app's chunks are progress, too, unless it reports its own.
      onChunk: (text, count) => reports || report({ progress: count, status: text }),
      ...(canAsk && { ask: (question, over) => this.#ask(question, over) }),
    })
      // A result that cannot be delivered fails this call only.
      .catch((error) => {
        const result = undelivered(error);
        return /** @type {Ended} */ ({ response: { success: true }, result });
      })
      .then(({ response, result }) => {
        this.result = result;
        this.memory = response.memory;
        const stopped = signal.aborted && hasStopped(response);
        task.says(stopped ? 'canceled' : result.isError ? 'failed' : 'completed');
        task.returns();
        task.learn(response.success ? 'finished' : response.metadata?.outcome);
        void response.settled?.then((became) => {
          this.became = became;
          task.learn(became.outcome);
        });
        this.onState();
      });
  }

  /** The state, as MCP names it. */
  get state() {
    const { state } = this.task;
    if (state === 'canceled') return 'cancelled';
    // The result reports the failure.
    if (state === 'failed') return 'completed';
    return state === 'input-required' ? 'input_required' : state;
  }

  /** Called by the core when its state has changed. */
  onState() {
    this.updatedAt = new Date();
    this.#wake.resolve(undefined);
    this.#wake = deferred();
  }

  /** Called by the core when it must stop. The app decides its end. */
  onAbort() {
    this.reason ??= this.question
      ? 'the question was not answered in time'
      : 'the client stopped asking for the result';
    this.leftAt ??= new Date();
    this.#controller.abort(this.reason);
    this.question?.settle(DECLINED);
  }

  /**
   * Cancels it.
   * @param {string} reason
   */
  abort(reason) {
    this.reason ??= reason;
    // An app that waits for an answer could not report how it stops.
    this.question?.settle(DECLINED);
    this.task.cancel();
  }

  /**
   * Call this at each request for it: while no request waits, it must be requested again in time.
   */
  touch() {
    this.task.lease(this.#waiting ? 0 : PATIENCE_WITH_CLIENTS);
  }

  /** @param {1 | -1} more 1 when a request begins to wait for it, -1 when it stops */
  wait(more) {
    this.#waiting += more;
    this.touch();
  }

  /**
   * Resolves with the next event for a waiting request.
   * @param {AbortSignal} signal of the request that waits
   * @param {number} ms to wait; Infinity for no limit
   * @returns {Promise<'ended' | 'asked' | 'late' | 'aborted'>}
   */
  async next(signal, ms) {
    if (signal.aborted) return 'aborted';
    if (this.result) return 'ended';
    if (this.question) return 'asked';
    /** @type {ReturnType<typeof deferred<'late'>>} */
    const { promise, resolve } = deferred();
    const timer = ms === Infinity ? undefined : setTimeout(resolve, Math.max(0, ms), 'late');
    const event = await unlessAborted(Promise.race([this.#wake.promise, promise]), signal).catch(
      () => /** @type {const} */ ('aborted'),
    );
    clearTimeout(timer);
    return event ?? this.next(signal, ms);
  }

  /**
   * @param {import('./app.js').Question} question
   * @param {AbortSignal} over
   */
  #ask(question, over) {
    const form = formOf(question);
    if (!form) throw new AbpError('NOT_SUPPORTED', `${question.method} cannot be shown as a form`);
    return (this.#asking = this.#asking.then(() => this.#put(form, over)));
  }

  /**
   * @param {Form} form
   * @param {AbortSignal} over
   */
  #put(form, over) {
    if (this.result || over.aborted || this.#controller.signal.aborted) return DECLINED;
    const { promise: answered, resolve } = deferred();
    const settle = (/** @type {unknown} */ response) => {
      if (this.question !== pending) return;
      // At once: the client looks next whether there is a question.
      this.question = undefined;
      this.task.says('working');
      resolve(response);
    };
    const pending = { key: `question-${++this.#questions}`, form, settle, answered };
    this.question = pending;
    over.addEventListener('abort', () => settle(DECLINED), { once: true });
    this.task.says('input-required');
    return answered;
  }

  /** The open question, in the form of MCP's newer version. */
  get inputRequests() {
    const { key, form } = this.question ?? {};
    return key && { [key]: { method: 'elicitation/create', params: form?.params } };
  }

  /**
   * Answers the open question.
   * @param {unknown} result of `elicitation/create`
   */
  answer(result) {
    const { question } = this;
    question?.settle(responseOf(question.form, result));
  }

  /**
   * The same, if its answer is among these.
   * @param {Record<string, unknown>} [answers] by key
   */
  answerOneOf(answers = {}) {
    const key = this.question?.key;
    if (key && Object.hasOwn(answers, key)) this.answer(answers[key]);
  }

  /**
   * Waits until its client comes back with an answer, once. An earlier state becomes invalid.
   * @param {string} binding that the client must repeat
   * @returns {string} the state that it must send back
   */
  suspend(binding) {
    const state = `${this.id}.${unguessable()}`;
    this.round = { state, binding };
    this.touch();
    return state;
  }
}

export class Runs {
  /** @type {Tasks<Run>} */
  tasks = new Tasks({
    maxTasks: MAX_RUNS,
    remembered: MAX_RUNS,
    rememberFor: REMEMBERED,
  });
  /** The latest answers. @type {Set<Answer>} */
  #answers = new Set();

  /**
   * The runs that a session may request. Without sessions clients cannot be told apart, so none are
   * listed.
   * @param {string | undefined} owner
   */
  named(owner) {
    return this.tasks.all.filter((run) => owner && run.owner === owner && run.isNamed);
  }

  /**
   * The calls of a client.
   * @param {import('./earlier.js').Identity['reader']} reader
   */
  of(reader) {
    return this.tasks.all.filter(({ identity }) => reader && identity.reader === reader);
  }

  /**
   * The latest equal call with an outcome to mention.
   * @param {import('./earlier.js').Identity} identity
   */
  sameAs({ reader, work }) {
    const isSame = (/** @type {Run} */ { identity }) =>
      work !== undefined && identity.work === work && identity.reader === reader;
    return this.tasks.all.findLast((run) => isSame(run) && run.task.doubt);
  }

  /**
   * @param {unknown} id
   * @param {string | undefined} owner that requests it
   * @returns {Run}
   * @throws {InvalidRequest} if this owner has none of that id
   */
  find(id, owner) {
    const run = this.tasks.find(id);
    if (run?.owner !== owner || !run)
      throw new InvalidRequest('This call is unknown, or its result is no longer kept');
    this.#knows(run);
    return run;
  }

  /**
   * The run for which a client has come back.
   * @param {string} state
   * @param {string} binding
   * @param {string | undefined} owner that comes back
   * @param {Record<string, unknown>} [answers] by key; a missing one is requested again
   * @returns {Run}
   * @throws {InvalidRequest} when this owner was not given that state, or it was used, or for
   *   another request
   */
  resume(state, binding, owner, answers) {
    const run = this.tasks.find(state.split('.', 1)[0]);
    const { round } = run ?? {};
    if (!run || run.owner !== owner || round?.state !== state || round.binding !== binding)
      throw new InvalidRequest(
        'requestState is unknown, was used, has expired, or belongs to another request',
      );
    run.round = undefined;
    this.#knows(run);
    run.answerOneOf(answers);
    return run;
  }

  /**
   * A client that requests a run has read the answer that named it.
   * @param {Run} run
   */
  #knows(run) {
    run.touch();
    for (const answer of this.#answers)
      if (answer.run === run && answer.heardAt === undefined) answer.delivers = false;
  }

  /**
   * Forgets a run that cannot be requested any more, once it has ended.
   * @param {Run} run
   */
  async release(run) {
    await run.ended;
    this.tasks.forget(run.id);
  }

  /**
   * Records that a request is answered.
   * @param {Answer} answer
   */
  answered(answer) {
    this.#answers.add(answer);
    const [oldest] = this.#answers;
    if (this.#answers.size > MAX_ANSWERS) this.#forget(oldest);
  }

  /**
   * Records that all of an answer with the run's result was sent.
   * @param {Answer} answer
   */
  heard(answer) {
    if (!this.#answers.has(answer)) return;
    const { task, identity } = answer.run;
    if (task.hear()) answer.heardAt = performance.now();
    if (identity.work === undefined) this.#forget(answer);
  }

  /**
   * @param {Answer} answer that cannot be lost any more
   * @param {boolean} [isNamed] whether the run can still be requested
   */
  #forget(answer, isNamed = answer.run.isNamed) {
    this.#answers.delete(answer);
    const isOver = answer.heardAt !== undefined || answer.run.identity.work === undefined;
    if (isOver && !isNamed) this.tasks.forget(answer.run.id);
  }

  /**
   * When a client calls again, it has most likely read its earlier answers. A cancel may still be
   * on its way: the outcomes of those calls are kept, their results are not.
   * @param {Run} run the new call
   */
  lightenBefore({ began, identity: { reader } }) {
    for (const { heardAt = Infinity, run } of this.#answers)
      if (heardAt < began && run.identity.reader === reader && !run.isNamed && !run.result?.isError)
        run.result = { content: [] };
  }

  /**
   * The client does not read an answer, so another one will report its content.
   * @param {Answer} answer
   * @param {string} [reason] the client's, if it cancelled
   */
  unread(answer, reason) {
    if (!this.#answers.delete(answer)) return;
    const { run, delivers, told } = answer;
    for (const each of told) this.left(each);
    if (!delivers) return;
    if (reason !== undefined) run.abort(reason);
    this.left(run);
  }

  /**
   * Handles a cancel of a request that was answered.
   * @param {string | undefined} owner
   * @param {unknown} requestId
   * @param {string} reason
   */
  cancelled(owner, requestId, reason) {
    for (const answer of this.#answers)
      if (owner && answer.run.owner === owner && answer.requestId === requestId)
        this.unread(answer, reason);
  }

  /**
   * Its client does not get the answer, so another one will report the outcome.
   * @param {Run} run
   */
  left(run) {
    run.leftAt ??= new Date();
    run.task.leave();
    if (run.identity.work === undefined && !run.isNamed) void this.release(run);
  }

  /**
   * Cancels the runs that cannot be requested any more.
   * @param {string} owner a session that has ended
   */
  leave(owner) {
    for (const answer of this.#answers) if (answer.run.owner === owner) this.#forget(answer, false);
    for (const run of this.tasks.all) {
      if (run.owner !== owner) continue;
      run.abort('the client disconnected');
      if (run.identity.reader === owner) void this.release(run);
      else this.left(run);
    }
  }
}

await ready();
