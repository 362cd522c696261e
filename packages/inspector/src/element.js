/** `<abp-inspector>`: shows the events of connections, live or from a recording. */
import { Log, eventsOf } from './log.js';
import { CSS } from './style.js';
import { button, callView, counterViews, make, makeLanes, makeTable } from './views.js';
import { retitle, rowView } from './views.js';

/** @import { TraceListener } from 'abp-bridge/driver' */
/** @import { Kind, Row } from './log.js' */

/**
 * An object that can be inspected: a client, or an exposed app.
 * @typedef {object} Target
 * @property {(listener: TraceListener) => Promise<() => void>} observe
 * @property {Record<string, number> | Record<string, number>[]} [counters] without them, dropped
 *   messages are counted here
 */

/** Ms between two updates of ages and counters. */
const TICK = 500;

/**
 * The options of the filter: value, label and kinds of rows.
 * @type {[string, string, Kind[]][]}
 */
const FILTERS = [
  ['all', 'Everything', []],
  ['calls', 'Calls and results', ['call', 'result', 'failed', 'cancel']],
  ['cancels', 'Cancels', ['cancel']],
  ['progress', 'Progress', ['progress']],
  ['problems', 'Failures and problems', ['failed', 'problem']],
  ['session', 'Session', ['session']],
];

const TABS = ['messages', 'calls', 'counters'];

const SEARCH = 'Search names, ids and contents';
/** The row that Tab reaches. */
const POINTED = 'summary[tabindex="0"]';

// Without a DOM, importing this does nothing.
const Base = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {});

/**
 * The element `<abp-inspector>`, which shows the calls of the clients and apps that it is attached
 * to.
 */
export class AbpInspector extends Base {
  #log = new Log();
  /**
   * The observed targets, each with the function that stops it once it has begun.
   * @type {Map<Target, (() => void) | undefined>}
   */
  #targets = new Map();
  #paused = false;
  /** The number of the latest row that was checked. */
  #shown = 0;
  /** The visible rows. @type {Map<Row, HTMLLIElement>} */
  #items = new Map();
  #scheduled = false;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  #tab = TABS[0];
  /**
   * The time of a recording's last event, in ms: there, no time passes.
   * @type {number | undefined}
   */
  #end = undefined;

  #pauseButton = button('Pause', () => this.#pause(), { 'aria-pressed': 'false' });
  #file = make('input', { type: 'file', hidden: true });
  #filter = make('select', { 'aria-label': 'Show' });
  #search = make('input', { type: 'search', placeholder: 'Search', 'aria-label': SEARCH });
  #status = make('output', { class: 'count' });
  #tabs = TABS.map((name) => {
    const about = { role: 'tab', id: `tab-${name}`, 'aria-controls': name };
    return button(name[0].toUpperCase() + name.slice(1), () => this.#select(name), about);
  });
  #rows = make('ol', { 'aria-label': 'Messages, the oldest first' });
  #noRows = make('p', { class: 'empty' });
  #calls = make('tbody');
  #noCalls = make('p', { class: 'empty' }, 'No calls.');
  #counters = make('dl');
  #reasons = make('ol', { class: 'reasons' });
  #noReasons = make('p', { class: 'empty' }, 'Nothing was dropped or refused.');
  #panels = [
    [makeLanes(), this.#rows, this.#noRows],
    [makeTable(this.#calls), this.#noCalls],
    [this.#counters, make('h2', {}, 'Why'), this.#reasons, this.#noReasons],
  ].map((contents, i) => {
    const id = TABS[i];
    const labelled = { role: 'tabpanel', id, tabindex: '0', 'aria-labelledby': `tab-${id}` };
    return make('div', labelled, ...contents);
  });

  constructor() {
    super();
    const root = this.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(CSS);
    root.adoptedStyleSheets = [sheet];
    const bar = make('div', { class: 'bar', role: 'group', 'aria-label': 'Inspector' });
    const clear = button('Clear', () => (this.#log.clear(), this.#renew()));
    const open = button('Open recording…', () => this.#file.click());
    bar.append(this.#pauseButton, clear, this.#filter, this.#search, open, this.#file);
    const tabs = make('div', { role: 'tablist', 'aria-label': 'Views' }, ...this.#tabs);
    root.append(bar, make('div', { class: 'strip' }, tabs, this.#status), ...this.#panels);
    this.#filter.append(...FILTERS.map(([value, label]) => make('option', { value }, label)));
    this.#filter.addEventListener('change', () => this.#renew());
    this.#search.addEventListener('input', () => this.#renew());
    this.#file.addEventListener('change', () => void this.#openFile());
    this.#rows.addEventListener('keydown', (event) => this.#moveRow(event));
    tabs.addEventListener('keydown', (event) => this.#moveTab(event));
    this.#select(this.#tab);
  }

  // --- Targets -----------------------------------------------------------------------------------

  /**
   * Shows the events of a connection, as long as this element is in a document.
   * @param {Target} target a client, or an exposed app
   * @returns {Promise<void>} settles when it is observed
   */
  async attach(target) {
    if (this.#targets.has(target)) return;
    if (this.#end !== undefined) this.#start();
    this.#targets.set(target, undefined);
    this.#schedule();
    if (this.isConnected) await this.#observe(target);
  }

  /**
   * Shows no further events of a connection.
   * @param {Target} target
   */
  detach(target) {
    this.#targets.get(target)?.();
    this.#targets.delete(target);
  }

  /** @param {Target} target */
  async #observe(target) {
    const stop = await target.observe((event) => {
      this.#log.add(event);
      this.#schedule();
    });
    // It may have been detached or removed meanwhile.
    const wanted = this.isConnected && this.#targets.has(target) && !this.#targets.get(target);
    if (wanted) this.#targets.set(target, stop);
    else stop();
  }

  /**
   * Shows a recording, and stops showing live events.
   * @param {string} text lines of JSON, as a recorder has them
   * @throws {TypeError} if it is not a recording
   */
  open(text) {
    const events = eventsOf(text);
    for (const target of [...this.#targets.keys()]) this.detach(target);
    this.#start();
    for (const event of events) this.#log.add(event);
    this.#end = events[events.length - 1].time;
    this.#renew();
  }

  async #openFile() {
    const [file] = this.#file.files ?? [];
    this.#file.value = '';
    if (!file) return;
    try {
      this.open(await file.text());
    } catch (error) {
      this.#status.value = /** @type {Error} */ (error).message;
    }
  }

  /** Starts empty. */
  #start() {
    this.#log = new Log();
    this.#end = undefined;
    if (this.#paused) this.#pause();
  }

  connectedCallback() {
    for (const target of this.#targets.keys()) void this.#observe(target);
    this.#timer = setInterval(() => this.#tick(), TICK);
    this.#renew();
  }

  disconnectedCallback() {
    clearInterval(this.#timer);
    for (const [target, stop] of this.#targets) {
      stop?.();
      this.#targets.set(target, undefined);
    }
  }

  // --- Display -----------------------------------------------------------------------------------

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      if (!this.#paused) this.#render();
    });
  }

  #render() {
    this.#renderRows();
    this.#renderCalls();
    this.#renderCounters();
  }

  /** Shows everything again. */
  #renew() {
    this.#rows.replaceChildren();
    this.#items.clear();
    this.#shown = 0;
    this.#render();
  }

  /** Updates ages and counters. */
  #tick() {
    if (this.#paused || this.#end !== undefined) return;
    const moving = [...this.#log.calls.values()].some(({ state }) => state !== 'ended');
    if (moving && this.#tab === 'calls') this.#renderCalls();
    if (this.#tab === 'counters') this.#renderCounters();
  }

  get #needle() {
    return this.#search.value.trim().toLowerCase();
  }

  /** @param {Row} row */
  #matches({ kind, title, id, content = '' }) {
    const kinds = FILTERS[this.#filter.selectedIndex][2];
    if (kinds.length && !kinds.includes(kind)) return false;
    return `${title}\n${id}\n${content}`.toLowerCase().includes(this.#needle);
  }

  #renderRows() {
    const { rows, changed, start = 0 } = this.#log;
    const panel = this.#panels[0];
    // A user who has scrolled up wants to read.
    const follows = panel.scrollHeight - panel.scrollTop - panel.clientHeight < 40;
    const first = rows[0]?.number ?? Infinity;
    for (const [row, item] of this.#items) {
      if (row.number >= first) break;
      item.remove();
      this.#items.delete(row);
    }
    const added = rows
      .slice(Math.max(0, this.#shown + 1 - first))
      .filter((row) => this.#matches(row));
    for (const row of added) this.#items.set(row, rowView(row, start));
    for (const row of changed) retitle(this.#items.get(row), row);
    changed.clear();
    this.#shown = rows[rows.length - 1]?.number ?? this.#shown;
    this.#rows.append(...added.map((row) => /** @type {Node} */ (this.#items.get(row))));
    if (!this.#rows.querySelector(POINTED)) this.#point(this.#rows.firstElementChild);
    if (follows && added.length) panel.scrollTop = panel.scrollHeight;
    this.#noRows.hidden = this.#items.size > 0;
    this.#noRows.textContent = rows.length
      ? 'No message matches.'
      : this.#targets.size
        ? 'Nothing has happened yet.'
        : 'No connection is observed yet. You can open a recording.';
    this.#status.value = `${this.#items.size} of ${rows.length}`;
  }

  #renderCalls() {
    const now = this.#end ?? performance.now();
    const needle = this.#needle;
    const focused = this.shadowRoot?.activeElement ?? null;
    const at = [...this.#calls.rows].findIndex((row) => row.contains(focused));
    const views = [...this.#log.calls.values()]
      .filter(({ id, name, state, end }) =>
        `${name}\n${id}\n${state}\n${end}`.toLowerCase().includes(needle),
      )
      .map((call) => callView(call, now, () => this.#showMessages(call.id)));
    this.#calls.replaceChildren(...views);
    // Updated rows keep the focus.
    if (at >= 0) this.#calls.rows[Math.min(at, views.length - 1)]?.querySelector('button')?.focus();
    this.#noCalls.hidden = views.length > 0;
  }

  /**
   * Shows the messages of one call.
   * @param {string} id
   */
  #showMessages(id) {
    this.#search.value = id;
    this.#filter.selectedIndex = 0;
    this.#select('messages');
    this.#renew();
    this.#search.focus();
  }

  #renderCounters() {
    const { counts, reasons, start = 0 } = this.#log;
    /** @type {Record<string, number>} */
    const sum = { late: 0, stray: 0, malformed: 0, unknownType: 0, overrun: 0, refused: 0 };
    const asked = [...this.#targets.keys()].filter((target) => target.counters);
    const { 'unknown type': unknownType = 0, ...own } = Object.fromEntries(counts);
    // A recording has no core to ask.
    const told = asked.length
      ? asked.flatMap((target) => target.counters)
      : { unknownType, ...own };
    for (const each of [told].flat())
      for (const [name, count] of Object.entries(each ?? {})) sum[name] = (sum[name] ?? 0) + count;
    this.#counters.replaceChildren(...counterViews(sum));
    const items = reasons.map(({ time, text }) =>
      make('li', {}, `${((time - start) / 1000).toFixed(3)} s: ${text}`),
    );
    this.#reasons.replaceChildren(...items.reverse());
    this.#noReasons.hidden = items.length > 0;
  }

  // --- User actions ------------------------------------------------------------------------------

  #pause() {
    this.#paused = !this.#paused;
    this.#pauseButton.setAttribute('aria-pressed', `${this.#paused}`);
    if (!this.#paused) this.#schedule();
  }

  /** @param {string} name of a tab */
  #select(name) {
    this.#tab = name;
    TABS.forEach((each, i) => {
      this.#tabs[i].setAttribute('aria-selected', `${each === name}`);
      this.#tabs[i].tabIndex = each === name ? 0 : -1;
      this.#panels[i].hidden = each !== name;
    });
  }

  /** @param {KeyboardEvent} event */
  #moveTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (TABS.indexOf(this.#tab) + step + TABS.length) % TABS.length;
    this.#select(TABS[at]);
    this.#tabs[at].focus();
    event.preventDefault();
  }

  /**
   * Makes one row the one that Tab reaches.
   * @param {Element | null} item
   */
  #point(item) {
    this.#rows.querySelector(POINTED)?.setAttribute('tabindex', '-1');
    const summary = item?.querySelector('summary');
    summary?.setAttribute('tabindex', '0');
    return summary;
  }

  /**
   * Arrow keys move between rows: there are too many for Tab.
   * @param {KeyboardEvent} event
   */
  #moveRow(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const item = target.matches('summary') && target.closest('li');
    if (!item) return;
    /** @type {Record<string, Element | null>} */
    const places = {
      ArrowDown: item.nextElementSibling ?? item,
      ArrowUp: item.previousElementSibling ?? item,
      Home: this.#rows.firstElementChild,
      End: this.#rows.lastElementChild,
    };
    const to = places[event.key];
    if (!to) return;
    this.#point(to)?.focus();
    event.preventDefault();
  }
}
