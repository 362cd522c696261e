/**
 * An app of others' making, of the form of `window.abp`, in one form: apps differ in how they
 * report, list and cancel. This is called where the app is. In a page that is driven it is injected
 * as text, so it uses nothing but its arguments and `inTime`.
 *
 * It holds what cannot leave the app's page: functions. What becomes of a call is decided
 * elsewhere, by an endpoint (foreign-capabilities.js).
 */

/**
 * Takes what the app reports, by kind: a notification `{ event, data }`; progress; changes
 * `{ added, removed, changed, capabilities }`, with the names and what these capabilities are now;
 * a question.
 * @typedef {(kind: keyof typeof import('../../../page/src/reporters.js').REPORTERS, report: any)
 *   => unknown} Hear returns a promise of the response to a question
 */

/**
 * An app of others' making. What it says has not been checked.
 * @typedef {object} ForeignApp
 * @property {(params: Record<string, any>, hear: Hear, patience: number) => Promise<unknown>} open
 *   begins a session; resolves with what `initialize` said and the capabilities. `patience` is how
 *   long it may take to list these, and to shut down, in ms
 * @property {(name: string, params: unknown, options: { callId: string, timeout?: number,
 *   progressToken?: unknown }) => Promise<unknown>} call resolves with the response
 * @property {(callId: string, reason?: string) => Promise<unknown>} cancel resolves with the app's
 *   word on it
 * @property {(reason?: string) => Promise<void>} close ends the session, if there is one, and what
 *   was reported is heard no more; does not reject
 */

/**
 * What a promise gives, or undefined when that takes too long.
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
 * @param {typeof import('../../../page/src/reporters.js').REPORTERS} reporters the names of the
 *   functions that apps call to report, by kind
 * @param {any} page where `abp` is, and the functions that apps call
 * @returns {ForeignApp}
 */
export function foreignApp(reporters, page) {
  /** Marks functions that were installed here, and placeholders that were installed before. */
  const OURS = Symbol.for('abp-bridge.listener');
  const PLACE = Symbol.for('abp-bridge.place');
  /** Tells our own interface that bytes can be sent from here: for others it makes text of them. */
  const BYTES = { [Symbol.for('abp-bridge.bytes')]: true };
  /** @type {Hear | undefined} */
  let hear;
  /** Undoes what was installed in the page. @type {(() => void)[]} */
  const places = [];
  let open = false;
  let patience = 0;

  // --- What apps report --------------------------------------------------------------------------

  /** What was reported in this turn, and by which reporter. @type {Map<string, string>} */
  const reported = new Map();

  /**
   * Whether the same was reported already: apps that use two reporters report everything twice.
   * @param {string} reporter
   * @param {unknown} news
   */
  function isEcho(reporter, news) {
    let text;
    try {
      text = JSON.stringify(news);
    } catch {
      return false;
    }
    const first = reported.get(text) ?? reporter;
    if (!reported.size) setTimeout(() => reported.clear());
    reported.set(text, first);
    return first !== reporter;
  }

  /**
   * Passes on what a reporter was called with.
   * @param {keyof typeof reporters} kind
   * @param {string} reporter
   * @param {any[]} args
   */
  async function told(kind, reporter, [first, second]) {
    try {
      let report = first;
      if (kind === 'Notification') {
        const { event, method, data, params } =
          typeof first === 'string' ? { event: first, data: second } : (first ?? {});
        report = { event: event ?? method, data: data ?? params };
        if (report.event === 'notifications/capabilities/list_changed') {
          kind = 'CapabilitiesChanged';
          report = report.data;
        }
      }
      if (kind === 'CapabilitiesChanged') {
        const { added, removed, changed } = report ?? {};
        report = { added, removed, changed };
      }
      if (kind !== 'Elicitation' && isEcho(reporter, report)) return undefined;
      if (kind === 'CapabilitiesChanged') {
        // It has only names: adds what these capabilities are now.
        const names = [report.added ?? [], report.changed ?? []].flat();
        report.capabilities = (await list()).filter((each) => names.includes(each?.name));
      }
      return await hear?.(kind, report);
    } catch (error) {
      // An app that asks gets the error; one that reports does not.
      if (kind === 'Elicitation') throw error;
      return console.warn('abp-bridge: a message could not be sent:', error);
    }
  }

  /**
   * @param {keyof typeof reporters} kind
   * @param {string} reporter
   */
  const listener =
    (kind, reporter) =>
    (/** @type {unknown[]} */ ...args) =>
      hear ? told(kind, reporter, args) : undefined;

  /**
   * Installs a listener in a member that may be in use. The old listener is still called, except
   * for questions, which have a single answer.
   * @param {any} holder
   * @param {string} name
   * @param {keyof typeof reporters} kind
   */
  function put(holder, name, kind) {
    const before = holder[name];
    const listen = listener(kind, name);
    if (before?.[PLACE]) {
      before.heard = listen;
      places.push(() => (before.heard = undefined));
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
    places.push(() => {
      if (holder[name] !== stacked) return;
      if (before === undefined) delete holder[name];
      else holder[name] = before;
    });
  }

  function unsubscribe() {
    hear = undefined;
    for (const clear of places.splice(0)) clear();
  }

  // --- What it is asked --------------------------------------------------------------------------

  /** @returns {Promise<any[]>} the capabilities; apps list them in several forms */
  async function list() {
    let listing;
    try {
      listing = /** @type {any} */ (await inTime(page.abp.listCapabilities?.(), patience));
    } catch {
      // Then what `initialize` returned must do.
    }
    const found = [listing, listing?.data, listing?.capabilities, listing?.data?.capabilities];
    return found.find(Array.isArray) ?? [];
  }

  return {
    async open(params, hears, ms) {
      patience = ms;
      const kinds = /** @type {(keyof typeof reporters)[]} */ (Object.keys(reporters)).filter(
        (kind) => kind !== 'Elicitation' || params.features?.elicitation === true,
      );
      for (const kind of kinds) for (const name of reporters[kind]) put(page, name, kind);
      hear = hears;
      let result;
      try {
        result = await page.abp.initialize(params);
        open = result?.success !== false;
      } finally {
        if (!open) unsubscribe();
      }
      if (!open) return result;
      // By now it is the app itself, and not a stub that was there while it loaded.
      const { abp } = page;
      for (const kind of kinds) {
        const name = `on${kind}`;
        try {
          // Some apps have a function that takes a handler, others a property that holds one.
          if (typeof abp[name] === 'function' && !abp[name][OURS]) abp[name](listener(kind, name));
          else put(abp, name, kind);
        } catch {
          // An app with neither looks for the functions of the page.
        }
      }
      return { ...result, capabilities: [result?.capabilities ?? [], await list()].flat() };
    },

    call: async (name, params, options) => page.abp.call(name, params, { ...options, ...BYTES }),

    /**
     * The protocol's own pages disagree on the arguments of `cancel`, so an app may take either
     * form.
     */
    async cancel(callId, reason) {
      const { abp, __abp_cancel } = page;
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
    },

    async close(reason) {
      unsubscribe();
      if (!open) return;
      open = false;
      try {
        await inTime(page.abp.shutdown?.({ reason }), patience);
      } catch {
        // The session is over anyway.
      }
    },
  };
}
