/** One call of a capability on a client's behalf, which may outlive the request that began it. */
import { randomBytes } from 'node:crypto';
import { AbpError } from 'abp-bridge';
import { deferred } from './deferred.js';
import { DECLINED, formOf, responseOf } from './questions.js';
import { undelivered } from './results.js';
import { chunkText } from './texts.js';

/**
 * @typedef {import('./results.js').ToolResult} ToolResult
 * @typedef {import('./questions.js').Form} Form
 * @typedef {{ key: string, form: Form, settle: (response: unknown) => void, answered: Promise<unknown> }} Pending
 */

/** What names a run and nobody can guess. */
export const unguessable = () => randomBytes(24).toString('base64url');

export class Run {
  id = unguessable();
  createdAt = new Date();
  /** The same in ms of `performance.now()`: dates jump when somebody sets the clock. */
  began = performance.now();
  /** When its state last changed. */
  updatedAt = this.createdAt;
  /** The session that made it, if the protocol has one. @type {import('./runs.js').Owner} */
  owner;
  /** @type {'working' | 'input_required' | 'completed' | 'cancelled'} */
  state = 'working';
  /** Set when it has ended. @type {ToolResult | undefined} */
  result;
  /** What the app reported last. @type {import('./progress.js').Info | undefined} */
  progress;
  /** What the app waits for somebody to answer. @type {Pending | undefined} */
  question;
  /** Ends it when nobody asks for it any more; see Runs. @type {ReturnType<typeof setTimeout> | undefined} */
  lease;
  /** Hears of progress while a request waits for this. @type {(info: import('./progress.js').Info) => void} */
  onProgress = () => {};
  /** Settles when it has ended; never rejects. @type {Promise<void>} */
  ended;
  #controller = new AbortController();
  /** @type {ReturnType<typeof deferred<undefined>>} */
  #wake = deferred();
  /** Questions are asked one after the other. */
  #asking = Promise.resolve();
  #questions = 0;

  /**
   * @param {object} options
   * @param {string} options.tool
   * @param {import('./runs.js').Owner} [options.owner]
   * @param {boolean} [options.promisesData] whether the tool has an output schema
   * @param {boolean} options.canAsk whether whoever called can be asked
   * @param {(options: import('./app.js').CallOptions) => Promise<{ cancelled: boolean, result: ToolResult }>} options.execute
   */
  constructor({ tool, owner, promisesData = false, canAsk, execute }) {
    this.tool = tool;
    this.promisesData = promisesData;
    this.owner = owner;
    const { signal } = this.#controller;
    let reports = false;
    const options = {
      signal,
      // Without a session each call is somebody else's.
      owner: owner ?? this,
      onProgress: (/** @type {import('./progress.js').Info} */ info) => {
        reports = true;
        this.#report(info);
      },
      // What an app streams is progress, too, unless it reports its own.
      onChunk: (/** @type {unknown} */ chunk, /** @type {number} */ count) => {
        if (!reports) this.#report({ progress: count, status: chunkText(chunk) });
      },
      ...(canAsk && {
        ask: (
          /** @type {import('./app.js').Question} */ question,
          /** @type {AbortSignal} */ over,
        ) => this.#ask(question, over),
      }),
    };
    this.ended = execute(options)
      // A result that cannot be handed on is this call's misfortune, and nobody else's.
      .catch((error) => ({ cancelled: false, result: undelivered(error) }))
      .then(({ cancelled, result }) => {
        this.result = result;
        this.#become(cancelled && signal.aborted ? 'cancelled' : 'completed');
      });
  }

  /** @param {import('./progress.js').Info} info */
  #report(info) {
    this.progress = info;
    this.onProgress(info);
  }

  /** Whether it has ended. */
  get terminal() {
    return this.result !== undefined;
  }

  /** @param {Run['state']} state */
  #become(state) {
    this.state = state;
    this.updatedAt = new Date();
    this.#wake.resolve(undefined);
    this.#wake = deferred();
  }

  /**
   * Cancels it. What becomes of it, the app decides.
   * @param {string} reason
   */
  abort(reason) {
    this.#controller.abort(reason);
    this.question?.settle(DECLINED);
  }

  /**
   * The next that happens to whoever waits.
   * @param {AbortSignal} signal of the request that waits
   * @param {number} ms how long to wait; Infinity is for ever
   * @returns {Promise<'ended' | 'asked' | 'late' | 'aborted'>}
   */
  async next(signal, ms) {
    if (signal.aborted) return 'aborted';
    if (this.terminal) return 'ended';
    if (this.question) return 'asked';
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const late = new Promise((resolve) => {
      if (ms !== Infinity) timer = setTimeout(resolve, Math.max(0, ms), 'late');
    });
    /** @type {ReturnType<typeof deferred<'aborted'>>} */
    const abandoned = deferred();
    const abandon = () => abandoned.resolve('aborted');
    signal.addEventListener('abort', abandon);
    const event = await Promise.race([this.#wake.promise, late, abandoned.promise]);
    clearTimeout(timer);
    signal.removeEventListener('abort', abandon);
    return event ?? this.next(signal, ms);
  }

  /**
   * @param {import('./app.js').Question} question
   * @param {AbortSignal} over
   */
  #ask(question, over) {
    const form = formOf(question);
    if (!form) throw new AbpError('NOT_SUPPORTED', `${question.method} cannot be shown as a form`);
    const answer = this.#asking.then(() => this.#put(form, over));
    this.#asking = answer.then(() => {});
    return answer;
  }

  /**
   * @param {Form} form
   * @param {AbortSignal} over
   */
  async #put(form, over) {
    if (this.terminal || over.aborted || this.#controller.signal.aborted) return DECLINED;
    /** @type {ReturnType<typeof deferred<unknown>>} */
    const answered = deferred();
    const key = `question-${++this.#questions}`;
    const settle = (/** @type {unknown} */ response) => {
      if (this.question !== pending) return;
      // At once: whoever answers looks next whether something is asked.
      this.question = undefined;
      if (!this.terminal) this.#become('working');
      answered.resolve(response);
    };
    /** @type {Pending} */
    const pending = { key, form, settle, answered: answered.promise };
    this.question = pending;
    over.addEventListener('abort', () => settle(DECLINED), { once: true });
    this.#become('input_required');
    const response = await answered.promise;
    return response;
  }

  /**
   * Answers the question that is open.
   * @param {unknown} result of `elicitation/create`
   */
  answer(result) {
    const { question } = this;
    question?.settle(responseOf(question.form, result));
  }
}
