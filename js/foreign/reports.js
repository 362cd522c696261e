/**
 * Receives the reports of a foreign app, which calls functions of its page, or members of its own.
 * This file installs these functions, and converts their arguments to one form.
 */
import { REPORTERS } from '../page/reporters.js';

/** @import { Hear } from './foreign-app.js' */
/** @typedef {keyof typeof REPORTERS} Kind */

/** Marks functions that were installed here, and placeholders that were installed before. */
const OURS = Symbol.for('abp-bridge.listener');
const PLACE = Symbol.for('abp-bridge.place');

/**
 * Reads a notification.
 * @param {any} first the notification, or its event
 * @param {unknown} second the event's data, if `first` is the event
 * @returns {[Kind, any]} `CapabilitiesChanged` for a notification that the capabilities have
 *   changed
 */
function readNotification(first, second) {
  const { event, method, data, params } =
    typeof first === 'string' ? { event: first, data: second } : (first ?? {});
  const report = { event: event ?? method, data: data ?? params };
  return report.event === 'notifications/capabilities/list_changed'
    ? ['CapabilitiesChanged', report.data]
    : ['Notification', report];
}

export class Reports {
  /** The receiver of reports; undefined before the session begins. @type {Hear | undefined} */
  #hear;
  #list;
  /** Functions that remove the installed listeners. @type {(() => void)[]} */
  #places = [];
  /** The reports of this turn, with their reporters. @type {Map<string, string>} */
  #reported = new Map();

  /** @param {() => Promise<any[]>} list lists the app's capabilities */
  constructor(list) {
    this.#list = list;
  }

  /**
   * Installs the functions of a page that apps call, and passes their reports on from now on.
   * @param {any} page
   * @param {Kind[]} kinds
   * @param {Hear} hear
   */
  begin(page, kinds, hear) {
    for (const kind of kinds) for (const name of REPORTERS[kind]) this.#put(page, name, kind);
    this.#hear = hear;
  }

  /**
   * Listens to the members of an app.
   * @param {any} abp
   * @param {Kind[]} kinds
   */
  follow(abp, kinds) {
    for (const kind of kinds) {
      const name = `on${kind}`;
      try {
        // Some apps have a function that takes a handler, others a property that holds one.
        if (typeof abp[name] === 'function' && !abp[name][OURS])
          abp[name](this.#listener(kind, name));
        else this.#put(abp, name, kind);
      } catch {
        // An app with neither looks for the functions of the page.
      }
    }
  }

  /** Stops receiving reports, and restores the page. */
  end() {
    this.#hear = undefined;
    for (const clear of this.#places.splice(0)) clear();
  }

  /**
   * Installs a listener in a member that may be in use. The old listener is still called, except
   * for questions, which have a single answer.
   * @param {any} holder
   * @param {string} name
   * @param {Kind} kind
   */
  #put(holder, name, kind) {
    const before = holder[name];
    const listen = this.#listener(kind, name);
    if (before?.[PLACE]) {
      before.heard = listen;
      this.#places.push(() => (before.heard = undefined));
      return;
    }
    const stacked = (/** @type {unknown[]} */ ...args) => {
      const answer = listen(...args);
      if (typeof before !== 'function' || (answer && kind === 'Elicitation')) return answer;
      const earlier = before.apply(holder, args);
      if (!answer) return earlier;
      earlier?.catch?.(() => {});
      return answer;
    };
    holder[name] = Object.assign(stacked, { [OURS]: true });
    this.#places.push(() => {
      if (holder[name] !== stacked) return;
      if (before === undefined) delete holder[name];
      else holder[name] = before;
    });
  }

  /**
   * @param {Kind} kind
   * @param {string} reporter
   */
  #listener =
    (kind, reporter) =>
    (/** @type {unknown[]} */ ...args) =>
      this.#hear ? this.#tell(kind, reporter, args) : undefined;

  /**
   * Passes on the arguments of a reporter.
   * @param {Kind} kind
   * @param {string} reporter
   * @param {any[]} args
   */
  async #tell(kind, reporter, [first, second]) {
    try {
      let report = first;
      if (kind === 'Notification') [kind, report] = readNotification(first, second);
      if (kind === 'CapabilitiesChanged') {
        const { added, removed, changed } = report ?? {};
        report = { added, removed, changed };
      }
      if (kind !== 'Elicitation' && this.#isEcho(reporter, report)) return undefined;
      if (kind === 'CapabilitiesChanged') {
        // A report has only names: add the new descriptions.
        const names = [report.added ?? [], report.changed ?? []].flat();
        report.capabilities = (await this.#list()).filter((each) => names.includes(each?.name));
      }
      return await this.#hear?.(kind, report);
    } catch (error) {
      // An app that asks gets the error; an app that reports does not.
      if (kind === 'Elicitation') throw error;
      return console.warn('abp-bridge: a message could not be sent:', error);
    }
  }

  /**
   * True if another reporter has reported the same: some apps use two reporters for everything.
   * @param {string} reporter
   * @param {unknown} news
   */
  #isEcho(reporter, news) {
    let text;
    try {
      text = JSON.stringify(news);
    } catch {
      return false;
    }
    const reported = this.#reported;
    const first = reported.get(text) ?? reporter;
    if (!reported.size) setTimeout(() => reported.clear());
    reported.set(text, first);
    return first !== reporter;
  }
}
