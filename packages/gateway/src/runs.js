/** Calls that clients may ask for again: by the id of a task or a handle, or by a `requestState`. Each belongs to a session. */
import { InvalidRequest } from './errors.js';
import { unguessable } from './run.js';

/** Runs that are remembered, of all clients. */
const MAX_RUNS = 1024;
/** How long the result of one that nobody waited for is kept, in ms. */
const KEEP_RESULT = 10 * 60_000;
/** How long a question waits for its answer, and a handle for somebody to ask for it, in ms. */
export const PATIENCE_WITH_CLIENTS = 10 * 60_000;

/**
 * @typedef {import('./run.js').Run} Run
 * @typedef {object | undefined} Owner the session of a client; undefined where the protocol has none. What has no owner
 *   belongs to whoever knows its id
 */

export class Runs {
  /** By id. @type {Map<string, Run>} */
  #runs = new Map();
  /** Those that wait for a client to come back, by `requestState`. @type {Map<string, { run: Run, binding: string, key: string, timer: ReturnType<typeof setTimeout> }>} */
  #rounds = new Map();
  /** The `requestState` of a run that waits: it has one. @type {Map<Run, string>} */
  #states = new Map();

  /**
   * Remembers a run, so that a client may ask for it by its id. One that nobody asks for is ended.
   * @param {Run} run
   */
  remember(run) {
    if (!this.#runs.has(run.id)) {
      if (this.#runs.size >= MAX_RUNS) this.#forgetOldest();
      this.#runs.set(run.id, run);
      void run.ended.then(() => {
        setTimeout(() => this.#runs.delete(run.id), KEEP_RESULT).unref();
      });
    }
    this.#touch(run);
    return run;
  }

  /**
   * What a session may ask for. Without a session there is nothing to tell clients apart by, so nothing is listed.
   * @param {Owner} owner
   */
  of(owner) {
    return owner ? [...this.#runs.values()].filter((run) => run.owner === owner) : [];
  }

  #forgetOldest() {
    const [oldest] = [...this.#runs.values()].sort(
      (a, b) => Number(b.terminal) - Number(a.terminal),
    );
    oldest.abort('too many calls are in flight');
    this.#runs.delete(oldest.id);
  }

  /**
   * Somebody asked for it, so somebody still wants it.
   * @param {Run} run
   */
  #touch(run) {
    clearTimeout(run.lease);
    if (run.terminal) return;
    run.lease = setTimeout(
      () => run.abort('the client stopped asking for the result'),
      PATIENCE_WITH_CLIENTS,
    );
    run.lease.unref();
  }

  /**
   * @param {unknown} id
   * @param {Owner} owner who asks
   * @returns {Run}
   * @throws {InvalidRequest} when there is none of this owner's
   */
  find(id, owner) {
    const run = typeof id === 'string' ? this.#runs.get(id) : undefined;
    if (run?.owner !== owner || !run) {
      throw new InvalidRequest('This call is unknown, or its result is no longer kept');
    }
    this.#touch(run);
    return run;
  }

  /**
   * Lets a run wait until its client comes back with an answer, once. What it was given before is good no more.
   * @param {Run} run whose question is open
   * @param {string} binding what the client must say again
   * @returns {string} what it must bring
   */
  suspend(run, binding) {
    this.#endRound(run);
    const state = unguessable();
    const key = run.question?.key ?? '';
    const timer = setTimeout(() => {
      this.#endRound(run);
      if (run.question?.key === key) run.abort('the question was not answered in time');
    }, PATIENCE_WITH_CLIENTS);
    timer.unref();
    this.#rounds.set(state, { run, binding, key, timer });
    this.#states.set(run, state);
    void run.ended.then(() => this.#endRound(run));
    return state;
  }

  /** @param {Run} run */
  #endRound(run) {
    const state = this.#states.get(run);
    if (state === undefined) return;
    clearTimeout(this.#rounds.get(state)?.timer);
    this.#rounds.delete(state);
    this.#states.delete(run);
  }

  /**
   * The run that a client has come back for.
   * @param {string} state
   * @param {string} binding
   * @param {Owner} owner who asks
   * @param {Record<string, unknown> | undefined} answers by key; one that is missing is asked for again
   * @returns {Run}
   * @throws {InvalidRequest} when this owner was not given that state, or it was used, or for another request
   */
  resume(state, binding, owner, answers) {
    const round = this.#rounds.get(state);
    if (!round || round.binding !== binding || round.run.owner !== owner) {
      throw new InvalidRequest(
        'requestState is unknown, was used, has expired, or belongs to another request',
      );
    }
    const { run, key } = round;
    this.#endRound(run);
    if (run.question?.key === key && answers && Object.hasOwn(answers, key)) {
      run.answer(answers[key]);
    }
    return run;
  }

  /**
   * Cancels what nobody can ask for any more.
   * @param {object} owner a session that has ended
   */
  leave(owner) {
    for (const run of this.of(owner)) {
      run.abort('the client disconnected');
      this.#runs.delete(run.id);
    }
  }
}
