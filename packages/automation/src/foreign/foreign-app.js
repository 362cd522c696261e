/**
 * An app of others' making, of the form of `window.abp`, in one form: apps differ in how they report, list and cancel. This
 * is called where the app is. In a page that is driven it is injected as text, so it uses nothing but its arguments and `inTime`.
 *
 * It holds what cannot leave the app's page: functions. What becomes of a call is decided elsewhere, by an endpoint
 * (foreign-capabilities.js).
 */

/**
 * What an app reports, by the names of its handlers.
 * @typedef {object} Reports
 * @property {{ event: string, data: unknown }} Notification
 * @property {unknown} Progress
 * @property {{ added?: string[], removed?: string[], changed?: string[], capabilities: unknown[] }} CapabilitiesChanged
 * @property {unknown} Elicitation a question
 */

/**
 * Takes what the app reports.
 * @typedef {(kind: keyof Reports, report: any) => unknown} Hear returns a promise of the response to a question
 */

/**
 * @typedef {object} CallOptions
 * @property {string} callId
 * @property {number} [timeout] ms
 * @property {unknown} [progressToken]
 */

/**
 * An app of others' making. What it says has not been checked.
 * @typedef {object} ForeignApp
 * @property {(params: Record<string, unknown>, hear: Hear, patience: number) => Promise<unknown>} open begins a session; resolves
 *   with what `initialize` said and the capabilities. `patience` is how long it may take to list these, and to shut down, in ms
 * @property {(name: string, params: unknown, options: CallOptions) => Promise<unknown>} call resolves with the response
 * @property {(callId: string, reason?: string) => Promise<unknown>} cancel resolves with the app's word on it
 * @property {(reason?: string) => Promise<void>} close ends the session, if there is one, and what was reported is heard
 *   no more; does not reject
 */

/** What a promise gives, or undefined when that takes too long. @param {unknown} promise @param {number} patience ms */
export function inTime(promise, patience) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, patience)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * @param {Record<string, string[]>} reporters the names of the functions that apps call to report, by kind
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

  // --- What apps report ----------------------------------------------------------------------------

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
   * The notification has only names: adds the current descriptions of these capabilities.
   * @param {string} reporter
   * @param {any} changes
   */
  async function changed(reporter, changes) {
    const { added, removed, changed } = changes ?? {};
    if (isEcho(reporter, [added, removed, changed])) return;
    const names = [added ?? [], changed ?? []].flat();
    const capabilities = (await list()).filter((each) => names.includes(each?.name));
    hear?.('CapabilitiesChanged', { added, removed, changed, capabilities });
  }

  /** @type {Record<string, (reporter: string, ...args: any[]) => unknown>} */
  const take = {
    Notification(reporter, first, second) {
      const notification = typeof first === 'string' ? { event: first, data: second } : first;
      const event = notification?.event ?? notification?.method;
      const data = notification?.data ?? notification?.params;
      if (event === 'notifications/capabilities/list_changed') return changed(reporter, data);
      return isEcho(reporter, notification) ? undefined : hear?.('Notification', { event, data });
    },
    Progress: (reporter, info) => (isEcho(reporter, info) ? undefined : hear?.('Progress', info)),
    CapabilitiesChanged: changed,
    Elicitation: (_reporter, request) => hear?.('Elicitation', request),
  };

  /**
   * @param {string} kind
   * @param {string} reporter
   */
  const listener =
    (kind, reporter) =>
    async (/** @type {unknown[]} */ ...args) => {
      try {
        return await take[kind](reporter, ...args);
      } catch (error) {
        // An app that asks gets the error; one that reports does not.
        if (kind === 'Elicitation') throw error;
        console.warn('abp-bridge: a message could not be sent:', error);
      }
    };

  /**
   * Installs a listener in a member that may be in use. The old listener is still called, except for questions, which
   * have a single answer.
   * @param {any} holder
   * @param {string} name
   * @param {string} kind
   */
  function put(holder, name, kind) {
    const before = holder[name];
    const listen = listener(kind, name);
    if (before?.[PLACE]) {
      before.heard = (/** @type {unknown[]} */ ...args) => (hear ? listen(...args) : undefined);
      places.push(() => (before.heard = undefined));
      return;
    }
    const stacked = (/** @type {unknown[]} */ ...args) => {
      const heard = hear ? listen(...args) : undefined;
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

  /**
   * Some apps have a function that takes a handler, others a property that holds one.
   * @param {any} abp
   * @param {string[]} kinds
   */
  function subscribe(abp, kinds) {
    for (const kind of kinds) {
      const name = `on${kind}`;
      const listen = listener(kind, name);
      const heard = (/** @type {unknown[]} */ ...args) => (hear ? listen(...args) : undefined);
      try {
        if (typeof abp[name] === 'function' && !abp[name][OURS]) abp[name](heard);
        else put(abp, name, kind);
      } catch {
        // An app with neither looks for the functions of the page.
      }
    }
  }

  function unsubscribe() {
    hear = undefined;
    for (const clear of places.splice(0)) clear();
  }

  // --- What it is asked ----------------------------------------------------------------------------

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
      const features = /** @type {{ elicitation?: unknown } | undefined} */ (params.features);
      const kinds = Object.keys(reporters).filter(
        (kind) => kind !== 'Elicitation' || features?.elicitation === true,
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
      subscribe(page.abp, kinds);
      return { ...result, capabilities: [result?.capabilities ?? [], await list()].flat() };
    },

    async call(name, params, options) {
      return page.abp.call(name, params, { ...options, ...BYTES });
    },

    /** The protocol's own pages disagree on the arguments of `cancel`, so an app may take either form. */
    async cancel(callId, reason) {
      const { abp, __abp_cancel } = page;
      const outcomes = [];
      /** @type {((() => any)[])} */
      const forms =
        typeof abp.cancel === 'function'
          ? [() => abp.cancel(callId, reason), () => abp.cancel({ callId, reason })]
          : typeof __abp_cancel === 'function'
            ? [() => __abp_cancel(callId, reason)]
            : [];
      for (const form of forms) {
        try {
          const answer = await form();
          const cancelled = answer === true || answer?.cancelled === true;
          if (cancelled || answer?.callId === callId) return { ...answer, cancelled };
          outcomes.push({ answer });
        } catch (thrown) {
          outcomes.push({ thrown });
        }
      }
      const outcome = outcomes.find(({ answer }) => answer !== undefined) ?? outcomes[0];
      if (!outcome) return { cancelled: false, reason: 'The app has no cancel function' };
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
