/**
 * A foreign app in the form of `window.abp`, in one common form: apps differ in how they report,
 * list and cancel. It is made in the app's page.
 *
 * It holds the functions, which cannot leave that page. An endpoint elsewhere
 * (foreign-capabilities.js) holds the state of calls.
 */
import { REPORTERS } from '../page/reporters.js';
import { Reports } from './reports.js';

/**
 * Receives the app's reports, by kind: a notification `{ event, data }`; progress; changes `{
 * added, removed, changed, capabilities }`, with names and the new descriptions; a question.
 * @typedef {(kind: keyof typeof REPORTERS, report: any)
 *   => unknown} Hear returns a promise of the response to a question
 */

/**
 * A foreign app. Its values are unchecked.
 * @typedef {object} ForeignApp
 * @property {(params: Record<string, any>, hear: Hear, patience: number) => Promise<unknown>} open
 *   begins a session; resolves with the result of `initialize` and the capabilities. `patience` is
 *   how long it may take to list these, and to shut down, in ms
 * @property {(name: string, params: unknown, options: { callId: string, timeout?: number,
 *   progressToken?: unknown }) => Promise<unknown>} call resolves with the response
 * @property {(callId: string, reason?: string) => Promise<unknown>} cancel resolves with the app's
 *   answer
 * @property {(reason?: string) => Promise<void>} close ends the session, if there is one, and stops
 *   receiving reports; does not reject
 */

/**
 * Resolves like a promise, or with undefined when that takes too long.
 * @param {unknown} promise
 * @param {number} patience ms
 */
export function inTime(promise, patience) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, patience)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * Tells an interface of this library that bytes can be passed on: for other clients it converts
 * them to text.
 */
const BYTES = { [Symbol.for('abp-bridge.bytes')]: true };

/** @implements {ForeignApp} */
class PageApp {
  #page;
  #reports = new Reports(() => this.#list());
  #isOpen = false;
  #patience = 0;

  /** @param {any} page */
  constructor(page) {
    this.#page = page;
  }

  /** @returns {Promise<any[]>} the capabilities; apps list them in several forms */
  async #list() {
    let listing;
    try {
      const listed = this.#page.abp.listCapabilities?.();
      listing = /** @type {any} */ (await inTime(listed, this.#patience));
    } catch {
      // The result of `initialize` has to do.
    }
    const found = [listing, listing?.data, listing?.capabilities, listing?.data?.capabilities];
    return found.find(Array.isArray) ?? [];
  }

  /** @type {ForeignApp['open']} */
  async open(params, hear, patience) {
    this.#patience = patience;
    const kinds = /** @type {(keyof typeof REPORTERS)[]} */ (Object.keys(REPORTERS)).filter(
      (kind) => kind !== 'Elicitation' || params.features?.elicitation === true,
    );
    this.#reports.begin(this.#page, kinds, hear);
    let result;
    try {
      result = await this.#page.abp.initialize(params);
      this.#isOpen = result?.success !== false;
    } finally {
      if (!this.#isOpen) this.#reports.end();
    }
    if (!this.#isOpen) return result;
    // By now `abp` is the app itself, and not a placeholder from before it was loaded.
    this.#reports.follow(this.#page.abp, kinds);
    return { ...result, capabilities: [result?.capabilities ?? [], await this.#list()].flat() };
  }

  /** @type {ForeignApp['call']} */
  async call(name, params, options) {
    return this.#page.abp.call(name, params, { ...options, ...BYTES });
  }

  /**
   * The protocol's own pages disagree on the arguments of `cancel`, so an app may take either form.
   * @type {ForeignApp['cancel']}
   */
  async cancel(callId, reason) {
    const { abp, __abp_cancel } = this.#page;
    const isOwn = typeof abp.cancel === 'function';
    if (!isOwn && typeof __abp_cancel !== 'function')
      return { cancelled: false, reason: 'The app has no cancel function' };
    const forms = isOwn ? [[callId, reason], [{ callId, reason }]] : [[callId, reason]];
    const outcomes = [];
    for (const form of forms) {
      try {
        const answer = await (isOwn ? abp.cancel(...form) : __abp_cancel(...form));
        const cancelled = answer === true || answer?.cancelled === true;
        if (cancelled || answer?.callId === callId) return { ...answer, cancelled };
        outcomes.push({ answer });
      } catch (thrown) {
        outcomes.push({ thrown });
      }
    }
    const outcome = outcomes.find(({ answer }) => answer !== undefined) ?? outcomes[0];
    if ('thrown' in outcome) throw outcome.thrown;
    return { reason: 'The app gave no reason', ...outcome.answer, cancelled: false };
  }

  /** @type {ForeignApp['close']} */
  async close(reason) {
    this.#reports.end();
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      await inTime(this.#page.abp.shutdown?.({ reason }), this.#patience);
    } catch {
      // The session is over anyway.
    }
  }
}

/**
 * @param {any} page holds `abp`, and the functions that apps call
 * @returns {ForeignApp}
 */
export const foreignApp = (page) => new PageApp(page);
