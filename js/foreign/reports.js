/**
 * What an app that is not ours reports: it calls functions of its page, or members of its own. Here
 * these functions are installed, and what they are called with is brought into one form.
 */
import { REPORTERS } from '../page/reporters.js';

/** @import { Hear } from './foreign-app.js' */
/** @typedef {keyof typeof REPORTERS} Kind */

/** Marks functions that were installed here, and placeholders that were installed before. */
const OURS = Symbol.for('abp-bridge.listener');
const PLACE = Symbol.for('abp-bridge.place');

/**
 * What a notification comes to.
 * @param {any} first the notification, or its event
 * @param {unknown} second the event's data, then
 * @returns {[Kind, any]} an app may tell by a notification that its capabilities have changed
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
  /** Who is told. Nobody is before the app is asked to begin. @type {Hear | undefined} */
  #hear;
  #list;
  /** Undoes what was installed. @type {(() => void)[]} */
  #places = [];
  /** What was reported in this turn, and by which reporter. @type {Map<string, string>} */
  #reported = new Map();

  /** @param {() => Promise<any[]>} list lists the app's capabilities */
  constructor(list) {
    this.#list = list;
  }

  /**
   * Listens to the functions of a page that apps call, and has them told from now on.
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

  /** Nothing is heard any more, and the page has what it had. */
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
      const heard = listen(...args);
      if (typeof before !== 'function' || (heard && kind === 'Elicitation')) return heard;
      const other = before.apply(holder, args);
      if (!heard) return other;
      other?.catch?.(() => {});
      return heard;
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
   * Passes on what a reporter was called with.
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
        // It has only names: adds what these capabilities are now.
        const names = [report.added ?? [], report.changed ?? []].flat();
        report.capabilities = (await this.#list()).filter((each) => names.includes(each?.name));
      }
      return await this.#hear?.(kind, report);
    } catch (error) {
      // An app that asks gets the error; one that reports does not.
      if (kind === 'Elicitation') throw error;
      return console.warn('abp-bridge: a message could not be sent:', error);
    }
  }

  /**
   * Whether the same was reported already: apps that use two reporters report everything twice.
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
