/**
 * Calls of capabilities on behalf of clients. One may outlive the request that began it: then its
 * client asks for it by the id of a task or a handle, or by a `requestState`. Each belongs to a
 * session.
 *
 * What state a call is in, how many there may be, when one that nobody asks for is cancelled, and
 * how long a result is kept, the core decides (`@abp-bridge/a2a/tasks`). Here are the values: the
 * app's answer, its progress, its open question.
 */
import { randomBytes } from 'node:crypto';
import { AbpError } from 'abp-bridge';
import { Tasks, ready } from '@abp-bridge/a2a/tasks';
import { hasStopped } from './app.js';
import { InvalidRequest } from './errors.js';
import { DECLINED, formOf, responseOf } from './questions.js';
import { undelivered } from './results.js';
import { deferred, unlessAborted } from './waiting.js';

/** Calls under way, and results that are kept, of all clients. */
const MAX_RUNS = 1024;
/** Answers of which a cancel may still come, of all clients. */
const MAX_ANSWERS = 256;
/** How long a question waits for its answer, and a handle for somebody to ask for it, in ms. */
export const PATIENCE_WITH_CLIENTS = 10 * 60_000;
/** How long a result is kept, and what became of a call whose answer its client did not get. */
export const REMEMBERED = 60 * 60_000;

/**
 * @typedef {import('./questions.js').Form} Form
 * @typedef {object} Ended What became of a call.
 * @property {import('./app.js').Result} response of the app
 * @property {import('./results.js').ToolResult} result that is made of it
 * @typedef {object} Pending a question of the app's that is open
 * @property {string} key
 * @property {Form} form
 * @property {(response: unknown) => void} settle
 * @property {Promise<unknown>} answered
 * @typedef {object} Answer One that its client may not read: it cancels as the answer comes, or
 *   loses it.
 * @property {string | number} requestId
 * @property {Run} run
 * @property {boolean} delivers whether the client knows of the run, or its result, by it alone
 * @property {Run[]} told earlier calls that it tells of
 * @property {number} [heardAt] when all of a result was sent, in ms of `performance.now()`
 */

/** What nobody can guess: the id of a session, of a run. */
export const unguessable = () => randomBytes(24).toString('base64url');

export class Run {
  id = unguessable();
  createdAt = new Date();
  /** The same in ms of `performance.now()`: dates jump when somebody sets the clock. */
  began = performance.now();
  /** When its state last changed. */
  updatedAt = this.createdAt;
  /** Set when it has ended. @type {import('./results.js').ToolResult | undefined} */
  result;
  /** What the app reported last. @type {import('./progress.js').Info | undefined} */
  progress;
  /** What the app waits for somebody to answer. @type {Pending | undefined} */
  question;
  /** Whether its client was told its id. */
  isNamed = false;
  /**
   * What its client must bring back, and for which request.
   * @type {{ state: string, binding: string } | undefined}
   */
  round;
  /**
   * What its answer says of an earlier call that was the same.
   * @type {ReturnType<typeof import('./earlier.js').repeatOf> | undefined}
   */
  repeats;
  /** When it was to stop, or its answer was lost. @type {Date | undefined} */
  leftAt;
  /**
   * What was learnt of its work after its result.
   * @type {import('./outcomes.js').Became | undefined}
   */
  became;
  /** Which memory of its app knows its key. @type {string | undefined} */
  memory;
  /**
   * Hears of progress while a request waits for this.
   * @type {(info: import('./progress.js').Info) => void}
   */
  onProgress = () => {};
  /** Settles when it has ended; never rejects. @type {Promise<void>} */
  ended;
  #controller = new AbortController();
  /** Why it was to stop. @type {string | undefined} */
  reason;
  /** Resolves with the next change of state. @type {ReturnType<typeof deferred<undefined>>} */
  #wake = deferred();
  /** Questions are asked one after the other. @type {Promise<unknown>} */
  #asking = Promise.resolve();
  #questions = 0;
  /** Requests that wait for it. */
  #waiting = 0;

  /**
   * @param {Runs} runs
   * @param {object} options
   * @param {string} options.tool
   * @param {string} [options.owner] the session of its client. What has none belongs to whoever
   *   knows its id
   * @param {import('./earlier.js').Identity} options.identity who called, and what
   * @param {string | number} [options.requestId] of the request
   * @param {boolean} [options.promisesData] whether the tool has an output schema
   * @param {boolean} options.canAsk whether whoever called can be asked
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
      // Without a session each call is somebody else's.
      owner: owner ?? this.id,
      onProgress: (info) => {
        reports = true;
        report(info);
      },
      // What an app streams is progress, too, unless it reports its own.
      onChunk: (text, count) => reports || report({ progress: count, status: text }),
      ...(canAsk && { ask: (question, over) => this.#ask(question, over) }),
    })
      // A result that cannot be handed on is this call's misfortune, and nobody else's.
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

  /** In MCP's words. */
  get state() {
    const { state } = this.task;
    if (state === 'canceled') return 'cancelled';
    // A result that says so.
    if (state === 'failed') return 'completed';
    return state === 'input-required' ? 'input_required' : state;
  }

  /** The core: it is in another state. */
  onState() {
    this.updatedAt = new Date();
    this.#wake.resolve(undefined);
    this.#wake = deferred();
  }

  /** The core: it shall stop. What becomes of it, the app decides. */
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
    // An app that waits for an answer could not say how it stops.
    this.question?.settle(DECLINED);
    this.task.cancel();
  }

  /** Somebody asks for it, and has to ask again while no request waits for it. */
  touch() {
    this.task.lease(this.#waiting ? 0 : PATIENCE_WITH_CLIENTS);
  }

  /** @param {1 | -1} more 1 when a request begins to wait for it, -1 when it stops */
  wait(more) {
    this.#waiting += more;
    this.touch();
  }

  /**
   * The next that happens to whoever waits.
   * @param {AbortSignal} signal of the request that waits
   * @param {number} ms how long to wait; Infinity is for ever
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
      // At once: whoever answers looks next whether something is asked.
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

  /** The question that is open, as MCP's newer version shows it. */
  get inputRequests() {
    const { key, form } = this.question ?? {};
    return key && { [key]: { method: 'elicitation/create', params: form?.params } };
  }

  /**
   * Answers the question that is open.
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
   * Waits until its client comes back with an answer, once. What it was given before is good no
   * more.
   * @param {string} binding what the client must say again
   * @returns {string} what it must bring
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
   * What a session may ask for. Without a session there is nothing to tell clients apart by, so
   * nothing is listed.
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
   * The latest call that was the same, of which there is something to know.
   * @param {import('./earlier.js').Identity} identity
   */
  sameAs({ reader, work }) {
    const isSame = (/** @type {Run} */ { identity }) =>
      work !== undefined && identity.work === work && identity.reader === reader;
    return this.tasks.all.findLast((run) => isSame(run) && run.task.doubt);
  }

  /**
   * @param {unknown} id
   * @param {string | undefined} owner who asks
   * @returns {Run}
   * @throws {InvalidRequest} when there is none of this owner's
   */
  find(id, owner) {
    const run = this.tasks.find(id);
    if (run?.owner !== owner || !run)
      throw new InvalidRequest('This call is unknown, or its result is no longer kept');
    this.#knows(run);
    return run;
  }

  /**
   * The run that a client has come back for.
   * @param {string} state
   * @param {string} binding
   * @param {string | undefined} owner who asks
   * @param {Record<string, unknown>} [answers] by key; one that is missing is asked for again
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
   * Whoever asks for a run has read the answer that named it.
   * @param {Run} run
   */
  #knows(run) {
    run.touch();
    for (const answer of this.#answers)
      if (answer.run === run && answer.heardAt === undefined) answer.delivers = false;
  }

  /**
   * Lets go of one that nobody can ask for any more, once it has ended.
   * @param {Run} run
   */
  async release(run) {
    await run.ended;
    this.tasks.forget(run.id);
  }

  /**
   * A request is answered.
   * @param {Answer} answer
   */
  answered(answer) {
    this.#answers.add(answer);
    const [oldest] = this.#answers;
    if (this.#answers.size > MAX_ANSWERS) this.#forget(oldest);
  }

  /**
   * All of an answer was sent that has the run's result.
   * @param {Answer} answer
   */
  heard(answer) {
    if (!this.#answers.has(answer)) return;
    const { task, identity } = answer.run;
    if (task.hear()) answer.heardAt = performance.now();
    if (identity.work === undefined) this.#forget(answer);
  }

  /**
   * @param {Answer} answer that nobody loses any more
   * @param {boolean} [isNamed] whether the run can still be asked for
   */
  #forget(answer, isNamed = answer.run.isNamed) {
    this.#answers.delete(answer);
    const isOver = answer.heardAt !== undefined || answer.run.identity.work === undefined;
    if (isOver && !isNamed) this.tasks.forget(answer.run.id);
  }

  /**
   * A client calls again, so it has most likely read what was answered before it did. A cancel may
   * still be on its way: what became of those calls is kept, their results are not.
   * @param {Run} run the new call
   */
  lightenBefore({ began, identity: { reader } }) {
    for (const { heardAt = Infinity, run } of this.#answers)
      if (heardAt < began && run.identity.reader === reader && !run.isNamed && !run.result?.isError)
        run.result = { content: [] };
  }

  /**
   * The client does not read an answer, so it hears with another one what that said.
   * @param {Answer} answer
   * @param {string} [reason] why the client cancelled, if it did
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
   * A client cancels a request that was answered.
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
   * Its client does not get the answer, so it hears with another one what becomes of it.
   * @param {Run} run
   */
  left(run) {
    run.leftAt ??= new Date();
    run.task.leave();
    if (run.identity.work === undefined && !run.isNamed) void this.release(run);
  }

  /**
   * Cancels what nobody can ask for any more.
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
